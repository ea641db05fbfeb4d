#!/usr/bin/env python3
"""`sluice repair` against DynamoDB Local, beside a running `sluice tail`: what was broken on purpose is right afterwards, killed at any
moment and beside writers too; the next changes of the stream still are; two tables that follow each other do not swing; and what a repair
wrote is taken back."""
import json
import random
import signal
import subprocess
import time

from harness import check, finish, kills, until
from verify_world import SLUICE, Writer, World, item, key, start_services

kills()

ROUTES = ["replica", "aside", "beside", "totals"]
REPLICAS = {"replica": "cost", "aside": "cost", "beside": "price"}


def repair(w, *flags, wait=True):
    process = subprocess.Popen([SLUICE, "repair", "--table", w.table, "--consumer", "place.json", "--quiet", *flags], cwd=w.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not wait:
        return process
    out, err = process.communicate(timeout=600)
    return process.returncode, out.decode(), err.decode()


def equal(w, name):
    run = w.verify()
    check(name, run.status == 0 and not run.findings, str(run))


def totals(w):
    return {row["PK"]["S"]: (row["n"]["N"], row["sum"]["N"]) for row in w.db.scan(w.where("totals")) if row["n"]["N"] != "0"}


def expected_totals(w):
    sums = {}
    for row in w.db.scan(w.table):
        group = sums.setdefault("STATUS#" + row["status"]["S"], [0, 0])
        group[0] += 1
        group[1] += int(row["cost"]["N"])
    return {group: (str(n), str(total)) for group, (n, total) in sums.items()}


def ledger_rows(w, pk):
    return [row for row in w.db.scan(w.where("ledger")) if f'"{pk}"' in row["PK"]["S"]]


def count_wrongly(w, pk, more):
    """As a wrong configuration would have: the ledger and the totals agree, and both are wrong."""
    row = ledger_rows(w, pk)[0]
    wrong = json.loads(json.dumps(row))
    add = wrong["sums"]["L"][0]["M"]["add"]["M"]
    add["sum"]["N"] = str(int(add["sum"]["N"]) + more)
    w.db("TransactWriteItems", TransactItems=[
        {"Put": {"TableName": w.where("ledger"), "Item": wrong, "ConditionExpression": "#o = :o", "ExpressionAttributeNames": {"#o": "order"},
                 "ExpressionAttributeValues": {":o": row["order"]}}},
        {"Update": {"TableName": w.where("totals"), "Key": {"PK": row["sums"]["L"][0]["M"]["key"]["M"]["PK"]}, "UpdateExpression": "ADD #s :n",
                    "ExpressionAttributeNames": {"#s": "sum"}, "ExpressionAttributeValues": {":n": {"N": str(more)}}}}])


def break_rows(w, rng, pks):
    """Each row of each replica in one of the ways in which a row can be wrong."""
    for name, cost in REPLICAS.items():
        table = w.where(name)
        for pk in pks:
            how = rng.randrange(5)
            if how == 0:
                w.update(table, key(pk), f"SET {cost} = :n", n={"N": str(rng.randrange(10 ** 6))})
            elif how == 1:
                w.delete(table, key(pk))
            elif how == 2:
                w.update(table, key(pk), "SET extra = :x REMOVE deep", x={"S": "by hand"})
            elif how == 3 and name != "beside":
                w.update(table, key(pk), "REMOVE sluice_order, sluice_write")
            else:
                w.put(table, {**key(pk), cost: {"N": "0"}})


def whole_table(w):
    rng = random.Random(1)
    pks = [f"k{n}" for n in range(30)]
    for n, pk in enumerate(pks):
        w.put(w.table, item(pk, cost=n))
    w.put(w.table, item("right"))  # a repair does not begin where nothing at all is right
    for pk in ("left1", "left2"):
        w.put(w.table, item(pk, cost=900))
    w.settle()
    olds = {name: {pk: w.get(w.where(name), key(pk)) for pk in ("left1", "left2")} for name in REPLICAS}
    for pk in ("left1", "left2"):
        w.delete(w.table, key(pk))
    w.settle()
    break_rows(w, rng, pks)
    for name, rows in olds.items():
        for row in rows.values():
            w.put(w.where(name), row)
    for pk in pks[:5]:
        count_wrongly(w, pk, 7)
    found = w.verify()
    check("broken", found.status == 1 and found.summary["different"] > 90, str(found))

    status, out, err = repair(w, "--dry-run", "--delete")
    check("a dry run says what would be", status == 1 and out.count("would be written") > 80 and out.count("would be removed") == 6, out + err)
    check("and writes nothing", w.verify().summary["different"] == found.summary["different"])
    saved = w.folder / "save.jsonl"
    saved.touch(mode=0o644)
    saved.chmod(0o644)
    status, out, err = repair(w, "--audit", "audit.jsonl", "--save", "save.jsonl")
    check("what is saved is nobody else's", saved.stat().st_mode & 0o777 == 0o600, oct(saved.stat().st_mode))
    check("nothing is removed unless asked for", status == 1 and out.count("WouldRemove") == 6 and " 0 removed" in out, out + err)
    status, out, err = repair(w, "--delete", "--max-deletes", "4", "--audit", "audit.jsonl", "--save", "save.jsonl")
    check("as many as may", status == 1 and out.count("MaxDeletes") == 2 and " 4 removed" in out, out + err)
    status, out, err = repair(w, "--delete", "--audit", "audit.jsonl", "--save", "save.jsonl")
    check("all is right", status == 0 and " 2 removed" in out and " 0 failed" in out, out + err)
    equal(w, "and verified")
    check("the totals are what the items say", totals(w) == expected_totals(w), (totals(w), expected_totals(w)))
    status, out, err = repair(w, "--delete")
    check("a second one finds nothing", status == 0 and " 0 written, 0 removed" in out, out + err)

    lines = [json.loads(line) for line in (w.folder / "audit.jsonl").read_text().splitlines()]
    done = [line for line in lines if line["outcome"] in ("written", "removed")]
    check("an audit line for each", len(done) == found.summary["different"], (len(done), found.summary))
    check("without a value or a key", not any(text in (w.folder / "audit.jsonl").read_text() for text in ("k1", "OPEN", "by hand", "left1")))

    for n, pk in enumerate(pks):
        if n % 3 == 0:
            w.delete(w.table, key(pk))
        else:
            w.put(w.table, item(pk, cost=1000 + n))
    w.settle()
    equal(w, "the stream's next changes are right")
    check("so are the totals", totals(w) == expected_totals(w), (totals(w), expected_totals(w)))


def from_findings_and_back(w):
    pks = [f"u{n}" for n in range(12)]
    for pk in pks:
        w.put(w.table, item(pk, cost=1))
    w.settle()
    break_rows(w, random.Random(2), pks)
    broken = {name: {pk: w.get(w.where(name), key(pk)) for pk in pks} for name in REPLICAS}
    process = subprocess.run([SLUICE, "verify", "--table", w.table, "--json", "--quiet", "--consumer", "place.json"], cwd=w.folder,
                             stdout=open(w.folder / "found.jsonl", "wb"), stderr=subprocess.PIPE, check=False)
    check("found", process.returncode == 1, process.stderr)
    status, out, err = repair(w, "--save", "back.jsonl", "--routes", "replica,aside,beside", "found.jsonl")
    check("findings are repaired", status == 0, out + err)
    equal(w, "and all is right")
    w.put(w.table, item("u0", cost=55))
    w.settle()
    other = json.loads((w.folder / "sluice.json").read_text().replace(f"{w.p}-replica", f"{w.p}-byuser"))
    (w.folder / "other.json").write_text(json.dumps(other))
    status, out, err = repair(w, "--undo", "back.jsonl", "--config", "other.json")
    check("another target of a route of the same name is refused, before anything is written",
          status == 2 and f"saved from dynamodb://{w.p}-replica" in err and not out, out + err)
    status, out, err = repair(w, "--undo", "found.jsonl")
    check("findings are nothing to undo", status == 2 and "line 1" in err and "--save" in err and not out, out + err)
    status, out, err = repair(w, "--undo", "back.jsonl", "--dry-run")
    check("a dry run of an undo", status == 1 and "would be written" in out and ": written" not in out, out + err)
    status, out, err = repair(w, "--json", "--dry-run")
    check("--json prints JSON lines alone", all(json.loads(line) for line in out.splitlines()), out)
    process = subprocess.run([SLUICE, "repair", "--undo", "back.jsonl"], cwd=w.folder, capture_output=True, check=False)
    check("taken back, but for what has changed since", process.returncode == 1 and process.stdout.count(b"moved") >= 1, process)
    ours = {"sluice_order", "sluice_write", "sluice_deleted", "sluice_expires"}
    for name in REPLICAS:
        for pk in pks[1:]:
            now, was = w.get(w.where(name), key(pk)), broken[name][pk]
            now = None if now and "sluice_deleted" in now else now
            strip = lambda row: row and {n: v for n, v in row.items() if n not in ours and n != "tags"}
            check(f"{name} {pk} is as it was before", strip(now) == strip(was), (now, was))
    status, out, err = repair(w, "--delete")
    check("and right again", status == 0, out + err)
    equal(w, "verified")


def sums(w):
    """Totals that somebody has changed by hand, or removed: added to while the consumer runs and users write."""
    for n in range(6):
        w.put(w.table, item(f"s{n}", status=f"SUM{n % 3}", cost=10 + n))
    w.settle()
    group = lambda n: {"PK": {"S": f"STATUS#SUM{n}"}}
    w.db("UpdateItem", TableName=w.where("totals"), Key=group(0), UpdateExpression="ADD #s :n", ExpressionAttributeNames={"#s": "sum"},
         ExpressionAttributeValues={":n": {"N": "1000"}})
    w.delete(w.where("totals"), group(1))
    w.db("UpdateItem", TableName=w.where("totals"), Key=group(2), UpdateExpression="REMOVE n")
    status, out, err = repair(w)
    check("totals are left alone unless asked for", status == 1 and out.count("NoTotals") == 4, out + err)
    status, out, err = repair(w, "--totals", "--dry-run")
    check("a dry run of totals", status == 1 and out.count("would be written") == 4 and "-1000 added" in out, out + err)
    writer = Writer(w, 9, keys=10, pause=0.5)
    writer.start()
    status, out, err = repair(w, "--totals", "--audit", "sums.jsonl", "--wait", "5")
    writer.stop()
    check("totals are set right beside a writer", out.count("written") >= 4 or status == 3, out + err)
    w.settle()
    status, out, err = repair(w, "--totals", "--audit", "sums.jsonl")
    check("and once nobody writes, all are", status == 0, out + err)
    status, out, err = repair(w, "--totals", "--routes", "totals")
    check("once", status == 0 and " 0 written" in out, out + err)
    equal(w, "totals verified")
    check("they are what the items say", totals(w) == expected_totals(w), (totals(w), expected_totals(w)))
    check("the audit says what was added", '"added":"-1000"' in (w.folder / "sums.jsonl").read_text())


def killed_beside_writers(w):
    """Rows are broken, the consumer runs, users write, and the repair is killed again and again."""
    rng = random.Random(3)
    pks = [f"b{n}" for n in range(40)]
    for pk in pks:
        w.put(w.table, item(pk, cost=rng.randrange(100)))
    w.settle()
    writer = Writer(w, 8, keys=20, pause=0.05)
    writer.start()
    kills = 0
    for _ in range(4):
        break_rows(w, rng, rng.sample(pks, 15))
        for pk in rng.sample(pks, 3):
            count_wrongly(w, pk, rng.randrange(1, 50))
        process = repair(w, "--delete", "--wait", "5", wait=False)
        try:
            process.wait(rng.uniform(1.2, 3.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate(timeout=600)
    check("some were killed", kills > 0, kills)
    check("the writer wrote", writer.stop() > 10)
    w.settle()
    status, out, err = repair(w, "--delete", "--wait", "60")
    check("the last one ends", status == 0, out + err)
    equal(w, "all is right")
    check("the totals too", totals(w) == expected_totals(w), (totals(w), expected_totals(w)))


def pair():
    """One side's changes were lost in a gap of its stream; the other side follows what the repair writes."""
    a, b = World("ra", ["replica"]), World("rb", ["replica"])
    for here, there in ((a, b), (b, a)):
        here.config["routes"][0]["to"] = "dynamodb://" + there.table
        (here.folder / "sluice.json").write_text(json.dumps(here.config))
        here.tail()
    for n in range(8):
        side = a if n % 2 else b
        side.put(side.table, item(f"p{n}", cost=n))
    for w in (a, b, a):
        w.settle()
    a.close()
    a.put(a.table, item("p8", cost=80))
    for n in range(4):
        a.update(a.table, key(f"p{n}"), "SET cost = :n", n={"N": str(70 + n)})
    a.delete(a.table, key("p5"))
    (a.folder / "place.json").unlink()
    a.tail("--from", "latest")
    for w in (a, b):
        w.settle()
    both = ["--consumer", str(b.folder / "place.json")]
    found = a.verify(*both)
    check("a gap in one direction of a pair", found.kinds("replica") == {
        **{f"p{n}": "stale" if n % 2 else "different" for n in range(4)}, "p8": "missing", "p5": "left over"}, str(found))
    status, out, err = repair(a, "--delete", *both)
    check("is repaired", status == 0 and " 5 written, 1 removed" in out, out + err)
    for w in (a, b, a, b):
        w.settle()
    rows = [{json.dumps(row["PK"]): row["cost"] for row in w.db.scan(w.table) if "sluice_deleted" not in row} for w in (a, b)]
    check("both sides are what the users wrote", rows[0] == rows[1] and rows[0]['{"S": "p0"}'] == {"N": "70"} and len(rows[0]) == 8, rows)
    items = [sorted(json.dumps(row, sort_keys=True) for row in w.db.scan(w.table)) for w in (a, b)]
    time.sleep(2)
    for w in (a, b):
        w.settle()
    check("and nothing swings", items == [sorted(json.dumps(row, sort_keys=True) for row in w.db.scan(w.table)) for w in (a, b)])
    for w, other in ((a, b), (b, a)):
        run = w.verify("--consumer", str(other.folder / "place.json"))
        check("verified", run.status == 0, str(run))
    for w in (b, a):
        w.put(w.table, item("p1", cost=5 if w is a else 4))
        a.settle()
        b.settle()
    rows = lambda: [b.get(w.table, key("p1"))["cost"]["N"] for w in (a, b)]
    # (A stream may show a change later than an empty answer for its time.)
    check("the users' next changes go both ways", until(lambda: rows() == ["5", "5"]), rows())
    a.close()
    b.close()


def bad_input(w):
    (w.folder / "bad.jsonl").write_text('{"result":"different"}\n')
    (w.folder / "cut.jsonl").write_text('{"result":"differ')
    (w.folder / "summary.jsonl").write_text('{"result":"summary","different":0}\n')
    for flags, text in ((("nosuch.jsonl",), "nosuch.jsonl"), (("bad.jsonl",), "bad.jsonl: line 1"), (("cut.jsonl",), "cut.jsonl: line 1"),
                        (("--undo", "bad.jsonl"), "bad.jsonl: line 1"), (("--undo", "back.jsonl", "found.jsonl"), "--undo"),
                        (("--audit", "/nosuch/a"), "/nosuch/a"), (("--max-deletes", "-1"), "--max-deletes")):
        status, out, err = repair(w, *flags)
        check(f"{flags}: {text}", status == 2 and text in err, f"{status} {out} {err}")
    where = {"result": "different", "source_key": key("none")}
    (w.folder / "other.jsonl").write_text(json.dumps({**where, "route": "nosuch"}) + "\n")
    status, out, err = repair(w, "other.jsonl")
    check("a route that the configuration does not have", status == 2 and "nosuch" in err, f"{status} {out} {err}")
    (w.folder / "sums.jsonl").write_text('{"result":"different","kind":"sum","handler":"aggregate","routes":["totals"],"key":{}}\n'
                                         '{"result":"different","kind":"gap","handler":"archive","route":"kept"}\n')
    status, out, err = repair(w, "sums.jsonl")
    check("what is no item is told", status == 3 and "2 findings are of totals or archives" in err, f"{status} {out} {err}")
    w.put(w.where("replica"), {**key("u1"), "cost": {"N": "-1"}})
    (w.folder / "twice.jsonl").write_text(2 * (json.dumps({**where, "route": "replica", "source_key": key("u1")}) + "\n"))
    (w.folder / "kept.jsonl").write_text('{"route":"rep')
    status, out, err = repair(w, "--save", "kept.jsonl", "twice.jsonl")
    check("a finding that comes twice is repaired once", status == 0 and " 1 written" in out and " 0 moved" in out, f"{status} {out} {err}")
    process = subprocess.run([SLUICE, "repair", "--undo", "kept.jsonl"], cwd=w.folder, capture_output=True, text=True, check=False)
    check("a line that was cut hides no other", process.returncode == 1 and " 1 written" in process.stdout and " 1 left" in process.stdout, process)
    status, out, err = repair(w, "--save", "kept.jsonl", "twice.jsonl")
    check("right again", status == 0 and " 1 written" in out, f"{status} {out} {err}")
    status, out, err = repair(w, "summary.jsonl")
    check("no findings, nothing to do", status == 0, out + err)


def main():
    start_services("dynamodb")
    w = World("r", ROUTES)
    w.tail()
    whole_table(w)
    from_findings_and_back(w)
    bad_input(w)
    sums(w)
    killed_beside_writers(w)
    w.close()
    pair()
    finish()


main()
