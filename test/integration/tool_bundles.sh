#!/usr/bin/env bash
# Several resources in one lease: all or none, in any order, and what each command says of them.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck disable=SC2046,SC2086 # tokens have no spaces
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
export REDLOCK_NODES=$nodes PATH=${REDLOCK_TOOL%/*}:$PATH

resource_is() { # RESOURCE FILTER
    [[ $(tool --json status "$1" | jq ".resources[0] | $2") == true ]]
}
held_on_all() {
    resource_is "$1" '.held_on == 3'
}

# A line for each, in the order in which they were given: each has a token of its own.
expect 0 tool acquire -t 1h b a --shared c
mapfile -t tokens <"$out"
is 'the tokens' ${#tokens[@]} 3
says "$out" '^[g-v][0-9a-f]{31}s@'
for name in a b c; do
    eventually held_on_all $name
done
is 'who has a' "$(tool --json status a | jq -r '.resources[0].token')" "${tokens[1]}"
expect 0 tool status c
says "$out" '^c: read by '

# Who wants one of them, or others beside it, is refused, and nothing is left of what he got.
expect_no_out 75 tool acquire b
expect_no_out 75 tool acquire 0 b z
says "$err" "^redlock: cannot acquire 'b': .*Give -w TIME to wait; .* holds it"
eventually no_keys_left 0
eventually no_keys_left z
expect 75 tool --json acquire 0 b
json '.error == "CONTENDED" and .resource == "b"'
expect 0 tool run --shared c -- true
expect 75 tool run c -- true

# All of them are extended and released at once: the tokens stand behind, in the same order.
expect 0 tool extend -t 2h b a c "${tokens[@]}"
says "$out" '^b: extended; valid for at least 1h '
says "$out" '^a: extended; valid for at least 1h '
says "$out" '^c: extended; valid for at least 1h '
expect 64 tool release b a c "${tokens[0]}" "${tokens[1]}"
says "$err" "^redlock: release needs as many TOKENs as RESOURCEs, behind them, but got 5 words"
expect 0 tool --json release b a c "${tokens[@]}"
json "[.resources[] | .resource] == [\"b\", \"a\", \"c\"] and .resources[1].token == \"${tokens[1]}\""
for name in a b c; do
    eventually no_keys_left $name
done
expect 76 tool release b a c "${tokens[@]}"

# The loss of one is the loss of all; one that is still there is released by the extension.
expect 0 tool acquire -t 1h a b
mapfile -t tokens <"$out"
eventually held_on_all a
eventually held_on_all b
redis_on '0 1 2' del b >/dev/null
expect 76 tool extend -t 1h a b "${tokens[@]}"
says "$err" "^redlock: cannot extend 'b'"
eventually no_keys_left a

# As JSON, with a fencing token for each.
expect 0 tool --json acquire -t 1h --fence a --shared b
json '[.resources[] | .mode] == ["exclusive", "shared"] and .validity_ms > 0 and (has("token") | not)'
json '[.resources[] | .fence | tonumber > 0] == [true, true] and .resources[0].resource == "a"'
tokens=("$(jq -r '.resources[0].token' "$out")" "$(jq -r '.resources[1].token' "$out")")
# And without a gap, others read all of them.
expect 0 tool downgrade -t 1h a b "${tokens[@]}"
expect 0 tool run --shared a b -- true
expect 0 tool extend -t 1h --shared a b "${tokens[@]}"
expect 0 tool release a b "${tokens[@]}"
expect 0 tool acquire -t 1h --fence a b
says "$out" '^[^ ]+ [0-9]{19,}$'
is 'the lines' "$(wc -l <"$out")" 2
expect 0 tool release a b $(cut -d' ' -f1 "$out")

# The command finds a line for each.
expect 0 tool run --fence b a -- sh -c 'echo "$REDLOCK_RESOURCE"; echo "$REDLOCK_TOKEN"; echo "$REDLOCK_FENCE"'
mapfile -t lines <"$out"
is 'the lines' ${#lines[@]} 6
is 'the resources' "${lines[0]} ${lines[1]}" 'b a'
eventually no_keys_left a
eventually no_keys_left b

# In opposite orders, nobody waits for ever; each has both.
for n in 1 2 3 4; do
    names='x y'
    ((n % 2)) || names='y x'
    redlock --node-timeout 5s run -w 1h -t 1h $names -- sh -c 'mkdir "$1" && rmdir "$1" && echo done' sh "$work/alone" \
        >"$work/both.$n" 2>&1 &
    both[n]=$!
done
for n in 1 2 3 4; do
    wait "${both[n]}"
    is "the exit status of run $n" $? 0
    is "what run $n printed" "$(cat "$work/both.$n")" 'done'
done

# A wait is for the first that is missing, and keeps what comes before it.
expect 0 tool acquire -t 1h m
token=$(cat "$out")
redlock --node-timeout 5s --json run -w 1h -t 1h z m a -- true 2>"$work/waited" &
waiter=$!
eventually resource_is m '.waiters == 1'
eventually held_on_all a
is 'the keys' "$(keys_left z)" 0
expect 0 tool release m "$token"
wait $waiter
is 'the exit status of the waiter' $? 0
cp "$work/waited" "$out"
json '.acquired == ["z", "m", "a"] and .waited_ms > 0'

# The command of a lease that was lost is stopped, and the sentence names all, and which was lost.
redlock --node-timeout 5s run -t 2s lost other -- sh -c 'echo >"$1"; sleep 60' sh "$work/runs" 2>"$work/err" &
runner=$!
eventually test -s "$work/runs"
redis_on '0 1 2' del lost >/dev/null
wait $runner
is 'the exit status' $? 76
says "$work/err" "the lease on 'lost' and 'other' is lost: .*'?lost"
eventually no_keys_left other

# --at-least keeps all of them.
expect 0 tool run --at-least 1h k1 k2 -- true
expect 75 tool acquire k1
expect 75 tool acquire k2

# What is refused.
expect 64 tool acquire a b a
says "$err" "^redlock: RESOURCE 'a' is given twice; it would wait for itself"
expect 64 tool acquire a b --shared
says "$err" '^redlock: --shared is for the RESOURCEs behind it'
expect 64 tool elect a b -- true
says "$err" "^redlock: an election has one RESOURCE, but there are 'a' and 'b'"
expect 64 tool run a b
says "$err" "^redlock: run takes '--' before the command"
expect 64 tool acquire $(seq 65)
says "$err" '^redlock: 65 RESOURCEs are more than a lease can have: 64'
expect 64 tool clear a b
expect 0 tool acquire -t 1h $(seq 64)
is 'the tokens' "$(wc -l <"$out")" 64
expect 0 tool release $(seq 64) $(cat "$out")

# Too few nodes.
kill_node 1
expect 0 tool run a b -- true
kill_node 2
expect 69 tool run a b -- true
finish
