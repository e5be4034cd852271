# Completion of redlock for bash. Commands and options come from `redlock --help`, so they are those
# of the installed version.
# shellcheck shell=bash

# _redlock_options TOOL [COMMAND] : prints "-t --ttl TTL" for each option: a short form or "-", the
# name, what follows it if anything does.
_redlock_options() {
    echo '- --no-clock-guard '
    "$@" --help 2>/dev/null | sed -nE \
        -e 's/^ +(-[a-zA-Z]), (--[a-z-]+)( ([^ ]+))?  .*/\1 \2 \4/p' \
        -e 's/^ +(--[a-z-]+)( ([^ ]+)|\[=[A-Z]+\])?  .*/- \1 \3/p'
}

# _redlock_values OPTION : completes what follows it, in $current. Fails if nothing does.
_redlock_values() {
    local value
    value=$(awk -v option="$1" '$1 == option || $2 == option { print $3; exit }' <<<"$options")
    case $value in
    '') return 1 ;;
    FILE | DIR) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    'fair|none') mapfile -t COMPREPLY < <(compgen -W 'fair none' -- "$current") ;;
    MODE) mapfile -t COMPREPLY < <(compgen -W 'off observed strict' -- "$current") ;;
    esac
}

_redlock() {
    local tool=$1 current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local options command='' word i
    options=$(_redlock_options "$tool")
    # The command is the first word that is neither an option nor its value.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == -- ]]; then
            # What run and elect start.
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            else
                mapfile -t COMPREPLY < <(compgen -cf -- "$current")
            fi
            return
        elif [[ $word == -* ]]; then
            # "--order=fair" is three words here.
            if [[ ${COMP_WORDS[i + 1]} == '=' ]]; then
                i=$((i + 2))
            elif awk -v option="$word" '($1 == option || $2 == option) && $3 { found = 1 } END { exit !found }' \
                <<<"$options"; then
                i=$((i + 1))
            fi
        elif [[ -z $command ]]; then
            command=$word
            options=$(_redlock_options "$tool" "$command")
        fi
    done
    COMPREPLY=()
    if [[ $previous == '=' ]]; then
        _redlock_values "${COMP_WORDS[COMP_CWORD - 2]}"
        return
    elif [[ $current == '=' ]]; then
        current=''
        _redlock_values "$previous"
        return
    elif [[ $previous == -* ]] && _redlock_values "$previous"; then
        return
    fi
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(awk '{print $2; if ($1 != "-") print $1}' <<<"$options")" -- "$current")
    elif [[ -z $command || $command == help ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$tool" --help 2>/dev/null |
            sed -nE '/^commands/,/^$/s/^  ([a-z]+) .*/\1/p')" -- "$current")
    fi
}

complete -F _redlock redlock
