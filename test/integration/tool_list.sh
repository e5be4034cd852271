#!/usr/bin/env bash
# status --all and --match: which keys are locks, of which nodes; ACL users without SCAN; nodes that
# are down; large keyspaces. Then --all-ready and --watch.
# shellcheck disable=SC2016,SC2317 # variables of other programs; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
digits=00112233445566778899aabbccddeeff

expect 0 tool status --all
says "$out" '^no locks$'
expect 0 tool --json status --all
json '.resources == [] and ([.nodes[] | select(.listed and .list_error == "")] | length == 3)'

# Locks of ours, with and without a holder's text, with an odd name, and one that waits.
expect 0 tool acquire -t 1h --holder web-3:4711 backup
expect 0 tool acquire -t 2h --holder '' bare
bare=$(cat "$out")
odd=$'a "b\\\n\e[31m\xff\xc3\xbc'
expect 0 tool acquire -t 3h --holder x "$odd"
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 acquire -w 1h backup >/dev/null 2>&1 &
waiter=$!
waiters_are() {
    [[ $(tool --json status backup | jq '.resources[0].waiters') == "$1" ]]
}
eventually waiters_are 1
# On a minority only; on all nodes without a ttl; two tokens on three nodes.
redis 0 set minority "$digits@lonely" px 3600000 >/dev/null
redis_on '0 1 2' set endless "$digits"
redis 0 set split "${digits}@one" px 3600000 >/dev/null
redis 1 set split "${digits}@two" px 3600000 >/dev/null
redis 2 set split "${digits}@three" px 3600000 >/dev/null
# Keys that are no locks: other types, other values, values that are almost tokens; our own beside
# the locks.
for i in 0 1 2; do
    redis $i set cache:1 hello ex 3600 >/dev/null
    redis $i set number 42 >/dev/null
    redis $i lpush list "$digits" >/dev/null
    redis $i hset hash a b >/dev/null
    redis $i sadd set a >/dev/null
    redis $i set upper "${digits^^}" ex 3600 >/dev/null
    redis $i set longer "${digits}0" ex 3600 >/dev/null
    redis $i set spaced "$digits@a b" ex 3600 >/dev/null
    redis $i set nothing '' ex 3600 >/dev/null
    redis $i set huge "$(printf 'x%.0s' {1..5000})" ex 3600 >/dev/null
    redis $i set redsync:7 KTbmTTcEXyBPcWBcmTLpLQ== ex 3600 >/dev/null
    redis $i set counted:fence 1763000000000000000 ex 100000 >/dev/null
done
expect 0 tool status --all
says "$out" '^NODE +STATE'
says "$out" '^RESOURCE +STATE +NODES +TTL LEFT +WAITERS +HOLDER$'
says "$out" '^backup +held +3/3 +59m [0-9]+s +1 +web-3:4711$'
says "$out" "^bare +held +3/3 +1h 59m +0 +$bare\$"
says "$out" '^minority +free +1/3 +59m [0-9]+s +0 +lonely$'
says "$out" "^endless +held +3/3 +no ttl +0 +$digits\$"
says "$out" '^split +split +1/3 +59m [0-9]+s +0 +(one|two|three)$'
says "$out" '^a "b\\\\x0a\\x1b\[31m\\xffü +held'
never_says "$out" $'\e'
is 'the lines of locks' "$(sed -n '/^RESOURCE/,$p' "$out" | wc -l)" 7
expect 0 tool --json status -a
is 'the names' "$(jq -rc '[.resources[].resource] | sort' "$out")" \
    '["a \"b\\\n\u001b[31m�ü","backup","bare","endless","minority","split"]'
json '.resources[] | select(.resource == "backup") | .verdict == "held" and .holder_text == "web-3:4711" and
    .waiters == 1 and .held_on == 3 and .free_on == 0 and .unknown_on == 0 and .remaining_ms > 3000000'
json '.resources[] | select(.resource == "minority") | .verdict == "free" and .held_on == 1 and .free_on == 2'
json '.resources[] | select(.resource == "endless") | .remaining_ms == null'
kill $waiter
wait $waiter

# --match takes a pattern of names, and then also the locks of other libraries; never a counter.
expect 0 tool --json status --match 'redsync:*'
is 'the names' "$(jq -c '[.resources[].resource]' "$out")" '["redsync:7"]'
json '.resources[0] | .token == "KTbmTTcEXyBPcWBcmTLpLQ==" and .holder_text == "" and .verdict == "held"'
expect 0 tool --json status --match '*'
json '[.resources[].resource] | contains(["cache:1", "upper", "longer", "spaced", "redsync:7", "backup", "endless"])'
json '[.resources[].resource] | (index("number") or index("huge") or index("nothing") or index("list") or
    index("hash") or index("counted:fence")) | not'
expect 0 tool --json status --match 'counted*'
json '.resources == []'
expect 0 tool --json status --match 'ba[ck]*'
is 'the names' "$(jq -c '[.resources[].resource]' "$out")" '["backup"]'
# With another suffix a counter is a string like others.
expect 64 tool status --all backup
says "$err" '^redlock: --all lists all locks: leave out the RESOURCE'
expect 64 tool status --match "$(printf 'x%.0s' {1..1025})"

# Users: without SCAN at one node; without most keys at another. The table says so.
redis 1 acl setuser locker on '>secret' '~*' '&*' +@all -scan >/dev/null
redis 2 acl setuser locker on '>secret' '~ba*' '&*' +@all >/dev/null
redis 0 acl setuser locker on '>secret' '~*' '&*' +@all >/dev/null
all=$nodes
nodes=redis://locker:secret@127.0.0.1:${ports[0]},redis://locker:secret@127.0.0.1:${ports[1]}
nodes+=,redis://locker:secret@127.0.0.1:${ports[2]}
expect 0 tool status --all
says "$out" "^127.0.0.1:${ports[1]} +READY .*cannot list its locks: NOPERM this user may not SCAN"
says "$out" "^127.0.0.1:${ports[2]} +READY .*locks may be missing: it has [0-9]+ keys that this user may not read"
says "$out" '^backup +held +2/3 '
says "$out" '^split +unknown +1/3 '
never_says "$out" secret
expect 0 tool --json status --all
json '.nodes[1] | .state == "READY" and .listed == false and (.list_error | test("NOPERM this user may not SCAN"))'
json '.nodes[2] | .listed and (.list_error | test("may not read"))'
json '.resources[] | select(.resource == "backup") | .held_on == 2 and .unknown_on == 1'
# Where a quorum cannot list, the exit status says so.
redis 0 acl setuser locker -scan >/dev/null
expect 69 tool --json status --all
json '.error == "NO_QUORUM" and .ready == 3'
expect 69 tool status --match 'nothing*'
says "$out" '^no locks at 1 of 3 nodes; the others could not list theirs$'
redis 2 acl setuser locker -scan >/dev/null
expect 69 tool status --all
says "$out" '^the locks are not known: no node could list them$'
nodes=$all

# A node that is down, and one that hangs.
expect 0 tool status --all-ready
expect_no_out 0 tool -q status --all-ready
kill_node 2
expect 68 tool status --all-ready
says "$out" '^2 of 3 nodes ready'
expect 68 tool --json status --all-ready backup
json '.ready == 2 and (has("error") | not)'
expect 0 tool status
expect 0 tool status --all
says "$out" '^backup +held +2/3 '
node_timeout=300 hang_node 1
node_timeout=300 connect_timeout=1s expect 69 tool status --all-ready --all
says "$out" '^1 of 3 nodes ready'
wake_node 1

# --watch prints blocks where there is no terminal, until a signal; each is complete.
watch() {
    forget_words
    env --default-signal=INT "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 "$@" >"$out" 2>"$err" &
    watcher=$!
}
# The node has bytes that it does not read: a request waits there.
stuck() {
    awk -v port="$(printf ':%04X' "${ports[1]}")" '
        substr($2, 9) == port && substr($5, 10) > "000003E8" { found = 1 } END { exit !found }' /proc/net/tcp
}
blocks() {
    grep -c "$1" "$out"
}
# A signal while a node owes its page: the listing ends with the close.
watch status --all --watch=100ms
eventually gives_above 1 blocks '^redlock status'
hang_node 1
eventually stuck
kill -TERM $watcher
wake_node 1
wait $watcher
is 'the exit status' $? 143
watch status --watch=100ms backup
eventually gives_above 2 blocks '^redlock status, every 100ms: 2[0-9-]*T[0-9:]*Z$'
redis 0 del backup >/dev/null
redis 1 del backup >/dev/null
eventually grep -q '^backup: free on 2 of 3 nodes' "$out"
kill -INT $watcher
wait $watcher
is 'the exit status' $? 130
says_nothing "$err"
is 'the end of the last block' "$(tail -n 2 "$out" | head -n 1)" \
    "  127.0.0.1:${ports[2]}: no answer: connection refused"
watch --json status --all --watch=0.1
wait $watcher
is 'the exit status' $? 64
watch --json status --all --watch=100ms
eventually gives_above 2 blocks '"resources"'
kill -TERM $watcher
wait $watcher
is 'the exit status' $? 143
checks=$((checks + 1))
jq -es 'length > 2 and all(.ready == 2)' "$out" >/dev/null || fail 'not one object a line'
# Who closes the pipe ends it.
checks=$((checks + 1))
tool status --watch=100ms 2>/dev/null | head -n 1 >/dev/null
[[ ${PIPESTATUS[0]} == 74 ]] || fail "the watch went on: ${PIPESTATUS[0]}"

# On a terminal it repaints: it goes to the corner, and clears what is left of each line.
export TERM=xterm REDLOCK_NODES=$nodes
expect 130 "$TOOL_TERMINAL" 'every 2s' $'\x03' -- "$REDLOCK_TOOL" --node-timeout 5s status --watch
says "$out" $'\e\\[H'"redlock status, every 2s: .*"$'\e\\[K'
says "$out" $'NODE +STATE .*\e\\[K' # perhaps after "^C"
expect 130 "$TOOL_TERMINAL" 'every 1s' '' 'every 1s' $'\x03' -- "$REDLOCK_TOOL" --node-timeout 5s status --watch=1
# A small terminal: no line wraps, and the first one never scrolls away.
in_rows() {
    # shellcheck disable=SC2016 # the inner shell expands it
    expect 130 "$TOOL_TERMINAL" 'redlock status, ever' $'\x03' -- sh -c \
        'stty rows "$1" cols 20 && exec "$0" --node-timeout 5s status --watch' "$REDLOCK_TOOL" "$1"
}
in_rows 4
says "$out" '^NODE  '
says "$out" $'^[0-9] more lines: make t\e\\[K'
in_rows 2
is 'the other lines' "$(grep -Ec 'NODE|more lines' "$out")" 0
in_rows 1
is 'the lines' "$(grep -c $'\e\\[K\r' "$out")" 0
finish
