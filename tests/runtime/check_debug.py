#!/usr/bin/env python3
"""What a debug build (`make sanitized`) tells the writer of a plugin that breaks a rule of handler.h."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests/cli")
from harness import BUILD, check, finish, record  # noqa: E402

DEBUG = f"{BUILD}/clang"


def build(folder):
    build_folder = os.environ.get("BUILD", "build")  # by the same name as elsewhere: dependencies are told by it
    subprocess.run(["make", "--no-print-directory", "-s", "-j2", "sanitized", f"BUILD={build_folder}", "GOALS=all"],
                   check=True, stdout=subprocess.DEVNULL)
    (folder / "handlers").mkdir()
    subprocess.run(["clang", "-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-fPIC", "-shared", "-fvisibility=hidden",
                    f"-I{DEBUG}/include", "-o", folder / "handlers/keeps.so", "tests/runtime/plugins/keeps.c"], check=True)


def replay(folder, build_folder, how):
    (folder / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "routes": [
        {"name": "r", "handler": "keeps", "how": how, "on_failure": "jsonl:parked.jsonl"}]}))
    (folder / "in.json").write_text(json.dumps({"Records": [record(n) for n in range(100, 104)]}))
    return subprocess.run([f"{build_folder}/sluice", "replay", "--quiet", "--batch-size", "1", "--max-retries", "1", "in.json"],
                          cwd=folder, capture_output=True, text=True, timeout=600, env={**os.environ, "TMPDIR": str(folder)})


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        build(folder)
        done = replay(folder, DEBUG, "nothing")
        check("a good one", done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr[-3000:])
        for how in ("a record", "a text", "memory"):
            done = replay(folder, DEBUG, how)
            check(f"keeps {how}", "AddressSanitizer: heap-use-after-free" in done.stderr and "keeps.c" in done.stderr, done.stderr[-3000:])
        for how, text in (("a mark", "the handler marked record 1 of a slice of 1; an index must be below slice->n"),
                          ("a mark of its own", "the handler marked record 0 with 9, which is not a status"),
                          ("an outcome", "the handler returned 7, which is not a status")):
            for build_folder in (DEBUG, BUILD):
                if build_folder == BUILD:  # a plugin without sanitizers
                    subprocess.run(["cc", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include",
                                    "-o", folder / "handlers/keeps.so", "tests/runtime/plugins/keeps.c"], check=True)
                done = replay(folder, build_folder, how)
                check(f"{how}: said", f"HandlerMisuse: {text}" in done.stderr, done.stderr[-3000:])
                check(f"{how}: nothing of it is believed", done.returncode == 1 and "discarded" in done.stdout, done.stdout)
                check(f"{how}: nothing is parked", not (folder / "parked.jsonl").exists() or not (folder / "parked.jsonl").read_text())
        # One that does not open is an init error, with its place and its own reason; no record is given to it.
        for how, text in (("no open", "the moon is in the wrong house"), ("a mute open", "the handler keeps could not be opened and gave no reason")):
            done = replay(folder, BUILD, how)
            check(f"{how}: said", f"sluice.json: $.routes[0]: {text}" in done.stderr, done.stderr[-3000:])
            check(f"{how}: refused", done.returncode == 2 and not done.stdout, done.stdout)
    finish()


main()
