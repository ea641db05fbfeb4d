#!/bin/bash
# Installs the real counterparts that the tests talk to: tests/services/install.sh [dynamodb] [moto] [opensearch], all by
# default. DynamoDB Local and OpenSearch come from Maven Central (pom.xml, checked against jars.sha256), moto's server from
# PyPI (requirements.txt, hashes of every package). All go to ${XDG_CACHE_HOME:-$HOME/.cache}/sluice, in folders named after the content of those pins:
# other clones share them, `make clean` leaves them, a second run needs no network, and removing the folder is safe.
set -euo pipefail
cd "$(dirname "$0")"
. ./paths.sh

fail() { echo "install: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || fail "$1 is missing; on Debian: apt-get install $2"; }

# Downloads into another folder and renames it at the end, so that a folder that exists is whole.
install_dynamodb() {
    [ -d "$dynamodb_home" ] && return
    need mvn maven && need java openjdk-17-jre-headless
    echo "install: DynamoDB Local, from Maven Central" >&2
    local aside=$dynamodb_home.new
    rm -rf "$aside" && mkdir -p "$aside"
    mvn -q -B -f pom.xml dependency:copy-dependencies -DoutputDirectory="$aside" >"$aside/log" 2>&1 ||
        fail "mvn could not fetch DynamoDB Local: $(grep -m 1 ERROR "$aside/log")"
    (cd "$aside" && sha256sum --quiet -c -) <jars.sha256 >&2 || fail "the files from Maven Central differ from jars.sha256"
    ./dynamodb_index.py "$aside" >&2 || fail "DynamoDB Local's table of stream records is not as it was"
    mv "$aside" "$dynamodb_home"
}

# The server, and the program that starts one node of it.
install_opensearch() {
    [ -d "$opensearch_home" ] && return
    need mvn maven && need javac openjdk-17-jdk-headless
    echo "install: OpenSearch, from Maven Central" >&2
    local aside=$opensearch_home.new
    rm -rf "$aside" && mkdir -p "$aside"
    mvn -q -B -f opensearch/pom.xml dependency:copy-dependencies -DoutputDirectory="$aside" >"$aside/log" 2>&1 ||
        fail "mvn could not fetch OpenSearch: $(grep -m 1 ERROR "$aside/log")"
    (cd "$aside" && sha256sum --quiet -c -) <opensearch/jars.sha256 >&2 ||
        fail "the files from Maven Central differ from opensearch/jars.sha256"
    javac -d "$aside" -cp "$aside/*" opensearch/SearchNode.java || fail "javac could not compile opensearch/SearchNode.java"
    mv "$aside" "$opensearch_home"
}

# A virtual environment contains its own path, so it is built in place and marked at the end.
install_moto() {
    [ -e "$moto_home/installed" ] && return
    need python3 "python3 python3-venv"
    echo "install: moto's server, from PyPI" >&2
    rm -rf "$moto_home"
    python3 -m venv "$moto_home" || fail "python3 has no venv; on Debian: apt-get install python3-venv"
    "$moto_home/bin/python" -m pip install -q --no-deps --require-hashes --only-binary :all: -r requirements.txt ||
        fail "pip could not install requirements.txt"
    touch "$moto_home/installed"
}

mkdir -p "$services_cache"
exec 9>"$services_cache/lock"
flock -w 900 9 || fail "another install holds $services_cache/lock; wait for it and try again"
[ $# -gt 0 ] || set -- dynamodb moto opensearch
for name in "$@"; do
    case $name in
    dynamodb | moto | opensearch) "install_$name" ;;
    *) fail "$name is not a service; use dynamodb, moto or opensearch" ;;
    esac
done
