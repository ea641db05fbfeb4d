#!/usr/bin/env python3
"""What an operator sees of an invocation: the summary line, the metrics, the trace id. The metrics are read as CloudWatch reads
them, by a schema made from its specification."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# jsonschema is in the pinned environment of SAM.
SAM = subprocess.run(["tests/package/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
if not sys.prefix.startswith(SAM):
    os.execv(f"{SAM}/bin/python", [f"{SAM}/bin/python", *sys.argv])

import jsonschema

sys.path[:0] = ["tests/cli", "tests/runtime"]
import check_bootstrap  # noqa: E402
from check_bootstrap import Bootstrap, event  # noqa: E402
from harness import BUILD, check, finish  # noqa: E402

UNITS = [*"Seconds Microseconds Milliseconds Percent Count None".split(),
         *(p + u + r for u in ("Bytes", "Bits") for p in ("", *"Kilo Mega Giga Tera".split()) for r in ("", "/Second")), "Count/Second"]
UNITS = [u[0] + u[1:].lower().replace("/second", "/Second") for u in UNITS]
NAME = {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": r"^[\x20-\x7e]*[\x21-\x7e][\x20-\x7e]*$"}
# "Specification: Embedded metric format", and the limits of Dimension and MetricDatum.
EMF = jsonschema.Draft202012Validator({
    "type": "object", "required": ["_aws"],
    "properties": {"_aws": {
        "type": "object", "required": ["Timestamp", "CloudWatchMetrics"], "additionalProperties": False,
        "properties": {
            "Timestamp": {"type": "integer", "minimum": 1},
            "CloudWatchMetrics": {"type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["Namespace", "Dimensions", "Metrics"], "additionalProperties": False,
                "properties": {
                    "Namespace": {"type": "string", "pattern": "^[0-9A-Za-z./#:_-]{1,255}$"},
                    "Dimensions": {"type": "array", "minItems": 1, "items": {
                        "type": "array", "minItems": 1, "maxItems": 30, "items": {**NAME, "maxLength": 250, "not": {"pattern": "^:"}}}},
                    "Metrics": {"type": "array", "minItems": 1, "maxItems": 100, "items": {
                        "type": "object", "required": ["Name"], "additionalProperties": False,
                        "properties": {"Name": NAME, "Unit": {"enum": UNITS}, "StorageResolution": {"enum": [1, 60]}}}}}}}}}}})


def no_twins(pairs):
    """JSON takes a name twice; then only one of the two is a metric."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def metrics_of(line):
    """A line as CloudWatch takes it: the dimensions, and each metric's unit and value."""
    assert len(line.encode()) <= 1_000_000 and "\n" not in line
    document = json.loads(line, object_pairs_hook=no_twins, parse_constant=lambda c: sys.exit(f"FAIL {c} is no JSON"))
    EMF.validate(document)
    assert abs(document["_aws"]["Timestamp"] / 1000 - time.time()) < 300
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    (names,) = directive["Dimensions"]
    for name in names:
        jsonschema.validate(document[name], NAME)
    assert directive["Namespace"] == "Sluice" and names in (["Function"], ["Function", "Route"])
    values = {m["Name"]: document[m["Name"]] for m in directive["Metrics"]}
    assert all(isinstance(v, (int, float)) and (v == 0 or 8.515920e-109 <= abs(v) <= 1.174271e+108) for v in values.values()), values
    return tuple(document[n] for n in names), values, document, {m["Name"]: m["Unit"] for m in directive["Metrics"]}


def lines_of(err):
    emf = [metrics_of(line) for line in err.splitlines() if line.startswith('{"_aws"')]
    return emf, [line for line in err.splitlines() if not line.startswith('{"_aws"')]


LAMBDA = {"AWS_LAMBDA_LOG_GROUP_NAME": "g", "AWS_LAMBDA_FUNCTION_NAME": "orders", "AWS_LAMBDA_LOG_FORMAT": "JSON"}
PARKS = {"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": [
    {"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{PK}"},
    {"name": "even", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{even}"},
    {"name": "none", "handler": "notify", "to": "jsonl:said.jsonl", "message": "x", "when": {"events": ["REMOVE"]}}]}


def mixed(n, age_s=0):
    """A record of every third has no attribute "even"."""
    e = event(n)
    for i, r in enumerate(e["Records"]):
        r["dynamodb"]["ApproximateCreationDateTime"] = int(time.time()) - age_s + (1 if i else 0)
        if i % 3:
            r["dynamodb"]["NewImage"]["even"] = {"S": "x"}
    return e


def adds_up(route):
    low = {k.lower(): v for k, v in route.items()}
    return low["matched"] == low["applied"] + low["parked"] + low["failed"] + low["skipped"]


def one_invocation():
    b = Bootstrap(PARKS, **LAMBDA)
    b.send(mixed(9, age_s=100))
    b.posted()
    b.send(b'{"no":1}')
    b.posted()
    _, _, err = b.end()
    emf, log = lines_of(err)
    (function, say, even, bad), units = emf, {}
    for *_, more in emf:
        units.update(more)
    check("a line of the function, one of each route that took records", [e[0] for e in emf] == [("orders",), ("orders", "say"), ("orders", "even"), ("orders",)], emf)
    check("units", {units[n] for n in units if n.endswith("Ms")} == {"Milliseconds"} and units["Bytes"] == "Bytes" and units["PeakMemoryMB"] == "Megabytes", units)
    check("the function's counts", {k: function[1][k] for k in ("Records", "Parked", "FailedBatches", "ColdStart")} ==
          {"Records": 9, "Parked": 3, "FailedBatches": 0, "ColdStart": 1}, function)
    check("the routes' counts", (say[1]["Matched"], say[1]["Applied"], even[1]["Applied"], even[1]["Parked"], even[1]["Failed"]) == (9, 9, 6, 3, 0), (say, even))
    check("each adds up", adds_up(say[2]) and adds_up(even[2]))
    check("the oldest record's age, in milliseconds", 99_000 <= function[1]["IteratorAgeMs"] <= 100_000 + 60_000, function)
    check("no record, no age; a failed batch", "IteratorAgeMs" not in bad[1] and bad[1]["FailedBatches"] == 1 and bad[1]["ColdStart"] == 0, bad)
    check("the parts of the function are the routes' sums", all(abs(function[1][n] - say[1][n] - even[1][n]) < 0.01 for n in ("HandleMs", "SinkMs")), emf)
    check("peak memory is the process's", 1 < function[1]["PeakMemoryMB"] < 500 or "__asan" in str(function), function)
    (summary, *_), = [[json.loads(line) for line in log if "invocation summary" in line and '"records":9' in line]]
    check("the summary says the same", summary["level"] == "INFO" and summary["requestId"] and [(r["name"], r["applied"], r["parked"]) for r in summary["routes"]] ==
          [("say", 9, 0), ("even", 6, 3)] and all(map(adds_up, summary["routes"])) and
          summary["routes"][0]["sinkMs"] == say[1]["SinkMs"] and summary["decodeMs"] == function[1]["DecodeMs"], summary)


def text_form():
    b = Bootstrap(PARKS, **{**LAMBDA, "AWS_LAMBDA_LOG_FORMAT": "Text"})
    b.send(mixed(9))
    b.posted()
    emf, log = lines_of(b.end()[2])
    check("text: one line says it, and metrics stay JSON", len(emf) == 3 and sum("; even: matched 9, applied 6, parked 3, failed 0, skipped 0, " in line and
          line.startswith("INFO ") for line in log) == 1, log)


def switches():
    for env, metrics, summaries, warns in (
            ({}, 0, 0, 0), (LAMBDA, 1, 1, 0), ({**LAMBDA, "SLUICE_METRICS": "off"}, 0, 1, 0), ({**LAMBDA, "SLUICE_SUMMARY": "off"}, 1, 0, 0),
            ({"SLUICE_METRICS": "each", "SLUICE_SUMMARY": "ON"}, 1, 1, 0), ({**LAMBDA, "AWS_LAMBDA_LOG_LEVEL": "WARN"}, 1, 0, 0),
            *(({**LAMBDA, "SLUICE_METRICS": bad}, 1, 1, 1) for bad in ("0", "10m", "999999999")), ({**LAMBDA, "SLUICE_SUMMARY": "1"}, 1, 1, 1)):
        b = Bootstrap(PARKS, **env)
        b.send(mixed(3))
        b.posted()
        emf, log = lines_of(b.end()[2])
        check(f"{env}", (len(emf) > 0, sum("summary" in line or "; say: " in line for line in log), sum("its default is used" in line for line in log)) ==
              (metrics, summaries, warns), (emf, log))
        level = {e[2].get("level") for e in emf}
        check(f"{env}: a line that Lambda would drop says its level", level <= ({"WARN"} if "AWS_LAMBDA_LOG_LEVEL" in env else {None}), level)


def sums():
    b = Bootstrap(PARKS, **LAMBDA, SLUICE_METRICS="3600")
    for n, age_s in ((9, 10), (6, 500), (3, 20)):
        b.send(mixed(n, age_s))
        b.posted()
    b.api.seen.get(timeout=600)
    b.process.terminate()
    status, _, err = b.wait()
    emf, _ = lines_of(err)
    check("sums: nothing until the time is over; SIGTERM writes the rest", status == 0 and len(emf) == 3, err)
    function, say, even = emf
    check("sums: of all three", function[1]["Records"] == 18 and function[2]["Invocations"] == 3 and function[1]["ColdStart"] == 1 and function[1]["Parked"] == 6 and
          say[1]["Applied"] == 18 and even[1]["Applied"] == 12 and even[1]["Parked"] == 6 and adds_up(even[2]), emf)
    check("sums: the greatest age", function[1]["IteratorAgeMs"] >= 499_000, function)
    b = Bootstrap(PARKS, **LAMBDA, SLUICE_METRICS="1")
    for _ in range(2):
        b.send(mixed(3))
        b.posted()
        time.sleep(1.1)
    b.send(mixed(3))
    b.posted()
    emf, _ = lines_of(b.end()[2])
    functions = [e for e in emf if len(e[0]) == 1]
    check("sums: written with the first invocation after the time, none lost", len(functions) == 2 and sum(f[1]["Records"] for f in functions) == 9, functions)


def many_routes():
    """Lines stay whole, and are CloudWatch's, also where workers write to one pipe and where there are more lines than a pipe takes at once."""
    routes = [{"name": f"r{i}", "handler": "notify", "to": "stdout:", "message": "{PK}", "on_failure": "report"} for i in range(100)]
    b = Bootstrap({"report_batch_item_failures": True, "routes": routes}, **{**LAMBDA, "AWS_LAMBDA_MAX_CONCURRENCY": "4"})
    ended = []
    reader = threading.Thread(target=lambda: ended.append(b.wait()))  # or else the pipe would fill
    reader.start()
    for _ in range(8):
        b.send(event(1))
    for _ in range(8):
        b.posted()
    b.process.terminate()
    reader.join()
    emf, log = lines_of(ended[0][2])
    summaries = [json.loads(line) for line in log if "invocation summary" in line]
    check("100 routes, 4 workers: no line is lost or mixed", len(emf) == 8 * 101 and len(summaries) == 8 and all(len(s["routes"]) == 100 for s in summaries) and
          len(log) == 8, (len(emf), len(summaries)))


def closed_descriptors():
    """Lines of the log go to standard error or nowhere: never into the file or connection that would get the number of a descriptor that was closed at the start."""
    started = check_bootstrap.subprocess.Popen
    for closed in ((2,), (1, 2), (0, 2), (0, 1), (0, 1, 2)):
        said = check_bootstrap.folder / f"said{closed}.jsonl"

        def start(*args, closed=closed, **options):
            return started(*args, **options, preexec_fn=lambda: [os.close(fd) for fd in closed])
        check_bootstrap.subprocess.Popen = start
        try:
            b = Bootstrap({"report_batch_item_failures": True, "on_failure": "report", "routes": [
                {"name": "say", "handler": "notify", "to": f"jsonl:{said}", "message": "{PK}"}]}, **LAMBDA)
        finally:
            check_bootstrap.subprocess.Popen = started
        b.send(event(2))
        b.posted()
        where = {fd: os.readlink(f"/proc/{b.process.pid}/fd/{fd}") for fd in closed}
        _, _, err = b.end()
        check(f"{closed} closed: each number is taken by nothing of ours", set(where.values()) == {"/dev/null"}, where)
        check(f"{closed} closed: the target has the messages alone", said.read_text() == '"k0"\n"k1"\n' and (2 in closed) == (err == ""), (said.read_text(), err))


def too_large():
    b = Bootstrap(PARKS, **LAMBDA)
    b.send(b"x" * (6 * 1024 * 1024 + 101))
    check("an event that is too large is refused", b.posted()[2] == "Function.EventTooLarge")
    (function,), _ = lines_of(b.end()[2])
    check("and counts as a failed batch", (function[1]["FailedBatches"], function[1]["Records"], function[1]["ColdStart"]) == (1, 0, 1), function)


def hostile_metrics():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include", "-o", f"{folder}/metrics.so",
                        "tests/runtime/plugins/metrics.c"], check=True)
        b = Bootstrap({"report_batch_item_failures": True, "routes": [{"name": "m", "handler": "metrics", "on_failure": "report"}]}, **LAMBDA, SLUICE_HANDLER_PATH=folder)
        b.send(event(1))
        b.posted()
        emf, _ = lines_of(b.end()[2])
    own = [e for e in emf if "Matched" not in e[1] and "Records" not in e[1]]
    check("whatever a plugin calls its metrics, CloudWatch takes each", len(own) == 14 and all(len(e[1]) == 1 for e in own), own)
    check("and whatever their values are", {v for e in own for v in e[1].values()} >= {0, 1.174271e+108, -1.174271e+108}, own)


def times():
    """A target that takes 100 ms a request, in three calls of the handler; then as the place where a record is parked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    server.daemon_threads, server.seen = True, []

    def slowly(headers, body):
        if headers.get("X-Amz-Target", "").endswith("GetQueueUrl"):
            return json.dumps({"QueueUrl": f"http://127.0.0.1:{server.server_port}/1/q"}).encode()
        time.sleep(0.1)
        return json.dumps({"Failed": [], "Successful": [{"Id": e["Id"], "MessageId": "m", "MD5OfMessageBody": hashlib.md5(e["MessageBody"].encode()).hexdigest()}
                                                        for e in json.loads(body)["Entries"]]}).encode()
    server.answer = slowly
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"}
    slow = {"name": "slow", "handler": "notify", "to": "sqs://q", "message": "{PK}", "max_records": 1, "on_failure": "report"}
    parks = {"name": "parks", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{absent}", "on_failure": "sqs://q"}
    b = Bootstrap({"report_batch_item_failures": True, "routes": [slow, parks]}, **LAMBDA, **env)
    began = time.monotonic()
    b.send(event(3))
    b.posted()
    whole = (time.monotonic() - began) * 1000
    (function, slow, parks), _ = lines_of(b.end()[2])
    check("three calls of 100 ms are in the sinks' time", 300 <= slow[1]["SinkMs"] < whole and slow[1]["Applied"] == 3, (slow, whole))
    check("and not in the handler's", slow[1]["HandleMs"] < slow[1]["SinkMs"] / 2, slow)
    check("parking, too", parks[1]["SinkMs"] >= 100 and parks[1]["Parked"] == 3, parks)
    check("the parts do not overlap", sum(function[1][n] for n in ("DecodeMs", "HandleMs", "SinkMs")) <= whole, (function, whole))


# ---- the trace id ----

class Refuses(BaseHTTPRequestHandler):
    """Every service, and every other host: no to everything."""
    protocol_version, wbufsize = "HTTP/1.1", 65536

    def log_message(self, *args):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.headers.get("X-Amzn-Trace-Id"), self.headers.get("Authorization", ""), self.path))
        reply = self.server.answer(self.headers, body) if self.server.answer else None
        status = 200 if reply else 400
        reply = reply or b'{"__type":"AccessDeniedException","message":"no"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.wfile.flush()
    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer


def traces():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    server.daemon_threads, server.answer, server.seen = True, None, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = f"127.0.0.1:{server.server_port}"
    env = {"AWS_ENDPOINT_URL": f"http://{at}", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_MAX_ATTEMPTS": "2",
           "SLUICE_WEBHOOK_SECRET": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "LOGIN": "user:password"}
    arn = "arn:aws:sns:us-east-1:123456789012:t"
    route = {"on_failure": "report"}
    targets = {
        **{to: {"handler": "notify", "to": to, "message": "{PK}"} for to in ("sqs://q", f"sns:{arn}", "events://bus", "kinesis://s", "firehose://s")},
        "dynamodb://table": {"handler": "replicate", "to": "dynamodb://table"}, "s3://bucket/p": {"handler": "archive", "to": "s3://bucket/p", "when": {"events": ["INSERT"]}},
        f"http://{at}/hook": {"handler": "notify", "to": f"http://{at}/hook", "message": "{PK}"},
    }
    ids = ["Root=1-5f84c7a1-aaaaaaaaaaaaaaaaaaaaaaaa;Parent=bbbbbbbbbbbbbbbb;Sampled=1", None, "Root=1-5f84c7a2-cccccccccccccccccccccccc;Parent=dddddddddddddddd;Sampled=0;Lineage=1:2:3",
           "Root=1-x;a b\u00e9%", None]
    sent = [ids[0], None, ids[2], "Root=1-x;a%20b%C3%A9%25", None]
    for to, part in targets.items():
        b = Bootstrap({"report_batch_item_failures": True, "routes": [{"name": "r", **route, **part}]}, **env)
        got = []
        for trace in ids:
            server.seen.clear()
            b.send(event(1), *([("Lambda-Runtime-Trace-Id", trace.encode().decode("latin-1"))] if trace else []))
            b.posted()
            got.append({(t if "SignedHeaders=" in a else "unsigned" if t is None else "leaked") for t, a, _ in server.seen})
            signed_headers = [a.split("SignedHeaders=")[1].split(",")[0] for _, a, _ in server.seen if "SignedHeaders=" in a]
            check(f"{to}: not signed", not any("trace" in h for h in signed_headers), signed_headers)
        b.end()
        want = [{s} for s in sent] if to[:4] != "http" else [{"unsigned"}] * 5
        check(f"{to}: each request carries its own invocation's trace id; none, when there is none; other hosts never", got == want, got)
    server.answer = lambda headers, body: None
    said = []

    def takes(headers, body):
        target = headers.get("X-Amz-Target", "")
        if target.endswith("GetQueueUrl"):
            return json.dumps({"QueueUrl": f"http://{at}/1/q"}).encode()
        entries = json.loads(body)["Entries"]
        said.extend(json.loads(e["MessageBody"]) for e in entries)
        return json.dumps({"Failed": [], "Successful": [{"Id": e["Id"], "MessageId": "m", "MD5OfMessageBody": hashlib.md5(e["MessageBody"].encode()).hexdigest()} for e in entries]}).encode()
    server.answer = takes
    b = Bootstrap({"report_batch_item_failures": True, "routes": [{"name": "r", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{absent}", "on_failure": "sqs://q"}]}, **env)
    for trace in ids[:3]:
        b.send(event(1), *([("Lambda-Runtime-Trace-Id", trace)] if trace else []))
        check("parked", b.posted()[1] == {"batchItemFailures": []})
        b.api.ids = iter(range(len(said) + 2, 100))
    b.end()
    check("a parked record has the trace id of its invocation, or none", [m.get("traceId") for m in said] == [ids[0], *([ids[2]] if len(said) == 2 else [None, ids[2]])], said)


if __name__ == "__main__":
    for test in (one_invocation, text_form, switches, sums, many_routes, closed_descriptors, too_large, hostile_metrics, times, traces):
        test()
    finish()
