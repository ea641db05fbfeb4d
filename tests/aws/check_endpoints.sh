#!/bin/bash
# The host of every service in every region, with and without FIPS and dual stack, as botocore has it. botocore comes with moto.
set -euo pipefail
cd "$(dirname "$0")/../services"
. ./paths.sh
cd "$OLDPWD"
exec "$moto_home/bin/python" tests/aws/endpoints.py
