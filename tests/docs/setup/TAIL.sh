. "$TOP/tests/docs/setup/world.sh"
# Ctrl-C once all is handled; with leases, by two machines.
sluice() {
    local handled='[ "$(world count replica)" = 200 ]'
    [[ " $* " != *" --checkpoint "* ]] || handled="grep -q through orders.place 2>/dev/null && $handled"
    if [[ " $* " == *" --leases "* ]]; then
        # (What the first block handled is there already: a lease that was taken shows that a machine is at work.)
        handled="[ \"\$(world count orders-leases)\" -ge 1 ] && $handled"
        until_is "$handled" command sluice "$@" &
        until_is "$handled" command sluice "$@"
        wait
    else
        until_is "$handled" command sluice "$@"
    fi
}
