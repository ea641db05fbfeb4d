#!/usr/bin/env python3
"""`sluice manifest`: the capture's archive becomes an incremental export that tells exactly what the table holds, with the counts and
checksums that readers check; the same archive makes the same export; and replaying it fills a replica."""
import base64
import gzip
import hashlib
import json
import pathlib
import sqlite3
import subprocess

import harness
from harness import BUILD, finish, work_folder

folder = work_folder()
archive, capture = folder / "out", pathlib.Path("examples/capture")
SCAN = {(i["PK"]["S"], i["SK"]["S"]): i for i in (json.loads(line)["Item"] for line in gzip.open(capture / "orders.scan.jsonl.gz"))}


def check(fine, what):
    harness.check(what, fine)


def sluice(*arguments):
    return subprocess.run([f"{BUILD}/sluice", *map(str, arguments)], capture_output=True, text=True, timeout=600)


def config(name, **route):
    (folder / name).write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True,
                                           "routes": [{"name": "r", **route}]}))
    return folder / name


def plain(value):
    (kind, content), = value.items()
    if kind in ("SS", "NS", "BS"):
        return {kind: sorted(content)}
    if kind == "L":
        return {kind: [plain(v) for v in content]}
    return {kind: {n: plain(v) for n, v in content.items()}} if kind == "M" else value


def same(a, b):
    return {n: plain(v) for n, v in a.items()} == {n: plain(v) for n, v in b.items()}


def files_of(export):
    return sorted((str(p.relative_to(export)), p.read_bytes()) for p in export.rglob("*") if p.is_file())


# ---- what is refused ----

done = sluice("manifest", folder)
check(done.returncode == 2 and "no object of format export" in done.stderr, f"an empty folder: {done.stderr}")
(folder / "bad").mkdir()
(folder / "bad" / "x.json").write_text('{"Item":{"PK":{"S":"a"}}}\n')
done = sluice("manifest", folder / "bad")
check(done.returncode == 2 and "line 1 is not a line of an incremental export" in done.stderr, f"an item: {done.stderr}")
check(not (folder / "bad" / "AWSDynamoDB").exists(), "a refused archive leaves something")
check(sluice("manifest").returncode == 2, "no folder")

# ---- the export ----

done = sluice("replay", "--config", config("archive.json", handler="archive", to=f"file:{archive}", format="export"),
              capture / "orders.jsonl.gz")
check(done.returncode == 0, f"the archive: {done.stderr}")
done = sluice("manifest", "--bucket", "b", "--s3-prefix", "a/b", "--table-arn", "arn:aws:dynamodb:eu-west-1:1:table/orders", archive)
check(done.returncode == 0, f"the manifest: {done.stderr}")
export = archive / "AWSDynamoDB"
summaries = list(export.glob("*/manifest-summary.json"))
check(len(summaries) == 1, "one export")
summary, home = json.loads(summaries[0].read_bytes()), summaries[0].parent
check(len(home.name.split("-")[0]) == 14 and (home / "_started").exists(), f"the id: {home.name}")
for name in ("manifest-summary", "manifest-files"):
    md5 = base64.b64encode(hashlib.md5((home / f"{name}.json").read_bytes()).digest()).decode()
    check((home / f"{name}.md5").read_text() == md5 == (home / f"{name}.checksum").read_text(), f"{name}: its checksum")
entries = [json.loads(line) for line in (home / "manifest-files.json").read_text().splitlines()]
check(sum(e["itemCount"] for e in entries) == summary["itemCount"], "the counts")
check(summary["exportType"] == "INCREMENTAL_EXPORT" and summary["outputView"] == "NEW_AND_OLD_IMAGES", f"the summary: {summary}")
check(summary["manifestFilesS3Key"] == f"a/b/AWSDynamoDB/{home.name}/manifest-files.json", "where the files' manifest is")

lines = []
for entry in entries:
    data = (archive / entry["dataFileS3Key"].removeprefix("a/b/")).read_bytes()
    check(base64.b64encode(hashlib.md5(data).digest()).decode() == entry["md5Checksum"], "a data file's checksum")
    of_file = [json.loads(line) for line in gzip.decompress(data).splitlines()]
    check(len(of_file) == entry["itemCount"], "a data file's count")
    lines += of_file

# ---- what it tells ----

keys = [(line["Keys"]["PK"]["S"], line["Keys"]["SK"]["S"]) for line in lines]
check(len(set(keys)) == len(keys), "an item has two lines")
left = {k: line["NewImage"] for k, line in zip(keys, lines) if "NewImage" in line}
check(left.keys() == SCAN.keys() and all(same(left[k], SCAN[k]) for k in left), "what is left is not what the table holds")
check(all("OldImage" not in line for line in lines), "the capture begins with an empty table: nothing was there before")
check(len(lines) == len(SCAN), "what was made and removed has a line")

before = files_of(export)
check(sluice("manifest", "--bucket", "b", "--s3-prefix", "a/b", "--table-arn", "arn:aws:dynamodb:eu-west-1:1:table/orders",
             archive).returncode == 0 and files_of(export) == before, "again, it is another export")

done = sluice("replay", "--config", config("replica.json", handler="replicate", to=f"sqlite:{folder}/db?table=replica", guard="none"),
              *sorted((export / "data").glob("*.json.gz")))
check(done.returncode == 0, f"replaying the export: {done.stderr}")
rows = [json.loads(row) for row, in sqlite3.connect(folder / "db").execute("SELECT item FROM replica")]
check(len(rows) == len(SCAN) and all(same(r, SCAN[r["PK"]["S"], r["SK"]["S"]]) for r in rows), "the replica is not the table")

# ---- an item that was there before, and one that went ----


def line(second, sequence, key, new=None, old=None):
    out = {"Metadata": {"WriteTimestampMicros": {"N": str(second * 10**6)}, "SequenceNumber": {"S": sequence}}, "Keys": {"PK": {"S": key}}}
    return out | ({"NewImage": {"PK": {"S": key}, "v": {"N": new}}} if new else {}) | ({"OldImage": {"PK": {"S": key}, "v": {"N": old}}} if old else {})


(folder / "small").mkdir()
(folder / "small" / "b.json").write_text("".join(json.dumps(x) + "\n" for x in (
    line(5, "10", "a", "3", "2"), line(6, "11", "b", None, "1"), line(5, "10", "a", "3", "2"))))
(folder / "small" / "c.json").write_text("".join(json.dumps(x) + "\n" for x in (
    line(5, "9", "a", "2", "1"), line(4, "8", "b", "1", "0"), line(7, "12", "c", "1"), line(7, "13", "c", None, "1"))))
for wrong in ("orders", "arn:aws:s3:::b", "arn:aws:dynamodb:eu-west-1:1:table/orders/export/1"):
    done = sluice("manifest", "--table-arn", wrong, folder / "small")
    check(done.returncode == 2 and f"--table-arn {wrong}: is not a table's ARN" in done.stderr, f"{wrong}: {done.stderr}")
done = sluice("manifest", folder / "small")
check(done.returncode == 0 and "does not name the table and the bucket: give --table-arn and --bucket" in done.stderr, f"the small one: {done.stderr}")
summary = json.loads(next((folder / "small" / "AWSDynamoDB").glob("*/manifest-summary.json")).read_text())
check(all(summary[name] is None for name in ("tableArn", "exportArn", "s3Bucket")), f"what nobody said is not there: {summary}")
data, = (folder / "small" / "AWSDynamoDB" / "data").iterdir()
got = {x["Keys"]["PK"]["S"]: x for x in map(json.loads, gzip.open(data))}
check(got == {"a": line(5, "10", "a", "3", "1"), "b": line(6, "11", "b", None, "0")}, f"the fold: {got}")
finish()
