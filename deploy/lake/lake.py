#!/usr/bin/env python3
"""Turns what an archive (format record) has that is new into Parquet: docs/ANALYTICS.md.

    lake.py --archive PLACE --lake PLACE [--columns NAME:TYPE,...]

LAKE/changes/*.parquet has each change once, by its event; LAKE/current/current.parquet the newest state of each item, by
sequence number. A place is a folder or s3://bucket/prefix. A run reads the archive's objects of which no change is in
LAKE/changes yet, so it may be killed at any moment, run again, and find objects that came late. One run at a time.

Exit status: 0; 2 a value does not fit its column, or what is asked for cannot be done; nothing of that batch was written."""
import argparse
import atexit
import hashlib
import importlib
import json
import os
import pathlib
import re
import sys
import tempfile

import duckdb

# A batch's objects are read, written and done, so this bounds what a killed run does again.
BATCH_OBJECTS = 2000
# A record's line: two images of 400 KB, each byte of which may be written with six.
LINE_BYTES = 16 * 1024 * 1024

JSON, VARCHAR = "JSON", "VARCHAR"
OWN = ["_event_id", "_event", "_time", "_order", "_removed_by", "_object", "_item", "_old_item"]
TYPES = {"text", "numeric", "bigint", "boolean", "bytea", "timestamptz", "timestamptz(ms)"}


class Refused(Exception):
    """One line for the operator."""


# ---- columns, as a target of PostgreSQL has them: docs/POSTGRES.md ----

class Column:
    def __init__(self, name, type_):
        self.name, self.type = name, type_
        number = re.fullmatch(r"numeric\((\d+)(?:,\s*(\d+))?\)", type_)
        if type_ not in TYPES and not number:
            raise Refused(f"--columns: {name}:{type_}: no such type: {', '.join(sorted(TYPES))}, numeric(DIGITS,SCALE)")
        self.digits, self.scale = (int(number[1]), int(number[2] or 0)) if number else (38, 9)
        if not 1 <= self.digits <= 38 or self.scale > self.digits:
            raise Refused(f"--columns: {name}:{type_}: DuckDB's DECIMAL has 38 digits at most, and no more of them after the point")
        self.base = "numeric" if number else type_

    def sql_type(self):
        return {"text": "VARCHAR", "bigint": "BIGINT", "boolean": "BOOLEAN", "bytea": "BLOB", "numeric": f"DECIMAL({self.digits},{self.scale})"
                }.get(self.base, "TIMESTAMPTZ")

    def sql(self, image):
        """The column's value, NULL if there is none or it does not fit."""
        def of(tag):
            return f"({image} ->> {quote(pointer(self.name, tag))})"
        text, number = of("S"), of("N")
        if self.base == "text":
            return text
        if self.base == "numeric":
            return f"TRY_CAST(exact({number}, {self.digits}, {self.scale}) AS {self.sql_type()})"
        if self.base == "bigint":
            return f"TRY_CAST(exact({number}, 19, 0) AS BIGINT)"
        if self.base == "boolean":
            return f"TRY_CAST({of('BOOL')} AS BOOLEAN)"
        if self.base == "bytea":
            return f"from_base64({of('B')})"
        unit = 1000 if self.type.endswith("(ms)") else 1000000
        moment = f"make_timestamptz(TRY_CAST(trunc(TRY_CAST({number} AS DECIMAL(38,9)) * {unit}) AS BIGINT))"
        return moment if unit == 1000 else f"coalesce(TRY_CAST({text} AS TIMESTAMPTZ), {moment})"

    def misfits(self, image):
        """Whether there is a value, and it does not fit."""
        attribute = f"({image} -> {quote(pointer(self.name))})"
        return f"({attribute} IS NOT NULL AND ({image} -> {quote(pointer(self.name, 'NULL'))}) IS NULL AND {self.sql(image)} IS NULL)"


def columns_of(text):
    columns, name = [], None
    for part in re.split(r",(?![^(]*\))", text) if text else []:
        name, _, type_ = part.strip().rpartition(":")
        if not name:
            raise Refused(f"--columns: {part!r} is not NAME:TYPE")
        columns.append(Column(name, type_))
    names = [c.name.lower() for c in columns]
    for column in columns:
        if names.count(column.name.lower()) > 1 or column.name.lower() in OWN:
            raise Refused(f"--columns: {column.name}: there are two of this name (DuckDB does not tell capitals from small letters)")
    return columns


# A number's digits without an exponent; and the same if a DECIMAL of so many digits holds all of them, else NULL. (A cast rounds.)
MACROS = r"""
CREATE OR REPLACE MACRO shifted(sign, digits, point) AS sign ||
    CASE WHEN point <= 0 THEN '0.' || repeat('0', -point) || digits
         WHEN point >= length(digits) THEN digits || repeat('0', point - length(digits))
         ELSE substring(digits, 1, point) || '.' || substring(digits, point + 1) END;
CREATE OR REPLACE MACRO plain(x) AS
    CASE WHEN regexp_full_match(x, '-?\d+(\.\d+)?') THEN x
         WHEN regexp_full_match(x, '-?\d+(\.\d+)?[eE][+-]?\d{1,3}') THEN
             shifted(regexp_extract(x, '^-?'), regexp_extract(x, '^-?(\d+)', 1) || regexp_extract(x, '\.(\d+)', 1),
                     length(regexp_extract(x, '^-?(\d+)', 1)) + CAST(regexp_extract(x, '[eE]([+-]?\d+)', 1) AS INTEGER)) END;
CREATE OR REPLACE MACRO exact_plain(t, digits, scale) AS
    CASE WHEN length(rtrim(regexp_extract(t, '\.(\d+)', 1), '0')) <= scale AND length(ltrim(regexp_extract(t, '^-?(\d+)', 1), '0')) <= digits - scale
         THEN rtrim(rtrim(regexp_extract(t, '^-?\d+(\.\d+)?'), CASE WHEN t LIKE '%.%' THEN '0' ELSE '' END), '.') END;
CREATE OR REPLACE MACRO exact(x, digits, scale) AS exact_plain(plain(x), digits, scale);
"""


# ---- SQL ----

def quote(text):
    return "'" + text.replace("'", "''") + "'"


def name_of(column):
    return '"' + column.replace('"', '""') + '"'


def pointer(*names):
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def list_of(texts):
    return "[" + ", ".join(map(quote, texts)) + "]"


class Lake:
    def __init__(self, archive, lake, columns, connection, lenient=False, say=print):
        self.archive, self.place = archive.rstrip("/"), lake.rstrip("/")
        self.columns, self.lenient, self.say = columns_of(columns), lenient, say
        self.declared = columns or ""
        self.db = connection
        self.db.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        self.db.execute(MACROS)
        self.is_local = "://" not in self.place
        if self.is_local:
            for folder in ("changes", "current"):
                pathlib.Path(self.place, folder).mkdir(parents=True, exist_ok=True)

    def rows(self, query):
        return self.db.execute(query).fetchall()

    def files(self, pattern):
        return sorted(file for file, in self.rows(f"SELECT file FROM glob({quote(pattern)})"))

    def write(self, query, path, metadata="{}"):
        """The file is there whole, or not at all."""
        target = f"{path}.new" if self.is_local else path
        self.db.execute(f"COPY ({query}) TO {quote(target)} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{sluice: {quote(metadata)}}})")
        if self.is_local:
            with open(target, "rb") as file:
                os.fsync(file.fileno())
            os.replace(target, path)

    # ---- changes ----

    def new_objects(self, changes):
        objects = [o for o in self.files(f"{self.archive}/**") if re.search(r"\.jsonl(\.gz)?$", o) and "/_sluice/" not in o]
        if not changes:
            return objects
        known = {o for o, in self.rows(f"SELECT DISTINCT _object FROM read_parquet({list_of(changes)}, union_by_name = true)")}
        known |= {o for text, in self.rows(f"SELECT decode(value) FROM parquet_kv_metadata({list_of(changes)}) WHERE decode(key) = 'sluice'")
                  for o in json.loads(text).get("objects", [])}
        return [o for o in objects if o not in known]

    def read(self, objects):
        """The batch's records become the table `records`."""
        self.db.execute(f"""
            CREATE OR REPLACE TEMP TABLE records AS
            SELECT eventID, eventName, filename, userIdentity ->> '$.principalId' AS principal, dynamodb -> '$.Keys' AS keys,
                   dynamodb -> '$.NewImage' AS new_image, dynamodb -> '$.OldImage' AS old_image,
                   TRY_CAST(dynamodb ->> '$.ApproximateCreationDateTime' AS DECIMAL(38,6)) AS created, dynamodb ->> '$.SequenceNumber' AS number
            FROM read_json({list_of(objects)}, format = 'newline_delimited', filename = true, maximum_object_size = {LINE_BYTES},
                           columns = {{eventID: 'VARCHAR', eventName: 'VARCHAR', userIdentity: 'VARCHAR', dynamodb: 'VARCHAR', sluice_erased: 'VARCHAR'}})
            WHERE sluice_erased IS NULL""")
        for wrong, why in (("eventID IS NULL OR keys IS NULL", "is not in the archive's format \"record\""),
                           ("eventName <> 'REMOVE' AND new_image IS NULL", "has no new image: the lake needs a stream with NEW_IMAGE or both images"),
                           ("number IS NULL AND created IS NULL", "has neither a sequence number nor a time")):
            found = self.rows(f"SELECT filename, eventID FROM records WHERE {wrong} LIMIT 1")
            if found:
                raise Refused(f"{found[0][0]}: the record {found[0][1]} {why}")

    def key_names(self):
        names = {tuple(sorted(n)) for n, in self.rows("SELECT DISTINCT json_keys(keys) FROM records")}
        if len(names) > 1:
            raise Refused(f"{self.archive}: has items with different keys, {' and '.join(map(str, sorted(names)))}: name the place of one table's objects")
        return list(names.pop())

    def check_fit(self):
        for column in self.columns:
            found = self.rows(f"""SELECT count(*), min(filename), any_value(eventID), any_value(new_image ->> {quote(pointer(column.name))})
                                  FROM records WHERE {column.misfits('new_image')}""")
            n, file, event, value = found[0]
            if not n:
                continue
            line = f"{column.name}:{column.type} does not take {value} (in {n} records; {file}, event {event})"
            if not self.lenient:
                raise Refused(f"{line}: declare another type, or more digits after the point; or pass --lenient, and they are NULL in the column")
            self.say(f"lake: {line}: NULL", file=sys.stderr)

    def add_changes(self, objects, changes):
        self.read(objects)
        if self.rows("SELECT count(*) FROM records")[0][0]:
            keys = self.key_names()
            self.check_fit()
        else:
            keys = []
        typed = [c for c in self.columns if c.name not in keys]
        key_columns = ", ".join(f"coalesce(keys ->> {quote(pointer(k, 'S'))}, keys ->> {quote(pointer(k, 'N'))}, keys ->> {quote(pointer(k, 'B'))}) AS {name_of(k)}"
                                for k in keys)
        value_columns = ", ".join(f"{c.sql('new_image')} AS {name_of(c.name)}" for c in typed)
        once = ""
        if changes:
            once = f"""WHERE eventID NOT IN (SELECT _event_id FROM read_parquet({list_of(changes)}, union_by_name = true)
                                             WHERE _time BETWEEN (SELECT min({TIME}) FROM records) AND (SELECT max({TIME}) FROM records) OR _time IS NULL)"""
        query = f"""
            SELECT eventID AS _event_id, eventName AS _event, {TIME} AS _time, {ORDER} AS _order,
                   CASE WHEN eventName = 'REMOVE' THEN coalesce(principal, 'user or TTL') END AS _removed_by, filename AS _object,
                   {', '.join(filter(None, [key_columns, value_columns]))}{', ' if keys or typed else ''}
                   new_image AS _item, old_image AS _old_item
            FROM (SELECT DISTINCT ON (eventID) * FROM records {once}) ORDER BY _time, _order"""
        digest = hashlib.sha256("\n".join(objects).encode()).hexdigest()[:32]
        path = f"{self.place}/changes/{digest}.parquet"
        # Objects that hold nothing new leave no row, and are known by the file's metadata.
        self.write(query, path, json.dumps({"objects": objects, "keys": keys}))
        return path

    # ---- the newest state ----

    def metadata(self, file):
        rows = self.rows(f"SELECT decode(value) FROM parquet_kv_metadata({quote(file)}) WHERE decode(key) = 'sluice'")
        return json.loads(rows[0][0]) if rows else {}

    def keys(self, changes):
        """The names of the key's attributes, as the first file that has changes says them."""
        return next(filter(None, (self.metadata(c).get("keys") for c in changes)), None)

    def make_current(self, changes):
        path = f"{self.place}/current/current.parquet"
        have = self.files(f"{self.place}/current/*.parquet")
        before = self.metadata(path) if have else {}
        if before.get("columns") != self.declared:
            before = {}
        added = [c for c in changes if c not in set(before.get("changes", []))]
        if not added:
            return
        keys = self.keys(changes)
        if not keys:
            return
        typed = [c for c in self.columns if c.name not in keys]
        own = ", ".join(name_of(k) for k in keys)
        shape = f"{own}, {''.join(name_of(c.name) + ', ' for c in typed)}"
        made = f"{own}, {''.join(c.sql('_item') + ' AS ' + name_of(c.name) + ', ' for c in typed)}"
        newest = f"""SELECT {made} _item, _event = 'REMOVE' AS _removed, _time, _order
                     FROM read_parquet({list_of(added)}, union_by_name = true)"""
        if before:
            newest += f" UNION ALL SELECT {shape} _item, _removed, _time, _order FROM read_parquet({quote(path)})"
        self.write(f"SELECT {shape} _item, _removed, _time, _order FROM ({newest}) QUALIFY row_number() OVER (PARTITION BY {own} ORDER BY _order DESC) = 1 ORDER BY {own}",
                   path, json.dumps({"changes": changes, "columns": self.declared}))

    # ---- an Iceberg table: the newest state, without items that are gone ----

    def merge(self, options, warehouse, table):
        """Brings the table of a REST catalog up to date: what is older there is replaced, so running it again changes nothing."""
        current = self.files(f"{self.place}/current/*.parquet")
        if not current:
            return 0
        keys = self.keys(self.files(f"{self.place}/changes/*.parquet"))
        schema, _, name = table.rpartition(".")
        if not schema:
            raise Refused(f"--iceberg-table {table}: write NAMESPACE.TABLE")
        if os.environ.get("ICEBERG_TOKEN"):
            self.db.execute(f"CREATE OR REPLACE SECRET (TYPE iceberg, TOKEN {quote(os.environ['ICEBERG_TOKEN'])})")
        self.db.execute(f"ATTACH {quote(warehouse)} AS iceberg (TYPE iceberg, {options})")
        target = f"iceberg.{name_of(schema)}.{name_of(name)}"
        source = f"read_parquet({list_of(current)})"
        columns = [(c, t) for c, t, *_ in self.rows(f"DESCRIBE SELECT * EXCLUDE (_removed) FROM {source}")]
        self.db.execute(f"CREATE SCHEMA IF NOT EXISTS iceberg.{name_of(schema)}")
        self.db.execute(f"CREATE TABLE IF NOT EXISTS {target} ({', '.join(f'{name_of(c)} {t if t != JSON else VARCHAR}' for c, t in columns)})")
        there = [c for c, *_ in self.rows(f"DESCRIBE {target}")]
        if sorted(there) != sorted(c for c, _ in columns):
            raise Refused(f"--iceberg-table {table}: has the columns {', '.join(there)}, not {', '.join(c for c, _ in columns)}: name another table")
        on = " AND ".join(f"t.{name_of(k)} = s.{name_of(k)}" for k in keys)
        self.db.execute(f"""
            CREATE OR REPLACE TEMP TABLE newer AS
            SELECT s.* FROM {source} AS s LEFT JOIN (SELECT {', '.join(map(name_of, keys))}, _order FROM {target}) AS t ON {on}
            WHERE CASE WHEN t._order IS NULL THEN NOT s._removed ELSE t._order < s._order END""")
        n, = self.rows("SELECT count(*) FROM newer")[0]
        values = [c for c, _ in columns if c not in keys]
        # (DuckDB takes one kind of change of what is there in a MERGE.)
        steps = {"s._removed": "WHEN MATCHED THEN DELETE",
                 "NOT s._removed": f"""WHEN MATCHED THEN UPDATE SET {', '.join(f'{name_of(c)} = s.{name_of(c)}' for c in values)}
                                       WHEN NOT MATCHED THEN INSERT ({', '.join(name_of(c) for c, _ in columns)})
                                                             VALUES ({', '.join(f's.{name_of(c)}' for c, _ in columns)})"""}
        for which, what in steps.items():
            if self.rows(f"SELECT count(*) FROM newer AS s WHERE {which}")[0][0]:
                self.db.execute(f"MERGE INTO {target} AS t USING (SELECT * FROM newer AS s WHERE {which}) AS s ON {on} {what}")
        self.db.execute("DETACH iceberg")
        return n

    def run(self):
        changes = self.files(f"{self.place}/changes/*.parquet")
        objects = self.new_objects(changes)
        for i in range(0, len(objects), BATCH_OBJECTS):
            changes.append(self.add_changes(objects[i:i + BATCH_OBJECTS], changes))
        self.make_current(sorted(changes))
        return len(objects)


# Seconds from DynamoDB Streams, finer through Kinesis.
TIME = "make_timestamptz(CAST(created * CASE WHEN created < 100000000000 THEN 1000000 WHEN created < 100000000000000 THEN 1000 ELSE 1 END AS BIGINT))"
ORDER = "lpad(coalesce(number, CAST(epoch_us(" + TIME + ") AS VARCHAR)), 40, '0')"


def load(connection, name):
    """An extension: of PyPI, beside DuckDB; else from DuckDB's own site."""
    try:
        module = importlib.import_module(f"duckdb_extension_{name}")
        extension, = pathlib.Path(module.__file__).parent.glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD {quote(str(extension))}")
    except ImportError:
        connection.execute(f"INSTALL {name}; LOAD {name}")


def connect(places, with_iceberg=False):
    connection = duckdb.connect()
    spill = tempfile.TemporaryDirectory(prefix="lake-")
    atexit.register(spill.cleanup)
    connection.execute(f"SET temp_directory = {quote(spill.name)}")
    connection.execute("SET enable_progress_bar = false")  # (which it has where no script runs: on standard output, after two seconds)
    for name in ("avro", "iceberg") if with_iceberg else ():
        load(connection, name)
    if not with_iceberg and not any(place.startswith("s3://") for place in places):
        return connection
    load(connection, "httpfs")
    given = os.environ
    if "AWS_ACCESS_KEY_ID" not in given:
        raise Refused('no credentials in the environment: eval "$(aws configure export-credentials --format env)"')
    options = {"KEY_ID": given["AWS_ACCESS_KEY_ID"], "SECRET": given["AWS_SECRET_ACCESS_KEY"], "SESSION_TOKEN": given.get("AWS_SESSION_TOKEN"),
               "REGION": given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION")}
    endpoint = given.get("AWS_ENDPOINT_URL_S3") or given.get("AWS_ENDPOINT_URL")
    if endpoint:
        scheme, _, host = endpoint.rstrip("/").partition("://")
        options.update(ENDPOINT=host, URL_STYLE="path", USE_SSL=str(scheme == "https").lower())
    connection.execute(f"CREATE SECRET (TYPE s3, {', '.join(f'{name} {quote(text)}' for name, text in options.items() if text)})")
    return connection


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--archive", required=True, help="what the route writes to, down to one table: s3://bucket/records/orders")
    parser.add_argument("--lake", required=True, help="where the Parquet files are")
    parser.add_argument("--columns", default="", help="NAME:TYPE,...: as in a target of PostgreSQL, and numeric(DIGITS,SCALE)")
    parser.add_argument("--lenient", action="store_true", help="a value that does not fit its column is NULL there")
    parser.add_argument("--iceberg", metavar="OPTIONS", help="also MERGE the newest state into a table of a REST catalog: what DuckDB's ATTACH takes, "
                        "ENDPOINT 'https://...', AUTHORIZATION_TYPE 'none'; a token is in ICEBERG_TOKEN")
    parser.add_argument("--warehouse", default="", help="the catalog's")
    parser.add_argument("--iceberg-table", default="", help="NAMESPACE.TABLE")
    given = parser.parse_args(arguments)
    try:
        lake = Lake(given.archive, given.lake, given.columns, connect((given.archive, given.lake), given.iceberg), given.lenient)
        n = lake.run()
        merged = lake.merge(given.iceberg, given.warehouse, given.iceberg_table) if given.iceberg else 0
    except (Refused, duckdb.Error) as why:
        print(f"lake: {why}", file=sys.stderr)
        return 2
    print(f"{n} objects of {given.archive} were new" + (f"; {merged} rows of {given.iceberg_table} were brought up to date" if given.iceberg else ""))
    return 0


def handler(event, context):
    """In Lambda: {"archive": ..., "lake": ..., "columns": ...}, and "iceberg", "warehouse" and "iceberg_table" as the flags."""
    del context
    iceberg = event.get("iceberg")
    lake = Lake(event["archive"], event["lake"], event.get("columns", ""), connect((event["archive"], event["lake"]), iceberg), event.get("lenient", False))
    done = {"objects": lake.run()}
    return {**done, "merged": lake.merge(iceberg, event["warehouse"], event["iceberg_table"])} if iceberg else done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
