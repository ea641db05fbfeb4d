#!/bin/bash
# Installs zig from PyPI (zig.txt, by hash), once, and prints its path. We use it as a linker alone: it has the symbols of each
# glibc, so that what our compilers made runs with an older one than Debian's.
set -euo pipefail
cd "$(dirname "$0")"
. ../cached.sh
fill() {
    python3 -m venv "$1/venv" || fail "python3 has no venv; on Debian: apt-get install python3-venv"
    "$1/venv/bin/python" -m pip install -q --no-deps --require-hashes --no-compile --target "$1" -r zig.txt || fail "pip could not install zig.txt"
    rm -rf "$1/venv"
}
cached "zig-$(sha256sum <zig.txt | cut -c1-12)" "zig, from PyPI" fill
echo "$home/ziglang/zig"
