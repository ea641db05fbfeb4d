"""Random archives of format record, and what their items' histories are."""
import base64
import decimal
import gzip
import hashlib
import json
import random

T0 = 1790000000
STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/{}/stream/2026-01-01T00:00:00.000"


def keys(rng, n):
    """Keys in the formats that tables have; of each also another spelling of the same item."""
    makes = [
        lambda i: ({"PK": {"S": f"ORDER#{i}"}},) * 2,
        lambda i: ({"PK": {"S": f"C#{i % 7}"}, "SK": {"S": f"ORDER#{i}"}}, {"SK": {"S": f"ORDER#{i}"}, "PK": {"S": f"C#{i % 7}"}}),
        lambda i: ({"PK": {"N": str(i)}}, {"PK": {"N": f"{i}.00"}}),
        lambda i: ({"PK": {"N": f"{i}00"}}, {"PK": {"N": f"{i}e2"}}),
        lambda i: ({"PK": {"N": f"-{i}.5"}, "SK": {"N": "1"}}, {"PK": {"N": f"-{i}.50"}, "SK": {"N": "1.0"}}),
        lambda i: ({"PK": {"B": base64.b64encode(f"b{i}".encode()).decode()}},) * 2,
        lambda i: ({"PK": {"S": f"ключ \"{i}\" \\ \n"}},) * 2,
        lambda i: ({"a.b[0]": {"S": f"x{i}"}},) * 2,
        lambda i: ({"PK": {"S": str(i)}, "SK": {"B": base64.b64encode(bytes([i % 256, 0])).decode()}},) * 2,
        lambda i: ({"PK": {"S": "same"}, "SK": {"N": f"{i}"}}, {"PK": {"S": "same"}, "SK": {"N": f"+{i}" if False else f"{i}.0"}}),
    ]
    return [makes[rng.randrange(len(makes)) if i >= len(makes) else i](i + 1) for i in range(n)]


def image(rng, key, old):
    """A new state: mostly the old one with something changed, added and taken away."""
    item = dict(old) if old else {**key, "list": {"L": [{"N": "1"}]}, "map": {"M": {"a": {"S": "x"}, "b.c": {"N": "2"}}}}
    for _ in range(rng.randrange(1, 4)):
        what = rng.randrange(6)
        if what == 0:
            item[f"attr{rng.randrange(4)}"] = {"S": f"v{rng.randrange(1000)}"}
        elif what == 1:
            item.pop(f"attr{rng.randrange(4)}", None)
        elif what == 2:
            item["n"] = {"N": str(decimal.Decimal(rng.randrange(-10**9, 10**9)) / 1000)}
        elif what == 3:
            item["list"] = {"L": [{"N": str(rng.randrange(5))} for _ in range(rng.randrange(4))]}
        elif what == 4:
            item["map"] = {"M": {**item["map"]["M"], f"k{rng.randrange(3)}": {"BOOL": rng.random() < .5}}}
        else:
            item["set"] = {"SS": rng.sample(["a", "b", "c", "d"], rng.randrange(1, 4))}
    return item


class World:
    """Changes of some items, in the order in which they happened. `changes`: (key number, record)."""

    def __init__(self, seed, items=40, changes=800, hours=30, table="orders", view="NEW_AND_OLD_IMAGES"):
        rng = self.rng = random.Random(seed)
        self.keys = keys(rng, items)
        self.states, self.changes, self.table = {}, [], table
        for n in range(changes):
            self.add(T0 + n * hours * 3600 // changes, 10**20 + n * 7, view)

    def add(self, when, number, view="NEW_AND_OLD_IMAGES"):
        rng = self.rng
        k = rng.randrange(len(self.keys)) if rng.random() < .8 else rng.randrange(3)
        key, old = self.keys[k][0], self.states.get(k)
        new = None if old and rng.random() < .15 else image(rng, key, old)
        name = "REMOVE" if not new else "MODIFY" if old else "INSERT"
        body = {"ApproximateCreationDateTime": when, "Keys": key, "SequenceNumber": str(number), "SizeBytes": 100, "StreamViewType": view}
        if new and view.startswith("NEW"):
            body["NewImage"] = new
        if old and view.endswith("OLD_IMAGES"):
            body["OldImage"] = old
        record = {"eventID": hashlib.md5(f"{self.table}{number}".encode()).hexdigest(), "eventName": name, "eventVersion": "1.1",
                  "eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "dynamodb": body, "eventSourceARN": STREAM.format(self.table)}
        if name == "REMOVE" and rng.random() < .5:
            record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        self.states[k] = new
        self.changes.append((k, record))

    def objects(self, most=12, doubles=.1):
        """The archive's objects, by their keys: slices of each hour's changes, some of them twice."""
        out, hours = {}, {}
        for _, record in self.changes:
            hours.setdefault(record["dynamodb"]["ApproximateCreationDateTime"] // 3600, []).append(record)
        for hour, records in hours.items():
            while records:
                n = self.rng.randrange(1, most)
                slice_, records = records[:n], records[n if self.rng.random() > doubles else n // 2:]
                put(out, self.table, slice_)
        return out


def put(objects, table, records):
    when = records[0]["dynamodb"]["ApproximateCreationDateTime"]
    digest = hashlib.sha256(json.dumps(records).encode()).hexdigest()[:32]
    key = f"{table}/hour={when // 3600}/{records[0]['dynamodb']['SequenceNumber']:0>40}-{len(records)}-{digest}.jsonl.gz"
    objects[key] = gzip.compress("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode(), 1)
    return key


# ---- what is expected, from the objects themselves ----

def normal(value):
    """A value such that equal ones are equal in Python."""
    (tag, v), = value.items()
    if tag == "N":
        return ("N", decimal.Decimal(v))
    if tag in ("SS", "BS"):
        return (tag, frozenset(v))
    if tag == "NS":
        return (tag, frozenset(map(decimal.Decimal, v)))
    if tag == "L":
        return (tag, tuple(map(normal, v)))
    if tag == "M":
        return (tag, tuple(sorted((k, normal(x)) for k, x in v.items())))
    return (tag, v)


def item(image_):
    return normal({"M": image_}) if image_ is not None else None


def name_in_path(name):
    return f"`{name}`" if not name or any(c in name for c in ".[`") else name


def differences(old, new, path=""):
    """{path: (before, after)} of two values, each None where it is not there."""
    if old is not None and new is not None and normal(old) == normal(new):
        return {}
    if old and new and "M" in old and "M" in new:
        out = {}
        for name in {**old["M"], **new["M"]}:
            at = (path + "." if path else "") + name_in_path(name)
            out.update(differences(old["M"].get(name), new["M"].get(name), at))
        return out
    if old and new and "L" in old and "L" in new:
        out, (x, y) = {}, (old["L"], new["L"])
        for i in range(max(len(x), len(y))):
            out.update(differences(x[i] if i < len(x) else None, y[i] if i < len(y) else None, f"{path}[{i}]"))
        return out
    return {path: (old and normal(old), new and normal(new))}


parsed = {}  # of each object's bytes, its records with their items: unpacking takes longer than all else


def read_with_items(objects):
    seen = {}
    for body in objects.values():
        if body not in parsed:
            lines = gzip.decompress(body).decode().split("\n")
            parsed[body] = [(item(r["dynamodb"]["Keys"]), r) for r in (json.loads(line) for line in lines if line)]
        for own, record in parsed[body]:
            seen[record["eventID"]] = (own, record)
    return seen.values()


def read(objects):
    """The records of all objects, each once."""
    return [record for _, record in read_with_items(objects)]


def of_item(objects, key):
    """The item's records, in their order."""
    wanted = item(key)
    return sorted((record for own, record in read_with_items(objects) if own == wanted), key=lambda r: int(r["dynamodb"]["SequenceNumber"]))


def history(objects, key):
    """[(sequence number, differences, gap)] of the item."""
    own = of_item(objects, key)
    out, left = [], None
    for i, record in enumerate(own):
        body = record["dynamodb"]
        old, new, name = body.get("OldImage"), body.get("NewImage"), record["eventName"]
        gap = i > 0 and (item(old) != item(left))
        before = {k: v for k, v in (old or {}).items() if k not in key}
        after = {k: v for k, v in (new or {}).items() if k not in key}
        out.append((body["SequenceNumber"], differences({"M": before}, {"M": after}), gap))
        left = new
    return out


def state(objects, key, when):
    """The item before the second `when`: its image or None; and whether the archive says it."""
    own = of_item(objects, key)
    before = [r for r in own if r["dynamodb"]["ApproximateCreationDateTime"] < when]
    after = [r for r in own if r["dynamodb"]["ApproximateCreationDateTime"] >= when]
    if before:
        left = before[-1]["dynamodb"].get("NewImage")
        sure = not after or item(after[0]["dynamodb"].get("OldImage")) == item(left)
        return left, True, sure
    return (after[0]["dynamodb"].get("OldImage"), True, True) if after else (None, False, False)
