# For scripts that install something of others, once: `cached NAME WHAT FILL` sets `home` to the folder NAME below ~/.cache/sluice, which
# all clones share. If it is not there, `FILL FOLDER` makes it aside: a folder that exists is whole. FILL ends the script by `fail`.
fail() { echo "install: $*" >&2; exit 1; }
cached() {
    home=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/$1
    mkdir -p "${home%/*}"
    exec 9>"$home.lock"
    flock -w 900 9 || fail "another install holds $home.lock; wait for it and try again"
    if [ ! -d "$home" ]; then
        echo "install: $2" >&2
        rm -rf "$home.new" && mkdir -p "$home.new"
        "$3" "$home.new"
        mv "$home.new" "$home"
    fi
    exec 9>&-
}
