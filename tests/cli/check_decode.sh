#!/bin/bash
# `sluice decode`: its lines, its refusals, its exit status.
set -uo pipefail
sluice=$(realpath "${BUILD:-build}/sluice")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0

# expect NAME STATUS STDOUT STDERR COMMAND...
expect() {
    local name=$1 status=$2 out=$3 err=$4
    shift 4
    "$@" >out 2>err
    local got=$?
    if [ $got = "$status" ] && [ "$(cat out)" = "$out" ] && [ "$(cat err)" = "$err" ]; then
        passed=$((passed + 1))
    else
        echo "$name: status $got, not $status, or other output:"
        diff <(echo "$out") out
        diff <(echo "$err") err
        failed=$((failed + 1))
    fi
}

keys='"Keys":{"PK":{"S":"a b"}}'
a='{"eventName":"INSERT","dynamodb":{'$keys',"NewImage":{"PK":{"S":"a b"},"n":{"N":"1.50"}}}}'
b='{"eventName":"REMOVE","dynamodb":{"ApproximateCreationDateTime":1000,'$keys',"OldImage":{"ttl":{"N":"900"}}}}'
line_a() { echo "${a%\}},\"sluice\":{\"file\":\"$1\",\"index\":$2,\"ttl\":\"user\",\"bytes\":14}}"; }
line_b() { echo "${b%\}},\"sluice\":{\"file\":\"$1\",\"index\":$2,\"ttl\":\"$3\",\"bytes\":10}}"; }

echo "{\"Records\":[$a,$b]}" >event.json
gzip -k event.json
echo "[$a]" >pipes.json
printf '%s\n%s\n' "$a" "$b" >lines.jsonl
python3 -c 'import json,sys; print(json.dumps(json.load(open("event.json")), indent=4))' >pretty.json
head -c 120 event.json >cut.json
echo '{"foo":1}' >other.json
printf '%s\n{"eventName":"INSERT","dynamodb":{%s,"NewImage":{"n":{"N":"x"}}}}\n' "$a" "$keys" >bad.jsonl

expect event 0 "$(line_a event.json 0; line_b event.json 1 unknown)" "" "$sluice" decode event.json
expect gzip 0 "$(line_a event.json.gz 0; line_b event.json.gz 1 unknown)" "" "$sluice" decode event.json.gz
expect pretty 0 "$(line_a pretty.json 0; line_b pretty.json 1 unknown)" "" "$sluice" decode pretty.json
expect several 0 "$(line_a pipes.json 0; line_a lines.jsonl 0; line_b lines.jsonl 1 unknown)" "" \
    "$sluice" decode pipes.json lines.jsonl
expect ttl 0 "$(line_a event.json 0; line_b event.json 1 inferred)" "" "$sluice" decode --ttl-attribute ttl event.json
expect stdin 0 "$(line_a - 0; line_b - 1 unknown)" "" "$sluice" decode - <event.json
expect again 0 "$(line_a - 0; line_b - 1 unknown)" "" "$sluice" decode - < <("$sluice" decode event.json)
expect cut 2 "" "cut.json: invalid JSON at byte 120: the text ends too early" "$sluice" decode cut.json
expect other 2 "" 'other.json: not a stream event: it has no member "dynamodb"' "$sluice" decode other.json
printf '{"PK":{"S":"a"}}\n' >item.jsonl
printf '{"routes":[{"name":"a","handler":"archive","to":"file:x","on_failure":"report"}],"report_batch_item_failures":true}' >sluice.json
expect item 2 "" 'sluice replay: item.jsonl: not a stream event: it has no member "dynamodb"; an item is a line {"Item":{"PK":{"S":"a"}}}, with --keys PK' "$sluice" replay --quiet item.jsonl
why='bad.jsonl: line 2: record 1: dynamodb.NewImage.n.N: not a number'
expect bad 2 "$(line_a event.json 0; line_b event.json 1 unknown; line_a bad.jsonl 0)" "$why" "$sluice" decode event.json bad.jsonl
expect keep-going 2 "$(line_a bad.jsonl 0; line_a pipes.json 0)" "$why (byte 191)
sluice decode: 1 bad record was left out" "$sluice" decode --keep-going bad.jsonl pipes.json
expect mistyped 2 "" "missing.json: cannot be opened: No such file or directory" "$sluice" decode event.json missing.json
expect missing 2 "" "missing.json: cannot be opened: No such file or directory" "$sluice" decode missing.json
expect none 2 "" "sluice decode: INPUT is missing (see sluice decode --help)" "$sluice" decode
expect full 1 "" "sluice decode: standard output cannot be written: No space left on device" \
    sh -c "'$sluice' decode event.json >/dev/full"
expect full-keep-going 1 "" "sluice decode: standard output cannot be written: No space left on device" \
    sh -c "'$sluice' decode --keep-going event.json >/dev/full"
expect limit 1 "" "sluice decode: standard output cannot be written: File too large" \
    bash -c "(ulimit -f 0; '$sluice' decode event.json 2>&1 >limited) | cat >&2; exit \${PIPESTATUS[0]}"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
