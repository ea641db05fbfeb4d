#!/usr/bin/env python3
"""The zips, unpacked at /var/task of a root that holds nothing else, under AWS's Runtime Interface Emulator: they start, take an
event and answer it, on x86-64 and (by qemu-user) on arm64. And as on Amazon Linux: LD_LIBRARY_PATH names a glibc that is not
ours, the CA certificates lie where Amazon Linux has them, and S3 answers over TLS under a name of /etc/hosts. And PostgreSQL."""
import gzip
import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile

import emulator
from emulator import MACHINE, PATIENCE_S, TOP, Child, free_port, run, wait_for

LIBRARY_PATH = "/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib"
LAMBDA = {
    "LANG": "en_US.UTF-8", "TZ": ":UTC",
    "LAMBDA_TASK_ROOT": "/var/task", "AWS_LAMBDA_LOG_FORMAT": "JSON", "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "AKIASLUICETESTS00000", "AWS_SECRET_ACCESS_KEY": "sluice-tests-secret", "SLUICE_REPORT_BATCH_ITEM_FAILURES": "true",
}
CONFIG = {"routes": [
    {"name": "all", "handler": "archive", "to": "file:/tmp/archive", "format": "record", "on_failure": "report"},
    {"name": "paid", "handler": "status_change", "to": "jsonl:/tmp/paid.jsonl", "into": "PAID", "text": "order {SK} of {PK}",
     "on_failure": "report"},
    {"name": "cubes", "handler": "cubes", "on_failure": "report"}]}
CONFIG_S3 = {"routes": [{"name": "all", "handler": "archive", "to": "s3://archive/all", "format": "record", "on_failure": "report"}]}


# It needs libm, which lies in the zip too (the image's own would not go with our libc), and jansson, which bootstrap has.
CUBES = """
#include <jansson.h>
#include <math.h>
#include <sluice/handler.h>

static const struct sl_host *host;

static enum sl_status cubes_open(const struct sl_host *h, struct sl_route *route, void **self, struct sl_error *error)
{
    (void)route;
    (void)self;
    (void)error;
    host = h;
    return SL_OK;
}

static enum sl_status cubes_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    volatile double n = (double)slice->n;
    json_t *record = host->record_to_json(slice->records[0]);
    bool is_there = json_is_string(json_object_get(record, "eventID"));
    (void)self;
    json_decref(record);
    if (!is_there || fabs(cbrt(n * n * n) - n) > 1e-6)
        return host->fail(error, SL_FATAL, "Cubes", "eventID or libm is not as it should be");
    return SL_OK;
}

SL_EXPORT const struct sl_handler SL_HANDLER = {
    SL_HANDLER_ABI, .name = "cubes", .summary = "roots", .open = cubes_open, .handle = cubes_handle};
"""


def make_zip(architecture):
    """Of what a user would deploy: a configuration and plugins' sources."""
    folder = TOP / "build/package/tests"
    (folder / "handlers").mkdir(parents=True, exist_ok=True)
    shutil.copy(TOP / "examples/status_change.c", folder / "handlers")
    (folder / "handlers/cubes.c").write_text(CUBES)
    (folder / "sluice.json").write_text(json.dumps(CONFIG))
    (folder / "s3.json").write_text(json.dumps(CONFIG_S3))
    zip_path = folder / f"{architecture}.zip"
    run("make", "-s", f"package-{architecture}", f"DEPLOY={folder}", f"ZIP={zip_path}", cwd=TOP, stdout=subprocess.DEVNULL)
    return zip_path


def unpack(zip_path, root):
    (root / "var/task").mkdir(parents=True)
    (root / "tmp").mkdir()
    run("unzip", "-q", zip_path, "-d", root / "var/task")


def lines_of(packed):
    return gzip.decompress(packed).decode().rstrip("\n").split("\n")


def records():
    with gzip.open(TOP / "examples/capture/orders.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [next(lines).rstrip("\n") for _ in range(500)]


def invoke(work, root, architecture, environment, event):
    qemu = []
    if architecture != MACHINE:
        interpreter = "qemu-" + {"arm64": "aarch64"}.get(architecture, architecture) + "-static"
        shutil.copy(shutil.which(interpreter), root / "qemu")
        qemu = ["/qemu"]
    # As root a chroot will do; others make themselves root of a namespace first. The emulator needs no LD_LIBRARY_PATH: it is for
    # what runs in the root.
    become = [] if os.geteuid() == 0 else ["unshare", "-r"]
    inside = ["env", f"LD_LIBRARY_PATH={LIBRARY_PATH}", *become, "/usr/sbin/chroot", root, *qemu, "/var/task/bootstrap"]
    answers, output = emulator.invoke(work, inside, {**LAMBDA, **environment}, [event])
    return answers[0], output


def check_output(output):
    """Nothing but the log's and the metrics' own lines: no loader, no library speaks up."""
    for line in output.splitlines():
        try:
            json.loads(line)
        except ValueError:
            raise AssertionError(f"the output has a line that is not the log's: {line}") from None


def in_an_empty_root(work, architecture, zip_path):
    root = work / "root"
    unpack(zip_path, root)
    lines = records()
    answer, output = invoke(work, root, architecture, {}, ('{"Records":[' + ",".join(lines) + "]}").encode())
    assert answer == b'{"batchItemFailures":[]}', f"{answer}\n{output}"
    check_output(output)
    archived = [line for path in (root / "tmp/archive").rglob("*.gz") for line in lines_of(path.read_bytes())]
    assert sorted(archived) == sorted(lines), f"{len(archived)} of {len(lines)} records are archived"
    told = (root / "tmp/paid.jsonl").read_bytes().count(b"\n")
    wanted = sum(changed_to(json.loads(line), "PAID") for line in lines)
    assert told == wanted > 0, f"the plugin counted {told} changes, there are {wanted}"


def changed_to(record, status):
    images = record["dynamodb"]
    if record["eventName"] != "MODIFY":
        return False
    old, new = images["OldImage"].get("status"), images["NewImage"].get("status")
    return old != new and new == {"S": status}


def make_certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=s3.test", "-addext",
        "subjectAltName=DNS:s3.test", "-keyout", folder / "key.pem", "-out", folder / "cert.pem", stderr=subprocess.DEVNULL)


def ask(port, folder, method, path):
    context = ssl.create_default_context(cafile=folder / "cert.pem")
    context.check_hostname = False
    return emulator.ask(http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE_S), method, path)


def as_on_amazon_linux(work, architecture, zip_path):
    root = work / "root"
    unpack(zip_path, root)
    for name in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"):
        (root / "lib64").mkdir(exist_ok=True)
        (root / "lib64" / name).write_text("not the libc that bootstrap was linked against\n")
    make_certificate(work)
    (root / "etc/pki/tls/certs").mkdir(parents=True)
    shutil.copy(work / "cert.pem", root / "etc/pki/tls/certs/ca-bundle.crt")
    (root / "etc/hosts").write_text("127.0.0.1 s3.test\n")
    port, log = free_port(), work / "moto.log"
    moto = [MOTO / "bin/python", "-m", "moto.server", "-H", "127.0.0.1", "-p", port, "-c", work / "cert.pem", "-k", work / "key.pem"]
    with Child(moto, {**os.environ, "S3_IGNORE_SUBDOMAIN_BUCKETNAME": "true"}, log) as process:
        wait_for(port, process, log)
        ask(port, work, "PUT", "/archive")
        lines = records()[:50]
        environment = {"SLUICE_CONFIG": "/var/task/s3.json", "AWS_ENDPOINT_URL_S3": f"https://s3.test:{port}"}
        answer, output = invoke(work, root, architecture, environment, ('{"Records":[' + ",".join(lines) + "]}").encode())
        assert answer == b'{"batchItemFailures":[]}', f"{answer}\n{output}"
        check_output(output)
        listing = ask(port, work, "GET", "/archive?list-type=2&prefix=all/")
        keys = [part.split("</Key>")[0] for part in listing.decode().split("<Key>")[1:]]
        archived = [line for key in keys for line in lines_of(ask(port, work, "GET", f"/archive/{key}"))]
    assert sorted(archived) == sorted(lines), f"{len(archived)} of {len(lines)} records are in the bucket"


def into_postgres(work, architecture, zip_path):
    """The zip's own libpq, over TLS with a certificate that it verifies."""
    root, services = work / "root", work / "services"
    unpack(zip_path, root)
    run(TOP / "tests/services/start.sh", "--owner", str(os.getpid()), services, "postgres")
    try:
        env = dict(line.split("=", 1) for line in (services / "env").read_text().splitlines())
        host, _, port = env["POSTGRES_ENDPOINT"].partition(":")
        psql = ["psql", "-qXAt", "-h", host, "-p", port, "-U", "sluice", "-d", "postgres", "-c"]
        secret = {**os.environ, "PGPASSWORD": env["PGPASSWORD"]}
        run(*psql, 'CREATE TABLE orders ("PK" text COLLATE "C", "SK" text COLLATE "C", item jsonb NOT NULL, PRIMARY KEY ("PK", "SK"))', env=secret)
        shutil.copy(services / "ca.crt", root / "var/task/ca.crt")
        (root / "var/task/postgres.json").write_text(json.dumps({"routes": [{"name": "copy", "handler": "replicate", "on_failure": "report",
                                                                             "to": f"postgres://{host}:{port}/postgres?table=orders&user=sluice&ca=/var/task/ca.crt"}]}))
        lines = records()[:50]
        answer, output = invoke(work, root, architecture, {"SLUICE_CONFIG": "/var/task/postgres.json", "PGPASSWORD": env["PGPASSWORD"]},
                                ('{"Records":[' + ",".join(lines) + "]}").encode())
        assert answer == b'{"batchItemFailures":[]}', f"{answer}\n{output}"
        check_output(output)
        rows = run(*psql, "SELECT count(*) FROM orders", env=secret, stdout=subprocess.PIPE, text=True).stdout.strip()
        assert rows == str(len({json.dumps(json.loads(line)["dynamodb"]["Keys"], sort_keys=True) for line in lines})), rows
        assert env["PGPASSWORD"] not in output
    finally:
        run(TOP / "tests/services/stop.sh", services)


def refused_by_name(work, architecture, zip_path):
    """A start that cannot succeed says why in one line, and does not serve."""
    root = work / "root"
    unpack(zip_path, root)
    answer, output = invoke(work, root, architecture, {"SLUICE_CONFIG": "/var/task/absent.json"}, b'{"Records":[]}')
    assert b"batchItemFailures" not in answer, answer
    errors = [json.loads(line) for line in output.splitlines() if '"ERROR"' in line]
    assert len(errors) == 1 and "/var/task/absent.json" in errors[0]["message"], output


def main():
    passed = 0
    for architecture in ("x86_64", "arm64"):
        zip_path = make_zip(architecture)
        for case in (in_an_empty_root, as_on_amazon_linux, into_postgres, refused_by_name):
            with tempfile.TemporaryDirectory() as folder:
                work = pathlib.Path(folder)
                try:
                    case(work, architecture, zip_path)
                except AssertionError as wrong:
                    sys.exit(f"{architecture}: {case.__name__}: {wrong}")
            passed += 1
    print(f"{passed} passed")


MOTO = pathlib.Path(run("bash", "-c", "cd tests/services && . ./paths.sh && echo $moto_home", cwd=TOP, stdout=subprocess.PIPE,
                        text=True).stdout.strip())
main()
