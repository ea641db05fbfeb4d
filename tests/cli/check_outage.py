#!/usr/bin/env python3
"""`sluice replay --outage`: targets that are down for a while of virtual time. A route that is set aside ends as if nothing had
been, and holds nobody; one that is not holds all. The queue, the drain and what is left of letters."""
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

from harness import BUILD, WHOLE, Run, check, finish, record

CAPTURE = pathlib.Path("examples/capture/orders.jsonl.gz").resolve()
COUNTERS = [{"key": {"PK": "STATUS#{status}"}, "add": {"orders": 1, "revenue": "{total}"}}]


def config(aside=("copy", "totals", "said"), **more):
    routes = [{"name": "kept", "handler": "archive", "to": "file:kept", "format": "record"},
              {"name": "copy", "handler": "replicate", "to": "sqlite:db?table=copy"},
              {"name": "totals", "handler": "aggregate", "to": "sqlite:db?table=totals", "missing": "skip", "counters": COUNTERS},
              {"name": "said", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{sequence}"}]
    for route in routes:
        if route["name"] in aside:
            route["set_aside"] = f"sqs://later-{route['name']}"
        route.update(more.get(route["name"], {}))
    return {"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": routes}


def world(folder, *args, of=None, inputs=(str(CAPTURE),)):
    """The run, and what it made: tables without the times of writes, messages sorted, records in the archive."""
    folder.mkdir()
    (folder / "sluice.json").write_text(json.dumps(of or config()))
    run = Run(folder, "--live", *args, *inputs)
    made = {}
    with sqlite3.connect(folder / "db") as db:
        for table in ("copy", "totals"):
            rows = db.execute(f"SELECT key, item FROM {table}").fetchall() if db.execute(
                "SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall() else []
            items = {key: {k: v for k, v in json.loads(item).items() if k not in ("sluice_write", "sluice_expires")} for key, item in rows}
            made[table] = {key: item for key, item in items.items() if "sluice:delta" not in key}
    said = folder / "said.jsonl"
    made["said"] = sorted(said.read_text().split()) if said.exists() else []
    kept = [subprocess.run(["zcat", "-f", path], capture_output=True, check=True).stdout for path in sorted((folder / "kept").rglob("*.gz"))]
    made["kept"] = sum(text.count(b"\n") for text in kept)
    return run, made


def letters(run):
    return {m[2]: (int(m[1]), int(m[3]), int(m[4]), int(m[5])) for m in re.finditer(
        r"^letters +(\d+)   of (\w+); drained (\d+), in (\d+) receives.*; left (\d+)", run.out, re.M)}


def the_end_is_the_same(top):
    run, whole = world(top / "whole")
    check("without an outage", run.status == 0 and len(whole["said"]) == whole["kept"] == 3773 and len(whole["copy"]) > 100, run.out)
    check("nothing is said of letters", "letters" not in run.out and "outage" not in run.out)
    # By its guards, as they are in the replica's rows and in the ledger, the state is the same, too.
    cases = {"one": ("--outage", "copy@60-900"), "two": ("--outage", "copy@0-300", "--outage", "totals@100-4000"),
             "again": ("--outage", "totals@30-60", "--outage", "totals@90-120", "--outage", "said@0-1000"),
             "short": ("--outage", "copy@60-61"), "late": ("--outage", "copy@100000-100001"),
             "parallel": ("--outage", "copy@60-900", "--parallelization", "3", "--batch-size", "20"),
             "faults": ("--outage", "copy@60-900", "--outage", "totals@200-500", "--fault", "crash@7%,lost@7%,throttle@5%", "--seed", "3"),
             "hours": ("--outage", "copy@0-12000", "--outage", "totals@5-8000")}
    for name in cases if WHOLE else ("parallel", "faults"):
        flags = cases[name]
        run, made = world(top / name, *flags)
        sent = letters(run)
        check(f"{name}: ends well", run.status == 0, run.out + run.err)
        check(f"{name}: says what was planned", run.out.count("\noutage ") == flags.count("--outage"), run.out)
        for route, (all_of_them, drained, receives, left) in sent.items():
            check(f"{name}: {route} is drained", left == 0 and drained == all_of_them and receives >= drained, run.out)
        check(f"{name}: letters were written", bool(sent) == (name != "late"), run.out)
        check(f"{name}: the replica", made["copy"] == whole["copy"])
        check(f"{name}: the totals", made["totals"] == whole["totals"])
        if name != "faults":  # (an answer that is lost, and a message comes twice)
            check(f"{name}: the messages", made["said"] == whole["said"], f"{len(made['said'])} of {len(whole['said'])}")
            check(f"{name}: the archive", made["kept"] == whole["kept"], made["kept"])
            check(f"{name}: nobody waited", " retries 0," in run.out and "\nfunction errors" not in run.out, run.out)
        check(f"{name}: nothing parked", not (top / name / "parked.jsonl").read_text())


def a_route_that_is_not_set_aside_holds_all(top):
    run, made = world(top / "held", "--outage", "copy@60-900", of=config(aside=()))
    check("all records are handled in the end", run.status == 0 and len(made["said"]) == 3773, run.out)
    check("and waited for the target", int(re.search(r"retries (\d+)", run.out)[1]) > 10, run.out)
    done = [t for t in run.trace if t["decision"] == "advance"]
    check("no batch was done meanwhile", done and not [t for t in done if 60_000 < t["time_ms"] < 900_000], done[:3])


def what_is_paused_waits(top):
    run, made = world(top / "paused", "--outage", "said@0-1", of=config(copy={"paused": True}))
    sent, drained, _, left = letters(run)["copy"]
    check("a paused route's letters are left", run.status == 1 and drained == 0 and left == sent > 0 and "it is paused" in run.out, run.out)
    check("and the others go on", made["kept"] == len(made["said"]) == 3773 and not made["copy"])


def a_letter_that_can_never_be_applied_is_left(top):
    """With nowhere to park it, the poison stays in its letter; the rest of the letter is applied."""
    folder = top / "poison"
    records = [record(n, created=1573689197 + n) for n in range(20)]
    del records[7]["dynamodb"]["NewImage"]["n"]
    of = {"report_batch_item_failures": True, "routes": [
        {"name": "said", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{n}", "on_failure": "report", "set_aside": "sqs://later"}]}
    folder.mkdir()
    (folder / "sluice.json").write_text(json.dumps(of))
    run = Run(folder, "--live", "--outage", "said@0-600", records=records)
    check("a letter is left", run.status == 1 and letters(run)["said"][:2] == (20, 19) and letters(run)["said"][3] == 1, run.out + run.err)
    check("the others are sent", len((folder / "said.jsonl").read_text().split()) == 19)


def the_report_has_it(top):
    run, _ = world(top / "page", "--outage", "copy@60-900", "--report", "report.html")
    page = (top / "page/report.html").read_text()
    check("the page shows it", run.status == 0 and "letters " in page and "of copy; drained" in page and "outage " in page, run.err)


def an_old_recording_is_not_late(top):
    """A letter's records may be years old when they are replayed."""
    folder = top / "old"
    folder.mkdir()
    of = {"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": [
        {"name": "copy", "handler": "replicate", "to": "sqlite:db?table=copy", "set_aside": "sqs://later"}]}
    (folder / "sluice.json").write_text(json.dumps(of))
    run = Run(folder, "--live", "--outage", "copy@0-60", records=[record(n, created=1573689197 + n) for n in range(20)])
    with sqlite3.connect(folder / "db") as db:
        check("all of it is in the replica", run.status == 0 and db.execute("SELECT count(*) FROM copy").fetchone() == (20,), run.out + run.err)
    check("nothing is parked", not Run.text(folder / "parked.jsonl"))


def mistakes_are_named(top):
    folder = top / "wrong"
    folder.mkdir()
    (folder / "sluice.json").write_text(json.dumps(config()))
    for spec in ("copy", "copy@", "@1-2", "copy@5", "copy@5-5", "copy@9-3", "copy@-1-3", "copy@1-2x", "copy@a-b", "copy@1-999999999"):
        run = Run(folder, "--outage", spec, str(CAPTURE))
        check(f"--outage {spec}", run.status == 2 and f'"{spec}" is not ROUTE@A-B' in run.err and run.err.count("\n") == 1, run.err)
    run = Run(folder, "--outage", "copi@1-2", str(CAPTURE))
    check("no such route", run.status == 2 and 'sluice.json has no route "copi"' in run.err, run.err)
    run = Run(folder, "--outage", "copy@1-2", "--bootstrap", "exec true", str(CAPTURE))
    check("another runtime", run.status == 2 and "--outage: only with our own runtime" in run.err, run.err)
    done = subprocess.run([f"{BUILD}/sluice", "replay", str(CAPTURE)], cwd=folder, capture_output=True, text=True, env={**os.environ, "SLUICE_OUTAGE": "copy,nobody"})
    check("the variable names a route that is not there", done.returncode == 2 and 'SLUICE_OUTAGE: the configuration has no route "nobody"' in done.stderr, done.stderr)


with tempfile.TemporaryDirectory() as folder:
    for case in (the_end_is_the_same, a_route_that_is_not_set_aside_holds_all, what_is_paused_waits,
                 a_letter_that_can_never_be_applied_is_left, the_report_has_it, an_old_recording_is_not_late, mistakes_are_named):
        case(pathlib.Path(folder))
finish()
