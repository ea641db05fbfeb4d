#!/bin/bash
# The sources again, against DynamoDB Local and moto's S3.
set -euo pipefail
dir=$(mktemp -d)
trap 'tests/services/stop.sh "$dir"; rm -rf "$dir"' EXIT
tests/services/start.sh "$dir" dynamodb moto
set -a
. "$dir/env"
set +a
passed=0
for test in test_export test_archive test_scan; do
    "$BUILD/tests/data/source/$test" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
    ! grep -F "$AWS_SECRET_ACCESS_KEY" "$dir/log" || { echo "a secret is in the output of the tests"; exit 1; }
    passed=$((passed + $(sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1/p' "$dir/log")))
done
echo "$passed passed, 0 failed"
