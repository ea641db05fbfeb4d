#!/bin/bash
# What action.yml runs: takes a release, checks a configuration with it, and runs its cases. In the environment: action.yml's inputs.
set -euo pipefail
case $VERSION in *[!0-9A-Za-z.+~-]* | "") echo "::error::version '$VERSION' is none: 0.9.0, say" && exit 2 ;; esac
case $WARNINGS in fail | allow) ;; *) echo "::error::warnings is fail or allow, not '$WARNINGS'" && exit 2 ;; esac
home=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/sluice-XXXXXX")
trap 'rm -rf "$home"' EXIT
name=sluice-$VERSION-linux-$(uname -m)
for file in "$name.tar.gz" SHA256SUMS; do
    curl -fsSL --retry 3 -o "$home/$file" "$RELEASES/v$VERSION/$file" || { echo "::error::$RELEASES/v$VERSION has no $file" && exit 2; }
done
(cd "$home" && grep -F "  $name.tar.gz" SHA256SUMS | sha256sum --quiet -c -) || { echo "::error::$name.tar.gz differs from its SHA256SUMS" && exit 2; }
tar -xzf "$home/$name.tar.gz" -C "$home"
sluice=$home/$name/bin/sluice

status=0
# One annotation for each finding, at the configuration.
"$sluice" check ${SAMPLE:+--sample "$SAMPLE"} "$CONFIG" >"$home/said" 2>"$home/wrong" || status=$?
cat "$home/said"
awk '/^warning: / { print "::warning file=" ENVIRON["CONFIG"] "::" substr($0, 10) } /^note: / { print "::notice file=" ENVIRON["CONFIG"] "::" substr($0, 7) }' "$home/said"
if [ "$status" -gt 1 ]; then
    awk '{ print "::error file=" ENVIRON["CONFIG"] "::" $0 }' "$home/wrong"
    exit "$status"
fi
[ "$WARNINGS" = fail ] || status=0
if [ -n "$CASES" ]; then
    # (Several, with spaces between them.)
    # shellcheck disable=SC2086
    "$sluice" test --config "$CONFIG" ${JUNIT:+--junit "$JUNIT"} $CASES || status=$?
fi
exit "$status"
