#!/usr/bin/env python3
"""How the house stands: by room, lines of code, comments, and how much of it is one idea cut into files. `make house`.

Numbers that report and do not gate. "one user": of the functions that other files see, those that exactly one other file uses.
"one caller": of all functions, those with one caller and a body of five lines or fewer."""
import collections
import os
import pathlib
import re
import subprocess

ROOMS = ["base", "net", "streams", "aws", "sinks", "handlers", "data", "runtime", "esm", "live", "cli"]
BUILD = os.environ.get("BUILD", "build")
FUNCTION = re.compile(r"^(?!typedef|struct [a-z_]+ \{|enum)[a-z][A-Za-z_0-9 *]*?\**(\w+)\([^;{}]*?\)\n\{\n(.*?)^\}\n", re.S | re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def nm(path):
    """The functions that an object defines for others, and the names that it takes from others."""
    defined, taken = set(), set()
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind == "T":
            defined.add(name)
        elif kind == "U":
            taken.add(name)
    return defined, taken


def lines_of(text):
    """Lines of code, and lines that hold a comment."""
    bare = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    return sum(1 for l in bare.splitlines() if l.strip()), sum(m.group().count("\n") + 1 for m in COMMENT.finditer(text))


def main():
    files = {str(p): p.read_text(errors="replace") for room in ROOMS for p in sorted(pathlib.Path(room).rglob("*.[ch]"))}
    objects = {p: nm(f"{BUILD}/{p[:-2]}.o") for p in files if p.endswith(".c") and os.path.exists(f"{BUILD}/{p[:-2]}.o")}
    users = collections.Counter(name for _, taken in objects.values() for name in taken)
    words = collections.Counter(w for text in files.values() for w in re.findall(r"\w+", COMMENT.sub("", text)))
    declared = collections.Counter(w for p, text in files.items() if p.endswith(".h") for w in re.findall(r"\b(\w+)\(", text))
    tags = collections.defaultdict(set)
    table = []
    for room in ROOMS:
        mine = {p: t for p, t in files.items() if p.startswith(room + "/")}
        code = comments = functions = small = seen = single = 0
        for path, text in mine.items():
            c, k = lines_of(text)
            code, comments = code + c, comments + k
            for tag in re.findall(r"^struct (sl_\w+) \{", text, re.M):
                tags[tag].add(path)
            bodies = {m.group(1): m.group(2) for m in FUNCTION.finditer(text)}
            functions += len(bodies)
            for name, body in bodies.items():
                is_global = path in objects and name in objects[path][0]
                uses = words[name] - 1 - declared[name] if is_global else len(re.findall(rf"\b{name}\b", text)) - 1
                small += uses == 1 and body.count("\n") <= 5
            if path in objects:
                defined = objects[path][0] - {"main"}
                seen += len(defined)
                single += sum(users[n] == 1 for n in defined)
        table.append((room, len(mine), code, comments, functions, small, seen, single))
    print(f"{'room':9} {'files':>6} {'code':>7} {'comments':>9} {'functions':>10} {'one caller':>11} {'global':>7} {'one user':>9}")
    for row in [*table, ("all", *(sum(r[i] for r in table) for i in range(1, 8)))]:
        room, n, code, comments, functions, small, seen, single = row
        print(f"{room:9} {n:6} {code:7} {100 * comments / (code + comments):8.1f}% {functions:10} {100 * small / max(functions, 1):10.0f}% {seen:7} {100 * single / max(seen, 1):8.0f}%")
    tests = [nm(p)[1] for p in map(str, pathlib.Path(BUILD, "tests").rglob("*.o"))]
    taken = set().union(*(t for _, t in objects.values()), *tests)
    alone = sorted(n for d, _ in objects.values() for n in d - taken - {"main"})
    print(f"global functions that no other file uses: {len(alone)}" + "".join(f"\n  {n}" for n in alone))
    twice = {t: sorted(p) for t, p in tags.items() if len(p) > 1}
    print(f"tags with two meanings: {len(twice)}" + "".join(f"\n  {t}: {', '.join(p)}" for t, p in sorted(twice.items())))


main()
