#!/usr/bin/env python3
"""The JSON Schema of `when` against the parser: what the parser takes, the schema takes; what the parser refuses, the schema
refuses, but for what a schema cannot say. The cases are those of the parser's own tests, and random conditions."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys

# jsonschema is in the pinned environment of SAM.
SAM = subprocess.run(["tests/package/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
if not sys.prefix.startswith(SAM):
    os.execv(f"{SAM}/bin/python", [f"{SAM}/bin/python", *sys.argv])

import jsonschema
from pattern_cases import NEVER, PATTERNS

sys.path.insert(0, "tests/streams")
import check_conditions

# What the parser says where a schema has nothing to say: numbers' sizes, sums of members, values of a kind at the wrong place.
BEYOND = ("given twice", "no event can meet", "a REMOVE has", "an INSERT no", "not a DynamoDB number", "at most 38 digits", "lower bound", "a network such as", "single address",
          "wildcards of one field", "ends too early", "strings or numbers, not both", "Here, ")
BEYOND_PATTERNS = ("numeric", "bare numbers", "string in the record", "without quotes", "a NULL is true", "is a number", "is a text", "a REMOVE has",
                   "an INSERT no", "eventName is", "a key attribute is", 'did you mean "NewImage"')

schema = json.loads(pathlib.Path("docs/sluice.schema.json").read_text(encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/when", "$defs": schema["$defs"]})
failed = passed = 0


def check(when, wanted):
    global failed, passed
    good = validator.is_valid(when) == wanted
    passed, failed = passed + good, failed + (not good)
    if not good:
        print(f"FAIL the schema {'refuses' if wanted else 'takes'} {json.dumps(when)}")


def cases(name, pattern):
    text = re.sub(r'"\n\s*"', "", pathlib.Path(name).read_text(encoding="utf-8"))
    for found in re.finditer(pattern, text):
        quoted = found.group(1).encode().decode("unicode_escape").replace("'", '"')
        try:
            yield json.loads(quoted), found.groups()[-1]
        except json.JSONDecodeError:
            continue


for condition, _ in cases("tests/streams/test_conditions.c", r'\b(?:yes|no)\((?:NULL|item|"[^"]*"), ?"((?:[^"\\]|\\.)*)"\);()'):
    check({"item": condition}, True)
for condition, why in cases("tests/streams/test_conditions.c", r'\brefused\("((?:[^"\\]|\\.)*)", "[^"]*",\s*"((?:[^"\\]|\\.)*)"'):
    if not any(b in why for b in BEYOND):
        check({"item": condition}, False)
for when, why in cases("tests/streams/test_when.c", r'\brefused\("([{\[](?:[^"\\]|\\.)*)", "[^"]*",\s*"((?:[^"\\]|\\.)*)"'):
    if not any(b in why for b in BEYOND):
        check(when, False)
for when, _ in cases("tests/streams/test_conditions.c", r'\n        \{"(\{(?:[^"\\]|\\.)*\})",()'):
    check(when, True)
for one, text, code in PATTERNS:
    if code != NEVER or not any(b in text for b in BEYOND_PATTERNS):
        check({"pattern": [one]}, code != NEVER)
rng = random.Random(20261122)
for _ in range(1500):
    text = check_conditions.write(check_conditions.condition(rng, check_conditions.image(rng)))
    check({"old_item": json.loads(text)}, True)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed < 1600)
