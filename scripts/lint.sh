#!/bin/bash
# The rules that a compiler does not check: which room may include which, banned functions, headers that compile alone.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
say() { echo "lint: $*" >&2; bad=1; }

# Room -> what it may include besides itself, from the bottom up. A name is a room with all that is below it, "name/" the files of that
# folder alone, and "x/y.h" that file. The longest row that fits a folder counts; a folder that has none may include nothing of ours.
declare -A may=(
    [base]=""
    [net]="base"
    [streams]="base"
    [aws]="base net"
    [sinks]="base net aws streams/types.h streams/value.h"
    # Sinks of different kinds do not know each other, and neither do handlers.
    [sinks/*]="base net aws streams/types.h streams/value.h sinks/"
    # What a plugin sees.
    [handlers]="base/types.h sinks/port.h streams/types.h"
    [handlers/builtin/*]="handlers/ handlers/builtin/toolkit base streams/value.h"
    [handlers/builtin/toolkit]="handlers/ base streams/value.h"
    [handlers/pipeline]="base streams sinks/port.h sinks/target.h handlers/"
    [handlers/dispatch]="base streams sinks/port.h sinks/target.h handlers/ handlers/pipeline"
    [handlers/tracing]="base streams sinks/port.h sinks/target.h handlers/ handlers/pipeline handlers/dispatch"
    [data]="base streams handlers/ handlers/pipeline handlers/dispatch sinks/port.h sinks/target.h sinks/file.h sinks/queues/inbox.h"
    # What was to stay for ever is rewritten by an erasure alone.
    [data/erase]="base streams data handlers/ sinks/port.h sinks/target.h sinks/rewrite.h"
    # Where items come from does not depend on what is made of them.
    [data/source]="base streams sinks/port.h sinks/target.h sinks/file.h"
    [runtime]="base streams handlers/ handlers/pipeline handlers/dispatch handlers/tracing data sinks/port.h sinks/target.h sinks/queues/letterbox.h"
    # A library of its own: libcurl and base alone.
    [runtime/api]="base"
    [runtime/lambda]="base runtime/api"
    [esm]="base streams"
    [live]="base net streams aws sinks handlers/ handlers/pipeline handlers/dispatch handlers/tracing data esm"
    [cli]="base net streams aws sinks handlers/ handlers/pipeline handlers/dispatch data esm live"
    [scripts/package]="base"
)

# may_include FILE INCLUDE: by the row of the file's folder.
may_include() {
    local own=${1%/*} to=$2 row entry
    until row=$own && [ -n "${may[$row]+x}" ] || { row=${own%/*}/* && [ -n "${may[$row]+x}" ]; }; do
        [[ $own == */* ]] || return 1
        own=${own%/*}
    done
    [[ $to == "$own"/* ]] && return 0
    for entry in ${may[$row]}; do
        case $entry in
        *.h) [ "$to" = "$entry" ] ;;
        */) [ "${to%/*}/" = "$entry" ] ;;
        *) [[ $to == "$entry"/* ]] ;;
        esac && return 0
    done
    return 1
}

# lint.sh --may FILE INCLUDE: the table's answer, for its test.
[ "${1:-}" != --may ] || { may_include "$2" "$3"; exit; }

mapfile -t sources < <(scripts/files.sh | grep '\.[ch]$')
while IFS=: read -r file line include; do
    top=${file%%/*}
    case $top in
    tests | bench) ;;
    examples) say "$file:$line: an example includes the installed header, not $include" ;;
    *) may_include "$file" "$include" || say "$file:$line: ${file%/*}/ may not include $include" ;;
    esac
    [[ $include == */* || $top == tests || $top == bench ]] || say "$file:$line: includes are written from the top: $include"
    [[ $include == tests/* && $top != tests && $top != bench ]] && say "$file:$line: nobody includes tests/"
done < <(grep -sHnE '^#include "' "${sources[@]}" | sed -E 's/^([^:]+:[0-9]+):#include "([^"]+)".*/\1:\2/')

banned='sprintf|vsprintf|strcpy|strcat|strtok|atoi|atol|gmtime|localtime|rand|srand|system|gets|alloca'
grep -nE "(^|[^a-zA-Z0-9_])($banned)\(" "${sources[@]}" | grep -vE '^\S+:[0-9]+: *(\*|/\*|//)' && say "banned functions (see above)"
grep -nE '(^|[^a-zA-Z0-9_])(getenv|environ)\b' $(printf '%s\n' "${sources[@]}" | grep -E '^(base|net|streams|aws|sinks|handlers)/') |
    grep -vE ':[0-9]+: *(\*|/\*)' | grep -E 'getenv *\(|extern char \*\*environ' && say "only mains read the environment"
# (In a release's command another object's copy of it is empty: scripts/package/Makefile.)
grep -nwE 'environ' $(printf '%s\n' "${sources[@]}" | grep -vE '^(tests|bench|examples)/|^(cli/command|runtime/bootstrap)\.c$') |
    grep -vE ':[0-9]+: *(\*|/\*)' && say "environ is for cli/command.c and runtime/bootstrap.c: sl_command_environment() has it"
grep -nE '^static [^(]*[;=]' $(printf '%s\n' "${sources[@]}" | grep -E '^(base|streams)/.*\.c$') |
    grep -vE 'const|\(' && say "no mutable file-scope state in base/ and streams/"

# What one test leaves in memory's folder another would find there.
grep -n '"/dev/shm' $(printf '%s\n' "${sources[@]}" | grep '^tests/' | grep -v '^tests/support/') && say "test_folder_in_memory() gives a test its own folder"

# A test's limit of time is for what hangs, not for what is slow: ten minutes. Also where it has a name.
short='([1-9]|[1-9][0-9]|[1-5][0-9][0-9])'
mapfile -t scripts < <(scripts/files.sh | grep -E '^tests/.*\.py$' | grep -v '^tests/services/')
hasty=$(
    grep -nE "((timeout|limit|seconds)=|\.(wait|join)\()$short[,)]|(until|deadline|end) = time\.\w+\(\) \+ $short\b" "${scripts[@]}"
    grep -oE "^[A-Z_]+ = $short\b" "${scripts[@]}" | while IFS=': ' read -r file name _; do
        grep -HnE "(timeout=|time\.\w+\(\) \+ )$name\b" "$file"
    done
)
[ -z "$hasty" ] || say "a test waits 600 s for what hangs:
$hasty"

# A port that was free is given to another process as soon as its socket is closed.
grep -nE 'def free_port|return .*getsockname' $(scripts/files.sh | grep -E '^tests/.*\.py$' | grep -v '^tests/services/ports\.py$') &&
    say "a free port comes from tests/services/ports.py"

# A name has one meaning: a tag that others may see is defined once.
grep -hoE '^(struct|enum|union) sl_\w+ \{' $(printf '%s\n' "${sources[@]}" | grep -vE '^(tests|bench|examples)/') | awk '{ print $2 }' | sort | uniq -d |
    while read -r tag; do echo "lint: the tag $tag is defined twice" >&2; done 2>&1 | grep . >&2 && bad=1

for header in $(printf '%s\n' "${sources[@]}" | grep -E '\.h$' | grep -vE '^(tests|bench)/'); do
    echo "#include \"$header\"" | ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -fsyntax-only -x c - ||
        say "$header does not compile alone"
done
if [ -f handlers/handler.h ] && command -v c++ >/dev/null; then
    echo '#include "handlers/handler.h"' | c++ -std=c++11 -I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ - ||
        say "handlers/handler.h does not compile as C++"
fi

# What is being changed compiles with clang's warnings, too (all of it: make sanitized).
if command -v clang >/dev/null && [ -e .git ]; then
    while IFS= read -r file; do
        [ ! -f "$file" ] || clang -std=c11 -D_GNU_SOURCE -I. ${WARN:--Wall -Wextra -Werror} -fsyntax-only "$file" || bad=1
    done < <(git diff --name-only HEAD~1 -- '*.c' 2>/dev/null | grep -vE '^(bench|examples)/')
fi

# A script is one, and what begins with #! may be run.
python=()
while IFS= read -r file; do
    IFS= read -r first <"$file"
    case $file in
    *.py) python+=("$file") ;;
    *) [[ $first == *python* ]] || bash -n "$file" || say "$file is no shell script" ;;
    esac
    [[ $first != '#!'* || $first =~ ^'#!/'(bin|usr/bin)/ ]] || say "$file:1: $first names no program"
    [[ $first != '#!'* || -x $file ]] || say "$file begins with #! and may not be run: chmod +x"
done < <(scripts/files.sh | grep -E '\.(sh|py)$|^\.ci/run$')
python3 - "${python[@]}" <<'END' || bad=1
import ast, sys
broken = False
for file in sys.argv[1:]:
    try:
        ast.parse(open(file, encoding="utf-8").read(), file)
    except (SyntaxError, ValueError) as error:
        broken = True
        print(f"lint: {file} is no Python: {error}", file=sys.stderr)
sys.exit(broken)
END

# Every fenced block of the documents says what it is (CONTRIBUTING.md).
python3 tests/docs/blocks.py || bad=1

# What `git add -A` brings along by mistake: at the top are rooms, and these files.
while read -r file; do
    case $file in
    .clang-format | .editorconfig | .gitignore | *.md | LICENSE | NOTICE | REUSE.toml | VERSION | Makefile | template.yaml | action.yml) ;;
    *) say "$file: no file of the top; is it here by mistake?" ;;
    esac
done < <(scripts/files.sh | grep -v /)

# The workflows, the action, and the Terraform module.
if tools=$(tests/package/tools/install.sh); then
    "$tools/actionlint" -no-color -shellcheck= || say "actionlint finds mistakes in .github/workflows"
    "$tools/hclfmt" -require-no-change deploy/terraform/*.tf >/dev/null || say "deploy/terraform is not as hclfmt writes it: $tools/hclfmt -w deploy/terraform/*.tf"
else
    say "tests/package/tools/install.sh could not install actionlint and hclfmt"
fi

# What `make mutate` knows to be equivalent is still there.
python3 scripts/mutate.py --known >&2 || bad=1
exit $bad
