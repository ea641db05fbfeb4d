#!/usr/bin/env python3
"""`sluice verify` on counts of different values, members in order and delta rows: each kind of damage is found, and only that."""
import json
import sqlite3
import subprocess

from harness import BUILD, check, finish, record, work_folder, write_event

folder = work_folder()
SOURCE = {"name": "replica", "handler": "replicate", "to": "sqlite:src.db?table=orders"}
COUNTERS = [{"key": {"PK": "ALL", "SK": "-"}, "add": {"items": 1, "sum": "{n}"}, "distinct": {"values": "{n}", "people": "{PK}"},
             "members": {"by": "{n}"}}]
TOTALS = {"name": "totals", "handler": "aggregate", "to": "sqlite:out.db?table=totals", "ledger": {"table": "ledger"},
          "counters": COUNTERS}


def sluice(verb, *args):
    run = subprocess.run([f"{BUILD}/sluice", verb, *args], cwd=folder, capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
    run.out, run.err = run.stdout.decode(), run.stderr.decode()
    run.text = f"exit {run.returncode}\n{run.out}\n{run.err}"
    return run


def findings():
    run = sluice("verify", "--config", "totals.json", "--table", "sqlite:src.db?table=orders", "--max-lag", "0", "--json")
    lines = [json.loads(line) for line in run.out.splitlines() if line.startswith("{")]
    return run, sorted((f["kind"], f.get("attribute", "")) for f in lines if f.get("result") == "different" and "kind" in f)


def rows(table, like):
    with sqlite3.connect(folder / "out.db") as db:
        return db.execute(f'SELECT key, item FROM "{table}" WHERE key LIKE ? ORDER BY key', (like,)).fetchall()


def put(table, *pairs):
    with sqlite3.connect(folder / "out.db") as db:
        for key, item in pairs:
            if item is None:
                db.execute(f'DELETE FROM "{table}" WHERE key = ?', (key,))
            else:
                db.execute(f'INSERT OR REPLACE INTO "{table}" VALUES (?, ?)', (key, item))


def damage(what, table, changes, wanted):
    before = [(key, next((i for k, i in rows(table, "%") if k == key), None)) for key, _ in changes]
    put(table, *changes)
    run, found = findings()
    check(f"{what}: found", found == wanted and run.returncode == 1, f"{found}\n{run.text}")
    put(table, *before)


def main():
    write_event(folder / "in.json", [record(n) for n in range(1, 11)])
    for name, route in (("source.json", SOURCE), ("totals.json", TOTALS)):
        (folder / name).write_text(json.dumps({"routes": [route], "on_failure": "report"}))
        run = sluice("replay", "--config", name, "in.json")
        check(f"{name} is made", run.returncode == 0, run.text)
    run, found = findings()
    check("all is equal", run.returncode == 0 and found == [], run.text)
    (total,), members = rows("totals", '%"SK":{"S":"-"}%'), rows("totals", '%"-#%')
    values = rows("ledger", "%sluice:distinct:totals:%values%")
    check("there are rows of members and values", len(members) == 10 and len(values) == 10, f"{members}\n{values}")
    check("the count of values", json.loads(total[1])["values"] == {"N": "10"}, total)
    key, item = members[3]
    damage("a member is missing", "totals", [(key, None)], [("members", "")])
    damage("a member is left over", "totals", [(key.replace("-#p", "-#p9"), item.replace("-#p", "-#p9"))], [("members", "")])
    damage("a member has moved", "totals", [(key, None), (key.replace("-#p", "-#p9"), item.replace("-#p", "-#p9"))], [("members", "")])
    key, item = values[3]
    damage("a value is missing", "ledger", [(key, None)], [("sum", "values"), ("values", "values")])
    damage("a value is counted twice", "ledger", [(key, item.replace('"n":{"N":"1"}', '"n":{"N":"2"}'))], [("values", "values")])
    damage("a value is left over", "ledger", [(key.replace("sluice:distinct:totals:", "sluice:distinct:totals:x"),
                                               item.replace('"value":{"N":"', '"value":{"N":"77'))], [("sum", "values"), ("values", "values")])
    damage("the count is wrong", "totals", [(total[0], total[1].replace('"values":{"N":"10"}', '"values":{"N":"9"}'))], [("sum", "values")])
    words = total[0], total[1].replace('"values":{"N":"10"}', '"values":{"N":"9"}')
    put("totals", words)
    run = sluice("repair", "--config", "totals.json", "--table", "sqlite:src.db?table=orders", "--max-lag", "0", "--totals")
    check("a count is repaired", json.loads(rows("totals", '%"SK":{"S":"-"}%')[0][1])["values"] == {"N": "10"}, run.text)
    put("totals", total, (members[0][0], None))
    run = sluice("verify", "--config", "totals.json", "--table", "sqlite:src.db?table=orders", "--max-lag", "0")
    check("in words", "members of {" in run.out and "their rows are not those that the ledgers name" in run.out, run.text)
    put("totals", members[0])
    # What a process that was killed before its fold leaves: counted in the ledger, and not in the totals yet.
    held = json.loads(total[1])
    held["items"]["N"], held["sum"]["N"] = "7", str(int(held["sum"]["N"]) - 6)
    terms = {"L": [{"M": {"key": {"M": {"PK": {"S": "ALL"}, "SK": {"S": "-"}}}, "add": {"M": {"items": {"N": "3"}, "sum": {"N": "6"}}}}}]}
    delta = json.dumps({"PK": {"S": "sluice:delta:totals:5"}, "sluice_delta": {"S": "x"}, "sluice_sums": terms})
    put("totals", (total[0], json.dumps(held)))
    put("ledger", ('{"PK":{"S":"sluice:delta:totals:5"}}', delta))
    run, found = findings()
    check("a delta row is a part of its total", run.returncode == 0 and found == [], run.text)
    run = sluice("replay", "--config", "totals.json", "in.json")
    check("who finds its records done folds it", json.loads(rows("totals", '%"SK":{"S":"-"}%')[0][1]) == json.loads(total[1])
          and not rows("ledger", "%sluice:delta:%"), run.text)
    finish()


main()
