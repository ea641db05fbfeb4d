#!/bin/bash
# start.sh and stop.sh do what they promise: servers answer, DIR/env names them, and they never outlive stop, owner or supervisor.
set -euo pipefail
unset SLUICE_SHARED_SERVICES
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap '"$here/stop.sh" "$work/s" || true; rm -rf "$work"' EXIT
passed=0
ok() { passed=$((passed + 1)); }
fail() { echo "check_services: $*" >&2; exit 1; }
# A zombie's parent may be slow to collect it; it holds no port and no memory.
alive() { local state; state=$(sed -n 's/^State:\t//p' "/proc/$1/status" 2>/dev/null) && [[ -n $state && $state != Z* ]]; }
gone() { # PID...: within a minute
    local until=$((SECONDS + 60)) pid
    for pid in "$@"; do
        while alive "$pid"; do
            ((SECONDS < until)) || return 1
            sleep 0.05
        done
    done
}
pids() { cat "$work"/s/{dynamodb,moto}.pid; }
# The one line of a start that must fail.
refusal() { "$@" 2>&1 >/dev/null && fail "$* was accepted"; true; }

"$here/start.sh" "$work/s" dynamodb moto
. "$work/s/env"
tables=$(curl -s "$DYNAMODB_ENDPOINT" -H 'X-Amz-Target: DynamoDB_20120810.ListTables' -H 'Content-Type: application/x-amz-json-1.0' \
    -H "Authorization: AWS4-HMAC-SHA256 Credential=$AWS_ACCESS_KEY_ID/20260101/$AWS_REGION/dynamodb/aws4_request, SignedHeaders=host, Signature=0" \
    -H 'X-Amz-Date: 20260101T000000Z' -d '{}')
[ "$tables" = '{"TableNames":[]}' ] || fail "DynamoDB Local said: $tables"
ok
[ "$(curl -s -o /dev/null -w '%{http_code}' -X PUT "$MOTO_ENDPOINT/a-bucket")" = 200 ] || fail "moto made no bucket"
ok
mapfile -t servers < <(pids)
for pid in "${servers[@]}"; do alive "$pid" || fail "no process $pid"; done
ok
[[ $(refusal "$here/start.sh" "$work/s" moto) == "services: services run in $work/s already;"* ]] || fail "a second start in one folder"
ok
"$here/stop.sh" "$work/s"
gone "${servers[@]}" || fail "servers outlive stop.sh"
[ ! -e "$work/s/env" ] && [ ! -e "$work/s/moto.pid" ] || fail "files outlive stop.sh"
"$here/stop.sh" "$work/s" || fail "stopping twice must not be an error"
ok

# The owner is the process that called start.sh: here a shell that is killed.
bash -c "'$here/start.sh' '$work/s' dynamodb moto; echo started; exec sleep 600" >"$work/out" &
owner=$!
disown "$owner"  # or bash would report its death
until grep -q started "$work/out"; do sleep 0.05; done
mapfile -t servers < <(pids)
sleep 1
for pid in "${servers[@]}"; do alive "$pid" || fail "servers ended before their owner"; done
kill -KILL "$owner"
gone "${servers[@]}" || fail "servers outlive their owner"
ok

"$here/start.sh" --owner $$ "$work/s" moto dynamodb
mapfile -t servers < <(pids)
kill -KILL "$(cut -d' ' -f1 "$work/s/supervisor.pid")"
gone "${servers[@]}" || fail "servers outlive their supervisor"
ok

# What runs for all is lent: with a database of the borrower's own, and it goes on after the borrower's end.
"$here/start.sh" --owner $$ "$work/all" dynamodb
trap '"$here/stop.sh" "$work/s" || true; "$here/stop.sh" "$work/all" || true; rm -rf "$work"' EXIT
. "$work/all/env"
owner_key=$AWS_ACCESS_KEY_ID owner_endpoint=$DYNAMODB_ENDPOINT
rm -f "$work/s"/*.pid
SLUICE_SHARED_SERVICES=$work/all "$here/start.sh" --owner $$ "$work/s" dynamodb moto
. "$work/s/env"
[ "$DYNAMODB_ENDPOINT" = "$owner_endpoint" ] && [ "$AWS_ACCESS_KEY_ID" != "$owner_key" ] || fail "it was not lent: $DYNAMODB_ENDPOINT $AWS_ACCESS_KEY_ID"
[ -e "$work/s/moto.pid" ] && [ ! -e "$work/s/dynamodb.pid" ] || fail "moto is its own, DynamoDB Local is not"
"$here/stop.sh" "$work/s"
SLUICE_SHARED_SERVICES=$work/all "$here/start.sh" "$work/s" dynamodb
[ "$(sed -n 's/^DYNAMODB_ENDPOINT=//p' "$work/s/env")" = "$owner_endpoint" ] && [ ! -e "$work/s/supervisor.pid" ] || fail "nothing is started for what is lent"
"$here/stop.sh" "$work/s"
[ ! -e "$work/s/env" ] || fail "what was lent is still named"
alive "$(cat "$work/all/dynamodb.pid")" || fail "the lent server ended with its borrower"
ok

# A server's port is not given. Four processes at once share twenty, one of which another has; who asks for one more gets none, and what they had is free after them.
PYTHONPATH=$here python3 - <<'END' || fail "ports"
import socket, subprocess, sys
from ports import PORTS, claim, free_port
server = socket.create_server(("127.0.0.1", 0))
assert not claim(server.getsockname()[1])
first = free_port(PORTS[:-20])
takes = f"import ports, sys; print(*(ports.free_port(range({first}, {first + 20})) for _ in range(4)), flush=True); sys.stdin.read()"
takers = [subprocess.Popen([sys.executable, "-c", takes], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
given = [int(port) for taker in takers for port in taker.stdout.readline().split()]
left = {port for port in range(first, first + 20) if port not in given}
assert len(set(given)) == 16 and first in left, given
assert {port for port in left if claim(port)} <= left - {first}
try:
    raise AssertionError(free_port(range(first, first + 20)))
except OSError as error:
    assert str(error) == f"no free port from {first} to {first + 19}", error
for taker in takers:
    taker.communicate()
assert free_port(range(first, first + 20)) in given
END
ok

# Refusals are one line each, and leave nothing.
[[ $(refusal "$here/start.sh" "$work/s" mysql) == "services: usage: start.sh [--owner PID] DIR SERVICE..., of: dynamodb moto opensearch postgres" ]] || fail "unknown service"
ok
[[ $(XDG_CACHE_HOME=$work/empty refusal "$here/start.sh" "$work/s" moto) == "services: moto is not installed; run tests/services/install.sh moto" ]] ||
    fail "not installed"
ok
mkdir "$work/bin"
printf '#!/bin/sh\necho no memory today\nexit 3\n' >"$work/bin/java"
chmod +x "$work/bin/java"
[[ $(PATH=$work/bin:$PATH refusal "$here/start.sh" "$work/s" dynamodb) == "services: dynamodb ended with status 3: no memory today" ]] ||
    fail "a server that ends at once"
[ ! -e "$work/s/env" ] && [ ! -e "$work/s/supervisor.pid" ] || fail "a failed start left files"
ok
echo "$passed passed"
