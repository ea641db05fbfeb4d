#!/usr/bin/env python3
"""Runs test programs and scripts and counts: a cmocka program counts its tests, a script the "N passed" of its last line, anything
else counts one. Prints what failed, and ends with "N passed, N failed".

usage: scripts/run_tests.py [--seconds FILE] [--in-turn PATTERN]... TEST...

They begin in the order given, or longest first once FILE knows how long each took; those that match one PATTERN run one after the
other. JOBS of them at a time; without JOBS as many as keep the processors busy (many wait for servers), nine for each at most.
A test has a folder of its own for what is temporary (TMPDIR: in memory for a program), LIMIT_S seconds (900), and fails, too, when
it leaves a file there or a process behind. FILE gets what each took: seconds, seconds of processor time by itself and in the kernel."""
import argparse
import fnmatch
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

POLL_S = 0.01
GRACE_S = 5        # for processes that are about to end
BUSY = 0.92        # begin no more above this share of the processors
LOOK_S = 0.1
PR_SET_CHILD_SUBREAPER = 36

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=pathlib.Path)
parser.add_argument("--in-turn", action="append", default=[])
parser.add_argument("tests", nargs="*")
options = parser.parse_args()

for path in options.tests:
    if not os.access(path, os.X_OK):
        sys.exit(f"run_tests: {path}: there is no such test, or it may not be run")
cores = len(os.sched_getaffinity(0))
jobs = int(os.environ.get("JOBS") or 0)
limit_s = int(os.environ.get("LIMIT_S") or 900)
passed = failed = 0


class Test:
    def __init__(self, path, place):
        self.path, self.place = path, place
        self.turn = next((p for p in options.in_turn if fnmatch.fnmatch(path, p)), None)
        self.is_killed = False

    def start(self):
        place = tempfile.mkdtemp(dir=self.place)
        # As the process's own word for it: what a test leaves running is found by it.
        self.folder, self.mark = place, f"TMPDIR={place}\0".encode()
        self.log = open(f"{place}.log", "w+b")
        self.began = time.monotonic()
        self.process = subprocess.Popen([self.path], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        start_new_session=True, env={**os.environ, "TMPDIR": place})

    def ended(self, status, usage):
        self.code = os.waitstatus_to_exitcode(status)
        self.took = time.monotonic() - self.began
        self.user, self.system = usage.ru_utime, usage.ru_stime
        self.until = time.monotonic() + GRACE_S

    def running(self):
        """Processes that this test has started and that still run."""
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    with open(f"/proc/{entry.name}/environ", "rb") as file:
                        if self.mark in b"\0" + file.read() + b"\0":
                            found.append(int(entry.name))
                except OSError:
                    pass
        return found

    def judge(self):
        """False as long as processes of it may still end."""
        left = self.running()
        if left and time.monotonic() < self.until:
            return False
        self.log.seek(0)
        said = self.log.read().decode(errors="replace")
        faults = []
        if self.is_killed:
            faults.append(f"it was still running after {limit_s} s")
        elif self.code:
            faults.append(f"it ended with {'signal' if self.code < 0 else 'status'} {abs(self.code)}")
        for pid in left:
            faults.append(f"it left process {pid}: {command(pid)}")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        files = sorted(os.listdir(self.folder))
        if files and not faults:
            faults.append(f"it left in TMPDIR: {' '.join(files[:5])}" + (f" and {len(files) - 5} more" if len(files) > 5 else ""))
        report(self, said, faults)
        self.log.close()
        os.unlink(f"{self.folder}.log")
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()[:200]
    except OSError:
        return "?"


def shown(lines):
    """The last lines, and before them what is around the first failures: a sanitizer says much at the end."""
    last, near = max(0, len(lines) - 60), set()
    for i, line in enumerate(lines[:last]):
        if re.match(r"\[  (FAILED|ERROR ) |ERROR: |.*: error: ", line) and len(near) < 60:
            near.update(range(max(0, i - 8), min(i + 4, last)))
    return [lines[i] for i in sorted(near)] + (["[...]"] if near else []) + lines[last:]


def report(test, said, faults):
    global passed, failed
    counts = re.findall(r"^\[  PASSED  \] (\d+) test|^(\d+) passed", said, re.M)
    n = int("".join(counts[-1])) if counts else 1
    if faults:
        lost = re.findall(r"^\[  FAILED  \] (\d+) test", said, re.M)
        failed += int(lost[-1]) if lost else 1
        print(f"FAIL  {test.path}")
        print("".join(f"      {line}\n" for line in shown(said.splitlines()) + faults), end="", flush=True)
    else:
        passed += n
        print(f"ok    {test.took * 1000:6.0f} ms  {test.path} ({n})", flush=True)


def processor_ticks():
    """(busy, all) of this machine's processors since it started."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


class Load:
    """How busy the processors were in the last moment."""

    def __init__(self):
        self.at, self.ticks, self.share = time.monotonic(), processor_ticks(), 0.0

    def allows(self, running):
        if jobs:
            return running < jobs
        if running < cores:
            return True
        if time.monotonic() - self.at < LOOK_S:
            return False
        now = processor_ticks()
        if now[1] > self.ticks[1]:
            self.share = (now[0] - self.ticks[0]) / (now[1] - self.ticks[1])
        self.at, self.ticks = time.monotonic(), now
        return running < 9 * cores and self.share < BUSY


def earlier():
    """path -> seconds, of the last run that wrote them."""
    try:
        lines = options.seconds.read_text().splitlines()
    except (OSError, AttributeError):
        return {}
    return {line.split("\t")[0]: float(line.split("\t")[1]) for line in lines}


def held():
    """What bootstraps keep where Lambda has its temporary files, outside of the tests' own folders."""
    return set(glob.glob(f"/tmp/sluice-{os.geteuid()}-held-*"))


def main():
    global failed
    import ctypes
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # servers that a test leaves to themselves are ours to collect
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    on_disk = tempfile.mkdtemp(prefix="sluice-")
    in_memory = tempfile.mkdtemp(prefix="sluice-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else on_disk)
    took = earlier()
    waiting = [Test(path, on_disk if path.endswith((".py", ".sh")) else in_memory)
               for path in sorted(options.tests, key=lambda path: -took.get(path, 0))]
    running, ending, done, load = {}, [], [], Load()
    before = held()
    others = [0.0, 0.0]
    try:
        while waiting or running or ending:
            busy = {test.turn for test in running.values() if test.turn}
            ready = next((test for test in waiting if test.turn not in busy), None)
            if ready and load.allows(len(running)):
                waiting.remove(ready)
                ready.start()
                running[ready.process.pid] = ready
                continue
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid in running:
                test = running.pop(pid)
                test.process.returncode = 0  # it is collected
                test.ended(status, usage)
                ending.append(test)
                done.append(test)
            elif pid:
                others[0] += usage.ru_utime
                others[1] += usage.ru_stime
                continue
            ending = [test for test in ending if not test.judge()]
            for test in running.values():
                if not test.is_killed and time.monotonic() - test.began > limit_s:
                    test.is_killed = True
                    os.killpg(test.process.pid, signal.SIGKILL)
            if not pid:
                time.sleep(POLL_S)
    finally:
        for test in running.values():
            os.killpg(test.process.pid, signal.SIGTERM)
        shutil.rmtree(on_disk, ignore_errors=True)
        shutil.rmtree(in_memory, ignore_errors=True)
    if options.seconds:
        rows = [f"{t.path}\t{t.took:.2f}\t{t.user:.2f}\t{t.system:.2f}\n" for t in sorted(done, key=lambda t: -t.took)]
        rows.append(f"servers\t0\t{others[0]:.2f}\t{others[1]:.2f}\n")
        options.seconds.write_text("".join(rows))
    for path in held() - before:
        print(f"FAIL  a bootstrap that a test started had no TMPDIR: it left {path}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
