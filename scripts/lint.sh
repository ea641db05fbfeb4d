#!/bin/bash
# The rules that a compiler does not check: which room may include which, banned functions, sizes, headers that compile alone.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
say() { echo "lint: $*" >&2; bad=1; }

# Room -> the rooms it may include from (DESIGN's table; includes point only down).
declare -A may=(
    [base]="base"
    [streams]="base streams"
    [sinks]="base sinks"
    [handlers]="base streams sinks handlers"
    [runtime]="base streams sinks handlers runtime"
    [replay]="base streams sinks handlers runtime replay"
    [examples]=""
)
# The built-in handlers, and what they share among themselves.
builtins="handlers/archive*.[ch] handlers/replicate*.[ch] handlers/aggregate*.[ch] handlers/notify*.[ch]
          handlers/text.[ch] handlers/keymap.[ch] handlers/outcome.[ch] handlers/loop.[ch]"

mapfile -t sources < <(git ls-files '*.c' '*.h'; git ls-files -o --exclude-standard '*.c' '*.h')
for file in "${sources[@]}"; do
    [ -f "$file" ] || continue
    room=${file%%/*}
    while IFS=: read -r line include; do
        target=${include%%/*}
        case " ${may[$room]-$target} " in
        *" $target "*) ;;
        *) say "$file:$line: $room/ may not include $include" ;;
        esac
        [[ $room == handlers && $target == sinks && ! $include =~ ^sinks/(port|target)\.h$ ]] &&
            say "$file:$line: handlers/ sees the ports only, not $include"
        [[ $include == */* || $room == tests || $room == bench ]] || say "$file:$line: includes are written from the top: $include"
        [[ $target == tests && $room != tests && $room != bench ]] && say "$file:$line: nobody includes tests/"
    done < <(sed -nE 's/^#include "([^"]+)".*/\1/p' "$file" | grep -nE . )
    lines=$(wc -l <"$file")
    [[ $file == *.h && $lines -gt 300 ]] && say "$file: $lines lines; a header has 300 at most"
    [[ $file == *.c && $lines -gt 700 ]] && say "$file: $lines lines; a source has 700 at most"
done

for file in $builtins; do
    [ -f "$file" ] || continue
    while read -r include; do
        case $include in
        handlers/handler.h | handlers/archive*.h | handlers/replicate*.h | handlers/aggregate*.h | handlers/notify*.h | \
            handlers/text.h | handlers/keymap.h | handlers/outcome.h | handlers/loop.h) ;;
        base/types.h | sinks/port.h | streams/types.h) [ "$file" = handlers/handler.h ] || say "$file: handler.h brings $include" ;;
        *) say "$file: a built-in handler includes handlers/handler.h only, like any plugin, not $include" ;;
        esac
    done < <(sed -nE 's/^#include "([^"]+)".*/\1/p' "$file")
done

banned='sprintf|vsprintf|strcpy|strcat|strtok|atoi|atol|gmtime|localtime|rand|srand|system|gets|alloca'
grep -nE "(^|[^a-zA-Z0-9_])($banned)\(" "${sources[@]}" | grep -vE '^\S+:[0-9]+: *(\*|/\*|//)' && say "banned functions (see above)"
grep -nE '(^|[^a-zA-Z0-9_])(getenv|environ)\b' $(printf '%s\n' "${sources[@]}" | grep -E '^(base|streams|sinks|handlers)/') |
    grep -vE ':[0-9]+: *(\*|/\*)' | grep -E 'getenv *\(|extern char \*\*environ' && say "only mains read the environment"
grep -nE '^static [^(]*[;=]' $(printf '%s\n' "${sources[@]}" | grep -E '^(base|streams)/.*\.c$') |
    grep -vE 'const|\(' && say "no mutable file-scope state in base/ and streams/"

for header in $(printf '%s\n' "${sources[@]}" | grep -E '\.h$' | grep -vE '^(tests|bench)/'); do
    echo "#include \"$header\"" | ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fsyntax-only -x c - ||
        say "$header does not compile alone"
done
if [ -f handlers/handler.h ] && command -v c++ >/dev/null; then
    echo '#include "handlers/handler.h"' | c++ -std=c++11 -I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ - ||
        say "handlers/handler.h does not compile as C++"
fi
exit $bad
