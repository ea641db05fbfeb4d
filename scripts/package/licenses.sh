#!/bin/bash
# What a zip says about the software of others in it: scripts/package/licenses.sh ARCH ARCHIVE SYSROOT MAP STAGE. STAGE has lib/
# already; it gets LICENSE, NOTICE, licenses/ (Debian's copyright files, and the licenses that they name) and sbom.cdx.json
# (CycloneDX 1.5). MAP is the linker's: every archive that bootstrap was made of must be a known package's, or this fails.
# The SBOM's time is SOURCE_DATE_EPOCH, or that of the files in the zip; VERSION is ours.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
arch=$1 archive=$2 sysroot=$3 map=$4 stage=$5
fail() { echo "package: licenses: $*" >&2; exit 1; }
case $arch in
x86_64) debian=amd64 ;;
arm64) debian=arm64 ;;
*) fail "no architecture '$arch'" ;;
esac

# The package of a file: what Debian's packages list, with /lib and /usr/lib as one.
declare -A package_of
while read -r package path; do
    path=${path#usr/}
    package_of[${path##*/}]=$package
done <"$sysroot/files.txt"

# Everything that the linker took, and what lies in lib/. What is the compiler's own (its start files and libgcc.a) is of the
# source of libgcc-s1.
declare -A packages
while read -r file; do
    case $file in
    build/package/*/obj/* | 'linker stubs') continue ;;
    */gcc-cross/* | */lib/gcc/*) package=libgcc-s1 ;;
    *) package=${package_of[${file##*/}]-} ;;
    esac
    [ -n "$package" ] || fail "$file: nobody knows which package it is from; see scripts/package/versions.txt"
    packages[$package]=1
done < <(sed -n 's/^LOAD //p' "$map"; ls "$stage/lib")

install -m 644 "$here/../../LICENSE" "$here/../../NOTICE" "$stage/"
mkdir -p "$stage/licenses"
mapfile -t names < <(printf '%s\n' "${!packages[@]}" | LC_ALL=C sort)
for name in "${names[@]}"; do
    [ -r "$sysroot/usr/share/doc/$name/copyright" ] || fail "$name has no copyright file"
    install -m 644 "$sysroot/usr/share/doc/$name/copyright" "$stage/licenses/$name.copyright"
done
# (A full stop may follow a license's name.)
while read -r text; do
    [ -r "$sysroot/usr/share/common-licenses/$text" ] || fail "there is no text of the license $text"
    install -m 644 "$sysroot/usr/share/common-licenses/$text" "$stage/licenses/$text"
done < <(sed -n 's|.*/usr/share/common-licenses/\([A-Za-z0-9.-]*[A-Za-z0-9]\).*|\1|p' "$stage"/licenses/*.copyright | LC_ALL=C sort -u)

escape() { sed 's/%/%25/g; s/+/%2B/g; s/:/%3A/g' <<<"$1"; }
component() { # NAME: as a component of the SBOM
    local name=$1 known=$1 kind=deb license revision file source
    [ "$name" = curl ] && known=src:curl
    license=$(sed -nE "s/^$known +[^ ]+ +(.*)/\1/p" "$here/versions.txt")
    revision=$(sed -n "s/^$known //p" "$archive/taken.txt")
    [ -n "$license" ] && [ -n "$revision" ] || fail "$name: versions.txt does not have its license, or taken.txt its revision"
    if [ "$name" = curl ]; then
        file=$(ls "$archive"/curl_*.orig.tar.gz) source=curl qualifiers="arch=source"
    else
        file=$(ls "$archive/${name}_"*"_$debian.deb") source=$(dpkg-deb -f "$file" Source) qualifiers="arch=$debian"
        source=${source%% *}
    fi
    printf '{"type":"library","bom-ref":"%s","name":"%s","version":"%s","licenses":[{"expression":"%s"}],"hashes":[{"alg":"SHA-256","content":"%s"}],' \
        "$name" "$name" "$revision" "$license" "$(sha256sum "$file" | cut -d' ' -f1)"
    printf '"purl":"pkg:%s/debian/%s@%s?%s&distro=bookworm","properties":[{"name":"debian:source","value":"%s"}]}' \
        "$kind" "$name" "$(escape "$revision")" "$qualifiers" "${source:-$name}"
}
{
    printf '{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"metadata":{"timestamp":"%s",' \
        "$(date -u -d "@${SOURCE_DATE_EPOCH:-315532800}" +%Y-%m-%dT%H:%M:%SZ)"
    printf '"component":{"type":"application","bom-ref":"sluice","name":"sluice","version":"%s","licenses":[{"expression":"Apache-2.0"}]}},"components":[\n' "$VERSION"
    for i in "${!names[@]}"; do
        [ "$i" = 0 ] || printf ',\n'
        component "${names[$i]}"
    done
    printf '\n]}\n'
} >"$stage/sbom.cdx.json"
chmod 644 "$stage/sbom.cdx.json"
