#!/bin/bash
# Makes the pins anew, after a change of version in pom.xml or requirements.in: needs the network, is never run by make.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn -q -B -f pom.xml dependency:copy-dependencies -DoutputDirectory="$work/jars"
(cd "$work/jars" && LC_ALL=C ls | grep -E '\.jar$|linux-amd64.*\.so$' | xargs sha256sum) >jars.sha256
mvn -q -B -f opensearch/pom.xml dependency:copy-dependencies -DoutputDirectory="$work/search"
(cd "$work/search" && LC_ALL=C ls | grep '\.jar$' | xargs sha256sum) >opensearch/jars.sha256
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pip-tools==7.6.2
"$work/venv/bin/pip-compile" -q --generate-hashes --strip-extras --no-annotate --no-header --no-emit-find-links \
    --no-emit-index-url -o "$work/requirements.txt" requirements.in
{
    echo "# Made by tests/services/pin.sh from requirements.in: every version and its hash."
    cat "$work/requirements.txt"
} >requirements.txt
