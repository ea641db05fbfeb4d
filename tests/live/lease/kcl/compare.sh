#!/bin/bash
# Leases handed to and fro between `sluice tail` and KCL itself: `make leases-kcl`. Not a part of `make check`: KCL waits up to half a
# minute before it begins. KCL 1.15.3 with the DynamoDB Streams Kinesis Adapter 1.6.1, or (compare.sh kcl3) the adapter 2.0.1 with its
# KCL 3.1.1, come from Maven Central (once: they stay in the cache, in a folder named after the pins).
set -euo pipefail
version=${1:-kcl}
here=$(cd "$(dirname "$0")/../$version" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sluice
home=$cache/$version-$(cat "$here/pom.xml" "$here/jars.sha256" | sha256sum | cut -c 1-12)

fail() { echo "leases-kcl: $*" >&2; exit 1; }
for tool in mvn javac java; do
    command -v $tool >/dev/null || fail "$tool is missing; on Debian: apt-get install maven openjdk-17-jdk-headless"
done
mkdir -p "$cache"
exec 9>"$cache/kcl.lock"
flock -w 600 9 || fail "another run holds $cache/kcl.lock"
if [ ! -d "$home" ]; then
    rm -rf "$home.new" && mkdir "$home.new"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$home.new" >"$home.new/log" 2>&1 ||
        fail "mvn could not fetch KCL: $(grep -m 1 ERROR "$home.new/log")"
    (cd "$home.new" && sha256sum --quiet -c -) <"$here/jars.sha256" >&2 || fail "the files from Maven Central differ from jars.sha256"
    mv "$home.new" "$home"
fi
classes=${BUILD:-build}/tests/live/lease/$version
mkdir -p "$classes"
javac -Xlint:-deprecation -nowarn -d "$classes" -cp "$home/*" "$here/Consumer.java" 2>&1 | grep -v "^Note: " || true
flock -u 9
KCL_CLASSES="$(realpath "$classes"):$home/*" exec python3 "$here/compare.py"
