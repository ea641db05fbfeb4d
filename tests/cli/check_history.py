#!/usr/bin/env python3
"""`sluice history` against a model: random archives in folders, with an index that is missing, fresh, stale, damaged, in many pieces."""
import json
import os
import random
import re
import shutil
import subprocess
import time

from harness import BUILD, WHOLE, check, finish, work_folder
from history_world import T0, World, history, item, normal, put, read, state

folder = work_folder()
place = folder / "records"


def write(objects, age_s=3600):
    for key, body in objects.items():
        path = place / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, times=(time.time() - age_s,) * 2)


def run(*args, stdin=None):
    done = subprocess.run([f"{BUILD}/sluice", "history", *args, str(place)], cwd=folder, capture_output=True, text=True, input=stdin, timeout=600)
    done.lines = [json.loads(line) for line in done.stdout.splitlines()] if "--json" in args else []
    found = re.search(r"(\d+) of (\d+) objects read \(\d+ KB\), (\d+) reads of the index", done.stderr)
    done.read, done.objects, done.index = map(int, found.groups()) if found else (None, None, None)
    return done


def ask(some):
    """The keys in a file, as people write them: in either form."""
    (folder / "keys").write_text("".join(json.dumps(k, ensure_ascii=False) + "\n" for k in some))
    return "--keys", "keys"


def volumes():
    return sorted((place / "_sluice/index").glob("*.v1"))


def told(run_):
    """What it said of each item: as history() has it."""
    out = {}
    for line in run_.lines:
        changes = {c["path"]: (normal(c["before"]) if "before" in c else None, normal(c["after"]) if "after" in c else None)
                   for c in line["changes"]}
        out.setdefault(item(line["key"]), []).append((line["sequence_number"], changes, "gap" in line))
    return out


def same(what, objects, some, *args):
    done = run("--json", *ask(some), *args)
    check(f"{what}: exit status", done.returncode == 0, done.stderr)
    have = told(done)
    for key in some:
        want = history(objects, key)
        check(f"{what}: {key}", have.get(item(key), []) == want, (have.get(item(key)), want))
    check(f"{what}: says what the archive has", done.objects == len(objects), done.stderr)
    return done


def random_archives():
    for seed in range(6 if WHOLE else 2):
        shutil.rmtree(place, ignore_errors=True)
        world = World(seed)
        objects = world.objects()
        write(objects)
        other = [pair[1] for pair in world.keys]
        done = same(f"world {seed}, first", objects, other)
        check("the first run reads everything", done.read == done.objects, done.stderr)
        check("and writes an index", len(volumes()) == 1 and "brought up to date" in done.stderr, (volumes(), done.stderr))
        one = world.keys[-1][0]
        done = same(f"world {seed}, by index", objects, [one])
        holds = sum(any(item(r["dynamodb"]["Keys"]) == item(one) for r in read({k: b})) for k, b in objects.items())
        check("then it reads the objects that hold the item", done.read == holds and done.index == 1, (done.stderr, holds))
        done = same(f"world {seed}, all by index", objects, other)
        done = same(f"world {seed}, without", objects, other[:5], "--no-index")
        check("--no-index reads everything", done.read == done.objects and done.index == 0, done.stderr)
        change(world, objects, seed)


def change(world, objects, seed):
    """Objects come late, are replaced, and go: the archive alone counts."""
    rng = random.Random(seed)
    keys_ = [pair[0] for pair in world.keys]
    for round_ in range(4):
        for _ in range(rng.randrange(1, 4)):
            _, record = world.changes[rng.randrange(len(world.changes))]
            put(objects, world.table, [record])
        for key in rng.sample(sorted(objects), 2):
            (place / key).unlink(missing_ok=True)
            del objects[key]
        write(objects)
        done = same(f"world {seed}, changed {round_}", objects, keys_)
        check("not everything is read again", done.read < done.objects or len(keys_) > 10, done.stderr)
        one = same(f"world {seed}, changed {round_}, one item", objects, keys_[-1:])
        check("an item's run costs little", one.read < one.objects / 3, one.stderr)
    check("what no index needs is gone", len(volumes()) <= 6, volumes())


def at_times():
    shutil.rmtree(place, ignore_errors=True)
    world = World(100, changes=400)
    objects = world.objects()
    for key in random.Random(1).sample(sorted(objects), 3):
        del objects[key]
    write(objects)
    keys_ = [pair[0] for pair in world.keys]
    for hours in (0, 1, 7, 15, 29, 40):
        when = T0 + hours * 3600
        text = subprocess.run(["date", "-u", "-d", f"@{when}", "+%Y-%m-%dT%H:%M:%SZ"], capture_output=True, text=True).stdout.strip()
        done = run("--json", "--at", text, *ask(keys_))
        want = [state(objects, key, when) for key in keys_]
        have = [(line.get("item"), line["known"], line["known"] and "doubt" not in line) for line in done.lines]
        for key, x, y in zip(keys_, have, want):
            check(f"at {text}: {key}", (item(x[0]), x[1], x[2]) == (item(y[0]), y[1], y[2]), (x, y))
        check("the exit status says whether all is sure", done.returncode == (0 if all(s for _, _, s in want) else 3), done.stderr)
        for key, (left, known, _) in list(zip(keys_, want))[:5]:
            alone = run("--at", text, "--key", json.dumps(key), "--quiet")
            check("for people: the item", item(json.loads(alone.stdout) if alone.stdout else None) == item(left), alone.stdout + alone.stderr)
            check("or why not", bool(left) or ("was not there" if known else "does not say") in alone.stderr, alone.stderr)


def windows():
    shutil.rmtree(place, ignore_errors=True)
    world = World(7)
    objects = world.objects()
    write(objects)
    key = world.keys[0][0]
    everything = told(run("--json", *ask([key])))[item(key)]
    times = {r["dynamodb"]["SequenceNumber"]: r["dynamodb"]["ApproximateCreationDateTime"] for _, r in world.changes}
    since, until = T0 + 5 * 3600, T0 + 20 * 3600
    day = subprocess.run(["date", "-u", "-d", f"@{since}", "+%Y-%m-%dT%H:%M:%SZ"], capture_output=True, text=True).stdout.strip()
    end = subprocess.run(["date", "-u", "-d", f"@{until}", "+%Y-%m-%d %H:%M:%S"], capture_output=True, text=True).stdout.strip()
    done = run("--json", "--since", day, "--until", end, *ask([key]))
    have = told(done)[item(key)]
    check("a window shows its changes", [h[0] for h in have] == [n for n, _, _ in everything if since <= times[n] < until], done.stderr)
    check("and reads no hours before or after it", done.read < run("--json", *ask([key])).read, done.stderr)
    for word in ("yesterday", "7w", "-1d", "2026-13-01"):
        done = run("--since", word, "--key", '{"PK":"a"}')
        check(f"--since {word} is refused", done.returncode == 2 and "--since" in done.stderr, done.stderr)
    check("so long ago is fine", run("--since", "1d", *ask([key])).returncode == 0)
    check("a day is fine", run("--until", "2026-01-01", *ask([key])).returncode == 0)


def damaged():
    """An index that lies about its size, its entries or its runs loses nothing; one that cannot be read or written, either."""
    shutil.rmtree(place, ignore_errors=True)
    world = World(8)
    objects = world.objects()
    write(objects)
    keys_ = [pair[0] for pair in world.keys]
    same("before", objects, keys_)
    volume, = volumes()
    whole = volume.read_bytes()
    for what, body in (("cut", whole[:-1]), ("empty", b""), ("longer", whole + b"x")):
        volume.write_bytes(body)
        done = same(f"an index that is {what}", objects, keys_)
        check("is not used", done.read == done.objects, done.stderr)
        check("and is written anew", volume.read_bytes() == whole, what)
    (place / "_sluice/index/notes.txt").write_text("hello")
    (place / "_sluice/index/1-1-zz.v1").write_text("hello")
    volume.write_bytes(whole[:-40 * 3] + bytes(40 * 3))
    done = same("an index with runs that are none", objects, keys_)
    volume.write_bytes(whole)
    shutil.rmtree(place / "_sluice")
    (place / "_sluice").write_text("in the way")
    done = same("an index that cannot be written", objects, keys_)
    check("it says so", "the index cannot be" in done.stderr, done.stderr)


def many_pieces():
    """An hour at a time is archived and indexed: the pieces are put together."""
    shutil.rmtree(place, ignore_errors=True)
    world = World(9, items=30, changes=1500, hours=60)
    objects, have = sorted(world.objects(most=6).items()), {}
    keys_ = [pair[0] for pair in world.keys]
    most = 0
    hours = sorted({key.split("/")[1] for key, _ in objects})
    for n, hour in enumerate(hours):
        have.update({key: body for key, body in objects if key.split("/")[1] == hour})
        write(have)
        done = same(f"hour {n}", have, keys_[n % 30:n % 30 + 1])
        most = max(most, len(volumes()))
    check("there are never many", most <= 18, most)
    check("and they were put together", len(volumes()) < 40, len(volumes()))
    done = same("all hours", have, keys_)
    check("all is known", done.index >= 1 and done.read == done.objects - sum(
        not any(item(r["dynamodb"]["Keys"]) in {item(k) for k in keys_} for r in read({k: b})) for k, b in have.items()), done.stderr)
    one = same("one item of all hours", have, keys_[-1:])
    check("costs its objects", one.read < one.objects / 2, one.stderr)


def recent():
    """Hours that are still being written are read, and not written down."""
    shutil.rmtree(place, ignore_errors=True)
    world = World(10, changes=0)
    now = int(time.time())
    for n in range(400):
        world.add(now - 400 + n, 10**20 + n)
    objects = world.objects(most=3)
    write(objects)
    same("recent", objects, [pair[0] for pair in world.keys])
    check("nothing is written down", not volumes(), volumes())


def growing():
    """A change that is missing before one that came while the names were listed may have come where the listing was past."""
    shutil.rmtree(place, ignore_errors=True)
    world = World(13, changes=400)
    objects = world.objects()
    keys_ = [pair[0] for pair in world.keys]
    for key in random.Random(2).sample(sorted(objects), 3):
        del objects[key]
    for age_s, is_told in ((5, True), (-60, False)):
        write(objects, age_s)
        have = told(run("--json", *ask(keys_)))
        for key in keys_:
            want = [(number, changes, gap and is_told) for number, changes, gap in history(objects, key)]
            check(f"objects {age_s} s old: {key}", have.get(item(key), []) == want, (have.get(item(key)), want))
    check("changes are missing", any(gap for key in keys_ for _, _, gap in history(objects, key)))


def one_folder():
    """Without hours in the keys, names part the objects."""
    shutil.rmtree(place, ignore_errors=True)
    world = World(11, changes=6000, hours=100)
    objects = {}
    for _, record in world.changes:
        key = put(objects, world.table, [record])
        objects["all/" + key.split("/")[-1]] = objects.pop(key)
    write(objects)
    keys_ = [pair[0] for pair in world.keys]
    same("one folder", objects, keys_[:3])
    late = {"all/" + put({}, world.table, [r]).split("/")[-1].replace("-1-", "-1-f"): objects["all/" + put({}, world.table, [r]).split("/")[-1]]
            for _, r in world.changes[1000:1001]}
    objects.update(late)
    write(late)
    done = same("one folder with a late object", objects, keys_[-1:])
    check("a part is read again", 0 < done.read < done.objects / 2, done.stderr)


def views_and_words():
    shutil.rmtree(place, ignore_errors=True)
    for view in ("NEW_IMAGE", "KEYS_ONLY"):
        shutil.rmtree(place, ignore_errors=True)
        world = World(12, changes=60, view=view)
        objects = world.objects()
        write(objects)
        key = world.keys[0][0]
        done = run(*ask([key]))
        own = [r for k, r in world.changes if k == 0]
        check(f"{view}: every change is told", done.returncode == 0 and len(re.findall(r"^20\S+  (INSERT|MODIFY|REMOVE)", done.stdout, re.M)) == len(own), done.stdout)
        if view == "KEYS_ONLY":
            check("what has no image says so", "no image of it" in done.stdout, done.stdout)
    shutil.rmtree(place, ignore_errors=True)
    world = World(13, changes=300)
    objects = world.objects()
    write(objects)
    done = run(*ask([pair[0] for pair in world.keys]))
    removed = [r for _, r in world.changes if r["eventName"] == "REMOVE"]
    check("who removed it", done.stdout.count("REMOVE  by TTL") == sum("userIdentity" in r for r in removed), done.stdout)
    for key, why in (('{"PK":7', "ends too early"), ("[1]", "JSON object"), ("{}", "one attribute or two"), ('{"PK":true}', "an S, an N or a B"),
                     ('{"PK":"a","SK":"b","c":"d"}', "one attribute or two"), ('{"PK":{"N":"x"}}', "number")):
        done = run("--key", key)
        check(f"{key} is refused", done.returncode == 2 and why in done.stderr and "--key" in done.stderr, done.stderr)
    done = run("--key", '{"OTHER":"a"}')
    check("a key of other attributes is told", done.returncode == 0 and "holds no change of this item" in done.stderr and "have the key" in done.stderr, done.stderr)
    (folder / "keys").write_text('{"PK":"a"}\n\n{"PK":\n')
    done = run("--keys", "keys")
    check("a file's line is named", done.returncode == 2 and "keys: line 3" in done.stderr, done.stderr)
    (folder / "keys").write_text("\n")
    check("no key at all", run("--keys", "keys").returncode == 2 and run().returncode == 2)
    done = run("--json", "--keys", "-", stdin=json.dumps(world.keys[0][0]) + "\n")
    check("keys from standard input", done.returncode == 0 and done.lines, done.stderr)
    other = World(14, changes=300, table="customers")
    write(other.objects())
    done = run("--key", json.dumps(world.keys[0][0]))
    check("two tables with one key are refused", done.returncode == 2 and "of the table" in done.stderr and "orders" in done.stderr, done.stderr)
    done = subprocess.run([f"{BUILD}/sluice", "history", "--key", '{"PK":"a"}', str(folder / "none")], capture_output=True, text=True)
    check("a folder that is not there", done.returncode == 2 and "none" in done.stderr, done.stderr)
    (folder / "empty").mkdir()
    done = subprocess.run([f"{BUILD}/sluice", "history", "--key", '{"PK":"a"}', str(folder / "empty")], capture_output=True, text=True)
    check("a folder without an archive", done.returncode == 2 and "holds no object" in done.stderr, done.stderr)


random_archives()
at_times()
windows()
damaged()
many_pieces()
recent()
growing()
one_folder()
views_and_words()
finish()
