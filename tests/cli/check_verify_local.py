#!/usr/bin/env python3
"""`sluice verify` on tables of SQLite: what a first user types wrong is told, nothing is created, and what is printed is in words."""
import json
import os
import sqlite3
import subprocess

from harness import BUILD, check, finish, record, work_folder, write_event

folder = work_folder()
SOURCE = "sqlite:src.db?table=orders"
COPY = {"name": "copy", "handler": "replicate", "to": SOURCE, "guard": "none"}
REPLICA = {"name": "replica", "handler": "replicate", "to": "sqlite:out.db?table=replica", "guard": {"table": "guards"}}
INLINE = {"name": "replica", "handler": "replicate", "to": "sqlite:out.db?table=replica"}
TOTALS = {"name": "totals", "handler": "aggregate", "to": "sqlite:out.db?table=totals", "ledger": {"table": "ledger"},
          "counters": [{"key": {"PK": "ALL"}, "add": {"n": 1, "sum": "{n}"}}]}
KEPT = {"name": "kept", "handler": "archive", "to": "file:archive"}


def config(name, *routes):
    (folder / name).write_text(json.dumps({"routes": routes, "on_failure": "jsonl:parked/failed.jsonl"}))
    return name


def sluice(verb, *args, env=None):
    run = subprocess.run([f"{BUILD}/sluice", verb, *args], cwd=folder, capture_output=True, timeout=600, stdin=subprocess.DEVNULL,
                         env={**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", **(env or {})})
    run.out, run.err = run.stdout.decode(), run.stderr.decode()
    run.text = f"exit {run.returncode}\n{run.out}\n{run.err}"
    return run


def files():
    return sorted(str(p) for p in folder.rglob("*") if not p.name.endswith(("-wal", "-shm")))


def verify(*args, conf="verify.json", table=SOURCE, lag=True, env=None, verb="verify"):
    """No run may create a file or folder."""
    before = files()
    run = sluice(verb, "--config", conf, *(("--table", table) if table else ()), *(("--max-lag", "0") if lag else ()), *args, env=env)
    check(f"nothing is created by {args} {table}", files() == before, set(files()) ^ set(before))
    return run


def tables(name):
    with sqlite3.connect(folder / name) as db:
        return {row[0] for row in db.execute("SELECT name FROM sqlite_master")}


def set_up():
    write_event(folder / "in.json", [record(n) for n in range(1, 11)])
    for name, route in (("copy.json", COPY), ("fill.json", INLINE), ("sum.json", TOTALS)):
        run = sluice("replay", "--config", config(name, route), "in.json")
        check(f"{name} is made", run.returncode == 0, run.text)
    config("verify.json", INLINE, TOTALS)


def targets_are_no_source():
    routes = {"replica": INLINE, "totals": TOTALS}
    for table, route in (("replica", "replica"), ("totals", "totals"), ("ledger", "totals")):
        for url in (f"sqlite:out.db?table={table}", f"sqlite:./out.db?table={table}"):
            for verb in ("verify", "repair"):
                run = verify(table=url, verb=verb, conf=config("one.json", routes[route]))
                check(f"{verb} {url}", run.returncode == 2 and f"the route {route} writes" in run.err, run.text)
    run = verify("--routes", "totals", table="sqlite:out.db?table=replica")
    check("a table that only another route writes may be verified against", "writes" not in run.err, run.text)


def nothing_is_created():
    conf = config("archive.json", INLINE, KEPT)
    run = verify(conf=conf)
    check("without --archives the folder is not asked for", run.returncode == 0, run.text)
    run = verify("--archives", conf=conf)
    check("an archive that is not there", run.returncode == 4 and "archive" in run.err + run.out and "0 gaps" not in run.out, run.text)
    (folder / "archive").mkdir()
    run = verify("--archives", conf=conf)
    check("an archive without objects proves nothing", run.returncode == 3 and "no objects" in run.err, run.text)
    (folder / "archive").rmdir()
    before = tables("out.db")
    run = verify(conf=config("marks.json", {**REPLICA, "name": "r"}))
    check("a table of guards that is not there is read as an empty one", run.returncode == 1 and "sluice_order" in run.out, run.text)
    for to in ("sqlite:nosuch.db?table=x", "sqlite:out.db?table=nosuch", "sqlite:no/such/folder.db?table=x"):
        run = verify(conf=config("no.json", {**INLINE, "to": to}))
        check(f"{to} is not there", run.returncode in (2, 4) and "there is no" in run.err, run.text)
    for table in ("sqlite:nosuch.db?table=x", "sqlite:src.db?table=nosuch"):
        run = verify(table=table)
        check(f"--table {table} is not there", run.returncode == 2 and "there is no" in run.err, run.text)
    check("and no table was made", tables("out.db") == before and tables("src.db") == {"orders"}, tables("src.db"))


def usage():
    none = {name: "" for name in ("AWS_REGION", "AWS_DEFAULT_REGION")}
    for args, table, text in (((), "orders", "Region"), (("--region", "eu-west-1", "--endpoint-url", "nonsense"), "orders", "endpoint"),
                              ((), "sqlite:src.db", "table=name"), (("--max-lag", "-1"), SOURCE, "--max-lag")):
        run = verify(*args, table=table, env=none)
        check(f"{args} {table} is bad usage", run.returncode == 2 and text.lower() in run.err.lower(), run.text)


def rows(db, table):
    with sqlite3.connect(folder / db) as connection:
        return sorted(connection.execute(f'SELECT * FROM "{table}"'))


def wrong_source():
    """Another table with the same kind of keys: nothing is equal, and nothing may be lost."""
    write_event(folder / "other.json", [record(n + 500, key=f"k{n}") for n in range(6, 26)])
    run = sluice("replay", "--config", config("other-copy.json", {**COPY, "to": "sqlite:other.db?table=orders"}), "other.json")
    check("another table", run.returncode == 0, run.text)
    conf, other = config("one.json", INLINE), "sqlite:other.db?table=orders"
    run = verify(conf=conf, table=other)
    check("verify asks whether it is the right table", run.returncode == 1 and "not one row is equal" in run.err, run.text)
    before = rows("out.db", "replica")
    for flags in (("--delete",), ("--dry-run",), ()):
        run = verify(*flags, conf=conf, table=other, verb="repair")
        check(f"repair {flags} does not begin", run.returncode == 2 and "not one has an equal row" in run.err, run.text)
        check("and has written nothing", rows("out.db", "replica") == before)
    run = verify("--item", '{"PK":{"S":"k7"}}', "--dry-run", conf=conf, table=other, verb="repair")
    check("an item that is named is the user's word", run.returncode == 1 and "1 written" in run.out, run.text)
    empty = config("empty.json", {**INLINE, "to": "sqlite:empty.db?table=replica"})
    with sqlite3.connect(folder / "empty.db") as db:
        db.execute("CREATE TABLE replica (key TEXT PRIMARY KEY, item TEXT NOT NULL) WITHOUT ROWID")
    run = verify(conf=empty, verb="repair")
    check("a target without rows has nothing to lose", run.returncode == 0 and len(rows("empty.db", "replica")) == 10, run.text)


def change(db, table, where, text, by):
    with sqlite3.connect(folder / db) as connection:
        n = connection.execute(f'UPDATE "{table}" SET item = replace(item, ?, ?) WHERE key LIKE ?', (text, by, where)).rowcount
    check(f"{table} is changed", n == 1, n)


def words():
    """Without --json everything is said in words, and the result counts all of it."""
    change("out.db", "totals", "%ALL%", '"10"', '"12"')
    for verb in ("verify", "repair"):
        for quiet in ((), ("--quiet",)):
            run = verify(*quiet, verb=verb, *(("--dry-run",) if verb == "repair" else ()))
            check(f"{verb} {quiet} has a cost line", ("read units" in run.err) != bool(quiet), run.text)
            check("under its own name", all(line.startswith(f"sluice {verb}: ") for line in run.err.splitlines()), run.text)
            check("no JSON", '{"result"' not in run.out, run.text)
    run = verify()
    check("a sum in words", 'sum {"PK":{"S":"ALL"}}, n: the total is 12, its ledger says 10: 2 off' in run.out, run.text)
    check("the result counts it", "result: 21 equal, 1 different (1 in totals)" in run.out and run.returncode == 1, run.text)
    change("out.db", "totals", "%ALL%", '"12"', '"10"')
    change("out.db", "replica", "%k3%", '"n":{"N":"3"}', '"n":{"N":"4"}')
    run = verify()
    check("and the kinds", "result: 21 equal, 1 different (1 different)" in run.out and " s ago" in run.out, run.text)
    with sqlite3.connect(folder / "out.db") as db:
        guard = json.loads(db.execute("SELECT item FROM replica WHERE key LIKE '%k3%'").fetchone()[0])["sluice_order"]["S"]
    run = verify(lag=False, *("--wait", "1"))
    check("without both flags nothing is confirmed, and that is said first", run.returncode == 3 and
          run.err.splitlines()[0].count("--consumer") and run.err.splitlines()[0].count("--max-lag"), run.text)
    run = verify("--wait", "7", lag=False)
    check("no segments while suspects wait", "suspects: " in run.err and "suspects: 4 of 4" not in run.err and "0 of 4" not in run.err, run.text)
    check("a guard has a time", len(guard) > 20, guard)
    change("out.db", "replica", "%k3%", guard, "0" * len(guard))
    run = verify()
    check("no age for a guard of no time", "{\"PK\":{\"S\":\"k3\"}}" in run.out and " s ago" not in run.out, run.text)
    change("out.db", "replica", "%k3%", "0" * len(guard), guard)
    change("out.db", "replica", "%k3%", '"n":{"N":"4"}', '"n":{"N":"3"}')
    check("all is right again", verify().returncode == 0)


def what_to_do():
    for key in ("A", '{"PK":{"N":"1"}', '{"ID":{"S":"a"}}'):
        run = verify("--item", key)
        check(f"--item {key}", run.returncode == 2 and '{"PK":{"S":"a"}}' in run.err, run.text)
    run = verify("--item", '{"PK":{"S":"nowhere"}}')
    check("an item that is nowhere is told", "has no such item" in run.err, run.text)
    run = verify("--item", '{"PK":{"S":"k3"}}')
    check("one that is there is not", run.returncode == 0 and "no such item" not in run.err, run.text)
    for text in ("garbage", "{}", "[]", '{"segments":3}'):
        (folder / "v.place").write_text(text)
        run = verify("--checkpoint", "v.place")
        check(f"a checkpoint {text}", run.returncode == 2 and "remove the file" in run.err, run.text)
    (folder / "v.place").unlink()


def proven():
    """Only a run over everything proves a route."""
    proof = folder / "verified.json"
    proof.write_text("{}")
    for narrow in (("--sample", "1/2"), ("--match", '{"PK":{"S":["k3"]}}'), ("--item", '{"PK":{"S":"k3"}}'), ("--ignore", "n"), ("--no-totals",)):
        run = verify("--verified", "verified.json", *narrow)
        check(f"{narrow[0]} proves nothing", proof.read_text().strip() == "{}" and run.returncode == 0, run.text + proof.read_text())
    run = verify("--verified", "verified.json")
    check("a whole run proves its routes", set(json.loads(proof.read_text())) == {"replica", "totals"} and "SecondsSinceVerified" in run.err, run.text + proof.read_text())
    before = proof.read_text()
    change("out.db", "replica", "%k3%", '"n":{"N":"3"}', '"n":{"N":"4"}')
    run = verify("--verified", "verified.json")
    after = json.loads(proof.read_text())
    check("what is different is not proven again", run.returncode == 1 and after["replica"] == json.loads(before)["replica"], run.text + proof.read_text())
    change("out.db", "replica", "%k3%", '"n":{"N":"4"}', '"n":{"N":"3"}')
    proof.unlink()


def main():
    set_up()
    run = verify()
    check("all is equal", run.returncode == 0, run.text)
    proven()
    targets_are_no_source()
    nothing_is_created()
    usage()
    words()
    what_to_do()
    wrong_source()
    finish()


main()
