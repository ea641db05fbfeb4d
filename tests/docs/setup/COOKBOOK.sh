# A receiver of webhooks, on this machine: it prints its URL, and appends what it gets to ./received.
start_receiver() {
    rm -f receiver.url
    python3 "$TOP/tests/docs/setup/receiver.py" receiver.url received </dev/null >/dev/null 2>&1 &
    for _ in $(seq 600); do
        [ -s receiver.url ] && break
        sleep 0.05
    done
    cat receiver.url
}
