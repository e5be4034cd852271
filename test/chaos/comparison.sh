#!/usr/bin/env bash
# Runs one named experiment with and without protection, and holds what it says and leaves against
# what it must.
set -euo pipefail

usage='usage: comparison.sh REDLOCK_CHAOS [--refusals] [ARGUMENT of run]…'
chaos=${1:?$usage} refusals=0
shift
[[ ${1-} != --refusals ]] || { refusals=1 && shift; }
# shellcheck source-path=SCRIPTDIR source=run_lib.sh
source "$(dirname "$0")/run_lib.sh"
run_it "$@" --compare
[[ $last =~ ^comparison=(holds|fails)\ none=([0-9]+)\ fencing=([0-9]+)\ guards=([0-9]+)$ ]] ||
    die "exit status $status, and the last line is no verdict: $last"
holds=${BASH_REMATCH[1]} none=${BASH_REMATCH[2]} guards=${BASH_REMATCH[4]}
[[ $status == 0 && $holds == holds ]] || die "exit status $status: $last"
((none > 0 && guards == 0)) || die "$none violations without protection, $guards with it"

# figure ROW: the three figures of a row of the table.
figure() {
    awk -v row="$1" 'index($0, row "  ") == 1 { print $(NF - 2), $(NF - 1), $NF }' "$temp/out"
}

read -r overlaps fenced never <<<"$(figure 'overlapping leases')"
((overlaps > 0 && fenced > 0 && never == 0)) ||
    die "overlaps: $overlaps without protection, $fenced with tokens, $never with guards"
read -r _ reads _ <<<"$(figure 'stale reads refused')"
read -r _ writes _ <<<"$(figure 'stale writes refused')"
((!refusals || reads + writes > 0)) || die 'leases overlapped under fencing tokens, but the resource refused nothing'
read -r _ lost_fenced lost_guarded <<<"$(figure 'lost updates')"
read -r _ stale_fenced stale_guarded <<<"$(figure 'stale accesses granted')"
((lost_fenced + lost_guarded + stale_fenced + stale_guarded == 0)) ||
    die 'the resource was not whole under fencing tokens'
read -r _ _ kept_out <<<"$(figure 'nodes kept from voting, by all clients')"
((kept_out > 0)) || die 'no node was kept from voting: the guards did nothing'
for side in none fencing guards; do
    [[ -s $out/$side/history.jsonl && -s $out/$side/report.html ]] || die "the run $side has no history, or no page"
    cmp "$out/none/schedule.txt" "$out/$side/schedule.txt" || die "the run $side had another schedule"
    grep -qF "href=\"$side/report.html\"" "$out/report.html" || die "the page does not lead to $side"
    refused=$(jq -r 'select(.event == "fault" and .error != "") | .error' "$out/$side/history.jsonl")
    [[ -z $refused ]] || die "a fault could not be begun: $refused"
done
# Judged again: the same verdict, and the same page.
cp "$out/report.html" "$temp/page"
again=$("$chaos" report "${slack[@]}" "$out" | tail -n 1)
[[ $again == "$last" ]] || die "judged again: $again"
cmp "$temp/page" "$out/report.html" || die 'the page made again is another one'
porcupine_agrees 3
nothing_is_left
