#!/usr/bin/env bash
# Fencing tokens of the tool: acquire and run print them, they rise, and the nodes keep their
# counters.
# shellcheck disable=SC2016 # variables of the commands that are run
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5
number='[1-9][0-9]{18}'

# rises BEFORE AFTER : both are tokens of 19 digits, and AFTER is above BEFORE.
rises() {
    checks=$((checks + 1))
    if [[ ! $1 =~ ^$number$ || ! $2 =~ ^$number$ ]] || (($1 >= $2)); then
        fail "'$2' is no fencing token above '$1'"
    fi
}

# acquire: one line with the token and the fencing token, easy to split in a shell.
expect 0 tool acquire -t 1m --fence deploy
says "$out" "^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+ $number\$"
is 'the number of lines' "$(wc -l <"$out")" 1
says_nothing "$err"
lock=$(cat "$out")
token=${lock% *} first=${lock#* }
eventually gives "$token" redis 0 get deploy
expect_no_out 75 tool acquire --fence deploy
expect 0 tool extend -t 2m deploy "$token"
expect 0 tool release deploy "$token"

# In JSON it is a string, because a double has no room for it.
expect 0 tool --json acquire --fence deploy
json '(.fence | type) == "string" and (.fence | test("^[1-9][0-9]{18}$"))'
second=$(jq -r .fence "$out")
rises "$first" "$second"
expect 0 tool -q release deploy "$(jq -r .token "$out")"
expect 0 tool --json acquire -t 1m deploy
json 'has("fence") | not'
expect 0 tool -q release deploy "$(jq -r .token "$out")"

# run: the token rises from one run to the next, even if a client without one held the lock in
# between.
expect 0 tool run --fence deploy -- sh -c 'echo "$REDLOCK_FENCE"'
third=$(cat "$out")
rises "$second" "$third"
expect 0 tool run deploy -- true
expect 0 tool run --fence deploy -- sh -c 'echo "$REDLOCK_FENCE $((REDLOCK_FENCE % 10 >= 0))"'
says "$out" "^$number 1\$"
rises "$third" "$(cut -d ' ' -f 1 "$out")"
# A redlock without --fence does not pass on the token of the redlock around it.
expect 0 tool run --fence outer -- "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run inner -- \
    sh -c 'echo "$REDLOCK_RESOURCE ${REDLOCK_FENCE-none}"'
says "$out" '^inner none$'
expect 0 env REDLOCK_FENCE=7 "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run inner -- \
    sh -c 'echo "${REDLOCK_FENCE-none}"'
says "$out" '^none$'

# fence RESOURCE OPTION… : takes and ends a lease; sets got to its fencing token.
fence() {
    expect 0 tool run --fence "$@" -- sh -c 'echo "$REDLOCK_FENCE"'
    got=$(cat "$out")
}

# The counter: its own key of 20 digits without expiry. Options change the suffix and the expiry.
fence counted
raised=0
for i in 0 1 2 3 4; do
    ((raised += $(redis $i get counted:fence | grep -cx "0$got")))
done
is 'a quorum raised its counters to it' "$((raised >= 3))" 1
eventually gives -1 redis 0 pttl counted:fence
fence named --fence-suffix '#'
eventually gives 1 redis 0 exists named#
is 'a counter of the usual name' "$(redis 0 exists named:fence)" 0
expect 0 env REDLOCK_FENCE_SUFFIX=/count REDLOCK_FENCE_EXPIRY=5h "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run \
    --fence named -- true
eventually gives 1 redis 0 exists named/count
life=$(redis 0 pttl named/count)
checks=$((checks + 1))
((life > 14400000 && life <= 18000000)) || fail "a counter that shall live for 5h lives for $life ms"
expect 0 env REDLOCK_FENCE_SUFFIX=/count "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run --fence \
    --fence-suffix '!' --fence-expiry 3h named -- true
eventually gives 1 redis 0 exists named!
finish
