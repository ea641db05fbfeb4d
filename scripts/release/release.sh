#!/bin/bash
# `make release` and `make image`: builds what release.py packs: scripts/release/release.sh OUT [PART…]. A release is of a clean
# tree with the tag v$(cat VERSION); SNAPSHOT=1 takes any tree, and names the files after its commit.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "release: $*" >&2; exit 1; }
VERSION=$(cat VERSION)
REVISION=$(git rev-parse --verify HEAD 2>/dev/null) || fail "this is no git clone: a release names its commit"
NAME=$VERSION
if [ "${SNAPSHOT:-}" = 1 ]; then
    NAME=$VERSION-snapshot.${REVISION:0:12}
else
    [ -z "$(git status --porcelain)" ] || fail "the tree has changes: commit them, or try with SNAPSHOT=1"
    [ "$(git tag --points-at HEAD | grep -xF "v$VERSION")" ] || fail "VERSION says $VERSION, but this commit has no tag v$VERSION: git tag v$VERSION, or try with SNAPSHOT=1"
fi
TIME=$(git log -1 --format=%ct)
ARCHS=${ARCHS:-x86_64 arm64}
DEPLOY=deploy
export VERSION REVISION NAME TIME ARCHS
# Others' plugins come in layers: nobody knows what they need.
make --no-print-directory -s package ARCHS="$ARCHS" DEPLOY=$DEPLOY SPARE=all
ask() { make --no-print-directory -s packaged-"$2" ARCH="$1" DEPLOY=$DEPLOY SPARE=all; }
for arch in $ARCHS; do
    make --no-print-directory -s -j"$(nproc)" "command-$arch"
    # A path may have spaces.
    export "COMMAND_$arch=$(ask "$arch" folder)/command" "TASK_$arch=$(ask "$arch" task)" "SYSROOT_$arch=$(ask "$arch" sysroot)" "ZIP_$arch=build/sluice-$arch.zip"
done
ARCHIVE=$(ask "${ARCHS%% *}" where)
export ARCHIVE
PYTHONDONTWRITEBYTECODE=1 python3 scripts/release/release.py "$@"
