#!/usr/bin/env python3
"""`sluice backfill` from exports: kills, signals, plans, and every wrong input."""
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time

from exports import ARN, finish_export, write_export
from harness import BUILD, check, ended, finish, kills, work_folder

kills()
folder = work_folder()
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
       "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
SINCE = ("--consumer-since", "2026-11-22T05:00:00Z")
rng = random.Random(7)
ITEMS = [{"PK": {"S": f"user#{i}"}, "SK": {"N": str(i)}, "status": {"S": rng.choice(["OPEN", "PAID", "GONE"])}, "total": {"N": str(i % 97)}}
         for i in range(3000)]


def config(name="sluice.json", **more):
    routes = [{"name": "replica", "handler": "replicate", "to": "sqlite:db?table=replica", "where": {"status": ["OPEN", "PAID"]}},
              {"name": "totals", "handler": "aggregate", "to": "sqlite:db?table=totals",
               "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1, "sum": "{total}"}}]},
              {"name": "keep", "handler": "archive", "to": "file:archive"}]
    for route in routes:
        route.update(more.get(route["name"], {}))
    (folder / name).write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": routes}))


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 60))


def backfill(*args, wait=True, keys="PK,SK"):
    keys = ("--keys", keys) if keys else ()
    process = subprocess.Popen([f"{BUILD}/sluice", "backfill", *keys, *args], cwd=folder, env=ENV, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    if wait:
        process.out, process.err = process.communicate(timeout=600)
    return process


def fresh():
    for name in ("db", "db-wal", "db-shm", "cp", "parked.jsonl"):
        (folder / name).unlink(missing_ok=True)


def rows(table):
    db = sqlite3.connect(folder / "db", timeout=600)
    return [json.loads(item) for item, in db.execute(f"SELECT item FROM {table}")]


def is_right():
    replica = sorted((r["PK"]["S"], r["status"]["S"], r["total"]["N"]) for r in rows("replica"))
    wanted = sorted((i["PK"]["S"], i["status"]["S"], i["total"]["N"]) for i in ITEMS if i["status"]["S"] != "GONE")
    totals = {r["PK"]["S"]: (int(r["n"]["N"]), int(r["sum"]["N"])) for r in rows("totals") if "n" in r}
    sums = {s: (sum(i["status"]["S"] == s for i in ITEMS), sum(int(i["total"]["N"]) for i in ITEMS if i["status"]["S"] == s))
            for s in ("OPEN", "PAID", "GONE")}
    return replica == wanted and totals == sums


def counts(text):
    """{route: [written, there already, overtaken, not its own, parked]}, and the number of items."""
    found, items = {}, None
    for line in text.splitlines():
        words = line.replace(",", "").split()
        if words[0] == "items":
            items = int(words[1])
        elif words[0] == "route" and "written" in words:
            found[words[1]] = [int(w) for w in words[2:] if w.isdigit()]
    return items, found


def whole_export():
    config()
    export = write_export(folder / "whole", [ITEMS[i::5] for i in range(5)] + [[]], now())
    plan = backfill("--export", str(export), *SINCE, "--plan")
    check("a plan says what there is", plan.returncode == 0 and "items            3000" in plan.out and "route totals takes part" in plan.out
          and "hold" in plan.out and "route keep is left out" in plan.out, plan.out + plan.err)
    check("a plan touches nothing", not (folder / "db").exists() and not (folder / "archive").exists(), os.listdir(folder))
    run = backfill("--export", str(export), *SINCE)
    items, found = counts(run.out)
    check("all items are written", run.returncode == 0 and is_right() and items == 3000 and "as the manifest says" in run.out, run.out + run.err)
    check("the numbers of each route add up", all(sum(c) == 3000 for c in found.values()) and set(found) == {"replica", "totals"}, run.out)
    check("what cannot take part is said", "route keep is left out: an archive" in run.err, run.err)
    again = backfill("--export", str(export), *SINCE, "--routes", "totals")
    check("a second run finds it there", again.returncode == 0 and counts(again.out)[1]["totals"][1] == 3000 and is_right(), again.out + again.err)
    check("what was not named is left out", "route replica is left out: it was not named" in again.err, again.err)
    named = backfill("--export", str(export), *SINCE, "--routes", "totals,keep")
    check("a route that cannot take part is refused when it is named", named.returncode == 2 and "the route keep cannot" in named.err, named.err)
    return export


def plan_of_files():
    """The look at the first piece has seen a small input whole, and not a large one."""
    for n, text in ((40, "items            40\n"), (30000, "items            not known")):
        (folder / "input.jsonl").write_text("".join(json.dumps({"Item": {**ITEMS[i % 3000], "PK": {"S": str(i)}}}) + "\n" for i in range(n)))
        plan = backfill("input.jsonl", "--as-of", now(), *SINCE, "--plan")
        check(f"a plan of {n} lines", plan.returncode == 0 and text in plan.out, plan.out + plan.err)


def killed(export):
    """Killed at random moments, as a machine goes down: it goes on without loss."""
    for world in range(4):
        fresh()
        kills = 0
        while True:
            process = backfill("--export", str(export), *SINCE, "--checkpoint", "cp", "--write-units", "6000", wait=False)
            try:
                out, err = process.communicate(timeout=rng.uniform(0.05, 0.9) if kills < 6 else 100)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
        items, found = counts(out)
        check("killed at any moment it loses nothing", process.returncode == 0 and is_right(), f"world {world}: {out}{err}")
        check("and counts each item once", items == 3000 and all(sum(c) == 3000 for c in found.values()), f"{kills} kills: {out}")


def stopped(export):
    fresh()
    process = backfill("--export", str(export), *SINCE, "--checkpoint", "cp", "--write-units", "2000", wait=False)
    for _ in range(400):
        if (folder / "cp").exists():
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = ended(process)
    check("SIGTERM ends it", process.returncode == 1 and "not done; the same command goes on" in err, out + err)
    done = json.loads((folder / "cp").read_text())["state"]["records"]
    check("after some items", 0 < done < 3000, done)
    rest = backfill("--export", str(export), *SINCE, "--checkpoint", "cp")
    check("and it goes on", rest.returncode == 0 and f"goes on after {done}" in rest.err and is_right(), rest.out + rest.err)
    done = backfill("--export", str(export), *SINCE, "--checkpoint", "cp")
    check("when all is done, that is said", done.returncode == 0 and "cp is of a run that is done" in done.err and "goes on" not in done.err
          and counts(done.out) == counts(rest.out), done.err)
    config(replica={"to": "sqlite:db2?table=replica"})
    wrong = backfill("--export", str(export), *SINCE, "--checkpoint", "cp")
    check("and is of its target alone", wrong.returncode == 2 and "the route replica is configured otherwise" in wrong.err, wrong.err)
    config()
    for place, text in (("/nowhere/cp", "/nowhere"), ("nowhere/cp", "nowhere"), (".", "is no file"), ("cp/cp", "cp/cp")):
        wrong = backfill("--export", str(export), *SINCE, "--checkpoint", place)
        check(f"a checkpoint that cannot be written, {place}", wrong.returncode == 2 and text in wrong.err and not wrong.out, wrong.err)
    other = write_export(folder / "other", [ITEMS[:5]], now())
    wrong = backfill("--export", str(other), *SINCE, "--checkpoint", "cp")
    check("a checkpoint of another source is refused", wrong.returncode == 2 and "is the checkpoint of another source" in wrong.err, wrong.err)
    config(replica={"name": "renamed"})
    wrong = backfill("--export", str(export), *SINCE, "--checkpoint", "cp")
    check("and one of other routes", wrong.returncode == 2 and "the route renamed took no part" in wrong.err, wrong.err)
    config()
    (folder / "broken").write_text('{"sluiceBackfill":1}')
    wrong = backfill("--export", str(export), *SINCE, "--checkpoint", "broken")
    check("and what is no checkpoint", wrong.returncode == 2 and "broken: is not the checkpoint of a backfill" in wrong.err, wrong.err)


def progress(export):
    fresh()
    run = backfill("--export", str(export), *SINCE, "--write-units", "3500")
    said = re.findall(r"^sluice backfill: (\d+) items, (\d+) a second, ([0-9.]+) %, about (\d+) s left$", run.err, re.M)
    check("progress has the rate and the time left", said and 0 < int(said[0][0]) < 3000 and int(said[0][3]) < 20, run.err)
    quiet = backfill("--export", str(export), *SINCE, "--write-units", "3500", "--quiet")
    check("unless it is not wanted", "left" not in quiet.err.replace("left out", ""), quiet.err)


def in_time(export):
    late = backfill("--export", str(export))
    check("an unknown consumer is refused", late.returncode == 2 and "give the time since which" in late.err, late.err)
    late = backfill("--export", str(export), "--consumer-since", "2099-01-01T00:00:00Z")
    check("a late one too", late.returncode == 2 and "Take a newer export" in late.err, late.err)
    unsafe = backfill("--export", str(export), "--unsafe-order")
    check("unless it is wanted", unsafe.returncode == 0 and "run `sluice verify` after" in unsafe.err, unsafe.err)
    old = write_export(folder / "old", [ITEMS[:5]], "2026-01-01T00:00:00.000Z")
    late = backfill("--export", str(old), "--consumer-since", "2025-12-01T00:00:00Z")
    check("an export of long ago is refused", late.returncode == 2 and "tombstone_days" in late.err, late.err)


def parked_and_redriven():
    """What a route rejects is parked under a name of its own, and redriven as an item."""
    fresh()
    bad = [dict(ITEMS[i]) for i in range(20)]
    for item in bad[3:5]:
        del item["status"]
    export = write_export(folder / "bad", [bad], now())
    run = backfill("--export", str(export), *SINCE, "--routes", "totals")
    check("rejected items are parked", run.returncode == 0 and counts(run.out)[1]["totals"] == [18, 0, 0, 0, 2], run.out + run.err)
    parked = [json.loads(line) for line in (folder / "parked.jsonl").read_text().splitlines()]
    check("each with its name", len({p["record"]["eventID"] for p in parked}) == 2, parked)
    config(totals={"counters": [{"key": {"PK": "all"}, "add": {"n": 1}}]})
    redrive = subprocess.run([f"{BUILD}/sluice", "redrive", "parked.jsonl"], cwd=folder, env=ENV, capture_output=True, text=True, timeout=600)
    config()
    check("and can be redriven", redrive.returncode == 0 and "2 of 2" in redrive.stdout, redrive.stdout + redrive.stderr)
    orders = [r["order"]["S"] for r in rows("totals") if "order" in r]
    check("as items, which lose to every change", len(orders) == 20 and set(orders) == {"0" * 40}, orders)


def overtaken():
    """More than one in a hundred refused by newer changes: the advice."""
    fresh()
    write = [{"eventID": str(i), "eventName": "MODIFY", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "dynamodb": {
        "ApproximateCreationDateTime": 1795000000, "Keys": {"PK": i["PK"], "SK": i["SK"]}, "NewImage": i, "OldImage": i,
        "SequenceNumber": "100000000000000000" + i["SK"]["N"].zfill(4), "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "eventSourceARN": ARN + "/stream/2026-01-01T00:00:00.000"} for i in ITEMS[:50] if i["status"]["S"] != "GONE"]
    (folder / "stream.json").write_text(json.dumps({"Records": write}))
    subprocess.run([f"{BUILD}/sluice", "replay", "stream.json"], cwd=folder, env=ENV, check=True, capture_output=True, timeout=600)
    export = write_export(folder / "some", [ITEMS[:400]], now())
    run = backfill("--export", str(export), *SINCE, "--routes", "replica")
    check("what was overtaken is counted", counts(run.out)[1]["replica"][2] == len(write), run.out + run.err)
    check("and brings the advice", "docs/BACKFILL.md" in run.out and "epoch" in run.out, run.out)


def wrong_inputs(export):
    fresh()
    backfill("--export", str(export), *SINCE)
    gone = write_export(folder / "gone", [ITEMS[:5], ITEMS[5:9]], now())
    os.remove(gone / "data" / "0000000000001.json.gz")
    torn = write_export(folder / "torn", [ITEMS[:2000]], now(), level=0)
    path = torn / "data" / "0000000000000.json.gz"
    data = bytearray(path.read_bytes())
    status = b'"status": {"S": "'
    data[data.index(status, len(data) // 2) + len(status)] ^= 1  # in a value: every item can still be handled
    path.write_bytes(data)
    twice = write_export(folder / "twice", [ITEMS[:5]], now())
    line = (twice / "manifest-files.json").read_text().strip()
    finish_export(twice, twice.name, [line, line], 10, now(), ARN)
    keyless = write_export(folder / "keyless", [[{"SK": {"N": "1"}}]], now())
    (folder / "nothing").mkdir(exist_ok=True)
    exports = [(("--export", gone), "0000000000001.json.gz"), (("--export", torn), "0000000000000.json.gz"),
               (("--export", twice), "twice"), (("--export", keyless), "PK"), (("--export", "nothing"), "manifest-summary"),
               (("--export", "nowhere"), "nowhere"), (("--archive", "nothing", "--as-of", now()), "no object of an archive"),
               (("--table", "sqlite:absent.db?table=t"), "no such file"), (("--table", "sqlite:db?table=mistyped"), "mistyped")]
    for args, text in exports:
        run = backfill(*map(str, args), *SINCE)
        lines = [line for line in run.err.splitlines() if "left out" not in line and "not done" not in line]
        check(f"one line says what is wrong: {args}", run.returncode in (1, 2) and len(lines) == 1 and text in lines[0], run.err + run.out)
    check("a table that is only read is not created", not (folder / "absent.db").exists())
    fresh()
    orders = write_export(folder / "orders", [[{"PK": {"S": "o"}, "SK": {"N": str(i)}, "status": {"S": "OPEN"}, "total": {"N": "1"}}
                                               for i in range(20)]], now())
    run = backfill("--export", str(orders), *SINCE, keys="PK")
    check("a sort key that was not named", run.returncode == 1 and "record 1 has the same PK as one before it" in run.err
          and "--unsafe" not in run.err and not rows("replica"), run.err)
    run = backfill("--export", str(orders), *SINCE)
    check("named, each item has a row", run.returncode == 0 and len(rows("replica")) == 20, run.err)
    usage = [(("--export", export, "--table", "t"), "one source"), ((), "a source is missing"), (("--table", "t", "--segments", "0"), "--segments"),
             (("--export", export, "--segments", "4"), "--segments"), (("--export", export, "--write-units", "-1"), "--write-units"),
             (("--export", export, "--consumer-since", "yesterday"), "expected a time"), (("--export", export, "--routes", "none"), "no route \"none\""),
             (("--export", export, "--read-units", "5"), "--read-units"), (("--table", "t", "--verify-first"), "--verify-first"),
             (("--export", export, "--config", "missing.json"), "missing.json")]
    for args, text in usage:
        run = backfill(*map(str, args))
        check(f"bad usage: {args}", run.returncode == 2 and len(run.err.splitlines()) == 1 and text in run.err, run.err)
    for keys, text in ((None, "--keys PK,SK"), ("nosuch", "nosuch"), ("PK,SK,X", "PK,SK"), ("", "--keys")):
        run = backfill("--export", str(export), *SINCE, *(("--keys", keys) if keys is not None else ()), keys=None)
        check(f"wrong keys: {keys}", run.returncode in (1, 2) and text in run.err, run.err)


EXPORT = whole_export()
plan_of_files()
killed(EXPORT)
stopped(EXPORT)
progress(EXPORT)
in_time(EXPORT)
parked_and_redriven()
overtaken()
wrong_inputs(EXPORT)
finish()
