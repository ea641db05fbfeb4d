#!/usr/bin/env python3
"""The real bootstrap against a Runtime API that says what the test wants."""
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, "tests/cli")
from harness import work_folder  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
folder = work_folder()
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {detail}")
    passed += 1


class Api(BaseHTTPRequestHandler):
    """Serves what is in `events`; notes all that is posted."""
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body in one packet, else each reply waits 40 ms for an acknowledgement

    def log_message(self, *args):
        pass

    def reply(self, code, body=b"", headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # the process was killed meanwhile
            self.close_connection = True

    def do_GET(self):
        self.server.seen.put(("GET", self.path, None, None))
        event = self.server.events.get()
        if event is None:
            return self.reply(500)
        if isinstance(event, int):
            return self.reply(event)
        payload, headers = event
        request_id = f"00000000-0000-4000-8000-{next(self.server.ids):012d}"
        self.reply(200, payload, [("Lambda-Runtime-Aws-Request-Id", request_id),
                                  ("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1000) + 30000)),
                                  ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f"),
                                  *headers])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.put(("POST", self.path, body, self.headers.get("Lambda-Runtime-Function-Error-Type")))
        self.reply(self.server.post_code, b'{"status":"OK"}\n')


class Bootstrap:
    def __init__(self, config, post_code=202, **env):
        self.api = ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.api.daemon_threads = True
        self.api.events, self.api.seen, self.api.post_code = queue.Queue(), queue.Queue(), post_code
        self.api.ids = iter(range(1, 10 ** 9))
        threading.Thread(target=self.api.serve_forever, args=(0.02,), daemon=True).start()
        (folder / "sluice.json").write_text(json.dumps(config) if not isinstance(config, str) else config)
        base = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SLUICE_", "LAMBDA_"))}
        self.process = subprocess.Popen(
            [f"{BUILD}/bootstrap"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**base, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.api.server_port}", "SLUICE_CONFIG": str(folder / "sluice.json"), "TMPDIR": str(folder),
                 **env})

    def send(self, payload, *headers):
        self.api.events.put((payload if isinstance(payload, bytes) else json.dumps(payload).encode(), headers))

    def posted(self):
        while True:
            verb, path, body, kind = self.api.seen.get(timeout=600)
            if verb == "POST":
                return path, json.loads(body), kind

    def end(self):
        """Ends it with a 500 on `next`; what it logged, and its status."""
        self.api.events.put(None)
        return self.wait()

    def wait(self):
        out, err = self.process.communicate(timeout=600)
        self.api.shutdown()
        return self.process.returncode, out.decode(), err.decode()


def event(n=1, pad=""):
    def record(i):
        image = {"PK": {"S": f"k{i}"}, "pad": {"S": pad}}
        return {"eventID": f"{i:032x}", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
                "dynamodb": {"ApproximateCreationDateTime": 1573689197, "Keys": {"PK": image["PK"]}, "NewImage": image, "OldImage": image,
                             "SequenceNumber": str(100000 + i), "SizeBytes": 10, "StreamViewType": "NEW_AND_OLD_IMAGES"},
                "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2019-11-14T00:04:06.388"}
    return {"Records": [record(i) for i in range(n)]}


def notify(**more):
    return {"report_batch_item_failures": True, **more,
            "routes": [{"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{PK}", "on_failure": "report"}]}


def answers_and_lives_on():
    b = Bootstrap(notify())
    b.send(event(3))
    path, body, _ = b.posted()
    check("an event is answered", path.endswith("000000000001/response") and body == {"batchItemFailures": []}, body)
    for payload, what in ((b'{"hello":"world"}', "Function.NotAStreamEvent"), (b'{"Records":[', "Function.InvalidJson"),
                          (b'', "Function.InvalidJson"), (b'{"Records":[{"eventSource":"aws:s3","s3":{}}]}', "Function.NotAStreamEvent"),
                          (b'"na\xc3\xafve \xff"', None)):
        b.send(payload)
        path, body, kind = b.posted()
        check(f"{payload}: a function error that says so", path.endswith("/error") and body["errorType"] == kind and kind.startswith("Function.") and
              (what is None or kind == what) and body["errorMessage"], (path, body))
    b.send({"Records": []})
    check("an empty event is a success", b.posted()[1] == {"batchItemFailures": []})
    b.send(event(1))
    check("the process lives on", b.posted()[1] == {"batchItemFailures": []})
    check("each record was said once", (folder / "said.jsonl").read_text().count("\n") == 4)
    status, _, err = b.end()
    check("500 on next ends it with a status", status == 1 and "500" in err, err)


def init_errors():
    cases = [('{"routes":', "sluice.json"), ({"routes": [{"name": "a", "handler": "nowhere", "on_failure": "report"}]}, "nowhere"),
             ({**notify(), "frobnicate": 1}, "frobnicate")]
    for config, text in cases:
        b = Bootstrap(config)
        path, body, kind = b.posted()
        status, _, err = b.wait()
        check(f"{text}: init error with type and message", path.endswith("/runtime/init/error") and text in body["errorMessage"] and kind == body["errorType"] and
              kind.startswith("Function."), (path, body))
        check(f"{text}: exits non-zero, posted once, nothing asked", status == 1 and b.api.seen.empty(), status)
        check(f"{text}: one line in the log", err.count("\n") == 1 and text in err, err)
    done = subprocess.run([f"{BUILD}/bootstrap"], env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=600)
    check("outside Lambda: one line", done.returncode == 1 and b"AWS_LAMBDA_RUNTIME_API" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)


def logs():
    b = Bootstrap(notify(), AWS_LAMBDA_LOG_FORMAT="JSON", AWS_LAMBDA_LOG_LEVEL="INFO", AWS_LAMBDA_LOG_GROUP_NAME="g", AWS_LAMBDA_FUNCTION_NAME="orders")
    b.send(event(2, pad="s3cr3t-item"))
    b.posted()
    b.send(b'{"no":"s3cr3t-item"}')
    b.posted()
    _, out, err = b.end()
    lines = [json.loads(l) for l in (out + err).splitlines()]
    errors = [l for l in lines if l.get("level") == "ERROR"]
    check("JSON logs carry the request id", any(l.get("requestId", "").endswith("000000000002") for l in errors), lines)
    metrics = [(l["Records"], l["ColdStart"]) for l in lines if "Records" in l]
    check("metrics, in CloudWatch's form", metrics == [(2, 1), (0, 0)] and all(l["Function"] == "orders" for l in lines if "_aws" in l), lines)
    check("no item in the log", "s3cr3t" not in out + err, err)


def stops_on_sigterm():
    b = Bootstrap(notify())
    b.send(event(1))
    b.posted()
    limits = open(f"/proc/{b.process.pid}/limits").read()
    check("a crash writes no memory, with its keys and items, to a disk", re.search(r"Max core file size +0 +0 ", limits), limits)
    ignored = int(re.search(r"SigIgn:\s*(\w+)", open(f"/proc/{b.process.pid}/status").read())[1], 16)
    check("a closed connection and a full file are errors, not signals",
          all(ignored >> (number - 1) & 1 for number in (signal.SIGPIPE, signal.SIGXFSZ)), hex(ignored))
    b.process.send_signal(signal.SIGTERM)
    began = time.time()
    status, _, err = b.wait()
    check("SIGTERM while waiting: an orderly end, at once", status == 0 and time.time() - began < 20 and not err, (status, err))


def survives_a_bad_api():
    b = Bootstrap(notify())
    for code in (403, 204, 204):
        b.api.events.put(code)
    b.send(event(1))
    check("403 and 204 on next are gone over", b.posted()[1] == {"batchItemFailures": []})
    began = time.time()
    for _ in range(20):
        b.api.events.put(403)
    status, _, err = b.wait()
    asked = 20 - b.api.events.qsize()
    check("an API that never answers rightly: at most 5 tries a second, then an exit", status == 1 and
          asked <= 1 + 5 * (time.time() - began) and asked == 5, (asked, time.time() - began))
    for code in (400, 403, 410, 413):
        b = Bootstrap(notify(), post_code=code)
        b.send(event(1))
        b.send(event(1))
        check(f"{code} on an answer: said, and on with the next", b.posted() and b.posted())
        status, _, err = b.end()
        check(f"{code} on an answer: one line each", err.count(f"refused the answer with {code}") == 2, err)
    b = Bootstrap(notify(), post_code=500)
    b.send(event(1))
    b.posted()
    status, _, err = b.wait()
    check("500 on an answer ends it", status == 1, err)


def several_at_a_time():
    b = Bootstrap(notify(), AWS_LAMBDA_MAX_CONCURRENCY="3")
    for _ in range(3):
        b.api.seen.get(timeout=600)
    children = pathlib.Path(f"/proc/{b.process.pid}/task/{b.process.pid}/children").read_text().split()
    check("a process for each, each asking", len(children) == 3, children)
    for n in range(30):
        b.send(event(1))
    check("all answer", all(b.posted()[0].endswith("/response") for _ in range(30)))
    os.kill(int(children[1]), signal.SIGKILL)
    time.sleep(2)
    now = pathlib.Path(f"/proc/{b.process.pid}/task/{b.process.pid}/children").read_text().split()
    check("one that dies is replaced", len(now) == 3 and children[1] not in now, now)
    b.process.send_signal(signal.SIGTERM)
    status, _, err = b.wait()
    check("SIGTERM ends all", status == 0 and not any(os.path.exists(f"/proc/{p}") for p in now), (status, err))
    b = Bootstrap({"routes": []}, AWS_LAMBDA_MAX_CONCURRENCY="3")
    path, body, _ = b.posted()
    status, _, err = b.wait()
    check("an init error is posted once for all", path.endswith("/init/error") and status == 1 and b.api.seen.empty(), (status, err))


def status_of(pid, *names):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {l.split(":")[0]: int(l.split()[1]) for l in lines if l.split(":")[0] in names}
    return [found[n] for n in names]


def memory():
    config = {"report_batch_item_failures": True, "routes": [{"name": "none", "handler": "notify", "when": {"events": ["REMOVE"]},
                                                               "to": "jsonl:none.jsonl", "message": "x", "on_failure": "report"}]}
    b = Bootstrap(config)
    big = json.dumps(event(5000, pad="x" * 266)).encode()
    for _ in range(3):
        b.send(big)
        b.posted()
    peak_kb, = status_of(b.process.pid, "VmHWM")
    is_sanitized = b"__asan_init" in pathlib.Path(f"{BUILD}/bootstrap").read_bytes()  # shadow memory is not ours
    check(f"a {len(big) / 1e6:.1f} MB event that matches nothing: at most 20 MB resident", 5.2e6 < len(big) < 5.4e6 and (peak_kb <= 20 * 1024 or is_sanitized), f"{peak_kb} kB of {len(big)} bytes")
    fds = len(os.listdir(f"/proc/{b.process.pid}/fd"))
    small = [json.dumps(event(n, pad="y" * (7 * n))).encode() for n in range(1, 60)]
    before = None
    for i in range(3000):
        b.send(small[i % len(small)])
        b.posted()
        if i == 500:
            before, = status_of(b.process.pid, "VmRSS")
    after, = status_of(b.process.pid, "VmRSS")
    check("thousands of events: memory and descriptors stay", (after <= before + 256 or is_sanitized) and len(os.listdir(f"/proc/{b.process.pid}/fd")) == fds, (before, after))
    b.end()


if __name__ == "__main__":
    for test in (answers_and_lives_on, init_errors, logs, stops_on_sigterm, survives_a_bad_api, several_at_a_time, memory):
        test()
    print(f"{passed} passed")
