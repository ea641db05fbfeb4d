"""Two tables of DynamoDB Local that follow each other through their real streams, while users work on both.

A world is drawn from a seed: the key's types, where deleted items are remembered, what the users do, when a `sluice tail` is killed
and how far back it begins again. In a phase each item has one side on which users write it; a phase ends when both streams have been
read to their ends. Then both tables hold what the users did. What the protocol cannot know (docs/HANDLERS.md) is left out: a copy that
is put back unchanged where its guard is gone, and old deliveries after the users of an item have changed sides.
"""
import base64
import decimal
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

from servers import Failure as Broken, Requests

NUL = "\u0000"
OURS = {"sluice_order", "sluice_write", "sluice_deleted", "sluice_expires"}
decimal.getcontext().prec = 60
WHERE = [100_000_000, 600_000_000]  # the bounds of "v" in the items that go over to the other table, in some worlds


class Dynamo(Requests):
    """DynamoDB Local, as the environment names it."""

    def __init__(self):
        super().__init__(os.environ)

    def __call__(self, operation, **body):
        return self.dynamodb(operation, **body)


def plain(value):
    """A value by what it says: numbers by value, sets without order."""
    (kind, content), = value.items()
    if kind == "N":
        return kind, decimal.Decimal(content).normalize()
    if kind == "NS":
        return kind, frozenset(decimal.Decimal(n).normalize() for n in content)
    if kind in ("SS", "BS"):
        return kind, frozenset(content)
    if kind == "L":
        return kind, tuple(plain(v) for v in content)
    if kind == "M":
        return kind, tuple(sorted((n, plain(v)) for n, v in content.items()))
    return kind, content


def users(item):
    """The item without our attributes."""
    return {n: v for n, v in item.items() if n not in OURS}


class Side:
    """One of the tables, and the `sluice tail` that copies it to the other."""

    def __init__(self, world, name, other):
        self.world, self.table, self.process, self.runs = world, name, None, 0
        self.folder = world.folder / name
        self.folder.mkdir()
        route = {"name": "r", "handler": "replicate", "to": "dynamodb://" + other}
        if world.where:
            route["where"] = {"v": [{"numeric": [">=", WHERE[0], "<", WHERE[1]]}]}
        if world.aside:
            route["tombstones"] = {"table": world.name + "-marks-" + name[-1]}
            world.dynamo.create(route["tombstones"]["table"], [("PK", "S")], False)
        (self.folder / "sluice.json").write_text(json.dumps({"on_failure": ["jsonl:parked.jsonl"], "routes": [route]}))
        self.checkpoint = self.folder / "checkpoint"
        self.old = self.folder / "checkpoint.old"

    def command(self, *flags):
        rng = self.world.rng
        self.runs += 1
        return [rng.choice(self.world.programs), "tail", "--table", self.table, "--config", "sluice.json", "--checkpoint", "checkpoint",
                "--batch-size", str(rng.choice([1, 3, 10, 100])), *flags]

    def start(self):
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)

    def kill(self):
        """As the machine goes down; what it had not noted yet is redelivered, and sometimes all of this phase."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
        if self.world.rng.random() < 0.3:
            self.go_back()

    def go_back(self):
        if self.old.exists():
            shutil.copy(self.old, self.checkpoint)
        else:
            self.checkpoint.unlink(missing_ok=True)

    def drain(self):
        return subprocess.Popen(self.command("--once"), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)


class World:
    def __init__(self, seed, programs, changes=70, phases=3, mixed=False):
        self.seed, self.rng, self.programs, self.mixed = seed, random.Random(seed), programs, mixed
        self.changes, self.phases = changes, phases
        self.nul = "~" if mixed else NUL  # the last release's tail asks for ever for a page with NUL in a name
        self.dynamo = Dynamo()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="two-way-"))
        self.name = f"w{seed}"
        self.aside = not mixed and self.rng.random() < 0.6
        # (Drawn apart, so that the other worlds stay what they were.)
        self.where = self.aside and random.Random(seed + 10**6).random() < 0.4
        self.schema = [("PK", self.rng.choice("SNB"))] + ([("SK", self.rng.choice("SNB"))] if self.rng.random() < 0.5 else [])
        for side in "ab":
            self.dynamo.create(f"{self.name}-{side}", self.schema, True)
        self.sides = [Side(self, f"{self.name}-a", f"{self.name}-b"), Side(self, f"{self.name}-b", f"{self.name}-a")]
        self.models = [{}, {}]  # of each side: key -> item, as its users see it
        self.copies = []  # (key, item) as read at some time, with our attributes
        self.done = []    # what was done, for whoever looks into a failure

    # ---- keys and items ----

    def key_value(self, kind, i):
        if kind == "S":
            return {"S": ["k" + self.nul, "k\"\\", "é€", "k", "k" * 300][i % 5] + str(i)}
        if kind == "B":
            return {"B": base64.b64encode(bytes([0, 255, i])).decode()}
        return {"N": self.rng.choice([f"{i}", f"{i}.0", f"{i}0e-1", f"+{i}", f"0{i}.00"])}

    def key(self, i):
        return {n: self.key_value(t, i if n == "PK" else i % 3) for n, t in self.schema}

    def id(self, item):
        return tuple(plain(item[n]) for n, _ in self.schema)

    def number(self):
        return {"N": self.rng.choice(["0", "-0", "1.50", "15e-1", "1E+3", "-12345678901234567890123456789012345678", "1e-130", "9.9e125",
                                      str(self.rng.randrange(10**6))])}

    def value(self, deep=0):
        r = self.rng
        kind = r.choice(["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"] + ["L", "M"] * (deep < 2))
        text = r.choice(["", "plain", "\"quoted\" \\", "nul " + self.nul, "line\n", "é€\U0001F600", "</>&", str(r.randrange(10**6))])
        return {"S": lambda: {"S": text}, "N": self.number, "B": lambda: {"B": base64.b64encode(text.encode()).decode()},
                "BOOL": lambda: {"BOOL": r.random() < 0.5}, "NULL": lambda: {"NULL": True},
                "SS": lambda: {"SS": r.sample(["c", "a", "b" + self.nul, "é"], r.randrange(1, 4))},
                "NS": lambda: {"NS": r.sample(["1.0", "20", "3e1", "-4.50"], r.randrange(1, 4))},
                "BS": lambda: {"BS": r.sample(["YQ==", "Yg==", "AAA="], r.randrange(1, 3))},
                "L": lambda: {"L": [self.value(deep + 1) for _ in range(r.randrange(3))]},
                "M": lambda: {"M": {n: self.value(deep + 1) for n in r.sample(self.names(), 2)}}}[kind]()

    def names(self):
        return ["x", "y", "status", "a\"b", "nul" + self.nul + "name", "é", "ttl"]

    def image(self, i):
        r = self.rng
        return self.key(i) | {n: self.value() for n in r.sample(self.names(), r.randrange(4))} | {"v": {"N": str(r.randrange(10**9))}}

    # ---- what users do ----

    def goes_over(self, item):
        return item is not None and (not self.where or WHERE[0] <= int(item["v"]["N"]) < WHERE[1])

    def note(self, side, key, item):
        """A user left this item there (None: deleted it). One that goes over is the other table's too; one that does no longer is removed
        from there; and what never went over is nobody's business there."""
        own, other = self.models if side is self.sides[0] else self.models[::-1]
        before = own.pop(key, None)
        if item is not None:
            own[key] = item
        if self.goes_over(before):
            other.pop(key, None)
        if self.goes_over(item):
            other[key] = item

    def get(self, side, key):
        return self.dynamo("GetItem", TableName=side.table, Key=key, ConsistentRead=True).get("Item")

    def put(self, side, item):
        self.dynamo("PutItem", TableName=side.table, Item=item)
        self.note(side, self.id(item), users(item))

    def update(self, side, i, _):
        """On an item that is there, on none, and on the tombstone of one."""
        key, name, value = self.key(i), self.rng.choice(self.names()), self.value()
        if self.mixed and "sluice_deleted" in (self.get(side, key) or {}):
            return
        self.dynamo("UpdateItem", TableName=side.table, Key=key, UpdateExpression="SET #n = :v, v = :w REMOVE #o",
                    ExpressionAttributeNames={"#n": name, "#o": self.rng.choice([n for n in self.names() if n != name])},
                    ExpressionAttributeValues={":v": value, ":w": {"N": str(self.rng.randrange(10**9))}})
        self.note(side, self.id(key), users(self.get(side, key)))

    def delete(self, side, i, _):
        self.dynamo("DeleteItem", TableName=side.table, Key=self.key(i))
        self.note(side, self.id(self.key(i)), None)

    def put_new(self, side, i, _):
        self.put(side, self.image(i))

    def clone(self, side, i, mine):
        """Another item gets all attributes of this one, ours too."""
        item = self.get(side, self.key(i))
        if item and "sluice_deleted" not in item:
            other = self.rng.choice(mine)
            self.put(side, {n: v for n, v in item.items() if n not in dict(self.schema)} | self.key(other) |
                     ({} if other != i else {"v": {"N": str(self.rng.randrange(10**9))}}))

    def put_edited(self, side, i, _):
        """Read, modify, put: with our attributes as they were, now or some time ago."""
        old = [c for c in self.copies if self.id(c) == self.id(self.key(i))]
        item = self.rng.choice(old) if old and self.rng.random() < 0.6 else self.get(side, self.key(i))
        if item and "sluice_deleted" not in item:
            self.put(side, item | {"v": {"N": str(self.rng.randrange(10**9))}})

    def put_back(self, side, i, _):
        """An old copy, unchanged: known for a user's as long as the item's guard is there, and is not smaller."""
        now = (self.get(side, self.key(i)) or {}).get("sluice_order", {"S": ""})["S"]
        old = [c for c in self.copies if self.id(c) == self.id(self.key(i)) and c.get("sluice_order", {"S": ""})["S"] <= now]
        if old and now:
            self.put(side, self.rng.choice(old))

    def change(self, side, mine):
        i = self.rng.choice(mine)
        kinds = [self.put_new, self.update, self.delete] if self.mixed else [
            self.put_new, self.update, self.update, self.delete, self.delete, self.clone, self.put_edited, self.put_edited, self.put_back]
        what = self.rng.choice(kinds)
        self.done.append((what.__name__, side.table, i))
        what(side, i, mine)
        if self.rng.random() < 0.3:
            item = self.get(side, self.key(i))
            if item and "sluice_deleted" not in item:
                self.copies.append(item)

    # ---- phases ----

    def phase(self):
        items = list(range(1, 13))
        self.rng.shuffle(items)
        cut = self.rng.randrange(13)
        mine = [items[:cut], items[cut:]]
        for side in self.sides:
            if side.checkpoint.exists():
                shutil.copy(side.checkpoint, side.old)
            if self.rng.random() < 0.8:
                side.start()
        for _ in range(self.changes):
            s = self.rng.choice([s for s in (0, 1) if mine[s]])
            self.change(self.sides[s], mine[s])
            if self.rng.random() < 0.3:
                time.sleep(self.rng.random() * 0.08)
            if self.rng.random() < 0.06:
                side = self.rng.choice(self.sides)
                side.kill()
                side.start()
        time.sleep(0.3 * self.rng.random())
        for side in self.sides:
            side.kill()
        self.settle()

    def drain(self):
        """Both streams to their ends; returns what the tables hold then."""
        runs = [(side, side.drain()) for side in self.sides]
        for side, run in runs:
            try:
                said = run.communicate(timeout=600)[0]
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                raise
            if run.returncode:
                raise Broken(f"{side.table}: {said[-2000:]}")
        return [self.dynamo.scan(s.table) for s in self.sides]

    def settle(self):
        """Echoes go one way and back; then nothing may change any more, even if all of the phase is delivered once again."""
        before, now = None, self.drain()
        for _ in range(6):
            before, now = now, self.drain()
            if before == now:
                break
        if self.rng.random() < 0.5:
            self.rng.choice(self.sides).go_back()
            now = self.drain()
        if before != now:
            raise Broken("the tables do not come to rest")
        self.compare(now)

    def compare(self, tables):
        for side, items, model in zip(self.sides, tables, self.models):
            wanted = {k: plain({"M": v}) for k, v in model.items()}
            parked = side.folder / "parked.jsonl"
            if parked.exists() and parked.stat().st_size:
                raise Broken(f"{side.table}: parked: {parked.read_text()[:600]}")
            marked = [i for i in items if "sluice_deleted" in i]
            if self.aside and marked:
                raise Broken(f"{side.table}: tombstones stay: {marked[0]}")
            if any(self.id(i) in wanted or set(i) - set(dict(self.schema)) != OURS - (set() if "sluice_write" in i else {"sluice_write"})
                   for i in marked):
                raise Broken(f"{side.table}: an item is marked deleted: {marked}")
            live = {self.id(i): plain({"M": users(i)}) for i in items if "sluice_deleted" not in i}
            for key in live.keys() | wanted.keys():
                if live.get(key) != wanted.get(key):
                    raise Broken(f"{side.table}: {key}: is {live.get(key)}, and the users left {wanted.get(key)}")

    def run(self):
        try:
            for _ in range(self.phases):
                self.phase()
        except (Broken, subprocess.TimeoutExpired) as error:
            for side in self.sides:
                side.process and side.kill()
            raise SystemExit(f"seed {self.seed} ({'aside' if self.aside else 'inline'}{', where' if self.where else ''}, key {self.schema}), kept in {self.folder}: "
                             f"{error}\nlast: {self.done[-40:]}") from error
        finally:
            for side in self.sides:
                if side.process:
                    os.killpg(side.process.pid, signal.SIGKILL)
                    side.process.wait()
        shutil.rmtree(self.folder)
