#!/usr/bin/env python3
"""Events as Lambda sends them: every form that `sluice replay` reads is delivered, and filtered, alike.

MODEL has every field of a DynamoDB event with its JSON type and when it is there, after AWS's documentation of
Record and StreamRecord, and the event types that AWS publishes for Go (a time that is no number does not parse)
and for Java. The forms are made from the same records, TRUTH, by code that knows nothing of the command's."""
import base64
import datetime
import gzip
import json
import re
import subprocess

from harness import BUILD, WHOLE, Run, check, finish, work_folder

folder = work_folder()
ARN = "arn:aws:dynamodb:eu-west-1:210987654321:table/orders/stream/2026-01-01T00:00:00.000"
IMAGES = {"KEYS_ONLY": (0, 0), "NEW_IMAGE": (1, 0), "OLD_IMAGE": (0, 1), "NEW_AND_OLD_IMAGES": (1, 1)}

# ---- the model ----


def is_number(x):
    return type(x) in (int, float)


def is_text(x):
    return type(x) is str and x != ""


def is_map(x):
    return type(x) is dict


RECORD = {"eventID": is_text, "eventName": lambda x: x in ("INSERT", "MODIFY", "REMOVE"), "eventVersion": lambda x: re.fullmatch(r"\d+\.\d+", x),
          "eventSource": lambda x: x == "aws:dynamodb", "awsRegion": is_text, "dynamodb": is_map,
          "eventSourceARN": lambda x: re.fullmatch(r"arn:[^:]+:dynamodb:[^:]+:\d{12}:table/[^/]+/stream/\d{4}-\d\d-\d\dT[\d:.]+", x)}
CHANGE = {"ApproximateCreationDateTime": lambda x: is_number(x) and 0 < x < 1e11, "Keys": lambda x: is_map(x) and x,
          "SequenceNumber": lambda x: type(x) is str and x.isdigit(), "SizeBytes": lambda x: type(x) is int and x > 0, "StreamViewType": lambda x: x in IMAGES}


def value_fault(value, where):
    """Why this is no attribute value; '' when it is one."""
    if not is_map(value) or len(value) != 1:
        return f"{where}: not one tag"
    (tag, x), = value.items()
    good = {"S": lambda: type(x) is str, "N": lambda: type(x) is str and float(x) is not None, "B": lambda: base64.b64decode(x, validate=True) is not None,
            "BOOL": lambda: type(x) is bool, "NULL": lambda: x is True, "SS": lambda: all(type(e) is str for e in x), "NS": lambda: all(type(e) is str for e in x),
            "BS": lambda: all(base64.b64decode(e, validate=True) is not None for e in x),
            "L": lambda: not any(value_fault(e, where) for e in x), "M": lambda: not any(value_fault(e, where) for e in x.values())}
    return "" if tag in good and good[tag]() else f"{where}: {tag} {x!r}"


def fault(record):
    """What in the record Lambda would not send; '' when it is as Lambda sends it."""
    for model, part, more in ((RECORD, record, {"userIdentity"}), (CHANGE, record.get("dynamodb", {}), {"NewImage", "OldImage"})):
        for name, test in model.items():
            if name not in part or not test(part[name]):
                return f"{name}: {part.get(name)!r}"
        if set(part) - set(model) - more:
            return f"not Lambda's: {set(part) - set(model) - more}"
    if "userIdentity" in record and (set(record["userIdentity"]) != {"type", "principalId"} or not all(map(is_text, record["userIdentity"].values()))):
        return f"userIdentity: {record['userIdentity']}"
    change, name = record["dynamodb"], record["eventName"]
    new, old = IMAGES[change["StreamViewType"]]
    if ("NewImage" in change) != bool(new and name != "REMOVE") or ("OldImage" in change) != bool(old and name != "INSERT"):
        return f"images of {change['StreamViewType']} {name}: {sorted(change)}"
    if record["eventSourceARN"].split(":")[3] != record["awsRegion"]:
        return "the ARN is of another Region"
    images = [change[i] for i in ("Keys", "NewImage", "OldImage") if i in change]
    return next(filter(None, (value_fault(v, k) for image in images for k, v in image.items())), "")


# ---- the truth ----

ITEM = {"s": {"S": "é\u2028\"\\"}, "n": {"N": "1E-130"}, "b": {"B": "AAEC"}, "t": {"BOOL": True}, "z": {"NULL": True}, "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2.5"]}, "bs": {"BS": ["AA=="]}, "l": {"L": [{"M": {"x": {"S": " : , "}}}, {"N": "7"}]}, "ttl": {"N": "1700000000"}}


def size(image):
    def of(v):
        (tag, x), = v.items()
        number = lambda t: {"1E-130": 2, "1": 2, "2.5": 3, "7": 2, "1700000000": 2}[t] if t in ("1E-130", "1", "2.5", "7", "1700000000") else len(t) // 2 + len(t) % 2 + 1
        return {"S": lambda: len(x.encode()), "N": lambda: number(x), "B": lambda: len(base64.b64decode(x)), "BOOL": lambda: 1, "NULL": lambda: 1,
                "SS": lambda: sum(len(e.encode()) for e in x), "NS": lambda: sum(map(number, x)), "BS": lambda: sum(len(base64.b64decode(e)) for e in x),
                "L": lambda: 3 + sum(1 + of(e) for e in x), "M": lambda: 3 + sum(1 + len(k.encode()) + of(e) for k, e in x.items())}[tag]()
    return sum(len(k.encode()) + of(v) for k, v in image.items())


def truth(views=tuple(IMAGES)):
    out = []
    for view in views:
        for name in ("INSERT", "MODIFY", "REMOVE"):
            n = len(out) + 1
            keys = {"pk": {"S": f"k{n}"}, "sk": {"N": "7"}}
            change = {"ApproximateCreationDateTime": 1763672640 + n, "Keys": keys}
            if IMAGES[view][0] and name != "REMOVE":
                change["NewImage"] = {**keys, **ITEM}
            if IMAGES[view][1] and name != "INSERT":
                change["OldImage"] = {**keys, "s": {"S": "before"}}
            change.update(SequenceNumber=f"3000000000000000{n:06d}", SizeBytes=sum(size(change[i]) for i in ("Keys", "NewImage", "OldImage") if i in change), StreamViewType=view)
            record = {"eventID": f"{n:032x}", "eventName": name, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1", "dynamodb": change}
            if name == "REMOVE":
                record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
            out.append({**record, "eventSourceARN": ARN})
    return out


TRUTH = truth()
check("the model takes the truth", not any(map(fault, TRUTH)), [fault(r) for r in TRUTH])


def dumps(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ---- the forms ----

def edited(edit, records=TRUTH):
    """Copies of the records, each edited by `edit`."""
    copies = json.loads(dumps(records))
    for copy in copies:
        edit(copy)
    return copies


def get_records(time=lambda t: t):
    """As GetRecords returns them: no ARN, another spelling; `time` writes the time."""
    def edit(r):
        del r["eventSourceARN"]
        r["dynamodb"]["ApproximateCreationDateTime"] = time(r["dynamodb"]["ApproximateCreationDateTime"])
        if "userIdentity" in r:
            r["userIdentity"] = {"PrincipalId": r["userIdentity"]["principalId"], "Type": r["userIdentity"]["type"]}
    return {"Records": edited(edit), "NextShardIterator": ARN.replace("stream", "x") + "|1|AAAA"}


def date(hours=0, sep="T", timespec="seconds"):
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    return lambda t: datetime.datetime.fromtimestamp(t, zone).isoformat(sep, timespec)


def nulls(r):
    r.setdefault("userIdentity", None)
    for name in ("NewImage", "OldImage"):
        r["dynamodb"].setdefault(name, None)


def quoted(r):
    r["dynamodb"]["ApproximateCreationDateTime"] = f"{r['dynamodb']['ApproximateCreationDateTime']}.0"


def as_float(text):
    return re.sub(r'("ApproximateCreationDateTime":\s*\d+)', r"\1.0", text)


def exponent(text):
    return re.sub(r'("ApproximateCreationDateTime":\s*)(\d)(\d{9})', r"\1\2.\3E9", text)


def run_ours(*args, stdin=None):
    done = subprocess.run([f"{BUILD}/sluice", *args], cwd=folder, capture_output=True, input=stdin, timeout=600)
    check(f"sluice {args[0]}", done.returncode == 0, done.stderr)
    return done.stdout


def decoded():
    return run_ours("decode", "-", stdin=dumps(get_records(date(5.5))).encode())


def archived(form, records):
    """What our own archive handler writes."""
    (folder / "sluice.json").write_text(json.dumps({"routes": [{"name": "a", "handler": "archive", "to": f"file:{form}", "format": form}], "on_failure": "report"}))
    run_ours("replay", "--quiet", "-", stdin=dumps({"Records": records}).encode())
    return b"".join(gzip.decompress(p.read_bytes()) for p in sorted((folder / form).rglob("*.gz")))


def forms():
    """The forms that carry whole stream records, as text or bytes."""
    event = {"Records": TRUTH}
    window = {"window": {"start": "2025-11-20T21:00:00Z", "end": "2025-11-20T22:00:00Z"}, "state": {"n": 1}, "shardId": "shardId-1", "eventSourceARN": ARN,
              "isFinalInvokeForWindow": False, "isWindowTerminatedEarly": False}
    lines = lambda records, end="\n": end.join(map(dumps, records)) + end
    return {
        "an event": dumps(event), "an event, printed": json.dumps(event, indent=4), "an event, ASCII with spaces": json.dumps(event),
        "an event after a byte order mark": "\ufeff" + dumps(event), "a window's event": dumps({**event, **window}),
        "an event with its time as 1.0": as_float(dumps(event)), "an event with its time as 1E9": exponent(dumps(event)),
        "an event with its time in quotes": dumps({"Records": edited(quoted)}), "an event with nulls": dumps({"Records": edited(nulls)}),
        "an array, as Pipes has it": dumps(TRUTH), "lines": lines(TRUTH), "lines with CR LF": lines(TRUTH, "\r\n"), "lines with empty ones": lines(TRUTH, "\n\n"),
        "gzip": gzip.compress(lines(TRUTH).encode()), "GetRecords on the wire": exponent(dumps(get_records())),
        "AWS CLI 1, and wire": as_float(json.dumps(get_records(), indent=4)), "AWS CLI 2 in UTC": json.dumps(get_records(date()), indent=4, ensure_ascii=False),
        "AWS CLI 2 in Paris": json.dumps(get_records(date(1)), indent=4, ensure_ascii=False),
        "AWS CLI 2 in Newfoundland": json.dumps(get_records(date(-3.5)), indent=4, ensure_ascii=False),
        "AWS CLI 2, --query Records": json.dumps(get_records(date(1))["Records"], indent=4),
        "AWS CLI 2, --query Records[] | jq -c": lines(get_records(date(1))["Records"]),
        "JavaScript's dates": dumps(get_records(lambda t: date(timespec="milliseconds")(t)[:-6] + "Z")), "Python's dates": json.dumps(get_records(date(sep=" "))),
        "sluice decode": decoded(), "an archive of records": archived("record", TRUTH),
    }


# ---- what a function receives ----

def delivered(text, *flags, status=0):
    kept = folder / "kept.jsonl"
    kept.unlink(missing_ok=True)
    run = Run(folder, "--quiet", *flags, "-", function="keep kept.jsonl", stdin=text if isinstance(text, bytes) else text.encode())
    check(f"is taken, or refused: {flags}", run.status == status, run.err)
    return run, kept.read_bytes().splitlines() if kept.exists() else []


def records_of(bodies):
    return [r for body in bodies for r in json.loads(body)["Records"]]


# By name: the pattern, and what it selects, by Lambda's rules, in the records that Lambda would send.
identity = lambda r: r.get("userIdentity", {})
created = lambda r: r["dynamodb"]["ApproximateCreationDateTime"]
FILTERS = {
    "a number within bounds": ({"dynamodb": {"ApproximateCreationDateTime": [{"numeric": [">", 1763672643, "<=", 1763672649]}]}}, lambda r: 1763672643 < created(r) <= 1763672649),
    "a number that is equal": ({"dynamodb": {"ApproximateCreationDateTime": [{"numeric": ["=", 1763672645]}]}}, lambda r: created(r) == 1763672645),
    "SizeBytes": ({"dynamodb": {"SizeBytes": [{"numeric": [">", 100]}]}}, lambda r: r["dynamodb"]["SizeBytes"] > 100),
    "who removed it": ({"userIdentity": {"type": ["Service"], "principalId": ["dynamodb.amazonaws.com"]}}, lambda r: bool(identity(r))),
    "GetRecords' spelling": ({"userIdentity": {"Type": [{"exists": True}]}}, lambda r: False),
    "nobody": ({"userIdentity": {"type": [{"exists": False}]}}, lambda r: not identity(r)),
    "the ARN": ({"eventSourceARN": [{"prefix": "arn:aws:dynamodb:"}], "eventVersion": ["1.1"], "awsRegion": ["eu-west-1"]}, lambda r: True),
    "view and images": ({"dynamodb": {"StreamViewType": ["NEW_IMAGE", "KEYS_ONLY"], "NewImage": {"pk": {"S": [{"exists": True}]}}}},
                        lambda r: r["dynamodb"]["StreamViewType"] == "NEW_IMAGE" and "NewImage" in r["dynamodb"]),
    "no old image": ({"dynamodb": {"OldImage": {"s": {"S": [{"exists": False}]}}}}, lambda r: "OldImage" not in r["dynamodb"]),
    "our own member": ({"sluice": {"index": [{"exists": True}]}}, lambda r: False),
}


def whole_records():
    for number, (name, text) in enumerate(forms().items()):
        _, bodies = delivered(text)
        records = records_of(bodies)
        tokens = re.sub(r'"(\\.|[^"\\])*"', "", bodies[0].decode())
        check(f"{name}: one event, without whitespace", len(bodies) == 1 and not re.search(r"\s", tokens), bodies[0][:300])
        check(f"{name}: by the model", not any(map(fault, records)), [fault(r) for r in records])
        stream = lambda r: {**r, "eventSourceARN": ARN}
        check(f"{name}: as it was in the stream", list(map(stream, records)) == TRUTH, [(a, b) for a, b in zip(records, TRUTH) if stream(a) != b][:1])
        if "Records" in name or "CLI" in name or "dates" in name or name in ("GetRecords on the wire", "sluice decode"):
            check(f"{name}: an ARN in its Region", {r["eventSourceARN"].split("/")[0] for r in records} == {"arn:aws:dynamodb:eu-west-1:123456789012:table"}, records[0])
        else:
            check(f"{name}: its own ARN", records == TRUTH)
        for place, (what, (pattern, selects)) in enumerate(FILTERS.items()):
            if not WHOLE and place % 3 != number % 3:
                continue
            run, bodies = delivered(text, "--filter", json.dumps(pattern))
            have, want = [created(r) for r in records_of(bodies)], [created(r) for r in TRUTH if selects(r)]
            check(f"{name}: filter on {what}", have == want, (have, want))


def exports():
    """Lines without a stream around them become the records that would have carried them."""
    both = truth(("NEW_AND_OLD_IMAGES",))
    line = lambda r: {"Metadata": {"WriteTimestampMicros": {"N": str(created(r) * 1000000 + 250000)}}, **{k: r["dynamodb"][k] for k in ("Keys", "NewImage", "OldImage") if k in r["dynamodb"]}}
    only_new = [line(r) for r in truth(("NEW_IMAGE",))]
    for name, text, count in (("incremental", "\n".join(dumps(line(r)) for r in both), 3), ("incremental, NEW_IMAGE", "\n".join(map(dumps, only_new)), 3),
                              ("our archive of export lines", archived("export", both), 3)):
        _, bodies = delivered(text)
        records = records_of(bodies)
        check(f"{name}: by the model", len(records) == count and not any(map(fault, records)), [fault(r) for r in records])
        check(f"{name}: whole seconds", [created(r) for r in records] == [1763672641, 1763672642, 1763672643], records)
        if "NEW_IMAGE" not in name:
            same = ("eventName", "dynamodb")
            known = lambda r: {**{k: r[k] for k in same}, "dynamodb": {k: v for k, v in r["dynamodb"].items() if k != "SequenceNumber"}}
            check(f"{name}: what it says is kept", list(map(known, records)) == list(map(known, both)), records)
        _, bodies = delivered(text, "--filter", '{"dynamodb":{"ApproximateCreationDateTime":[{"numeric":[">",1763672641]}]}}')
        check(f"{name}: filtered as a stream's", len(records_of(bodies)) == 2)
    items = "\n".join(dumps({"Item": {"pk": {"S": f"k{n}"}, "sk": {"N": "7"}, **ITEM}}) for n in range(1, 9))
    _, bodies = delivered(items, "--keys", "pk,sk", "--parallelization", "2")
    records = records_of(bodies)
    check("items: by the model", len(records) == 8 and not any(map(fault, records)), [fault(r) for r in records])
    check("items: keys and size", all(set(r["dynamodb"]["Keys"]) == {"pk", "sk"} and r["dynamodb"]["SizeBytes"] == size(r["dynamodb"]["Keys"]) + size(r["dynamodb"]["NewImage"]) for r in records))
    check("items: their keys spread them over lanes", len(bodies) == 2, len(bodies))


def fixtures():
    """A hand-written record says what its author needed; Lambda would have said the rest."""
    least = {"eventName": "INSERT", "dynamodb": {"Keys": {"pk": {"S": "k"}}}}
    for missing in [(), *[(n,) for n in list(RECORD) + list(CHANGE)]]:
        def edit(r):
            for n in missing:
                if n not in ("eventName", "dynamodb", "Keys"):
                    r.pop(n, None)
                    r["dynamodb"].pop(n, None)
        _, bodies = delivered(dumps({"Records": edited(edit)}))
        records = records_of(bodies)
        check(f"without {missing}: by the model", len(records) == 12 and not any(map(fault, records)), [fault(r) for r in records])
        kept = edited(edit)
        check(f"without {missing}: the rest is kept", all(k in missing or r[k] == w[k] or k == "dynamodb" for r, w in zip(records, kept) for k in w) and
              all(r["dynamodb"][k] == v for r, w in zip(records, kept) for k, v in w["dynamodb"].items()))
    _, bodies = delivered(dumps({"Records": [least]}))
    check("the least record: by the model", not fault(records_of(bodies)[0]), fault(records_of(bodies)[0]))
    new = {**TRUTH[0], "later": {"a": [1, None]}, "dynamodb": {**TRUTH[0]["dynamodb"], "Later": 1}}
    _, bodies = delivered(json.dumps([new], indent=1))
    check("members that AWS may add are kept", records_of(bodies) == [new], bodies)
    for written, wanted in (("1763672641.5", "1763672641.5"), ("1.7636726415E9", "1.7636726415E9"), ('"2025-11-20T21:04:01.500Z"', "1763672641.5"),
                            ('"1763672641.50"', "1763672641.5"), ("1763672641500", "1763672641"), ("1763672641500000", "1763672641"), ("1763672641.000", "1763672641.000")):
        _, bodies = delivered(dumps({"Records": TRUTH[:1]}).replace('Time":1763672641', f'Time":{written}'))
        check(f"a time written as {written}", f'"ApproximateCreationDateTime":{wanted},'.encode() in bodies[0], bodies)


def kinesis():
    """Kinesis: the record around the change is delivered, and filters look at the decoded data."""
    def wrapped(n, name):
        change = {"awsRegion": "eu-west-1", "eventID": f"id-{n}", "eventName": name, "userIdentity": None, "recordFormat": "application/json", "tableName": "orders",
                  "dynamodb": {"ApproximateCreationDateTime": 1763672640123 + n, "Keys": {"pk": {"S": f"k{n}"}}, "SizeBytes": 5}, "eventSource": "aws:dynamodb"}
        return {"kinesis": {"kinesisSchemaVersion": "1.0", "partitionKey": f"P{n}", "sequenceNumber": f"{n:056d}", "data": base64.b64encode(json.dumps(change).encode()).decode(),
                            "approximateArrivalTimestamp": 1763672641.5}, "eventSource": "aws:kinesis", "eventVersion": "1.0", "eventID": f"shardId-000000000000:{n:056d}",
                "eventName": "aws:kinesis:record", "invokeIdentityArn": "arn:aws:iam::210987654321:role/r", "awsRegion": "eu-west-1", "eventSourceARN": "arn:aws:kinesis:eu-west-1:210987654321:stream/s"}
    records = [wrapped(n, name) for n, name in enumerate(("INSERT", "MODIFY", "REMOVE", "INSERT"), 1)]
    for name, text in (("an event", dumps({"Records": records})), ("printed", json.dumps({"Records": records}, indent=2)), ("lines", "\n".join(map(dumps, records))), ("an array", dumps(records))):
        _, bodies = delivered(text)
        check(f"Kinesis, {name}: delivered as it is", bodies == [dumps({"Records": records}).encode()], bodies)
        _, bodies = delivered(text, "--filter", '{"data":{"eventName":["INSERT"],"dynamodb":{"ApproximateCreationDateTime":[{"numeric":[">",1763672640124]}]}}}')
        check(f"Kinesis, {name}: filtered by its data", records_of(bodies) == records[3:], bodies)
        run, _ = delivered(text, "--filter", '{"eventName":["INSERT"]}', status=2)
        check(f"Kinesis, {name}: by nothing else", '"data" alone' in run.err, run.err)
    run = Run(folder, "--quiet", "-", function="keep kept.jsonl", stdin="\n".join(map(dumps, [records[0], TRUTH[0]])).encode())
    check("both sources in one input: refused", run.status == 2 and "both DynamoDB Streams and Kinesis" in run.err, run.err)


whole_records()
exports()
fixtures()
kinesis()
finish()
