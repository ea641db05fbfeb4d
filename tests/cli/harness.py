"""What the script tests of replay share: running the command, making records, counting what passed."""
import atexit
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Who runs us in the background may have us ignore SIGINT, and what we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
FUNCTION = os.path.abspath("tests/cli/function.py")
FUNCTION_SH = f"python3 -S {shlex.quote(FUNCTION)}"  # its command, as --bootstrap takes it; without packages it starts four times as fast
WHOLE = os.environ.get("ALL") == "1"  # `make check-all`: every case of the scripts that take some of theirs in `make check`
passed = 0


def each_once(pairs):
    """No object of ours names a member twice: readers would take one or the other."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"an object has a member twice: {names}")
    return dict(pairs)


json._default_decoder = json.JSONDecoder(object_pairs_hook=each_once)  # (of every json.loads of who imports this)


at_end = atexit.register  # (the last one comes first)


def work_folder(large=False):
    """A folder that goes when the script ends. `large`: not one in memory, as /tmp may be."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=os.environ.get("TMPDIR", "/var/tmp") if large else None))
    at_end(shutil.rmtree, place, ignore_errors=True)
    return place


def kills():
    """For a script that kills processes: what they leave in TMPDIR goes when it ends. Before it copies the environment."""
    os.environ["TMPDIR"] = str(work_folder())


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {detail}")
    passed += 1


WAIT_S = 600  # for what must come: machines are slow at times


def until(condition):
    """Whether it comes true."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def ended(process, within=30):
    """What a process says that was told to end: it ends soon, whatever it was waiting for."""
    began = time.monotonic()
    said = process.communicate(timeout=600)
    check("what is told to end does so soon", time.monotonic() - began < within, said)
    return said


def finish():
    print(f"{passed} passed")


def record(n, created=1573689197, name="INSERT", key=None, table="t"):
    images = {"NewImage": {"PK": {"S": key or f"k{n}"}, "n": {"N": str(n)}}}
    return {"eventID": f"{n:032x}", "eventName": name, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "us-east-1",
            "dynamodb": {"ApproximateCreationDateTime": created, "Keys": {"PK": {"S": key or f"k{n}"}}, **images,
                         "SequenceNumber": str(n), "SizeBytes": 10, "StreamViewType": "NEW_IMAGE"},
            "eventSourceARN": f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2019-11-14T00:04:06.388"}


def write_event(path, records):
    pathlib.Path(path).write_text(json.dumps({"Records": records}))


class Run:
    """One `sluice replay` in `folder`, with a trace and a file of failure records."""

    def __init__(self, folder, *args, function=None, records=None, stdin=None, env=None):
        folder = pathlib.Path(folder)
        if records is not None:
            write_event(folder / "in.json", records)
            args = (*args, "in.json")
        if function is not None:
            args = ("--bootstrap", f"exec {FUNCTION_SH} {function}", *args)
        for name in ("trace.jsonl", "failed.jsonl"):
            (folder / name).unlink(missing_ok=True)
        self.done = subprocess.run(
            [f"{BUILD}/sluice", "replay", *(x for pair in (("--trace", "trace.jsonl"), ("--trace-records",), ("--on-failure", "failed.jsonl"))
                                            if pair[0] not in args for x in pair), *args],
            cwd=folder, input=stdin, env={**os.environ, **(env or {})}, capture_output=True, timeout=600)
        self.status = self.done.returncode
        self.out, self.err = self.done.stdout.decode(), self.done.stderr.decode(errors="replace")
        self.trace_text = self.text(folder / "trace.jsonl")
        self.trace = [json.loads(l) for l in self.trace_text.splitlines()]
        self.failures = [json.loads(l) for l in self.text(folder / "failed.jsonl").splitlines()]

    @staticmethod
    def text(path):
        return path.read_text() if path.exists() else ""

    def sizes(self):
        return [t["records"] for t in self.trace]

    def deliveries(self, n):
        return sum(str(n) in t["ids"] for t in self.trace)
