#!/bin/bash
# Stops what start.sh started for DIR: tests/services/stop.sh DIR. It is not an error if nothing runs there.
set -euo pipefail
exec python3 "$(dirname "$0")/services.py" stop "$@"
