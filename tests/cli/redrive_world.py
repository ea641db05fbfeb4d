"""What the tests of `sluice redrive` share: moto's SQS and S3, DynamoDB Local's streams, failed messages of every kind, and the oracle that
says what the handlers must have made of them."""
import collections
import hashlib
import json
import os
import sqlite3
import subprocess

from harness import BUILD, check

# Of the stream that the records are from; DynamoDB Local's once there is one.
stream = {"arn": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-20T00:00:00.000"}
ROUTES = [{"name": "copy", "handler": "replicate", "to": "sqlite:out.db?table=copy"},
          {"name": "totals", "handler": "aggregate", "to": "sqlite:out.db?table=totals", "ledger": {"table": "ledger"},
           "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1, "sum": "{total}"}}]}]
CONFIG = {"report_batch_item_failures": True, "on_failure": "jsonl:parked_again.jsonl", "routes": ROUTES}


class Queue:
    def __init__(self, services, name, **attributes):
        self.services, self.name = services, name
        self.is_fifo = name.endswith(".fifo")
        if self.is_fifo:
            attributes["FifoQueue"] = "true"
        self.url = services.sqs("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]

    def send(self, bodies, groups=None):
        """In order; of a FIFO queue each with its group."""
        for at in range(0, len(bodies), 10):
            entries = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(bodies[at:at + 10])]
            for i, entry in enumerate(entries):
                if self.is_fifo:
                    entry.update(MessageGroupId=groups[at + i], MessageDeduplicationId=hashlib.sha256(f"{at + i}".encode()).hexdigest())
            answer = self.services.sqs("SendMessageBatch", QueueUrl=self.url, Entries=entries)
            assert len(answer["Successful"]) == len(entries), answer

    def attributes(self):
        return self.services.sqs("GetQueueAttributes", QueueUrl=self.url, AttributeNames=["All"])["Attributes"]

    def counts(self):
        """Messages that can be received, and messages in flight."""
        a = self.attributes()
        return int(a["ApproximateNumberOfMessages"]), int(a["ApproximateNumberOfMessagesNotVisible"])

    def drain(self):
        """Bodies of all messages, received once and left."""
        found = []
        while True:
            got = self.services.sqs("ReceiveMessage", QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=600).get("Messages") or []
            if not got:
                return found
            found += [m["Body"] for m in got]


# ---- messages ----

def record(n, item=None, total=None, seq=None):
    """The insertion of item n: its status, its total."""
    image = {"PK": {"S": item or f"o{n}"}, "status": {"S": f"s{n % 7}"}, "total": {"N": str(total if total is not None else n % 100)}}
    return {"eventID": f"{n:032x}", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "dynamodb": {"ApproximateCreationDateTime": 1795208640, "Keys": {"PK": image["PK"]}, "NewImage": image,
                         "SequenceNumber": str(seq or 4000000000000000000000 + n), "SizeBytes": 40, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "eventSourceARN": stream["arn"]}


def parked(rec, route, code="MissingAttribute", when="2026-11-20T21:04:00.123Z"):
    return json.dumps({"sluiceParked": 1, "time": when, "route": route, "handler": route, "status": "REJECT", "code": code, "message": "x",
                       "requestId": "r", "functionArn": "f", "streamArn": stream["arn"], "record": rec}, separators=(",", ":"))


def failure(info, payload=None, condition="RetryAttemptsExhausted"):
    body = {"requestContext": {"requestId": "r", "functionArn": "f", "condition": condition, "approximateInvokeCount": 3},
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": None}, "version": "1.0",
            "timestamp": "2026-11-20T21:05:00.000Z", "DDBStreamBatchInfo": info}
    return json.dumps({**body, "payload": json.dumps({"Records": payload})} if payload else body)


def batch_info(records, shard="shardId-1"):
    ids = [r["dynamodb"]["SequenceNumber"] for r in records]
    return {"shardId": shard, "startSequenceNumber": ids[0], "endSequenceNumber": ids[-1], "batchSize": len(ids), "streamArn": stream["arn"],
            "approximateArrivalOfFirstRecord": "2026-11-20T21:04:00Z", "approximateArrivalOfLastRecord": "2026-11-20T21:04:00Z"}


def in_sns(body):
    return json.dumps({"Type": "Notification", "MessageId": "sns-1", "TopicArn": "arn:aws:sns:us-east-1:123456789012:t", "Message": body})


UNREADABLE = ["", "not JSON", "{", '{"sluiceParked":1,"route":"copy"}', '{"sluiceParked":1,"route":"copy","record":{"dynamodb":5}}',
              '{"sluiceParked":9,"route":"copy","record":{}}', '{"DDBStreamBatchInfo":{"shardId":"s"}}', "[]", "\x7f\u202e"]
FOREIGN = ['{"orderId":17,"amount":3}', '{"Records":[{"s3":{"bucket":{"name":"b"}}}]}', '{"Event":"s3:TestEvent","Bucket":"b"}', "[1,2,3]", '"text"']


# ---- what must have been made ----

class Oracle:
    """Effects by route: an item is copied or counted once, however often its message is handled."""

    def __init__(self):
        self.copied, self.counted = {}, {}

    def expect(self, rec, routes=("copy", "totals")):
        image = rec["dynamodb"]["NewImage"]
        for route in routes:
            (self.copied if route == "copy" else self.counted)[image["PK"]["S"]] = image

    def sums(self):
        sums = collections.defaultdict(lambda: [0, 0])
        for image in self.counted.values():
            sums[image["status"]["S"]][0] += 1
            sums[image["status"]["S"]][1] += int(image["total"]["N"])
        return dict(sums)

    def compare(self, name, folder):
        copied, sums = {}, {}
        if (folder / "out.db").exists():
            db = sqlite3.connect(folder / "out.db")
            tables = {t for t, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for item, in db.execute("SELECT item FROM copy") if "copy" in tables else ():
                item = json.loads(item)
                copied[item["PK"]["S"]] = {k: v for k, v in item.items() if not k.startswith("sluice")}
            for item, in db.execute("SELECT item FROM totals") if "totals" in tables else ():
                item = json.loads(item)
                if item["PK"]["S"][0] == "s" and not item["PK"]["S"].startswith("sluice:"):
                    sums[item["PK"]["S"]] = [int(item["n"]["N"]), int(item["sum"]["N"])]
        sums = {k: v for k, v in sums.items() if v != [0, 0]}  # an item that moved to another status leaves its row
        missing, extra = self.copied.keys() - copied.keys(), copied.keys() - self.copied.keys()
        check(f"{name}: the copies are the oracle's", copied == self.copied, f"missing {sorted(missing)[:5]}, extra {sorted(extra)[:5]}")
        check(f"{name}: the sums are the oracle's", sums == self.sums(), f"{sums} {self.sums()}")


# ---- the command ----

class Redrive:
    def __init__(self, folder, services=None, config=CONFIG):
        self.folder = folder
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "AWS_MAX_ATTEMPTS": "4", "TMPDIR": str(folder)}
        if services:
            self.env.update({k: v for k, v in services.env.items() if k.startswith("AWS_")})
        folder.mkdir(exist_ok=True)
        (folder / "sluice.json").write_text(json.dumps(config))

    def start(self, *args):
        return subprocess.Popen([f"{BUILD}/sluice", "redrive", "--wait", "1", *args], cwd=self.folder, env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *args, stdin=None, timeout=600):
        done = subprocess.run([f"{BUILD}/sluice", "redrive", "--wait", "1", *args], cwd=self.folder, env=self.env, input=stdin,
                              capture_output=True, text=True, timeout=timeout)
        done.lines = [l for l in done.stdout.splitlines() if "  " in l]
        return done


def outcomes(text):
    """Messages by outcome, from the sum at the end."""
    found = collections.Counter()
    for line in text.splitlines():
        for name in ("done", "failed", "unreadable", "unmatched", "held back", "listed", "not begun", "removed", "left"):
            rest = line.removeprefix(name).split()
            if line.startswith(name) and rest and rest[0].isdigit() and line[10:12] == "  "[:2]:
                found[name] = int(rest[0])
    return found
