#!/usr/bin/env python3
"""Verifying and repairing as pieces: the state machine of deploy/steps/ with the real bootstrap as its function finds what `sluice
verify` finds from one machine, whatever is killed, throttled or lost on the way; it repairs what it found once a person has
approved it, and nothing before."""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from stage import Stage, check, item  # noqa: E402  first: it may begin again in moto's Python
import stage as counted  # noqa: E402
from function import BUILD, serve_front  # noqa: E402
from harness import WHOLE  # noqa: E402
from job import ITEMS, LONGER, Job, succeeded  # noqa: E402
from player import StateError  # noqa: E402

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
PIECES = 200 if WHOLE else 40
VERIFY = {"do": "verify", "max_lag": 0, "wait": 10}
SCAN = {"SLUICE_WORK_SEGMENTS": str(PIECES), "SLUICE_WORK_KEYS": "", "SLUICE_WORK_CONCURRENCY": "8"}


def damage(stage, name, chance):
    """Rows go, rows change, and rows are left of items that are gone: what was done, by kind."""
    rows = stage.rows(f"{name}-replica")
    chance.shuffle(rows)
    key = lambda row: {"PK": row["PK"], "SK": row["SK"]}  # noqa: E731
    for row in rows[:20]:
        stage.dynamodb.delete_item(TableName=f"{name}-replica", Key=key(row))
    for row in rows[20:35]:
        stage.dynamodb.put_item(TableName=f"{name}-replica", Item={**row, "note": {"S": "not what was written"}})
    for row in rows[35:45]:
        stage.dynamodb.delete_item(TableName=f"{name}-orders", Key=key(row))
    return {"missing": 20, "different": 15, "revived": 10}


def findings(stage, run):
    """Of an execution: (route, key, result, kind) of each line, and how many objects there are."""
    pages = stage.s3.get_paginator("list_objects_v2").paginate(Bucket="seeds", Prefix=f"seed/verify/{run}/")
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", ()) if entry["Key"].endswith(".jsonl")]
    lines = [json.loads(line) for key in keys for line in stage.s3.get_object(Bucket="seeds", Key=key)["Body"].read().splitlines()]
    return [what(line) for line in lines], keys


def what(line):
    return line["route"], json.dumps(line["source_key"], sort_keys=True), line["result"], line.get("kind")


def one_machine(stage, name):
    """What `sluice verify` finds."""
    done = subprocess.run([f"{BUILD}/sluice", "verify", "--config", str(stage.folder / f"{name}.json"), "--table", f"{name}-orders", "--max-lag", "0", "--wait", "10", "--json",
                           "--no-totals", "--endpoint-url", stage.services["DYNAMODB_ENDPOINT"]], env={**os.environ, **stage.services}, capture_output=True, text=True, check=False, cwd=stage.folder)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, [what(line) for line in lines if "source_key" in line], next(line for line in lines if line["result"] == "summary")


class Verifying(Job):
    """A table with items, and its seeded replica and totals."""

    def __init__(self, stage, name, items=ITEMS, **more):
        self.items = items
        stage.table(f"{name}-orders")
        stage.fill(f"{name}-orders", items)
        super().__init__(stage, name, f"dynamodb://{name}-orders", **{**SCAN, **more})

    def __enter__(self):
        if self.items:
            check(f"{self.name}: seeded", self.run(f"{self.name}-seed", do="backfill", unsafe_order=True).output["outcome"] == "seeded")
        return self


def equal(stage):
    with Verifying(stage, "equal") as job:
        output = succeeded("nothing is wrong", job.run("equal-1", **VERIFY))
        check("it says so", output["outcome"] == "equal" and output["pieces"] == PIECES and output["items"] == len(ITEMS) and output["different"] == 0, output)
        status, _, summary = one_machine(stage, "equal")
        for route in ("replica", "totals"):
            check(f"{route}: counted as by one machine", status == 0 and output["routes"][route]["equal"] == summary["routes"][route]["equal"] > 0, (output, summary))
        check("rows of the targets are read, too", output["rows"] == summary["rows"], (output["rows"], summary["rows"]))
        check("no findings", findings(stage, "equal-1") == ([], []))


def the_same_differences(stage):
    with Verifying(stage, "same") as job:
        made = damage(stage, "same", random.Random(SEED))
        _, wanted, summary = one_machine(stage, "same")
        run = job.run("same-1", **VERIFY)
        found, _ = findings(stage, "same-1")
        check("an execution with differences fails", (run.status, run.error) == ("FAILED", "Sluice.Different"), (run.status, run.error, run.cause))
        check(f"{PIECES} pieces find what one machine finds", sorted(map(str, found)) == sorted(map(str, wanted)), (len(found), len(wanted)))
        kinds = collections.Counter(kind for route, _, _, kind in found if route == "replica")
        check("and that is what was damaged", kinds == made, kinds)
        total = json.loads(stage.s3.get_object(Bucket="seeds", Key="seed/verify/same-1/sum.json")["Body"].read())
        check("the sum counts it", total["routes"]["replica"] == summary["routes"]["replica"] and total["different"] == summary["different"] and
              total["routes"]["replica"]["kinds"] == made, (total, summary))

        refused = job.run("same-2", do="repair", of="same-1", delete=True, max_deletes=9)
        check("more removals than allowed: no repair", "rows would be removed" in refused.cause and not refused.map_run, refused.cause)
        check("and nothing is written", len(stage.rows("same-replica")) == len(ITEMS) - 20)
        output = succeeded("the repair", job.run("same-3", do="repair", of="same-1", delete=True, save=True))
        written = output["repaired"]
        check("it repairs what was found", written["written"] >= 35 and written["removed"] >= 10 and output["outcome"] == "repaired", output)
        again = succeeded("verified once more", job.run("same-4", **VERIFY))
        check("all is right", again["outcome"] == "equal", again)
        lines = [json.loads(line) for entry in stage.s3.list_objects_v2(Bucket="seeds", Prefix="seed/repair/same-3/")["Contents"]
                 for line in stage.s3.get_object(Bucket="seeds", Key=entry["Key"])["Body"].read().splitlines()]
        check("a line for each row", len(lines) == sum(written.values()) and all("key_sha256" in line for line in lines), (len(lines), written))
        saved = [stage.s3.get_object(Bucket="seeds", Key=entry["Key"])["Body"].read()
                 for entry in stage.s3.list_objects_v2(Bucket="seeds", Prefix="seed/repair/saved/same-3/")["Contents"]]
        path = stage.folder / "saved.jsonl"
        path.write_bytes(b"".join(saved))
        undone = subprocess.run([f"{BUILD}/sluice", "repair", "--config", str(stage.folder / "same.json"), "--table", "same-orders", "--undo", str(path),
                                 "--endpoint-url", stage.services["DYNAMODB_ENDPOINT"]], env={**os.environ, **stage.services}, capture_output=True, text=True, check=False, cwd=stage.folder)
        check("what was saved can be put back", undone.returncode == 0 and len(saved) >= 45, (undone.returncode, undone.stdout, undone.stderr, len(saved)))
        last = succeeded("a repair of what is right", job.run("same-5", do="repair", of="same-4"))
        check("has no pieces", last["pieces"] == 0 and last["outcome"] == "repaired", last)


def approval(stage):
    """One execution from the verification to the repair: a person is asked in between."""
    with Verifying(stage, "ask") as job:
        damage(stage, "ask", random.Random(SEED + 1))
        before = sorted(map(str, stage.rows("ask-replica")))

        def refuse(token):
            raise StateError("Sluice.Refused", "not today")

        job.world.answer = refuse
        run = job.run("ask-1", **VERIFY, repair=True)
        check("a person who refuses ends it", (run.status, run.state, run.error) == ("FAILED", "Approval", "Sluice.Refused"), (run.status, run.state, run.cause))
        check("and nothing is written", sorted(map(str, stage.rows("ask-replica"))) == before)

        def approve(token):
            question = json.loads(stage.s3.get_object(Bucket="seeds", Key="seed/verify/ask-2/approval.json")["Body"].read())
            check("the question has the commands", token in question["approve"] and token in question["refuse"] and question["sum"]["different"] > 0, question)
            check("nothing is written until the answer", sorted(map(str, stage.rows("ask-replica"))) == before)
            given = question["approve"].rpartition("--task-output ")[2].strip("'")
            return {**json.loads(given), "delete": True}

        job.world.answer = approve
        run = job.run("ask-2", **VERIFY, repair=True)
        output = succeeded("approved", run)
        check("it verifies, asks and repairs", [state for state in run.visited if state in ("Plan", "Approval", "Done")] == ["Plan", "Approval", "Plan", "Done"], run.visited)
        check("and it is repaired", output["outcome"] == "repaired" and output["repaired"]["removed"] >= 10, output)
        quiet = job.run("ask-3", **VERIFY, repair=True)
        check("nothing wrong: nobody is asked", quiet.status == "SUCCEEDED" and "Approval" not in quiet.visited, quiet.visited)


def faults(stage):
    """Sandboxes are killed at any moment, Lambda throttles, answers get lost, the tables are throttled; in verification and repair."""
    chance = random.Random(SEED)

    def fault(number, payload):
        draw = {2: 0, 3: 0.1, 4: 0.2}.get(number, chance.random())
        if "plan" in payload["sluice"] or payload["sluice"].get("piece", {}).get("do", "backfill") == "backfill":
            return None
        return "throttle" if draw < 0.05 else "broken" if draw < 0.1 else ("kill", chance.random() * 0.3) if draw < 0.3 else None

    front = serve_front()
    front.behind = stage.services["DYNAMODB_ENDPOINT"].removeprefix("http://")
    slow = b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow"}'
    front.refuse = lambda request: (400, slow) if chance.random() < 0.05 else None
    with Verifying(stage, "faults", fault=fault, SLUICE_WORK_SEGMENTS="40", AWS_ENDPOINT_URL_DYNAMODB=f"http://127.0.0.1:{front.server_port}") as job:
        job.lost = lambda payload: payload["sluice"].get("piece", {}).get("do", "backfill") != "backfill" and chance.random() < 0.1
        made = damage(stage, "faults", chance)

        def through(name, **given):
            run, redrives = job.run(name, **given), 0
            while run.status != "SUCCEEDED" and not run.error.startswith("Sluice.") and redrives < 20:
                run.redrive()
                redrives += 1
            return run

        through("faults-1", **VERIFY)
        found, _ = findings(stage, "faults-1")
        kinds = collections.Counter(kind for route, _, _, kind in set(found) if route == "replica")
        check("with faults: what was damaged is found", kinds == made, kinds)
        output = succeeded("a repair with faults", through("faults-2", do="repair", of="faults-1", delete=True))
        check("it is repaired", output["outcome"] == "repaired", output)
        job.lost = lambda payload: False
        again = through("faults-3", **VERIFY)
        check("all is right", again.output and again.output["outcome"] == "equal", (again.status, again.cause))
    front.shutdown()


def many_turns(stage):
    """Pieces that no turn finishes: what a turn hands on is small, and in the end each item counts once."""
    items = [{**item(n), "note": {"S": "y" * 3000}} for n in range(1200)]
    with Verifying(stage, "turns", items):
        damage(stage, "turns", random.Random(SEED))
        _, wanted, summary = one_machine(stage, "turns")
    for longer in LONGER:
        with Job(stage, "turns", "dynamodb://turns-orders", timeout_s=3 * longer, is_new=False, **{**SCAN, "SLUICE_WORK_SEGMENTS": "2", "SLUICE_WORK_READ_UNITS": str(200 // longer)}) as job:
            name = f"turns-{longer}"
            run = job.run(name, **{**VERIFY, "wait": 60})
            if job.needs_longer(longer):
                continue
            turns = [child.visited.count("Turn") for child in run.map_run.children]
            check("pieces took turns", max(turns) > 2 and run.error == "Sluice.Different", (turns, run.error, run.cause))
            nexts = [answer["next"] for _, answer in job.answers if answer.get("done") is False]
            check("what is handed on is small", nexts and max(len(json.dumps(one)) for one in nexts) <= 8192)
            found, _ = findings(stage, name)
            check("and found is what one machine finds", sorted(map(str, found)) == sorted(map(str, wanted)), (len(found), len(wanted)))
            total = json.loads(stage.s3.get_object(Bucket="seeds", Key=f"seed/verify/{name}/sum.json")["Body"].read())
            check("each item counts once", total["items"] == summary["items"] and total["routes"]["replica"] == summary["routes"]["replica"], (total, summary))
            run = job.run(f"repair-{longer}", do="repair", of=name, delete=True)
            output = succeeded("a repair in turns", run)
            check("it is repaired", output["outcome"] == "repaired" and sum(output["repaired"].values()) >= 45, output)
            break


def refused(stage, place):
    with Verifying(stage, "refused") as job:
        for given, word in (({"do": "verify"}, "max_lag"), ({"do": "verify", "max_lag": -1}, "max_lag"), ({"do": "verify", "max_lag": 0, "routes": "nosuch"}, "nosuch"),
                            ({"do": "verify", "max_lag": 0, "routes": "say"}, "compared"), ({"do": "verify", "max_lag": 0, "delete": True}, "delete"), ({"do": "forget"}, "forget"),
                            ({"do": "repair"}, "of"), ({"do": "repair", "of": "../x"}, "of"), ({"do": "repair", "of": "never"}, "never")):
            run = job.run("refused", **given)
            check(f"{given}: no plan", run.status == "FAILED" and word in run.cause and not run.map_run, (run.error, run.cause))
        whole = {"do": "verify", "piece": 0, "segment": 0, "of": 4, "run": "r", "max_lag": 0, "wait": 1}
        for wrong, error in (({"segment": 4}, "OutsideSource"), ({"of": 0}, "OutsideSource"), ({"run": "a/b"}, "BadWorkItem"), ({"do": "drop"}, "BadWorkItem"), ({"turn": 7}, "NoSuchKey"),
                             ({"do": "repair", "findings": "plans/refused.json"}, "OutsideSource"), ({"do": "repair", "findings": "verify/../plans/x"}, "OutsideSource"),
                             ({"do": "repair", "findings": "verify/none/x.jsonl"}, "NoSuchKey"), ({"do": "repair"}, "OutsideSource")):
            said = job.ask({"piece": {**whole, **wrong}})
            check(f"{wrong}: refused", said[0] == f"Function.{error}", said)
        check("a question of no run", job.ask({"ask": {"token": "t", "sum": {"what": {"run": "a/b"}}}})[0] == "Function.BadWorkItem")

        stage.s3.put_object(Bucket="seeds", Key="seed/verify/other/sum.json", Body=json.dumps(
            {"items": len(ITEMS), "routes": {"replica": {"equal": 0, "different": len(ITEMS)}}, "what": {"max_lag": 0, "wait": 1}}).encode())
        check("not one row was equal: no repair", "not one has an equal row" in job.run("refused", do="repair", of="other").cause)
    with Job(stage, "export", place) as job:
        check("an export is not verified", "SeedFrom=scan" in job.run(**VERIFY).cause)
    with Verifying(stage, "itself", ()) as job:
        path = stage.folder / "itself.json"
        path.write_text(path.read_text().replace("itself-replica", "itself-orders"))
        stage.fill("itself-orders", ITEMS[:5])
        check("a target that is the source", "give the table that it reads" in job.run(**VERIFY).cause)


def letters(stage):
    """A route that may be set aside, with a letter in its queue."""
    sqs = stage.client("sqs")
    queue = sqs.create_queue(QueueName="aside")["QueueUrl"]
    job = Verifying(stage, "letters")
    path = stage.folder / "letters.json"
    config = json.loads(path.read_text())
    config["routes"][0]["set_aside"] = "sqs://aside"
    path.write_text(json.dumps(config))
    with job:
        sqs.send_message(QueueUrl=queue, MessageBody="{}")
        run = job.run("letters-1", **VERIFY)
        check("letters wait: not proven", (run.status, run.error) == ("FAILED", "Sluice.NotProven"), (run.status, run.error, run.cause))
        run = job.run("letters-2", do="repair", of="letters-1")
        check("nor repaired", "letters wait" in run.cause, run.cause)


def main():
    begun = time.time()
    with Stage() as stage:
        place, _ = stage.export("of/", ITEMS[:10], 1)
        for test in (equal, the_same_differences, approval, faults, many_turns, letters):
            test(stage)
            if os.environ.get("TIMES"):
                print(f"{time.time() - begun:.0f} s {test.__name__}", file=sys.stderr)
        refused(stage, place)
    print(f"{counted.passed} passed, 0 failed")


main()
