#!/usr/bin/env bash
# Nodes that answer, but take no writes: full memory, too few replicas, a failed save, a cluster
# without slots. No lock can be taken there, so no probe is green. What is held stays renewed.
# shellcheck disable=SC2317 # functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

on_all() { # ARGUMENTS…
    local i
    for i in 0 1 2; do
        checks=$((checks + 1))
        [[ $(redis "$i" "$@") =~ ^(OK|Background) ]] || fail "node $i refused $*"
    done
}

green() {
    expect 0 tool status
    says "$out" '^3 of 3 nodes ready; a quorum is 2: locks can be taken'
    expect 0 tool status --all-ready -q
}

# red WORDS ADVICE
red() {
    expect 69 tool status
    is "the rows of $1" "$(grep -cE " READY .*takes no locks: $1 .*\\($2\\)" "$out")" 3
    says "$out" '^3 of 3 nodes ready, 3 of them without a vote; a quorum is 2: locks cannot be taken$'
    expect 69 tool status --json
    is "the JSON of $1" "$(jq -c '[.ready, .voting, .error, ([.nodes[].write_error | startswith("'"$1"' ")] | all)]' \
        "$out")" '[3,0,"NO_QUORUM",true]'
    says "$out" '"message":"no quorum: too many nodes take no writes; write_error says why"'
    expect 69 tool status --metrics
    is "the metrics of $1" "$(grep -c '^redlock_node_voting{.*} 0$' "$out")" 3
    says "$out" '^redlock_nodes_voting 0$'
    expect 69 tool -q status --all
    expect 69 tool -q status door
}

start_nodes 3
green
on_all config set maxmemory 1
red OOM 'its memory is full: raise maxmemory, or delete keys'
expect 69 tool run door -- true
on_all config set maxmemory 0
green

on_all config set min-replicas-to-write 1
red NOREPLICAS 'too few replicas: bring them back, or lower min-replicas-to-write'
on_all config set min-replicas-to-write 0
green

# A directory is where the file must go.
save_ends() { # INDEX STATUS
    local told
    told=$(redis "$1" info persistence | tr -d '\r')
    [[ $told == *rdb_bgsave_in_progress:0* && $told == *rdb_last_bgsave_status:$2* ]]
}
on_all config set save '3600 1'
for i in 0 1 2; do
    mkdir -p "$(redis "$i" config get dir | tail -n 1)/dump.rdb/full"
done
on_all bgsave
for i in 0 1 2; do eventually save_ends "$i" err; done
red MISCONF 'it cannot save: see its log'
on_all config set save ''
green

# One of three: the others vote, and a probe for all nodes tells.
redis 0 config set maxmemory 1 >/dev/null
expect 0 tool status
says "$out" '^3 of 3 nodes ready, 1 of them without a vote; a quorum is 2: locks can be taken, '\
'until one more node fails$'
expect 68 tool -q status --all-ready
redis 0 config set maxmemory 0 >/dev/null

# One connection sees it come and go.
last_voting() {
    tail -n 1 "$work/watched" | jq .voting
}
"$REDLOCK_TOOL" -n "$nodes" status --json --watch=100ms >"$work/watched" 2>&1 &
watch=$!
eventually gives 3 last_voting
on_all config set maxmemory 1
eventually gives 0 last_voting
on_all config set maxmemory 0
eventually gives 3 last_voting
kill -TERM $watch
wait $watch

# Of a user without a right to the key of the probe, nothing is known.
plain=$nodes
nodes=
for i in 0 1 2; do
    redis "$i" acl setuser locker on '>pw' '~lock:*' '&*' '+@all' >/dev/null
    nodes+=${nodes:+,}redis://locker:pw@127.0.0.1:${ports[i]}
done
green
is 'the words' "$(grep -c 'takes no locks' "$out")" 0

nodes=
for i in 3 4 5; do
    start_node --cluster-enabled yes
done
red CLUSTERDOWN 'turn cluster mode off, or assign all slots'
nodes=$plain
green

finish
