#!/usr/bin/env python3
"""Traces through the stream: the context that a writer left in its item goes on with messages, and spans reach a collector, where
OpenTelemetry's own schema reads them. Through the real bootstrap."""
import base64
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

READER = "SLUICE_READER_PYTHON"
if READER not in os.environ:
    python = subprocess.run(["tests/support/python/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execve(python, [python, *sys.argv], {**os.environ, READER: python})

from google.protobuf import json_format  # noqa: E402  (the packages are that Python's)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status  # noqa: E402

sys.path[:0] = ["tests/cli", "tests/runtime"]
import check_bootstrap  # noqa: E402
from check_bootstrap import Bootstrap, event  # noqa: E402
from harness import check, finish  # noqa: E402

STATE = "vendor=t61rcWkgMzE,other=1"


def trace(n):
    return f"{n + 1:032x}"


def context(n, sampled=True):
    return f"00-{trace(n)}-{n + 1:016x}-0{int(sampled)}"


def traced(*contexts):
    """A record for each; None leaves it out."""
    whole = event(len(contexts))
    for record, parent in zip(whole["Records"], contexts):
        if parent:
            record["dynamodb"]["NewImage"]["_otel"] = {"M": {"traceparent": {"S": parent}, "tracestate": {"S": STATE}}}
    return whole


# ---- whoever receives ----

class Receiver(BaseHTTPRequestHandler):
    """SQS, SNS, EventBridge, a webhook's receiver and a collector."""
    protocol_version, wbufsize = "HTTP/1.1", 65536

    def log_message(self, *args):
        pass

    def do_GET(self):
        """Lambda's list of mappings: one that would lose letters."""
        reply = json.dumps({"EventSourceMappings": [{"UUID": "u", "FunctionResponseTypes": []}]}).encode()
        if not self.server.loses_letters:
            return self.send_error(403)
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.wfile.flush()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.put((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        reply = self.server.answer(self.path, self.headers, body)
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)
            self.wfile.flush()
        except OSError:  # who asked has gone
            self.close_connection = True


def usual(path, headers, body):
    operation = headers.get("X-Amz-Target", "").split(".")[-1]
    if operation == "GetQueueUrl":
        return json.dumps({"QueueUrl": f"http://{headers['Host']}/1/q"}).encode()
    if operation == "SendMessageBatch":
        return json.dumps({"Failed": [], "Successful": [{"Id": e["Id"], "MessageId": "m", "MD5OfMessageBody": hashlib.md5(e["MessageBody"].encode()).hexdigest()}
                                                        for e in json.loads(body)["Entries"]]}).encode()
    if operation == "PutEvents":
        return json.dumps({"FailedEntryCount": 0, "Entries": [{"EventId": "e"} for _ in json.loads(body)["Entries"]]}).encode()
    if body.startswith(b"Action=PublishBatch"):
        ids = [v for k, v in urllib.parse.parse_qsl(body.decode()) if k.endswith(".Id")]
        return ("<PublishBatchResponse><PublishBatchResult><Failed/><Successful>" + "".join(f"<member><Id>{i}</Id><MessageId>m</MessageId></member>" for i in ids) +
                "</Successful></PublishBatchResult></PublishBatchResponse>").encode()
    return b"{}"


def serve(answer=usual):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.daemon_threads, server.answer, server.seen, server.loses_letters = True, answer, queue.Queue(), False
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    server.at = f"127.0.0.1:{server.server_port}"
    return server


def all_of(server):
    out = []
    while not server.seen.empty():
        out.append(server.seen.get())
    return out


def environment(server):
    return {"AWS_ENDPOINT_URL": f"http://{server.at}", "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_MAX_ATTEMPTS": "1"}


def run(config, *payloads, headers=(), **env):
    """What it logged, after all of them were answered well and it has ended."""
    b = Bootstrap(config, **env)
    for payload in payloads:
        b.send(payload, *headers)
        path, body, kind = b.posted()
        check("answered well", path.endswith("/response") and body == {"batchItemFailures": []}, (path, body, kind))
    return b.end()[2]


def config(*routes, **top):
    return {"report_batch_item_failures": True, "trace": "_otel.traceparent", "on_failure": "report", **top,
            "routes": [{"name": f"r{i}", "handler": "notify", **route} for i, route in enumerate(routes)]}


# ---- spans, read with the schema ----

def read_spans(body):
    """In the protocol's JSON ids are hexadecimal; protobuf's own reader takes them as base64. It refuses members that the schema
    does not have."""
    document = json.loads(body)

    def walk(node):
        if isinstance(node, list):
            return [walk(n) for n in node]
        if isinstance(node, dict):
            return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ("traceId", "spanId", "parentSpanId") else walk(v) for k, v in node.items()}
        return node
    request = json_format.ParseDict(walk(document), ExportTraceServiceRequest())
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    assert scope.scope.name == "sluice" and scope.scope.version
    for span in scope.spans:
        assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8), span
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano and abs(span.start_time_unix_nano / 1e9 - time.time()) < 300, span
        assert all(len(link.trace_id) == 16 and len(link.span_id) == 8 for link in span.links)
    return values(resource.resource.attributes), list(scope.spans)


def values(attributes):
    names = [a.key for a in attributes]
    assert len(names) == len(set(names)), names
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


# ---- the context goes on with messages ----

def messages():
    server = serve()
    at, arn = server.at, "arn:aws:sns:eu-west-1:123456789012:t"
    three = traced(context(0), context(1, sampled=False), None)
    three["Records"].append(traced("00-not-one")["Records"][0])
    three["Records"][3]["dynamodb"]["Keys"]["PK"]["S"] = three["Records"][3]["dynamodb"]["NewImage"]["PK"]["S"] = "k9"
    want = [(context(0), STATE), (context(1, sampled=False), STATE), (None, None), (None, None)]

    def sent(to, **route):
        all_of(server)
        run(config({"to": to, "message": "{PK}", **route}), three, **environment(server))
        return [(path, headers, body) for path, headers, body in all_of(server) if not headers.get("x-amz-target", "").endswith("GetQueueUrl")]
    ((_, _, body),) = sent("sqs://q")
    got = {e["MessageBody"]: {k: v["StringValue"] for k, v in e.get("MessageAttributes", {}).items()} for e in json.loads(body)["Entries"]}
    check("sqs: as message attributes", [(got[k].get("traceparent"), got[k].get("tracestate")) for k in ("k0", "k1", "k2", "k9")] == want, got)
    ((_, _, body),) = sent("sqs://q", attributes={"traceparent": "mine", "a": "x"})
    got = {e["MessageBody"]: {k: v["StringValue"] for k, v in e["MessageAttributes"].items()} for e in json.loads(body)["Entries"]}
    check("sqs: the route's own attribute is kept", set(map(lambda a: tuple(sorted(a.items())), got.values())) == {(("a", "x"), ("traceparent", "mine"))}, got)
    for n in (8, 9, 10):
        ((_, _, body),) = sent("sqs://q", attributes={f"a{i}": "x" for i in range(n)})
        counts = {e["MessageBody"]: len(e["MessageAttributes"]) for e in json.loads(body)["Entries"]}
        check(f"sqs: never more than ten attributes, {n} of the route's own", counts == {"k0": 10, "k1": 10, "k2": n, "k9": n}, counts)
    ((_, _, body),) = sent(f"sns:{arn}")
    form = dict(urllib.parse.parse_qsl(body.decode()))
    got = []
    for i in range(1, 5):
        e = f"PublishBatchRequestEntries.member.{i}."
        named = {form.get(f"{e}MessageAttributes.entry.{k}.Name"): form.get(f"{e}MessageAttributes.entry.{k}.Value.StringValue") for k in (1, 2)}
        got.append((named.get("traceparent"), named.get("tracestate")))
    check("sns: as message attributes", got == want, got)
    for more, members in (({}, ["message"]), ({"message": '{{"pk":"{PK}"}}'}, ["pk"]), ({"message": " {{ }} "}, []), ({"message": '{{"pk":"{PK}","traceparent":"mine"}}'}, ["pk"]),
                          ({"message": ...}, ["Keys", "NewImage"])):
        more = {"message": "{PK}", **more}
        more = {} if more["message"] is ... else more
        all_of(server)
        run(config({"to": "events://bus", **more}), three, **environment(server))
        ((_, _, body),) = all_of(server)
        details = [json.loads(e["Detail"]) for e in json.loads(body)["Entries"]]
        got = [(d.get("traceparent"), d.get("tracestate")) for d in details]
        own = [("mine", STATE), ("mine", STATE), ("mine", None), ("mine", None)] if "mine" in str(more) else want
        check(f"events: in the detail, {more}", got == own and all(set(members) <= set(d) or "dynamodb" in d for d in details), details)
    got = {}
    for _, headers, body in sent(f"http://{at}/hook"):
        got[body.decode()] = (headers.get("traceparent"), headers.get("tracestate"))
    check("webhook: as headers", [got[k] for k in ("k0", "k1", "k2", "k9")] == want, got)
    ((_, headers, _),) = sent(f"http://{at}/hook#batch=10")
    check("webhook: an array of several traces has none", "traceparent" not in headers and "tracestate" not in headers, headers)
    all_of(server)
    run(config({"to": f"http://{at}/hook#batch=10", "message": "{PK}"}), traced(context(5), context(5)), **environment(server))
    ((_, headers, _),) = all_of(server)
    check("webhook: an array of one trace has it", (headers.get("traceparent"), headers.get("tracestate")) == (context(5), STATE), headers)
    ours = {headers.get("traceparent") for _, headers, _ in sent(f"http://{at}/hook#header.traceparent={context(7)}")}
    check("webhook: the target's own header is kept", ours == {context(7)}, ours)
    for to in ("sqs://q", f"http://{at}/hook", "events://bus"):
        all_of(server)
        whole = config({"to": to, "message": "{PK}"})
        del whole["trace"]
        run(whole, three, **environment(server))
        check(f"{to}: without \"trace\" nothing is added", not any("traceparent" in str(h) + b.decode() for _, h, b in all_of(server)))
    # A message that is as long as it may be goes without the context, and is not refused.
    for to, limit, wrapped in (("sqs://q", 1024 * 1024, 0), ("events://bus", 256 * 1024 - 1 - 14 - len("sluice") - len("DynamoDB Stream Record"), len('{"message":""}'))):
        for less, has in ((0, False), (20000, True)):
            big = traced(context(0))
            big["Records"][0]["dynamodb"]["NewImage"]["pad"]["S"] = "x" * (limit - wrapped - less)
            all_of(server)
            run(config({"to": to, "message": "{pad}"}), big, **environment(server))
            bodies = [b for _, h, b in all_of(server) if not h.get("x-amz-target", "").endswith("GetQueueUrl")]
            check(f"{to}: a message {less} bytes below the limit is sent", len(bodies) == 1 and (b"traceparent" in bodies[0]) == has, len(bodies))


# ---- spans ----

def spans():
    collector, hooks = serve(), serve()
    to = {"to": f"http://{hooks.at}/hook", "message": "{PK}"}
    whole = config(to, {**to, "when": {"item": {"PK": ["k0", "k3"]}}}, trace_to=f"http://{collector.at}/v1/traces?key=secret#header_env.x-api-key=KEY")
    err = run(whole, traced(context(0), context(1, sampled=False), None, context(3)), AWS_LAMBDA_FUNCTION_NAME="orders-stream", AWS_REGION="eu-west-1", KEY="k-1")
    ((path, headers, body),) = all_of(collector)
    check("one request, with the collector's key", path == "/v1/traces?key=secret" and headers["content-type"] == "application/json" and headers["x-api-key"] == "k-1", (path, headers, err))
    resource, (invocation, first, second) = read_spans(body)
    check("the resource is the function", (resource["service.name"], resource["faas.name"], resource["cloud.region"]) == ("orders-stream", "orders-stream", "eu-west-1"), resource)
    check("a span of the invocation and one of each route", (invocation.name, first.name, second.name) == ("process t", "r0", "r1") and invocation.kind == Span.SPAN_KIND_CONSUMER and
          first.kind == Span.SPAN_KIND_INTERNAL)
    check("the routes' are its children", {first.parent_span_id, second.parent_span_id} == {invocation.span_id} and not invocation.parent_span_id and
          {first.trace_id, second.trace_id} == {invocation.trace_id})
    links = [[(link.trace_id.hex(), link.trace_state) for link in span.links] for span in (invocation, first, second)]
    check("they link to what records", links == [[(trace(0), STATE), (trace(3), STATE)]] * 3, links)
    what = values(invocation.attributes)
    check("what the invocation was", what["messaging.batch.message_count"] == 4 and what["faas.document.collection"] == "t" and what["faas.coldstart"] is True and
          what["faas.invocation_id"].startswith("00000000-") and "error.type" not in what, what)
    what = values(second.attributes)
    check("what the route did", (what["sluice.route"], what["sluice.handler"], what["sluice.matched"], what["sluice.applied"]) == ("r1", "notify", 2, 2), what)
    check("a webhook's path is not told", what["sluice.target"] == f"http://{hooks.at}", what)
    check("no values of items in spans", b"k0" not in body and b"k3" not in body)
    # X-Ray's own trace, whatever the records say.
    header = ("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
    run(whole, traced(None), headers=[header], KEY="k-1", OTEL_SERVICE_NAME="mine")
    ((_, _, body),) = all_of(collector)
    resource, (invocation, *_) = read_spans(body)
    check("X-Ray's trace is the parent", (invocation.trace_id.hex(), invocation.parent_span_id.hex()) == ("5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8"))
    check("OTEL_SERVICE_NAME", resource["service.name"] == "mine", resource)
    # Nothing that records: nothing is sent.
    run(whole, traced(None, context(1, sampled=False)), KEY="k-1")
    check("what does not record makes no spans", collector.seen.empty())
    # A batch that fails.
    b = Bootstrap(config({"to": f"http://{hooks.at}/hook", "message": "{absent}"}, trace_to=f"http://{collector.at}/v1/traces"))
    b.send(traced(context(0)))
    b.posted()
    b.end()
    ((_, _, body),) = all_of(collector)
    _, (invocation, first) = read_spans(body)
    check("a batch that failed is an error", invocation.status.code == Status.STATUS_CODE_ERROR and values(invocation.attributes)["error.type"] == "MissingAttribute" and
          invocation.status.message == "MissingAttribute", invocation)


def letters():
    """What was set aside belongs to its traces when it is applied, too."""
    server = serve()
    said = check_bootstrap.folder / "late.jsonl"
    whole = config({"to": "jsonl:said.jsonl", "message": "{PK}", "set_aside": "sqs://waiting"}, trace_to=f"jsonl:{said}")
    run(whole, traced(context(0), context(1)), **environment(server), SLUICE_OUTAGE="r0")
    bodies = [e["MessageBody"] for _, h, b in all_of(server) if h.get("x-amz-target", "").endswith("SendMessageBatch") for e in json.loads(b)["Entries"]]
    _, (invocation, route) = read_spans(said.read_text().splitlines()[-1])
    check("set aside: it is counted so", values(route.attributes)["sluice.set_aside"] == 2, route)
    said.unlink()
    attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": str(int(time.time() * 1000))}
    delivered = {"Records": [{"messageId": str(i), "receiptHandle": "h", "body": body, "attributes": attributes, "messageAttributes": {},
                             "md5OfBody": hashlib.md5(body.encode()).hexdigest(), "eventSource": "aws:sqs",
                             "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:waiting", "awsRegion": "eu-west-1"} for i, body in enumerate(bodies)]}
    run(whole, delivered, **environment(server))
    _, (invocation, route) = read_spans(said.read_text())
    check("and linked when it is drained", [[link.trace_id.hex() for link in span.links] for span in (invocation, route)] == [[trace(0), trace(1)]] * 2 and
          values(route.attributes)["sluice.applied"] == 2 and values(invocation.attributes)["messaging.batch.message_count"] == 2, (invocation, route))
    said.unlink()
    server.loses_letters = True
    b = Bootstrap(whole, **environment(server))
    b.send(delivered, ("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"))
    check("refused as a whole", b.posted()[0].endswith("/error"))
    b.end()
    _, (invocation, *_) = read_spans(said.read_text())
    check("and its span says why", values(invocation.attributes)["error.type"] == "NoItemFailures", invocation)


def signed():
    server = serve()
    run(config({"to": "jsonl:said.jsonl", "message": "{PK}"}, trace_to="xray:"), traced(context(0)), **environment(server))
    ((path, headers, body),) = all_of(server)
    check("xray: signed for the service", path == "/v1/traces" and "/eu-west-1/xray/aws4_request" in headers["authorization"], headers)
    read_spans(body)


def lines():
    """OpenTelemetry's file exporter writes such lines."""
    said = check_bootstrap.folder / "spans.jsonl"
    run(config({"to": "jsonl:said.jsonl", "message": "{PK}"}, trace_to=f"jsonl:{said}"), traced(context(0)), traced(context(1)))
    read = [read_spans(line)[1] for line in said.read_text().splitlines()]
    check("a line of the file is a request", [len(spans) for spans in read] == [4], read)


MANY = [context(i) for i in range(300)]


def never_in_the_answers_way():
    """Enough spans that they are sent at once, to a collector that does not answer."""
    for name, wait, say in (("a collector that hangs", 20, "RequestTimeout"), ("a collector that answers late", 0.3, None)):
        release = threading.Event()
        collector = serve(lambda *args, wait=wait, release=release: release.wait(wait) and b"{}" or b"{}")
        b = Bootstrap(config(*[{"to": "jsonl:said.jsonl", "message": "{PK}"}] * 5, trace_to=f"http://{collector.at}/v1/traces"))
        b.send(traced(*MANY))
        began = time.monotonic()
        check(f"{name}: the answer", b.posted()[1] == {"batchItemFailures": []})
        answered = time.monotonic() - began
        _, _, body = collector.seen.get(timeout=600)
        if say:
            check(f"{name}: the answer came first", answered < wait, answered)
        b.send(traced(None))
        b.posted()
        took = time.monotonic() - began
        check(f"{name}: the next event waits a second at most", took < 10, took)
        release.set()
        _, (invocation, *_) = read_spans(body)
        check(f"{name}: links are limited", len(invocation.links) == 128 and invocation.dropped_links_count == 300 - 128)
        err = b.end()[2]
        check(f"{name}: the log says so", say is None and "trace_to" not in err or f"trace_to: spans were not taken (0 dropped so far): {say}" in err, err)
        check(f"{name}: no secret path in it", "/v1/traces" not in err, err)
    # One that is not there.
    b = Bootstrap(config({"to": "jsonl:said.jsonl", "message": "{PK}"}, trace_to="http://127.0.0.1:1/v1/traces"))
    for _ in range(3):
        b.send(traced(context(0)))
        check("a collector that is not there: answered", b.posted()[1] == {"batchItemFailures": []})
    err = b.end()[2]
    check("a collector that is not there: said once", err.count("trace_to: spans were not taken") == 1 and "ConnectionError" in err, err)


def many_routes():
    """100 routes with 128 links each: bounded, and still what the schema takes."""
    said = check_bootstrap.folder / "many.jsonl"
    run(config(*[{"to": "jsonl:said.jsonl", "message": "{PK}"}] * 100, trace_to=f"jsonl:{said}"), traced(*MANY), traced(*MANY))
    requests = said.read_text().splitlines()
    all_spans = [span for line in requests for span in read_spans(line)[1]]
    check("100 routes: every span", len(all_spans) == 202, len(all_spans))
    check("100 routes: links are bounded", sum(len(s.links) for s in all_spans) <= 2000 and all(len(s.links) + s.dropped_links_count == 300 for s in all_spans))
    check("100 routes: requests are", max(map(len, requests)) < 640 * 1024, [len(r) for r in requests])


if __name__ == "__main__":
    for test in (messages, spans, letters, signed, lines, never_in_the_answers_way, many_routes):
        test()
    finish()
