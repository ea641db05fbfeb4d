#!/usr/bin/env python3
"""What takes minutes: memory at 1,000 and at 100,000 messages, of a queue that is emptied, a queue of which nothing is removed, and a file;
and thousands of messages on moto, whose queues grow slow. `make redrive-long`, with MESSAGES=n and QUEUES=n for fewer."""
import os
import pathlib
import re
import subprocess
import time

from harness import BUILD, check, finish, work_folder
from redrive_queue import Server
from redrive_world import CONFIG, Oracle, Queue, Redrive, outcomes, parked, record
from servers import Servers

folder = work_folder()
server = Server()
SMALL, LARGE, QUEUES = 1000, int(os.environ.get("MESSAGES", 100000)), int(os.environ.get("QUEUES", 12))


def measured(run, *args):
    """Peak memory of the command itself, in KB; the sandboxes' processes count for themselves."""
    before = time.time()
    process = subprocess.Popen([f"{BUILD}/sluice", "redrive", "--wait", "1", *args], cwd=run.folder, env=run.env,
                               stdout=open(run.folder / "out", "w", encoding="utf-8"), stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            peak = int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text()).group(1))
        except (OSError, AttributeError):
            pass
        time.sleep(0.02)
    out = (run.folder / "out").read_text()
    return process.returncode, outcomes(out), peak, time.time() - before


def memory(kind, n):
    name = f"{kind}-{n}"
    run, oracle, queue = Redrive(folder / name), Oracle(), server.queue(name)
    run.env.update(AWS_ENDPOINT_URL=server.url, AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s", AWS_REGION="us-east-1")
    bodies = (parked(record(i), ("copy", "totals")[i % 2]) for i in range(n))
    for i in range(n):
        oracle.expect(record(i), (("copy", "totals")[i % 2],))
    if kind == "file":
        (run.folder / "all.jsonl").write_text("\n".join(bodies) + "\n")
        status, sums, peak, s = measured(run, "all.jsonl")
    else:
        for body in bodies:
            queue.add(body)
        status, sums, peak, s = measured(run, *(["--delete-done"] if kind == "emptied" else []), f"sqs://{name}")
    print(f"{name}: {peak} KB, {s:.1f} s, {n / s:.0f} messages/s")
    check(f"{name}: all are done", status == 0 and sums["done"] == n, (status, sums))
    check(f"{name}: the queue is as it must be", len(queue.messages) == (n if kind == "kept" else 0) and all(m.until == 0 for m in queue.messages.values()))
    oracle.compare(name, run.folder)
    return peak


def flat(kind, more_kb):
    small, large = memory(kind, SMALL), memory(kind, LARGE)
    check(f"{kind}: memory is flat", large <= small + more_kb, (small, large))


def on_moto():
    """Queues of 400; one request at a time, because moto loses a deletion when two run together."""
    services = Servers("moto")
    oracle, names = Oracle(), [f"failed{i}" for i in range(QUEUES)]
    queues = [Queue(services, name) for name in names]
    for i, queue in enumerate(queues):
        bodies = []
        for n in range(i * 400, (i + 1) * 400):
            oracle.expect(record(n), ("copy",))
            bodies.append(parked(record(n), "copy"))
        queue.send(bodies)
    done = Redrive(folder / "moto", services, CONFIG).run("--delete-done", *(f"sqs://{name}?in_flight=1" for name in names), timeout=1800)
    check("moto: all are done", outcomes(done.stdout)["removed"] == 400 * QUEUES and done.returncode == 0, done.stdout[-300:] + done.stderr[-300:])
    check("moto: the queues are empty", all(q.counts() == (0, 0) for q in queues))
    oracle.compare("moto", folder / "moto")


os.environ.setdefault("PYTHONUNBUFFERED", "1")
flat("emptied", 4096)
flat("kept", 8192)  # the ids of what is held: 16 bytes each
flat("file", 4096)
if QUEUES:
    on_moto()
finish()
