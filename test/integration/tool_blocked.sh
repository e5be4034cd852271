#!/usr/bin/env bash
# redlock while nobody reads its standard error, and while its command's exec is slow. It renews,
# and it stops the command when the lease is lost.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

slow_exec=${SLOW_EXEC:?the path of slow_exec.so}
start_nodes 3
seen=$work/seen
gate=$work/gate
pipe=$work/pipe
mkfifo "$pipe"
exec 9<>"$pipe"

# fill : fills the pipe with empty lines.
fill() {
    head -c 1048576 /dev/zero | tr '\0' '\n' | dd of="$pipe" bs=4096 iflag=fullblock oflag=nonblock 2>/dev/null
}

# read_all : reads standard error from now on, into the file err.
read_all() {
    cat <&9 >"$err" 9>&- &
    reader=$!
}

# started ARGUMENTS… : runs the tool in the background, with a full pipe as standard error.
started() {
    rm -f "$seen"* "$gate"*
    forget_words
    fill
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout "${node_timeout:-5000}" "$@" >"$out" 2>"$pipe" 9>&- &
    runner=$!
}

# ended STATUS : the tool ends by itself with this status.
ended() {
    eventually gone $runner
    wait $runner
    is 'the exit status' $? "$1"
}

# read_to_the_end : after the tool has ended, waits until err has all of its output.
read_to_the_end() {
    echo 'the end' >&9
    eventually grep -q '^the end$' "$err"
    kill $reader
    wait $reader 2>/dev/null
}

# renewed RESOURCE : the lock is renewed again and again, always under the same token.
renewed() {
    local renewals=0 before=0 now token deadline=$((SECONDS + 60))
    eventually eval "[[ -n \$(redis 0 get '$1') ]]"
    token=$(redis 0 get "$1")
    while ((renewals < 6 && SECONDS < deadline)); do
        now=$(redis 0 pttl "$1")
        if ((now > before)); then
            renewals=$((renewals + 1))
        fi
        before=$now
        sleep 0.05
    done
    is 'the number of renewals' $renewals 6
    is 'the token' "$(redis 0 get "$1")" "$token"
}

hang_all() {
    hang_node 0 1 2
}

wake_all() {
    wake_node 0 1 2
}

until_end='echo $$ >"$0.pid"; echo ready >>"$0"; until [[ -e $0.end ]]; do sleep 0.05; done; exit 3'
deaf='trap "" TERM; echo $$ >"$0.pid"; echo ready >>"$0"; while :; do sleep 0.05; done'

# Nobody reads the log. The lease is renewed all the same, the command runs to its end, and then all
# lines come.
started -v run -t 3s unread -- bash -c "$until_end" "$seen"
eventually grep -q ready "$seen"
renewed unread
expect 75 tool acquire unread
touch "$seen.end"
eventually no_keys_left unread
read_all
ended 3
read_to_the_end
says "$err" "^redlock: debug: acquire 'unread': OK"
says "$err" "^redlock: debug: release 'unread': OK"
never_says "$err" 'left out'

# Signals reach the command.
started -v run unread -- bash -c "$until_end" "$seen"
eventually grep -q ready "$seen"
kill -TERM $runner
eventually no_keys_left unread
read_all
ended 143
read_to_the_end

# The token is printed.
started -v acquire printed
eventually grep -Eq '^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$' "$out"
read_all
ended 0
read_to_the_end

# A signal ends the wait, even if nobody reads.
redis_on '0 1 2' set held somebody
started -v run -w forever held -- true
eventually eval '[[ -d /proc/$runner/task && $(ls /proc/$runner/task | wc -l) == 2 ]]'
kill -TERM $runner
ended 143

# The lease is not renewed, and the command ignores SIGTERM. It is killed in time, while nobody
# reads. Then the messages come.
node_timeout=500
for options in -v --json; do
    started "$options" run -t 2s --grace 300ms deaf -- bash -c "exec 2>/dev/null; $deaf" "$seen"
    eventually grep -q ready "$seen"
    hang_all
    eventually gone "$(cat "$seen.pid")"
    read_all
    ended 76
    read_to_the_end
    says "$err" "the lease on 'deaf' was not renewed and ends in .*SIGTERM, and SIGKILL follows in [23][0-9]{2}ms"
    wake_all
done
grep LOST "$err" >"$work/last"
json '.error == "LOST" and .resource == "deaf"' "$work/last"

# Nobody ever reads: the tool ends all the same.
started -v run -t 2s --grace 300ms deaf -- bash -c "exec 2>/dev/null; $deaf" "$seen"
eventually grep -q ready "$seen"
hang_all
ended 76
wake_all
node_timeout=5000

# The exec takes longer than many ttls. The tool holds the lock meanwhile, and then the command
# runs.
gated() {
    rm -f "$seen"* "$gate"*
    forget_words
    # AddressSanitizer expects to be loaded first, but works anyway.
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-} LD_PRELOAD=$slow_exec SLOW_EXEC_GATE=$gate \
        "$REDLOCK_TOOL" -n "$nodes" --node-timeout "$node_timeout" run "$@" >"$out" 2>"$err" 9>&- &
    runner=$!
    eventually test -e "$gate.reached"
}
gated -t 3s slow -- sh -c 'echo ran >"$0"; exit 7' "$seen"
renewed slow
expect 75 tool acquire slow
is 'the command ran' "$([[ -e $seen ]] && echo yes)" ''
touch "$gate"
ended 7
is 'the command ran' "$([[ -e $seen ]] && echo yes)" yes
eventually no_keys_left slow
# It fails late.
gated slow -- /nonexistent/command
touch "$gate"
ended 127
says "$err" "^redlock: cannot run '/nonexistent/command': No such file or directory; the lock is released"
gated slow -- "$work"
touch "$gate"
ended 126
# A signal ends it.
gated slow -- touch "$seen"
kill -TERM $runner
ended 143
# The lease is lost meanwhile: the command never begins, although it inherits an ignored SIGTERM.
node_timeout=500
trap '' TERM
gated -t 2s slow -- touch "$seen"
trap 'exit 130' TERM
hang_all
ended 76
says "$err" "^redlock: the lease on 'slow' was not renewed .*; its command had not begun yet and was sent SIGKILL"
touch "$gate"
is 'the command ran' "$([[ -e $seen ]] && echo yes)" ''
wake_all

# The command begins, and its lease ends, while the tool is stopped: it is not told that it never
# began.
eventually no_keys_left slow
gated -t 1s slow -- sh -c 'echo ran >"$0"; exec sleep 1000' "$seen"
kill -STOP $runner
touch "$gate"
eventually test -e "$seen"
eventually no_keys_left slow
kill -CONT $runner
ended 76
says "$err" "^redlock: the lease on 'slow' was not renewed in time; its command was sent SIGKILL$"

# The tool is stopped while both its command and the lease end. It reports that it has lost the
# lock.
forget_words
"$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run -t 1s both -- bash -c "$until_end" "$seen" >"$out" 2>"$err" 9>&- &
runner=$!
eventually grep -q ready "$seen"
kill -STOP $runner
touch "$seen.end"
eventually gone "$(cat "$seen.pid")"
eventually no_keys_left both
kill -CONT $runner
ended 76
says "$err" "^redlock: .*'both'"
finish
