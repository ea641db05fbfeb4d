#!/bin/bash
# Runs test programs and scripts, JOBS at a time (as many as there are cores), and counts: a cmocka program counts its tests,
# a script the "N passed" of its last line, anything else counts one. Prints what failed, and ends with "N passed, N failed".
# AGAIN=1: what failed runs a second time, alone, after all others, and its second result counts; both are printed. (For
# machines that other work shares: many scripts wait for servers, and a wait may end too early there.)
set -uo pipefail

one() { # one DIR WORD TEST: prints the result as a whole; DIR/passed and DIR/failed get a line: the count, and the test
    local dir=$1 word=$2 test=$3 began log n
    log=$(mktemp -p "$dir")
    # (What scripts leave that kill processes goes with the folder. Programs have theirs in memory where they can.)
    [[ $test != *.@(py|sh) ]] || export TMPDIR=$dir/t
    began=$(date +%s%N)
    if "$test" >"$log" 2>&1 </dev/null; then
        n=$(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p; s/^([0-9]+) passed.*/\1/p' "$log" | tail -n 1)
        echo "${n:-1} $test" >>"$dir/passed"
        printf 'ok    %6d ms  %s (%d)\n' $((($(date +%s%N) - began) / 1000000)) "$test" "${n:-1}"
    else
        n=$(sed -nE 's/^\[  FAILED  \] ([0-9]+) test.*/\1/p' "$log" | tail -n 1)
        echo "${n:-1} $test" >>"$dir/failed"
        flock "$dir" sh -c 'printf "%s  %s\n" "$1" "$2"; tail -n 60 "$3" | sed "s/^/      /"' sh "$word" "$test" "$log"
    fi
    rm -f "$log"
}

if [ "${1:-}" = --one ]; then
    one "$2" "$3" "$4"
    exit 0
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/t"
sum() { awk '{ n += $1 } END { print n + 0 }' "$dir/$1"; }

touch "$dir/passed" "$dir/failed"
[ $# = 0 ] || printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$0" --one "$dir" "$([ "${AGAIN:-}" = 1 ] && echo AGAIN || echo FAIL)"
if [ "${AGAIN:-}" = 1 ] && [ -s "$dir/failed" ]; then
    mv "$dir/failed" "$dir/again" && touch "$dir/failed"
    while read -r _ test; do
        one "$dir" FAIL "$test"
    done <"$dir/again"
fi
echo "$(sum passed) passed, $(sum failed) failed"
[ ! -s "$dir/failed" ]
