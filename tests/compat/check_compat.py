#!/usr/bin/env python3
"""`make compat`: the release before this tree, built from its commit (tests/compat/before), and this tree take turns on the same state, in
both directions: what one began the other ends, and the result is that of one alone. Tables with guards, tombstones and ledgers, an
archive, parked records, a tail's checkpoint."""
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, "tests/cli")
from harness import check, finish, record, work_folder  # noqa: E402
from servers import Servers  # noqa: E402

TOP = pathlib.Path.cwd()
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).absolute()
SEED = int(os.environ.get("SEED", random.randrange(10**6)))
CONFIG = {"ttl_attribute": "expires_at", "on_failure": "jsonl:${OUT}/parked.jsonl", "routes": [
    {"name": "record", "handler": "archive", "to": "file:${OUT}/archive/records", "format": "record"},
    {"name": "replica", "handler": "replicate", "to": "sqlite:${OUT}/t.db?table=replica"},
    {"name": "tombs", "handler": "replicate", "to": "sqlite:${OUT}/t.db?table=tombs", "tombstones": {"table": "graves"}},
    {"name": "totals", "handler": "aggregate", "to": "sqlite:${OUT}/t.db?table=totals", "ledger": {"table": "ledger"}, "missing": "skip",
     "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"orders": 1, "revenue": "{total}"}}]},
    {"name": "told", "handler": "notify", "when": {"changed": ["status"]}, "to": "jsonl:${OUT}/told.jsonl", "message": "{PK} is {status|default:gone}"}]}
MARKS = re.compile(r',?"sluice_expires":\{"N":"\d+"\}|"sluice_write":\{"S":"[0-9a-f:]*"\},?')


def before():
    """The programs of the release before, built once for its commit."""
    version, commit = (TOP / "tests/compat/before").read_text().split()
    folder = BUILD / "compat" / commit
    if subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], stderr=subprocess.DEVNULL, check=False).returncode:
        print(f"compat: this clone has no commit {commit}, version {version}: git fetch --unshallow")
        sys.exit(0)
    if not (folder / "build/sluice").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--shared", TOP, folder], check=True)
        subprocess.run(["git", "-c", "advice.detachedHead=false", "checkout", "-q", commit], cwd=folder, check=True)
        env = {name: value for name, value in os.environ.items() if name not in ("BUILD", "MAKEFLAGS", "MAKELEVEL")}
        # It warned of nothing in its time; a compiler since then may.
        subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "WERROR=", "build/sluice", "build/bootstrap"], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    return folder / "build"


def tables(path):
    """Every row of every table, but when its tombstone goes (a matter of the clock) and which call wrote it (two calls' marks differ)."""
    with sqlite3.connect(path) as db:
        names = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: sorted(re.sub(MARKS, "", repr(row)) for row in db.execute(f'SELECT * FROM "{name}"')) for name in names}


def archived(folder):
    return sorted(line for path in (folder / "archive").rglob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines())


def replay(builds, parts, folder):
    """Part after part, each by the build of its turn."""
    folder.mkdir()
    (folder / "sluice.json").write_text(json.dumps(CONFIG))
    for build, part in zip(builds, parts):
        done = subprocess.run([build / "sluice", "replay", "--config", folder / "sluice.json", part], env={**os.environ, "OUT": str(folder)}, capture_output=True, text=True,
                              timeout=600, check=False)
        if done.returncode > 1:
            return done.stdout + done.stderr
    return ""


def turns(old, new):
    """A recorded history in six overlapping parts: each record of an overlap comes twice."""
    lines = gzip.decompress((TOP / "examples/capture/orders.jsonl.gz").read_bytes()).splitlines(keepends=True)
    work, parts = work_folder(), []
    chance = random.Random(SEED)
    ends = sorted(chance.sample(range(300, len(lines)), 5)) + [len(lines)]
    for n, end in enumerate(ends):
        begin = 0 if not n else max(0, ends[n - 1] - chance.randrange(200))
        parts.append(work / f"part{n}.jsonl")
        parts[-1].write_bytes(b"".join(lines[begin:end]))
    results = {}
    for name, builds in (("new alone", [new] * 6), ("old alone", [old] * 6), ("old, then new", [old] * 3 + [new] * 3), ("new, then old", [new] * 3 + [old] * 3),
                         ("in turns", [old, new] * 3)):
        folder = work / name.replace(" ", "-").replace(",", "")
        wrong = replay(builds, parts, folder)
        check(f"{name}: all is replayed, seed {SEED}", not wrong, wrong)
        results[name] = (tables(folder / "t.db"), archived(folder))
    first = results["new alone"]
    check("there is something to compare", len(first[0]["replica"]) > 500 and len(first[0]["ledger"]) > 500 and len(first[1]) > 3000, {name: len(rows) for name, rows in first[0].items()})
    for name, got in results.items():
        for table, rows in first[0].items():
            check(f"{name}: {table} is the same, row by row", got[0].get(table) == rows, [row for row in rows if row not in got[0].get(table, [])][:3])
        check(f"{name}: the archive has the same records", set(got[1]) == set(first[1]), len(got[1]))


def parked(old, new):
    """A record that one version parked is redriven by the other."""
    for name, first, second in (("old, then new", old, new), ("new, then old", new, old)):
        work = work_folder()
        config = {"on_failure": "jsonl:${OUT}/parked.jsonl", "routes": [
            {"name": "totals", "handler": "aggregate", "to": "sqlite:${OUT}/t.db?table=totals", "ledger": {"table": "ledger"},
             "counters": [{"key": {"PK": "A"}, "add": {"n": "{n}"}}]}]}
        (work / "sluice.json").write_text(json.dumps(config))
        made = [record(n) for n in range(5)]
        made[2]["dynamodb"]["NewImage"]["n"] = {"S": "many"}
        for n, row in enumerate(made):
            row["dynamodb"]["NewImage"].setdefault("n", {"N": str(n)})
        (work / "in.json").write_text(json.dumps({"Records": made}))
        env = {**os.environ, "OUT": str(work)}
        subprocess.run([first / "sluice", "replay", "--config", work / "sluice.json", work / "in.json"], env=env, capture_output=True, timeout=600, check=False)
        letters = (work / "parked.jsonl").read_text().splitlines()
        check(f"{name}: one record is parked", len(letters) == 1, letters)
        config["routes"][0]["counters"][0]["add"] = {"n": 1}
        (work / "sluice.json").write_text(json.dumps(config))
        done = subprocess.run([second / "sluice", "redrive", "--config", work / "sluice.json", work / "parked.jsonl"], env=env, capture_output=True, text=True, timeout=600, check=False)
        check(f"{name}: it is redriven", done.returncode == 0, done.stdout + done.stderr)
        with sqlite3.connect(work / "t.db") as db:
            found = [row for row, in db.execute("SELECT item FROM totals")]
        check(f"{name}: it is counted", len(found) == 1 and '"n":{"N":"' in found[0], found)


def tail(old, new):
    """One checkpoint, read and written by both."""
    servers = Servers("dynamodb")
    work = work_folder()
    servers.create("orders", stream=True)
    (work / "sluice.json").write_text(json.dumps(CONFIG))
    written = {}
    for n, build in enumerate((old, new, old, new)):
        for i in range(60):
            key, status = f"k{(n * 37 + i) % 90}", ["NEW", "PAID"][(n + i) % 2]
            item = {"PK": {"S": key}, "status": {"S": status}, "total": {"N": str(n * 100 + i)}}
            servers.dynamodb("PutItem", TableName="orders", Item=item)
            written[key] = item
        done = subprocess.run([build / "sluice", "tail", "--table", "orders", "--once", "--config", work / "sluice.json", "--checkpoint", work / "place.json",
                               "--endpoint-url", servers.env["DYNAMODB_ENDPOINT"]], env={**os.environ, **servers.credentials, "OUT": str(work)},
                              capture_output=True, text=True, timeout=600, check=False)
        check(f"turn {n}: tail goes on from the checkpoint", done.returncode == 0, done.stdout + done.stderr)
        with sqlite3.connect(work / "t.db") as db:
            replica = {json.loads(item)["PK"]["S"]: json.loads(item) for item, in db.execute("SELECT item FROM replica")}
        seen = {key: {name: value for name, value in item.items() if name in written[key]} for key, item in replica.items()}
        check(f"turn {n}: the replica is the table", seen == written, len(seen))
    with sqlite3.connect(work / "t.db") as db:
        totals = [json.loads(item) for item, in db.execute("SELECT item FROM totals")]
    check("the totals are those of the items", sum(int(row["orders"]["N"]) for row in totals) == len(written) and
          sum(int(row["revenue"]["N"]) for row in totals) == sum(int(item["total"]["N"]) for item in written.values()), totals)
    check("no record came twice", len(archived(work)) == 240, len(archived(work)))


old = before()
turns(old, BUILD)
parked(old, BUILD)
tail(old, BUILD)
finish()
