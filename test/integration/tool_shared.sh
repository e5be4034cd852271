#!/usr/bin/env bash
# Locks that some read together: who is let in and who is kept out, and what each command says of
# them.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
export REDLOCK_NODES=$nodes PATH=${REDLOCK_TOOL%/*}:$PATH

resource_is() { # FILTER [RESOURCE]
    [[ $(tool --json status "${2:-cache}" | jq ".resources[0] | $1") == true ]]
}
# A node may answer late: then a quorum has what all will have.
read_on_all_by() {
    resource_is "([.read_by[] | select(.held_on == 3)] | length) == $1"
}

# Two read together. Each has a token of its own, with an s behind the digits.
expect 0 tool acquire -t 1h --shared --holder web-1:1 cache
first=$(cat "$out")
says "$out" '^[g-v][0-9a-f]{31}s@web-1:1$'
expect 0 tool --json acquire -t 2h -s --holder web-2:2 cache
second=$(jq -r .token "$out")
json '.mode == "shared" and (.token | test("^[g-v][0-9a-f]{31}s@web-2:2$"))'
eventually read_on_all_by 2

# Whoever would have it alone is refused, and told who reads.
expect_no_out 75 tool acquire cache
says "$err" 'Give -w TIME to wait; web-[12]:[12] and 1 more read it; its keys end in 1h [0-9]+m if '
expect 75 tool run -w 200ms cache -- true
expect 0 tool --json acquire alone
json '.mode == "exclusive"'

# status shows all of them: as text, as JSON, among all locks, as metrics.
expect 0 tool status cache
says "$out" '^cache: read by 2 on 3 of 3 nodes, for 1h [0-9]+m more$'
says "$out" "^  127.0.0.1:${ports[1]}: read by 2, for 1h [0-9]+m more$"
says "$out" "^  reader $first: on 3 of 3 nodes, for 59m [0-9]+s more$"
says "$out" "^  reader $second: on 3 of 3 nodes, for 1h [0-9]+m more$"
expect 0 tool --json status cache alone
json '.resources[0] | .verdict == "held" and .mode == "shared" and .readers == 2 and .held_on == 3'
json '.resources[0] | .remaining_ms > 3600000 and ([.votes[] | select(.readers == 2)] | length) == 3'
json "[.resources[0].read_by[] | .token] == ([\"$first\", \"$second\"] | sort)"
json '.resources[0].read_by[] | select(.holder_text == "web-1:1") | .held_on == 3 and .remaining_ms <= 3600000'
json '.resources[1] | .mode == "exclusive" and .readers == 0 and .read_by == [] and .waiting == []'
expect 0 tool status --all
says "$out" '^cache +read by 2 +3/3 +1h [0-9]+m +0 +web-[12]:[12]$'
says "$out" '^alone +held '
expect 0 tool --json status --match 'cache*'
json '.resources[0] | .verdict == "held" and .mode == "shared" and .readers == 2 and (has("read_by") | not)'
expect 0 tool status --metrics cache
says "$out" '^redlock_lock_readers\{resource="cache"\} 2$'
says "$out" '^redlock_lock_held\{resource="cache"\} 1$'

# A reader's token is extended and released as any other, and nobody else notices.
expect 0 tool extend -t 3h cache "$first"
says "$out" '^cache: extended; valid for at least 2h '
expect 0 tool release cache "$first"
expect 76 tool release cache "$first"
eventually read_on_all_by 1
expect 0 tool status cache
says "$out" '^cache: read by web-2:2 on 3 of 3 nodes, for 1h [0-9]+m more$'
expect_no_out 75 tool acquire cache
says "$err" 'web-2:2 reads it; its keys end in 1h'
expect 76 tool extend -t 1h cache "$first"
says "$err" '^redlock: cannot extend'
expect 0 tool release cache "$second"
eventually no_keys_left cache

# They run at the same time. Who waits to have it alone is let in behind them, and before those who
# came later.
mkfifo "$work/go"
for n in 1 2; do
    redlock --node-timeout 5s run --shared -t 1h cache -- sh -c 'echo "$REDLOCK_TOKEN" >"$1"; read -r _ <"$2"' sh \
        "$work/reader.$n" "$work/go" &
    readers[n]=$!
done
eventually test -s "$work/reader.1" -a -s "$work/reader.2"
eventually read_on_all_by 2
redlock --node-timeout 5s run -w 1h -t 1h cache -- sh -c 'echo writer >>"$1"' sh "$work/order" &
writer=$!
eventually resource_is '.waiters == 1'
redlock --node-timeout 5s run --shared -w 1h -t 1h cache -- sh -c 'echo reader >>"$1"' sh "$work/order" &
late=$!
eventually resource_is '.waiters == 2'
expect 75 tool acquire --shared cache # a try passes nobody
says "$err" 'others wait for it|held by'
expect 0 tool status cache
says "$out" '^cache: read by 2 on 3 of 3 nodes, .*; 2 wait, the first for '
says "$out" '^  waiter [0-9a-f]{48}@[^ ]+: on [23] of 3 nodes, for [0-9.]+m?s$'
says "$out" '^  waiter [0-9a-f]{48}s@[^ ]+: on [23] of 3 nodes, to read, for [0-9.]+m?s$'
expect 0 tool --json status cache
json '[.resources[0].waiting[] | .mode] == ["exclusive", "shared"] and
    (.resources[0].waiting[0] | .waited_ms >= 0 and .queued_on >= 2 and (.holder_text | length) > 0)'
printf 'on\non\n' >"$work/go"
wait "${readers[@]}" $writer $late
is 'the order' "$(tr '\n' ' ' <"$work/order")" 'writer reader '
eventually no_keys_left cache

# One that stays after its command keeps nobody out who reads; nor does one without an order.
expect 0 tool run --shared --at-least 1h kept -- true
expect 75 tool acquire kept
expect 0 tool run --shared --order none -w 1s kept -- true
resource_is '.readers == 1 and .remaining_ms > 3000000' kept || fail 'it is not kept'

# From alone to together without a gap, under the same token.
expect 0 tool acquire -t 1h cache
token=$(cat "$out")
expect 76 tool downgrade cache "0${token:1}"
expect 75 tool acquire --shared cache
expect 0 tool downgrade -t 2h cache "$token"
says "$out" '^cache: others may read it, too; valid for at least 1h '
eventually read_on_all_by 1
expect 0 tool acquire --shared -t 1h cache
second=$(cat "$out")
expect 75 tool acquire cache
expect 0 tool --json downgrade cache "$token" # it reads already
json ".token == \"$token\" and .validity_ms > 0"
# Its token does not say that it reads.
expect 0 tool extend --shared -t 3h cache "$token"
says "$out" '^cache: extended; valid for at least 2h '
eventually read_on_all_by 2
expect 0 tool release cache "$token"
expect 0 tool release cache "$second"
eventually no_keys_left cache
expect 76 tool downgrade cache "$token"
# Without --shared it asks for the lock alone, and has it no more.
expect 0 tool acquire -t 1h cache
token=$(cat "$out")
expect 0 tool downgrade cache "$token"
expect 76 tool extend -t 1h cache "$token"
eventually no_keys_left cache

# A reader's fencing token is above that of who wrote before, and below that of who writes next.
fence_of() {
    tool --json acquire --fence "$@" fenced >"$work/fenced"
    tool -q release fenced "$(jq -r .token "$work/fenced")"
    jq -r .fence "$work/fenced"
}
before=$(fence_of) between=$(fence_of --shared) after=$(fence_of)
checks=$((checks + 1))
((before < between && between < after)) || fail "the fencing tokens are $before, $between, $after"

# clear shows all who read, and releases all of them. It asks before it does.
expect 0 tool acquire -t 1h --shared --holder web-1:1 cache
first=$(cat "$out")
expect 0 tool acquire -t 1h --shared --holder web-2:2 cache
eventually read_on_all_by 2
redlock --node-timeout 5s acquire -t 1h -w 1h --holder writer cache >"$work/writer" 2>/dev/null &
writer=$!
eventually resource_is '.waiters == 1'
expect 75 "$TOOL_TERMINAL" '[y/N]' $'n\n' -- redlock --node-timeout 5s clear cache
says "$out" '^cache: read by 2; 1 waits for it, and the first in the queue gets it'
says "$out" "^  127.0.0.1:${ports[0]}: read by 2, for 59m [0-9]+s more"
says "$out" "^  reader web-1:1 \(token $first\): on 3 of 3 nodes, for 59m [0-9]+s more"
says "$out" 'may still run, and will no longer be safe from those who write\. Free it\? \[y/N\]'
eventually read_on_all_by 2
expect 0 tool clear --yes cache
says "$out" '^cache: cleared$'
says "$out" "^  reader web-1:1 \(token $first\): released$"
wait $writer
is 'the exit status of the writer' $? 0
expect 0 tool release cache "$(cat "$work/writer")"
expect 0 tool acquire -t 1h --shared --holder web-1:1 cache
expect 0 tool --json clear --yes cache
json '.cleared and ([.read_by[] | .outcome] == ["released"]) and .read_by[0].holder_text == "web-1:1"'
eventually no_keys_left cache
# A set of somebody else is left alone.
later=$((($(date +%s) + 3600) * 1000))
redis_on '0 1 2' zadd scores $later player
redis_on '0 1 2' pexpire scores 3600000
expect 75 tool acquire scores
expect 64 tool clear --yes scores
says "$err" "^redlock: the key of 'scores' holds what no lock does"
is 'the keys' "$(keys_left scores)" 3

# A node that forgot its readers, and one that is down.
expect 0 tool acquire -t 1h --shared cache
first=$(cat "$out")
eventually read_on_all_by 1
redis 0 del cache >/dev/null
expect 0 tool status cache
says "$out" '^cache: read by .* on 2 of 3 nodes, for '
says "$out" "^  127.0.0.1:${ports[0]}: free$"
kill_node 1
expect 0 tool --json status cache
json '.resources[0] | .verdict == "unknown" and .held_on == 1 and .read_by[0].held_on == 1'
expect 0 tool acquire -t 1h other
token=$(cat "$out")
expect 0 tool downgrade -t 1h other "$token"
expect 0 tool acquire --shared -t 1h other
expect 75 tool acquire other
expect 0 tool extend --shared -t 2h other "$token"
kill_node 2
expect_no_out 69 tool downgrade other "$token"
says "$err" "^redlock: cannot extend 'other': "
expect 69 tool acquire --shared other
expect 69 tool clear --yes other
finish
