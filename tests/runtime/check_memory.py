#!/usr/bin/env python3
"""An event of 6 MB, the largest that Lambda sends, through all four built-in handlers: bootstrap stays below 100 MB, so that a
function of 128 MB is enough. Records of some hundred bytes, and of the largest items."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.path.abspath(os.environ.get("BUILD", "build")))
MOST_KB = 100 * 1024


def watch(peak, *command):
    """Runs bootstrap and keeps the greatest size that it had in the file `peak`. (Its parent ends it by a signal.)"""
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while child.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
            found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
            if found:
                pathlib.Path(peak).write_text(found[0])
        except OSError:
            pass
        time.sleep(0.005)
    sys.exit(child.returncode)


def record(n, pad):
    keys = {"PK": {"S": f"CUSTOMER#{n}"}, "SK": {"S": f"ORDER#{n}"}}
    image = {**keys, "status": {"S": "SHIPPED"}, "total": {"N": "12.50"}, "note": {"S": "x" * pad}}
    return {"eventID": f"{n:032x}", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "dynamodb": {"ApproximateCreationDateTime": 1763672640, "Keys": keys, "NewImage": image, "OldImage": {**image, "status": {"S": "NEW"}},
                         "SequenceNumber": str(10 ** 20 + n), "SizeBytes": 900, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-11-14T00:04:06.388"}


def peak_kb(folder, records, pad):
    """The size of the largest event that was sent, and the most that bootstrap had."""
    folder = pathlib.Path(folder)
    (folder / "in.jsonl").write_text("".join(json.dumps(record(n, pad)) + "\n" for n in range(records)))
    config = TOP / "examples/orders/sluice.json"
    done = subprocess.run([BUILD / "sluice", "replay", "--config", config, "--batch-size", "10000", "--timeout", "300", "--trace", "trace.jsonl", "--bootstrap",
                           shlex.join(["exec", sys.executable, os.path.abspath(__file__), "watch", f"{folder}/peak", f"{BUILD}/bootstrap"]), "in.jsonl"],
                          cwd=folder, env={**os.environ, "OUT": str(folder), "SLUICE_CONFIG": str(config)}, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"FAIL replay: {done.stdout}{done.stderr}")
    sizes = [json.loads(line)["bytes"] for line in (folder / "trace.jsonl").read_text().splitlines()]
    return max(sizes), int((folder / "peak").read_text())


def main():
    is_sanitized = b"__asan_init" in (BUILD / "bootstrap").read_bytes()  # shadow memory is not ours
    for records, pad in ((6000, 300), (16, 180000)):
        with tempfile.TemporaryDirectory() as folder:
            size, peak = peak_kb(folder, records, pad)
        if size < 5.5e6 or not (is_sanitized or 6000 < peak < MOST_KB):
            sys.exit(f"FAIL records of {pad} bytes: an event of {size} bytes took {peak} kB")
    print("2 passed")


if sys.argv[1:2] == ["watch"]:
    watch(*sys.argv[2:])
else:
    main()
