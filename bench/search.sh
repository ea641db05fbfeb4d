#!/bin/bash
# Our CPU and the time for a document in OpenSearch, beside an item in DynamoDB Local: bench_search.c, with both services.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'tests/services/stop.sh "$dir"; rm -rf "$dir"' EXIT
scripts/setup.sh build check
tests/services/start.sh "$dir" dynamodb opensearch
set -a
. "$dir/env"
set +a
python=$(cd tests/services && . ./paths.sh && echo "$moto_home/bin/python")
"$python" - <<'PY'
import json, os, urllib.request, boto3
boto3.client("dynamodb").create_table(TableName="bench", BillingMode="PAY_PER_REQUEST",
    AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}, {"AttributeName": "SK", "AttributeType": "S"}],
    KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}])
template = json.load(open("deploy/opensearch/template.json"))["template"]
template.pop("aliases")
template["settings"]["index.number_of_replicas"] = 0
for index in ("read", "script", "client"):
    urllib.request.urlopen(urllib.request.Request(f"{os.environ['OPENSEARCH_ENDPOINT']}/{index}", data=json.dumps(template).encode(), method="PUT",
                                                  headers={"content-type": "application/json"})).read()
PY
host=${OPENSEARCH_ENDPOINT#http://}
EVENTS=$dir "${BUILD:-build}/bench/bench_search" "DynamoDB Local=dynamodb://bench" "OpenSearch (read)=opensearch://$host/read?tls=off" \
    "OpenSearch (script)=opensearch://$host/script?tls=off&order=script"
if node -e 'require("@opensearch-project/opensearch")' 2>/dev/null; then
    node bench/search_client.js "$OPENSEARCH_ENDPOINT" client "$dir"/event-*.json
fi
