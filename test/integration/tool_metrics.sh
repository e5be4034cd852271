#!/usr/bin/env bash
# status --metrics: valid by the rules of the text format, also with hostile names; what it counts;
# --output replaces the file in one step.
# shellcheck disable=SC2317 # functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
checker=$(dirname "${BASH_SOURCE[0]}")/metrics_check.py
start_nodes 3
digits=00112233445566778899aabbccddeeff

# valid FILE… : the checker has nothing to say; promtool neither, where it is.
valid() {
    local file
    checks=$((checks + 1))
    python3 "$checker" "$@" >"$work/samples" 2>"$work/faults" || fail "$(cat "$work/faults")"
    if command -v promtool >/dev/null; then
        for file; do
            promtool check metrics <"$file" >"$work/faults" 2>&1 || fail "promtool: $(cat "$work/faults")"
        done
    fi
}

# has SAMPLE : what was valid last has a series with its value, labels sorted; the value is an
# extended regular expression.
has() {
    checks=$((checks + 1))
    grep -Eqx -- "$1" "$work/samples" || fail "no sample $1"
}

# Controls: the checker finds each fault.
head=$'# HELP a b\n# TYPE a gauge\n'
wrong=("${head}a 1" "${head}a{x=1} 1"$'\n' "${head}a x"$'\n' "${head}a 1"$'\na 1\n' $'a 1\n'
    "${head}a{x=\"\q\"} 1"$'\n' "${head}a{x=\"\"\"} 1"$'\n' "${head}${head}a 1"$'\n'
    "${head}a{x=\"1\",x=\"2\"} 1"$'\n'
    $'# HELP a_total b\n# TYPE a_total gauge\na_total 1\n' $'# HELP a b\n# TYPE a thing\na 1\n'
    "${head}"$'a{x="1"} 1\n# HELP c b\n# TYPE c gauge\nc 1\na{x="2"} 1\n' "${head}"$'a{x="\xff"} 1\n')
for i in "${!wrong[@]}"; do
    printf '%s' "${wrong[$i]}" >"$work/wrong.$i"
done
python3 "$checker" "$work"/wrong.* >"$work/samples" 2>"$work/faults"
for i in "${!wrong[@]}"; do
    checks=$((checks + 1))
    grep -qF "/wrong.$i: " "$work/faults" || fail "control: accepted: ${wrong[$i]}"
done
printf '%s' "${head}a{x=\"a\\\\b\\\"c\\n\",y=\"\"} 1.5e3 1700000000000"$'\na NaN\n' >"$work/right"
valid "$work/right"

expect 0 tool status --metrics
valid "$out"
has 'redlock_nodes\{\} 3'
has 'redlock_nodes_ready\{\} 3'
has 'redlock_nodes_quorum\{\} 2'
has "redlock_node_up\{node=\"127.0.0.1:${ports[0]}\"\} 1"
has "redlock_node_round_trip_seconds\{node=\"127.0.0.1:${ports[0]}\"\} 0\.[0-9]{6}"
has "redlock_node_keeps_queues\{node=\"127.0.0.1:${ports[2]}\"\} 1"
never_says "$out" redlock_lock

# Locks: named ones, one twice, and one that is free. No token is printed: it would free the lock.
expect 0 tool acquire -t 1h --holder 'a"b\c' backup
expect 0 tool status --metrics backup backup nobody
valid "$out"
has 'redlock_lock_held\{resource="backup"\} 1'
has 'redlock_lock_held\{resource="nobody"\} 0'
has 'redlock_lock_nodes_held\{resource="backup"\} 3'
has 'redlock_lock_nodes_free\{resource="nobody"\} 3'
has 'redlock_lock_ttl_seconds\{resource="backup"\} 3(59[0-9]|600)\.[0-9]{3}'
has 'redlock_lock_waiters\{resource="backup"\} 0'
has 'redlock_lock_readers\{resource="backup"\} 0'
has 'redlock_lock_readers\{resource="nobody"\} 0'
has 'redlock_lock_holder_info\{holder="a\\"b\\\\x5cc",resource="backup"\} 1'
checks=$((checks + 1))
! grep -Eq '[0-9a-f]{31}' "$out" || fail 'a token is printed'

# Names that look alike, with bytes that are no UTF-8, quotes, backslashes, line ends, controls.
for name in $'x\xff' 'x\xff' 'x\\xff' $'a"b' $'line\nend' $'\e[31m' $'\xc3\xbc' "$(printf 'x%.0s' {1..1024})"; do
    redis_on '0 1 2' set "$name" "$digits@web" px 3600000
done
expect 0 tool status --metrics --all
valid "$out"
has 'redlock_locks_held\{\} 9'
is 'the locks' "$(grep -c '^redlock_lock_held{' "$out")" 9
never_says "$out" $'\e'
has 'redlock_node_listed\{node="127.0.0.1:[0-9]*"\} 1'

# What too few nodes could tell is not 0: a series that is missing shows that, a 0 lies. So does a
# node that is not there: nobody knows what its settings are, or whether it keeps queues.
hang_node 0 1
connect_timeout=1s expect 69 tool status --metrics backup nobody
valid "$out"
never_says "$out" '^redlock_lock_(held|nodes_held|nodes_free|ttl_seconds|waiters|holder_info)'
has 'redlock_lock_nodes_unknown\{resource="backup"\} 2'
has 'redlock_lock_nodes_unknown\{resource="nobody"\} 2'
has "redlock_node_up\{node=\"127.0.0.1:${ports[0]}\"\} 0"
is 'what is said of nodes that hang' "$(grep -cE "^redlock_node_(keeps_queues|warning|quarantine_seconds)" "$out")" 3
has "redlock_node_keeps_queues\{node=\"127.0.0.1:${ports[2]}\"\} 1"
has "redlock_node_warning\{node=\"127.0.0.1:${ports[2]}\"\} 0"
has "redlock_node_quarantine_seconds\{node=\"127.0.0.1:${ports[2]}\"\} 0.000"
connect_timeout=1s expect 69 tool status --metrics --all
valid "$out"
never_says "$out" '^redlock_lock(s_held|s_unknown|_held|_waiters)'
connect_timeout=1s expect 69 tool status --json --all
is 'JSON' "$(jq -c '[.resources[0].waiters, .nodes[0].quarantine_ms, .nodes[2].quarantine_ms]' "$out")" '[null,null,0]'
wake_node 0
# A lock on one of the two nodes that answer may be a lock of two nodes: how many are held?
redis 2 set lonely "$digits@web" px 3600000 >/dev/null
connect_timeout=1s expect 0 tool status --metrics --all
valid "$out"
never_says "$out" '^redlock_locks_held'
has 'redlock_locks_unknown\{\} 1'
has 'redlock_lock_held\{resource="backup"\} 1'
never_says "$out" '^redlock_lock_held.resource="lonely"'
redis 2 del lonely >/dev/null
wake_node 1
expect 0 tool status --metrics --all
valid "$out"
has 'redlock_locks_held\{\} 9'
has 'redlock_locks_unknown\{\} 0'

# A node that is down.
kill_node 1
expect 0 tool status --metrics backup
valid "$out"
has "redlock_node_up\{node=\"127.0.0.1:${ports[1]}\"\} 0"
has 'redlock_nodes_ready\{\} 2'
expect 68 tool status --metrics --all-ready

# The file for the textfile collector: whole at each moment, also without a quorum; readable by all;
# nothing is left beside it.
mkdir "$work/collector"
file=$work/collector/redlock.prom
expect_no_out 0 tool status --metrics --all --output "$file"
valid "$file"
is 'the mode' "$(stat -c %a "$file")" 644
is 'the files' "$(ls "$work/collector")" redlock.prom
old=$(stat -c %i "$file")
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 status --metrics --all --output "$file" --watch=100ms >"$out" 2>"$err" &
watcher=$!
replaced() {
    [[ $(stat -c %i "$file") != "$old" ]]
}
eventually replaced
for i in {1..20}; do
    cp "$file" "$work/moment.$i"
    sleep 0.05
done
valid "$work"/moment.*
kill -TERM $watcher
wait $watcher
is 'the exit status' $? 143
says_nothing "$out"
expect 3 bash -c 'ulimit -f 0; exec "$@"' limited "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 -v run job -- \
    sh -c 'exit 3'
# A watch of no lock sees a node that hangs, and that it is back.
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 --connect-timeout 10s status --json --watch=100ms >"$out" 2>"$err" &
watcher=$!
last() {
    [[ $(tail -n 1 "$out" | jq "$1") == true ]]
}
eventually last '.ready == 2'
hang_node 2
eventually last '.nodes[2].state == "STALLED" and .ready == 1'
wake_node 2
eventually last '.ready == 2'
kill -TERM $watcher
wait $watcher
is 'the exit status' $? 143
kill_node 2
expect 69 tool status --metrics --output "$file"
valid "$file"
has 'redlock_nodes_ready\{\} 1'
is 'the files' "$(ls "$work/collector")" redlock.prom
expect 74 tool status --metrics --output "$work/none/redlock.prom"
says "$err" "^redlock: cannot write $work/none/redlock.prom: No such file or directory$"
# A file may not be as large as that: no signal ends the tool, least of all while it holds a lock.
limited=(bash -c 'ulimit -f 0; exec "$@"' limited "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000)
expect 74 "${limited[@]}" --connect-timeout 10s -q status --metrics --output "$work/collector/large.prom"
is 'the files' "$(ls "$work/collector")" redlock.prom
# What is no file is written to, and stays what it is; a link stays a link.
mkfifo "$work/fifo"
expect 74 tool status --metrics --output "$work/fifo"
says "$err" 'cannot write .*/fifo: No such device or address'
exec {both}<>"$work/fifo" # waits for nobody
expect 69 tool status --metrics --output "$work/fifo"
exec {reader}<"$work/fifo" {both}>&-
cat <&"$reader" >"$work/read"
exec {reader}<&-
is 'what stood before the pipe' "$(test -p "$work/fifo" && echo pipe)" pipe
says "$work/read" '^redlock_nodes 3'
expect 69 tool status --metrics --output /dev/fd/1
says "$out" '^redlock_nodes 3'
touch "$work/full.prom"
ln -s full.prom "$work/link"
expect 69 tool status --metrics --output "$work/link"
is 'what the link leads to' "$(readlink "$work/link")" full.prom
says "$work/full.prom" '^redlock_nodes 3'
mkdir "$work/folder"
expect 74 tool status --metrics --output "$work/folder"
says "$err" 'cannot write .*/folder: Is a directory'
expect 64 tool status --output "$file"
says "$err" '^redlock: --output is for --metrics'
expect 64 tool status --metrics --output ''
says "$err" '^redlock: --output is empty'
expect 64 tool status --match ''
says "$err" '^redlock: --match is empty'
expect 64 tool --json status --metrics
finish
