#!/bin/bash
# Starts real counterparts on free loopback ports: tests/services/start.sh [--owner PID] DIR SERVICE... (dynamodb, moto, opensearch, postgres).
# Returns when all of them answer. DIR/env then holds their endpoints and the credentials to use, as NAME=value lines;
# DIR/SERVICE.pid and DIR/SERVICE.log belong to each. They end with stop.sh, or by themselves when the owner is gone:
# by default the process that called this script. One line on standard error and exit 1 when something cannot start.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
caller=$PPID
cd "$here"
. ./paths.sh
cd "$OLDPWD"
export DYNAMODB_HOME=$dynamodb_home MOTO_HOME=$moto_home OPENSEARCH_HOME=$opensearch_home
exec python3 "$here/services.py" start "$caller" "$@"
