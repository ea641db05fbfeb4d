#!/bin/bash
# Installs AWS's SAM, cfn-lint, reuse and a validator of CycloneDX from PyPI (requirements.txt, hashes of every package) and
# prints the folder. It lies in ${XDG_CACHE_HOME:-$HOME/.cache}/sluice, named after the pins: other clones share it, `make clean`
# leaves it, and a second run needs no network. SAM brings the Runtime Interface Emulator, AWS's own Runtime API server, for both
# architectures.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sluice
home=$cache/sam-$({ cat requirements.txt; python3 -V; } | sha256sum | cut -c1-12)
mkdir -p "$cache"
exec 9>"$home.lock"
flock -w 900 9 || { echo "install: another install holds $home.lock" >&2; exit 1; }
if [ ! -e "$home/installed" ]; then
    echo "install: SAM, cfn-lint, reuse and CycloneDX's validator, from PyPI" >&2
    rm -rf "$home"
    python3 -m venv "$home" || { echo "install: python3 has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
    "$home/bin/python" -m pip install -q --no-deps --require-hashes --no-compile -r requirements.txt ||
        { echo "install: pip could not install requirements.txt" >&2; exit 1; }
    touch "$home/installed"
fi
echo "$home"
