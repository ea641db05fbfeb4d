"""Checks the JSON of the documents: configurations and parts of them with `sluice check` and with the JSON Schema, records with
`sluice decode`, and all other JSON that shows nothing left out by parsing it."""
import json
import re
import subprocess
import tempfile

import jsonschema

import clone

SLUICE = str(clone.BUILD / "sluice")
SCHEMA = jsonschema.Draft202012Validator(json.loads((clone.TOP / "docs/sluice.schema.json").read_text(encoding="utf-8")))
# What stands for the environment of a Lambda function: by the whole name (docs/COOKBOOK.md), or by its end.
WHOLE = {"ARCHIVE": "s3://my-archive", "TABLE": "dynamodb://results", "LEDGER": "results-ledger", "MESSAGES": "sqs://orders",
         "FAILED": "sqs://failed", "HOOK_URL": "https://hooks.example.com/orders#secret=HOOK_SECRET"}
ENDS = {"_ARN": "arn:aws:sns:eu-central-1:123456789012:orders", "_ROLE": "arn:aws:iam::123456789012:role/writer", "_REGION": "us-west-2",
        "_QUEUE": "https://sqs.eu-central-1.amazonaws.com/123456789012/failed", "": "some-name"}


def around(kind, value):
    """A whole configuration that has the part."""
    if kind == "config":
        return value
    if kind == "counter":
        value = {"name": "r", "handler": "aggregate", "to": "dynamodb://totals", "counters": [value]}
    elif kind == "when":
        value = {"name": "r", "handler": "notify", "to": "sqs://some-queue", "when": value}
    return {"report_batch_item_failures": True, "on_failure": "sqs://failed", "routes": [value]}


def settings(text):
    for name in sorted(set(re.findall(r"\$\{([A-Z_0-9]+)\}", text)) - set(json.loads(text).get("variables", {}))):
        value = WHOLE.get(name) or next(v for end, v in ENDS.items() if name.endswith(end))
        yield from ("--set", f"{name}={value}")


def configuration(block):
    whole = around(block.kind, json.loads(block.text))
    text = json.dumps(whole)
    problem = next((f"the JSON Schema refuses it at {e.json_path}: {e.message}" for e in SCHEMA.iter_errors(whole)), None)
    if problem:
        return problem
    plugins = [r["handler"] for r in whole["routes"] if r["handler"] not in ("archive", "replicate", "aggregate", "notify")]
    if plugins:
        return None  # it is not built here
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([SLUICE, "check", *settings(text), file.name], text=True, capture_output=True, timeout=600,
                              env={**clone.clean(), "AWS_REGION": "eu-central-1", "HOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                   "PSEUDONYM_KEY": "not a secret", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})
    return None if done.returncode == 0 else f"sluice check ends with {done.returncode}:\n{done.stdout}{done.stderr}"


def record(block):
    done = subprocess.run([SLUICE, "decode", "-"], input=json.dumps(json.loads(block.text)), text=True, capture_output=True, timeout=600)
    return None if done.returncode == 0 and done.stdout else f"sluice decode ends with {done.returncode}: {done.stderr}"


def check(block):
    """None, or what is wrong with a JSON block."""
    try:
        if block.kind in ("config", "route", "counter", "when"):
            return configuration(block)
        if block.kind == "record":
            return record(block)
        if block.language == "json" and block.kind in ("shown", "file") and "…" not in block.text:
            json.loads(block.text)
    except json.JSONDecodeError as error:
        return f"no JSON: {error}"
    return None
