#!/usr/bin/env python3
"""Seeding through `sluice replay`: a full export and the stream, in either order and twice, make the replica that the table is and the
totals that a GROUP BY over it returns. The export is the scan beside the capture, the stream the capture."""
import collections
import decimal
import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

sys.path.insert(0, "tests/cli")
from harness import work_folder  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
CAPTURE = pathlib.Path("examples/capture").resolve()
ITEMS = [json.loads(line)["Item"] for line in gzip.open(CAPTURE / "orders.scan.jsonl.gz")]
passed = 0


def check(fine, what):
    global passed
    if not fine:
        sys.exit(f"check_seed: {what}")
    passed += 1


def plain(value):
    (kind, content), = value.items()
    if kind in ("SS", "NS", "BS"):
        return {kind: sorted(content)}
    if kind == "L":
        return {kind: [plain(v) for v in content]}
    return {kind: {n: plain(v) for n, v in content.items()}} if kind == "M" else value


def image(item):
    return {n: plain(v) for n, v in item.items() if n not in ("sluice_order", "sluice_write")}


def by_key(items):
    return {(i["PK"]["S"], i["SK"]["S"]): image(i) for i in items}


def rows(folder, table):
    return [json.loads(row) for row, in sqlite3.connect(folder / "db").execute(f'SELECT item FROM "{table}"')]


def wanted_totals():
    sums = collections.Counter()
    for item in ITEMS:
        sums[item["status"]["S"], "orders"] += 1
        sums[item["status"]["S"], "revenue"] += decimal.Decimal(item["total"]["N"])
    return {k: v for k, v in sums.items() if v}


def totals(folder):
    return {(row["PK"]["S"], name): decimal.Decimal(value["N"]) for row in rows(folder, "totals") for name, value in row.items()
            if "N" in value and decimal.Decimal(value["N"])}


def replay(folder, *inputs):
    done = subprocess.run([f"{BUILD}/sluice", "replay", "--config", folder / "sluice.json", *inputs], capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, f"replay: {done.stderr}")


def run(order):
    folder = work_folder()
    (folder / "sluice.json").write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True, "routes": [
        {"name": "replica", "handler": "replicate", "to": f"sqlite:{folder}/db?table=replica"},
        {"name": "totals", "handler": "aggregate", "to": f"sqlite:{folder}/db?table=totals", "ledger": {"table": "ledger"},
         "counters": [{"key": {"PK": "{status}"}, "add": {"orders": 1, "revenue": "{total}"}}]}]}))
    inputs = {"export": ["--keys", "PK,SK", CAPTURE / "orders.scan.jsonl.gz"], "stream": [CAPTURE / "orders.jsonl.gz"]}
    for name in order:
        replay(folder, *inputs[name])
    live = by_key(r for r in rows(folder, "replica") if "sluice_deleted" not in r)
    check(live == by_key(ITEMS), f"{order}: the replica is not the table")
    check(totals(folder) == wanted_totals(), f"{order}: the totals are not a GROUP BY")


run(["export", "stream"])
run(["stream", "export"])
run(["stream", "export", "stream"])
run(["export", "export"])
print(f"{passed} passed")
