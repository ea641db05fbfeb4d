#!/bin/bash
# Branch coverage. First the decoder's files by the tests of their rooms: the gate is 100 percent. Then every room by all unit tests,
# fuzz corpora and the simulation: GATE percent (60; much of replay and runtime runs in the script tests' processes alone). The tables
# go to the output, each branch that no test takes to BUILD/cover/not-taken.txt, annotated sources to BUILD/cover/html.html.
#   ONLY=decoder   the first part alone
#   SCRIPTS=1      the script tests count, too: their processes are the instrumented programs (a quarter of an hour more)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}/cover
decoder='base/(json|json_text|json_path|json_walk|json_write|base64|time|number)\.c|base/(hex|json|scan|utf8)\.h|streams/decode/batch\w*\.c|streams/decode/form\.h|streams/(record|record_scan|record_index|record_time|record_item|value|value_canonical|value_equal|value_size)\.c'
mapfile -t programs < <(find tests/base tests/streams -name "test_*.c" | sed "s/\.c$//"; printf "tests/fuzz/fuzz_%s\n" json event value number)

# (Threads count together: without atomic counters one can end below zero, which gcovr refuses.)
compile() { make -s -j"$(nproc)" BUILD="$build" WARN=-w CFLAGS="-O0 -g --coverage -fprofile-update=atomic" LDFLAGS=--coverage "$@" >/dev/null; }

forget() { # what earlier runs counted, and objects whose source is gone
    mkdir -p "$build"
    find "$build" -name '*.gcda' -delete
    find "$build" -name '*.gcno' -printf '%P\n' | while read -r note; do
        [ -f "${note%.gcno}.c" ] || rm "$build/${note%.gcno}".*
    done
}

run() { # every program given, several at a time
    printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I{} sh -c '{} >/dev/null 2>&1 || { echo "cover: {} fails" >&2; exit 1; }'
}

table() { # TITLE GATE gcovr's filters
    local title=$1 gate=$2
    shift 2
    # (An assertion's other side is a defect of ours, and ends the process; SL_ARG has a branch of its own, and jansson's loops one
    # for an element that is not there.)
    # (The counts of a process that ends beside running threads may not add up; gcovr leaves such a line out.)
    gcovr -j "$(nproc)" -r . --gcov-ignore-parse-errors --object-directory "$build" --exclude-branches-by-pattern '.*\b(assert|SL_ARG|json_array_foreach|json_object_foreach)\(' --json "$build/$title.json" "$@" \
        "$build" >/dev/null
    python3 scripts/cover_table.py "$title" "$gate" "$build/$title.json" "$build/not-taken.txt"
}

forget
compile "${programs[@]/#/$build/}"
run "${programs[@]/#/$build/}"
bad=0
table decoder 100 --filter "($decoder)\$" || bad=1
[ "${ONLY:-}" != decoder ] || exit $bad

mapfile -t tests < <(find tests -name 'test_*.c' -o -name 'fuzz_*.c' | sed "s|^|$build/|; s|\.c\$||" | sort)
compile all "${tests[@]}"
run "${tests[@]}" || bad=1
if [ "${SCRIPTS:-}" = 1 ]; then
    mapfile -t scripts < <(find tests -name 'check_*.sh' -o -name 'check_*.py' | sort)
    BUILD=$build scripts/run_tests.py "${scripts[@]}" | grep -A60 FAIL || true
fi
# (A test that includes a source compiles it in another way, and gcovr cannot add the two.)
mapfile -t apart < <(grep -rlE '^#include ".*\.c"' tests --include='*.c' | sed "s|^|$build/|; s|\.c\$||")
for test in "${apart[@]}"; do mv "$test.gcno" "$test.apart" && rm -f "$test.gcda"; done
table rooms "${GATE:-60}" --exclude '(tests|bench|examples)/' --html-details "$build/html.html" || bad=1
for test in "${apart[@]}"; do mv "$test.apart" "$test.gcno"; done
exit $bad
