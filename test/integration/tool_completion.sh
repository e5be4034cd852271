#!/usr/bin/env bash
# Completion in real bash, zsh and fish: every command, and for each command every option that its
# help names, are offered; so are the values of options, and commands after `--`.
# shellcheck disable=SC2016,SC2317 # programs for other shells; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../packaging/completions" && pwd)
mkdir "$work/bin"
ln -s "$REDLOCK_TOOL" "$work/bin/redlock"
PATH=$work/bin:$PATH
commands=(run elect acquire extend downgrade release clear status help)
touch "$work/nodes-of-test"

# Each prints what its shell offers for this line, one a line, sorted.
bash_offers() {
    bash --norc --noprofile -c '
        source "$1/redlock.bash"
        COMP_LINE=$2 COMP_POINT=${#2}
        # As bash splits it: "=" is a word of its own.
        read -ra COMP_WORDS <<<"${2//=/ = }"
        [[ $2 == *" " || $2 == "" ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _redlock redlock
        printf "%s\n" "${COMPREPLY[@]}"' - "$scripts" "$1" | sort -u
}

fish_offers() {
    fish --no-config -c 'source $argv[1]/redlock.fish; complete -C $argv[2]' "$scripts" "$1" | cut -f 1 | sort -u
}

# A real zsh on a terminal of its own: it types the line, asks for the list, and prints it.
zsh_offers() {
    zsh -f -c '
        zmodload zsh/zpty
        zpty shell zsh -f -i
        send() { zpty -w shell "$1"; }
        send "PS1=; unsetopt zle_bracketed_paste prompt_cr prompt_sp; stty -echo columns 500 rows 5000"
        send "path=($3 \$path)"
        send "fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u"
        send "zstyle \":completion:*\" list-grouped no; LISTMAX=100000; zstyle \":completion:*\" verbose no"
        send "compadd_seen() { local -a got; builtin compadd -A got \"\$@\"; print -rl -- GOT:\${^got} }"
        send "probe() { compadd() { compadd_seen \"\$@\"; builtin compadd \"\$@\" }; _main_complete; print END:; exit }"
        send "zle -C probe complete-word probe; bindkey \"^X\" probe"
        # In two pieces: the terminal may echo this line before it is told not to.
        send "unsetopt always_last_prompt; print READ\"\"Y:"
        while zpty -r shell line "*READY:*"; do break; done
        zpty -w -n shell "$2"$(print -n "\x18")
        while zpty -r shell line; do print -r -- "$line"; [[ $line == *END:* ]] && break; done
        zpty -d shell' - "$scripts" "$1" "$work/bin" 2>/dev/null | tr -d '\r' | sed -n 's/.*GOT://p' | sort -u
}

# The options that the help of a command defines.
options_of() {
    redlock ${1:+"$1"} --help | grep -E '^ +(-[a-zA-Z], )?--' | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+|--no-clock-guard' |
        grep -oE '(^| )-[a-zA-Z]|--[a-z-]+' | tr -d ' ' | sort -u
}

# same WHAT GOT WANTED
same() {
    checks=$((checks + 1))
    [[ $2 == "$3" ]] || fail "$1: $(diff <(echo "$2") <(echo "$3") | tr '\n' ' ')"
}

is 'the commands of the help' "$(redlock --help | sed -nE '/^commands/,/^$/s/^  ([a-z]+) .*/\1/p' | tr '\n' ' ')" \
    "${commands[*]} "
checks=$((checks + 1))
(($(options_of run | wc -l) > 25)) || fail 'the test finds too few options of run'

missing=()
for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null; then
        missing+=("$shell")
        continue
    fi
    offers=${shell}_offers
    same "$shell: commands" "$($offers 'redlock ')" "$(printf '%s\n' "${commands[@]}" | sort)"
    same "$shell: a command that begins with r" "$($offers 'redlock r')" $'release\nrun'
    same "$shell: help of a command that begins with r" "$($offers 'redlock help r')" $'release\nrun'
    same "$shell: after an option with a value" "$($offers 'redlock -n run:1 re')" release
    same "$shell: long options before a command" "$($offers 'redlock --')" "$(options_of '' | grep -e --)"
    for command in "${commands[@]}"; do
        same "$shell: options of $command" "$($offers "redlock $command --")" "$(options_of "$command" | grep -e --)"
        same "$shell: nothing for a name" "$($offers "redlock $command 0")" ''
    done
    same "$shell: short and long" "$($offers 'redlock clear -')" "$(options_of clear)"
    same "$shell: values" "$($offers 'redlock run --order ')" $'fair\nnone'
    same "$shell: values that begin with s" "$($offers 'redlock status --restart-guard s')" strict
    same "$shell: nothing for a time" "$($offers 'redlock run --ttl ')" ''
    checks=$((checks + 1))
    for option in --nodes-file --cacert; do
        offered=$(cd "$work" && $offers "redlock $option nodes-")
        [[ $offered == *nodes-of-test* ]] || fail "$shell: no file after $option: $offered"
    done
    checks=$((checks + 1))
    offered=$($offers 'redlock run job -- slee')
    [[ " ${offered//$'\n'/ } " == *' sleep '* ]] || fail "$shell: no command after --: $offered"
done
# A control: what the help does not name is not offered.
checks=$((checks + 1))
[[ $(bash_offers 'redlock status --') != *--grace* ]] || fail 'status offers --grace'

if ((${#missing[@]})); then
    echo "skipped: there is no ${missing[*]}"
    ((failures == 0)) && exit 77
fi
finish
