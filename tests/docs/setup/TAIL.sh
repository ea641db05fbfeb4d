. "$TOP/tests/docs/setup/world.sh"
# Ctrl-C once all is handled; with leases, by two machines.
sluice() {
    local handled='[ "$(world count replica)" = 200 ]'
    [[ " $* " != *" --checkpoint "* ]] || handled="grep -q through orders.place 2>/dev/null && $handled"
    if [[ " $* " == *" --leases "* ]]; then
        until_is "$handled" command sluice "$@" &
        until_is "$handled" command sluice "$@"
        wait
    else
        until_is "$handled" command sluice "$@"
    fi
}
