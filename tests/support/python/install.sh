#!/bin/bash
# Installs the packages from PyPI that read what we write (requirements.txt: versions and hashes) into a virtual environment, and
# prints its Python. It lies in ${XDG_CACHE_HOME:-$HOME/.cache}/sluice, in a folder named after the pins: other clones share it,
# `make clean` leaves it, and a second run needs no network.
set -euo pipefail
cd "$(dirname "$0")"
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/readers-$({ cat requirements.txt; python3 -V; } | sha256sum | cut -c1-12)
fail() { echo "install: $*" >&2; exit 1; }

mkdir -p "$(dirname "$home")"
exec 9>"$home.lock"
flock -w 900 9 || fail "another install holds $home.lock; wait for it and try again"
if [ ! -e "$home/installed" ]; then
    echo "install: standardwebhooks, prometheus_client, DuckDB and opentelemetry-proto, from PyPI" >&2
    rm -rf "$home"
    python3 -m venv "$home" || fail "python3 has no venv; on Debian: apt-get install python3-venv"
    "$home/bin/python" -m pip install -q --no-deps --require-hashes --only-binary :all: -r requirements.txt ||
        fail "pip could not install tests/support/python/requirements.txt"
    touch "$home/installed"
fi
echo "$home/bin/python"
