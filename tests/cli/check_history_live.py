#!/usr/bin/env python3
"""`sluice history` from S3 (moto): the first run writes the index, later ones read a few objects; in a bucket that may only be read,
all is read."""
import json
import os
import re
import subprocess

from harness import BUILD, check, finish, work_folder
from history_world import World, history, item, normal, put, read
from servers import Servers

folder = work_folder()
servers = Servers("moto")
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.env}


def run(place, *args):
    done = subprocess.run([f"{BUILD}/sluice", "history", "--json", *args, place], cwd=folder, env=ENV, capture_output=True, text=True, timeout=600)
    check("exit status", done.returncode == 0, done.stderr)
    done.read, done.objects, done.index = map(int, re.search(r"(\d+) of (\d+) objects read \(\d+ KB\), (\d+) reads of the index", done.stderr).groups())
    return done


def same(what, objects, key, done):
    have = [(line["sequence_number"], {c["path"]: (normal(c["before"]) if "before" in c else None, normal(c["after"]) if "after" in c else None)
                                       for c in line["changes"]}, "gap" in line)
            for line in map(json.loads, done.stdout.splitlines()) if item(line["key"]) == item(key)]
    check(what, have == history(objects, key), (have, history(objects, key)))


servers.s3("PUT", "/lake")
world = World(21, items=60, changes=9000, hours=48)
objects = world.objects(most=12)
for name, body in objects.items():
    servers.s3("PUT", f"/lake/records/{name}", body)
key = world.keys[-1][0]
first = run("s3://lake/records/", "--key", json.dumps(key))
same("the first run", objects, key, first)
check("reads everything, and more than a page of it", first.read == first.objects == len(objects) > 1000, first.stderr)
again = run("s3://lake/records/", "--key", json.dumps(key))
same("the second run", objects, key, again)
check("reads the item's objects", again.read < len(objects) / 4 and again.index == 1, again.stderr)
_, late = world.changes[4000]
name = put(objects, world.table, [late])
servers.s3("PUT", f"/lake/records/{name}", objects[name])
once = run("s3://lake/records", "--key", json.dumps(key))
same("with a late object", objects, key, once)
check("its run alone is read again", once.read < again.read + 100, once.stderr)
check("and is known then", run("s3://lake/records", "--key", json.dumps(key)).read <= again.read + 1)
readonly = run("s3://lake/records/", "--key", json.dumps(key), "--no-index")
same("without an index", objects, key, readonly)
holds = [k for k, b in sorted(objects.items()) if any(item(r["dynamodb"]["Keys"]) == item(key) for r in read({k: b}))]
for gone in holds[1:-1:3]:
    servers.s3("DELETE", f"/lake/records/{gone}")
    del objects[gone]
check("changes are missing", any(gap for _, _, gap in history(objects, key)), holds)
same("without some objects", objects, key, run("s3://lake/records/", "--key", json.dumps(key)))
done = subprocess.run([f"{BUILD}/sluice", "history", "--key", json.dumps(key), "s3://nowhere/records/"], env=ENV, capture_output=True, text=True)
check("a bucket that is not there", done.returncode != 0 and "NoSuchBucket" in done.stderr and "nowhere" in done.stderr, done.stderr)
finish()
