#!/usr/bin/env bash
# acquire, extend, release and status on five healthy nodes: effects, output and exit status, as
# text and as JSON.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5

# acquire prints only the token. Every node has the key, with the requested ttl.
expect 0 tool acquire -t 1m backup
token=$(cat "$out")
says "$out" '^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$'
is 'the number of lines' "$(wc -l <"$out")" 1
says_nothing "$err"
for i in 0 1 2 3 4; do
    eventually gives "$token" redis $i get backup
    ttl=$(redis $i pttl backup)
    checks=$((checks + 1))
    ((ttl > 0 && ttl <= 60000)) || fail "the ttl at node $i is $ttl ms"
done

# A rival is refused, and nothing changes.
expect_no_out 75 tool acquire backup
says "$err" "^redlock: .*'backup'.*: held by (others|${token#*@}): "
says "$err" "Give -w TIME to wait; ${token#*@} holds it; its keys end in [0-9.]+s if they are not renewed\.$"
is 'the number of lines' "$(wc -l <"$err")" 1
never_says "$err" "$token"
is 'the value' "$(redis 0 get backup)" "$token"
expect_no_err 75 tool -q acquire backup
expect_no_err 75 tool --json acquire backup
json '.error == "CONTENDED" and .resource == "backup" and (.message | length) > 20'
json '[.votes[] | select(.vote == "DENIED" and .latency_us > 0)] | length >= 3'
json '.votes | length == 5'

# status shows who holds it.
expect 0 tool status backup nobody
says "$out" "^NODE +STATE +VERSION +ROLE +UPTIME +ROUND TRIP"
says "$out" "^127.0.0.1:${ports[0]} +READY +[a-z]+ [0-9.]+ +master +([0-9]+s|[0-9]+m [0-9]+s) +[0-9.]+ms$"
says "$out" "^5 of 5 nodes ready; a quorum is 3: locks can be taken"
says "$out" "^backup: held by ${token#*@} on 5 of 5 nodes, for [0-9.]+s more$"
says "$out" "^  127.0.0.1:${ports[4]}: held by $token, for [0-9.]+s more$"
says "$out" "^nobody: free on 5 of 5 nodes$"
says "$out" "^  127.0.0.1:${ports[2]}: free$"
expect 0 tool --json status backup nobody
json '.ready == 5 and .quorum == 3 and (has("error") | not)'
json '.nodes | length == 5'
json '[.nodes[] | select(.state == "READY" and .role == "master" and .uptime_s >= 0 and .round_trip_us > 0 and
    .error == "")] | length == 5'
json ".resources[0] | .resource == \"backup\" and .verdict == \"held\" and .token == \"$token\" and .held_on == 5"
json '.resources[0] | .remaining_ms > 0 and .remaining_ms <= 60000'
json "[.resources[0].votes[] | select(.holder == \"$token\" and .holder_ttl_ms > 0)] | length == 5"
json '.resources[1] | .verdict == "free" and .free_on == 5 and (has("token") | not)'
json '[.resources[] | .waiters == 0 and .waited_ms == null] == [true, true]'
expect_no_out 0 tool -q status backup

# extend works only with the token.
expect 0 tool extend -t 5m backup "$token"
says "$out" '^backup: extended; valid for at least 4m [0-9]+s$'
for i in 0 1 2 3 4; do
    eventually gives_above 60000 redis $i pttl backup
done
expect 0 tool --json extend -t 5m backup "$token"
json ".resource == \"backup\" and .token == \"$token\" and .validity_ms > 60000 and .validity_ms < 300000"
json '[.votes[] | select(.vote == "GRANTED")] | length >= 3'
expect_no_out 0 tool -q extend -t 5m backup "$token"
expect_no_out 76 tool extend -t 10m backup 00112233445566778899aabbccddeeff
says "$err" "^redlock: cannot extend 'backup': .*held under another token"
expect 76 tool --json extend -t 10m nobody "$token"
json '.error == "LOST" and ([.votes[] | select(.vote == "DENIED")] | length >= 3)'
is 'keys of nobody' "$(keys_left nobody)" 0
is 'the value' "$(redis 0 get backup)" "$token"

# release works only with the token.
expect 76 tool release backup 00112233445566778899aabbccddeeff
says "$err" "^redlock: cannot release 'backup': .*held under another token"
is 'keys after a stranger released' "$(keys_left backup)" 5
expect 0 tool release backup "$token"
says "$out" '^backup: released$'
eventually no_keys_left backup
expect 76 tool --json release backup "$token"
json '.error == "LOST" and .resource == "backup"'
expect 0 tool --json acquire backup
json '.resource == "backup" and (.token | test("^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$"))'
json '.validity_ms > 0 and .validity_ms < 9900'
json '.waited_ms >= 0 and .handed_over == false and .passed_over == 0'
json '[.votes[] | select(.vote == "GRANTED" and .latency_us > 0 and .error == "")] | length >= 3'
second=$(jq -r .token "$out")
checks=$((checks + 1))
[[ $second != "$token" ]] || fail 'the same token twice'
expect_no_out 0 tool -q release backup "$second"
expect 0 tool acquire again
expect 0 tool --json release again "$(cat "$out")"
json '.resource == "again"'

waiters=() # pids

# The wait ends with the rival's ttl, or with its own time.
expect 0 tool acquire -t 1s waited
expect 0 tool acquire -w 30s waited
expect 0 tool acquire -t 1h contended
expect 75 tool acquire -w 300ms contended
me=$(hostname):$$
advice="$me holds it; its keys end in [0-9.]+m [0-9]+s if they are not renewed"
says "$err" "held by ($me|others): .* Gave up after [0-9]+ attempts? in [0-9.]+m?s; $advice\.$"
never_says "$err" 'Give -w'
expect_no_out 3 tool acquire -E 3 contended
says_nothing "$err"
expect 75 tool acquire -w 0 contended

# status shows who waits. The order none takes no place in the queues.
expect 75 tool acquire -w 300ms --order none contended
waiters_are() {
    [[ $(tool --json status contended | jq '.resources[0].waiters') == "$1" ]]
}
eventually waiters_are 0
for _ in 1 2; do
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 acquire -w 1h contended >/dev/null 2>&1 &
    waiters+=($!)
done
eventually waiters_are 2
expect 0 tool status contended
says "$out" '^contended: held by .* for .*s more; 2 wait, the first for [0-9.]+m?s$'
expect 0 tool --json status contended
json '.resources[0] | .waited_ms > 0 and .waited_ms < 60000'
kill "${waiters[@]}"
wait "${waiters[@]}"
eventually waiters_are 0

# The holder's release hands the lock over, if both use one suffix for the queue's key. -v prints an
# answer only where it differs from the node's last one, however often the waiter asks.
scripts_run() {
    redis 0 info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'
}
expect 0 tool acquire -t 1h handed
token=$(cat "$out")
before=$(scripts_run)
env REDLOCK_WAIT_SUFFIX=/line "$REDLOCK_TOOL" -v -n "$nodes" --node-timeout 5000 --json acquire -t 4s -w 1h handed \
    >"$work/handed" 2>"$work/log" &
waiter=$!
eventually gives_above $((before + 6)) scripts_run
is 'the queue' "$(redis 0 exists handed/line)" 1
is 'the queue of the usual name' "$(redis 0 exists handed:wait)" 0
expect 0 tool release --wait-suffix /line handed "$token"
wait $waiter
is 'the exit status of the waiter' $? 0
expect 0 tool release handed "$(jq -r .token "$work/handed")"
json '.handed_over == true and .passed_over == 0 and .waited_ms > 0' "$work/handed"
# Only up to the release: an answer that crossed the hand-over differs from it.
sed -i "/wait 'handed': node .* handed it over\|: GRANTED /,\$d" "$work/log"
for port in "${ports[@]}"; do
    is "lines about the place at $port" "$(grep -c "wait 'handed': node 127.0.0.1:$port: DENIED" "$work/log")" 1
done

# A signal ends the wait, and nothing is left behind. (A shell's background job ignores SIGINT by
# default.)
for signal in INT TERM HUP QUIT; do
    number=$(kill -l $signal)
    forget_words
    env --default-signal=INT,QUIT "$REDLOCK_TOOL" -v -n "$nodes" --node-timeout 5000 acquire -w forever contended \
        >"$out" 2>"$err" &
    waiter=$!
    eventually grep -q "asking for" "$err"
    kill -s $signal $waiter
    wait $waiter
    is "the exit status after SIG$signal" $? $((128 + number))
    says_nothing "$out"
    says "$err" "^redlock: stopped by signal $number"
done
is 'the keys that another holds' "$(keys_left contended)" 5

# Difficult names: odd bytes, dashes, options after the operands, = and joined forms.
odd=$'a "b\\\n\e[31m\xff\xc3\xbc'
expect 0 tool --json acquire "$odd"
json '.resource == "a \"b\\\n\u001b[31m\ufffd\u00fc"'
odd_token=$(jq -r .token "$out")
is 'the key verbatim' "$(redis 0 exists "$odd")" 1
expect 0 tool status "$odd"
never_says "$out" $'\e'
says "$out" '\\x1b\[31m\\xff'
expect 75 tool acquire "$odd"
never_says "$err" $'\e'
expect 0 tool release "$odd" "$odd_token"
expect 0 tool acquire -- --dashed
expect 0 tool release -- --dashed "$(cat "$out")"
expect 0 tool acquire --ttl=1m later --json
json '.validity_ms > 10000'
expect 0 tool acquire -qt1m joined
says "$out" '^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$'
expect 0 env REDLOCK_NODES="$nodes" "$REDLOCK_TOOL" --node-timeout 5s acquire from-environment
expect 0 "$REDLOCK_TOOL" status --nodes="$nodes" --connect-timeout 10s

# A foreign token of any bytes; a key without ttl; a key that is no lock.
redis_on '0 1 2' set foreign $'\x01\xfe"'
expect 0 tool status foreign
says "$out" '^foreign: held by \\x01\\xfe" on 3 of 5 nodes, for ever \(no ttl\)$'
expect 0 tool --json status foreign
json '.resources[0] | .verdict == "held" and .remaining_ms == null and .held_on == 3 and .free_on == 2'
# C1 controls steer terminals, and a direction override reverses the text after it. The output
# contains neither.
redis_on '0 1 2' set foreign $'\xc2\x9b31m\xe2\x80\xae'
expect 0 tool status foreign
says "$out" '^foreign: held by \\xc2\\x9b31m\\xe2\\x80\\xae on 3 of 5 nodes'
expect 0 tool --json status foreign
says "$out" '"token":"\\u009b31m\\u202e"'
json '.resources[0].token == "\u009b31m\u202e"'
# The longest time to live that a node can report.
redis_on '0 1 2' set foreign x px 9000000000000000000
expect 0 tool --json status foreign
json '.resources[0].remaining_ms == 9007199254740991'
for i in 0 1 2 3 4; do
    redis $i set split "token$((i / 2))" px 60000 >/dev/null
done
expect 0 tool status split
says "$out" '^split: split: no token is on a quorum'
expect 0 tool --json status split
json '.resources[0] | .verdict == "split" and .held_on == 2 and (has("token") | not)'
redis 0 set leftover x px 60000 >/dev/null
expect 0 tool --json status leftover
json '.resources[0] | .verdict == "free" and .held_on == 1 and .free_on == 4'
expect 0 tool acquire leftover

# What docs/migrating.md says of Redisson, whose locks are hashes: its script fails at our lock, and
# its lock is held for us.
redisson="if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil
end return redis.call('pttl', KEYS[1])"
expect 0 tool acquire -t 1m ours
redis 0 eval "$redisson" 1 ours 60000 client:1 >"$out" 2>&1
says "$out" WRONGTYPE
redis_on '0 1 2' eval "$redisson" 1 theirs 60000 client:1
expect 75 tool acquire theirs
expect 75 tool acquire -w 200ms theirs
is 'the hash' "$(redis 0 hget theirs client:1)" 1

# Standard output is full or closed, so nobody can read the token: the lock is released.
expect 74 bash -c '"$0" "$@" >/dev/full' "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 acquire unread
says "$err" '^redlock: cannot write to standard output: No space left'
says "$err" "^redlock: nobody has the token of 'unread': the lock is released\$"
eventually no_keys_left unread
expect 74 bash -c '"$0" "$@" >/dev/full' "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 --json acquire unread
objects "$err"
json '.error == "OUTPUT" and (.message | test("^(cannot write to standard output|nobody has the token)"))' "$err"
eventually no_keys_left unread
expect 74 bash -c '"$0" "$@" >&-' "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 acquire unread
eventually no_keys_left unread
expect 74 bash -c '"$0" "$@" >/dev/full' "$REDLOCK_TOOL" --help

# The nodes answered too late: nothing of the ttl is left.
expect 69 tool acquire -t 1ms quick
says "$err" 'too slow.*longer ttl'
eventually no_keys_left quick
finish
