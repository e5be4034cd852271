#!/usr/bin/env bash
# redlock run at a terminal: the command can read from it, and Ctrl-C and Ctrl-Z work as without
# redlock.
# shellcheck disable=SC2016 # variables of the commands that are run
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

terminal=${TOOL_TERMINAL:?the path of tool_terminal}
start_nodes 3
export REDLOCK_NODES=$nodes PATH=${REDLOCK_TOOL%/*}:$PATH PS1='prompt> '
interrupt=$'\x03'
suspend=$'\x1a'
shell=(bash --norc --noprofile --noediting -i)

# The command reads what the user types.
expect 4 "$terminal" ready $'hello\n' -- redlock --node-timeout 5s run r -- \
    sh -c 'echo ready; read x; echo got $x; exit 4'
says "$out" '^got hello'

# Ctrl-C reaches the command once, and the command's status stands.
expect 5 "$terminal" ready "$interrupt" -- redlock --node-timeout 5s run r -- \
    bash -c 'trap "echo told; exit 5" INT; echo ready; while :; do sleep 0.05; done'
is 'how often it was told' "$(grep -c told "$out")" 1
# If Ctrl-C ends the command, it also ends the script around it.
expect 130 "$terminal" ready "$interrupt" -- \
    bash -c 'redlock --node-timeout 5s run r -- sh -c "echo ready; exec sleep 1000"; echo went on'
never_says "$out" 'went on'
eventually no_keys_left r
# Before the lock is taken, Ctrl-C ends the wait.
redis_on '0 1 2' set taken somebody
expect 130 "$terminal" "asking for" "$interrupt" -- redlock -v --node-timeout 5s run -w forever taken -- true

# Ctrl-Z stops both, and fg continues both.
traps='trap "echo contin""ued" CONT; echo rea""dy; while :; do sleep 0.05; done'
expect 0 "$terminal" \
    'prompt> ' $'redlock --node-timeout 5s run r -- bash -c \''"$traps"$'\'\n' \
    ready "$suspend" \
    Stopped $'fg\n' \
    continued "$interrupt" \
    'prompt> ' $'echo status $?\n' \
    'status 130' $'exit 0\n' -- "${shell[@]}"

# In a pipeline, the command gets the terminal when it reads from it.
expect 0 "$terminal" \
    'prompt> ' $'redlock --node-timeout 5s run r -- bash -c \'echo rea""dy >&2; read x; echo got $x\' | cat\n' \
    ready $'hello\n' \
    'got hello' '' \
    'prompt> ' $'exit 0\n' -- "${shell[@]}"

# In the background the command stops when it reads, and fg gives it the terminal.
expect 0 "$terminal" \
    'prompt> ' $'redlock --node-timeout 5s run r -- bash -c \'read x; echo got $x\' &\n' \
    'prompt> ' $'while ! jobs -s | grep -q redlock; do sleep 0.05; done; echo stop""ped\n' \
    stopped $'fg\n' \
    'redlock' $'hello\n' \
    'got hello' '' \
    'prompt> ' $'exit 0\n' -- "${shell[@]}"
finish
