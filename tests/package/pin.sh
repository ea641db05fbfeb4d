#!/bin/bash
# Makes requirements.txt anew after a change of version in requirements.in: needs the network, is never run by make.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pip-tools==7.6.2
"$work/venv/bin/pip-compile" -q --generate-hashes --strip-extras --no-annotate --no-header --no-emit-find-links \
    --no-emit-index-url --allow-unsafe -o "$work/requirements.txt" requirements.in
{
    echo "# Made by tests/package/pin.sh from requirements.in: every version and its hash."
    cat "$work/requirements.txt"
} >requirements.txt
