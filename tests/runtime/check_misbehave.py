#!/usr/bin/env python3
"""Handlers that misbehave, through `sluice replay` and the real bootstrap: each way x failures reported or not x one, two or all
records x parked or reported. Nothing is lost, no good record is given up, no message is sent twice."""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests/cli")
from harness import BUILD, WHOLE, Run, check, finish, record  # noqa: E402

N, FIRST = 40, 1500
ALL = {FIRST + i for i in range(N)}
CODES = {"segv": "HandlerCrashed", "abort": "HandlerCrashed", "exit": "HandlerExited", "exit 1": "HandlerExited", "loop": "HandlerTimedOut", "sleep": "HandlerTimedOut",
         "kill": "HandlerKilled", "close": "HandlerClosedDescriptors", "mark": "HandlerMisuse", "status": "HandlerMisuse",
         "deadly pipe": "HandlerKilled", "pipe": None, "in a port": "PortCrashed"}
HANG = ("loop", "sleep")
WHERE = {"the first": {1500}, "the last": {1539}, "two": {1520, 1521}, "all": ALL}


def build(handlers):
    for name, flags in (("dies", []), ("dies_once", ["-DFLAGS=SL_ONCE_ONLY"])):
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include",
                        *flags, "-o", handlers / f"{name}.so", "tests/runtime/plugins/dies.c"], check=True)


class Case:
    def __init__(self, handlers, how, where, reports, parks, handler="dies", routes=1):
        self.name = f"{routes} {handler}, {how}, {where}, {'reported' if reports else 'not reported'}, {'parked' if parks else 'given up'}"
        self.routes = routes
        self.how, self.poison, self.is_all, self.parks, self.handler = how, WHERE[where], where == "all", parks, handler
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "tmp").mkdir()
            at = "all" if self.is_all else ",".join(map(str, sorted(self.poison)))
            dies = {"name": "r", "handler": handler, "how": how, "at": at, "told": str(folder / "told"), "port": f"jsonl:{folder}/port.jsonl",
                    "on_failure": "jsonl:parked.jsonl" if parks else "report"}
            says = {"name": "says", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{PK}", "on_failure": "report"}
            (folder / "sluice.json").write_text(json.dumps({"report_batch_item_failures": reports, "routes": [*({**dies, "name": f"r{i}"} for i in range(routes)), says]}))
            self.run = Run(folder, "--quiet", "--handler-path", str(handlers), "--batch-size", str(N), "--bisect", "--max-retries", "3",
                           "--timeout", "5" if self.how in HANG else "8", *(["--report-failures"] if reports else []), records=[record(n) for n in sorted(ALL)],
                           env={"TMPDIR": str(folder / "tmp")})
            self.told = collections.Counter(int(line) for line in Run.text(folder / "told").splitlines())
            self.said = collections.Counter(int(line.strip().strip('"')[1:]) for line in Run.text(folder / "said.jsonl").splitlines())
            lines = [json.loads(line) for line in Run.text(folder / "parked.jsonl").splitlines()]
        self.parked = collections.Counter(int(m["record"]["dynamodb"]["SequenceNumber"]) for m in lines)
        self.codes = {m["code"] for m in lines}
        self.given_up = set()
        for info in (f["DDBStreamBatchInfo"] for f in self.run.failures):
            self.given_up |= set(range(int(info["startSequenceNumber"]), int(info["endSequenceNumber"]) + 1))

    def verify(self):
        detail = f"{self.run.out}\n{self.run.err[-3000:]}\nparked {self.parked} {self.codes}, given up {sorted(self.given_up)}, told {self.told}"
        poison, code = (set(), None) if CODES[self.how] is None else (self.poison, CODES[self.how])
        check(f"{self.name}: no good record is given up", self.given_up | set(self.parked) <= poison, detail)
        check(f"{self.name}: nothing is lost", set(self.told) | set(self.parked) | self.given_up == ALL, detail)
        # What is done once comes last: a process that dies of it has sent the messages of that batch.
        most = 2 if self.handler == "dies_once" else 1
        check(f"{self.name}: no message is sent twice", max(self.said.values(), default=0) <= most, f"{self.said} {detail}")
        check(f"{self.name}: all messages are sent", ALL - self.given_up <= set(self.said), f"{self.said} {detail}")
        check(f"{self.name}: each is parked once", max(self.parked.values(), default=0) <= self.routes, detail)
        if self.is_all or self.how == "in a port":
            check(f"{self.name}: nothing is parked", not self.parked, detail)
        elif self.how in HANG and self.routes == 2:  # four trials that hang: for one of them a half may be left without a control
            check(f"{self.name}: it alone is set aside", self.given_up | set(self.parked) == poison, detail)
        elif code and self.parks:
            check(f"{self.name}: each route parks it", self.parked == {n: self.routes for n in poison} and self.codes == {code}
                  and self.run.status == 0, detail)
        elif code:
            check(f"{self.name}: it alone is given up", self.given_up == poison, detail)
        if code:
            check(f"{self.name}: the reason is said", code in self.run.err + self.run.trace_text or self.parked, detail)
        if self.handler == "dies_once":
            check(f"{self.name}: no good record is done three times", max(self.told[n] for n in ALL - poison) <= 2, detail)


def main():
    with tempfile.TemporaryDirectory() as handlers:
        handlers = pathlib.Path(handlers)
        build(handlers)
        cases = [(how, where, reports, parks, "dies") for how in CODES for where in WHERE for reports in (True, False) for parks in (True, False)
                 if (WHOLE or how == "loop" or reports == parks and (parks or where == "two"))
                 and (parks or where != "the last")
                 and (how not in HANG or where != "all")
                 and (how != "loop" or (where == "two" and parks))]  # an outage is halved down to each record, and each part waits
        cases += [(how, where, True, True, "dies_once") for how in CODES if how != "loop" for where in (("the first", "two") if WHOLE else ("two",))]
        cases += [(how, "two", reports, True, "dies", 2) for how in ("segv", "exit", "kill", "close", "sleep") for reports in (True, False)]
        cases.sort(key=lambda case: case[0] not in HANG)  # they wait, while others work
        only = sys.argv[1:]
        cases = [case for case in cases if not only or case[0] in only]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for case in pool.map(lambda case: Case(handlers, *case), cases):
                case.verify()
    finish()


main()
