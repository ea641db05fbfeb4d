#!/usr/bin/env python3
"""Records a DynamoDB stream: examples/capture/capture.py [--seed N] [--records N] [--seconds N] [--out FOLDER]

Starts DynamoDB Local (tests/services), makes an `orders` table with a NEW_AND_OLD_IMAGES stream and a TTL attribute, and drives
inserts, status changes, deletes and real expiries through it. What GetRecords returned is saved as Lambda would deliver it,
with what the table held at the end. Three files, gzip, one JSON object a line:

  orders.jsonl.gz          the stream's records, in order
  orders.scan.jsonl.gz     {"Item":...}, the table's Scan at the end
  orders.expired.jsonl.gz  {"PK":...,"SK":...}, the items that vanished without a delete of ours, once each time. Learned from what
                           writes and the Scan answered, not from the stream, so that the stream can be checked against it

The images are the bytes that came over the wire: no value passes through a JSON parser. Where DynamoDB Local's records differ from what
AWS's Lambda delivers, these members are mended, and nothing else:

  userIdentity       DynamoDB Local sets it on TTL removals, as AWS does, but GetRecords spells it PrincipalId and Type; Lambda delivers
                     principalId and type.
  SequenceNumber     counts up from 1, padded to 21 digits. AWS has 21 to 40 digits and no leading zero: 10000 is put in front.
  eventID            a UUID. AWS has 32 hex digits: the dashes go.
  awsRegion          always ddblocal. It becomes us-east-1.
  ApproximateCreationDateTime
                     rounded down to the minute, as N.000. AWS rounds down to the second, and a Lambda event has a float: it becomes N.0, the
                     second in which this script, which polls all the while, first saw the record. So it is late by a poll at most.
  eventSourceARN     not in a stream's record; Lambda adds it. The account is 123456789012.

Equal already: eventVersion 1.1, SizeBytes, no record for a write that changes nothing, and numbers without leading or trailing zeros.
Different and left: one shard that never splits, sequence numbers without gaps, expiry within minutes instead of days,
and numbers inside lists and maps, or set by an update, come back as they were written, where AWS returns the plain spelling (and SizeBytes goes
by the spelling): so odd spellings are written to top-level numbers of PutItem only.
"""
import argparse
import base64
import decimal
import gzip
import http.client
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SERVICES = HERE.parent.parent / "tests" / "services"
REGION, ACCOUNT, TABLE = "us-east-1", "123456789012", "orders"
TTL = "expires_at"
STATUSES = ["NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED"]
POLL_S = 0.2
SWEEP_S = 900  # DynamoDB Local's sweep looks at 20 items every 10 s

# Text that breaks careless readers: each string goes through the wire as a value, some as keys and attribute names.
HOSTILE = [
    "", " ", "\"", "\\", "\\\\\"", "\\u0041", "\u0000", "\u0001\u001f\u007f", "tab\tline\nreturn\r\n", "\b\f/", "\u2028\u2029", "\ufeffbom", "\uffff",
    "Ångström", "日本語のテキスト", "😀👩‍👩‍👧‍👦🏳️‍🌈", "e\u0301 u\u0308", "\u202eright to left", "שלום", "𝒳\U0010ffff",
    "../../etc/passwd", "/absolute/", "C:\\con", "a/b=c&d?e#f", "dt=2026-01-01/hour=00", "{NewImage.status}", "{{", "}", "${HOME}", "$(id)", "`id`",
    "'; DROP TABLE orders;--", "<script>alert(1)</script>", "%s%n%00", "null", "true", "NaN", "-0", "1e309", "{\"S\":\"x\"}", "[1,2", "]]>", "--", "\"}]}}",
]
NUMBERS = [
    "0", "-0", "1", "-1", "0.1", "-0.5", "100", "1.50", "007", "1e3", "99.99", "1234567890.123456789",
    "9" * 38, "-" + "9" * 38, "0." + "1" * 38, "12345678901234567890.123456789012345678", "1" + "0" * 37,
    "1E-130", "-1E-130", "9.9999999999999999999999999999999999999E+125", "-9.9999999999999999999999999999999999999E125", "1E+125", "1E37", "1E-38",
    "9007199254740993", "18446744073709551616", "0.30000000000000004", "123e-5",
]
NAMES = ["a.b", "a b", "#hash", ":colon", "with\"quote", "back\\slash", "naïve", "属性", "😀", "NewImage", "S", "N", "M", "L", "x" * 255, "tab\tname", "[0]", "{k}"]


class Client:
    """DynamoDB's JSON protocol without an SDK, so that answers stay bytes. The emulator looks at the key id and not at the signature."""

    def __init__(self, environment):
        host = environment["DYNAMODB_ENDPOINT"].removeprefix("http://")
        self.connection = http.client.HTTPConnection(host, timeout=60)
        scope = f"{environment['AWS_ACCESS_KEY_ID']}/20260101/{REGION}/dynamodb/aws4_request"
        self.authorization = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=0"

    def raw(self, target, body):
        """The answer's status and bytes."""
        self.connection.request("POST", "/", json.dumps(body), {
            "X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
            "Authorization": self.authorization})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def call(self, action, body, refusals=()):
        """The answer parsed; None when the service refused for one of the given reasons."""
        status, answer = self.raw("DynamoDB_20120810." + action, body)
        parsed = json.loads(answer)
        if status == 200:
            return parsed
        if parsed["__type"].rpartition("#")[2] in refusals:
            return None
        sys.exit(f"capture: {action} failed: {answer.decode()}")

    def stream(self, action, body):
        status, answer = self.raw("DynamoDBStreams_20120810." + action, body)
        if status != 200:
            sys.exit(f"capture: {action} failed: {answer.decode()}")
        return answer


# ---- JSON text, cut without parsing its values ----

def end_of_value(text, at):
    """The index after the JSON value that begins at `at`."""
    if text[at] == 0x22:
        at += 1
        while text[at] != 0x22:
            at += 2 if text[at] == 0x5C else 1
        return at + 1
    if text[at] in b"{[":
        depth = 0
        while True:
            if text[at] == 0x22:
                at = end_of_value(text, at)
                continue
            depth += (text[at] in b"{[") - (text[at] in b"}]")
            at += 1
            if depth == 0:
                return at
    while at < len(text) and text[at] not in b",}] \t\r\n":
        at += 1
    return at


def skip(text, at, also=b""):
    while text[at] in b" \t\r\n" or text[at] in also:
        at += 1
    return at


def members(text):
    """An object's members as (name, bytes of the value), in their order."""
    found, at = [], skip(text, 0, b"{")
    while text[at] != 0x7D:
        end = end_of_value(text, at)
        name = json.loads(text[at:end])
        at = skip(text, end, b":")
        end = end_of_value(text, at)
        found.append((name, text[at:end]))
        at = skip(text, end, b",")
    return found


def elements(text):
    found, at = [], skip(text, 0, b"[")
    while text[at] != 0x5D:
        end = end_of_value(text, at)
        found.append(text[at:end])
        at = skip(text, end, b",")
    return found


def object_of(pairs):
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name, value in pairs) + b"}"


def as_lambda_delivers(record, seen_s, arn):
    """One record of GetRecords in the shape of an event's; the list at the top says what changes."""
    change = {
        "ApproximateCreationDateTime": lambda _: b"%d.0" % seen_s,
        "SequenceNumber": lambda text: b'"10000' + text[1:],
        "eventID": lambda text: text.replace(b"-", b""),
        "awsRegion": lambda _: b'"%s"' % REGION.encode(),
        "userIdentity": lambda text: object_of([(name[0].lower() + name[1:], value) for name, value in members(text)]),
    }

    def mended(pairs):
        return [(name, change.get(name, lambda text: text)(value)) for name, value in pairs]

    change["dynamodb"] = lambda text: object_of(mended(members(text)))
    return object_of(mended(members(record)) + [("eventSourceARN", b'"%s"' % arn.encode())])


class Stream:
    """Reads the table's one shard from its beginning; `poll` takes what is new."""

    def __init__(self, client):
        self.client = client
        arn = client.call("DescribeTable", {"TableName": TABLE})["Table"]["LatestStreamArn"]
        self.arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}/stream/{arn.rpartition('/')[2]}"
        shards = json.loads(client.stream("DescribeStream", {"StreamArn": arn}))["StreamDescription"]["Shards"]
        iterator = client.stream("GetShardIterator", {
            "StreamArn": arn, "ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"})
        self.iterator = json.loads(iterator)["ShardIterator"]
        self.records = []
        self.polled_s = 0

    def poll(self):
        """How many records came."""
        before = len(self.records)
        while True:
            answer = dict(members(self.client.stream("GetRecords", {"ShardIterator": self.iterator})))
            self.iterator = json.loads(answer["NextShardIterator"])
            self.polled_s = time.time()
            batch = elements(answer["Records"])
            self.records += [as_lambda_delivers(record, int(self.polled_s), self.arn) for record in batch]
            if not batch:
                return len(self.records) - before


# ---- the shop ----

class Shop:
    """Random traffic on the table, and an own account of what should be in it."""

    def __init__(self, client, seed):
        self.client = client
        self.random = random.Random(seed)
        self.live = {}     # (PK, SK) -> item, as last written and not yet known to be gone
        self.gone = []     # keys to be used again
        self.expired = []  # keys that vanished without a delete of ours
        self.count = 0

    # -- values --

    def value(self, depth=0):
        kinds = ["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"] + (["L", "M"] if depth < 4 else [])
        kind = self.random.choice(kinds)
        if kind in ("S", "N", "B"):
            content = self.scalar(kind)
            return {kind: plain(content) if kind == "N" and depth else content}
        if kind == "BOOL":
            return {"BOOL": self.random.random() < 0.5}
        if kind == "NULL":
            return {"NULL": True}
        if kind == "L":
            return {"L": [self.value(depth + 1) for _ in range(self.random.randrange(4))]}
        if kind == "M":
            return {"M": {self.name(): self.value(depth + 1) for _ in range(self.random.randrange(4))}}
        return {kind: self.set_of(kind[0])}

    def scalar(self, kind):
        if kind == "S":
            return self.random.choice(HOSTILE)
        if kind == "N":
            return self.random.choice(NUMBERS)
        return base64.b64encode(self.random.randbytes(self.random.choice([0, 1, 2, 3, 16, 57]))).decode()

    def set_of(self, kind):
        """A set has no equal members, and two spellings of one number are equal."""
        if kind == "N":
            return [str(n) for n in self.random.sample(range(-1000, 1000), self.random.randint(1, 4))] + ["0.5", "1" * 38]
        if kind == "S":
            return self.random.sample([text for text in HOSTILE if text], self.random.randint(1, 4))
        return list({base64.b64encode(self.random.randbytes(n)).decode() for n in range(1, self.random.randint(2, 5))})

    def name(self):
        return self.random.choice(NAMES) if self.random.random() < 0.3 else f"field{self.random.randrange(20)}"

    # -- items --

    def key(self):
        if self.gone and self.random.random() < 0.15:
            return self.gone.pop(self.random.randrange(len(self.gone)))
        self.count += 1
        customer = f"CUSTOMER#{self.random.randrange(120):04d}"
        order = f"ORDER#{self.count:06d}"
        if self.random.random() < 0.03:
            customer = self.random.choice([text for text in HOSTILE if text])
        if self.random.random() < 0.03:
            order += self.random.choice(HOSTILE)
        return customer, order

    def item(self, key, status):
        lines = [{"M": {"sku": {"S": f"SKU-{self.random.randrange(500)}"}, "quantity": {"N": str(self.random.randint(1, 9))},
                        "price": {"N": f"{self.random.randint(1, 9999)}.{self.random.randrange(100):02d}"}}}
                 for _ in range(self.random.randint(1, 3))]
        total = sum(int(line["M"]["quantity"]["N"]) * int(line["M"]["price"]["N"].replace(".", "")) for line in lines)
        item = {"PK": {"S": key[0]}, "SK": {"S": key[1]}, "status": {"S": status}, "total": {"N": f"{total // 100}.{total % 100:02d}"},
                "lines": {"L": lines}, "gift": {"BOOL": self.random.random() < 0.2}, "version": {"N": "1"}}
        if self.random.random() < 0.4:
            item["note"] = {"S": self.random.choice(HOSTILE)}
        if self.random.random() < 0.25:
            item.update({self.name(): self.value() for _ in range(self.random.randint(1, 5))})
        return item

    def nested(self, levels):
        """DynamoDB takes 32 levels."""
        value = {"S": "bottom"}
        for level in range(levels):
            value = {"M": {"d": value}} if level % 2 else {"L": [value]}
        return value

    def pick(self, wanted):
        """A live item that is wanted, or None; a few tries are enough."""
        keys = list(self.live)
        for _ in range(30 if keys else 0):
            key = self.random.choice(keys)
            if wanted(self.live[key]):
                return key
        return None

    # -- writes; each notices when the item it meant had expired --

    def vanished(self, key):
        self.expired.append(key)
        del self.live[key]
        self.gone.append(key)

    def put(self, key, item):
        old = self.client.call("PutItem", {"TableName": TABLE, "Item": item, "ReturnValues": "ALL_OLD"})
        if key in self.live and not old.get("Attributes"):
            self.expired.append(key)
        self.live[key] = item

    def delete(self, key):
        old = self.client.call("DeleteItem", {"TableName": TABLE, "Key": key_of(key), "ReturnValues": "ALL_OLD"})
        if not old.get("Attributes"):
            self.vanished(key)
            return
        del self.live[key]
        self.gone.append(key)

    def update(self, key, changes, removed=()):
        """SET and REMOVE by an update expression, and one more to `version`."""
        names = {f"#n{i}": name for i, name in enumerate([*changes, *removed])}
        sets = [f"#n{i} = :v{i}" for i in range(len(changes))] + ["version = version + :one"]
        expression = "SET " + ", ".join(sets)
        if removed:
            expression += " REMOVE " + ", ".join(f"#n{i + len(changes)}" for i in range(len(removed)))
        answer = self.client.call("UpdateItem", {
            "TableName": TABLE, "Key": key_of(key), "UpdateExpression": expression, "ConditionExpression": "attribute_exists(PK)",
            "ExpressionAttributeValues": {":one": {"N": "1"}, **{f":v{i}": value for i, value in enumerate(changes.values())}},
            **({"ExpressionAttributeNames": names} if names else {}), "ReturnValues": "ALL_NEW"}, ["ConditionalCheckFailedException"])
        if answer is None:
            self.vanished(key)
        else:
            self.live[key] = answer["Attributes"]

    # -- what happens in a shop --

    def create_order(self):
        key = self.key()
        self.put(key, self.item(key, "NEW"))

    def create_cart(self):
        key = self.key()
        item = self.item(key, "CART")
        item[TTL] = {"N": str(int(time.time()) + self.random.randint(1, 12))}
        self.put(key, item)

    def advance(self):
        key = self.pick(lambda item: item["status"]["S"] in STATUSES[:-1])
        if key:
            following = STATUSES[STATUSES.index(self.live[key]["status"]["S"]) + 1]
            self.update(key, {"status": {"S": following}, **({self.name(): self.value(1)} if self.random.random() < 0.1 else {})})

    def check_out(self):
        """A cart becomes an order: the TTL goes, if TTL was not quicker."""
        key = self.pick(lambda item: item["status"]["S"] == "CART")
        if key:
            self.update(key, {"status": {"S": "NEW"}}, [TTL])

    def prolong(self):
        key = self.pick(lambda item: item["status"]["S"] == "CART")
        if key:
            self.update(key, {TTL: {"N": str(int(time.time()) + self.random.randint(3, 15))}})

    def rewrite(self):
        key = self.pick(lambda item: TTL not in item)
        if key:
            self.put(key, self.item(key, self.random.choice(STATUSES)))

    def put_unchanged(self):
        key = self.pick(lambda item: TTL not in item)
        if key:
            self.put(key, self.live[key])

    def remove(self):
        key = self.pick(lambda item: item["status"]["S"] != "CART")
        if key:
            self.delete(key)

    def remove_due(self):
        """A user's delete of an item that is due but not swept yet: no userIdentity, though its time had passed."""
        key = self.pick(lambda item: "N" in item.get(TTL, {}) and int(item[TTL]["N"]) < time.time())
        if key:
            self.delete(key)

    def batch(self):
        requests = []
        for _ in range(self.random.randint(2, 12)):
            key = self.key()
            if key not in self.live:
                self.live[key] = self.item(key, "NEW")
                requests.append({"PutRequest": {"Item": self.live[key]}})
        if requests and self.client.call("BatchWriteItem", {"RequestItems": {TABLE: requests}})["UnprocessedItems"]:
            sys.exit("capture: BatchWriteItem left items over")

    def transact(self):
        """An order is split in two, all or nothing."""
        key = self.pick(lambda item: TTL not in item)
        new = self.key()
        if key and new not in self.live:
            item = self.item(new, "NEW")
            self.client.call("TransactWriteItems", {"TransactItems": [
                {"Update": {"TableName": TABLE, "Key": key_of(key), "UpdateExpression": "SET split_to = :new",
                            "ExpressionAttributeValues": {":new": {"S": new[1]}}}},
                {"Put": {"TableName": TABLE, "Item": item}}]})
            self.live[key] = dict(self.live[key], split_to={"S": new[1]})
            self.live[new] = item

    def specials(self):
        """Items that each happen once: the largest, the deepest, all numbers, all strings, all ten types, TTL values that don't count."""
        day = int(time.time()) // 86400 * 86400
        special = {
            "large": {"blob": {"S": "0123456789abcdef" * 22000}},
            "binary": {"blob": {"B": base64.b64encode(self.random.randbytes(3000)).decode()}},
            "deep": {"m": self.nested(31)},
            "numbers": {f"n{i}": {"N": number} for i, number in enumerate(NUMBERS)},
            "strings": {f"s{i}": {"S": text} for i, text in enumerate(HOSTILE)},
            "names": {name: {"S": name} for name in NAMES},
            "wide": {f"attribute{i:04d}": {"NULL": True} for i in range(500)},
            "types": {"S": {"S": "text"}, "N": {"N": "-12.50"}, "B": {"B": "AAECAwQ="}, "BOOL": {"BOOL": False}, "NULL": {"NULL": True},
                      "SS": {"SS": ["b", "a", "é"]}, "NS": {"NS": ["3", "-1.50", "2E2"]}, "BS": {"BS": ["AA==", "/w=="]},
                      "L": {"L": [{"L": []}, {"M": {}}, {"S": ""}, {"B": ""}]}, "M": {"M": {"x": {"L": [{"N": "1"}, {"BOOL": True}]}}}},
            "ttl-text": {TTL: {"S": str(day)}},
            "ttl-list": {TTL: {"L": [{"N": str(day)}]}},
            "ttl-ancient": {TTL: {"N": str(day - 6 * 366 * 86400)}},
            "ttl-later": {TTL: {"N": str(day + 3 * 365 * 86400)}},
        }
        for name, attributes in special.items():
            key = ("SPECIAL", name)
            self.put(key, {"PK": {"S": key[0]}, "SK": {"S": key[1]}, "status": {"S": "NEW"}, "total": {"N": "0"}, "version": {"N": "1"}, **attributes})
        for name in special:
            self.update(("SPECIAL", name), {"status": {"S": "PAID"}})
        for name in ("strings", "numbers"):
            self.delete(("SPECIAL", name))

    def step(self):
        actions = {self.create_order: 13, self.create_cart: 24, self.advance: 36, self.check_out: 2, self.prolong: 2, self.rewrite: 7,
                   self.put_unchanged: 2, self.remove: 14, self.remove_due: 2, self.batch: 1, self.transact: 2}
        self.random.choices(list(actions), list(actions.values()))[0]()


def plain(number):
    """The spelling that AWS returns: no exponent, no zeros at the ends."""
    value = decimal.Decimal(number)
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if value else "0"


def key_of(key):
    return {"PK": {"S": key[0]}, "SK": {"S": key[1]}}


# ---- the run ----

def make_table(client):
    client.call("CreateTable", {
        "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}})
    client.call("UpdateTimeToLive", {"TableName": TABLE, "TimeToLiveSpecification": {"AttributeName": TTL, "Enabled": True}})


def scan(client):
    """The items' bytes."""
    items, start = [], {}
    while True:
        status, answer = client.raw("DynamoDB_20120810.Scan", {"TableName": TABLE, "ConsistentRead": True, **start})
        if status != 200:
            sys.exit(f"capture: Scan failed: {answer.decode()}")
        parts = dict(members(answer))
        items += elements(parts["Items"])
        if "LastEvaluatedKey" not in parts:
            return items
        start = {"ExclusiveStartKey": json.loads(parts["LastEvaluatedKey"])}


def keys_in(items):
    parsed = [json.loads(item) for item in items]
    return {(item["PK"]["S"], item["SK"]["S"]) for item in parsed}


def drive(shop, stream, records, seconds):
    began = time.monotonic()
    shop.specials()
    while len(stream.records) < records:
        shop.step()
        if time.time() - stream.polled_s >= POLL_S:
            stream.poll()
            if sys.stderr.isatty():
                print(f"\r{len(stream.records)} records", end="", file=sys.stderr)
        ahead = len(stream.records) / records * seconds - (time.monotonic() - began)
        time.sleep(min(max(ahead, 0), POLL_S))
    print(f"{len(stream.records)} records; waiting for what is still to expire", file=sys.stderr)


def await_expiries(shop, client, stream):
    """Until every cart is swept, and what the stream said and the table holds belong to one moment."""
    until = time.monotonic() + SWEEP_S
    while True:
        stream.poll()
        items = scan(client)
        held = keys_in(items)
        due = [key for key, item in shop.live.items() if item["status"]["S"] == "CART"]
        if not held.intersection(due) and stream.poll() == 0:
            for key in due:
                shop.vanished(key)
            if held != set(shop.live):
                sys.exit(f"capture: the table differs from what was written: {sorted(held ^ set(shop.live))[:3]}")
            return items
        if time.monotonic() > until:
            sys.exit(f"capture: {len(due)} items did not expire within {SWEEP_S} s")
        time.sleep(POLL_S)


def save(path, lines):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.writelines(line + b"\n" for line in lines)
    print(f"{path.name}: {len(lines)} lines, {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description="records a DynamoDB stream")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=3600, help="when to stop; what expires after that comes on top")
    parser.add_argument("--seconds", type=float, default=480, help="how long that takes at least")
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([SERVICES / "start.sh", folder, "dynamodb"], check=False).returncode:
            return 1
        try:
            environment = dict(line.split("=", 1) for line in pathlib.Path(folder, "env").read_text(encoding="utf-8").splitlines())
            client = Client(environment)
            make_table(client)
            stream, shop = Stream(client), Shop(client, options.seed)
            drive(shop, stream, options.records, options.seconds)
            items = await_expiries(shop, client, stream)
        finally:
            subprocess.run([SERVICES / "stop.sh", folder], check=False)
    save(options.out / "orders.jsonl.gz", stream.records)
    save(options.out / "orders.scan.jsonl.gz", [b'{"Item":' + item + b"}" for item in items])
    save(options.out / "orders.expired.jsonl.gz", [json.dumps(key_of(key)).encode() for key in shop.expired])
    return 0


if __name__ == "__main__":
    sys.exit(main())
