#!/bin/bash
# Runs PostgreSQL on a loopback port, with its data, its socket and its TLS files in the folder it is started in: postgres.sh PORT.
# The data stay, so that a server that was killed finds them. The superuser is "sluice", its password in PGPASSWORD; the
# certificate is for 127.0.0.1 and localhost, by the authority in ca.crt. POSTGRES_SETTINGS adds "-c name=value" settings,
# POSTGRES_BIN names the programs of another version.
set -euo pipefail
port=$1
bin=${POSTGRES_BIN:-$(echo /usr/lib/postgresql/*/bin | awk '{print $NF}')}
# It refuses to run as root; and its user may not enter the folders of another.
as=()
[ "$(id -u)" != 0 ] ||
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override --pdeathsig=KILL)
if [ ! -e postgres/PG_VERSION ]; then
    mkdir -p postgres
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.crt -days 3650 -subj "/CN=a test's authority" 2>/dev/null
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=localhost 2>/dev/null
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out server.crt \
        -extfile <(echo "subjectAltName=IP:127.0.0.1,DNS:localhost") 2>/dev/null
    printf '%s' "${PGPASSWORD:?}" >password
    chmod 600 server.key
    [ "$(id -u)" != 0 ] || chown -R postgres:postgres postgres server.key server.crt password
    "${as[@]}" "$bin/initdb" -D postgres -U sluice --pwfile=password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-sync >/dev/null
    rm -f password server.csr
fi
socket=$PWD
[ ${#socket} -lt 80 ] || socket=
# Commits live in the system's cache: they survive a killed server, and tests do not wait for a disk.
# shellcheck disable=SC2086
exec "${as[@]}" "$bin/postgres" -D postgres -p "$port" -k "$socket" -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=60 \
    -c ssl=on -c ssl_ca_file="$PWD/ca.crt" -c ssl_cert_file="$PWD/server.crt" -c ssl_key_file="$PWD/server.key" ${POSTGRES_SETTINGS:-}
