"""What the checks of `sluice verify` share: DynamoDB Local with a table, its replicas, totals and archive, a running `sluice tail`,
writers at full speed, and the runs of verify with what they found."""
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

from harness import BUILD, at_end, kills, work_folder
from servers import Servers

sys.path.append(os.path.abspath("tests/handlers/builtin"))
from two_way import Broken, Dynamo  # noqa: E402  

SLUICE = f"{BUILD}/sluice"

kills()
folder = work_folder()


def start_services(*names):
    """Their endpoints and credentials go into the environment; they end with this process."""
    os.environ.update(Servers(*names).env)


def key(pk, sk="0"):
    return {"PK": {"S": pk}, "SK": {"S": sk}}


def item(pk, sk="0", **more):
    return {**key(pk, sk), "status": {"S": more.pop("status", "OPEN")}, "cost": {"N": str(more.pop("cost", 1))},
            "tags": {"SS": ["a", "b"]}, "deep": {"M": {"n": {"N": "1.50"}, "l": {"L": [{"BOOL": True}, {"NULL": True}]}}}, **more}


ROUTES = {
    "replica": {"handler": "replicate", "to": "dynamodb://{p}-replica"},
    "aside": {"handler": "replicate", "to": "dynamodb://{p}-aside", "tombstones": {"table": "{p}-marks"}},
    "beside": {"handler": "replicate", "to": "dynamodb://{p}-beside", "guard": {"table": "{p}-guards"}, "rename": {"cost": "price"}, "drop": ["tags", "deep.l"],
               "set": {"label": "{PK|upper}:{deep.n|number}", "n": "{cost|default:0|number}"}},
    "byuser": {"handler": "replicate", "to": "dynamodb://{p}-byuser", "key": {"ID": "{PK}"}},
    "totals": {"handler": "aggregate", "to": "dynamodb://{p}-totals", "ledger": {"table": "{p}-ledger"},
               "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"n": 1, "sum": "{cost}"}}]},
    "more": {"handler": "aggregate", "to": "dynamodb://{p}-totals", "ledger": {"table": "{p}-ledger2"},
             "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"weight": "{cost}"}}]},
    "spread": {"handler": "aggregate", "to": "dynamodb://{p}-totals", "ledger": {"table": "{p}-ledger"}, "shards": 3,
               "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"n": 1, "sum": "{cost}"}}]},
    "short": {"handler": "expecting", "to": "dynamodb://{p}-replica"},
    "kept": {"handler": "archive", "to": "file:archive"},
}
PLACES = {"replica": [("PK", "S"), ("SK", "S")], "aside": [("PK", "S"), ("SK", "S")], "beside": [("PK", "S"), ("SK", "S")], "byuser": [("ID", "S")],
          "marks": [("PK", "S")], "guards": [("PK", "S")], "totals": [("PK", "S")], "ledger": [("PK", "S")], "ledger2": [("PK", "S")]}


worlds = []


@at_end
def close_worlds():
    """Whatever ends the test, no tail outlives it."""
    for world in worlds:
        world.close()


class World:
    def __init__(self, prefix, routes, more=None):
        self.p, self.db, self.tails = prefix, Dynamo(), []
        worlds.append(self)
        self.folder = folder / prefix
        self.folder.mkdir()
        self.table = f"{prefix}-orders"
        self.db.create(self.table, [("PK", "S"), ("SK", "S")], True)
        for name, schema in PLACES.items():
            self.db.create(f"{prefix}-{name}", schema, False)
        chosen = [{"name": n, **json.loads(json.dumps(ROUTES[n]).replace("{p}", prefix))} for n in routes]
        self.config = {"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": chosen, **(more or {})}
        (self.folder / "sluice.json").write_text(json.dumps(self.config))

    def where(self, name):
        return f"{self.p}-{name}"

    # ---- the consumer ----

    def tail(self, *flags):
        log = open(self.folder / "tail.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([SLUICE, "tail", "--table", self.table, "--checkpoint", "place.json", *flags], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.tails.append(self.process)
        return self.process

    def hold(self, stop):
        os.killpg(self.process.pid, signal.SIGSTOP if stop else signal.SIGCONT)

    def through(self):
        try:
            text = json.loads((self.folder / "place.json").read_text()).get("through", "")
        except (OSError, ValueError):
            return 0
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0

    def settle(self, seconds=600):
        """Waits until all that was written so far is handled."""
        since = time.time()
        while self.through() <= since:
            if time.time() - since > seconds:
                sys.exit(f"FAIL the consumer did not catch up within {seconds} s: {(self.folder / 'tail.log').read_text()[-2000:]}")
            time.sleep(0.05)

    def close(self):
        for process in self.tails:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(600)

    # ---- tables ----

    def put(self, where, what, db=None):
        (db or self.db)("PutItem", TableName=where, Item=what)

    def get(self, where, what):
        return self.db("GetItem", TableName=where, Key=what, ConsistentRead=True).get("Item")

    def delete(self, where, what, db=None):
        (db or self.db)("DeleteItem", TableName=where, Key=what)

    def update(self, where, what, expression, **values):
        more = {"ExpressionAttributeValues": {":" + n: v for n, v in values.items()}} if values else {}
        self.db("UpdateItem", TableName=where, Key=what, UpdateExpression=expression, **more)

    # ---- verifying ----

    def verify(self, *flags, consumer=True, wait=True):
        table = [] if "--table" in flags else ["--table", self.table]
        command = [SLUICE, "verify", *table, "--json", "--quiet", *flags]
        command += ["--consumer", "place.json"] if consumer else []
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Run(process) if wait else process


class Run:
    def __init__(self, process):
        out, err = process.communicate(timeout=900)
        self.status, self.err = process.returncode, err.decode()
        lines = [json.loads(line) for line in out.decode("utf-8", "replace").splitlines()]
        self.findings = [line for line in lines if line["result"] != "summary"]
        self.summary = next((line for line in lines if line["result"] == "summary"), {})

    def different(self, route=None):
        return [f for f in self.findings if f["result"] == "different" and route in (None, f.get("route"))]

    def kinds(self, route):
        """Of each item that differs, by its partition key."""
        return {next(iter(f.get("source_key", f.get("key", {})).values()))["S"]: f.get("kind") for f in self.different(route)}

    def __str__(self):
        return f"exit {self.status}, {json.dumps(self.summary)[:1500]}\n{json.dumps(self.findings[:6], indent=1)[:4000]}\n{self.err[-1500:]}"


class Writer(threading.Thread):
    """Inserts, changes and removes items as fast as the service takes it."""

    def __init__(self, world, seed, keys=200, pause=0.0):
        super().__init__(daemon=True)
        self.world, self.rng, self.keys, self.pause = world, random.Random(seed), keys, pause
        self.stopped, self.n, self.seed, self.failure = threading.Event(), 0, seed, None

    def run(self):
        try:
            db = Dynamo()
            while not self.stopped.is_set():
                self.write(db)
                self.n += 1
                if self.pause:
                    time.sleep(self.pause)
        except (Broken, OSError) as error:
            self.failure = error

    def write(self, db):
        pk = f"w{self.seed}-{self.rng.randrange(self.keys)}"
        if self.rng.random() < 0.15:
            self.world.delete(self.world.table, key(pk), db)
        else:
            self.world.put(self.world.table, item(pk, status=self.rng.choice(["OPEN", "PAID", "SENT"]), cost=self.rng.randrange(1000)), db)

    def stop(self):
        self.stopped.set()
        self.join(600)
        if self.failure:
            sys.exit(f"FAIL a writer: {self.failure}")
        return self.n
