#!/usr/bin/env bash
# Permits: so many at once, each with slots of its own, and what each command says of them.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
export REDLOCK_NODES=$nodes PATH=${REDLOCK_TOOL%/*}:$PATH

crawl_is() {
    [[ $(tool --json status --limit 3 crawl | jq ".resources[0] | $1") == true ]]
}

# Three at once, each with another slot; the fourth is refused.
expect 0 tool acquire -t 1h --permits 2/3 --holder web-1:1 crawl
says "$out" '^[g-v]?[0-9a-f]+@web-1:1 [0-2],[0-2]$'
read -r first slots <"$out"
expect 0 tool --json acquire -t 1h --permits 1/3 --holder web-2:2 crawl
json '.mode == "permits" and (.slots | length) == 1 and .limit == 3 and .validity_ms > 0'
second=$(jq -r .token "$out") third=$(jq -r '.slots[0]' "$out")
is 'the slots' "$(printf '%s\n' "${slots%,*}" "${slots#*,}" "$third" | sort | tr '\n' ' ')" '0 1 2 '
expect_no_out 75 tool acquire --permits 1/3 crawl
says "$err" 'too few slots are free'
says "$err" "Give -w TIME to wait; 'redlock status --limit 3 RESOURCE' shows who has its permits"
expect 75 tool run -w 200ms --permits 1/3 crawl -- true
expect 42 tool run -E 42 --permits 3/3 crawl -- true

# Which are taken, and by whom.
eventually crawl_is '.taken == 3 and ([.slots[] | select(.held_on == 3)] | length) == 3'
expect 0 tool status --limit 3 crawl
says "$out" '^crawl: 3 of 3 permits are taken$'
says "$out" "^  slot $third: held by web-2:2 on 3 of 3 nodes, for 59m [0-9]+s more$"
says "$out" "^  slot ${slots%,*}: held by web-1:1 on 3 of 3 nodes, "
expect 0 tool --json status --limit 5 crawl
json ".resources[0] | .limit == 5 and .taken == 3 and ([.slots[] | .slot] == [0, 1, 2])"
json ".resources[0].slots[$third] | .token == \"$second\" and .holder_text == \"web-2:2\" and .remaining_ms > 0"
# A slot is a lock of its own for who lists and who clears.
expect 0 tool status --match 'crawl#*'
says "$out" "^crawl#$third +held +3/3 +59m "
expect 0 tool clear --yes "crawl#$third"
expect 76 tool release --slots "$third" crawl "$second"
eventually crawl_is '.taken == 2'

# With the slots, they are extended and released.
expect 0 tool extend -t 2h --slots "$slots" crawl "$first"
says "$out" '^crawl: extended; valid for at least 1h '
eventually crawl_is '[.slots[] | select(.remaining_ms > 3700000)] | length == 2'
expect 76 tool extend -t 1h --slots "$third" crawl "$first"
expect 76 tool release crawl "$first"
expect 0 tool release --slots "$slots" crawl "$first"
says "$out" '^crawl: released$'
expect 76 tool release --slots "$slots" crawl "$first"
for slot in 0 1 2; do
    eventually no_keys_left "crawl#$slot"
done

# The command knows its slots. Never more than two at a time, and all get in.
expect 0 tool run --permits 3/3 crawl -- sh -c 'echo "$REDLOCK_SLOTS" | tr , "\n" | sort | tr "\n" " "'
is 'the slots' "$(cat "$out")" '0 1 2 '
expect 0 env REDLOCK_SLOTS=7 redlock --node-timeout 5s run plain -- sh -c 'echo "<$REDLOCK_SLOTS>"'
is 'the slots of a lock' "$(cat "$out")" '<>'
for n in 1 2 3 4 5 6; do
    redlock --node-timeout 5s run -w 1h -t 1h --permits 1/2 two -- sh -c \
        'mkdir "$1.$REDLOCK_SLOTS" && rmdir "$1.$REDLOCK_SLOTS" && echo "$REDLOCK_SLOTS"' sh "$work/slot" \
        >"$work/two.$n" 2>&1 &
    runs[n]=$!
done
for n in 1 2 3 4 5 6; do
    wait "${runs[n]}"
    is "the exit status of run $n" $? 0
    says "$work/two.$n" '^[01]$'
done

# Who waits stands at the gate, or behind it.
expect 0 tool acquire -t 1h --permits 1/1 one
read -r first slots <"$out"
redlock --node-timeout 5s run -w 1h --holder next:1 --permits 1/1 one -- true &
waiter=$!
next_is_shown() {
    tool status --limit 1 one | grep -qE '^one: 1 of 1 permits are taken; the next is next:1'
}
eventually next_is_shown
expect 0 tool release --slots "$slots" one "$first"
wait $waiter
is 'the exit status of the waiter' $? 0

# A lock of the name keeps newcomers out, and is told.
expect 0 tool acquire -t 1h --holder owner one
first=$(cat "$out")
expect 75 tool acquire --permits 1/1 one
says "$err" 'locked'
expect 0 tool status --limit 1 one
says "$out" '^one: 0 of 1 permits are taken; its name is locked, so nobody gets one: held by owner$'
expect 0 tool release one "$first"

# With fencing tokens.
expect 0 tool acquire -t 1h --fence --permits 1/2 fenced
says "$out" '^[^ ]+ [01] [0-9]{19,}$'
read -r first slots _ <"$out"
expect 0 tool release --slots "$slots" fenced "$first"
expect 0 tool run --at-least 1h --permits 1/1 kept -- true
expect 75 tool acquire --permits 1/1 kept

# What is refused.
for bad in 3 3/ /3 0/3 3/0 a/b 1/4097 1/3/4 -1/3; do
    expect 64 tool acquire "--permits=$bad" r
    says "$err" "^redlock: --permits '$bad': it must be how many of how many, as in 1/10"
done
expect 64 tool run --permits 4/3 r -- true
says "$err" '^redlock: --permits 4/3: nobody could ever have so many'
expect 64 tool acquire --permits 65/100 r
expect 64 tool acquire --permits 1/3 a b
says "$err" '^redlock: --permits is for one RESOURCE'
expect 64 tool acquire --permits 1/3 --shared r
says "$err" '^redlock: --permits and --shared: a RESOURCE is read, or it has permits'
expect 64 tool elect --permits 1/3 r -- true
says "$err" '^redlock: an election has no permits, because one leads'
for bad in '' ',' '1,' ',1' '1,,2' x 4096; do
    expect 64 tool release "--slots=$bad" r token
    says "$err" "^redlock: --slots '$bad': it must be the numbers that acquire --permits prints"
done
expect 64 tool release --slots 1,1 r token
says "$err" 'slots names slot 1 twice'
expect 64 tool release --slots 1 a b t u
expect 64 tool status --limit 3
expect 64 tool status --limit 3 --all
expect 64 tool status --limit 0 r

# Too few nodes.
kill_node 1
expect 0 tool run --permits 1/1 left -- true
kill_node 2
expect 69 tool run --permits 1/1 left -- true
expect 69 tool status --limit 1 left
finish
