#!/usr/bin/env bash
# The table of options.c, the help, the man page and the completion have the same options. A control
# takes one out of each.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
commands=(run elect acquire extend downgrade release clear status)
shown=(no-clock-guard) # the help has it in the text of --clock-guard

# Each prints "NAME LETTER VALUE" for each option of a command ('' for those before a command),
# sorted: LETTER is '-' for none, VALUE is 'value', 'maybe' or 'flag'.
table_of() { # COMMAND [FILE]
    tr '\n' ' ' <"${2:-$root/tools/redlock/options.c}" |
        grep -oE "\{\"[a-z-]+\", +(0|'.'), +(\"[^\"]*\"|NULL), +FOR_[A-Z]+( *\| *FOR_[A-Z]+)*" |
        sed -E "s/\{\"([a-z-]+)\", +(0|'(.)'), +(\"[^\"]*\"|NULL), +/\1 \3- \4 /" |
        sed -E 's/ "\[[^"]*" / maybe /; s/ "[^"]*" / value /; s/ NULL / flag /' |
        grep -E "FOR_(ALL|${1^^})( |$)" | awk '{ print $1, substr($2, 1, 1), $3 }' | sort
}

help_of() { # COMMAND TOOL
    {
        "$2" ${1:+"$1"} --help |
            sed -nE 's/^ +(-(.), )?--([a-z-]+)( ([^ ]+)|(\[=[A-Z]+\]))?  .*/\3 \2- v\5=\6/p' |
            sed -E 's/ v=$/ flag/; s/ v=.+$/ maybe/; s/ v.+=$/ value/' | awk '{ print $1, substr($2, 1, 1), $3 }'
        printf '%s - flag\n' "${shown[@]}"
    } | sort
}

man_names() { # [FILE]
    grep -E '^\.It Fl' "${1:-$root/docs/man/redlock.1}" | grep -oE 'Fl -[a-z-]+' | sed 's/^Fl -//' | sort
}

# What bash's completion offers for COMMAND, with the tool at TOOL.
offers_of() { # COMMAND TOOL
    # shellcheck disable=SC2016 # for another shell
    bash --norc --noprofile -c '
        source "$1/packaging/completions/redlock.bash"
        COMP_WORDS=("$3" ${2:+"$2"} --)
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _redlock "$3"
        printf "%s\n" "${COMPREPLY[@]}"' - "$root" "$1" "$2" | sed 's/^--//' | sort -u
}

names() {
    cut -d ' ' -f 1 | sort -u
}

# differs WHAT ONE OTHER : prints the difference.
differs() {
    local difference
    difference=$(diff <(echo "$2") <(echo "$3") | grep '^[<>]' | tr '\n' ' ')
    [[ -n $difference ]] && echo "$1: $difference"
}

# compare TABLE TOOL MAN : prints every difference.
compare() {
    local command all=''
    for command in '' "${commands[@]}"; do
        differs "help of redlock $command" "$(table_of "$command" "$1")" "$(help_of "$command" "$2")"
        differs "completion of redlock $command" "$(table_of "$command" "$1" | names)" "$(offers_of "$command" "$2")"
        all+=$(table_of "$command" "$1" | names)$'\n'
    done
    differs 'man page' "$(sort -u <<<"$all" | grep .)" "$(man_names "$3")"
    true
}

table=$root/tools/redlock/options.c
man=$root/docs/man/redlock.1
checks=$((checks + 1))
(($(table_of run | wc -l) > 30 && $(table_of status | wc -l) > 25)) || fail 'the test finds too few options'
is 'the rows of the table' "$(table_of '[A-Z]+' | wc -l)" "$(grep -cE '^    \{"[a-z-]+", ' "$table")"
is 'the differences' "$(compare "$table" "$REDLOCK_TOOL" "$man")" ''

# Controls: an option that is missing in one of them, and one that is only in the table.
printf '#!/bin/sh\nexec %q "$@" | grep -v -e " --grace "\n' "$REDLOCK_TOOL" >"$work/mute"
chmod +x "$work/mute"
grep -vF '{"grace"' "$table" >"$work/options.c"
grep -vE '^\.It Fl -grace' "$man" >"$work/redlock.1"
sed 's/^    {"grace".*/&\n    {"new-one", 0, NULL, FOR_RUN, FLAG(new_one)},/' "$table" >"$work/more.c"
finds() { # WHAT FOUND
    checks=$((checks + 1))
    [[ $2 == *"$1"* ]] || fail "control: not found: $1 in: $2"
}
found=$(compare "$work/options.c" "$REDLOCK_TOOL" "$man")
finds 'help of redlock run: > grace - value' "$found"
finds 'completion of redlock run: > grace' "$found"
finds 'man page: > grace' "$found"
found=$(compare "$table" "$work/mute" "$man")
finds 'help of redlock run: < grace - value' "$found"
finds 'completion of redlock elect: < grace' "$found"
is 'the man page' "$(compare "$table" "$REDLOCK_TOOL" "$work/redlock.1")" 'man page: < grace '
found=$(compare "$work/more.c" "$REDLOCK_TOOL" "$man")
finds 'help of redlock run: < new-one - flag' "$found"
finds 'completion of redlock run: < new-one' "$found"
finds 'man page: < new-one' "$found"
# What fish offers files for, it names one by one.
files=$(tr '\n' ' ' <"$table" | grep -oE '\{"[a-z-]+", +0, +"(FILE|DIR)"' | grep -oE '[a-z-]+"' |
    tr -d '"' | sort)
# shellcheck disable=SC2016 # a text of fish
is 'the files of fish' "$(grep -A 1 'switch "\$value_of"' "$root/packaging/completions/redlock.fish" |
    grep -oE -- '--[a-z-]+' | sed 's/^--//' | sort)" "$files"
finish
