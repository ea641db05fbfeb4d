#!/usr/bin/env python3
"""opensearch:// against OpenSearch itself: the port suite, a random history under faults, verify and repair, backfill, and what is refused.
LONG=1 (`make opensearch-long`) adds restarts of OpenSearch in mid-write, a node that forbids scripts, and longer histories."""
import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from urllib.parse import quote

import opensearch_world as world
import table_world
from opensearch_world import Node, compare, live, plain
from table_world import BUILD, History, check, config, folder, parked, replay, route, sluice

LONG = bool(os.environ.get("LONG"))
CHANGES, KEYS = (6000, 300) if LONG else (500, 40)
FAULTS = "crash@6%,die@4%,lost@6%,connect@8%"
COPY = {"name": "copy", "handler": "replicate", "to": "sqlite:source.db?table=orders", "guard": "none"}


def port_suite(node):
    """Nothing but our own field is mapped: what items hold is of every kind."""
    for index in ("ports", "ports-scanned", "ports-scripted", "ports-texts"):
        node.make(index, mappings={"dynamic": False, "properties": {"sluice_hash": {"type": "keyword"}}}, aliases={},
                  settings={"translog.durability": "async"})
    run = subprocess.run([f"{BUILD}/tests/sinks/test_ports"], capture_output=True, text=True, timeout=600,
                         env={**os.environ, "OPENSEARCH_ENDPOINT": f"http://127.0.0.1:{node.port}"})
    text = run.stdout + run.stderr
    check("the port suite", run.returncode == 0, "\n".join(l for l in text.splitlines() if "FAILED" in l or "ERROR" in l or "LINE" in l))
    for side in ("opensearch", "opensearch scanned", "opensearch scripted", "opensearch texts"):
        check(f"cases ran on the side {side}", f"OK ] {side}: " in text)


def histories(node, history):
    """Faults on the way, then the whole history once more: the index is the table, and nothing comes back."""
    sides = {"read": ({}, True), "script": ({"order": "script"}, False), "texts": ({"numbers": "text"}, True)}
    for name, (options, exact) in sides.items():
        node.make(name, settings={"gc_deletes": "1s"})
        conf = config(f"{name}.json", route(node.target(name, **options)))
        numbers = options.get("numbers", "number")
        replay(conf, "history.json", faults=FAULTS, seed=len(name))
        compare(node, name, history, f"{name}: after the history", numbers, exact)
    time.sleep(1.5)  # deleted versions are forgotten
    for name, (options, exact) in sides.items():
        before = node.documents(name)
        replay(f"{name}.json", "history.json", faults="lost@10%")
        check(f"{name}: the history once more changes nothing", node.documents(name) == before)
        hidden = node.ask("POST", f"/{name}-live/_count")["count"]
        check(f"{name}: the alias hides the tombstones", hidden == len(history.items) < len(before), hidden)
        check(f"{name}: nothing is parked", not parked(f"{name}.json"), parked(f"{name}.json")[:1])


def verify(conf, *args, verb="verify"):
    return sluice(verb, "--config", conf, "--table", "sqlite:source.db?table=orders", "--max-lag", "0", "--json", *args)


def kinds(run):
    found = {}
    for line in run.out.splitlines():
        finding = json.loads(line)
        if "result" in finding and "key" in json.dumps(finding):
            found.setdefault(finding.get("result"), []).append(finding)
    return found


def verify_and_repair(node, name, *options):
    """A breakage of each kind is found, and mended."""
    conf = f"{name}.json"
    run = verify(conf)
    check(f"{name}: verify finds the index equal", run.returncode == 0, run.text)
    rows = sorted(i for i in live(node, name) if i.startswith("k"))
    lost, changed, bare, retyped = rows[0], rows[1], rows[2], rows[3]
    node.ask("DELETE", f"/{name}/_doc/{lost.replace('|', '%7C')}")
    node.ask("POST", f"/{name}/_update/{changed.replace('|', '%7C')}", {"doc": {"status": "BROKEN", "version": 7}})
    node.ask("POST", f"/{name}/_update/{bare.replace('|', '%7C')}", {"script": "ctx._source.remove('sluice_order')"})
    node.ask("POST", f"/{name}/_update/{retyped.replace('|', '%7C')}", {"doc": {"status": None}})
    deleted = next(i for i, d in node.documents(name).items() if "sluice_deleted" in d and i.startswith("k"))
    node.ask("POST", f"/{name}/_update/{deleted.replace('|', '%7C')}",
             {"script": "ctx._source.remove('sluice_deleted'); ctx._source.remove('sluice_expires'); ctx._source.status = 'BACK'"})
    node.ask("PUT", f"/{name}/_doc/stranger%7C1", {"PK": "stranger", "SK": 1, "status": "OPEN"})
    node.ask("PUT", f"/{name}/_doc/astray", {"PK": "k1", "SK": 1, "status": "OPEN"})
    node.ask("POST", f"/{name}/_refresh")
    run = verify(conf)
    for what, row in (("missing", lost), ("different", changed), ("unguarded", bare), ("different", retyped), ("left over", deleted),
                      ("left over", "stranger"), ("not comparable", "KeyNotKept")):
        lines = [l for l in run.out.splitlines() if json.dumps(row.split("|")[0])[1:-1] in l and what in l]
        check(f"{name}: {row} is {what}", run.returncode == 1 and lines, run.text)
    run = verify(conf, "--delete", verb="repair")
    check(f"{name}: repair leaves only the stranger", run.returncode == 1 and "NotOurs" in run.out, run.text)
    node.ask("DELETE", f"/{name}/_doc/stranger%7C1")
    node.ask("DELETE", f"/{name}/_doc/astray")
    node.ask("POST", f"/{name}/_refresh")
    run = verify(conf)
    check(f"{name}: all is right again", run.returncode == 0, run.text)


# ---- rows under other keys ----

def escaped(text):
    return text.replace("%", "%25").replace("#", "%23")


def rows_of_view(items):
    """What docs/VIEWS.md says of VIEW, by code of this test: an item is one row, under its status."""
    rows = []
    for item in items:
        if item["status"]["S"] in ("OPEN", "PAID"):
            rows.append({"PK": "STATUS#" + item["status"]["S"], "SK": escaped(item["PK"]["S"]) + "#" + escaped(item["SK"]["N"]), "version": plain(item["version"], "number"),
                         "sluice_of": {"view": "by-status", "key": {"PK": item["PK"]["S"], "SK": plain(item["SK"], "number")}}})
    return sorted(rows, key=lambda r: (r["PK"], r["SK"]))


def views(node, history):
    """A view without `each`: a random history under faults, another one late, a part of it parked; then verify and repair, and backfill."""
    view = {"name": "by-status", "handler": "view", "key": {"PK": "STATUS#{status}", "SK": "{PK|key}#{SK|key}"}, "project": ["version"],
            "where": {"status": ["OPEN", "PAID"]}}

    def have(index):
        return sorted(live(node, index).values(), key=lambda r: (r["PK"], r["SK"]))

    wanted = rows_of_view(history.items.values())
    for name, options in (("view", {}), ("view-scripted", {"order": "script"})):
        node.make(name, settings={"gc_deletes": "1s"})
        conf = config(f"{name}.json", {**view, "to": node.target(name, **options)})
        late = [r for n, r in enumerate(history.records) if n % 7 == 3]
        replay(conf, history.write("without.json", [r for n, r in enumerate(history.records) if n % 7 != 3]), faults=FAULTS, seed=5)
        replay(conf, history.write("late.json", late), faults=FAULTS, seed=6)
        check(f"{name}: it is what the items make", have(name) == wanted, f"{have(name)}\nand not\n{wanted}")
        time.sleep(1.5)  # deleted versions are forgotten
        before = node.documents(name)
        replay(conf, "history.json", faults="lost@10%")
        check(f"{name}: the history once more changes nothing", node.documents(name) == before)
        check(f"{name}: the alias hides the tombstones", node.ask("POST", f"/{name}-live/_count")["count"] == len(wanted) < len(before))
        check(f"{name}: nothing is parked", not parked(conf), parked(conf)[:1])
    conf = "view.json"
    run = verify(conf)
    check("view: verify finds it equal", run.returncode == 0, run.text)
    ids = sorted(i for i in live(node, "view") if "|k" in i)
    lost, changed, bare = ids[0], ids[1], ids[2]
    gone = next(i for i, d in sorted(node.documents("view").items()) if "sluice_deleted" in d and "|k" in i)
    node.ask("DELETE", f"/view/_doc/{quote(lost)}")
    node.ask("POST", f"/view/_update/{quote(changed)}", {"doc": {"version": 7}})
    node.ask("POST", f"/view/_update/{quote(bare)}", {"script": "ctx._source.remove('sluice_order')"})
    node.ask("POST", f"/view/_update/{quote(gone)}", {"script": "ctx._source.remove('sluice_deleted'); ctx._source.remove('sluice_expires')"})
    node.ask("POST", "/view/_refresh")
    run = verify(conf)
    for what, row in (("missing", lost), ("different", changed), ("unguarded", bare), ("left over", gone)):
        lines = [l for l in run.out.splitlines() if json.dumps(row.split("|")[1])[1:-1] in l and what in l]
        check(f"view: {row} is {what}", run.returncode == 1 and lines, run.text)
    run = verify(conf, verb="repair")
    check("view: repair without --delete leaves what has to go", run.returncode == 1 and "WouldRemove" in run.out, run.text)
    run = verify(conf, "--delete", verb="repair")
    check("view: repair", run.returncode == 0, run.text)
    run = verify(conf)
    check("view: all is right again", run.returncode == 0 and have("view") == wanted, run.text)
    replay(conf, "history.json")
    check("view: what was repaired keeps its order", have("view") == wanted)
    node.make("view-filled")
    conf = config("view-filled.json", {**view, "to": node.target("view-filled")})
    run = sluice("backfill", "--config", conf, "--table", "sqlite:source.db?table=orders", "--keys", "PK,SK", "--unsafe-order", "--checkpoint",
                 "view-filled.checkpoint", "--quiet")
    check("view: backfill", run.returncode == 0 and have("view-filled") == wanted, run.text)


def backfill(node, history):
    node.make("filled")
    conf = config("filled.json", route(node.target("filled")))
    run = sluice("backfill", "--config", conf, "--table", "sqlite:source.db?table=orders", "--keys", "PK,SK", "--unsafe-order", "--checkpoint",
                 "filled.checkpoint", "--quiet")
    check("backfill", run.returncode == 0, run.text)
    compare(node, "filled", history, "after the backfill")
    replay(conf, "history.json")
    compare(node, "filled", history, "after backfill and history")


def conflicts(node, history):
    """A field that is a number: exactly the records whose item holds a text are parked."""
    mappings = json.loads(json.dumps(world.TEMPLATE["mappings"]))
    mappings["properties"]["amount"] = {"type": "long"}
    node.make("strict", mappings=mappings)
    conf = config("strict.json", route(node.target("strict")))
    records = [r for r in History(3, 200, 60).records if r["eventName"] == "INSERT"][:60]
    for n, r in enumerate(records):
        r["dynamodb"]["NewImage"]["amount"] = {"S": f"zanzibar-{n}"} if n % 7 == 3 else {"N": str(n)}
    history.write("conflict.json", records)
    replay(conf, "conflict.json")
    bad = {r["eventID"] for n, r in enumerate(records) if n % 7 == 3}
    found = parked("strict.json")
    check("exactly the records that do not fit are parked", {json.loads(json.dumps(p)).get("eventID", p.get("record", {}).get("eventID")) for p in found} == bad or
          {i for i in bad for p in found if i in json.dumps(p)} == bad and len(found) == len(bad), found[:1])
    text = json.dumps(found)
    check("with OpenSearch's reason", "mapper_parsing_exception" in text, text[:500])
    codes = [json.dumps({k: v for k, v in p.items() if k not in ("dynamodb", "record")}) for p in found]
    check("and without the values", not any("zanzibar" in c.replace(json.dumps(p.get("dynamodb", "")), "") for c, p in zip(codes, found)), codes[:1])
    check("the others are there", len(live(node, "strict")) == len({json.dumps(r["dynamodb"]["Keys"]) for n, r in enumerate(records) if n % 7 != 3}))


def refused(node, history):
    """What is wrong with the index stops the route with one clear error, and parks nothing."""
    history.write("one.json", history.records[:1])
    node.make("a1")
    node.make("a2")
    node.ask("POST", "/_aliases", {"actions": [
        {"add": {"index": "a1", "alias": "both"}}, {"add": {"index": "a2", "alias": "both"}}, {"add": {"index": "a1", "alias": "fine"}},
        {"add": {"index": "a1", "alias": "rolled", "is_write_index": True}}]})
    node.ask("PUT", "/bare", {"settings": {"number_of_replicas": 0}})
    node.ask("PUT", "/_index_template/stream", {"index_patterns": ["stream"], "data_stream": {}, "template": {"settings": {"number_of_replicas": 0}}})
    node.ask("PUT", "/_data_stream/stream")
    node.make("blocked", settings={"blocks.write": True})
    node.make("readable", settings={"blocks.read_only": True})
    node.make("closed")
    node.ask("POST", "/closed/_close")
    full = len(world.TEMPLATE["mappings"]["properties"]) + 1
    node.make("full", settings={"mapping.total_fields.limit": full})
    wrong = {"nowhere": "no such index", "both": "several indexes", "rolled": "roll over", "a1-live": "filtered alias", "bare": "sluice_hash", "stream": "a data stream is no index",
             "blocked": "cluster_block_exception", "readable": "cluster_block_exception", "closed": "index is closed", "full": "total_fields.limit"}
    for name, says in wrong.items():
        conf = config(f"no-{name}.json", route(node.target(name)))
        run = sluice("replay", "--config", conf, "--max-retries", "0", "--report-failures", "one.json")
        check(f"{name} is refused", run.returncode == 1 and says in run.err, run.text)
        check(f"{name} parks nothing", not parked(conf))
    check("and no index was made", node.ask("GET", "/nowhere", fails=True).get("status") == 404)
    replay(config("fine.json", route(node.target("fine"))), "one.json")
    check("a plain alias is fine", len(node.documents("a1")) == 1)
    tests = {"aggregate": ({"name": "n", "handler": "aggregate", "to": node.target("a1"), "counters": [{"key": {"PK": "a"}, "add": {"n": 1}}]}, "transactions"),
             "guard": (route(node.target("a1"), guard={"table": "guards"}), "transactions"),
             "tombstones": (route(node.target("a1"), tombstones={"table": "t"}), "transactions"),
             "serverless": (route("opensearch://abc.us-east-1.aoss.amazonaws.com/orders"), "aoss"),
             "pattern": (route("opensearch://127.0.0.1/a*"), "name of an index")}
    for name, (one, says) in tests.items():
        run = sluice("check", config(f"bad-{name}.json", one))
        check(f"{name} is refused at start", run.returncode != 0 and says in run.text, run.text)


# ---- the long form ----

def restarts(node, history):
    """The node is killed while records are written, several times; what was answered is there."""
    node.make("killed")
    conf = config("killed.json", route(node.target("killed")))
    failed, kills = [], 0

    def write():
        try:
            for seed in itertools.count():
                replay(conf, "history.json", faults=FAULTS, seed=seed, timeout=900)
                if kills > 2:
                    return
        except SystemExit as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():  # (A node dies with the thread that has started it: that is this one.)
        time.sleep(4)
        node.kill()
        kills += 1
        time.sleep(1)
        node.start()
    writer.join()
    check("the history was written", not failed, failed)
    compare(node, "killed", history, "after restarts of OpenSearch")


def without_scripts(history):
    node = Node("forbidden", "script.allowed_types=none")
    node.make("read")
    node.make("script")
    replay(config("unscripted.json", route(node.target("read"))), "history.json", faults=FAULTS)
    compare(node, "read", history, "where scripts are forbidden")
    run = sluice("replay", "--config", config("scripted.json", route(node.target("script", order="script"))), "--max-retries", "0", "one.json")
    check("order=script says what to do", run.returncode == 1 and "remove order=script" in run.err, run.text)
    node.kill()


def timed(function, *args):
    began = time.time()
    function(*args)
    if os.environ.get("TIMES"):
        print(f"{function.__name__}: {time.time() - began:.1f} s", flush=True)


def main():
    node = Node("node")
    try:
        history = History(11, CHANGES, KEYS)
        history.write("history.json")
        if not os.environ.get("NOSUITE"):
            timed(port_suite, node)
        timed(replay, config("copy.json", COPY), "history.json")
        timed(histories, node, history)
        timed(verify_and_repair, node, "read")
        timed(verify_and_repair, node, "script")
        timed(views, node, history)
        timed(backfill, node, history)
        timed(conflicts, node, history)
        timed(refused, node, history)
        if LONG:
            timed(restarts, node, history)
            timed(without_scripts, history)
    finally:
        node.kill()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{table_world.passed} passed, 0 failed")


main()
