#!/bin/bash
# As a packager installs: below a folder with spaces, by DESTDIR and PREFIX; what is installed builds a handler and a function there,
# and uninstall leaves nothing. A tree without .git, inside somebody else's repository, has no commit and is still checked by lint.
set -euo pipefail
cd "$(dirname "$0")/../.."
top=$PWD BUILD=${BUILD:-build}
fail() { echo "FAIL $*" >&2; exit 1; }
passed=0
ok() { passed=$((passed + 1)); }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/a prefix"
make -s install BUILD="$BUILD" PREFIX="$prefix" >/dev/null
export PATH="$prefix/bin:$PATH" PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
for text in LICENSE NOTICE; do cmp "$text" "$prefix/share/doc/sluice/$text" || fail "$text is not installed"; done && ok
cd "$work"
for found in "$PKG_CONFIG_PATH" ""; do # by pkg-config, then by the folder that new-handler wrote down
    rm -rf first
    sluice new-handler first >/dev/null
    PKG_CONFIG_PATH=$found make -s -C first || fail "new-handler does not build below a folder with spaces"
    (cd first && sluice replay --quiet events.jsonl 2>/dev/null | grep -qE '^first +first +5 ') || fail "its handler does not replay" && ok
done
eval "cc -o function $top/examples/lambda/function.c $(pkg-config --cflags --libs sluice-runtime)" || fail "a function does not link below a folder with spaces" && ok
cd "$top"
make -s install BUILD="$BUILD" DESTDIR="$work/dest" PREFIX="/usr/a prefix" >/dev/null
(cd "$work/dest/usr/a prefix" && find . ! -type d) | sort >"$work/with_destdir"
(cd "$prefix" && find . ! -type d) | sort | cmp - "$work/with_destdir" || fail "DESTDIR changes what is installed"
! grep -rlF "$work" "$work/dest" || fail "DESTDIR is written into a file" && ok
make -s uninstall PREFIX="$prefix" >/dev/null
left=$(find "$prefix" ! -type d)
[ -z "$left" ] || fail "uninstall left $left" && ok

mkdir -p "$work/around/sluice/base"
git -C "$work/around" init -q
git -C "$work/around" -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m "somebody else's"
cp -R Makefile VERSION scripts "$work/around/sluice/"
[ "$(make -s -C "$work/around/sluice" --eval 'told: ; @echo $(COMMIT)' told 2>/dev/null)" = unknown ] || fail "the commit of a repository around the tree is taken" && ok
# A new commit is in the next build, also where nothing else has changed.
[[ $(make -n COMMIT=ffffffffffff all) == *base/version.c* ]] || fail "a new commit does not rebuild what tells it" && ok
printf '/* Bad. */\n#include "streams/record.h"\nint x = atoi(1);\n' >"$work/around/sluice/base/bad.c"
said=$(cd "$work/around/sluice" && timeout 600 scripts/lint.sh 2>&1 </dev/null) && fail "lint passes without .git"
[[ $said == *"base/bad.c:2: base/ may not include streams/record.h"* && $said == *banned* ]] || fail "lint without .git said: $said" && ok
echo "$passed passed, 0 failed"
