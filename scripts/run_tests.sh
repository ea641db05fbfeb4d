#!/bin/bash
# Runs test programs and scripts one after another and counts: a cmocka program counts its tests, a script
# the "N passed" of its last line, anything else counts one. Prints what failed, and ends with the line "N passed, N failed".
# AGAIN=1: what failed runs a second time, after all others, and its second result counts; both are printed. (For
# machines that other work shares: many scripts wait for servers, and a wait may end too early there.)
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
again=()

run() { # prints the result of one test; 1: it failed, $n tests of it
    local began
    began=$(date +%s%N)
    if "$1" >"$log" 2>&1; then
        n=$(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p; s/^([0-9]+) passed.*/\1/p' "$log" | tail -n 1)
        passed=$((passed + ${n:-1}))
        printf 'ok    %6d ms  %s (%d)\n' $((($(date +%s%N) - began) / 1000000)) "$1" "${n:-1}"
        return 0
    fi
    n=$(sed -nE 's/^\[  FAILED  \] ([0-9]+) test.*/\1/p' "$log" | tail -n 1)
    printf '%s  %s\n' "${2:-FAIL}" "$1"
    tail -n 60 "$log" | sed 's/^/      /'
    return 1
}

for test in "$@"; do
    if [ "${AGAIN:-}" = 1 ]; then
        run "$test" AGAIN || again+=("$test")
    else
        run "$test" || failed=$((failed + ${n:-1}))
    fi
done
for test in "${again[@]}"; do
    run "$test" || failed=$((failed + ${n:-1}))
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
