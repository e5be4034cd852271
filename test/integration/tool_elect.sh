#!/usr/bin/env bash
# redlock elect: the command runs while we lead; it is stopped by a loss and begins again; the next
# in line leads after its end; --observe says who leads.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5
seen=$work/seen
node_timeout=1000

# A command that says when it begins and why it ends. $0 is the file it writes to. SIGKILL comes a
# fifth of the ttl after the time for SIGTERM. On a busy machine the tool and the command may need
# more than 600 ms for what lies between. So a command that must be told of a loss has a ttl of
# 15 s.
worker='trap "echo told >>$0; exit 3" TERM; trap "echo hup >>$0" HUP; echo ready >>"$0"; while :; do sleep 0.05; done'

# elects FILE ARGUMENTS… : a candidate in the background, whose words go to FILE.err; sets runner.
elects() {
    local file=$1
    shift
    : >"$file"
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 elect "$@" >"$file.out" 2>"$file.err" &
    runner=$!
}

# lines FILE WORD : how many of its lines are this word.
lines() {
    grep -cx -- "$2" "$1"
}

in_line() {
    gives "$1" redis 0 zcard "$2:wait"
}

ended() {
    eventually gone "$1"
    wait "$1"
    is "the exit status of $1" $? "$2"
}

delete_key() {
    local i
    redis_on '0 1 2 3 4' del "$1"
}

# The command's environment, descriptors and exit status are those of run.
expect 0 tool elect job -- redis-cli -p "${ports[0]}" get job
says "$out" '^[0-9a-f]{48}@[^ ]+:[0-9]+$'
says_nothing "$err"
expect 0 tool elect -t 20s job -- \
    sh -c 'echo "$REDLOCK_RESOURCE $REDLOCK_TOKEN $REDLOCK_VALIDITY_MS ${REDLOCK_FENCE-none}"'
says "$out" '^job [0-9a-f]{48}@[^ ]+:[0-9]+ 1[0-9]{4} none$'
expect 0 tool elect --fence job -- sh -c 'echo "$REDLOCK_FENCE"'
says "$out" '^[0-9]{19}$'
expect 0 bash -c 'echo through | "$0" "$@"' "$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 elect job -- cat
says "$out" '^through$'
for wanted in 0 1 7 75 76 255; do
    expect_no_err $wanted tool elect job -- sh -c "exit $wanted"
done
expect 143 tool elect job -- sh -c 'kill -s TERM $$'
expect 127 tool elect job -- /nonexistent/command
says "$err" "^redlock: cannot run '/nonexistent/command': No such file or directory; the lock is released"
expect 126 tool elect job -- /etc/passwd
expect_no_out 127 tool --json elect job -- /nonexistent/command
json '.error == "EXEC" and .resource == "job"' "$err"
expect 0 tool elect -- --job -- true
eventually no_keys_left job

# The next in line leads when the command of the leader has ended.
elects "$seen.1" -t 60s turn -- bash -c "$worker" "$seen.1"
first=$runner
eventually grep -q ready "$seen.1"
elects "$seen.2" -t 60s turn -- bash -c "$worker" "$seen.2"
second=$runner
eventually in_line 1 turn
elects "$seen.3" -t 60s turn -- bash -c "$worker" "$seen.3"
third=$runner
eventually in_line 2 turn
kill -HUP "$first"
eventually grep -q hup "$seen.1"
kill -TERM "$first"
ended "$first" 3
eventually grep -q ready "$seen.2"
says_nothing "$seen.3"
# A signal ends a campaign.
kill -TERM "$third"
ended "$third" 143
says "$seen.3.err" '^redlock: stopped by signal 15 \(Terminated\) before it finished'
eventually in_line 0 turn
says_nothing "$seen.3"
# If SIGKILL ends the tool, the kernel signals the command. (If that ignores it: tool_takeover.sh.)
kill -KILL "$second"
wait "$second" 2>/dev/null
eventually grep -q told "$seen.2"
delete_key turn

# A loss stops the command; it begins again when we lead again, in another process group.
(
    export LISTEN_PID=$BASHPID
    exec "$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 elect -t 15s lost -- bash -c \
        "echo \$REDLOCK_TOKEN >>\$0.tokens; echo \$\$ \$LISTEN_PID >>\$0.pids; $worker" "$seen" 2>"$seen.err"
) &
runner=$!
eventually grep -q ready "$seen"
delete_key lost
eventually gives 2 lines "$seen" ready
is 'how often it was told' "$(lines "$seen" told)" 1
is 'the number of tokens' "$(sort -u "$seen.tokens" | wc -l)" 2
is 'the commands that LISTEN_PID names' "$(grep -cE '^([0-9]+) \1$' "$seen.pids")" 2
says "$seen.err" "^redlock: the lease on 'lost' is lost: .*SIGTERM, and SIGKILL follows in 3\.0s"
is 'the number of messages' "$(grep -c '^redlock:' "$seen.err")" 1
kill -HUP $runner
eventually grep -q hup "$seen"
kill -TERM $runner
ended $runner 3
eventually no_keys_left lost

# Another candidate leads meanwhile. The command that was stopped has ended before it begins again,
# though it takes its time.
slow='trap "sleep 1; echo told >>$0; exit 3" TERM; echo ready >>"$0"; while :; do sleep 0.05; done'
elects "$seen.1" -t 15s both -- bash -c "$slow" "$seen.1"
first=$runner
eventually grep -q ready "$seen.1"
elects "$seen.2" -t 3s both -- bash -c "$worker" "$seen.2"
second=$runner
eventually in_line 1 both
delete_key both
eventually grep -q ready "$seen.2"
eventually in_line 1 both
kill -TERM "$second"
ended "$second" 3
eventually gives 2 lines "$seen.1" ready
is 'the order' "$(tr '\n' ' ' <"$seen.1")" 'ready told ready '
kill -TERM "$first"
ended "$first" 3

# A command that ignores SIGTERM is killed after the grace.
elects "$seen" -t 3s --grace 300ms deaf -- bash -c \
    'trap "" TERM; echo $$ >>"$0.pid"; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
eventually grep -q ready "$seen"
delete_key deaf
eventually gives 2 lines "$seen" ready
eventually gone "$(head -n 1 "$seen.pid")"
kill -KILL "$(tail -n 1 "$seen.pid")"
ended $runner 137
eventually no_keys_left deaf
# A signal while a loss stops the command: it does not begin again.
elects "$seen.2" -t 15s --grace 3s unwanted -- bash -c \
    'trap "echo told >>$0" TERM; echo ready >>"$0"; until [[ -e $0.end ]]; do sleep 0.05; done' "$seen.2"
second=$runner
eventually grep -q ready "$seen.2"
delete_key unwanted
eventually gives 1 lines "$seen.2" told
kill -TERM "$second"
eventually gives 2 lines "$seen.2" told
touch "$seen.2.end"
ended "$second" 76
is 'how often it began' "$(lines "$seen.2" ready)" 1

# No quorum: the command is stopped in time, the tool says why it cannot lead, and leads when the
# nodes are back.
elects "$seen" -t 15s quorum -- bash -c "$worker" "$seen"
eventually grep -q ready "$seen"
hang_node 0 1 2
eventually grep -q told "$seen"
eventually grep -q "warning: 'quorum' cannot be won now: no quorum" "$seen.err"
wake_node 0 1 2
eventually gives 2 lines "$seen" ready
kill -TERM $runner
ended $runner 3
is 'the number of warnings' "$(grep -c 'cannot be won' "$seen.err")" 1

# --observe prints each change, at first who leads now.
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 elect --observe watched >"$seen.watch" 2>"$seen.watch.err" &
watcher=$!
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 --json elect --observe watched >"$seen.json" 2>/dev/null &
json_watcher=$!
eventually gives 'watched: nobody leads' cat "$seen.watch"
eventually grep -q null "$seen.json"
elects "$seen" --holder db-1 watched -- bash -c "echo \$REDLOCK_TOKEN >\$0.token; $worker" "$seen"
eventually grep -q ready "$seen"
token=$(cat "$seen.token")
eventually grep -qx 'watched: the leader is db-1' "$seen.watch"
eventually grep -q "$token" "$seen.json"
kill -TERM $runner
ended $runner 3
eventually gives 3 grep -c . "$seen.watch"
eventually gives 3 grep -c . "$seen.json"
is 'the last line' "$(tail -n 1 "$seen.watch")" 'watched: nobody leads'
jq -s . "$seen.json" >"$work/array"
json '[.[].leader.token] == [null, "'"$token"'", null]' "$work/array"
json '.[1].leader.holder == "db-1" and all(.[]; .resource == "watched")' "$work/array"
kill -TERM $watcher $json_watcher
ended $watcher 143
ended $json_watcher 143
says_nothing "$seen.watch.err"
# Nobody reads: it ends.
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 elect --observe watched >/dev/full 2>"$seen.err" &
ended $! 74

finish
