#!/usr/bin/env python3
"""The examples, replayed: what is in their tables is what their last items say, computed here in another way, and what their tables of
results (expected.tsv) say; a history that is delivered again changes nothing; `sluice check` has no warning. BLESS=1 writes expected.tsv."""
import collections
import datetime
import gzip
import hashlib
import hmac
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
from decimal import Decimal

from harness import BUILD, check, finish

KEYS = {"PSEUDONYM_KEY": "not a secret: this is an example", "BALLOT_KEY": "nor is this one"}
SETTINGS = {"shop": ["PSEUDONYM_KEY"], "photos": [], "votes": ["BALLOT_KEY"]}


def plain(value):
    ((tag, inner),) = value.items()
    if tag == "M":
        return {name: plain(member) for name, member in inner.items()}
    if tag == "L":
        return [plain(element) for element in inner]
    return Decimal(inner) if tag == "N" else inner


def history(name):
    with gzip.open(f"examples/{name}/history.jsonl.gz", "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def fold(records):
    items = {}
    for record in records:
        key = tuple(record["dynamodb"]["Keys"][k]["S"] for k in ("PK", "SK"))
        items.pop(key, None)
        if "NewImage" in record["dynamodb"]:
            items[key] = {k: plain(v) for k, v in record["dynamodb"]["NewImage"].items()}
    return items


def pseudonym(key, text):
    return hmac.new(KEYS[key].encode(), text.encode(), hashlib.sha256).hexdigest()


def changes(records):
    for record in records:
        new, old = ({k: plain(v) for k, v in record["dynamodb"].get(image, {}).items()} for image in ("NewImage", "OldImage"))
        yield record["eventName"], old, new


class Totals:
    """Groups and what they hold: sums, and sets of different values."""

    def __init__(self):
        self.rows = collections.defaultdict(lambda: collections.defaultdict(Decimal))
        self.values = collections.defaultdict(set)
        self.members = {}

    def add(self, key, distinct=None, **amounts):
        for name, amount in amounts.items():
            self.rows[key][name] += amount
        for name, value in (distinct or {}).items():
            self.values[key, name].add(value)

    def member(self, key, item, by):
        self.members[(*key, item["PK"], item["SK"])] = {"by": by, "item": {"PK": item["PK"], "SK": item["SK"]}}

    def all(self):
        rows = {key: dict(row) for key, row in self.rows.items()}
        for (key, name), values in self.values.items():
            rows[key][name] = Decimal(len(values))
        return {**rows, **self.members}


# ---- the oracles ----


def shop(items, records):
    totals, analytics = Totals(), {}
    for (pk, sk), item in items.items():
        if sk[:5] == "ITEM#":
            totals.add((f"PRODUCT#{sk[5:]}", "sold"), lines=1, pieces=item["pieces"])
        if sk[:6] != "ORDER#":
            continue
        totals.add((f"DAY#{item['created'][:10]}", "orders"), {"customers": pk}, orders=1, revenue=item["total"])
        totals.add((f"STATUS#{item['status'].lower()}", "orders"), orders=1, revenue=item["total"])
        if item["status"] != "CANCELLED":
            totals.add(("BEST", "orders"), orders=1)
            totals.member(("BEST", "orders"), item, item["total"])
        row = {k: v for k, v in item.items() if k != "email"}
        row["card"] = {"type": item["card"]["type"]}
        row["lines"] = [{"sku": line["sku"], "pieces": line["pieces"]} for line in item["lines"]]
        row["day"], row["number"] = item["created"][:10], Decimal(sk[-4:])
        row["customer"] = pseudonym("PSEUDONYM_KEY", item["email"].strip().lower())[:16]
        analytics[pk, sk] = row
    large = []
    for event, old, new in changes(records):
        if event == "MODIFY" and new.get("total", 0) > 100 >= old.get("total", 1000):
            lines = [{**line, "pieces": int(line["pieces"])} for line in new["lines"]]
            large.append({"order": new["SK"][-4:], "total": float(new["total"]), "lines": lines})
    return {"totals": totals.all(), "analytics": analytics}, {"large": large}


def photos(items, records):
    totals, public = Totals(), {}
    for (pk, sk), item in items.items():
        if pk.startswith("REACTION#"):
            totals.add((sk, "REACTIONS#" + pk.split("#")[2]), n=1)
        if sk.startswith("#FRIEND#"):
            totals.add(("USER#" + sk[8:], "followers"), n=1)
        if not (sk.startswith("PHOTO#") and pk.startswith("USER#")):
            continue
        city = item.get("location", {}).get("city", "nowhere").strip().lower()
        size = Decimal(item["size"]) if item["size"] != "unknown" else 0
        totals.add((f"MONTH#{sk[-20:-13]}", "photos"), {"photographers": pk, "places": city}, n=1, bytes=size)
        totals.add((f"TOP#{city}", "views"), n=1)
        totals.member((f"TOP#{city}", "views"), item, item.get("views", Decimal(0)))
        if "private" in item:
            continue
        taken = datetime.datetime.strptime(sk[-20:], "%Y-%m-%dT%H:%M:%SZ")
        row = {**item, "user": pk[5:], "taken": Decimal(f"{taken:%Y%m%d%H%M%S}"), "caption": item["caption"].strip()[:12]}
        row["day"] = f"{taken + datetime.timedelta(hours=9):%Y-%m-%d}"
        row["tags"] = [{"name": tag["name"]} for tag in item["tags"]]
        if "location" in row:
            row["location"] = {"city": item["location"]["city"]}
        public[row["user"], row["taken"]] = row
    friends = [f"{new['PK'][5:]} follows {new['SK'][8:]}" for event, _, new in changes(records) if event == "INSERT" and new["SK"].startswith("#FRIEND#")]
    return {"totals": totals.all(), "public": public}, {"friends": friends}


def votes(items, records):
    tally, ballots = Totals(), {}
    for (pk, sk), item in items.items():
        if not sk.startswith("VOTE#"):
            continue
        choice, at = item["choice"].strip().lower(), datetime.datetime.fromtimestamp(int(item["at"]) // 1000, datetime.timezone.utc)
        tally.add((pk, f"CHOICE#{choice}"), votes=1, weight=Decimal(item.get("weight", 1)))
        tally.add((pk, f"HOUR#{at:%Y-%m-%dT%H}"), votes=1)
        tally.add((pk, f"REGION#{item.get('region', 'unknown').upper()}"), votes=1)
        tally.add((pk, "turnout"), {"voters": sk.split("#")[1]}, votes=1)
        key = pk, pseudonym("BALLOT_KEY", sk)[:32]
        ballots[key] = {"PK": key[0], "SK": key[1], "choice": choice, "hour": f"{at:%Y-%m-%d %H}:00"}
    changed = [f"{new['PK'][5:]}: from {old['choice'].strip().lower()} to {new['choice'].strip().lower()}"
               for event, old, new in changes(records) if event == "MODIFY" and old.get("choice") != new.get("choice")]
    return {"tally": tally.all(), "ballots": ballots}, {"changed": changed}


ORACLES = {"shop": shop, "photos": photos, "votes": votes}


# ---- what is there ----


def rows_of(database, table):
    """Rows by their keys; those of members by their group and item. The rows of the handlers' own do not count."""
    found, last = {}, None
    for (text,) in database.execute(f"SELECT item FROM {table} ORDER BY key"):
        row = {k: plain(v) for k, v in json.loads(text).items()}
        if "item" in row:
            group = row["PK"], row["SK"].split("#")[0]
            check("members are in order", not last or last[0] != group or last[1] <= row["by"], text)
            last = group, row["by"]
            found[(*group, row["item"]["PK"], row["item"]["SK"])] = {"by": row["by"], "item": row["item"]}
        elif not str(row.get("PK", "")).startswith("sluice:"):
            key = (row["user"], row["taken"]) if "taken" in row else (row["PK"], row["SK"])
            is_total = table in ("totals", "tally")
            found[key] = {k: v for k, v in row.items() if not is_total or k not in ("PK", "SK")}
    return found


def as_text(value):
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {as_text(value[k])}" for k in sorted(value)) + "}"
    return "[" + ", ".join(map(as_text, value)) + "]" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def table_of_results(tables):
    lines = []
    for name, rows in tables.items():
        for key in sorted(rows, key=lambda key: [as_text(part) for part in key]):
            lines.append("\t".join([name, " ".join(part if isinstance(part, str) else as_text(part) for part in key), as_text(rows[key])]) + "\n")
    return "".join(lines)


def replay(name, environment):
    run = subprocess.run([f"{BUILD}/sluice", "replay", "--config", f"examples/{name}/sluice.json", f"examples/{name}/history.jsonl.gz"],
                         env=environment, capture_output=True, text=True, timeout=600)
    check(f"{name} is replayed", run.returncode == 0, run.stdout + run.stderr)


def main():
    for name, oracle in ORACLES.items():
        records = history(name)
        items = fold(records)
        tables, messages = oracle(items, records)
        check(f"{name}: the oracle has something of everything", all(tables.values()) and all(messages.values()))
        with tempfile.TemporaryDirectory() as out:
            environment = {**os.environ, "OUT": out, **{key: KEYS[key] for key in SETTINGS[name]}}
            run = subprocess.run([f"{BUILD}/sluice", "check", f"examples/{name}/sluice.json"], env=environment, capture_output=True, text=True, timeout=600)
            check(f"{name}: sluice check has no warning", run.returncode == 0 and " 0 warnings" in run.stdout, run.stdout + run.stderr)
            replay(name, environment)
            database = sqlite3.connect(f"{out}/{name}.db")
            for table, rows in tables.items():
                got = rows_of(database, table)
                for key in sorted({*rows, *got}, key=str):
                    check(f"{name}: {table}: {key}", rows.get(key) == got.get(key), f"expected {rows.get(key)}, is {got.get(key)}")
            for target, lines in messages.items():
                got = [json.loads(line) for line in pathlib.Path(f"{out}/{target}.jsonl").read_text(encoding="utf-8").splitlines()]
                check(f"{name}: {target}", got == lines, f"expected {lines}, is {got}")
            check(f"{name}: nothing is parked", not pathlib.Path(f"{out}/failed.jsonl").read_text())
            before = {table: rows_of(database, table) for table in tables}
            replay(name, environment)
            check(f"{name}: the same again changes nothing", before == {table: rows_of(database, table) for table in tables})
            database.close()
        expected = pathlib.Path(f"examples/{name}/expected.tsv")
        if os.environ.get("BLESS"):
            expected.write_text(table_of_results(tables), encoding="utf-8")
        check(f"{name}: its table of results", expected.read_text(encoding="utf-8") == table_of_results(tables))
    finish()


main()
