#!/usr/bin/env python3
"""`sluice check`: what it refuses, what it says of each route, and which mappings would lose data."""
import json
import os
import re
import subprocess

from harness import BUILD, check, finish, work_folder
from pattern_cases import NEVER, PATTERNS

folder = work_folder()
PLAIN = {"on_failure": "sqs://${QUEUE}", "report_batch_item_failures": True,
         "routes": [{"name": "r", "handler": "archive", "to": "s3://${BUCKET}/x"}]}
SOUND = {"BatchSize": 100, "MaximumRetryAttempts": 10000, "MaximumRecordAgeInSeconds": -1, "BisectBatchOnFunctionError": True,
         "FunctionResponseTypes": ["ReportBatchItemFailures"], "StartingPosition": "TRIM_HORIZON",
         "DestinationConfig": {"OnFailure": {"Destination": "arn:aws:sqs:us-east-1:123456789012:q"}}}


def run(config, *flags, mapping=None):
    (folder / "sluice.json").write_text(config if isinstance(config, str) else json.dumps(config))
    if mapping is not None:
        flags = (*flags, "--mapping", "-")
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    done = subprocess.run([f"{BUILD}/sluice", "check", *flags], cwd=folder, env=env, capture_output=True, timeout=600,
                          input=json.dumps(mapping).encode() if mapping is not None else None)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


def webhooks():
    route = lambda name, to, **more: {"name": name, "handler": "notify", "to": to, **more}
    url = "https://hooks.example.com/SECRET"
    for routes, warns in (
            ([route("a", url), route("b", url)], True),
            ([route("a", url + "#batch=5&id=x"), route("b", url + "#id=x")], True),
            ([route("a", url, dedupe="{PK}"), route("b", url + "#", dedupe="{PK}")], True),
            ([route("a", url + "#id=x"), route("b", url + "#id=y")], False),
            ([route("a", url), route("b", url, dedupe="{PK}")], False),
            ([route("a", url), route("b", url + "2")], False)):
        done = run({**PLAIN, "routes": routes})
        check("two routes, one receiver, one id", done.returncode == warns and ("[webhook-ids-shared]" in done.out) == warns, done.out + done.err)
        check("a webhook's path is not shown", "SECRET" not in done.out + done.err and "to        https://hooks.example.com\n" in done.out, done.out)
    done = run({**PLAIN, "routes": [route("a", url + "#secret=HOOK_NEW,HOOK_OLD&header_env.X=HOOK_X")]}, "--set", "HOOK_OLD=whsec_" + "A" * 32)
    check("secrets may be elsewhere, and that is said", done.returncode == 0 and all(
        (f"note: {name} is not set here; the route a needs it" in done.out) == (name != "HOOK_OLD") for name in ("HOOK_NEW", "HOOK_OLD", "HOOK_X")), done.out + done.err)


def filters():
    """--filters prints what the mapping's FilterCriteria may be, and nothing else; empty where a route needs every change."""
    def said(*whens):
        done = run({"on_failure": "report", "routes": [{"name": f"r{n}", "handler": "archive", "to": "s3://bucket/", **({"when": when} if when else {})}
                                                       for n, when in enumerate(whens)]}, "--filters")
        check(f"{whens}: exit 0, one line", done.returncode == 0 and done.out.count("\n") == 1 and not done.err, done.out + done.err)
        rows = json.loads(done.out)["Filters"]
        check(f"{whens}: each is a pattern and no more", all(list(row) == ["Pattern"] and isinstance(json.loads(row["Pattern"]), dict) for row in rows), done.out)
        return [json.loads(row["Pattern"]) for row in rows]
    insert, paid = {"events": ["INSERT"]}, {"item": {"status": ["PAID"]}}
    one = said(insert)
    check("one route, one filter", len(one) == 1 and one[0]["eventName"] == ["INSERT"], one)
    check("a filter for each route", said(insert, paid) == said(insert) + said(paid) and len(said(paid)) == 1)
    check("a route that takes all needs all", said(insert, None) == [])
    # As many as every account may have, and no more.
    check("five are five", len(said(*[insert] * 5)) == 5)
    check("six are none", said(*[insert] * 6) == [])
    patterns = [{"eventName": ["INSERT"]}, {"dynamodb": {"Keys": {"PK": {"S": [{"prefix": "ORDER#"}]}}}}]
    check("the patterns of a route are filters", said({"pattern": patterns}) == patterns and said({"pattern": patterns[:1]}) == patterns[:1], said({"pattern": patterns}))
    check("one that is too long is none", said({"pattern": [{"dynamodb": {"Keys": {"PK": {"S": ["x" * 4200]}}}}]}) == [])
    done = run({"on_failure": "report", "routes": [{"name": "r", "handler": "archive", "to": "s3://${NOWHERE}/"}]}, "--filters")
    check("notes are not printed", done.returncode == 0 and json.loads(done.out) == {"Filters": []}, done.out)
    done = run({"on_failure": "report", "routes": [{"name": "r", "handler": "archiv", "to": "s3://bucket/"}]}, "--filters")
    check("a mistake is one", done.returncode == 2 and not done.out and "archiv" in done.err, done.out + done.err)


def warnings(done):
    return [l for l in done.out.splitlines() if l.startswith("warning: ")]


def configurations():
    done = run(PLAIN, mapping=SOUND)
    check("a sound one: exit 0, nothing to warn of", done.returncode == 0 and not warnings(done) and "0 warnings" in done.out, done.out + done.err)
    check("variables that are not set have stand-ins, and that is said", "note: QUEUE is not set" in done.out and "sqs://queue" in done.out, done.out)
    done = run(PLAIN, "--set", "QUEUE=mine", "--set", "BUCKET=archive")
    check("--set", "sqs://mine" in done.out and "s3://archive/x" in done.out and "not set" not in done.out, done.out)
    check("only its own file is there", os.listdir(folder) == ["sluice.json"])
    for config, text in (
            ('{"routes": [', "sluice.json"),
            ({**PLAIN, "frobnicate": 1}, "frobnicate"),
            ({**PLAIN, "routes": [{"name": "r", "handler": "nowhere"}]}, "$.routes[0].handler"),
            ({**PLAIN, "routes": [{"name": "r", "handler": "archive", "to": "s3://Not A Bucket/x"}]}, "$.routes[0].to"),
            ({**PLAIN, "view_type": "KEYS_ONLY", "routes": [{"name": "r", "handler": "archive", "to": "s3://bucket/x", "format": "item"}]}, "$.routes[0]")):
        done = run(config)
        check(f"{text}: exit 2, one line that names it", done.returncode == 2 and text in done.err and done.err.count("\n") == 1, done.err)
    local = {**PLAIN, "on_failure": "jsonl:out/f", "routes": [{"name": "r", "handler": "archive", "to": "file:out/x"},
                                                              {"name": "s", "handler": "replicate", "to": "sqlite:out/x.db?table=t"}]}
    done = run(local)
    check("a local target is noted, and not made", done.returncode == 0 and "is local" in done.out and os.listdir(folder) == ["sluice.json"], done.out)
    for members, text in (
            ({"handler": "archive", "to": "file:"}, "target file:: write it as file:folder"),
            ({"handler": "archive", "to": "file:x?level=1"}, 'unknown parameter "level"'),
            ({"handler": "replicate", "to": "sqlite:x.db"}, "write it as sqlite:file.db?table=name"),
            ({"handler": "notify", "to": "jsonl:"}, "names no file"),
            ({"handler": "notify", "to": "stdout:x"}, "nothing may follow stdout:")):
        done = run({**PLAIN, "routes": [{"name": "r", **members}]})
        check(f"{text}: a local target is read", done.returncode == 2 and "$.routes[0].to: " in done.err and text in done.err, done.err)
    done = run({**PLAIN, "routes": [{"name": "r", "handler": "archive", "to": "s3://bucket/x", "format": "item", "when": {"expired": True}}]})
    check("the views that serve a route", "works with OLD_IMAGE, NEW_AND_OLD_IMAGES\n" in done.out and "takes     REMOVE" in done.out, done.out)
    done = run(PLAIN, "nowhere.json")
    check("no such file: exit 2", done.returncode == 2 and "nowhere.json" in done.err, done.err)


def samples():
    """A wrong name, at each place that takes a template, is found with a sample; a right one is not."""
    capture = os.path.abspath("examples/capture/orders.jsonl.gz")
    table = {"handler": "aggregate", "to": "dynamodb://tab", "ledger": {"table": "led"}}
    for name, more in (("counters[0].key.PK", {**table, "counters": [{"key": {"PK": "A#{X}"}, "add": {"n": 1}}]}),
                       ("counters[0].add.n", {**table, "counters": [{"key": {"PK": "A"}, "add": {"n": "{X}"}}]}),
                       ("counters[0].distinct.n", {**table, "counters": [{"key": {"PK": "A"}, "distinct": {"n": "{X}"}}]}),
                       ("message", {"handler": "notify", "to": "sqs://q", "message": "of {X|lower}"}),
                       ("group", {"handler": "notify", "to": "sqs://q.fifo", "group": "{X}"}),
                       ("key", {"handler": "archive", "to": "s3://buck/x", "key": "{X}/{yyyy}"}),
                       ("set.n", {"handler": "replicate", "to": "dynamodb://rep", "set": {"n": "{X}"}})):
        for attribute in ("status", "statsu"):
            config = json.loads(json.dumps({**PLAIN, "routes": [{"name": "r", **more}]}).replace("{X", "{" + attribute))
            done = run(config, "--sample", capture)
            found = f"warning: $.routes[0].{name}: none of 3773 records fills it: " in done.out and "{statsu" in done.out and \
                "did you mean {status}? [sample-not-filled]" in done.out
            check(f"{name} of {attribute}", found == (attribute == "statsu") and ("[sample-" in done.out) == found and
                  done.returncode == found, done.out + done.err)
    never = {**PLAIN, "routes": [{"name": "r", "handler": "notify", "to": "sqs://q", "when": {"item": {"status": ["NONE"]}}}]}
    done = run(never, "--sample", capture)
    check("a route that takes nothing", "$.routes[0]: takes none of the 3773 records of the sample [sample-not-taken]" in done.out and done.returncode == 0, done.out)
    done = run(never, "--sample", "missing.jsonl")
    check("no such sample", done.returncode == 2 and "missing.jsonl" in done.err, done.err)


def mappings():
    report = {**PLAIN, "on_failure": "report"}
    cases = [
        (PLAIN, {"FunctionResponseTypes": []}, "no ReportBatchItemFailures"),
        (PLAIN, {"MaximumRetryAttempts": 3}, "MaximumRetryAttempts is 3"),
        (PLAIN, {"MaximumRecordAgeInSeconds": 3600}, "MaximumRecordAgeInSeconds is 3600"),
        (PLAIN, {"DestinationConfig": {}}, "no OnFailure"),
        (PLAIN, {"StartingPosition": "LATEST"}, "LATEST"),
        (report, {"BisectBatchOnFunctionError": False}, "BisectBatchOnFunctionError is off"),
        (report, {"MaximumRetryAttempts": -1}, "blocks its shard"),
    ]
    for config, change, text in cases:
        done = run(config, mapping={**SOUND, **change})
        found = warnings(done)
        check(f"{change}: one warning, exit 1", done.returncode == 1 and len(found) == 1 and text in found[0], done.out + done.err)
    done = run(PLAIN, mapping=[1])
    check("no mapping: exit 2", done.returncode == 2 and "mapping" in done.err, done.err)


def filter_limits():
    """AWS takes five filters, ten on request, of 4,096 characters each."""
    def of(*patterns):
        return run(PLAIN, mapping={**SOUND, "FilterCriteria": {"Filters": [{"Pattern": p} for p in patterns]}}).out
    short, long = '{"eventName":["INSERT"]}', '{"eventName":["INSERT","' + "é" * 4069 + '"]}'
    check("five filters", "AWS" not in of(*[short] * 5))
    check("six filters", "FilterCriteria has 6 filters: AWS takes 5, and up to 10" in of(*[short] * 6))
    check("4,096 characters", len(long) == 4096 and "characters" not in of(short, long))
    check("4,097 characters", "FilterCriteria.Filters[1]: has more than 4096 characters" in of(short, long + " "))


def is_said(done, where, text, code):
    found = warnings(done)
    return len(found) == 1 and where in found[0] and text in found[0] and found[0].endswith(f"[{code}]")


def patterns():
    for pattern, text, code in PATTERNS:
        done = run(PLAIN, mapping={**SOUND, "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern)}]}})
        check(f"{pattern} in a filter", (not warnings(done) and done.returncode == 0) if text is None else
              is_said(done, "FilterCriteria.Filters[0]", text, code), done.out + done.err)
        done, where = run({**PLAIN, "routes": [{**PLAIN["routes"][0], "when": {"pattern": [pattern]}}]}), "$.routes[0].when.pattern[0]"
        check(f"{pattern} in a route", (not warnings(done) and done.returncode == 0) if text is None else
              (done.returncode == 2 and where in done.err and text in done.err and "can never match" in done.err) if code == NEVER else
              is_said(done, where, text, code), done.out + done.err)


def codes():
    """Each finding has its line in the page."""
    with open("cli/config/lint.c", encoding="utf-8") as f:
        known = re.findall(r'= \{"([a-z-]+)", (true|false)\}', f.read())
    with open("docs/CHECK.md", encoding="utf-8") as f:
        listed = re.findall(r"^\| `([a-z-]+)` \| (warning|note) \|", f.read(), re.M)
    check("the page lists each code once", sorted(listed) == sorted((c, "warning" if w == "true" else "note") for c, w in known) and len(known) > 20,
          set(listed) ^ {(c, "warning" if w == "true" else "note") for c, w in known})


def conditions():
    """What is printed of a `when` on plain values, and where it is refused."""
    def route(when, **more):
        return {**PLAIN, **more, "routes": [{**PLAIN["routes"][0], "when": when}]}

    for when, text in (
            ({"item": {"status": ["PAID"], "total": [{"numeric": [">", 100]}]}},
             'the nearest that there is (lets through more): {"dynamodb":{"NewImage":{"status":{"$or":[{"S":["PAID"]},{"SS":["PAID"]},{"L":{"S":["PAID"]}}]},'
             '"total":{"$or":[{"N":[{"exists":true}]},{"NS":[{"exists":true}]},{"L":{"N":[{"exists":true}]}}]}}}}'),
            ({"keys": {"PK": [{"prefix": "USER#"}]}}, 'for the same records: {"dynamodb":{"Keys":{"PK":{"S":[{"prefix":"USER#"}]}}}}'),
            ({"expired": True}, 'for the same records: {"eventName":["REMOVE"],"userIdentity":{"type":["Service"],"principalId":["dynamodb.amazonaws.com"]}}'),
            ({"events": ["MODIFY"], "changed": ["a"]}, 'lets through more): {"eventName":["MODIFY"]}'),
            ({"item": {"a": [{"exists": True}]}}, "filter    none: a mapping cannot say any of this"),
            ({"pattern": [{"eventName": ["INSERT"]}]}, 'one for each pattern: [{"eventName":["INSERT"]}]')):
        done = run(route(when))
        check(f"{when}: its filter", done.returncode == 0 and f"{text}\n" in done.out, done.out + done.err)
    done = run(route({"old_item": {"a": [1]}}))
    check("the views that can judge old_item", "works with OLD_IMAGE, NEW_AND_OLD_IMAGES\n" in done.out, done.out)
    for view, when in (("NEW_IMAGE", {"old_item": {"a": [1]}}), ("KEYS_ONLY", {"item": {"a": [1]}}), ("OLD_IMAGE", {"changed": ["a"]})):
        done = run(route(when, view_type=view))
        check(f"{when} is refused of {view}", done.returncode == 2 and "$.routes[0].when" in done.err and view in done.err and done.err.count("\n") == 1,
              done.err)
    done = run(route({"pattern": [{"dynamodb": {"OldImage": {"a": {"S": ["x"]}}}}]}, view_type="NEW_IMAGE"))
    check("a pattern on an image that is not there: a warning", is_said(done, "$.routes[0].when", "view type NEW_IMAGE", "view-lacks-image"), done.out)
    for when, text in (({"item": {"a": [{"prefx": "b"}]}}, '$.routes[0].when.item.a[0]: not an operator (did you mean "prefix"?)'),
                       ({"old_itm": {"a": [1]}}, '$.routes[0].when.old_itm: not a condition (did you mean "old_item"?)'),
                       ({"item": {"a": {"S": ["x"]}}}, "$.routes[0].when.item.a.S: S looks like a type")):
        done = run(route(when))
        check(f"{when}: refused with its place", done.returncode == 2 and text in done.err, done.err)


def operators():
    """Operators that Lambda does not publish are named for a filter, and not for a route's pattern."""
    cases = [
        ([{"wildcard": "a*"}], ['"wildcard" is not']), ([{"cidr": "10.0.0.0/8"}], ['"cidr" is not']), ([{"exactly": "a"}], ['"exactly" is not']),
        ([{"prefix": {"equals-ignore-case": "a"}}], ['"prefix" around another operator']),
        ([{"anything-but": {"suffix": "a"}}, {"suffix": {"equals-ignore-case": "a"}}], ['"anything-but" around', '"suffix" around']),
        ([{"prefix": "a"}, {"suffix": "b"}, {"anything-but": ["a"]}, {"equals-ignore-case": "a"}, {"exists": True}, "x", ""], []),
    ]
    for tests, texts in cases:
        for pattern in ({"awsRegion": tests}, {"$or": [{"awsRegion": tests}, {"eventID": ["1"]}]}):
            as_filter = run(PLAIN, mapping={**SOUND, "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern)}]}})
            notes = [line for line in as_filter.out.splitlines() if "published list" in line]
            check(f"{pattern}: notes", as_filter.returncode == 0 and len(notes) == len(texts) and
                  all(text in line for text, line in zip(texts, notes)), as_filter.out + as_filter.err)
            as_when = run({**PLAIN, "routes": [{**PLAIN["routes"][0], "when": {"pattern": [pattern]}}]})
            check(f"{pattern} in a route: nothing", as_when.returncode == 0 and "published" not in as_when.out, as_when.out)


def refusals():
    for pattern, text in (({"eventName": [{"anything-but": {"prefix": ""}}]}, "an empty string is refused"),
                          ({"eventName": [{"wildcard": "*:*:*:*:*:*"}]}, "too complex"), ({}, "an empty object")):
        done = run(PLAIN, mapping={**SOUND, "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern)}]}})
        found = warnings(done)
        check(f"{pattern}: refused by AWS", done.returncode == 1 and len(found) == 1 and "AWS refuses this pattern" in found[0] and text in found[0],
              done.out + done.err)


def totals():
    def config(*routes):
        return {**PLAIN, "on_failure": "report", "routes": [
            {"name": f"t{i}", "handler": "aggregate", "to": "sqlite:db?table=totals",
             "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1}}], **more} for i, more in enumerate(routes)]}

    own = {"name": "l"}
    for routes, text in (
            ([{}, {}], None),
            ([{"ledger": own}, {"ledger": own}], "the routes t0 and t1 share the ledger l"),
            ([{"ledger": {**own, "table": "x"}}, {"ledger": {**own, "table": "x"}}], "share the ledger l"),
            ([{"ledger": {"name": "t1"}}, {}], "the routes t0 and t1 share the ledger t1"),
            ([{"ledger": {**own, "table": "x"}}, {"ledger": own}], None),
            ([{"ledger": own}, {"ledger": own, "to": "sqlite:db?table=others"}], None),
            ([{"ledger": own}, {"ledger": own, "per": "event"}], None)):
        done = run(config(*routes))
        found = warnings(done)
        check(f"{routes}: a ledger of two routes", len(found) == (text is not None) and (text is None or text in found[0]), done.out + done.err)
    for key, per, text in (("DAY#{yyyy}-{mm}", {}, "$.routes[0].counters[0].key.PK: its places of time"), ("DAY#{created|date:yyyy-mm}", {}, None),
                           ("DAY#{yyyy}", {"per": "event"}, None)):
        done = run(config({"counters": [{"key": {"PK": key}, "add": {"n": 1}}], **per}))
        check(f"{key}, {per}: days that move", is_said(done, text, "", "counter-moves") if text else not warnings(done), done.out + done.err)
    done = run(config({"shards": 3}))
    check("readers of sub-counters are noted", done.returncode == 0 and "note: $.routes[0].shards: rows that were written with another number" in done.out,
          done.out)
    done = run(config({"shards": 3}), "--tables")
    check("a ledger that is not there: nothing to say, nothing made", done.returncode == 0 and not warnings(done) and not (folder / "db").exists(), done.out)
    (folder / "sluice.json").write_text(json.dumps(config({"epoch": 2}, {"ledger": {"table": "ledger", "key": "id"}, "shards": 2})))
    (folder / "event.json").write_text(json.dumps({"Records": [{
        "eventID": "1", "eventName": "INSERT", "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/x",
        "dynamodb": {"Keys": {"PK": {"S": "a"}}, "NewImage": {"PK": {"S": "a"}, "status": {"S": "OPEN"}}, "SequenceNumber": "100"}}]}))
    done = subprocess.run([f"{BUILD}/sluice", "replay", "--config", "sluice.json", "event.json"], cwd=folder, capture_output=True, timeout=600)
    check("the totals are made", done.returncode == 0, done.stderr.decode())
    for first, second, text in (
            ({"epoch": 2}, {"shards": 2}, None),
            ({"epoch": 2, "shards": 3}, {"shards": 2}, "$.routes[0].shards: changes from 0 to 3"),
            ({"epoch": 2}, {}, "$.routes[1].shards: changes from 2 to 0"),
            ({"epoch": 1}, {"shards": 2}, "$.routes[0].epoch: the ledger t0 is in epoch 2"),
            ({"epoch": 3}, {"shards": 2}, None)):
        done = run(config(first, {"ledger": {"table": "ledger", "key": "id"}, **second}), "--tables")
        found = warnings(done)
        check(f"{first}, {second}: what a ledger says", len(found) == (text is not None) and (text is None or text in found[0]), done.out + done.err)
    check("a new epoch is noted", "note: $.routes[0].epoch: changes from 2 to 3: backfill" in done.out, done.out)


def keys():
    """--tables: the key that the configuration names, against the table's own."""
    def config(**more):
        return {**PLAIN, "on_failure": "report", "routes": [{"name": "r", "handler": "replicate", "to": "sqlite:keys.db?table=replica", **more}]}

    (folder / "sluice.json").write_text(json.dumps(config()))
    done = subprocess.run([f"{BUILD}/sluice", "replay", "event.json"], cwd=folder, capture_output=True, timeout=600)
    check("a replica is made", done.returncode == 0, done.stderr.decode())
    for more, code, where in (
            ({}, None, ""), ({"key": {"PK": "{PK}"}}, None, ""), ({"set": {"day": "{PK}"}}, None, ""),
            ({"key": {"id": "{PK}"}}, "key-differs", "$.routes[0].key: names the key id, and the table's key is PK"),
            ({"key": {"PK": "{PK}", "SK": "x"}}, "key-differs", "$.routes[0].key: names the key PK and SK"),
            ({"set": {"PK": "{status}"}}, "set-on-key", "$.routes[0].set.PK: "),
            ({"guard": {"table": "replica2"}}, None, "")):
        done = run(config(**more), "--tables")
        check(f"{more}: the table's key", is_said(done, where, "", code) if code else not warnings(done), done.out + done.err)
        check(f"{more}: not without --tables", not warnings(run(config(**more))))


def sets():
    for text, wanted in (("FOO", "--set FOO: write NAME=VALUE"), ("=x", "--set =x: write NAME=VALUE"), ("1 A=x", "--set 1 A=x: write NAME=VALUE")):
        done = run(PLAIN, "--set", text)
        check(f"--set {text}", done.returncode == 2 and wanted in done.err and done.err.count("\n") == 1, done.err)
    done = run(PLAIN, "--set", "QUEUE=a", "--set", "QUEUE=b")
    check("--set of one name twice", done.returncode == 2 and "--set QUEUE is given twice" in done.err, done.err)
    done = run(PLAIN, "--set", "QUEU=a")
    check("a --set that nothing uses", "note: --set QUEU: the configuration has no ${QUEU}" in done.out and "[set-unused]" in done.out, done.out)
    check("one that is used", "set-unused" not in run(PLAIN, "--set", "QUEUE=a").out)


def kinds_of_mappings():
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026"
    one, other = {**SOUND, "EventSourceArn": arn, "UUID": "u1"}, {**SOUND, "EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:q"}
    for mapping, ok in (({"EventSourceMappings": [one]}, True), ({"EventSourceMappings": [other, one]}, True),
                        ({"Type": "AWS::Lambda::EventSourceMapping", "Properties": SOUND}, True), ({**SOUND, "BatchSize": "100"}, True),
                        ({**SOUND, "EventSourceArn": "arn:aws:kinesis:us-east-1:123456789012:stream/s"}, True),
                        ({"EventSourceMappings": []}, "none of them"), ({"EventSourceMappings": [other]}, "none of them"),
                        ({"EventSourceMappings": [one, {**one, "UUID": "u2"}]}, "u1, u2"), (other, "is the mapping of arn:aws:sqs"),
                        ({**SOUND, "Queues": ["q"]}, "queues or topics"), ({}, "no member of one"), ({"a": 1}, "no member of one"),
                        ({**SOUND, "BatchSize": "many"}, "$.BatchSize: is not a whole number"), ({**SOUND, "BisectBatchOnFunctionError": "on"}, "$.Bisect")):
        done = run(PLAIN, mapping=mapping)
        check(f"{mapping}: taken or refused", (done.returncode == 0 and not warnings(done)) if ok is True else (done.returncode == 2 and ok in done.err), done.out + done.err)
    replica = {**PLAIN, "routes": [{"name": "r", "handler": "replicate", "to": "dynamodb://orders"}]}
    stream = {"EventSourceArn": "arn:aws:kinesis:us-east-1:123456789012:stream/s"}
    copies = {"name": "r", "handler": "replicate", "to": "dynamodb://copy"}
    totals = {"name": "r", "handler": "aggregate", "to": "dynamodb://totals", "counters": [{"key": {"PK": "x{s}"}, "add": {"n": 1}}]}
    for route, change, code in ((copies, stream, "order-tied"), (copies, {"EventSourceArn": arn}, None),
                                ({**copies, "guard": "none"}, stream, None), ({**copies, "source": "dynamodb://orders"}, stream, None),
                                ({**copies, "source": "dynamodb://orders", "expired": "keep"}, stream, "order-tied"),
                                (totals, stream, "totals-tied"), (totals, {"EventSourceArn": arn}, None),
                                ({**totals, "per": "event"}, stream, None),
                                ({"name": "r", "handler": "view", "to": "dynamodb://view", "key": {"PK": "{PK}"}}, stream, "order-needed")):
        done = run({**PLAIN, "routes": [route]}, mapping={**SOUND, **change})
        said = [c for c in ("order-tied", "totals-tied", "order-needed") if c in done.out]
        check(f"{route}, {change}: {code}", said == ([code] if code else []), done.out + done.err)
    for config, change, code, text in (
            (PLAIN, {"BatchSize": 10001}, "mapping-refused", "BatchSize is 10001"), (PLAIN, {"ParallelizationFactor": 0}, "mapping-refused", "ParallelizationFactor is 0"),
            (PLAIN, {"BatchSiz": 100}, "mapping-mistyped", "did you mean BatchSize?"), (PLAIN, {"State": "Disabled"}, "mapping-disabled", "disabled"),
            (PLAIN, {"Enabled": False}, "mapping-disabled", "disabled"), (PLAIN, {"MaximumRetryAttempts": -1}, "retries-unlimited", "no limit"),
            (replica, {"EventSourceArn": arn}, "source-is-target", "$.routes[0].to: orders is the table")):
        done = run(config, mapping={**SOUND, **change})
        check(f"{change}: {code}", is_said(done, "", text, code), done.out + done.err)


configurations()
samples()
mappings()
kinds_of_mappings()
sets()
filter_limits()
patterns()
codes()
conditions()
operators()
refusals()
totals()
keys()
webhooks()
filters()
finish()
