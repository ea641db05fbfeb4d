"""What the checks of table targets share: a folder, random histories of a table, and runs of Sluice over them."""
import json
import os
import random
import subprocess
import sys

sys.path[:0] = ["tests/cli", "tests/services"]
from harness import work_folder  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
SLUICE = f"{BUILD}/sluice"
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-14T00:04:06.388"
folder = work_folder()
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[:3000]}")
    passed += 1


# ---- histories ----

class History:
    """Random changes of a table, as a stream's records; `items` is what the table holds after them."""

    def __init__(self, seed, changes, keys):
        self.draw, self.items, self.records = random.Random(seed), {}, []
        self.names = [f"k{n}" for n in range(keys - 3)] + ["é|%\"\\ \n", "x" * 700, "sha256:tricky"]
        for n in range(changes):
            self.change(n)

    def image(self, key):
        draw = self.draw
        number = draw.choice([str(draw.randrange(10**6)), "-0.00125", "12345678901234567890123456789012345678", "1.2345678901234567890123456789",
                              "1e+30", "3E-20", "9007199254740993"])
        item = {**key, "status": {"S": draw.choice(["OPEN", "PAID", "é\n\"", ""])}, "total": {"N": number}, "version": {"N": str(draw.randrange(10**9))}}
        if draw.random() < 0.4:
            item["deep"] = {"M": {"l": {"L": [{"N": number}, {"S": "a"}, {"B": "AAH/"}, {"M": {"ns": {"NS": ["1", number]}}}]}, "b": {"BOOL": True}}}
        if draw.random() < 0.3:
            item["tags"] = {"SS": draw.sample(["a", "b", "c"], 2)}
            item["marks"] = {"NS": ["1", "2.50"]}
            item["photo"] = {"B": "AP8B"}
            item["none"] = {"NULL": True}
        return item

    def change(self, n):
        name = self.draw.choice(self.names)
        key = {"PK": {"S": name}, "SK": {"N": str(self.draw.randrange(2))}}
        at, old = json.dumps(key), None
        old = self.items.get(at)
        new = None if old and self.draw.random() < 0.3 else self.image(key)
        if new is None:
            del self.items[at]
        else:
            self.items[at] = new
        images = {**({"NewImage": new} if new else {}), **({"OldImage": old} if old else {})}
        self.records.append({
            "eventID": f"{n:032x}", "eventName": "REMOVE" if new is None else "MODIFY" if old else "INSERT", "eventVersion": "1.1",
            "eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "eventSourceARN": ARN,
            "dynamodb": {"ApproximateCreationDateTime": 1795208640 + n // 10, "Keys": key, **images, "SequenceNumber": str(10**22 + n), "SizeBytes": 100,
                         "StreamViewType": "NEW_AND_OLD_IMAGES"}})

    def write(self, name, records=None):
        (folder / name).write_text(json.dumps({"Records": self.records if records is None else records}))
        return name


def sluice(verb, *args, timeout=600):
    run = subprocess.run([SLUICE, verb, *args], cwd=folder, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL,
                         env={**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"})
    run.out, run.err = run.stdout.decode(), run.stderr.decode(errors="replace")
    run.text = f"exit {run.returncode}\n{run.out}\n{run.err[-2500:]}"
    return run


def config(name, *routes, **more):
    (folder / name).write_text(json.dumps({"routes": routes, "report_batch_item_failures": True, "on_failure": f"jsonl:parked-{name}l", **more}))
    return name


def route(to, **more):
    return {"name": "search", "handler": "replicate", "to": to, **more}


def parked(name):
    path = folder / f"parked-{name}l"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def replay(conf, *inputs, faults="", seed=1, timeout=600):
    flags = ["--fault", faults, "--seed", str(seed)] if faults else []
    run = sluice("replay", "--config", conf, "--batch-size", "50", "--report-failures", "--quiet", *flags, *inputs, timeout=timeout)
    check(f"replay {conf} {inputs} {faults}", run.returncode == 0, run.text)
    return run


def same(a, b):
    """Numbers by value, whatever they are written as."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b
