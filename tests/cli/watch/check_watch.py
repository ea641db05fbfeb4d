#!/usr/bin/env python3
"""A watched tail: its metrics are read by prometheus_client's own OpenMetrics parser, those of made snapshots (test_watch) and
those of a `sluice tail` that runs; its unit is verified by systemd."""
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
READER = "SLUICE_READER_PYTHON"
if READER not in os.environ:
    python = subprocess.run(["tests/support/python/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execve(python, [python, *sys.argv], {**os.environ, READER: python, "PYTHONPATH": "tests/cli"})

from harness import check, finish, until, work_folder  # noqa: E402
from servers import Servers  # noqa: E402
from prometheus_client.openmetrics.parser import text_string_to_metric_families  # noqa: E402


def parse(text):
    """The samples, {name: {labels: value}}, after a look at the rules that the parser leaves open."""
    check("it ends", text.endswith("# EOF\n"))
    found, names = {}, set()
    for family in text_string_to_metric_families(text):
        check("a family comes once", family.name not in names, family.name)
        names.add(family.name)
        check("a family is explained", family.documentation and family.type in ("counter", "gauge", "info"), family)
        check("times are in seconds", not family.name.endswith(("_ms", "_milliseconds")) and (family.unit != "seconds" or family.name.endswith("_seconds")), family)
        for sample in family.samples:
            check("a counter ends in _total", (family.type == "counter") == sample.name.endswith("_total"), sample)
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def of_snapshots(folder):
    done = subprocess.run([f"{BUILD}/tests/cli/watch/test_watch"], env={**os.environ, "WATCH_DUMP": str(folder)}, capture_output=True, timeout=600)
    check("snapshots", done.returncode == 0, done.stdout + done.stderr)
    three, many, none = (parse((folder / f"{name}.txt").read_text()) for name in ("three", "many", "none"))
    check("a counter", three["sluice_tail_records_read_total"] == {(): 1000})
    check("a time", three["sluice_tail_lag_seconds"] == {(): 1.5})
    check("states", three["sluice_tail_shards"] == {(("state", s),): n for s, n in (("open", 2), ("waiting", 1), ("done", 0))})
    check("a route", three["sluice_tail_route_records_applied_total"][("handler", "replicate"), ("route", "replica")] == 8)
    check("what is hostile stays in its label", len(three["sluice_tail_route_calls_total"]) == 2 and any(
        dict(labels)["route"].startswith('a"b\\c') for labels in three["sluice_tail_route_calls_total"]), three)
    check("shards", len(many["sluice_tail_shard_lag_seconds"]) == 65 and "sluice_tail_shard_lag_seconds" not in none)


def ask(port, path, host=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait(name, condition, detail=lambda: ""):
    came = until(condition)
    check(name, came, "" if came else detail())


def start(folder, servers, table, routes):
    """A tail whose standard error is a terminal."""
    work = folder / table
    work.mkdir()
    (work / "sluice.json").write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True, "routes": routes}))
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(work / "notify"))
    ours, theirs = pty.openpty()
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}, **servers.credentials,
           "NOTIFY_SOCKET": str(work / "notify"), "WATCHDOG_USEC": "1000000"}
    process = subprocess.Popen([f"{BUILD}/sluice", "tail", "--table", table, "--endpoint-url", servers.endpoint, "--listen", "127.0.0.1:0", "--timeout", "3"],
                               cwd=work, env=env, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    process.said, process.notices = bytearray(), []

    def listen():  # as systemd does: all the time
        while True:
            process.notices.append(notices.recv(4096))
    threading.Thread(target=listen, daemon=True).start()

    def read():
        try:
            while (block := os.read(ours, 4096)):
                process.said += block
        except OSError:
            pass
    threading.Thread(target=read, daemon=True).start()
    port = lambda: re.search(rb"metrics are at port (\d+)", process.said)
    wait("it says where its metrics are", lambda: port() or process.poll() is not None)
    check("it runs", port(), process.said)
    process.port = int(port()[1])
    return process


def value(process, name):
    status, text = ask(process.port, "/metrics")
    return sum(parse(text).get(name, {(): -1}).values()) if status == 200 else -1


def running(folder):
    servers, processes = Servers("dynamodb"), []
    try:
        for table in ("good", "down"):
            servers.create(table, stream=True)
            for n in range(20):
                servers.dynamodb("PutItem", TableName=table, Item={"PK": {"S": f"canary-key-{n}"}, "v": {"S": "canary-value"}})
        good = start(folder, servers, "good", [{"name": "copy", "handler": "replicate", "to": "sqlite:copy.db?table=t"}])
        processes.append(good)
        wait("all is handled, and counted", lambda: value(good, "sluice_tail_records_handled_total") == 20, lambda: ask(good.port, "/metrics"))
        wait("and each route's part", lambda: value(good, "sluice_tail_route_records_applied_total") == 20, lambda: ask(good.port, "/metrics"))
        check("the records' bytes", 20 * 150 < value(good, "sluice_tail_route_bytes_total") < 20 * 2000, value(good, "sluice_tail_route_bytes_total"))
        check("it is ready and healthy", ask(good.port, "/ready")[0] == 200 and ask(good.port, "/health")[0] == 200)
        check("a page of another name gets nothing", ask(good.port, "/metrics", "evil.example")[0] == 421)
        wait("the live line is there", lambda: b"\r\x1b[Klag " in good.said and b" records/s, " in good.said, lambda: good.said)
        check("systemd hears that it is ready", good.notices[0].startswith(b"READY=1\nSTATUS=lag "), good.notices)
        wait("and that it lives", lambda: good.notices.count(b"WATCHDOG=1") > 1, lambda: good.notices)

        down = start(folder, servers, "down", [{"name": "hook", "handler": "notify", "to": "http://127.0.0.1:1/canary-path#attempts=1"}])
        processes.append(down)
        wait("a target's outage blocks the shard, and is seen", lambda: value(down, "sluice_tail_shards_blocked") == 1, lambda: ask(down.port, "/metrics"))
        check("but the process is healthy and ready", ask(down.port, "/ready")[0] == 200 and ask(down.port, "/health")[0] == 200)
        wait("the live line names it", lambda: b" 1 blocked: shardId-" in down.said, lambda: down.said)
        for process in processes:
            text = ask(process.port, "/metrics")[1]
            check("no item and no secret is shown", "canary" not in text and b"canary-value" not in process.said, text)
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=600)
            wait("systemd hears that it ends", lambda: b"STOPPING=1" in process.notices, lambda: process.notices)
        check("it ended well", good.returncode == 0, good.said)
    finally:
        for process in processes:
            process.kill()


def unit(folder):
    text = pathlib.Path("deploy/sluice-tail.service").read_text()
    path = folder / "sluice-tail.service"
    path.write_text(text.replace("/usr/local/bin/sluice", f'"{BUILD}/sluice"'))  # the build folder's name may have spaces
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=600)
    check("systemd takes the unit, without a word", done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr)
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(path)], capture_output=True, text=True, timeout=600)
    check("it is hardened: at most 2.0 of 10", done.returncode == 0, done.stdout[-300:] + done.stderr)
    path.write_text(path.read_text().replace("Type=notify", "Type=notfy"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=600)
    check("a mistake would be seen", done.stderr != "")


def main():
    folder = work_folder()
    of_snapshots(folder)
    unit(folder)
    running(folder)
    finish()


main()
