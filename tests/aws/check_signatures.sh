#!/bin/bash
# Every kind of request as it is sent, signed a second time by botocore: emulators do not check signatures. botocore comes with moto.
set -euo pipefail
cd "$(dirname "$0")/../services"
. ./paths.sh
cd "$OLDPWD"
exec "$moto_home/bin/python" tests/aws/signatures.py
