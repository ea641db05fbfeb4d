#!/bin/bash
# The port suite against DynamoDB Local and moto. (check_opensearch.py runs it against OpenSearch.)
set -euo pipefail
dir=$(mktemp -d)
trap 'tests/services/stop.sh "$dir"; rm -rf "$dir"' EXIT
tests/services/start.sh "$dir" dynamodb moto
set -a
. "$dir/env"
set +a
log=$dir/ports.log
"$BUILD/tests/sinks/test_ports" >"$log" 2>&1 || { cat "$log"; exit 1; }
for side in sqlite file jsonl webhook "webhook array" dynamodb s3 sqs "sqs fifo" sns events kinesis firehose; do
    grep -q "OK \] $side: " "$log" || { echo "no case ran on the side $side"; exit 1; }
done
! grep -F "$AWS_SECRET_ACCESS_KEY" "$log" || { echo "a secret is in the output of the tests"; exit 1; }
sed -nE 's/^\[  PASSED  \] ([0-9]+) test.*/\1 passed/p' "$log"
