#!/usr/bin/env bash
# The nodes are changed while locks are used, with the commands of docs/operations.md, "Changing the
# nodes": three become five, and one of five is replaced.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 6
IFS=, read -ra all <<<"$nodes"
# configure QUORUM INDEX… : from now on, `tool` uses these nodes and this quorum.
configure() {
    export REDLOCK_QUORUM=$1
    shift
    nodes=
    for index; do
        nodes+=${nodes:+,}${all[$index]}
    done
}
# fence RESOURCE : sets number to the fencing token of one more lease.
fence() {
    expect 0 tool run --fence -w 20s "$1" -- sh -c 'echo "$REDLOCK_FENCE"'
    number=$(cat "$out")
    checks=$((checks + 1))
    [[ $number =~ ^[0-9]{19}$ ]] || fail "no token: '$number'"
}

configure 2 0 1 2
expect 0 tool status
says "$out" '^3 of 3 nodes ready; a quorum is 2: locks can be taken'
fence job
before=$number

# A job of the old configuration, and one of the new one that waits for it.
forget_words
tool run -t 5s job -- sh -c "touch '$work/runs'; until [ -e '$work/end' ]; do sleep 0.02; done" &
old=$!
eventually test -e "$work/runs"
configure 4 0 1 2 3 4
expect 0 tool status job
says "$out" '^5 of 5 nodes ready; a quorum is 4: locks can be taken$'
expect 0 tool --quorum 0 status
says "$out" '^5 of 5 nodes ready; a quorum is 3: locks can be taken$'
expect 0 tool status job
says "$out" '^job: split: no token is on a quorum \(4\)'
expect 0 tool --json status job
json '.quorum == 4 and .resources[0].held_on == 3'
expect 75 tool run job -- true
tool run -w 20s job -- touch "$work/next" >"$work/next.out" 2>&1 &
next=$!
eventually gives 1 redis 0 exists job:wait
checks=$((checks + 1))
[[ ! -e $work/next ]] || fail 'two jobs at once'
touch "$work/end"
wait "$old" || fail "the old job ended with $?"
wait "$next" || fail "the next job ended with $?: $(cat "$work/next.out")"

# The loop of docs/operations.md: every counter of the old nodes reaches a quorum of the new ones.
redis 0 set 'two words:fence' 00000000000000000001 >/dev/null
page=$(dirname "${BASH_SOURCE[0]}")/../../docs/operations.md
awk '/^### /{ here = /Fencing tokens over a change/ } /^```/{ on = here && /^```sh$/; next } on' "$page" >"$work/loop"
checks=$((checks + 1))
[[ $(<"$work/loop") == *redis-cli*'redlock run'* ]] || fail "there is no loop in $page"
# Its nodes are 10.0.0.1 and so on.
mkdir "$work/bin"
printf '#!/usr/bin/env bash\nsockets=(%s)\n' "${ports[*]/%//socket}" >"$work/bin/redis-cli"
printf '[[ $1 == -h ]] && exec %q -s %q/"${sockets[${2##*.} - 1]}" "${@:3}"\n' "$(type -P redis-cli)" "$work" \
    >>"$work/bin/redis-cli"
printf '#!/usr/bin/env bash\nexec %q -n %q --node-timeout 5s --connect-timeout 10s "$@"\n' "$REDLOCK_TOOL" "$nodes" \
    >"$work/bin/redlock"
chmod +x "$work"/bin/*
PATH=$work/bin:$PATH expect 0 bash -euo pipefail "$work/loop"
for i in 3 4; do
    eventually gives 1 redis "$i" exists job:fence
    eventually gives 1 redis "$i" exists 'two words:fence'
done

# Its two nodes may now be the only ones that a client of the last step does not ask.
configure 3 0 1 2 3 4
hang_node 0 1
node_timeout=200
fence job
after=$number
checks=$((checks + 1))
((after > before)) || fail "the token fell from $before to $after"
wake_node 0 1

# One of five is replaced; with four of five, one may be away.
configure 4 0 1 2 3 4
kill_node 4
fence job
between=$number
configure 3 0 1 2 3 5
fence job
last=$number
checks=$((checks + 1))
((last > between && between > after)) || fail "the tokens are $after, $between, $last"
configure 4 0 1 2 3 5
hang_node 0 1
connect_timeout=1s
expect 69 tool acquire job
says "$err" "of 5 nodes granted it, 4 are needed"
finish
