#!/usr/bin/env python3
"""Random templates on random records, against a slow reading of docs/WHEN.md."""
import datetime
import decimal
import hashlib
import hmac
import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.parse

NAME = r"(?:[^.\[`{}|]+|`[^`]+`)"
PATH = re.compile(rf"{NAME}(?:\.{NAME}|\[[0-9]{{1,8}}\])*")
PLACE = re.compile(r"\{\{|\}\}|\{((?:[^{}`]|`[^`]*`)*)\}|[^{}]+", re.S)
TIMES = {"yyyy": "%Y", "mm": "%m", "dd": "%d", "hh": "%H", "mi": "%M", "ss": "%S"}


class Refused(Exception):
    pass


class Rejected(Exception):
    pass


def parts_of(template):
    """Literal texts as strings, places as one-element lists."""
    at, out = 0, []
    while at < len(template):
        found = PLACE.match(template, at)
        if not found:
            raise Refused
        at = found.end()
        if found.group(1) is None:
            out.append(found.group()[0] if found.group() in ("{{", "}}") else found.group())
        else:
            out.append([found.group(1)])
    return out


def step(value, path):
    """What a path finds in an image, None when nothing is there."""
    first = True
    for name, index in re.findall(rf"\.?({NAME})|\[([0-9]+)\]", path):
        ((tag, inner),) = ((None, value),) if first else value.items()
        first = False
        if index:
            found = inner[int(index)] if tag == "L" and int(index) < len(inner) else None
        else:
            found = inner.get(name.strip("`")) if tag in (None, "M") else None
        if found is None:
            return None
        value = found
    return value


def place_value(inner, record):
    change = record["dynamodb"]
    if inner in TIMES:
        return time.strftime(TIMES[inner], time.gmtime(change["ApproximateCreationDateTime"]))
    fixed = {
        "table": record["eventSourceARN"].split("/")[1],
        "region": record["awsRegion"],
        "event": record["eventName"],
        "eventID": record["eventID"],
        "sequence": change["SequenceNumber"],
        "ttl": "unknown" if record["eventName"] == "REMOVE" and "OldImage" not in change else "user",
    }
    if inner in fixed:
        return fixed[inner]
    image, _, path = inner.partition(".")
    if image == inner and image in ("Keys", "NewImage", "OldImage"):
        return {"M": change[image]} if image in change else None
    images = [image] if image in ("Keys", "NewImage", "OldImage") else ["Keys", "NewImage", "OldImage"]
    if len(images) > 1:
        path = inner
    if not PATH.fullmatch(path):
        raise Refused
    values = [step(change[i], path) for i in images if i in change]
    return next((v for v in values if v is not None), None)


# ---- functions: each takes and returns (type, content); ("", None) is missing ----

MISSING = ("", None)
TOKEN = re.compile(r"`((?:[^`]|``)*)`|([^:|`]*)")
PLAIN = decimal.Context(prec=60, Emin=-300, Emax=300)


def text_of(datum):
    tag, inner = datum
    if tag == "BOOL":
        return str(inner).lower()
    return inner if tag in ("S", "N", "B") else None


def number_of(text):
    """The normal form of a DynamoDB number, None when it is not one."""
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.A):
        return None
    value = decimal.Decimal(text).normalize(PLAIN)
    if value and not (len(value.as_tuple().digits) <= 38 and -130 <= value.adjusted() <= 125):
        return None
    return f"{value:f}" if value else "0"


def moment_of(tag, text):
    if tag == "S" and re.fullmatch(r"\d{8}", text, re.A):
        return datetime.datetime.strptime(text, "%Y%m%d")
    if number_of(text) is not None:
        value = decimal.Decimal(text)
        value = value / 1000 if abs(value) >= 10**11 else value
        if abs(value) > 10**12:
            raise ValueError
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(value.to_integral_value(decimal.ROUND_FLOOR)))
    zone = r"(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)?"
    found = re.fullmatch(rf"(\d{{4}})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?{zone})?", text, re.A)
    found = found or re.fullmatch(rf"(\d{{4}})(\d\d)(\d\d)(?:[Tt ](\d\d)(\d\d)(?:(\d\d)(?:[.,]\d+)?)?{zone})?", text, re.A)
    if not found:
        raise ValueError
    moment = datetime.datetime(*(int(part or 0) for part in found.groups()[:6]))
    return moment - offset_of(found.group(8), found.group(9), found.group(10))


def offset_of(sign, hours, minutes):
    if not sign:
        return datetime.timedelta(0)
    if int(hours) > 23 or int(minutes or 0) > 59:
        raise ValueError
    return datetime.timedelta(minutes=int(sign + "1") * (60 * int(hours) + int(minutes or 0)))


def date_function(datum, form, offset="Z"):
    zone = re.fullmatch(r"[Zz]|([+-])(\d\d)(?::?(\d\d))?", offset, re.A)
    fields = {"yyyy": "year", "mm": "month", "dd": "day", "hh": "hour", "mi": "minute", "ss": "second"}
    rest = re.sub("yyyy|mm|dd|hh|mi|ss", "", form)
    if not zone or rest == form or re.search("[A-SU-Ya-z]", rest):
        raise Refused
    try:
        shift = offset_of(*zone.groups())
    except ValueError:
        raise Refused from None
    if datum[0] not in ("S", "N"):
        return MISSING
    try:
        moment = moment_of(*datum) + shift
    except (ValueError, OverflowError):
        return MISSING
    return "S", re.sub("|".join(fields), lambda m: f"{getattr(moment, fields[m[0]]):0{len(m[0])}d}", form)


def plain(value):
    """JSON of a typed value, with names and elements of sets in the order of their UTF-8."""
    ((tag, inner),) = value.items()
    if tag == "M":
        names = sorted((json_text(name), member) for name, member in inner.items())
        return "{" + ",".join(f"{name}:{plain(member)}" for name, member in sorted(names, key=lambda n: n[0].encode())) + "}"
    if tag == "L":
        return "[" + ",".join(plain(element) for element in inner) + "]"
    if tag in ("SS", "NS", "BS"):
        return "[" + ",".join(sorted({plain({tag[0]: element}) for element in inner}, key=str.encode)) + "]"
    if tag in ("BOOL", "NULL"):
        return str(inner).lower() if tag == "BOOL" else "null"
    return {"S": json_text(inner), "N": number_of(inner) if tag == "N" else "", "B": '{"base64":"%s"}' % inner}[tag]


def json_text(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def integer(text):
    if not re.fullmatch(r"-?\d{1,6}", text, re.A):
        raise Refused
    return int(text)


def split_function(datum, separator, n):
    if not separator:
        raise Refused
    n, pieces = integer(n), (text_of(datum) or "").split(separator)
    return ("S", pieces[n]) if text_of(datum) is not None and -len(pieces) <= n < len(pieces) else MISSING


def slice_function(datum, first, last=None):
    first, last = integer(first), None if last is None else integer(last)
    return ("S", text_of(datum)[first:last]) if text_of(datum) is not None else MISSING


def after_function(datum, part):
    if not part:
        raise Refused
    return ("S", text_of(datum).split(part, 1)[1]) if part in (text_of(datum) or "") else MISSING


def number_function(datum):
    normal = number_of(datum[1]) if datum[0] in ("S", "N") else None
    return ("N", normal) if normal is not None else MISSING


def json_function(datum):
    return ("S", plain({datum[0]: datum[1]})) if datum[0] else MISSING


def of_text(change):
    return lambda datum: ("S", change(text_of(datum))) if text_of(datum) is not None else MISSING


def ascii_case(method):
    return of_text(lambda text: "".join(method(c) if c.isascii() else c for c in text))


FUNCTIONS = {
    "split": (2, 2, split_function),
    "after": (1, 1, after_function),
    "slice": (1, 2, slice_function),
    "lower": (0, 0, ascii_case(str.lower)),
    "upper": (0, 0, ascii_case(str.upper)),
    "trim": (0, 0, of_text(lambda text: text.strip(" \t\n\v\f\r"))),
    "default": (1, 1, lambda datum, text: datum if text_of(datum) is not None else ("S", text)),
    "json": (0, 0, json_function),
    "number": (0, 0, number_function),
    "date": (1, 2, date_function),
    "sha256": (0, 0, of_text(lambda text: hashlib.sha256(text.encode()).hexdigest())),
    "hmac": (1, 1, None),
}


def hmac_function(datum, name):
    if name != "KEY":
        raise Refused
    return of_text(lambda text: hmac.new(b"k3y", text.encode(), hashlib.sha256).hexdigest())(datum)


def calls_of(text):
    """The functions of a place, [(name, arguments)]."""
    calls, at = [], 0
    while True:
        name = re.compile("[^:|]*").match(text, at).group()
        if name not in FUNCTIONS:
            raise Refused
        at, arguments = at + len(name), []
        least, most, _ = FUNCTIONS[name]
        while text[at : at + 1] == ":":
            if len(arguments) == most:
                raise Refused
            is_last, begin = len(arguments) + 1 == most, at + 1
            found = re.compile(r"`((?:[^`]|``)*)`" if text[begin : begin + 1] == "`" else "([^|`]*)" if is_last else "([^:|`]*)").match(text, begin)
            if not found:
                raise Refused
            at = found.end()
            if text[at : at + 1] not in ("", ":", "|") or len(found.group(1).encode()) > 256:
                raise Refused
            arguments.append(found.group(1).replace("``", "`") if found.group()[:1] == "`" else found.group(1))
        if len(arguments) < least:
            raise Refused
        calls.append((name, arguments))
        if at == len(text):
            break
        at += 1
    names = [name for name, _ in calls]
    if len(calls) > 16 or names.count("json") > 1 or ("default", "json") in zip(names, names[1:]):
        raise Refused
    return calls


def is_json_made(calls):
    """Does the chain end with json, and with defaults that are JSON?"""
    while calls and calls[-1][0] == "default":
        try:
            json.loads(calls[-1][1][0], parse_constant=lambda name: int(name))
        except ValueError:
            return False
        calls = calls[:-1]
    return bool(calls) and calls[-1][0] == "json"


def apply(calls, datum):
    is_number = False
    for name, arguments in calls:
        if name == "default" and text_of(datum) is None and is_number and number_of(arguments[0]) is not None:
            datum = ("N", number_of(arguments[0]))
        else:
            function = hmac_function if name == "hmac" else FUNCTIONS[name][2]
            datum = function(datum, *arguments)
        is_number = name == "number" or (name == "default" and is_number and number_of(arguments[0]) is not None)
    return datum


def split_place(inner):
    """The name, and what comes after the first '|' that is not in backquotes."""
    found = re.match(r"((?:[^`|]|`[^`]*`)*)(?:\|(.*))?$", inner, re.S)
    if not found:
        raise Refused
    return found.group(1), found.group(2)


def place_text(inner, record):
    """The text of a place, and whether it is JSON."""
    name, functions = split_place(inner)
    if name in ("Keys", "NewImage", "OldImage") and (functions is None or calls_of(functions)[0][0] != "json"):
        raise Refused
    value = place_value(name, record)
    datum = ("S", value) if isinstance(value, str) else MISSING if value is None else next(iter(value.items()))
    calls = calls_of(functions) if functions is not None else []
    return text_of(apply(calls, datum)), is_json_made(calls)


def in_string(text, inside):
    for token in re.findall(r'\\.|"|.', text, re.S):
        inside = not inside if token == '"' or (token == '\\"' and not inside) else inside
    return inside


def escape(text, use):
    if use == "json":
        return re.sub(r"[\x7f]", lambda m: f"\\u{ord(m[0]):04x}", json.dumps(text, ensure_ascii=False)[1:-1])
    if use == "text":
        return text
    quoted = urllib.parse.quote(text, safe="").replace("~", "%7E")
    return re.sub(r"^\.", "%2E", quoted) or "%"


def render(template, use, record):
    try:
        parts = parts_of(template)
        places = [part if isinstance(part, str) else place_text(part[0], record) for part in parts]
        out, inside = [], False
        for place in places:
            if isinstance(place, str):
                inside = in_string(place, inside)
                out.append(place)
                continue
            text, is_json = place
            if text is None:
                raise Rejected
            out.append(text if use == "json" and is_json and not inside else escape(text, use))
        return "".join(out)
    except Refused:
        return "refused"
    except Rejected:
        return "rejected"


NAMES = ["a", "b", "b|c", "a.b", "\u00e9", "NewImage", "table", "x[0]", "{", "}"]
TIMES_OF = ["1763672640", "1763672640123", "0", "-1.5", "99999999999", "100000000000", "-100000000000", "20261120", "1e9", "253402300800"]
DATES = ["2026-11-20", "2026-12-01", "2024-03-01T00:00:00+00:30", "2025-12-31T23:30:00Z", "2027-01-01T00:10+09:00", "2024-02-29", "2023-02-29", "20261120", "20261399", "2026-11-20T21:04:00Z", "2026-11-20 23:59:59.9+09:00", "20261120T2104-0530",
         "2026-11-20T24:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-00:01", "2026-11-20T21:04", "2026-11-20T21:04:00.5+01", "2026-1-2"]
TEXTS = ["USER#ann", "ORDER#2026-11-20#17", "#", "a##b", " Ann \u00c4 ", "007.50", "1e3", "-0", "+.5", "1.", "123456789012345678901234567890123456789"]
TEXTS += ["", "x", ".", "..", "a/b", "%", "%2F", '"q"', "\\", "\u00fc \U0001d11e", "~-_.", "\x7f", "\x01"]


def value(rng, depth):
    tag = rng.choice("S S S S S N N B BOOL NULL SS NS BS L M".split())
    leaf = {
        "S": rng.choice(rng.choice([TEXTS, TEXTS, DATES, TIMES_OF])),
        "N": rng.choice(["1", "1.50", *TIMES_OF]),
        "B": "+/8=",
        "BOOL": rng.random() < 0.5,
        "NULL": True,
        "SS": rng.sample(["a", "\u00fc", '"', "B"], 2),
        "NS": rng.sample(["12", "1", "2.50", "-3"], 3),
        "BS": ["YQ==", "/w=="],
    }
    if tag in leaf:
        return {tag: leaf[tag]}
    if tag == "L":
        return {tag: [value(rng, depth - 1) for _ in range(rng.randint(0, 2) if depth else 0)]}
    return {tag: image(rng, depth - 1) if depth else {}}


def image(rng, depth=2):
    return {name: value(rng, depth) for name in rng.sample(NAMES, rng.randint(0, 6))}


def make_record(rng):
    change = {"ApproximateCreationDateTime": rng.randint(0, 4 * 10**9), "SequenceNumber": "17", "Keys": {"k": {"S": rng.choice(TEXTS)}}}
    change.update({name: image(rng) for name in ("NewImage", "OldImage") if rng.random() < 0.8})
    arn = "arn:aws:dynamodb:eu-west-1:1:table/t.1/stream/2026-11-20T00:00:00.000"
    event = rng.choice(["INSERT", "MODIFY", "REMOVE"])
    return {"eventID": "e", "eventName": event, "awsRegion": "eu-west-1", "eventSourceARN": arn, "dynamodb": change}


def path_in(rng, attributes):
    """A path that leads somewhere, or nearly."""
    out, here = "", {"M": attributes}
    while True:
        ((tag, inner),) = here.items()
        if tag == "M" and inner:
            name = rng.choice(list(inner))
            quoted = f"`{name}`" if re.search(r"[.\[{}|]", name) or rng.random() < 0.2 else name
            out, here = out + "." * bool(out) + quoted, inner[name]
        elif tag == "L" and inner:
            i = rng.randrange(len(inner))
            out, here = f"{out}[{i}]", inner[i]
        else:
            return out + rng.choice([""] * 9 + ["[0]", ".a", "."])
        if rng.random() < 0.1:
            return out


ARGUMENTS = {
    "split": [["#", "0"], ["#", "1"], ["#", "-1"], ["-", "2"], ["##", "1"], ["", "0"], ["#", "x"], ["`:`", "1"], ["#"], ["#", "1", "2"], ["a", "1234567"]],
    "after": [["#"], ["USER#"], ["a:b"], ["`|`"], ["````"], [], [""], ["`}`"]],
    "slice": [["0", "10"], ["1"], ["-2"], ["0", "-1"], ["3", "1"], ["-99", "99"], [], ["x"], ["0", "10", "1"]],
    "default": [["none"], ["0"], ["007"], ["``"], [""], ["a:b"], ["null"], ["x" * 257]],
    "date": [["yyyy-mm-dd"], ["yyyy-mm-dd", "+09:00"], ["`hh:mi:ss`", "-0530"], ["dd.mm"], ["hh:mi"], ["YYYY"], ["yyyymmddThhmissZ", "Z"], ["yyyy", "+24"], []],
    "hmac": [["KEY"], ["KEY"], ["NONE"], ["k/y"], []],
}
NAMES_OF = [*FUNCTIONS, "date", "number", "split", "json"]


def make_functions(rng):
    """A chain: mostly of functions as they should be written."""
    out = ""
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 2, 3]) if rng.random() < 0.99 else 17):
        name = rng.choice(NAMES_OF)
        choices = ARGUMENTS.get(name, [[]])
        arguments = rng.choice(choices[: len(choices) // 2 + 1] if rng.random() < 0.9 else choices)
        out += "|" + (name if rng.random() < 0.98 else name[:-1]) + "".join(":" + argument for argument in arguments)
    return out


def make_template(rng, record):
    pieces = []
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(["Keys", "NewImage", "OldImage"])
        path = path_in(rng, record["dynamodb"].get(name, {}) or {"a": {"S": ""}})
        fixed = rng.choice(["table", "region", "event", "eventID", "sequence", "ttl", *TIMES])
        place = rng.choice([path, f"{name}.{path}", f"{name}.{path}", fixed, "k"]) + make_functions(rng)
        if rng.random() < 0.1:
            place = rng.choice(["NewImage", "OldImage", "Keys"]) + rng.choice(["|json", "|json|sha256", "", make_functions(rng)])
        pieces.append(rng.choice(["{%s}"] * 30 + ["{{%s}}", "{%s", "%s}", "%s/"]) % place)
        pieces.append(rng.choice(["", "/", "-", " ", '"', '\\\\"']))
    return "".join(pieces)


def main():
    seed = int(os.environ.get("SEED", "20261120"))
    rng = random.Random(seed)
    cases = []
    for _ in range(int(os.environ.get("CASES", "5000"))):
        record = make_record(rng)
        cases.append((rng.choice(["text", "json", "path"]), make_template(rng, record), record))
    lines = "".join(f"{use}\t{template}\t{json.dumps(record)}\n" for use, template, record in cases)
    binary = os.path.join(os.environ.get("BUILD", "build"), "tests/streams/test_template")
    got = subprocess.run([binary, "lines"], input=lines.encode(), capture_output=True, check=True).stdout.decode().split("\n")
    want = [render(template, use, record) for use, template, record in cases]
    bad = [i for i in range(len(cases)) if want[i] != (got[i] if i < len(got) else None)]
    for i in bad[:10]:
        print(f"want {want[i]!r}, got {got[i]!r}: {cases[i]}")
    share = [want.count(kind) / len(want) for kind in ("refused", "rejected")]
    if bad or len(got) != len(cases) + 1 or not all(0.02 < s < 0.5 for s in share):
        print(f"seed {seed}: {len(bad)} of {len(cases)} differ; refused, rejected: {share}")
        sys.exit(1)
    print(f"1 passed ({len(cases)} templates)")


main()
