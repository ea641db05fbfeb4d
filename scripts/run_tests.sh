#!/bin/bash
# Runs test programs and scripts one after another and counts: a cmocka program counts its tests, a script
# the "N passed" of its last line, anything else counts one. Prints what failed, and ends with the line "N passed, N failed".
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
for test in "$@"; do
    began=$(date +%s%N)
    if "$test" >"$log" 2>&1; then
        n=$(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p; s/^([0-9]+) passed.*/\1/p' "$log" | tail -n 1)
        passed=$((passed + ${n:-1}))
        printf 'ok    %6d ms  %s (%d)\n' $((($(date +%s%N) - began) / 1000000)) "$test" "${n:-1}"
    else
        n=$(sed -nE 's/^\[  FAILED  \] ([0-9]+) test.*/\1/p' "$log" | tail -n 1)
        failed=$((failed + ${n:-1}))
        printf 'FAIL  %s\n' "$test"
        tail -n 60 "$log" | sed 's/^/      /'
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
