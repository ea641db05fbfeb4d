#!/usr/bin/env python3
"""What the template lets the function do is exactly what its routes do: bootstrap runs the shipped configurations on changes of
every kind, on records that cannot succeed and on one too large for a message, against DynamoDB Local and moto, through a
server that writes down each call. Every call must be allowed, and everything allowed must have been called."""
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

import emulator
from emulator import TOP

SAM = emulator.sam()
if not sys.prefix.startswith(str(SAM)):
    os.execv(SAM / "bin/python", [SAM / "bin/python", __file__])

import boto3  # noqa: E402  in SAM's environment
import template  # noqa: E402

STREAM = f"arn:aws:dynamodb:{template.REGION}:{template.ACCOUNT}:table/users/stream/2026-01-01T00:00:00.000"
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
        is_dynamodb = self.headers.get("X-Amz-Target", "").startswith("DynamoDB_")
        connection = http.client.HTTPConnection(self.server.dynamodb if is_dynamodb else self.server.others, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = hand_on

    def log_message(self, *_):
        pass


def plain(text):
    """A name for `<LogicalId>`: buckets take no capitals. The queue is given by its ARN."""
    if text == "<FailureQueue.Arn>":
        return f"arn:aws:sqs:{template.REGION}:{template.ACCOUNT}:failurequeue"
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


def order(status, total, **more):
    return {"status": {"S": status}, "total": total, "expires_at": {"N": "1764547300"}, **more}


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


def make_targets(dynamodb, others):
    """Tables as the template makes them; a user who names their own has such."""
    resources, _ = template.resolve({})
    options = {"region_name": template.REGION, "aws_access_key_id": "AKIASLUICETESTS00000", "aws_secret_access_key": "sluice-tests-secret"}
    database = boto3.client("dynamodb", endpoint_url=f"http://{dynamodb}", **options)
    for name in ("ReplicaTable", "TotalsTable"):
        properties = resources[name]["Properties"]
        database.create_table(TableName=plain(f"<{name}>"), **{key: properties[key] for key in
                              ("AttributeDefinitions", "KeySchema", "BillingMode")})
    store = boto3.client("s3", endpoint_url=f"http://{others}", **options)
    for bucket in ("archivebucket", "failurebucket", "cold"):
        store.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": template.REGION})
    boto3.client("sqs", endpoint_url=f"http://{others}", **options).create_queue(QueueName="failurequeue")


def allows(resource, name):
    """Does the policy's resource cover what was called by that name?"""
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
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        emulator.run(TOP / "tests/services/start.sh", work / "services", "dynamodb", "moto")
        try:
            services = dict(line.split("=", 1) for line in (work / "services/env").read_text().splitlines())
            dynamodb, others = (services[name].removeprefix("http://") for name in ("DYNAMODB_ENDPOINT", "MOTO_ENDPOINT"))
            make_targets(dynamodb, others)
            recorder = Recorder(dynamodb, others)
            environment = {name: plain(value) for name, value in variables.items()}
            shipped = (TOP / "deploy" / pathlib.Path(variables["SLUICE_CONFIG"]).name).read_text()
            (work / "sluice.json").write_text(change_config(shipped))
            environment |= {"SLUICE_CONFIG": str(work / "sluice.json"), "AWS_REGION": template.REGION,
                            "AWS_ENDPOINT_URL": recorder.url, "AWS_ACCESS_KEY_ID": services["AWS_ACCESS_KEY_ID"],
                            "AWS_SECRET_ACCESS_KEY": services["AWS_SECRET_ACCESS_KEY"], "AWS_LAMBDA_LOG_FORMAT": "JSON"}
            batches = [json.dumps({"Records": batch}).encode() for batch in events()]
            answers, output = emulator.invoke(work, [TOP / os.environ.get("BUILD", "build") / "bootstrap"], environment, batches)
            recorder.shutdown()
        finally:
            emulator.run(TOP / "tests/services/stop.sh", work / "services")
    assert answers == [b'{"batchItemFailures":[]}'] * len(batches), f"{answers}\n{output}"
    compare(recorder.calls, template.allowed(resources, "routes"))


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
    cases = [demonstration, demonstration_unguarded, targets_that_exist, archive_alone]
    for case in cases:
        try:
            case()
        except AssertionError as wrong:
            sys.exit(f"{case.__name__}: {wrong}")
    print(f"{len(cases)} passed")


main()
