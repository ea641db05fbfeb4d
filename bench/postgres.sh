#!/bin/bash
# Our CPU and the time for a row of PostgreSQL, which syncs each commit, beside an item in DynamoDB Local: bench_search.c, with both
# services. Then the same guarded upsert by psycopg and by node-postgres where they are installed, and the floor: COPY of the rows
# into a staging table and one merge.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'tests/services/stop.sh "$dir"; rm -rf "$dir"' EXIT
scripts/setup.sh build check
POSTGRES_SETTINGS="-c fsync=on" tests/services/start.sh "$dir" dynamodb postgres
set -a
. "$dir/env"
set +a
python=$(cd tests/services && . ./paths.sh && echo "$moto_home/bin/python")
"$python" - <<'PY'
import boto3
boto3.client("dynamodb").create_table(TableName="bench", BillingMode="PAY_PER_REQUEST",
    AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}, {"AttributeName": "SK", "AttributeType": "S"}],
    KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}])
PY
export PGHOST=${POSTGRES_ENDPOINT%:*} PGPORT=${POSTGRES_ENDPOINT#*:} PGUSER=sluice PGDATABASE=postgres
for table in sluice psycopg node copied; do
    psql -qXc "CREATE TABLE $table (\"PK\" text COLLATE \"C\", \"SK\" text COLLATE \"C\", item jsonb NOT NULL, PRIMARY KEY (\"PK\", \"SK\"))"
done
EVENTS=$dir "${BUILD:-build}/bench/bench_search" "DynamoDB Local=dynamodb://bench" \
    "PostgreSQL=postgres://$POSTGRES_ENDPOINT/postgres?table=sluice&user=sluice&tls=off"
if python3 -c 'import psycopg' 2>/dev/null; then
    python3 bench/postgres_client.py "$dir"/event-*.json
fi
if node -e 'require("pg")' 2>/dev/null; then
    node bench/postgres_client.js "$dir"/event-*.json
fi
