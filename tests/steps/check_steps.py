#!/usr/bin/env python3
"""The state machine of deploy/steps/ from plan to sum, played by player.py, with the real bootstrap as its function, an export in
moto's S3 and tables in DynamoDB Local: what is seeded equals the source, whatever is killed, throttled, damaged or missing on the
way, and what is wrong is said and stops it."""
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from stage import DEFINITION, SUBSTITUTIONS, TOP, Stage, check, item  # noqa: E402  first: it may begin again in moto's Python
import stage as counted  # noqa: E402
from exports import ID, ago  # noqa: E402
from function import BUILD, serve_front  # noqa: E402
from job import ITEMS, LONGER, SINCE, Job, succeeded  # noqa: E402

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
LARGE = [{**item(n), "note": {"S": "y" * 12000}} for n in range(400)]  # several pieces of a megabyte in a file


def whole_export(stage, place, keys):
    with Job(stage, "whole", place, SLUICE_WORK_WRITE_UNITS="100000") as job:
        run = job.run()
        output = succeeded("an export", run)
        check("its sum", output["pieces"] == len(keys) and output["items"] == len(ITEMS), output)
        for route in ("replica", "totals"):
            counts = output["routes"][route]
            check(f"the sum of {route}", counts["applied"] == len(ITEMS) and sum(counts.values()) == len(ITEMS), output)
        check("a route that does not follow from items takes no part", "say" not in output["routes"], output)
        plan = json.loads(stage.s3.get_object(Bucket="seeds", Key="seed/plans/whole.json")["Body"].read())
        check("the plan: a piece for each file, with its checksum and count",
              [piece["piece"] for piece in plan] == list(range(len(keys))) and {piece["file"] for piece in plan} == {key.partition(f"{ID}/")[2] for key in keys}
              and all(piece["md5"] for piece in plan) and sum(piece["items"] for piece in plan) == len(ITEMS), plan)
        check("each worker has its share of the budget", {piece["write_units"] for piece in plan} == {25000}, plan)
        job.equals("an export")
        again = succeeded("the same again", job.run("again"))
        check("nothing is written twice", all(again["routes"][name]["applied"] == 0 for name in ("replica", "totals")), again)
        job.equals("the same again")


def whole_scan(stage):
    stage.table("orders")
    stage.fill("orders", ITEMS)
    with Job(stage, "scan", "dynamodb://orders", SLUICE_WORK_SEGMENTS="16", SLUICE_WORK_KEYS="", SLUICE_WORK_READ_UNITS="100000") as job:
        output = succeeded("a scan", job.run())
        check("its sum", output["pieces"] == 16 and output["items"] == len(ITEMS), output)
        job.equals("a scan")
        for wrong in ({"piece": 0, "segment": 16, "of": 16}, {"piece": 0, "segment": 0, "of": 0}, {"piece": 0, "file": "data/a", "md5": "x"}):
            check(f"{wrong}: refused", job.ask({"backfill": wrong})[0] == "Function.OutsideSource", job.ask({"backfill": wrong}))


def many_turns(stage, place):
    """Deadlines so short, and a budget so small, that no piece is done in one turn."""
    for longer in LONGER:
        name = f"turns{longer}"
        with Job(stage, name, place, timeout_s=3 * longer, SLUICE_WORK_WRITE_UNITS=str(1000 // longer)) as job:
            run = job.run()
            if job.needs_longer(longer):
                continue
            output = succeeded("many turns", run)
            turns = [child.visited.count("Turn") for child in run.map_run.children]
            check("pieces took turns", max(turns) > 2 and output["items"] == len(LARGE), (turns, output))
            nexts = [answer["next"] for _, answer in job.answers if answer.get("done") is False]
            check("what is handed on is small", nexts and max(len(json.dumps(one)) for one in nexts) <= 8192)
            check("no turn was cut off", set(job.function.endings) == {"response"}, collections.Counter(job.function.endings))
            check("each item counts once", all(sum(counts.values()) == len(LARGE) for counts in output["routes"].values()), output)
            job.equals("many turns", LARGE)
            break


def too_many_turns(stage, place):
    text = DEFINITION.read_text()
    assert text.count("1000,") == 1
    short = stage.folder / "short.asl.json"
    short.write_text(text.replace("1000,", "2,"))
    for longer in LONGER:
        name = f"endless{longer}"
        with Job(stage, name, place, timeout_s=1.5 * longer, SLUICE_WORK_WRITE_UNITS=str(400 // longer)) as job:
            run = job.world.start(short, SUBSTITUTIONS, name, SINCE)
            if job.needs_longer(longer):
                continue
            check("a piece has so many turns and no more", run.status == "FAILED" and "Sluice.TooManyTurns" in run.cause, (run.status, run.cause))
            check("and has written meanwhile", len(stage.rows(f"{name}-replica")) > 0)
            break


def faults(stage, place):
    """Lambda throttles and breaks, sandboxes are killed at any moment, answers get lost."""
    chance = random.Random(SEED)
    first = iter([True])

    def fault(number, payload):
        has_plan = "plan" in payload["sluice"]
        if not has_plan and next(first, False):  # one of each at least
            return ("kill", 0)
        draw = {2: 0, 3: 0.1}.get(number, chance.random())
        return "throttle" if draw < 0.1 else "broken" if draw < 0.2 else ("kill", chance.random() * 0.5) if draw < 0.5 and not has_plan else None

    with Job(stage, "faults", place, fault) as job:
        lost = iter([True])
        job.lost = lambda payload: "piece" in payload["sluice"] and (next(lost, False) or chance.random() < 0.15)
        run = job.run()
        redrives = 0
        while run.status != "SUCCEEDED" and redrives < 10:
            # Four ends of the process in a row: in a piece they fail the Map, in the sum the run itself.
            check("what fails, fails for ends of the process", (run.state, run.error) in (("Pieces", "States.ExceedToleratedFailureThreshold"), ("Sum", "Runtime.ExitError")) and
                  "Runtime" in run.cause and "exited" in run.cause, (run.state, run.error, run.cause))
            run.redrive()
            redrives += 1
        output = succeeded("with faults", run)
        retries = collections.Counter(error for child in run.map_run.children for error in child.retries)
        check("they were met and tried again", {"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Runtime.ExitError", "States.Timeout"} <=
              set(retries) | set(run.retries), (retries, run.retries))
        check("each item counts once", output["items"] == len(ITEMS), output)
        job.equals("with faults")


def out_of_reach(stage, place):
    """The target is throttled, and the source out of order, at first always and then often: turns end with TryAgain, and go on."""
    chance, open_at = random.Random(SEED), []
    fronts = {}
    for variable, body in (("AWS_ENDPOINT_URL_DYNAMODB", b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow"}'),
                           ("AWS_ENDPOINT_URL", b"<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>slow</Message></Error>")):
        front = fronts[variable] = serve_front()
        front.behind = stage.services[variable].removeprefix("http://")
        refusal = (400 if b"__type" in body else 503, body)
        front.refuse = lambda request, refusal=refusal: refusal if "/seeds/" not in request.path and open_at and (
            time.time() < open_at[0] or chance.random() < 0.01) else None

    def fault(number, payload):
        if number == 2:  # after the plan
            open_at.append(time.time() + 8)

    with Job(stage, "reach", place, fault, timeout_s=6, **{name: f"http://127.0.0.1:{front.server_port}" for name, front in fronts.items()}) as job:
        job.world.pace = 0.02
        run = job.run()
        output = succeeded("out of reach for a while", run)
        retries = collections.Counter(error for child in run.map_run.children for error in child.retries)
        check("turns were tried again", retries["Function.TryAgain"] > 0 and set(retries) <= {"Function.TryAgain", "Sandbox.Timedout"}, retries)
        check("each item counts once, out of reach or not", output["items"] == len(ITEMS), output)
        job.equals("out of reach for a while")
    for front in fronts.values():
        front.shutdown()


def handlers_that_die(stage, place):
    """An item of which a plugin dies: the process that comes after it in the same place finds it out, parks it, and the rest is
    written. (One worker: with many, a retry mostly comes to another place.)"""
    handlers = stage.folder / "handlers"
    handlers.mkdir()
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include", "-o", handlers / "dies.so",
                    TOP / "tests/runtime/plugins/dies.c"], check=True)
    number = None
    for how, error in (("nothing", None), ("segv", "Runtime.ExitError"), ("exit", "Runtime.ExitError"), ("close", "Function.HandlerClosedDescriptors")):
        name = f"dies-{how}"
        with Job(stage, name, place, SLUICE_HANDLER_PATH=str(handlers), SLUICE_WORK_CONCURRENCY="1") as job:
            config = json.loads((stage.folder / f"{name}.json").read_text())
            config["routes"].append({"name": "dies", "handler": "dies", "how": how, "at": number or "-", "told": str(stage.folder / f"{name}.told"),
                                     "on_failure": f"jsonl:{stage.folder}/{name}.parked"})
            (stage.folder / f"{name}.json").write_text(json.dumps(config))
            run = job.run()
            output = succeeded(name, run)
            retries = {error for child in run.map_run.children for error in child.retries}
            told = (stage.folder / f"{name}.told").read_text().split()
            check(f"{name}: it is tried again", retries == ({error} if error else set()), retries)
            check(f"{name}: that item alone is parked", output["routes"]["dies"]["parked"] == (1 if error else 0) and len(set(told)) == len(ITEMS) - (1 if error else 0),
                  (output, len(set(told))))
            job.equals(name)
            number = number or sorted(told)[len(ITEMS) // 2]


def damaged_file(stage, prefix):
    """A file that changed after the plan, and then is as it was: the Map fails, and the redrive does the rest."""
    place, keys = stage.export(prefix, ITEMS, 8)
    whole = stage.s3.get_object(Bucket="exports", Key=keys[3])["Body"].read()
    for what, damage, error in (("another content", lambda: stage.s3.copy_object(Bucket="exports", Key=keys[3], CopySource=f"exports/{keys[4]}"), None),
                                ("half of it", lambda: stage.s3.put_object(Bucket="exports", Key=keys[3], Body=whole[:len(whole) // 2]), None),
                                ("gone", lambda: stage.s3.delete_object(Bucket="exports", Key=keys[3]), "NoSuchKey")):
        name = "damaged-" + what.replace(" ", "-")

        def fault(number, payload, damage=damage):
            if number == 2:  # after the plan
                damage()

        with Job(stage, name, place, fault) as job:
            run = job.run()
            child = next(child for child in run.map_run.children if child.status == "FAILED")
            check(f"{what}: the Map fails and names the file", run.status == "FAILED" and keys[3].rpartition("/")[2] in run.cause and
                  (not error or error in run.cause), (run.status, run.cause))
            check(f"{what}: not tried again in vain", not child.retries, child.retries)
            done = sum(child.status == "SUCCEEDED" for child in run.map_run.children)
            stage.s3.put_object(Bucket="exports", Key=keys[3], Body=whole)
            before = job.function.count
            run.redrive()
            output = succeeded(f"{what}: redriven", run)
            check(f"{what}: a redrive does what is missing", job.function.count - before == len(run.map_run.children) - done + 1 and "Plan" not in run.visited[1:],
                  (job.function.count - before, done))
            check(f"{what}: the sum is whole", output["items"] == len(ITEMS), output)
            job.equals(f"{what}, redriven")


def damaged_before_the_plan(stage, prefix):
    place, keys = stage.export(prefix, ITEMS, 4)
    root = f"{prefix}AWSDynamoDB/{ID}"
    whole = stage.s3.get_object(Bucket="exports", Key=keys[1])["Body"].read()
    listing = stage.s3.get_object(Bucket="exports", Key=f"{root}/manifest-files.json")["Body"].read()
    with Job(stage, "plans", place) as job:
        stage.s3.delete_object(Bucket="exports", Key=keys[1])
        run = job.run("missing")
        check("a file that is missing: no plan", run.status == "FAILED" and keys[1].rpartition("/")[2] in run.cause and not run.map_run, (run.error, run.cause))
        stage.s3.put_object(Bucket="exports", Key=keys[1], Body=whole)
        stage.s3.put_object(Bucket="exports", Key=f"{root}/manifest-files.json", Body=re.sub(rb'("itemCount": )(\d+)', rb'\g<1>1\2', listing, count=1))
        run = job.run("changed")
        check("a list that was changed: no plan", run.status == "FAILED" and "manifest-files" in run.cause and not run.map_run, (run.error, run.cause))
        stage.s3.put_object(Bucket="exports", Key=f"{root}/manifest-files.json", Body=listing)
        for given, word in (({"consumer_since": ago(60)}, "consumer"), ({"routes": "nosuch"}, "nosuch"), ({"routes": "say", **SINCE}, "say"),
                            ({"consumer_since": "yesterday"}, "consumer_since"), ({"unsafe_ordr": True}, "unsafe_ordr"), ({"routes": "replica,,totals"}, "no route")):
            run = job.run("refused", **given)
            check(f"{given}: no plan", run.status == "FAILED" and word in run.cause and not run.map_run, (run.error, run.cause))
        check("nothing was written", not stage.rows("plans-replica"))
        output = succeeded("only one route, in any order", job.run("one", routes="replica", unsafe_order=True))
        check("and it alone took part", set(output["routes"]) == {"replica"} and output["items"] == len(ITEMS) and not stage.rows("plans-totals"), output)


def many_routes(stage, place):
    """As many routes as a turn can count, with numbers of 13 digits, and one more."""
    with Job(stage, "routes", place) as job:
        path = stage.folder / "routes.json"
        config = json.loads(path.read_text())
        first = config["routes"][0]
        config["routes"] = [{**first, "name": f"replica-{n:03d}"} for n in range(100)]
        path.write_text(json.dumps(config))
        said = job.ask({"plan": {"run": "routes", "given": SINCE}})
        check("a hundred routes: no plan", said[0] == "Function.TooManyRoutes" and "100 routes" in said[1], said)
        most = (8192 - 1800) // (150 + len("replica-000"))
        names = [f"replica-{n:03d}" for n in range(most + 1)]
        check("one more than fit: no plan", job.ask({"plan": {"run": "routes", "given": {**SINCE, "routes": ",".join(names)}}})[0] == "Function.TooManyRoutes")
        plan = job.ask({"plan": {"run": "routes", "given": {**SINCE, "routes": ",".join(names[:-1])}}})
        check("as many as fit", isinstance(plan, dict), plan)
        piece = json.loads(stage.s3.get_object(Bucket="seeds", Key="seed/plans/routes.json")["Body"].read())[0]
        answer = job.ask({"backfill": piece})
        check("they take part", isinstance(answer, dict) and set(answer["routes"]) == set(names[:-1]), answer)
        large = {name: dict.fromkeys(counts, 9 * 10 ** 12) for name, counts in answer["routes"].items()}
        check("and have room for large numbers", len(json.dumps(large, separators=(",", ":"))) + 1800 <= 8192)


def outside(stage, place):
    """Items that name what the function is not configured for."""
    other, keys = stage.export("other/", ITEMS[:10], 1)
    assert other != place
    with Job(stage, "outside", place) as job:
        for file in (f"../../../other/{keys[0]}", "data/../../x/data/x.json.gz", "/data/x.json.gz", "data//x.json.gz", "data/./x.json.gz", "..", "/",
                     f"s3://exports/{keys[0]}", "data\\..\\x", "data/x\0.json.gz"):
            said = job.ask({"backfill": {"piece": 0, "file": file, "md5": "x", "items": 10, "any_order": True}})
            check(f"{file}: refused", said[0] == "Function.OutsideSource", said)
        for wrong in ({"piece": 0, "segment": 0, "of": 4}, {"piece": 0}):
            check(f"{wrong}: refused", job.ask({"backfill": wrong})[0] == "Function.OutsideSource", job.ask({"backfill": wrong}))
        for wrong, word in (({"file": 1}, "file"), ({"table": "orders"}, "table"), ({"state": []}, "state"), ({"time": "now"}, "time")):
            said = job.ask({"backfill": wrong})
            check(f"{wrong}: refused", said[0] == "Function.BadWorkItem" and word in said[1], said)
        for key in ("elsewhere/manifest.json", "seed", "seed/", "seed/../x", "seeds/x"):
            said = job.ask({"sum": {"results": key, "pieces": 1}})
            check(f"results {key}: refused", said[0] == "Function.BadWorkItem" and "SLUICE_WORK_PLACE" in said[1], said)
        for name in ("", "a/b", "..", "x" * 81):
            check(f"a run named {name}: refused", job.ask({"plan": {"run": name, "given": SINCE}})[0] == "Function.BadWorkItem", name)
        check("nothing was written", not stage.rows("outside-replica"))


def states_of_others(stage, place):
    """A state that is not this piece's, or none of ours."""
    for longer in LONGER:
        name = f"states{longer}"
        with Job(stage, name, place, timeout_s=1.5 * longer, SLUICE_WORK_WRITE_UNITS=str(400 // longer)) as job:
            job.ask({"plan": {"run": name, "given": SINCE}})
            plan = json.loads(stage.s3.get_object(Bucket="seeds", Key=f"seed/plans/{name}.json")["Body"].read())
            answer = job.ask({"backfill": plan[0]})
            if job.needs_longer(longer):
                continue
            check("a turn that is not the last", isinstance(answer, dict) and answer["done"] is False, answer)
            state = answer["next"]["state"]
            for what, wrong in (("of another file", {**plan[1], "state": state}), ("without its place's file", {**plan[0], "state": {**state, "place": {}}}),
                                ("without counts", {**plan[0], "state": {"place": state["place"]}}), ("of other routes", {**plan[0], "routes": "replica", "state": state})):
                said = job.ask({"backfill": wrong})
                check(f"a state {what}: refused", isinstance(said, tuple) and said[0] != "Function.TryAgain", said)
            break


def results_that_lie(stage, place):
    """What the sum says of results that are not those of a whole plan."""
    def entry(piece, **more):
        return {"Name": str(piece), "Output": json.dumps({"done": True, "piece": piece, "items": 10, "routes": {"r": {"applied": 9, "parked": 1}}, **more})}

    def put(succeeded, failed=(), bucket="seeds", file="seed/results/lies/SUCCEEDED_0.json", body=None):
        stage.s3.put_object(Bucket="seeds", Key="seed/results/lies/SUCCEEDED_0.json", Body=json.dumps(succeeded).encode() if body is None else body)
        stage.s3.put_object(Bucket="seeds", Key="seed/results/lies/manifest.json", Body=json.dumps(
            {"DestinationBucket": bucket, "MapRunArn": "arn", "ResultFiles": {"SUCCEEDED": [{"Key": file, "Size": 1}], "FAILED": list(failed), "PENDING": []}}).encode())

    with Job(stage, "lies", place) as job:
        def total(pieces, items=None):
            return job.ask({"sum": {"results": "seed/results/lies/manifest.json", "pieces": pieces, "items": items}})

        put([entry(0), entry(1), entry(2)])
        check("three of three", total(3, 30) == {"items": 30, "routes": {"r": {"applied": 27, "parked": 3}}, "pieces": 3}, total(3, 30))
        check("items not known", total(3)["items"] == 30)
        check("an item too few", total(3, 31)[0] == "Function.ItemsMissing" and "31" in total(3, 31)[1], total(3, 31))
        check("a piece too few", total(4, 30)[0] == "Function.PiecesMissing" and "missing: 3" in total(4, 30)[1], total(4, 30))
        check("a piece of another plan", total(2)[0] == "Function.BadResults", total(2))
        put([entry(0), entry(1), entry(1), entry(0)])
        check("pieces that are there twice count once", total(2, 20)["items"] == 20, total(2, 20))
        large = [entry(i, pad="x" * 150000) for i in range(40)]
        put(large)
        check("results of megabytes", total(40, 400)["pieces"] == 40, total(40, 400))
        put([entry(0)], failed=[{"Key": "seed/results/lies/FAILED_0.json", "Size": 1}])
        check("a piece that failed", total(1)[0] == "Function.PiecesFailed", total(1))
        put([entry(0)], bucket="exports")
        check("another bucket", total(1)[0] == "Function.BadResults", total(1))
        for file in ("elsewhere/SUCCEEDED_0.json", "seed/../SUCCEEDED_0.json", ""):
            put([entry(0)], file=file)
            check(f"a file at {file!r}", total(1)[0] == "Function.BadResults", total(1))
        put([entry(0)], file="seed/results/lies/SUCCEEDED_7.json")
        check("a file that is gone", total(1)[0] == "Function.NoSuchKey", total(1))
        whole = json.dumps([entry(0), entry(1)]).encode()
        for body in (b"", b"{}", b"null", b"[", whole[:-1], whole[:-9], whole[:20], b"[7]", b'[{"Output":7}]', b'[{"Output":"{"}]', b'[{"Name":"x"}]',
                     b'[{"Output":"{\\"done\\":false,\\"piece\\":0}"}]', b'[{"Output":"{\\"done\\":true}"}]', b'[{"Output":"[]"}]'):
            put([], body=body)
            check(f"a file that holds {body[:40]}", total(2)[0] == "Function.BadResults", total(2))


def main():
    with Stage() as stage:
        place, keys = stage.export("of/", ITEMS, 7)
        whole_export(stage, place, keys)
        whole_scan(stage)
        large, _ = stage.export("large/", LARGE, 2)
        few, _ = stage.export("few/", ITEMS[:10], 1)
        many_turns(stage, large)
        too_many_turns(stage, large)
        faults(stage, place)
        out_of_reach(stage, place)
        handlers_that_die(stage, place)
        damaged_file(stage, "damaged/")
        damaged_before_the_plan(stage, "unplanned/")
        many_routes(stage, few)
        outside(stage, place)
        states_of_others(stage, large)
        results_that_lie(stage, place)
    print(f"{counted.passed} passed, 0 failed")


main()
