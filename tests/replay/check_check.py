#!/usr/bin/env python3
"""`sluice check`: what it refuses, what it says of each route, and which mappings would lose data."""
import json
import os
import pathlib
import subprocess
import tempfile

from harness import BUILD, check, finish

folder = pathlib.Path(tempfile.mkdtemp())
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
    done = subprocess.run([f"{BUILD}/sluice", "check", *flags], cwd=folder, env=env, capture_output=True, timeout=60,
                          input=json.dumps(mapping).encode() if mapping is not None else None)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


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
            ({"handler": "notify", "to": "jsonl:"}, "no file named"),
            ({"handler": "notify", "to": "stdout:x"}, "nothing comes behind stdout:")):
        done = run({**PLAIN, "routes": [{"name": "r", **members}]})
        check(f"{text}: a local target is read", done.returncode == 2 and "$.routes[0].to: " in done.err and text in done.err, done.err)
    done = run({**PLAIN, "routes": [{"name": "r", "handler": "archive", "to": "s3://bucket/x", "format": "item", "when": {"expired": True}}]})
    check("the views that serve a route", "works with OLD_IMAGE, NEW_AND_OLD_IMAGES\n" in done.out and "takes     REMOVE" in done.out, done.out)
    done = run(PLAIN, "nowhere.json")
    check("no such file: exit 2", done.returncode == 2 and "nowhere.json" in done.err, done.err)


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


def patterns():
    cases = [
        ({"dynamodb": {"NewImage": {"n": {"N": [{"numeric": [">", 1]}]}}}}, "numeric"),
        ({"dynamodb": {"OldImage": {"n": [{"exists": False}]}}}, "exists"),
        ({"dynamodb": {"NewImage": {"n": ["x"]}}}, "type"),
        ({"dynamodb": {"NewImage": {"m": {"M": {"n": {"N": [{"numeric": ["=", 1]}]}}}}}}, "numeric"),
        ({"dynamodb": {"NewImage": {"n": {"N": ["1"]}, "s": {"S": [{"exists": True}]}}}, "eventName": ["INSERT"]}, None),
        ({"dynamodb": {"ApproximateCreationDateTime": [{"numeric": [">", 1]}]}}, None),
    ]
    for pattern, text in cases:
        as_filter = run(PLAIN, mapping={**SOUND, "FilterCriteria": {"Filters": [{"Pattern": json.dumps(pattern)}]}})
        as_when = run({**PLAIN, "routes": [{**PLAIN["routes"][0], "when": {"pattern": [pattern]}}]})
        for done, where in ((as_filter, "FilterCriteria.Filters[0]"), (as_when, "$.routes[0].when.pattern[0]")):
            found = warnings(done)
            check(f"{pattern} in {where}", (not found and done.returncode == 0) if text is None else
                  (len(found) == 1 and where in found[0] and text in found[0]), done.out + done.err)


configurations()
mappings()
patterns()
finish()
