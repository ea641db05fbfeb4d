#!/bin/bash
# Runs every benchmark: the programs named, then bench/*.sh. Each prints one JSON line for each figure. The machine may be noisy:
# compare figures of one run only. With BENCH_SHORT=1 each runs in its smallest size, to show that it runs and that its lines can be
# read; bench/*.sh, which need the packages and services, do not run then.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
if [ -n "${BENCH_SHORT:-}" ]; then
    lines=$(mktemp)
    trap 'rm -f "$lines"' EXIT
    for bench in "$@"; do
        "$bench" >"$lines" || { echo "bench: $bench failed" >&2; bad=1; }
        cat "$lines"
        python3 -c '
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    assert set(row) == {"figure", "value", "unit"} and row["figure"] and row["value"] == row["value"], line
' "$lines" || { echo "bench: $bench prints lines that are no figures" >&2; bad=1; }
    done
    exit $bad
fi
for bench in "$@" bench/*.sh; do
    "$bench" || { echo "bench: $bench failed" >&2; bad=1; }
done
exit $bad
