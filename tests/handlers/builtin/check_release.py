#!/usr/bin/env python3
"""The last release and this tree in turn on one replica of each kind, one ledger, and one pair of tables that follow each other:
what is stored outlives the code.

A random history of items is cut into batches; each batch goes to a binary drawn by lot, and some batches are delivered again
later, to either. At the end the replicas hold what the history says, and the totals are a GROUP BY over it. A ledger that the
release began is then this tree's: another table is refused, and an epoch takes over. The release is built from the repository's
history; without it (a shallow clone) the test says so and passes nothing.

The pair is of DynamoDB Local's tables, with their real streams (two_way.py): each time that a `sluice tail` of one of them begins, it
is the release's or this tree's. The users do what the release gets right: they put, update and delete."""
import collections
import decimal
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests/cli")
from harness import kills  # noqa: E402

RELEASE = "96a86e2a8dc7"
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
NOW = BUILD / "sluice"
CONFIG = {"on_failure": ["jsonl:parked.jsonl"], "routes": [
    {"name": "inline", "handler": "replicate", "to": "sqlite:db?table=inline"},
    {"name": "side", "handler": "replicate", "to": "sqlite:db?table=side", "guard": {"table": "guards"}},
    {"name": "totals", "handler": "aggregate", "to": "sqlite:db?table=totals",
     "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"orders": 1, "revenue": "{total}"}}]},
    {"name": "events", "handler": "aggregate", "to": "sqlite:db?table=events", "per": "event",
     "counters": [{"key": {"PK": "{event}"}, "add": {"n": 1}}]}]}
passed = 0


def check(fine, what):
    global passed
    if not fine:
        sys.exit(f"check_release: {what}")
    passed += 1


def release():
    """The release's own `sluice`, built once into a folder that its commit names."""
    if subprocess.run(["git", "cat-file", "-e", RELEASE + "^{commit}"], stderr=subprocess.DEVNULL).returncode:
        print(f"the last release, {RELEASE}, is not in this clone's history: nothing was compared\n0 passed")
        sys.exit(0)
    top = BUILD / "release" / RELEASE
    if not (top / "build/sluice").exists():
        shutil.rmtree(top, ignore_errors=True)
        top.mkdir(parents=True)
        tree = subprocess.run(["git", "archive", RELEASE], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", top], input=tree, check=True)
        env = {k: v for k, v in os.environ.items() if k not in ("BUILD", "SANITIZE", "MAKEFLAGS", "MAKELEVEL", "CFLAGS")}
        subprocess.run(["make", "-s", "-j2", "build/sluice", "build/bootstrap"], cwd=top, env=env, check=True, stdout=subprocess.DEVNULL)
    return top / "build/sluice"


def change(n, key, old, new, table="orders"):
    name = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    images = {k: v for k, v in (("NewImage", new), ("OldImage", old)) if v is not None}
    return {"eventID": f"{n:032x}", "eventName": name, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "dynamodb": {"ApproximateCreationDateTime": 1700000000 + n, "Keys": {"PK": {"S": key}}, **images,
                         "SequenceNumber": str(100000000000000000000 + n), "SizeBytes": 10, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "eventSourceARN": f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2019-11-14T00:04:06.388"}


def history(rng, n):
    """Batches of changes, and the items that are there at the end."""
    items, changes = {}, []
    for i in range(n):
        key, old = (k := f"k{rng.randrange(40)}"), items.get(k)
        new = None if old and rng.random() < 0.25 else {
            "PK": {"S": key}, "status": {"S": rng.choice(["OPEN", "PAID", "SENT"])}, "total": {"N": str(rng.randrange(-500, 5000) / 100)}}
        items[key] = new
        if new is None:
            del items[key]
        changes.append(change(i, key, old, new))
    cuts = sorted(rng.sample(range(1, n), n // 25))
    return [changes[a:b] for a, b in zip([0, *cuts], [*cuts, n])], items, changes


def replay(sluice, folder, batch):
    (folder / "event.json").write_text(json.dumps({"Records": batch}))
    return subprocess.run([sluice, "replay", "--config", "sluice.json", "--batch-size", "10000", "event.json"], cwd=folder, capture_output=True, text=True)


def deliver(sluice, folder, batch):
    done = replay(sluice, folder, batch)
    check(done.returncode == 0, f"{sluice}: {done.stdout}{done.stderr}")


def rows(folder, table):
    return [json.loads(text) for text, in sqlite3.connect(folder / "db").execute(f'SELECT item FROM "{table}"')]


def replica(folder, table):
    return {r["PK"]["S"]: {n: v for n, v in r.items() if not n.startswith("sluice_")} for r in rows(folder, table) if "sluice_deleted" not in r}


def sums(folder, table):
    return {(r["PK"]["S"], n): decimal.Decimal(v["N"]) for r in rows(folder, table) if not r["PK"]["S"].startswith("sluice:")
            for n, v in r.items() if "N" in v and decimal.Decimal(v["N"])}


def ledger(folder):
    return {r["PK"]["S"]: r for r in rows(folder, "totals") if r["PK"]["S"].startswith("sluice:ledger:")}


def check_ledger(folder, items, by_now):
    """Rows are in epoch 0, the form of all releases; those that this tree wrote last say when their change was made."""
    sources = [r["sluice_source"]["M"] for r in rows(folder, "totals") if r["PK"]["S"] == "sluice:source:totals"]
    check(sources == [{"account": {"S": "123456789012"}, "region": {"S": "us-east-1"}, "table": {"S": "orders"}, "epoch": {"N": "0"},
                       "shards": {"N": "0"}}], f"the ledger's source is {sources}")
    for key, row in ledger(folder).items():
        check(len(row["order"]["S"]) == 40 and row["order"]["S"].isdigit(), f"the order of {key} is {row['order']}")
        n = int(row["order"]["S"]) - 100000000000000000000
        check(row.get("at") == ({"N": str((1700000000 + n) * 1000)} if n in by_now else None), f"the time of {key} is {row.get('at')}")


def take_over(folder, items):
    """Another table with the same keys: refused, then taken over by an epoch and a backfill."""
    was = sums(folder, "totals")
    key, item = min(items.items())
    gone, row = max(items.items())
    other = [change(1, key, item, item | {"total": {"N": "1000000"}}, "restored")]
    (folder / "sluice.json").write_text(json.dumps(CONFIG | {"routes": [CONFIG["routes"][2]]}))
    done = replay(NOW, folder, other)
    check(done.returncode != 0 and "the ledger totals counts the items of orders (us-east-1, account 123456789012)" in done.stdout + done.stderr,
          f"another table was not refused: {done.stdout}{done.stderr}")
    check(sums(folder, "totals") == was, "another table was counted")
    (folder / "sluice.json").write_text(json.dumps(CONFIG | {"routes": [CONFIG["routes"][2] | {"epoch": 1}]}))
    backfill = [{"eventID": k, "eventName": "INSERT", "dynamodb": {"Keys": {"PK": {"S": k}}, "NewImage": i}} for k, i in items.items() if k != gone]
    for batch in (backfill, other, backfill):
        deliver(NOW, folder, batch)
    status = "STATUS#" + item["status"]["S"]
    was[status, "revenue"] = was.get((status, "revenue"), 0) + 1000000 - decimal.Decimal(item["total"]["N"])
    check(sums(folder, "totals") == was, "the totals are not those of the table that took over")
    orders = {r["order"]["S"][:8] for k, r in ledger(folder).items() if k.split('"')[-2] in items.keys() - {gone}}
    check(orders == {":000001:"}, f"items of the new epoch have orders of {orders}")
    # What the table that takes over does not have stays counted until its removal is replayed.
    deliver(NOW, folder, [{"eventName": "REMOVE", "dynamodb": {"Keys": {"PK": {"S": gone}}}}])
    was["STATUS#" + row["status"]["S"], "orders"] -= 1
    was["STATUS#" + row["status"]["S"], "revenue"] -= decimal.Decimal(row["total"]["N"])
    check(sums(folder, "totals") == {k: v for k, v in was.items() if v}, "an item that is gone stays counted")


def world(before, seed):
    rng = random.Random(seed)
    batches, items, changes = history(rng, 400)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sluice.json").write_text(json.dumps(CONFIG))
        by_now = set()
        for i, batch in enumerate(batches):
            binary = rng.choice([before, NOW])
            deliver(binary, folder, batch)
            by_now |= {int(c["dynamodb"]["SequenceNumber"]) - 100000000000000000000 for c in batch if binary == NOW}
            if rng.random() < 0.4:
                deliver(rng.choice([before, NOW]), folder, batches[rng.randrange(i + 1)])
        parked = folder / "parked.jsonl"
        check(not parked.exists() or not parked.read_text(), f"seed {seed}: records were parked")
        for table in ("inline", "side"):
            check(replica(folder, table) == items, f"seed {seed}: the replica {table} is not the table")
        wanted = collections.Counter()
        for item in items.values():
            wanted["STATUS#" + item["status"]["S"], "orders"] += 1
            wanted["STATUS#" + item["status"]["S"], "revenue"] += decimal.Decimal(item["total"]["N"])
        check(sums(folder, "totals") == {k: decimal.Decimal(v) for k, v in wanted.items() if v}, f"seed {seed}: the totals are not the GROUP BY")
        events = collections.Counter((c["eventName"], "n") for c in changes)
        check(sums(folder, "events") == {k: decimal.Decimal(v) for k, v in events.items()}, f"seed {seed}: events were not counted once each")
        check_ledger(folder, items, by_now)
        take_over(folder, items)


def pair(before, seeds):
    import check_two_way
    check_two_way.serve()
    done = check_two_way.worlds(seeds, [before, NOW], mixed=True)
    check(done == len(seeds), f"{done} of {len(seeds)} pairs of tables")


kills()
before = release()
for seed in [int(s) for s in sys.argv[1:]] or [1, 2]:
    world(before, seed)
pair(before, range(1, 5))
print(f"{passed} passed")
