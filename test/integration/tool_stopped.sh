#!/usr/bin/env bash
# redlock run and its command are stopped while the lease ends, or redlock before it forks the
# command. When they continue, the command does not take a single step.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
seen=$work/seen
slow=${SLOW_KILL:?the path of slow_kill}
slow_fork=${SLOW_FORK:?the path of slow_fork}
# A command that counts its steps. SIGTERM ends it wherever it is.
steps='echo $$ >"$0.pid"; echo ready >>"$0"; while :; do echo step >>"$0"; sleep 0.02; done'

stopped() {
    [[ $(cat "/proc/$1/stat") == *') T '* ]]
}

# started : starts redlock run in its own process group. It is slow after each signal that it sends.
started() {
    rm -f "$seen"*
    forget_words
    set -m
    LD_PRELOAD=$slow ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
        "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run -t 3s job -- bash -c "$steps" "$seen" >"$out" 2>"$err" &
    runner=$!
    set +m
    eventually grep -q step "$seen"
    command=$(cat "$seen.pid")
}

# goes_on : the lease ends, redlock continues, and the command ends where it was stopped.
goes_on() {
    eventually stopped "$runner"
    eventually stopped "$command"
    local before
    before=$(wc -l <"$seen")
    eventually no_keys_left job
    kill -CONT "$runner"
    eventually gone "$runner"
    wait "$runner"
    is 'the exit status' $? 76
    eventually gone "$command"
    is "the command's steps" "$(wc -l <"$seen")" "$before"
    says "$err" "lease on 'job' (is lost|was not renewed)"
}

# The terminal's Ctrl-Z stops both.
started
kill -TSTP "$runner"
goes_on

# Another process stops both, one after the other. Only redlock is continued.
started
kill -STOP "$runner"
eventually stopped "$runner"
kill -STOP -- "-$command"
goes_on

# redlock is stopped between its last look at the lease and the fork, and its sentry gets no
# processor time.
gate=$work/gate
forget_words
LD_PRELOAD=$slow_fork SLOW_FORK_GATE=$gate \
    ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout 5000 run -t 3s late -- touch "$gate.ran" >"$out" 2>"$err" &
runner=$!
eventually test -e "$gate.waits"
eventually no_keys_left late
touch "$gate"
eventually gone "$runner"
wait "$runner"
is 'the exit status' $? 76
is 'whether the command ran' "$(test -e "$gate.ran" && echo yes)" ''
says "$err" "lease on 'late' was not renewed"
kill -KILL "$(cat "$gate.sentry")"
finish
