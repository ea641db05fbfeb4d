#!/bin/bash
# Compiles the construct of deploy/cdk and packs it for npm: scripts/release/cdk.sh FOLDER. The package is then FOLDER/cdk, its tgz
# FOLDER/sluice-cdk-VERSION.tgz. What it needs comes from npm, by package-lock.json's hashes, into ~/.cache/sluice, once.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p "$1"
folder=$(cd "$1" && pwd)
. scripts/cached.sh
fill() {
    command -v npm >/dev/null || fail "npm is missing; on Debian: apt-get install npm"
    cp deploy/cdk/package.json deploy/cdk/package-lock.json "$1"
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --silent >log 2>&1) || fail "npm could not fetch the CDK: $(tail -n 1 "$1/log")"
}
cached "cdk-$(cat deploy/cdk/package.json deploy/cdk/package-lock.json | sha256sum | cut -c1-12)" "the AWS CDK and jsii, from npm" fill

# Another folder has what is ours alone, and links to the rest; what is bundled has to lie in it.
rm -rf "$folder/cdk"
mkdir -p "$folder/cdk/node_modules"
cp -R deploy/cdk/lib deploy/cdk/package.json deploy/cdk/README.md deploy/cloudformation/sluice.json LICENSE NOTICE "$folder/cdk"
find "$folder/cdk/lib" -type f ! -name 'index.ts' -delete
for module in "$home"/node_modules/* "$home"/node_modules/.bin; do
    case $module in
    */fflate) cp -R "$module" "$folder/cdk/node_modules/" ;;
    *) ln -s "$module" "$folder/cdk/node_modules/" ;;
    esac
done
cd "$folder/cdk"
node_modules/.bin/jsii --silence-warnings=reserved-word >"$folder/cdk.log" 2>&1 || { cat "$folder/cdk.log" >&2; fail "jsii found mistakes in deploy/cdk"; }
rm -f "$folder/cdk.log"
npm pack --silent --pack-destination "$folder" >/dev/null
