#!/bin/bash
# Makes a container image of `sluice`, without a daemon and without privileges: scripts/image.sh ROOT OUT. ROOT is what `make
# install PREFIX=/usr DESTDIR=ROOT` made; OUT becomes an OCI image layout in a tar file (image-spec 1.0), for `podman load`,
# `docker load` (25 or later) and `skopeo copy oci-archive:OUT docker://...`.
#
# The first layer has the libraries that the programs need, from this machine's Debian, with their licenses, and the CA
# certificates; the second is ours. There is no shell. The same files make the same bytes.
set -euo pipefail
root=$1 out=$2
uid=65532 # as in other images without root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "image: $*" >&2; exit 1; }
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) fail "$(uname -m) is not known; build on x86_64 or aarch64" ;;
esac

# ---- the first layer ----

base=$work/base ours=$work/ours
mkdir -p "$base"/{usr/bin,usr/lib,usr/lib64,etc/ssl/certs,usr/share/doc} "$base/tmp"
ln -s usr/lib "$base/lib"
ln -s usr/lib64 "$base/lib64"
ln -s usr/bin "$base/bin"

# The path as the loader looks for it, in /usr.
place_of() { case $1 in /usr/*) echo "$1" ;; *) echo "/usr$1" ;; esac; }

programs=("$root"/usr/lib/sluice/{sluice,bootstrap})
mapfile -t libraries < <(for program in "${programs[@]}"; do ldd "$program"; done | grep -oE '/[^ ]+\.so[^ ]*' | sort -u)
# glibc loads this one by itself, when a thread is cancelled.
for library in "${libraries[@]}"; do case $library in */libc.so.6) libraries+=("${library%/*}/libgcc_s.so.1") && break ;; esac; done
[ "${#libraries[@]}" -gt 2 ] || fail "ldd names no libraries of ${programs[0]}"
# Debian knows a library by its path in / or in /usr, or the file that it is a link to.
declare -A packages=() owners=()
while IFS=' ' read -r package path; do
    owners[$path]=${package%%:*}
done < <(for library in "${libraries[@]}"; do echo "$library"; place_of "$library"; readlink -f "$library"; readlink -f "$library" | sed 's|^/usr||'; done |
    sort -u | xargs dpkg -S 2>/dev/null)
for library in "${libraries[@]}"; do
    install -D -m 755 "$library" "$base$(place_of "$library")"
    real=$(readlink -f "$library")
    package=${owners[$library]:-${owners[$(place_of "$library")]:-${owners[$real]:-${owners[${real#/usr}]:-}}}}
    [ "$package" ] || fail "no Debian package has $library"
    packages[$package]=1
done
packages[ca-certificates]=1
install -m 644 /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/"
for package in "${!packages[@]}"; do
    install -D -m 644 "/usr/share/doc/$package/copyright" "$base/usr/share/doc/$package/copyright"
done
# The texts that those files point to.
mkdir -p "$base/usr/share/common-licenses"
grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9+]' "$base/usr/share/doc" | sort -u | while read -r text; do
    [ -f "$text" ] && cp -L "$text" "$base$text"
done
dpkg-query -W -f '${Package} ${Version} ${source:Package} ${source:Version}\n' "${!packages[@]}" | LC_ALL=C sort >"$base/usr/share/doc/packages.txt"
printf 'root:x:0:0:root:/:/sbin/nologin\nsluice:x:%s:%s:sluice:/data:/sbin/nologin\n' $uid $uid >"$base/etc/passwd"
printf 'root:x:0:\nsluice:x:%s:\n' $uid >"$base/etc/group"
echo "hosts: files dns" >"$base/etc/nsswitch.conf"

# ---- the second layer ----

mkdir -p "$ours/usr/lib/sluice/handlers" "$ours/usr/bin" "$ours/data"
install -m 755 "${programs[@]}" "$ours/usr/lib/sluice/"
ln -s ../lib/sluice/sluice "$ours/usr/bin/sluice"

# ---- the layout ----

blobs=$work/layout/blobs/sha256
mkdir -p "$blobs"
sum() { sha256sum "$1" | cut -d' ' -f1; }
pack() { tar -C "$1" --sort=name --format=gnu --mtime=@0 --numeric-owner --owner="$3" --group="$3" -cf "$2" --no-recursion "${@:4}"; }

# Adds a blob; prints its descriptor.
add_blob() {
    local digest
    digest=$(sum "$1")
    mv "$1" "$blobs/$digest"
    printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s}' "$2" "$digest" "$(stat -c %s "$blobs/$digest")"
}

add_layer() { # FOLDER: sets `diff` and `layer`
    local file=$work/layer.tar
    mapfile -t names < <(cd "$1" && find . -mindepth 1 ! -path './data' ! -path './tmp' -printf '%P\n' | LC_ALL=C sort)
    chmod -R u=rwX,go=rX "$1"
    pack "$1" "$file" 0 "${names[@]}"
    if [ -d "$1/data" ]; then
        pack "$1" "$work/data.tar" $uid data
        tar -Af "$file" "$work/data.tar"
    fi
    if [ -d "$1/tmp" ]; then
        chmod 1777 "$1/tmp"
        pack "$1" "$work/data.tar" 0 tmp
        tar -Af "$file" "$work/data.tar"
    fi
    diff=sha256:$(sum "$file")
    gzip -n -6 "$file"
    layer=$(add_blob "$file.gz" layer.v1.tar+gzip)
}

version=$(grep -oE '^[0-9][0-9A-Za-z.+-]*' VERSION)
add_layer "$base" && base_diff=$diff base_layer=$layer
add_layer "$ours" && ours_diff=$diff ours_layer=$layer
labels='"org.opencontainers.image.title":"sluice","org.opencontainers.image.version":"'$version'"'
cat >"$work/config" <<END
{"created":"1970-01-01T00:00:00Z","architecture":"$arch","os":"linux","config":{"User":"$uid:$uid","WorkingDir":"/data",\
"Env":["PATH=/usr/bin","AWS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt"],"Entrypoint":["/usr/bin/sluice"],"Cmd":["--help"],\
"Volumes":{"/data":{}},"ExposedPorts":{"9464/tcp":{}},"StopSignal":"SIGTERM","Labels":{$labels}},\
"rootfs":{"type":"layers","diff_ids":["$base_diff","$ours_diff"]}}
END
config=$(add_blob "$work/config" config.v1+json)
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s,%s]}' \
    "$config" "$base_layer" "$ours_layer" >"$work/manifest"
manifest=$(add_blob "$work/manifest" manifest.v1+json)
printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"sluice:%s"}}]}' \
    "${manifest%\}}" "$version" >"$work/layout/index.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
mkdir -p "$(dirname "$out")"
pack "$work/layout" "$out" 0 blobs blobs/sha256 $(cd "$work/layout" && find blobs/sha256 -type f | LC_ALL=C sort) index.json oci-layout
echo "image: $out: sluice:$version for $arch, $(($(stat -c %s "$out") / 1024 / 1024)) MB"
