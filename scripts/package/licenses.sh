#!/bin/bash
# What a zip says about the software of others in it: scripts/package/licenses.sh ARCH ARCHIVE SYSROOT MAP STAGE TAKEN. STAGE has
# lib/ already; it gets LICENSE, NOTICE, licenses/ (Debian's copyright files, and the licenses that they name) and sbom.cdx.json
# (CycloneDX 1.5). MAP is the linker's: every archive that bootstrap was made of must be a known package's, or this fails. TAKEN is
# what plugins.sh made: the plugins' maps, and the libraries and licenses that the deployed folder brings.
# The SBOM's time is SOURCE_DATE_EPOCH, or that of the files in the zip; VERSION and COMMIT are ours.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
arch=$1 archive=$2 sysroot=$3 map=$4 stage=$5 taken=$6
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
# source of libgcc-s1. A library that the deployed folder brings is a part by its file's name.
declare -A packages brought
while read -r file; do
    name=${file##*/}
    if [[ $file != /* && -f $taken/lib/$name && -z ${package_of[$name]-} ]]; then
        brought[$name]=$taken/lib/$name
        continue
    fi
    case $file in
    build/package/*/obj/* | 'linker stubs') continue ;;
    */libstdc++.a) package=libstdc++-12-dev ;;
    */gcc-cross/* | */lib/gcc/*) package=libgcc-s1 ;;
    *) package=${package_of[$name]-} ;;
    esac
    [ -n "$package" ] || fail "$file: nobody knows which package it is from; see scripts/package/versions.txt"
    packages[$package]=1
done < <(sed -n 's/^LOAD //p' "$map"; cat "$taken/linked.txt"; ls "$stage/lib")
for file in "$taken"/archives/*.a; do [ ! -e "$file" ] || brought[${file##*/}]=$file; done

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

for file in "$taken"/licenses/*; do
    [ -e "$file" ] || continue
    cmp -s "$file" "$stage/licenses/${file##*/}" || [ ! -e "$stage/licenses/${file##*/}" ] || fail "${file##*/} is the name of a license in the zip: rename it"
    install -m 644 "$file" "$stage/licenses/"
done

escape() { sed 's/%/%25/g; s/+/%2B/g; s/:/%3A/g' <<<"$1"; }
component() { # NAME: as a component of the SBOM
    local name=$1 known=$1 kind=deb license revision file source
    ! grep -q "^src:$name " "$here/versions.txt" || known=src:$name
    license=$(sed -n "s/^$known  *[^ ]*  *\(.*\)/\1/p" "$here/versions.txt")
    revision=$(sed -n "s/^$known //p" "$archive/taken.txt")
    [ -n "$license" ] && [ -n "$revision" ] || fail "$name: versions.txt does not have its license, or taken.txt its revision"
    if [ "$known" != "$name" ]; then
        file=$(ls "$archive/${name}_"*.orig.tar.*[2z]) source=$name qualifiers="arch=source"
    else
        file=$(ls "$archive/${name}_"*"_$debian.deb") source=$(dpkg-deb -f "$file" Source) qualifiers="arch=$debian"
        source=${source%% *}
    fi
    printf '{"type":"library","bom-ref":"%s","name":"%s","version":"%s","licenses":[{"expression":"%s"}],"hashes":[{"alg":"SHA-256","content":"%s"}],' \
        "$name" "$name" "$revision" "$license" "$(sha256sum "$file" | cut -d' ' -f1)"
    printf '"purl":"pkg:%s/debian/%s@%s?%s&distro=bookworm","properties":[{"name":"debian:source","value":"%s"}]}' \
        "$kind" "$(escape "$name")" "$(escape "$revision")" "$qualifiers" "${source:-$name}"
}
brought_component() { # FILE NAME: a library of the deployed folder. Its license says what it is in a line of SPDX's, or is named.
    local base=${2%%.so*} text license
    base=${base%.a}
    text=$(cd "$taken/licenses" && ls -d "$base" "$base".* 2>/dev/null | head -n 1)
    license=$(sed -nE 's/.*SPDX-[L]icense-Identifier: *([A-Za-z0-9.()+ -]*[A-Za-z0-9)+]).*/\1/p' "$taken/licenses/$text" | head -n 1)
    if [ -n "$license" ]; then license="\"expression\":\"$license\""; else license="\"license\":{\"name\":\"see licenses/$text\"}"; fi
    printf '{"type":"library","bom-ref":"%s","name":"%s","licenses":[{%s}],"hashes":[{"alg":"SHA-256","content":"%s"}],' \
        "$2" "$base" "$license" "$(sha256sum "$1" | cut -d' ' -f1)"
    printf '"properties":[{"name":"sluice:file","value":"%s"}]}' "$2"
}
{
    printf '{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"metadata":{"timestamp":"%s",' \
        "$(date -u -d "@${SOURCE_DATE_EPOCH:-315532800}" +%Y-%m-%dT%H:%M:%SZ)"
    printf '"component":{"type":"application","bom-ref":"sluice","name":"sluice","version":"%s","licenses":[{"expression":"Apache-2.0"}],"properties":[{"name":"sluice:commit","value":"%s"}]}},"components":[\n' "$VERSION" "$COMMIT"
    for i in "${!names[@]}"; do
        [ "$i" = 0 ] || printf ',\n'
        component "${names[$i]}"
    done
    while read -r name; do
        [ -z "$name" ] || printf ',\n%s' "$(brought_component "${brought[$name]}" "$name")"
    done < <(printf '%s\n' "${!brought[@]}" | LC_ALL=C sort)
    printf '\n]}\n'
} >"$stage/sbom.cdx.json"
chmod 644 "$stage/sbom.cdx.json"
