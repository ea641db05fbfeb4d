#!/usr/bin/env python3
"""Verifying archives as pieces: many workers read an archive's objects, then those that came meanwhile, and walk its items; they find what
`sluice verify --archives` finds from one machine: with kills and lost answers, and while the archive grows."""
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from stage import Stage, check  # noqa: E402  first: it may begin again in moto's Python
import stage as counted  # noqa: E402
from function import BUILD, Function  # noqa: E402
from job import Job, succeeded  # noqa: E402

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
COUNTS = ("objects", "records", "items", "erased", "gaps", "damaged", "unreadable", "doubles", "unknown_before", "without_images")
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-20T00:00:00.000"
STEPS = ["read", "again", "walk"]
BEGIN = 1790000000


def history(seed, n, items=40):
    """Changes of some items over a few hours, each of which leaves another value."""
    chance, values, records = random.Random(seed), {}, []
    for i in range(n):
        item = f"i{chance.randrange(items)}"
        key, old = {"PK": {"S": item}}, values.get(item)
        event = "INSERT" if old is None else chance.choice(["MODIFY", "MODIFY", "REMOVE"])
        new = None if event == "REMOVE" else {**key, "n": {"N": str(i)}}
        records.append({"eventID": f"e{seed}-{i}", "eventName": event, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "eventSourceARN": ARN,
                        "dynamodb": {"ApproximateCreationDateTime": BEGIN + i * 30, "Keys": key, **({"OldImage": old} if old else {}), **({"NewImage": new} if new else {}),
                                     "SequenceNumber": str(100000 + i), "SizeBytes": 9, "StreamViewType": "NEW_AND_OLD_IMAGES"}})
        values[item] = new
    return records


class Archives(Job):
    """Archives below a prefix of their own, written by the archive handler."""

    def __init__(self, stage, name, routes=("keep",), **more):
        self.steps, self.hook = [], lambda step: None
        super().__init__(stage, name, f"dynamodb://{name}-orders", is_new=False, **{"SLUICE_WORK_KEYS": "", "SLUICE_WORK_CONCURRENCY": "8", **more})
        self.configure(*({"name": route, "handler": "archive", "to": f"s3://archive/{name}/{route}", "format": "record"} for route in routes))

    def configure(self, *routes):
        (self.stage.folder / f"{self.name}.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": list(routes)}))

    def deploy(self, *routes):
        """Lambda starts new processes, with another configuration."""
        self.function.close()
        self.configure(*routes)
        self.function = Function(self.function.environment)

    def sluice(self, *args):
        return subprocess.run([f"{BUILD}/sluice", *args], env={**os.environ, **self.stage.services}, capture_output=True, text=True, check=False, cwd=self.stage.folder)

    def write(self, records, batch=5):
        path = self.stage.folder / f"{self.name}.events"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        done = self.sluice("replay", "--config", f"{self.name}.json", "--batch-size", str(batch), "--quiet", str(path))
        check("the archive handler writes", done.returncode == 0, done.stdout + done.stderr)
        return self

    def invoke(self, name, payload, timeout_s):
        given = payload["sluice"].get("plan", {}).get("given", {})
        if given.get("do") == "archives":
            self.steps.append(given.get("step", "read"))
            self.hook(given.get("step", "read"))
        return super().invoke(name, payload, timeout_s)

    def verify(self, run, **given):
        self.steps = []
        return self.run(run, do="archives", **{"piece_objects": 7, **given})

    def keys(self, route="keep"):
        pages = self.stage.s3.get_paginator("list_objects_v2").paginate(Bucket="archive", Prefix=f"{self.name}/{route}/")
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def one_machine(self):
        """What `sluice verify --archives` finds, and what it counts."""
        done = self.sluice("verify", "--config", f"{self.name}.json", "--table", "orders", "--max-lag", "0", "--archives", "--json",
                           "--endpoint-url", self.stage.services["DYNAMODB_ENDPOINT"])
        lines = done.stdout.splitlines()
        summed = [json.loads(line) for line in lines if '"result":"archive"' in line]
        check("one machine can", summed, done.stdout + done.stderr)
        return sorted(line for line in lines if '"handler":"archive"' in line and "kind" in line), {name: sum(one[name] for one in summed) for name in COUNTS}

    def findings(self, run):
        pages = self.stage.s3.get_paginator("list_objects_v2").paginate(Bucket="seeds", Prefix=f"seed/verify/{run}/")
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ()) if entry["Key"].endswith(".jsonl")]
        return sorted(line for key in keys for line in self.stage.s3.get_object(Bucket="seeds", Key=key)["Body"].read().decode().splitlines())

    def counts(self, run):
        total = json.loads(self.stage.s3.get_object(Bucket="seeds", Key=f"seed/verify/{run}/sum.json")["Body"].read())
        return {name: total[name] for name in COUNTS}

    def equals_one_machine(self, what, run):
        wanted, total = self.one_machine()
        check(f"{what}: what one machine finds", self.findings(run) == wanted, (self.findings(run), wanted))
        check(f"{what}: and what it counts", self.counts(run) == total, (self.counts(run), total))
        return wanted


def damage(job, chance, lost=9):
    """Objects are lost, and others are no more what they were."""
    keys = job.keys()
    chance.shuffle(keys)
    for key in keys[:lost]:
        job.stage.s3.delete_object(Bucket="archive", Key=key)
    one, two, three = keys[lost:lost + 3]
    body = job.stage.s3.get_object(Bucket="archive", Key=one)["Body"].read()
    job.stage.s3.put_object(Bucket="archive", Key=two, Body=body)
    job.stage.s3.put_object(Bucket="archive", Key=three, Body=body[:30])
    job.stage.s3.put_object(Bucket="archive", Key=f"{job.name}/keep/other.jsonl", Body=b"")
    job.stage.s3.put_object(Bucket="archive", Key=f"{job.name}/keep/notes.txt", Body=b"passed over")


def equal(stage):
    with Archives(stage, "equal", ("keep", "more")) as job:
        job.write(history(SEED, 150))
        for objects in (11, 5000):
            run = job.verify(f"equal-{objects}", piece_objects=objects)
            output = succeeded(f"{objects} objects a piece: nothing is missing", run)
            check("step by step", job.steps == STEPS and output["outcome"] == "equal", (job.steps, run.cause))
            check("no findings", job.equals_one_machine(f"{objects}", f"equal-{objects}") == [])
        check("both were read", output["objects"] == len(job.keys()) + len(job.keys("more")) > 50 and output["records"] == 300, output)
        output = succeeded("one route", job.verify("one", routes="more"))
        check("and no other", output["records"] == 150, output)


def the_same_differences(stage):
    for seed in range(SEED, SEED + 2):
        with Archives(stage, f"same{seed}") as job:
            job.write(history(seed, 250)).write(history(seed, 60), 7)  # some came twice, in other objects
            damage(job, random.Random(seed))
            run = job.verify(f"same-{seed}", piece_objects=4 + seed % 2 * 9)
            check("an execution with gaps fails", (run.status, run.error) == ("FAILED", "Sluice.Different"), (run.status, run.error, run.cause))
            wanted = job.equals_one_machine(f"{seed}", f"same-{seed}")
            kinds = {json.loads(line)["kind"] for line in wanted}
            check("of all kinds", kinds == {"gap", "damaged", "unreadable"} and '"after_object":"' in "".join(wanted), kinds)


def faults(stage):
    """Sandboxes are killed at any moment, Lambda throttles, answers get lost."""
    chance = random.Random(SEED)

    def fault(number, payload):
        draw = {2: 0, 3: 0.1, 4: 0.2}.get(number, chance.random())
        if payload["sluice"].get("piece", {}).get("do") != "archives":
            return None
        return "throttle" if draw < 0.05 else "broken" if draw < 0.1 else ("kill", chance.random() * 0.1) if draw < 0.3 else None

    with Archives(stage, "faults", fault=fault) as job:
        job.write(history(SEED + 50, 300))
        damage(job, chance)
        job.lost = lambda payload: payload["sluice"].get("piece", {}).get("do") == "archives" and chance.random() < 0.1
        run, redrives = job.verify("faults-1"), 0
        while run.status != "SUCCEEDED" and not run.error.startswith("Sluice.") and redrives < 20:
            run.redrive()
            redrives += 1
        check("with faults", run.error == "Sluice.Different", (run.error, run.cause))
        job.equals_one_machine("with faults", "faults-1")


def growing(stage):
    """The consumer archives meanwhile, also below names that were read already: what has yet to come is not missing."""
    records = history(SEED + 70, 250)
    for record in records[1::2]:  # another shard: its hours are others
        record["dynamodb"]["ApproximateCreationDateTime"] -= 86400
    with Archives(stage, "growing") as job:
        parts = {"read": records[70:130], "again": records[130:180], "walk": records[180:200]}
        job.write(records[:70])
        job.hook = lambda step: job.write(parts[step])
        output = succeeded("nothing is missing", job.verify("growing-1"))
        check("what came while it was read is read", output["records"] == 180 and output["gaps"] == 0, output)
        for key in job.keys()[20:24]:
            stage.s3.delete_object(Bucket="archive", Key=key)
        wanted, _ = job.one_machine()
        job.hook = lambda step: step == "again" and job.write(records[200:])
        run = job.verify("growing-2")
        check("what is lost is found beside it", run.error == "Sluice.Different", (run.error, run.cause))
        check("and nothing else", job.findings("growing-2") == wanted != [], (job.findings("growing-2"), wanted))


def unproven(stage):
    keep = {"name": "keep", "handler": "archive", "to": "s3://archive/unproven/keep", "format": "record"}
    with Archives(stage, "unproven") as job:
        run = job.verify("empty")
        check("an archive without objects proves nothing", run.error == "Sluice.NotProven" and job.steps == STEPS, (run.error, run.cause))
        job.write(history(SEED, 20))
        for name, route in (("items", {"format": "item"}), ("some", {"when": {"events": ["INSERT"]}})):
            job.deploy(keep, {**keep, "name": "other", "to": "s3://archive/unproven/other", **route})
            run = job.verify(name)
            check(f"{name}: it proves nothing, and the other one is verified", run.error == "Sluice.NotProven" and job.counts(name)["records"] == 20, (run.error, run.cause))
            run = job.verify(f"{name}-alone", routes="other")
            check(f"{name}: alone it is refused", "NothingToVerify" in str(run.error), (run.error, run.cause))


def changed(stage):
    """A deployment while an execution runs: it does not go on with other archives."""
    with Archives(stage, "changed") as job:
        job.write(history(SEED, 40))

        other = {"name": "keep", "handler": "archive", "to": "s3://archive/changed/elsewhere", "format": "record"}
        job.hook = lambda step: step == "again" and job.deploy(other)
        run = job.verify("changed-1")
        check("other archives are refused", run.error == "Function.OtherArchives", (run.error, run.cause))


def refused(stage):
    with Archives(stage, "refused") as job:
        job.write(history(SEED, 20))
        for given, word in (({"routes": "nosuch"}, "nosuch"), ({"piece_objects": 0}, "piece_objects"), ({"repair": True}, "repair"), ({"step": "drop"}, "step")):
            run = job.verify("refused", **given)
            check(f"{given}: no plan", run.status == "FAILED" and word in run.cause and not run.map_run, (run.error, run.cause))
        read = {"do": "archives", "step": "read", "piece": 0, "run": "r", "target": 0}
        walk = {**read, "step": "walk", "from": 0, "until": 9}
        for wrong, error in (({"run": "a/b"}, "BadWorkItem"), ({"target": 9}, "BadWorkItem"), ({"step": "drop"}, "BadWorkItem"), ({"before": "../x", "turn": 1}, "BadWorkItem"),
                             ({**walk, "until": 257}, "BadWorkItem"), ({**walk, "from": 9}, "BadWorkItem"), ({"archives": "0"}, "OtherArchives"), (walk, "NoSuchKey"),
                             ({"step": "again"}, "NoSuchKey")):
            said = job.ask({"piece": {**read, **wrong}})
            check(f"{wrong}: refused", said[0] == f"Function.{error}", said)
        put = lambda key, body: stage.s3.put_object(Bucket="seeds", Key=f"seed/verify/r/archives/{key}", Body=body)  # noqa: E731
        head = lambda end, rest=b"": (json.dumps({"digest": "0", "ends": [end] * 256}).ljust(4095) + "\n").encode() + rest  # noqa: E731
        put("again.json", b"[]")
        for body in (b"", b"{}", head(112)[:4000], head(112), head(10, b"x" * 10), head(112, b"\xff" * 112), head(112, bytes(112))):
            put("read.json", b'["read-t0-x"]')
            put("read-t0-x", body)
            said = job.ask({"piece": walk})
            check(f"{body[:30]}...: refused", said[0] in ("Function.BadPart", "Function.InvalidJson") and "read-t0-x" in said[1], said)


def main():
    begun = time.time()
    with Stage() as stage:
        stage.s3.create_bucket(Bucket="archive")
        stage.table("orders")
        for test in (equal, the_same_differences, faults, growing, unproven, changed, refused):
            test(stage)
            if os.environ.get("TIMES"):
                print(f"{time.time() - begun:.0f} s {test.__name__}", file=sys.stderr)
    print(f"{counted.passed} passed, 0 failed")


main()
