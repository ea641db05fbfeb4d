#!/usr/bin/env python3
"""What template.yaml makes for the beginning (SeedFrom): a function without an event source, a state machine, their roles and a
bucket, only when asked for; and the state machine's definition, looked at by cfn-lint and against the rules that it has to keep."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAM = pathlib.Path(subprocess.run([HERE / "install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
if not sys.prefix.startswith(str(SAM)):
    os.execv(SAM / "bin/python", [SAM / "bin/python", __file__])

sys.path.insert(0, str(HERE.parent / "cli"))
import template  # noqa: E402  in SAM's environment
from harness import WHOLE  # noqa: E402

STREAM = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/users/stream/2026-01-01T00:00:00.000"
TABLE = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/users"
EXPORT = "s3://exports/of/users/AWSDynamoDB/01700000000000-0a1b2c3d"
SEED = {"SeedFunction", "SeedRole", "SeedStateMachine", "SeedStepsRole", "SeedBucket", "SeedBucketPolicy"}
DOCUMENTED = {"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
              "States.Timeout"}
DEFINITION = template.TOP / "deploy/steps/seed.asl.json"


def variables(overrides):
    return template.resolve(overrides)[0]["SeedFunction"]["Properties"]["Environment"]["Variables"]


def only_when_asked():
    for base in ({}, {"SourceStreamArn": STREAM}):
        without, outputs = template.resolve(base)
        assert not SEED & set(without) and "SeedStateMachineArn" not in outputs
        for source in ("scan", EXPORT):
            resources, outputs = template.resolve({**base, "SeedFrom": source})
            assert set(resources) - set(without) == SEED and {"SeedStateMachineArn", "SeedBucketName"} <= set(outputs)
            assert {name: resources[name] for name in without} == without, "it changes what is there without it"


def the_function():
    resources, _ = template.resolve({"SeedFrom": EXPORT})
    seed, stream = (resources[name]["Properties"] for name in ("SeedFunction", "SluiceFunction"))
    assert "Events" not in seed and seed["Timeout"] == 900
    for name in ("CodeUri", "Handler", "Runtime", "Architectures", "MemorySize", "LoggingConfig"):
        assert seed[name] == stream[name], name
    routes = {name: value for name, value in variables({"SeedFrom": EXPORT}).items() if not name.startswith("SLUICE_WORK_")}
    assert routes == stream["Environment"]["Variables"], "the configuration sees other variables than in the stream's function"
    assert not any(name.startswith("SLUICE_WORK_") for name in stream["Environment"]["Variables"])


def where_items_come_from():
    assert variables({"SeedFrom": "scan"})["SLUICE_WORK_SOURCE"] == "dynamodb://<OrdersTable>"
    assert variables({"SeedFrom": "scan", "SourceStreamArn": STREAM})["SLUICE_WORK_SOURCE"] == "dynamodb://users"
    given = variables({"SeedFrom": EXPORT, "SeedKeys": "PK,SK", "SeedWriteUnits": 20000, "SeedConcurrency": 100})
    assert given["SLUICE_WORK_SOURCE"] == EXPORT and given["SLUICE_WORK_KEYS"] == "PK,SK" and given["SLUICE_WORK_ITEMS"] == "1"
    assert (given["SLUICE_WORK_WRITE_UNITS"], given["SLUICE_WORK_CONCURRENCY"]) == (20000, 100)
    assert given["SLUICE_WORK_PLACE"] == "s3://<SeedBucket>/seed" and "SLUICE_WORK_KEYS" not in variables({"SeedFrom": EXPORT})


def narrow_roles():
    scan = {"SeedFrom": "scan", "SourceStreamArn": STREAM}
    source = template.allowed(template.resolve(scan)[0], "source", "SeedRole")
    bucket = {("s3:PutObject", "<SeedBucket.Arn>/seed/plans/*"), ("s3:GetObject", "<SeedBucket.Arn>/seed/results/*")}
    audit = {("s3:PutObject", "<SeedBucket.Arn>/seed/verify/*"), ("s3:GetObject", "<SeedBucket.Arn>/seed/verify/*"),
             ("s3:PutObject", "<SeedBucket.Arn>/seed/repair/*"), ("s3:ListBucket", "<SeedBucket.Arn>")}
    assert source == bucket | audit | {("dynamodb:" + action, TABLE) for action in ("DescribeTable", "Scan", "BatchGetItem")}, source
    resources, _ = template.resolve({"SeedFrom": EXPORT, "SourceStreamArn": STREAM})
    source = template.allowed(resources, "source", "SeedRole")
    assert source == bucket | {("s3:GetObject", f"arn:aws:s3:::{EXPORT.removeprefix('s3://')}/*"), ("s3:ListBucket", "arn:aws:s3:::exports")}, source
    stars = {action for policy, role in (("platform", "SeedRole"), ("source", "SeedRole"), ("routes", "SeedRole"), ("steps", "SeedStepsRole"))
             for action, place in template.allowed(resources, policy, role) if place == "*" or "*" in action}
    assert stars == {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, stars
    steps = template.allowed(resources, "steps", "SeedStepsRole")
    name = resources["SeedStateMachine"]["Properties"]["Name"]
    assert ("lambda:InvokeFunction", "<SeedFunction.Arn>") in steps
    assert {place.rpartition(f"{name}")[2] for action, place in steps if action.startswith("states:")} == {"", ":*", "/Pieces:*"}, steps
    # The archive takes changes, not items: nothing may be written there.
    assert not any("expired" in place for _, place in template.allowed(resources, "routes", "SeedRole"))


def definition():
    return json.loads(DEFINITION.read_text())


def substitutions_are_given():
    given = template.resolve({"SeedFrom": "scan"})[0]["SeedStateMachine"]["Properties"]["DefinitionSubstitutions"]
    used = set(__import__("re").findall(r"\$\{(\w+)\}", DEFINITION.read_text()))
    assert set(given) == used == {"SeedFunctionArn", "SeedBucket"}, (given, used)


def linted(machine):
    """cfn-lint reads a definition only where it stands in the template."""
    body = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": {
        "RoleArn": "arn:aws:iam::123456789012:role/steps", "Definition": machine}}}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(body, file)
        file.flush()
        return subprocess.run([SAM / "bin/cfn-lint", file.name], text=True, stdout=subprocess.PIPE, check=False).stdout


def definition_passes_cfn_lint():
    assert not linted(definition()).strip(), linted(definition())
    broken = definition()
    del broken["States"]["Pieces"]["ItemProcessor"]["States"]["Turn"]["Resource"]
    assert "E3601" in linted(broken), linted(broken)
    broken = definition()
    broken["StartAt"] = "Nowhere"
    assert "E3601" in linted(broken), linted(broken)


def states(machine):
    for name, state in machine["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


def definition_keeps_the_rules():
    machine = definition()
    pieces = machine["States"]["Pieces"]
    assert pieces["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert not any(name.startswith("Tolerated") for name in pieces), "a Map that tolerated a failure cannot be redriven"
    assert not any("Catch" in state for _, state in states(machine)), "what is caught is not redriven"
    assert pieces["ItemReader"]["ReaderConfig"]["InputType"] == "JSON" and "ResultWriter" in pieces and "MaxConcurrencyPath" in pieces
    tasks = [state for _, state in states(machine) if state["Type"] == "Task"]
    assert len(tasks) == 4
    for task in tasks:
        again = task["Retry"][0]
        # (Nobody answers faster because he is asked again.)
        documented = DOCUMENTED - {"States.Timeout"} if task["Resource"].endswith(".waitForTaskToken") else DOCUMENTED
        assert documented | {"Function.TryAgain"} <= set(again["ErrorEquals"]) and again["MaxAttempts"] >= 3
        assert all(retrier["JitterStrategy"] == "FULL" for retrier in task["Retry"])
        timeout = template.resolve({"SeedFrom": "scan"})[0]["SeedFunction"]["Properties"]["Timeout"]
        assert task["TimeoutSeconds"] > timeout, "the state gives up before the function does"
    limits = [rule["NumericGreaterThanEquals"] for _, state in states(machine) for rule in state.get("Choices", []) if rule["Variable"] == "$.turn"]
    assert limits == [1000], limits
    # A child's history: 9 events a turn (Task 5, Choice 2, Pass 2), and a retry's 3 for a turn each on the average.
    assert limits[0] * (9 + 3) < 25000, "a child's history is full before its last turn"


def wrong_parameters_are_refused():
    for wrong in ({"SeedFrom": EXPORT + "/"}, {"SeedFrom": "s3://exports/of/users"}, {"SeedFrom": "users"}, {"SeedKeys": "PK,SK,X"}):
        try:
            template.resolve(wrong)
        except AssertionError:
            continue
        raise AssertionError(f"{wrong} passed")


CASES = [only_when_asked, the_function, where_items_come_from, narrow_roles, substitutions_are_given, definition_keeps_the_rules,
         wrong_parameters_are_refused, *([definition_passes_cfn_lint] if WHOLE else [])]
for case in CASES:
    try:
        case()
    except AssertionError as wrong:
        sys.exit(f"{case.__name__}: {wrong}")
print(f"{len(CASES)} passed, 0 failed")
