#!/usr/bin/env bash
# Runs one named experiment, short, and holds what it says and leaves against what it must: exit
# status, last line, files, processes.
set -euo pipefail

usage='usage: experiment.sh REDLOCK_CHAOS clean|violations [--kinds WORD,…] [--availability A] [--refusals]
                     [--iptables] [--steps N] -- [ARGUMENT of run]…'
chaos=${1:?$usage} expected=${2:?$usage}
shift 2
kinds='' availability='' refusals=0 steps=0
while (($#)) && [[ $1 != -- ]]; do
    case $1 in
    --kinds) kinds=$2 && shift ;;
    --availability) availability=$2 && shift ;;
    --refusals) refusals=1 ;;
    --steps) steps=$2 && shift ;;
    --iptables)
        { ((EUID == 0)) && iptables -w 5 -S INPUT >/dev/null 2>&1; } ||
            { echo 'skipped: packets are dropped by iptables, and root' && exit 77; }
        ;;
    *) echo "$usage" >&2 && exit 64 ;;
    esac
    shift
done
shift

# shellcheck source-path=SCRIPTDIR source=run_lib.sh
source "$(dirname "$0")/run_lib.sh"
run_it "$@"
[[ $last =~ ^violations=([0-9]+)\ lost_updates=([0-9]+)\ operations=([0-9]+)\ availability=([01]\.[0-9]{4}|none)$ ]] ||
    die "exit status $status, and the last line is no verdict: $last"
violations=${BASH_REMATCH[1]} lost=${BASH_REMATCH[2]} operations=${BASH_REMATCH[3]} available=${BASH_REMATCH[4]}
((operations >= 50)) || die "only $operations operations: nothing was tried"

case $expected in
clean)
    ((status == 0 && violations == 0 && lost == 0)) ||
        die "exit status $status, $violations violations, $lost lost updates; none were expected"
    ;;
violations)
    ((status == 1 && violations > 0)) ||
        die "exit status $status, $violations violations; some were expected:" \
            "the checker is blind, or the fault did not happen"
    ;;
*) echo "$usage" >&2 && exit 64 ;;
esac
IFS=, read -r -a words <<<"$kinds"
for word in "${words[@]}"; do
    grep -qF "$word" "$temp/out" || die "no violation of the kind '$word' is told"
done
if [[ -n $availability ]] && { [[ $available == none ]] || awk "BEGIN { exit !($available < $availability) }"; }; then
    die "availability is $available, less than $availability"
fi

for file in history.jsonl report.html schedule.txt; do
    [[ -s $out/$file ]] || die "there is no $file"
done
# A fault that did not happen shows nothing; only at random may two meet that exclude each other.
refused=$(jq -r 'select(.event == "fault" and .error != "") | .error' "$out/history.jsonl")
[[ -z $refused ]] || ((refusals)) || die "a fault could not be begun: $refused"
# Each client began with each of so many setups of nodes and quorum, and half of them at least held
# locks in each: on a loaded machine one may get none in some seconds.
if ((steps)); then
    jq -s --argjson steps "$steps" -e 'map(select(.event == "spawn" or .event == "claim")) | group_by(.client) |
        map(reduce .[] as $e ({now: "", begun: {}, held: {}};
            if $e.event == "spawn" then .now = ($e | {nodes, quorum} | tostring) | .begun[.now] = 1
            else .held[.now] = 1 end)) as $clients | ($clients | all((.begun | length) == $steps)) and
        ($clients | map(.held | keys) | add | group_by(.) |
            length == $steps and all(2 * length >= ($clients | length)))' \
        "$out/history.jsonl" >/dev/null ||
        die "not every client began with each of $steps setups, or fewer than half held locks in one"
    ! grep -qF 'share a node' "$temp/out" || die 'clients ran beside each other whose quorums need not meet'
fi
# The same history, judged again, has the same verdict.
again=$("$chaos" check "${slack[@]}" "$out" | tail -n 1) || true
[[ $again == "$last" ]] || die "judged again: $again"
porcupine_agrees 1
nothing_is_left
