#!/bin/bash
# What `make check` runs after the set-up: every test; then side by side (most scripts wait for servers) the scripts, those of
# the package one after the other because they share its folder, and what runs on the instrumented build of the other compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
logs=$BUILD/check
mkdir -p "$logs"
rm -rf "$logs"/*
step() { echo "== $* ($SECONDS s)"; }

step "unit tests"
make --no-print-directory -j"$jobs" unit 2>&1 | tee "$logs/unit.log"
if [ -d "$CORPUS" ] && [ -x scripts/conformance.sh ]; then
    step "conformance"
    make --no-print-directory conformance CORPUS="$CORPUS"
fi

# What several scripts install is built once, before they run side by side.
make --no-print-directory -s install DESTDIR="$logs/installed" >/dev/null

# The longest begin first.
long=(tests/cli/check_verify.py tests/cli/check_repair.py tests/handlers/builtin/check_real_run.sh tests/cli/check_tail.py)
instrumented=(tests/runtime/check_debug.py)
mapfile -t packages < <(find tests/package tests/steps -name 'check_*' -perm -u+x | sort; echo tests/check_targets.py)
mapfile -t others < <(find tests -name 'check_*' -perm -u+x | grep -vxF "$(printf '%s\n' "${long[@]}" "${instrumented[@]}" "${packages[@]}")" | sort)

# A handler that crashes on purpose must still die of its signal.
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
on_instrumented() {
    make --no-print-directory sanitized && scripts/run_tests.sh "${instrumented[@]}" && make --no-print-directory fuzz RUNS=3000
}
step "scripts; beside them the package, and the instrumented tests of clang"
JOBS=1 nice bash -c "$(declare -f on_instrumented); $(declare -p instrumented); on_instrumented" >"$logs/instrumented.log" 2>&1 &
beside=($!)
JOBS=1 scripts/run_tests.sh "${packages[@]}" >"$logs/package.log" 2>&1 &
beside+=($!)
trap 'kill "${beside[@]}" 2>/dev/null || true' EXIT
bad=0
JOBS=$jobs scripts/run_tests.sh "${long[@]}" "${others[@]}" 2>&1 | tee "$logs/scripts.log" || bad=1
for pid in "${beside[@]}"; do
    wait "$pid" || bad=1
done
trap - EXIT
for log in package instrumented; do
    step "$log"
    grep -vE '^  (CC|LINK|CXX|AR) ' "$logs/$log.log"
done

echo "check: $SECONDS s"
cat "$logs"/*.log | awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 } END { printf "%d passed, %d failed\n", passed, failed }'
exit $bad
