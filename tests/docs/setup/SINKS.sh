# One webhook of Sluice's, as a receiver of this machine got it, in request.json; and python3 with the package standardwebhooks.
. "$TOP/tests/docs/setup/COOKBOOK.sh"
PATH=$(dirname "$(tests/support/python/install.sh)"):$PATH
export HOOK_SECRET="whsec_$(head -c 32 /dev/urandom | base64)"
HOOK_URL=$(start_receiver)
cat >sluice.json <<END
{"report_batch_item_failures": true, "on_failure": "jsonl:failed.jsonl",
 "routes": [{"name": "hook", "handler": "notify", "to": "$HOOK_URL#secret=HOOK_SECRET", "body": "json"}]}
END
zcat examples/shop/history.jsonl.gz | head -n 1 >one.jsonl
sluice replay --quiet one.jsonl >/dev/null
[ -s request.json ]
