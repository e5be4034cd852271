#!/usr/bin/env bash
# Every shell block of a document (```sh) runs without an error, against three servers. One that
# would not end (```sh endless) prints something, and then SIGTERM ends it. The programs that it
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
for block in "${blocks[@]}"; do
    status=0
    if [[ $block == *endless.sh ]]; then
        timeout -s TERM 60 bash -euo pipefail "$block" >"$work/said" &
        pids+=($!)
        until [[ -s $work/said ]] || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
        kill -TERM $! 2>/dev/null || true
        wait $! || status=$?
        # timeout sends the signal on, to all of its group.
        [[ $status != 143 || ! -s $work/said ]] || status=0
    else
        timeout 60 bash -euo pipefail "$block" || status=$?
    fi
    ((status == 0)) || { echo "failed with status $status: $(head -n 1 "$block")"; exit 1; }
done
echo "${#blocks[@]} shell blocks of $document run"
