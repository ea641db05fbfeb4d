#!/bin/bash
# Every kind of request as it stands on the wire, signed anew by botocore: emulators look at no signature. botocore comes with moto.
set -euo pipefail
cd "$(dirname "$0")/../services"
. ./paths.sh
cd "$OLDPWD"
exec "$moto_home/bin/python" tests/sinks/signatures.py
