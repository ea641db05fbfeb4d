"""What the live tests of leases share: workers of `sluice tail --leases`, DynamoDB Local, and what handlers wrote down."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, "tests/cli")
from harness import BUILD  # noqa: E402

folder = pathlib.Path(tempfile.mkdtemp())
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
       "AWS_ACCESS_KEY_ID": "leases", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
LONG = 120  # seconds that any condition may take on a busy machine


def wait_for(what, condition):
    until = time.time() + LONG
    while time.time() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"FAIL {what}: not within {LONG} s")


def build_handlers():
    (folder / "handlers").mkdir()
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include",
                    "-o", folder / "handlers/slow.so", "tests/live/lease/slow.c"], check=True)


class Dynamodb:
    def __init__(self):
        self.dir = folder / "services"
        subprocess.run(["tests/services/start.sh", "--owner", str(os.getpid()), str(self.dir), "dynamodb"], check=True)
        lines = dict(l.split("=", 1) for l in (self.dir / "env").read_text().splitlines() if "=" in l)
        self.endpoint = lines["DYNAMODB_ENDPOINT"].strip("'\"")

    def stop(self):
        subprocess.run(["tests/services/stop.sh", str(self.dir)], check=True)

    def __call__(self, operation, service="DynamoDB_20120810", **body):
        request = urllib.request.Request(self.endpoint, json.dumps(body).encode(), {
            "X-Amz-Target": f"{service}.{operation}", "Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={ENV['AWS_ACCESS_KEY_ID']}/20260101/us-east-1/dynamodb/aws4_request, "
                             "SignedHeaders=host, Signature=0"})
        return json.load(urllib.request.urlopen(request))

    def create(self, table, key="PK", **more):
        return self("CreateTable", TableName=table, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
                    KeySchema=[{"AttributeName": key, "KeyType": "HASH"}], **more)["TableDescription"]

    def create_orders(self):
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        return self.create("orders", StreamSpecification=stream)["LatestStreamArn"]

    def put(self, numbers):
        for n in numbers:
            self("PutItem", TableName="orders", Item={"PK": {"S": f"k{n}"}, "n": {"N": str(n)}})

    def stream(self, arn):
        """The sequence numbers of all records, from its one shard."""
        service, found = "DynamoDBStreams_20120810", []
        shard, = self("DescribeStream", service, StreamArn=arn)["StreamDescription"]["Shards"]
        at = self("GetShardIterator", service, StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        while True:
            page = self("GetRecords", service, ShardIterator=at)
            if not page["Records"]:
                return found
            found += [int(r["dynamodb"]["SequenceNumber"]) for r in page["Records"]]
            at = page["NextShardIterator"]

    def lease(self):
        """The one row of the lease table: DynamoDB Local's streams have one shard."""
        rows = self("Scan", TableName="orders-leases", ConsistentRead=True)["Items"]
        assert len(rows) == 1, rows
        return {name: next(iter(value.values())) for name, value in rows[0].items()}


class Worker:
    """One `sluice tail`, whose handler writes down when it was done with which record."""

    def __init__(self, name, *flags, takes_ms=1, env=None):
        self.name, self.told, self.log = name, folder / f"{name}.told", folder / f"{name}.log"
        config = {"report_batch_item_failures": True,
                  "routes": [{"name": "all", "handler": "slow", "takes_ms": takes_ms, "told": str(self.told), "on_failure": "report"}]}
        (folder / f"{name}.json").write_text(json.dumps(config))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([f"{BUILD}/sluice", "tail", "--config", f"{name}.json", "--handler-path", "handlers", "--worker-id", name,
                                             *flags], cwd=folder, env={**ENV, **(env or {})}, stdout=log, stderr=log)

    def lines(self):
        """[(ms, sequence number)]: in order."""
        text = self.told.read_text() if self.told.exists() else ""
        return [(int(a), b) for a, b in (line.split() for line in text.splitlines(keepends=True) if line.endswith("\n"))]

    def numbers(self):
        return [number for _, number in self.lines()]

    def text(self):
        return self.log.read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, number):
        self.signal(number)
        return self.process.wait(LONG)

    def wait_for(self, what, condition):
        def ask():
            if self.process.poll() is not None and not condition():
                sys.exit(f"FAIL {what}: {self.name} has ended with {self.process.returncode}: {self.text()}")
            return condition()
        return wait_for(f"{what} ({self.name})", ask)


def kill_all(workers):
    for worker in workers:
        if worker.process.poll() is None:
            worker.process.kill()
            worker.process.wait()
