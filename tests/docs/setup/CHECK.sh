# A configuration with one mistake that nobody sees until the totals are wrong.
cat >sluice.json <<'END'
{"report_batch_item_failures": true, "on_failure": "sqs://failed",
 "routes": [{"name": "days", "handler": "aggregate", "to": "dynamodb://totals",
             "counters": [{"key": {"PK": "DAY#{yyyy}-{mm}-{dd}"}, "add": {"orders": 1}}]}]}
END
