#!/bin/bash
# The decoder's other scanners: the portable one runs the unit tests and the fuzz corpora; NEON's runs the corpora under an
# emulator. (The unit tests themselves run this machine's.)
set -euo pipefail
build=${BUILD:-build}/scanners
flags="-std=c11 -D_GNU_SOURCE -I. -O1 -g -Wall -Wextra -Werror"
decoder="base/arena.c base/buffer.c base/clean.c base/error.c base/json.c base/json_text.c base/json_path.c base/json_walk.c base/json_write.c base/base64.c base/number.c base/time.c
    $(ls streams/decode/batch*.c streams/record*.c streams/value*.c)"
mkdir -p "$build"
passed=0

run() { # NAME COMMAND...: adds up what it says it passed
    local name=$1 log=$build/log
    shift
    "$@" >"$log" 2>&1 || { echo "$name fails:"; tail -n 20 "$log"; exit 1; }
    passed=$((passed + $(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p; s/^([0-9]+) passed.*/\1/p' "$log" | tail -n 1)))
}

objects() { # FOLDER COMPILER...: the decoder, compiled
    local folder=$1
    shift
    mkdir -p "$build/$folder"
    for source in $decoder tests/fuzz/driver.c; do
        "$@" $flags -c "$source" -o "$build/$folder/$(echo "$source" | tr / _).o"
    done
}

objects portable "${CC:-cc}" -DSL_PORTABLE
for test in test_batch test_record test_value; do
    "${CC:-cc}" $flags -DSL_PORTABLE tests/streams/$test.c tests/support/records.c tests/support/test.c \
        "$build"/portable/{base,streams}_*.o -lcmocka -o "$build/portable_$test"
    run "portable $test" "$build/portable_$test"
done
mkdir -p "$build/portable_fuzz" "$build/neon_fuzz"
for entry in fuzz_json fuzz_event fuzz_value; do
    "${CC:-cc}" $flags -DSL_PORTABLE tests/fuzz/$entry.c "$build"/portable/*.o -o "$build/portable_fuzz/$entry"
    run "portable $entry" "$build/portable_fuzz/$entry"
done

emulator=$(command -v qemu-aarch64-static qemu-aarch64 | head -n 1 || true)
if [ -n "$emulator" ] && command -v aarch64-linux-gnu-gcc >/dev/null; then
    objects neon aarch64-linux-gnu-gcc
    for entry in fuzz_json fuzz_event fuzz_value; do
        aarch64-linux-gnu-gcc $flags -static tests/fuzz/$entry.c "$build"/neon/*.o -o "$build/neon_fuzz/$entry"
        run "NEON $entry" "$emulator" -0 "$build/neon_fuzz/$entry" "$build/neon_fuzz/$entry"
    done
else
    echo "NEON's scanner was not run: no aarch64-linux-gnu-gcc, or no qemu-aarch64"
fi
echo "$passed passed, 0 failed"
