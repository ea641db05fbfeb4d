#!/usr/bin/env python3
"""`sluice tail --leases`: workers that are stopped, killed and ended, on DynamoDB Local; shares on a stream of many shards."""
import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path[:0] = ["tests/cli", "tests/live/lease"]
from harness import check, finish, record  # noqa: E402
from lease_live import Dynamodb, Worker, build_handlers, folder, kill_all, wait_for  # noqa: E402

workers = []


def start(*args, **more):
    workers.append(Worker(*args, **more))
    return workers[-1]


def numbers_of(*some):
    return {number for worker in some for number in worker.numbers()}


# ---- one shard, on DynamoDB Local ----

def stopped_and_thawed(db, flags):
    """A stands still in the middle of a batch. Its handler does not: it would go on for half a minute."""
    db.put(range(60))
    a = start("a", *flags, "--batch-size", "60", takes_ms=500)
    a.wait_for("begins", lambda: len(a.lines()) >= 3)
    check("the table was created, and that is said", "did not exist: it was created" in a.text(), a.text())
    b = start("b", *flags, "--batch-size", "20")
    seen = len(a.lines())
    a.wait_for("goes on", lambda: len(a.lines()) > seen + 3)
    a.signal(signal.SIGSTOP)
    b.wait_for("takes over", lambda: b.lines() and len(numbers_of(a, b)) == 60)
    a.signal(signal.SIGCONT)
    db.put(range(60, 80))
    b.wait_for("has it for good", lambda: len(numbers_of(a, b)) == 80)
    time.sleep(1)
    last, first = a.lines()[-1][0], b.lines()[0][0]
    check("no effect after the take-over", last < first, f"{last} {first} {a.text()}")
    # A may have come as far as a record or two: a batch that takes longer than the lease is broken off, and its records are tried alone.
    check("all that was left is handled by the new owner, in order, each once",
          b.numbers() == sorted(numbers_of(a, b))[-len(b.numbers()):] and len(b.numbers()) > 60 and db.lease()["leaseOwner"].startswith("b:"), b.text())
    check("the old one ends in order", a.end(signal.SIGTERM) == 0, a.text())
    return b


def killed(db, flags, b):
    before = int(db.lease()["leaseCounter"])
    db.dynamodb("UpdateItem", TableName="orders-leases", Key={"leaseKey": {"S": db.lease()["leaseKey"]}}, UpdateExpression="SET foreign_ = :v",
       ExpressionAttributeValues={":v": {"S": "stays"}})
    wait_for("its last place is written", lambda: db.lease()["checkpoint"] == max(b.numbers()))
    b.end(signal.SIGKILL)
    db.put(range(80, 100))
    c = start("c", *flags)
    c.wait_for("takes over", lambda: len(c.numbers()) >= 20)
    check("after a kill it goes on behind the checkpoint", len(c.numbers()) == 20 and not numbers_of(c) & numbers_of(b), c.numbers())
    lease = db.lease()
    check("the switch is counted, the counter rises, and what is not ours stays",
          int(lease["leaseCounter"]) > before and lease["foreign_"] == "stays" and lease["leaseOwner"].startswith("c:"), lease)
    return c


def ended(db, flags, c):
    began = time.time()
    status = c.end(signal.SIGTERM)
    lease = db.lease()
    check("SIGTERM: 0, and the lease is given back with its place",
          status == 0 and "leaseOwner" not in lease and lease["checkpoint"] == max(c.numbers()), f"{status} {lease} {c.text()}")
    check("soon", time.time() - began < 30)
    db.put(range(100, 110))
    d = start("d", *flags)
    d.wait_for("the next begins there", lambda: len(d.numbers()) >= 10)
    check("and repeats nothing", d.end(signal.SIGTERM) == 0 and len(d.numbers()) == 10 and not numbers_of(d) & numbers_of(c), d.text())


def refused(db, flags):
    db.dynamodb("CreateTable", TableName="newer-leases", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "leaseKey", "KeyType": "HASH"}],
       AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("leaseKey", "leaseOwner")],
       GlobalSecondaryIndexes=[{"IndexName": "LeaseOwnerToLeaseKeyIndex", "KeySchema": [{"AttributeName": "leaseOwner", "KeyType": "HASH"},
                                {"AttributeName": "leaseKey", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}])
    db.create("broken-leases", [("leaseKey", "S")])
    db.dynamodb("PutItem", TableName="broken-leases", Item={"leaseKey": {"S": "x"}, "leaseCounter": {"S": "1"}})
    base = [f for f in flags if not f.startswith("dynamodb://") and f != "--leases"]
    for leases, text in (("dynamodb://orders", "is no lease table"), ("dynamodb://newer-leases", "KCL 3"), ("dynamodb://broken-leases", "row x is not a lease"),
                         ("s3://bucket", "--leases is the target of a table"), ("dynamodb://x", "Table/index names must be between")):
        e = start(f"e{len(workers)}", *base, "--leases", leases)
        check(f"{leases}: {text}", e.process.wait(600) == 2 and text in e.text(), e.text())
    for more, text in ((("--checkpoint", "x.json"), "--leases and --checkpoint"), (("--once",), "--leases and --once"), (("--lease-seconds", "1"), "--lease-seconds 1 is out of range"),
                       (("--in-process", "--trust-plugins"), "slow")):
        e = start(f"e{len(workers)}", *flags, *more)
        check(f"{more}: {text}", e.process.wait(600) == 2 and text in e.text(), e.text())


def on_dynamodb_local():
    db = Dynamodb()
    try:
        db.create_orders()
        flags = ["--table", "orders", "--leases", "dynamodb://orders-leases", "--lease-seconds", "4", "--endpoint-url", db.endpoint]
        b = stopped_and_thawed(db, flags)
        c = killed(db, flags, b)
        ended(db, flags, c)
        refused(db, flags)
    finally:
        kill_all(workers)


# ---- many shards, by script ----

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"


class Stream(BaseHTTPRequestHandler):
    """DynamoDB Streams with the open shards of server.shards: name -> [sequence numbers]."""
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(getattr(self, self.headers["X-Amz-Target"].split(".")[1])(body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def DescribeStream(self, body):
        shards = [{"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": "1"}} for name in self.server.shards]
        return {"StreamDescription": {"StreamArn": ARN, "StreamStatus": "ENABLED", "Shards": shards}}

    def GetShardIterator(self, body):
        after = int(body.get("SequenceNumber", 0))
        return {"ShardIterator": f"{body['ShardId']}:{sum(n <= after for n in self.server.shards[body['ShardId']])}"}

    def GetRecords(self, body):
        name, at = body["ShardIterator"].rsplit(":", 1)
        page = self.server.shards[name][int(at):]
        records = [{k: v for k, v in record(n).items() if k != "eventSourceARN"} for n in page]
        return {"Records": records, "NextShardIterator": f"{name}:{int(at) + len(page)}"}


def owners(file):
    """Shard -> worker, of the leases that have an owner."""
    import sqlite3
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        rows = [json.loads(item) for item, in db.execute("select item from leases")]
    return {row["leaseKey"]["S"]: row["leaseOwner"]["S"].split(":")[0] for row in rows if "leaseOwner" in row}


def shares():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
    server.daemon_threads = True
    server.shards = {f"shard{i:02}": [1000 * i + k for k in range(1, 6)] for i in range(12)}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    flags = ["--stream", ARN, "--endpoint-url", f"http://127.0.0.1:{server.server_port}", "--concurrency", "2",
             "--leases", "sqlite:shared.db?table=leases", "--lease-seconds", "6"]
    team = [start(f"t{i}", *flags) for i in range(3)]

    def is_balanced():
        try:
            held = list(owners(folder / "shared.db").values())
        except Exception:  # it is not there yet
            return False
        return len(held) == 12 and all(held.count(w.name) == 4 for w in team)
    wait_for("twelve shards, three workers", is_balanced)
    expected = {str(n) for numbers in server.shards.values() for n in numbers}
    wait_for("all is handled", lambda: numbers_of(*team) == expected)
    time.sleep(7)  # who has stolen a shard begins when its last owner has certainly stopped
    for i, numbers in enumerate(server.shards.values()):
        numbers.append(1000 * i + 9)
    new = {str(1000 * i + 9) for i in range(12)}
    wait_for("what is new is handled", lambda: new <= numbers_of(*team))
    of = owners(folder / "shared.db")
    told = {n: [w.name for w in team for x in w.numbers() if x == n] for n in new}
    check("each shard has one owner, who handles it", all(told[str(1000 * i + 9)] == [of[f"shard{i:02}"]] for i in range(12)), f"{told} {of}")
    check("in equal shares", sorted(list(of.values()).count(w.name) for w in team) == [4, 4, 4], of)
    for worker in team:
        check("ends in order", worker.end(signal.SIGTERM) == 0, worker.text())
    check("and gives back what it has", owners(folder / "shared.db") == {}, owners(folder / "shared.db"))


build_handlers()
try:
    on_dynamodb_local()
    shares()
finally:
    kill_all(workers)
finish()
