#!/usr/bin/env python3
"""Memory does not grow with the input: decode, replay and backfill need the same for any length.

MEMORY_MB is the size of the large input; `make memory` takes 1 GB."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
from exports import finish_export, md5  # noqa: E402
from harness import BUILD, check, finish, work_folder  # noqa: E402

SMALL_MB, LARGE_MB = 4, int(os.environ.get("MEMORY_MB", 40))
MOST_MB = 64  # what reading needs, whatever is read
SLACK_MB = 8  # what an allocator keeps
# Large inputs do not belong into a /tmp that is memory.
folder = work_folder(large=True)
CONFIG = {"on_failure": f"jsonl:{folder}/parked.jsonl",
          "routes": [{"name": "replica", "handler": "replicate", "to": f"sqlite:{folder}/db?table=replica"}]}
NOTHING = {"on_failure": f"jsonl:{folder}/parked.jsonl",
           "routes": [{"name": "none", "handler": "archive", "when": {"events": ["REMOVE"]}, "to": f"file:{folder}/archive"}]}


def item(i, size):
    return '{"Item":{"PK":{"S":"user#%d"},"SK":{"N":"%d"},"text":{"S":"%s"}}}\n' % (i % 1000, i, "x" * size)


def record(i, size):
    return ('{"eventID":"%d","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",'
            '"dynamodb":{"ApproximateCreationDateTime":1767265199,"Keys":{"PK":{"S":"u%d"}},"NewImage":{"PK":{"S":"u%d"},"text":{"S":'
            '"%s"}},"SequenceNumber":"%021d","SizeBytes":9,"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventSourceARN":'
            '"arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"}\n' % (i, i, i, "x" * size, i + 1))


def write(name, megabytes, line, size):
    """Returns the path and the number of lines."""
    path, n, written = folder / name, 0, 0
    opened = gzip.open(path, "wt", compresslevel=1) if name.endswith(".gz") else open(path, "w")
    with opened as file:
        while written < megabytes * 1000000:
            text = line(n, size)
            file.write(text)
            written += len(text)
            n += 1
    return path, n


def run(*args, stdin=None):
    """The peak of the process's memory in MB; it has to succeed."""
    log = open(folder / "log", "w+")
    process = subprocess.Popen([f"{BUILD}/sluice", *map(str, args)], stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=log, cwd=folder)
    if stdin:
        with open(stdin, "rb") as source:
            shutil.copyfileobj(source, process.stdin, 1 << 20)
        process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    log.seek(0)
    check(f"{args[0]} succeeds", os.waitstatus_to_exitcode(status) == 0, log.read()[-500:])
    return usage.ru_maxrss / 1024


def compare(name, command, more_mb=0):
    small, large = command(SMALL_MB), command(LARGE_MB)
    print(f"{name}: {small:.0f} MB for {SMALL_MB} MB, {large:.0f} MB for {LARGE_MB} MB")
    check(f"{name}: the same for {LARGE_MB} MB as for {SMALL_MB} MB", large - small <= SLACK_MB + more_mb, f"{small:.1f} {large:.1f}")
    check(f"{name}: {MOST_MB} MB at most", small <= MOST_MB and large <= MOST_MB + more_mb, f"{small:.1f} {large:.1f}")


def decode(suffix, line, size, by_pipe=False):
    def command(megabytes):
        path, _ = write(f"input{suffix}", megabytes, line, size)
        peak = run("decode", "-", stdin=path) if by_pipe else run("decode", path)
        path.unlink()
        return peak
    return command


def replay(line, size, keys=()):
    def command(megabytes):
        path, _ = write("input.jsonl", megabytes, line, size)
        (folder / "nothing.json").write_text(json.dumps(NOTHING))
        # Its events may have 6 MB each, beside the records: small batches keep to what is asked here.
        peak = run("replay", "--quiet", "--config", "nothing.json", "--batch-size", "1000", *keys, path)
        path.unlink()
        return peak
    return command


def backfill(megabytes):
    shutil.rmtree(folder / "export", ignore_errors=True)
    (folder / "db").unlink(missing_ok=True)
    root = folder / "export" / "AWSDynamoDB" / "01693685827463-2d8752fd"
    (root / "data").mkdir(parents=True)
    path, n = write("x.json.gz", megabytes, item, 900)
    path = path.rename(root / "data" / "x.json.gz")
    line = json.dumps({"itemCount": n, "md5Checksum": md5(path.read_bytes()), "etag": "0-1",
                       "dataFileS3Key": f"AWSDynamoDB/{root.name}/data/x.json.gz"})
    finish_export(root, root.name, [line], n, "2026-11-22T06:00:00.000Z", "arn:aws:dynamodb:us-east-1:123456789012:table/orders")
    (folder / "sluice.json").write_text(json.dumps(CONFIG))
    return run("backfill", "--quiet", "--unsafe-order", "--export", root, "--keys", "PK,SK", "--config", "sluice.json")


try:
    compare("decode, lines", decode(".jsonl", record, 300))
    compare("decode, short items", decode(".jsonl", item, 1))
    compare("decode, gzip", decode(".jsonl.gz", record, 300))
    compare("decode, a pipe", decode(".jsonl", record, 300, by_pipe=True))
    # What the kernel keeps of temporary files counts here, and is let go from time to time; an event may have 6 MB.
    for name, command in (("replay, records", replay(record, 300)), ("replay, items", replay(item, 300, ("--keys", "PK,SK")))):
        compare(name, command, more_mb=24)
    if LARGE_MB <= 100:  # SQLite takes some 5,000 items a second: `make bench` has the large run, with a scripted endpoint
        compare("backfill, an export", backfill)
finally:
    shutil.rmtree(folder)
finish()
