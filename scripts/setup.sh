#!/bin/bash
# Installs what the named sets need: scripts/setup.sh build [run] [demo] [check] [fuzz] [ruler] [bench] [package] [release] [cxx].
# On Debian 12 by apt, with sudo unless root; what is installed already is not touched, and a second run needs no
# network. On another system it names what is missing and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A packages=(
    [build]="gcc make pkg-config libc6-dev libcurl4-openssl-dev libssl-dev libjansson-dev zlib1g-dev libgmp-dev libsqlite3-dev libpq-dev libmicrohttpd-dev libdeflate-dev"
    [run]=""
    [check]="lintian debootstrap gcovr gcc-aarch64-linux-gnu g++-aarch64-linux-gnu git libc6-dev-arm64-cross libcmocka-dev clang libclang-rt-14-dev g++ python3 python3-venv sqlite3 curl openssl qemu-user-static unzip maven openjdk-17-jdk-headless chromium-headless-shell skopeo systemd postgresql-15 pgbouncer"
    [demo]="maven openjdk-17-jre-headless python3 sqlite3"
    [ruler]="maven openjdk-17-jdk-headless"
    [fuzz]="clang libclang-rt-14-dev"
    [package]="gcc gcc-aarch64-linux-gnu make zip unzip patch perl bzip2 xz-utils bsdextrautils debian-archive-keyring"
    [release]="python3 python3-venv ca-certificates git"
    [cxx]="g++ g++-aarch64-linux-gnu"
    [bench]="g++ libsimdjson-dev"
)

# A rustup toolchain serves as well as Debian's.
command -v rustc >/dev/null || packages[check]+=" rustc"
# So does any Node with npm: it fetches one file.
command -v npm >/dev/null || { packages[check]+=" npm"; packages[release]+=" npm"; }

missing=()
for set in "$@"; do
    for package in ${packages[$set]-}; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
done
if ((${#missing[@]})); then
    if ! command -v apt-get >/dev/null || ! grep -q '^VERSION_ID="12"' /etc/os-release; then
        echo "setup: this is not Debian 12; install the equivalents of: ${missing[*]}, then run make again" >&2
        exit 1
    fi
    sudo=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { echo "setup: neither root nor sudo; run as root: apt-get install ${missing[*]}" >&2; exit 1; }
        sudo=(sudo)
    fi
    echo "setup: installing ${missing[*]}" >&2
    "${sudo[@]}" apt-get update -qq
    # Debian starts the servers that it installs. Ours are started by the tests; nothing is to run here because of them.
    policy=/usr/sbin/policy-rc.d
    [ -e "$policy" ] && policy= || printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
    [ -z "$policy" ] || { "${sudo[@]}" chmod 755 "$policy" && trap '"${sudo[@]}" rm -f "$policy"' EXIT; }
    had_cluster=$([ -e /etc/postgresql/15/main ] && echo yes || true)
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    case " ${missing[*]} " in
    *" postgresql-15 "*) [ -n "$had_cluster" ] || "${sudo[@]}" pg_dropcluster 15 main >/dev/null 2>&1 || true ;;
    esac
    case " ${missing[*]} " in
    *" pgbouncer "*) "${sudo[@]}" update-rc.d pgbouncer disable >/dev/null 2>&1 || true ;;
    esac
fi

# The servers that the tests talk to, AWS's SAM, and axe-core: from Maven Central, PyPI and npm, pinned, once.
case " $* " in
*" demo "*) tests/services/install.sh dynamodb ;;
esac
case " $* " in
*" check "*) tests/services/install.sh && tests/package/install.sh >/dev/null && tests/package/tools/install.sh >/dev/null && tests/cli/install.sh >/dev/null &&
    tests/support/python/install.sh >/dev/null ;;
esac

# Without it, the benchmarks leave out its figures, and say so.
case " $* " in
*" bench "*) command -v npm >/dev/null && bench/aws_sdk/install.sh >/dev/null || true ;;
esac
