. "$TOP/tests/docs/setup/world.sh"
# The consumer runs beside, and a row of the replica is wrong.
sluice tail --table orders --checkpoint place.json --batch-size 1000 --quiet >/dev/null 2>&1 &
until grep -q through place.json 2>/dev/null; do sleep 0.2; done
world break
