#!/usr/bin/env python3
"""`sluice test`, `new-test` and `try`: what a case says left is what a replay leaves, for every handler and kind of target; what is
wrong with a case, a configuration or a handler is that case's failure alone."""
import glob
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time
import xml.etree.ElementTree

from harness import BUILD, Run, check, finish, record, work_folder

TOP = pathlib.Path(".").resolve()
EXAMPLES = TOP / "examples"


def sluice(*args, cwd, stdin=None, status=None, env=None):
    done = subprocess.run([f"{BUILD}/sluice", *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=600, input=stdin,
                          env={**os.environ, **(env or {})})
    if status is not None:
        check(f"exit status of {' '.join(map(str, args))[:80]}", done.returncode == status, (done.returncode, done.stdout, done.stderr))
    return done


def case(folder, name, **members):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(members))
    return path


def plain(value):
    """DynamoDB's JSON as plain JSON."""
    (tag, content), = value.items()
    if tag in ("M", "L"):
        return {k: plain(v) for k, v in content.items()} if tag == "M" else [plain(v) for v in content]
    if tag in ("NS", "SS", "BS"):
        return [plain({tag[0]: x}) for x in sorted(content, key=lambda x: json.dumps(x, ensure_ascii=False).encode())]
    return {"N": lambda n: float(n), "B": lambda b: {"base64": b}, "NULL": lambda _: None}.get(tag, lambda x: x)(content)


def in_order(value):
    """The same in an order of its own, for comparing."""
    return json.dumps(value, sort_keys=True, default=str)


def floats(value):
    if isinstance(value, dict):
        return {k: floats(v) for k, v in value.items()}
    if isinstance(value, list):
        return [floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def expected(path):
    return json.loads(pathlib.Path(path).read_text())["expect"]


# ---- the same as a replay ----

def rows_of(db, table):
    with sqlite3.connect(db) as connection:
        for (item,) in connection.execute(f'SELECT item FROM "{table}"'):
            item = json.loads(item)
            if "sluice_deleted" in item or any(next(iter(v.values())).startswith("sluice:") for k, v in item.items() if k in ("PK", "SK")):
                continue
            yield {k: plain(v) for k, v in item.items() if not k.startswith("sluice_")}


def what_leaves_is_what_a_replay_leaves(top):
    env = {"PSEUDONYM_KEY": "x", "BALLOT_KEY": "y"}
    for name in ("shop", "photos", "votes", "orders"):
        folder = top / name
        (folder / "out").mkdir(parents=True)
        config = json.loads((EXAMPLES / name / "sluice.json").read_text())
        (folder / "sluice.json").write_text(json.dumps(config))
        history = EXAMPLES / name / "history.jsonl.gz" if name != "orders" else EXAMPLES / "capture/orders.jsonl.gz"
        run = Run(folder, str(history), env={**env, "OUT": "out"})
        check(f"{name} replays", run.status == 0, run.err)
        path = case(folder, "tests/all.json", records=str(history))
        given = [f for pair in env.items() for f in ("--set", "=".join(pair))]
        sluice("test", "--bless", *given, cwd=folder, status=0)
        sluice("test", *given, cwd=folder, status=0, env={"PSEUDONYM_KEY": "another", "BALLOT_KEY": "another"})
        lines = expected(path)
        for route in config["routes"]:
            own = [line for line in lines if line["route"] == route["name"]]
            scheme, _, rest = route["to"].replace("${OUT}", "out").partition(":")
            if scheme == "sqlite":
                db, _, table = rest.partition("?table=")
                # (What a batch adds and takes away again leaves no row of zeros, as several batches do.)
                made = sorted(in_order(floats(row)) for row in rows_of(folder / db, table) if row.get("orders") != 0)
                told = sorted(in_order(floats(line["row"])) for line in own if "row" in line)
                check(f"{name}: rows of {route['name']}", made and made == told, [pair for pair in zip(made, told) if pair[0] != pair[1]][:2] or (len(made), len(told)))
            elif scheme == "jsonl":
                made = [json.loads(line) for line in (folder / rest).read_text().splitlines()]
                check(f"{name}: messages of {route['name']}", made == [line["message"] for line in own] and made, own[:2])
            else:
                made = []
                for file in sorted(glob.glob(f"{folder}/{rest}/**/*.gz", recursive=True)):
                    made += subprocess.run(["zcat", file], capture_output=True, check=True).stdout.splitlines()
                told = [record for line in own for record in line["lines"]]
                check(f"{name}: objects of {route['name']}",
                      sorted(in_order(json.loads(line)) for line in made) == sorted(map(in_order, told)) and made, (len(made), len(told)))


# ---- every kind of target ----

def every_kind_of_target(top):
    """All that docs/SINKS.md has, without one of them being asked: no key of AWS's, and no network."""
    targets = {"archive": ["s3://bucket/prefix", "file:folder"],
               "replicate": ["dynamodb://table", "sqlite:file.db?table=t", "opensearch://search.example.com/index?auth=none"],
               "aggregate": ["dynamodb://totals", "sqlite:file.db?table=t"],
               "notify": ["sqs://queue", "sns:arn:aws:sns:us-east-1:123456789012:topic", "events://bus", "kinesis://stream",
                          "firehose://stream", "https://hooks.example.com/x#secret=HOOK_SECRET", "jsonl:file", "stdout:"]}
    more = {"aggregate": {"counters": [{"key": {"PK": "all"}, "add": {"n": 1}}]}}
    for handler, urls in targets.items():
        for url in urls:
            folder = top / f"{handler}-{url.partition(':')[0]}"
            folder.mkdir()
            (folder / "sluice.json").write_text(json.dumps(
                {"on_failure": "report", "routes": [{"name": "r", "handler": handler, "to": url, **more.get(handler, {})}]}))
            path = case(folder, "tests/one.json", given=[{"after": {"PK": "a", "n": 1}}])
            before = set(os.listdir(folder))
            done = sluice("test", "--bless", cwd=folder, env={"AWS_ACCESS_KEY_ID": "", "AWS_REGION": "us-east-1"})
            check(f"{handler} to {url}", done.returncode == 0 and len(expected(path)) == 1, (done.stdout, done.stderr))
            kind = {"archive": "object", "notify": "message"}.get(handler, "row")
            check(f"{handler} to {url}: a {kind}", set(expected(path)[0]) >= {"route", kind}, expected(path))
            check(f"{handler} to {url}: nothing is touched", set(os.listdir(folder)) == before, os.listdir(folder))


# ---- cases ----

CONFIG = {"report_batch_item_failures": True, "on_failure": "sqs://failed", "routes": [
    {"name": "copy", "handler": "replicate", "to": "dynamodb://copy", "where": {"hidden": [{"exists": False}]}},
    {"name": "open", "handler": "aggregate", "to": "dynamodb://totals", "ledger": {"table": "ledger"}, "empty": "delete",
     "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"n": 1, "sum": "{total|default:0|number}"}}]},
    {"name": "gone", "handler": "archive", "to": "s3://archive", "format": "json", "when": {"expired": True}},
    {"name": "say", "handler": "notify", "to": "https://example.com/${PLACE}#secret=KEY", "when": {"item": {"status": ["PAID"]}},
     "escape": "json", "message": "{{\"paid\":\"{PK}\"}}"}]}


def lines(folder, **members):
    path = case(folder, "tests/x.json", **members)
    sluice("test", "--bless", path, cwd=folder, status=0)
    return [{k: v for k, v in line.items()} for line in expected(path)]


def shorthand_and_views(top):
    (top / "sluice.json").write_text(json.dumps(CONFIG))
    new, paid = {"PK": "a", "SK": "1", "status": "NEW", "total": 2.50, "tags": {"SS": ["x"]}}, {"PK": "a", "SK": "1", "status": "PAID", "total": 2.5}
    got = lines(top, given=[{"after": new}])
    check("an insert", got == [{"route": "copy", "row": {**new, "tags": ["x"]}}, {"route": "open", "row": {"PK": "STATUS#NEW", "n": 1, "sum": 2.5}}], got)
    got = lines(top, given=[{"after": new}, {"before": new, "after": paid}])
    check("a change", got == [
        {"route": "copy", "row": paid}, {"route": "open", "row": {"PK": "STATUS#PAID", "n": 1, "sum": 2.5}},
        {"route": "say", "message": {"paid": "a"}}], got)
    got = lines(top, given=[{"after": paid}, {"before": paid, "expired": True, "at": "2026-11-20T10:00:00Z"}])
    check("a removal by TTL", [line["route"] for line in got] == ["copy", "gone", "say"] and got[0] == {"route": "copy", "gone": {"PK": "a", "SK": "1"}}
          and got[1]["object"].startswith("source-table/dt=2026-11-20/hour=10/") and got[1]["lines"][0]["status"] == "PAID", got)
    got = lines(top, given=[{"after": paid}], routes=["say"])
    check("some routes", got == [{"route": "say", "message": {"paid": "a"}}], got)
    got = lines(top, given=[{"after": {"PK": {"S": "a"}, "SK": {"S": "1"}, "status": {"S": "PAID"}}}], routes=["say"])
    check("DynamoDB's JSON", got == [{"route": "say", "message": {"paid": "a"}}], got)
    got = lines(top, given=[{"after": {"id": "7", "status": "PAID"}}], routes=["say"])
    check("another usual key", got == [{"route": "say", "parked": "MissingAttribute", "key": {"id": "7"}}], got)
    got = lines(top, given=[{"after": {"order": 7, "line": "x", "status": "PAID"}}], keys=["order", "line"], routes=["copy"], table="orders")
    check("keys of one's own", got == [{"route": "copy", "row": {"order": 7, "line": "x", "status": "PAID"}}], got)
    (top / "sluice.json").write_text(json.dumps({**CONFIG, "routes": CONFIG["routes"][3:]}))
    got = lines(top, given=[{"after": paid}], view="KEYS_ONLY")
    check("a view that lacks what a route needs", got and "error" in got[-1] or "failed" in got[0] or "parked" in got[0], got)
    (top / "sluice.json").write_text(json.dumps(CONFIG))


def what_is_parked(top):
    path = case(top, "tests/parked.json", given=[{"after": {"PK": "a", "status": "NEW"}}, {"after": {"PK": "b", "total": 1}}])
    sluice("test", "--bless", path, cwd=top, status=0)
    check("parked, with its code and key", {"route": "open", "parked": "MissingAttribute", "key": {"PK": "b"}} in expected(path), expected(path))
    check("and the rest goes on", {"route": "open", "row": {"PK": "STATUS#NEW", "n": 1}} in expected(path), expected(path))
    text = path.read_text().replace("MissingAttribute", "Another")
    path.write_text(text)
    done = sluice("test", path, cwd=top, status=1)
    check("says why", "MissingAttribute" in done.stdout and "status" in done.stdout and "\n      - " in done.stdout and "\n      + " in done.stdout, done.stdout)


def many_lines(top):
    """However many lines are as expected: what is compared pair by pair is only what lies between the first difference and the last."""
    path = case(top, "tests/many.json", given=[{"after": {"PK": f"k{n:04}"}} for n in range(2500)], routes=["copy"])
    sluice("test", "--bless", path, cwd=top, status=0)
    sluice("test", path, cwd=top, status=0)
    lines = expected(path)
    check("a line for each", len(lines) == 2500, len(lines))
    told = lambda done: [(line[6], json.loads(line[8:])) for line in done.stdout.splitlines() if line.startswith(("      - {", "      + {"))]
    other = {**lines[0], "route": "x"}
    for name, change, want in (("the first is another", [other, *lines[1:]], [("-", other), ("+", lines[0])]),
                               ("the last is missing", lines[:-1], [("+", lines[-1])]),
                               ("one in the middle is more", [*lines[:1200], lines[7], *lines[1200:]], [("-", lines[7])]),
                               ("a line comes twice, and once is right", [*lines[:1200], lines[1199], *lines[1200:]], [("-", lines[1199])])):
        case(top, "tests/many.json", **{**json.loads(path.read_text()), "expect": change})
        done = sluice("test", path, cwd=top, status=1)
        check(f"of many lines, {name}", told(done) == want, done.stdout)
    for change in ([other, *lines[1:-1]], [other]):
        case(top, "tests/many.json", **{**json.loads(path.read_text()), "expect": change})
        done = sluice("test", path, cwd=top, status=1)
        check("too many between them", f"has 2500 lines where {len(change)} are expected: more than are compared (2000)" in done.stdout, done.stdout)
    path.unlink()


def blessing_keeps_the_rest(top):
    text = '{\n\t"given" : [ {"after":{"PK":"a",\n "n": 1.50 }} ],\n  "expect": [ ],\n  "about":"x" , "routes":["copy"]}\n\n'
    path = top / "tests/kept.json"
    path.write_text(text)
    done = sluice("test", "--bless", path, cwd=top, status=0)
    want = text.replace("[ ]", '[\n    {"route":"copy","row":{"PK":"a","n":1.5}}\n  ]')
    check("only what is expected changes", path.read_text() == want and "wrote" in done.stdout, path.read_text())
    inode = path.stat().st_ino
    done = sluice("test", "--bless", path, cwd=top, status=0)
    check("what is right is not written", path.stat().st_ino == inode and done.stdout.startswith("ok "), done.stdout)
    for text in ('{"given":[{"after":{"PK":"a","hidden":1}}],"routes":["copy"]}', '{"given":[{"after":{"PK":"a","hidden":1}}],"routes":["copy"] \n}\n'):
        path.write_text(text)
        sluice("test", path, cwd=top, status=1)
        sluice("test", "--bless", path, cwd=top, status=0)
        check("a first time", json.loads(path.read_text()) == {**json.loads(text), "expect": json.loads(path.read_text())["expect"]}, path.read_text())
        sluice("test", path, cwd=top, status=0)
    path.write_text('{"given":[{"after":{"PK":"a"}}],"routes":["copy"],"expect":[{"route":"copy","row":{"PK":"b"}}]}')
    if os.geteuid():  # (root may write anywhere)
        mode = path.parent.stat().st_mode
        os.chmod(path.parent, 0o555)
        sluice("test", "--bless", path, cwd=top, status=1)
        os.chmod(path.parent, mode)
    path.unlink()


def junit_and_several(top):
    folder = top / "several"
    for name, status in (("a", "ok"), ("b<&\">", "bad"), ("c", "ok")):
        case(folder, f"{name}.json", about="1 < 2", given=[{"after": {"PK": "a"}}], routes=["copy"],
             expect=[{"route": "copy", "row": {"PK": "a" if status == "ok" else "b"}}])
    done = sluice("test", "--junit", "junit.xml", "--config", "sluice.json", folder, top / "tests/parked.json", cwd=top, status=1)
    check("counts", "4 cases: 2 passed, 2 failed" in done.stdout, done.stdout)
    check("names routes that no case uses", "note: no case gives a record to the route gone of sluice.json" in done.stdout, done.stdout)
    suite = xml.etree.ElementTree.parse(top / "junit.xml").getroot()
    failed = [one.get("name") for one in suite if one.find("failure") is not None]
    check("JUnit", suite.get("tests") == "4" and suite.get("failures") == "2" and len(failed) == 2 and 'b<&">.json: 1 < 2' in failed[0], failed)
    check("JUnit has the difference", '+ {"route":"copy","row":{"PK":"a"}}' in suite[1].find("failure").text, suite[1].find("failure").text)
    done = sluice("test", "--junit", "/dev/full", folder, "--config", "sluice.json", cwd=top)
    check("a full device", done.returncode == 2 and "No space left" in done.stderr, done.stderr)
    done = subprocess.run(f"'{BUILD}/sluice' test several --config sluice.json >/dev/full", shell=True, cwd=top, capture_output=True, text=True)
    check("standard output that is full", done.returncode == 1 and "No space left" in done.stderr, done.stderr)


WRONG = [  # what the case says, and what is said of it
    ("{", "ends too early"), ("[]", "a case is an object"), ("{}", "gives no record"), ('{"given":[]}', "gives no record"),
    ('{"givn":[]}', 'did you mean "given"'), ('{"xyz":[]}', "a case has about, config"), ('{"given":{}}', "given: a list is expected"),
    ('{"given":[],"given":[]}', "a name is there twice"), ('{"about":1,"given":[]}', "about: a text is expected"),
    ('{"given":[1]}', "given[0]: {"), ('{"given":[{"after":1}]}', "given[0].after: an item"), ('{"given":[{}]}', "given"),
    ('{"given":[{"after":{"x":1}}]}', "which attributes are the item's key"), ('{"given":[{"after":{"x":1}}],"keys":["PK"]}', "has no attribute PK"),
    ('{"given":[{"after":{"PK":true}}]}', "PK"), ('{"given":[{"after":{"PK":"a","n":{"N":"x"}}}]}', "not a number"),
    ('{"given":[{"after":{"PK":"a"},"expired":true}]}', 'has no "after"'), ('{"given":[{"after":{"PK":"a"},"expired":1}]}', "true or false"),
    ('{"given":[{"before":{"PK":"a"},"after":{"PK":"b"}}]}', "the key changes"), ('{"given":[{"after":{"PK":"a"},"at":"noon"}]}', "a time is expected"),
    ('{"given":[{"after":{"PK":"a"},"whn":1}]}', '"whn" is not known'), ('{"given":[{"after":{"PK":"a"}}],"view":"NEW"}', "KEYS_ONLY"),
    ('{"given":[{"after":{"PK":"a"}}],"routes":["cpy"]}', "has no route"), ('{"given":[{"after":{"PK":"a"}}],"config":"none.json"}', "none.json"),
    ('{"records":"none.jsonl"}', "none.jsonl"), ('{"given":[{"after":{"PK":"a"}}],"keys":["a","b","c"]}', "a,b,c"),
    ('{"given":[{"eventName":"INSERT","dynamodb":{}}]}', "given"), ('{"given":[{"after":{"PK":"a"}}],"keys":[1]}', "key"),
]


def what_is_wrong_with_a_case(top):
    folder = top / "wrong"
    folder.mkdir()
    good = case(folder, "good.json", given=[{"after": {"PK": "a"}}], routes=["copy"], expect=[{"route": "copy", "row": {"PK": "a"}}])
    for i, (text, why) in enumerate(WRONG):
        path = folder / "wrong.json"
        path.write_text(text)
        done = sluice("test", path, good, "--config", "sluice.json", cwd=top, status=1)
        check(f"{text}: says what", why in done.stdout and "2 cases: 1 passed, 1 failed" in done.stdout, done.stdout)
    (folder / "wrong.json").unlink()
    for args, why in ((("none",), "none: cannot be read"), ((), "tests"), (("empty",), "new-test")):
        (top / "elsewhere/empty").mkdir(parents=True, exist_ok=True)
        done = sluice("test", *args, cwd=top / "elsewhere", status=2)
        check(f"{args}: usage", why in done.stderr, done.stderr)
    done = sluice("test", "--set", "nothing", good, "--config", "sluice.json", cwd=top, status=1)
    check("a variable without a value", "NAME=VALUE" in done.stdout, done.stdout)


def handlers_that_crash(top):
    """Each case has a process of its own."""
    folder = top / "plugins"
    (folder / "handlers").mkdir(parents=True)
    for name, what in (("crash", "*(volatile int *)0 = 1;"), ("leave", "_Exit(3);"), ("fine", "")):
        source = folder / f"{name}.c"
        source.write_text(f'#include <sluice/handler.h>\n#include <stdlib.h>\n'
                          f'static enum sl_status handle(void *self, struct sl_slice *s, struct sl_error *e) {{ (void)self; (void)s; (void)e; {what} return SL_OK; }}\n'
                          'static enum sl_status opened(const struct sl_host *h, struct sl_route *r, void **self, struct sl_error *e) '
                          '{ (void)h; (void)r; (void)e; *self = 0; return SL_OK; }\n'
                          f'SL_EXPORT const struct sl_handler SL_HANDLER = {{.abi = SL_HANDLER_ABI, .name = "{name}", .open = opened, .handle = handle}};\n')
        built = subprocess.run(["cc", "-shared", "-fPIC", f"-I{BUILD}/include", "-o", str(folder / f"handlers/{name}.so"), str(source)],
                               capture_output=True, text=True)
        check(f"{name} builds", built.returncode == 0, built.stderr)
        (folder / f"{name}.json").write_text(json.dumps({"on_failure": "report", "routes": [{"name": name, "handler": name}]}))
        case(folder, f"tests/{name}.json", config=f"../{name}.json", given=[{"after": {"PK": "a"}}], expect=[])
    done = sluice("test", cwd=folder, status=1)
    check("a crash is one case's", "FAIL  tests/crash.json" in done.stdout and "signal 11" in done.stdout, done.stdout)
    check("so is an exit", "FAIL  tests/leave.json" in done.stdout and "ended the process with status 3" in done.stdout, done.stdout)
    check("and the rest runs", "ok    tests/fine.json" in done.stdout and "3 cases: 1 passed, 2 failed" in done.stdout, done.stdout)
    (folder / "sub").mkdir()
    (folder / "one.json").write_text(json.dumps({"Records": [record(1)]}))
    for args in (("check", "../fine.json"), ("replay", "--quiet", "--config", "../fine.json", "../one.json")):
        done = sluice(*args, cwd=folder / "sub")
        check(f"{args[0]} finds the handlers beside ../fine.json", done.returncode == 0, (done.stdout, done.stderr))


    (folder / "hang.c").write_text((folder / "fine.c").read_text().replace('"fine"', '"hang"').replace("(void)e;  return", "(void)e; for (;;); return"))
    built = subprocess.run(["cc", "-shared", "-fPIC", f"-I{BUILD}/include", "-o", str(folder / "handlers/hang.so"), str(folder / "hang.c")], capture_output=True)
    check("hang builds", built.returncode == 0 and "for (;;)" in (folder / "hang.c").read_text(), built.stderr)
    (folder / "hang.json").write_text(json.dumps({"on_failure": "report", "routes": [{"name": "hang", "handler": "hang"}]}))
    path, left = case(folder, "hanging/x.json", config="../hang.json", given=[{"after": {"PK": "a"}}], expect=[]), folder / "left"
    left.mkdir()
    for number, send, after_s in ((signal.SIGINT, os.killpg, 0), (signal.SIGINT, os.killpg, 0.002), (signal.SIGTERM, os.kill, 0), (signal.SIGTERM, os.kill, 0.2), (signal.SIGINT, os.killpg, 0.2)):
        process = subprocess.Popen([f"{BUILD}/sluice", "test", path], cwd=folder, env={**os.environ, "TMPDIR": str(left)}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        while not list(left.iterdir()):
            pass
        time.sleep(after_s)
        begun = time.monotonic()
        send(process.pid, number)
        out, err = process.communicate(timeout=600)
        check(f"{number.name} by {send.__name__} after {after_s} s ends a handler that hangs, and leaves nothing", process.returncode == 1 and "stopped by a signal" in err and
              not list(left.iterdir()) and time.monotonic() - begun < 60, (process.returncode, out, err, time.monotonic() - begun))


# ---- new-test ----

def first_cases(top):
    for name in ("shop", "photos", "votes", "orders"):
        folder = top / f"new-{name}"
        folder.mkdir()
        (folder / "sluice.json").write_text((EXAMPLES / name / "sluice.json").read_text())
        history = EXAMPLES / name / "history.jsonl.gz" if name != "orders" else EXAMPLES / "capture/orders.jsonl.gz"
        sluice("new-test", "tests/first.json", history, cwd=folder, status=0)
        sluice("test", "--bless", cwd=folder, status=0)
        sluice("test", cwd=folder, status=0)
        made = json.loads((folder / "tests/first.json").read_text())
        check(f"{name}: few records of every kind", 3 <= len(made["given"]) <= 20 and made["keys"] == ["PK", "SK"], made["given"])
        check(f"{name}: inserts, changes and removals", all(any(set(one) & {"before", "after"} == kind for one in made["given"])
              for kind in ({"after"}, {"before", "after"}, {"before"}) if not (name == "votes" and kind == {"before"})), made["given"])
        check(f"{name}: something leaves", made["expect"], made)
        done = sluice("new-test", "tests/first.json", history, cwd=folder, status=2)
        check("an existing file stays", "exists" in done.stderr and json.loads((folder / "tests/first.json").read_text()) == made, done.stderr)
    done = sluice("new-test", "a/b/c.json", "--records", "1", history, cwd=folder, status=0)
    check("folders are made", len(json.loads((folder / "a/b/c.json").read_text())["given"]) == 1 and "next: sluice test" in done.stdout, done.stdout)
    for args, why in ((("x.json",), "RECORDING"), (("x.json", "none"), "none"), (("x.json", "sluice.json"), "not a stream event"), (("x.json", "empty"), "holds no record")):
        (folder / "empty").write_text("")
        done = sluice("new-test", *args, cwd=folder, status=2)
        check(f"new-test {args}", why in done.stderr and not (folder / "x.json").exists(), done.stderr)
    item = {"PK": {"S": "a"}, "SK": {"S": "b"}, "s": {"NS": ["1", "2"]}, "b": {"B": "eA=="}, "m": {"M": {"N": {"S": "north"}}}, "n": {"NULL": True}}
    record = {"eventName": "INSERT", "dynamodb": {"Keys": {"PK": item["PK"], "SK": item["SK"]}, "NewImage": item, "SequenceNumber": "1"}}
    keys_only = {"eventName": "MODIFY", "dynamodb": {"Keys": record["dynamodb"]["Keys"], "SequenceNumber": "2", "StreamViewType": "KEYS_ONLY"}}
    (folder / "odd.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(keys_only) + "\n")
    (folder / "odd.json").write_text(json.dumps({"on_failure": "report", "routes": [{"name": "all", "handler": "archive", "to": "file:x"}]}))
    sluice("new-test", "--config", "odd.json", "odd/x.json", "odd.jsonl", cwd=folder, status=0)
    sluice("test", "--config", "odd.json", "--bless", "odd", cwd=folder, status=0)
    made = json.loads((folder / "odd/x.json").read_text())
    check("sets, bytes and maps stay what they are", made["expect"][0]["lines"][0]["dynamodb"]["NewImage"] == item, made["expect"])
    check("a record without images is written as it is", made["given"][1] == keys_only, made["given"])


# ---- try ----

def trying(top):
    item = '{"PK":"a","SK":"b","status":"NEW","n":{"N":"7"}}'
    for args, out in ((("{status|lower} of {PK}", item), "new of a\n"), (("{n}", item), "7\n"), (("{{x}}", item), "{x}\n"),
                      (("{status}", '[{"PK":"a","status":"x"},{"PK":"b","status":"y"}]'), "x\ny\n"),
                      (("--escape", "json", '{status}', '{"PK":"a","status":"a\\"b"}'), 'a\\"b\n'), (("--escape", "path", "{PK}", '{"PK":"a/b"}'), "a%2Fb\n"),
                      (("{OldImage.s} to {s}", '{"before":{"PK":"a","s":1},"after":{"PK":"a","s":2}}'), "1 to 2\n"),
                      (('{"status":["NEW"]}', item), 'true    INSERT {"PK":"a","SK":"b"}\n'), (('{"events":["INSERT"]}', item), 'true    INSERT {"PK":"a","SK":"b"}\n'),
                      (('{"eventName":["INSERT"]}', item), 'true    INSERT {"PK":"a","SK":"b"}\n'), (("{}", item), 'true    INSERT {"PK":"a","SK":"b"}\n')):
        done = sluice("try", *args, cwd=top, status=0)
        check(f"try {args}", done.stdout == out and not done.stderr, (done.stdout, done.stderr))
    for args, out, err in ((("{x}", item), "", "record 0: MissingAttribute"), (('{"status":["PAID"]}', item), 'false   INSERT {"PK":"a","SK":"b"}\n', ""),
                           (('{"expired":true}', item), "false", ""),
                           (('{"changed":["s"]}', '{"Records":[{"eventName":"MODIFY","dynamodb":{"Keys":{"PK":{"S":"a"}},"SequenceNumber":"1"}}]}'), "unknown MODIFY", "")):
        done = sluice("try", *args, cwd=top, status=1)
        check(f"try {args}", done.stdout.startswith(out) and err in done.stderr, (done.stdout, done.stderr))
    for args, err in ((("{x|upcase}", item), "upcase"), (('{"status":[', item), "ends too early"), (('{"status":[{"begins_with":"x"}]}', item), "prefix"),
                      (("{x}", "{"), "the record {"), (("{x}", "none"), "none: cannot be opened"), (("--escape", "html", "{x}", item), "--escape html"), ((), "TEMPLATE"),
                      (("{x}", '{"x":1}'), "which attributes are the item's key")):
        done = sluice("try", *args, cwd=top, status=2)
        check(f"try {args}", err in done.stderr, done.stderr)
    done = sluice("try", "{PK}", cwd=top, stdin='{"eventName":"INSERT","dynamodb":{"Keys":{"PK":{"S":"in"}},"SequenceNumber":"1"}}\n', status=0)
    check("standard input", done.stdout == "in\n", done.stdout)
    done = sluice("try", '{"status":["PAID"]}', EXAMPLES / "shop/history.jsonl.gz", cwd=top, status=1)
    check("a recording", done.stdout.count("\n") == 57 and done.stdout.count("true ") == 16 or done.stdout.count("true "), done.stdout.count("true "))


def examples_have_cases(top):
    for name in ("shop", "photos", "votes", "orders"):
        done = sluice("test", EXAMPLES / name / "tests", cwd=top, status=0, env={"PSEUDONYM_KEY": "another", "BALLOT_KEY": "another"})
        check(f"{name}: each route is in a case", "note:" not in done.stdout or name == "orders", done.stdout)


def main():
    top = work_folder()
    for test in (what_leaves_is_what_a_replay_leaves, every_kind_of_target, shorthand_and_views, what_is_parked, many_lines, blessing_keeps_the_rest, junit_and_several,
                 what_is_wrong_with_a_case, handlers_that_crash, first_cases, trying, examples_have_cases):
        folder = top / (test.__name__ if test in (what_leaves_is_what_a_replay_leaves, every_kind_of_target, first_cases, trying, examples_have_cases) else "cases")
        folder.mkdir(exist_ok=True)
        test(folder)
    finish()


main()
