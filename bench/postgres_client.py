"""psycopg on the records that bench_search writes: a guarded upsert in its pipeline mode, one transaction an event; and COPY into a staging
table with one merge, which is the floor. CPU of this process and time for each record. Run by bench/postgres.sh."""
import json
import sys
import time

import psycopg

UPSERT = """INSERT INTO psycopg AS t VALUES (%s, %s, %s::jsonb) ON CONFLICT ("PK", "SK") DO UPDATE SET item = excluded.item
WHERE NOT t.item ? 'sluice_order' OR (t.item->'sluice_order'->>'S') COLLATE "C" < excluded.item->'sluice_order'->>'S'"""
MERGE = UPSERT.replace("psycopg", "copied").replace("VALUES (%s, %s, %s::jsonb)", """SELECT DISTINCT ON (1, 2) * FROM staging
ORDER BY 1, 2, item->'sluice_order'->>'S' DESC""")


def rows(path):
    with open(path, encoding="utf-8") as file:
        for record in json.load(file)["Records"]:
            image = record["dynamodb"].get("NewImage")
            if image:
                key = record["dynamodb"]["Keys"]
                order = {"sluice_order": {"S": record["dynamodb"]["SequenceNumber"].rjust(40, "0")}}
                yield key["PK"]["S"], next(iter(key["SK"].values())), json.dumps({**image, **order})


def upsert(connection, path):
    n = 0
    with connection.transaction(), connection.pipeline(), connection.cursor() as cursor:
        for row in rows(path):
            cursor.execute(UPSERT, row)
            n += 1
    return n


def copy(connection, path):
    n = 0
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE staging (LIKE copied) ON COMMIT DROP")
        with cursor.copy("COPY staging FROM STDIN") as out:
            for row in rows(path):
                out.write_row(row)
                n += 1
        cursor.execute(MERGE)
    return n


def main():
    for name, write in (("psycopg's guarded upsert", upsert), ("COPY and one merge", copy)):
        with psycopg.connect("", autocommit=True) as connection:
            write(connection, sys.argv[1])
            began, used = time.perf_counter(), time.process_time()
            n = sum(write(connection, path) for path in sys.argv[2:])
            for what, value in (("its CPU", time.process_time() - used), ("elapsed", time.perf_counter() - began)):
                print(json.dumps({"figure": f"{name}, {what}", "value": round(value / n * 1e6, 2), "unit": "us/record"}))


main()
