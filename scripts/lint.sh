#!/bin/bash
# The rules that a compiler does not check: which room may include which, banned functions, sizes, headers that compile alone.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
say() { echo "lint: $*" >&2; bad=1; }

# Folder -> the folders it may include from, besides its own: DESIGN's table, from the bottom up. A folder that has no row may
# include nothing of ours.
declare -A may=(
    [base]=""
    [net]="base"
    [streams]="base"
    [streams/decode]="base streams"
    [streams/when]="base streams"
    [streams/template]="base streams"
    [aws]="base net"
    [sinks]="base net aws"
    [sinks/dynamodb]="base net aws sinks"
    [sinks/opensearch]="base net aws sinks"
    [sinks/file]="base net aws sinks"
    [sinks/s3]="base net aws sinks"
    [sinks/sqlite]="base net aws sinks"
    [sinks/queues]="base net aws sinks"
    [handlers]="base/types.h sinks/port.h streams/types.h"
    [handlers/builtin/toolkit]="handlers"
    [handlers/builtin/archive]="handlers handlers/builtin/toolkit"
    [handlers/builtin/replicate]="handlers handlers/builtin/toolkit"
    [handlers/builtin/aggregate]="handlers handlers/builtin/toolkit handlers/builtin/aggregate/write handlers/builtin/aggregate/audit"
    [handlers/builtin/aggregate/write]="handlers handlers/builtin/toolkit handlers/builtin/aggregate"
    [handlers/builtin/aggregate/audit]="handlers handlers/builtin/toolkit handlers/builtin/aggregate"
    [handlers/builtin/notify]="handlers handlers/builtin/toolkit"
    [handlers/pipeline]="base streams streams/when streams/template sinks/port.h sinks/target.h handlers"
    [handlers/dispatch]="base streams streams/decode streams/when streams/template sinks/port.h handlers handlers/pipeline"
    [work/source]="base streams streams/decode sinks/port.h sinks/target.h sinks/file.h"
    [work/backfill]="base streams streams/decode streams/when sinks/port.h sinks/target.h handlers handlers/pipeline handlers/dispatch work/source"
    [work/restore]="base streams streams/decode sinks/port.h sinks/target.h work/source"
    [work/verify]="base streams streams/decode streams/when sinks/port.h sinks/target.h handlers handlers/pipeline handlers/dispatch work/source"
    [work/repair]="base streams streams/decode streams/when sinks/port.h sinks/target.h handlers handlers/pipeline handlers/dispatch work/source work/verify"
    [runtime/api]="base"
    [scripts/package]="base"
    [runtime/lambda]="base runtime/api"
    [runtime/work]="base streams streams/decode sinks/port.h sinks/target.h handlers handlers/pipeline handlers/dispatch work/source
                   work/backfill"
    [runtime]="runtime/api base streams streams/decode sinks/target.h handlers handlers/pipeline handlers/dispatch runtime/contain runtime/work
               work/source work/backfill work/verify"
    [runtime/contain]="runtime/api base streams streams/decode sinks/target.h handlers handlers/pipeline handlers/dispatch"
    [replay/config]="base streams/when"
    [replay/check]="base streams streams/template streams/when aws/arn.h sinks/port.h sinks/target.h handlers handlers/pipeline
                    work/source replay/config replay/source replay/flags.h"
    [replay/esm]="base streams streams/when"
    [replay/backfill]="base streams sinks/port.h sinks/target.h handlers handlers/pipeline work/source work/backfill work/restore"
    [replay/source]="base net streams streams/decode aws sinks/target.h work/source replay/esm"
    [replay/lease]="base net aws sinks replay/tail"
    [replay/redrive]="base streams streams/decode sinks/target.h sinks/queues/inbox.h work/source replay/config replay/esm replay/source
                      replay/sandbox replay/flags.h replay/session.h"
    [replay/sandbox]="base replay/esm"
    [replay/output]="base replay/esm replay/source replay/sandbox"
    [replay/tail]="base net streams streams/decode streams/when aws sinks/port.h sinks/target.h handlers handlers/pipeline handlers/dispatch
                   replay/esm replay/source replay/sandbox"
    [replay/output/report]="base streams replay/esm replay/source replay/sandbox replay/output"
    [work/verify/archive]="base streams streams/decode sinks/port.h sinks/target.h handlers handlers/pipeline"
    [replay/watch]="base replay/tail"
    [replay/verify]="base sinks/port.h sinks/target.h handlers handlers/pipeline work/verify work/verify/archive"
    [replay/repair]="base handlers handlers/pipeline work/verify work/verify/archive work/repair"
    [replay]="base net streams streams/decode streams/template streams/when aws sinks handlers handlers/pipeline handlers/dispatch
              replay/check replay/config replay/esm replay/source replay/sandbox replay/output replay/output/report replay/tail replay/watch replay/lease replay/backfill replay/verify replay/repair
              replay/redrive sinks/queues/inbox.h
              work/source work/backfill work/restore work/verify work/verify/archive work/repair"
)

mapfile -t sources < <(scripts/files.sh | grep '\.[ch]$')
for file in "${sources[@]}"; do
    [ -f "$file" ] || continue
    room=$(dirname "$file") top=${file%%/*}
    allowed=" ${may[$room]-} $room "
    while IFS=: read -r line include; do
        from=$(dirname "$include")
        case $top in
        tests | bench) ;;
        examples) say "$file:$line: an example includes the installed header, not $include" ;;
        *) [[ $allowed == *[[:space:]]$from[[:space:]]* || $allowed == *[[:space:]]$include[[:space:]]* ]] ||
            say "$file:$line: $room/ may not include $include" ;;
        esac
        [[ $include == */* || $top == tests || $top == bench ]] || say "$file:$line: includes are written from the top: $include"
        [[ $include == tests/* && $top != tests && $top != bench ]] && say "$file:$line: nobody includes tests/"
    done < <(grep -nE '^#include "' "$file" | sed -E 's/^([0-9]+):#include "([^"]+)".*/\1:\2/')
    lines=$(wc -l <"$file")
    [[ $file == *.h && $lines -gt 300 ]] && say "$file: $lines lines; a header has 300 at most"
    [[ $file == *.c && $lines -gt 700 ]] && say "$file: $lines lines; a source has 700 at most"
done

banned='sprintf|vsprintf|strcpy|strcat|strtok|atoi|atol|gmtime|localtime|rand|srand|system|gets|alloca'
grep -nE "(^|[^a-zA-Z0-9_])($banned)\(" "${sources[@]}" | grep -vE '^\S+:[0-9]+: *(\*|/\*|//)' && say "banned functions (see above)"
grep -nE '(^|[^a-zA-Z0-9_])(getenv|environ)\b' $(printf '%s\n' "${sources[@]}" | grep -E '^(base|net|streams|aws|sinks|handlers)/') |
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

# A script is one, and what begins with #! may be run.
while IFS= read -r file; do
    IFS= read -r first <"$file"
    case $file in
    *.py) python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || say "$file is no Python" ;;
    *) [[ $first == *python* ]] || bash -n "$file" || say "$file is no shell script" ;;
    esac
    [[ $first != '#!'* || $first =~ ^'#!/'(bin|usr/bin)/ ]] || say "$file:1: $first names no program"
    [[ $first != '#!'* || -x $file ]] || say "$file begins with #! and may not be run: chmod +x"
done < <(scripts/files.sh | grep -E '\.(sh|py)$|^\.ci/run$')

# Every fenced block of the documents says what it is (CONTRIBUTING.md).
python3 tests/docs/blocks.py || bad=1
exit $bad
