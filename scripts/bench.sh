#!/bin/bash
# Runs every benchmark: the programs named, then bench/*.sh. Each prints one JSON line for each figure. The machine may be noisy:
# compare figures of one run only.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
for bench in "$@" bench/*.sh; do
    "$bench" || { echo "bench: $bench failed" >&2; bad=1; }
done
exit $bad
