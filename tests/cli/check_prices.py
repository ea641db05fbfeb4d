#!/usr/bin/env python3
"""What `sluice check` says that changes cost, against what they consume in DynamoDB Local.

A proxy between `sluice replay` and DynamoDB Local adds up the capacity that every request consumes. For each
form of guard, and each kind of counter, a batch of INSERTs, then of MODIFYs, then of REMOVEs is replayed, with the figures of
`sluice check` for the same batch beside it."""
import json
import os
import re
import select
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import BUILD, check, finish, work_folder, write_event
from servers import Servers

folder = work_folder()
servers = Servers("dynamodb")
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.credentials}
READS = ("GetItem", "BatchGetItem")


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock, units, tokens = threading.Lock(), {}, set()

    def log_message(self, *_):
        pass

    def is_alone(self):
        """Whether the client has gone: on a slow machine it waits for an answer for so long, and asks again."""
        return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1, socket.MSG_PEEK)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers["X-Amz-Target"].split(".")[-1]
        with self.lock:  # nothing may change between a look and a write
            before = [size_of(*place) for place in places(body)]
            status, answer = call(operation, body | {"ReturnConsumedCapacity": "TOTAL"})
            token = body.get("ClientRequestToken")
            if token in self.tokens or not token and self.is_alone():
                pass  # said again, or waited for too long: it will be
            elif operation in READS:
                self.units["read"] += sum(-(-max(size, 1) // 4096) * (1 if is_consistent else 0.5) for is_consistent, size in read_sizes(body))
            elif "TransactItems" in body:
                after = [size_of(*place) for place in places(body)]
                self.units["write"] += sum(2 * -(-max(b, a, 1) // 1024) for b, a in zip(before, after, strict=True))
            elif operation != "DescribeTable":  # the key's names cost nothing
                used = answer.get("ConsumedCapacity", {"CapacityUnits": 1})  # a condition that fails is paid for as well
                self.units["write"] += sum(u["CapacityUnits"] for u in (used if isinstance(used, list) else [used]))
            self.tokens |= {token} - {None}
        if self.is_alone():
            self.close_connection = True
            return
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


# DynamoDB Local tells what single writes consumed. Of transactions it reports the same few units whatever is in them, and of
# absent items that no read was made: these are counted as AWS documents it, from the items as they are before and after.


def places(body):
    """Table and key of each action of a transaction."""
    for action in body.get("TransactItems", []):
        ((_, what),) = action.items()
        key = what.get("Key") or {name: what["Item"][name] for name in KEYS[what["TableName"]]}
        yield what["TableName"], key


def read_sizes(body):
    for table, what in body.get("RequestItems", {body.get("TableName"): {"Keys": [body.get("Key")], **body}}).items():
        for key in what["Keys"]:
            yield what.get("ConsistentRead", False), size_of(table, key)


def size_of(table, key):
    item = call("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True})[1].get("Item", {})
    return sum(len(name.encode()) + size_of_value(v) for name, v in item.items())


def size_of_value(value):
    ((tag, inner),) = value.items()
    if tag == "M":
        return 3 + sum(1 + len(name) + size_of_value(v) for name, v in inner.items())
    if tag == "L":
        return 3 + sum(1 + size_of_value(v) for v in inner)
    return len(str(inner)) if tag in "SN" else 1


KEYS = {}


def call(operation, body):
    status, text = servers.ask(servers.endpoint, "dynamodb", f"DynamoDB_20120810.{operation}", body)
    return status, json.loads(text)


def create(name, keys):
    KEYS[name] = keys
    status, answer = call("CreateTable", {
        "TableName": name, "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in keys],
        "KeySchema": [{"AttributeName": k, "KeyType": t} for k, t in zip(keys, ("HASH", "RANGE"))]})
    check(f"table {name}", status == 200, answer)


def events(kind, n, size, spread, view):
    """`n` changes of items of `size` bytes by DynamoDB's formula."""
    records = []
    for i in range(n):
        def item(amount):
            attributes = {"PK": {"S": f"k{i:05}"}, "g": {"S": f"g{i if spread else 0:05}"}, "n": {"N": str(amount)}, "pad": {"S": ""}}
            bytes_of = 2 + 6 + 1 + 6 + 1 + 2 + 3
            attributes["pad"]["S"] = "x" * (size - bytes_of)
            return attributes
        order = ["INSERT", "MODIFY", "REMOVE"].index(kind)
        images = {"NewImage": item(10 + order)} if kind != "REMOVE" else {}
        if kind != "INSERT" and view != "NEW_IMAGE":
            images["OldImage"] = item(9 + order)
        records.append({"eventID": f"{kind}{i}", "eventName": kind, "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
                        "dynamodb": {"Keys": {"PK": {"S": f"k{i:05}"}}, **images, "ApproximateCreationDateTime": 1763672640 + order,
                                     "SequenceNumber": str((order + 1) * 10**8 + i), "StreamViewType": view},
                        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-20T00:00:00.000"})
    return records


def said(n, size, spread):
    """The write and read units that `sluice check` prints, by event."""
    run = subprocess.run([f"{BUILD}/sluice", "check", "--item-bytes", str(size), "--mapping", "-"], cwd=folder, env=ENV, capture_output=True,
                         text=True, timeout=600, input=json.dumps({"BatchSize": n}))
    found, names = {}, []
    for line in run.stdout.splitlines():
        head = re.match(r"    (?:costs   |        )  ((?:INSERT|MODIFY|REMOVE)[A-Z, ]*): ", line)
        names = head.group(1).split(", ") if head else names
        cost = re.match(rf" +{n} changes of {size} bytes(, [a-z ]+)?: \d+ writes, (\d+) write units(?:, \d+ reads, ([0-9.]+) read units)?$", line)
        if cost and (cost.group(1) or "") in ("", ", each in a group of its own" if spread else ", all in one group"):
            found |= {name: (int(cost.group(2)), float(cost.group(3) or 0)) for name in names}
    check(f"prices are printed: {sorted(found)}", found, run.stdout + run.stderr)
    return found


tables = 0


def measure(what, route, n, size=500, spread=False, keys=("PK",), once=(0, 0), view="NEW_AND_OLD_IMAGES"):
    """`once`: units that a process consumes beside its changes, of writes and of reads."""
    global tables
    tables += 1
    name = f"table-{tables}"
    create(name, keys)
    create(f"{name}-side", ["PK"])
    text = json.dumps({"on_failure": "report", "report_batch_item_failures": True, "view_type": view,
                       "routes": [{"name": "r", "to": f"dynamodb://{name}?endpoint={endpoint}", **route}]}).replace("SIDE", f"{name}-side")
    (folder / "sluice.json").write_text(text)
    prices = said(n, size, spread)
    for kind in ("INSERT", "MODIFY", "REMOVE"):
        if kind not in prices:
            continue
        write_event(folder / "in.json", events(kind, n, size, spread, view))
        Proxy.units = {"write": 0.0, "read": 0.0}
        run = subprocess.run([f"{BUILD}/sluice", "replay", "--batch-size", str(n), "in.json"], cwd=folder, env=ENV, capture_output=True, text=True, timeout=600)
        got = (Proxy.units["write"] - once[0], Proxy.units["read"] - once[1])
        check(f"{what}, {n} {kind}s of {size} bytes{', spread' if spread else ''}: said {prices[kind]}, consumed {got}", run.returncode == 0 and got == prices[kind],
              run.stdout + run.stderr)


server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = f"http://127.0.0.1:{server.server_port}"
for size in (500, 1500):
    for guard in ({"guard": "none"}, {"guard": "inline"}, {"guard": {"table": "SIDE"}}, {"tombstones": {"table": "SIDE"}}):
        measure(f"replicate {guard}", {"handler": "replicate", **guard}, 5, size)
COUNTER = {"key": {"PK": "{g}"}, "add": {"n": 1, "sum": "{n}"}}
SECOND = {"key": {"PK": "ALL#{g}"}, "add": {"sum": "{n}"}}
SOURCE = (1, 0)  # a process looks once at the row that says whose items the ledger counts
for spread in (False, True):
    totals = {"handler": "aggregate", "counters": [COUNTER]}
    measure("a counter", totals, 7, spread=spread, once=SOURCE)
    measure("a counter", totals, 120, spread=spread, once=SOURCE)
    measure("two counters, a ledger of its own", totals | {"counters": [COUNTER, SECOND], "ledger": {"table": "SIDE"}}, 7, spread=spread, once=SOURCE)
    measure("at least once", totals | {"mode": "at-least-once"}, 7, spread=spread)
    measure("events", totals | {"per": "event"}, 7, spread=spread)
    measure("distinct", totals | {"counters": [{"key": {"PK": "{g}"}, "distinct": {"d": "{g}"}}]}, 7, spread=spread, once=SOURCE)
    members = {"key": {"PK": "{g}", "SK": "all"}, "add": {"n": 1}, "members": {"by": "{Keys.PK|slice:1:6|number}"}}
    measure("members", totals | {"counters": [members]}, 7, spread=spread, once=SOURCE, keys=("PK", "SK"))
    measure("running values", totals | {"counters": [COUNTER | {"running_max": {"top": "{n}"}}]}, 7, spread=spread, once=SOURCE)
measure("old images are read", totals, 7, once=SOURCE, view="NEW_IMAGE")
measure("empty rows are deleted", totals | {"empty": "delete"}, 7, spread=True, once=SOURCE)
measure("a hot row", totals, 400, once=SOURCE)
finish()
