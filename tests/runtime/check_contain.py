#!/usr/bin/env python3
"""Crash containment: one record of 1,000 that a plugin dies of is parked and 999 are handled; what is not a crash parks nothing."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path[:0] = ["tests/cli", "tests/runtime"]
from check_bootstrap import Bootstrap, event  # noqa: E402
from harness import BUILD, Run, check, finish, record  # noqa: E402

N, AT = 1000, 1555
RECORDS = [record(1000 + i, key=f"k{i % 97}") for i in range(N)]


def build(handlers):
    for name, flags in (("dies", []), ("dies_once", ["-DFLAGS=SL_ONCE_ONLY"])):
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include",
                        *flags, "-o", handlers / f"{name}.so", "tests/runtime/plugins/dies.c"], check=True)


class Case:
    """One replay of the thousand through a plugin that dies in that way."""

    def __init__(self, handlers, how, *args, handler="dies", records=RECORDS, on_failure="jsonl:parked.jsonl", **options):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            temp = folder / "tmp"
            temp.mkdir()
            route = {"name": "r", "handler": handler, "how": how, "told": str(folder / "told"), "on_failure": on_failure, **options}
            (folder / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "routes": [route]}))
            self.run = Run(folder, "--quiet", "--handler-path", str(handlers), *args, records=records, env={"TMPDIR": str(temp)})
            self.parked = [json.loads(line) for line in Run.text(folder / "parked.jsonl").splitlines()]
            self.told = collections.Counter(int(line) for line in Run.text(folder / "told").splitlines())
            self.left = os.listdir(temp)
        self.summary = {words: int(n) for words, n in re.findall(r"^([a-z ]+?) +(\d+)(?: |$)", self.run.out, re.M)}
        self.numbers = [int(m["record"]["dynamodb"]["SequenceNumber"]) for m in self.parked]
        self.codes = {m["code"] for m in self.parked}
        self.died = self.summary.get("processes died", 0)

    def detail(self):
        return f"{self.run.out}\n{self.run.err[-3000:]}\nparked {self.numbers} {self.codes}"


def exactly_that_record_is_parked(handlers):
    for how, name in (("segv", "SIGSEGV"), ("abort", "SIGABRT"), ("overflow", "SIGSEGV"), ("own handlers", "SIGSEGV")):
        for batch in (100, 1000):
            case = Case(handlers, how, "--batch-size", str(batch))
            ok = case.numbers == [AT] and case.codes == {"HandlerCrashed"} and case.run.status == 0 and case.died == 1
            check(f"{how} in batches of {batch}", ok, case.detail())
            check(f"{how}: the message", case.parked[0]["message"] == f"the handler died of {name} on this record alone, twice", case.detail())
            check(f"{how}: the others are handled", set(case.told) == {1000 + i for i in range(N)} - {AT}, case.detail())
            check(f"{how}: the summary", re.search(rf"^r +dies +{N} +{N - 1} +1 +0 ", case.run.out, re.M), case.detail())
            check(f"{how}: nothing is left behind", case.left == [], case.left)


def at_every_place(handlers):
    for at in (1000, 1099, 1100, 1999):
        case = Case(handlers, "segv", at=str(at))
        check(f"the record {at}", case.numbers == [at] and case.run.status == 0 and len(case.told) == N - 1, case.detail())


def once_only_effects_are_not_had_twice(handlers):
    case = Case(handlers, "segv", handler="dies_once")
    check("once-only: parked", case.numbers == [AT] and len(case.told) == N - 1, case.detail())
    again = {n for n, times in case.told.items() if times > 1}
    check("once-only: twice is only what the process that died had done of its batch", again <= set(range(1500, AT)) and max(case.told.values()) <= 2, again)


def two_that_are_harmless_alone_are_not_to_blame(handlers):
    case = Case(handlers, "spoilt")
    check("spoilt memory", case.parked == [] and len(case.told) == N and case.run.status == 0 and case.died == 1, case.detail())


def bisecting_mapping(handlers):
    case = Case(handlers, "segv", "--bisect", "--max-retries", "2")
    check("with bisection", case.numbers == [AT] and case.run.status == 0 and len(case.told) == N - 1, case.detail())


def other_endings_are_found_too(handlers):
    """tests/runtime/check_misbehave.py has the whole class."""
    few = RECORDS[500:600]
    for how, code in (("exit", "HandlerExited"), ("kill", "HandlerKilled"), ("segv from outside", "HandlerKilled"), ("loop", "HandlerTimedOut"),
                      ("close", "HandlerClosedDescriptors")):
        case = Case(handlers, how, "--max-retries", "1", "--timeout", "2", records=few)
        check(f"{how}: it alone is parked", case.numbers == [AT] and case.codes == {code} and case.run.status == 0, case.detail())
        check(f"{how}: the others are handled", set(case.told) == {1500 + i for i in range(100)} - {AT}, case.detail())
        check(f"{how}: the process does not go on dying", case.died + case.summary.get("timed out", 0) == (how != "close"), case.detail())
    case = Case(handlers, "close", "--max-retries", "0", records=few)
    error = json.dumps(case.run.trace)
    check("close: route and records are named", "route r: the handler closed descriptors" in error
          and "it held 100 records, sequence numbers 1500 to 1599" in error, error)


def faults_of_the_sandbox_park_nothing(handlers):
    for fault in ("die@3", "crash@2-4", "die@20%", "lost@3", "timeout@2"):
        case = Case(handlers, "no", "--fault", fault, "--timeout", "2")
        check(f"fault {fault}", case.parked == [] and set(case.told) == {1000 + i for i in range(N)} and case.run.status == 0, case.detail())


def not_parked_is_not_tried_here(handlers):
    """Where it cannot be parked it is delivered again, and is known: no process dies of it a second time."""
    few = RECORDS[500:600]
    case = Case(handlers, "segv", "--max-retries", "3", records=few, on_failure="report")
    check("not parked", case.died == 1 and case.parked == [] and case.run.status == 1, case.detail())
    check("not parked: those before it are done", case.summary["handled"] == AT - 1500, case.detail())


def crash_without_a_record_is_an_init_error(handlers):
    case = Case(handlers, "in open", "--max-retries", "1", records=RECORDS[:10])
    check("crash in open", case.run.status != 0 and case.parked == [] and not case.told, case.detail())
    check("crash in open: no batch is spoken of", "route r" in case.run.err and "batch" not in case.run.err, case.detail())
    case = Case(handlers, "exit in open", "--max-retries", "1", records=RECORDS[:10])
    check("exit in open: the route is named", case.run.status != 0 and "the handler of route r called exit(0)" in case.run.err, case.detail())
    case = Case(handlers, "in close", records=RECORDS[:10])
    check("crash in close: the route is named", "in the handler of route r" in case.run.err and len(case.told) == 10, case.detail())
    check("crash in close: no batch is spoken of", "batch" not in case.run.err, case.detail())


def workers_have_a_file_each(handlers):
    """Several processes in one sandbox: each that died of the record knows it when it has been replaced."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        route = {"name": "r", "handler": "dies", "how": "segv", "at": "100007", "told": str(folder / "told"), "on_failure": f"jsonl:{folder}/parked.jsonl"}
        b = Bootstrap({"report_batch_item_failures": True, "routes": [route]}, AWS_LAMBDA_MAX_CONCURRENCY="2", TMPDIR=str(folder),
                      SLUICE_HANDLER_PATH=str(handlers))
        for _ in range(3):  # one or both die of it, as they happen to ask; who has been told parks it
            b.send(event(20))
        path, body, _ = b.posted()
        check("workers: answered", path.endswith("/response") and body == {"batchItemFailures": []}, (path, body))
        b.process.send_signal(signal.SIGTERM)
        status, _, err = b.wait()
        parked = [json.loads(line) for line in Run.text(folder / "parked.jsonl").splitlines()]
        check("workers: parked", {m["record"]["dynamodb"]["SequenceNumber"] for m in parked} == {"100007"}, err[-2000:])
        check("workers: end", status == 0 and err.count("; starting another") in (1, 2), err[-2000:])


def broken_pipe_is_an_error_of_the_write(handlers):
    """As Lambda starts it, SIGPIPE is not ignored; check_misbehave.py has it as `sluice replay` starts it."""
    with tempfile.TemporaryDirectory() as folder:
        route = {"name": "r", "handler": "dies", "how": "pipe", "at": "100007", "told": f"{folder}/told", "on_failure": "report"}
        b = Bootstrap({"report_batch_item_failures": True, "routes": [route]}, TMPDIR=folder, SLUICE_HANDLER_PATH=str(handlers))
        b.send(event(20))
        path, body, _ = b.posted()
        check("broken pipe", path.endswith("/response") and body == {"batchItemFailures": []}, (path, body))
        b.process.send_signal(signal.SIGTERM)
        check("broken pipe: end", b.wait()[0] == 0)


def what_check_opens_ends_with_a_word(handlers):
    with tempfile.TemporaryDirectory() as folder:
        for name, config, words in (("exit in open", {"how": "exit in open"}, "the handler of route r called exit(0)"),):
            pathlib.Path(folder, "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "routes": [
                {"name": "r", "handler": "dies", **config, "told": f"{folder}/told", "on_failure": "report"}]}))
            done = subprocess.run([f"{BUILD}/sluice", "check", "--handler-path", str(handlers), f"{folder}/sluice.json"], capture_output=True, text=True)
            check(f"check: {name}", done.returncode != 0 and words in done.stderr, done)


def main():
    with tempfile.TemporaryDirectory() as handlers:
        handlers = pathlib.Path(handlers)
        build(handlers)
        for test in (exactly_that_record_is_parked, at_every_place, once_only_effects_are_not_had_twice,
                     two_that_are_harmless_alone_are_not_to_blame, bisecting_mapping, other_endings_are_found_too,
                     faults_of_the_sandbox_park_nothing, not_parked_is_not_tried_here, crash_without_a_record_is_an_init_error,
                     workers_have_a_file_each, broken_pipe_is_an_error_of_the_write, what_check_opens_ends_with_a_word):
            test(handlers)
    finish()


main()
