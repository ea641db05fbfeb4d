#!/bin/bash
# Installs AWS's SDK for DynamoDB in Node, which bench_requests.c runs beside our own client, from npm: the versions of
# package-lock.json, checked against its hashes. Prints the folder with node_modules. It lies in ${XDG_CACHE_HOME:-$HOME/.cache}/sluice:
# other clones share it, `make clean` leaves it, and a second run needs no network. --installed: only the folder's name, and fails
# where it is not there.
set -euo pipefail
cd "$(dirname "$0")"
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/aws-sdk-$(sha256sum package-lock.json | cut -c 1-16)
fail() { echo "install: $*" >&2; exit 1; }

if [ "${1:-}" = --installed ]; then
    [ -d "$home/node_modules" ] || fail "AWS's SDK for Node is not installed: bench/aws_sdk/install.sh"
    echo "$home"
    exit
fi
mkdir -p "$(dirname "$home")"
exec 9>"$home.lock"
flock -w 900 9 || fail "another install holds $home.lock; wait for it and try again"
if [ ! -d "$home" ]; then
    command -v npm >/dev/null || fail "npm is missing; on Debian: apt-get install npm"
    echo "install: AWS's SDK for DynamoDB in Node, from npm" >&2
    aside=$home.new
    rm -rf "$aside" && mkdir -p "$aside"
    cp package.json package-lock.json "$aside"
    (cd "$aside" && npm ci --ignore-scripts --no-audit --no-fund --silent >log 2>&1) || fail "npm could not fetch the SDK: $(tail -n 1 "$aside/log")"
    mv "$aside" "$home"
fi
echo "$home"
