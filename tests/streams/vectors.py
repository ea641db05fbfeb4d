#!/usr/bin/env python3
"""Writes vectors.tsv again: short cases of check_when.py and check_conditions.py with the answers of their models, for test_vectors.c.
`make bless` calls it. check_when.py and check_conditions.py look at many more cases."""
import json
import os
import random

import check_conditions
import check_when

LONGEST = 420


def few(rng, event):
    """Most of what a pattern seldom asks for is left out."""
    for name in ("eventVersion", "eventSource", "awsRegion", "eventSourceARN", "extra"):
        if name in event and rng.random() < (0.3 if name == "extra" else 0.8):
            del event[name]
    for name in ("ApproximateCreationDateTime", "SizeBytes", "StreamViewType"):
        if name in event["dynamodb"] and rng.random() < 0.7:
            del event["dynamodb"][name]
    return event


def from_when(rng):
    condition, text = check_when.case(rng)
    event = few(rng, json.loads(text, parse_int=check_when.Number, parse_float=check_when.Number))
    text = check_when.write(event, rng)
    answer = check_when.expected(condition, text)
    lacks = any(image not in event["dynamodb"] for image in check_conditions.CARRIES[event["eventName"]])
    return condition, text, "" if condition[0] == "!" and lacks else answer  # (the model does not tell "lacks" from no)


def from_conditions(rng):
    condition, event = check_conditions.case(rng)
    return condition, json.dumps(event, ensure_ascii=rng.random() < 0.5), check_conditions.expected(condition, event)


def chosen(rng, make, first, shares):
    """So many cases with each answer; conditions that begin with `first`."""
    left, cases = dict(shares), []
    while any(left.values()):
        condition, text, answer = make(rng)
        is_wild = condition.count("*") >= 5  # it may be too complex
        if left.get(answer) and len(condition) + len(text) <= LONGEST and not is_wild and (condition[0] if condition[0] in "!@" else "") == first:
            left[answer] -= 1
            cases.append((condition, text, answer))
    return cases


def main():
    rng = random.Random(23)
    cases = chosen(rng, from_when, "", {"1": 160, "0": 160, "pattern": 10})
    cases += chosen(rng, from_when, "!", {"1": 80, "0": 80})
    cases += chosen(rng, from_conditions, "@", {"1": 160, "0": 160})
    cases += chosen(rng, from_conditions, "!", {"1": 120, "0": 80, "lacks": 30, "pattern": 20})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors.tsv")
    with open(path, "w", encoding="utf-8") as f:
        f.write("# A condition (a pattern; with ! a `when`; with @ one on the new item), a record, and the model's answer. By vectors.py.\n")
        for case in cases:
            f.write("\t".join(case) + "\n")


if __name__ == "__main__":
    main()
