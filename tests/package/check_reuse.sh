#!/bin/bash
# Who holds the copyright, and the license, of every file of the tree, by the REUSE specification and its own tool; the headers
# that are installed alone say it themselves.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
fail() { echo "FAIL $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
reuse=$(tests/package/install.sh)/bin/reuse
said=$("$reuse" lint 2>&1) || fail "reuse lint: $(tail -n 40 <<<"$said")"
cmp LICENSE LICENSES/Apache-2.0.txt || fail "LICENSE is not the text in LICENSES/"

make -s install BUILD="$BUILD" DESTDIR="$work" PREFIX=/usr >/dev/null
headers=0
for header in "$work"/usr/include/sluice/*.h; do
    for line in 'SPDX-FileCopyrightText: ' 'SPDX-License-Identifier: Apache-2.0'; do
        [ "$(head -n 3 "$header" | grep -c "$line")" = 1 ] || fail "${header##*/} does not begin with $line"
    done
    headers=$((headers + 1))
done
[ "$headers" -ge 2 ] || fail "there are $headers installed headers"
echo "$((2 + headers)) passed, 0 failed"
