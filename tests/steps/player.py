"""Plays a state machine's definition, as AWS Step Functions does: only the states, paths and fields that deploy/steps/ uses;
anything else is an error, so that a definition cannot come to mean something that is not tested.

What it has beyond the interpreters that one can install: a Distributed Map's failures, its ResultWriter's files and
RedriveExecution. From the Step Functions Developer Guide and the Amazon States Language specification: a failed child ends the
Map (tolerance 0) and aborts the others; a redrive goes on with the unsuccessful state and its input, in the parent and in each
unsuccessful child, and starts children that had not begun."""
import concurrent.futures
import copy
import json
import random
import re
import threading
import time
import uuid

PAYLOAD_BYTES = 262144   # of a state's input or output
HISTORY_EVENTS = 25000   # of one execution
EVENTS = {"Task": 5, "Pass": 2, "Choice": 2, "Fail": 2, "Succeed": 2, "Map": 4}
RETRY_EVENTS = 3
KNOWN = {
    "Task": {"Type", "Comment", "Resource", "Parameters", "OutputPath", "ResultPath", "TimeoutSeconds", "Retry", "Next", "End"},
    "Pass": {"Type", "Comment", "Parameters", "OutputPath", "Next", "End"},
    "Choice": {"Type", "Comment", "Choices", "Default"},
    "Fail": {"Type", "Comment", "Error", "Cause"},
    "Succeed": {"Type"},
    "Map": {"Type", "Comment", "Label", "MaxConcurrencyPath", "ItemReader", "ItemSelector", "ItemProcessor", "ResultWriter", "ResultPath",
            "Next", "End"},
}


class StateError(Exception):
    """What a state ends with: `Error` and `Cause`."""

    def __init__(self, error, cause):
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


class Stopped(Exception):
    """The execution was told to stop."""


def look(path, data, context):
    """A reference path: $, $.a.b, $$.Execution.Name. A path that leads nowhere is a States.Runtime error."""
    root, names = (context, path[2:]) if path.startswith("$$") else (data, path[1:])
    assert re.fullmatch(r"(\.\w+)*", names), f"a path that is not known here: {path}"
    for name in names.split(".")[1:]:
        if not isinstance(root, dict) or name not in root:
            raise StateError("States.Runtime", f"{path} is not in {json.dumps(data)[:500]}")
        root = root[name]
    return copy.deepcopy(root)


def evaluate(expression, data, context):
    intrinsic = re.fullmatch(r"States\.MathAdd\((\$[^,]*), *(-?\d+)\)", expression)
    if intrinsic:
        return look(intrinsic[1], data, context) + int(intrinsic[2])
    return look(expression, data, context)


def fill(template, data, context):
    """A payload template."""
    if isinstance(template, dict):
        return {name.removesuffix(".$"): evaluate(value, data, context) if name.endswith(".$") else fill(value, data, context)
                for name, value in template.items()}
    return [fill(value, data, context) for value in template] if isinstance(template, list) else template


def put(path, data, result):
    """ResultPath."""
    assert re.fullmatch(r"\$\.\w+", path), path
    return {**data, path[2:]: result}


def chosen(rule, data, context):
    (kind, wanted), = ((k, v) for k, v in rule.items() if k not in ("Variable", "Next"))
    value = look(rule["Variable"], data, context)
    if kind in ("BooleanEquals", "StringEquals"):
        return value == wanted and isinstance(value, type(wanted))
    assert kind == "NumericGreaterThanEquals", kind
    return isinstance(value, (int, float)) and value >= wanted


class Run:
    """One execution, parent or child."""

    def __init__(self, world, machine, name, value, stop=None):
        self.world, self.machine, self.name, self.status = world, machine, name, "PENDING"
        self.state, self.input, self.first_input = machine["StartAt"], value, value
        self.output = self.error = self.cause = None
        self.events, self.visited, self.retries, self.redrives, self.map_run = 0, [], [], 0, None
        self.stop = stop or threading.Event()

    def redrive(self):
        """RedriveExecution: from the unsuccessful state, with its input."""
        assert self.status in ("FAILED", "ABORTED", "PENDING_REDRIVE"), self.status
        self.redrives += 1
        return self.go()

    def go(self):
        self.status, self.error, self.cause = "RUNNING", None, None
        try:
            while self.state:  # (a Succeed state and End have none after them)
                if self.stop.is_set():
                    raise Stopped
                self.step()
            self.status, self.output = "SUCCEEDED", self.input
        except StateError as wrong:
            self.status, self.error, self.cause = "FAILED", wrong.error, wrong.cause
        except Stopped:
            self.status = "ABORTED"
        return self

    def step(self):
        state = self.machine["States"][self.state]
        assert set(state) <= KNOWN[state["Type"]], f"{self.state}: {set(state) - KNOWN[state['Type']]}"
        self.count(EVENTS[state["Type"]])
        self.visited.append(self.state)
        output, following = getattr(self, state["Type"].lower())(state)
        if len(json.dumps(output, separators=(",", ":"))) > PAYLOAD_BYTES:
            raise StateError("States.DataLimitExceeded", f"{self.state} returned more than {PAYLOAD_BYTES} bytes")
        self.input, self.state = output, following

    def count(self, events):
        self.events += events
        if self.events > HISTORY_EVENTS:
            raise StateError("States.Runtime", "the execution's history is full")

    def context(self, item=None, token=None):
        return {"Execution": {"Name": self.name}, **({"Map": {"Item": {"Value": item}}} if item is not None else {}),
                **({"Task": {"Token": token}} if token else {})}

    @staticmethod
    def following(state):
        assert ("Next" in state) != bool(state.get("End")), state
        return state.get("Next")

    def result(self, state, result):
        output = put(state["ResultPath"], self.input, result) if "ResultPath" in state else result
        return look(state.get("OutputPath", "$"), output, self.context()), self.following(state)

    # ---- states ----

    def fail(self, state):
        raise StateError(state["Error"], state["Cause"])

    def succeed(self, _):
        return self.input, None

    def choice(self, state):
        following = next((rule["Next"] for rule in state["Choices"] if chosen(rule, self.input, self.context())), state["Default"])
        return self.input, following

    def pass_(self, state):
        data = fill(state["Parameters"], self.input, self.context()) if "Parameters" in state else self.input
        return look(state.get("OutputPath", "$"), data, self.context()), self.following(state)

    def task(self, state):
        waits = state["Resource"] == "arn:aws:states:::lambda:invoke.waitForTaskToken"
        assert waits or state["Resource"] == "arn:aws:states:::lambda:invoke", state["Resource"]
        tries = [0] * len(state["Retry"])
        while True:
            token = str(uuid.uuid4()) if waits else None
            parameters = fill(state["Parameters"], self.input, self.context(token=token))
            assert set(parameters) == {"FunctionName", "Payload"}, parameters
            try:
                payload = self.world.invoke(parameters["FunctionName"], parameters["Payload"], state["TimeoutSeconds"])
                if self.stop.is_set():  # an aborted execution does not see the answer
                    raise Stopped
                if waits:  # SendTaskSuccess, SendTaskFailure: what a person says is the state's result
                    return self.result(state, self.world.answer(token))
                return self.result(state, {"ExecutedVersion": "$LATEST", "StatusCode": 200, "Payload": payload})
            except StateError as wrong:
                self.wait(state, wrong, tries)

    def wait(self, state, wrong, tries):
        """Waits as the first retrier says that names the error, or lets the error pass."""
        for i, retrier in enumerate(state["Retry"]):
            if wrong.error in retrier["ErrorEquals"]:
                if tries[i] == retrier["MaxAttempts"]:
                    break
                longest = min(retrier["IntervalSeconds"] * retrier.get("BackoffRate", 2) ** tries[i], retrier.get("MaxDelaySeconds", 31622400))
                assert retrier["JitterStrategy"] == "FULL"
                tries[i] += 1
                self.count(RETRY_EVENTS)
                self.retries.append(wrong.error)
                if self.stop.wait(random.uniform(0, longest) * self.world.pace):
                    raise Stopped
                return
        raise wrong

    def map(self, state):
        if not self.map_run or self.map_run.is_done:  # a Map that is come to once more runs once more
            self.map_run = MapRun(self, state)
        return self.result(state, self.map_run.go())


Run.pass_.__name__ = "pass"
setattr(Run, "pass", Run.pass_)


class MapRun:
    """A Distributed Map's children."""

    def __init__(self, parent, state):
        self.world, self.state, self.parent = parent.world, state, parent
        self.id, self.failing, self.is_done = str(uuid.uuid4()), threading.Event(), False
        self.workers = look(state["MaxConcurrencyPath"], parent.input, parent.context())
        assert isinstance(self.workers, int) and self.workers > 0, self.workers
        processor = state["ItemProcessor"]
        assert processor["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
        self.children = [self.child(processor, item) for item in self.items()]

    def items(self):
        reader = self.state["ItemReader"]
        assert reader["Resource"].endswith(":s3:getObject") and reader["ReaderConfig"] == {"InputType": "JSON"}, reader
        where = fill(reader["Parameters"], self.parent.input, self.parent.context())
        try:
            items = json.loads(self.world.get(where["Bucket"], where["Key"]))
        except Exception as wrong:
            raise StateError("States.ItemReaderFailed", str(wrong)) from wrong
        if not isinstance(items, list):
            raise StateError("States.ItemReaderFailed", "the file is not an array")
        return items

    def child(self, processor, item):
        value = fill(self.state["ItemSelector"], self.parent.input, self.parent.context(item))
        return Run(self.world, processor, str(uuid.uuid4()), value, self.failing)

    def go(self):
        self.failing.clear()
        todo = [child for child in self.children if child.status != "SUCCEEDED"]
        for child in todo:
            child.status = "PENDING" if not child.visited else "PENDING_REDRIVE"
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            for future in [pool.submit(self.one, child) for child in todo]:
                future.result()
        self.write()
        wrong = [child for child in self.children if child.status == "FAILED"]
        if wrong:
            raise StateError("States.ExceedToleratedFailureThreshold", f"{wrong[0].error}: {wrong[0].cause}")
        assert all(child.status == "SUCCEEDED" for child in self.children)
        self.is_done = True
        return {"MapRunArn": f"arn:aws:states:us-east-1:123456789012:mapRun:seed/{self.state['Label']}:{self.id}",
                "ResultWriterDetails": {"Bucket": self.where["Bucket"], "Key": f"{self.where['Prefix']}/{self.id}/manifest.json"}}

    def one(self, child):
        """A child that has not begun when another fails stays as it is."""
        if self.failing.is_set():
            return
        child.go() if child.status == "PENDING" else child.redrive()
        if child.status == "FAILED":
            self.failing.set()

    def write(self):
        """The ResultWriter's files: a manifest, and the children by their status, several files when there are many."""
        writer = self.state["ResultWriter"]
        assert writer["Resource"].endswith(":s3:putObject") and set(writer) == {"Resource", "Parameters"}, writer
        self.where = fill(writer["Parameters"], self.parent.input, self.parent.context())
        files = {}
        for status, of in (("SUCCEEDED", {"SUCCEEDED"}), ("FAILED", {"FAILED", "ABORTED", "PENDING_REDRIVE"}), ("PENDING", {"PENDING"})):
            entries = [self.entry(child) for child in self.children if child.status in of]
            files[status] = []
            for i in range(0, len(entries), self.world.entries_a_file):
                body = json.dumps(entries[i:i + self.world.entries_a_file], separators=(",", ":")).encode()
                key = f"{self.where['Prefix']}/{self.id}/{status}_{i // self.world.entries_a_file}.json"
                self.world.put(self.where["Bucket"], key, body)
                files[status].append({"Key": key, "Size": len(body)})
        manifest = {"DestinationBucket": self.where["Bucket"], "MapRunArn": f"arn:aws:states:us-east-1:123456789012:mapRun:seed/{self.id}",
                    "ResultFiles": files}
        self.world.put(self.where["Bucket"], f"{self.where['Prefix']}/{self.id}/manifest.json", json.dumps(manifest, indent=2).encode())

    @staticmethod
    def entry(child):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = {"ExecutionArn": f"arn:aws:states:us-east-1:123456789012:execution:seed/Pieces:{child.name}",
                 "Input": json.dumps(child.first_input, separators=(",", ":")), "InputDetails": {"Included": True}, "Name": child.name,
                 "RedriveCount": child.redrives, "StartDate": now, "Status": child.status, "StopDate": now}
        if child.status == "SUCCEEDED":
            entry |= {"Output": json.dumps(child.output, separators=(",", ":")), "OutputDetails": {"Included": True}}
        elif child.error:
            entry |= {"Error": child.error, "Cause": child.cause}
        return entry


def substituted(path, substitutions):
    """DefinitionSubstitutions."""
    text = path.read_text()
    for variable, given in substitutions.items():
        text = text.replace("${" + variable + "}", given)
    return text


class World:
    """What a definition runs in. `invoke(name, payload, timeout_s)` returns the answer or raises StateError."""

    def __init__(self, invoke, s3, pace=0.002, entries_a_file=3):
        self.invoke, self.s3, self.pace, self.entries_a_file = invoke, s3, pace, entries_a_file
        self.answer = None  # answer(token): what SendTaskSuccess gives, or a StateError

    def get(self, bucket, key):
        return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def put(self, bucket, key, body):
        self.s3.put_object(Bucket=bucket, Key=key, Body=body)

    def start(self, path, substitutions, name, value):
        return Run(self, json.loads(substituted(path, substitutions)), name, value).go()
