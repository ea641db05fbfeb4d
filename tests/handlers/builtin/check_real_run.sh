#!/bin/bash
# The four handlers over DynamoDB Local, S3 and SQS: see real_run.py.
set -euo pipefail
dir=$(mktemp -d)
trap 'tests/services/stop.sh "$dir"; rm -rf "$dir"' EXIT
make --no-print-directory -s "$BUILD/tests/handlers/builtin/feed" >/dev/null
tests/services/start.sh "$dir" dynamodb moto
set -a
. "$dir/env"
set +a
mkdir "$dir/temp" && export TMPDIR=$dir/temp # what processes that are killed leave
python=$(cd tests/services && . ./paths.sh && echo "$moto_home/bin/python")
"$python" tests/handlers/builtin/real_run.py "$BUILD/tests/handlers/builtin/feed" "$dir"
