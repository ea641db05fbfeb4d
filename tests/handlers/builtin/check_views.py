#!/usr/bin/env python3
"""The three views of docs/VIEWS.md, as they stand there (and the one without `each` without lists, too), on random histories of their tables: changes of keys, elements that come, go
and change, records that are parked and come long after, others that come again late; and a second process, which writes the same
view at the same time and is killed. What the real command makes of them is what the items at the end make, by oracles that are
written here. Then `sluice verify` says the same."""
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
ITEMS, CHANGES = 25, 400
ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/source/stream/2026-01-01T00:00:00.000"


def configs():
    text = pathlib.Path("docs/VIEWS.md").read_text(encoding="utf-8")
    return [json.loads(block) for block in re.findall(r"```json config\n(.*?)```", text, re.S)]


def joined(*values):
    return "#".join(v.replace("%", "%25").replace("#", "%23") for v in values)


# ---- each example: how its items change, and what rows they make ----


def order(draw, pk, old):
    lines = [dict(line["M"]) for line in old["lines"]["L"]] if old and "lines" in old else []
    for _ in range(draw.randint(0, 3)):
        what = draw.random()
        if what < 0.5 and len(lines) < 9:
            ids = {line["id"]["S"] for line in lines}
            lines.insert(draw.randint(0, len(lines)), {"id": {"S": draw.choice([i for i in "abcdefghij#" if i not in ids])}, "sku": {"S": f"S{draw.randint(0, 5)}"},
                                                       "qty": {"N": str(draw.randint(1, 3))}})
        elif lines and what < 0.7:
            lines.pop(draw.randrange(len(lines)))
        elif lines and what < 0.9:
            draw.choice(lines)["sku"] = {"S": f"S{draw.randint(0, 5)}"}
        else:
            draw.shuffle(lines)
    item = {"PK": pk, "customer": {"S": draw.choice(["ann", "bob"])}, "touched": {"N": str(draw.randint(0, 99))}}
    return item if draw.random() < 0.1 else item | {"lines": {"L": [{"M": line} for line in lines]}}


def order_rows(item):
    for line in (element["M"] for element in item.get("lines", {"L": []})["L"]):
        yield {"PK": {"S": "PRODUCT#" + line["sku"]["S"]}, "SK": {"S": "ORDER#" + joined(item["PK"]["S"], line["id"]["S"])}, "qty": line["qty"], "customer": item["customer"]}


def user(draw, pk, old):
    item = dict(old or {"PK": pk, "name": {"S": "n"}})
    if draw.random() < 0.6:
        item["email"] = {"S": draw.choice(["Ann@x.org ", "ann@x.org", "bob@x.org", " C@x.org"])}
    elif draw.random() < 0.3:
        item.pop("email", None)
    return item | {"seen": {"N": str(draw.randint(0, 99))}, "name": {"S": draw.choice("nm")}}


def user_rows(item):
    if "email" in item:
        yield {"PK": {"S": item["email"]["S"].strip(" \t\r\n").lower()}, "SK": item["PK"], "email": item["email"], "name": item["name"]}


def group(draw, pk, old):
    item = {"PK": pk, "created": {"S": draw.choice(["2026-01-01", "2026-02-01"])}, "state": {"S": draw.choice(["ACTIVE", "ACTIVE", "CLOSED"])}}
    members = draw.sample([f"u{i}" for i in range(8)], draw.randint(0, 6))
    return item | ({"members": {"SS": members}} if members else {})


def group_rows(item):
    for member in item.get("members", {"SS": []})["SS"]:
        if item["state"]["S"] == "ACTIVE":
            yield {"PK": {"S": member}, "SK": item["PK"], "since": item["created"]}


EXAMPLES = [(order, order_rows), (user, user_rows), (group, group_rows)]


# ---- histories ----


def history(draw, change):
    table, records = {}, []
    for n in range(CHANGES):
        pk = {"S": draw.choice(["k#", "k%", "k"]) + str(draw.randrange(ITEMS))}
        old = table.get(pk["S"])
        new = None if old and draw.random() < 0.2 else change(draw, pk, old)
        event = "REMOVE" if not new else "MODIFY" if old else "INSERT"
        images = ({"OldImage": old} if old else {}) | ({"NewImage": new} if new else {})
        records.append({"eventID": f"e{n}", "eventName": event, "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1", "eventSourceARN": ARN,
                        "dynamodb": {"Keys": {"PK": pk}, "SequenceNumber": f"{10**20 + n}", "SizeBytes": 1, "StreamViewType": "NEW_AND_OLD_IMAGES"} | images})
        if new:
            table[pk["S"]] = new
        else:
            table.pop(pk["S"], None)
    return table, records


def as_delivered(draw, records):
    """Some come much later than they should, and some once more."""
    places = [(n + (draw.uniform(20, 200) if draw.random() < 0.1 else 0), n) for n in range(len(records))]
    places += [(n + draw.uniform(0, 150), n) for n in draw.sample(range(len(records)), len(records) // 5)]
    return [records[n] for _, n in sorted(places)]


# ---- running ----


def run(folder, *words):
    done = subprocess.run([f"{BUILD}/sluice", *words], cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"FAIL {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(config, change, rows_of, seed):
    draw = random.Random(seed)
    table, records = history(draw, change)
    route = config["routes"][0]
    view = route["to"].removeprefix("dynamodb://")
    with tempfile.TemporaryDirectory() as where:
        folder = pathlib.Path(where)
        route["to"] = f"sqlite:db?table={view}"
        (folder / "sluice.json").write_text(json.dumps(config | {"on_failure": "jsonl:failed.jsonl"}))
        (folder / "in.jsonl").write_text("".join(json.dumps(r) + "\n" for r in as_delivered(draw, records)))
        (folder / "rival.jsonl").write_text("".join(json.dumps(r) + "\n" for r in as_delivered(draw, records)))
        rival = subprocess.Popen([f"{BUILD}/sluice", "replay", "--quiet", "--batch-size", "5", "rival.jsonl"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env={**os.environ, "TMPDIR": where})  # what a killed process leaves
        killer = threading.Timer(draw.uniform(0, 0.4), rival.kill)
        killer.start()
        run(folder, "replay", "--batch-size", str(draw.choice([1, 7, 100])), "in.jsonl")
        killer.cancel()
        rival.kill()
        rival.wait()
        if (folder / "failed.jsonl").exists() and (folder / "failed.jsonl").read_text():
            sys.exit(f"FAIL {route['name']}, seed {seed}: {(folder / 'failed.jsonl').read_text()[:500]}")
        with sqlite3.connect(folder / "db") as db:
            got = [json.loads(row) for (row,) in db.execute(f'SELECT item FROM "{view}"')]
            db.execute("CREATE TABLE source (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID")
            db.executemany("INSERT INTO source VALUES (?, ?)", [(json.dumps({"PK": i["PK"]}, separators=(",", ":")), json.dumps(i)) for i in table.values()])
        got = [row for row in got if "sluice_deleted" not in row]
        for row in got:
            assert row["sluice_of"]["M"]["key"]["M"]["PK"]["S"] in table, row
            del row["sluice_of"]
            row.pop("sluice_order", None)
        wanted = [row for item in table.values() for row in rows_of(item)]
        if sorted(map(json.dumps, map(lambda r: dict(sorted(r.items())), got))) != sorted(map(json.dumps, map(lambda r: dict(sorted(r.items())), wanted))):
            sys.exit(f"FAIL {route['name']}, seed {seed}: expected {wanted}, is {got}")
        said = run(folder, "verify", "--table", "sqlite:db?table=source", "--max-lag", "0")
        if f"result: {len(table)} equal, 0 different" not in said:
            sys.exit(f"FAIL {route['name']}, seed {seed}: {said}")
    return 1 + len(wanted)


def main():
    seed, cases, passed = int(os.environ.get("SEED", "1")), int(os.environ.get("CASES", "3")), 0
    examples = configs()
    assert len(examples) == len(EXAMPLES)
    guarded = json.loads(json.dumps(examples[1]))
    guarded["routes"][0]["list"] = False
    for config, (change, rows_of) in [*zip(examples, EXAMPLES), (guarded, EXAMPLES[1])]:
        for n in range(cases):
            passed += check(json.loads(json.dumps(config)), change, rows_of, seed + n)
    print(f"{passed} passed")


main()
