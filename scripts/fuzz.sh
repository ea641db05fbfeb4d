#!/bin/bash
# libFuzzer on every entry of tests/fuzz, from the committed corpus: TIME seconds each (60), or RUNS inputs each, the same ones
# in every run. New inputs stay in build/fuzz/corpus (but not those of RUNS). An input that fails is named; it belongs in
# tests/fuzz/corpus/NAME, together with the repair. ENTRIES="event value" takes those alone.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build} work=${BUILD:-build}/fuzz
export LC_ALL=C
entries=${ENTRIES:-$(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_\(.*\)\.c|\1|')}
make --no-print-directory -j"$(nproc)" sanitized BUILD="$build" GOALS="$(echo $(printf "$build/clang/libfuzzer/fuzz_%s\n" $entries))"

bad=0
for name in $entries; do
    corpus=$work/corpus/$name log=$work/fuzz_$name.log
    long="-max_total_time=${TIME:-60}"
    if [ -n "${RUNS:-}" ]; then
        corpus=$work/runs/$name
        rm -rf "$corpus"
        long="-runs=$RUNS -seed=1"
    fi
    mkdir -p "$corpus" "tests/fuzz/corpus/$name"
    if "$build/clang/libfuzzer/fuzz_$name" $long -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix="$work/crash_${name}_" "$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        echo "fuzz $name: $(sed -nE 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
    else
        echo "fuzz $name: FAILED; see $log and $work/crash_${name}_*"
        bad=1
    fi
done
exit $bad
