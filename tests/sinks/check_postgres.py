#!/usr/bin/env python3
"""postgres:// against PostgreSQL itself: the port suite, random histories under faults and kills, verify and repair, backfill, views, totals, and
what is refused. LONG=1 (`make postgres-long`) has longer histories, and cuts a connection at each of its bytes."""
import gzip
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time
from decimal import Decimal

import table_world
from harness import WAIT_S, WHOLE, kills  # (tests/cli and tests/services, as table_world says)
from ports import free_port
from servers import Servers
from postgres_world import PASSWORD, Proxy, Server, compare, live, value
from table_world import BUILD, History, check, config, folder, parked, replay, route, sluice

kills()
LONG = bool(os.environ.get("LONG"))
CHANGES, KEYS = (6000, 300) if LONG else (500, 40)
FAULTS = "crash@6%,die@4%,lost@6%,connect@8%"
COLUMNS = "status:text,total:numeric,version:bigint,photo:bytea"
SQL_COLUMNS = "status text, total numeric, version bigint, photo bytea"
COPY = {"name": "copy", "handler": "replicate", "to": "sqlite:source.db?table=orders", "guard": "none"}


def port_suite(server):
    server.sql("CREATE DATABASE ports")
    server.sql('CREATE TABLE ports ("PK" text COLLATE "C", "SK" text COLLATE "C", item jsonb NOT NULL, unused text, PRIMARY KEY ("PK", "SK")); '
               'CREATE TABLE side ("PK" text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL); '
               'CREATE TABLE numbers ("PK" numeric PRIMARY KEY, item jsonb NOT NULL)', database="ports")
    run = subprocess.run([f"{BUILD}/tests/sinks/test_ports"], capture_output=True, text=True, timeout=600,
                         env={**os.environ, "POSTGRES_ENDPOINT": f"127.0.0.1:{server.port}"})
    text = run.stdout + run.stderr
    check("the port suite", run.returncode == 0, "\n".join(l for l in text.splitlines() if "FAILED" in l or "ERROR" in l or "LINE" in l))
    check("cases ran on the side postgres", text.count("OK ] postgres: ") > 30, text[-300:])
    check("no password in its output", PASSWORD not in text)
    server.sql("DROP DATABASE ports")


def columns_agree(server, table, when):
    """What a declared column has is what the item has."""
    wrong = server.sql(f"""SELECT "PK", "SK", item, status, total, version, photo FROM {table} WHERE status IS DISTINCT FROM item->'status'->>'S'
        OR total IS DISTINCT FROM (item->'total'->>'N')::numeric OR version IS DISTINCT FROM (item->'version'->>'N')::bigint
        OR photo IS DISTINCT FROM decode(item->'photo'->>'B', 'base64')""")
    check(f"{when}: the columns are the item's", not wrong, wrong[:3])


def histories(server, history):
    """Faults on the way, then the whole history once more: the table is the source's, and nothing comes back."""
    server.sql('CREATE TABLE marks ("PK" text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL); '
               'CREATE TABLE guards ("PK" text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL)')
    sides = {"inline_ones": {}, "marked": {"tombstones": {"table": "marks"}}, "guarded": {"guard": {"table": "guards"}}}
    for n, (name, options) in enumerate(sides.items()):
        server.make(name, SQL_COLUMNS)
        conf = config(f"{name}.json", route(server.target(name, columns=COLUMNS), **options))
        replay(conf, "history.json", faults=FAULTS, seed=n)
        compare(server, name, history, f"{name}: after the history")
        columns_agree(server, name, name)
        before = server.rows(name)
        replay(conf, "history.json", faults="lost@10%")
        check(f"{name}: the history once more changes nothing", server.rows(name) == before)
        check(f"{name}: nothing is parked", not parked(conf), parked(conf)[:1])


def together(write, seeds):
    """Each in a thread of its own."""
    failed = []

    def run(seed):
        try:
            write(seed)
        except SystemExit as error:
            failed.append(error)

    writers = [threading.Thread(target=run, args=(seed,)) for seed in seeds]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    check("all have done their part", not failed, failed)


def two_writers(server, history):
    """Two processes write one history at once, each with faults of its own."""
    server.make("twice", SQL_COLUMNS)
    conf = config("twice.json", route(server.target("twice", columns=COLUMNS)))
    together(lambda seed: replay(conf, "history.json", faults=FAULTS, seed=seed), (3, 4))
    compare(server, "twice", history, "after two writers")
    columns_agree(server, "twice", "two writers")


def restarts(server, history):
    """PostgreSQL is killed while records are written, several times; what was answered is there."""
    server.make("killed", SQL_COLUMNS)
    conf = config("killed.json", route(server.target("killed", columns=COLUMNS)))
    failed, kills, wanted = [], 0, 6 if LONG else 2

    def write():
        try:
            for seed in itertools.count():
                replay(conf, "history.json", faults=FAULTS, seed=seed)
                if kills >= wanted:
                    return
        except SystemExit as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        time.sleep(0.3)
        server.kill()
        kills += 1
        server.start()
    writer.join()
    check("the history was written", not failed, failed)
    compare(server, "killed", history, "after restarts of PostgreSQL")
    columns_agree(server, "killed", "restarts")


def verify(conf, *args, verb="verify"):
    return sluice(verb, "--config", conf, "--table", "sqlite:source.db?table=orders", "--max-lag", "0", "--json", *args)


def verify_and_repair(server, name):
    """A breakage of each kind, made with psql, is found, and mended."""
    conf = f"{name}.json"
    run = sluice("verify", "--config", conf, "--table", server.target(name), "--max-lag", "0")
    check(f"{name}: the target is not its own source", run.returncode == 2 and "is the table that the route" in run.err, run.text)
    run = verify(conf)
    check(f"{name}: verify finds the table equal", run.returncode == 0, run.text)
    rows = list({pk: (pk, sk) for pk, sk in sorted(live(server.rows(name))) if pk.startswith("k")}.values())  # one of each partition
    where = [f"""WHERE "PK" = '{pk}' AND "SK" = {sk}""" for pk, sk in rows]
    server.sql(f"DELETE FROM {name} {where[0]}")
    server.sql(f"UPDATE {name} SET item = jsonb_set(item, '{{status,S}}', '\"BROKEN\"') {where[1]}")
    server.sql(f"UPDATE {name} SET item = item - 'sluice_order' {where[2]}")
    server.sql(f"UPDATE {name} SET total = total + 0.00000000000000000000000000000000001 {where[3]}")
    server.sql(f"UPDATE {name} SET status = NULL, version = 7 {where[4]}")
    server.sql(f"UPDATE {name} SET item = '{{\"status\": \"plain\"}}' {where[5]}")
    buried = server.sql(f"""SELECT "PK", "SK" FROM {name} WHERE item ? 'sluice_deleted' AND "PK" LIKE 'k%' AND "PK" NOT IN ({', '.join(f"'{pk}'" for pk, _ in rows[:6])}) LIMIT 1""")[0]
    server.sql(f"UPDATE {name} SET item = item - 'sluice_deleted' - 'sluice_expires' WHERE \"PK\" = '{buried[0]}' AND \"SK\" = {buried[1]}")
    server.sql(f"INSERT INTO {name} VALUES ('stranger', 1, '{{}}')")
    run = verify(conf)
    kinds = [("missing", rows[0][0]), ("different", rows[1][0]), ("unguarded", rows[2][0]), ("different", rows[3][0]), ("different", rows[4][0]),
             ("left over", buried[0]), ("left over", "stranger")]
    for what, pk in kinds:
        check(f"{name}: {pk} is {what}", run.returncode == 1 and [l for l in run.out.splitlines() if f'"{pk}"' in l and what in l], run.text)
    check(f"{name}: the row that is no item is found", [l for l in run.out.splitlines() if f'"{rows[5][0]}"' in l], run.text)
    run = verify(conf, "--delete", verb="repair")
    server.sql(f"DELETE FROM {name} WHERE \"PK\" = 'stranger' OR item ? 'status' AND jsonb_typeof(item->'status') = 'string'")
    again = verify(conf, "--delete", verb="repair")
    check(f"{name}: repair mends", again.returncode == 0, run.text + again.text)
    run = verify(conf)
    check(f"{name}: all is right again", run.returncode == 0, run.text)
    columns_agree(server, name, f"{name}: after the repair")


def backfill(server, history):
    server.make("filled", SQL_COLUMNS)
    conf = config("filled.json", route(server.target("filled", columns=COLUMNS)))
    run = sluice("backfill", "--config", conf, "--table", "sqlite:source.db?table=orders", "--keys", "PK,SK", "--unsafe-order", "--checkpoint",
                 "filled.checkpoint", "--quiet")
    check("backfill", run.returncode == 0, run.text)
    compare(server, "filled", history, "after the backfill")
    replay(conf, "history.json")
    compare(server, "filled", history, "after backfill and history")


def views_and_totals(server, history):
    """The same routes, to PostgreSQL and to SQLite, over the same history with faults: row by row the same."""
    for table, keys in (("lines", '"PK" text COLLATE "C", "SK" text COLLATE "C"'), ("lists", '"PK" text COLLATE "C"'), ("totals", '"PK" text COLLATE "C"'),
                        ("ledger", '"PK" text COLLATE "C"')):
        server.make(table, "n bigint" if table == "totals" else "", keys=keys)

    def routes(target, columns):
        return [{"name": "lines", "handler": "view", "to": target("lines"), "list": {"table": "lists"}, "each": "tags[*]", "key": {
                    "PK": "{each}", "SK": "{PK|key}#{SK|key}"}, "item": {"total": "{total}"}},
                {"name": "totals", "handler": "aggregate", "to": target("totals", **columns), "ledger": {"table": "ledger"}, "missing": "skip",
                 "counters": [{"key": {"PK": "S{status}"}, "add": {"n": 1, "sum": "{version}"}}]}]

    there, here = config("there.json", *routes(server.target, {"columns": "n:bigint"})), config("here.json", *routes(lambda table: f"sqlite:here.db?table={table}", {}))
    together(lambda seed: replay(there, "history.json", faults=FAULTS, seed=seed), (8, 9))
    deadlocks = server.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'sluice'")[0][0]
    check("nobody waited in a circle", deadlocks == "0", deadlocks)
    replay(here, "history.json")
    for table in ("lines", "totals"):
        out = subprocess.run(["sqlite3", str(folder / "here.db"), f"SELECT item FROM {table}"], capture_output=True, text=True, check=True).stdout
        have, wanted = ({(i["PK"]["S"], i.get("SK", {}).get("S")): value({"M": i}) for i in map(json.loads, lines)}
                        for lines in ([item for (item,) in server.sql(f"SELECT item::text FROM {table}")], out.splitlines()))
        wrong = [key for key in have.keys() | wanted.keys() if have.get(key) != wanted.get(key)]
        check(f"{table}: as in SQLite", have and not wrong, [(key, have.get(key), wanted.get(key)) for key in wrong[:2]])


    # A total whose column somebody has changed: the next sum is of the item, and sets the column right.
    server.sql("UPDATE totals SET n = 7")
    key = {"PK": {"S": "one more"}, "SK": {"N": "0"}}
    one = {**history.records[0], "eventID": "more", "eventName": "INSERT", "dynamodb": {
        **history.records[0]["dynamodb"], "Keys": key, "NewImage": {**key, "status": {"S": "PAID"}, "version": {"N": "1"}, "total": {"N": "1"}},
        "SequenceNumber": str(10**23)}}
    replay(there, history.write("more.json", [one]))
    n = server.sql("SELECT n, (item->'n'->>'N')::bigint FROM totals WHERE \"PK\" = 'SPAID'")
    check("a column is set right by an update", n and n[0][0] == n[0][1] != "8", n)


def refused(server, history):
    """What is wrong with the table stops the route with one clear error that says what to do, and parks nothing."""
    server.make("bare", keys='"PK" text COLLATE "C"')
    server.make("loose", keys='"PK" text, "SK" numeric')
    server.make("typed", keys='"PK" text COLLATE "C", "SK" bigint')
    server.make("untotal")
    server.make("wrong_total", "total double precision")
    server.make("generated", "total numeric GENERATED ALWAYS AS (1) STORED")
    server.sql('CREATE TABLE keyless ("PK" text, "SK" numeric, item jsonb); CREATE TABLE itemless ("PK" text COLLATE "C", "SK" numeric, PRIMARY KEY ("PK", "SK"))')
    server.make("forbidden")
    server.sql("CREATE ROLE reader LOGIN PASSWORD 'reader'; GRANT SELECT ON forbidden TO reader")
    total = {"columns": "total:numeric"}
    wrong = {"nowhere": ({}, 'CREATE TABLE "nowhere" ("PK" text COLLATE "C", "SK" numeric, item jsonb NOT NULL, PRIMARY KEY ("PK", "SK"));'),
             "bare": ({}, "has one column, the items' key two attributes"), "loose": ({}, 'COLLATE "C"'), "typed": ({}, "text, numeric or bytea"),
             "untotal": (total, 'ALTER TABLE "untotal" ADD COLUMN "total" numeric;'), "wrong_total": (total, "column total is float8, not numeric"),
             "generated": (total, "generated"), "keyless": ({}, "no primary key"), "itemless": ({}, 'ADD COLUMN "item" jsonb'),
             "forbidden": ({"user": "reader", "password": "READER"}, "permission denied")}
    os.environ["READER"] = "reader"
    for name, (options, says) in wrong.items():
        conf = config(f"no_{name}.json", route(server.target(name, **options)))
        run = sluice("replay", "--config", conf, "--max-retries", "0", "--report-failures", "one.json")
        check(f"{name} is refused", run.returncode == 1 and says in run.err, run.text)
        check(f"{name} parks nothing", not parked(conf))
    server.sql('CREATE TABLE unread ("PK" text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL); CREATE TABLE unread_too (LIKE unread INCLUDING ALL); '
               'GRANT INSERT, UPDATE ON unread TO reader; GRANT ALL ON unread_too TO reader')
    conf = config("no_reading.json", {"name": "n", "handler": "aggregate", "to": server.target("unread", user="reader", password="READER"),
                                      "ledger": {"table": "unread_too"}, "counters": [{"key": {"PK": "S{status}"}, "add": {"n": 1}}]})
    began = time.time()
    run = sluice("replay", "--config", conf, "--max-retries", "0", "--timeout", "5", "one.json")
    check("a table that cannot be read is refused", time.time() - began < 30 and run.returncode == 1 and "permission denied" in run.err and "FATAL" in run.err, run.text)
    given = os.environ.pop("PGPASSWORD")
    run = sluice("replay", "--config", config("no_password.json", route(server.target("bare"))), "--max-retries", "0", "one.json")
    check("no password: it says where to put it", run.returncode == 1 and "the variable PGPASSWORD" in run.err, run.text)
    os.environ["PGPASSWORD"] = given
    os.environ["READER"] = "another"
    run = sluice("replay", "--config", "no_forbidden.json", "--max-retries", "0", "one.json")
    check("a wrong password is refused", run.returncode == 1 and "authentication failed" in run.err, run.text)
    server.sql("ALTER ROLE reader PASSWORD 'reader'; ALTER ROLE reader SET default_transaction_read_only = on; GRANT ALL ON forbidden TO reader")
    os.environ["READER"] = "reader"
    run = sluice("replay", "--config", "no_forbidden.json", "--max-retries", "0", "one.json")
    check("a reader's address is refused", run.returncode == 1 and "read-only" in run.err and "reader's" in run.err, run.text)
    server.make("made_later")
    conf = config("made_later.json", route(server.target("made_later", **total)))
    run = sluice("replay", "--config", conf, "--max-retries", "0", "one.json")
    statement = run.err[run.err.index("ALTER TABLE"):].split(";")[0]
    server.sql(statement)
    replay(conf, "one.json")
    check("what it says makes it right", len(server.rows("made_later")) == 1)


def bad_rows(server, history):
    """A value that a row cannot hold parks its record, with a reason and without the value; the others are there."""
    server.make("strict", "total numeric, status text UNIQUE, paid boolean, at timestamptz")
    conf = config("strict.json", route(server.target("strict", columns="total:numeric,status:text,paid:boolean,at:timestamptz")))
    bad = {1: ("total", {"S": "zanzibar"}, "wants a number"), 3: ("status", {"S": "zanzibar\0"}, "U+0000"), 4: ("n\0x", {"N": "1"}, "U+0000"),
           6: ("paid", {"N": "1"}, "wants a boolean"), 7: ("at", {"S": "zanzibar"}, "2026-11-20"), 9: ("status", {"S": "status-8"}, "status_key")}
    records = []
    for n in range(12):
        item = {"PK": {"S": f"bad{n}"}, "SK": {"N": "0"}, "status": {"S": f"status-{n}"}, "total": {"N": "1"}, "at": {"N": "1795208640.5"}}
        if n in bad:
            item[bad[n][0]] = bad[n][1]
        key = {"PK": item["PK"], "SK": item["SK"]}
        records.append({**history.records[0], "eventID": f"bad-{n}", "eventName": "INSERT", "dynamodb": {
            **history.records[0]["dynamodb"], "Keys": key, "NewImage": item, "SequenceNumber": str(10**23 + n)}})
        records[-1]["dynamodb"].pop("OldImage", None)
    history.write("bad.json", records)
    replay(conf, "bad.json")
    reasons = {p["eventID"]: json.dumps({k: v for k, v in p.items() if k != "dynamodb"}) for p in (q.get("record", q) | {
        k: v for k, v in q.items() if k != "record"} for q in parked(conf))}
    check("exactly the records that do not fit are parked", set(reasons) == {f"bad-{n}" for n in bad}, reasons)
    for n, (_, _, says) in bad.items():
        check(f"bad-{n} says why", says in reasons[f"bad-{n}"] and "zanzibar" not in reasons[f"bad-{n}"], reasons[f"bad-{n}"])
    check("the others are there", len(server.rows("strict")) == 12 - len(bad))
    check("a time is UTC", server.sql("SELECT DISTINCT at AT TIME ZONE 'UTC' FROM strict") == [["2026-11-20 21:04:00.5"]])


def judged(server, history):
    """Each class of error, raised by a trigger: whose fault it is, and that its message is shown only where it holds no values."""
    server.make("judged")
    server.sql("""CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.item ? 'code' THEN RAISE EXCEPTION 'zanzibar' USING ERRCODE = NEW.item->'code'->>'S'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER judge BEFORE INSERT ON judged FOR EACH ROW EXECUTE FUNCTION judge()""")
    park, again, stop = "parked", "RETRY", "FATAL"
    codes = (
            ("22001", park, False), ("22P02", park, False), ("22012", park, False), ("23502", park, True), ("23505", park, True), ("23514", park, True),
            ("54000", park, False), ("P0001", park, False), ("40001", again, True), ("40P01", again, True), ("55P03", again, True), ("53100", again, True),
            ("53200", again, True), ("53300", again, True), ("57014", again, True), ("57P01", again, True), ("57P03", again, True), ("08006", again, True),
            ("58030", again, True), ("XX000", again, True), ("0A000", again, False), ("99999", again, False), ("25006", stop, True), ("42501", stop, True),
            ("42P01", stop, True), ("42703", stop, True), ("28P01", stop, True), ("3D000", stop, True))

    def judge(case):
        code, outcome, is_shown = case
        conf = config(f"judged-{code}.json", route(server.target("judged")))
        records = []
        for n, more in ((1, {"code": {"S": code}}), (2, {})):
            key = {"PK": {"S": f"{code}-{n}"}, "SK": {"N": "0"}}
            records.append({**history.records[0], "eventID": f"{code}-{n}", "eventName": "INSERT", "dynamodb": {
                **history.records[0]["dynamodb"], "Keys": key, "NewImage": {**key, **more}, "SequenceNumber": str(10**23 + n)}})
            records[-1]["dynamodb"].pop("OldImage", None)
        run = sluice("replay", "--config", conf, "--report-failures", "--max-retries", "0", "--timeout", "4" if outcome == again else "20",
                     history.write(f"judged-{code}.in", records))
        said = run.err + "".join(p["message"] for p in parked(conf))
        is_parked = [p.get("record", p)["eventID"] for p in parked(conf)] == [f"{code}-1"]
        check(f"{code} is {outcome}", (is_parked and run.returncode == 0) if outcome == park else (
            not parked(conf) and run.returncode == 1 and (outcome in run.err or "timed out" in run.out)), run.text)
        # (What is tried until the end of the time may end by saying just that.)
        check(f"{code}: its message", is_shown if "zanzibar" in said else not is_shown or outcome == again, said)
        if outcome == park:
            check(f"{code}: the other is there", server.sql(f"""SELECT 1 FROM judged WHERE "PK" = '{code}-2'"""), run.text)

    together(judge, codes)


def hostile_texts(server, history):
    """Whatever texts a table has: as keys, names and values they come back, or they are parked."""
    texts = ["'; DROP TABLE hostile; --", '"', '""', "\\", "\\'", "$1", "%s", "%n", "{}", "NULL", "\u2028", "\ufeff", "\U0001f600", "\x7f", "\x01",
             "x" * 1024, "n" * 255, "e\u0301", "\u00e9", "'", "''", "{PK}", "a\tb\r\nc", "\0"]
    naughty = pathlib.Path(os.environ.get("CORPUS", "../shared/conformance")) / "hostile-strings/blns.json"
    if naughty.exists():
        texts += [text for text in json.loads(naughty.read_text()) if 0 < len(text.encode()) <= 1024]
    server.make("hostile", "a text")
    conf = config("hostile.json", route(server.target("hostile", columns="a:text")))
    records, wanted = [], {}
    for n, text in enumerate(dict.fromkeys(texts)):
        item = {"PK": {"S": text}, "SK": {"N": "0"}, "a": {"S": text}, f"_{text[:200]}": {"S": text}, "m": {"M": {text[:200]: {"SS": [text]}}}}
        key = {"PK": item["PK"], "SK": item["SK"]}
        if "\0" not in text:
            wanted[text] = item
        records.append({**history.records[0], "eventID": f"hostile-{n}", "eventName": "INSERT", "dynamodb": {
            **history.records[0]["dynamodb"], "Keys": key, "NewImage": item, "SequenceNumber": str(10**23 + n)}})
        records[-1]["dynamodb"].pop("OldImage", None)
    history.write("hostile.json.in", records)
    replay(conf, "hostile.json.in")
    have = {json.loads(key): json.loads(item) for key, item in server.sql('SELECT to_json("PK")::text, item::text FROM hostile')}
    check("every text is a key", have.keys() == wanted.keys(), (sorted(have.keys() ^ wanted.keys())[:5]))
    for text, item in wanted.items():
        plain = {k: v for k, v in have[text].items() if not k.startswith("sluice_")}
        check(f"{text!r} came back", plain == json.loads(json.dumps(item)), (plain, item))
    check("what cannot be held is parked", len(parked(conf)) == len(records) - len(wanted), len(parked(conf)))


def cuts(server, _history):
    """A connection that breaks after so many bytes, up or down: the record is written once, whatever was said."""
    proxy = Proxy(server.port)
    few = History(11, 6, KEYS)
    step = 1 if LONG else 401 if WHOLE else 809
    for direction in ("cut_up", "cut_down"):
        for n in range(0, 4200 if direction == "cut_up" else 3200, step):
            server.sql("DROP TABLE IF EXISTS cut")
            server.make("cut", SQL_COLUMNS)
            setattr(proxy, direction, n)
            replay(config("cut.json", route(server.target("cut", port=proxy.port, columns=COLUMNS, tls="off"))), "few.json")
            compare(server, "cut", few, f"{direction} after {n} bytes")
    proxy.close()


def lies(server, _history):
    """One byte of the server's answers is another: what is there in the end is right all the same."""
    proxy = Proxy(server.port)
    few = History(11, 6, KEYS)
    for n in range(0, 3600, 1 if LONG else 257 if WHOLE else 509):
        server.sql("DROP TABLE IF EXISTS lied")
        server.make("lied", SQL_COLUMNS)
        proxy.lie = (n, 1 << n % 7)
        conf = config("lied.json", route(server.target("lied", port=proxy.port, columns=COLUMNS, tls="off")))
        began = time.time()
        run = sluice("replay", "--config", conf, "--report-failures", "--max-retries", "5", "--timeout", "3", "few.json")
        check(f"byte {n}: the history was written", run.returncode == 0 and time.time() - began < 60, run.text)
        compare(server, "lied", few, f"byte {n} of the answers is another")
        check(f"byte {n}: nothing is parked", not parked(conf), parked(conf)[:1])
    proxy.close()


def live_world(server, _history):
    """A table of DynamoDB Local that is written all the time; a tail that is killed again and again, and PostgreSQL too. In the end the replica is the
    scan, the view is what its items make, and each total is their sum."""
    tables = Servers("dynamodb")
    draw = random.Random(os.environ.get("SEED", "36"))
    tables.create("world", stream=True)
    server.sql("CREATE DATABASE world", database="postgres")
    one, two = '"PK" text COLLATE "C", item jsonb NOT NULL, PRIMARY KEY ("PK")', '"PK" text COLLATE "C", "SK" text COLLATE "C", item jsonb NOT NULL, PRIMARY KEY ("PK", "SK")'
    server.sql(f"CREATE TABLE copy (state text, {one}); CREATE TABLE lines (qty numeric, {two}); CREATE TABLE lists ({one}); "
               f"CREATE TABLE totals (n bigint, {one}); CREATE TABLE ledger ({one})", database="world")
    at = f"postgres://127.0.0.1:{server.port}/world?user=sluice&table="
    conf = config("world.json", {"name": "copy", "handler": "replicate", "to": at + "copy&columns=state:text"},
                  {"name": "lines", "handler": "view", "to": at + "lines&columns=qty:numeric", "each": "lines[*]", "list": {"table": "lists"},
                   "key": {"PK": "{each.sku}", "SK": "{PK|key}#{each_index|key}"}, "item": {"qty": "{each.qty}"}},
                  {"name": "totals", "handler": "aggregate", "to": at + "totals&columns=n:bigint", "ledger": {"table": "ledger"},
                   "counters": [{"key": {"PK": "{state}"}, "add": {"n": 1, "sum": "{total}"}}]})
    writing = threading.Event()

    def write():
        while not writing.is_set():
            key = {"PK": {"S": f"k{draw.randrange(30)}"}}
            if draw.random() < 0.2:
                tables.dynamodb("DeleteItem", TableName="world", Key=key)
            else:
                lines = [{"M": {"sku": {"S": draw.choice("abc")}, "qty": {"N": str(draw.randrange(100))}}} for _ in range(draw.randrange(4))]
                tables.dynamodb("PutItem", TableName="world", Item={**key, "state": {"S": draw.choice(["NEW", "PAID"])}, "total": {
                    "N": str(draw.randrange(10**6))}, "lines": {"L": lines}})

    def tail(*args):
        return subprocess.Popen([f"{BUILD}/sluice", "tail", "--table", "world", "--config", conf, "--endpoint-url", tables.endpoint, "--checkpoint", "world.place",
                                 "--batch-size", "20", *args], cwd=folder, env={**os.environ, **tables.credentials}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    writer = threading.Thread(target=write)
    writer.start()
    for n in range(24 if LONG else 8):
        run = tail()
        time.sleep(draw.uniform(0.3, 1.2))
        if n % 3 == 1:
            server.kill()
            server.start()
        run.kill()
        run.communicate()
    writing.set()
    writer.join()
    run = tail("--once")
    out = run.communicate(timeout=600)[0].decode()
    check("the tail reads to the end", run.returncode == 0, out)
    items = tables.scan("world")
    rows = {pk: (json.loads(item), state) for pk, item, state in server.sql('SELECT "PK", item::text, state FROM copy', database="world")}
    have = {pk: {k: v for k, v in item.items() if not k.startswith("sluice_")} for pk, (item, _) in rows.items() if "sluice_deleted" not in item}
    check("the replica is the scan", have.keys() == {i["PK"]["S"] for i in items} and all(value({"M": have[i["PK"]["S"]]}) == value({"M": i}) for i in items),
          (len(have), len(items), out[-500:]))
    check("the column is the item's", all(state == item.get("state", {}).get("S") for item, state in rows.values()))
    wanted = sorted((line["M"]["sku"]["S"], f"{i['PK']['S']}#{n}", line["M"]["qty"]["N"]) for i in items for n, line in enumerate(i["lines"]["L"]))
    check("the view is what the items make", sorted(map(tuple, server.sql('SELECT "PK", "SK", qty FROM lines', database="world"))) == wanted)
    for state in ("NEW", "PAID"):
        mine = [i for i in items if i["state"]["S"] == state]
        total = server.sql(f"""SELECT n, item->'n'->>'N', item->'sum'->>'N' FROM totals WHERE "PK" = '{state}'""", database="world")
        check(f"the total of {state}", total and total[0] == [str(len(mine))] * 2 + [str(sum(int(i["total"]["N"]) for i in mine))], (total, len(mine)))


def waits(server, history):
    """A server that does not answer, and a lock that somebody holds, cost the time that is given and no more; nobody is left behind a lock."""
    server.make("locked", SQL_COLUMNS)
    conf = config("locked.json", route(server.target("locked", columns=COLUMNS)))
    holder = subprocess.Popen(["psql", "-qXw", "-h", "127.0.0.1", "-p", str(server.port), "-U", "sluice", "-d", "sluice", "-c",
                               "BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not server.sql("SELECT 1 FROM pg_locks JOIN pg_class c ON c.oid = relation WHERE c.relname = 'locked' AND granted AND mode = 'AccessExclusiveLock'"):
        time.sleep(0.02)
    began = time.time()
    run = sluice("replay", "--config", conf, "--max-retries", "0", "--timeout", "2", "one.json")
    check("a lock ends with the deadline", run.returncode == 1 and time.time() - began < 20, (time.time() - began, run.text))
    check("and says so", "DeadlineExceeded" in run.err or "time" in run.err, run.text)
    check("nothing is parked", not parked(conf))
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()")
    holder.wait()
    left = server.sql("SELECT state FROM pg_stat_activity WHERE application_name = 'sluice'")
    check("no transaction is left open", not [s for s in left if s[0] != "idle"], left)
    replay(conf, "one.json")
    check("then it is written", len(server.rows("locked")) == 1)
    proxy = Proxy(server.port)
    proxy.stalls = True
    began = time.time()
    run = sluice("replay", "--config", config("stalled.json", route(server.target("locked", port=proxy.port))), "--max-retries", "0", "--timeout", "2", "one.json")
    check("a server that is silent ends with the deadline", run.returncode == 1 and time.time() - began < 20, run.text)
    proxy.close()


def many(server, history):
    """More connections than the server takes: a clear line, and another try."""
    server.sql("ALTER ROLE reader SET default_transaction_read_only = off; ALTER ROLE reader CONNECTION LIMIT 0; GRANT ALL ON forbidden TO reader")
    run = sluice("replay", "--config", "no_forbidden.json", "--max-retries", "0", "one.json")
    check("too many connections pass", run.returncode == 1 and "too many connections" in run.err, run.text)
    server.sql("ALTER ROLE reader CONNECTION LIMIT 5")
    replay("no_forbidden.json", "one.json")


def moves(server, _history):
    """A server that only reads for a while, as after a failover; and one whose commits are not on a disk."""
    server.make("moved", SQL_COLUMNS)
    server.sql("ALTER DATABASE sluice SET default_transaction_read_only = on")
    back = threading.Timer(1, lambda: server.sql("ALTER DATABASE sluice SET default_transaction_read_only = off", options="-c default_transaction_read_only=off"))
    back.start()
    replay(config("moved.json", route(server.target("moved", columns=COLUMNS))), "few.json")
    back.join()
    check("it is written when the writer is back", server.sql("SELECT count(*) > 0 FROM moved") == [["t"]])
    server.sql("ALTER ROLE reader SET synchronous_commit = off")
    run = sluice("replay", "--config", "no_forbidden.json", "one.json")
    check("commits that may be lost are told", run.returncode == 0 and "synchronous_commit is off" in run.err, run.text)


def idle(server, _history):
    """A connection that was idle for a minute, as that of a sandbox that was frozen, is not used again."""
    server.sql('CREATE TABLE backends ("PK" text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL, pid integer DEFAULT pg_backend_pid())')
    run = subprocess.run([f"{BUILD}/tests/sinks/test_postgres"], capture_output=True, text=True, check=False,
                         env={**os.environ, "POSTGRES_TARGET": server.target("backends"), "PGHOST": "127.0.0.1", "PGPORT": str(server.port),
                              "PGUSER": "sluice", "PGDATABASE": "sluice"})
    check("its cases", run.returncode == 0, run.stdout + run.stderr)
    pids = [pid for (pid,) in server.sql("""SELECT pid FROM backends WHERE "PK" ~ '^[0-9]' ORDER BY "PK\"""")]
    check("the first two are of one connection, the third is not", len(pids) == 3 and pids[0] == pids[1] != pids[2], pids)
    made = [pk for (pk,) in server.sql("""SELECT "PK" FROM backends WHERE "PK" ~ '^[gs][0-9]' ORDER BY ctid""")]
    check("rows are made, and locked, in the order of their keys", made == ["s1", "s2", "s3", "g1", "g2", "g3"], made)


def pooled(server, _history):
    """PgBouncer, which gives each transaction another connection."""
    few = History(11, CHANGES, KEYS)
    server.make("pooled", SQL_COLUMNS)
    server.sql('CREATE TABLE pooled_marks ("PK" text COLLATE "C" PRIMARY KEY, item jsonb NOT NULL)')
    port, home = free_port(), folder / "pgbouncer"
    home.mkdir()
    (home / "users.txt").write_text(f'"sluice" "{PASSWORD}"\n')
    (home / "pgbouncer.ini").write_text(f"""[databases]
sluice = host=127.0.0.1 port={server.port} dbname=sluice
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {home}/users.txt
pool_mode = transaction
default_pool_size = 3
""")
    with open(folder / "pgbouncer.log", "wb") as log:
        # (As tests/services/postgres.sh does.)
        user = "setpriv --reuid=postgres --regid=postgres --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override" if os.getuid() == 0 else ""
        pooler = subprocess.Popen([*user.split(), "/usr/sbin/pgbouncer", str(home / "pgbouncer.ini")], stdout=log, stderr=log)
    try:
        until = time.monotonic() + WAIT_S
        while subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode != 0:
            check("PgBouncer starts", pooler.poll() is None and time.monotonic() < until, (folder / "pgbouncer.log").read_text())
            time.sleep(0.05)
        for seed, more in ((1, {}), (2, {}), (3, {"tombstones": {"table": "pooled_marks"}})):
            table = "pooled" if not more else "pooled_too"
            if more:
                server.make(table, SQL_COLUMNS)
            replay(config(f"pooled{seed}.json", route(server.target(table, port=port, columns=COLUMNS), **more)), "history.json", faults=FAULTS, seed=seed)
            compare(server, table, few, f"through PgBouncer, {seed}")
    finally:
        pooler.terminate()
        pooler.wait()


def tls(server, history):
    """TLS is verified when an authority is named."""
    ca = server.folder / "ca.crt"
    server.make("safe")
    replay(config("safe.json", route(server.target("safe", ca=ca))), "one.json")
    check("over TLS with the right authority", len(server.rows("safe")) == 1)
    home = server.folder
    for command in ("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout client.key -out client.csr -subj /CN=holder",
                    "x509 -req -in client.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out client.crt"):
        subprocess.run(["openssl", *command.split()], cwd=home, check=True, capture_output=True)
    hba = home / "postgres/pg_hba.conf"
    hba.write_text("hostssl all holder 127.0.0.1/32 cert\n" + hba.read_text())
    server.sql("CREATE ROLE holder LOGIN; GRANT ALL ON safe TO holder; SELECT pg_reload_conf()")
    target = server.target("safe", ca=ca, user="holder", cert=home / "client.crt", key=home / "client.key")
    replay(config("holder.json", route(target)), "few.json")
    check("with a client's certificate, and no password", len(server.rows("safe")) > 1)
    run = sluice("replay", "--config", config("no-holder.json", route(server.target("safe", ca=ca, user="holder"))), "--max-retries", "0", "one.json")
    check("and not without it", run.returncode == 1 and "certificate" in run.err, run.text)
    other = folder / "other.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(folder / "other.key"),
                    "-out", str(other), "-days", "2", "-subj", "/CN=other"], check=True, capture_output=True)
    run = sluice("replay", "--config", config("unsafe.json", route(server.target("safe", ca=other))), "--max-retries", "0", "one.json")
    check("and not with another", run.returncode == 1 and "certificate" in run.err, run.text)


def relational(server, _history):
    """The example: its queries answer what the items at the end do."""
    server.sql("CREATE DATABASE shop", database="postgres")
    environment = {**os.environ, "HOST": f"127.0.0.1:{server.port}", "OUT": str(folder)}
    records = [json.loads(line) for line in gzip.open("examples/shop/history.jsonl.gz", "rt", encoding="utf-8")]
    (folder / "shop.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    run = subprocess.run([f"{BUILD}/sluice", "check", "--tables", "--sample", str(folder / "shop.jsonl"), "examples/relational/sluice.json"], capture_output=True,
                         text=True, env=environment, check=False)
    made = sorted(line.split(" [")[0].strip() for line in run.stdout.splitlines() if line.startswith("CREATE "))
    schema = pathlib.Path("examples/relational/schema.sql").read_text()
    wanted = sorted(line for line in schema.split("-- For the queries.")[0].splitlines() if line.startswith("CREATE "))
    swap = lambda lines: [line.replace('"SK" text COLLATE "C", "PK" text COLLATE "C"', '"PK" text COLLATE "C", "SK" text COLLATE "C"').replace(
        'PRIMARY KEY ("SK", "PK")', 'PRIMARY KEY ("PK", "SK")') for line in lines]
    check("check --tables prints the schema", swap(made) == wanted, "\n".join(made) + run.stderr)
    server.sql(schema, database="shop")
    run = subprocess.run([f"{BUILD}/sluice", "replay", "--quiet", "--config", "examples/relational/sluice.json", "--fault", FAULTS, "--report-failures", "--seed", "5",
                          str(folder / "shop.jsonl")], capture_output=True, text=True, env=environment, check=False)
    failed = folder / "failed.jsonl"
    check("the example runs", run.returncode == 0 and not (failed.exists() and failed.read_text()), run.stdout + run.stderr + (failed.read_text() if failed.exists() else ""))
    items = {}
    for r in records:
        items[json.dumps(r["dynamodb"]["Keys"], sort_keys=True)] = r["dynamodb"].get("NewImage")
    items = [i for i in items.values() if i]
    orders = [i for i in items if i["SK"]["S"].startswith("ORDER#")]
    sold = [o for o in orders if o["status"]["S"] != "CANCELLED"]
    days, products, spent = {}, {}, {i["PK"]["S"]: [i["name"]["S"], Decimal(0)] for i in items if i["SK"]["S"] == "PROFILE"}
    for o in orders:
        day = days.setdefault((o.get("created", {"S": ""})["S"][:10], o["status"]["S"]), [0, Decimal(0)])
        day[0], day[1] = day[0] + 1, day[1] + Decimal(o["total"]["N"])
    for o in sold:
        if o["PK"]["S"] in spent:
            spent[o["PK"]["S"]][1] += Decimal(o["total"]["N"])
        for line in o["lines"]["L"]:
            product = products.setdefault(line["M"]["sku"]["S"], [0, set()])
            product[0] += int(line["M"]["pieces"]["N"])
            product[1].add(o["PK"]["S"] + o["SK"]["S"])
    wanted = [sorted((d, s, n, t) for (d, s), (n, t) in days.items()), sorted(((k, n, len(o)) for k, (n, o) in products.items()), key=lambda p: (-p[1], p[0])),
              sorted(((n, t) for n, t in spent.values()), key=lambda c: (-c[1], c[0]))]
    queries = [q for q in pathlib.Path("examples/relational/queries.sql").read_text().split(";") if "SELECT" in q]
    for query, rows in zip(queries, wanted):
        have = [[v or "" for v in row] for row in server.sql(query, database="shop")]
        check("the query answers what the items do", have and len(have) == len(rows) and all(
            (Decimal(a) == b if isinstance(b, Decimal) else a == str(b)) for x, y in zip(have, rows) for a, b in zip(x, y)), (query, have[:4], rows[:4]))


def timed(function, *args):
    began = time.time()
    function(*args)
    if os.environ.get("TIMES"):
        print(f"{function.__name__}: {time.time() - began:.1f} s", flush=True)


def main():
    server = Server("postgres")
    try:
        server.sql("CREATE DATABASE sluice", database="postgres")
        history = History(11, CHANGES, KEYS)
        history.write("history.json")
        history.write("few.json", history.records[:6])
        history.write("one.json", history.records[:1])
        replay(config("copy.json", COPY), "history.json")
        only = os.environ.get("ONLY")
        for part in (port_suite, histories, two_writers, views_and_totals, backfill, refused, bad_rows, judged, hostile_texts, cuts, lies, waits, many, moves, idle, pooled, tls, relational, restarts, live_world):
            if not only or part.__name__ in only.split(","):
                timed(part, server, history) if part is not port_suite else timed(part, server)
        if not only or "verify" in only:
            timed(verify_and_repair, server, "inline_ones")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{table_world.passed} passed, 0 failed")


main()
