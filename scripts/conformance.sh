#!/bin/bash
# scripts/conformance.sh CORPUS: runs every program of tests/conformance on data written by others. Each prints one line a
# folder, "name: passed/total", before it what did not pass, and fails short of all.
set -uo pipefail
cd "$(dirname "$0")/.."
corpus=${1:?the corpus folder}
[ -d "$corpus" ] || { echo "conformance: $corpus is no folder; name it: make conformance CORPUS=folder" >&2; exit 2; }
bad=0
for source in tests/conformance/*.c; do
    "${BUILD:-build}/${source%.c}" "$corpus" || bad=1
done
exit $bad
