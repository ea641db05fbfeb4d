#!/usr/bin/env python3
"""The table that template.yaml makes for Athena, and the queries of docs/ANALYTICS.md, over archives that the handler writes: each
object lies where the projection looks, each member of a line is a column and the other way round, and each query gives what a
reading of the lines in Python gives. DuckDB reads as Glue's description of the table says."""
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
PYTHON = subprocess.run([TOP / "tests/support/python/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
if pathlib.Path(sys.prefix) != pathlib.Path(PYTHON).parent.parent:
    os.execv(PYTHON, [PYTHON, __file__])

import duckdb  # noqa: E402  in the environment of the readers

SLUICE = (TOP / os.environ.get("BUILD", "build") / "sluice").absolute()
STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-20T21:52:47.127"
GIVEN = {"SourceStreamArn": STREAM, "ArchiveBucketName": "cold", "AthenaDatabase": "orders", "ConfigFile": "archive.json"}
FORMATS = ("record", "item", "export")
RESOLVE = f"""import json, sys
sys.path.insert(0, {str(HERE)!r})
import template
print(json.dumps([template.resolve(given)[0] for given in json.load(sys.stdin)]))"""


def tables(*worlds):
    """What Glue gets, of each set of parameters."""
    sam = subprocess.run([HERE / "install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    done = subprocess.run([f"{sam}/bin/python", "-c", RESOLVE], input=json.dumps(worlds), check=True, stdout=subprocess.PIPE, text=True)
    return [resources["ArchiveQueryTable"]["Properties"]["TableInput"] for resources in json.loads(done.stdout)]


def archive(buckets):
    """What the handler writes below expired/, a bucket for each format, from the recorded stream; the target and the key are those
    of deploy/archive.json, with a folder in the place of the bucket."""
    shipped, = json.loads((TOP / "deploy/archive.json").read_text())["routes"]
    assert "key" not in shipped and shipped["handler"] == "archive"
    config = {"ttl_attribute": "expires_at", "on_failure": "report", "routes": [
        {"name": f, "handler": "archive", "to": shipped["to"].replace("s3://${ARCHIVE_BUCKET}", f"file:{buckets}/{f}"), "format": f,
         **({"when": shipped["when"]} if f == "item" else {})} for f in FORMATS]}
    path = buckets / "sluice.json"
    path.write_text(json.dumps(config))
    subprocess.run([SLUICE, "replay", "--config", path, TOP / "examples/capture/orders.jsonl.gz"], check=True, cwd=buckets,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
    for f in FORMATS:
        found = sorted((buckets / f).rglob("*.gz"))
        assert len(found) > 20, f"{f}: {len(found)} objects"
        # As after a retry that grouped records differently: each of these is in two objects.
        for n, again in enumerate(found[:3] + found[-3:]):
            shutil.copy(again, again.with_name(f"again-{n}{again.suffixes[-2]}.gz"))
    return sorted(buckets.rglob("*.gz"))


def lines(files):
    """[(dt, hour, line)] as Python reads them."""
    for path in files:
        dt, hour = (part.partition("=")[2] for part in path.parts[-3:-1])
        for text in gzip.decompress(path.read_bytes()).splitlines():
            yield dt, int(hour), json.loads(text)


# ---- where the table looks ----


def projected(parameters, name, text):
    """The value that a partition column has, if the projection renders it as `text`; None if it never does."""
    kind = parameters[f"projection.{name}.type"]
    low, high = parameters[f"projection.{name}.range"].split(",")
    if kind == "date":
        assert (parameters[f"projection.{name}.format"], high) == ("yyyy-MM-dd", "NOW")
        assert (parameters[f"projection.{name}.interval"], parameters[f"projection.{name}.interval.unit"]) == ("1", "DAYS")
        return text if re.fullmatch(r"\d{4}-\d\d-\d\d", text) and text >= low else None
    assert kind == "integer"
    digits = int(parameters[f"projection.{name}.digits"])
    return next((n for n in range(int(low), int(high) + 1) if f"{n:0{digits}}" == text), None)


def objects_lie_where_the_table_looks(world):
    parameters = world.table["Parameters"]
    assert parameters["projection.enabled"] == "true"
    place = re.escape(parameters["storage.location.template"])
    pattern = re.sub(r"\\\$\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", place)
    names = {row["Name"] for row in world.table["PartitionKeys"]}
    seen = set()
    for path in world.files:
        url = f"s3://cold/{path.relative_to(world.buckets).as_posix().partition('/')[2]}"
        found = re.fullmatch(pattern + "[^/]+", url)
        assert found and set(found.groupdict()) == names, f"{url} is not below {parameters['storage.location.template']}"
        assert all(projected(parameters, name, text) is not None for name, text in found.groupdict().items()), url
        assert url.startswith(world.table["StorageDescriptor"]["Location"])
        seen |= {found["hour"]}
    assert len(seen) > 1, "hours of one digit and of two look alike otherwise"
    # The first hours of a day have two digits as well.
    assert projected(parameters, "hour", "07") == 7 and projected(parameters, "hour", "7") is None and projected(parameters, "hour", "24") is None
    assert projected(parameters, "dt", "2025-12-31") is None, "AthenaSince"


def the_demonstrations_table_is_its_own(world):
    demonstration, since = tables({"AthenaDatabase": "orders"}, {**GIVEN, "AthenaSince": "NOW-2YEARS"})
    assert demonstration["Parameters"]["storage.location.template"] == "s3://<ArchiveBucket>/expired/<OrdersTable>/dt=${dt}/hour=${hour}/"
    assert since["Parameters"]["projection.dt.range"] == "NOW-2YEARS,NOW"
    assert demonstration["StorageDescriptor"]["Columns"] == world.table["StorageDescriptor"]["Columns"]


# ---- what it finds there ----


def members(world):
    """{column: member of a line}, as the SerDe maps them."""
    serde = world.table["StorageDescriptor"]["SerdeInfo"]
    assert serde["SerializationLibrary"] == "org.openx.data.jsonserde.JsonSerDe" and serde["Parameters"]["case.insensitive"] == "FALSE"
    names = [column["Name"] for column in world.table["StorageDescriptor"]["Columns"]]
    assert names == [name.lower() for name in names], "names are small in Glue"
    mapped = {name.removeprefix("mapping."): member for name, member in serde["Parameters"].items() if name.startswith("mapping.")}
    assert set(mapped) <= set(names) and all(name == member.lower() for name, member in mapped.items()), mapped
    return {name: mapped.get(name, name) for name in names}


def columns_are_members(world):
    written = {member for _, _, line in lines(world.files) for member in line}
    assert set(members(world).values()) == written, set(members(world).values()) ^ written
    assert {column["Type"] for column in world.table["StorageDescriptor"]["Columns"]} == {"string"}
    counts = world.query("SELECT " + ", ".join(f"count({name})" for name in members(world)) + " FROM orders.archive")[0]
    assert all(counts), dict(zip(members(world), counts))


def texts_keep_their_bytes(world):
    """Every image of the table is the image of a line, with names, cases and digits as they were."""
    found = collections.Counter(json.dumps(json.loads(text), sort_keys=True) for text, in
                                world.query("SELECT item FROM orders.archive WHERE item IS NOT NULL"))
    want = collections.Counter(json.dumps(line["Item"], sort_keys=True) for _, _, line in lines(world.files) if "Item" in line)
    assert found == want and any("PK" in item for item in found)


def describe(world, bucket):
    """orders.archive in DuckDB: the files of a bucket, or of all, as Glue describes the table."""
    mapped = members(world)
    kinds = {"string": "VARCHAR", "int": "INTEGER"}
    partitions = {row["Name"]: kinds[row["Type"]] for row in world.table["PartitionKeys"]}
    columns = ", ".join(f"\"{member}\": 'VARCHAR'" for member in mapped.values())
    world.connection.execute(f"""CREATE OR REPLACE VIEW orders.archive AS
        SELECT {', '.join(f'"{member}" AS {name}' for name, member in mapped.items())}, {', '.join(partitions)}
        FROM read_json('{world.buckets}/{bucket}/*/*/*/*/*.gz', format = 'newline_delimited', columns = {{{columns}}}, hive_partitioning = true,
                       hive_types = {{{', '.join(f"{name}: {kind}" for name, kind in partitions.items())}}})""")


# ---- the document's queries ----


def documented():
    """{title: query} of Athena's chapter."""
    chapter = re.search(r"^## Athena$(.*?)^## ", (TOP / "docs/ANALYTICS.md").read_text(), re.M | re.S).group(1)
    return {title: query for title, query in re.findall(r"^\*\*([^*]+)\*\*(?:[^`]|`[^`]+`)*?```sql shown\n(.*?)```", chapter, re.M | re.S)}


def number(line):
    return int(line["dynamodb"]["SequenceNumber"])


def expired_on_a_day(world, query):
    items = {json.dumps(line["Item"], sort_keys=True): line["Item"] for dt, _, line in lines(world.files) if "Item" in line and dt == "2026-11-20"}
    rows = {(item["PK"]["S"], item["SK"]["S"], item["total"]["N"]) for item in items.values()}
    want = sorted(rows, key=lambda row: (-float(row[2]), row[0], row[1]))[:5]
    got = world.query(query)
    assert [(pk, sk, float(total)) for pk, sk, total in got] == [(pk, sk, float(total)) for pk, sk, total in want], (got, want)


def history_of_an_item(world, query):
    key = dict(zip(("PK", "SK"), re.findall(r"Keys\.[PS]K\.S'\) = '([^']+)'", query)))
    changes = {line["eventID"]: line for _, _, line in lines(world.files) if "eventID" in line
               and {name: value["S"] for name, value in line["dynamodb"]["Keys"].items()} == key}
    want = [(line["eventName"], line["dynamodb"].get("NewImage", {}).get("version", {}).get("N"),
             line["dynamodb"].get("NewImage", {}).get("status", {}).get("S"), line.get("userIdentity", {}).get("principalId"))
            for line in sorted(changes.values(), key=number)]
    got = world.query(query)
    assert got == want and len(want) > 4, (got, want)


def changes_by_hour(world, query):
    seen = {(dt, hour, line["eventName"], line["eventID"]) for dt, hour, line in lines(world.files) if "eventID" in line}
    counted = collections.Counter(row[:3] for row in seen)
    got = world.query(query)
    assert got == sorted((*row, n) for row, n in counted.items()) and len(got) == 6, got


QUERIES = {"What expired on a day": (expired_on_a_day, "item"), "The history of an item": (history_of_an_item, "record"),
           "Changes by hour": (changes_by_hour, "record")}


def queries_say_what_the_lines_say(world):
    found = documented()
    assert set(found) == set(QUERIES), set(found) ^ set(QUERIES)
    for title, (compare, bucket) in QUERIES.items():
        describe(world, bucket)
        compare(world, found[title])


class World:
    def __init__(self, folder):
        self.buckets = folder
        self.files = archive(folder)
        self.table, = tables(GIVEN)
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 2")
        self.connection.execute("CREATE SCHEMA orders; CREATE MACRO json_extract_scalar(text, path) AS json_extract_string(text, path)")
        describe(self, "*")

    def query(self, text):
        return self.connection.execute(text).fetchall()


CASES = [objects_lie_where_the_table_looks, the_demonstrations_table_is_its_own, columns_are_members, texts_keep_their_bytes,
         queries_say_what_the_lines_say]


def main():
    subprocess.run(["make", "-s", "all"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        world = World(pathlib.Path(folder))
        for case in CASES:
            try:
                case(world)
            except AssertionError as wrong:
                sys.exit(f"{case.__name__}: {wrong}")
    print(f"{len(CASES)} passed, 0 failed")


main()
