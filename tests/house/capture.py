#!/usr/bin/env python3
"""What Sluice shows and writes, captured, so that two builds can be compared: `make capture OUT=before`, later `OUT=after`, then diff.

A change that moves code and no behaviour leaves every file equal: what each verb prints and its exit status on fixed input, its
checkpoints, archives, ledgers, parked records, the requests it makes of DynamoDB, and what bootstrap and the libraries are made of.
Times, ports, process ids and folders are masked; so is what depends on them."""
import datetime
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.append(os.path.abspath("tests/cli"))
import verify_world  # noqa: E402
from harness import BUILD  # noqa: E402

OUT = pathlib.Path(sys.argv[1]).resolve()
os.environ.pop("OUT", None)  # (make exports it, and configurations have a ${OUT})
ROOT = pathlib.Path.cwd()
CAPTURE = ROOT / "examples/capture/orders.jsonl.gz"
SCAN = ROOT / "examples/capture/orders.scan.jsonl.gz"
VERBS = re.findall(r"^  ([a-z-]+) ", subprocess.run([f"{BUILD}/sluice", "--help"], capture_output=True, text=True, check=True).stdout, re.M)
MASKS = [(re.compile(p), w) for p, w in [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"2026-[01]\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "TIME"),
    (r"127\.0\.0\.1:\d+", "HOST"),
    (r"\b(in|after|for|takes?|took|needs?|within|about) [\d.]+ (ms|s|seconds?|minutes?)\b", r"\1 N s"),
    (r"\b[\d.]+ (ms|records/s|items/s|MB/s|MB/min|invocations/s|MB)\b", r"N \1"),
    (r"(\"[A-Za-z_]*(ms|_s|Duration|duration|Seconds|cpu|bytes_peak)\": ?)[\d.]+", r"\1N"),
    (r"\b0*1[6-9]\d{8}(\d{3}|\d{6}|\d{9})?\b", "EPOCH"),
    (r"Root=1-[0-9a-f]{8}-", "Root=1-TIME-"),
    (r"\b[0-9a-f]{32}\b", "DIGEST"),
    (r"\b[0-9a-f]{16}:DIGEST", "WRITE"),
    (r"\bwritten \d+ s ago", "written N s ago"),
    (r"(STATUS#[A-Z]+)#\d", r"\1#SHARD"),
    (r"verify-[a-z0-9_]{8}", "FOLDER"),
]]


def mask(text):
    text = text.replace(str(verify_world.folder), "TMP").replace(BUILD, "BUILD").replace(str(ROOT), "ROOT")
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def keep(name, text):
    (OUT / name).parent.mkdir(parents=True, exist_ok=True)
    (OUT / name).write_text(mask(text))


def run(name, *command, cwd=None, env=None, stdin="", show=True):
    """One command: its exit status and both streams become a file."""
    at = cwd or verify_world.folder
    done = subprocess.run([f"{BUILD}/sluice", *map(str, command)], cwd=at, env={**os.environ, **(env or {})}, input=stdin.encode(),
                          capture_output=True, timeout=600, check=False)
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    keep(name + ".txt", f"$ sluice {' '.join(map(str, command))}\nexit {done.returncode}\n-- stdout\n{out}-- stderr\n{err if show else ''}")
    return done


def sqlite(file):
    """The rows of all tables, in the order of their keys."""
    import sqlite3
    rows = []
    base = sqlite3.connect(file)
    for (table,) in base.execute("select name from sqlite_master where type='table' order by name").fetchall():
        rows += [f"{table}: {row}" for row in sorted(map(repr, base.execute(f'select * from "{table}"').fetchall()))]
    return "\n".join(rows) + "\n"


def tree(name, folder):
    """Every file of a folder: its name, and what is in it (unpacked)."""
    import gzip
    lines = []
    for path in sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file()):
        data = path.read_bytes()
        if path.suffix in (".db", ".db-wal", ".db-shm"):
            if path.suffix == ".db":
                lines.append(f"{path.relative_to(folder)}\n{sqlite(path)}")
            continue
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        text = mask(data.decode("utf-8", "replace"))
        if path.suffix == ".jsonl":  # several invocations at a time write it
            text = "".join(sorted(text.splitlines(True)))
        body = text if len(text) < 20000 else f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}\n"
        lines.append(f"{path.relative_to(folder)}\n{body}")
    keep(name + ".tree", "\n".join(lines))


# ---- without a service ----

def usage():
    run("usage/help", "--help")
    run("usage/none")
    run("usage/wrong", "rpelay")
    for verb in VERBS:
        run(f"usage/{verb}-help", verb, "--help")
        run(f"usage/{verb}-unknown", verb, "--no-such-flag")
        run(f"usage/{verb}-nothing", verb)
        run(f"usage/{verb}-no-config", verb, "--config", "absent.json", "--table", "t", "x")


def checks():
    for config in [*sorted(ROOT.glob("deploy/*.json")), *sorted(ROOT.glob("examples/*/sluice.json"))]:
        name = f"check/{config.parent.name}-{config.stem}"
        env = {"OUT": "out", "PSEUDONYM_KEY": "k", "ARCHIVE_BUCKET": "b", "BUCKET": "b", "TABLE": "t"}
        run(name, "check", config, env=env)
        run(name + "-sample", "check", "--sample", CAPTURE, config, env=env)
        run(name + "-unset", "check", config)
    (verify_world.folder / "mapping.json").write_text(json.dumps({
        "BatchSize": 100, "MaximumRetryAttempts": 2, "StartingPosition": "LATEST", "EventSourceArn":
        "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-20T00:00:00.000", "FilterCriteria": {"Filters": [
            {"Pattern": json.dumps({"eventName": ["INSERT"]})}]}}))
    run("check/mapping", "check", "--mapping", "mapping.json", ROOT / "examples/shop/sluice.json", env={"OUT": "o", "PSEUDONYM_KEY": "k"})


def fresh(name):
    folder = verify_world.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def lives():
    """A pipeline's life on local targets: replay, verify, break, repair, backfill, restore, manifest, redrive."""
    folder = fresh("life")
    orders, env = ROOT / "examples/orders/sluice.json", {"OUT": "."}
    run("life/decode", "decode", CAPTURE, cwd=folder)
    run("life/replay", "replay", "--config", orders, "--report-failures", "--trace", "trace.jsonl", "--log", "log.txt", "--quiet", CAPTURE, cwd=folder, env=env)
    tree("life/replay", folder)
    shutil.rmtree(folder / "archive")
    for mode in (["--bisect", "--max-retries", "3", "--fault", "crash@10%"], ["--shards", "4", "--parallelization", "3", "--window", "5", "--live"],
                 ["--tumbling", "60", "--report-failures"], ["--fault", "sink@5%", "--report-failures", "--max-retries", "8"]):
        at = fresh("mode")
        run(f"life/replay{'-'.join(mode)}".replace("%", ""), "replay", "--config", orders, "--seed", "7", "--trace", "trace.jsonl", "--on-failure", "failed.jsonl",
            "--report", "report.html", "--quiet", *mode, CAPTURE, cwd=at, env={"OUT": "."}, show=False)
        tree(f"life/replay{'-'.join(mode)}".replace("%", ""), at)
    for name in ("shop", "votes", "photos"):
        at = fresh(name)
        run(f"life/{name}", "replay", "--config", ROOT / f"examples/{name}/sluice.json", "--batch-size", "500", "--quiet", ROOT / f"examples/{name}/history.jsonl.gz",
            cwd=at, env={"OUT": ".", "PSEUDONYM_KEY": "k"})
        tree(f"life/{name}", at)
    seeds = fresh("seeds")
    (seeds / "sluice.json").write_text(json.dumps({"on_failure": "jsonl:parked.jsonl", "report_batch_item_failures": True, "routes": [
        {"name": "replica", "handler": "replicate", "to": "sqlite:copy.db?table=orders"},
        {"name": "totals", "handler": "aggregate", "to": "sqlite:copy.db?table=totals", "missing": "skip",
         "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"orders": 1, "revenue": "{total}"}}]}]}))
    since = ["--as-of", "2026-11-20T10:00:00Z", "--consumer-since", "2026-11-20T09:00:00Z", "--keys", "PK,SK"]
    run("life/backfill-plan", "backfill", "--plan", *since, SCAN, cwd=seeds)
    run("life/backfill", "backfill", "--checkpoint", "place.json", "--quiet", *since, SCAN, cwd=seeds)
    run("life/backfill-again", "backfill", "--checkpoint", "place.json", "--quiet", *since, SCAN, cwd=seeds)
    tree("life/backfill", seeds)
    # Poison: parked, and run again after the mistake was found.
    at = fresh("poison")
    records = [verify_world_record(n) for n in range(1, 201)]
    (at / "in.jsonl").write_text("\n".join(json.dumps(r) for r in records) + "\n")
    config = {"on_failure": "jsonl:parked.jsonl", "report_batch_item_failures": True, "routes": [
        {"name": "sent", "handler": "notify", "to": "jsonl:sent.jsonl", "message": "{w} of {PK}"},
        {"name": "copy", "handler": "replicate", "to": "sqlite:copy.db?table=c"}]}
    (at / "sluice.json").write_text(json.dumps(config))
    run("life/parks", "replay", "--quiet", "in.jsonl", cwd=at)
    run("life/redrive-dry", "redrive", "--dry-run", "parked.jsonl", cwd=at)
    config["routes"][0]["message"] = "{n} of {PK}"
    (at / "sluice.json").write_text(json.dumps(config))
    run("life/redrive", "redrive", "parked.jsonl", cwd=at)
    run("life/redrive-match", "redrive", "--match", "code=Missing*", "--limit", "2", "parked.jsonl", cwd=at)
    tree("life/parks", at)
    # An archive as an incremental export.
    at = fresh("export")
    (at / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": [
        {"name": "kept", "handler": "archive", "to": "file:kept", "format": "export"}, {"name": "all", "handler": "archive", "to": "file:all", "format": "record"}]}))
    run("life/archives", "replay", "--quiet", "--batch-size", "300", CAPTURE, cwd=at)
    run("life/manifest", "manifest", "kept", cwd=at)
    run("life/decode-archive", "decode", *sorted((at / "all").rglob("*.gz")), cwd=at)
    tree("life/manifest", at)
    (at / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": [
        {"name": "restored", "handler": "replicate", "to": "sqlite:was.db?table=orders", "guard": "none"}]}))
    last = max(r["dynamodb"]["ApproximateCreationDateTime"] for r in map(json.loads, subprocess.run(
        ["zcat", CAPTURE], capture_output=True, check=True).stdout.splitlines()))
    run("life/restore", "backfill", "--archive", "all", "--until", datetime.datetime.fromtimestamp(last - 1, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "--keys", "PK,SK", "--quiet", "--checkpoint", "r.json", cwd=at)
    run("life/backfill-archive", "backfill", "--archive", "all", "--keys", "PK,SK", "--quiet", "--unsafe-order", cwd=at)
    keep("life/restored.txt", sqlite(at / "was.db") if (at / "was.db").exists() else "none\n")
    run("life/new-handler", "new-handler", "mine", cwd=fresh("handler"))
    tree("life/new-handler", verify_world.folder / "handler")
    for i, text in enumerate(("", "{", '{"Records":[{}]}', '{"Records":[1]}', "\x1f\x8b", '{"Items":[{"a":{"N":"x"}}]}', "[]", '{"a":1}\n{"b":')):
        (folder / "bad").write_text(text)
        run(f"bad/decode-{i}", "decode", "bad", cwd=folder)
        run(f"bad/decode-going-{i}", "decode", "--keep-going", "bad", cwd=folder)
        run(f"bad/replay-{i}", "replay", "--quiet", "--config", orders, "bad", cwd=folder, env=env)
        run(f"bad/redrive-{i}", "redrive", "--config", orders, "bad", cwd=folder, env=env)
        run(f"bad/check-{i}", "check", "bad", cwd=folder)
        run(f"bad/backfill-{i}", "backfill", "--config", orders, *since, "bad", cwd=folder, env=env)


def verify_world_record(n):
    from harness import record
    r = record(n)
    if n % 20 != 0:
        r["dynamodb"]["NewImage"]["w"] = {"S": f"w{n}"}
    return r


# ---- with DynamoDB Local, behind a proxy that notes every request ----

class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen, lock, behind = [], threading.Lock(), None

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        what = json.loads(body)
        with self.lock:
            self.seen.append((self.headers["X-Amz-Target"].split(".")[-1], what.get("TableName", ""), what.get("ConditionExpression", ""),
                              what.get("UpdateExpression", ""), what.get("ConsistentRead", "")))
        request = urllib.request.Request(self.behind, body, {k: v for k, v in self.headers.items() if k.lower() != "host"})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                status, head, text = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            status, head, text = error.code, error.headers, error.read()
        self.send_response(status)
        for name in ("Content-Type", "x-amz-crc32", "x-amzn-RequestId"):
            if head.get(name):
                self.send_header(name, head[name])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    @classmethod
    def told(cls, name, counted=True):
        """The requests since the last call: how many of each kind."""
        with cls.lock:
            seen, cls.seen[:] = list(cls.seen), []
        kinds = {}
        for what in seen:
            kinds[what] = kinds.get(what, 0) + 1
        keep(name + ".requests", "".join(f"{n if counted else '-':>5} {' | '.join(map(str, what))}\n" for what, n in sorted(kinds.items(), key=str)))


def tables(name, world):
    rows = []
    for where in sorted(verify_world.PLACES):
        rows += [f"{where}: {line}" for line in sorted(json.dumps(i, sort_keys=True) for i in world.db.scan(world.where(where)))]
    text = mask("\n".join(rows) + "\n")
    keep(name, re.sub(r"\d{21,}", "SEQUENCE", text))


def service():
    verify_world.start_services("dynamodb")
    Proxy.behind = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]
    http.server.ThreadingHTTPServer.request_queue_size = 128
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    near = {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{server.server_port}", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": Proxy.behind}
    world = verify_world.World("w", ["replica", "aside", "beside", "byuser", "totals", "more", "spread", "kept"])
    for n in range(40):
        world.put(world.table, verify_world.item(f"p{n % 10}", str(n), status=("OPEN", "PAID")[n % 2], cost=n))
    for n in range(0, 40, 5):
        world.delete(world.table, verify_world.key(f"p{n % 10}", str(n)))
    on = dict(cwd=world.folder, env=near)
    run("service/check", "check", "--tables", **on)
    Proxy.told("service/check")
    run("service/tail", "tail", "--table", world.table, "--checkpoint", "place.json", "--once", "--quiet", "--batch-size", "1000", show=False, **on)
    Proxy.told("service/tail", counted=False)
    tables("service/tail.tables", world)
    keep("service/place.txt", json.dumps(shape(json.loads((world.folder / "place.json").read_text())), indent=1, sort_keys=True))
    ask = ["--table", world.table, "--max-lag", "0", "--wait", "5", "--quiet", "--segments", "1"]
    run("service/verify-plan", "verify", *ask, "--plan", **on)
    Proxy.told("service/verify-plan")
    run("service/verify", "verify", *ask, "--json", "--checkpoint", "v.json", **on)
    Proxy.told("service/verify")
    world.delete(world.where("replica"), verify_world.key("p1", "1"))
    world.update(world.where("beside"), verify_world.key("p2", "2"), "SET price = :x", x={"N": "99"})
    world.put(world.where("byuser"), {"ID": {"S": "nobody"}, "sluice_order": {"S": "0" * 40}})
    world.update(world.where("totals"), {"PK": {"S": "STATUS#PAID"}}, "SET n = :x", x={"N": "9999"})
    for name, flags in {"verify-broken": ["--json"], "verify-text": [], "verify-item": ["--item", json.dumps(verify_world.key("p1", "1")), "--json"],
                        "verify-sample": ["--sample", "1/2", "--json", "--no-totals"], "verify-archives": ["--archives", "--json"]}.items():
        done = run(f"service/{name}", "verify", *ask, *flags, **on)
        Proxy.told(f"service/{name}")
        if name == "verify-broken":
            (world.folder / "found.jsonl").write_bytes(done.stdout)
    run("service/repair-dry", "repair", *ask, "--dry-run", "--delete", "--json", **on)
    Proxy.told("service/repair-dry")
    run("service/repair", "repair", *ask, "--delete", "--totals", "--audit", "audit.jsonl", "--save", "saved.jsonl", "--json", "found.jsonl", **on)
    Proxy.told("service/repair")
    for name in ("audit.jsonl", "saved.jsonl"):
        keep(f"service/{name}", (world.folder / name).read_text() if (world.folder / name).exists() else "")
    tables("service/repair.tables", world)
    run("service/undo", "repair", *ask, "--undo", "saved.jsonl", "--json", **on)
    Proxy.told("service/undo")
    run("service/verify-after", "verify", *ask, "--json", **on)
    since = ["--table", world.table, "--consumer-since", "2026-01-01T00:00:00Z", "--quiet"]
    run("service/backfill-plan", "backfill", "--plan", *since, **on)
    Proxy.told("service/backfill-plan")
    run("service/backfill", "backfill", "--checkpoint", "b.json", *since, **on)
    Proxy.told("service/backfill")
    tables("service/backfill.tables", world)
    if (world.folder / "b.json").exists():
        keep("service/b.txt", json.dumps(shape(json.loads((world.folder / "b.json").read_text())), indent=1, sort_keys=True))
    leases = fresh("leases")
    world.db.create("w-leases", [("leaseKey", "S")], False)
    shutil.copy(world.folder / "sluice.json", leases)
    with open(leases / "log", "w", encoding="utf-8") as log:
        tail = subprocess.Popen([f"{BUILD}/sluice", "tail", "--table", world.table, "--leases", "dynamodb://w-leases", "--worker-id", "one", "--quiet"],
                                cwd=leases, env={**os.environ, **near}, stdout=log, stderr=log)
        world.tails.append(tail)
        for _ in range(100):  # until a shard's place is saved
            time.sleep(0.1)
            rows = world.db.scan("w-leases")
            if any(any(c.isdigit() for c in row.get("checkpoint", {}).get("S", "")) for row in rows):
                break
        tail.send_signal(signal.SIGINT)
        tail.wait(600)
    Proxy.told("service/tail-leases", counted=False)
    keep("service/tail-leases.txt", f"exit {tail.returncode}\n{(leases / 'log').read_text()}")
    keep("service/leases.txt", json.dumps(sorted((shape(row) for row in rows), key=json.dumps), indent=1, sort_keys=True))
    server.shutdown()


def shape(value):
    """What a document looks like: names and types; words that may differ from run to run are left out."""
    if isinstance(value, dict):
        return {re.sub(r"shardId-\d+-[0-9a-f]+", "SHARD", k): shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(v) for v in value[:1]]
    return type(value).__name__


# ---- what the programs are made of ----

def programs():
    def told(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    libraries = sorted(line.split()[0] for line in told("ldd", f"{BUILD}/bootstrap").splitlines())
    keep("programs/bootstrap.ldd", "\n".join(libraries) + "\n")
    subprocess.run(["make", "-s", f"{os.path.relpath(BUILD)}/libsluice-runtime.a"], check=True, stdout=subprocess.DEVNULL)
    keep("programs/runtime.undefined", "\n".join(sorted(l.split()[-1] for l in told("nm", "-u", f"{BUILD}/libsluice-runtime.a").splitlines() if " U " in l)) + "\n")
    keep("programs/runtime.global", "\n".join(sorted(l.split()[-1] for l in told("nm", "-g", "--defined-only", f"{BUILD}/libsluice-runtime.a").splitlines() if " T " in l)) + "\n")
    keep("programs/handler.h", (pathlib.Path(BUILD) / "include/sluice/handler.h").read_text())
    keep("programs/schema.json", (ROOT / "docs/sluice.schema.json").read_text())


shutil.rmtree(OUT, ignore_errors=True)
for part in (usage, checks, lives, programs, service):
    part()
print(f"{sum(1 for p in OUT.rglob('*') if p.is_file())} files in {OUT}")
