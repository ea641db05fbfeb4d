#!/usr/bin/env python3
"""deploy/lake against a model: random archives, of which objects come late and twice, with kills; every number with all its digits."""
import decimal
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests/cli")]
PYTHON = subprocess.run([TOP / "tests/support/python/install.sh"], check=True, capture_output=True, text=True).stdout.strip()
if pathlib.Path(sys.prefix) != pathlib.Path(PYTHON).parent.parent:
    os.execv(PYTHON, [PYTHON, *sys.argv])

import duckdb  # noqa: E402  in the environment of the readers
from harness import WHOLE, check, finish, kills, work_folder  # noqa: E402
from history_world import World, item, put, read  # noqa: E402

kills()
folder = work_folder()
LAKE = TOP / "deploy/lake/lake.py"
COLUMNS = "attr0:text,n:numeric(38,3),flag:boolean"


def write(objects, place):
    for key, body in objects.items():
        path = place / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def command(archive, lake, *args, columns=COLUMNS):
    return [PYTHON, str(LAKE), "--archive", str(archive), "--lake", str(lake), "--columns", columns, *args]


def run(*args, status=0, **more):
    done = subprocess.run(command(*args, **more), capture_output=True, text=True, timeout=600)
    check("exit status", done.returncode == status, done.stdout + done.stderr)
    return done


def rows(query):
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    return db.execute(query).fetchall()


def newest(objects):
    """{key: (sequence number, image)} of all items that there ever were."""
    out = {}
    for record in sorted(read(objects), key=lambda r: int(r["dynamodb"]["SequenceNumber"])):
        out[item(record["dynamodb"]["Keys"])] = (record["dynamodb"]["SequenceNumber"], record["dynamodb"].get("NewImage"))
    return out


def value(image, name, tag):
    return (image or {}).get(name, {}).get(tag)


def same(what, objects, lake, keys):
    """Both files are what the objects say."""
    have = rows(f"SELECT _event_id, _event, _order, _item, _old_item, attr0, n FROM '{lake}/changes/*.parquet'")
    want = {r["eventID"]: r for r in read(objects)}
    check(f"{what}: each change once", sorted(h[0] for h in have) == sorted(want), (len(have), len(want)))
    for event, name, order, new, old, attr, number in have:
        body = want[event]["dynamodb"]
        check("a change", (name, order.lstrip("0"), item(new and json.loads(new)), item(old and json.loads(old))) ==
              (want[event]["eventName"], body["SequenceNumber"], item(body.get("NewImage")), item(body.get("OldImage"))), event)
        n = value(body.get("NewImage"), "n", "N")
        check("its columns", (attr, number) == (value(body.get("NewImage"), "attr0", "S"), n and decimal.Decimal(n)), (attr, number, body))
    names = ", ".join(f'"{k}"' for k in keys)
    have = rows(f"SELECT _order, _item, _removed, attr0, n, {names} FROM '{lake}/current/current.parquet'")
    states = newest(objects)
    check(f"{what}: each item once", len(have) == len(states), (len(have), len(states)))
    want = {number: image for number, image in states.values()}
    for order, image, removed, attr, number, *key in have:
        its = want[order.lstrip("0")]
        check("an item", (item(image and json.loads(image)), removed) == (item(its), its is None), order)
        n = value(its, "n", "N")
        check("its columns", (attr, number) == (value(its, "attr0", "S"), n and decimal.Decimal(n)), (attr, number))
        if its:
            check("its key", list(key) == [next(iter(its[k].values())) for k in keys], key)


def world_of(seed, keys):
    """All keys of one form, as in a table."""
    world = World(seed, changes=0)
    world.keys = [({k: {"S": f"{k}{i}"} if k != "n2" else {"N": str(i)} for k in keys},) * 2 for i in range(40)]
    for n in range(900):
        world.add(1790000000 + n * 120, 10**20 + n)
    return world


def late_and_twice():
    for seed, keys in enumerate((("PK",), ("PK", "SK"), ("PK", "n2"), ("weird 'name'/~\"x\"",))):
        if seed == 3:
            keys = ("weird 'name'/~x",)
        place, lake = folder / f"archive{seed}", folder / f"lake{seed}"
        world = world_of(seed, keys)
        everything = sorted(world.objects().items())
        random.Random(seed).shuffle(everything)
        objects = {}
        for part in range(4):
            objects.update(everything[part::4])
            if part:
                _, record = world.changes[random.Random(part).randrange(300)]
                put(objects, world.table, [record])
            write(objects, place)
            run(place / world.table, lake)
            same(f"world {seed}, part {part}", objects, lake, keys)
        before = {path: path.stat().st_mtime_ns for path in lake.rglob("*.parquet")}
        check("nothing new is nothing to do", "0 objects" in run(place / world.table, lake).stdout)
        check("and nothing is written", before == {path: path.stat().st_mtime_ns for path in lake.rglob("*.parquet")})


def killed():
    keys = ("PK", "SK")
    place, lake = folder / "archive-k", folder / "lake-k"
    world = world_of(9, keys)
    objects = world.objects(most=4)
    write(objects, place)
    rng = random.Random(4)
    ended = 0
    for _ in range(12):
        process = subprocess.Popen(command(place / world.table, lake), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.05, 0.6))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            ended += 1
        process.wait()
        if ended % 3 == 0:
            _, record = world.changes[rng.randrange(len(world.changes))]
            put(objects, world.table, [record])
            write(objects, place)
    run(place / world.table, lake)
    same(f"after {ended} kills", objects, lake, keys)


def one(place, images):
    """An archive of items with these attributes."""
    world = World(1, changes=0)
    objects = {}
    for n, attributes in enumerate(images):
        record = {"eventID": f"{n:032x}", "eventName": "INSERT", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
                  "dynamodb": {"ApproximateCreationDateTime": 1790000000 + n, "Keys": {"PK": {"S": f"k{n}"}}, "SequenceNumber": str(10**20 + n),
                               "NewImage": {"PK": {"S": f"k{n}"}, **attributes}, "StreamViewType": "NEW_IMAGE"},
                  "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"}
        put(objects, world.table, [record])
    write(objects, place)


def types():
    """Each type's values, and what it does not take."""
    cases = [
        ("numeric(38,9)", ["0", "-0", "1", "-1.5", "12345678901234567890123456789.123456789", "1E+2", "1.5e-3", "100.000", "1e-9", "1.23E28", "0.000000001", "5E0"],
         ["1e29", "0.0000000001", "1e-10", "123456789012345678901234567890"], decimal.Decimal),
        ("numeric", ["1.123456789"], ["1.1234567891"], decimal.Decimal),
        ("numeric(38,0)", ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "1e37", "7.0"], ["1e38", "0.1"], decimal.Decimal),
        ("numeric(5,2)", ["999.99", "-999.990", "0.01"], ["1000", "0.001"], decimal.Decimal),
        ("bigint", ["9223372036854775807", "-9223372036854775808", "1e3"], ["9223372036854775808", "1.5"], int),
    ]
    for i, (type_, fits, others, of) in enumerate(cases):
        place, lake = folder / f"types{i}", folder / f"types-lake{i}"
        one(place, [{"v": {"N": text}} for text in fits])
        run(place / "orders", lake, columns=f"v:{type_}")
        have = rows(f"SELECT v FROM '{lake}/changes/*.parquet' ORDER BY _time")
        want = [of(decimal.Decimal(text)) for text in fits]
        check(f"{type_}", [v for v, in have] == want, (have, want))
        for k, text in enumerate(others):
            one(folder / f"types{i}-{k}", [{"v": {"N": text}}])
            done = run(folder / f"types{i}-{k}/orders", folder / "none", status=2, columns=f"v:{type_}")
            check(f"{type_} does not take {text}", text in done.stderr and f"v:{type_}" in done.stderr and "--lenient" in done.stderr, done.stderr)
            check("nothing is written", not list((folder / "none").rglob("*.parquet")))
    place, lake = folder / "all", folder / "all-lake"
    one(place, [{"t": {"S": "ü\u0000\"'"}, "b": {"BOOL": True}, "y": {"B": "AAE="}, "z": {"N": "1790000000.25"}, "m": {"N": "1790000000123"}},
                {"t": {"NULL": True}, "z": {"S": "2026-11-20T21:04:00.5+01:00"}}, {"z": {"S": "2026-11-20T21:04:00"}}, {}])
    run(place / "orders", lake, columns="t:text,b:boolean,y:bytea,z:timestamptz,m:timestamptz(ms)")
    have = rows(f"SELECT t, b, y, epoch_us(z), epoch_us(m) FROM '{lake}/current/current.parquet' ORDER BY PK")
    check("the other types", have == [("ü\0\"'", True, b"\0\1", 1790000000250000, 1790000000123000), (None, None, None, 1795205040500000, None),
                                      (None, None, None, 1795208640000000, None), (None,) * 5], have)
    for columns, wrong in (("t:bigint", {"t": {"S": "7"}}), ("t:text", {"t": {"N": "7"}}), ("t:boolean", {"t": {"S": "true"}}), ("t:timestamptz", {"t": {"S": "soon"}}),
                           ("t:bytea", {"t": {"S": "AAE="}}), ("t:timestamptz(ms)", {"t": {"S": "2026-11-20"}})):
        place = folder / f"wrong-{columns.split(':')[1]}"
        one(place, [wrong])
        run(place / "orders", folder / "none", status=2, columns=columns)
        done = run(place / "orders", folder / f"{place.name}-lake", "--lenient", columns=columns)
        check("--lenient says what it leaves out", "NULL" in done.stderr, done.stderr)
        check("and the item keeps it", json.loads(rows(f"SELECT _item FROM '{folder}/{place.name}-lake/current/*.parquet'")[0][0])["t"] == wrong["t"])
    for columns in ("t", "t:float", "t:numeric(39,0)", "t:numeric(3,4)", "t:text,T:text", ":text", "_item:text"):
        done = run(place / "orders", folder / "none", status=2, columns=columns)
        check(f"--columns {columns} is refused", "--columns" in done.stderr, done.stderr)


def other_columns_later():
    place, lake = folder / "later", folder / "later-lake"
    one(place, [{"a": {"S": "x"}, "b": {"N": "2.50"}}])
    run(place / "orders", lake, columns="a:text")
    one(place, [{"a": {"S": "x"}, "b": {"N": "2.50"}}, {"a": {"S": "y"}, "b": {"N": "3"}}])
    run(place / "orders", lake, columns="b:numeric(10,2),a:text")
    have = rows(f"SELECT PK, a, b FROM '{lake}/current/current.parquet' ORDER BY PK")
    check("columns that came later are those of all items", have == [("k0", "x", decimal.Decimal("2.5")), ("k1", "y", decimal.Decimal(3))], have)


def what_is_no_archive():
    place = folder / "items"
    (place / "orders").mkdir(parents=True)
    (place / "orders/x.jsonl").write_text('{"Item":{"PK":{"S":"a"}}}\n')
    check("another format is named", "record" in run(place / "orders", folder / "none", status=2).stderr)
    two = folder / "two"
    one(two, [{}])
    (two / "orders/x.jsonl").write_text(json.dumps({"eventID": "e", "eventName": "INSERT", "dynamodb": {
        "Keys": {"OTHER": {"S": "a"}}, "NewImage": {"OTHER": {"S": "a"}}, "SequenceNumber": "1", "ApproximateCreationDateTime": 1}}) + "\n")
    check("two tables are named", "different keys" in run(two / "orders", folder / "none", status=2).stderr)
    old = folder / "old"
    (old / "orders").mkdir(parents=True)
    (old / "orders/x.jsonl").write_text(json.dumps({"eventID": "e", "eventName": "MODIFY", "dynamodb": {
        "Keys": {"PK": {"S": "a"}}, "SequenceNumber": "1", "ApproximateCreationDateTime": 1}}) + "\n")
    check("a stream without images is named", "no new image" in run(old / "orders", folder / "none", status=2).stderr)


def on_s3():
    """The same with both places in a bucket (moto)."""
    from servers import Servers
    servers = Servers("moto")
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.env}
    servers.s3("PUT", "/lake")
    keys = ("PK", "SK")
    world = world_of(20, keys)
    everything, objects = sorted(world.objects().items()), {}
    for part in range(2):
        objects.update(everything[part::2])
        for name, body in everything[part::2]:
            servers.s3("PUT", f"/lake/records/{name}", body)
        done = subprocess.run(command("s3://lake/records/orders", "s3://lake/parquet"), env=env, capture_output=True, text=True, timeout=600)
        check("S3: exit status", done.returncode == 0, done.stdout + done.stderr)
        copy = folder / f"from-s3-{part}"
        for name in ("changes", "current"):
            (copy / name).mkdir(parents=True)
        for name in re.findall(r"<Key>parquet/([^<]+)</Key>", servers.s3("GET", "/lake?prefix=parquet/")):
            _, body = servers.request(servers.env["MOTO_ENDPOINT"], "s3", "GET", f"/lake/parquet/{name}", None, {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"})
            (copy / name).write_bytes(body)
        same(f"S3, part {part}", objects, copy, keys)
    done = subprocess.run(command("s3://lake/records/orders", "s3://lake/parquet"), env={k: v for k, v in env.items() if "KEY" not in k}, capture_output=True, text=True)
    check("without credentials it says so", done.returncode == 2 and "no credentials" in done.stderr, done.stderr)


def iceberg():
    """The newest state in a table of Iceberg's own REST catalog, with its files in a bucket (moto): as the model says, after every merge."""
    from servers import Servers
    servers = Servers("moto")
    servers.s3("PUT", "/warehouse")
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.env}
    path = subprocess.run([TOP / "tests/package/iceberg/install.sh"], check=True, capture_output=True, text=True).stdout.strip()
    catalog = subprocess.Popen(["java", "-Xmx256m", "-cp", path, "Catalog", "s3://warehouse/tables"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(catalog.stdout.readline())
    keys, place, lake = ("PK", "n2"), folder / "ice", folder / "ice-lake"
    more = ("--iceberg", f"ENDPOINT 'http://127.0.0.1:{port}', AUTHORIZATION_TYPE 'none'", "--warehouse", "w", "--iceberg-table", "shop.orders")
    world = world_of(30, keys)
    everything, objects = sorted(world.objects().items()), {}
    random.Random(30).shuffle(everything)
    read_back = f"""
import duckdb, json, sys
sys.path.insert(0, {str(LAKE.parent)!r})
import lake
db = lake.connect((), True)
db.execute("ATTACH 'w' AS iceberg (TYPE iceberg, {more[1]})")
print(json.dumps(db.execute("SELECT _order, _item, attr0, CAST(n AS VARCHAR), PK, n2 FROM iceberg.shop.orders").fetchall()))"""
    for part in range(3):
        objects.update(everything[part::3])
        write(objects, place)
        for again in range(2):
            done = subprocess.run(command(place / world.table, lake, *more), env=env, capture_output=True, text=True, timeout=600)
            check("Iceberg: exit status", done.returncode == 0, done.stdout + done.stderr)
            check("a second time nothing is brought up to date", (" 0 rows of shop.orders" in done.stdout) == bool(again), done.stdout)
        done = subprocess.run([PYTHON, "-c", read_back], env=env, capture_output=True, text=True, timeout=600)
        check("it is read", done.returncode == 0, done.stderr)
        have = {order.lstrip("0"): (item(json.loads(image)), attr, n and decimal.Decimal(n), pk, n2) for order, image, attr, n, pk, n2 in json.loads(done.stdout)}
        want = {}
        for number, image in newest(objects).values():
            if image:
                n = value(image, "n", "N")
                want[number] = (item(image), value(image, "attr0", "S"), n and decimal.Decimal(n), image["PK"]["S"], image["n2"]["N"])
        check(f"Iceberg, part {part}: the items that there are, each once", have == want, (len(have), len(want)))
    done = subprocess.run(command(place / world.table, lake, *more, columns="attr0:text"), env=env, capture_output=True, text=True, timeout=600)
    check("other columns need another table", done.returncode == 2 and "name another table" in done.stderr, done.stderr)
    catalog.stdin.close()
    catalog.wait(timeout=600)
    done = subprocess.run(command(place / world.table, lake, *more), env=env, capture_output=True, text=True, timeout=600)
    check("a catalog that is not there", done.returncode == 2 and "lake:" in done.stderr, done.stderr)


def as_a_function():
    """The handler; and the template, as cfn-lint reads it."""
    sys.path.append(str(LAKE.parent))
    import lake
    one(folder / "function", [{"v": {"N": "1"}}])
    event = {"archive": str(folder / "function/orders"), "lake": str(folder / "function-lake"), "columns": "v:bigint"}
    check("the handler runs", [lake.handler(event, None), lake.handler(event, None)] == [{"objects": 1}, {"objects": 0}])
    tools = pathlib.Path(subprocess.run([TOP / "tests/package/install.sh"], check=True, capture_output=True, text=True).stdout.strip())
    done = subprocess.run([tools / "bin/cfn-lint", LAKE.with_name("template.yaml")], capture_output=True, text=True)
    check("cfn-lint finds nothing in the template", done.returncode == 0, done.stdout + done.stderr)
    pinned = [set(re.findall(r"(duckdb\S*==\S+|sha256:\w+)", (TOP / name).read_text())) for name in ("deploy/lake/requirements.txt", "tests/support/python/requirements.txt")]
    check("what is tested is what is deployed", pinned[0] <= pinned[1] and len(pinned[0]) == 16, pinned[0] - pinned[1])


late_and_twice()
killed()
on_s3()
if WHOLE:  # a JVM, and as much work as all the others
    iceberg()
as_a_function()
types()
other_columns_later()
what_is_no_archive()
finish()
