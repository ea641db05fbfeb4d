"""What pages claim of the tree: each promise of docs/GUARANTEES.md has its limits, and tests that something runs; each figure of the
README is one of docs/contributing/PERFORMANCE.md, which has it from `make bench`; docs/contributing/TOUR.md has every room."""
import functools
import os
import re
import subprocess

import clone


def read(path):
    return (clone.TOP / path).read_text(encoding="utf-8")


def recipes():
    """target -> its line and its recipe."""
    return dict(re.findall(r"^([a-z-]+):(.*\n(?:\t.*\n)*)", read("Makefile"), re.M))


@functools.cache
def late():
    """What `make check-all` runs alone."""
    named = re.search(r"^late=\([^)]*\)", read("scripts/check.sh"), re.M)[0]
    return subprocess.run(["bash", "-c", named + "; printf '%s\\n' \"${late[@]}\""], check=True, capture_output=True, text=True).stdout.split()


def is_run(path, line):
    """`make check` finds tests by their names (scripts/check.sh, Makefile), but for those of `make check-all`, of which the line says so."""
    name = os.path.basename(path)
    if path in late():
        return "`make check-all`" in line
    return re.fullmatch(r"test_\w+\.c", name) or re.fullmatch(r"check_\w+\.(sh|py)", name) and os.access(clone.TOP / path, os.X_OK)


def promise(heading, text):
    if "**Limits.**" not in text:
        yield f"{heading}: no limits"
    lines = re.findall(r"^- (.*(?:\n  .*)*)", text, re.M)
    proofs = [line for line in lines if line.startswith("`tests/")]
    if not proofs:
        yield f"{heading}: no test"
    for line in proofs:
        for path in re.findall(r"`(tests/[\w./-]+)`", line):
            if not (clone.TOP / path).is_file():
                yield f"{heading}: no such file: {path}"
            elif not is_run(path, line):
                yield f"{heading}: `make check` does not run {path}"
        for target in re.findall(r"`make ([\w-]+)`", line):
            if target not in recipes():
                yield f"{heading}: make has no target {target}"


def guarantees():
    head, *sections = re.split(r"^## (.*)\n", read("docs/GUARANTEES.md"), flags=re.M)
    found = dict(zip(sections[::2], sections[1::2]))
    listed = re.findall(r"^\| \[(.*)\]\(#", head, re.M)
    wrong = [] if listed == list(found) else [f"the table lists {listed}, the sections are {list(found)}"]
    for heading, text in found.items():
        wrong += promise(heading, text)
    return [f"docs/GUARANTEES.md: {w}" for w in wrong], len(found)


def figures():
    """The README's line of figures: each number in it stands, with the same unit, on the page of performance."""
    line = re.search(r"<!-- figures -->\n(.*?)\n\n", read("README.md"), re.S)
    if not line:
        return ["README.md: there is no paragraph after <!-- figures -->"], 0
    page = read("docs/contributing/PERFORMANCE.md")
    numbers = re.findall(r"\*\*([^*]+)\*\*", line[1])
    wrong = [f"README.md: {n} is not in docs/contributing/PERFORMANCE.md" for n in numbers if n not in page]
    return wrong + ([] if numbers else ["README.md: no figure in bold"]), len(numbers)


def rooms():
    """docs/contributing/TOUR.md names each room of the table in scripts/lint.sh, and no other that could be one."""
    listed = set(re.findall(r"^    \[([a-z/]+)\]=", read("scripts/lint.sh"), re.M))
    table = read("docs/contributing/TOUR.md").split("## Every room")[1]
    named = set(re.findall(r"`([a-z0-9/]+)`", "\n".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| `"))))
    wrong = [f"docs/contributing/TOUR.md: the room {r} is missing" for r in sorted(listed - named)]
    return wrong + [f"docs/contributing/TOUR.md: there is no room {r}" for r in sorted(named) if not (clone.TOP / r).is_dir()], len(listed)


def check():
    """(what is wrong, how many promises, figures and rooms were looked at)"""
    results = [guarantees(), figures(), rooms()]
    return sum((wrong for wrong, _ in results), []), sum(n for _, n in results)
