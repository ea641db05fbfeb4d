#!/bin/bash
# Downloads what versions.txt names, for both architectures, into a folder: scripts/package/fetch.sh FOLDER.
# By apt with its signatures, see apt.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
. "$here/apt.sh"

# Made aside and renamed at the end: a folder that exists is whole.
aside=$folder.new
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock -w 900 9 || { echo "package: another fetch holds $folder.lock" >&2; exit 1; }
[ ! -d "$folder" ] || exit 0
rm -rf "$aside"
mkdir -p "$aside"
aside=$(cd "$aside" && pwd)
apt=$aside/apt
use_apt "$apt"

# "name version" of all that is offered: binaries for arm64 (the same revision as for amd64), and sources.
mapfile -t names < <(sed -nE '/^(#|src:|$)/d; s/^([^ ]+) .*/\1:arm64/p' "$here/versions.txt")
{
    apt-cache policy "${names[@]}" | awk '/^[^ ]/ {name = $1; sub(/:arm64:$/, "", name)} /Candidate:/ {print name, $2}'
    sed -n 's/^src:\([^ ]*\) .*/\1/p' "$here/versions.txt" | while read -r name; do
        apt-cache showsrc "$name" | sed -n "s/^Version: /src:$name /p" | sort -Vr
    done
} >"$apt/offered"

packages=()
while read -r name version _; do
    case $name in '#'* | '') continue ;; esac
    offered=$(sed -n "s/^$name //p" "$apt/offered" | head -n 1)
    upstream=${offered#*:}
    case $upstream in
    "$version" | "$version"[.+-]*) ;;
    *)
        echo "package: Debian offers $name '$offered', versions.txt says $version: try the new one, then say so there" >&2
        exit 1
        ;;
    esac
    case $name in
    src:*) continue ;;
    *) packages+=("$name:amd64=$offered" "$name:arm64=$offered") ;;
    esac
    echo "$name $offered" >>"$aside/taken.txt"
done <"$here/versions.txt"

cd "$aside"
apt-get download -qq "${packages[@]}"
# (A mirror may offer a source that it does not have yet.)
sed -n 's/^src:\([^ ]*\) .*/\1/p' "$here/versions.txt" | while read -r name; do
    for version in $(sed -n "s/^src:$name //p" "$apt/offered"); do
        apt-get source -qq --download-only "$name=$version" || continue
        echo "src:$name $version" >>taken.txt
        continue 2
    done
    echo "package: no source of $name can be fetched" >&2
    exit 1
done
rm -rf "$apt"
mv "$aside" "$folder"
