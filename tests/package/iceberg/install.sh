#!/bin/bash
# Installs Iceberg's own REST catalog from Maven Central (pom.xml, checked against jars.sha256), once, and prints its class path.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../scripts/cached.sh

fill() {
    mvn -q -B -f pom.xml dependency:copy-dependencies -DoutputDirectory="$1" >"$1/log" 2>&1 || fail "mvn could not fetch Iceberg: $(grep -m 1 ERROR "$1/log")"
    (cd "$1" && sha256sum --quiet -c -) <jars.sha256 >&2 || fail "the files from Maven Central differ from tests/package/iceberg/jars.sha256"
    javac -d "$1" -cp "$1/*" Catalog.java || fail "javac could not compile tests/package/iceberg/Catalog.java"
}

cached "iceberg-$(cat pom.xml jars.sha256 Catalog.java | sha256sum | cut -c1-12)" "Iceberg's REST catalog, from Maven Central" fill
echo "$home/*:$home"
