#!/usr/bin/env bash
# The tool with nodes that are dead, hung, refused or wrong. A minority does not matter; a majority
# is reported clearly.
# shellcheck disable=SC2317 # functions that are called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5
kill_node 1 3

# Two of five are down: everything works.
expect 0 tool acquire -t 1m resource
token=$(cat "$out")
expect 75 tool acquire resource
expect 0 tool extend -t 1m resource "$token"
expect 0 tool status resource
says "$out" "^127.0.0.1:${ports[1]} +(WAITING|CONNECTING) +- +- +- +- +.*refused"
says "$out" '^3 of 5 nodes ready'
says "$out" "^resource: held by ${token#*@} on 3 of 5 nodes"
says "$out" "^  127.0.0.1:${ports[3]}: no answer: .*refused"
expect 0 tool --json status resource
json '.ready == 3 and ([.nodes[] |
    select(.state != "READY" and (.error | test("refused")) and .uptime_s == null)] | length == 2)'
json '[.resources[0].votes[] | select(.vote == "FAILED" and (.error | length) > 0)] | length == 2'
expect 0 tool release resource "$token"
expect 0 tool run resource -- true
expect 0 "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 -v status
says "$err" '^redlock: (debug|info|warning): '

# One more hangs: every command fails without a quorum, and the error says why for each node.
hang_node 0
node_timeout=1000
connect_timeout=1s
expect_no_out 69 tool acquire resource
says "$err" "^redlock: .*'resource'.*no quorum"
says "$err" "127.0.0.1:${ports[0]}: "
says "$err" "127.0.0.1:${ports[1]}[:,].*refused"
expect_no_err 69 tool --json acquire resource
json '.error == "NO_QUORUM" and .resource == "resource" and (.votes | length) == 5'
json '[.votes[] | select(.error | test("refused"))] | length == 2'
expect 69 tool acquire -w 500ms resource
says "$err" ' Gave up after [0-9]+ attempts? in [0-9.]+m?s\.$'
# While it waits, the tool says once why nothing comes.
expect 69 tool acquire -w 3s resource
needed='3 are needed; still trying'
refused=".*127.0.0.1:${ports[1]}: [A-Z]+, .*refused.*"
says "$err" "^redlock: warning: no quorum for 'resource' yet: 2 of 5 nodes are ready \($refused\); $needed$"
is 'how often it was told' "$(grep -c 'still trying' "$err")" 1
is 'the number of lines' "$(wc -l <"$err")" 2
expect_no_err 69 tool -q acquire -w 1500ms resource
expect 69 tool run resource -- touch "$work/ran"
is 'the command ran' "$([[ -e $work/ran ]] && echo yes)" ''
expect 69 tool extend -t 1s resource "$token"
says "$err" 'no quorum'
expect 69 tool release resource "$token"
says "$err" 'no quorum'
expect 69 tool status resource
says "$out" '^2 of 5 nodes ready; a quorum is 3: locks cannot be taken'
says "$out" '^resource: unknown: 2 of 5 nodes could tell'
expect 69 tool --json status resource
json '.error == "NO_QUORUM" and .ready == 2 and .resources[0].verdict == "unknown"'
expect_no_err 69 tool -q acquire resource

# A signal ends a command that hangs.
for command in status 'extend -t 1s resource token' 'release resource token' 'acquire resource'; do
    read -ra words <<<"$command"
    forget_words
    "$REDLOCK_TOOL" -v -n "$nodes" --node-timeout 50ms --connect-timeout 1m "${words[@]}" >"$out" 2>"$err" &
    stuck=$!
    eventually grep -q 'is ready' "$err"
    kill -TERM $stuck
    eventually gone $stuck
    wait $stuck
    is "the status of $command" $? 143
    says "$err" '^redlock: stopped by signal 15'
done

# A node comes back while a client waits.
forget_words
"$REDLOCK_TOOL" -v -n "$nodes" --node-timeout 5000 acquire -w 1m resource >"$out" 2>"$err" &
waiter=$!
eventually grep -q "asking for" "$err"
wake_node 0
wait $waiter
is 'the status of the waiter' $? 0
says "$out" '^[0-9a-f]{48}@[^ ]+:[0-9]+$'

# Passwords, databases, sockets. No output contains a password.
node_timeout=5000
connect_timeout=10s
ports=() pids_before=("${pids[@]}") pids=() nodes=
start_node --requirepass hunter2
start_node --requirepass hunter2
start_node
secret="redis://:hunter2@127.0.0.1:${ports[0]}/2,redis://127.0.0.1:${ports[1]},unix://$work/${ports[2]}/socket"
expect 0 "$REDLOCK_TOOL" -v -n "$secret" --node-timeout 5000 acquire -t 1m guarded
never_says "$out" hunter2
never_says "$err" hunter2
is 'the key in database 2' "$(redis 0 --no-auth-warning -a hunter2 -n 2 exists guarded)" 1
expect 0 "$REDLOCK_TOOL" -v -n "$secret" --node-timeout 5000 status guarded
says "$out" "^127.0.0.1:${ports[1]} +UNUSABLE .*[Pp]assword|NOAUTH|[Aa]uth"
says "$out" "^2 of 3 nodes ready"
never_says "$out" hunter2
never_says "$err" hunter2
expect 69 "$REDLOCK_TOOL" -v -n "${secret//hunter2/wrong7}" --node-timeout 5000 acquire guarded
never_says "$err" wrong7
says "$err" 'WRONGPASS|[Pp]assword'

# A command that works still warns about a minority without a vote, once a node. -q hides the
# warning, -E does not.
unusable="^redlock: warning: node 127.0.0.1:${ports[1]} does not vote: .*NOAUTH"
guarded() {
    "$REDLOCK_TOOL" -n "$secret" --node-timeout 5000 --connect-timeout 10s "$@"
}
expect 75 guarded run -E 75 guarded -- true
says "$err" "$unusable"
is 'the number of lines' "$(wc -l <"$err")" 1
expect 0 guarded acquire -t 1m other
token=$(cat "$out")
says "$err" "$unusable"
is 'the number of lines' "$(wc -l <"$err")" 1
never_says "$err" hunter2
expect 0 guarded extend -t 1m other "$token"
says "$err" "$unusable"
expect 0 guarded --json release other "$token"
json '.warning == "NODE_UNUSABLE" and (.message | test("NOAUTH"))' "$err"
expect 5 guarded run other -- sh -c 'exit 5'
says "$err" "$unusable"
expect_no_err 5 guarded -q run other -- sh -c 'exit 5'
expect_no_err 0 guarded status

# The same server twice; a replica; a name that does not resolve.
expect 69 "$REDLOCK_TOOL" -n "127.0.0.1:${ports[2]},unix://$work/${ports[2]}/socket" --node-timeout 5000 acquire twice
says "$err" 'same'
start_node --replicaof 127.0.0.1 "${ports[2]}"
expect 69 "$REDLOCK_TOOL" -n "127.0.0.1:${ports[3]}" --node-timeout 5000 status
says "$out" 'UNUSABLE .*replica'
expect 69 "$REDLOCK_TOOL" -n "name.invalid:6379" --node-timeout 5000 --connect-timeout 20s status
says "$out" "^name.invalid:6379 +(WAITING|CONNECTING) .*(resolve|known|name)"
start_node --maxmemory 10mb --maxmemory-policy allkeys-lru
expect 0 "$REDLOCK_TOOL" -n "127.0.0.1:${ports[4]}" --node-timeout 5000 --connect-timeout 10s status
says "$out" 'READY .*allkeys-lru'
expect 0 "$REDLOCK_TOOL" -n "127.0.0.1:${ports[4]}" --node-timeout 5000 --connect-timeout 10s run evicted -- true
says "$err" "^redlock: warning: node 127.0.0.1:${ports[4]}: .*allkeys-lru"
is 'the number of lines' "$(wc -l <"$err")" 1

# One of three is down, and the others differ. A quorum answers, but nobody knows what the third
# holds.
pids_before+=("${pids[@]}") ports=() pids=() nodes=
start_nodes 3
redis 0 set parted somebody px 600000 >/dev/null
kill_node 2
expect 0 tool status parted
says "$out" '^2 of 3 nodes ready'
says "$out" '^parted: unknown: held on 1, free on 1; 1 of 3 nodes could not tell$'
expect 0 tool --json status parted
json '(has("error") | not) and (.resources[0] |
    .verdict == "unknown" and .held_on == 1 and .free_on == 1 and .unknown_on == 1)'
# A node that refuses SUBSCRIBE keeps no queue for us. Two of three: then nobody waits in a queue.
redis 0 acl setuser default resetchannels >/dev/null
expect 0 tool status
no_channels='(SUBSCRIBE refused \(NOPERM |waiting in order needs \+publish &redlock:)'
says "$out" "^127.0.0.1:${ports[0]} .*  no queue: $no_channels"
says "$out" '; a quorum is 2: locks can be taken, until one more node fails$'
redis 1 acl setuser default resetchannels >/dev/null
expect 0 tool status
says "$out" '; a quorum is 2: locks can be taken, until one more node fails; too few nodes keep queues: '
says "$out" ': who waits tries again after random delays$'
expect 0 tool --json status
json '.nodes[0] | .queue_refused and (.queue_error | test("NOPERM|&redlock:"))'
json '.nodes[2] | (.queue_refused | not) and .queue_error == ""'
# A node that refuses the key has answered, but cannot tell.
redis 1 acl setuser default resetkeys '~redlock:*' >/dev/null
expect 69 tool status parted
says "$out" '^parted: unknown: 1 of 3 nodes could tell$'
says "$out" "^  127.0.0.1:${ports[1]}: cannot tell: NOPERM "
says "$out" "^  127.0.0.1:${ports[2]}: no answer: .*refused"
expect 69 tool --json status parted
json '.error == "NO_QUORUM" and .ready == 2 and .resources[0].unknown_on == 2'

# One node behind a proxy, whose answers take a while: then there is time to do things before them.
pids_before+=("${pids[@]}") ports=() pids=() nodes=
start_nodes 1
start_proxy
behind=${links[0]}
accepted() {
    tell count 0 && ((answer[3] == $1))
}
tell set 0 replies delay_us 1500000
# The second connection gets no answer, and is given up. That is no refusal. The first one waits for
# an answer, too, and gets it before the next try can end.
forget_words
"$REDLOCK_TOOL" -n "127.0.0.1:$behind" --node-timeout 20000 --connect-timeout 6s status >"$out" 2>"$err" &
command=$!
eventually accepted 2
tell treat 0 freeze
eventually accepted 3
tell treat 0 thaw
wait $command
is 'the exit status' $? 0
says "$out" ' READY .*  not subscribed yet(: .*)?$'
says "$out" ': locks can be taken$'
# A signal while it asks who holds the lock.
redis 0 set held somebody px 600000 >/dev/null
redis 0 config resetstat >/dev/null
asked_who_holds_it() {
    redis 0 info commandstats | grep -q '^cmdstat_pttl:'
}
forget_words
"$REDLOCK_TOOL" -n "127.0.0.1:$behind" --node-timeout 20000 --connect-timeout 20s acquire held >"$out" 2>"$err" &
command=$!
eventually asked_who_holds_it
kill -TERM $command
wait $command
is 'the exit status after SIGTERM' $? 143
says "$err" '^redlock: stopped by signal 15'
pids+=("${pids_before[@]}")
finish
