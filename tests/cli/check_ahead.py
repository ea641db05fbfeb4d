#!/usr/bin/env python3
"""While the function works on an event, `sluice replay` makes the next one. Whatever becomes of the first (halves, partial answers, a timeout,
a process that dies, faults by plan), the trace, the failure records and the events are those of a replay that makes none ahead: one with a
second, empty shard."""
import json

from harness import Run, check, finish, record, work_folder

folder = work_folder()
LINES = [json.dumps(record(n), separators=(",", ":")) for n in range(1, 61)]
(folder / "in.jsonl").write_text("\n".join(LINES) + "\n")
(folder / "spaced.jsonl").write_text("\n\n".join(json.dumps(record(n)) for n in range(1, 61)))
(folder / "none.json").write_text('{"Records":[]}')

FLAGS = ("--batch-size", "7", "--max-retries", "2")
CASES = {
    "all good": ("answer null",),
    "halves": ("error-on 3,20,21,60", "--bisect"),
    "given up": ("error-on 3,20,60",),
    "partial answers": ("name 1,10,14,15,60", "--report-failures"),
    "partial answers and halves": ("name 1,10,14,15,60", "--report-failures", "--bisect"),
    "answers that are none": ("answer {", "--report-failures"),
    "a function that times out": ("hang-on 9", "--timeout", "1", "--max-retries", "1"),
    "a process that ends": ("exit-on 8,16,57", "--bisect"),
    "a process that crashes": ("crash", "--max-retries", "0"),
    "a process that answers and ends": ("then-exit",),
    "faults": ("answer null", "--fault", "lost@20%,throttle@20%", "--fault", "die@20%,crash@10%", "--seed", "3"),
    "faults and windows": ("answer null", "--fault", "timeout@30%", "--window", "5", "--seed", "5"),
}


def outcome(function, *flags):
    (folder / "events").unlink(missing_ok=True)
    run = Run(folder, "--quiet", *FLAGS, *flags, function=function)
    events = folder / "events"
    return run.status, run.trace_text, run.failures, events.read_bytes() if events.exists() else b""


for name, (function, *flags) in CASES.items():
    for source in ("in.jsonl", "spaced.jsonl")[:1 + (name == "halves")]:
        ahead = outcome(function, *flags, source)
        behind = outcome(function, *flags, "--shard-per-file", source, "none.json")
        check(f"{name}, {source}: there are invocations", ahead[1].count("\n") > 5, ahead[1])
        check(f"{name}, {source}: status", ahead[0] == behind[0], (ahead[0], behind[0]))
        check(f"{name}, {source}: trace", ahead[1] == behind[1], f"{ahead[1]}\n{behind[1]}")
        check(f"{name}, {source}: failure records", ahead[2] == behind[2], (ahead[2], behind[2]))

# The function gets the events as they are, also those that it gets again.
flags = ("--fault", "lost@40%", "--seed", "9")
ahead, behind = outcome("keep events", *flags, "in.jsonl"), outcome("keep events", *flags, "--shard-per-file", "in.jsonl", "none.json")
check("the same events", ahead[3] == behind[3] and ahead[3].count(b"\n") > 10)
kept = [json.loads(line)["Records"] for line in ahead[3].splitlines()]
check("each is what its lines are", all(event in [[json.loads(l) for l in LINES[i:i + 7]] for i in range(0, 60, 7)] for event in kept))

finish()
