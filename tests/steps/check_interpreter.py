#!/usr/bin/env python3
"""The same definition in an interpreter that others wrote: moto's Step Functions (LocalStack's), whose Lambda calls reach the real
bootstrap through an invoke endpoint on this machine. It plays plan, Distributed Map, turns and retries. Its Map succeeds
whatever its children do, and its ResultWriter writes a manifest without results: so there the sum has to refuse, and that it does is
the end of this run. check_steps.py plays the rest."""
import json
import pathlib
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from stage import DEFINITION, SUBSTITUTIONS, Stage, check, item  # noqa: E402  first: it may begin again in moto's Python
import stage as counted  # noqa: E402
from exports import ago  # noqa: E402
from function import Function, serve_front  # noqa: E402
from player import substituted  # noqa: E402

ITEMS = [item(n) for n in range(200)]
PATIENCE_S = 600


def play(stage, front, name, place, given, fault=None, **more):
    """One execution from start to end: its description and the events of its history, children's included as far as moto keeps them."""
    stage.targets(name)
    function = Function(stage.environment(name, place, **more), fault=fault, log=stage.folder / f"{name}.log")
    front.function = function
    steps = stage.client("stepfunctions")
    machine = steps.create_state_machine(name=name, roleArn="arn:aws:iam::123456789012:role/steps",
                                         definition=substituted(DEFINITION, SUBSTITUTIONS))["stateMachineArn"]
    execution = steps.start_execution(stateMachineArn=machine, name=name, input=json.dumps(given))["executionArn"]
    until = time.monotonic() + PATIENCE_S
    while (said := steps.describe_execution(executionArn=execution))["status"] == "RUNNING" and time.monotonic() < until:
        time.sleep(0.1)
    history = steps.get_execution_history(executionArn=execution, maxResults=1000)["events"]
    function.close()
    return said, history, function


def entered(history):
    return [event["stateEnteredEventDetails"]["name"] for event in history if "stateEnteredEventDetails" in event]


def main():
    front = serve_front()
    with Stage(MOTO_PORT=str(front.server_port)) as stage:
        front.behind = stage.services["MOTO_ENDPOINT"].removeprefix("http://")
        request = urllib.request.Request(f"http://{front.behind}/moto-api/config", json.dumps({"stepfunctions": {"execute_state_machine": True}}).encode(),
                                         {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=600).read()
        place, keys = stage.export("of/", ITEMS, 5)

        said, history, function = play(stage, front, "played", place, {"consumer_since": ago(7200)}, SLUICE_WORK_WRITE_UNITS="800",
                                       fault=lambda number, payload: "throttle" if number in (1, 3, 4) else None)
        check("the sum refuses a manifest without results", said["status"] == "FAILED" and said["error"] == "Function.PiecesMissing" and
              f"0 of the plan's {len(keys)} pieces" in said["cause"], said)
        check("plan, map and sum in this order", entered(history) == ["Plan", "Pieces", "Sum"], entered(history))
        check("the replica equals the export", stage.items("played-replica") == sorted(ITEMS, key=lambda row: row["SK"]["S"]))
        check("what was throttled was tried again, and nothing else", function.count == 1 + len(keys) + 1 + 3, function.count)

        said, history, _ = play(stage, front, "refused", place, {})
        check("a plan that is refused ends it, with the function's error", said["status"] == "FAILED" and "consumer" in said["cause"] and
              entered(history) == ["Plan"] and not stage.rows("refused-replica"), said)

        stage.s3.copy_object(Bucket="exports", Key=keys[2], CopySource=f"exports/{keys[1]}")
        said, _, _ = play(stage, front, "damaged", place, {"consumer_since": ago(7200)})
        rows = stage.rows("damaged-replica")
        check("a file that is not what the manifest says: the others are written, and the execution fails", said["status"] == "FAILED" and
              len(rows) <= len(ITEMS), (said["status"], len(rows)))

        stage.table("orders")
        stage.fill("orders", ITEMS)
        said, history, _ = play(stage, front, "verified", "dynamodb://orders", {"do": "verify", "max_lag": 0, "wait": 5}, SLUICE_WORK_SEGMENTS="5", SLUICE_WORK_KEYS="")
        check("a verification: plan, pieces and the sum that refuses", "0 of the plan's 5 pieces" in said["cause"] and
              entered(history) == ["Plan", "Pieces", "Sum"], (said, entered(history)))
        lines = [line for entry in stage.s3.list_objects_v2(Bucket="seeds", Prefix="seed/verify/verified/")["Contents"]
                 for line in stage.s3.get_object(Bucket="seeds", Key=entry["Key"])["Body"].read().splitlines() if b'"replica"' in line]
        check("every item of an empty replica is found to be missing", len(lines) == len(ITEMS) and all(json.loads(line)["kind"] == "missing" for line in lines), len(lines))
    print(f"{counted.passed} passed, 0 failed")


main()
