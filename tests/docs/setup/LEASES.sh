. "$TOP/tests/docs/setup/world.sh"
# Ctrl-C once all is handled, by two machines.
sluice() {
    until_is '[ "$(world count replica)" = 200 ]' command sluice "$@" &
    until_is '[ "$(world count replica)" = 200 ]' command sluice "$@"
    wait
}
