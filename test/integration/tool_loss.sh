#!/usr/bin/env bash
# redlock run when the lease is lost: it warns the command in time, the command ends, and the status
# is 76.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5
seen=$work/seen
node_timeout=1000

# started ARGUMENTS… : as in tool_run.sh.
started() {
    rm -f "$seen"*
    forget_words
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 run "$@" >"$out" 2>"$err" &
    runner=$!
    eventually grep -q ready "$seen"
}

hang_all() {
    for i in 0 1 2 3 4; do
        hang_node $i
    done
}

wake_all() {
    for i in 0 1 2 3 4; do
        wake_node $i
    done
}

# ended STATUS : the tool ends by itself with this status.
ended() {
    eventually gone $runner
    wait $runner
    is 'the exit status' $? "$1"
}

# Every node hangs. Without any answer, the tool's own clock still ends the command.
started -t 4s hung -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 0" TERM; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
hang_all
eventually grep -q told "$seen"
ended 76
says "$err" "^redlock: the lease on 'hung' is lost: .*SIGTERM, and SIGKILL follows in 5.0s"
# Before that, one warning said that a renewal had failed.
failed="a renewal of 'hung' failed; the lease is valid for [0-9.]+m?s more"
says "$err" "^redlock: warning: $failed: [0-5] of 5 nodes are? ready"
is 'the number of lines' "$(wc -l <"$err")" 2
wake_all

# A renewal fails, but the lease is still valid: the tool warns and does nothing else.
started -t 9s shaken -- bash -c 'echo ready >>"$0"; until [[ -e $0.end ]]; do sleep 0.05; done; exit 4' "$seen"
for i in 0 1 2; do
    hang_node $i
done
eventually grep -q 'warning: a renewal' "$err"
wake_all
touch "$seen.end"
ended 4
is 'the number of lines' "$(wc -l <"$err")" 1
started --json -t 9s shaken -- bash -c 'echo ready >>"$0"; until [[ -e $0.end ]]; do sleep 0.05; done' "$seen"
hang_all
eventually grep -q RENEWAL "$err"
wake_all
touch "$seen.end"
ended 0
json '.warning == "RENEWAL" and (.message | test("shaken"))' "$err"

# Nobody reads standard error, and the pipe is full. The command is warned of the loss all the same.
mkfifo "$work/full"
exec 9<>"$work/full"
dd if=/dev/zero of="$work/full" bs=4096 count=100 oflag=nonblock 2>/dev/null
rm -f "$seen"*
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 run -t 4s unread -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 0" TERM; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen" \
    >"$out" 2>"$work/full" &
runner=$!
eventually grep -q ready "$seen"
hang_all
eventually grep -q told "$seen"
cat <&9 >/dev/null &
reader=$!
ended 76
kill $reader
exec 9>&-
wake_all

# A command that ignores SIGTERM is killed at the end of the grace, with its whole process group.
started -t 4s --grace 300ms deaf -- bash -c \
    'exec 2>/dev/null; trap "" TERM; sleep 1000 & echo $! >"$0.other"; echo $$ >"$0.pid"; echo ready >>"$0"
    while :; do sleep 0.05; done' "$seen"
hang_all
ended 76
eventually gone "$(cat "$seen.pid")"
eventually gone "$(cat "$seen.other")"
wake_all

# So is a process that the command left in its group. A stopped command gets the signal too.
started -t 4s --grace 300ms left -- bash -c \
    '(trap "" TERM; exec sleep 1000) & echo $! >"$0.other"; echo ready >>"$0"; exec sleep 1000' "$seen"
hang_all
ended 76
eventually gone "$(cat "$seen.other")"
wake_all
started -t 4s stopped -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 0" TERM; echo ready >>"$0"; kill -STOP $$; echo went on >>"$0"' \
    "$seen"
hang_all
eventually grep -q told "$seen"
ended 76
never_says "$seen" 'went on'
wake_all

# Another client deletes or takes the key. The tool notices at the next renewal, long before the ttl
# ends.
started -t 9s deleted -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 5" TERM; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
for i in 0 1 2; do
    redis $i del deleted >/dev/null
done
eventually grep -q told "$seen"
ended 76
says "$err" 'lost'
started -t 9s taken -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 5" TERM; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
for i in 0 1 2; do
    redis $i set taken thief >/dev/null
done
eventually grep -q told "$seen"
ended 76
is "the thief's key" "$(redis 1 get taken)" thief

# redlock itself was stopped for longer than its lease. It warns the command as soon as it
# continues. Another client may hold the lock by then.
started -t 1s paused -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 0" TERM; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
kill -STOP $runner
eventually no_keys_left paused
expect 0 tool acquire -t 1m paused
rival=$(cat "$out")
kill -CONT $runner
eventually grep -q told "$seen"
eventually gone $runner
wait $runner
is 'the exit status' $? 76
is "the rival's key" "$(redis 2 get paused)" "$rival"

# JSON goes to standard error, because standard output belongs to the command.
started --json -t 4s hung -- bash -c \
    'exec 2>/dev/null; trap "exit 0" TERM; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
hang_all
ended 76
tail -n 1 "$err" >"$work/last"
json '.error == "LOST" and .resource == "hung"' "$work/last"
wake_all

# --max-time limits the renewals.
expect 76 tool run -t 1s --max-time 500ms capped -- sleep 1000
says "$err" 'lost'

# The command succeeds, but the lock is gone at the release. The command may have overlapped with
# another holder.
expect 76 tool run unnoticed -- bash -c \
    "for p in ${ports[0]} ${ports[1]} ${ports[2]}; do redis-cli -p \$p del unnoticed; done"
says "$err" "^redlock: cannot release 'unnoticed': .*key is missing"
# No quorum answers the release. That does not show a lost lock, so the command's status stands.
expect 7 tool run unreleased -- bash -c "kill -STOP ${pids[0]} ${pids[1]} ${pids[2]}; exit 7"
says "$err" '^redlock: .*no quorum'
says "$err" "the exit status is the command's"
wake_all
finish
