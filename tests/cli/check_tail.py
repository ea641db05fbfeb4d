#!/usr/bin/env python3
"""`sluice tail`: against DynamoDB Local, and against a stream that splits, trims and expires by script."""
import gzip
import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import BUILD, check, ended, finish, kills, record, until, work_folder
from servers import Servers

kills()
folder = work_folder()
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
       "AWS_ACCESS_KEY_ID": "tail", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
CONFIG = {"report_batch_item_failures": True, "on_failure": "report",
          "routes": [{"name": "all", "handler": "archive", "to": "file:archived"}]}
(folder / "sluice.json").write_text(json.dumps(CONFIG))


def tail(*args, wait=True, **env):
    process = subprocess.Popen([f"{BUILD}/sluice", "tail", *args], cwd=folder, env={**ENV, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if wait:
        process.out, process.err = (t.decode() for t in process.communicate(timeout=600))
    return process


def archived():
    """Sequence numbers, in the objects' order."""
    found = []
    for path in sorted((folder / "archived").rglob("*.gz")):
        found += [json.loads(l)["dynamodb"]["SequenceNumber"] for l in gzip.open(path)]
    return found


def forget_archived():
    for path in (folder / "archived").rglob("*.gz"):
        path.unlink()


def against_dynamodb_local():
    forget_archived()
    servers = Servers("dynamodb")
    ENV.update(servers.credentials)
    endpoint = servers.endpoint
    servers.create("orders", stream=True)
    put = lambda n: servers.dynamodb("PutItem", TableName="orders", Item={"PK": {"S": f"k{n}"}, "n": {"N": str(n)}})
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
    until(lambda: len(archived()) >= 40)
    live.send_signal(signal.SIGINT)
    out, err = ended(live)
    check("follows, and ends in order", live.returncode == 0 and len(archived()) == 40 and b"INSERT 5," in out, out + err)
    run = tail("--table", "orders", "--once", "--from", "latest", "--endpoint-url", endpoint)
    check("--from latest sees nothing old", run.returncode == 0 and "INSERT 0," in run.out, run.out + run.err)
    live = tail("--table", "orders", "--from", "latest", "--endpoint-url", endpoint, "--checkpoint", "began.json", wait=False)
    until((folder / "began.json").exists)
    time.sleep(2)  # (through its first reads; the stream's times are those of whole minutes)
    put(40)
    until(lambda: len(archived()) >= 41)
    live.terminate()
    out, err = ended(live)
    check("--from latest sees what comes in the minute of its start", live.returncode == 0 and b"INSERT 1," in out, out + err)
    for args, text in ((("--table", "nowhere"), "nowhere"), ((), "--table"), (("--table", "orders", "--from", "x"), "--from")):
        run = tail(*args, *flags)
        check(f"{args}: exit 2", run.returncode == 2 and text in run.err, run.err)
    redrive_a_pointer(endpoint)


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
                          cwd=folder, env=ENV, capture_output=True, timeout=600)
    again = [json.loads(l)["dynamodb"]["SequenceNumber"] for p in (folder / "redriven").rglob("*.gz") for l in gzip.open(p)]
    check("a pointer: its records, no others", done.returncode == 0 and sorted(again) == numbers[10:13], done.stdout + done.stderr)


# ---- one by script ----

class Stream(BaseHTTPRequestHandler):
    """DynamoDB Streams with the shards of server.shards: name -> (parent, closed, [sequence numbers])."""
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def log_message(self, *args):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # of a tail that was killed

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

    def DescribeTable(self, body):
        if self.server.latest is None:
            return self.refuse("ResourceNotFoundException")
        self.reply({"Table": {"TableName": "t", **({"LatestStreamArn": self.server.latest} if self.server.latest else {})}})

    def DescribeStream(self, body):
        if body["StreamArn"] in self.server.gone:
            return self.refuse("ResourceNotFoundException")
        shards = [{"ShardId": name, **({"ParentShardId": parent} if parent else {}),
                   "SequenceNumberRange": {"StartingSequenceNumber": "1", **({"EndingSequenceNumber": "9"} if closed else {})}}
                  for name, (parent, closed, _) in self.server.of(body["StreamArn"]).items()]
        if self.server.doubles:  # a list that changes while its pages are read may name a shard twice
            return self.reply({"StreamDescription": {"Shards": shards + shards}})
        first = body.get("ExclusiveStartShardId")
        at = [s["ShardId"] for s in shards].index(first) + 1 if first else 0
        page = shards[at:at + 2]  # two a page, so that paging is seen
        self.reply({"StreamDescription": {"Shards": page, "StreamStatus": self.server.status, **({"LastEvaluatedShardId": page[-1]["ShardId"]} if at + 2 < len(shards) else {})}})

    def GetShardIterator(self, body):
        if body["ShardId"] not in self.server.of(body["StreamArn"]) or body["StreamArn"] in self.server.gone:
            return self.refuse("ResourceNotFoundException")
        numbers = self.server.of(body["StreamArn"])[body["ShardId"]][2]
        kind, after = body["ShardIteratorType"], int(body.get("SequenceNumber", 0))
        if kind == "AFTER_SEQUENCE_NUMBER" and numbers and after < self.server.trimmed.get(body["ShardId"], 0):
            return self.refuse("TrimmedDataAccessException")
        at = {"TRIM_HORIZON": 0, "LATEST": len(numbers), "AFTER_SEQUENCE_NUMBER": sum(n <= after for n in numbers)}[kind]
        self.reply({"ShardIterator": f"{body['StreamArn']}|{body['ShardId']}:{at}"})

    def GetRecords(self, body):
        place, at = body["ShardIterator"].rsplit(":", 1)
        stream, name = place.split("|")
        if stream in self.server.gone:
            return self.refuse("ResourceNotFoundException")
        if self.server.code:
            return self.refuse(self.server.code)
        if self.server.expire:
            self.server.expire -= 1
            return self.refuse("ExpiredIteratorException")
        parent, closed, numbers = self.server.of(stream)[name]
        page = numbers[int(at):int(at) + self.server.page]
        ended = closed and int(at) + len(page) == len(numbers)
        records = [{k: v for k, v in record(n, **self.server.made).items() if k != "eventSourceARN"} for n in page]
        for r, n in zip(records, page):
            r["dynamodb"].setdefault("NewImage", {}).update(self.server.odd.get(n, {}))
            if n in self.server.times:
                r["dynamodb"].pop("ApproximateCreationDateTime", None)
                r["dynamodb"].update(self.server.times[n])
        self.server.served += [(name, n) for n in page]
        self.reply({"Records": records, **({} if ended else {"NextShardIterator": f"{place}:{int(at) + len(page)}"})})


ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"


class Script:
    def __init__(self, shards):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
        self.server.daemon_threads = True
        self.server.lock, self.server.shards, self.server.trimmed, self.server.expire = threading.Lock(), shards, {}, 0
        self.server.asked, self.server.served, self.server.odd, self.server.lies = [], [], {}, {}
        self.server.page, self.server.made, self.server.status, self.server.latest, self.server.gone = 3, {}, "ENABLED", ARN, set()
        self.server.streams = {}  # of other streams: ARN -> shards
        self.server.of = lambda arn: self.server.streams.get(arn, self.server.shards)
        self.server.doubles, self.server.code, self.server.times = False, None, {}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def tail(self, *args, **env):
        forget_archived()
        self.server.served.clear()
        return tail("--stream", ARN, "--endpoint-url", self.url, "--once", *args, **env)


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
    long_ago = "2020-01-01T00:00:00.000Z"
    for place in ("poison-place.json", "sound-place.json"):
        (folder / place).write_text(json.dumps({"stream": ARN, "complete_since": long_ago, "shards": {}}))
    run = s.tail("--config", "poison.json", "--max-retries", "0", "--bisect", "--on-failure", "failed.jsonl", "--checkpoint", "poison-place.json")
    earlier, *written = (folder / "failed.jsonl").read_text().splitlines()
    given_up = [json.loads(l)["DDBStreamBatchInfo"]["startSequenceNumber"] for l in written]
    check("the failure records of the run before are kept", earlier == "of the run before", earlier)
    check("what cannot succeed is given up and reported", run.returncode == 1 and given_up == list("123456"), run.out + run.err)
    check("changes were missed until then", "complete_since" in (said := json.loads((folder / "poison-place.json").read_text())) and said["complete_since"] > long_ago, said)
    run = s.tail("--checkpoint", "sound-place.json")
    check("where nothing is given up, none was", json.loads((folder / "sound-place.json").read_text())["complete_since"] == long_ago, run.out + run.err)
    live = tail("--stream", ARN, "--endpoint-url", s.url, "--config", "poison.json", "--checkpoint", "never.json", wait=False)
    time.sleep(1.5)
    live.send_signal(signal.SIGTERM)
    out, err = (t.decode() for t in ended(live))
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


def doubles():
    s = Script({"child": ("root", False, [21, 22]), "root": (None, True, [1, 2, 3])})
    s.server.doubles = True
    run = s.tail("--checkpoint", "doubles.json")
    check("shards that are listed twice are read once", run.returncode == 0 and sorted(map(int, archived())) == [1, 2, 3, 21, 22], run.out + run.err)


def storms():
    """A place that is refused again and again is asked for less and less, and it is said."""
    for code in ("ExpiredIteratorException", "TrimmedDataAccessException"):
        s = Script({"only": (None, False, [1])})
        s.server.code = code
        live = tail("--stream", ARN, "--endpoint-url", s.url, wait=False)
        time.sleep(3)
        live.send_signal(signal.SIGTERM)
        out, err = ended(live)
        asked = [operation for operation, _ in s.server.asked].count("GetRecords")
        check(f"{code} without end: {asked} reads", 2 <= asked <= 6 and code.encode() in err, err)


def through_is_never_too_late():
    """`through` is a proof for others: what no record says, and times of the future, do not move it."""
    for name, made in (("no time", {}), ("of the future", {"ApproximateCreationDateTime": int(time.time()) + 86400})):
        s = Script({"only": (None, False, [1, 2])})
        s.server.times = {1: made, 2: made}
        place = f"through-{s.server.server_port}.json"
        live = tail("--stream", ARN, "--endpoint-url", s.url, "--checkpoint", place, wait=False)
        until(lambda: (folder / place).exists() and '"after":"2"' in (folder / place).read_text())
        live.send_signal(signal.SIGTERM)
        out, err = ended(live)
        kept = json.loads((folder / place).read_text())
        late = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 1))  # empty reads prove what is two seconds old
        check(f"{name}: {kept}", kept["shards"]["only"]["after"] == "2" and kept.get("through", "") < late, out + err)
    kept["through"] = "2999-01-01T00:00:00Z"
    (folder / place).write_text(json.dumps(kept))
    run = s.tail("--checkpoint", place)
    kept = json.loads((folder / place).read_text())
    check("a kept time of the future is forgotten", run.returncode == 0 and kept.get("through", "") < "2900", f"{kept} {run.out} {run.err}")


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
                       json.dumps({"StreamDescription": {"Shards": [{"ShardId": "a", "ParentShardId": "a", "SequenceNumberRange": {}}]}}),
                       '<html></html>'],
}


def liars():
    """An answer that proves nothing is neither an empty page nor the end of a shard; and the truth is read afterwards."""
    forget_archived()
    told = [(operation, text) for operation, texts in LIES.items() for text in texts]
    while told:
        runs, told = [(Script({"only": (None, True, [1, 2, 3])}), lie) for lie in told[:36]], told[36:]
        for s, (operation, text) in runs:
            s.server.lies = {operation: text}
            s.run = tail("--stream", ARN, "--endpoint-url", s.url, "--once", "--checkpoint", f"lie{s.server.server_port}.json", wait=False, AWS_MAX_ATTEMPTS="1")
        for s, lie in runs:
            out, err = s.run.communicate(timeout=600)
            check(f"{lie}", s.run.returncode in (1, 2) and (b"not understood" in err or b"without shards" in err) and not archived(), out + err)
    s.server.lies = {}
    run = s.tail("--checkpoint", f"lie{s.server.server_port}.json")
    check("and then the truth", run.returncode == 0 and archived() == list("123"), run.out + run.err)


# ---- lanes, and failures that must be seen ----

def places(name):
    try:
        return json.loads((folder / name).read_text())["shards"]
    except (OSError, ValueError):
        return {}


def stopped(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.out, process.err = (t.decode() for t in process.communicate(timeout=600))
    return process


def begin(script, *args, **env):
    return tail("--stream", ARN, "--endpoint-url", script.url, *args, wait=False, **env)


def said(name):
    path = folder / name
    return [l.strip().strip('"') for l in path.read_text().splitlines()] if path.exists() else []


def blocked():
    """One shard's record fails for as long as it likes: the others go on, and their places move."""
    good, s = list(range(100, 400)), Script({"bad": (None, False, [1, 2, 3]), "a": (None, False, []), "b": (None, False, []), "c": (None, False, [])})
    config = {**CONFIG, "routes": [{"name": "say", "handler": "notify", "to": "jsonl:blocked.jsonl", "message": "{word}"}]}
    (folder / "blocked.json").write_text(json.dumps(config))
    s.server.odd = {n: {"word": {"S": str(n)}} for n in good}
    live = begin(s, "--config", "blocked.json", "--checkpoint", "blocked-place.json", "--concurrency", "2")
    until(lambda: any(o == "GetRecords" for o, _ in s.server.asked))
    time.sleep(2)  # the bad shard is in its pauses by now
    for i, n in enumerate(good):
        s.server.shards["abc"[i % 3]][2].append(n)
    check("a blocked shard: the others are handled", until(lambda: len(said("blocked.jsonl")) == len(good)), len(said("blocked.jsonl")))
    check("in order, each shard", all([n for n in map(int, said("blocked.jsonl")) if n % 3 == k] == [n for n in good if n % 3 == k] for k in range(3)))
    check("and their places move, the blocked one's does not",
          until(lambda: [places("blocked-place.json").get(n, {}).get("after") for n in ("a", "b", "c", "bad")] == ["397", "398", "399", None]), places("blocked-place.json"))
    stopped(live)
    check("it ends with 1, and says what is not handled", live.returncode == 1 and "not handled            3" in live.out, live.out + live.err)


def parallel():
    """The place is below all that is not handled, whatever the lanes of the shard have done beyond it."""
    numbers = list(range(1, 61))
    s = Script({"only": (None, False, numbers)})
    s.server.page = 20
    s.server.odd = {n: {"word": {"S": str(n)}} for n in numbers if n != 7}
    config = {**CONFIG, "routes": [{"name": "say", "handler": "notify", "to": "jsonl:parallel.jsonl", "message": "{word}"}]}
    (folder / "parallel.json").write_text(json.dumps(config))
    live = begin(s, "--config", "parallel.json", "--checkpoint", "parallel-place.json", "--parallelization", "10", "--batch-size", "1")
    check("other lanes go on, to the end of the second page", until(lambda: len(said("parallel.jsonl")) >= 30), said("parallel.jsonl"))
    check("the place is before the record that fails", until(lambda: places("parallel-place.json").get("only", {}).get("after") == "6"), places("parallel-place.json"))
    stopped(live)
    s.server.odd[7] = {"word": {"S": "7"}}
    run = s.tail("--config", "parallel.json", "--checkpoint", "parallel-place.json", "--parallelization", "10", "--batch-size", "1")
    check("and nothing is lost", run.returncode == 0 and set(said("parallel.jsonl")) == set(map(str, numbers)), run.out + run.err)


def kept_or_not():
    """The checkpoint's path is proven and locked at the start; when it can no longer be written, tail ends."""
    s = Script({"only": (None, False, list(range(1, 500)))})
    first = begin(s, "--checkpoint", "locked.json")
    check("a tail that works", until(lambda: places("locked.json").get("only", {}).get("after") == "499"))
    second = s.tail("--checkpoint", "locked.json")
    check("a second one is refused, and told who has it", second.returncode == 2 and f"process {first.pid}" in second.err, second.err)
    check("the first goes on, and ends with 0", stopped(first).returncode == 0, first.err)
    run = s.tail("--checkpoint", "locked.json")
    check("then another may have it", run.returncode == 0, run.err)
    run = s.tail("--checkpoint", "nowhere/place.json")
    check("a path that cannot be written is refused", run.returncode == 2 and "nowhere/place.json" in run.err and not s.server.served, run.err)
    (folder / "full").mkdir()
    live = begin(s, "--checkpoint", "full/place.json")
    until(lambda: "only" in places("full/place.json"))
    (folder / "full").rename(folder / "moved away")
    s.server.shards["only"][2].append(500)
    live.out, live.err = (t.decode() for t in ended(live))
    check("one that can no longer be written ends it with 1", live.returncode == 1 and "cannot be written" in live.err, live.err)


def stopping():
    """SIGTERM while an invocation hangs: the end comes nevertheless."""
    (folder / "hang.json").write_text(json.dumps({**CONFIG, "routes": [{"name": "all", "handler": "archive", "to": "s3://bucket/x?endpoint=http://10.255.255.1&region=us-east-1"}]}))
    s = Script({"only": (None, False, [1, 2, 3])})
    live = begin(s, "--config", "hang.json", "--checkpoint", "hang-place.json")
    until(lambda: any(o == "GetRecords" for o, _ in s.server.asked))
    time.sleep(0.5)
    began = time.time()
    stopped(live)
    check("ended with 1", live.returncode == 1 and time.time() - began < 20 and "not handled" in live.out, f"{time.time() - began} {live.out} {live.err}")


def a_slow_disk():
    """An end that nobody asked for waits for the checkpoint; one that was asked for does not wait for ever."""
    (folder / "slow.c").write_text('#include <unistd.h>\nint fsync(int fd) { (void)fd; sleep(access("hung", F_OK) ? 2 : 1000); return 0; }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "slow.so", folder / "slow.c"], check=True)
    slow = {"LD_PRELOAD": str(folder / "slow.so")}
    s = Script({"a": (None, True, list(range(1, 31)))})
    run = s.tail("--checkpoint", "slow.json", **slow)
    check("a slow disk is waited for", run.returncode == 0 and places("slow.json"), run.out + run.err)
    s = Script({"a": (None, False, list(range(1, 31)))})
    live = begin(s, "--checkpoint", "slower.json", **slow)
    until(lambda: live.poll() is not None or len(s.server.served) >= 30)
    (folder / "hung").touch()
    began = time.monotonic()
    live.terminate()
    out, err = ended(live)
    check("but not by one that was told to stop", live.returncode == 1 and time.monotonic() - began < 10 and b"was not written in time" in err, (live.returncode, out, err))


def latest():
    """--from latest begins at one moment: also when it is started again before the first record came."""
    s = Script({"closed": (None, True, [1, 2]), "open": (None, False, [3, 4])})
    s.server.made = {"created": int(time.time()) - 3600}
    run = s.tail("--from", "latest", "--checkpoint", "latest.json")
    check("nothing old", run.returncode == 0 and not archived() and "since" in places("latest.json")["open"] and places("latest.json")["closed"] == {"done": True}, run.out + run.err)
    s.server.shards["open"][2].append(5)
    s.server.made = {"created": int(time.time()) + 1}
    run = s.tail("--from", "latest", "--checkpoint", "latest.json")
    check("what came between the two runs is handled", run.returncode == 0 and "5" in archived(), run.out + run.err)


def other_streams():
    """A stream that is disabled, replaced or deleted is said, then followed, or tail ends."""
    new = ARN.replace("2026-01-01", "2026-02-02")
    s = Script({"old": (None, False, [1, 2, 3])})
    s.server.streams = {new: {"new": (None, False, [11, 12])}}
    forget_archived()
    follow = ("--table", "t", "--endpoint-url", s.url, "--checkpoint", "follow.json")
    run = tail(*follow, "--once")
    check("the stream of the table", run.returncode == 0 and archived() == ["1", "2", "3"], run.out + run.err)
    s.server.shards["old"] = (None, True, [1, 2, 3, 4])
    s.server.status, s.server.latest = "DISABLED", new
    run = tail(*follow, "--once")
    check("another stream than the checkpoint's: refused, with what to do", run.returncode == 2 and "--follow-new-stream" in run.err, run.err)
    run = tail("--stream", ARN, "--endpoint-url", s.url, "--checkpoint", "follow.json")
    check("a disabled stream ends it with 1, with what to do", run.returncode == 1 and "gets no more changes" in run.err and "--follow-new-stream" in run.err, run.out + run.err)
    live = tail(*follow, "--follow-new-stream", wait=False)
    check("followed: the old one's shards first", until(lambda: {"4", "11", "12"} <= set(archived())), archived())
    check("the checkpoint is the new one's", until(lambda: places("follow.json").get("new", {}).get("after") == "12"), places("follow.json"))
    stopped(live)
    order = [n for _, n in s.server.served]
    check("said with its gap", live.returncode == 1 and "is handled to its end; follows" in live.err and order.index(4) < order.index(11), live.out + live.err)
    s.server.status, s.server.gone = "ENABLED", {new}
    run = tail("--stream", new, "--endpoint-url", s.url, "--checkpoint", "follow.json")
    check("a deleted stream ends it", run.returncode in (1, 2) and "ResourceNotFoundException" in run.err, run.out + run.err)


def in_process():
    """The built-in handlers without sandboxes; plugins are not trusted by themselves."""
    s = Script({"root": (None, True, list(range(1, 30))), "child": ("root", False, list(range(30, 60)))})
    run = s.tail("--in-process", "--checkpoint", "inside.json", "--batch-size", "5")
    check("everything is handled in this process", run.returncode == 0 and sorted(map(int, archived())) == list(range(1, 60)) and "archive" in run.out, run.out + run.err)
    # Spans, in sandboxes and without: one of each invocation and one of its route, with the records' traces.
    for flags in ((), ("--in-process",)):
        s = Script({"root": (None, True, list(range(1, 21)))})
        s.server.odd = {n: {"t": {"S": f"00-{n:032x}-{n:016x}-0{n % 2}"}} for n in range(1, 21)}
        (folder / "traced.json").write_text(json.dumps({**CONFIG, "trace": "t", "trace_to": f"jsonl:spans{len(flags)}.jsonl"}))
        run = s.tail(*flags, "--config", "traced.json", "--checkpoint", f"traced{len(flags)}.json", "--batch-size", "10")
        lines = (folder / f"spans{len(flags)}.jsonl").read_text().splitlines()
        spans = [span for line in lines for scope in json.loads(line)["resourceSpans"][0]["scopeSpans"] for span in scope["spans"]]
        linked = sorted(int(link["traceId"], 16) for span in spans if "parentSpanId" not in span for link in span["links"])
        check(f"spans of a tail {flags}", run.returncode == 0 and linked == list(range(1, 21, 2)) and len(spans) == 2 * len([s for s in spans if "parentSpanId" not in s]), (run.err, spans))
        applied = [sum(int(a["value"]["intValue"]) for a in span["attributes"] if a["key"] == "sluice.applied") for span in spans if "parentSpanId" in span]
        check(f"counts of each invocation {flags}", sum(applied) == 20 and max(applied) <= 10, applied)
    (folder / "plugin.json").write_text(json.dumps({**CONFIG, "routes": [{"name": "x", "handler": "mine", "to": "file:x"}]}))
    run = s.tail("--in-process", "--config", "plugin.json", "--checkpoint", "plugin-place.json")
    check("a plugin is refused", run.returncode == 2 and "--trust-plugins" in run.err, run.err)


def many_shards():
    """256 shards; and shards that share a memory of less than one page."""
    for n, flags in ((256, ()), (24, ("--memory", "1"))):
        s = Script({f"shard-{i:03}": (None, True, list(range(i * 10 + 1, i * 10 + 4))) for i in range(n)})
        run = s.tail("--in-process", "--checkpoint", f"many{n}.json", *flags)
        check(f"all of {n} shards {flags}", run.returncode == 0 and len(archived()) == n * 3, run.out + run.err)


def killed(times):
    """Killed while it works: every record is handled, in its shard's order when repeats are left out."""
    numbers = {f"s{k}": list(range(k * 1000 + 1, k * 1000 + 301)) for k in range(4)}
    s = Script({name: (None, True, list(n)) for name, n in numbers.items()})
    config = {**CONFIG, "routes": [{"name": "say", "handler": "notify", "to": "jsonl:killed.jsonl", "message": "{word}"}]}
    (folder / "killed.json").write_text(json.dumps(config))
    s.server.odd = {n: {"word": {"S": str(n)}} for ns in numbers.values() for n in ns}
    flags = ("--config", "killed.json", "--checkpoint", "killed-place.json", "--batch-size", "10")
    for i in range(times):
        live = begin(s, *flags)
        until(lambda: live.poll() is not None or len(s.server.served) > 20 * i)
        time.sleep(0.05 + (i * 37 % 50) / 100)
        live.kill()
        live.communicate()
    run = s.tail(*flags)
    first_seen = {name: [n for n in dict.fromkeys(map(int, said("killed.jsonl"))) if n in set(ns)] for name, ns in numbers.items()}
    check(f"killed {times} times: nothing lost, first deliveries in order", run.returncode == 0 and first_seen == numbers, run.out + run.err)


by_script()
doubles()
storms()
through_is_never_too_late()
odd_records()
liars()
failures()
blocked()
parallel()
kept_or_not()
stopping()
a_slow_disk()
latest()
other_streams()
in_process()
many_shards()
killed(20 if os.environ.get("LONG") else 6)
against_dynamodb_local()
finish()
