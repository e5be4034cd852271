#!/usr/bin/env bash
# Every shell block of a document (```sh) runs without an error, against three servers; and so does
# every command in a table's second column that names a lock by NAME. One that would not end
# (```sh endless, --observe) prints something, and then SIGTERM ends it. The programs that a block
# names as ./NAME do nothing.
set -euo pipefail

tool=$1 document=$2
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
source "$(dirname "$0")/../../scripts/lib.sh"
command -v redis-server >/dev/null || { echo "skipped: redis-server is not installed"; exit 77; }
work=$(mktemp -d)
pids=()
stop() {
    ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap stop EXIT

awk -v dir="$work" '
    /^```sh( endless)?$/ {
        file = sprintf("%s/%02d%s.sh", dir, ++n, $2)
        print "# line " NR " of " FILENAME >file
        next
    }
    /^```/ { file = "" }
    file { print >file }
' "$document"
shopt -s nullglob
blocks=("$work"/*.sh)
((${#blocks[@]} >= 1)) || { echo "$document: no shell block was found"; exit 1; }

# Words in capitals and ellipses stand for what a user writes.
commands=()
while IFS= read -r command; do
    command=${command//"'…'"/true} command=${command/%…/NAME -- CMD}
    command=${command//CMD/true} command=${command/sleep infinity/true}
    command=${command/redlock clear/redlock clear --yes} # nobody answers here
    command=${command//NAME/table} command=${command//TEXT/text} command=${command//VALUE/value}
    commands+=("$command")
done < <(awk -F'|' '/^\|/ {
        for (rest = $3; match(rest, /`redlock [^`]*`/); rest = substr(rest, RSTART + RLENGTH)) {
            print substr(rest, RSTART + 1, RLENGTH - 2)
        }
    }' "$document" | grep -E 'NAME|…$')
[[ $document != */migrating.md ]] || ((${#commands[@]} >= 15)) || { echo "only ${#commands[@]} in tables"; exit 1; }

nodes=
for node in 1 2 3; do
    for ((try = 1; ; try++)); do
        port=$((20000 + RANDOM % 12000))
        redlock_start_server $port "$work/node$node" && break
        ((try < 20)) || { echo "no server starts"; exit 1; }
    done
    pids+=("$started")
    nodes+=${nodes:+,}127.0.0.1:$port
done
mkdir "$work/bin" "$work/home"
ln -s "$tool" "$work/bin/redlock"
{ grep -ohE ' \./[a-z-]+' "${blocks[@]}" || true; } | sort -u | while read -r program; do
    ln -s "$(type -P true)" "$work/home/$program"
done
cd "$work/home"
export PATH=$work/bin:$PATH REDLOCK_NODES=$nodes
# endless COMMAND… : it prints something, and SIGTERM ends it.
endless() {
    local status=0
    timeout -s TERM 60 "$@" >"$work/said" &
    pids+=($!)
    until [[ -s $work/said ]] || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
    kill -TERM $! 2>/dev/null || true
    wait $! || status=$?
    # timeout sends the signal on, to all of its group.
    [[ $status != 143 || ! -s $work/said ]] || status=0
    return $status
}
for block in "${blocks[@]}"; do
    run=(timeout 60)
    [[ $block != *endless.sh ]] || run=(endless)
    status=0
    "${run[@]}" bash -euo pipefail "$block" || status=$?
    ((status == 0)) || { echo "failed with status $status: $(head -n 1 "$block")"; exit 1; }
done
token=
for command in "${commands[@]}"; do
    run=(timeout 60)
    [[ $command != *--observe* ]] || run=(endless)
    status=0
    "${run[@]}" bash -euo pipefail -c "${command//TOKEN/$token}" >"$work/answer" || status=$?
    ((status == 0)) || { echo "failed with status $status: $command"; exit 1; }
    [[ $command != *acquire* ]] || token=$(<"$work/answer")
done
echo "${#blocks[@]} shell blocks and ${#commands[@]} commands in tables of $document run"
