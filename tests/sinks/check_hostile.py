#!/usr/bin/env python3
"""Parses the requests of test_hostile.c back, with Python's own parsers, and compares them with what was meant."""
import base64
import hashlib
import hmac
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
passed = 0


def check(case, ok, detail=""):
    global passed
    if not ok:
        text = base64.b64decode(case["text"])
        sys.exit(f"FAIL {case['sink']}, {case['field']}, {text[:60]!r} ({len(text)} bytes): {str(detail)[:600]}")
    passed += 1


def utf8(text):
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def is_xml(text):
    """The characters of XML 1.0."""
    return not re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)


def strict(text):
    """JSON in which no name is twice."""
    def members(pairs):
        assert len({k for k, _ in pairs}) == len(pairs), pairs
        return dict(pairs)
    return json.loads(text, object_pairs_hook=members)


def short(text, most=128):
    """A group, a deduplication id or a partition key: the text, or its digest."""
    return text.decode() if len(text) <= most and re.fullmatch(rb"[!-~]+", text) else hashlib.sha256(text).hexdigest()


# ---- headers: the fields of a request, as an HTTP parser sees them ----

NAMES = {"host", "content-type", "content-encoding", "content-length", "x-amz-target", "x-amzn-query-mode", "x-amz-date", "x-amz-security-token",
         "x-amz-content-sha256", "authorization", "amz-sdk-invocation-id", "amz-sdk-request", "user-agent", "x-amz-checksum-crc32", "x-amz-tagging",
         "if-none-match", "x-amz-storage-class", "range", "if-match", "x-amz-checksum-mode",
         "webhook-id", "webhook-timestamp", "webhook-signature", "x-team"}


def headers(case, request):
    fields = {}
    for line in request["head"].decode("latin-1").rstrip("\r\n").split("\r\n"):
        name, colon, value = line.partition(":")
        check(case, colon and name.lower() in NAMES and name.lower() not in fields and not re.search("[^ -~]", value), line)
        fields[name.lower()] = value.strip()
    check(case, request["method"] in ("POST", "PUT", "GET") and not re.search(rb"[^!-~]", request["path"]), request["path"])
    return fields


# ---- queues ----

CONTROL = {"body": b'{"n":1}', "order": b"o1", "dedupe": b"d1", "subject": b"", "attributes": []}


def meant(case, text):
    message = {"body": b'{"n":0}', "order": b"o0", "dedupe": b"d0", "subject": b"", "attributes": []}
    if case["field"] == "attribute name":
        message["attributes"] = [(text, b"value")]
    elif case["field"] == "attribute value":
        message["attributes"] = [(b"name", text)] if text else []
    else:
        message[case["field"]] = text
    return message


def fifo(case, m):
    if "fifo" not in case["sink"]:
        return {}
    return {"MessageGroupId": short(m["order"] or b"-"),
            "MessageDeduplicationId": short(m["dedupe"]) if m["dedupe"] else hashlib.sha256(m["body"]).hexdigest()}


def of_sqs(case, m):
    entry = {"MessageBody": m["body"].decode(), **fifo(case, m)}
    if m["attributes"]:
        entry["MessageAttributes"] = {n.decode(): {"DataType": "String", "StringValue": v.decode()} for n, v in m["attributes"]}
    return entry


def of_sns(case, m):
    entry = {"Message": m["body"].decode(), **fifo(case, m)}
    if m["subject"]:
        entry["Subject"] = re.sub(rb"[^ -~]", b"?", m["subject"])[:99].decode()
    for i, (n, v) in enumerate(m["attributes"], 1):
        entry |= {f"MessageAttributes.entry.{i}.Name": n.decode(), f"MessageAttributes.entry.{i}.Value.DataType": "String",
                  f"MessageAttributes.entry.{i}.Value.StringValue": v.decode()}
    return entry


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def of_events(case, m):
    return {"EventBusName": "default", "Source": "sluice", "DetailType": m["subject"].decode() or "DynamoDB Stream Record",
            "Detail": json.loads(m["body"]) if is_object(m["body"]) else {"message": m["body"].decode()}}


def of_kinesis(case, m):
    key = m["order"] or m["dedupe"] or m["body"]
    return {"Data": m["body"], "PartitionKey": short(key, 256)}


def of_firehose(case, m):
    return {"Data": m["body"]}


def entries(case, request):
    """What the request holds, in the form of the functions above."""
    sink, body = case["sink"].split()[0], request["body"]
    if sink == "sns":
        form = urllib.parse.parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict")
        check(case, len(dict(form)) == len(form), "a field twice")
        form = dict(form)
        check(case, form.pop("Action") == "PublishBatch" and form.pop("Version") == "2010-03-31" and form.pop("TopicArn").startswith("arn:aws:sns:"))
        out = {}
        for name, value in form.items():
            prefix, number, rest = name.split(".", 3)[0], name.split(".", 3)[2], name.split(".", 3)[3]
            check(case, prefix == "PublishBatchRequestEntries", name)
            out.setdefault(int(number), {})[rest] = value
        return [{k: v for k, v in out[i].items() if k != "Id"} for i in sorted(out)]
    root = strict(body)
    top = {"sqs": {"QueueUrl", "Entries"}, "events": {"Entries"}, "kinesis": {"StreamName", "Records"}, "firehose": {"DeliveryStreamName", "Records"}}[sink]
    check(case, set(root) == top, set(root))
    found = root.get("Entries", root.get("Records"))
    for i, entry in enumerate(found):
        if sink == "sqs":
            check(case, entry.pop("Id") == str(i))
        if "Data" in entry:
            entry["Data"] = base64.b64decode(entry["Data"], validate=True)
        if "Detail" in entry:
            entry["Detail"] = json.loads(entry["Detail"])
    return found


OF = {"sqs": of_sqs, "sns": of_sns, "events": of_events, "kinesis": of_kinesis, "firehose": of_firehose}
LIMITS = {"sqs": 1 << 20, "sns": 1 << 18, "events": (1 << 18) - 1, "firehose": 1000 << 10, "kinesis": 10 << 20}


def takes(case, text):
    """Whether the service can take the text in this field."""
    sink, field = case["sink"].split()[0], case["field"]
    if sink in ("kinesis", "firehose") or field in ("order", "dedupe") or (sink != "events" and field == "subject"):
        return True
    if sink == "events" and field.startswith("attribute"):
        return True
    if field == "attribute name":
        return bool(re.fullmatch(rb"(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)", text))
    decoded = utf8(text)
    if decoded is None:
        return False
    if sink == "sqs":
        return is_xml(decoded)
    return "\0" not in decoded or (sink == "events" and field == "body")


def queue(case, text, requests):
    sink = case["sink"].split()[0]
    of = OF[sink]
    wanted = [of(case, CONTROL)]
    if case["status"] == 0:
        check(case, takes(case, text), "was sent")
        wanted.append(of(case, meant(case, text)))
    elif case["code"] == "MessageTooLong":
        check(case, len(text) * 2 > LIMITS[sink], "is not too long")
    else:
        check(case, not takes(case, text) and case["field"].split()[0] in case["why"].decode(), case["why"])
    for request in requests:
        headers(case, request)
    found = [e for request in requests for e in entries(case, request)]
    same = lambda entry: json.dumps(entry, sort_keys=True, default=repr)
    check(case, sorted(map(same, found)) == sorted(map(same, wanted)), f"{found}\nand not\n{wanted}")
    if sink == "events":
        for request in requests:
            size = sum(14 + len(e["Source"].encode()) + len(e["DetailType"].encode()) + len(e["Detail"].encode()) for e in json.loads(request["body"])["Entries"])
            check(case, size <= LIMITS[sink], f"{size} bytes")


# ---- webhooks ----

KEY = b"canary-webhook-key-012345"


def id_of(message):
    plain = message["dedupe"].decode("latin-1")
    if re.fullmatch(r"(?!sha256-)[A-Za-z0-9_-]{1,64}", plain):
        return plain
    return "sha256-" + hashlib.sha256(message["dedupe"] or message["body"]).hexdigest()


def member(body):
    """A body as an array holds it: JSON objects and arrays as they are, all else as a string."""
    try:
        return strict(body) if body[:1] in b"{[" and body else body.decode()
    except (ValueError, AssertionError):
        return body.decode()


def webhook(case, text, requests):
    is_array = "array" in case["sink"]
    messages = [meant(case, text), CONTROL]
    decoded = utf8(text)
    takes = case["field"] != "body" or (decoded is not None and "\0" not in decoded)
    fits = case["field"] != "body" or not takes or not is_array or len(json.dumps(decoded, ensure_ascii=False).encode()) + 2 <= 1 << 20
    check(case, (case["status"] == 0) == (takes and fits), case["why"])
    if case["status"]:
        check(case, case["code"] == ("MessageTooLong" if takes else "InvalidMessageContents") and b"message" in case["why"], case["why"])
        messages = messages[1:]
    wanted = {}
    if is_array:
        ids = [id_of(m) for m in messages]
        one = ids[0] if len(ids) == 1 else "sha256-" + hashlib.sha256("".join(i + "\n" for i in ids).encode()).hexdigest()
        wanted["array_" + one] = [member(m["body"]) for m in messages]
    else:
        wanted = {id_of(m): m["body"] for m in messages}
    for request in requests:
        fields = headers(case, request)
        check(case, request["method"] == "POST" and request["path"] == (b"/hook" if is_array else b"/hook?a=b"), request)
        check(case, fields.get("x-team") == (None if is_array else "a b"), fields)
        signed = b".".join([fields["webhook-id"].encode(), fields["webhook-timestamp"].encode(), request["body"]])
        check(case, fields["webhook-signature"] == "v1," + base64.b64encode(hmac.digest(KEY, signed, "sha256")).decode(), fields)
        want = wanted.pop(fields["webhook-id"], None)
        check(case, (strict(request["body"]) if is_array else request["body"]) == want, f"{request['body'][:200]} and not {want}")
        is_json = is_array or not isinstance(member(want), str)
        check(case, fields["content-type"] == ("application/json" if is_json else "text/plain; charset=utf-8"), fields)
    check(case, not wanted, wanted)


# ---- objects ----

def s3(case, text, requests):
    field = case["field"]
    decoded = utf8(text)
    if field == "key":
        parts = text.split(b"/")
        fine = decoded is not None and not re.search(rb"[\0-\x1f\x7f]", text) and all(p not in (b"", b".", b"..") for p in parts) and len(text) <= 1020
    elif field == "body":
        fine = True
    else:
        fine = not text or bool(re.fullmatch(rb"[!-~]([ -~]*[!-~])?", text))
        if not text:
            fine = False  # an empty header says nothing
    check(case, (case["status"] == 0) == fine, case["why"])
    check(case, len(requests) == (2 if fine else 1))
    seen = {}
    for request in requests:
        fields = headers(case, request)
        check(case, request["path"].startswith(b"/bucket/pre/") and dict(urllib.parse.parse_qsl(fields["x-amz-tagging"], strict_parsing=True)) == {"a": "b&c\r\n", "d": '"'}, fields)
        seen[urllib.parse.unquote_to_bytes(request["path"][len(b"/bucket/pre/"):])] = (request["body"], fields)
    check(case, seen[b"b"][0] == b"y")
    if fine:
        body, fields = seen[text if field == "key" else b"a"]
        check(case, body == (text if field == "body" else b"x"), body)
        for name, header, usual in (("content_type", "content-type", "application/octet-stream"), ("content_encoding", "content-encoding", None)):
            check(case, fields.get(header) == (text.decode() if field == name else usual), fields)


# ---- tables ----

def pieces(body):
    """The writes of a request: (verb, members)."""
    root = strict(body)
    if "RequestItems" in root:
        assert set(root) == {"RequestItems"} and set(root["RequestItems"]) == {"tbl"}, root
        for r in root["RequestItems"]["tbl"]:
            (kind, inner), = r.items()
            yield kind, inner
    elif "TransactItems" in root:
        assert set(root) == {"ClientRequestToken", "TransactItems"}, root
        for r in root["TransactItems"]:
            (kind, inner), = r.items()
            yield kind, inner
    else:
        yield "single", root


def table(case, text, requests):
    decoded, field = utf8(text), case["field"]
    if field in ("item", "key json", "set value", "test value"):
        fine = is_object(text) if field in ("set value", "test value", "item") else False
        if case["sink"] == "batch" and field == "test value":
            fine = True
    elif field in ("set name", "test name"):
        fine = decoded is not None
    elif field == "key":
        raw = (decoded if decoded is not None else text.decode(errors="replace")).encode()
        fine = 0 < len(raw) <= 2048
    else:
        fine = len(text) < 400 * 1024
    check(case, (case["status"] == 0) == fine, f"status {case['status']}, {case['why']}")
    found = []
    for request in requests:
        headers(case, request)
        found += list(pieces(request["body"]))
    check(case, len(found) == 1 + fine, found)
    plain = [f for f in found if f[1].get("Item") == {"PK": {"S": "z"}} or f[1].get("Key") == {"PK": {"S": "z"}}]
    check(case, len(plain) == 1 and set(plain[0][1]) <= {"Item", "TableName"}, plain)
    if not fine:
        return
    kind, inner = [f for f in found if f is not plain[0]][0]
    known = {"TableName", "Item", "Key", "UpdateExpression", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"}
    check(case, set(inner) <= known, set(inner))
    names, values = inner.get("ExpressionAttributeNames", {}), inner.get("ExpressionAttributeValues", {})
    check(case, set(names) <= {"#s0", "#t0"} and set(values) <= {":s0", ":t0"}, inner)
    if decoded is None:
        return
    if field == "set name":
        check(case, names["#s0"] == decoded, names)
    elif field == "test name":
        check(case, names["#t0"] == decoded, names)
    elif field == "set value":
        check(case, values[":s0"] == json.loads(text), values)
    elif field == "test value" and case["sink"] != "batch":
        check(case, values[":t0"] == json.loads(text), values)
    elif field == "value" and "Item" in inner:
        check(case, inner["Item"] == {"PK": {"S": "a"}, "v": {"S": decoded}}, inner["Item"])
    elif field == "name" and "Item" in inner:
        check(case, inner["Item"] == {"PK": {"S": "a"}, decoded: {"S": "v"}}, inner["Item"])
    elif field == "key":
        check(case, inner.get("Item", inner.get("Key")) == {"PK": {"S": decoded}}, inner)


# ---- documents ----

def document(case, text, requests):
    """Bulks are lines of JSON: an action, then a document."""
    decoded, field = utf8(text), case["field"]
    held = decoded if decoded is not None else text.decode(errors="replace")
    fine = {"value": True, "name": True, "item": False, "key json": False, "test value": False, "test name": decoded is not None,
            "key": 0 < len(held.encode()) <= 2048}[field] and (len(text) < 400 * 1024 or field == "test name")
    check(case, (case["status"] == 0) == fine, case["why"])
    found, read = {}, []
    for request in requests:
        headers(case, request)
        check(case, request["path"].startswith(b"/idx/_"), request["path"])
        if request["path"] == b"/idx/_bulk":
            lines = request["body"].split(b"\n")
            check(case, lines.pop() == b"" and len(lines) % 2 == 0, lines)
            for action, doc in zip(lines[::2], lines[1::2]):
                (verb, of), = strict(action).items()
                check(case, verb in ("index", "create") and set(of) == {"_id"} and of["_id"] not in found, action)
                found[of["_id"]] = strict(doc)
        elif b"_mget" in request["path"]:
            read += strict(request["body"])["docs"]
    z = found.pop("z")
    check(case, set(z) == {"sluice_hash", "PK"} and z["PK"] == "z", z)
    check(case, len(found) == fine, found)
    if field == "test name" and fine and read:
        wanted = ["sluice_types", "t"] + ([decoded] if decoded != "t" else [])
        check(case, [d.get("_source", wanted) for d in read] == [wanted] * len(read), read)
    if not fine or decoded is None:
        return
    (at, doc), = found.items()
    check(case, re.fullmatch("[0-9a-f]{32}", doc.pop("sluice_hash")), doc)
    if field == "key":
        check(case, at == decoded if len(text) <= 512 else re.fullmatch("sha256:[0-9a-f]{64}", at), at)
        check(case, doc == {"PK": decoded}, doc)
    elif field == "value":
        check(case, doc == {"PK": "a", "v": decoded}, doc)
    elif field == "name":
        check(case, doc == {"PK": "a", decoded: "v"}, doc)


# ---- reading ----

def is_key_name(text):
    return utf8(text) is not None and not re.search(rb"[\0-\x1f\x7f]", text) and all(p not in (b"", b".", b"..") for p in text.split(b"/")) and len(text) <= 1020


def read(case, text, requests):
    fine = is_key_name(text) if case["field"] == "key" else bool(re.fullmatch(rb"[!-~]([ -~]*[!-~])?", text)) and len(text) < 100000
    check(case, (case["status"] == 0) == fine, case["why"])
    asked = {}
    for request in requests:
        fields = headers(case, request)
        check(case, request["method"] == "GET" and b"?" not in request["path"] and not request["body"] and fields["range"] == "bytes=0-99", request)
        asked[urllib.parse.unquote_to_bytes(request["path"][len(b"/bucket/pre/"):])] = fields
    check(case, "if-match" not in asked.pop(b"b"))
    check(case, set(asked) == ({text if case["field"] == "key" else b"a"} if fine else set()), asked)
    if fine and case["field"] == "etag":
        check(case, asked[b"a"]["if-match"] == '"%s"' % text.decode(), asked)


def listing(case, text, requests):
    fine = utf8(text) is not None and len(text) <= 1024
    check(case, (case["status"] == 0) == fine, case["why"])
    check(case, len(requests) == 1 + fine, len(requests))
    for request, is_it in zip(reversed(requests), (False, True)):
        headers(case, request)
        path, _, query = request["path"].partition(b"?")
        want = {b"list-type": b"2", b"encoding-type": b"url", b"max-keys": b"1000", b"prefix": b"p" if is_it else b"p/"}
        if is_it:
            want[b"prefix" if case["field"] == "prefix" else b"start-after"] = text
        pairs = [tuple(map(urllib.parse.unquote_to_bytes, pair.split(b"=", 1))) for pair in query.split(b"&")]
        check(case, path == b"/bucket" and len(dict(pairs)) == len(pairs) and dict(pairs) == want, pairs)


def scan(case, text, requests):
    decoded, field = utf8(text), case["field"]
    raw = (decoded if decoded is not None else text.decode(errors="replace")).encode()
    fine = 0 < len(raw) <= 2048 if field == "key" else False if field == "key json" else bool(text) and decoded is not None and len(text) < 100000
    check(case, (case["status"] == 0) == fine, case["why"])
    check(case, len(requests) == 1 + fine, len(requests))
    for request in requests:
        headers(case, request)
        body = strict(request["body"])
        want = {"TableName": "tbl", "ConsistentRead": False, "ReturnConsumedCapacity": "TOTAL", "TotalSegments": 2, "Segment": body["Segment"]}
        if body["Segment"] == 0 and field == "name":
            want |= {"ProjectionExpression": "#n0,#n1", "ExpressionAttributeNames": {"#n0": "a", "#n1": decoded}}
        elif body["Segment"] == 0:
            want["ExclusiveStartKey"] = {"PK": {"S": decoded}} if decoded is not None else body["ExclusiveStartKey"]
        check(case, body == want, body)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "dump.jsonl")
        done = subprocess.run([f"{BUILD}/tests/sinks/test_hostile"], env={**os.environ, "HOSTILE_DUMP": str(path)}, capture_output=True)
        if done.returncode:
            sys.exit(f"FAIL {done.stdout.decode()}{done.stderr.decode()}")
        requests, cases = [], 0
        for line in path.open():
            one = json.loads(line)
            if "method" in one:
                requests.append({k: v if k == "method" else base64.b64decode(v) for k, v in one.items()})
                continue
            cases += 1
            one["why"] = base64.b64decode(one["why"])
            judge = JUDGES.get(one["sink"]) or (queue if one["sink"].split()[0] in OF else table)
            judge(one, base64.b64decode(one["text"]), requests)
            requests = []
    if cases < 1000:
        sys.exit(f"FAIL only {cases} cases")
    print(f"{passed} passed, 0 failed")


JUDGES = {"document": document, "s3": s3, "read": read, "list": listing, "scan": scan, "webhook": webhook, "webhook array": webhook}
main()
