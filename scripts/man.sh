#!/bin/bash
# The man page of the command, from the help of the command itself: scripts/man.sh build/sluice docs/man/sluice.1.in >sluice.1
# Each verb's help becomes a section in the place of the line @VERBS@.
set -euo pipefail
sluice=$1 frame=$2

verbs() {
    "$sluice" --help | awk '/^  [a-z]/ { print $1 }'
}

section() { # of one verb, from its --help: usage, paragraph, flags with their text
    "$sluice" "$1" --help | awk '
        function roff(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); sub(/^[.\x27]/, "\\\\\\&&", s); return s }
        NR == 1 { sub(/^usage: /, ""); printf ".SS %s\n.B %s\n.PP\n", roff($2), roff($0); next }
        /^  --/ {
            at = match(substr($0, 3), /  +/)
            printf ".TP\n.B %s\n%s\n", roff(substr($0, 3, at - 1)), roff(substr($0, 3 + at + RLENGTH - 1)); next
        }
        { sub(/^ +/, ""); print $0 == "" ? ".PP" : roff($0) }'
}

while IFS= read -r line; do
    if [ "$line" = @VERBS@ ]; then
        for verb in $(verbs); do section "$verb"; done
    else
        printf '%s\n' "$line"
    fi
done <"$frame"
