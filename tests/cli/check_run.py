#!/usr/bin/env python3
"""The main job, held against what the capture's table held: `sluice replay` of examples/capture with
examples/orders/sluice.json, through the real bootstrap into the embedded sinks."""
import collections
import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
from decimal import Decimal

BUILD = os.environ.get("BUILD", "build")
CAPTURE = pathlib.Path("examples/capture")
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {detail}")
    passed += 1


def replay(out, *flags):
    return subprocess.run(
        [f"{BUILD}/sluice", "replay", "--config", "examples/orders/sluice.json", *flags, str(CAPTURE / "orders.jsonl.gz")],
        env={**os.environ, "OUT": str(out)}, capture_output=True, timeout=600)


def lines_of(folder):
    """The lines of all objects, in the objects' order."""
    for path in sorted(folder.rglob("*.gz")):
        with gzip.open(path, "rb") as f:
            yield from f.read().splitlines()


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.gz")}


def key(attributes):
    return json.dumps({k: attributes[k] for k in ("PK", "SK")}, sort_keys=True)


def norm(item):
    """Item text with the order of names, and of sets' members, taken out."""
    def walk(v):
        (tag, inner), = v.items()
        if tag == "M":
            return ("M", {k: walk(x) for k, x in inner.items()})
        if tag == "L":
            return ("L", [walk(x) for x in inner])
        return (tag, sorted(inner) if tag in ("SS", "NS", "BS") else inner)
    return {k: walk(v) for k, v in item.items()}


def check_archives(out, records):
    archived = collections.Counter(lines_of(out / "archive/records"))
    check("every record is in the archive exactly once, byte for byte", archived == collections.Counter(records),
          f"{len(records)} records, {sum(archived.values())} lines")
    expired = [json.loads(l) for l in gzip.open(CAPTURE / "orders.expired.jsonl.gz")]
    seen = collections.Counter(key(json.loads(l)["Item"]) for l in lines_of(out / "archive/expired"))
    check("the archive of expired items holds what expired", seen == collections.Counter(key(k.get("Keys", k)) for k in expired),
          f"{sum(seen.values())} of {len(expired)}")
    check("nothing half-written is left", not [p for p in (out / "archive").rglob("*") if p.is_file() and p.suffix != ".gz"])


def check_tables(out, scan):
    db = sqlite3.connect(out / "orders.db")
    replica = {}
    for (text,) in db.execute("select item from orders"):
        item = json.loads(text)
        if "sluice_deleted" in item:
            continue
        replica[key(item)] = norm({k: v for k, v in item.items() if not k.startswith("sluice_")})
    source = {key(i): norm(i) for i in scan}
    check("the replica equals the table", replica == source, f"{len(replica)} items, {len(source)} in the table")
    totals = collections.defaultdict(lambda: [0, Decimal(0)])
    for item in scan:
        if "S" in item.get("status", {}) and "N" in item.get("total", {}):
            totals[item["status"]["S"]][0] += 1
            totals[item["status"]["S"]][1] += Decimal(item["total"]["N"])
    for (text,) in db.execute("select item from totals"):
        item = json.loads(text)
        name = item["PK"]["S"]
        if not name.startswith("STATUS#") or "orders" not in item:
            continue
        want = totals.pop(name[7:], [0, Decimal(0)])
        got = [int(item["orders"]["N"]), Decimal(item["revenue"]["N"])]
        check(f"the totals of {name} are exact", got == want, f"{got}, should be {want}")
    check("no total is missing", not totals, str(dict(totals)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        records = gzip.open(CAPTURE / "orders.jsonl.gz").read().splitlines()
        scan = [json.loads(l)["Item"] for l in gzip.open(CAPTURE / "orders.scan.jsonl.gz")]
        run = replay(out, "--report-failures")
        check("exits 0", run.returncode == 0, run.stderr.decode())
        check("counts the records", f"records in {len(records):>13}".encode() in run.stdout, run.stdout.decode())
        check("nothing was parked", (out / "failed.jsonl").read_bytes() == b"")
        check_archives(out, records)
        check_tables(out, scan)
        # The whole stream is delivered again, in other batches, with lost answers and killed processes.
        before = contents(out / "archive/records")
        run = replay(out, "--report-failures", "--fault", "die@20%,lost@20%,crash@10%", "--seed", "7", "--bisect")
        check("again, with faults: exits 0", run.returncode == 0, run.stderr.decode())
        check_tables(out, scan)
        check("the same batches have the same names and bytes",
              all(contents(out / "archive/records").get(k) == v for k, v in before.items()))
    print(f"{passed} passed")


main()
