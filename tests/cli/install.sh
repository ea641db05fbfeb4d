#!/bin/bash
# Installs axe-core, which finds what keeps people from reading a page, from npm: one version, checked against its hash. Prints
# the folder with axe.min.js. It lies in ${XDG_CACHE_HOME:-$HOME/.cache}/sluice: other clones share it, `make clean` leaves it,
# and a second run needs no network.
set -euo pipefail
version=4.14.1
sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/axe-core-$version
fail() { echo "install: $*" >&2; exit 1; }

mkdir -p "$(dirname "$home")"
exec 9>"$home.lock"
flock -w 900 9 || fail "another install holds $home.lock; wait for it and try again"
if [ ! -d "$home" ]; then
    command -v npm >/dev/null || fail "npm is missing; on Debian: apt-get install npm"
    echo "install: axe-core, from npm" >&2
    aside=$home.new
    rm -rf "$aside" && mkdir -p "$aside"
    (cd "$aside" && npm pack --silent "axe-core@$version" >log 2>&1) || fail "npm could not fetch axe-core: $(tail -n 1 "$aside/log")"
    (cd "$aside" && echo "$sha512  axe-core-$version.tgz" | sha512sum --quiet -c -) >&2 || fail "axe-core from npm differs from its hash"
    tar -xzf "$aside/axe-core-$version.tgz" -C "$aside" --strip-components=1 package/axe.min.js package/LICENSE
    rm "$aside/axe-core-$version.tgz"
    mv "$aside" "$home"
fi
echo "$home"
