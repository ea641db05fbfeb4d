#!/usr/bin/env python3
"""`sluice backfill --until`: what is restored equals the history at that moment, over random histories, with kills."""
import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess

from exports import write_export
from harness import BUILD, check, ended, finish, kills, until as becomes, work_folder
from restore_world import T0, history, normal, state_at, text_of, wanted
import restore_world

kills()

folder = work_folder()
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
       "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
ROUTE = {"name": "restored", "handler": "replicate", "to": "sqlite:db?table=restored", "guard": "none"}


def config(**more):
    (folder / "restore.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl",
                                                     "routes": [{**ROUTE, **more}]}))


def write_archive(name, *rest):
    return restore_world.write_archive(folder / name, *rest)


def restore(archive, until, *args, wait=True, keys=True):
    keys = ("--keys", "PK,SK") if keys else ()
    process = subprocess.Popen([f"{BUILD}/sluice", "backfill", "--config", "restore.json", "--archive", archive, "--until", text_of(until),
                                "--temp", str(folder / "temp"), *keys, *args], cwd=folder, env=ENV, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    if wait:
        process.out, process.err = ended(process)
    return process


def fresh():
    for name in ("db", "db-wal", "db-shm", "cp", "parked.jsonl"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "temp", ignore_errors=True)


def restored():
    if not (folder / "db").exists():
        return {}
    db = sqlite3.connect(folder / "db", timeout=600)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'restored'").fetchone():
        return {}
    return {item["PK"]["S"]: normal(item) for item in (json.loads(text) for text, in db.execute("SELECT item FROM restored"))}


def same(what, state, run):
    check(f"{what}: exit status", run.returncode == 0, run.err)
    have, want = restored(), wanted(state)
    check(f"{what}: the table is as it was", have == want,
          f"{len(have)} items for {len(want)}; {[k for k in have.keys() | want.keys() if have.get(k) != want.get(k)][:5]}; {run.err}")
    check(f"{what}: nothing is left of the temporary files", not list((folder / "temp").iterdir()))


def says(run, changes, until, archive_from=T0, base=None):
    """The numbers of what was read. Changes of the base's own second count as later ones."""
    inside = [c for c in changes if archive_from <= c[0] < until and (base is None or c[0] >= base)]
    newest = {n: after for _, n, after, _ in inside}
    removed = sum(not after for after in newest.values())
    line = next(line for line in run.err.splitlines() if "the table had" in line)
    check("it says how many items there were", f"the table had {len(restored())} items; {removed} were removed" in line, (line, removed))
    line = next(line for line in run.err.splitlines() if "changes, " in line)
    words = [int(word.rstrip(",;")) for word in line.split() if word.rstrip(",;").isdigit()]
    doubles = words[0] - len([c for c in changes if c[0] >= archive_from])
    check("it counts each change of the archive", words[0] >= len(changes) - words[2] and words[1] + words[2] + words[3] + len(inside) == words[0],
          (line, len(inside), doubles))


def without_base():
    for seed in range(4):
        changes = history(seed)
        archive = write_archive("archive", changes, random.Random(seed))
        for until in (T0, T0 + 1, T0 + 37, T0 + 99, T0 + 100, T0 + 5000):
            fresh()
            run = restore(archive, until, keys=seed % 2 == 0)
            same(f"history {seed} until {until - T0}", state_at(changes, until), run)
            says(run, changes, until)
            check("it says that items that never changed are missing", "without a base" in run.err, run.err)
            check("it says when the archive may end too early", ("no change at or after" in run.err) == (until > T0 + 99), run.err)


def with_base():
    for seed in range(4, 8):
        changes = history(seed)
        at = T0 + 40
        early = {n: {"PK": {"S": f"old#{n}"}, "SK": {"N": "1"}, "a": {"S": "never changed"}} for n in range(100, 130)}
        base_state = {**state_at(changes, at), **early}
        rng = random.Random(seed)
        items = list(base_state.values())
        export = write_export(folder / f"export{seed}", [items[i::3] for i in range(3)], text_of(at).replace("Z", ".000Z"))
        archive = write_archive("archive", [c for c in changes if c[0] >= T0 + 20], rng)
        for until in (at, at + 1, T0 + 77, T0 + 5000):
            fresh()
            run = restore(archive, until, "--export", str(export))
            same(f"history {seed} from a base until {until - T0}", {**early, **state_at(changes, until)}, run)
            says(run, changes, until, T0 + 20, at)


def a_base_in_the_middle_of_a_second():
    changes = history(20)
    seen = [c for c in changes if c[0] < T0 + 40] + [c for c in changes if c[0] == T0 + 40][:2]
    export = write_export(folder / "mid", [list(state_at(seen, T0 + 5000).values())], text_of(T0 + 40).replace("Z", ".500Z"))
    fresh()
    run = restore(write_archive("archive", changes, random.Random(1)), T0 + 70, "--export", str(export))
    same("a base between two changes of a second", state_at(changes, T0 + 70), run)


def refused(what, run, *texts):
    check(f"{what}: exit status", run.returncode == 2, (run.returncode, run.err))
    for text in texts:
        check(f"{what}: {text}", text in run.err, run.err)
    check(f"{what}: nothing is written", not (folder / "db").exists() or not restored())
    check(f"{what}: one line says it", len(run.err.strip().splitlines()) == 1, run.err)


def what_is_refused():
    changes = history(9)
    rng = random.Random(9)
    whole = write_archive("whole", changes, rng)
    base = write_export(folder / "base", [list(state_at(changes, T0 + 50).values())], text_of(T0 + 50).replace("Z", ".000Z"))
    fresh()
    refused("a base newer than the moment", restore(whole, T0 + 49, "--export", str(base)), "after 2026-11-20T10:00:49")
    late = write_archive("late", [c for c in changes if c[0] > T0 + 60], rng, False)
    refused("an archive that begins after the base", restore(late, T0 + 90, "--export", str(base)), "begins at", "--consumer-since")
    for view in ("KEYS_ONLY", "OLD_IMAGE"):
        blind = write_archive("blind", history(9, view=view), rng, False)
        refused(f"a view of {view}", restore(blind, T0 + 90), "has no new image")
    gaps = [c for i, c in enumerate(changes) if not (200 <= i < 260)]
    refused("an archive with missing objects", restore(write_archive("gaps", gaps, rng), T0 + 95), "changes are missing", "--unsafe-order")
    (folder / "empty/objects.txt").parent.mkdir()
    (folder / "empty/objects.txt").write_text("{}")
    refused("an archive without an object", restore(str(folder / "empty"), T0 + 95), "holds no object of an archive")
    refused("also with a base", restore(str(folder / "empty"), T0 + 95, "--export", str(base), "--consumer-since", text_of(T0)), "holds no object")
    two = [(*c[:3], json.loads(json.dumps(c[3]).replace("table/orders/", "table/other/"))) if i % 2 else c for i, c in enumerate(changes)]
    refused("an archive of two tables", restore(write_archive("two", two, rng), T0 + 95), "holds the tables", "orders", "other")
    other = [(*c[:3], json.loads(json.dumps(c[3]).replace("table/orders/", "table/other/"))) for c in changes]
    refused("an export of another table", restore(write_archive("other", other, rng), T0 + 95, "--export", str(base)), "holds the tables")
    filtered = [c for c in changes if c[3]["eventName"] != "MODIFY"]
    refused("an archive behind a filter", restore(write_archive("filtered", filtered, rng), T0 + 95), "changes are missing", "filter")
    tail = [c for c in changes if c[0] < T0 + 20 or c[0] > T0 + 60]
    refused("changes that are missing after the base", restore(write_archive("tail", tail, rng), T0 + 95, "--export", str(base)),
            "changes are missing")
    fresh()
    run = restore(write_archive("gaps", gaps, rng), T0 + 95, "--unsafe-order")
    check("--unsafe-order takes what is there", run.returncode == 0 and "missing in" in run.err, run.err)
    refused_again = restore(whole, T0 + 95)
    named = restore(whole, T0 + 95, "--routes", "restored")
    check("before the archive is read", all(run.returncode == 2 and "folded" not in run.err and len(run.err.splitlines()) == 1
                                            for run in (named, refused_again)), named.err + refused_again.err)
    check("a target that is not empty is refused", refused_again.returncode == 2 and "not empty" in refused_again.err, refused_again.err)
    for route, text in (({**ROUTE, "guard": "inline"}, "writes guards"),
                        ({**ROUTE, "when": {"events": ["INSERT"]}}, "tests non-key attributes"),
                        ({"name": "restored", "handler": "archive", "to": "file:x"}, "no route can be backfilled")):
        fresh()
        (folder / "restore.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": [route]}))
        run = restore(whole, T0 + 95)
        check(f"a route that cannot restore: {route}", run.returncode == 2 and text in run.err and "restored" in run.err, run.err)
        check("that is said before the archive is read", len(run.err.strip().splitlines()) == 1, run.err)
    config()
    for args, text in ((("--until", "2026-11-20T10:00:00.5Z"), "whole second"), (("--until", "tomorrow"), "expected a time"),
                       (("--until", text_of(T0), "--table", "orders"), "--until needs --archive")):
        run = subprocess.run([f"{BUILD}/sluice", "backfill", "--config", "restore.json", "--archive", whole, *args], cwd=folder, env=ENV,
                             capture_output=True, text=True)
        check(f"{args}", run.returncode == 2 and text in run.stderr, run.stderr)


def new_images_alone():
    fresh()
    changes = history(11, view="NEW_IMAGE")
    run = restore(write_archive("archive", changes, random.Random(11)), T0 + 60)
    same("new images alone", state_at(changes, T0 + 60), run)
    check("it says that gaps cannot be seen", "no old image" in run.err, run.err)


def killed():
    changes = history(12, changes=16000, items=9000)
    archive = write_archive("large", changes, random.Random(12))
    rng = random.Random(13)
    for stop in (signal.SIGKILL, signal.SIGTERM):
        fresh()
        kills, until = 0, T0 + 3500
        for _ in range(60):
            process = restore(archive, until, "--checkpoint", "cp", "--write-units", "2500", wait=False)
            try:
                process.communicate(timeout=rng.uniform(0.02, 0.5))
                break
            except subprocess.TimeoutExpired:
                process.send_signal(stop)
                kills += 1
                process.out, process.err = ended(process)
        run = restore(archive, until, "--checkpoint", "cp") if process.returncode else process
        check(f"{stop.name}: it was ended at times ({kills})", kills >= 2, kills)
        if process is not run:
            same(f"after {kills} times {stop.name}", state_at(changes, until), run)
        else:
            check("the table is as it was", restored() == wanted(state_at(changes, until)))


def the_mark_outlives_the_items():
    """A kill while the temporary files go, or a disk that lost them: the table is not empty, and it is ours."""
    fresh()
    changes = history(14, changes=2000, items=1200)
    archive, until = write_archive("mark", changes, random.Random(14)), T0 + 400
    process = restore(archive, until, "--write-units", "300", wait=False)
    check("it begins to write", becomes(lambda: list((folder / "temp").glob("*/begun")) and restored()))
    process.kill()
    ended(process)
    have = len(restored())
    (items,) = (folder / "temp").glob("*/items.jsonl")
    items.unlink()
    run = restore(archive, until)
    same("the items were folded again", state_at(changes, until), run)
    check("it was killed in the middle", 0 < have < len(restored()), have)
    (folder / "temp").mkdir(exist_ok=True)
    again = restore(archive, until)
    check("when all is done, the mark is gone", again.returncode == 2 and "not empty" in again.err, again.err)


def a_fold_is_of_its_archive():
    """What a plan has folded is not restored when the archive has grown since, nor for an archive of the same name elsewhere."""
    fresh()
    changes, until = history(16), T0 + 5000
    write_archive("growing", changes[:len(changes) // 2], random.Random(16))
    check("a plan", restore("growing", until, "--plan").returncode == 0)
    check("nothing is written", not restored())
    write_archive("growing", changes, random.Random(16))
    same("an archive that has grown", state_at(changes, until), restore("growing", until))
    for name, seed in (("here", 17), ("there", 18)):
        write_archive(f"{name}/archive", history(seed), random.Random(seed))
        run = subprocess.run([f"{BUILD}/sluice", "backfill", "--config", "../restore.json", "--archive", "archive", "--until", text_of(until),
                              "--temp", str(folder / "temp"), "--keys", "PK,SK", "--plan"], cwd=folder / name, env=ENV, capture_output=True, text=True,
                             timeout=600)
        check(f"{name}: a plan", run.returncode == 0, run.stderr)
    check("each archive has a fold of its own", len(list((folder / "temp").iterdir())) == 2, list((folder / "temp").iterdir()))


def a_fold_that_is_kept():
    """It is of its objects and of its text, and of nobody else; a run that is refused leaves none."""
    fresh()
    changes, until = history(19), T0 + 60
    archive = write_archive("kept", changes, random.Random(19))
    plan = restore(archive, until, "--plan")
    (kept,) = (folder / "temp").iterdir()
    check("a plan says where the values are", plan.returncode == 0 and str(kept) in plan.err and "values" in plan.err, plan.err)
    check("they are for this user alone", {oct(p.stat().st_mode & 0o777) for p in kept.iterdir()} == {"0o600"}
          and kept.stat().st_mode & 0o777 == 0o700, [oct(p.stat().st_mode) for p in kept.iterdir()])
    check("the plan knows the number", f"items            {len(state_at(changes, until))}\n" in plan.out, plan.out)
    check("what is as it was is used again", "was folded before" in restore(archive, until, "--plan").err)
    for name in ("items.jsonl", "seal"):
        text = (kept / name).read_bytes()
        (kept / name).write_bytes(text.replace(b"1", b"2") if name == "items.jsonl" else b"")
        check(f"{name} was edited", "folded again" in restore(archive, until, "--plan").err)
        check(f"{name} is as it was", (kept / name).read_bytes() == text)
    (kept / "items.jsonl").write_text("")
    same("what was cut is folded again", state_at(changes, until), restore(archive, until))
    fresh()
    kept.mkdir(parents=True)
    kept.chmod(0o755)
    (kept / "items.jsonl").write_text("{}")
    run = restore(archive, until)
    refused("a folder that others can change", run, "no folder of this user alone", "--temp")
    check("it stays as it is", (kept / "items.jsonl").read_text() == "{}")
    shutil.rmtree(kept)
    kept.symlink_to(folder)
    refused("a link in its place", restore(archive, until), "no folder of this user alone")
    fresh()
    done = restore(archive, until, "--checkpoint", "cp")
    again = restore(archive, until, "--checkpoint", "cp")
    check("a restore that is done says so", done.returncode == 0 and again.returncode == 0 and "of a run that is done" in again.err, again.err)
    cp = json.loads((folder / "cp").read_text())
    (folder / "cp").write_text(json.dumps({**cp, "content": "0" * 64}))
    run = restore(archive, until, "--checkpoint", "cp")
    check("a checkpoint of other items is refused", run.returncode == 2 and "of other items" in run.err, run.err)
    check("a run that is refused leaves nothing", not list((folder / "temp").iterdir()), run.err)


def memory_is_bounded():
    """What is sorted is some 120 MB."""
    fresh()
    pad = "x" * 4000
    root = folder / "wide"
    root.mkdir()
    template = json.dumps(history(15, changes=1, items=1)[0][3], separators=(",", ":"))
    record = json.loads(template)
    with gzip.open(root / "a.jsonl.gz", "wt", compresslevel=1) as out:
        for i in range(30000):
            key = {"PK": {"S": f"user#{i}"}, "SK": {"N": "1"}}
            record["dynamodb"].update(Keys=key, NewImage={**key, "pad": {"S": pad}}, SequenceNumber=str(10**20 + i))
            record["dynamodb"].pop("OldImage", None)
            out.write(json.dumps({**record, "eventName": "INSERT"}, separators=(",", ":")) + "\n")
    process = restore(str(root), T0 + 5000, "--plan", wait=False)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check("a plan folds", process.returncode == 0 and "nothing was written" in process.stdout.read(), process.stderr.read())
    (items,) = (folder / "temp").glob("*/items.jsonl")
    check("all of it", items.stat().st_size > 120_000_000, items.stat().st_size)
    check("memory", "asan" in str(BUILD) or usage.ru_maxrss < 64 * 1024, f"{usage.ru_maxrss} KB")


config()
memory_is_bounded()
without_base()
with_base()
a_base_in_the_middle_of_a_second()
what_is_refused()
new_images_alone()
the_mark_outlives_the_items()
a_fold_is_of_its_archive()
a_fold_that_is_kept()
killed()
shutil.rmtree(folder)
finish()
