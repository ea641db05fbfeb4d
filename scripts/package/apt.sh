# For fetch.sh, sources.sh and the tests: `use_apt FOLDER` makes apt settings of our own in FOLDER, and reads Debian's lists. It needs no
# root, and this machine's package sources and architectures stay as they are. DEBIAN_MIRROR names another mirror, SUITE another Debian.
use_apt() {
    local apt=$1 mirror=${DEBIAN_MIRROR:-http://deb.debian.org} suite=${SUITE:-bookworm} type
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -r "$keys" ] || { echo "package: no $keys; install debian-archive-keyring" >&2; exit 1; }
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    for type in deb deb-src; do
        echo "$type [signed-by=$keys] $mirror/debian $suite main"
        echo "$type [signed-by=$keys] $mirror/debian-security $suite-security main"
    done >"$apt/sources.list"
    cat >"$apt/apt.conf" <<EOF
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Update::Error-Mode "any";
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
EOF
    export APT_CONFIG=$apt/apt.conf
    apt-get update -qq
}
