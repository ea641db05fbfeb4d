#!/usr/bin/env python3
"""KCL 1.15.3 with the DynamoDB Streams Kinesis Adapter 1.6.1, and `sluice tail --leases`, one after the other on one lease table:
each goes on where the other stopped, without loss, and repeats nothing below the last checkpoint."""
import json
import os
import signal
import subprocess
import sys

sys.path[:0] = ["tests/cli", "tests/live/lease"]
from harness import check, finish  # noqa: E402
from lease_live import ENV, Dynamodb, Worker, build_handlers, folder, kill_all, wait_for  # noqa: E402

FAILOVER_S = 4


class Kcl:
    """A worker of KCL (Consumer.java), which says what it does."""

    def __init__(self, name, arn, endpoint):
        self.name, self.said = name, folder / f"{name}.said"
        with self.said.open("wb") as said, (folder / f"{name}.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", os.environ["KCL_CLASSES"], "Consumer", arn, endpoint, "orders-leases", name,
                 "TRIM_HORIZON", str(FAILOVER_S * 1000)], env=ENV, stdin=subprocess.PIPE, stdout=said, stderr=log)

    def all(self, what):
        return [line.split(" ", 1)[1] for line in self.said.read_text().splitlines() if line.startswith(what + " ")]

    def numbers(self):
        return self.all("record")

    def wait_for(self, what, condition):
        def ask():
            if self.process.poll() is not None:
                sys.exit(f"FAIL {what}: {self.name} has ended: {(folder / f'{self.name}.log').read_text()[-3000:]}")
            return condition()
        return wait_for(f"{what} ({self.name})", ask)

    def stop(self):
        self.process.stdin.write(b"stop\n")
        self.process.stdin.flush()
        return self.process.wait(600)


def ints(numbers):
    return [int(n) for n in numbers]


class Trial:
    def __init__(self, db):
        self.db, self.arn, self.n, self.procs = db, db.create_orders(), 0, []

    def put(self, n):
        self.db.put(range(self.n, self.n + n))
        self.n += n

    def last(self):
        return self.db.stream(self.arn)[-1]

    def behind(self, number):
        return [n for n in self.db.stream(self.arn) if n > number]

    def kcl(self, name):
        self.procs.append(Kcl(name, self.arn, self.db.endpoint))
        return self.procs[-1]

    def sluice(self, name):
        self.procs.append(Worker(name, "--table", "orders", "--leases", "dynamodb://orders-leases", "--lease-seconds", str(FAILOVER_S),
                                 "--endpoint-url", self.db.endpoint, "--batch-size", "7"))
        return self.procs[-1]

    def lease(self):
        return self.db.lease()

    def from_kcl_that_was_killed(self):
        self.put(50)
        k = self.kcl("kcl-1")
        k.wait_for("reads", lambda: len(k.numbers()) >= 50)
        self.put(37)
        k.wait_for("is in the middle", lambda: len(k.numbers()) > 50)
        k.process.kill()
        k.process.wait()
        row = self.lease()
        at = int(row["checkpoint"])
        check("KCL wrote what we take for its rows", row["leaseOwner"] == "kcl-1" and at <= max(ints(k.numbers())), row)
        print("a row of KCL:", json.dumps(row))
        s = self.sluice("s1")
        s.wait_for("takes over from KCL", lambda: max(ints(s.numbers()), default=0) == self.last())
        check("from behind KCL's checkpoint, in order, each once", ints(s.numbers()) == self.behind(at), f"{at} {s.numbers()}")
        return s

    def back_to_kcl(self, s):
        self.put(10)
        s.wait_for("goes on", lambda: max(ints(s.numbers())) == self.last())
        check("sluice ends in order", s.end(signal.SIGTERM) == 0, s.text())
        row = self.lease()
        check("its place is in the row", int(row["checkpoint"]) == self.last() and "leaseOwner" not in row, row)
        before = self.last()
        k = self.kcl("kcl-2")
        self.put(12)
        k.wait_for("goes on where sluice stopped", lambda: max(ints(k.numbers()), default=0) == self.last())
        check("KCL repeats nothing and loses nothing", ints(k.numbers()) == self.behind(before), k.numbers())
        k.wait_for("writes its place", lambda: int(self.lease()["checkpoint"]) == self.last())
        row = self.lease()
        check("what we wrote survives KCL", row["sluiceStream"] == self.arn and row["leaseOwner"] == "kcl-2", row)
        return k

    def from_kcl_that_ended(self, k):
        before = self.last()
        check("KCL ends in order", k.stop() == 0)
        self.put(9)
        s = self.sluice("s2")
        s.wait_for("takes over again", lambda: max(ints(s.numbers()), default=0) == self.last())
        check("each once", ints(s.numbers()) == self.behind(before), s.numbers())
        return s

    def beside_each_other(self, s):
        """While sluice has the one shard, KCL gets nothing; when sluice is killed, KCL takes over, from behind the checkpoint."""
        k = self.kcl("kcl-3")
        k.wait_for("runs", lambda: "Starting worker loop" in (folder / "kcl-3.log").read_text())
        self.put(8)
        s.wait_for("keeps its shard", lambda: max(ints(s.numbers())) == self.last())
        wait_for("its place is written", lambda: int(self.lease()["checkpoint"]) == self.last())
        check("KCL has had nothing", k.numbers() == [], k.numbers())
        before = self.last()
        s.end(signal.SIGKILL)
        self.put(6)
        k.wait_for("takes over from sluice", lambda: max(ints(k.numbers()), default=0) == self.last())
        check("KCL goes on behind the checkpoint", ints(k.numbers()) == self.behind(before), k.numbers())


build_handlers()
database = Dynamodb()
try:
    trial = Trial(database)
    sluice = trial.from_kcl_that_was_killed()
    kcl = trial.back_to_kcl(sluice)
    sluice = trial.from_kcl_that_ended(kcl)
    trial.beside_each_other(sluice)
finally:
    if "trial" in globals():
        kill_all(trial.procs)
finish()
