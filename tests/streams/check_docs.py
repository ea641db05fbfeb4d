#!/usr/bin/env python3
"""The tables of docs/WHEN.md say what happens: so it has to happen."""
import json
import os
import re
import subprocess
import sys


def read(part):
    """The record that this part of the page shows, as one line, and the cells of its tables that begin with code or a use."""
    with open("docs/WHEN.md", encoding="utf-8") as f:
        text = f.read().split("\n## Templates\n")[part]
    record = re.search(r"```json record\n(.*?)```", text, re.S).group(1)
    rows = [re.split(r" \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
    return json.dumps(json.loads(record)), rows


def code(cell):
    """Without its backquotes; in double ones stand single ones. A bar in a table has a backslash before it."""
    mark = "``" if cell.startswith("``") else "`"
    return cell.removeprefix(mark).removesuffix(mark).replace("\\|", "|")


def ask(program, lines):
    binary = os.path.join(os.environ.get("BUILD", "build"), "tests/streams", program)
    done = subprocess.run([binary, "lines"], input="".join(line + "\n" for line in lines), text=True, capture_output=True)
    return done.stdout.splitlines()


def main():
    record, rows = read(0)
    first = next(i for i, r in enumerate(rows) if r[0] == "pattern")
    cases = [("@" * (i < first) + code(r[0]), {"yes": "1", "no": "0"}[r[1]]) for i, r in enumerate(rows) if len(r) == 3 and r[1] in ("yes", "no")]
    got = ask("test_vectors", [f"{pattern}\t{record}" for pattern, _ in cases])
    checked = [(p, want, g) for (p, want), g in zip(cases, got, strict=True)]
    record, rows = read(1)
    cases = [(r[0], code(r[1]), code(r[2])) for r in rows if r[0] in ("text", "json", "path")]
    got = ask("test_template", [f"{use}\t{template}\t{record}" for use, template, _ in cases])
    checked += [(f"{use}: {t}", want, g) for (use, t, want), g in zip(cases, got, strict=True)]
    bad = [c for c in checked if c[1] != c[2]]
    for what, want, g in bad:
        print(f"{what}: the page says {want}, it is {g}")
    if bad or len(checked) < 48:
        sys.exit(1)
    print(f"1 passed ({len(checked)} examples)")


main()
