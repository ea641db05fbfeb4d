#!/usr/bin/env python3
"""A number in a condition keeps its digits wherever a condition may stand: a route's when, replicate's where, a counter's where. What is no
exact double (0.1), what rounds to another double, and what is beyond 64 bits take the same items in all of them, those that decimals take."""
import json
import operator
import sqlite3
import subprocess
from decimal import Decimal

from harness import BUILD, check, finish, work_folder

folder = work_folder()
NUMBERS = ["1", "0.1", "0.3", "0.30000000000000000001", "-0.1", "9007199254740993", "9223372036854775807", "12345678901234567890",
           "12345678901234567890123456789012345678", "1E+125", "1E-130", "1.00000000000000000001"]
ASKED = ["0.1", "0.3", "0.30000000000000000001", "-1e-1", "9007199254740993", "9223372036854775807", "12345678901234567890.0",
         "12345678901234567890123456789012345678e0", "1e125", "1E-130", "1.00000000000000000001"]
OPERATORS = {"=": operator.eq, "<": operator.lt, ">=": operator.ge}


def sluice(config):
    (folder / "sluice.json").write_text(config)
    return subprocess.run([f"{BUILD}/sluice", "replay", "--quiet", "items.jsonl"], cwd=folder, capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL)


def configuration(element):
    """Names and texts beside the condition have what ends a value elsewhere, and an escape."""
    where = '{"x": [' + element + "]}"
    return f"""{{"on_failure": "report", "routes": [
        {{"name": "n", "handler": "notify", "to": "jsonl:sent.jsonl", "message": "{{x}}", "when": {{"item": {where}}}}},
        {{"name": "r", "handler": "replicate", "to": "sqlite:out.db?table=copies", "where": {where}}},
        {{"name": "c", "handler": "aggregate", "to": "sqlite:out.db?table=totals", "ledger": {{"table": "ledger"}}, "counters": [
            {{"key": {{"PK": "no,]}}}}\\"[{{{{{{x}}"}}, "where": {{"PK": ["no"]}}, "add": {{"n": 1}}}},
            {{"add": {{"a,]": 1}}, "\\u0077here": {where}, "key": {{"PK": "{{PK}}"}}, "when": {{"x": {{"N": [{{"exists": true}}]}}}}}}]}}]}}"""


def keys(table):
    with sqlite3.connect(folder / "out.db") as db:
        return sorted(json.loads(item)["PK"]["S"] for (item,) in db.execute(f"SELECT item FROM {table}") if "sluice_deleted" not in item)


def ask(element, wanted):
    for name in ("sent.jsonl", "out.db"):
        (folder / name).unlink(missing_ok=True)
    run = sluice(configuration(element))
    sent = (folder / "sent.jsonl").read_text().split() if (folder / "sent.jsonl").exists() else []
    taken = sorted(json.loads(line) for line in sent), keys("copies"), keys("totals")
    check(f"{element}: the same everywhere", run.returncode == 0 and taken == (wanted,) * 3, f"{wanted}\n{taken}\n{run.stdout}{run.stderr}")


def main():
    with open(folder / "items.jsonl", "w", encoding="utf-8") as f:
        for n in NUMBERS:
            image = {"PK": {"S": n}, "x": {"N": n}}
            f.write(json.dumps({"eventName": "INSERT", "dynamodb": {"Keys": {"PK": {"S": n}}, "NewImage": image}}) + "\n")
    for asked in ASKED:
        ask(asked, sorted(n for n in NUMBERS if Decimal(n) == Decimal(asked)))
    for asked in ("0.1", "0.30000000000000000001", "12345678901234567890123456789012345678.0"):
        for name, compare in OPERATORS.items():
            ask(f'{{"numeric": ["{name}", {asked}]}}', sorted(n for n in NUMBERS if compare(Decimal(n), Decimal(asked))))
    run = sluice(configuration("12345678901234567890"))
    check("an integer beyond 64 bits: what to write instead", run.returncode == 2 and "with a point" in run.stderr, run.stderr)
    finish()


main()
