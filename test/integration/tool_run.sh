#!/usr/bin/env bash
# redlock run on healthy nodes: the command's environment, signals, descriptors and exit status, and
# the lock around it.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 5
seen=$work/seen

# The lock is held and renewed while the command runs, and gone after it.
expect 0 tool run job -- redis-cli -p "${ports[0]}" get job
held=$(cat "$out")
says "$out" '^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$'
says_nothing "$err"
eventually no_keys_left job
expect 0 tool run job -- sh -c 'echo "$REDLOCK_RESOURCE $REDLOCK_TOKEN $REDLOCK_VALIDITY_MS"'
says "$out" '^job [g-v][0-9a-f]{31}@[^ ]+:[0-9]+ 2[0-9]{4}$'
never_says "$out" "$held"
expect 0 tool run -t 3s job -- bash -c "
    SECONDS=0
    while ((SECONDS < 5)); do
        [[ \$(redis-cli -p ${ports[1]} get job) == \$REDLOCK_TOKEN ]] || exit 1
        sleep 0.01
    done"
expect 0 tool run job -- "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 acquire another
expect 75 tool run job -- "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 acquire job
expect 0 bash -c 'echo through | "$0" "$@" 2>&1' "$REDLOCK_TOOL" -n "$nodes" run job -- sh -c 'cat; echo also >&2'
says "$out" '^through$'
says "$out" '^also$'

# The tool exits with the command's status.
for wanted in 0 1 7 64 69 75 76 255; do
    expect_no_err $wanted tool run job -- sh -c "exit $wanted"
done
for signal in KILL TERM SEGV USR1; do
    expect $((128 + $(kill -l $signal))) tool run job -- sh -c 'kill -s '$signal' $$'
done
expect 127 tool run job -- /nonexistent/command
says "$err" "^redlock: cannot run '/nonexistent/command': No such file or directory; the lock is released"
expect 127 tool run job -- no-such-command-in-path
expect 126 tool run job -- /etc/passwd
says "$err" "Permission denied"
expect 126 tool run job -- "$work"
expect_no_out 127 tool --json run job -- /nonexistent/command
json '.error == "EXEC" and .resource == "job"' "$err"
eventually no_keys_left job

# The lock is taken: the status is 75, or the one of -E, and the command does not run.
redis_on '0 1 2' set taken somebody
expect 75 tool run taken -- touch "$seen"
says "$err" ': held by '
says "$err" 'Give -w TIME to wait'
# With -E, a taken lock is expected: no message, except as JSON.
expect_no_err 9 tool run -E 9 taken -- touch "$seen"
expect_no_err 75 tool run -E 75 taken -- touch "$seen"
expect 9 tool --json run -E 9 taken -- touch "$seen"
json '.error == "CONTENDED"' "$err"
expect_no_err 0 tool -q run -E0 taken -- touch "$seen"
expect 75 tool run -w 200ms taken -- touch "$seen"
expect_no_out 75 tool --json run taken -- touch "$seen"
json '.error == "CONTENDED" and (.votes | length) == 5' "$err"
is 'the command ran' "$([[ -e $seen ]] && echo yes)" ''
redis_on '0 1 2' pexpire taken 700
expect_no_out 0 tool --json run -w forever taken -- true
json '.acquired == "taken" and .waited_ms > 0 and .passed_over == 0' "$err"

# Concurrent runs go one after another, never together.
for i in 1 2 3 4 5 6; do
    tool run -w forever counter -- bash -c 'n=$(cat "$0" 2>/dev/null || echo 0); sleep 0.05; echo $((n + 1)) >"$0"' \
        "$work/count" &
    racers[i]=$!
done
for i in 1 2 3 4 5 6; do
    wait "${racers[$i]}"
    is "the status of racer $i" $? 0
done
is 'the count' "$(cat "$work/count")" 6

# started ARGUMENTS… : runs a command in the background that writes "ready" to the file seen; sets
# runner to the tool's pid.
started() {
    rm -f "$seen"
    forget_words
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run "$@" >"$out" 2>"$err" &
    runner=$!
    eventually grep -q ready "$seen"
}

# Signals reach the command and its whole process group.
for signal in USR1 USR2 HUP TERM ALRM WINCH; do
    started signals -- bash -c \
        'trap "echo got >>$0; exit 3" '$signal'; echo ready >>"$0"; while :; do sleep 0.05; done' "$seen"
    kill -s $signal $runner
    wait $runner
    is "the exit status after SIG$signal" $? 3
    is "SIG$signal" "$(tail -n 1 "$seen")" got
done
started signals -- bash -c 'sleep 1000 & echo $! >"$0.pid"; echo ready >>"$0"; wait' "$seen"
kill -TERM $runner
wait $runner
is 'the exit status of a terminated command' $? 143
eventually gone "$(cat "$seen.pid")"
eventually no_keys_left signals
# Its own process group, as in an interactive shell: the kernel stops no orphaned
# group by SIGTSTP.
set -m
started signals -- sh -c 'echo $$ >"$0.pid"; echo ready >>"$0"; exec sleep 1000' "$seen"
set +m
kill -TSTP $runner
stopped() {
    [[ $(cat "/proc/$1/stat") == *') T '* ]]
}
eventually stopped "$(cat "$seen.pid")"
eventually stopped $runner
kill -CONT $runner
kill -TERM $runner
wait $runner
is 'the exit status after stop and continue' $? 143

# systemd's variables that name the tool name its command; others stay as they are.
pids_of='echo "$$ $LISTEN_PID $WATCHDOG_PID $LISTEN_FDS ${LISTEN_PIDFDID-none}"'
export LISTEN_FDS=2
expect 0 bash -c 'LISTEN_PID=$$ WATCHDOG_PID=$$ LISTEN_PIDFDID=9 exec "$0" "$@"' \
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run named -- sh -c "$pids_of"
says "$out" '^([0-9]+) \1 \1 2 none$'
LISTEN_PID=1 WATCHDOG_PID=12x LISTEN_PIDFDID=9 expect 0 tool run named -- sh -c "$pids_of"
says "$out" '^[0-9]+ 1 12x 2 9$'
unset LISTEN_FDS

# If SIGKILL ends the tool, the kernel signals the command. (If that ignores it: tool_takeover.sh.)
started orphan -- sh -c 'echo $$ >"$0.pid"; echo ready >>"$0"; exec sleep 1000' "$seen"
# What ends each process of that name or command line leaves the sentry, which ends the command.
sentry=$(pgrep -P $runner -x lease-sentry)
is 'the sentries' "$(wc -w <<<"$sentry")" 1
is 'the command line of the sentry' "$(tr -d '\0' <"/proc/$sentry/cmdline")" lease-sentry
is 'processes that pkill redlock finds' "$(pgrep -P $runner redlock | wc -l)" 0
is 'processes that pkill -f redlock finds' "$(pgrep -P $runner -f redlock | grep -c "^$sentry\$")" 0
kill -KILL $runner
wait $runner 2>/dev/null
eventually gone "$(cat "$seen.pid")"

# The command gets signals and descriptors as the tool got them.
expect 0 grep -E '^Sig(Blk|Ign)' /proc/self/status
mv "$out" "$work/plain"
expect 0 tool run job -- grep -E '^Sig(Blk|Ign)' /proc/self/status
is 'the signal state of the command' "$(cat "$out")" "$(cat "$work/plain")"
expect 0 bash -c 'trap "" HUP PIPE USR1; exec "$0" "$@"' "$REDLOCK_TOOL" -n "$nodes" run job -- \
    sh -c 'kill -HUP $$; kill -PIPE $$; kill -USR1 $$; echo alive'
says "$out" '^alive$'
expect 0 ls /proc/self/fd
mv "$out" "$work/plain"
expect 0 tool run job -- ls /proc/self/fd
is 'the descriptors of the command' "$(cat "$out")" "$(cat "$work/plain")"
expect 0 bash -c 'exec 7<<<seven; "$0" "$@"' "$REDLOCK_TOOL" -n "$nodes" run job -- sh -c 'cat <&7'
says "$out" '^seven$'

# A name with dashes.
expect 0 tool run -- --dashed -- true
# A signal during the wait: the command never starts.
redis_on '0 1 2' set taken somebody
rm -f "$seen"
forget_words
"$REDLOCK_TOOL" -v -n "$nodes" --node-timeout 5000 run -w forever taken -- touch "$seen" >"$out" 2>"$err" &
runner=$!
eventually grep -q "asking for" "$err"
for signal in USR1 USR2 ALRM; do # for a command, which is not there yet
    kill -$signal $runner
done
kill -TERM $runner
wait $runner
is 'the exit status of a waiter' $? 143
is 'the command ran' "$([[ -e $seen ]] && echo yes)" ''
finish
