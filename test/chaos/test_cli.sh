#!/usr/bin/env bash
# Uses redlock-chaos as a stranger does, wrongly for the most part: exit statuses, words, and that
# nothing is left or hangs.
# shellcheck disable=SC2016 # words that are looked for as they are
set -uo pipefail

chaos=$(realpath "${1:?usage: test_cli.sh REDLOCK_CHAOS}")
for program in redis-server python3; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed" && exit 77; }
done
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp" || exit 1
failures=0

fail() {
    echo "test_cli.sh: $*"
    head -n 40 out err
    failures=$((failures + 1))
}

# expect STATUS WORDS ARGUMENT…: what it ends with, and what it says somewhere.
expect() {
    local status=$1 words=$2 got=0
    shift 2
    timeout 60 "$chaos" "$@" >out 2>err </dev/null || got=$?
    [[ $got == "$status" ]] || fail "$*: exit status $got, not $status"
    grep -qF -- "$words" out err || fail "$*: does not say: $words"
}

# Whatever runs in a directory of this test, or has one in its command line. Two processes look,
# however many there are to see.
left() {
    {
        grep -aFl -- "$temp/" /proc/[0-9]*/cmdline
        find /proc/[0-9]*/cwd -maxdepth 0 -lname "$temp/*"
    } 2>/dev/null | grep -v "^/proc/$$/"
}

# wait_for WHAT COMMAND…: polls for 20 s.
wait_for() {
    local what=$1 tries
    shift
    for ((tries = 0; tries < 400; tries++)); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    fail "waited in vain for $what"
}

usage() {
    expect 2 'say what to do'
    expect 2 "there is no command 'nonsense'" nonsense
    for command in run fault check report list help; do
        expect 0 'usage: redlock-chaos run' "$command" --help
    done
    expect 0 'redlock-chaos ' --version
    expect 2 'takes nothing' --version x
    expect 2 'takes nothing' list x
    expect 0 'minority-down' list
    expect 2 '-x is no option' run -xy
    expect 2 '--n is no option of `run`, or the begin of more than one' run --n 5
    expect 2 'needs a value' run --nodes
    local option
    for option in nodes clients resources seconds seed ttl node-timeout wait hold think readers persistence slack \
        backend faults; do
        expect 2 "--$option" run "--$option" -1
        expect 2 "--$option" run "--$option" ''
    done
    for option in output server schedule compose-file; do
        expect 2 "--$option takes a name" run "--$option" ''
    done
    expect 2 'from 1 to 31' run --nodes 32
    expect 2 'no --faults beside it' run split --faults kill
    expect 2 'drop needs --backend compose' run --faults kill,drop
    expect 2 '--tls needs --backend process' run --tls --backend compose
    expect 2 '--restart-guard takes off, observed or strict' run --restart-guard on
    expect 2 '--ttl-max takes a time' run --ttl-max x --protect
    expect 2 '--lock-delay takes a time' run --lock-delay -1s
    expect 2 '--ttl-max is less than ttl and lock delay, 5000 ms' run --protect --ttl 3s --lock-delay 2s \
        --ttl-max 4999ms
    expect 2 '--ttl-max is of the guards' run --fencing --ttl-max 5s
    expect 2 '--first-boot is of --restart-guard' run --first-boot --clock-guard
    expect 2 'say none beside it' run clock-jump --compare --fencing
    expect 2 'say none beside it' run clock-jump --compare --restart-guard strict
    expect 2 'name a file, not the standard input' run --compare --schedule -
    expect 2 "there is no experiment 'nope'" run nope
    expect 2 'one experiment at a time' run split clock-jump
    expect 2 '--run names the directory' fault pause nodes=1 for=1s
    expect 2 "unknown fault 'nope'" fault --run x nope
    expect 2 'it takes no at=' fault --run x flushall nodes=1 at=3s
    expect 2 'one line' fault --run x "flushall
nodes=1"
    expect 3 'cannot open the directory x' fault --run x flushall
    expect 3 'no experiment runs in .' fault --run . flushall
    expect 2 'the directory of one run' check
    expect 2 '--porcupine is no option of `run`' run --porcupine
    expect 2 'the directory of one run' report ''
}

# One that cannot begin leaves nothing.
no_begin() {
    expect 3 'needs for=' run --output new --schedule <(echo 'fault=pause nodes=1')
    expect 3 'line 2: nodes=9' run --output new --schedule <(printf '# x\nfor=1s fault=pause nodes=9\n')
    expect 3 'would never begin' run --output new --seconds 5 --schedule <(echo 'at=5s fault=flushall')
    expect 3 'zero byte' run --output new --schedule <(printf 'at=1s fault=flushall\0x')
    expect 3 'use --backend compose' run --output new --schedule <(echo 'for=1s fault=drop nodes=1')
    expect 3 'No such file' run --output new --schedule nowhere
    expect 3 'Is a directory' run --output new --schedule .
    expect 3 'is no Redis or Valkey server' run --output new --server /bin/true
    expect 3 'cannot be run' run --output new --server /nowhere
    REDLOCK_CHAOS_SHIM=/nowhere expect 3 'REDLOCK_CHAOS_SHIM' run clock-jump --output new
    local status=0
    PATH=/nowhere "$chaos" run --output new >out 2>err || status=$?
    [[ $status == 3 ]] || fail "no redis-server: exit status $status"
    grep -q 'apt-get install redis-server' err || fail 'no redis-server: it does not say how to get one'
    mkdir only && ln -s "$(command -v redis-server)" only/redis-server
    status=0
    PATH=$temp/only "$chaos" run --tls --output new >out 2>err || status=$?
    [[ $status == 3 ]] || fail "no openssl: exit status $status"
    grep -q 'apt-get install openssl' err || fail 'no openssl: it does not say how to get it'
    expect 3 'nodes or more are needed' run minority-down --nodes 1 --output new
    expect 3 'compose-file' run --output new --backend compose --compose-file nowhere
    [[ ! -e new ]] || fail "a run that could not begin has left $(ls -a new)"
    expect 3 'No such file' run --output no/where
    expect 3 'would never begin' run --compare --output new --seconds 5 --schedule <(echo 'at=5s fault=flushall')
    [[ ! -e new ]] || fail "a comparison that could not begin has left $(ls -a new)"
    touch full && mkdir taken && touch taken/file
    expect 3 'name a new or an empty one' run --output taken
    expect 3 'Not a directory' run --output full
    local deep
    deep=$temp/$(printf 'd%.0s' {1..250})/$(printf 'd%.0s' {1..250})/$(printf 'd%.0s' {1..250})
    deep+=/$(printf 'd%.0s' {1..250})
    mkdir -p "${deep%/*}"
    expect 3 'name a shorter one' run --output "$deep"
    [[ ! -e $deep ]] || fail 'the directory with too long a name is left'
    # Ctrl-C while the schedule is typed in.
    mkfifo typed
    "$chaos" run --output new --schedule - <typed >out 2>err &
    local pid=$!
    exec 9>typed
    wait_for 'a run that reads' grep -qF '(redlock-chaos) S' "/proc/$pid/stat"
    kill -TERM "$pid"
    wait_for 'the end of one whose schedule is typed in' eval "! kill -0 $pid"
    exec 9>&-
    wait "$pid"
}

# Directories that hold no history.
damaged() {
    mkdir nothing broken pipe empty && touch broken/conductor.jsonl empty/history.jsonl && mkfifo pipe/history.jsonl
    local command
    for command in check report; do
        expect 3 'no run was there' "$command" nowhere
        expect 3 'no run was there' "$command" nothing
        expect 3 'was broken off' "$command" broken
        expect 3 'it is no file' "$command" pipe
        expect 3 'no `start`' "$command" empty
    done
}

# One that ends well, in a directory with any characters, without standard files, its SIGCHLD
# ignored, in any language.
strange_run() {
    local out=$temp/"a 'run' \"of\" \$x;" status=0
    timeout 60 python3 -c '
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for fd in range(3):
    os.close(fd)
os.environ["LC_ALL"] = "tr_TR.UTF-8"
os.execv(sys.argv[1], sys.argv[1:])' "$chaos" run --seconds 1 --clients 1 --nodes 1 --resources 1 --ttl 10s \
        --faults none --output "$out" || status=$?
    [[ $status == 0 ]] || fail "a run without standard files: exit status $status"
    [[ $(tail -n 1 "$out/history.jsonl") == *'"finish"'* ]] || fail 'a run without standard files: no whole history'
    grep -qF "'\\\\''run'\\\\''" "$out/history.jsonl" ||
        fail 'the command of the run cannot be read back by a shell'
    local seed
    seed=$(sed -n '1s/.*"seed":\([0-9]*\).*/\1/p' "$out/history.jsonl")
    [[ $(head -n 1 "$out/history.jsonl") == *"--seed $seed"* ]] || fail 'the command of the run is without its seed'
    expect 0 'violations=0' check "$out"
    expect 0 'report.html' report "$out"
    status=0
    "$chaos" check "$out" >/dev/full 2>err || status=$?
    [[ $status == 3 ]] || fail "check, output to a full disk: exit status $status, not 3"
    rm -f "$out/report.html" && ln -s /dev/full "$out/report.html"
    expect 3 'cannot write' report "$out"
}

# What protects the clients stands in the history, and in the command that repeats the run.
protected() {
    local start
    expect 0 'Guards: restarts strict (first boot), clocks watched, ttl_max 3.5 s' run --seconds 1 \
        --clients 2 --nodes 3 --ttl 3s \
        --lock-delay 500ms --faults none --protect --output protected
    start=$(head -n 1 protected/history.jsonl)
    for word in '"fencing":true' '"restart_guard":"strict"' '"clock_guard":true' '"first_boot":true' \
        '"ttl_max_ms":3500' \
        '"lock_delay_ms":500' ' --protect '; do
        [[ $start == *"$word"* ]] || fail "a protected run does not tell $word: $start"
    done
    grep -q 'Fencing: [1-9]' out || fail 'a protected run had no fencing token'
}

# judge LINE…: from now on a program that says these is Porcupine's.
judge() {
    printf '#!/bin/sh\n' >judge
    printf 'echo "%s"\n' "$@" >>judge
    chmod +x judge
    export REDLOCK_PORCUPINE=$temp/judge
}

# The second judge, played by a script: what it says decides, and where it says nothing, nothing is
# known. The run is that of protected().
second_judge() {
    judge 'whole 1 ok 9' 'whole 2 ok 9' 'whole 3 ok 9'
    expect 0 'Porcupine agrees: of 3 resources, 0 illegal' check --porcupine protected
    expect 0 'Porcupine agrees: of 3 resources, 0 illegal' report --porcupine protected
    grep -q '^violations=0 ' out || fail 'the last line is no verdict beside that of Porcupine'
    judge 'whole 1 illegal 9' 'lock 1 illegal 9' 'whole 2 ok 9' 'whole 3 ok 9'
    expect 1 'lock: illegal for Porcupine' check --porcupine protected
    judge 'whole 1 ok 9' 'whole 2 unknown 9' 'whole 3 ok 9'
    expect 3 'Porcupine does not know' check --porcupine protected
    judge 'whole 1 ok 9'
    expect 3 'Porcupine does not know' check --porcupine protected
    echo 'echo "it cannot: why" >&2; exit 2' >>judge
    expect 3 'it cannot: why' check --porcupine protected
    # shellcheck disable=SC2016
    judge '$1 $2 $3 $4 $5 $6'
    expect 3 "these are no verdicts: -timeout 60000ms -draw protected -- protected/history.jsonl" \
        check --porcupine protected
    REDLOCK_PORCUPINE=/nowhere expect 3 'cannot be run; test/porcupine/README.md' check --porcupine protected
    unset REDLOCK_PORCUPINE
    expect 0 'violations=0' check protected
}

# With --tls clients check their nodes: with a certificate for another address none is let in. As a
# control, they are with the right one.
encrypted() {
    command -v openssl >/dev/null || return 0
    "$chaos" run --tls --seconds 1 --clients 2 --nodes 3 --faults none --output known >out 2>err
    [[ $? != 2 ]] || ! grep -q 'built without TLS' err || return 0
    grep -qE ', [1-9][0-9]* got the lock' out || fail 'nobody got a lock over TLS'
    mkdir shim
    printf '#!/usr/bin/env bash\nexec %q "${@/IP:127.0.0.1/IP:127.0.0.9}"\n' "$(type -P openssl)" >shim/openssl
    chmod +x shim/openssl
    PATH=$temp/shim:$PATH expect 0 ', 0 got the lock' run --tls --seconds 1 --clients 2 --nodes 3 --faults none \
        --output strange
}

# A comparison that shows nothing fails; one that is interrupted compares nothing.
compared() {
    expect 1 'comparison=fails none=0 fencing=0 guards=0' run --compare --seconds 1 --clients 2 --nodes 3 \
        --faults none --output compared
    expect 1 'nothing went wrong, so this run shows nothing' report compared
    expect 1 'comparison=fails none=0 fencing=0 guards=0' check compared
    expect 0 'violations=0' check compared/guards
    grep -qF -- 'redlock-chaos run --protect --seconds 1' compared/guards/history.jsonl ||
        fail 'the command of a side is not its own'
    expect 3 'it is there, and not empty' run --compare --faults none --output compared
    rm compared/fencing/history.jsonl
    expect 3 'no run was there' check compared
    "$chaos" run --compare --faults none --seconds 60 --clients 2 --nodes 3 --output cut >out 2>err </dev/null &
    pid=$!
    wait_for 'a comparison that answers' "$chaos" fault --run cut/none script-flush
    kill -INT "$pid"
    local status=0
    wait "$pid" || status=$?
    [[ $status == 3 ]] || fail "an interrupted comparison: exit status $status, not 3"
    grep -q 'there is nothing to compare' err || fail 'an interrupted comparison does not say so'
    [[ ! -e cut/fencing && ! -e cut/report.html ]] || fail 'an interrupted comparison goes on'
}

# A run in the background in the directory run; $pid.
begin() {
    rm -rf run
    "$chaos" run --faults none --seconds 60 --clients 2 --nodes 3 --output run >out 2>err </dev/null &
    pid=$!
    wait_for 'a run that answers' "$chaos" fault --run run script-flush
}

# ended STATUS WORDS: the one in the background.
ended() {
    local status=0
    wait "$pid" || status=$?
    [[ $status == "$1" ]] || fail "$2: exit status $status, not $1"
    grep -qF -- "$2" out err || fail "it does not say: $2"
    [[ ! -e run/control.sock ]] || fail "$2: control.sock is left"
    wait_for "the end of all processes after: $2" eval '[[ -z $(left) ]]'
}

child() {
    pgrep -P "$pid" "$@" | head -n 1
}

# A run whose parts are ended by hand, or that is asked to end.
killed() {
    local signal part status
    for signal in INT HUP; do
        begin
        # A run in which no client did anything has a violation.
        wait_for 'the end of an operation' grep -q '"event":"complete"' run/client-1.jsonl
        kill "-$signal" "$pid"
        ended 0 'interrupted: what has been written down so far is judged'
    done
    # A client that stands still keeps the run from its end.
    begin
    kill -STOP "$(child -x chaos-client)"
    kill -TERM "$pid" && wait_for 'its first words' grep -q interrupted err
    wait_for 'its end after a second signal' eval "kill -TERM $pid; ! kill -0 $pid"
    ended 3 'interrupted twice'
    expect 3 'was broken off' check run
    # timeout sends its signal to the whole process group, and to the run once more.
    status=0
    timeout 1 "$chaos" run --faults none --seconds 60 --clients 2 --nodes 3 --output timed >out 2>err </dev/null ||
        status=$?
    if [[ $status != 124 ]] || ! grep -q '^violations=0' out; then
        fail "timeout 1: exit status $status"
    fi
    for part in redlock-proxy chaos-auditor redis-server; do
        begin
        kill -KILL "$(child -x "$part")"
        ended 3 'ended by itself: signal 9, Killed'
    done
    # What comes when the nodes have ended asks for an end that is near. The run still waits for the
    # auditor.
    begin
    kill -STOP "$(child -x chaos-auditor)" && kill -INT "$pid"
    wait_for 'the end of the nodes' eval '[[ -z $(child -x redis-server) ]]'
    kill -TERM "$pid"
    ended 1 'the auditor'
}

# The socket of a run, and faults by hand.
by_hand() {
    begin
    expect 0 '' fault --run run pause nodes=1 for=100ms
    expect 3 'numbered from 1 to 3' fault --run run pause nodes=4 for=1s
    expect 3 'it is there, and not empty' run --output run
    timeout 20 python3 - run/control.sock <<'END' || fail 'a stranger at the socket holds up the run'
import socket, sys, time
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(15)
    s.connect(sys.argv[1])
    return s
for line in (b"\0", b"\xff\xfe", b"x" * 5000, b"\n", b""):
    s = connect()
    s.send(line)
    answer = s.recv(4000)
    assert answer and answer != b"ok", answer
# One that says nothing: its time is over all the same.
s = connect()
begin = time.monotonic()
assert s.recv(4000).startswith(b"no line"), "a silent stranger"
assert time.monotonic() - begin < 8
END
    kill -INT "$pid"
    ended 0 'violations=0'
}

usage
no_begin
damaged
strange_run
protected
second_judge
encrypted
compared
killed
by_hand
((failures == 0)) || { echo "$failures failures" && exit 1; }
