#!/bin/bash
# libFuzzer on every entry of tests/fuzz, TIME seconds each, from the committed corpus. New inputs stay in
# build/fuzz/corpus. An input that fails is named; it belongs in tests/fuzz/corpus/NAME, together with the repair.
# ENTRIES="event value" takes those alone.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}/fuzz time=${TIME:-60}
export LC_ALL=C
flags=fuzzer-no-link,address,undefined
entries=${ENTRIES:-$(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_\(.*\)\.c|\1|')}
# (Everything is compiled, not the entries alone: so clang's warnings are seen, too.)
make --no-print-directory -j"$(nproc)" CC=clang BUILD="$build" SANITIZE=$flags CFLAGS="-O1 -g" all \
    $(printf "$build/libfuzzer/fuzz_%s\n" $entries)

bad=0
for name in $entries; do
    mkdir -p "$build/corpus/$name" "tests/fuzz/corpus/$name"
    log=$build/fuzz_$name.log
    if "$build/libfuzzer/fuzz_$name" -max_total_time="$time" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix="$build/crash_${name}_" "$build/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        echo "fuzz $name: $(sed -nE 's/^stat::number_of_executed_units: *//p' "$log") inputs in $time s, nothing found"
    else
        echo "fuzz $name: FAILED; see $log and $build/crash_${name}_*"
        bad=1
    fi
done
exit $bad
