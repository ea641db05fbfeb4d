#!/bin/bash
# Unpacks what fetch.sh brought for one architecture and builds the smallest libcurl that does the work (HTTP and TLS),
# libpq with TLS alone (Debian's wants Kerberos and LDAP), and libmicrohttpd without it:
# scripts/package/sysroot.sh x86_64|arm64 ARCHIVE SYSROOT. Debian's own libcurl.a wants 25 other libraries.
set -euo pipefail
case $1 in
x86_64) debian=amd64 triplet=x86_64-linux-gnu protection=-fcf-protection=full ;;
arm64) debian=arm64 triplet=aarch64-linux-gnu protection=-mbranch-protection=standard ;;
*) echo "package: no architecture '$1': x86_64 or arm64" >&2; exit 2 ;;
esac
archive=$(cd "$2" && pwd)
# Made aside and renamed at the end: a folder that exists is whole.
folder=$3
exec 9>"$folder.lock"
flock -w 900 9 || { echo "package: another build holds $folder.lock" >&2; exit 1; }
[ ! -d "$folder" ] || exit 0
sysroot=$folder.new
rm -rf "$sysroot"
mkdir -p "$sysroot/curl"
for package in "$archive"/*_"$debian".deb; do
    dpkg-deb -x "$package" "$sysroot"
    # Which package a file is from, for licenses.sh.
    dpkg-deb -c "$package" | sed -n "s|^[-l].* \./\([^ ]*\).*|$(basename "$package" | cut -d_ -f1) \1|p" >>"$sysroot/files.txt"
done
# Links to /lib/... would lead out of it, and the linker would take libm.a.
find "$sysroot" -type l -lname '/lib/*' | while read -r link; do
    ln -sfr "$sysroot$(readlink "$link")" "$link"
done

cd "$sysroot/curl"
tar -xf "$archive"/curl_*.orig.tar.gz --strip-components=1
tar -xf "$archive"/curl_*.debian.tar.xz
sed '/^#/d; /^$/d' debian/patches/series | while read -r patch; do
    patch -s -p1 <"debian/patches/$patch"
done
# OpenSSL takes 0.6 ms to get ready, and the Runtime API is plain HTTP. OpenSSL gets ready by itself when the first
# SSL_CTX is made, so a start need not wait for it in curl_global_init.
[ "$(grep -c 'OPENSSL_init_ssl(flags, NULL);' lib/vtls/openssl.c)" = 1 ] ||
    { echo "package: curl's lib/vtls/openssl.c has changed: look for OPENSSL_init_ssl again" >&2; exit 1; }
sed -i 's/OPENSSL_init_ssl(flags, NULL);/(void)flags;/' lib/vtls/openssl.c
# A header line is formatted byte by byte, 90 instructions for each; a session token has a thousand. It is copied.
[ "$(grep -c 'Curl_dyn_addf(req, "%s\\r\\n", compare);' lib/http.c)" = 1 ] ||
    { echo "package: curl's lib/http.c has changed: look at how Curl_add_custom_headers adds a line" >&2; exit 1; }
sed -i 's/result = Curl_dyn_addf(req, "%s\\r\\n", compare);/result = Curl_dyn_add(req, compare) ? CURLE_OUT_OF_MEMORY : Curl_dyn_addn(req, "\\r\\n", 2);/' lib/http.c
# Some of Debian's patches touch what configure and the makefiles are generated from, only for flavours that are not
# built here: the generated files are made newer, or make would ask for automake.
touch aclocal.m4
find . -name Makefile.in -o -name configure -o -name curl_config.h.in | xargs touch -d '+1 second'

out="$sysroot/usr/lib/$triplet"
off() { printf -- '--disable-%s ' "$@"; }
without() { printf -- '--without-%s ' "$@"; }
# shellcheck disable=SC2046
./configure -q --host="$triplet" --build="$(./config.guess)" --disable-shared --enable-static --disable-dependency-tracking \
    --with-openssl --enable-threaded-resolver --enable-symbol-hiding \
    $(off ftp file ldap ldaps rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt manual cookies netrc ntlm tls-srp) \
    $(off unix-sockets alt-svc hsts doh mime progress-meter dnsshuffle get-easy-options libcurl-option ares) \
    $(without ca-bundle ca-path zlib zstd brotli nghttp2 libpsl libidn2 librtmp libssh2 libgsasl ngtcp2) \
    CC="$triplet-gcc --sysroot=$sysroot -B$out" CFLAGS="-O2 -fPIC -ffunction-sections -fdata-sections -D_FORTIFY_SOURCE=2 -fstack-protector-strong $protection" \
    >configure.log 2>&1 || { tail -n 20 configure.log >&2; exit 1; }
make -s -C lib libcurl.la >make.log 2>&1 || { tail -n 20 make.log >&2; exit 1; }
cp lib/.libs/libcurl.a "$out/"
cp -r include/curl "$sysroot/usr/include/"
mkdir -p "$sysroot/usr/share/doc/curl"
cp debian/copyright "$sysroot/usr/share/doc/curl/"
echo "curl usr/lib/$triplet/libcurl.a" >>"$sysroot/files.txt"
rm -rf "$sysroot/curl"

mkdir "$sysroot/libpq"
cd "$sysroot/libpq"
tar -xf "$archive"/postgresql-15_*.orig.tar.bz2 --strip-components=1
tar -xf "$archive"/postgresql-15_*.debian.tar.xz debian/copyright
./configure -q --host="$triplet" --build="$(sh config/config.guess)" --without-readline --without-zlib --with-openssl \
    CC="$triplet-gcc --sysroot=$sysroot -B$out" CFLAGS="-O2 -fPIC -ffunction-sections -fdata-sections -D_FORTIFY_SOURCE=2 -fstack-protector-strong $protection" \
    >configure.log 2>&1 || { tail -n 20 configure.log >&2; exit 1; }
for part in src/backend:generated-headers src/interfaces/libpq:libpq.a src/common:libpgcommon_shlib.a src/port:libpgport_shlib.a; do
    make -s -C "${part%:*}" "${part#*:}" >make.log 2>&1 || { tail -n 20 make.log >&2; exit 1; }
done
mkdir -p "$sysroot/usr/include/postgresql" "$sysroot/usr/share/doc/postgresql-15"
cp src/interfaces/libpq/libpq-fe.h src/include/postgres_ext.h src/include/pg_config_ext.h "$sysroot/usr/include/postgresql/"
cp debian/copyright "$sysroot/usr/share/doc/postgresql-15/"
for library in src/interfaces/libpq/libpq.a src/common/libpgcommon_shlib.a src/port/libpgport_shlib.a; do
    cp "$library" "$out/"
    echo "postgresql-15 usr/lib/$triplet/${library##*/}" >>"$sysroot/files.txt"
done
rm -rf "$sysroot/libpq"

# The command's metrics and readiness, in plain HTTP (Debian's wants GnuTLS).
mkdir "$sysroot/microhttpd"
cd "$sysroot/microhttpd"
tar -xf "$archive"/libmicrohttpd_*.orig.tar.xz --strip-components=1
tar -xf "$archive"/libmicrohttpd_*.debian.tar.xz debian/copyright
# shellcheck disable=SC2046
./configure -q --host="$triplet" --build="$(sh build-aux/config.guess)" --disable-shared --enable-static --disable-dependency-tracking \
    $(off https doc examples curl postprocessor bauth dauth) \
    CC="$triplet-gcc --sysroot=$sysroot -B$out" CFLAGS="-O2 -fPIC -ffunction-sections -fdata-sections -D_FORTIFY_SOURCE=2 -fstack-protector-strong $protection" \
    >configure.log 2>&1 || { tail -n 20 configure.log >&2; exit 1; }
make -s -C src/microhttpd libmicrohttpd.la >make.log 2>&1 || { tail -n 20 make.log >&2; exit 1; }
cp src/microhttpd/.libs/libmicrohttpd.a "$out/"
cp src/include/microhttpd.h "$sysroot/usr/include/"
mkdir -p "$sysroot/usr/share/doc/libmicrohttpd"
cp debian/copyright "$sysroot/usr/share/doc/libmicrohttpd/"
echo "libmicrohttpd usr/lib/$triplet/libmicrohttpd.a" >>"$sysroot/files.txt"
rm -rf "$sysroot/microhttpd"
mv "$sysroot" "$folder"
