#!/usr/bin/env python3
"""AWS's own Runtime API server, in the Runtime Interface Emulator: bootstrap lives with it, and the server of `sluice replay`
keeps its rules: the same badly behaved function meets the same codes in both."""
import json
import sys

sys.path[:0] = ["tests/package", "tests/cli"]
import emulator
from harness import BUILD, FUNCTION, Run, check, finish, record, work_folder

work = work_folder()


def event(records):
    return json.dumps({"Records": records}).encode()


def bootstrap():
    (work / "sluice.json").write_text(json.dumps({
        "report_batch_item_failures": True, "on_failure": "report",
        "routes": [{"name": "say", "handler": "notify", "to": f"jsonl:{work}/said.jsonl", "message": "{PK}"},
                   {"name": "none", "handler": "notify", "when": {"events": ["REMOVE"]}, "to": f"jsonl:{work}/none.jsonl", "message": "x"}]}))
    large = [record(n, key="k" + "x" * 200) for n in range(1000, 7000)]
    events = [event([record(1)]), b'{"hello":1}', b'{"Records":[]}', event(large), event([record(2)])]
    answers, log = emulator.invoke(work, [f"{BUILD}/bootstrap"], {"SLUICE_CONFIG": str(work / "sluice.json"), "AWS_LAMBDA_FUNCTION_TIMEOUT": "60"}, events)
    answers = [json.loads(a) for a in answers]
    done = {"batchItemFailures": []}
    check("a batch", answers[0] == done, answers[0])
    check("no stream event: a function error that says so", answers[1]["errorType"] == "Function.NotAStreamEvent" and answers[1]["errorMessage"], answers[1])
    check("an empty one", answers[2] == done, answers[2])
    check(f"{len(events[3]) / 1e6:.1f} MB", answers[3] == done and len(events[3]) > 5_000_000, answers[3])
    check("and on", answers[4] == done and (work / "said.jsonl").read_text().count("\n") == 6002, log)


def the_same_codes():
    """The function itself asserts what it is answered: 400, 403, 413, the same event again."""
    for mode in ("twice", "wrong-id", "refetch"):
        answers, log = emulator.invoke(work, ["python3", FUNCTION, mode], {}, [event([record(1)]), event([record(2)])])
        check(f"{mode}: in the emulator", answers == [b"null", b"null"] and "Error" not in log, (answers, log))
        run = Run(work, "--batch-size", "1", function=mode, records=[record(1), record(2)])
        check(f"{mode}: and here", run.status == 0 and run.sizes() == [1, 1] and "Error" not in run.err, run.err)
    answers, log = emulator.invoke(work, ["python3", FUNCTION, "too-large"], {}, [event([record(1)])])
    run = Run(work, "--max-retries", "0", function="too-large", records=[record(1)])
    check("too large: the same error type", json.loads(answers[0])["errorType"] == run.trace[0]["answer"]["errorType"] == "Function.ResponseSizeTooLarge",
          (answers, run.trace))


bootstrap()
the_same_codes()
finish()
