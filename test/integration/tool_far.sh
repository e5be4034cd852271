#!/usr/bin/env bash
# Nodes that answer, but later than the node timeout: no lock can be taken with them, so no probe is
# green, and each sentence names the timeout. And a first request, which waits for the handshake.
# shellcheck disable=SC2317 # functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
start_proxy
near=$nodes
words='too far away: a round trip takes [0-9]+ ms, but --node-timeout is 200; give --node-timeout [0-9]{3,4}'
nodes=127.0.0.1:${links[0]},127.0.0.1:${links[1]},127.0.0.1:${links[2]}
# far ARGUMENTS… : each round trip takes 0.4 s, and the node timeout is half of that.
far() {
    node_timeout=200 tool "$@"
}
tell set all replies delay_us 400000

expect 69 far status
is 'the rows' "$(grep -cE " READY .* $words$" "$out")" 3
says "$out" '^3 of 3 nodes ready, 3 of them without a vote; a quorum is 2: locks cannot be taken: give '\
'--node-timeout [0-9]{3,4}$'
expect 69 far -q status
expect 69 far status --json
says "$out" '"error":"NO_QUORUM","message":"no quorum: a round trip to too many nodes takes longer than '\
'--node-timeout 200: give --node-timeout [0-9]{3,4}"'
is 'JSON' "$(jq -c '[.ready, .voting, (.nodes[0].round_trip_min_us > 400000)]' "$out")" '[3,0,true]'
expect 69 far status --metrics
says "$out" '^redlock_nodes_ready 3$'
says "$out" '^redlock_nodes_voting 0$'
is 'nodes that vote' "$(grep -c '^redlock_node_voting{.*} 0$' "$out")" 3
expect 69 far run -w 3s x -- true
# The words come after 1 s: on a slow machine the nodes may not be there yet.
grep -q CONNECTING "$err" ||
    says "$err" "^redlock: warning: no quorum for 'x' yet: 0 of 3 nodes may vote \\(127.0.0.1:${links[0]}: $words;"
says "$err" "^redlock: cannot acquire 'x': no quorum: .* Give --node-timeout [0-9]{3,4}\.$"
expect_no_err 0 tool run x -- true
expect 0 tool status

# A signal ends it, too, while one more is still connecting.
all_far=$nodes
start_node
hang_node 3
forget_words
"$REDLOCK_TOOL" -v -n "$nodes" --node-timeout 200 --connect-timeout 1m status >"$out" 2>"$err" &
stuck=$!
eventually grep -q 'is ready' "$err"
kill -TERM $stuck
eventually gone $stuck
wait $stuck
is 'its status' $? 143
kill_node 3
nodes=$all_far

# One of them: a quorum is there, and --all-ready says that it is the last.
tell set 0 replies delay_us 0
tell set 1 replies delay_us 0
expect 0 far status
says "$out" '^3 of 3 nodes ready, 1 of them without a vote; a quorum is 2: locks can be taken, until one '\
'more node fails$'
expect 68 far status --all-ready
expect 0 far run x -- sleep 3
says "$err" "^redlock: warning: node 127.0.0.1:${links[2]}: $words$"

# Two that hang, and are asked for a lock: the connections are there, so the timeout is named.
nodes=$near
expect 0 tool acquire -t 1h x
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 500 --connect-timeout 10s status --json --watch=100ms x >"$out" 2>"$err" &
watcher=$!
seen() {
    grep -q "$1" "$out"
}
eventually seen '"verdict":"held"'
hang_node 0 1
eventually seen '"message":"no quorum: too few nodes answered within --node-timeout 500"'
kill -TERM $watcher
wait $watcher
wake_node 0 1
finish
