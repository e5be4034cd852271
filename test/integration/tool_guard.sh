#!/usr/bin/env bash
# The guards of the tool: which nodes may not vote, how the tool reports it, and what still works.
# Also lock delay and healing.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

# New servers that save nothing: nobody can know whether they have forgotten locks.
start_nodes 3
strict=(--restart-guard=strict --ttl-max 1h)

expect 0 tool acquire -t 30m held
token=$(cat "$out")
expect_no_out 69 tool "${strict[@]}" acquire new
says "$err" "^redlock: .*'new'.*no quorum"
for i in 0 1 2; do
    says "$err" "127.0.0.1:${ports[$i]}[:,]"
done
hour='(59m [0-9]+s|1h 0m)'
advice='or --first-boot, but only if none of the nodes has ever granted a lock'
says "$err" " A quorum may vote in $hour: give -w TIME to wait; $advice\\.$"
is 'the number of lines' "$(wc -l <"$err")" 1
is 'keys of a refused lock' "$(keys_left new)" 0
expect 69 tool "${strict[@]}" --json acquire new
json '.error == "NO_QUORUM" and ([.votes[] | select(.vote == "ABSTAINED" and (.error | length) > 0)] | length == 3)'
expect 69 tool run "${strict[@]}" new -- touch "$work/ran"
is 'the command ran' "$([[ -e $work/ran ]] && echo yes)" ''
expect 69 tool "${strict[@]}" acquire -w 2s new
kept="127.0.0.1:${ports[0]}: no vote for $hour: .*"
says "$err" "^redlock: warning: no quorum for 'new' yet: 0 of 3 nodes may vote \\($kept; 2 are needed; still trying$"
advice="A quorum may vote in $hour: give a longer -w to wait; or --first-boot"
says "$err" " Gave up after [0-9]+ attempts? in [0-9.]+m?s\\. $advice"

# status reports it if it is given the guard.
expect 69 tool "${strict[@]}" status
says "$out" "^127.0.0.1:${ports[1]} +READY .* no vote for (59m [0-9]+s|1h 0m): [a-z]"
says "$out" "^3 of 3 nodes ready, 3 of them without a vote; a quorum is 2: locks cannot be taken for $hour\$"
expect 69 tool "${strict[@]}" --json status held
json '.error == "NO_QUORUM" and .ready == 3 and .voting == 0 and .resources[0].verdict == "held"'
json '[.nodes[] | select(.state == "READY" and .quarantine_ms > 3000000 and (.quarantine | length) > 0)] | length == 3'
expect 0 tool --json status
json '.voting == 3 and ([.nodes[] | select(.quarantine_ms == 0 and .quarantine == "")] | length == 3)'

# Leases that are held continue: only taking a lock needs the votes.
expect 0 tool "${strict[@]}" extend -t 30m held "$token"
expect 0 tool "${strict[@]}" release held "$token"

# --first-boot says that the nodes are new. For `observed`, a restart that nobody saw does not
# count.
expect 0 tool "${strict[@]}" --first-boot run new -- true
expect 0 tool "${strict[@]}" --first-boot status
expect 0 tool --restart-guard=observed --ttl-max 1h run new -- true
expect 0 tool --clock-guard --ttl-max 1h run new -- true
expect 0 tool --clock-guard --ttl-max 1h status

# The environment sets a guard, and the command line overrides it.
export REDLOCK_RESTART_GUARD=strict REDLOCK_TTL_MAX=1h
expect 69 tool acquire new
says "$err" ' --first-boot'
expect 0 tool --restart-guard off run new -- true
expect 64 tool acquire -t 2h new
says "$err" '^redlock: -t 2h is above REDLOCK_TTL_MAX=1h: '
expect 64 tool --restart-guard off acquire -t 2h new
unset REDLOCK_RESTART_GUARD REDLOCK_TTL_MAX

# A node that has been up for longer than any lock lives has forgotten none. The wait outlasts a
# quarantine. (Leases are long enough for a loaded machine.)
expect 0 tool --restart-guard=strict --ttl-max 10s run -t 5s -w 1m new -- true
long_up() {
    tool --restart-guard=strict --ttl-max 5s run -t 5s new -- true
}
eventually long_up

# Lock delay: for rivals the keys outlive the lease. A release removes them.
expect 0 tool --json acquire -t 2s --lock-delay 1h delayed
json '.validity_ms > 0 and .validity_ms < 2000'
token=$(jq -r .token "$out")
checks=$((checks + 1))
(($(redis 0 pttl delayed) > 3000000)) || fail 'the key does not outlive the lease by the delay'
expect 75 tool acquire -w 3s delayed # past the end of the lease
expect 0 tool release delayed "$token"
eventually no_keys_left delayed
expect 0 tool acquire -t 30m delayed
token=$(cat "$out")
expect 0 tool extend -t 31m --lock-delay 1h delayed "$token"
eventually gives_above 5000000 redis 1 pttl delayed
expect 0 tool release delayed "$token"

# Healing: while the command runs, the tool restores what a minority lost, except with --no-heal.
lose='redis-cli -s "$0" del healed >/dev/null
    for ((i = 0; i < 600; i++)); do
        [[ $(redis-cli -s "$0" get healed) != "$REDLOCK_TOKEN" ]] || exit 0
        sleep 0.05
    done
    exit 1'
expect 0 tool run -t 5s healed -- bash -c "$lose" "$work/${ports[1]}/socket"
# Three renewals: each extends the key's life at another node.
lose='redis-cli -s "$0" del healed >/dev/null
    for ((i = 0, renewals = 0, before = 0; i < 600 && renewals < 3; i++)); do
        life=$(redis-cli -s "$1" pttl healed)
        ((renewals += life > before && i > 0, before = life))
        sleep 0.05
    done
    ((renewals == 3)) && [[ $(redis-cli -s "$0" exists healed) == 0 ]]'
expect 0 tool run -t 5s --no-heal healed -- bash -c "$lose" "$work/${ports[1]}/socket" "$work/${ports[0]}/socket"
eventually no_keys_left healed
finish
