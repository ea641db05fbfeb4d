#!/usr/bin/env python3
"""The committed capture is right: its records, folded in order, make exactly what the table held at the end.

check_capture.py [FOLDER]: orders.jsonl.gz, orders.scan.jsonl.gz and orders.expired.jsonl.gz of examples/capture, or of a new run.
"""
import base64
import collections
import gzip
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "capture")
TYPES = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}
passed = 0


def check(fine, what):
    global passed
    if not fine:
        sys.exit(f"check_capture: {FOLDER}: {what}")
    passed += 1


def each(broken, what):
    """Passes when no line is broken; names the first that is."""
    first = next(iter(broken), None)
    check(first is None, f"{what}: line {(first or 0) + 1} of orders.jsonl.gz")


def lines(name):
    with gzip.open(FOLDER / name, "rb") as file:
        return file.read().splitlines()


def key_of(item):
    return item["PK"]["S"], item["SK"]["S"]


def comparable(value):
    """An attribute value with the members of a set in one order."""
    (kind, content), = value.items()
    if kind in ("SS", "NS", "BS"):
        return {kind: sorted(content)}
    if kind == "L":
        return {kind: [comparable(element) for element in content]}
    return {kind: image(content)} if kind == "M" else value


def image(attributes):
    return None if attributes is None else {name: comparable(value) for name, value in attributes.items()}


def digits_size(number):
    """Pairs of digits, aligned at the decimal point, without zero pairs at either end."""
    whole, _, fraction = number.removeprefix("-").partition(".")
    pairs = "0" * (len(whole) % 2) + whole + fraction + "0" * (len(fraction) % 2)
    while pairs.startswith("00"):
        pairs = pairs[2:]
    while pairs.endswith("00"):
        pairs = pairs[:-2]
    return len(pairs) // 2 + 1 + (number.startswith("-") and bool(pairs))


def value_size(value):
    (kind, content), = value.items()
    if kind == "L":
        return 3 + sum(1 + value_size(element) for element in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + value_size(element) for name, element in content.items())
    one = {"S": lambda text: len(text.encode()), "N": digits_size, "B": lambda text: len(base64.b64decode(text)),
           "BOOL": lambda _: 1, "NULL": lambda _: 1}
    return sum(map(one[kind[0]], content)) if kind in ("SS", "NS", "BS") else one[kind](content)


def item_size(attributes):
    return sum(len(name.encode()) + value_size(value) for name, value in (attributes or {}).items())


def types_in(value):
    (kind, content), = value.items()
    inner = content if kind == "L" else content.values() if kind == "M" else []
    return {kind}.union(*map(types_in, inner))


def is_expired(record):
    return record["eventName"] == "REMOVE" and record.get("userIdentity") == {"principalId": "dynamodb.amazonaws.com", "type": "Service"}


def main():
    raw = lines("orders.jsonl.gz")
    records = [json.loads(line) for line in raw]
    changes = [record["dynamodb"] for record in records]
    items = [json.loads(line)["Item"] for line in lines("orders.scan.jsonl.gz")]

    # Fold.
    table, broken = {}, []
    for index, (record, change) in enumerate(zip(records, changes)):
        key, before, after = key_of(change["Keys"]), image(change.get("OldImage")), image(change.get("NewImage"))
        expected = "REMOVE" if after is None else "INSERT" if before is None else "MODIFY"
        if before != table.get(key) or before == after or record["eventName"] != expected or any(
                key_of(side) != key for side in (before, after) if side):
            broken.append(index)
        table[key] = after
        if after is None:
            del table[key]
    each(broken, "the old image is not what the records before it left")
    check(len({key_of(item) for item in items}) == len(items), "the scan holds a key twice")
    check(table == {key_of(item): image(item) for item in items}, "folded records differ from the scan")

    # What expired, by the driver's own account.
    told = collections.Counter(key_of(json.loads(line)) for line in lines("orders.expired.jsonl.gz"))
    seen = collections.Counter(key_of(change["Keys"]) for record, change in zip(records, changes) if is_expired(record))
    check(told == seen, f"{seen.total()} TTL removals in the stream, {told.total()} noticed by the driver")
    each((i for i, record in enumerate(records) if "userIdentity" in record and not is_expired(record)), "an odd userIdentity")
    each((i for i, record in enumerate(records) if is_expired(record)
          and int(changes[i]["OldImage"]["expires_at"]["N"]) > changes[i]["ApproximateCreationDateTime"]), "expired before its time")

    # The shape that Lambda delivers.
    sequences = [change["SequenceNumber"] for change in changes]
    each((i for i, number in enumerate(sequences) if not re.fullmatch("[1-9][0-9]{20,39}", number)), "sequence number")
    each((i for i in range(1, len(records)) if int(sequences[i]) <= int(sequences[i - 1])), "sequence numbers must grow")
    check(len({record["eventID"] for record in records}) == len(records), "an eventID comes twice")
    each((i for i, record in enumerate(records) if not re.fullmatch("[0-9a-f]{32}", record["eventID"])), "eventID")
    each((i for i, line in enumerate(raw) if not re.search(rb'"ApproximateCreationDateTime":[0-9]{10}\.0,', line)), "time")
    each((i for i in range(1, len(records)) if changes[i]["ApproximateCreationDateTime"] < changes[i - 1]["ApproximateCreationDateTime"]),
         "times must not fall")
    common = [(record["eventSource"], record["eventVersion"], record["awsRegion"], change["StreamViewType"])
              for record, change in zip(records, changes)]
    each((i for i, members in enumerate(common) if members != ("aws:dynamodb", "1.1", "us-east-1", "NEW_AND_OLD_IMAGES")), "members")
    check(len({record["eventSourceARN"] for record in records}) == 1, "more than one eventSourceARN")
    sizes = [sum(item_size(change.get(side)) for side in ("Keys", "NewImage", "OldImage")) for change in changes]
    each((i for i, change in enumerate(changes) if change["SizeBytes"] != sizes[i]), "SizeBytes")

    # What it is for.
    kinds = set().union(*(types_in(value) for change in changes for value in change.get("NewImage", {}).values()))
    check(kinds == TYPES, f"attribute types missing: {TYPES - kinds}")
    due = [i for i, change in enumerate(changes) if records[i]["eventName"] == "REMOVE" and not is_expired(records[i])
           and int(change["OldImage"].get("expires_at", {}).get("N", 1 << 40)) <= change["ApproximateCreationDateTime"]]
    check(due, "no user's delete of an item that was due")
    names = collections.Counter(record["eventName"] for record in records)
    print(f"{len(records)} records ({', '.join(f'{count} {name}' for name, count in sorted(names.items()))}; {seen.total()} by TTL, "
          f"{len(due)} by users when due), {len(items)} items left")
    print(f"{passed} passed")


main()
