. "$TOP/tests/docs/setup/world.sh"
# Ctrl-C once its checkpoint says that something is handled.
sluice() { until_is 'grep -q through orders.place 2>/dev/null && [ "$(world count replica)" = 200 ]' command sluice "$@"; }
