#!/usr/bin/env python3
"""Verifying totals as pieces: many workers add up what ledgers and totals say, group by group, and find what `sluice verify` finds from
one machine: with kills and lost answers, in turns, and while a consumer writes, when it never calls a difference what only moved."""
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
from function import BUILD  # noqa: E402
from harness import WHOLE  # noqa: E402
from job import LONGER, Job, succeeded  # noqa: E402

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
TOTALS = {"do": "totals"}
SCAN = {"SLUICE_WORK_SEGMENTS": "8", "SLUICE_WORK_KEYS": "", "SLUICE_WORK_CONCURRENCY": "8"}
ITEMS = [{**item(n), "customer": {"S": f"c{n % 90}"}} for n in range(400 if WHOLE else 180)]
STEPS = ["ledgers", "totals", "ledgers", "judge"]


class Totals(Job):
    """A table's items, counted into totals of two counters that lie in a table of their own, with a ledger apart."""

    def __init__(self, stage, name, items=ITEMS, source=None, **more):
        self.items, self.steps, self.hook = items, [], lambda step: None
        if more.get("is_new", True):
            stage.table(f"{name}-orders")
            stage.table(f"{name}-ledger", ("PK",))
            stage.fill(f"{name}-orders", items)
        super().__init__(stage, name, source or f"dynamodb://{name}-orders", **{**SCAN, **more})
        path = stage.folder / f"{name}.json"
        config = json.loads(path.read_text())
        config["routes"][1].update(ledger={"table": f"{name}-ledger"}, shards=3)
        config["routes"][1]["counters"].append({"key": {"PK": "{customer}"}, "add": {"orders": 1, "money": "{total}"}, "distinct": {"days": "{status}"}})
        config["routes"].append({**config["routes"][1], "name": "more", "ledger": {"table": f"{name}-ledger", "name": "more"},
                                 "counters": [{"key": {"PK": "all"}, "add": {"total": "{total}"}}]})
        path.write_text(json.dumps(config))

    def __enter__(self):
        if self.items:
            check(f"{self.name}: seeded", self.run(f"{self.name}-seed", do="backfill", unsafe_order=True).output["outcome"] == "seeded")
        return self

    def invoke(self, name, payload, timeout_s):
        given = payload["sluice"].get("plan", {}).get("given", {})
        if given.get("do") == "totals":
            self.steps.append(given.get("step", "ledgers"))
            self.hook(given.get("step", "ledgers"))
        return super().invoke(name, payload, timeout_s)

    def verify(self, name, **given):
        self.steps = []
        return self.run(name, **{**TOTALS, **given})

    def row(self, key, add, attribute="money"):
        self.stage.dynamodb.update_item(TableName=f"{self.name}-totals", Key={"PK": {"S": key}}, UpdateExpression="ADD #a :n",
                                        ExpressionAttributeNames={"#a": attribute}, ExpressionAttributeValues={":n": {"N": str(add)}})


def objects(stage, prefix):
    """The lines of the objects of lines."""
    pages = stage.s3.get_paginator("list_objects_v2").paginate(Bucket="seeds", Prefix=prefix)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", ()) if entry["Key"].endswith(".jsonl")]
    return sorted(line for key in keys for line in stage.s3.get_object(Bucket="seeds", Key=key)["Body"].read().decode().splitlines())


def findings(stage, run):
    return objects(stage, f"seed/verify/{run}/")


def sluice(stage, name, verb, *flags):
    return subprocess.run([f"{BUILD}/sluice", verb, "--config", str(stage.folder / f"{name}.json"), "--table", f"{name}-orders", "--max-lag", "0", "--wait", "10", "--json",
                           "--endpoint-url", stage.services["DYNAMODB_ENDPOINT"], *flags], env={**os.environ, **stage.services}, capture_output=True, text=True, check=False,
                          cwd=stage.folder)


def one_machine(stage, name):
    """What `sluice verify` finds of the totals."""
    done = sluice(stage, name, "verify", "--routes", "totals,more")
    lines = done.stdout.splitlines()
    return sorted(line for line in lines if json.loads(line).get("kind") in ("sum", "values", "members")), json.loads(lines[-1])["totals"]


def counts(output):
    return tuple(output[name] for name in ("equal", "different", "unsettled"))


def damage(job, chance):
    """Numbers are wrong, rows are lost, and so is what the ledger says."""
    customers = sorted({one["customer"]["S"] for one in job.items})
    chance.shuffle(customers)
    for key in customers[:7]:
        job.row(key, chance.randrange(1, 100))
    job.row("STATUS#" + job.items[0]["status"]["S"] + "#1", -5, "orders")
    job.row("nobody", "1e-20")
    rows = job.stage.rows(f"{job.name}-ledger")
    chance.shuffle(rows)
    for row in rows[:4]:
        job.stage.dynamodb.delete_item(TableName=f"{job.name}-ledger", Key={"PK": row["PK"]})


def equal(stage):
    with Totals(stage, "equal") as job:
        _, summary = one_machine(stage, "equal")
        for parts in ({}, {"parts": 7}, {"parts": 32}):
            run = job.verify(f"equal-{parts.get('parts', 1)}", **parts)
            output = succeeded(f"{parts}: nothing is wrong", run)
            check("step by step", job.steps == STEPS and [s for s in run.visited if s in ("Again", "Done")] == ["Again"] * 3 + ["Done"], (job.steps, run.visited))
            check("as many are equal as for one machine", counts(output) == (summary["equal"], 0, 0) and summary["equal"] > 300, (output, summary))
            check("no findings", not findings(stage, f"equal-{parts.get('parts', 1)}"))
        check("all rows were read, three times", output["rows"] == 2 * len(stage.rows("equal-ledger")) + len(stage.rows("equal-totals")), output)
        check("the sum is kept", json.loads(stage.s3.get_object(Bucket="seeds", Key="seed/verify/equal-1/sum.json")["Body"].read())["outcome"] == "equal")


def the_same_differences(stage):
    with Totals(stage, "same") as job:
        damage(job, random.Random(SEED))
        wanted, summary = one_machine(stage, "same")
        for parts in (1, 5):
            run = job.verify(f"same-{parts}", parts=parts)
            check("an execution with differences fails", (run.status, run.error) == ("FAILED", "Sluice.Different"), (run.status, run.error, run.cause))
            check("workers find what one machine finds", findings(stage, f"same-{parts}") == wanted and len(wanted) >= 12, (findings(stage, f"same-{parts}"), wanted))
            total = json.loads(stage.s3.get_object(Bucket="seeds", Key=f"seed/verify/same-{parts}/sum.json")["Body"].read())
            check("and count it", counts(total) == tuple(summary[name] for name in ("equal", "different", "unsettled")), (total, summary))
            check("a difference is looked at again, with two scans more", job.steps == STEPS + STEPS[1:], job.steps)

        run = job.run("same-repair", do="repair", of="same-5")
        lines = [json.loads(line) for line in objects(stage, "seed/repair/same-repair/")]
        check("rows of values are left, and said to be", all(line["outcome"] == ("left" if line["kind"] == "values" else "written") for line in lines) and
              len(lines) == len(wanted) and run.error == "Sluice.NotRepaired", (run.cause, lines))
        again, _ = one_machine(stage, "same")
        check("every number is right", again == [line for line in wanted if '"values"' in line], again)
        job.run("same-again", do="repair", of="same-1")
        check("findings of before are not added twice", one_machine(stage, "same")[0] == again)


def approval(stage):
    """From the verification to the repair in one execution: what differs is set right once a person has said so."""
    with Totals(stage, "ask", ITEMS[:60]) as job:
        job.row("c1", 77)
        job.world.answer = lambda token: {"do": "repair", "of": "ask-1"}
        run = job.verify("ask-1", repair=True)
        output = succeeded("approved", run)
        check("it asks once", run.visited.count("Approval") == 1 and output["outcome"] == "repaired" and output["repaired"]["written"] == 1, (run.visited, output))
        check("the total is right", one_machine(stage, "ask")[0] == [])
        found = findings(stage, "ask-1")
        (stage.folder / "found.jsonl").write_text("\n".join(found) + "\n")
        job.row("c2", 5)
        job.verify("ask-2")
        (stage.folder / "found.jsonl").write_text("\n".join(found + findings(stage, "ask-2")) + "\n")
        done = sluice(stage, "ask", "repair", "found.jsonl")
        check("one machine leaves totals alone unless asked", "2 findings are of totals" in done.stderr and len(one_machine(stage, "ask")[0]) == 1, done.stderr)
        done = sluice(stage, "ask", "repair", "--totals", "found.jsonl")
        check("it repairs by findings, each once", done.returncode == 1 and done.stdout.count('"outcome":"written"') == 1 and done.stdout.count('"outcome":"moved"') == 1 and
              one_machine(stage, "ask")[0] == [], done.stdout + done.stderr)


def faults(stage):
    """Sandboxes are killed at any moment, Lambda throttles, answers get lost."""
    chance = random.Random(SEED)

    def fault(number, payload):
        draw = {2: 0, 3: 0.1, 4: 0.2}.get(number, chance.random())
        if payload["sluice"].get("piece", {}).get("do") != "totals":
            return None
        return "throttle" if draw < 0.05 else "broken" if draw < 0.1 else ("kill", chance.random() * 0.2) if draw < 0.3 else None

    with Totals(stage, "faults", fault=fault) as job:
        damage(job, chance)
        wanted, _ = one_machine(stage, "faults")
        job.lost = lambda payload: payload["sluice"].get("piece", {}).get("do") == "totals" and chance.random() < 0.1
        run, redrives = job.verify("faults-1", parts=6), 0
        while run.status != "SUCCEEDED" and not run.error.startswith("Sluice.") and redrives < 20:
            run.redrive()
            redrives += 1
        check("with faults: what one machine finds", run.error == "Sluice.Different" and findings(stage, "faults-1") == wanted, (run.error, run.cause, findings(stage, "faults-1"), wanted))


def many_turns(stage):
    """Segments that no turn finishes: each turn's object names the one before, and all of them are added up."""
    items = [{**item(n), "customer": {"S": f"c{n % 90}".ljust(1900, "y")}} for n in range(700)]
    with Totals(stage, "turns", items) as job:
        damage(job, random.Random(SEED))
        wanted, summary = one_machine(stage, "turns")
    for longer in LONGER:
        with Totals(stage, "turns", (), timeout_s=3 * longer, is_new=False, **{"SLUICE_WORK_SEGMENTS": "1", "SLUICE_WORK_READ_UNITS": str(200 // longer)}) as job:
            job.answers.clear()
            name = f"turns-{longer}"
            run = job.verify(name, parts=3)
            if job.needs_longer(longer):
                continue
            nexts = [answer["next"] for _, answer in job.answers if answer.get("done") is False]
            check("scans took turns", len(nexts) > 2 and run.error == "Sluice.Different", (len(nexts), run.error, run.cause))
            check("what is handed on is small", max(len(json.dumps(one)) for one in nexts) <= 8192)
            check("what one machine finds", findings(stage, name) == wanted, (findings(stage, name), wanted))
            total = json.loads(stage.s3.get_object(Bucket="seeds", Key=f"seed/verify/{name}/sum.json")["Body"].read())
            check("all is counted once", counts(total) == tuple(summary[name] for name in ("equal", "different", "unsettled")), (total, summary))
            break


def moving(stage):
    """A consumer writes between any two scans: what it changes is no difference, and what is wrong elsewhere is found beside it."""
    with Totals(stage, "moving", ITEMS[:60]) as job:
        moved = [0]

        def move(_):
            """An order of c3 gets dearer: its row in the ledger and the total change in one transaction."""
            row = next(row for row in stage.rows("moving-ledger") if row["PK"]["S"].startswith("sluice:ledger:totals:") and '"c3"' in json.dumps(row))
            moved[0] += 1
            parts = [part for part in row["sums"]["L"] if "add" in part["M"]]
            for part in parts:
                part["M"]["add"]["M"]["money"]["N"] = str(int(part["M"]["add"]["M"]["money"]["N"]) + 1)
            row["order"]["S"] = row["order"]["S"][:-4] + f"{moved[0]:04}"
            adds = [{"Update": {"TableName": "moving-totals", "Key": part["M"]["key"]["M"], "UpdateExpression": "ADD money :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}}
                    for part in parts]
            stage.dynamodb.transact_write_items(TransactItems=[{"Put": {"TableName": "moving-ledger", "Item": row}}, *adds])

        job.hook = move
        run = job.verify("moving-1")
        total = json.loads(stage.s3.get_object(Bucket="seeds", Key="seed/verify/moving-1/sum.json")["Body"].read())
        check("what moves is no difference", run.error == "Sluice.NotProven" and total["different"] == 0 and total["unsettled"] >= 2, (run.error, run.cause, total))
        check("five rounds were tried", job.steps == STEPS + 4 * STEPS[1:], job.steps)
        check("each is told, with the interval", all(json.loads(line)["result"] == "unsettled" and ('"low"' in line or '"values"' in line) for line in findings(stage, "moving-1")))
        job.row("c5", 1000)
        run = job.verify("moving-2")
        lines = [json.loads(line) for line in findings(stage, "moving-2")]
        wrong = [line for line in lines if line["result"] == "different"]
        check("a difference beside it is found", run.error == "Sluice.Different" and [(line["key"]["PK"]["S"], line["difference"]) for line in wrong] == [("c5", "1000")], lines)
        run = job.verify("moving-3", rounds=1)
        check("in one round only what is equal is proven", run.error == "Sluice.NotProven" and job.steps == STEPS, (run.error, job.steps))
        job.hook = lambda step: None
        check("at rest, all is settled", [json.loads(line)["result"] for line in (job.verify("moving-4"), findings(stage, "moving-4"))[1]] == ["different"])


def refused(stage):
    with Totals(stage, "refused", ITEMS[:5]) as job:
        for given, word in (({"routes": "nosuch"}, "nosuch"), ({"routes": "replica"}, "totals"), ({"rounds": 0}, "rounds"), ({"rounds": 6}, "rounds"), ({"delete": True}, "delete"),
                            ({"step": "judge", "round": 1}, "rounds"), ({"step": "drop"}, "step")):
            run = job.verify("refused", **given)
            check(f"{given}: no plan", run.status == "FAILED" and word in run.cause and not run.map_run, (run.error, run.cause))
        scan = {"do": "totals", "step": "ledgers", "piece": 0, "run": "r", "round": 0, "target": 0, "table": 0, "segment": 0, "of": 4}
        judge = {"do": "totals", "step": "judge", "piece": 0, "run": "r", "round": 1, "target": 0, "from": 0, "to": 9}
        for wrong, error in (({"segment": 4}, "BadWorkItem"), ({"of": 0}, "BadWorkItem"), ({"run": "a/b"}, "BadWorkItem"), ({"target": 9}, "BadWorkItem"), ({"table": 7}, "BadWorkItem"),
                             ({"step": "drop"}, "BadWorkItem"), ({"before": "../x", "turn": 1}, "BadWorkItem"), ({**judge, "to": 257}, "BadWorkItem"), ({**judge, "from": 9}, "BadWorkItem"),
                             ({**judge, "round": 0}, "BadWorkItem"), (judge, "NoSuchKey")):
            said = job.ask({"piece": {**scan, **wrong}})
            check(f"{wrong}: refused", said[0] == f"Function.{error}", said)
        put = lambda key, text: stage.s3.put_object(Bucket="seeds", Key=f"seed/verify/r/totals/{key}", Body=text.encode())  # noqa: E731
        head = lambda **more: json.dumps({"digest": "0", "ends": [9] * 256, **more}).ljust(4095) + "\n"  # noqa: E731
        for text in ("", "{}", head()[:4000], head(digest=7), head(ends=[1]), head(ends=[9, 8] * 128), head(), head() + "not JSON.", head() + '{"key":1}', head() + '{"key":{},"name":"n"}'):
            put("0-ledgers.json", '["0-ledgers-t0-x"]')
            put("0-ledgers-t0-x", text)
            said = job.ask({"piece": judge})
            check(f"{text.strip()[:60]}: refused", said[0] in ("Function.BadPart", "Function.InvalidJson") and "0-ledgers-t0-x" in said[1], said)
    with Totals(stage, "export", ITEMS[:5], source=stage.export("totals/", ITEMS[:5], 1)[0], SLUICE_WORK_KEYS="PK,SK") as job:
        succeeded("totals beside an export", job.verify("export-1"))


def main():
    begun = time.time()
    with Stage() as stage:
        for test in (equal, the_same_differences, approval, faults, many_turns, moving, refused):
            test(stage)
            if os.environ.get("TIMES"):
                print(f"{time.time() - begun:.0f} s {test.__name__}", file=sys.stderr)
    print(f"{counted.passed} passed, 0 failed")


main()
