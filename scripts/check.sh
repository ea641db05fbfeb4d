#!/bin/bash
# What `make check` runs after the set-up: lint, every program and script but those of `late`; with ALL=1 those, all cases of those of
# `whole`, and what an instrumented build shows (`make check-all`).
set -euo pipefail
cd "$(dirname "$0")/.."
logs=$BUILD/check
mkdir -p "$logs"
step() { echo "== $* ($SECONDS s)"; }
quietly() { make --no-print-directory -s -j"$(nproc)" "$@" >"$logs/build.log" 2>&1 || { cat "$logs/build.log" >&2; exit 1; }; }

# Where python3 is a script that looks for the right one, as pyenv's is, it looks once, and not at each of a thousand calls.
python=$(python3 -c 'import sys; print(sys.executable)')
[ "$(command -v python3)" -ef "$python" ] || export PATH=${python%/*}:$PATH
for bin in /usr/lib/postgresql/*/bin; do # where a Perl script in /usr/bin would look for psql
    export PATH=$bin:$PATH
done

# The smallest form of each longer target; what is released, turns with the release before, the instrumented server in a debugger's
# place; and what needs a package: both architectures', and those with plugins, on Lambda's images, and of the CDK; what SAM and
# cfn-lint say of the template, of which check_iam.py shows that it does its work; OpenSearch itself, which is large: the programs
# that test its sink have a server of their own, with its rules; the scanners of other processors, each a build; and what waits
# longest for moto's buckets.
late=(tests/check_targets.py tests/package/check_{package,release,plugins,start,cdk,template}.py tests/compat/check_compat.py tests/runtime/check_debug.py
    tests/handlers/builtin/check_release.py tests/sinks/check_opensearch.py tests/streams/check_scanners.sh tests/cli/check_{erase,history}_live.py)
# Those that take some of their cases in `make check`, and all of them here (harness.WHOLE).
whole=(tests/runtime/check_misbehave.py tests/cli/check_{outage,replay,events,report,history,wrong}.py tests/sinks/check_postgres.py
    tests/handlers/builtin/check_{two_way.py,real_run.sh} tests/package/check_{lake,seed}.py tests/steps/check_{steps,totals,verifying}.py)
# The longest begin first: among them those of the package, which come one after the other.
long=(tests/package/check_* tests/cli/check_{verify,repair,tail}.py tests/handlers/builtin/check_real_run.sh tests/cli/check_{outage,replay,setaside}.py tests/data/source/check_services.sh tests/steps/check_*.py)
mapfile -t scripts < <({ printf '%s\n' "${long[@]}"; find tests -name 'check_*' -perm -u+x | sort; } | awk '!had[$0]++' | grep -vxF "$(printf '%s\n' "${late[@]}")")

# A handler that crashes on purpose must still die of its signal.
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
bad=0
if [ "${ALL:-}" = 1 ]; then
    step "the tests once more, by clang with ASan and UBSan"
    make --no-print-directory -s -j"$(nproc)" sanitized || bad=1
    step "fuzzing"
    make --no-print-directory -s fuzz RUNS=3000 || bad=1
    step "what is long"
    scripts/run_tests.py --in-turn 'tests/*' --seconds "$logs/late.seconds" "${late[@]}" || bad=1
    scripts/run_tests.py --in-turn 'tests/package/*' --seconds "$logs/whole.seconds" "${whole[@]}" || bad=1
    echo "check-all: $SECONDS s"
    exit $bad
fi

step "lint, and building what is tested"
make --no-print-directory -s lint >"$logs/lint.log" 2>&1 &
lint=$!
quietly all tests
# What several scripts install is built once.
rm -rf "$logs/installed"
quietly install DESTDIR="$logs/installed"
# (Objects that make takes for intermediate ones are removed, and made again at each call.)
make -q all tests || { echo "check: what was built is not up to date: make --debug=b -n all tests" >&2; bad=1; }
wait $lint || { cat "$logs/lint.log" >&2; exit 1; }

if [ -d "$CORPUS" ]; then
    step "conformance"
    make --no-print-directory conformance CORPUS="$CORPUS" || bad=1
fi

step "tests"
# One DynamoDB Local for all.
tests/services/start.sh --owner $$ "$logs/services" dynamodb
export SLUICE_SHARED_SERVICES=$PWD/$logs/services
# (Those of the package share its folder.)
scripts/run_tests.py --in-turn 'tests/package/*' --seconds "$logs/seconds" "${scripts[@]}" $(make --no-print-directory -s list-tests) || bad=1
echo "check: $SECONDS s"
exit $bad
