#!/usr/bin/env python3
"""Random shapes of replicate (project, drop, rename, set) on random items, against a slow reading of docs/HANDLERS.md; every replica is
made by the real command from a file of items, inline guards and none."""
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
NAMES = ["a", "b", "c", "long.name", "ö", "x\"y", "tab\\t"]
PLAIN = [name for name in NAMES if name[0] in "abcö"]
OURS = ["sluice_order", "sluice_write"]


def value(draw, depth=3):
    kind = draw.choice("S S N BOOL NULL SS M M L".split())
    if kind == "M":
        return {"M": {name: value(draw, depth - 1) for name in draw.sample(NAMES, draw.randint(0, 4))} if depth else {}}
    if kind == "L":
        return {"L": [value(draw, depth - 1) for _ in range(draw.randint(0, 3))] if depth else []}
    return {kind: {"S": draw.choice(["", "x#7", "a b", "\u00e9\"\\\n", "12"]), "N": str(draw.randint(-9, 9)), "BOOL": True, "NULL": True, "SS": ["q", "r"]}[kind]}


def make_path(draw):
    """A path as it is written, and its steps; None is every element of a list."""
    steps = [draw.choice(NAMES)]
    while draw.random() < 0.6:
        steps += [None] * draw.choice([0, 0, 1, 2]) + [draw.choice(NAMES)]
    text = "".join("[*]" if s is None else "." + (f"`{s}`" if "." in s or draw.random() < 0.2 else s) for s in steps)[1:]
    return text, steps


TEMPLATES = ["{a}", "{b}", "{a|lower}-{b|default:none}", "{a|split:#:1|number}", "{b|json}", "{ö|number|default:3}", "{a|sha256}", "{c.a}", "{NewImage|json}", "x{PK}",
             "{c[0].b|default:`}`}", "{`long.name`}"]


def make_shape(draw):
    shape, steps = {}, []
    if draw.random() < 0.3:
        shape["project"] = draw.sample(NAMES, draw.randint(0, 4))
    if draw.random() < 0.8:
        paths = [make_path(draw) for _ in range(draw.randint(1, 5))]
        shape["drop"], steps = [text for text, _ in paths], [s for _, s in paths]
    gone = {s[0] for s in steps if len(s) == 1} | {text for text in shape.get("drop", []) if "`" not in text}
    if draw.random() < 0.5:
        old = draw.sample([name for name in NAMES if name not in gone] or ["zz"], 1)
        shape["rename"] = {old[0]: draw.choice(["new", *PLAIN])}
    if draw.random() < 0.7:
        taken = set(shape.get("rename", {}).values())
        shape["set"] = {name: draw.choice(TEMPLATES) for name in draw.sample([n for n in [*PLAIN, "made"] if n not in taken], 2)}
    return shape, steps


# ---- the model ----


def prune(v, steps):
    ((tag, inner),) = v.items()
    here = [s for s in steps if s]
    if tag == "M":
        out = {}
        for name, member in inner.items():
            below = [s[1:] for s in here if s[0] == name]
            if [] not in below:
                out[name] = prune(member, below)
        return {"M": out}
    if tag == "L":
        return {"L": [prune(element, [s[1:] for s in here if s[0] is None]) for element in inner]}
    return v


def canonical(v):
    return json.dumps(v, sort_keys=True, ensure_ascii=False)


def shaped(item, shape, steps, made):
    renames, out = shape.get("rename", {}), {"PK": item["PK"]}
    dropped = {s[0] for s in steps if len(s) == 1} | {text for text in shape.get("drop", []) if "`" not in text}
    places = set(renames.values()) | set(shape.get("set", {}))
    for name, v in item.items():
        left_out = name in dropped or ("project" in shape and name not in shape["project"]) or (name in places and name not in renames)
        if name != "PK" and not left_out:
            out[renames.get(name, name)] = prune(v, [s[1:] for s in steps if s[0] == name])
    return {**out, **made}


# ---- running ----


def replica(folder, shape, items, more):
    """The rows of a replica that the command makes of the items."""
    route = {"name": "r", "handler": "replicate", "to": "sqlite:db?table=t", **more, **shape}
    (folder / "sluice.json").write_text(json.dumps({"on_failure": "jsonl:failed.jsonl", "routes": [route]}))
    records = [{"eventName": "INSERT", "dynamodb": {"Keys": {"PK": item["PK"]}, "NewImage": item, "SequenceNumber": f"{i + 1}"}} for i, item in enumerate(items)]
    (folder / "in.json").write_text(json.dumps({"Records": records}))
    for name in ("db", "failed.jsonl"):
        (folder / name).unlink(missing_ok=True)
    run = subprocess.run([f"{BUILD}/sluice", "replay", "in.json"], cwd=folder, capture_output=True, text=True, timeout=600)
    if run.returncode or (folder / "failed.jsonl").read_text():
        sys.exit(f"FAIL {shape}: {run.stdout}{run.stderr}")
    with sqlite3.connect(folder / "db") as db:
        return [json.loads(row) for (row,) in db.execute("SELECT item FROM t")]


def made_of(folder, shape, items):
    """What `set` makes of each item, by a replica that does nothing else: the templates have a model of their own."""
    only = {**{k: v for k, v in shape.items() if k == "set"}, "project": []}
    rows = replica(folder, only, items, {"guard": "none"}) if "set" in shape else []
    return {row["PK"]["S"]: {name: v for name, v in row.items() if name != "PK"} for row in rows}


def main():
    seed, passed = int(os.environ.get("SEED", "7")), 0
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as where:
        folder = pathlib.Path(where)
        for _ in range(int(os.environ.get("CASES", "15"))):
            shape, steps = make_shape(draw)
            items = [{"PK": {"S": f"k{i}"}, **{name: value(draw) for name in draw.sample(NAMES, draw.randint(0, 6))}} for i in range(40)]
            made = made_of(folder, shape, items)
            for more in ({"guard": "none"}, {}):
                rows = {row["PK"]["S"]: {name: v for name, v in row.items() if name not in OURS} for row in replica(folder, shape, items, more)}
                for item in items:
                    wanted, got = shaped(item, shape, steps, made.get(item["PK"]["S"], {})), rows.get(item["PK"]["S"])
                    if canonical(wanted) != canonical(got):
                        sys.exit(f"FAIL seed {seed}: {json.dumps(shape)} of {json.dumps(item)}: expected {json.dumps(wanted)}, is {json.dumps(got)}")
                    passed += 1
    print(f"{passed} passed")


main()
