#!/usr/bin/env python3
"""`sluice verify` against DynamoDB Local, beside writers and a running `sluice tail`: no false alarm, and every row that was broken on
purpose is found, by its kind. LONG=1 (`make verify-long`) is the same with ten minutes of load."""
import gzip
import json
import os
import subprocess
import time

from harness import BUILD, check, ended, finish
from verify_world import SLUICE, Writer, World, item, key, start_services

LONG = bool(os.environ.get("LONG"))
ITEM_ROUTES = ["replica", "aside", "beside", "totals", "more"]


def quiet(run, name):
    check(name, run.status == 0 and not run.findings, str(run))


def no_alarm(run, name):
    check(name, run.status in (0, 3) and not run.different(), str(run))


def no_alarm_of_lag(w, lag, name, *args):
    """We say how far the consumer is behind. On a slow machine that is more than it is on others."""
    for seconds in (lag, 5 * lag):
        run = w.verify("--max-lag", str(seconds), "--wait", str(3 * seconds), *args, consumer=False)
        if not run.different():
            break
    no_alarm(run, name)


# ---- no false alarm ----

def beside_writers(w):
    """The writers are as fast as the service; then slow enough for the consumer to keep up, so that suspects can be confirmed."""
    writers = [Writer(w, 1), Writer(w, 2)]
    for writer in writers:
        writer.start()
    until = time.time() + (600 if LONG else 4)
    while time.time() < until or sum(writer.n for writer in writers) <= 100:
        no_alarm(w.verify("--wait", "3"), "beside writers at full speed")
    for writer in writers:
        writer.stop()
    w.settle()
    quiet(w.verify(), "afterwards all is equal")
    slow = [Writer(w, 3, keys=20, pause=0.15), Writer(w, 4, keys=20, pause=0.15)]
    for writer in slow:
        writer.start()
    for _ in range(10 if LONG else 1):
        no_alarm_of_lag(w, 3, "beside writers that the consumer keeps up with")
    for writer in slow:
        writer.stop()


def consumer_held_back(w):
    w.settle()
    w.hold(True)
    for n in range(40):
        w.put(w.table, item(f"w1-{n}", cost=7000 + n))
        if n % 5 == 0:
            w.delete(w.table, key(f"w1-{n}"))
    run = w.verify("--wait", "60" if LONG else "3")
    no_alarm(run, "a consumer that is held back")
    check("what waits for it is pending", run.summary["pending"] > 40 and run.status == 3, str(run))
    late = w.verify("--wait", "120", wait=False)
    time.sleep(60 if LONG else 3)
    w.hold(False)
    late = type(run)(late)
    quiet(late, "and equal, once it has caught up")


def restless_item(w):
    """Every few milliseconds: it never stands still, so it is unsettled, or seen right."""
    writer = Writer(w, 5, keys=1, pause=0.005)
    writer.start()
    time.sleep(1)
    no_alarm_of_lag(w, 30 if LONG else 4, "an item that is written all the time", "--item", json.dumps(key("w5-0")))
    writer.stop()
    w.settle()


def expiring(w):
    """An item past its TTL may be gone here or there."""
    past, later = {"N": str(int(time.time()) - 100)}, {"N": str(int(time.time()) + 9999)}
    for pk, ttl in (("ttl-here", past), ("ttl-there", past), ("ttl-later", later)):
        w.put(w.table, item(pk, expires=ttl))
    w.settle()
    for name in ("replica", "aside", "beside"):
        w.delete(w.where(name), key("ttl-there"))  # a replica with TTL
    rows = {name: w.get(w.where(name), key("ttl-here")) for name in ("replica", "aside", "beside")}
    w.delete(w.table, key("ttl-here"))
    w.settle()
    for name, row in rows.items():
        w.put(w.where(name), row)  # TTL has taken the item of the source, and the stream has not said so yet
    quiet(w.verify(), "items past their TTL")
    w.delete(w.where("replica"), key("ttl-later"))
    check("but not those whose time has not come", w.verify().kinds("replica") == {"ttl-later": "missing"})
    for name in ("replica", "aside", "beside"):
        w.delete(w.where(name), key("ttl-here"))
    w.delete(w.table, key("ttl-there"))
    w.put(w.table, item("ttl-later", cost=2))
    w.settle()


def tombstones_expire(w):
    w.put(w.table, item("gone"))
    w.settle()
    w.delete(w.table, key("gone"))
    w.settle()
    check("a tombstone stands for no item", "sluice_deleted" in w.get(w.where("replica"), key("gone")))
    quiet(w.verify(), "tombstones are no items")
    w.delete(w.where("replica"), key("gone"))
    quiet(w.verify(), "nor is it missed when it has expired")


def redrive(w):
    """Old records that are delivered again change nothing."""
    for n in range(20):
        w.put(w.table, item(f"w1-{n}", cost=3))
    w.settle()
    with open(w.folder / "redriven.jsonl", "w", encoding="utf-8") as file:
        for n in range(20):
            file.write(json.dumps({"eventName": "MODIFY", "eventSource": "aws:dynamodb", "eventSourceARN":
                                   f"arn:aws:dynamodb:ddblocal:000000000000:table/{w.table}/stream/x", "dynamodb": {
                "Keys": key(f"w1-{n}"), "NewImage": item(f"w1-{n}", cost=1), "OldImage": item(f"w1-{n}", cost=2),
                "SequenceNumber": f"{n + 1:021d}", "StreamViewType": "NEW_AND_OLD_IMAGES"}}) + "\n")
    process = subprocess.Popen([SLUICE, "replay", "--config", "sluice.json", "redriven.jsonl"], cwd=w.folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    run = w.verify()
    process.wait(600)
    no_alarm(run, "beside a redrive")
    quiet(w.verify(), "and after it")


# ---- broken on purpose ----

def broken_replicas(w):
    names = ("edited", "lost", "older", "bare", "more", "less", "deep", "type", "set", "buried", "left", "source")
    for pk in names:
        w.put(w.table, item(pk, cost=5))
    w.settle()
    here = {name: w.where(name) for name in ("replica", "aside", "beside")}
    old = {name: {pk: w.get(here[name], key(pk)) for pk in names} for name in here}
    for pk in ("older", "left"):
        w.put(w.table, item(pk, cost=6))
    w.settle()
    w.delete(w.table, key("left"))
    w.delete(w.table, key("buried"))
    w.settle()
    tombstone = w.get(here["replica"], key("buried"))
    w.put(w.table, item("buried", cost=7))
    w.settle()
    for name, table in here.items():
        cost = "price" if name == "beside" else "cost"
        w.update(table, key("edited"), f"SET {cost} = :n", n={"N": "999"})
        w.delete(table, key("lost"))
        w.put(table, old[name]["older"])
        w.update(table, key("more"), "SET extra = :x", x={"BOOL": False})
        w.update(table, key("less"), "REMOVE #s".replace("#s", "deep"))
        w.update(table, key("deep"), "SET deep.n = :n", n={"N": "1.51"})
        w.update(table, key("type"), f"SET {cost} = :n", n={"S": "5"})
        w.put(table, old[name]["left"])
    w.update(here["replica"], key("bare"), "REMOVE sluice_order")
    w.update(here["replica"], key("set"), "SET tags = :t", t={"SS": ["a", "c"]})
    w.put(here["replica"], tombstone)
    w.put(here["replica"], item("stranger"))
    run = w.verify()
    wanted = {"edited": "different", "lost": "missing", "older": "stale", "bare": "unguarded", "more": "different", "less": "different",
              "deep": "different", "type": "different", "set": "different", "buried": "missing", "left": "left over", "stranger": "left over"}
    found = run.kinds("replica")
    check("inline guards: each row, by its kind", run.status == 1 and found == wanted, f"{found} {run}")
    wanted = {pk: kind for pk, kind in wanted.items() if pk not in ("bare", "set", "buried", "stranger")}
    found = run.kinds("aside")
    check("marks beside: the same, and what the mark says was deleted", found == {**wanted, "left": "revived"}, f"{found} {run}")
    found = run.kinds("beside")
    check("guards beside: the same, reshaped", found == {**wanted, "older": "different", "left": "revived"}, f"{found} {run}")
    names = {f["source_key"]["PK"]["S"]: f.get("attributes") for f in run.different("replica")}
    check("and which attributes", names["edited"] == ["cost"] and names["more"] == ["extra"] and names["less"] == ["deep"] and not names["lost"], names)
    check("values are shown when they are asked for alone", "row" not in run.findings[0] and
          "row" in w.verify("--show-values", "--item", json.dumps(key("edited"))).findings[0])
    run = w.verify("--routes", "replica", "--match", '{"PK":{"S":["edited"]}}')
    check("--match", run.kinds("replica") == {"edited": "different"}, str(run))
    run = w.verify("--routes", "replica", "--ignore", "cost", "--item", json.dumps(key("edited")))
    check("--ignore", run.status == 0, str(run))
    for table in here.values():
        w.delete(table, key("left"))
    w.delete(here["replica"], key("stranger"))
    for pk in wanted.keys() | {"bare", "set", "buried"}:
        w.put(w.table, item(pk, cost=8))
    w.delete(w.table, key("left"))
    w.settle()
    run = w.verify("--routes", "replica,aside,beside")
    check("the next change heals what it may", run.kinds("replica") == {} and run.kinds("aside") == {} and run.kinds("beside") == {}, str(run))


def broken_ledger(w):
    for pk in ("l-lost", "l-off", "l-left"):
        w.put(w.table, item(pk, status="BROKEN", cost=5))
    w.settle()
    rows = {}
    for row in w.db.scan(w.where("ledger")):
        for pk in ("l-lost", "l-off", "l-left"):
            if f'"{pk}"' in row["PK"]["S"]:
                rows[pk] = row
    w.delete(w.where("ledger"), {"PK": rows["l-lost"]["PK"]})
    off = json.loads(json.dumps(rows["l-off"]).replace('"5"', '"6"'))
    w.put(w.where("ledger"), off)
    w.put(w.where("ledger"), json.loads(json.dumps(rows["l-left"]).replace("l-left", "l-never")))
    run = w.verify("--routes", "totals")
    check("the ledger: a row that is lost, one that is off, one of no item",
          run.kinds("totals") == {"l-lost": "missing", "l-off": "different", "l-never": "left over"}, str(run))
    w.put(w.where("ledger"), rows["l-lost"])
    w.put(w.where("ledger"), rows["l-off"])
    w.delete(w.where("ledger"), {"PK": json.loads(json.dumps(rows["l-left"]["PK"]).replace("l-left", "l-never"))})
    quiet(w.verify("--routes", "totals"), "and right again")


def sums(run):
    return {(f["key"]["PK"]["S"], f["attribute"]): f["difference"] for f in run.findings if f.get("kind") == "sum" and f["result"] == "different"}


def broken_totals(w):
    """Two routes on one row of totals, and totals in several rows."""
    t = w.where("totals")
    before = w.verify("--routes", "totals")
    check("the sums are right", before.status == 0 and before.summary["totals"]["equal"] >= 3, str(before))
    row = w.get(t, {"PK": {"S": "STATUS#OPEN"}})
    w.update(t, {"PK": {"S": "STATUS#OPEN"}}, "ADD n :n", n={"N": "1"})
    w.update(t, {"PK": {"S": "STATUS#OPEN"}}, "ADD weight :n", n={"N": "-0.5"})
    w.put(t, {"PK": {"S": "STATUS#NEVER"}, "n": {"N": "3"}, "other": {"N": "7"}})
    w.put(t, {"PK": {"S": "STATUS#ZERO"}, "n": {"N": "0"}})
    run = w.verify("--routes", "totals")
    check("sums that are off, by how much", run.status == 1 and sums(run) == {("STATUS#OPEN", "n"): "1", ("STATUS#OPEN", "weight"): "-0.5",
                                                                              ("STATUS#NEVER", "n"): "3"}, str(run))
    check("unless they are left out", w.verify("--routes", "totals", "--no-totals").status == 0)
    w.delete(t, {"PK": {"S": "STATUS#OPEN"}})
    run = w.verify("--routes", "totals")
    check("a row of the totals that is lost", sums(run)[("STATUS#OPEN", "n")] == "-" + row["n"]["N"], str(run))
    w.put(t, row)
    w.delete(t, {"PK": {"S": "STATUS#NEVER"}})
    quiet(w.verify("--routes", "totals,more"), "and right again")


def spread_totals():
    w = World("s", ["spread"])
    for n in range(60):
        w.put(w.table, item(f"k{n}", cost=n))
    w.tail("--batch-size", "5")
    w.settle()
    rows = [r for r in w.db.scan(w.where("totals")) if "#" in r["PK"]["S"]]
    check("several rows", len(rows) > 1, rows)
    run = w.verify()
    check("the parts of a spread total are added up", run.status == 0 and run.summary["totals"]["equal"] == 2, str(run))
    w.update(w.where("totals"), {"PK": rows[0]["PK"]}, "ADD n :n", n={"N": "2"})
    check("and one that is off is found", list(sums(w.verify()).values()) == ["2"])
    w.close()


def archives():
    """An archive in itself: each change follows from the one before it."""
    w = World("v", ["kept"])
    w.tail("--batch-size", "5")
    for n in range(12):
        for i in range(5):
            w.put(w.table, item(f"v{i}", cost=n))
    w.delete(w.table, key("v0"))
    w.put(w.table, item("v0", cost=99))
    w.settle()
    run = w.verify("--archives")
    kept = next((f for f in run.findings if f["result"] == "archive"), {})
    check("an archive without gaps", run.status == 0 and kept["records"] == 62 and kept["items"] == 5 and kept["gaps"] == 0, str(run))
    recorded = sorted((w.folder / "archive").rglob("*.gz"))[0]
    other = gzip.compress(gzip.decompress(recorded.read_bytes()).replace(b":table/", b":table/another-"))
    second = recorded.parent / "second" / recorded.name
    second.parent.mkdir()
    second.write_bytes(other)
    run = w.verify("--archives")
    kept = next(f for f in run.findings if f["result"] == "archive")
    check("another table's items are others", kept["gaps"] == 0 and kept["items"] > 5, str(run))
    second.unlink()
    objects = sorted((w.folder / "archive").rglob("*.gz"))
    middle = objects[len(objects) // 2]
    whole = middle.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)

    def after(change, name, wanted):
        change()
        run = w.verify("--archives")
        kinds = [f["kind"] for f in run.findings if "kind" in f]
        kept = next(f for f in run.findings if f["result"] == "archive")
        check(name, wanted(run, kinds, kept), str(run))
        middle.write_bytes(whole)

    after(middle.unlink, "an object that is gone", lambda run, kinds, kept: run.status == 1 and set(kinds) == {"gap"} and len(kinds) == len(lines))
    after(lambda: middle.write_bytes(whole[:-20]), "one that is cut", lambda run, kinds, kept: run.status == 1 and "unreadable" in kinds and "gap" in kinds)
    after(lambda: middle.write_bytes(gzip.compress(b"".join(lines[1:]))), "a line that is gone",
          lambda run, kinds, kept: sorted(kinds) == ["damaged", "gap"])
    after(lambda: middle.write_bytes(gzip.compress(b"".join(lines).replace(b'"cost":{"N":"', b'"cost":{"N":"7', 1))), "a value that was changed",
          lambda run, kinds, kept: run.status == 1 and kinds.count("gap") >= 1)
    after(lambda: middle.write_bytes(gzip.compress(b"".join(lines[:-1] + [lines[-1].replace(b'"eventID":"', b'"eventID":"0')]))), "another record",
          lambda run, kinds, kept: "damaged" in kinds)
    twin = middle.parent / "again" / middle.name
    twin.parent.mkdir()
    after(lambda: twin.write_bytes(whole), "an object twice is no harm", lambda run, kinds, kept: run.status == 0 and kept["doubles"] == len(lines))
    twin.unlink()
    after(objects[0].unlink, "what was before the first is not known", lambda run, kinds, kept: run.status == 0 and kept["unknown_before"] > 0)
    w.close()


def collisions():
    w = World("c", ["byuser"])
    w.tail()
    for sk in "12":
        w.put(w.table, item("same", sk))
    w.put(w.table, item("alone"))
    w.settle()
    run = w.verify()
    check("two items under one key", [f["kind"] for f in run.different()] == ["collision"] and run.summary["equal"] == 2, str(run))
    w.close()


def plugin():
    """A plugin that offers expect, and nothing to judge by."""
    w = World("x", ["short"])
    (w.folder / "handlers").mkdir()
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include",
                    "tests/cli/expecting.c", "-o", w.folder / "handlers" / "expecting.so"], check=True)
    for pk in "abcd":
        w.put(w.table, item(pk, cost=7))
    w.tail()
    w.settle()
    run = w.verify()
    check("a plugin's rows", run.status == 0 and run.summary["equal"] == 4 and run.summary["rows"] == 4, str(run))
    t = w.where("replica")
    w.delete(t, key("a"))
    w.update(t, key("b"), "SET n = :n", n={"N": "15"})
    w.put(t, {**key("z"), "n": {"N": "1"}})
    check("and what is the matter with them", w.verify().kinds("short") == {"a": "missing", "b": "different", "z": "left over"})
    w.close()


def pair():
    """Two tables that follow each other: what came from there has no guard there."""
    a = World("pa", ["replica"])
    b = World("pb", ["replica"])
    for here, there in ((a, b), (b, a)):
        here.config["routes"][0]["to"] = "dynamodb://" + there.table
        (here.folder / "sluice.json").write_text(json.dumps(here.config))
        here.tail()
    writers = [Writer(a, 6, keys=30, pause=0.1), Writer(b, 7, keys=30, pause=0.1)]
    for writer in writers:
        writer.start()
    time.sleep(2)
    no_alarm_of_lag(a, 3, "a pair, while both sides write")
    for writer in writers:
        writer.stop()
    for _ in range(2):
        a.settle()
        b.settle()
    quiet(a.verify("--consumer", str(b.folder / "place.json")), "a pair, one way")
    quiet(b.verify("--consumer", str(a.folder / "place.json")), "and the other")
    b.put(b.table, item("both"))
    a.settle(); b.settle(); a.settle()
    a.update(b.table, key("both"), "SET cost = :n", n={"N": "3"})
    b.settle(); a.settle()
    quiet(a.verify(), "a user's write on the other side is copied back")
    a.close()
    b.close()


def bad_usage(w):
    for flags, text in ((("--routes", "nosuch"), "has no route"), (("--sample", "5/3"), "--sample"), (("--match", "{"), "--match"),
                        (("--item", '{"PK":{"S":"a"}}'), "SK"), (("--item", "{"), "--item"), (("--consumer", "sluice.json"), "through")):
        run = w.verify(*flags)
        check(f"{flags}: {text}", run.status == 2 and text in run.err and run.err.count("\n") <= 2, str(run))
    run = w.verify("--table", w.where("aside"), "--routes", "totals")
    check("a ledger that counts another table", f"counts the items of the table {w.table}" in run.err and run.status in (0, 1), str(run))
    run = subprocess.run([SLUICE, "repair", "--table", w.where("aside"), "--routes", "totals", "--max-lag", "0", "--dry-run"], cwd=w.folder,
                         capture_output=True, timeout=600)
    check("is not repaired from it", run.returncode == 2 and b"counts the items" in run.stderr, run)
    run = w.verify("--table", w.where("replica"))
    check("a target is no source", run.status == 2 and "the route replica writes" in run.err, str(run))
    (w.folder / "other.place").write_text((w.folder / "place.json").read_text().replace(w.table, "another"))
    run = w.verify("--consumer", "other.place", consumer=False)
    check("the consumer of another stream says nothing", run.status == 2 and "not of the table's stream" in run.err, str(run))
    ahead = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 60))
    place = json.loads((w.folder / "place.json").read_text())
    (w.folder / "ahead.place").write_text(json.dumps({**place, "through": ahead}))
    run = w.verify("--consumer", "ahead.place", consumer=False)
    check("a consumer cannot be ahead of time", run.status == 2 and "clock" in run.err, str(run))
    (w.folder / "stopped.place").write_text(json.dumps({**place, "through": "2026-01-01T00:00:00.000Z"}))
    run = w.verify("--consumer", "stopped.place", "--wait", "0", consumer=False)
    check("a consumer that is stopped is named at once", "stands at 2025-12-31T23:59:59" in run.err and "stopped.place). If it is stopped" in run.err, str(run))
    check("and one that runs is not", "stands at" not in w.verify().err)
    (w.folder / "bad.place").write_text('{"segments":3}')
    check("another's checkpoint", w.verify("--checkpoint", "bad.place").status == 2)
    check("a table that is not there cannot be read", w.verify("--table", "nosuch").status in (2, 4))


def resumed(w):
    """Killed and gone on with: the same counts."""
    whole = w.verify("--segments", "7")
    process = w.verify("--segments", "7", "--checkpoint", "v.place", "--read-units", "120", wait=False)
    time.sleep(1.2)
    process.terminate()
    ended(process)
    run = w.verify("--segments", "7", "--checkpoint", "v.place")
    check("a checkpoint", run.status == 0 and run.summary["equal"] == whole.summary["equal"] and not (w.folder / "v.place").exists(), f"{whole} {run}")


def main():
    start_services("dynamodb")
    w = World("a", ITEM_ROUTES + ["kept"], {"ttl_attribute": "expires"})
    for n in range(100):
        w.put(w.table, item(f"k{n}", cost=n))
    w.tail()
    w.settle()
    run = w.verify()
    check("all is equal", run.status == 0 and run.summary["equal"] == 500 and "not_comparable_because" in run.summary["routes"]["kept"], str(run))
    bad_usage(w)
    resumed(w)
    tombstones_expire(w)
    expiring(w)
    broken_replicas(w)
    broken_ledger(w)
    broken_totals(w)
    redrive(w)
    consumer_held_back(w)
    restless_item(w)
    w.close()
    w = World("b", ["replica", "totals"])
    w.tail()
    w.settle()
    beside_writers(w)
    w.close()
    spread_totals()
    archives()
    collisions()
    plugin()
    pair()
    finish()


main()
