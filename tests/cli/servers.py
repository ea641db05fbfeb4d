"""DynamoDB Local, moto and OpenSearch for one test, and plain requests to them."""
import http.client
import json
import os
import subprocess
import threading
import urllib.parse

from harness import at_end, work_folder


class Failure(Exception):
    pass


class Requests:
    """Plain requests to the servers that `env` names, with its key and region."""

    def __init__(self, env):
        self.env = env
        self.connections = threading.local()  # parts of a test run side by side

    @property
    def endpoint(self):
        return self.env["DYNAMODB_ENDPOINT"]

    def request(self, endpoint, service, method, path, body, headers):
        host = urllib.parse.urlsplit(endpoint).netloc
        headers = {"Host": host, "X-Amz-Date": "20260101T000000Z", **headers,
                   "Authorization": f"AWS4-HMAC-SHA256 Credential={self.env['AWS_ACCESS_KEY_ID']}/20260101/{self.env['AWS_REGION']}/{service}/aws4_request, "
                                    "SignedHeaders=host, Signature=0"}
        connections = self.connections.__dict__
        for last in (False, True):  # the server closes what is idle
            connection = connections.setdefault(host, http.client.HTTPConnection(host, timeout=600))
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError):
                connections.pop(host).close()
                if last:
                    raise

    def ask(self, endpoint, service, target, body):
        return self.request(endpoint, service, "POST", "/", json.dumps(body), {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"})

    def call(self, endpoint, service, target, body):
        status, text = self.ask(endpoint, service, target, body)
        if status != 200:
            raise Failure(f"{target}: {status} {text[:400]}")
        return json.loads(text or b"{}")

    def dynamodb(self, operation, **body):
        return self.call(self.endpoint, "dynamodb", f"DynamoDB_20120810.{operation}", body)

    def streams(self, operation, **body):
        return self.call(self.endpoint, "dynamodb", f"DynamoDBStreams_20120810.{operation}", body)

    def sqs(self, operation, **body):
        return self.call(self.env["MOTO_ENDPOINT"], "sqs", f"AmazonSQS.{operation}", body)

    def s3(self, method, path, body=None):
        status, text = self.request(self.env["MOTO_ENDPOINT"], "s3", method, urllib.parse.quote(path, safe="/?=&"), body,
                                    {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"})
        if status >= 300:
            raise Failure(f"{method} {path}: {status} {text[:400]}")
        return text.decode()

    def create(self, table, keys=(("PK", "S"),), stream=False):
        more = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}} if stream else {}
        return self.dynamodb(
            "CreateTable", TableName=table, BillingMode="PAY_PER_REQUEST", **more,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in keys],
            KeySchema=[{"AttributeName": name, "KeyType": "RANGE" if i else "HASH"} for i, (name, _) in enumerate(keys)])["TableDescription"]

    def scan(self, table):
        items, more = [], {}
        while True:
            page = self.dynamodb("Scan", TableName=table, ConsistentRead=True, **more)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


class Servers(Requests):
    """Servers of this process, with which they end. `env`: their endpoints, a key and a region."""

    def __init__(self, *names):
        folder = work_folder()
        at_end(subprocess.run, ["tests/services/stop.sh", str(folder)])
        subprocess.run(["tests/services/start.sh", "--owner", str(os.getpid()), str(folder), *names], check=True)
        super().__init__(dict(line.split("=", 1) for line in (folder / "env").read_text().splitlines()))
        # What a program under test gets when it is told the endpoints.
        self.credentials = {name: value for name, value in self.env.items() if name.startswith("AWS_") and not name.startswith("AWS_ENDPOINT_URL")}
