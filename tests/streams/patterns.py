"""Reads patterns.tsv and wildcards.tsv, and makes of each cell a pattern and an event."""
import json
import os

LIMIT = 10
PLACE = "the value"
POSITIONS = {
    "top": lambda x, v: ({"f": [x]}, v),
    "anything-but": lambda x, v: ({"f": [{"anything-but": x}]}, v),
    "$or": lambda x, v: ({"$or": [{"f": [x]}, {"eventName": ["nothing"]}]}, v),
    "array": lambda x, v: ({"f": {"g": [x]}}, [{"g": v}, {"h": 1}]),
}


def wildcards():
    """(row's number, pattern, whether AWS refuses it) of wildcards.tsv."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wildcards.tsv")
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.startswith("#"):
                complexity, pattern = line.rstrip("\n").split("\t")
                yield number, pattern, int(complexity) > LIMIT


def read():
    """(row's number in the file, position, pattern, event, outcome, evidence) of every cell."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patterns.tsv")
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f]
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        element, value, *outcomes, evidence = line.split("\t")
        for position, outcome in zip(POSITIONS, outcomes, strict=True):
            pattern, f = POSITIONS[position](json.loads(element), PLACE)
            event = {"eventName": "INSERT", "dynamodb": {"Keys": {"k": {"S": "x"}}}, "f": f}
            event = json.dumps(event).replace(json.dumps(PLACE), value)  # as it is spelt: 300 is not written 300.0
            yield number, position, json.dumps(pattern), event, outcome, evidence
