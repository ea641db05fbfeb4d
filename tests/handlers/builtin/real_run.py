#!/usr/bin/env python3
"""A real run: a table of DynamoDB Local is changed at random, its stream is read and fed to all handlers, with DynamoDB Local
and moto as their targets, every batch one to four times and with operations that fail on the way. Then what was written is compared
with what the table holds, and the whole history comes once more, a month later. At the end another table with the same keys takes the
totals over: refused without an epoch, exact with one and a backfill.

real_run.py FEED FOLDER (run by check_real_run.sh, with the services' environment)
"""
import collections
import decimal
import gzip
import json
import pathlib
import random
import subprocess
import sys
import time

import boto3

sys.path.insert(0, "tests/cli")
from harness import WHOLE  # noqa: E402

CHANGES, ITEMS, EXPIRING = 2000 if WHOLE else 1000, 200, 12
STATES = ["OPEN", "PAID", "SHIPPED", "CANCELED"]
feed, folder = sys.argv[1], pathlib.Path(sys.argv[2])
dynamodb, streams = boto3.client("dynamodb"), boto3.client("dynamodbstreams")
s3, sqs = boto3.client("s3"), boto3.client("sqs")
draw = random.Random(7)
passed = 0
decimal.getcontext().prec = 60


def check(fine, what):
    global passed
    if not fine:
        sys.exit(f"real_run: {what}")
    passed += 1


# ---- the source ----

def create(name, keys, **more):
    dynamodb.create_table(TableName=name, BillingMode="PAY_PER_REQUEST",
                          AttributeDefinitions=[{"AttributeName": k, "AttributeType": t} for k, t in keys],
                          KeySchema=[{"AttributeName": k, "KeyType": "HASH" if i == 0 else "RANGE"} for i, (k, _) in enumerate(keys)],
                          **more)


def key(i):
    return {"PK": {"S": f"order#{i // 3}"}, "SK": {"N": str(i % 3)}}


def image(i):
    item = key(i) | {"status": {"S": draw.choice(STATES)}, "version": {"N": str(draw.randrange(10**9))}}
    if draw.random() < 0.8:
        item["total"] = {"N": str(decimal.Decimal(draw.randrange(-10**6, 10**6)) / 10**draw.randrange(8))}
    if draw.random() < 0.3:
        item["note"] = {"L": [{"S": draw.choice(["", "plain", "\"quoted\" \\", "line\nbreak", "é€"])}, {"BOOL": True}, {"NULL": True}]}
    if draw.random() < 0.2:
        item["tags"] = {"SS": draw.sample(["a", "b", "c"], 2)}
    if draw.random() < 0.6:
        ids = draw.sample(range(60), draw.choice([1, 2, 3, 5] * 8 + [50]))
        item["lines"] = {"L": [{"M": {"id": {"N": str(n)}, "sku": {"S": f"S{draw.randrange(9)}"}}} for n in ids]}
    return item


def change_at_random(table="source"):
    i = draw.randrange(ITEMS)
    dice = draw.random()
    if dice < 0.2:
        dynamodb.delete_item(TableName=table, Key=key(i))
    elif dice < 0.6:
        dynamodb.put_item(TableName=table, Item=image(i))
    else:
        dynamodb.update_item(TableName=table, Key=key(i), UpdateExpression="SET #s = :s, version = :v",
                             ExpressionAttributeNames={"#s": "status"},
                             ExpressionAttributeValues={":s": {"S": draw.choice(STATES)}, ":v": {"N": str(draw.randrange(10**9))}})


def expire_some():
    """While the table holds little else: the sweep looks at few items at a time."""
    for i in range(EXPIRING):
        dynamodb.put_item(TableName="source", Item=image(10**6 + i) | {"due": {"N": str(int(time.time()) - 60)}})
    deadline = time.monotonic() + 600
    while dynamodb.scan(TableName="source", Select="COUNT")["Count"] > 0:
        if time.monotonic() > deadline:
            sys.exit("real_run: DynamoDB Local expired too little within 600 s")
        time.sleep(0.5)


def create_source(name):
    create(name, [("PK", "S"), ("SK", "N")], StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})


def make_source():
    create_source("source")
    dynamodb.update_time_to_live(TableName="source", TimeToLiveSpecification={"Enabled": True, "AttributeName": "due"})
    expire_some()
    for _ in range(CHANGES):
        change_at_random()


def read_stream(table="source"):
    arn = dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    out = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        at = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        while at:
            got = streams.get_records(ShardIterator=at)
            out += [as_lambda(r, arn) for r in got["Records"]]
            at = got.get("NextShardIterator") if got["Records"] else None
    return out


def as_lambda(record, arn):
    record["dynamodb"]["ApproximateCreationDateTime"] = int(record["dynamodb"]["ApproximateCreationDateTime"].timestamp())
    if "userIdentity" in record:
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return record | {"eventSourceARN": arn}


# ---- the handlers ----

COUNTERS = {"missing": "skip", "counters": [
    {"key": {"PK": "STATUS#{status}", "SK": "all"}, "add": {"orders": 1, "revenue": "{total}"}},
    {"key": {"PK": "DONE", "SK": "{status}"}, "add": {"orders": 1}, "when": {"status": {"S": ["SHIPPED", "CANCELED"]}}}]}
GROUPS = {"missing": "skip", "empty": "delete", "counters": [
    COUNTERS["counters"][0] | {"distinct": {"customers": "{PK}", "totals": "{total}"}, "members": {"by": "{total}"}}, COUNTERS["counters"][1]]}
TOTALS = {"name": "totals", "handler": "aggregate", "to": "dynamodb://totals", "ledger": {"table": "ledger"}} | GROUPS
CONFIG = {"on_failure": "report", "report_batch_item_failures": True, "routes": [
    {"name": "inline", "handler": "replicate", "to": "dynamodb://replica-inline"},
    {"name": "side", "handler": "replicate", "to": "dynamodb://replica-side", "guard": {"table": "guards"}},
    {"name": "aside", "handler": "replicate", "to": "dynamodb://replica-aside", "tombstones": {"table": "tombstones"}},
    TOTALS,
    {"name": "kept", "handler": "aggregate", "to": "dynamodb://kept", "ledger": {"table": "ledger"}, "expired": "keep"} | COUNTERS,
    {"name": "by-sku", "handler": "view", "to": "dynamodb://by-sku", "each": "lines[*]", "item": {"status": "{status}"}, "list": {"table": "lists"},
     "key": {"PK": "{each.sku}", "SK": "{PK|key}#{SK|key}#{each.id|key}"}},
    {"name": "by-status", "handler": "view", "to": "dynamodb://by-status", "where": {"status": [{"anything-but": "PAID"}]}, "project": ["total", "tags"],
     "key": {"PK": "{status}", "SK": "{PK|key}#{SK|key}"}},
    {"name": "expired", "handler": "archive", "to": "s3://archive/expired", "when": {"expired": True}},
    {"name": "shipped", "handler": "notify", "to": "sqs://shipped", "when": {"changed": ["status"], "pattern": [
        {"dynamodb": {"NewImage": {"status": {"S": ["SHIPPED"]}}}}]}}]}


def make_targets():
    for name in ("replica-inline", "replica-side", "replica-aside"):
        create(name, [("PK", "S"), ("SK", "N")])
    create("by-sku", [("PK", "S"), ("SK", "S")])
    create("by-status", [("PK", "S"), ("SK", "S")])
    create("lists", [("PK", "S")])
    create("guards", [("PK", "S")])
    create("tombstones", [("PK", "S")])
    create("ledger", [("PK", "S")])
    create("totals", [("PK", "S"), ("SK", "S")])
    create("kept", [("PK", "S"), ("SK", "S")])
    s3.create_bucket(Bucket="archive", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    sqs.create_queue(QueueName="shipped")


def run_feed(seed, one_in, later_days):
    subprocess.run([feed, folder / "sluice.json", folder / "records.jsonl", str(seed), str(one_in), str(later_days)], check=True,
                   stdout=subprocess.DEVNULL)


# ---- what was written ----

def scan(table):
    return [item for page in dynamodb.get_paginator("scan").paginate(TableName=table) for item in page["Items"]]


def comparable(value):
    (kind, content), = value.items()
    return {kind: sorted(content)} if kind in ("SS", "NS") else value


def by_key(items):
    return {(i["PK"]["S"], i["SK"]["N"]): {n: comparable(v) for n, v in i.items() if n not in ("sluice_order", "sluice_write")}
            for i in items if "sluice_deleted" not in i}


def group_by(items):
    sums = collections.Counter()
    for item in items:
        status = item["status"]["S"]
        if "total" in item:
            sums[f"STATUS#{status}", "all", "orders"] += 1
            sums[f"STATUS#{status}", "all", "revenue"] += decimal.Decimal(item["total"]["N"])
        if status in ("SHIPPED", "CANCELED"):
            sums["DONE", status, "orders"] += 1
    return {k: v for k, v in sums.items() if v}


def with_values(sums, items):
    """The same with the numbers of different customers and totals."""
    values = {(f"STATUS#{i['status']['S']}", "all", name, value) for i in items if "total" in i
              for name, value in (("customers", i["PK"]["S"]), ("totals", decimal.Decimal(i["total"]["N"])))}
    return sums | collections.Counter(value[:3] for value in values)


def leaderboards():
    """Keys of items by status, in the order in which a Query gives their rows."""
    out = {}
    for status in STATES:
        pages = dynamodb.get_paginator("query").paginate(
            TableName="totals", KeyConditionExpression="PK = :p AND begins_with(SK, :m)",
            ExpressionAttributeValues={":p": {"S": f"STATUS#{status}"}, ":m": {"S": "all#"}})
        out[status] = [(decimal.Decimal(row["by"]["N"]), row["item"]["M"]["PK"]["S"], row["item"]["M"]["SK"]["N"])
                       for page in pages for row in page["Items"]]
    return out


def expect_leaderboards(items, when):
    found = leaderboards()
    for status in STATES:
        wanted = [(decimal.Decimal(i["total"]["N"]), i["PK"]["S"], i["SK"]["N"]) for i in items
                  if i["status"]["S"] == status and "total" in i]
        check(sorted(found[status]) == sorted(wanted), f"{when}: the members of {status} are not its items")
        check([m[0] for m in found[status]] == sorted(m[0] for m in wanted), f"{when}: the members of {status} are not in order")
    empty = [row for row in scan("totals") if row.get("orders") == {"N": "0"}]
    check(not empty, f"{when}: an empty row is there: {empty}")
    check(not [row for row in scan("ledger") if row["PK"]["S"].startswith("sluice:delta:")], f"{when}: a delta row is left")


def totals(table="totals"):
    return {(row["PK"]["S"], row["SK"]["S"], name): decimal.Decimal(value["N"]) for row in scan(table) for name, value in row.items()
            if not row["PK"]["S"].startswith("sluice:") and "item" not in row and "N" in value and decimal.Decimal(value["N"])}


def archived():
    objects = s3.get_paginator("list_objects_v2").paginate(Bucket="archive")
    bodies = [s3.get_object(Bucket="archive", Key=o["Key"])["Body"].read() for page in objects for o in page.get("Contents", [])]
    return {json.loads(line)["eventID"] for body in bodies for line in gzip.decompress(body).splitlines()}


def queued():
    url, ids = sqs.get_queue_url(QueueName="shipped")["QueueUrl"], set()
    while got := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        ids |= {json.loads(m["Body"])["eventID"] for m in got}
        sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got)])
    return ids


def view(table):
    """The rows without what is the view's own; those of the lists are told by their keys."""
    return alike([{k: v for k, v in row.items() if k != "sluice_of"} for row in scan(table) if "sluice_rows" not in row])


def alike(rows):
    return {(row["PK"]["S"], row["SK"]["S"]): {n: comparable(v) for n, v in row.items()} for row in rows}


def rows_by_sku(items):
    return [{"PK": line["M"]["sku"], "SK": {"S": f"{i['PK']['S'].replace('#', '%23')}#{i['SK']['N']}#{line['M']['id']['N']}"}, "status": i["status"]}
            for i in items for line in i.get("lines", {"L": []})["L"]]


def rows_by_status(items):
    return [{"PK": i["status"], "SK": {"S": f"{i['PK']['S'].replace('#', '%23')}#{i['SK']['N']}"}} | {k: i[k] for k in ("total", "tags") if k in i}
            for i in items if i["status"]["S"] != "PAID"]


def is_shipping(record):
    new, old = (record["dynamodb"].get(name, {}).get("status") for name in ("NewImage", "OldImage"))
    return new == {"S": "SHIPPED"} and new != old


def compare(records, when):
    source = scan("source")
    check(by_key(scan("replica-inline")) == by_key(source), f"{when}: the replica with inline guards is not the source")
    check(by_key(scan("replica-side")) == by_key(source), f"{when}: the replica with a side table is not the source")
    check(by_key(scan("replica-aside")) == by_key(source), f"{when}: the replica with tombstones in a side table is not the source")
    check(len(scan("replica-aside")) == len(source), f"{when}: the replica with tombstones in a side table has tombstones of its own")
    check(view("by-sku") == alike(rows_by_sku(source)), f"{when}: the view of lines is not what the source makes")
    check(view("by-status") == alike(rows_by_status(source)), f"{when}: the view by status is not what the source makes")
    check(totals() == with_values(group_by(source), source), f"{when}: the totals are not a GROUP BY of the source")
    expect_leaderboards(source, when)
    expired = [r["dynamodb"]["OldImage"] for r in records if "userIdentity" in r]
    check(totals("kept") == group_by(source + expired), f"{when}: the totals that keep are not a GROUP BY of the source and what expired")
    check(archived() == {r["eventID"] for r in records if "userIdentity" in r}, f"{when}: the archive is not complete")
    check(queued() == {r["eventID"] for r in records if is_shipping(r)}, f"{when}: the queue is not complete")


# ---- another table with the same keys ----

def feed_totals(records, **options):
    config = {"on_failure": "report", "report_batch_item_failures": True, "routes": [TOTALS | options]}
    (folder / "totals.json").write_text(json.dumps(config))
    (folder / "totals.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return subprocess.run([feed, folder / "totals.json", folder / "totals.jsonl", "3", "0", "0"], capture_output=True, text=True)


def take_over():
    create_source("restored")
    for item in scan("source"):
        dynamodb.put_item(TableName="restored", Item=item)
    for _ in range(60):
        change_at_random("restored")
    began = len(read_stream("restored"))
    backfill = [{"eventID": f"b{n}", "eventName": "INSERT", "dynamodb": {"Keys": {k: i[k] for k in ("PK", "SK")}, "NewImage": i}}
                for n, i in enumerate(scan("restored"))]
    gone = [{"eventID": f"g{n}", "eventName": "REMOVE", "dynamodb": {"Keys": {k: i[k] for k in ("PK", "SK")}, "OldImage": i}}
            for n, i in enumerate(scan("source")) if not any(i["PK"] == b["PK"] and i["SK"] == b["SK"] for b in scan("restored"))]
    for _ in range(60):
        change_at_random("restored")
    records, was = read_stream("restored")[began:], totals()
    done = feed_totals(records)
    check(done.returncode != 0 and "the ledger totals counts the items of source" in done.stderr, f"another table is not refused: {done.stderr}")
    check(totals() == was, "another table was counted")
    for part in (records, backfill, records, gone):
        done = feed_totals(part, epoch=1)
        check(done.returncode == 0, f"the table that takes over: {done.stderr}")
    restored = scan("restored")
    check(totals() == with_values(group_by(restored), restored), "the totals are not a GROUP BY of the table that took over")
    expect_leaderboards(restored, "after another table took over")


make_source()
make_targets()
records = read_stream()
(folder / "sluice.json").write_text(json.dumps(CONFIG))
(folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
check(sum("userIdentity" in r for r in records) == EXPIRING, "DynamoDB Local expired other items than it was asked to")
run_feed(1, 12, 0)
compare(records, "after the history")
before = [scan(t) for t in ("replica-inline", "replica-side", "replica-aside", "guards", "tombstones", "totals", "kept", "by-sku", "by-status", "lists")]
run_feed(2, 0, 31)
compare(records, "a month later")
check([scan(t) for t in ("replica-inline", "replica-side", "replica-aside", "guards", "tombstones", "totals", "kept", "by-sku", "by-status", "lists")] == before, "the history once more changed a table")
take_over()
print(f"{passed} passed")
