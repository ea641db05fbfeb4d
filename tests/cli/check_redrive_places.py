#!/usr/bin/env python3
"""`sluice redrive` of queues, buckets and folders: 10,000 mixed messages against an oracle, kills, FIFO groups, receives that are spent,
signals, and answers that fail. Queues are moto's where the contract counts, and redrive_queue.py's where there are thousands of messages."""
import concurrent.futures
import functools
import json
import random
import signal
import time

from harness import WAIT_S, check, finish, until, work_folder
from redrive_queue import Server
from redrive_world import (CONFIG, FOREIGN, ROUTES, UNREADABLE, Oracle, Queue, Redrive, batch_info, failure, in_sns, outcomes, parked,
                           record, stream)
from servers import Servers

folder = work_folder()
services = Servers("moto", "dynamodb")
server = Server()
ONE = "in_flight=1"  # moto loses a deletion when two run at a time


def redrive(name, config=CONFIG):
    run = Redrive(folder / name, services, config)
    run.env["AWS_ENDPOINT_URL_SQS"] = server.url
    return run


def wait_for(name, condition):
    if not until(condition):
        check(name, False, "not within the time")


# ---- 10,000 mixed messages ----

class Mixed:
    """Messages of every kind, by a seed. `left`: what must stay, and why."""

    def __init__(self, seed):
        self.rng, self.oracle, self.left = random.Random(seed), Oracle(), {}
        self.n, self.counts = 0, dict.fromkeys(("done", "failed", "unreadable"), 0)

    def next_record(self, **more):
        self.n += 1
        return record(self.n, **more)

    def stay(self, body, outcome):
        self.left[body] = outcome
        self.counts[outcome] += 1
        return body

    def done(self, body):
        self.counts["done"] += 1
        return body

    def parked(self):
        rec, route = self.next_record(), self.rng.choice(["copy", "totals"])
        self.oracle.expect(rec, (route,))
        body = parked(rec, route)
        return self.done(in_sns(body) if self.n % 10 == 0 else body)

    def poison(self):
        rec = self.next_record()
        if self.n % 2:
            return self.stay(parked(rec, f"gone{self.n % 3}"), "failed")
        rec["dynamodb"]["NewImage"]["total"] = {"S": "not a number"}
        return self.stay(parked(rec, "totals"), "failed")

    def event(self):
        records = [self.next_record() for _ in range(self.rng.randint(1, 5))]
        for rec in records:
            self.oracle.expect(rec)
        kind = self.n % 3
        return self.done(failure(batch_info(records), records) if kind else json.dumps({"Records": records}))

    def half_bad_event(self):
        """One of its records fails: the message stays, and the good ones beside it are applied."""
        good, bad = self.next_record(), self.next_record()
        bad["dynamodb"]["NewImage"]["total"] = {"S": "x"}
        self.oracle.expect(good)
        self.oracle.expect(bad, ("copy",))
        return self.stay(failure(batch_info([good, bad]), [good, bad]), "failed")

    def array(self):
        """Two letters in one message: it goes when both are done."""
        return self.done("[" + ",".join(self.inner() for _ in range(2)) + "]")

    def inner(self):
        rec = self.next_record()
        self.oracle.expect(rec, ("copy",))
        return parked(rec, "copy")

    def unreadable(self):
        body = self.rng.choice(UNREADABLE + FOREIGN)
        self.n += 1
        return self.stay(body + " " * self.n if body else " " * self.n, "unreadable")

    def body(self):
        kinds = [self.parked] * 75 + [self.event] * 12 + [self.array] * 3 + [self.poison] + [self.half_bad_event] + [self.unreadable] * 8
        return self.rng.choice(kinds)()


def create_stream():
    stream["arn"] = services.create("orders", stream=True)["LatestStreamArn"]


def pointers(mixed, n):
    """Failure records that point into a real stream, and one of records that are not there any more."""
    arn = stream["arn"]
    for i in range(n * 3):
        rec = mixed.next_record()
        mixed.oracle.expect(rec)
        services.dynamodb("PutItem", TableName="orders", Item=rec["dynamodb"]["NewImage"])
    shard = services.streams("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    at = services.streams("GetShardIterator", StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    records = []
    while len(records) < n * 3:
        page = services.streams("GetRecords", ShardIterator=at)
        records, at = records + page["Records"], page["NextShardIterator"]
    bodies = [mixed.done(failure(batch_info(records[i:i + 3], shard))) for i in range(0, n * 3, 3)]
    fewer, more = batch_info(records[:2], shard), batch_info(records[:4], shard)
    bodies.append(mixed.stay(failure({**fewer, "batchSize": 5}), "failed"))
    bodies.append(mixed.stay(failure({**more, "batchSize": 2}), "failed"))
    bodies.append(mixed.stay(failure({**more, "shardId": "shardId-00000000000000000000-00000000"}), "failed"))
    return bodies


def the_mixed_ones():
    mixed = Mixed(17)
    bodies = [mixed.body() for _ in range(9500)] + pointers(mixed, 60)
    mixed.rng.shuffle(bodies)
    in_queue, in_moto, in_bucket = bodies[:9400], bodies[9400:9460], bodies[9460:]
    in_bucket += [mixed.body() for _ in range(10000 - len(bodies))]
    queue = server.queue("failed")
    for body in in_queue:
        queue.add(body)
    moto = Queue(services, "failed-too")
    moto.send(in_moto)
    services.s3("PUT", "/failures")
    keys = {}
    for i, body in enumerate(in_bucket):
        keys[f"parked/copy/2026/11/{i % 28 + 1:02}/{i:05}-ä b.json"] = body
    for key, body in keys.items():
        services.s3("PUT", f"/failures/{key}", body.encode())
    run = redrive("mixed")
    moto_place = f"sqs://failed-too?{ONE}&endpoint={services.env['MOTO_ENDPOINT']}"
    before = time.time()
    # (DynamoDB Local's ARNs have a Region of its own.)
    done = run.run("--region", "us-east-1", "--delete-done", "sqs://failed", moto_place, "s3://failures/parked")
    print(f"10,000 mixed messages: {time.time() - before:.1f} s")
    sums = outcomes(done.stdout)
    check("each message has one outcome", {k: sums[k] for k in mixed.counts} == mixed.counts, f"{sums} {mixed.counts} {done.stdout[-800:]} {done.stderr[-800:]}")
    check("... and all of them 10,000", sum(mixed.counts.values()) == 10000, mixed.counts)
    check("something failed: exit 1", done.returncode == 1)
    check("what was done is removed", sums["removed"] == mixed.counts["done"], sums)
    mixed.oracle.compare("mixed", run.folder)
    stays = sorted(b for b in in_queue if b in mixed.left)
    check("the queue has what was not done, and nothing else", sorted(m.body for m in queue.messages.values()) == stays, len(queue.messages))
    check("... released", all(m.until == 0 for m in queue.messages.values()))
    check("... nothing was removed that was not done", not set(queue.deleted_order) & mixed.left.keys())
    check("moto's queue likewise", sorted(moto.drain()) == sorted(b for b in in_moto if b in mixed.left))
    listed = services.s3("GET", "/failures?list-type=2&max-keys=1000&encoding-type=url").count("<Key>")
    check("the bucket likewise", listed == sum(b in mixed.left for b in in_bucket), listed)
    check("nothing is parked again", not (run.folder / "parked_again.jsonl").exists())
    named = {l.split()[1] for l in done.stdout.splitlines() if l.startswith(("done  ", "failed  ", "unreadable"))}
    check("a line for every message", len([n for n in named if "#" not in n]) >= 10000 - 3 * mixed.counts["done"] // 10, len(named))
    check("the next command is named", "next: " in done.stdout and "--match code='" in done.stdout, done.stdout[-500:])
    again = run.run("--region", "us-east-1", "--delete-done", "sqs://failed", timeout=WAIT_S)
    sums = outcomes(again.stdout)
    check("again: only what cannot be done is left", sums["done"] == 0 and sums["failed"] + sums["unreadable"] == len(stays), sums)
    mixed.oracle.compare("again", run.folder)


# ---- choosing, and looking only ----

def choosing():
    queue = server.queue("chosen")
    for n in range(300):
        queue.add(parked(record(n), ("copy", "totals")[n % 2], code=("MissingAttribute", "MissingKey", "TooLarge")[n % 3],
                         when="2026-11-20T21:04:00Z" if n < 100 else "2026-11-21T21:04:00Z"))
    run = redrive("chosen")
    done = run.run("--dry-run", "--match", "code=Missing*", "--match", "table=orders", "--route", "copy", "--since", "2026-11-21T00:00:00Z", "sqs://chosen")
    wanted = [n for n in range(300) if n % 2 == 0 and n % 3 < 2 and n >= 100]
    sums = outcomes(done.stdout)
    check("--dry-run: those that match are listed", sums["listed"] == len(wanted) and sums["unmatched"] == 300 - len(wanted) and done.returncode == 0, done.stdout[-500:])
    line = next(l for l in done.stdout.splitlines() if l.startswith("listed  "))
    check("... with route, code, age and key", all(x in line for x in ("route=copy", "code=Missing", "age=", 'key={"PK":{"S":"o')), line)
    check("... and it is said that SQS counts it", "which it counts" in done.stderr, done.stderr)
    check("... nothing ran, all are there", not (run.folder / "out.db").exists() and len(queue.messages) == 300 and all(m.until == 0 for m in queue.messages.values()))
    done = run.run("--delete-done", "--match", "code!=TooLarge", "--match", "kind=parked", "--limit", "50", "sqs://chosen")
    check("--limit", outcomes(done.stdout)["done"] == 50 and len(queue.messages) == 250 and done.returncode == 0, done.stdout[-500:])
    check("... the others are released", all(m.until == 0 for m in queue.messages.values()))
    check("... and none of those that do not match is done", all(json.loads(b)["code"] != "TooLarge" for b in queue.deleted_order))
    before = sum(m.receives for m in queue.messages.values())
    done = run.run("--limit", "1", "sqs://chosen")
    check("--limit 1 receives few", outcomes(done.stdout)["done"] == 1 and sum(m.receives for m in queue.messages.values()) == before + 10, done.stdout[-300:])
    done = run.run("sqs://chosen")
    check("without --delete-done all are done and stay", outcomes(done.stdout)["done"] == 250 and len(queue.messages) == 250 and "can be deleted" in done.stdout, done.stdout[-400:])


# ---- kills and signals ----

def kills():
    oracle, queue = Oracle(), server.queue("killed")
    for n in range(3000):
        rec, route = record(n), ("copy", "totals")[n % 2]
        oracle.expect(rec, (route,))
        queue.add(parked(rec, route))
    run, rng = redrive("killed"), random.Random(5)
    for _ in range(4):
        left = len(queue.messages)
        process = run.start("--delete-done", "--timeout", "1", "--visibility", "3", "sqs://killed")
        target = left - rng.randint(200, 500)
        wait_for("it gets on", lambda: len(queue.messages) <= target or process.poll() is not None)
        process.kill()
        process.communicate(timeout=WAIT_S)
    check("after four kills, some are left", 0 < len(queue.messages) < 3000, len(queue.messages))
    wait_for("what was held comes back", lambda: all(m.until < time.time() for m in queue.messages.values()))
    done = run.run("--delete-done", "sqs://killed")
    check("the last run finishes", done.returncode == 0 and not queue.messages, done.stdout[-300:] + done.stderr[-300:])
    check("each message was deleted once", len(queue.deleted_order) == 3000)
    oracle.compare("killed", run.folder)


def signals():
    for number in (signal.SIGTERM, signal.SIGINT):
        queue = server.queue(f"signal{int(number)}")
        for n in range(2000):
            queue.add(parked(record(n), "copy"))
        run = redrive(f"signal{int(number)}")
        process = run.start("--delete-done", f"sqs://{queue.name}")
        wait_for("it gets on", lambda: len(queue.messages) < 1900 or process.poll() is not None)
        process.send_signal(number)
        out, err = process.communicate(timeout=WAIT_S)
        check(f"signal {number}: it ends with 1, and says so", process.returncode == 1 and "interrupted" in err, (process.returncode, err[-300:]))
        check("... all that it held is released", queue.messages and all(m.until == 0 for m in queue.messages.values()), len(queue.messages))
        check("... what was done is removed, and counted", outcomes(out)["removed"] == 2000 - len(queue.messages), out[-300:])


def long_runs():
    """Messages are held for longer than their visibility timeout."""
    queue = server.queue("long")
    for n in range(1500):
        queue.add(parked(record(n), ("copy", "totals")[n % 2]))
    hidden = []

    def slow(operation, body, answer):
        if operation == "ReceiveMessage":
            time.sleep(0.3)
        if operation == "ChangeMessageVisibilityBatch":
            hidden.extend(e["VisibilityTimeout"] for e in body["Entries"])

    server.plans["long"] = slow
    done = redrive("long").run("--timeout", "1", "--visibility", "15", "--wait", "3", "sqs://long")
    check("all are done", outcomes(done.stdout)["done"] == 1500 and done.returncode == 0, done.stdout[-300:] + done.stderr[-300:])
    check("they were hidden anew", hidden.count(15) > 100 and hidden.count(0) == 1500, (hidden.count(15), hidden.count(0)))
    check("... so that none was given out twice", max(m.receives for m in queue.messages.values()) == 1)
    check("... and are released at the end", all(m.until == 0 for m in queue.messages.values()))


# ---- FIFO ----

def fifo(make, name):
    queue = make(name)
    bodies, groups, oracle = [], [], Oracle()
    for n in range(60):
        group = f"g{n % 4}"
        rec = record(n, item=group, total=n)
        bad = n in (21, 34)
        if bad:
            rec["dynamodb"]["NewImage"]["total"] = {"S": "x"}
        bodies.append("broken" if n == 40 else parked(rec, "totals"))
        groups.append(group)
        held = (n % 4 == 1 and n > 21) or (n % 4 == 2 and n > 34) or (n % 4 == 0 and n > 40)
        if not bad and n != 40 and not held:
            oracle.expect(rec, ("totals",))
    return queue, bodies, groups, oracle


def fifo_on_moto():
    queue, bodies, groups, oracle = fifo(lambda n: Queue(services, n), "order.fifo")
    queue.send(bodies, groups)
    run = Redrive(folder / "fifo-moto", services)
    done = run.run("--delete-done", f"sqs://order.fifo?{ONE}")
    left = [b for n, b in enumerate(bodies) if (n % 4 == 1 and n >= 21) or (n % 4 == 2 and n >= 34) or (n % 4 == 0 and n >= 40)]
    waiting, flying = queue.counts()
    check("moto: each group goes up to its first failure", (waiting + flying, flying, done.returncode) == (len(left), 0, 1), (waiting, flying, done.stdout[-900:]))
    oracle.compare("fifo on moto", run.folder)


def fifo_by_the_rules():
    queue, bodies, groups, oracle = fifo(server.queue, "order.fifo")
    for body, group in zip(bodies, groups):
        queue.add(body, group)
    run = redrive("fifo")
    done = run.run("--delete-done", "sqs://order.fifo")
    order = {}
    for body in queue.deleted_order:
        rec = json.loads(body)["record"]["dynamodb"]
        order.setdefault(rec["Keys"]["PK"]["S"], []).append(int(rec["SequenceNumber"]))
    check("each group in its order", all(o == sorted(o) for o in order.values()) and len(order) == 4, order)
    check("... up to its first failure", [len(order[f"g{g}"]) for g in range(4)] == [10, 5, 8, 15], {g: len(o) for g, o in order.items()})
    oracle.compare("fifo", run.folder)
    sums = outcomes(done.stdout)
    check("what came with the failure is held back", sums["failed"] == 2 and sums["unreadable"] == 1 and sums["held back"] >= 1 and done.returncode == 1, sums)
    # Those behind an unreadable one that came with it go on, if that is asked for.
    queue = server.queue("skip.fifo")
    queue.add("broken", "g")
    for n in range(5):
        queue.add(parked(record(n), "copy"), "g")
    done = redrive("skip").run("--delete-done", "sqs://skip.fifo")
    check("an unreadable message holds its group back", len(queue.messages) == 6 and outcomes(done.stdout)["held back"] == 5, done.stdout[-400:])
    done = redrive("skip").run("--delete-done", "--skip-unreadable", "sqs://skip.fifo")
    check("--skip-unreadable", len(queue.messages) == 1 and done.returncode == 4, done.stdout[-400:])


# ---- a RedrivePolicy ----

def near_the_limit():
    target = Queue(services, "graveyard")
    arn = target.attributes()["QueueArn"]
    for most, receives, works in ((1, 0, False), (2, 0, False), (3, 0, True), (3, 1, False), (5, 2, True), (5, 3, False)):
        queue = Queue(services, f"limit{most}-{receives}", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": most}))
        queue.send([parked(record(n), "copy") for n in range(5)])
        for _ in range(receives):
            for m in services.sqs("ReceiveMessage", QueueUrl=queue.url, MaxNumberOfMessages=10)["Messages"]:
                services.sqs("ChangeMessageVisibility", QueueUrl=queue.url, ReceiptHandle=m["ReceiptHandle"], VisibilityTimeout=0)
        done = Redrive(folder / "limit", services).run("--dry-run", f"sqs://{queue.name}?{ONE}")
        name = f"maxReceiveCount {most}, received {receives} times"
        if works:
            check(f"{name}: it works", done.returncode == 0 and outcomes(done.stdout)["listed"] == 5, done.stdout + done.stderr)
        else:
            check(f"{name}: refused, with the reason", done.returncode in (1, 2) and "RedrivePolicy" in done.stderr and arn in done.stderr, done.stdout + done.stderr)
        check(f"{name}: nothing was moved, all is released", queue.counts() == (5, 0) and target.counts() == (0, 0), (queue.counts(), target.counts()))


# ---- answers that fail ----

def some_not_deleted(operation, body, _answer):
    """The first of each batch is refused, the others are deleted."""
    if operation != "DeleteMessageBatch":
        return None
    return 200, {"Successful": [{"Id": e["Id"]} for e in body["Entries"][1:]],
                 "Failed": [{"Id": body["Entries"][0]["Id"], "SenderFault": True, "Code": "ReceiptHandleIsInvalid", "Message": "x"}]}


def fresh(name, plan):
    queue = server.queue(name)
    for n in range(40):
        queue.add(parked(record(n), "copy"))
    server.plans[name] = plan
    return queue


def partial_failures():
    fresh("partial", some_not_deleted)
    done = redrive("partial").run("--delete-done", "sqs://partial")
    sums = outcomes(done.stdout)
    check("partial failure: told one by one", sums["done"] == 40 and sums["removed"] + sums["left"] == 40 and sums["left"] == done.stdout.count("not removed: ReceiptHandleIsInvalid") >= 1
          and done.returncode == 1, (sums, done.stdout[-500:]))


LIES = [("DeleteMessageBatch", (200, {})), ("DeleteMessageBatch", (200, b"<html>")), ("DeleteMessageBatch", (500, {"__type": "InternalError"})),
        ("ChangeMessageVisibilityBatch", (200, {})), ("ReceiveMessage", (200, {"Messages": [{"MessageId": "x"}]})), ("ReceiveMessage", (503, b"")),
        ("GetQueueAttributes", (200, {})), ("GetQueueUrl", (200, {"QueueUrl": "x"})), ("ReceiveMessage", (403, {"__type": "AccessDeniedException", "message": "no"}))]


def a_lie(n):
    operation, reply = LIES[n]
    queue = fresh(f"lies{n}", lambda op, body, answer: reply if op == operation else None)
    run = redrive(queue.name)
    run.env["AWS_MAX_ATTEMPTS"] = "1"
    done = run.run(*(["--delete-done"] if operation == "DeleteMessageBatch" else []), f"sqs://{queue.name}")
    sums = outcomes(done.stdout)
    check(f"{operation}, {reply}: no success", done.returncode in (1, 2) and sums["removed"] == 0, (done.returncode, done.stdout[-300:], done.stderr[-300:]))
    if operation == "DeleteMessageBatch":
        check("... done, and said to be still there", sums["done"] == 40 == sums["left"], sums)


def lost_answers():
    lost = []
    queue = fresh("lost", lambda op, body, answer: "drop" if op == "ReceiveMessage" and len(lost) < 2 and not lost.append(1) else None)
    run = redrive("lost")
    first = run.run("--delete-done", "--timeout", "1", "--visibility", "3", "sqs://lost")
    left = len(queue.messages)
    check("a lost answer: what came otherwise is done", first.returncode == 0 and outcomes(first.stdout)["done"] == 40 - left, first.stdout[-300:] + first.stderr)
    wait_for("its messages come back", lambda: all(m.until < time.time() for m in queue.messages.values()))
    second = run.run("--delete-done", "sqs://lost")
    check("... its messages come back, and are done", second.returncode == 0 and not queue.messages and outcomes(second.stdout)["done"] == left, second.stdout[-300:])


def a_full_queue():
    queue = fresh("full", None)
    queue.most_in_flight = 20
    done = redrive("full").run("sqs://full")
    check("no more in flight: it ends with 1, and says so", outcomes(done.stdout)["done"] == 20 and done.returncode == 1 and "gives no more" in done.stderr, done.stdout[-300:] + done.stderr)
    check("... all released", all(m.until == 0 for m in queue.messages.values()))


# ---- a target that is down, folders, parallel invocations ----

def a_target_is_down():
    config = {**CONFIG, "routes": [{"name": "copy", "handler": "replicate", "to": "dynamodb://copy?endpoint=http://127.0.0.1:9"}]}
    queue = server.queue("down")
    for n in range(300):
        queue.add(parked(record(n), "copy"))
    run = redrive("down", config)
    run.env["AWS_MAX_ATTEMPTS"] = "1"
    done = run.run("--delete-done", "--timeout", "2", "sqs://down")
    check("it ends before it has tried all", done.returncode == 1 and ("is down" in done.stderr or "unreachable" in done.stderr) and outcomes(done.stdout)["not begun"] > 100,
          done.stdout[-300:] + done.stderr[-300:])
    check("... and nothing is removed", len(queue.messages) == 300 and all(m.until == 0 for m in queue.messages.values()))


def folders():
    oracle, place = Oracle(), folder / "failed files"
    run = redrive("folders")
    for n in range(500):
        path = place / f"copy/2026/11/{n % 9}" / f"{n}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        rec = record(n, item=f"i{n % 20}", total=n)
        oracle.expect(rec, ("copy",))
        path.write_text(parked(rec, "copy") if n != 300 else "{")
    (place / "empty.json").write_text("")
    done = run.run("--delete-done", "--parallel", "3", str(place))
    left = sorted(p.name for p in place.rglob("*") if p.is_file())
    check("a folder: what is done is removed", left == ["300.json", "empty.json"] and done.returncode == 4, (left, done.stdout[-300:], done.stderr))
    oracle.compare("folder, the last of each item wins", run.folder)


PARTS = [the_mixed_ones, long_runs, kills, choosing, fifo_on_moto, fifo_by_the_rules, near_the_limit, signals, partial_failures, lost_answers, a_full_queue,
         a_target_is_down, folders, *(functools.partial(a_lie, n) for n in range(len(LIES)))]
create_stream()
# Most of their time they wait: for empty polls, for messages that come back.
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for part in [pool.submit(part) for part in PARTS]:
        part.result()
finish()
