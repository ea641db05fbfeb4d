. "$TOP/tests/docs/setup/world.sh"
# Ctrl-C once all is handled, and that is written down; with leases, by two machines. All records are one batch: a Ctrl-C between two
# batches leaves records that are not handled, and the command says so with its exit status.
sluice() {
    if [[ " $* " == *" --leases "* ]]; then
        until_is '[ "$(world places orders-leases)" = 1 ]' command sluice "$@" --batch-size 1000 &
        until_is '[ "$(world places orders-leases)" = 1 ]' command sluice "$@" --batch-size 1000
        wait $!
    else
        until_is 'grep -q through orders.place 2>/dev/null' command sluice "$@" --batch-size 1000
    fi
}
