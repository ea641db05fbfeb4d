#!/usr/bin/env python3
"""Work items: which events a function takes, what it refuses and says, and the sum of a Distributed Map's results."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_bootstrap import Bootstrap, check, event, notify  # noqa: E402
import check_bootstrap  # noqa: E402

EXPORT = "s3://exports/of/AWSDynamoDB/0170-0a1b"
place = check_bootstrap.work_folder()
ON = {"SLUICE_WORK_ITEMS": "1", "SLUICE_WORK_SOURCE": EXPORT, "SLUICE_WORK_PLACE": f"file:{place}"}


def ask(function, payload):
    """The answer, or (error's type without "Function.", its text)."""
    function.send(payload)
    path, body, kind = function.posted()
    return body if path.endswith("/response") else (kind.removeprefix("Function."), body["errorMessage"])


def which_events_are_taken():
    off = Bootstrap(notify())
    for item in ({"sluice": {"plan": {}}}, {"sluice": 1}, b' { "sluice" : {}}', {"sluice": {}, "Records": []}):
        kind, text = ask(off, item)
        check(f"{item}: refused without SLUICE_WORK_ITEMS", kind == "WorkItemRefused" and "SLUICE_WORK_ITEMS" in text, (kind, text))
    check("and stream events are taken", ask(off, event(1)) == {"batchItemFailures": []})
    off.end()
    on = Bootstrap(notify(), **ON)
    for payload in (event(1), {"Records": []}, {}, {"Records": [], "sluice": {}}, b"", b"null", b"[", {"sluic": 1}, b'"sluice"'):
        kind, text = ask(on, payload)
        check(f"{payload}: refused with it", kind == "NotAWorkItem" and "SLUICE_WORK_ITEMS" in text, (kind, text))
    said = check_bootstrap.folder / "said.jsonl"
    check("and nothing of them was done", not said.exists() or said.read_text().count("\n") == 1)
    on.end()


def wrong_items():
    on = Bootstrap(notify(), **ON)
    for payload, kind, word in (
            (b'{"sluice":{"sum":{}', "BadWorkItem", "byte 19"), ({"sluice": {}}, "BadWorkItem", "one member"),
            ({"sluice": []}, "BadWorkItem", "one member"), ({"sluice": {"sum": {}, "plan": {}}}, "BadWorkItem", "one member"),
            ({"sluice": {"sum": {}}, "more": 1}, "BadWorkItem", "one member"), ({"sluice": {"dance": {}}}, "BadWorkItem", '"dance"'),
            ({"sluice": {"sum": 7}}, "BadWorkItem", "not an object"), ({"sluice": {"sum": {}}}, "BadWorkItem", '"results"'),
            ({"sluice": {"sum": {"results": "a", "pieces": 1, "peices": 1}}}, "BadWorkItem", '"peices"'),
            ({"sluice": {"sum": {"results": "", "pieces": 1}}}, "BadWorkItem", "sluice.sum.results"),
            ({"sluice": {"sum": {"results": "a", "pieces": -1}}}, "BadWorkItem", "sluice.sum.pieces"),
            ({"sluice": {"sum": {"results": "a", "pieces": 1.5}}}, "BadWorkItem", "sluice.sum.pieces"),
            ({"sluice": {"sum": {"results": "a", "pieces": 1e300}}}, "BadWorkItem", "sluice.sum.pieces"),
            ({"sluice": {"sum": {"results": "a", "pieces": "1"}}}, "BadWorkItem", "sluice.sum.pieces"),
            ({"sluice": {"sum": {"results": "a", "pieces": 10 ** 9}}}, "BadWorkItem", "no plan has so many"),
            ({"sluice": {"sum": {"results": "../a", "pieces": 1}}}, "BadWorkItem", "SLUICE_WORK_PLACE"),
            ({"sluice": {"sum": {"results": "a//b", "pieces": 1}}}, "BadWorkItem", "SLUICE_WORK_PLACE")):
        said = ask(on, payload)
        check(f"{payload}", isinstance(said, tuple) and said[0] == kind and word in said[1], said)
    on.end()


def wrong_settings():
    for change, word in (({"SLUICE_WORK_ITEMS": "yes"}, "SLUICE_WORK_ITEMS"), ({"SLUICE_WORK_SOURCE": ""}, "SLUICE_WORK_SOURCE is not set"),
                         ({"SLUICE_WORK_SOURCE": "sqs://exports"}, "AWSDynamoDB/ID"), ({"SLUICE_WORK_PLACE": ""}, "SLUICE_WORK_PLACE is not set"),
                         ({"SLUICE_WORK_CONCURRENCY": "0"}, "SLUICE_WORK_CONCURRENCY"),
                         ({"SLUICE_WORK_CONCURRENCY": "10001"}, "0 to 10000"), ({"SLUICE_WORK_SEGMENTS": "many"}, "SLUICE_WORK_SEGMENTS"),
                         ({"SLUICE_WORK_WRITE_UNITS": "-1"}, "SLUICE_WORK_WRITE_UNITS"), ({"SLUICE_WORK_READ_UNITS": "nan"}, "SLUICE_WORK_READ_UNITS")):
        b = Bootstrap(notify(), **{**ON, **change})
        path, body, kind = b.posted()
        status, _, _ = b.wait()
        check(f"{change}: refused at start", path.endswith("/init/error") and kind == "Function.BadWorkSettings" and word in body["errorMessage"] and status == 1,
              (path, body))


if __name__ == "__main__":
    for case in (which_events_are_taken, wrong_items, wrong_settings):
        case()
    print(f"{check_bootstrap.passed} passed, 0 failed")
