#!/bin/bash
# What a Lambda function in C links: the Runtime API client and what it stands on, as one object that shows sl_lambda_* alone:
# scripts/runtime_library.sh LIBRARY OBJECTS AND ARCHIVES…, with CC, AR and OBJCOPY.
set -euo pipefail
library=$1
object=${library%.a}.o
shift
roots=()
for name in run init_failed succeed fail remaining_ms; do roots+=("-Wl,-u,sl_lambda_$name"); done
# (CC may be several words.)
$CC -r -nostdlib -Wl,--gc-sections "${roots[@]}" -Wl,-e,sl_lambda_run -o "$object" "$@"
"${OBJCOPY:-objcopy}" --wildcard --keep-global-symbol='sl_lambda_*' "$object"
rm -f "$library"
"${AR:-ar}" rcsD "$library" "$object"
