#!/usr/bin/env python3
"""Every verb and every flag: --help names it, a slip of the finger is answered with it, and a value that is none is refused by its name."""
import pathlib
import re
import subprocess

from harness import BUILD, check, finish


def sluice(*args):
    return subprocess.run([f"{BUILD}/sluice", *args], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)


def slips(name):
    """A letter lost, doubled, or two that changed places."""
    middle = len(name) // 2
    return name[:middle] + name[middle + 1:], name[:middle] + name[middle] + name[middle:], name[:middle - 1] + name[middle] + name[middle - 1] + name[middle + 1:]


NUMBERS = ("N", "S", "MS", "MB", "EPOCH_S")


def bounds(line):
    """What the help says that a number may be."""
    found = re.search(r"(-?\d+) to (\d+)", line)
    return (int(found[1]), int(found[2])) if found else None


def wrongs(value, line):
    """Values that no such flag takes, and a part of what is said."""
    if value:
        yield "", "needs a value"
    if value in NUMBERS:
        for wrong in ("abc", "1.5", "12x", "99999999999999999999"):
            yield wrong, "needs a whole number"
    if value in NUMBERS and bounds(line) and "only with" not in line:
        low, high = bounds(line)
        yield str(high + 1), str(high)
    if value == "REGION":
        for wrong in ("nowhere!", "EU", "us-west-2/"):
            yield wrong, "is not an AWS Region"
    if value == "URL":
        for wrong in ("nothing", "ftp://h", "http://u:p@h/", "https://h:0"):
            yield wrong, "is not a URL"


def fitting(value, line):
    """A value that the flag takes, as far as that is looked at before all flags are read; None: it takes none."""
    if value in NUMBERS:
        return str(bounds(line)[1] if bounds(line) else 1)
    return {"": None, "REGION": "us-west-2", "URL": "http://localhost:1"}.get(value, "x")


release = (pathlib.Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
run = sluice("--version")
check("--version tells version and commit", run.returncode == 0 and re.fullmatch(rf"sluice {re.escape(release)} \(([0-9a-f]{{12}}|unknown)\)\n", run.stdout), run.stdout)
verbs = re.findall(r"^  ([a-z-]+) +\S", sluice("--help").stdout, re.M)
check("verbs are listed", len(verbs) >= 10, verbs)
for verb in verbs:
    for slip in {*slips(verb)} - {*verbs}:
        run = sluice(slip)
        check(f"{slip} is no verb", run.returncode == 2 and f"did you mean {verb}?" in run.stderr, run.stderr)
    page = sluice(verb, "--help").stdout
    check(f"{verb}: its help fits 80 columns, and ends with an example",
          max(map(len, page.splitlines())) <= 80 and page.rpartition("\nexample:\n  ")[2].startswith(f"sluice {verb}"), page)
    page = re.sub(r"\n {10,}", " ", page)
    flags = re.findall(r"^  --([a-z0-9-]+)( [A-Z]\S*)?", page, re.M)
    lines = {name: line for name, line in re.findall(r"^  --([a-z0-9-]+)(.*)$", page, re.M)}
    names = {name for name, _ in flags}
    for name, value in flags:
        for slip in {*slips(name)} - names if len(name) > 3 else ():
            run = sluice(verb, f"--{slip}")
            meant = re.search(r"did you mean --([a-z0-9-]+)\?", run.stderr)
            check(f"{verb} --{slip} is no flag", run.returncode == 2 and meant and meant[1] in names, run.stderr)
        run = sluice(verb, f"--{name}") if value else sluice(verb, f"--{name}=1")
        check(f"{verb} --{name}", run.returncode == 2 and run.stderr.count("\n") == 1 and
              f"--{name} {'needs a value' if value else 'takes no value'}" in run.stderr, run.stderr)
        for wrong, text in wrongs(value.strip(), lines[name]):
            run = sluice(verb, f"--{name}={wrong}")
            check(f"{verb} --{name}={wrong}", run.returncode == 2 and run.stderr.count("\n") == 1 and f"--{name} " in run.stderr and
                  wrong in run.stderr and text in run.stderr, run.stderr)
        good = fitting(value.strip(), lines[name])
        run = sluice(verb, *[f"--{name}" if good is None else f"--{name}={good}"] * 2, "--no-such-flag")
        check(f"{verb} --{name} twice", run.returncode == 2 and run.stderr.count("\n") == 1 and "unknown flag --no-such-flag" in run.stderr, run.stderr)
for text, is_good in (("90s", True), ("5m", True), ("2h", True), ("1d", True), ("m", False), ("5x", False), ("5mm", False), ("9223372036854775807d", False)):
    run = sluice("verify", "--table", "t", "--max-lag", text)
    check(f"--max-lag {text}", run.returncode == 2 and ("needs a whole number" in run.stderr) != is_good, run.stderr)
run = sluice("replay", "--batch-size", "5m", "x")
check("what counts no seconds has no unit", "needs a whole number" in run.stderr, run.stderr)
run = sluice("replay", "--nothing-of-the-kind")
check("what is near to nothing is not guessed", "did you mean" not in run.stderr and "unknown flag --nothing-of-the-kind (see sluice replay --help)" in run.stderr, run.stderr)
finish()
