#!/usr/bin/env bash
# redlock run when the lease is lost: it warns the command in time, the command ends, and the status
# is 76.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5
node_timeout=1000
declare -A runners=()

# started NAME ARGUMENTS… : runs the tool in the background. Its command has $work/NAME as $0, and
# has written "ready" there.
started() {
    local name=$1
    shift
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 run "$@" "$work/$name" >"$work/$name.out" 2>"$work/$name.err" &
    runners[$name]=$!
    eventually grep -q ready "$work/$name"
}

hang_all() {
    hang_node 0 1 2 3 4
}

wake_all() {
    wake_node 0 1 2 3 4
}

# ended NAME STATUS : the tool ends by itself with this status. Sets out and err to its files.
ended() {
    out=$work/$1.out
    err=$work/$1.err
    eventually gone "${runners[$1]}"
    wait "${runners[$1]}"
    is 'the exit status' $? "$2"
}

# SIGKILL comes a fifth of the ttl after the time for SIGTERM: a command that must be told of the
# loss on a busy machine has a ttl of 15 s.
told='exec 2>/dev/null; trap "echo told >>$0; exit 0" TERM; echo ready >>"$0"; while :; do sleep 0.05; done'
until_end='echo ready >>"$0"; until [[ -e $0.end ]]; do sleep 0.05; done; exit 4'

# Six leases are lost at once: every node hangs. Without any answer, the tool's own clock still
# ends each command.
started hung -t 15s hung -- bash -c "$told"
# JSON goes to standard error, because standard output belongs to the command.
started json --json -t 15s json -- bash -c "$told"
# A command that ignores SIGTERM is killed before the lease ends, with its whole process group.
started deaf -t 4s --grace 300ms deaf -- bash -c \
    'exec 2>/dev/null; trap "" TERM; sleep 1000 & echo $! >"$0.other"; echo $$ >"$0.pid"; echo ready >>"$0"
    while :; do sleep 0.05; done'
# So is a process that the command left in its group.
started left -t 4s --grace 300ms left -- bash -c \
    '(trap "" TERM; exec sleep 1000) & echo $! >"$0.other"; echo ready >>"$0"; exec sleep 1000'
# A stopped command gets the signal too.
started stopped -t 15s stopped -- bash -c \
    'exec 2>/dev/null; trap "echo told >>$0; exit 0" TERM; echo ready >>"$0"; kill -STOP $$; echo went on >>"$0"'
# Nobody reads standard error, and the pipe is full. The command is warned of the loss all the same.
mkfifo "$work/full"
exec 9<>"$work/full"
dd if=/dev/zero of="$work/full" bs=4096 count=100 oflag=nonblock 2>/dev/null
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 1000 run -t 15s unread -- bash -c "$told" "$work/unread" \
    >"$work/unread.out" 2>"$work/full" &
runners[unread]=$!
eventually grep -q ready "$work/unread"

hang_all
eventually grep -q told "$work/hung"
ended hung 76
says "$err" "^redlock: the lease on 'hung' was not renewed and ends in .*SIGTERM, and SIGKILL follows in "\
'(3\.0|2\.[0-9])s'
# Before that, one warning said that a renewal had failed.
says "$err" \
    "^redlock: warning: a renewal of 'hung' failed; the lease is valid for [0-9.]+m?s more: 0 of 5 nodes confirmed it"
# Both name the nodes, and what came back.
named='3 are needed(, [0-9] had not answered yet)? \(127.0.0.1:[0-9]+.*within 1000 ms'
is 'lines with the nodes' "$(grep -cE "$named" "$err")" 2
is 'the number of lines' "$(wc -l <"$err")" 2
ended json 76
tail -n 1 "$err" >"$work/last"
json '.error == "LOST" and .resource == "json"' "$work/last"
ended deaf 76
eventually gone "$(cat "$work/deaf.pid")"
eventually gone "$(cat "$work/deaf.other")"
ended left 76
eventually gone "$(cat "$work/left.other")"
eventually grep -q told "$work/stopped"
ended stopped 76
never_says "$work/stopped" 'went on'
eventually grep -q told "$work/unread"
cat <&9 >/dev/null &
reader=$!
ended unread 76
kill $reader
exec 9>&-
wake_all

# A renewal fails, but the lease is still valid: the tool warns and does nothing else.
started shaken -t 9s shaken -- bash -c "$until_end"
started shaken-json --json -t 9s shaken-json -- bash -c "$until_end"
hang_node 0 1 2
eventually grep -q 'warning: a renewal' "$work/shaken.err"
eventually grep -q RENEWAL "$work/shaken-json.err"
wake_all
touch "$work/shaken.end" "$work/shaken-json.end"
ended shaken 4
is 'the number of lines' "$(wc -l <"$err")" 1
ended shaken-json 4
json '.warning == "RENEWAL" and (.message | test("shaken-json"))' "$err"

# Another client deletes or takes the key. The tool notices at the next renewal, long before the ttl
# ends.
started deleted -t 9s deleted -- bash -c "${told/exit 0/exit 5}"
started taken -t 9s taken -- bash -c "${told/exit 0/exit 5}"
for i in 0 1 2; do
    redis $i del deleted >/dev/null
    redis $i set taken thief >/dev/null
done
eventually grep -q told "$work/deleted"
ended deleted 76
says "$err" 'lost'
eventually grep -q told "$work/taken"
ended taken 76
is "the thief's key" "$(redis 1 get taken)" thief

# redlock itself is stopped for longer than its lease. Its command is killed in time all the same.
started paused -t 1s paused -- bash -c "echo \$\$ >\$0.pid; $told"
kill -STOP "${runners[paused]}"
eventually gone "$(cat "$work/paused.pid")"
never_says "$work/paused" told
eventually no_keys_left paused
expect 0 tool acquire -t 1m paused
rival=$(cat "$out")
kill -CONT "${runners[paused]}"
ended paused 76
says "$err" "^redlock: the lease on 'paused' .*; its command was sent SIGKILL"
is "the rival's key" "$(redis 2 get paused)" "$rival"

# The nodes work, but refuse the renewals: the sentence has their words, and no hint at a timeout.
started refused -t 3s refused -- bash -c "$told"
redis_on '0 1 2' acl setuser default -evalsha -eval
ended refused 76
refused="[0-2] of 5 nodes confirmed it, 3 are needed.* \\(127.0.0.1:${ports[0]}, .*: NOPERM .*'evalsha'"
says "$err" "^redlock: warning: a renewal of 'refused' failed; .*: $refused"
# On a busy machine the tool may come too late for SIGTERM.
left='(and ends in [0-9.]+m?s|in time)'
says "$err" "^redlock: the lease on 'refused' was not renewed $left: $refused.*; its command .*SIG(TERM|KILL)"
never_says "$err" 'timeout'
redis_on '0 1 2' acl setuser default +@all

# A grace that does not fit into the ttl is cut, with a warning; one that fits is not.
expect 0 tool run -t 2s --grace 500ms short -- true
says "$err" '^redlock: warning: --grace 500ms does not fit into the ttl of 2s: SIGKILL comes 400ms after SIGTERM'
expect 0 tool --json elect -t 2s --grace 500ms short -- true
json '.warning == "GRACE"' "$err"
expect_no_err 0 tool run -t 2s --grace 400ms short -- true
expect_no_err 0 tool run -t 2s short -- true

# --max-time limits the renewals.
expect 76 tool run -t 1s --max-time 500ms capped -- sleep 1000
says "$err" "^redlock: the lease on 'capped' was not renewed after --max-time 500ms and ends in "
# The command ends in the grace, and the lock is free at once.
expect 76 tool run -t 20s --max-time 1ms freed -- sh -c 'exec sleep 1000'
is 'the key' "$(redis 0 exists freed)" 0

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
# With --json every line is an object: the log, the warnings, and what the failure means.
expect 7 tool --json -v run explained -- bash -c "kill -STOP ${pids[0]} ${pids[1]} ${pids[2]}; exit 7"
objects "$err"
grep '"error"' "$err" >"$work/last"
json '.error == "NO_QUORUM" and (.explanation | test("^the exit status is the command.s; "))' "$work/last"
json '.votes | length == 5' "$work/last"
wake_all
# A sentry that somebody kills has a successor at the next renewal.
sentry_of() {
    local child
    for child in $(pgrep -P "$1"); do
        [[ $(cat "/proc/$child/comm") == bash ]] || echo "$child"
    done
}
has_another() {
    [[ -n $(sentry_of "$1") && $(sentry_of "$1") != "$2" ]]
}
started heir -t 4s heir -- bash -c "$until_end"
first=$(sentry_of "${runners[heir]}")
kill -KILL "$first"
eventually has_another "${runners[heir]}" "$first"
touch "$work/heir.end"
ended heir 4

# On a busy machine the sentry goes first, where the system allows that.
if chrt -f 1 true 2>/dev/null; then
    expect 0 tool run first -- bash -c '
        until (for child in $(cat /proc/$PPID/task/*/children); do
            ((child == $$)) || chrt -p "$child"; done) 2>/dev/null | grep -q SCHED_FIFO; do
            ((SECONDS < 30)) || exit 1
            sleep 0.02
        done'
fi
finish
