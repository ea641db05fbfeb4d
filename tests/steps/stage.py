"""What the checks of work items stand on: DynamoDB Local and moto, a table to seed, an export, a function. Runs in moto's Python,
which has boto3."""
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
DEFINITION = TOP / "deploy/steps/seed.asl.json"
FUNCTION_ARN = "arn:aws:lambda:us-east-1:123456789012:function:seed"
SUBSTITUTIONS = {"SeedFunctionArn": FUNCTION_ARN, "SeedBucket": "seeds"}


def use_motos_python():
    home = subprocess.run(["bash", "-c", ". ./paths.sh && echo $moto_home"], cwd=TOP / "tests/services", check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()
    if not sys.prefix.startswith(home):
        os.execv(f"{home}/bin/python", [f"{home}/bin/python", *sys.argv])


use_motos_python()
import boto3  # noqa: E402

from exports import put_export  # noqa: E402

sys.path.append(str(TOP / "tests/cli"))
from harness import work_folder  # noqa: E402

passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[:3000]}")
    passed += 1


def item(n):
    return {"PK": {"S": f"CUSTOMER#{n % 50}"}, "SK": {"S": f"ORDER#{n:06d}"}, "status": {"S": ("NEW", "PAID", "SENT")[n % 3]},
            "total": {"N": str(n % 97)}, "note": {"S": "x" * (n % 300)}}


class Stage:
    """`with Stage() as stage:` starts the services; the folder, the buckets and the tables are its own."""

    def __init__(self, **variables):
        self.folder = work_folder()
        self.variables = variables  # of the services' processes

    def __enter__(self):
        subprocess.run([TOP / "tests/services/start.sh", self.folder, "dynamodb", "moto"], check=True, env={**os.environ, **self.variables})
        self.services = dict(line.split("=", 1) for line in (self.folder / "env").read_text().splitlines())
        self.s3 = self.client("s3")
        self.dynamodb = self.client("dynamodb", self.services["DYNAMODB_ENDPOINT"])
        for bucket in ("exports", "seeds"):
            self.s3.create_bucket(Bucket=bucket)
        return self

    def __exit__(self, kind, *_):
        subprocess.run([TOP / "tests/services/stop.sh", self.folder], check=True)
        if not kind:  # else the logs say more
            shutil.rmtree(self.folder)

    def client(self, service, endpoint=None):
        return boto3.client(service, endpoint_url=endpoint or self.services["MOTO_ENDPOINT"], region_name="us-east-1",
                            aws_access_key_id=self.services["AWS_ACCESS_KEY_ID"], aws_secret_access_key=self.services["AWS_SECRET_ACCESS_KEY"])

    def table(self, name, keys=("PK", "SK")):
        self.dynamodb.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"))])

    def rows(self, name):
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
        return [row for page in pages for row in page["Items"]]

    def items(self, name):
        """A replica's items without what is ours in them, in the order of their keys."""
        rows = [{attribute: value for attribute, value in row.items() if not attribute.startswith("sluice_")} for row in self.rows(name)]
        return sorted(rows, key=lambda row: row["SK"]["S"])

    def fill(self, name, items):
        for i in range(0, len(items), 25):
            self.dynamodb.batch_write_item(RequestItems={name: [{"PutRequest": {"Item": one}} for one in items[i:i + 25]]})

    def export(self, prefix, items, files):
        return put_export(self.s3, "exports", prefix, items, files)

    def environment(self, name, source, **more):
        """Of a function that seeds the tables NAME-replica and NAME-totals."""
        config = self.folder / f"{name}.json"
        config.write_text(CONFIG.replace("NAME", name))
        return {**self.services, "SLUICE_CONFIG": str(config), "SLUICE_WORK_ITEMS": "1", "SLUICE_WORK_SOURCE": source,
                "SLUICE_WORK_PLACE": "s3://seeds/seed", "SLUICE_WORK_KEYS": "PK,SK", "SLUICE_REPORT_BATCH_ITEM_FAILURES": "true",
                "SLUICE_WORK_CONCURRENCY": "4", "AWS_LAMBDA_LOG_LEVEL": "WARN", **more}

    def targets(self, name):
        self.table(f"{name}-replica")
        self.table(f"{name}-totals", ("PK",))


# Two routes that follow from items alone, and one that does not.
CONFIG = """{"report_batch_item_failures": true, "on_failure": "report", "routes": [
    {"name": "replica", "handler": "replicate", "to": "dynamodb://NAME-replica"},
    {"name": "totals", "handler": "aggregate", "to": "dynamodb://NAME-totals", "counters": [{"key": {"PK": "STATUS#{status}"}, "add": {"orders": 1, "money": "{total}"}}]},
    {"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{PK}"}]}"""
