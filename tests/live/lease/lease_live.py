"""What the live tests of leases share: workers of `sluice tail --leases`, DynamoDB Local, and what handlers wrote down."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, "tests/cli")
from harness import BUILD, kills, work_folder  # noqa: E402
from servers import Servers  # noqa: E402

kills()
folder = work_folder()
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
       "AWS_ACCESS_KEY_ID": "leases", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}  # of servers that a test writes itself
LONG = 600  # seconds that any condition may take on a busy machine


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


class Dynamodb(Servers):
    def __init__(self):
        super().__init__("dynamodb")
        ENV.update(self.credentials)

    def create_orders(self):
        return self.create("orders", stream=True)["LatestStreamArn"]

    def put(self, numbers):
        for n in numbers:
            self.dynamodb("PutItem", TableName="orders", Item={"PK": {"S": f"k{n}"}, "n": {"N": str(n)}})

    def stream(self, arn):
        """The sequence numbers of all records, from its one shard."""
        found = []
        shard, = self.streams("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
        at = self.streams("GetShardIterator", StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        while True:
            page = self.streams("GetRecords", ShardIterator=at)
            if not page["Records"]:
                return found
            found += [int(r["dynamodb"]["SequenceNumber"]) for r in page["Records"]]
            at = page["NextShardIterator"]

    def lease(self):
        """The one row of the lease table: DynamoDB Local's streams have one shard."""
        rows = self.scan("orders-leases")
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
