#!/usr/bin/env python3
"""`sluice erase`: of the items nothing is left, in any format, file or report; of all others everything is as it was; with kills."""
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time

from harness import BUILD, check, finish, kills, work_folder
from history_world import T0, World, item

kills()
folder = work_folder()
SECRET = "PERSON-5EC2E7"


def write(objects, place):
    shutil.rmtree(place, ignore_errors=True)
    for key, body in objects.items():
        path = place / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def config(*routes, **more):
    (folder / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": routes, **more}))


def erase(*args, wait=True, **more):
    process = subprocess.Popen([f"{BUILD}/sluice", "erase", *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **more})
    if wait:
        process.out, process.err = process.communicate(timeout=600)
    return process


def sluice(*args):
    return subprocess.run([f"{BUILD}/sluice", *args], cwd=folder, capture_output=True, text=True, timeout=600)


def lines(place):
    """[(object, line)] of an archive."""
    out = []
    for path in sorted(place.rglob("*")):
        if path.is_file() and re.search(r"\.jsonl?(\.gz)?$", path.name) and "_sluice" not in str(path):
            body = path.read_bytes()
            text = (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode()
            out += [(str(path.relative_to(place)), line) for line in text.split("\n") if line]
    return out


def grep(*places, words=(SECRET,)):
    """Files that hold a word, as they are or unpacked."""
    found = []
    for path in (p for place in places for p in ([place] if place.is_file() else place.rglob("*")) if p.is_file()):
        body = path.read_bytes()
        if body[:2] == b"\x1f\x8b":
            body += gzip.decompress(body)
        found += [str(path) for word in words if word.encode() in body]
    return found


def people(world, some):
    """The items of the numbers `some` get a value that nobody else has."""
    for k, record in world.changes:
        for name in ("NewImage", "OldImage"):
            if k in some and name in record["dynamodb"]:
                record["dynamodb"][name] = {**record["dynamodb"][name], "email": {"S": f"{SECRET}-{k}@example.com"}}


def keys_file(world, some):
    (folder / "people").write_text("".join(json.dumps(world.keys[k][1], ensure_ascii=False) + "\n" for k in some))
    return "--keys", "people"


def digest_name(records):
    """The name that the archive gives an object of these records."""
    import hashlib
    text, last = "0", None
    for r in records:
        if r["eventSourceARN"] != last:
            text += r["eventSourceARN"] + "\n"
        last = r["eventSourceARN"]
        text += r["dynamodb"]["SequenceNumber"] + "\n" + r["eventID"] + "\n"
    return f"{records[0]['dynamodb']['SequenceNumber']:0>40}-{len(records)}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.jsonl.gz"


def archive(world, place, doubles=.1):
    """An archive with the names that the handler gives."""
    out = {}
    for _, body in world.objects(doubles=doubles).items():
        records = [json.loads(line) for line in gzip.decompress(body).decode().split("\n") if line]
        when = records[0]["dynamodb"]["ApproximateCreationDateTime"]
        out[f"{world.table}/hour={when // 3600}/{digest_name(records)}"] = body
    write(out, place)
    return out


def is_erased(before, after, world, some):
    """Line by line: what was of the items is a stub, what was not is as it was."""
    own = {item(world.keys[k][0]) for k in some}
    check("as many lines in the same objects", [o for o, _ in before] == [o for o, _ in after], (len(before), len(after)))
    runs, pseudonyms = set(), {}
    for (_, old), (_, new) in zip(before, after):
        x, y = json.loads(old), json.loads(new)
        key = item(x["dynamodb"]["Keys"])
        if key not in own:
            check("another item's line is as it was", old == new, (old, new))
            continue
        body = y["dynamodb"]
        check("a stub has the change's identifiers", (y["eventID"], y["eventName"], y["eventSourceARN"], body["SequenceNumber"],
                                                      body["ApproximateCreationDateTime"], set(body["Keys"])) ==
              (x["eventID"], x["eventName"], x["eventSourceARN"], x["dynamodb"]["SequenceNumber"], x["dynamodb"]["ApproximateCreationDateTime"],
               set(x["dynamodb"]["Keys"])) and "NewImage" not in body and "OldImage" not in body and "SizeBytes" not in body, new)
        runs.add(y["sluice_erased"])
        pseudonyms.setdefault(key, set()).add(next(iter(body["Keys"].values()))["S"])
    return runs, pseudonyms


def of_record():
    for seed in range(4):
        place = folder / "records"
        world = World(seed, changes=500)
        some = random.Random(seed).sample(range(10), 4)
        people(world, some)
        archive(world, place)
        before = lines(place)
        config({"name": "record", "handler": "archive", "to": "file:records", "format": "record"})
        plan = erase("--plan", *keys_file(world, some), "--report", "plan.json")
        held = sum(json.loads(line)["dynamodb"]["SequenceNumber"] in {r["dynamodb"]["SequenceNumber"] for k, r in world.changes if k in some} for _, line in before)
        check("the plan says what is held", plan.returncode == 3 and f"record: {held} records in " in plan.out and "would be erased" in plan.out, plan.out + plan.err)
        check("and writes nothing", lines(place) == before and not (place / "_sluice").exists(), plan.out)
        done = erase(*keys_file(world, some), "--report", "report.json", SLUICE_ERASE_KEY="s3cret")
        check("it is done, but for the table", done.returncode == 3 and "0 still hold something" in done.out and done.out.count("to do:") == 1, done.out + done.err)
        runs, pseudonyms = is_erased(before, lines(place), world, some)
        report = json.loads((folder / "report.json").read_text())
        check("one run did it", runs == {report["erasure"]}, runs)
        check("an item has one pseudonym, which the report has", {p for ps in pseudonyms.values() for p in ps} <= set(report["items"]) and
              all(len(ps) == 1 for ps in pseudonyms.values()) and len(report["items"]) == 4, report)
        check("nothing of the people is left", not grep(place, folder / "report.json", folder / "plan.json"), grep(place, folder / "report.json"))
        ledger, = (place / "_sluice/erasures").iterdir()
        told = json.loads(ledger.read_text())
        check("the ledger says which objects", sum(o["records"] for o in told["objects"]) == held == told["records"] and
              all((place / o["object"]).exists() for o in told["objects"]), told)
        readers(world, some, place)
        again = erase(*keys_file(world, some))
        check("again: there is nothing", "record: 0 records in 0 of" in again.out and again.returncode == 3, again.out)


def readers(world, some, place):
    """What remains replays, verifies, restores, and tells the others' histories."""
    others = [k for k in range(len(world.keys)) if k not in some]
    (folder / "others").write_text("".join(json.dumps(world.keys[k][0], ensure_ascii=False) + "\n" for k in others))
    told = [json.loads(line) for line in sluice("history", "--json", "--quiet", "--keys", "others", str(place)).stdout.splitlines()]
    check("the others have their histories", len(told) == sum(k not in some for k, _ in world.changes) and not any("gap" in t for t in told), len(told))
    files = [str(p) for p in sorted(place.rglob("*.jsonl.gz"))]
    decoded = [json.loads(line)["eventID"] for line in sluice("decode", *files).stdout.splitlines()]
    check("decode passes over what was erased", set(decoded) == {r["eventID"] for k, r in world.changes if k not in some}, len(decoded))
    (folder / "copy.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:failed", "routes": [
        {"name": "copy", "handler": "archive", "to": "file:copy", "format": "record"}]}))
    shutil.rmtree(folder / "copy", ignore_errors=True)
    done = sluice("replay", "--quiet", "--config", "copy.json", *files)
    check("it replays", done.returncode == 0 and {json.loads(line)["eventID"] for _, line in lines(folder / "copy")} == set(decoded), done.stdout + done.stderr)
    (folder / "any.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:failed", "routes": [
        {"name": "any", "handler": "replicate", "to": "sqlite:any.db?table=u"},
        {"name": "record", "handler": "archive", "to": "file:records", "format": "record"}]}))
    (folder / "one.json").write_text(json.dumps({"Records": [world.changes[0][1]]}))
    (folder / "source.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:failed", "routes": [
        {"name": name, "handler": "replicate", "to": f"sqlite:any.db?table={name}"} for name in "tu"]}))
    sluice("replay", "--quiet", "--config", "source.json", "one.json")
    done = sluice("verify", "--archives", "--table", "sqlite:any.db?table=t", "--config", "any.json", "--json")
    check("verify ran", "objects" in done.stdout, done.stdout[-600:] + done.stderr[-600:])
    verdict, = (json.loads(line) for line in done.stdout.splitlines() if '"archive"' in line and '"objects"' in line)
    check("the archive is whole", verdict["gaps"] == verdict["damaged"] == verdict["unreadable"] == verdict["without_images"] == 0 and verdict["erased"] > 0, verdict)


def restored(place, until):
    (folder / "restore.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:failed", "routes": [
        {"name": "restored", "handler": "replicate", "to": "sqlite:restored.db?table=r", "guard": "none"}]}))
    for name in folder.glob("restored.db*"):
        name.unlink()
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
    done = sluice("backfill", "--config", "restore.json", "--archive", str(place), "--until", text, "--temp", "temp")
    check("it restores", done.returncode == 0, done.stdout + done.stderr)
    if not (folder / "restored.db").exists():
        return {}
    db = sqlite3.connect(folder / "restored.db")
    return {image["PK"]["S"]: item(image) for image in (json.loads(text) for text, in db.execute("SELECT item FROM r"))}


def restore():
    """To a moment before and after the erasure: the same, without the people."""
    place = folder / "records"
    world = World(77, changes=0)
    world.keys = [({"PK": {"S": f"k{i}"}},) * 2 for i in range(20)]
    for n in range(400):
        world.add(T0 + n * 60, 10**20 + n)
    people(world, (1, 2, 3))
    archive(world, place)
    config({"name": "record", "handler": "archive", "to": "file:records", "format": "record"})
    moments = [T0 + 3600, T0 + 5 * 3600, T0 + 7 * 3600]
    before = [restored(place, m) for m in moments]
    check("there is something of them", sum(f"k{i}" in b for b in before for i in (1, 2, 3)) > 0)
    erase(*keys_file(world, (1, 2, 3)))
    for was, moment in zip(before, moments):
        want = {k: v for k, v in was.items() if k not in ("k1", "k2", "k3")}
        check("the others are restored", restored(place, moment) == want, moment)


def killed():
    """Ended anywhere, again and again: each object is as it was or as it is to be, and in the end it is done."""
    place = folder / "records"
    world = World(5, changes=900)
    some = [0, 1, 2, 3, 4]
    people(world, some)
    archive(world, place)
    before = lines(place)
    config({"name": "record", "handler": "archive", "to": "file:records", "format": "record"})
    rng, ended = random.Random(3), 0
    started = time.monotonic()
    erase("--plan", *keys_file(world, some))
    took = time.monotonic() - started
    for _ in range(14):
        process = erase(*keys_file(world, some), wait=False)
        time.sleep(rng.uniform(0, 2 * took))
        if process.poll() is None:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
            ended += 1
        process.communicate()
        check("each object is whole", [o for o, _ in lines(place)] == [o for o, _ in before])
    done = erase(*keys_file(world, some))
    check(f"after {ended} ends it is done", done.returncode == 3 and "0 still hold something" in done.out, done.out + done.err)
    is_erased(before, lines(place), world, some)
    check("nothing is left", not grep(place), grep(place))


def formats():
    """Lines go; an object without lines, too."""
    for format_ in ("item", "export", "json"):
        for compression in ("gzip", "none"):
            place = folder / "out"
            shutil.rmtree(place, ignore_errors=True)
            world = World(31, changes=0)
            world.keys = [({"PK": {"S": f"k{i}"}, "S\"K\u00e9": {"N": str(i)}},) * 2 for i in range(12)]
            for n in range(300):
                world.add(T0 + n, 10**20 + n)
            people(world, (1, 2))
            route = {"name": "a", "handler": "archive", "to": "file:out", "format": format_, "compression": compression, "key": "{PK}/"}
            config(route)
            (folder / "in.json").write_text(json.dumps({"Records": [r for _, r in world.changes]}))
            done = sluice("replay", "--quiet", "in.json")
            check("they are archived", done.returncode == 0, done.stderr)
            before = lines(place)
            done = erase(*keys_file(world, (1, 2)))
            check(f"{format_}: done", done.returncode == 3 and "0 still hold something" in done.out and done.out.count("to do:") == 1, done.out + done.err)
            check(f"{format_}: nothing is left", not grep(place) and bool(before), grep(place))
            want = [(o, line) for o, line in before if SECRET not in line and not re.search(r'"PK": ?(\{"S": ?)?"k[12]"', line)]
            check(f"{format_}: the others' lines are as they were", lines(place) == want, (len(before), len(want), len(lines(place))))
            check("nothing of ours is beside them", not list(place.rglob("_sluice")))
            check("objects without lines are gone", not list(place.glob("k1/*")) and list(place.glob("k3/*")))


def everything():
    """A configuration with all kinds of routes; the source table; parked copies."""
    db = folder / "all.db"
    db.unlink(missing_ok=True)
    shutil.rmtree(folder / "records", ignore_errors=True)
    world = World(41, changes=0)
    world.keys = [({"PK": {"S": f"k{i}"}},) * 2 for i in range(8)]
    for n in range(120):
        world.add(int(time.time()) - 300 + n, 10**20 + n)
    people(world, range(8))
    config({"name": "record", "handler": "archive", "to": "file:records", "format": "record"},
           {"name": "replica", "handler": "replicate", "to": "sqlite:all.db?table=replica"},
           {"name": "other", "handler": "replicate", "to": "sqlite:all.db?table=other", "guard": {"table": "guards"}},
           {"name": "mails", "handler": "view", "to": "sqlite:all.db?table=mails", "key": {"PK": "{email}", "SK": "{PK}"}, "missing": "skip"},
           {"name": "totals", "handler": "aggregate", "to": "sqlite:all.db?table=totals", "missing": "skip", "counters": [{"key": {"PK": "all"}, "add": {"n": 1}}]},
           {"name": "mail", "handler": "notify", "to": "jsonl:sent", "message": "{PK}"}, on_failure="file:parked")
    (folder / "in.json").write_text(json.dumps({"Records": [r for _, r in world.changes]}))
    done = sluice("replay", "--quiet", "in.json")
    check("they are there", done.returncode == 0, done.stdout + done.stderr)
    first = next(c for c in world.changes if c[0] != 7)
    parked = folder / "parked/t"
    parked.mkdir(parents=True)
    (parked / "one.json").write_text(json.dumps({"route": "replica", "record": first[1]}))
    (parked / "two.json").write_text(json.dumps({"route": "replica", "record": next(r for k, r in world.changes if k == 7)}))
    (parked / "three.json").write_text('{"Records": "of a mapping"}')
    there = [k for k in range(7) if world.states.get(k)]
    some = [first[0], *[k for k in there if k != first[0]][:2]]
    (folder / "source.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": [
        {"name": "s", "handler": "replicate", "to": "sqlite:source.db?table=src", "guard": "none"}]}))
    (folder / "source.db").unlink(missing_ok=True)
    check("the source", sluice("replay", "--quiet", "--config", "source.json", "in.json").returncode == 0)
    args = ("--table", "sqlite:source.db?table=src", "--max-lag", "0", *keys_file(world, some))
    done = erase("--plan", *args)
    check("items that are still there are refused", done.returncode == 2 and "still has" in done.err and "delete them" in done.err, done.out + done.err)
    db_ = sqlite3.connect(folder / "source.db")
    texts = [text for text, in db_.execute("SELECT item FROM src")]
    db_.executemany("DELETE FROM src WHERE item = ?", [(text,) for text in texts if json.loads(text)["PK"]["S"] in [f"k{k}" for k in some]])
    db_.commit()
    done = erase(*args, "--report", "report.json")
    left = [line for line in done.out.splitlines() if "to do:" in line]
    check("all is done but what cannot be read", done.returncode == 3 and len(left) == 1 and "parked in file:parked" in left[0] and "three.json" in left[0],
          done.out + done.err)
    n = sum(k in there for k in some)
    check("rows are gone", n > 1 and f"replica: {n} row{'s' * (n != 1)}: removed" in done.out and f"other: {n} row{'s' * (n != 1)}: removed" in done.out, done.out)
    check("a parked copy is gone, another is not", not (parked / "one.json").exists() and (parked / "two.json").exists(), done.out)
    check("nothing of ours is beside them", not list((folder / "parked").rglob("_sluice")))
    check("what was sent is said", "mail: has sent messages" in done.out and "totals: adds up" in done.out, done.out)
    words = [f"{SECRET}-{k}@" for k in some]
    rows = [row for table in ("replica", "other", "mails") for row, in sqlite3.connect(folder / "all.db").execute(f"SELECT item FROM {table}")]
    check("nothing of them is in archives, rows, parked copies and the report", not grep(folder / "records", folder / "parked", folder / "report.json", words=words) and
          not any(word in row for word in words for row in rows), done.out)
    (parked / "three.json").unlink()
    done = erase(*args)
    check("then nothing is left to do", done.returncode == 0 and "nothing is left in what these routes keep" in done.out, done.out + done.err)
    check("and the report says so", erase(*args, "--report", "report.json").returncode == 0 and json.loads((folder / "report.json").read_text())["complete"])


def by_match():
    place = folder / "records"
    world = World(51, changes=300)
    people(world, (2, 5))
    archive(world, place)
    config({"name": "record", "handler": "archive", "to": "file:records", "format": "record"})
    pattern = json.dumps({"email": {"S": [{"prefix": SECRET}]}})
    done = erase("--match", pattern, "--plan")
    n = len({k for k, r in world.changes if k in (2, 5) and ("NewImage" in r["dynamodb"] or "OldImage" in r["dynamodb"])})
    check("the items are found by what is in them", f"{n} item{'s' * (n != 1)}: nothing was written" in done.out, done.out + done.err)
    check("they are erased", erase("--match", pattern).returncode == 3 and not grep(place))
    done = erase("--match", pattern)
    check("then nothing matches", done.returncode == 2 and "no item of the archives matches" in done.err, done.err)
    check("a pattern that is none", erase("--match", "{").returncode == 2)
    config({"name": "n", "handler": "notify", "to": "jsonl:sent", "message": "{PK}"})
    check("without an archive", "an archive of format record" in erase("--match", pattern).err)
    check("no item at all", erase().returncode == 2)


of_record()
restore()
killed()
formats()
everything()
def two_tables():
    place = folder / "records"
    a, b = World(61, changes=80), World(61, changes=80, table="customers")
    objects = {**a.objects(), **b.objects()}
    write(objects, place)
    before = lines(place)
    config({"name": "record", "handler": "archive", "to": "file:records", "format": "record"})
    done = erase("--key", json.dumps(a.keys[0][0]))
    check("two tables with one key are refused", done.returncode == 2 and "two tables" in done.err and "customers" in done.err, done.out + done.err)
    check("and nothing is written", lines(place) == before)


by_match()
two_tables()
finish()
