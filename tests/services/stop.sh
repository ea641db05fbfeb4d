#!/bin/bash
# Stops what start.sh started for DIR: tests/services/stop.sh DIR. Nothing running there is no error.
set -euo pipefail
exec python3 "$(dirname "$0")/services.py" stop "$@"
