#!/usr/bin/env python3
"""`sluice tail`: against DynamoDB Local, and against a stream that splits, trims and expires by script."""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import BUILD, FUNCTION, check, finish, record

folder = pathlib.Path(tempfile.mkdtemp())
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
       "AWS_ACCESS_KEY_ID": "tail", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
CONFIG = {"report_batch_item_failures": True, "on_failure": "report",
          "routes": [{"name": "all", "handler": "archive", "to": "file:archived"}]}
(folder / "sluice.json").write_text(json.dumps(CONFIG))


def tail(*args, wait=True, **env):
    process = subprocess.Popen([f"{BUILD}/sluice", "tail", *args], cwd=folder, env={**ENV, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if wait:
        process.out, process.err = (t.decode() for t in process.communicate(timeout=120))
    return process


def archived():
    """Sequence numbers, in the objects' order."""
    found = []
    for path in sorted((folder / "archived").rglob("*.gz")):
        found += [json.loads(l)["dynamodb"]["SequenceNumber"] for l in gzip.open(path)]
    return found


# ---- a real one ----

def dynamodb(endpoint, operation, body):
    request = urllib.request.Request(endpoint, json.dumps(body).encode(), {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}", "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=tail/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
        "X-Amz-Date": "20260101T000000Z"})
    return json.load(urllib.request.urlopen(request))


def against_dynamodb_local():
    services = folder / "services"
    subprocess.run(["tests/services/start.sh", "--owner", str(os.getpid()), str(services), "dynamodb"], check=True)
    try:
        lines = dict(l.split("=", 1) for l in (services / "env").read_text().splitlines() if "=" in l)
        endpoint = lines["DYNAMODB_ENDPOINT"].strip("'\"")
        dynamodb(endpoint, "CreateTable", {
            "TableName": "orders", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}})
        put = lambda n: dynamodb(endpoint, "PutItem", {"TableName": "orders", "Item": {"PK": {"S": f"k{n}"}, "n": {"N": str(n)}}})
        for n in range(30):
            put(n)
        flags = ("--endpoint-url", endpoint, "--checkpoint", "place.json")
        run = tail("--table", "orders", "--once", "--batch-size", "7", *flags)
        check("reads what is there", run.returncode == 0 and len(archived()) == 30 and "INSERT 30" in run.out, run.out + run.err)
        for n in range(30, 35):
            put(n)
        run = tail("--table", "orders", "--once", *flags)
        check("continues after its checkpoint", run.returncode == 0 and len(archived()) == 35 and "INSERT 5," in run.out, run.out + run.err)
        live = tail("--table", "orders", *flags, wait=False)
        time.sleep(1)
        for n in range(35, 40):
            put(n)
        until = time.time() + 30
        while len(archived()) < 40 and time.time() < until:
            time.sleep(0.1)
        live.send_signal(signal.SIGINT)
        out, err = live.communicate(timeout=30)
        check("follows, and ends in order", live.returncode == 0 and len(archived()) == 40 and b"INSERT 5," in out, out + err)
        run = tail("--table", "orders", "--once", "--from", "latest", "--endpoint-url", endpoint)
        check("--from latest sees nothing old", run.returncode == 0 and "INSERT 0," in run.out, run.out + run.err)
        for args, text in ((("--table", "nowhere"), "nowhere"), ((), "--table"), (("--table", "orders", "--from", "x"), "--from")):
            run = tail(*args, *flags)
            check(f"{args}: exit 2", run.returncode == 2 and text in run.err, run.err)
        redrive_a_pointer(endpoint)
    finally:
        subprocess.run(["tests/services/stop.sh", str(services)], check=True)


def redrive_a_pointer(endpoint):
    """What the mapping discards is a pointer into the stream; redrive fetches what it points to."""
    numbers = sorted(archived())
    stream = json.loads((folder / "place.json").read_text())
    shard, = stream["shards"]
    message = {"requestContext": {}, "DDBStreamBatchInfo": {"shardId": shard, "startSequenceNumber": numbers[10], "endSequenceNumber": numbers[12],
                                                            "batchSize": 3, "streamArn": stream["stream"]}}
    (folder / "pointer.json").write_text(json.dumps(message))
    config = {**CONFIG, "routes": [{**CONFIG["routes"][0], "to": "file:redriven"}]}
    (folder / "redrive.json").write_text(json.dumps(config))
    done = subprocess.run([f"{BUILD}/sluice", "redrive", "--config", "redrive.json", "--region", "us-east-1", "--endpoint-url", endpoint, "pointer.json"],
                          cwd=folder, env=ENV, capture_output=True, timeout=60)
    again = [json.loads(l)["dynamodb"]["SequenceNumber"] for p in (folder / "redriven").rglob("*.gz") for l in gzip.open(p)]
    check("a pointer: its records, no others", done.returncode == 0 and sorted(again) == numbers[10:13], done.stdout + done.stderr)


# ---- one by script ----

class Stream(BaseHTTPRequestHandler):
    """DynamoDB Streams with the shards of server.shards: name -> (parent, closed, [sequence numbers])."""
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def log_message(self, *args):
        pass

    def reply(self, body, code=200):
        self.send(json.dumps(body).encode(), code)

    def send(self, text, code):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, code):
        self.reply({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "by script"}, 400)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers["X-Amz-Target"].split(".")[1]
        with self.server.lock:
            self.server.asked.append((operation, body))
            if operation in self.server.lies:
                return self.send(self.server.lies[operation].encode(), 200)
            getattr(self, operation)(body)

    def DescribeStream(self, body):
        shards = [{"ShardId": name, **({"ParentShardId": parent} if parent else {}),
                   "SequenceNumberRange": {"StartingSequenceNumber": "1", **({"EndingSequenceNumber": "9"} if closed else {})}}
                  for name, (parent, closed, _) in self.server.shards.items()]
        first = body.get("ExclusiveStartShardId")
        at = [s["ShardId"] for s in shards].index(first) + 1 if first else 0
        page = shards[at:at + 2]  # two a page, so that paging is seen
        self.reply({"StreamDescription": {"Shards": page, **({"LastEvaluatedShardId": page[-1]["ShardId"]} if at + 2 < len(shards) else {})}})

    def GetShardIterator(self, body):
        if body["ShardId"] not in self.server.shards:
            return self.refuse("ResourceNotFoundException")
        numbers = self.server.shards[body["ShardId"]][2]
        kind, after = body["ShardIteratorType"], int(body.get("SequenceNumber", 0))
        if kind == "AFTER_SEQUENCE_NUMBER" and numbers and after < self.server.trimmed.get(body["ShardId"], 0):
            return self.refuse("TrimmedDataAccessException")
        at = {"TRIM_HORIZON": 0, "LATEST": len(numbers), "AFTER_SEQUENCE_NUMBER": sum(n <= after for n in numbers)}[kind]
        self.reply({"ShardIterator": f"{body['ShardId']}:{at}"})

    def GetRecords(self, body):
        name, at = body["ShardIterator"].rsplit(":", 1)
        if self.server.expire:
            self.server.expire -= 1
            return self.refuse("ExpiredIteratorException")
        parent, closed, numbers = self.server.shards[name]
        page = numbers[int(at):int(at) + 3]
        ended = closed and int(at) + len(page) == len(numbers)
        records = [{k: v for k, v in record(n).items() if k != "eventSourceARN"} for n in page]
        for r, n in zip(records, page):
            r["dynamodb"].setdefault("NewImage", {}).update(self.server.odd.get(n, {}))
        self.server.served += [(name, n) for n in page]
        self.reply({"Records": records, **({} if ended else {"NextShardIterator": f"{name}:{int(at) + len(page)}"})})


ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"


class Script:
    def __init__(self, shards):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
        self.server.daemon_threads = True
        self.server.lock, self.server.shards, self.server.trimmed, self.server.expire = threading.Lock(), shards, {}, 0
        self.server.asked, self.server.served, self.server.odd, self.server.lies = [], [], {}, {}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def tail(self, *args):
        for path in (folder / "archived").rglob("*.gz"):
            path.unlink()
        self.server.served.clear()
        return tail("--stream", ARN, "--endpoint-url", self.url, "--once", *args)


def by_script():
    s = Script({"child": ("root", False, [21, 22, 23, 24]), "root": (None, True, [1, 2, 3, 4, 5]), "other": ("root", True, [11, 12]),
                "grandchild": ("other", False, [31])})
    run = s.tail("--checkpoint", "script.json")
    order = [name for name, _ in s.server.served]
    check("all of all shards", run.returncode == 0 and sorted(map(int, archived())) == [1, 2, 3, 4, 5, 11, 12, 21, 22, 23, 24, 31], run.out + run.err)
    check("parents to their end, then children", max(i for i, n in enumerate(order) if n == "root") < min(i for i, n in enumerate(order) if n != "root") and
          max(i for i, n in enumerate(order) if n == "other") < order.index("grandchild"), order)
    s.server.shards["child"][2].append(25)
    run = s.tail("--checkpoint", "script.json")
    check("again: only what is new", run.returncode == 0 and archived() == ["25"], run.out + run.err)
    s.server.expire = 3
    s.server.shards["child"][2].append(26)
    run = s.tail("--checkpoint", "script.json")
    check("expired iterators are asked for anew", run.returncode == 0 and archived() == ["26"], run.out + run.err)
    s.server.shards["child"] = ("root", False, [40, 41])
    s.server.trimmed["child"] = 40
    run = s.tail("--checkpoint", "script.json")
    check("a gap: reported once, counted, exit 1", run.returncode == 1 and archived() == ["40", "41"] and run.err.count("are gone from the stream") == 1 and
          "gaps                   1" in run.out, run.out + run.err)
    del s.server.shards["grandchild"]
    run = s.tail("--checkpoint", "script.json")
    check("a shard that vanished unread is a gap, too", run.returncode == 1 and "1 shard(s)" in run.err, run.out + run.err)
    run = tail("--stream", ARN + "x", "--endpoint-url", s.url, "--once", "--checkpoint", "script.json")
    check("another stream's checkpoint is refused", run.returncode == 2 and "another stream" in run.err, run.err)
    (folder / "script.json").write_text('{"stream"')
    run = s.tail("--checkpoint", "script.json")
    check("a damaged one is refused", run.returncode == 2 and "script.json" in run.err, run.err)


def failures():
    """Poison on a live stream: the checkpoint stays before it until it is given up."""
    s = Script({"only": (None, False, [1, 2, 3, 4, 5, 6])})
    config = {**CONFIG, "routes": [{"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{word}"}]}
    (folder / "poison.json").write_text(json.dumps(config))
    (folder / "failed.jsonl").write_text("of the run before\n")
    run = s.tail("--config", "poison.json", "--max-retries", "0", "--bisect", "--on-failure", "failed.jsonl", "--checkpoint", "poison-place.json")
    earlier, *written = (folder / "failed.jsonl").read_text().splitlines()
    given_up = [json.loads(l)["DDBStreamBatchInfo"]["startSequenceNumber"] for l in written]
    check("the failure records of the run before are kept", earlier == "of the run before", earlier)
    check("what cannot succeed is given up and reported", run.returncode == 1 and given_up == list("123456"), run.out + run.err)
    live = tail("--stream", ARN, "--endpoint-url", s.url, "--config", "poison.json", "--checkpoint", "never.json", wait=False)
    time.sleep(1.5)
    live.send_signal(signal.SIGTERM)
    out, err = (t.decode() for t in live.communicate(timeout=30))
    kept = json.loads((folder / "never.json").read_text())["shards"]
    check("retried without limit, ended in between: no place, exit 1", live.returncode == 1 and not kept and "not handled" in out, out + err)


def odd_records():
    """Names and values that only DynamoDB takes, and a record that cannot be read: named, and not asked for for ever."""
    s = Script({"only": (None, False, [1, 2, 3, 4, 5, 6])})
    s.server.odd = {2: {"na\0me": {"S": "a\0b"}, "\0": {"NULL": True}}}
    run = s.tail("--checkpoint", "odd.json")
    check("NUL in names and values", run.returncode == 0 and archived() == list("123456"), run.out + run.err)
    s.server.shards["only"] = (None, False, [7, 8, 9, 10])
    s.server.odd = {9: {"na\ud800me": {"S": "x"}}}
    run = s.tail("--checkpoint", "odd.json")
    after = json.loads((folder / "odd.json").read_text())["shards"]["only"]["after"]
    check("a record that cannot be read: those before it are handled, it is named, and tail ends",
          run.returncode == 1 and archived() == ["7", "8"] and after == "8" and '"9" cannot be read' in run.err and "checkpoint" in run.err, run.out + run.err)


LIES = {
    "GetRecords": ['{}', '[]', '5', '""', 'null', '', '<html></html>', '{"Records":5}', '{"Records":{}}', '{"Records":[5]}', '{"Records":[{}]}',
                   '{"Records":[{"dynamodb":{}}]}', '{"Records":[{"dynamodb":{"SequenceNumber":7}}]}', '{"Records":[{"dynamodb":{"SequenceNumber":""}}]}',
                   '{"Records":[],"NextShardIterator":5}', '{"Records":[],"NextShardIterator":"\\u0000"}', '{"NextShardIterator":"only:0"}', '{"Records":[',
                   '{"__type":"InternalServerError"}', '{"Records":[],"message":"x"}'],
    "GetShardIterator": ['{}', '[]', '{"ShardIterator":5}', '{"ShardIterator":""}', '{"ShardIterator":"\\u0000"}', '<html></html>'],
    "DescribeStream": ['{}', '[]', '{"StreamDescription":{}}', '{"StreamDescription":{"Shards":5}}', '{"StreamDescription":{"Shards":[5]}}',
                       '{"StreamDescription":{"Shards":[{}]}}', '{"StreamDescription":{"Shards":[{"ShardId":"a"}]}}',
                       '{"StreamDescription":{"Shards":[],"LastEvaluatedShardId":5}}', '{"StreamDescription":{"Shards":[],"LastEvaluatedShardId":"a"}}',
                       json.dumps({"StreamDescription": {"Shards": [{"ShardId": a, "ParentShardId": b, "SequenceNumberRange": {}} for a, b in ("ab", "ba")]}}),
                       '<html></html>'],
}


def liars():
    """An answer that proves nothing is neither an empty page nor the end of a shard; and the truth is read afterwards."""
    for path in (folder / "archived").rglob("*.gz"):
        path.unlink()
    told = [(operation, text) for operation, texts in LIES.items() for text in texts]
    while told:
        runs, told = [(Script({"only": (None, True, [1, 2, 3])}), lie) for lie in told[:36]], told[36:]
        for s, (operation, text) in runs:
            s.server.lies = {operation: text}
            s.run = tail("--stream", ARN, "--endpoint-url", s.url, "--once", "--checkpoint", f"lie{s.server.server_port}.json", wait=False, AWS_MAX_ATTEMPTS="1")
        for s, lie in runs:
            out, err = s.run.communicate(timeout=60)
            check(f"{lie}", s.run.returncode in (1, 2) and (b"not understood" in err or b"without shards" in err) and not archived(), out + err)
    s.server.lies = {}
    run = s.tail("--checkpoint", f"lie{s.server.server_port}.json")
    check("and then the truth", run.returncode == 0 and archived() == list("123"), run.out + run.err)


by_script()
odd_records()
liars()
failures()
against_dynamodb_local()
finish()
