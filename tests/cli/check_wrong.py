#!/usr/bin/env python3
"""Configurations that cannot work are refused, or found, with their whole path; those of the examples and the docs are clean. And
the JSON Schema against the parser, both ways: what the parser takes the schema takes; what it refuses the schema refuses, but for
the reasons in BEYOND, which a schema cannot say."""
import concurrent.futures
import glob
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

import config_cases as cases
from harness import BUILD, WHOLE, work_folder

folder = work_folder()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
SCHEMA = json.loads(pathlib.Path("docs/sluice.schema.json").read_text(encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(SCHEMA)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
failed = passed = 0
used = set()

# What the parser says where a schema cannot say it, and why.
BEYOND = {
    r"is a number; write a whole number": "1.0 is an integer to a schema",
    r"is not a function|an argument|expected the name of the environment variable|is not a path|no number|not a place":
        "what a template's functions take",
    r": target .*: ": "the parts of a target: the sinks read them, each in its own way",
    r"is not a number": "the size of a number",
    r"different names|is the \w+ too|which replicate itself writes|makes this attribute|two attributes become|is in drop, too|cannot keep these rows itself"
    r"|is the replica itself|has other|has this name too|has no amount that is 1|not with|only with|only a replica with|is also the name of|have an attribute"
    r"|sorted by the table's sort key|has no transactions|may write \d+ rows|makes all that a row holds|say what a row holds|the view itself writes|the rows' own table|that nothing else has"
    r"|the key of a list that stands beside|is for views without|without lists the rows|has no tables beside it": "two values that do not go together",
    r"several places are joined|between two places stands": "what is between the places of a template",
    r"write \{name\} without its image|use attributes of the source's key|names the time or the event": "what a template names",
    r"is not a handler|no handler|cannot be loaded|not a built-in": "whether a plugin is there",
    r"view type|stream of": "what a view type carries",
}


def check(name, ok, detail=""):
    global failed, passed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL {name}: {detail}")


def verdict(numbered):
    """(exit status, what is printed, the complaint without the file's name)."""
    number, config = numbered
    name = f"{number}.json"
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config))
    done = subprocess.run([f"{BUILD}/sluice", "check", name], cwd=folder, env=ENV, capture_output=True, text=True, timeout=600)
    os.unlink(folder / name)
    return done.returncode, done.stdout, done.stderr.replace(f"sluice check: {name}: ", "", 1)


def verdicts(configs):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return list(pool.map(verdict, enumerate(configs)))


def names_path(text, path):
    return text.startswith(path) and text[len(path):len(path) + 1] in (":", ".", "[", " ")


def is_beyond(err):
    found = [pattern for pattern in BEYOND if re.search(pattern, err)]
    used.update(found)
    return bool(found)


def compare_schema(config, status, err):
    """Of a configuration without variables in it."""
    takes = VALIDATOR.is_valid(config)
    if status == 2:
        check(f"the schema takes {json.dumps(config)}", not takes or is_beyond(err), err)
    else:
        why = next(VALIDATOR.iter_errors(config), None)
        check(f"the schema refuses {json.dumps(config)}", takes, why and f"{why.json_path}: {why.message[:300]}")


def refused_or_found():
    """Each wrong value of each option."""
    known = {(path, json.dumps(c, sort_keys=True)): c for path, c in cases.generated()}
    for ((path, _), config), (status, out, err) in zip(known.items(), verdicts(known.values())):
        compare_schema(config, status, err)
        found = any(line.startswith((f"warning: {path}", f"note: {path}")) for line in out.splitlines())
        check(f"{path} in {json.dumps(config)}", found or (status == 2 and names_path(err, path) and err.count("\n") == 1), out[-300:] + err)
    check("there are many", len(known) > 400, len(known))


def meant():
    """Those that a look at the value's kind does not show."""
    for (path, config), (status, out, err) in zip(cases.REFUSED, verdicts([c for _, c in cases.REFUSED])):
        check(f"refused with {path}: {json.dumps(config)}", status == 2 and names_path(err, path) and err.count("\n") == 1, out[-300:] + err)
        compare_schema(config, status, err)
    for (code, path, config), (status, out, err) in zip(cases.FOUND, verdicts([c for *_, c in cases.FOUND])):
        lines = [line for line in out.splitlines() if line.endswith(f"[{code}]")]
        check(f"{code} at {path}: {json.dumps(config)}", status < 2 and any(names_path(line.split(": ", 1)[1], path) for line in lines) and
              status == any(line.startswith("warning: ") for line in out.splitlines()), out[-600:] + err)
        compare_schema(config, status, err)
    check("there are many", len(cases.REFUSED) + len(cases.FOUND) > 200)


def clean():
    """The examples, the docs, and other right ones: nothing is warned of."""
    files = [*glob.glob("examples/*/sluice.json"), *glob.glob("deploy/*.json")]
    texts = [pathlib.Path(name).read_text(encoding="utf-8") for name in files]
    for page in ("README.md", *sorted(glob.glob("docs/*.md"))):
        texts += re.findall(r"^```json config[^\n]*\n(.*?)^```", pathlib.Path(page).read_text(encoding="utf-8"), re.M | re.S)
    configs = [json.loads(text) for text in texts if '"routes"' in text and "@" not in text]
    configs = [c for c in configs if all(r["handler"] in cases.BASES for r in c["routes"])]
    check("there are such", len(configs) >= 5, len(configs))
    for config, (status, out, err) in zip(configs + cases.RIGHT_ONES, verdicts(configs + cases.RIGHT_ONES)):
        check(f"clean: {json.dumps(config)}", status == 0 and "warning: " not in out, out[-600:] + err)
        compare_schema(config, status, err)
    plugin = cases.config({"handler": "somebodys", "frobnicate": {"a": 1}, "options": {"b": [2]}})
    check("the schema leaves a plugin's options alone", VALIDATOR.is_valid(plugin))


def variables():
    """A variable may be in the place of every text: the schema takes it, and check finds a value that fits."""
    def places(x, path=()):
        if isinstance(x, str):
            yield path
        for name, value in (x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()):
            yield from places(value, (*path, name))

    def put(x, path, value):
        x = json.loads(json.dumps(x))
        at = x
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        return x

    made = [(put(c, path, "${SOME_NAME}"), path) for c in cases.RIGHT_ONES for path in places(c)
            if path[-1] != "handler" and "numeric" not in path]
    made += [(cases.config({**route, "to": to}), to) for route, targets in (
        (cases.NOTIFY, ("sns:${TOPIC_ARN}", "sqs:${QUEUE_ARN}", "sqs://${ACCOUNT}/${QUEUE}", "sqs://https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/q", "events:${BUS}",
                        "sns:arn:aws:sns:${REGION}:${ACCOUNT}:${TOPIC}", "kinesis:${STREAM}", "firehose:${STREAM}?region=${REGION}", "https://${HOST}:${PORT}/${PATH_OF_IT}",
                        "${QUEUE_URL}", "${HOOK_URL}#secret=HOOK_SECRET&in_flight=2", "https://h/#secret=KEY_A,KEY_B&header_env.X=KEY_C", "sqs://q?role=${ROLE}&in_flight=${MANY}")),
        (cases.ARCHIVE, ("s3://${B}/${PREFIX}", "s3://${BUCKET}?region=${REGION}&kms_key=${KEY}&sse=${SSE}", "file:${FOLDER}", "${ARCHIVE_URL}")),
        (cases.REPLICATE, ("dynamodb://${T}?region=${REGION}", "dynamodb://arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${TABLE}", "${TABLE_URL}",
                           "opensearch://${HOST}/${INDEX}", "opensearch://search-x.${REGION}.es.amazonaws.com/i?auth=${AUTH}", "opensearch://h/i?auth=basic"))) for to in targets]
    for (config, place), (status, out, err) in zip(made, verdicts([c for c, _ in made])):
        check(f"a variable at {place}: {json.dumps(config)}", status < 2, err)
        check(f"the schema takes a variable at {place}", VALIDATOR.is_valid(config), json.dumps(config))


def mixed(rng):
    """Right routes with options of other right ones, and now and then a wrong value."""
    wrong, right = {}, {}
    for path, config in cases.generated():
        option = path.split(".")[-1]
        route = config["routes"][0] if isinstance(config.get("routes"), list) and config["routes"] else None
        if isinstance(route, dict) and option in route and isinstance(route.get("handler"), str):
            wrong.setdefault((route["handler"], option), []).append(route[option])
    for config in cases.RIGHT_ONES:
        for route in config["routes"]:
            for option, value in route.items():
                right.setdefault((route["handler"], option), []).append(value)
    for _ in range(150 if WHOLE else 50):
        handler = rng.choice(list(cases.BASES))
        route = dict(cases.BASES[handler])
        for owner, option in rng.sample(sorted(right), len(right) // 2):
            if owner == handler and option not in ("name", "handler"):
                route[option] = rng.choice(right[owner, option])
        if rng.random() < 0.4:
            option = rng.choice(sorted(o for owner, o in wrong if owner == handler))
            route[option] = rng.choice(wrong[handler, option])
        yield cases.config(route)


def differential():
    configs = list(mixed(random.Random(20261122)))
    results = verdicts(configs)
    for config, (status, _, err) in zip(configs, results):
        compare_schema(config, status, err)
    check("some are right and some are wrong", 20 < sum(status == 2 for status, *_ in results) < len(results) - 20)


refused_or_found()
meant()
clean()
variables()
differential()
for reason in set(BEYOND) - used:
    check("each reason of BEYOND is one", False, reason)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed < 1500)
