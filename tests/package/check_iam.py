#!/usr/bin/env python3
"""What the template lets the function do is exactly what its routes do: bootstrap runs the shipped configurations on changes of
every kind, on records that cannot succeed and on one too large for a message, against DynamoDB Local and moto, through a
server that writes down each call. Every call must be allowed, and everything allowed must have been called. The same for the
function that seeds, with a plan, its pieces and their sum, that verifies and repairs, and for the one that drains letters."""
import http.client
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import emulator
from emulator import TOP

SAM = emulator.sam()
if not sys.prefix.startswith(str(SAM)):
    os.execv(SAM / "bin/python", [SAM / "bin/python", __file__])

import boto3  # noqa: E402  in SAM's environment
import template  # noqa: E402

sys.path.insert(1, str(TOP / "tests/steps"))
from exports import ID, ago, put_export  # noqa: E402

STREAM = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/users/stream/2026-01-01T00:00:00.000"
MAPPINGS = "/2015-03-31/event-source-mappings"
ASIDE_ARN = f"arn:aws:sqs:{template.REGION}:{template.ACCOUNT}:asidequeue"
WRITES = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def actions_of(method, path, headers, body):
    """{(IAM action, resource)} of one call. The service authorization reference has which action a call needs."""
    target = headers.get("X-Amz-Target", "")
    if target.startswith("DynamoDB_20120810."):
        operation, arguments = target.partition(".")[2], json.loads(body)
        if operation == "TransactWriteItems":
            return {("dynamodb:" + WRITES[kind], write["TableName"]) for item in arguments["TransactItems"] for kind, write in item.items()}
        if operation == "TransactGetItems":
            return {("dynamodb:GetItem", item["Get"]["TableName"]) for item in arguments["TransactItems"]}
        if operation.startswith("Batch"):
            return {("dynamodb:" + operation, table) for table in arguments["RequestItems"]}
        return {("dynamodb:" + operation, arguments["TableName"])}
    if target.startswith("AmazonSQS."):
        operation, arguments = target.partition(".")[2], json.loads(body)
        queue = arguments.get("QueueName") or arguments["QueueUrl"].rpartition("/")[2]
        return {("sqs:" + operation.removesuffix("Batch"), queue)}
    if path.startswith(MAPPINGS):
        return {("lambda:ListEventSourceMappings", "*")}
    bucket, _, key = path.partition("?")[0].lstrip("/").partition("/")
    operations = {("PUT", True): "PutObject", ("GET", True): "GetObject", ("HEAD", True): "GetObject", ("GET", False): "ListBucket",
                  ("HEAD", False): "ListBucket", ("DELETE", True): "DeleteObject"}
    return {("s3:" + operations[method, bool(key)], f"{bucket}/{key}" if key else bucket)}


class Recorder(http.server.ThreadingHTTPServer):
    """Hands every request on to the emulator of its service."""

    daemon_threads = True

    def __init__(self, dynamodb, others):
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls, self.dynamodb, self.others = set(), dynamodb, others
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def hand_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.calls |= actions_of(self.command, self.path, self.headers, body)
        if self.path.startswith(MAPPINGS):  # (moto makes one only with a whole function)
            self.answer(200, [], json.dumps({"EventSourceMappings": [
                {"EventSourceArn": ASIDE_ARN, "State": "Enabled", "FunctionResponseTypes": ["ReportBatchItemFailures"]}]}).encode())
            return
        is_dynamodb = self.headers.get("X-Amz-Target", "").startswith("DynamoDB_")
        connection = http.client.HTTPConnection(self.server.dynamodb if is_dynamodb else self.server.others, timeout=600)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        self.answer(answer.status, answer.getheaders(), answer.read())

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = hand_on

    def log_message(self, *_):
        pass


def plain(text):
    """A name for `<LogicalId>`: buckets take no capitals. Queues are given by their ARNs."""
    if re.fullmatch(r"<\w+Queue\.Arn>", text):
        return f"arn:aws:sqs:{template.REGION}:{template.ACCOUNT}:{text[1:-5].lower()}"
    return re.sub(r"<([A-Za-z]+)(\.[A-Za-z]+)?>", lambda match: match.group(1).lower(), text)


def change(number, event, old=None, new=None, expired=False):
    keys = {"PK": {"S": "CUSTOMER#1"}, "SK": {"S": f"ORDER#{number % 7}"}}
    record = {"eventID": f"{number:032x}", "eventName": event, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": template.REGION,
              "dynamodb": {"ApproximateCreationDateTime": 1764547200.0 + number, "Keys": keys, "SequenceNumber": f"4000000000{number:012d}",
                           "SizeBytes": 100, "StreamViewType": "NEW_AND_OLD_IMAGES"}, "eventSourceARN": STREAM.replace("users", "orders")}
    for name, image in (("OldImage", old), ("NewImage", new)):
        if image:
            record["dynamodb"][name] = {**keys, **image}
    if expired:
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return record


def order(status, total, expires_at="1764547300", **more):
    return {"status": {"S": status}, "total": total, "expires_at": {"N": expires_at}, **more}


def events():
    """Batches: plain changes, the same ones late and again, removals of both kinds, records that no counter can take, one of
    them with images that pass a message's limit."""
    money = {"N": "19.90"}
    inserts = [change(n, "INSERT", new=order("NEW", money)) for n in range(1, 15)]
    modifies = [change(n, "MODIFY", order("NEW", money), order("PAID", money)) for n in range(20, 30)]
    removals = [change(n, "REMOVE", order("PAID", money), expired=n % 2 == 0) for n in range(40, 54)]
    no_number = {"S": "nineteen"}
    poison = [change(60, "INSERT", new=order("NEW", no_number))]
    noise = {"note": {"S": "\u0001" * 200000}}
    large = [change(70, "MODIFY", order("NEW", no_number, **noise), order("PAID", no_number, **noise))]
    # Removals that came without the image that an archive keeps: the table's view type includes it, so these records are at fault.
    bare = [change(80, "REMOVE", expired=True)]
    bare_and_large = [change(90, "REMOVE", new=order("PAID", money, **noise), expired=True)]
    return [inserts, modifies, inserts[:1], modifies, removals, removals[:5], poison, large, bare, bare_and_large]


class Services:
    """DynamoDB Local and moto behind a recorder, with tables as the template makes them; a user who names their own has such."""

    def __init__(self, work):
        self.work = work

    def __enter__(self):
        emulator.run(TOP / "tests/services/start.sh", self.work / "services", "dynamodb", "moto")
        self.environment = dict(line.split("=", 1) for line in (self.work / "services/env").read_text().splitlines())
        dynamodb, others = (self.environment[name].removeprefix("http://") for name in ("DYNAMODB_ENDPOINT", "MOTO_ENDPOINT"))
        self.recorder = Recorder(dynamodb, others)
        options = {"region_name": template.REGION, "aws_access_key_id": self.environment["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": "sluice-tests-secret"}
        self.database = boto3.client("dynamodb", endpoint_url=f"http://{dynamodb}", **options)
        self.store = boto3.client("s3", endpoint_url=f"http://{others}", **options)
        self.queues = boto3.client("sqs", endpoint_url=f"http://{others}", **options)
        for queue in ("failurequeue", "asidequeue"):
            self.queues.create_queue(QueueName=queue)
        self.make_targets()
        return self

    def make_targets(self):
        resources, _ = template.resolve({})
        for name in ("OrdersTable", "ReplicaTable", "TotalsTable"):
            properties = resources[name]["Properties"]
            self.database.create_table(TableName=plain(f"<{name}>"), **{key: properties[key] for key in
                                       ("AttributeDefinitions", "KeySchema", "BillingMode")})
        for bucket in ("archivebucket", "failurebucket", "cold", "seedbucket", "exports"):
            self.store.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": template.REGION})

    def __exit__(self, *_):
        self.recorder.shutdown()
        emulator.run(TOP / "tests/services/stop.sh", self.work / "services")

    def invoke(self, variables, change_config, events):
        """What bootstrap answers with the variables that the template gives the function, and what it printed."""
        environment = {name: plain(str(value)) for name, value in variables.items()}
        shipped = (TOP / "deploy" / pathlib.Path(variables["SLUICE_CONFIG"]).name).read_text()
        (self.work / "sluice.json").write_text(change_config(shipped))
        environment |= {"SLUICE_CONFIG": str(self.work / "sluice.json"), "AWS_REGION": template.REGION,
                        "AWS_ENDPOINT_URL": self.recorder.url, "AWS_ACCESS_KEY_ID": self.environment["AWS_ACCESS_KEY_ID"],
                        "AWS_SECRET_ACCESS_KEY": self.environment["AWS_SECRET_ACCESS_KEY"], "AWS_LAMBDA_LOG_FORMAT": "JSON", "TMPDIR": str(self.work)}
        return emulator.invoke(self.work, [TOP / os.environ.get("BUILD", "build") / "bootstrap"], environment,
                               [json.dumps(event).encode() for event in events])


def allows(resource, name):
    """Does the policy's resource cover what was called by that name?"""
    if resource == "*":
        return True
    resource = plain(resource.removeprefix("arn:aws:s3:::")).rpartition(":")[2].removeprefix("table/")
    return name.startswith(resource[:-1]) if resource.endswith("*") else name == resource


def compare(calls, policy):
    denied = {call for call in calls if not any(call[0] == action and allows(resource, call[1]) for action, resource in policy)}
    idle = {row for row in policy if not any(call[0] == row[0] and allows(row[1], call[1]) for call in calls)}
    assert not denied, f"the routes call what the template does not allow: {sorted(denied)}"
    assert not idle, f"the template allows what no route calls: {sorted(idle)}"


def check(overrides, change_config=lambda text: text):
    resources, _ = template.resolve(overrides)
    variables = resources["SluiceFunction"]["Properties"]["Environment"]["Variables"]
    batches = [{"Records": batch} for batch in events()]
    with tempfile.TemporaryDirectory() as folder, Services(pathlib.Path(folder)) as services:
        answers, output = services.invoke(variables, change_config, batches)
    assert answers == [b'{"batchItemFailures":[]}'] * len(batches), f"{answers}\n{output}"
    compare(services.recorder.calls, template.allowed(resources, "routes"))


def received(services):
    """All letters, as Lambda's mapping delivers them."""
    url, letters = services.queues.get_queue_url(QueueName="asidequeue")["QueueUrl"], []
    while got := services.queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        letters += got
    return [{"Records": [{"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"], "eventSource": "aws:sqs",
                          "eventSourceARN": ASIDE_ARN} for m in letters[i:i + 10]]} for i in range(0, len(letters), 10)]


def a_route_that_is_set_aside():
    """Replica and totals in turn: all that the route has is set aside, and then drained, paused at first."""
    resources, _ = template.resolve({"SetAside": "on"})
    variables, drains = (resources[name]["Properties"]["Environment"]["Variables"] for name in ("SluiceFunction", "DrainFunction"))
    batches = [{"Records": batch} for batch in events()]
    for number, record in enumerate(record for batch in batches for record in batch["Records"]):  # what is too late is parked
        record["dynamodb"]["ApproximateCreationDateTime"] = time.time() - 1000 + number
    small = [batch for batch in batches if max(len(json.dumps(record)) for record in batch["Records"]) < 1 << 18]
    poller = {("sqs:" + name, "<AsideQueue.Arn>") for name in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")}
    # What was in a letter is not too large for the queue: the bucket is for a queue that refuses.
    spare = {("s3:PutObject", "<FailureBucket.Arn>/*")}
    with tempfile.TemporaryDirectory() as folder, Services(pathlib.Path(folder)) as services:
        def aside(name, paused):
            return lambda text: text.replace(f'"name": "{name}"', f'"name": "{name}", "set_aside": "sqs://${{ASIDE_QUEUE}}", "paused": {paused}')
        ours, drained = set(), set()
        for name, given in (("nothing", batches), ("replica", small), ("totals", small)):
            services.recorder.calls = set()
            answers, output = services.invoke(variables, aside(name, "true"), given)
            assert answers == [b'{"batchItemFailures":[]}'] * len(given), f"{name}: {answers}\n{output}"
            ours |= services.recorder.calls
            letters = received(services)
            assert bool(letters) == (name != "nothing"), f"{name}: {letters}"
            services.recorder.calls = set()
            for paused in ("true", "false") if letters else ():
                answers, output = services.invoke(drains, aside(name, paused), letters)
                left = [len(json.loads(answer)["batchItemFailures"]) for answer in answers]
                assert left == [len(event["Records"]) if paused == "true" else 0 for event in letters], f"{name}: {answers}\n{output}"
            drained |= services.recorder.calls
    compare(ours, template.allowed(resources, "routes"))
    compare(drained, (template.allowed(resources, "routes", "DrainRole") | template.allowed(resources, "letters", "DrainRole")) - poller - spare)


def seed_items():
    """Orders, and two that no counter can take: one too large for a message."""
    keys = [{"PK": {"S": "CUSTOMER#1"}, "SK": {"S": f"ORDER#{n}"}} for n in range(40)]
    noise = {"note": {"S": "\u0001" * 200000}}
    return [{**key, **order("PAID" if n % 2 or n == 38 else "NEW", {"N": "19.90"} if n < 38 else {"S": "nineteen"}, "4000000000", **(noise if n == 39 else {}))}
            for n, key in enumerate(keys)]


def put_results(services, counts):
    """The files of a Map that has succeeded, with these answers."""
    results = {"SUCCEEDED_0.json": [{"Output": json.dumps({"done": True, "piece": i, **one})} for i, one in enumerate(counts)],
               "manifest.json": {"DestinationBucket": "seedbucket", "MapRunArn": "arn", "ResultFiles": {
                   "SUCCEEDED": [{"Key": "seed/results/run/SUCCEEDED_0.json", "Size": 1}], "FAILED": [], "PENDING": []}}}
    for name, body in results.items():
        services.store.put_object(Bucket="seedbucket", Key=f"seed/results/run/{name}", Body=json.dumps(body).encode())


def worked(services, variables, items, change_config=lambda text: text):
    """Work items, one after the other: their answers."""
    answers, output = services.invoke(variables, change_config, [{"sluice": one} for one in items])
    answers = [json.loads(answer) for answer in answers]
    assert all("errorType" not in answer for answer in answers), f"{answers}\n{output}"
    return answers


def check_seed(overrides, pieces, prepare, then=lambda services, variables: None):
    resources, _ = template.resolve(overrides)
    variables = resources["SeedFunction"]["Properties"]["Environment"]["Variables"]
    with tempfile.TemporaryDirectory() as folder, Services(pathlib.Path(folder)) as services:
        prepare(services)
        put_results(services, [{"items": 0, "routes": {}}] * len(pieces))
        # In a later epoch the ledger may have rows of items that count nowhere any more: they are looked up.
        answers = worked(services, variables, [
            {"plan": {"run": "run", "given": {"consumer_since": ago(7200)}}},
            *({"backfill": {"any_order": True, **piece(services)}} for piece in pieces * 2),  # each is retried
            {"sum": {"results": "seed/results/run/manifest.json", "pieces": len(pieces)}}], lambda text: text.replace('"counters"', '"epoch": 1, "counters"').replace(
                '{"key": {"PK": "STATUS#', '{"when": {"status": {"S": ["PAID"]}}, "key": {"PK": "STATUS#'))
        then(services, variables)
    done = answers[1:-1]
    assert all(answer["done"] for answer in done) and sum(answer["items"] for answer in done) == 2 * 40, answers
    assert sum(answer["routes"]["totals"]["parked"] for answer in done) == 2 * 2, answers
    compare(services.recorder.calls, template.allowed(resources, "routes", "SeedRole") | template.allowed(resources, "source", "SeedRole"))


def seed_from_an_export():
    def piece(services):
        listing = services.store.get_object(Bucket="exports", Key=f"of/AWSDynamoDB/{ID}/manifest-files.json")["Body"].read()
        row = json.loads(listing.splitlines()[0])
        return {"piece": 0, "file": row["dataFileS3Key"].removeprefix(f"of/AWSDynamoDB/{ID}/"), "md5": row["md5Checksum"], "items": row["itemCount"]}
    check_seed({"SeedFrom": f"s3://exports/of/AWSDynamoDB/{ID}", "SeedKeys": "PK,SK"}, [piece],
               lambda services: put_export(services.store, "exports", "of/", seed_items(), 1))


def verify_and_repair(services, variables):
    """Rows are missing, changed and left over: they are found, a person is asked, and they are repaired."""
    rows = services.database.scan(TableName="replicatable")["Items"]
    keys = [{"PK": row["PK"], "SK": row["SK"]} for row in rows]
    for key in keys[:3]:
        services.database.delete_item(TableName="replicatable", Key=key)
    for key in keys[3:6]:
        services.database.delete_item(TableName="orderstable", Key=key)
    services.database.put_item(TableName="replicatable", Item={**rows[7], "status": {"S": "LOST"}})
    whole = {"do": "verify", "of": 2, "run": "verify", "max_lag": 0, "wait": 5}
    put_results(services, [{"items": 20, "different": 4, "routes": {"replica": {"equal": 10, "different": 4}}}] * 2)
    answers = worked(services, variables, [{"plan": {"run": "verify", "given": {"do": "verify", "max_lag": 0}}},
                                           *({"piece": {**whole, "piece": i, "segment": i}} for i in range(2)),
                                           {"sum": {"results": "seed/results/run/manifest.json", "pieces": 2, "what": {"do": "verify", "run": "verify"}}}])
    assert sum(answer["routes"]["replica"]["different"] for answer in answers[1:3]) == 7 and answers[-1]["outcome"] == "different", answers
    found = [entry["Key"].removeprefix("seed/") for entry in services.store.list_objects_v2(Bucket="seedbucket", Prefix="seed/verify/verify/0")["Contents"]]
    answers = worked(services, variables, [{"ask": {"token": "token", "sum": answers[-1]}},
                                           {"plan": {"run": "repair", "given": {"do": "repair", "of": "verify", "delete": True, "save": True}}},
                                           *({"piece": {"do": "repair", "piece": i, "findings": key, "run": "repair", "max_lag": 0, "wait": 5, "delete": True, "save": True}}
                                             for i, key in enumerate(found))])
    assert sum(answer["repaired"]["written"] + answer["repaired"]["removed"] for answer in answers[2:]) >= 7, answers
    # A turn that is not the first goes on from an object.
    services.store.put_object(Bucket="seedbucket", Key="seed/verify/verify/places/verify-000000-0001.json", Body=b"{}")
    answers, _ = services.invoke(variables, lambda text: text, [{"sluice": {"piece": {**whole, "piece": 0, "segment": 0, "turn": 1}}}])
    assert b"BadCheckpoint" in answers[0], answers


def stepped(services, variables, what, change_config=lambda text: text):
    """An execution of several steps: its last sum."""
    total = {"outcome": "again", "next": {"do": what}}
    while total["outcome"] == "again":
        plan = worked(services, variables, [{"plan": {"run": what, "given": total["next"]}}], change_config)[0]
        pieces = json.loads(services.store.get_object(Bucket="seedbucket", Key=plan["key"])["Body"].read())
        put_results(services, worked(services, variables, [{"piece": piece} for piece in pieces], change_config))
        total = worked(services, variables, [{"sum": {"results": "seed/results/run/manifest.json", "pieces": len(pieces), "what": plan["what"]}}], change_config)[0]
    return total


def verify_totals(services, variables):
    """A total is wrong: step by step it is found, and repaired."""
    row = next(row for row in services.database.scan(TableName="totalstable")["Items"] if row["PK"]["S"].startswith("STATUS#"))
    services.database.update_item(TableName="totalstable", Key={"PK": row["PK"]}, UpdateExpression="ADD orders :n", ExpressionAttributeValues={":n": {"N": "5"}})
    total = stepped(services, variables, "totals")
    assert total["outcome"] == "different" and total["different"] == 1, total
    found = services.store.list_objects_v2(Bucket="seedbucket", Prefix="seed/verify/totals/0")["Contents"]
    answers = worked(services, variables, [{"piece": {"do": "repair", "piece": 0, "findings": found[0]["Key"].removeprefix("seed/"), "run": "repair", "max_lag": 0, "wait": 5}}])
    assert answers[0]["repaired"]["written"] == 1, answers


def verify_archives(services, variables):
    """An object is not one of ours: it is found."""
    services.store.put_object(Bucket="archivebucket", Key="expired/x.jsonl", Body=b"")
    total = stepped(services, variables, "archives", lambda text: text.replace('"when": {"expired": true},', "").replace('"item"', '"record"'))
    assert total["outcome"] == "different" and total["damaged"] == 1, total


def verify_all(services, variables):
    verify_and_repair(services, variables)
    verify_totals(services, variables)
    verify_archives(services, variables)


def look_for_letters(services, variables):
    """A route that may be set aside: whether letters wait is asked."""
    url = services.queues.get_queue_url(QueueName="asidequeue")["QueueUrl"]
    dead = services.queues.create_queue(QueueName="asidedeadletters")["QueueUrl"]
    arn = services.queues.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    services.queues.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})})
    services.queues.send_message(QueueUrl=url, MessageBody="{}")
    put_results(services, [{"items": 20, "routes": {}}] * 2)
    answers = worked(services, variables, [{"sum": {"results": "seed/results/run/manifest.json", "pieces": 2, "what": {"do": "verify", "run": "verify"}}}],
                     lambda text: text.replace('"name": "replica"', '"name": "replica", "set_aside": "sqs://${ASIDE_QUEUE}"'))
    assert answers[0]["outcome"] == "unproven" and answers[0]["letters_of"] == "replica", answers
    verify_and_repair(services, variables)
    verify_archives(services, variables)


def seed_from_a_scan(then=verify_all, **more):
    def fill(services):
        for item in seed_items():
            services.database.put_item(TableName="orderstable", Item=item)
    check_seed({"SeedFrom": "scan", "SeedSegments": 2, **more}, [lambda _, i=i: {"piece": i, "segment": i, "of": 2} for i in range(2)], fill, then)


def seed_from_a_scan_and_set_aside():
    seed_from_a_scan(look_for_letters, SetAside="on")


def demonstration():
    check({})


def demonstration_unguarded():
    check({"ReplicaGuard": "none"}, lambda text: text.replace('"inline"', '"none"'))


def targets_that_exist():
    tables = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table"
    check({"SourceStreamArn": STREAM, "ArchiveBucketName": "cold", "ReplicaTableArn": f"{tables}/replicatable",
           "TotalsTableArn": f"{tables}/totalstable"})


def archive_alone():
    check({"SourceStreamArn": STREAM, "ConfigFile": "archive.json", "ArchiveBucketName": "cold"})


def main():
    subprocess.run(["make", "-s", "all"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    cases = [demonstration, demonstration_unguarded, targets_that_exist, archive_alone, a_route_that_is_set_aside, seed_from_an_export, seed_from_a_scan,
             seed_from_a_scan_and_set_aside]
    for case in cases:
        try:
            case()
        except AssertionError as wrong:
            sys.exit(f"{case.__name__}: {wrong}")
    print(f"{len(cases)} passed")


main()
