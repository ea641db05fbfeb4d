#!/usr/bin/env python3
"""`make demo`: a shop writes to a table of DynamoDB Local, `sluice tail` follows its stream through five handlers, and `sluice verify`
proves that what they made is right. What is left of it is in out/demo: look at it, change examples/demo/sluice.json, run it again."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import record  # noqa: E402

SLUICE = pathlib.Path(os.environ.get("BUILD", "build")).resolve() / "sluice"
OUT = pathlib.Path("out/demo").resolve()
SECONDS = float(os.environ.get("DEMO_SECONDS", "12"))


def say(text):
    print(f"\n== {text}", flush=True)


def show(*command, **more):
    print("$ " + " ".join(command).replace(str(SLUICE), "sluice"), flush=True)
    return subprocess.run(command, **more)


def paced(call, seconds, writes):
    """The same calls, as slow as people are."""
    def one(*args, **more):
        time.sleep(seconds / writes)
        return call(*args, **more)
    return one


def through(place):
    """Until when the tail has handled all changes."""
    try:
        return json.loads(place.read_text()).get("through", "")
    except (FileNotFoundError, ValueError):
        return ""


def caught_up(place, tail):
    now, end = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime()), time.time() + 60
    while through(place) <= now and time.time() < end and tail.poll() is None:
        time.sleep(0.2)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    place, folder = OUT / "place.json", tempfile.mkdtemp(prefix="demo-")
    say("DynamoDB Local starts, with a table whose stream has both images")
    client, _, service = record.begin("shop", folder)
    record.make_table(client.call, "shop-copy")
    endpoint = service["DYNAMODB_ENDPOINT"]
    env = {**os.environ, **service, "OUT": str(OUT), "ENDPOINT": endpoint}
    common = ("--config", str(HERE / "sluice.json"), "--table", "shop", "--endpoint-url", endpoint)
    tail = None
    try:
        say(f"sluice tail follows the stream; a shop writes for {SECONDS:.0f} seconds. The lines of tail:")
        tail = subprocess.Popen([SLUICE, "tail", *common, "--checkpoint", place], env=env, stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        record.shop(record.Table(paced(client.call, SECONDS, 260), "shop"), random.Random(str(time.time())))
        caught_up(place, tail)
        say("Is it right? sluice verify compares tables while the stream runs")
        verified = show(str(SLUICE), "verify", *common, "--consumer", str(place), "--quiet", env=env).returncode
        tail.send_signal(signal.SIGINT)
        say("The summary of tail:")
        print(tail.communicate(timeout=30)[0])
    finally:
        if tail and tail.poll() is None:
            tail.kill()
        subprocess.run([record.SERVICES / "stop.sh", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    say("What is left, in out/demo")
    show("sqlite3", "out/demo/totals.db", "SELECT item FROM totals")
    show("tail", "-n", "2", "out/demo/shipped.jsonl", "out/demo/large.jsonl")
    show("sh", "-c", "zcat $(find out/demo/archive -name '*.gz' | head -n 1) | head -n 1")
    print("\nThe configuration is examples/demo/sluice.json. Next: your own table (README.md), recipes (docs/COOKBOOK.md).")
    sys.exit(verified)


if __name__ == "__main__":
    main()
