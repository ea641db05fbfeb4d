#!/usr/bin/env python3
"""A replay whose records come page by page is the same as one that has them all in memory (`--report` asks for that): trace,
failure records and summary, over random settings, faults and forms of input."""
import gzip
import json
import os
import random
import shlex
import shutil
import subprocess

from harness import BUILD, FUNCTION_SH, check, finish, work_folder

folder = work_folder(large=True)
draw = random.Random(int(os.environ.get("SEED", 11)))
ROUNDS = int(os.environ.get("ROUNDS", 14))
N = 9000  # three pages
(folder / "sluice.json").write_text(json.dumps({"on_failure": f"jsonl:{folder}/parked.jsonl", "routes": [
    {"name": "none", "handler": "archive", "when": {"events": ["REMOVE"]}, "to": f"file:{folder}/archive"}]}))


def record(i, form):
    keys = {"PK": {"S": f"p{i % 7}"}}
    r = {"eventID": f"{i:032x}", "eventName": "MODIFY" if i % 3 else "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
         "dynamodb": {"ApproximateCreationDateTime": 1767265199 + i // 40, "Keys": keys, "NewImage": {**keys, "n": {"N": str(i)}}, "SequenceNumber": str(10**20 + i),
                      "SizeBytes": 9, "StreamViewType": "NEW_AND_OLD_IMAGES"},
         "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"}
    if form == "one without its ARN" and i == N - 5:
        del r["eventSourceARN"]
    if form == "no times" and i % 2:
        del r["dynamodb"]["ApproximateCreationDateTime"]
    if form == "other order":
        r = dict(sorted(r.items()))
    if form == "removals" and i % 4 == 0:
        r["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        r["eventName"] = "REMOVE"
        r["dynamodb"]["OldImage"] = r["dynamodb"].pop("NewImage")
    return r


def inputs(form):
    """Writes the records, in the form, and returns the names and what comes through a pipe."""
    text = lambda r: json.dumps(r, separators=(",", ":")) if form != "spaces" else json.dumps(r)
    texts = [text(record(i, form)) for i in range(N)]
    lines = ("\n".join(texts) + "\n").encode()
    if form == "event":
        lines = ('{"Records":[' + ",\n".join(texts) + "]}").encode()
    if form == "gzip":
        lines = gzip.compress(lines[:100000], 1) + gzip.compress(lines[100000:], 1)
    if form in ("several", "shards"):
        for k in range(3):
            (folder / f"in{k}").write_text("\n".join(texts[k * N // 3:(k + 1) * N // 3]))
        return (["--shard-per-file"] if form == "shards" else []) + ["in0", "in1", "in2"], None
    (folder / "in").write_bytes(lines)
    return (["-"], lines) if form == "pipe" else (["in"], None)


def run(flags, stdin, *more):
    for name in ("trace", "failed"):
        (folder / name).unlink(missing_ok=True)
    done = subprocess.run([f"{BUILD}/sluice", "replay", "--quiet", "--trace", "trace", "--trace-records", "--on-failure", "failed", *flags, *more], cwd=folder, input=stdin,
                          capture_output=True, timeout=600)
    check("it runs", done.returncode in (0, 1), done.stderr.decode()[-600:])
    read = lambda name: (folder / name).read_bytes() if (folder / name).exists() else b""
    return {"status": done.returncode, "summary": done.stdout, "trace": read("trace"), "failed": read("failed"), "notes": done.stderr}


def settings():
    flags = ["--batch-size", draw.choice([100, 700, 1000, 4096, 10000]), "--seed", draw.randrange(1000), "--max-retries", draw.choice([0, 1, 3])]
    for some in (["--bisect"], ["--window", 5], ["--report-failures"], ["--filter", '{"eventName":["INSERT"]}'], ["--max-age", 150],
                 ["--fault", f"crash@{draw.choice([3, 10, 40])}%"], ["--fault", "throttle@2-4"], ["--fault", "lost@5%"]):
        flags += some if draw.random() < 0.4 else []
    if draw.random() < 0.2:
        flags += ["--tumbling", 60, "--bootstrap", f"exec {FUNCTION_SH} answer '{{\"state\":{{}}}}'"]
        flags[1] = 4096
    return list(map(str, flags))


FORMS = ["lines", "event", "gzip", "pipe", "several", "shards", "spaces", "one without its ARN", "no times", "other order", "removals"]
try:
    for i in range(ROUNDS):
        form = FORMS[i % len(FORMS)]
        names, stdin = inputs(form)
        flags = settings() + names
        paged, whole = run(flags, stdin), run(flags, stdin, "--report", "report.html")
        for what in paged:
            check(f"{form}, {' '.join(flags)}: {what}", paged[what] == whole[what], (paged[what][-300:] if what != "status" else paged, whole[what] and str(whole[what])[-300:]))
    # An input that changes between the reading and the delivery is no recording.
    names, _ = inputs("lines")
    slow = subprocess.Popen([f"{BUILD}/sluice", "replay", "--quiet", "--batch-size", "100", "--bootstrap",
                             f"echo >>{shlex.quote(str(folder))}/in; exec {FUNCTION_SH} answer null", "in"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = slow.communicate(timeout=600)
    check("an input that changes is said", slow.returncode != 0 and b"in: has changed since the replay began" in err, (slow.returncode, err[-300:]))
finally:
    shutil.rmtree(folder)
finish()
