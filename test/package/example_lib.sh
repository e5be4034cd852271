# What the tests of examples begin with: compiles one, and starts three redis-servers. What is in
# `work` and `pids` ends with the test. Source it from bash.
# shellcheck shell=bash

command -v redis-server >/dev/null || { echo "skipped: redis-server is not installed"; exit 77; }
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
source "$REDLOCK_SOURCE/scripts/lib.sh"
work=${work:-$(mktemp -d)}
pids=() nodes=()
clean_up() {
    local pid
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
read -ra flags <<<"${REDLOCK_FLAGS:-}"

# compile SOURCE PROGRAM [FLAG…]
compile() {
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "${flags[@]}" -I"$REDLOCK_SOURCE/include" \
        -o "$2" "$1" "${@:3}"
}

# compile_example NAME [FLAG…] : docs/examples/NAME.c, with the library of the build.
compile_example() {
    compile "$REDLOCK_SOURCE/docs/examples/$1.c" "$work/$1" -L"$REDLOCK_BUILD/src" -lredlock \
        -Wl,-rpath,"$REDLOCK_BUILD/src" "${@:2}"
}

# start_nodes : adds three to `nodes`.
start_nodes() {
    local port try
    for ((try = 0; ${#nodes[@]} < 3 && try < 50; try++)); do
        port=$((10000 + RANDOM % 20000))
        if redlock_start_server "$port" "$work/$port"; then
            pids+=("$started")
            nodes+=("127.0.0.1:$port")
        fi
    done
    ((${#nodes[@]} == 3)) || { echo "no three redis-servers could be started"; exit 1; }
}
