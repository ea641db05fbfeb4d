#!/bin/bash
# Every example, as somebody has it who installed Sluice and copied the folder: installs into a DESTDIR, builds the examples
# outside the tree against that alone, replays records through each, and uninstalls.
set -euo pipefail
top=$PWD
BUILD=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
fail() { echo "check_examples: $*" >&2; exit 1; }
ok() { passed=$((passed + 1)); }

# (make knows no paths with spaces, which the tree's may have.)
installing() { make -C "$top" --no-print-directory -s BUILD="$(realpath --relative-to="$top" "$BUILD")" ${SANITIZE:+SANITIZE="$SANITIZE"} DESTDIR="$work/root" "$@" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "make $* failed"; }; }
installing install
prefix=$work/root/usr/local
export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
PATH=$prefix/bin:$PATH
[ -s "$prefix/share/man/man1/sluice.1" ] && grep -q '\-\-bisect' <(sed 's/\\-/-/g' "$prefix/share/man/man1/sluice.1") || fail "sluice.1 does not name the flags"
ok

cp -r examples "$work/mine"
cd "$work/mine"
make -s
make -s -C rust
make -s -C jansson
mkdir "$work/handlers"
cp ./*.so rust/*.so jansson/*.so "$work/handlers/"
ok

# The header is the only word on the layout: what Rust's mirror says of each field is asked of the C compiler.
rustc --edition 2021 -o "$work/layout" rust/layout.rs
"$work/layout" >"$work/layout.rust"
{
    printf '#include <sluice/handler.h>\n#include <stdio.h>\nint main(void)\n{\n'
    sed -nE 's/^(sl_[a-z]+)\.([a-z0-9_]+) .*/printf("\1.\2 %zu\\n", offsetof(struct \1, \2));/p
             s/^(sl_[a-z]+) .*/printf("\1 %zu\\n", sizeof(struct \1));/p
             s/^(SL_[A-Z_]+) .*/printf("\1 %d\\n", \1);/p' "$work/layout.rust"
    printf '}\n'
} >"$work/layout.c"
cc -std=c11 $(pkg-config --cflags sluice) -o "$work/layout" "$work/layout.c"
"$work/layout" | diff "$work/layout.rust" - >&2 || fail "examples/rust/sluice.rs is out of step with handler.h"
[ "$(wc -l <"$work/layout.rust")" -gt 50 ] || fail "the layout check looked at too little"
ok

# Twelve changes of orders, of which one is wrong for each handler in its own way; the other eleven are applied.
cd "$work"
python3 - <<'PYTHON'
import json
lines = {"L": [{"M": {"price": {"N": "10.05"}, "quantity": {"N": "2"}}}, {"M": {"price": {"N": "0.90"}, "quantity": {"N": "1"}}}]}
def record(i, old, new):
    keys = {"PK": {"S": "CUSTOMER#1"}, "SK": {"S": f"ORDER#{i}"}}
    image = lambda status, **more: dict(keys, status=status, total={"N": "21.00"}, lines=lines, **more)
    change = {"ApproximateCreationDateTime": 1700000000, "Keys": keys, "SequenceNumber": str(100 + i), "SizeBytes": 100,
              "StreamViewType": "NEW_AND_OLD_IMAGES", "OldImage": image({"S": old}), "NewImage": image({"S": new})}
    return {"eventID": f"{i:032x}", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "us-east-1", "dynamodb": change,
            "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-20T00:00:00.000"}
records = [record(i, "PAID", "SHIPPED" if i % 3 == 0 else "PACKED") for i in range(12)]
records[4]["dynamodb"]["NewImage"]["status"] = {"BOOL": True}         # handler_template
records[5]["dynamodb"]["NewImage"]["total"] = {"S": "much"}           # big_orders; check_totals too: another type
records[6]["dynamodb"]["NewImage"]["total"] = {"N": "21.01"}          # check_totals
del records[9]["dynamodb"]["NewImage"]["SK"]                          # status_change: {SK} has no value
records[9]["dynamodb"]["Keys"] = {"PK": records[9]["dynamodb"]["Keys"]["PK"]}
del records[9]["dynamodb"]["OldImage"]["SK"]
with open("events.jsonl", "w") as out:
    for one in records:
        print(json.dumps(one), file=out)
PYTHON

replayed() { # name, its options, what is parked, what stands on standard output: each "sequence number code" or text
    local name=$1 options=$2 wanted=$3
    rm -f parked.jsonl out.jsonl
    printf '{"routes": [{"name": "it", "handler": "%s", %s "on_failure": "jsonl:parked.jsonl"}]}\n' "$name" "$options" >sluice.json
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 sluice replay --quiet --report-failures --handler-path "$work/handlers" events.jsonl >"$name.log" 2>&1 ||
        { cat "$name.log" >&2; fail "$name: replay failed"; }
    local got
    got=$(touch parked.jsonl; python3 -c 'import json
for line in open("parked.jsonl"):
    m = json.loads(line); print(m["record"]["dynamodb"]["SequenceNumber"], m["code"], end=";")')
    [ "$got" = "$wanted" ] || fail "$name: parked $got, not $wanted"
    grep -qE "^it +$name +12 +$((12 - $(tr -cd ';' <<<"$wanted" | wc -c))) " "$name.log" || { cat "$name.log" >&2; fail "$name: wrong counts"; }
    ok
}
replayed handler_template '"attribute": "status", "threshold": 5,' '104 WrongType;'
replayed big_orders '"limit": 20,' '105 WrongType;'
replayed check_totals '' '105 WrongType;106 WrongTotal;'
replayed status_change '"to": "jsonl:out.jsonl", "from": "PAID", "into": "SHIPPED", "text": "order {SK} of {PK} is on its way",' '109 MissingAttribute;'
[ "$(cat out.jsonl)" = "$(printf '"order ORDER#%d of CUSTOMER#1 is on its way"\n' 0 3 6)" ] || fail "status_change: sent $(cat out.jsonl)"
ok

replayed redact '"to": "jsonl:out.jsonl", "without": ["lines", "total"],' ''
python3 -c 'import json
sent = [json.loads(line) for line in open("out.jsonl")]
came = [json.loads(line) for line in open("events.jsonl")]
for record in came:
    for image in ("NewImage", "OldImage"):
        for name in ("lines", "total"):
            record["dynamodb"][image].pop(name, None)
assert sent == came, "redact: other records went out"' || fail "redact"
ok

# `sluice new-handler`: what it writes builds and replays as it stands, from the install and from the build tree.
new_handler() { # the folder of the command, with or without pkg-config
    rm -rf "$work/new" && mkdir "$work/new" && cd "$work/new"
    PATH=$1:$PATH
    sluice new-handler first >said
    [ "$(cat said)" = "$(printf 'first/: first.c, Makefile, sluice.json, events.jsonl\nnext: cd first && make try')" ] ||
        fail "new-handler said $(cat said)"
    cd first
    make -s CFLAGS=-Werror
    replay_first
    make -s try >try.log 2>&1 || { cat try.log >&2; fail "make try"; }
    grep -q '4 changes of status in one batch' try.log || fail "make try does not show the handler's line"
    PATH=/usr/bin:/bin make -s try >try.log 2>&1 || { cat try.log >&2; fail "make try without sluice on the path"; }
    ok
}
replay_first() {
    sluice replay --quiet events.jsonl >replay.log 2>&1 || { cat replay.log >&2; fail "the new handler does not replay"; }
    grep -qE '^first +first +5 +4 +1 +0 +1 ' replay.log || { cat replay.log >&2; fail "the new handler: wrong counts"; }
    [ "$(wc -l <failed.jsonl)" = 1 ] || fail "the new handler's poison is not parked"
}
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
new_handler "$prefix/bin"
(PKG_CONFIG_LIBDIR=/nowhere new_handler "$prefix/bin") && ok
(PKG_CONFIG_LIBDIR=/nowhere new_handler "$BUILD") && ok

refused() { # NAME, the refusal
    local said status=0
    said=$(sluice new-handler "$1" 2>&1) || status=$?
    [ "$status $said" = "2 sluice new-handler: $2" ] || fail "new-handler $1: $status $said"
    ok
}
cd "$work/new"
before=$(find . | sort)
refused first 'first cannot be created: File exists; nothing was written; choose another name'
refused archive 'archive is a built-in handler, and built-in handlers come before plugins; choose another name'
for name in '' ../first first/second .hidden 1st "two words" 'a;b' "$(printf '%065d' 0 | tr 0 a)"; do
    refused "$name" "\"$name\" cannot be the name of a handler: use a letter, then letters, digits and '_', at most 64"
done
[ "$(find . | sort)" = "$before" ] || fail "a refusal left something"

# Nothing of ours is left.
cd "$top"
installing uninstall
left=$(find "$work/root" -type f -o -type l -o -name '*sluice*')
[ -z "$left" ] || fail "uninstall left $left"
ok
echo "$passed passed"
