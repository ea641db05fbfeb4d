#!/usr/bin/env python3
"""Changes of one time, as Kinesis delivers them, on DynamoDB Local: twice, in any order, by two processes at once. The replica ends as the
source, in every mode. check_ties.py [SEED]."""
import base64
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from check_two_way import serve
from two_way import Dynamo

SLUICE = pathlib.Path(os.environ.get("BUILD", "build"), "sluice").resolve()
ITEMS, CHANGES, STEPS, MS = 60, 6, 5, 1767265199000
MODES = {"inline": {}, "tombstones": {"tombstones": {"table": "marks"}}, "aside": {"guard": {"table": "guards"}},
         "shaped": {"tombstones": {"table": "marks2"}, "rename": {"v": "w"}, "where": {"v": [1, 2]}}}


class World:
    def __init__(self, dynamo, folder, name, draw):
        self.dynamo, self.folder, self.name, self.draw = dynamo, folder, name, draw
        self.histories, self.states = [self.history() for _ in range(ITEMS)], [-1] * ITEMS
        for table in ("source", "replica"):
            dynamo.create(f"{name}-{table}", [("PK", "S"), ("SK", "N")], False)
        self.options = json.loads(json.dumps(MODES[name]))
        for side in ("tombstones", "guard"):
            if side in self.options:
                dynamo.create(self.options[side]["table"], [("PK", "S")], False)
        route = {"name": name, "handler": "replicate", "to": f"dynamodb://{name}-replica", "source": f"dynamodb://{name}-source", **self.options}
        (folder / f"{name}.json").write_text(json.dumps({"on_failure": "jsonl:failed.jsonl", "report_batch_item_failures": True, "routes": [route]}))

    def history(self):
        """(value or None, unit) of each change."""
        changes, unit = [], 0
        for i in range(CHANGES):
            unit += self.draw.random() < 0.4
            was = changes[-1][0] if changes else None
            changes.append((self.draw.choice([None, 1, 2, 3] if was else [1, 2, 3]), unit))
        return changes

    def item(self, i, value):
        return {"PK": {"S": f"item {i}"}, "SK": {"N": "7"}, "v": {"N": str(value)}, "text": {"S": "é\"\\"}}

    def show(self, i, k):
        """The source goes on to change `k` of the item."""
        if k <= self.states[i]:
            return
        self.states[i], value = k, self.histories[i][k][0]
        if value:
            self.dynamo("PutItem", TableName=f"{self.name}-source", Item=self.item(i, value))
        else:
            self.dynamo("DeleteItem", TableName=f"{self.name}-source", Key={n: self.item(i, 1)[n] for n in ("PK", "SK")})

    def record(self, i, k, number):
        (value, unit), before = self.histories[i][k], self.histories[i][k - 1][0] if k else None
        event = "REMOVE" if not value else "MODIFY" if before else "INSERT"
        images = {n: self.item(i, v) for n, v in (("NewImage", value), ("OldImage", before)) if v}
        change = {"awsRegion": "us-east-1", "eventID": f"e{i}-{k}", "eventName": event, "tableName": f"{self.name}-source", "recordFormat": "application/json",
                  "dynamodb": {"ApproximateCreationDateTime": MS + unit, "Keys": {n: self.item(i, 1)[n] for n in ("PK", "SK")}, **images}}
        data = base64.b64encode(json.dumps(change).encode()).decode()
        return {"kinesis": {"kinesisSchemaVersion": "1.0", "partitionKey": str(i), "sequenceNumber": str(number), "data": data,
                            "approximateArrivalTimestamp": MS / 1000}, "eventSource": "aws:kinesis", "eventVersion": "1.0",
                "eventID": f"shardId-000000000000:{number}", "eventName": "aws:kinesis:record", "awsRegion": "us-east-1",
                "eventSourceARN": "arn:aws:kinesis:us-east-1:123456789012:stream/s"}

    def deliver(self, which, turn):
        for i, k in which:
            self.show(i, k)
        for i in self.draw.sample(range(ITEMS), ITEMS // 4):
            self.show(i, min(CHANGES - 1, self.states[i] + 1))
        records = [self.record(i, k, turn * 10000 + n + 1) for n, (i, k) in enumerate(which)]
        (self.folder / "in.json").write_text(json.dumps({"Records": records}))
        runs = [subprocess.Popen([SLUICE, "replay", "--config", f"{self.name}.json", "--batch-size", size, "in.json"], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for size in ("100", "7")]
        for run in runs:
            out = run.communicate(timeout=600)[0]
            if run.returncode:
                sys.exit(f"FAIL {self.name}: {out}")

    def run(self):
        """Every change once, some twice, in any order."""
        all_of_them = [(i, k) for i in range(ITEMS) for k in range(CHANGES)]
        all_of_them += self.draw.sample(all_of_them, len(all_of_them) // 3)
        self.draw.shuffle(all_of_them)
        for turn in range(STEPS):
            self.deliver(all_of_them[turn::STEPS], turn)
        checks = 0
        rows = {row["PK"]["S"]: row for row in self.dynamo.scan(f"{self.name}-replica") if "sluice_deleted" not in row}
        for i, history in enumerate(self.histories):
            value = history[-1][0]
            if "where" in self.options and value not in (1, 2):
                value = None
            row = rows.get(f"item {i}")
            held = row and int((row.get("v") or row.get("w"))["N"])
            checks += 1
            if held != value:
                sys.exit(f"FAIL {self.name}: item {i} is {held}, and the source has {value}: {history}")
        return checks


def main():
    seed, passed = int(sys.argv[1]) if len(sys.argv) > 1 else 1, 0
    serve()
    with tempfile.TemporaryDirectory() as where:
        for name in MODES:
            passed += World(Dynamo(), pathlib.Path(where), name, random.Random(f"{seed} {name}")).run()
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
