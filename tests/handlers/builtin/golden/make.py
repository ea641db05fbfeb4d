#!/usr/bin/env python3
"""Writes the inputs of the golden table: each handler x view type x event x verdict, a folder each, with three events a line each:
what made the item, the change, and a later change. `make bless` runs this, then writes what the handlers make of them beside it."""
import json
import pathlib

HERE = pathlib.Path(__file__).parent
HANDLERS = {
    "archive": {"to": "file:${DIR}/out", "format": "item", "key": "{table}", "compression": "none"},
    "replicate": {"to": "sqlite:${DIR}/db?table=rows"},
    "aggregate": {"to": "sqlite:${DIR}/db?table=rows", "counters": [{"key": {"PK": "{status}"}, "add": {"n": 1, "sum": "{total}"}}]},
    "view": {"to": "sqlite:${DIR}/db?table=rows", "key": {"PK": "{status}", "SK": "{PK}"}, "item": {"total": "{total}"}},
    "notify": {"to": "jsonl:${DIR}/out/queue.jsonl", "body": "json"},
}
VIEWS = ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]
CHANGES = [("INSERT", "user"), ("MODIFY", "user"), ("REMOVE", "user"), ("REMOVE", "expired"), ("REMOVE", "inferred")]
TIME = 1767265200


def item(status, total, due):
    return {"PK": {"S": "a"}, "status": {"S": status}, "total": {"N": total}, "due": {"N": str(due)}}


def record(view, event, sequence, verdict, new, old):
    change = {"ApproximateCreationDateTime": TIME + sequence, "Keys": {"PK": {"S": "a"}}}
    if new and "NEW" in view:
        change["NewImage"] = new
    if old and "OLD" in view:
        change["OldImage"] = old
    change |= {"SequenceNumber": str(1000 + sequence), "SizeBytes": 1, "StreamViewType": view}
    out = {"eventID": f"e{sequence}", "eventName": event, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
           "awsRegion": "eu-west-1", "dynamodb": change,
           "eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"}
    if verdict == "expired":
        out["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return {"Records": [out]}


def events(view, event, verdict):
    due = TIME - 60 if verdict in ("expired", "inferred") else TIME + 86400
    first, second, third = item("OPEN", "1.5", due), item("PAID", "2", due), item("SENT", "3", TIME + 86400)
    before = {"Records": []} if event == "INSERT" else record(view, "INSERT", 1, "user", first, None)
    after = {"INSERT": second, "MODIFY": second, "REMOVE": None}[event]
    change = record(view, event, 2, verdict, after, None if event == "INSERT" else first)
    later = record(view, "INSERT" if after is None else "MODIFY", 3, "user", third, after)
    return [before, change, later]


for handler, members in HANDLERS.items():
    config = {"on_failure": "jsonl:${DIR}/failed.jsonl", "report_batch_item_failures": True, "ttl_attribute": "due",
              "routes": [{"name": handler, "handler": handler, **members}]}
    folder = HERE / handler
    folder.mkdir(exist_ok=True)
    if handler != "archive":
        (folder / "sluice.json").write_text(json.dumps(config, indent=2) + "\n")
    for view in VIEWS:
        for event, verdict in CHANGES:
            case = folder / f"{view}-{event}-{verdict}"
            case.mkdir(exist_ok=True)
            if handler == "archive":  # what a route lets through decides what it needs
                config["routes"][0]["when"] = {"events": [event]}
                (case / "sluice.json").write_text(json.dumps(config, indent=2) + "\n")
            (case / "events.jsonl").write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in events(view, event, verdict)))
