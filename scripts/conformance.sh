#!/bin/bash
# scripts/conformance.sh CORPUS: runs every program of tests/conformance on data written by others. Each prints what
# did not pass and one line for each folder, "name: passed/total"; it fails unless all pass.
set -uo pipefail
cd "$(dirname "$0")/.."
corpus=${1:?the corpus folder}
[ -d "$corpus" ] || { echo "conformance: $corpus is not a folder; run make conformance CORPUS=folder" >&2; exit 2; }
bad=0
for source in tests/conformance/*.c; do
    "${BUILD:-build}/${source%.c}" "$corpus" || bad=1
done
exit $bad
