#!/usr/bin/env python3
"""`make demo` does what it says: a live tail, a proof, and something to look at."""
import os
import pathlib
import subprocess
import sys

sys.path.append(os.path.abspath("tests/cli"))
from harness import BUILD, check, finish, work_folder  # noqa: E402

folder = work_folder()
done = subprocess.run([sys.executable, str(pathlib.Path("examples/demo/demo.py").resolve())], cwd=folder, capture_output=True, text=True, timeout=600,
                      env={**os.environ, "BUILD": BUILD, "DEMO_SECONDS": "2"})
check("it ends well", done.returncode == 0, done.stdout + done.stderr)
for text in ("result: ", " 0 different, 0 pending, 0 unsettled", '"STATUS#SHIPPED"', "is on its way", "sluice tail: reads arn:"):
    check(f"it shows {text}", text in done.stdout + done.stderr, done.stdout + done.stderr)
check("what is left", {path.name for path in (folder / "out/demo").iterdir()} >= {"archive", "totals.db", "shipped.jsonl", "large.jsonl", "place.json"})
finish()
