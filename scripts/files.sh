#!/bin/bash
# Lists the files of the tree, a line each: what git knows, and what is new. A tarball has no .git: there it is all but what was built.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -e .git ]; then
    git ls-files -co --exclude-standard
else
    find . \( -path ./build -o -path ./out -o -name .aws-sam -o -name __pycache__ \) -prune -o -type f -printf '%P\n'
fi | LC_ALL=C sort
