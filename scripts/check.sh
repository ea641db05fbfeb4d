#!/bin/bash
# What `make check` runs after the set-up: every test, then the suite under ASan and UBSan, then the other compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
began=$SECONDS
step() { echo "== $* ($((SECONDS - began)) s)"; }

total=0
count() { # runs the command, shows it, adds up its last line
    local log=$BUILD/check.log
    "$@" 2>&1 | tee "$log"
    total=$((total + $(sed -nE 's/^([0-9]+) passed, 0 failed$/\1/p' "$log" | tail -n 1)))
}

mapfile -t scripts < <(find tests -name 'check_*.sh' -o -name 'check_*.py' | sort)
step "unit tests"
count make --no-print-directory -j"$jobs" unit
if [ -d "$CORPUS" ] && [ -x scripts/conformance.sh ]; then
    step "conformance"
    make --no-print-directory conformance CORPUS="$CORPUS"
fi
# The instrumented tests compute, the scripts mostly wait for servers: they run side by side.
# (With SANITIZE= a handler that crashes on purpose must still die of its signal.)
step "script tests, and the unit tests under ASan and UBSan"
asan=$BUILD/check-asan.log
nice make --no-print-directory unit SANITIZE=address,undefined BUILD="$BUILD/asan" CFLAGS="-O1 -g" >"$asan" 2>&1 &
instrumented=$!
trap 'kill $instrumented 2>/dev/null || true' EXIT
crash=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
[ ${#scripts[@]} = 0 ] || count env ASAN_OPTIONS="$crash" scripts/run_tests.sh "${scripts[@]}"
step "the instrumented tests' end"
wait $instrumented || { cat "$asan"; exit 1; }
trap - EXIT
count grep -v "^  CC  " "$asan"
step "clang"
make --no-print-directory -j"$jobs" all CC=clang BUILD="$BUILD/clang"
echo "check: $((SECONDS - began)) s"
echo "$total passed, 0 failed"
