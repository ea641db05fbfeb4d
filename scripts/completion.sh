#!/bin/bash
# Completion of the command line, from the help of the command itself: scripts/completion.sh build/sluice bash|zsh
set -euo pipefail
sluice=$1 shell=$2
verbs=$("$sluice" --help | awk '/^  [a-z]/ { print $1 }')

flags() { # of one verb; those with a value end in '='
    "$sluice" "$1" --help | awk '/^  --/ { print $1 ($2 ~ /^[A-Z]/ && substr($0, 5 + length($1), 1) != " " ? "=" : "") }'
}

case $shell in
bash)
    cat <<END
# bash completion for sluice. Source it, or install it as share/bash-completion/completions/sluice.
_sluice()
{
    local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} flags= valued=
    if [ "\$COMP_CWORD" = 1 ]; then
        COMPREPLY=(\$(compgen -W "$(echo $verbs) --help --version" -- "\$word"))
        return
    fi
    case \${COMP_WORDS[1]} in
END
    for verb in $verbs; do
        all=$(flags "$verb")
        echo "    $verb)"
        echo "        flags=\"$(echo ${all//=/}) --help\""
        echo "        valued=\" $(grep '=$' <<<"$all" | tr -d = | tr '\n' ' ')\""
        echo "        ;;"
    done
    cat <<END
    esac
    # (After a flag with a value, and for operands: files, which -o default adds.)
    COMPREPLY=()
    if [[ \$valued != *" \$before "* && \$word == -* ]]; then
        COMPREPLY=(\$(compgen -W "\$flags" -- "\$word"))
    fi
}
complete -o default -F _sluice sluice
END
    ;;
zsh)
    echo "#compdef sluice"
    echo "# zsh completion for sluice. Install it as share/zsh/site-functions/_sluice."
    echo "local -a verbs"
    echo "verbs=("
    "$sluice" --help | awk '/^  [a-z]/ { verb = $1; $1 = ""; sub(/^ /, ""); gsub(/\x27/, ""); printf "    \x27%s:%s\x27\n", verb, $0 }'
    echo ")"
    echo 'if (( CURRENT == 2 )); then _describe verb verbs; return; fi'
    echo 'case $words[2] in'
    for verb in $verbs; do
        echo "$verb)"
        echo "    _arguments '*:file:_files' \\"
        "$sluice" "$verb" --help | awk '
            /^  --/ {
                at = match(substr($0, 3), /  +/); left = substr($0, 3, at - 1); text = substr($0, 3 + at + RLENGTH - 1)
                gsub(/[\x27\[\]:\\]/, "", text); split(left, part, " ")
                printf "        \x27*%s[%s]%s\x27 \\\n", part[1], text, part[2] == "" ? "" : ":" tolower(part[2]) ":_files"
            }'
        echo "        '--help[what it does]'"
        echo "    ;;"
    done
    echo 'esac'
    ;;
*)
    echo "completion: $shell is neither bash nor zsh" >&2
    exit 2
    ;;
esac
