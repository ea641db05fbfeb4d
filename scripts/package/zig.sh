#!/bin/bash
# Installs zig from PyPI (zig.txt, by hash), once, and prints its path. We use it as a linker alone: it has the symbols of each
# glibc, so that what our compilers made runs with an older one than Debian's.
set -euo pipefail
cd "$(dirname "$0")"
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/zig-$(sha256sum <zig.txt | cut -c1-12)
mkdir -p "${home%/*}"
exec 9>"$home.lock"
flock -w 900 9 || { echo "release: another install holds $home.lock" >&2; exit 1; }
if [ ! -e "$home/installed" ]; then
    echo "install: zig, from PyPI" >&2
    rm -rf "$home"
    python3 -m venv "$home.venv" || { echo "release: python3 has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
    "$home.venv/bin/python" -m pip install -q --no-deps --require-hashes --no-compile --target "$home" -r zig.txt ||
        { echo "release: pip could not install zig.txt" >&2; exit 1; }
    rm -rf "$home.venv"
    touch "$home/installed"
fi
echo "$home/ziglang/zig"
