#!/usr/bin/env bash
# redlock clear: what it shows and asks, whom it frees; it never frees what it did not show.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
digits=00112233445566778899aabbccddeeff
export REDLOCK_NODES=$nodes PATH=${REDLOCK_TOOL%/*}:$PATH

# Nobody holds it.
expect 0 tool clear job
says "$out" '^job: free already: nothing was done$'
says_nothing "$err"
expect 0 tool --json clear job
json '.resource == "job" and .cleared == false and (has("error") | not)'

# Without a terminal it does not ask, and does nothing.
expect 0 tool acquire -t 1h --holder web-3:4711 job
token=$(cat "$out")
expect 64 tool clear job
says "$err" "^redlock: clear asks first, and needs a terminal for that; give --yes to free 'job' unasked"
is 'the keys' "$(keys_left job)" 3

# On a terminal it shows who holds it, and asks. Only yes means yes.
for answer in n '' no Nein yess; do
    expect 75 "$TOOL_TERMINAL" '[y/N]' "$answer"$'\n' -- redlock --node-timeout 5s clear job
    says "$out" '^job: held'
    says "$out" "^  127.0.0.1:${ports[0]}: held by web-3:4711 \(token $token\), for 59m [0-9]+s more"
    says "$out" '^redlock: not confirmed: nothing was done'
    is 'the keys' "$(keys_left job)" 3
done
# It takes the whole line: the shell would run the rest.
expect 0 "$TOOL_TERMINAL" '[y/N]' $'no, this is not what I want\n' 'done:' $'next\n' -- bash -c \
    'redlock --node-timeout 5s clear job; echo done:; read -r rest; [[ $rest == next ]]'
expect 130 "$TOOL_TERMINAL" '[y/N]' $'\x03' -- redlock --node-timeout 5s clear job
is 'the keys' "$(keys_left job)" 3
expect 75 "$TOOL_TERMINAL" '[y/N]' $'\x04' -- redlock --node-timeout 5s clear job
for answer in y YES; do
    expect 0 "$TOOL_TERMINAL" '[y/N]' "$answer"$'\n' -- redlock --node-timeout 5s clear job
    says "$out" '^job: cleared'
    says "$out" "^  127.0.0.1:${ports[2]}: (released|release sent)"
    eventually no_keys_left job
    expect 0 tool acquire -t 1h job
done

# --yes does not ask. The holder learns of it at its next renewal, and its command is stopped.
expect 0 tool clear --yes job
says "$err" '^job: held$'
says "$out" '^job: cleared$'
eventually no_keys_left job
forget_words
"$REDLOCK_TOOL" --node-timeout 5000 run -t 900ms job -- sleep 1000 >"$work/run" 2>&1 &
holder=$!
eventually gives 3 keys_left job
expect_no_out 0 tool -q clear -y job
says_nothing "$err"
wait $holder
is 'the exit status of the holder' $? 76

# The next in line gets the lock.
expect 0 tool acquire -t 1h -w 1s job
"$REDLOCK_TOOL" --node-timeout 5000 acquire -t 1h -w 1h --holder next job >"$work/next" 2>/dev/null &
waiter=$!
waiters_are() {
    [[ $(tool --json status job | jq '.resources[0].waiters') == "$1" ]]
}
eventually waiters_are 1
expect 0 tool clear --yes job
says "$err" '^job: held; 1 waits for it, and the first in the queue gets it$'
wait $waiter
is 'the exit status of the waiter' $? 0
expect 0 tool --json clear --yes job
json '.cleared and ([.nodes[] | select(.holder_text == "next" and (.outcome | test("release")))] | length >= 2)'
eventually no_keys_left job

# It changed while the question stood there: the new holder keeps it.
expect 0 tool acquire -t 1h --holder old job
forget_words
(
    eventually grep -q 'y/N' "$work/screen"
    for i in 0 1 2; do
        redis $i set job "$digits@new" px 3600000
    done
    echo changed >"$work/changed"
) >/dev/null 2>&1 &
changer=$!
# The answer comes only after the change, on a terminal of script's.
checks=$((checks + 1))
mkfifo "$work/keys"
(
    exec 3>"$work/keys"
    eventually test -e "$work/changed" >/dev/null
    echo y >&3
    eventually grep -q 'changed meanwhile' "$work/screen" >/dev/null
) &
script -qefc 'redlock --node-timeout 5s clear job' "$work/screen" <"$work/keys" >/dev/null
is 'the exit status' $? 76
wait $changer
says "$work/screen" '^job: it changed meanwhile: the token that was shown is no longer on a quorum of nodes'
says "$work/screen" '^  127.0.0.1:[0-9]+: not released: held under another token'
is 'the value' "$(redis 0 get job)" "$digits@new"

# Minorities and splits: every token that was shown goes.
for i in 0 1 2; do
    redis $i set split "${digits/0/$i}@n$i" px 3600000 >/dev/null
done
expect 0 tool clear --yes split
says "$err" '^split: split$'
eventually no_keys_left split
redis 0 set minority "$digits" px 3600000 >/dev/null
expect 0 tool clear --yes minority
eventually no_keys_left minority

# A value that no lock has.
for i in 0 1 2; do
    redis $i set long "$(printf 'x%.0s' {1..200})" >/dev/null
    redis $i lpush list a >/dev/null
    redis $i set empty '' >/dev/null
done
expect 75 tool acquire long
says "$err" "its keys have no end, as no lock has: see 'redlock status RESOURCE'\.$"
expect 64 tool clear --yes long
says "$err" "^redlock: the key of 'long' holds what no lock does; if nobody needs it, delete it with redis-cli$"
is 'the keys' "$(keys_left long)" 3
for resource in list empty; do
    expect 64 tool clear --yes $resource
    says "$err" "the key of '$resource' holds what no lock does"
    is 'the keys' "$(keys_left $resource)" 3
done

# A node that is down: the others are freed, and the report says what is left. Then no quorum.
kill_node 2
expect 0 tool clear --yes job
says "$out" '^job: cleared$'
says "$out" "^  127.0.0.1:${ports[2]}: not released: "
eventually no_keys_left job
expect 0 tool --json acquire -t 1h job
kill_node 1
expect 69 tool clear --yes job
is 'the keys' "$(keys_left job)" 1
expect 64 tool clear
expect 64 tool clear a b
finish
