#!/bin/bash
# Fetches the sources of the software of others in the zips, at the revisions that were taken: scripts/package/sources.sh ARCHIVE
# FOLDER. Debian's archive keeps the newest revision only; of an older one the address at snapshot.debian.org is printed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
archive=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
settings=$(mktemp -d)
trap 'rm -rf "$settings"' EXIT
use_apt "$settings"
cp -n "$archive"/curl_* "$archive"/postgresql-*_* "$folder/"
bad=0
while read -r source version; do
    (cd "$folder" && apt-get source -qq --download-only "$source=$version") && continue
    echo "package: $source $version: see http://snapshot.debian.org/package/$source/$version/" >&2
    bad=1
done < <(for deb in "$archive"/*_arm64.deb; do
    case $deb in */base-files_* | */linux-libc-dev_*) continue ;; esac # nothing of them is in the zip
    read -r source version < <(dpkg-deb -f "$deb" Source | tr -d '()'; echo)
    echo "${source:-$(dpkg-deb -f "$deb" Package)} ${version:-$(dpkg-deb -f "$deb" Version)}"
done | sort -u)
ls -l "$folder"
exit $bad
