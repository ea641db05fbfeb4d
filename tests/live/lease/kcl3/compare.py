#!/usr/bin/env python3
"""KCL 3.1.1 with the DynamoDB Streams Kinesis Adapter 2.0.1, and `sluice tail --leases`, one after the other: `sluice leases` carries the
places over in both directions, without loss, and repeats nothing below the last checkpoint."""
import os
import signal
import subprocess
import sys
import urllib.parse

sys.path[:0] = ["tests/cli", "tests/live/lease", "tests/live/lease/kcl3"]
from harness import BUILD, check, finish  # noqa: E402
from lease_live import ENV, Dynamodb, Worker, build_handlers, folder, kill_all, wait_for  # noqa: E402
import lease_live  # noqa: E402
import local  # noqa: E402

lease_live.LONG = 400  # the lock of a leader that was killed lasts two minutes

FAILOVER_S = 4


class Kcl:
    """A worker of KCL 3 (Consumer.java), which says what it does."""

    def __init__(self, trial, application, name, streams="one"):
        self.name, self.said = name, folder / f"{name}.said"
        with self.said.open("wb") as said, (folder / f"{name}.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", os.environ["KCL_CLASSES"], "Consumer", trial.arn, trial.endpoint, application, name,
                 str(FAILOVER_S * 1000), streams], env=ENV, stdin=subprocess.PIPE, stdout=said, stderr=log)

    def all(self, what):
        return [line.split(" ", 1)[1] for line in self.said.read_text().splitlines() if line.startswith(what + " ")]

    def numbers(self):
        return [int(n) for n in self.all("record")]

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


class Trial:
    def __init__(self, db):
        self.db, self.n, self.procs = db, 0, []
        self.endpoint = local.serve(urllib.parse.urlsplit(db.endpoint).netloc)
        self.real_arn = db.create_orders()
        self.arn = self.real_arn.replace("ddblocal", "us-east-1")

    def put(self, n):
        self.db.put(range(self.n, self.n + n))
        self.n += n

    def last(self):
        return self.db.stream(self.real_arn)[-1]

    def behind(self, number):
        return [n for n in self.db.stream(self.real_arn) if n > number]

    def rows(self, table):
        return [{name: next(iter(value.values())) for name, value in row.items()} for row in self.db.scan(table)]

    def checkpoint(self, table):
        row, = self.rows(table)
        return int(row["checkpoint"]) if row["checkpoint"].isdigit() else 0

    def kcl(self, *args):
        self.procs.append(Kcl(self, *args))
        return self.procs[-1]

    def sluice(self, name):
        self.procs.append(Worker(name, "--stream", self.arn, "--leases", "dynamodb://orders-leases", "--lease-seconds", str(FAILOVER_S),
                                 "--endpoint-url", self.endpoint, "--batch-size", "7"))
        return self.procs[-1]

    def leases(self, *flags):
        flags = [f"dynamodb://{f[4:]}?endpoint={self.endpoint}" if f.startswith("db: ") else f for f in flags]
        return subprocess.run([f"{BUILD}/sluice", "leases", *flags, "--stream", self.arn, "--wait-seconds", str(FAILOVER_S + 1)], cwd=folder, env=ENV, capture_output=True, text=True, check=False)

    def take(self, application, *flags):
        return self.leases("--from-kcl3", f"db: {application}", "--to", "db: orders-leases", *flags)

    def give(self, application, *flags):
        return self.leases("--from", "db: orders-leases", "--to-kcl3", f"db: {application}", *flags)

    def sluice_goes_on(self, name, before):
        s = self.sluice(name)
        s.wait_for("goes on", lambda: max(map(int, s.numbers()), default=0) == self.last())
        check(f"{name}: from behind KCL's checkpoint, in order, each once", list(map(int, s.numbers())) == self.behind(before), f"{before} {s.numbers()}")
        self.put(10)
        s.wait_for("goes on", lambda: max(map(int, s.numbers())) == self.last())
        check(f"{name}: ends in order", s.end(signal.SIGTERM) == 0, s.text())
        check(f"{name}: its place is written", self.checkpoint("orders-leases") == self.last())

    def kcl_goes_on(self, application, name, streams="one"):
        before = self.last()
        self.put(12)
        k = self.kcl(application, name, streams)
        k.wait_for("goes on where sluice stopped", lambda: max(k.numbers(), default=0) == self.last())
        check(f"{name}: repeats nothing and loses nothing", k.numbers() == self.behind(before), k.numbers())
        k.wait_for("writes its place", lambda: self.checkpoint(application) == self.last())
        return k


build_handlers()
trial = Trial(Dynamodb())
try:
    # KCL 3 works, and is killed in the middle.
    trial.put(50)
    k = trial.kcl("orders-app", "kcl-1")
    k.wait_for("reads", lambda: len(k.numbers()) >= 50)
    print("a row of KCL 3:", trial.rows("orders-app")[0])
    done = trial.take("orders-app", "--write")
    check("while KCL runs nothing is taken", done.returncode == 2 and "was written meanwhile, by kcl-1" in done.stderr, done)
    trial.put(37)
    k.wait_for("is in the middle", lambda: len(k.numbers()) > 50)
    k.process.kill()
    k.process.wait()
    at = trial.checkpoint("orders-app")
    done = trial.take("orders-app", "--write")
    check("taken from KCL 3", done.returncode == 0 and "1 leases: 1 new" in done.stdout and "was created" in done.stderr, done)
    trial.sluice_goes_on("s1", at)
    # Back, to the same application and to one that there was not.
    done = trial.take("orders-app", "--write")
    check("the wrong direction is seen", done.returncode == 2 and "is further than" in done.stderr, done)
    done = trial.give("orders-app")
    check("only said", done.returncode == 0 and "--write does it" in done.stdout and trial.checkpoint("orders-app") == at, done)
    done = trial.give("orders-app", "--write")
    check("given to KCL 3", done.returncode == 0 and "1 moved" in done.stdout, done)
    k = trial.kcl_goes_on("orders-app", "kcl-2")
    check("KCL ends in order", k.stop() == 0)
    before = trial.last()
    trial.put(9)
    check("taken again", trial.take("orders-app", "--write").returncode == 0)
    trial.sluice_goes_on("s2", before)
    for application, name, streams in (("orders-new", "kcl-3", "one"), ("orders-many", "kcl-4", "many")):
        done = trial.give(application, "--write", *(["--several-streams"] if streams == "many" else []))
        check(f"given to a new application of {streams}", done.returncode == 0 and "1 new" in done.stdout and "was created" in done.stderr, done)
        k = trial.kcl_goes_on(application, name, streams)
        check(f"{name}: KCL keeps the one lease", len(trial.rows(application)) == 1, trial.rows(application))
        check("KCL ends in order", k.stop() == 0)
        before = trial.last()
        trial.put(5)
        done = trial.take(application, "--write")
        check(f"and taken from it, {streams}", done.returncode == 0 and "1 moved" in done.stdout, done)
        trial.sluice_goes_on(f"s-{streams}", before)
finally:
    kill_all(trial.procs)
finish()
