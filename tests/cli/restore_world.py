"""Random histories of one table as an archive holds them, and what the table was at any second of them."""
import gzip
import json
import random
import shutil
import time

T0 = 1795168800  # 2026-11-20T10:00:00Z


def text_of(second):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def value(rng):
    number = str(rng.randrange(1000))
    return rng.choice([{"N": number}, {"S": "x" * rng.randrange(200)}, {"SS": sorted({"a", "b", number})}, {"BOOL": rng.random() < .5},
                       {"L": [{"N": number}, {"M": {"deep": {"NULL": True}}}]}])


def spelt(rng, item):
    """The same item in another spelling: members, sets and numbers."""
    out = list(item.items())
    rng.shuffle(out)
    def one(v):
        (tag, inner), = v.items()
        if tag == "N" and "." not in inner and rng.random() < .5:
            return {"N": inner + ".0"}
        if tag == "SS":
            return {"SS": rng.sample(inner, len(inner))}
        return v
    return {k: v if k in ("PK", "SK") else one(v) for k, v in out}


def history(seed, changes=400, items=30, view="NEW_AND_OLD_IMAGES"):
    """[(second, key, item or None, record)], about four changes a second."""
    rng, table, out = random.Random(seed), {}, []
    for i in range(changes):
        n = rng.randrange(items)
        key = {"PK": {"S": f"user#{n}"}, "SK": {"N": str(n % 3)}}
        before = table.get(n)
        after = None if before and rng.random() < .3 else {**(before or key), rng.choice("abc"): value(rng)}
        second = T0 + i // 4
        change = {"ApproximateCreationDateTime": second, "Keys": key, "SequenceNumber": str(10**20 + i * 7), "SizeBytes": 1, "StreamViewType": view}
        if after and "NEW" in view:
            change["NewImage"] = spelt(rng, after)
        if before and "OLD" in view:
            change["OldImage"] = spelt(rng, before)
        record = {"eventID": f"{seed}-{i}", "eventName": "INSERT" if not before else "MODIFY" if after else "REMOVE", "eventVersion": "1.1",
                  "eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "dynamodb": change,
                  "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"}
        out.append((second, n, after, record))
        table[n] = after
    return out


def state_at(changes, second):
    table = {}
    for at, n, after, _ in changes:
        if at < second:
            table[n] = after
    return {n: item for n, item in table.items() if item}


def write_archive(root, changes, rng, doubles=True):
    """Objects of some records each; some records are archived twice, and some objects late."""
    shutil.rmtree(root, ignore_errors=True)
    records = [c[3] for c in changes]
    objects = []
    while records:
        n = rng.randrange(1, 30)
        objects.append(records[:n])
        if doubles and rng.random() < .3:
            objects.append(rng.sample(records[:n], len(records[:n]) // 2))
        records = records[n:]
    if doubles:
        rng.shuffle(objects)
    for i, one in enumerate(objects):
        path = root / f"dt=2026-11-20/{i:04d}.jsonl{'.gz' if i % 2 else ''}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in one).encode()
        path.write_bytes(gzip.compress(data) if i % 2 else data)
    return str(root)


def normal(item):
    def one(v):
        (tag, inner), = v.items()
        return (tag, str(float(inner)) if tag == "N" else json.dumps(sorted(inner)) if tag == "SS" else json.dumps(inner, sort_keys=True))
    return {k: one(v) for k, v in item.items()}


def wanted(state):
    return {item["PK"]["S"]: normal(item) for item in state.values()}
