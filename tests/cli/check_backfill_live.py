#!/usr/bin/env python3
"""`sluice backfill --table` of a table of DynamoDB Local, beside users who write on it and a `sluice tail` that copies its stream; both are
killed at random. At the end the replica is the table and the totals are its sums. And the consumer: an event source mapping of moto's
Lambda says since when it has missed nothing."""
import collections
import io
import json
import os
import random
import signal
import subprocess
import threading
import time
import zipfile

from exports import write_export
from harness import BUILD, check, finish, kills, work_folder
from servers import Servers

kills()
folder = work_folder()
servers = Servers("dynamodb", "moto")
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.env}
dynamo, scan = servers.dynamodb, servers.scan
OURS = {"sluice_order", "sluice_write"}


def create(name, stream=False, sort=True):
    servers.create(name, [("PK", "S")] + ([("SK", "N")] if sort else []), stream)


class Users:
    """They put, change and delete items until they are told to stop."""

    def __init__(self, table, seed):
        self.table, self.rng, self.stop = table, random.Random(seed), False
        self.thread = threading.Thread(target=self.work)

    def item(self, n):
        return {"PK": {"S": f"u{n % 40}"}, "SK": {"N": str(n)}, "status": {"S": self.rng.choice(["OPEN", "PAID", "GONE"])},
                "total": {"N": f"{self.rng.randrange(100)}.{self.rng.randrange(1, 10)}"}, "text": {"S": "x" * self.rng.randrange(400)}}

    def put(self, n):
        dynamo("PutItem", TableName=self.table, Item=self.item(n))

    def work(self):
        while not self.stop:
            n = self.rng.randrange(1500)
            item = self.item(n)
            if self.rng.random() < 0.3:
                dynamo("DeleteItem", TableName=self.table, Key={"PK": item["PK"], "SK": item["SK"]})
            else:
                self.put(n)


def sluice(*args, place):
    return subprocess.Popen([f"{BUILD}/sluice", *args], cwd=place, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def config(place, world, guard, where):
    place.mkdir()
    route = {"name": "replica", "handler": "replicate", "to": f"dynamodb://replica{world}", **guard}
    if where:
        route["where"] = {"status": ["OPEN", "PAID"]}
    (place / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": [
        route, {"name": "totals", "handler": "aggregate", "to": f"dynamodb://totals{world}", "ledger": {"table": f"ledger{world}"},
                "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1, "sum": "{total}"}}]}]}))


def beside_the_stream(world):
    rng = random.Random(world)
    guard = [{}, {"guard": {"table": f"marks{world}"}}, {"tombstones": {"table": f"marks{world}"}}][world % 3]
    create(f"orders{world}")
    create(f"replica{world}")
    for table in ("totals", "ledger", "marks"):
        create(f"{table}{world}", sort=False)
    users = Users(f"orders{world}", world)
    for n in range(0, 1500, 2):
        users.put(n)
    # From here on there is a stream: it never shows what was before.
    dynamo("UpdateTable", TableName=f"orders{world}", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    place = folder / f"world{world}"
    config(place, world, guard, where=world % 2)
    users.thread.start()
    time.sleep(1.1)
    tail = lambda *args: sluice("tail", "--table", f"orders{world}", "--checkpoint", "places", *args, place=place)
    safe = ["--consumer", "places"] if world % 2 else ["--consumer-since", since]
    fill = lambda: sluice("backfill", "--table", f"orders{world}", "--segments", "3", *safe, "--checkpoint", "cp",
                          "--write-units", str(rng.choice([400, 5000])), "--quiet", place=place)
    follower = tail()
    while world % 2 and "complete_since" not in ((place / "places").read_text() if (place / "places").exists() else ""):
        time.sleep(0.1)
    time.sleep(2 if world % 2 else 0)  # the items are read later than that, by more than clocks may differ
    filler = fill()
    for _ in range(rng.randrange(2, 5)):
        time.sleep(rng.uniform(0.3, 1.0))
        if rng.random() < 0.6:
            kill(filler)
            filler = fill()
        else:
            kill(follower)
            follower = tail()
    out, err = filler.communicate(timeout=600)
    check("the backfill ends", filler.returncode == 0, out + err)
    users.stop = True
    users.thread.join()
    kill(follower)
    last = tail("--once")
    tail_out, tail_err = last.communicate(timeout=600)
    check("the stream is read to its end", last.returncode == 0, tail_out + tail_err)
    key = lambda item: (item["PK"]["S"], item["SK"]["N"])
    table = {key(item): item for item in scan(f"orders{world}")}
    replica = {key(i): {n: v for n, v in i.items() if n not in OURS} for i in scan(f"replica{world}") if "sluice_deleted" not in i}
    wanted = {k: i for k, i in table.items() if not world % 2 or i["status"]["S"] in ("OPEN", "PAID")}
    differs = {k: (wanted.get(k), replica.get(k)) for k in wanted.keys() | replica.keys() if wanted.get(k) != replica.get(k)}
    check("the replica is the table", not differs, f"world {world}: {len(differs)} of {len(wanted)}: {list(differs.items())[:2]}")
    sums = collections.Counter(i["status"]["S"] for i in table.values())
    totals = {i["PK"]["S"]: int(i["n"]["N"]) for i in scan(f"totals{world}") if "n" in i and int(i["n"]["N"])}
    check("the totals are its sums", totals == dict(sums), f"{totals} {sums}")
    check("something was filled in", " 0 written" not in out, out)


def within_a_budget():
    """The limit holds by what the service says was consumed: an item of 3 KB costs more than one of 100 bytes."""
    create("heavy")
    create("copy")
    for n in range(60):
        dynamo("PutItem", TableName="heavy", Item={"PK": {"S": str(n)}, "SK": {"N": "1"}, "text": {"S": "x" * (3000 if n % 2 else 100)}})
    place = folder / "budget"
    place.mkdir()
    (place / "sluice.json").write_text(json.dumps({"on_failure": "report", "routes": [
        {"name": "replica", "handler": "replicate", "to": "dynamodb://copy"}]}))
    began = time.monotonic()
    run = sluice("backfill", "--table", "heavy", "--unsafe-order", "--write-units", "40", place=place)
    out, err = run.communicate(timeout=600)
    took = time.monotonic() - began
    check("a budget is kept to", run.returncode == 0 and 60 == len(scan("copy")) and 1.5 < took < 20, f"{took:.1f} s: {out}{err}")


# ---- the consumer ----

def mapping(table, state=True, **more):
    """A table, a stream, a function and their mapping, in moto."""
    endpoint = ENV["MOTO_ENDPOINT"]
    made = servers.call(endpoint, "dynamodb", "DynamoDB_20120810.CreateTable", {
        "TableName": table, "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}})["TableDescription"]
    body = {"EventSourceArn": made["LatestStreamArn"], "FunctionName": "consumer", "StartingPosition": "TRIM_HORIZON", "Enabled": state, **more}
    return made, rest("POST", "/2015-03-31/event-source-mappings/", body)


def rest(method, path, body=None):
    status, text = servers.request(ENV["MOTO_ENDPOINT"], "lambda", method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    assert status < 300, (method, path, status, text)
    return json.loads(text)


def make_function():
    import base64
    servers.request(ENV["MOTO_ENDPOINT"], "iam", "POST", "/", "Action=CreateRole&Version=2010-05-08&RoleName=r&Path=/&AssumeRolePolicyDocument=%7B%7D",
                    {"Content-Type": "application/x-www-form-urlencoded"})
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as z:
        z.writestr("index.py", "def handler(e, c): pass\n")
    rest("POST", "/2015-03-31/functions", {"FunctionName": "consumer", "Runtime": "python3.11", "Role": "arn:aws:iam::123456789012:role/r",
                                           "Handler": "index.handler", "Code": {"ZipFile": base64.b64encode(code.getvalue()).decode()}})


def consumers():
    """What moto's Lambda says of the mapping decides."""
    place = folder / "consumers"
    place.mkdir()
    make_function()
    (place / "sluice.json").write_text(json.dumps({"on_failure": "report", "routes": [
        {"name": "replica", "handler": "replicate", "to": "sqlite:db?table=replica"}]}))
    env = {k: v for k, v in ENV.items() if "DYNAMODB" not in k}
    env["AWS_ENDPOINT_URL"] = ENV["MOTO_ENDPOINT"]

    def plan(table, *args):
        return subprocess.run([f"{BUILD}/sluice", "backfill", "--table", table, "--plan", *args], cwd=place, env=env, capture_output=True, text=True,
                              timeout=600)
    cases = [("latest", {"StartingPosition": "LATEST"}, "TRIM_HORIZON"), ("retries", {"MaximumRetryAttempts": 3}, "MaximumRetryAttempts"),
             ("age", {"MaximumRecordAgeInSeconds": 3600}, "MaximumRecordAgeInSeconds"),
             ("filtered", {"FilterCriteria": {"Filters": [{"Pattern": "{}"}]}}, "FilterCriteria"), ("off", {}, "not enabled")]
    for table, more, text in cases:
        _, made = mapping(table, state=table != "off", **more)
        answered = rest("GET", f"/2015-03-31/event-source-mappings/{made['UUID']}")
        if any(k not in answered for k in more):
            continue  # moto does not keep this member
        run = plan(table, "--function", "consumer")
        check(f"a mapping that may have missed something is refused: {table}", run.returncode == 2 and text in run.stderr, run.stderr + str(answered))
    made, of_orders = mapping("orders")
    for flags in (("--function", "consumer"), ("--mapping", of_orders["UUID"])):
        run = plan("orders", *flags)
        check(f"a mapping from TRIM_HORIZON is enough: {flags}", run.returncode == 0 and "preconditions    hold" in run.stdout,
              run.stdout + run.stderr)
        check("and its beginning is said", of_orders["UUID"] in run.stderr and made["LatestStreamLabel"][:13] in run.stderr, run.stderr)
    run = plan("orders", "--mapping", rest("POST", "/2015-03-31/event-source-mappings/", {
        "EventSourceArn": mapping("others")[0]["LatestStreamArn"], "FunctionName": "consumer", "StartingPosition": "TRIM_HORIZON"})["UUID"])
    check("a mapping of another table is refused", run.returncode == 2 and "is not a stream of" in run.stderr, run.stderr)
    run = plan("others", "--function", "consumer")
    check("of two mappings one has to be named", run.returncode == 2 and "more than one" in run.stderr, run.stderr)
    run = plan("orders", "--function", "nosuch")
    check("a function without one is refused", run.returncode == 2 and ("no event source" in run.stderr or "nosuch" in run.stderr), run.stderr)
    run = plan("nosuch", "--function", "consumer")
    check("a table that does not exist is one line", run.returncode == 2 and len(run.stderr.splitlines()) == 1 and "nosuch" in run.stderr, run.stderr)


def from_s3():
    """The same export from a bucket, copied below another prefix."""
    export = write_export(folder / "exported", [[{"PK": {"S": f"k{n}"}, "n": {"N": str(n)}} for n in range(i, 300, 3)] for i in range(3)],
                          time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 60)))
    servers.s3("PUT", "/exports")
    for path in (folder / "exported").rglob("*"):
        if path.is_file():
            servers.s3("PUT", f"/exports/copies/{path.relative_to(folder / 'exported')}", path.read_bytes())
    env = {k: v for k, v in ENV.items() if "DYNAMODB" not in k} | {"AWS_ENDPOINT_URL": ENV["MOTO_ENDPOINT"]}
    place = f"s3://exports/copies/AWSDynamoDB/{export.name}/"
    run = subprocess.run([f"{BUILD}/sluice", "backfill", "--export", place, "--keys", "PK", "--consumer-since", "2026-01-01T00:00:00Z"],
                         cwd=folder / "consumers", env=env, capture_output=True, text=True, timeout=600)
    check("an export is read from S3", run.returncode == 0 and "300, as the manifest says" in run.stdout and "300 written" in run.stdout,
          run.stdout + run.stderr)


for number in range(1, 4):
    beside_the_stream(number)
within_a_budget()
consumers()
from_s3()
finish()
