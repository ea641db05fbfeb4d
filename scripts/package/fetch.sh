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

# "name version" of all that is offered: binaries for arm64 (the same revision as for amd64), and curl's source.
mapfile -t names < <(sed -nE '/^(#|src:|$)/d; s/^([^ ]+) .*/\1:arm64/p' "$here/versions.txt")
{
    apt-cache policy "${names[@]}" | awk '/^[^ ]/ {name = $1; sub(/:arm64:$/, "", name)} /Candidate:/ {print name, $2}'
    apt-cache showsrc curl | sed -n 's/^Version: /src:curl /p' | sort -V | tail -n 1
} >"$apt/offered"

packages=()
while read -r name version _; do
    case $name in '#'* | '') continue ;; esac
    offered=$(sed -n "s/^$name //p" "$apt/offered")
    upstream=${offered#*:}
    case $upstream in
    "$version" | "$version"[.+-]*) ;;
    *)
        echo "package: Debian offers $name '$offered', versions.txt says $version: try the new one, then say so there" >&2
        exit 1
        ;;
    esac
    case $name in
    src:*) source=${name#src:}=$offered ;;
    *) packages+=("$name:amd64=$offered" "$name:arm64=$offered") ;;
    esac
    echo "$name $offered" >>"$aside/taken.txt"
done <"$here/versions.txt"

cd "$aside"
apt-get download -qq "${packages[@]}"
apt-get source -qq --download-only "$source"
rm -rf "$apt"
mv "$aside" "$folder"
