#!/usr/bin/env python3
"""A shard that an unknown error code blocks: FATAL, released with reject=CODE, parked alone, redriven. All by content."""
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import subprocess

from harness import BUILD, Run, check, finish, record, work_folder

CODE = "ItemRefusedException"
folder = work_folder()
ENV = {"AWS_ACCESS_KEY_ID": "drill", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}


class Table:
    """DynamoDB as far as a replica without guards needs it."""

    def __init__(self):
        self.items, self.refuses, self.left = {}, lambda key: False, 10**9

    def write(self, operation, body):
        """The requests of one operation, all or none."""
        writes = [(r.get("PutRequest", {}).get("Item"), r.get("DeleteRequest", {}).get("Key")) for rs in body["RequestItems"].values() for r in rs] \
            if operation == "BatchWriteItem" else [(body.get("Item"), body.get("Key"))]
        keys = [(item or key)["PK"]["S"] for item, key in writes]
        if any(self.refuses(k) for k in keys) or self.left <= 0:
            return 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{CODE}", "message": "the item breaks a rule that did not exist before"}
        self.left -= len(keys)
        for key, (item, _) in zip(keys, writes):
            self.items.pop(key, None)
            if item:
                self.items[key] = item
        return 200, {"UnprocessedItems": {}} if operation == "BatchWriteItem" else {}


table = Table()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = table.write(self.headers["X-Amz-Target"].split(".")[1], body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def configure(reject=""):
    url = f"dynamodb://replica?endpoint=http://127.0.0.1:{server.server_port}{reject}"
    (folder / "sluice.json").write_text(json.dumps({
        "on_failure": "jsonl:parked.jsonl", "report_batch_item_failures": True,
        "routes": [{"name": "replica", "handler": "replicate", "to": url, "guard": "none"}]}))


def parked():
    path = folder / "parked.jsonl"
    return [json.loads(l) for l in path.read_text().splitlines()] if path.exists() else []


def begin():
    table.__init__()
    (folder / "parked.jsonl").unlink(missing_ok=True)
    configure()


def removed(n, key):
    r = record(n, name="REMOVE", key=key)
    del r["dynamodb"]["NewImage"]
    return r


def replay(records, *args):
    return Run(folder, "--max-retries", "3", *args, records=records, env=ENV)


def item(n, key=None):
    return {"PK": {"S": key or f"k{n}"}, "n": {"N": str(n)}}


def the_drill():
    """The refused put has no other put beside it: nothing shows whether the table or the record is to blame."""
    begin()
    table.items = {"old": item(0, "old")}
    table.refuses = lambda key: key == "poison"
    records = [record(1, key="poison"), removed(2, "old"), *[record(n) for n in range(3, 9)]]
    blocked = replay(records, "--batch-size", "2")
    check("an unknown code blocks the shard", blocked.status == 1 and blocked.deliveries(1) == 4, blocked.err)
    check("nothing is parked", parked() == [], parked())
    check("the log says what to type", f"(FATAL)" in blocked.err and f"add reject={CODE} to the target" in blocked.err, blocked.err)
    begin()
    table.items = {"old": item(0, "old")}
    table.refuses = lambda key: key == "poison"
    configure(f"&reject={CODE}")
    released = replay(records, "--batch-size", "2")
    check("released: the shard goes on", released.status == 0 and released.deliveries(1) == 1 and not released.failures, released.err)
    check("the record is parked alone, with its code", [(p["record"]["dynamodb"]["SequenceNumber"], p["code"], p["route"]) for p in parked()] ==
          [("1", CODE, "replica")], parked())
    check("what was beside it is applied", table.items == {f"k{n}": item(n) for n in range(3, 9)}, table.items)
    configure()
    redrive = lambda: subprocess.run([f"{BUILD}/sluice", "redrive", "parked.jsonl"], cwd=folder, env={**os.environ, **ENV}, capture_output=True, timeout=600)
    done = redrive()
    check("redriven too early: it fails again, and nothing changes", done.returncode == 1 and len(table.items) == 6, done.stderr)
    table.refuses = lambda key: False
    done = redrive()
    check("redriven after the repair: done", done.returncode == 0, done.stdout + done.stderr)
    check("everything is there", table.items == {**{f"k{n}": item(n) for n in range(3, 9)}, "poison": item(1, "poison")}, table.items)


def contrast():
    """Beside a put that succeeds, the refused one is to blame, without a word from the operator."""
    begin()
    table.refuses = lambda key: key in ("k4", "k7")
    run = replay([record(n) for n in range(1, 21)], "--batch-size", "10")
    check("the shard goes on by itself", run.status == 0 and not run.failures, run.err)
    check("the two are parked, and nothing else", sorted(p["record"]["dynamodb"]["SequenceNumber"] for p in parked()) == ["4", "7"], parked())
    check("all others are applied", table.items == {f"k{n}": item(n) for n in range(1, 21) if n not in (4, 7)}, table.items)


def the_table_breaks():
    """After a while every put is refused with a code that nobody knows: no batch is given up for it."""
    begin()
    table.left = 20
    run = replay([record(n) for n in range(1, 61)], "--batch-size", "10")
    check("it blocks, and parks nothing", run.status == 1 and parked() == [] and "(FATAL)" in run.err, (run.err, len(parked())))
    check("what was applied before stays", table.items == {f"k{n}": item(n) for n in range(1, 21)}, len(table.items))
    table.left = 10**9
    run = replay([record(n) for n in range(1, 61)], "--batch-size", "10")
    check("repaired: everything is there", run.status == 0 and table.items == {f"k{n}": item(n) for n in range(1, 61)}, run.err)


def misspelt():
    for value in ("", "A B", "ThrottlingException", ",".join("abcdefghi")):
        configure(f"&reject={value.replace(' ', '%20')}")
        done = subprocess.run([f"{BUILD}/sluice", "check"], cwd=folder, env={**os.environ, **ENV}, capture_output=True, timeout=600)
        check(f"reject={value} is refused by name", done.returncode != 0 and b"reject=" in done.stdout + done.stderr, done.stdout + done.stderr)
    configure(f"&reject={CODE},Http413")
    done = subprocess.run([f"{BUILD}/sluice", "check"], cwd=folder, env={**os.environ, **ENV}, capture_output=True, timeout=600)
    check("a list of codes is taken", done.returncode == 0, done.stdout + done.stderr)


the_drill()
contrast()
the_table_breaks()
misspelt()
finish()
