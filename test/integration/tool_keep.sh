#!/usr/bin/env bash
# redlock run --at-least: the lock stays after a success, and goes after a failure.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3

# ttl_between NODE LOW HIGH : the key of job lives for so many ms.
ttl_between() {
    local ttl
    ttl=$(redis "$1" pttl job)
    checks=$((checks + 1))
    ((ttl > $2 && ttl <= $3)) || fail "the ttl at node $1 is $ttl ms"
}

# After a success the keys live for the rest, whatever the ttl; nobody else runs it meanwhile.
expect 0 tool run -t 5s --at-least 50m job -- sh -c 'echo "$REDLOCK_TOKEN"'
token=$(cat "$out")
says_nothing "$err"
for i in 0 1 2; do
    eventually gives_above 2900000 redis $i pttl job
    ttl_between $i 2900000 3000000
    is 'the token' "$(redis $i get job)" "$token"
done
expect_no_out 75 tool run --at-least 50m job -- echo again
expect_no_out 0 tool run -E 0 --at-least 50m job -- echo again
says_nothing "$err"
expect 0 tool status job
says "$out" "^job: held by ${token#*@} on 3 of 3 nodes, for 49m [0-9]+s more$"
expect 0 tool clear --yes job

# A failure lets go at once: a status, a signal, a command that is not there.
expect 3 tool run --at-least 50m job -- sh -c 'exit 3'
eventually no_keys_left job
expect 143 tool run --at-least 50m job -- sh -c 'kill -TERM $$'
eventually no_keys_left job
expect 127 tool run --at-least 50m job -- /none
eventually no_keys_left job
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run --at-least 50m job -- sleep 1000 &
running=$!
eventually gives 3 keys_left job
kill -TERM $running
wait $running
is 'the exit status after TERM' $? 143
eventually no_keys_left job

# A command that takes longer than that: the lock goes with it. Renewals go on until then.
expect 0 tool run -t 500ms --at-least 1s job -- sleep 1.5
eventually no_keys_left job

# The rest counts from the start of the lock, not from the end of the command; a lock delay is part
# of it.
expect 0 tool run -t 500ms --at-least 1h job -- sleep 2
eventually gives_above 3500000 redis 0 pttl job
ttl_between 0 3500000 3598000
expect 0 tool clear --yes job
expect 0 tool run -t 5s --lock-delay 10m --at-least 30m job -- true
eventually gives_above 1700000 redis 0 pttl job
ttl_between 0 1700000 1800000
expect 0 tool clear --yes job
expect 0 tool run -t 5s --lock-delay 40m --at-least 30m job -- true
ttl_between 0 2300000 2405000
expect 0 tool clear --yes job
# A time that the ttl covers: the keys end with the ttl.
expect 0 tool --json run -t 30s --at-least 10s job -- true
ttl_between 0 20000 30000
json '.remaining_ms > 20000 and .remaining_ms <= 30000' "$err"
expect 0 tool clear --yes job
# It is over when it is over.
expect 0 tool run -t 300ms --at-least 600ms job -- true
expect 0 tool run -w 30s job -- true

# JSON on standard error.
expect_no_out 0 tool --json run --at-least 50m job -- true
json '.kept == "job" and .remaining_ms > 2900000 and .remaining_ms <= 3000000' "$err"
expect 0 tool clear --yes job
expect_no_err 5 tool --json run --at-least 50m job -- sh -c 'exit 5'

# A minority of nodes is down: kept. The quorum goes while the command runs: it tries until the
# lease ends, and says that the lock may not be kept, with the command's status.
kill_node 2
expect 0 tool run -t 5s --at-least 50m job -- true
eventually gives_above 2900000 redis 0 pttl job
expect 0 tool clear --yes job
stop_and_wait="kill -STOP ${pids[1]}"
node_timeout=200 expect 0 tool run -t 10s --at-least 50m job -- sh -c "$stop_and_wait"
says "$err" "^redlock: cannot extend 'job': "
says "$err" '^redlock: the command succeeded, but too few nodes confirmed that they keep its lock: another machine may'
wake_node 1
# What has been sent to the node that hung may still set its key.
cleared() {
    tool -q clear --yes job
    no_keys_left job
}
eventually cleared
# The nodes lost the key: the lease is lost, whatever the command says.
flush="redis-cli -p ${ports[0]} flushall; redis-cli -p ${ports[1]} flushall"
expect 76 tool run -t 1h --at-least 2h job -- sh -c "$flush"
says "$err" 'lost|the key is missing'
eventually no_keys_left job

# Limits.
expect 64 tool run --at-least 2h --ttl-max 1h job -- true
says "$err" '^redlock: --at-least 2h is above --ttl-max 1h: no key of a lock may live for longer'
expect 64 env REDLOCK_TTL_MAX=1m "$REDLOCK_TOOL" -n "$nodes" run --at-least 2h job -- true
says "$err" 'above REDLOCK_TTL_MAX=1m'
expect 64 tool run --at-least 0 job -- true
expect 64 tool acquire --at-least 1h job
finish
