#!/usr/bin/env python3
"""Every verb and every flag: --help names it, a slip of the finger is answered with it, and a value that is none is refused by its name."""
import pathlib
import re
import subprocess

from harness import BUILD, check, finish


def sluice(*args):
    return subprocess.run([f"{BUILD}/sluice", *args], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)


def slips(name):
    """A letter lost, doubled, or two that changed places."""
    middle = len(name) // 2
    return name[:middle] + name[middle + 1:], name[:middle] + name[middle] + name[middle:], name[:middle - 1] + name[middle] + name[middle - 1] + name[middle + 1:]


release = (pathlib.Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
run = sluice("--version")
check("--version tells version and commit", run.returncode == 0 and re.fullmatch(rf"sluice {re.escape(release)} \(([0-9a-f]{{12}}|unknown)\)\n", run.stdout), run.stdout)
verbs = re.findall(r"^  ([a-z-]+) +\S", sluice("--help").stdout, re.M)
check("verbs are listed", len(verbs) >= 10, verbs)
for verb in verbs:
    for slip in {*slips(verb)} - {*verbs}:
        run = sluice(slip)
        check(f"{slip} is no verb", run.returncode == 2 and f"did you mean {verb}?" in run.stderr, run.stderr)
    flags = re.findall(r"^  --([a-z0-9-]+)( [A-Z]\S*)?", sluice(verb, "--help").stdout, re.M)
    names = {name for name, _ in flags}
    for name, value in flags:
        for slip in {*slips(name)} - names if len(name) > 3 else ():
            run = sluice(verb, f"--{slip}")
            meant = re.search(r"did you mean --([a-z0-9-]+)\?", run.stderr)
            check(f"{verb} --{slip} is no flag", run.returncode == 2 and meant and meant[1] in names, run.stderr)
        run = sluice(verb, f"--{name}") if value else sluice(verb, f"--{name}=1")
        check(f"{verb} --{name}", run.returncode == 2 and run.stderr.count("\n") == 1 and
              f"--{name} {'needs a value' if value else 'takes no value'}" in run.stderr, run.stderr)
        if value == " N":
            run = sluice(verb, f"--{name}", "abc")
            check(f"{verb} --{name} abc", run.returncode == 2 and run.stderr.count("\n") == 1 and f"--{name} needs a whole number" in run.stderr, run.stderr)
run = sluice("replay", "--nothing-of-the-kind")
check("what is near to nothing is not guessed", "did you mean" not in run.stderr and "unknown flag --nothing-of-the-kind (see sluice replay --help)" in run.stderr, run.stderr)
finish()
