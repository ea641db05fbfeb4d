#!/usr/bin/env python3
"""Every target of `make help` works: the longer ones run here in their smallest form, the others by the test that is named, and a
target that neither does is told."""
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, "tests/cli")
from harness import check, finish, kills  # noqa: E402

# Target -> its smallest form: the same every time.
HERE = {
    "bench": ["BENCH_SHORT=1"],
    "capture": ["OUT=build/capture"],
    "cover": ["ONLY=decoder"],
    "house": [],
    "licenses": ["ARCHS=arm64"],
    "memory": ["MEMORY_MB=12"],
    "mutate": ["ONLY=base", "FILES=base/hex.h base/number.c", "COUNT=3", "SEED=1", "GATE=66"],
    "redrive-long": ["MESSAGES=1500", "QUEUES=0"],
    "run": [],
    "simulate": ["SEEDS=1000", "FIRST=30000"],
    "webhook-long": ["WORLDS=7-7"],
}
# Target -> the file that runs it, and the words of it that do.
ELSEWHERE = {
    "all": ("scripts/check.sh", "quietly all"),
    "demo": ("tests/examples/check_demo.py", "demo.py"),
    "conformance": ("scripts/check.sh", "conformance CORPUS"),
    "fuzz": ("scripts/check.sh", "fuzz RUNS="),
    "compat": ("scripts/check.sh", "tests/compat/check_compat.py"),
    "image": ("tests/package/check_release.py", '"image"'),
    "release": ("tests/package/check_release.py", '"release"'),
    "install": ("tests/examples/check_examples.sh", "installing install"),
    "lint": ("scripts/check.sh", "-s lint"),
    "package": ("tests/package/check_package.py", '"package"'),
    "sanitized": ("scripts/check.sh", "sanitized"),
    "setup": ("Makefile", "check: setup"),
    "uninstall": ("tests/examples/check_examples.sh", "uninstall"),
    "unit": ("Makefile", "GOALS ?= unit"),
    "help": ("tests/check_targets.py", '"help"'),
}
# The script runs in `make check`; the target is the same one for longer.
SAME_SCRIPT = ["opensearch-long", "postgres-long", "secrets-long", "tail-long", "verify-long"]
# Why not.
NOT = {
    "bless": "writes into the tree; the tests that it calls say when it is due",
    "check": "it is what runs",
    "check-all": "so is this",
    "clean": "one rm",
    "leases-kcl": "downloads the Kinesis Client Library with Maven",
    "quick": "lint and unit",
    "ruler": "downloads event-ruler with Maven",
    "sources": "downloads 130 MB",
}

targets = re.findall(r"^  make (\S+) ", subprocess.run(["make", "--no-print-directory", "help"], capture_output=True, text=True, check=True).stdout, re.M)
known = [*HERE, *ELSEWHERE, *SAME_SCRIPT, *NOT]
check("make help lists targets", len(targets) > 20, targets)
for target in targets:
    check(f"{target} is in one of the lists", known.count(target) == 1, known.count(target))
for target in known:
    check(f"{target} exists", target in targets)

for target, (path, words) in ELSEWHERE.items():
    check(f"{target}: {path} runs it", words in pathlib.Path(path).read_text(), words)
makefile = pathlib.Path("Makefile").read_text()
for target in SAME_SCRIPT:
    script = re.search(rf"^{target}:.*\n(?:\t.*\n)*?.*\b(tests/\S+/check_\w+\.py)", makefile, re.M)
    check(f"{target}: its script is a test", script and os.access(script.group(1), os.X_OK), script)

# (A bootstrap that is benchmarked leaves its memory of what it was given, as in Lambda.)
kills()
env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "AGAIN", "JOBS", "ASAN_OPTIONS")}
for target, settings in HERE.items():
    began = time.time()
    done = subprocess.run(["make", "--no-print-directory", target, *settings], capture_output=True, text=True, env=env)
    print(f"{target}: {time.time() - began:.1f} s", flush=True)
    check(f"make {target} {' '.join(settings)}", done.returncode == 0, (done.stdout + done.stderr)[-3000:])
finish()
