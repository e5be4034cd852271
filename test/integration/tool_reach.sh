#!/usr/bin/env bash
# redlock run whose command becomes root, as under sudo: no signal of an ordinary user ends it.
# redlock says so, and says nothing else.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

nobody=65534
as_nobody() {
    setpriv --reuid $nobody --regid $nobody --clear-groups "$@"
}

# The command is root's, and whoever starts it becomes root.
chmod 711 "$work"
cp "$REDLOCK_TOOL" "$work/redlock"
cp "${BEAT:?}" "$work/beat"
mkdir -m 777 "$work/theirs"
becomes_root() {
    timeout -s KILL 1 setpriv --reuid $nobody --regid $nobody --clear-groups "$work/beat" "$work/theirs/trial" root
    [[ $? == 137 ]]
}
if ((EUID != 0)) || ! chmod 4755 "$work/beat" || ! becomes_root 2>/dev/null; then
    echo 'skipped: this needs root, and a file system with set-user-ID programs'
    exit 77
fi
start_nodes 3

# pid_of NAME : of the command, from what it has written about itself.
pid_of() {
    od -An -t d8 -j 24 -N 8 "$work/theirs/$1" | tr -d ' '
}

# started NAME COMMAND… : runs it, until it is root's.
started() {
    err=$work/$1.err
    as_nobody "$work/redlock" -n "$nodes" --node-timeout 1000 run -t 4s "$1" -- "${@:2}" >"$out" 2>"$err" &
    runner=$!
    eventually gives_above 0 pid_of "$1"
}

all() {
    for i in 0 1 2; do
        "$1" $i
    done
}

# The command itself: redlock says so while there is time, and waits for its end after the loss.
started alone "$work/beat" "$work/theirs/alone" root
eventually grep -Eq "warning: the command .* runs as another user, whom redlock may not send signals" "$err"
all hang_node
eventually grep -Eq "lease on 'alone' was not renewed .*; its command .* runs on: it is another user's" "$err"
never_says "$err" 'SIGKILL'
kill -KILL "$(pid_of alone)"
all wake_node
eventually gone "$runner"
wait "$runner"
is 'the exit status' $? 76

# What the command has started: redlock ends the command, and says what is left.
started child sh -c "'$work/beat' '$work/theirs/child' root; true"
all hang_node
eventually grep -Eq "processes of the command's group .* run on as another user" "$err"
all wake_node
eventually gone "$runner"
wait "$runner"
is 'the exit status' $? 76
kill -KILL "$(pid_of child)"
finish
