#!/bin/bash
# Figures of the package: what the zips weigh, and how long bootstrap takes from its start to the first `next`, unpacked in a
# root that holds nothing else, with the shipped configuration loaded. One JSON line a figure.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s package >/dev/null
for architecture in x86_64 arm64; do
    printf '{"figure":"zip for %s","value":%.2f,"unit":"MB"}\n' \
        "$architecture" "$(stat -c %s "build/sluice-$architecture.zip" | awk '{print $1 / 1e6}')"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/var/task" "$work/root/tmp"
python3 -m zipfile -e "build/sluice-$(uname -m | sed s/aarch64/arm64/).zip" "$work/root/var/task"
chmod +x "$work/root/var/task/bootstrap" "$work"/root/var/task/lib/*
echo 'int main(void) { return 0; }' | ${CC:-cc} -O2 -x c -o "$work/empty" -
${CC:-cc} -O2 -D_GNU_SOURCE -o "$work/start_time" bench/start_time.c
chroot=()
[ "$(id -u)" = 0 ] || chroot=(unshare -r)
"${chroot[@]}" "$work/start_time" "$work/root" "$work/empty"
