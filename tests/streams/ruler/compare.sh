#!/bin/bash
# Holds our patterns against AWS's engine, event-ruler: `make ruler`. Not a part of `make check`: it needs a Java compiler,
# and the engine from Maven Central (once: it stays in the cache, in a folder named after the pins).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sluice
home=$cache/ruler-$(cat "$here/pom.xml" "$here/jars.sha256" | sha256sum | cut -c 1-12)

fail() { echo "ruler: $*" >&2; exit 1; }
for tool in mvn javac java; do
    command -v $tool >/dev/null || fail "$tool is missing; on Debian: apt-get install maven openjdk-17-jdk-headless"
done
mkdir -p "$cache"
exec 9>"$cache/ruler.lock"
flock -w 600 9 || fail "another run holds $cache/ruler.lock"
if [ ! -d "$home" ]; then
    rm -rf "$home.new" && mkdir "$home.new"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$home.new" >"$home.new/log" 2>&1 ||
        fail "mvn could not fetch event-ruler: $(grep -m 1 ERROR "$home.new/log")"
    (cd "$home.new" && sha256sum --quiet -c -) <"$here/jars.sha256" >&2 || fail "the files from Maven Central differ from jars.sha256"
    mv "$home.new" "$home"
fi
classes=${BUILD:-build}/tests/streams/ruler
mkdir -p "$classes"
javac -d "$classes" -cp "$home/*" "$here/Ruler.java"
flock -u 9
RULER_CLASSES="$classes:$home/*" exec python3 "$here/compare.py"
