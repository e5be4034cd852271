#!/usr/bin/env bash
# redlock run and its command are stopped while the lease ends: when they are continued, the command takes not one step more.
# shellcheck disable=SC2016,SC2317 # variables of the commands that are run; functions that are called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
seen=$work/seen
slow=${SLOW_KILL:?the path of slow_kill}
# A command that counts its steps. SIGTERM ends it wherever it is.
steps='echo $$ >"$0.pid"; echo ready >>"$0"; while :; do echo step >>"$0"; sleep 0.02; done'

stopped() {
    [[ $(cat "/proc/$1/stat") == *') T '* ]]
}

# started : redlock run in a process group of its own, which takes long after each signal that it sends.
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

# goes_on : the lease ends, redlock is continued; the command ends where it was stopped.
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
    says "$err" "lease on 'job' is lost"
}

# By the terminal's Ctrl-Z, or a shell that does as it does.
started
kill -TSTP "$runner"
goes_on

# By somebody who stops both, one after the other; only redlock is continued.
started
kill -STOP "$runner"
eventually stopped "$runner"
kill -STOP -- "-$command"
goes_on
finish
