#!/usr/bin/env bash
# Shows what redlock does, on five redis-servers of its own, in less than half a minute. Installs
# missing packages and builds.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: scripts/demo.sh [OPTION]…

Installs missing packages (Debian 12 or 13, as root or with sudo), builds the tool, and starts five
redis-servers on free loopback ports in a temporary folder. Shows a lock that is taken, refused to a
rival, kept while nodes die, and lost. Then it cleans up.

  --nodes URI,URI,…  use these nodes instead; skip the steps that kill nodes
  --build-dir DIR    where to build; default: build/demo
  --tool PATH        use this redlock; build nothing
  --no-install       install nothing
  --help             this text

Exit status: 0 if every step gave the expected result, 1 otherwise, 64 for bad usage.
END
}

TTL_S=3 # the ttl of the lease that is lost
NODE_TIMEOUT=1s
own_nodes=1 # 0: the user's nodes
build=$REDLOCK_ROOT/build/demo
tool=
install=1
while (($#)); do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --nodes) REDLOCK_NODES=${2:?--nodes needs URI,URI,…} own_nodes=0 && shift ;;
    --build-dir) build=${2:?--build-dir needs a directory} && shift ;;
    --tool) tool=${2:?--tool needs a path} && shift ;;
    --no-install) install=0 ;;
    *) echo "demo.sh: unknown option $1 (see --help)" >&2 && exit 64 ;;
    esac
    shift
done

folder=
pids=() ports=() # our nodes; a pid is empty while its node is dead
started= # the last node's pid, until it is in pids
runner= # the pid of a tool in the background
resource=nightly-backup
token=

clean_up() {
    local pid try
    # A node that was just started is not in pids yet, and perhaps not in started.
    mapfile -t -O "${#pids[@]}" pids <<<"$started"$'\n'"$(jobs -p)"
    for pid in "${pids[@]}" $runner; do
        if [[ -n $pid ]]; then
            kill -CONT "$pid" 2>/dev/null
            kill -TERM "$pid" 2>/dev/null
        fi
    done
    if ((!own_nodes)) && [[ -n $token ]]; then
        "$tool" -q release "$resource" "$token"
    fi
    # The nodes save nothing, so they end at once. Kill those that do not.
    for pid in "${pids[@]}"; do
        [[ -n $pid ]] || continue
        for ((try = 0; try < 100; try++)); do
            kill -0 "$pid" 2>/dev/null || continue 2
            sleep 0.02
        done
        kill -KILL "$pid" 2>/dev/null
    done
    [[ -n $folder ]] && rm -rf "$folder"
}
trap clean_up EXIT
trap 'echo "interrupted; cleaning up" >&2; exit 130' INT TERM HUP

say() {
    printf '\n%s\n' "$*"
}

not_as_it_should() {
    printf '\ndemo.sh: unexpected result: %s\n' "$*" >&2
    exit 1
}

# show STATUS PATTERN ARGUMENTS… : runs the tool, shows its output, and checks its exit status and
# that its output matches the extended regular expression. Sets $output to its standard output.
show() {
    local wanted=$1 pattern=$2 status word line=
    shift 2
    for word in "$@"; do
        [[ $word != *[^[:alnum:]_./:=,-]* ]] || word="'$word'" # none of our words has a quote
        line+=" $word"
    done
    printf '  $ redlock%s\n' "$line"
    "$tool" --node-timeout "$NODE_TIMEOUT" "$@" >"$folder/out" 2>"$folder/err"
    status=$?
    output=$(cat "$folder/out")
    sed 's/^/    /' "$folder/out" "$folder/err"
    printf '    (exit status %d)\n' "$status"
    ((status == wanted)) || not_as_it_should "the exit status should be $wanted"
    grep -Eq -- "$pattern" "$folder/out" "$folder/err" || not_as_it_should "the output should match: $pattern"
}

start_five() {
    local try port
    for ((try = 0; try < 50 && ${#pids[@]} < 5; try++)); do
        port=$((10000 + RANDOM % 20000))
        if redlock_start_server "$port" "$folder/$port"; then
            pids+=("$started")
            started=
            ports+=("$port")
        fi
    done
    ((${#pids[@]} == 5)) || redlock_die "cannot start redis-server: $(tail -n 1 "$folder/$port/log")"
    REDLOCK_NODES=$(printf '127.0.0.1:%s,' "${ports[@]}")
    REDLOCK_NODES=${REDLOCK_NODES%,}
}

kill_node() {
    local pid=${pids[$1]} try
    kill -KILL "$pid"
    pids[$1]=
    for ((try = 0; try < 500; try++)); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.02
    done
    redlock_die "process $pid does not die"
}

take_and_refuse() {
    say "A client takes the lock '$resource' for 30 seconds. The tool prints a token: with it you" \
        "can extend or release the lock."
    show 0 '^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$' acquire -t 30s "$resource"
    token=$output
    say 'A rival asks for the same lock and is refused. Exit status 75 means that others hold it.'
    show 75 'held by ' acquire "$resource"
    say 'The owner asks for more time. Everybody can see who holds the lock, on which nodes, and for how long.'
    show 0 'extended; valid for' extend -t 1m "$resource" "$token"
    show 0 "held by $token" status "$resource"
    say 'The owner gives it back.'
    show 0 'released' release "$resource" "$token"
    token=
}

lose_nodes() {
    say "Two of the five nodes are killed (ports ${ports[1]} and ${ports[3]}). Three are a" \
        "quorum: clients can still take and release the lock."
    kill_node 1
    kill_node 3
    show 0 '^[g-v][0-9a-f]{31}@[^ ]+:[0-9]+$' acquire -t 30s "$resource"
    token=$output
    show 0 "held by ${token#*@} on 3 of 5" status "$resource"
    show 0 'released' release "$resource" "$token"
    token=
    say "A third node is killed (port ${ports[4]}). Two are no quorum: nobody can take a lock." \
        "The tool says why; exit status 69."
    kill_node 4
    show 69 'no quorum.*refused' acquire "$resource"
    show 69 '2 of 5 nodes ready; a quorum is 3: locks cannot be taken' status "$resource"
    say 'The three dead nodes are started again. The clients need no restart and no new settings.'
    for i in 1 3 4; do
        redlock_start_server "${ports[$i]}" "$folder/${ports[$i]}" ||
            redlock_die "cannot start redis-server again: $(tail -n 1 "$folder/${ports[$i]}/log")"
        pids[i]=$started
        started=
    done
    show 0 '5 of 5 nodes ready' status
}

run_and_renew() {
    say "redlock run holds the lock while a command runs. Here the ttl is one second and the" \
        "command takes two: redlock renews the lock meanwhile."
    # shellcheck disable=SC2016 # the command's variables
    show 0 'worked for 2 s under a lock of 1 s' run -t 1s "$resource" -- sh -c \
        'sleep 2; echo "worked for 2 s under a lock of 1 s on $REDLOCK_RESOURCE"'
}

# wait_for SECONDS COMMAND…
wait_for() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS <= deadline)) || return 1
        sleep 0.02
    done
}

runner_ended() {
    ! kill -0 "$runner" 2>/dev/null
}

lose_lease() {
    local hung_us told_us status
    # shellcheck disable=SC2016 # the command's variables
    local command='trap "echo \$EPOCHREALTIME >\$0; echo \"the command: told to stop, and stops\"; exit 0" TERM
        echo "the command: works under the lock"; while :; do sleep 0.05; done'
    say "Now the worst case. A command runs under a lock of $TTL_S seconds. Then all five nodes" \
        "hang (SIGSTOP): no node answers, and no"
    echo "connection breaks. The lease ends by its holder's clock. redlock must stop the command before that."
    printf '  $ redlock run -t %ds %s -- …\n' "$TTL_S" "$resource"
    "$tool" --node-timeout "$NODE_TIMEOUT" run -t "${TTL_S}s" "$resource" -- bash -c "$command" "$folder/told" \
        >"$folder/out" 2>&1 &
    runner=$!
    wait_for 20 grep -q 'works under' "$folder/out" ||
        not_as_it_should "the command should have started: $(cat "$folder/out")"
    kill -STOP "${pids[@]}"
    hung_us=${EPOCHREALTIME/[.,]/}
    echo "    (all five nodes hang now)"
    wait_for 20 runner_ended || not_as_it_should 'redlock should have ended'
    wait "$runner"
    status=$?
    runner=
    sed 's/^/    /' "$folder/out"
    printf '    (exit status %d)\n' "$status"
    kill -CONT "${pids[@]}"
    ((status == 76)) || not_as_it_should 'the exit status should be 76: the lease was lost'
    grep -q 'told to stop' "$folder/out" || not_as_it_should 'redlock should have stopped the command'
    told_us=$(tr -d '.,' <"$folder/told")
    printf '    redlock stopped the command %d ms after the nodes hung. The lease could last %d ms at most.\n' \
        $(((told_us - hung_us) / 1000)) $((TTL_S * 1000))
    say 'The nodes continue. The next client takes the lock at once: the old keys have expired.'
    show 0 'it is mine' run -w 20s "$resource" -- echo 'it is mine'
}

main() {
    local began
    if ((install)); then
        ((own_nodes)) && redlock_install redis-server
        [[ -n $tool ]] || redlock_install "${REDLOCK_BUILD_PACKAGES[@]}"
    fi
    if [[ -z $tool ]]; then
        echo "building in $build …"
        (redlock_build "$build" -DREDLOCK_TESTS=OFF -DREDLOCK_CHAOS=OFF -DREDLOCK_BENCH=OFF) || exit 1
        tool=$build/tools/redlock/redlock
    fi
    [[ -x $tool ]] || redlock_die "there is no program $tool"
    folder=$(mktemp -d "${TMPDIR:-/tmp}/redlock-demo.XXXXXX") || redlock_die 'cannot make a temporary folder'
    began=$SECONDS
    "$tool" --version
    echo "Every command below runs with --node-timeout $NODE_TIMEOUT (the default is 50ms), so" \
        "that the result is the same on a busy machine."
    if ((own_nodes)); then
        say 'Five redis-servers start on free loopback ports. They do not know each other.'
        start_five
        echo "  $ export REDLOCK_NODES=$REDLOCK_NODES"
    else
        resource=redlock-demo-$$-$RANDOM
        say "These are your nodes. The lock of this demo is called '$resource'."
    fi
    export REDLOCK_NODES
    show 0 'locks can be taken' status
    take_and_refuse
    ((own_nodes)) && lose_nodes
    run_and_renew
    if ((own_nodes)); then
        lose_lease
    else
        say 'These are your nodes, so the demo skips the steps that kill nodes or make them hang.'
    fi
    say "That was all, in $((SECONDS - began)) s. Every step gave the expected result. Cleaning up."
}
main
