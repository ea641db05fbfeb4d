# What documents about live tables begin with: DynamoDB Local, a table `orders` with a stream and items in it, an empty table
# `replica`, and ./sluice.json with a route from one to the other. All documents share the service, each has tables of its own.
set -a
. "$DOCS_SERVICES/env"
AWS_ACCESS_KEY_ID=DOCS$$
set +a
world() { python3 "$TOP/tests/docs/setup/world.py" "$@"; }
world make
cat >sluice.json <<'END'
{
  "report_batch_item_failures": true, "on_failure": "report", "ttl_attribute": "expires_at",
  "routes": [
    {"name": "replica", "handler": "replicate", "to": "dynamodb://replica"},
    {"name": "notices", "handler": "notify", "to": "jsonl:notices.jsonl", "when": {"events": ["INSERT"]}, "message": "{PK}"}
  ]
}
END

# Runs a command that goes on for ever until a condition holds, and then ends it as Ctrl-C does. Its exit status is the command's.
until_is() { # CONDITION COMMAND...
    local condition=$1 pid
    shift
    "$@" &
    pid=$!
    for _ in $(seq 1800); do
        eval "$condition" && break
        sleep 0.05
    done
    kill -INT $pid
    wait $pid
}
