#!/usr/bin/env python3
"""A table whose pages lead round (keys A, B, A, B, ...), as no DynamoDB answers: whatever scans it notices that, says so, and ends."""
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests/cli"))
from harness import BUILD, check, finish, work_folder  # noqa: E402

folder = work_folder()
ROUND = ["a", "b", "c"]
tell_units, scans, agents = True, [], set()


def describe(name):
    return {"Table": {"TableName": name, "TableStatus": "ACTIVE", "ItemCount": 3, "TableSizeBytes": 100, "CreationDateTime": 1.7e9,
                      "TableArn": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{name}", "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
                      "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
                      "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}}}


def scan(asked):
    """The table named `endless` goes round, each page with one item; others are empty."""
    scans.append(time.time())
    if asked["TableName"] == "slow":  # many pages of 4 KB
        n = int(asked.get("ExclusiveStartKey", {"PK": {"S": "0"}})["PK"]["S"]) + 1
        items, last = [{"PK": {"S": str(n)}, "v": {"S": "x" * 4000}}], {"PK": {"S": str(n)}} if n < 1000 else None
    elif asked["TableName"] == "endless":
        after = asked.get("ExclusiveStartKey", {"PK": {"S": "c"}})["PK"]["S"]
        key = ROUND[(ROUND.index(after) + 1) % 3]
        items, last = [{"PK": {"S": key}}], {"PK": {"S": key}}
    else:
        items, last = [], None
    page = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
    if tell_units:
        page["ConsumedCapacity"] = {"TableName": asked["TableName"], "CapacityUnits": 1.0}
    return {**page, **({"LastEvaluatedKey": last} if last else {})}


class Table(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        agents.add(self.headers["user-agent"])
        operation = self.headers["x-amz-target"].rpartition(".")[2]
        answer = {"DescribeTable": lambda: describe(asked["TableName"]), "Scan": lambda: scan(asked),
                  "BatchGetItem": lambda: {"Responses": {name: [] for name in asked["RequestItems"]}, "UnprocessedKeys": {}},
                  "GetItem": dict, "PutItem": dict, "BatchWriteItem": lambda: {"UnprocessedItems": {}},
                  "DescribeTimeToLive": lambda: {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}}.get(operation)
        body = json.dumps(answer() if answer else {"__type": "com.amazonaws.dynamodb.v20120810#ValidationException", "message": operation}).encode()
        self.send_response(200 if answer else 400)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Table)
threading.Thread(target=server.serve_forever, daemon=True).start()
ENV = {**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{server.server_port}"}
ROUTES = {
    "source": {"name": "copy", "handler": "replicate", "to": "sqlite:out.db?table=copy", "guard": "inline"},
    "target": {"name": "copy", "handler": "replicate", "to": "dynamodb://endless", "guard": "inline"},
    "totals": {"name": "sums", "handler": "aggregate", "to": "dynamodb://endless", "ledger": {"table": "ledger"}, "counters": [{"key": {"PK": "ALL"}, "add": {"n": 1}}]},
    "ledger": {"name": "sums", "handler": "aggregate", "to": "dynamodb://sums", "ledger": {"table": "endless"}, "counters": [{"key": {"PK": "ALL"}, "add": {"n": 1}}]},
}
for name, route in ROUTES.items():
    (folder / f"{name}.json").write_text(json.dumps({"routes": [route], "on_failure": "jsonl:parked.jsonl"}))


def ends(what, *args):
    run = subprocess.run([f"{BUILD}/sluice", *args], cwd=folder, env=ENV, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    check(f"{what}: it ends, and says why", run.returncode not in (0, 124) and "lead round to a key" in run.stderr, f"exit {run.returncode}\n{run.stdout}{run.stderr}")


ends("backfill", "backfill", "--config", "source.json", "--table", "endless", "--unsafe-order", "--quiet")
for verb in ("verify", "repair"):
    ends(f"{verb}, its source", verb, "--config", "source.json", "--table", "endless", "--max-lag", "0", "--quiet")
    ends(f"{verb}, its target", verb, "--config", "target.json", "--table", "empty", "--max-lag", "0", "--quiet")
    for which in ("totals", "ledger"):
        ends(f"{verb}, its {which}", verb, "--config", f"{which}.json", "--table", "empty", "--max-lag", "0", "--quiet")

# The budget holds, and a signal is seen soon, also with a service that does not say what it consumed.
tell_units = False
scans.clear()
began = time.time()
process = subprocess.Popen([f"{BUILD}/sluice", "backfill", "--config", "source.json", "--table", "slow", "--unsafe-order", "--quiet", "--read-units", "1"],
                           cwd=folder, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
while len(scans) < 4 and time.time() - began < 60:
    time.sleep(0.05)
took = scans[-1] - scans[0] if len(scans) >= 4 else 0
check("a page of 4 KB costs a unit, also when the service does not say so", took >= 2.5, (took, len(scans)))
process.send_signal(signal.SIGTERM)
stopped = time.time()
process.wait(600)
check("a wait for the budget ends with a signal", time.time() - stopped < 15, process.stderr.read())
version = subprocess.run([f"{BUILD}/sluice", "--version"], capture_output=True, text=True).stdout.split(maxsplit=1)[1].strip()
check("requests say who asks", agents == {f"sluice/{version}"}, agents)
finish()
