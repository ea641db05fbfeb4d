#!/bin/bash
# The main job: sends a recorded stream (examples/capture) through the real bootstrap with the embedded sinks, as
# examples/orders/sluice.json says. What it writes is in out/.
set -euo pipefail
cd "$(dirname "$0")/.."
capture=examples/capture/orders.jsonl.gz
config=examples/orders/sluice.json
rm -rf out
mkdir out
echo "replaying $capture with $config" >&2
OUT=out "$BUILD/sluice" replay --config "$config" --report-failures --trace out/trace.jsonl "$capture"
expired=$(find out/archive/expired -name '*.gz' | sort | sed -n 1p)
cat <<END

Look inside:
  zcat $expired | head -n 1
  head -n 3 out/shipped.jsonl
  head -n 3 out/trace.jsonl
END
