# Common parts of the tool's tests: they start redis-servers, run the tool, and check what it
# prints. Sourced by bash.
# shellcheck shell=bash disable=SC2119,SC2120,SC2034
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

REDLOCK_TOOL=${REDLOCK_TOOL:?the path of the tool}
work=$(mktemp -d "${TMPDIR:-/tmp}/redlock-tool.XXXXXX")
ports=()   # of the nodes, in order
pids=()    # the same; empty once killed
nodes=     # as -n takes them
started=   # the last server's pid
failures=0
checks=0
status=0   # of the last command under `expect`; out and err have its output:
out=$work/out
err=$work/err

# Ends everything that this test started, by pid.
clean_up() {
    local pid
    for pid in "${pids[@]}" "$started" $(jobs -p); do
        if [[ -n $pid ]]; then
            kill -CONT "$pid" 2>/dev/null
            kill -KILL "$pid" 2>/dev/null
        fi
    done
    wait 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

fail() {
    failures=$((failures + 1))
    printf 'FAILED at line %s: %s\n' "${BASH_LINENO[-2]}" "$*"
    if [[ -s $out || -s $err ]]; then
        printf -- '--- standard output\n%s\n--- standard error\n%s\n---\n' "$(cat "$out" 2>/dev/null)" \
            "$(cat "$err" 2>/dev/null)"
    fi
}

# start_proxy : the fault proxy before all nodes; sets links to the ports of its links.
start_proxy() {
    coproc proxy { exec "$REDLOCK_PROXY" "${ports[@]/#/0=}"; }
    read -r -a links <&"${proxy[0]}"
    links=("${links[@]:1}") # behind the word "ready"
}

# tell COMMAND… : to the proxy; sets answer.
tell() {
    echo "$*" >&"${proxy[1]}"
    read -r -a answer <&"${proxy[0]}"
    [[ ${answer[0]} == ok ]] || fail "the proxy answers '$*' with ${answer[*]}"
}

# The last line of every test.
finish() {
    printf '%d checks, %d failures\n' "$checks" "$failures"
    exit $((failures != 0))
}

# eventually COMMAND… : repeats it until it succeeds, for at most 30 s.
eventually() {
    local deadline=$((SECONDS + 30)) pause_ms=20 pause
    checks=$((checks + 1))
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS > deadline)); then
            fail "never came true in 30 s: $*"
            return 1
        fi
        printf -v pause '0.%03d' $pause_ms
        sleep "$pause"
        # Most come true soon; the others shall not keep a processor busy.
        ((pause_ms >= 100)) || pause_ms=$((pause_ms + 5))
    done
}

# Conditions for `eventually`, which runs them again each time: gives WANTED COMMAND… ; gives_above
# NUMBER COMMAND…
gives() {
    [[ $("${@:2}") == "$1" ]]
}

gives_above() {
    (($("${@:2}") > $1))
}

# try_server PORT [redis-server arguments…] : sets started to the pid. Fails if the server ends.
try_server() {
    redlock_start_server "$1" "$work/$1" "${@:2}"
}

# start_node [redis-server arguments…] : uses a free loopback port; adds to ports, pids and nodes.
start_node() {
    local try port
    for ((try = 0; try < 50; try++)); do
        port=$((10000 + RANDOM % 20000))
        if try_server "$port" "$@"; then
            ports+=("$port")
            pids+=("$started")
            nodes+=${nodes:+,}127.0.0.1:$port
            return 0
        fi
    done
    echo "no redis-server could be started; the last one said:"
    cat "$work/$port/log"
    exit 1
}

start_nodes() {
    local i
    for ((i = 0; i < $1; i++)); do
        start_node
    done
}

# redis INDEX ARGUMENTS… : runs redis-cli at a node.
redis() {
    local port=${ports[$1]}
    shift
    redis-cli -s "$work/$port/socket" "$@"
}

# redis_on 'INDEX…' ARGUMENTS… : the same at each of these nodes, in silence.
redis_on() {
    local i
    for i in $1; do
        redis "$i" "${@:2}" >/dev/null
    done
}

# These nodes, each by its index.
kill_node() {
    local i
    for i; do
        kill -KILL "${pids[$i]}"
        eventually gone "${pids[$i]}"
        pids[i]=
    done
}

hang_node() {
    local i
    for i; do kill -STOP "${pids[$i]}"; done
}

wake_node() {
    local i
    for i; do kill -CONT "${pids[$i]}"; done
}

# gone PID : the process has ended. A zombie has too.
gone() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    stat=${stat##*) }
    [[ ${stat:0:1} == Z ]]
}

# keys_left RESOURCE : prints how many of the running nodes have the key.
keys_left() {
    local i count=0
    for i in "${!ports[@]}"; do
        if [[ -n ${pids[$i]} && $(redis "$i" exists "$1") == 1 ]]; then
            count=$((count + 1))
        fi
    done
    echo "$count"
}

no_keys_left() {
    [[ $(keys_left "$1") == 0 ]]
}

# tool ARGUMENTS… : runs the tool on this test's nodes, with timeouts for a loaded machine.
tool() {
    "$REDLOCK_TOOL" -n "$nodes" --node-timeout "${node_timeout:-5000}" --connect-timeout "${connect_timeout:-10s}" "$@"
}

# Call this before a tool starts in the background, so that a wait does not match older output.
forget_words() {
    : >"$out"
    : >"$err"
}

# expect STATUS COMMAND… : runs it; sets status, and fills the files out and err.
expect() {
    local wanted=$1
    shift
    checks=$((checks + 1))
    "$@" >"$out" 2>"$err" </dev/null
    status=$?
    if [[ $status != "$wanted" ]]; then
        fail "$* ended with $status, not $wanted"
    fi
}

# says FILE PATTERN : the file matches this extended regular expression.
says() {
    checks=$((checks + 1))
    grep -Eq -- "$2" "$1" || fail "$(basename "$1") does not say: $2"
}

says_nothing() {
    checks=$((checks + 1))
    [[ ! -s $1 ]] || fail "$(basename "$1") is not empty"
}

# The same as expect, and standard output, or standard error, stays empty.
expect_no_out() {
    expect "$@"
    says_nothing "$out"
}

expect_no_err() {
    expect "$@"
    says_nothing "$err"
}

never_says() {
    checks=$((checks + 1))
    if grep -Fq -- "$2" "$1"; then
        fail "$(basename "$1") says: $2"
    fi
}

# is WHAT GOT WANTED
is() {
    checks=$((checks + 1))
    [[ $2 == "$3" ]] || fail "$1 is '$2', not '$3'"
}

# objects FILE : each of its lines is a JSON object, and there is one.
objects() {
    checks=$((checks + 1))
    if ! jq -es 'length > 0 and all(type == "object")' "$1" >/dev/null 2>&1 ||
        [[ $(wc -l <"$1") != $(jq -s length "$1") ]]; then
        fail "$(basename "$1") has lines that are no objects"
    fi
}

# json FILTER : jq finds it true of the JSON in out.
json() {
    checks=$((checks + 1))
    jq -e "$1" "${2:-$out}" >/dev/null 2>&1 || fail "the JSON is wrong or is none: $1"
}
