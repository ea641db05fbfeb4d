#!/usr/bin/env python3
"""Every text that DynamoDB stores, on every local path: it comes out as it went in, or is refused with its place."""
import gzip
import json
import sqlite3
import subprocess

from harness import BUILD, check, finish, record, work_folder

# As they stand in JSON. Nobody may change their meaning; `is_text`: half a surrogate pair is not text, and is refused.
TEXTS = {
    "plain": ("abc", True), "NUL": (r"a\u0000b", True), "NUL alone": (r"\u0000", True), "NULs": (r"\u0000\u0000", True),
    "controls": (r"\u0001\u001f\u007f\u0085", True), "short escapes": (r'\"\\\/\b\f\n\r\t', True), "the same as \\u": (r"\u0022\u005c\u002F\u000a", True),
    "quotes and braces": (r"'{}[]:,\"\\\"", True), "U+2028": (r"\u2028\u2029", True), "U+2028 as it is": ("\u2028\u2029\u202e", True),
    "U+FFFE": (r"\ufffe\uffff\ufeff", True), "U+FFFE as it is": ("\ufffe\uffff\ufeff", True), "U+FFFD": ("\ufffd", True),
    "U+10FFFF": (r"\udbff\udfff", True), "U+10FFFF as it is": ("\U0010ffff", True), "a pair in capitals": (r"\uD83D\uDE00", True),
    "an escaped letter": (r"\u0061\u0062", True), "spaces": (" \t ".replace("\t", r"\t"), True), "template": ("{PK}{{}}${X}", True), "path": ("../..//.%2F", True),
    "64 KB": ("n" * 65000, True), "64 KB of quotes": (r"\"" * 10000, True), "64 KB of NUL": (r"\u0000" * 10000, True),
    "a high half": (r"\ud800", False), "a low half": (r"\udc00", False), "halves the wrong way round": (r"\udc00\ud800", False), "a half before NUL": (r"\ud800\u0000", False),
}
# Where the text stands: the image's members beside PK. %s is the text.
PLACES = {
    "key": "", "value": '"v":{"S":"%s"}', "name": '"%s":{"S":"v"}', "name of a map": '"%s":{"M":{"x":{"N":"1"}}}', "nested name": '"m":{"M":{"%s":{"L":[{"M":{"%s":{"BOOL":true}}}]}}}',
    "nested value": '"l":{"L":[{"S":"%s"},{"M":{"x":{"S":"%s"}}}]}', "set": '"s":{"SS":["%s","another"]}',
}
KEY_BYTES = 2048
CASES = [(f"{t}, in {p}", text, PLACES[p], p == "key", good) for t, (text, good) in TEXTS.items() for p in PLACES]


def raw_record(n, text, place, is_key):
    pk = f'{{"S":"{text}"}}' if is_key else f'{{"S":"k{n}"}}'
    image = "{" + f'"PK":{pk}' + ("," + place.replace("%s", text) if place else "") + "}"
    frame = json.dumps({**record(n), "dynamodb": {**record(n)["dynamodb"], "Keys": "KEYS", "NewImage": "IMAGE", "StreamViewType": "NEW_AND_OLD_IMAGES"}},
                       separators=(",", ":"))  # as Lambda writes it: it is delivered as it stands
    return frame.replace('"KEYS"', f'{{"PK":{pk}}}').replace('"IMAGE"', image), image


def run(folder, *args, stdin=None):
    done = subprocess.run([f"{BUILD}/sluice", *args], cwd=folder, capture_output=True, timeout=600, input=stdin)
    done.out, done.err = done.stdout.decode("utf-8", "surrogatepass"), done.stderr.decode("utf-8", "replace")
    return done


def configure(folder, routes, **more):
    (folder / "sluice.json").write_text(json.dumps({**more, "routes": routes}))


def objects(folder):
    return [line for p in sorted(folder.rglob("*.gz")) for line in gzip.open(p).read().decode().split("\n") if line]


def values(lines):
    return [json.loads(line) for line in lines]


folder = work_folder()
good = [c for c in CASES if c[4]]
# A partition key has 2048 bytes at most.
good = [c for c in good if not (c[3] and len(json.loads(f'"{c[1]}"').encode()) > KEY_BYTES)]
# One record an item: two spellings of one key are one item.
good = [c for i, c in enumerate(good) if not c[3] or json.loads(f'"{c[1]}"') not in [json.loads(f'"{o[1]}"') for o in good[:i] if o[3]]]
made = [raw_record(n, text, place, is_key) for n, (_, text, place, is_key, _) in enumerate(good, 1)]
records, images = [m[0] for m in made], [json.loads(m[1]) for m in made]
(folder / "in.json").write_text('{"Records":[' + ",".join(records) + "]}")

# ---- decode ----
done = run(folder, "decode", "in.json")
lines = [l for l in done.out.split("\n") if l]
check("decode: every record", done.returncode == 0 and len(lines) == len(good), done.err[:500])
decoded = values(lines)
for case, image, line in zip(good, images, decoded):
    check(f"decode: {case[0]}", line["dynamodb"]["NewImage"] == image, line)
done = run(folder, "decode", "-", stdin=done.stdout)
again = values([l for l in done.out.split("\n") if l])
check("decode of decode: the same", done.returncode == 0 and [d["dynamodb"]["NewImage"] for d in again] == images, done.err[:500])

# ---- every handler with a local target; nothing is parked ----
PATTERN = [{"dynamodb": {"NewImage": {"PK": {"S": [{"exists": True}]}}}}]
configure(folder, [
    {"name": "record", "handler": "archive", "to": "file:record"}, {"name": "item", "handler": "archive", "to": "file:item", "format": "item"},
    {"name": "export", "handler": "archive", "to": "file:export", "format": "export"}, {"name": "json", "handler": "archive", "to": "file:json", "format": "json"},
    {"name": "keyed", "handler": "archive", "to": "file:keyed", "key": "{PK}/"},
    {"name": "copy", "handler": "replicate", "to": "sqlite:local.db?table=copy"},
    {"name": "plain", "handler": "replicate", "to": "sqlite:local.db?table=plain", "guard": {"table": "guards"}},
    {"name": "count", "handler": "aggregate", "to": "sqlite:local.db?table=sums", "counters": [{"key": {"PK": "{PK}"}, "add": {"n": 1}}]},
    {"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": '{{"pk":"{PK}","v":"{v}"}}', "escape": "json", "missing": "empty"},
    {"name": "when", "handler": "archive", "to": "file:when", "when": {"pattern": PATTERN}},
    {"name": "nul", "handler": "archive", "to": "file:nul", "when": {"pattern": [{"dynamodb": {"NewImage": {"v": {"S": [{"wildcard": "a*b"}]}}}}]}},
], on_failure="jsonl:parked.jsonl", report_batch_item_failures=True)
done = run(folder, "replay", "in.json")
parked = (folder / "parked.jsonl").read_text() if (folder / "parked.jsonl").exists() else ""
check("replay: all is done, nothing is parked", done.returncode == 0 and not parked, (done.err + done.out + parked)[:1500])
by_key = lambda image: json.dumps(image["PK"])
wanted = sorted(images, key=by_key)
for name, get in (("record", lambda l: l["dynamodb"]["NewImage"]), ("item", lambda l: l["Item"]), ("export", lambda l: l["NewImage"]), ("keyed", lambda l: l["dynamodb"]["NewImage"]),
                  ("when", lambda l: l["dynamodb"]["NewImage"])):
    have = sorted((get(l) for l in values(objects(folder / name))), key=by_key)
    check(f"archive {name}: every item as it was", have == wanted, [(a, b) for a, b in zip(have, wanted) if a != b][:1])
check("archive record: byte for byte", sorted(objects(folder / "record")) == sorted(records))
plain = {json.dumps(l["PK"]): l for l in values(objects(folder / "json"))}
for case, image in zip(good, images):
    line = plain[json.dumps(image["PK"]["S"])]
    check(f"archive json: {case[0]}", list(line) == list(image) and line.get("v") == image.get("v", {}).get("S"), line)
check("when: a NUL is a character", len(objects(folder / "nul")) == sum(i.get("v", {}).get("S", "")[:1] == "a" and i["v"]["S"][-1] == "b" for i in images))
db = sqlite3.connect(folder / "local.db")
rows = {k: json.loads(v) for k, v in db.execute("SELECT key, item FROM plain")}
check("sqlite: every item as it was", sorted(rows.values(), key=by_key) == wanted and all(json.loads(k) == {"PK": v["PK"]} for k, v in rows.items()),
      [i for i in images if i not in rows.values()][:1])
rows = [{k: v for k, v in json.loads(v).items() if not k.startswith("sluice_")} for _, v in db.execute("SELECT key, item FROM copy")]
check("sqlite, with a guard: every item as it was", sorted(rows, key=by_key) == wanted)
sums = {json.loads(k)["PK"]["S"] for k, in db.execute("SELECT key FROM sums")}
check("aggregate: a row for each key", all(i["PK"]["S"] in sums for i in images))
said = values([l for l in (folder / "said.jsonl").read_text().split("\n") if l])
check("notify: the texts in JSON", sorted(json.dumps([s["pk"], s["v"]]) for s in said) == sorted(json.dumps([i["PK"]["S"], i.get("v", {}).get("S", "")]) for i in images))

# ---- again: nothing changes; the archives are inputs ----
before = sorted(db.execute("SELECT key, item FROM plain UNION ALL SELECT key, item FROM copy"))
done = run(folder, "replay", "in.json")
check("delivered again: nothing changes", done.returncode == 0 and sorted(db.execute("SELECT key, item FROM plain UNION ALL SELECT key, item FROM copy")) == before, done.err[:500])
second = folder / "second"
second.mkdir()
configure(second, [{"name": "plain", "handler": "replicate", "to": "sqlite:local.db?table=plain", "guard": {"table": "guards"}}], on_failure="report")
inputs = [str(p) for p in sorted((folder / "record").rglob("*.gz"))]
done = run(second, "replay", *inputs)
check("an archive is replayed", done.returncode == 0, done.err[:500])
again = sqlite3.connect(second / "local.db")
check("... to the same items", dict(again.execute("SELECT key, item FROM plain")) == dict(db.execute("SELECT key, item FROM plain")))
done = run(folder, "manifest", "--table-arn", "arn:aws:dynamodb:us-east-1:123456789012:table/t", "export")
check("manifest: the export is folded", done.returncode == 0, done.err[:500])
data = [l["NewImage"] for l in values(objects(folder / "export" / "AWSDynamoDB"))]
check("... every item as it was", sorted(data, key=by_key) == wanted)

# ---- what parks can be redriven: a queue's lines, a folder's files ----
for target, pick in (("jsonl:parked.jsonl", lambda f: ["parked.jsonl"]), ("file:parked", lambda f: [str(p) for p in sorted((f / "parked").rglob("*.json"))])):
    place = folder / target.partition(":")[0]
    place.mkdir()
    route = {"name": "r", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{nothing}"}
    configure(place, [route], on_failure=target, max_parked=1000, report_batch_item_failures=True)
    done = run(place, "replay", str(folder / "in.json"))
    check(f"{target}: all are parked", done.returncode == 0, done.err[:500])
    texts = [m for name in pick(place) for m in (place / name).read_text().split("\n") if m]
    check(f"{target}: each message is a JSON object with its record", sorted(json.dumps(json.loads(m)["record"]["dynamodb"]["NewImage"]) for m in texts) == sorted(map(json.dumps, images)))
    configure(place, [{"name": "r", "handler": "replicate", "to": "sqlite:local.db?table=plain", "guard": {"table": "guards"}}], on_failure=target)
    some = pick(place)
    if target.startswith("jsonl"):  # one process a message: a sample of each text
        (place / "some.jsonl").write_text("\n".join(texts[::3]))
        some, texts = ["some.jsonl"], texts[::3]
    else:
        some, texts = some[::5], texts[::5]
    done = run(place, "redrive", *some)
    check(f"{target}: redriven", done.returncode == 0 and f"{len(texts)} of {len(texts)} messages are done" in done.out, (done.err + done.out)[-800:])
    redriven = sqlite3.connect(place / "local.db")
    have = {json.dumps(json.loads(v)) for v, in redriven.execute("SELECT item FROM plain")}
    check(f"{target}: ... to the same items", have == {json.dumps(json.loads(m)["record"]["dynamodb"]["NewImage"]) for m in texts})
# Older versions wrote a line with NUL in a name as a JSON string.
old = json.dumps(json.dumps({"sluiceParked": 1, "route": "r", "record": json.loads(records[1])}))
check("a line that is a string is redriven", run(folder / "jsonl", "redrive", "-", stdin=old.encode()).returncode == 0)

# ---- what is not text is refused, with its place; never twice, never without a word ----
for n, (name, text, place, is_key, _) in enumerate([c for c in CASES if not c[4]], 1):
    raw = '{"Records":[' + raw_record(n, text, place, is_key)[0] + "]}"
    at = raw.index("\\ud800" if "\\ud800" in text and not text.startswith("\\udc00") else "\\udc00")
    for verb in ("decode", "replay"):
        done = run(second, verb, "-", stdin=raw.encode())
        check(f"{verb}: {name}: refused with its place", done.returncode == 2 and f"byte {at}: a lone" in done.err, (at, done.returncode, done.err[:300]))
finish()
