#!/bin/bash
# What a user's folder brings into the zip: scripts/package/plugins.sh OUT. OUT gets handlers/ (plugins), lib/ (libraries that they
# need), licenses/, the configurations, and maps/ (what each plugin was linked from, for licenses.sh). It is made anew each time and
# changes only if a file in it would; what cannot work in Lambda is refused here, with the file or the route that it is about.
#
# From the environment: ARCH, TRIPLET, SYSROOT, DEPLOY (the folder), INCLUDE (of <sluice/handler.h>), BOOTSTRAP, ROUTES (the program
# made of routes.c), BUNDLED (what is in lib/ anyway), SPARES (what is if it is needed) and SPARE (it is), CC, CXX, HARDEN (flags),
# PLUGIN_CFLAGS, PLUGIN_LIBS, and FROM_LAYER: handlers and libraries that a Lambda layer brings.
set -euo pipefail
export LC_ALL=C
top=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
FROM_LAYER=${FROM_LAYER-}
# The make that calls this has variables of its own, which the plugins' Makefile would take.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
fail() { echo "package: $*" >&2; exit 1; }

[ -d "$DEPLOY" ] || fail "DEPLOY=$DEPLOY is not a folder; a relative path begins at $top"
deploy=$(cd "$DEPLOY" && pwd)
[[ $deploy != *[\'\"\$\#\\]* ]] || fail "$deploy: make cannot be given a folder with a quote, \$, # or \\ in its name: rename it"
shopt -s nullglob
mapfile -t builtins < <(grep -o 'sl_[a-z]*_handler' "$top/handlers/pipeline/builtins.c" | sed 's/sl_\(.*\)_handler/\1/' | sort -u)
case $ARCH in x86_64) machine='Advanced Micro Devices X86-64' ;; arm64) machine=AArch64 ;; esac

mkdir -p "$(dirname "$out")"
exec 8>"$out.lock"
flock -w 900 8 || fail "another build holds $out.lock"
new=$out.new
rm -rf "$new"
mkdir -p "$new"/{handlers,lib,archives,licenses,config}
new=$(cd "$new" && pwd)

is_in() { # WORD WORDS...
    local word=$1 other
    shift
    for other in "$@"; do [ "$word" != "$other" ] || return 0; done
    return 1
}

# ---- sources ----

declare -A made_of=() # a plugin's name: its file

take_name() { # FILE: a plugin's source or .so, whose name becomes the handler's
    local file=$1 name
    name=${file##*/} name=${name%.*}
    [[ $name =~ ^[A-Za-z0-9_-]{1,64}$ ]] || fail "$file: a handler's name has letters, digits, '_' and '-', 64 at most: rename the file"
    ! is_in "$name" "${builtins[@]}" || fail "$file: $name is a built-in handler, and those come before plugins: rename the file"
    [ -z "${made_of[$name]-}" ] || fail "$file and ${made_of[$name]} would both be handlers/$name.so: remove one of them"
    made_of[$name]=$file
}

build() { # FOLDER WHAT...: the plugins whose sources are there; WHAT the plugins' Makefile takes besides
    local folder=$1 file own flags status=0
    shift
    for file in "$folder"/*.{cpp,cxx,cp,C,c++}; do fail "$file: rename it to .cc, the suffix of a plugin in C++"; done
    for file in "$folder"/*.{c,cc}; do take_name "$file"; done
    for own in "$folder"/*/; do # NAME/NAME.c, unless there is a NAME.c beside the folder
        own=$(basename "$own")
        [ -z "${made_of[$own]-}" ] || continue
        for file in "$folder/$own/$own".{c,cc}; do [ ! -e "$file" ] || take_name "$file"; done
    done
    # A compiler of C++ for another machine is large, and few need it: it is a set of its own.
    for file in "$folder"/*.cc "$folder"/*/*.cc; do
        "$top/scripts/setup.sh" cxx || fail "$file: there is no C++ compiler for $ARCH"
        break
    done
    flags="$HARDEN -Wno-error -ffile-prefix-map='$deploy'=. -ffile-prefix-map=$SYSROOT=/sysroot -ffile-prefix-map=$INCLUDE=include"
    make -s --no-print-directory -j2 -C "$folder" "$@" -f "$top/examples/skeleton/Makefile" CC="$CC" CXX="$CXX" OUT="$new/handlers" \
        CFLAGS="$flags" CXXFLAGS="$flags -nostdinc++ -isystem $SYSROOT/usr/include/c++/12 -isystem $SYSROOT/usr/include/$TRIPLET/c++/12" \
        LDFLAGS="-Wl,-z,relro,-z,now,-z,noexecstack,--as-needed -s -Wl,-Map=\$@.map -L'$deploy/lib/$ARCH' -L$SYSROOT/usr/lib/gcc/$TRIPLET/12" \
        ${PLUGIN_CFLAGS:+PLUGIN_CFLAGS="$PLUGIN_CFLAGS"} ${PLUGIN_LIBS:+PLUGIN_LIBS="$PLUGIN_LIBS"} >"$out.log" 2>&1 || status=$?
    grep -v '^make: ' "$out.log" >&2 || true
    [ $status = 0 ] || ! grep -q 'cannot find -l' "$out.log" || fail "$folder: a library of PLUGIN_LIBS is looked for in $DEPLOY/lib/$ARCH/," \
        "and in glibc, for $ARCH: put it there, as .so or .a, and its license into $DEPLOY/licenses/"
    [ $status = 0 ] || fail "$folder: a plugin does not build for $ARCH; what the compiler says is above"
}

# ---- what a plugin needs ----

needed() { readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'; }

check_machine() { # FILE
    local said
    said=$(readelf -h "$1" 2>/dev/null | sed -nE 's/^ *Machine: *//p') || true
    [ -n "$said" ] || fail "$1 is not an ELF file; it should be a library for $ARCH"
    [ "$said" = "$machine" ] || fail "$1 is built for $said, this zip is for $ARCH: build it for $ARCH"
}

license_of() { # FILE: a library of DEPLOY, whose license has to be there
    local base=${1##*/} found
    base=${base%%.so*} base=${base%.a}
    for found in "$deploy/licenses/$base" "$deploy/licenses/$base".*; do [ -f "$found" ] && return; done
    fail "$1 goes into the zip, and its license is not there: put its text into $DEPLOY/licenses/$base.txt (docs/PLUGINS.md#package-it)"
}

take_library() { # SONAME WHO: into lib/, with what it needs itself
    local soname=$1 who=$2 place file=
    ! is_in "$soname" $BUNDLED $FROM_LAYER || return 0
    [ ! -e "$new/lib/$soname" ] || return 0
    for place in "$deploy/lib/$ARCH" "$SYSROOT/lib/$TRIPLET" "$SYSROOT/usr/lib/$TRIPLET"; do
        [ ! -e "$place/$soname" ] || { file=$place/$soname; break; }
    done
    [ -n "$file" ] || fail "$who needs $soname, which is not in the zip: put it, built for $ARCH, into $DEPLOY/lib/$ARCH/ and its license" \
        "into $DEPLOY/licenses/, or link it statically. If a Lambda layer brings it: FROM_LAYER=$soname"
    check_machine "$file"
    case $file in "$deploy"/*) license_of "$file" ;; esac
    install -m 755 "$file" "$new/lib/$soname"
    take_libraries "$file"
}
take_libraries() { # FILE
    local soname
    for soname in $(needed "$1"); do take_library "$soname" "$1"; done
}

# What the linker took for the plugins, besides their own objects.
take_maps() {
    local file
    cat "$new"/handlers/*.map /dev/null | sed -n 's/^LOAD //p' | sort -u | while read -r file; do
        case $file in
        "$new"/handlers/obj/* | "$deploy/lib/$ARCH"/*.so*) ;;
        "$deploy/lib/$ARCH"/*.a) license_of "$file" && install -m 644 "$file" "$new/archives/" ;;
        *) echo "$file" ;;
        esac
    done >"$new/linked.txt"
    rm -f "$new"/handlers/*.map
    rm -rf "$new/handlers/obj"
    for file in "$new"/handlers/*.so; do chmod 755 "$file"; done # whatever the umask is
}

symbols() { "$TRIPLET-nm" -D --with-symbol-versions "$@" 2>/dev/null; }

# What the loader finds for FILE, as "name" and "name@version": in bootstrap, in FILE, in what they need and so on.
offered() { # FILE
    local files=("$BOOTSTRAP" "$1") i soname place
    for ((i = 0; i < ${#files[@]}; i++)); do
        for soname in $(needed "${files[i]}"); do
            for place in "$new/lib" "$SYSROOT/lib/$TRIPLET" "$SYSROOT/usr/lib/$TRIPLET"; do
                [ -e "$place/$soname" ] || continue
                is_in "$place/$soname" "${files[@]}" || files+=("$place/$soname")
                break
            done
        done
    done
    symbols --defined-only "${files[@]}" | awk 'NF == 3 {sub(/@@/, "@", $3); print $3; sub(/@.*/, "", $3); print $3}' | sort -u
}

check_plugin() { # NAME
    local so=$new/handlers/$1.so source=${made_of[$1]} missing soname
    symbols --defined-only "$so" | grep -qE ' sluice_handler$' ||
        fail "$source: it does not export sluice_handler, so it is no handler: SL_EXPORT const struct sl_handler SL_HANDLER = {...}." \
            "Sources that belong to a handler NAME go into the folder NAME/"
    take_libraries "$so"
    for soname in $(needed "$so"); do ! is_in "$soname" $FROM_LAYER || return 0; done
    missing=$(comm -23 <(symbols --undefined-only "$so" | awk '$1 == "U" {print $2}' | sort -u) <(offered "$so") | tr '\n' ' ')
    [ -z "$missing" ] || fail "$source: nothing in the zip has ${missing% }: bootstrap could not load it. Add the library to PLUGIN_LIBS, or put the" \
        "source into the folder $1/ (glibc in the zip is 2.36)"
}

# ---- the configuration ----

bad=0
check_routes() { # FILE
    local i handler said near
    said=$("$ROUTES" "$1") || exit 1
    while IFS=$'\t' read -r i handler; do
        [ -n "$i" ] || continue
        [[ $handler != *'${'* ]] || { SPARE=all && continue; } # nobody knows yet which plugin it will be
        ! is_in "$handler" "${builtins[@]}" $FROM_LAYER && [ ! -e "$new/handlers/$handler.so" ] || continue
        near=
        [ ! -e "$deploy/handlers/$handler.so" ] || near=" ($DEPLOY/handlers/$handler.so is not taken: a .so for Lambda is looked for in handlers/$ARCH/.)"
        echo "package: $1: \$.routes[$i]: the handler \"$handler\" is not in the zip. It is not built in (${builtins[*]}), and $DEPLOY has none of" \
            "$handler.c, $handler.cc, $handler/$handler.c, handlers/$handler.c, handlers/$ARCH/$handler.so.$near If a Lambda layer brings it: FROM_LAYER=$handler" >&2
        bad=1
    done <<<"$said"
}

# ---- all of it ----

for file in "$DEPLOY"/*.json; do [ ! -f "$file" ] || install -m 644 "$file" "$new/config/"; done
configs=("$new"/config/*)
[ ${#configs[@]} != 0 ] || fail "$DEPLOY has no configuration: write $DEPLOY/sluice.json"
build "$DEPLOY" SLUICE="-I'$INCLUDE'"
[ ! -d "$DEPLOY/handlers" ] || build "$DEPLOY/handlers" SLUICE="-I'$INCLUDE' -I.. -I../include" $([ ! -f "$DEPLOY/plugin.mk" ] || echo -f ../plugin.mk)
for file in "$DEPLOY/handlers/$ARCH"/*.so; do
    take_name "$file"
    check_machine "$file"
    install -m 755 "$file" "$new/handlers/"
done
for name in "${!made_of[@]}"; do check_plugin "$name"; done
take_maps
for file in "$deploy"/licenses/*; do [ ! -f "$file" ] || install -m 644 "$file" "$new/licenses/"; done
for file in "$DEPLOY"/*.json; do [ ! -f "$file" ] || check_routes "$file"; done
[ $bad = 0 ] || exit 1
for soname in $SPARES; do [ -z "$FROM_LAYER$SPARE" ] || take_library "$soname" "a layer's plugin"; done
touch "$new/stamp"
diff -rq "$new" "$out" >/dev/null 2>&1 && rm -rf "$new" && exit 0
rm -rf "$out"
mv "$new" "$out"
