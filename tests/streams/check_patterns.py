#!/usr/bin/env python3
"""Every operator at every place of a pattern: accepted or refused, and what it matches (patterns.tsv)."""
import os
import subprocess
import sys

import patterns

NAMES = {"1": "yes", "0": "no", "pattern": "refused"}
EVENT = '{"eventName":"INSERT","dynamodb":{"Keys":{"k":{"S":"x"}}}}'
cells = list(patterns.read())
wildcards = list(patterns.wildcards())
binary = os.path.join(os.environ.get("BUILD", "build"), "tests/streams/test_when")
lines = "".join(f"{pattern}\t{event}\n" for _, _, pattern, event, _, _ in cells)
lines += "".join(f"{pattern}\t{EVENT}\n" for _, pattern, _ in wildcards)
got = subprocess.run([binary, "lines"], input=lines, text=True, capture_output=True, check=True).stdout.split()
failed = 0
for (row, position, pattern, event, outcome, evidence), answer in zip(cells, got):
    if NAMES.get(answer) != outcome:
        failed += 1
        print(f"patterns.tsv:{row}: {position}: {pattern} on {event}: {NAMES.get(answer, answer)}, not {outcome} ({evidence})")
for (row, pattern, is_refused), answer in zip(wildcards, got[len(cells) :]):
    if (answer == "pattern") != is_refused:
        failed += 1
        print(f"wildcards.tsv:{row}: {pattern}: {answer}")
failed += len(cells) + len(wildcards) - len(got)
print(f"{len(got) - failed} passed, {failed} failed")
sys.exit(failed > 0 or len(cells) < 200)
