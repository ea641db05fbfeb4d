"""A function that takes work items, and the state machine of deploy/steps/ that calls it."""
import collections
import json

from exports import ago
from function import LONGEST_S, Function
from harness import WHOLE
from player import StateError, World
from stage import DEFINITION, FUNCTION_ARN, SUBSTITUTIONS, check, item

ITEMS = [item(n) for n in range(600 if WHOLE else 200)]
LONGER = (1, 4, 16)  # short turns are so many times longer on slow machines
SINCE = {"consumer_since": ago(7200)}


class Job:
    """A function, and the state machine that calls it."""

    def __init__(self, stage, name, source, fault=None, timeout_s=LONGEST_S, is_new=True, **more):
        self.stage, self.name = stage, name
        self.function = Function(stage.environment(name, source, **more), timeout_s, fault, stage.folder / f"{name}.log")
        self.world = World(self.invoke, stage.s3)
        self.lost = lambda payload: False
        self.answers = []
        if is_new:
            stage.targets(name)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        ends = self.function.close()
        if not kind:
            check(f"{self.name}: the processes end in order", not any(ends), ends)

    def invoke(self, name, payload, timeout_s):
        """The task state's side of Lambda's Invoke, with the names that Step Functions gives its errors."""
        assert name == FUNCTION_ARN and timeout_s > 900
        status, error, body = self.function.invoke(json.dumps(payload).encode())
        if status == 200 and not error and self.lost(payload):
            raise StateError("States.Timeout", "the answer was lost")
        if status != 200:
            raise StateError(f"Lambda.{error}", body.decode())
        answer = json.loads(body)
        if error:
            raise StateError(answer["errorType"], answer["errorMessage"])
        self.answers.append((payload, answer))
        return answer

    def needs_longer(self, longer):
        """Whether turns that are short on purpose were too short: not a page was read in one, or Lambda ended it. (A process that
        ended by itself is no matter of time.)"""
        return longer != LONGER[-1] and set(self.function.endings) != {"response"} and "exit" not in self.function.endings

    def ask(self, what):
        """One work item: its answer, or (error, text)."""
        try:
            return self.invoke(FUNCTION_ARN, {"sluice": what}, 960)
        except StateError as wrong:
            return wrong.error, wrong.cause

    def run(self, name=None, **given):
        return self.world.start(DEFINITION, SUBSTITUTIONS, name or self.name, given or SINCE)

    def equals(self, what, items=ITEMS):
        """The replica holds the items and no others; the totals count each once."""
        found, wanted = self.stage.items(f"{self.name}-replica"), sorted(items, key=lambda row: row["SK"]["S"])
        check(f"{what}: the replica equals the source", found == wanted, (len(found), len(wanted)))
        totals = {row["PK"]["S"]: (int(row["orders"]["N"]), int(row["money"]["N"]))
                  for row in self.stage.rows(f"{self.name}-totals") if row["PK"]["S"].startswith("STATUS#")}
        wanted = collections.defaultdict(lambda: (0, 0))
        for one in items:
            key = "STATUS#" + one["status"]["S"]
            wanted[key] = (wanted[key][0] + 1, wanted[key][1] + int(one["total"]["N"]))
        check(f"{what}: the totals equal the source's", totals == wanted, (totals, dict(wanted)))


def succeeded(what, run):
    check(f"{what}: succeeds", run.status == "SUCCEEDED", (run.status, run.error, run.cause))
    return run.output
