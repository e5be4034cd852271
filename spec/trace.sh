#!/usr/bin/env bash
# Whether what the simulator does is a behaviour of Lock.tla (README.md, "Traces of the simulator"):
# TLC must accept each schedule, and refuse schedules with planted bugs and altered ones.
#
#     spec/trace.sh REDLOCK_SIM                  what CI runs: 200 schedules, some bugs
#     spec/trace.sh REDLOCK_SIM --all            more schedules, and all bugs that can be seen
#     spec/trace.sh REDLOCK_SIM --seed S [--bug NAME]   one schedule: where it is refused
#
# Without Java or TLC it says so, and exits with 77.
#
# TLA2TOOLS  tla2tools.jar
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jar=${TLA2TOOLS:-$here/tla2tools.jar}
schedules=200
few=100 # of each bug
bugs=(quorum-half no-drift release-any-token extend-after-end)
more_bugs=(start-after-send token-reused unknown-grants heal-counts quarantine-short)

fail() {
    echo "trace.sh: $*" >&2
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# Prints the traces of these schedules as a TLA+ module.
module() {
    echo '---- MODULE TraceData ----'
    echo 'Traces == <<'
    "$sim" --spec "$@" | sed '$ s/,$//'
    printf '%s\n' '>>' '===='
}

# judge NAME <MODULE: prints "accepted" or "refused"; TLC's output is in NAME.out.
judge() {
    local output=$scratch/$1.out
    cat >"$scratch/TraceData.tla"
    (cd "$scratch" && java -Xmx2g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir=. -cp "$jar" \
        tlc2.TLC -nowarning -workers 1 -metadir "$1.states" -config MCTrace.cfg MCTrace) >"$output" 2>&1 || true
    rm -rf "$scratch/$1.states"
    if grep -q '^Error: Deadlock reached' "$output"; then
        echo refused
    elif grep -q '^Model checking completed. No error has been found' "$output"; then
        echo accepted
    else
        grep -m 5 '^Error' "$output" >&2
        fail "TLC failed on $1"
    fi
}

# The state in which the trace in NAME.out was refused.
explain() {
    local output=$scratch/$1.out trace at
    read -r trace at < <(awk '/^\/\\ (trace|at) = / { value[$2] = $4 }
        END { print value["trace"], value["at"] }' "$output")
    awk -v trace="$trace" -v at="$at" '/^\[seed/ { seed = $3; n++; step = 0; next }
        n == trace && ++step == at { sub(/,$/, ""); print "seed " seed " step " step ": " $0 }' \
        "$scratch/TraceData.tla"
}

# What clients and nodes know then.
last_state() {
    awk '/^State/ { text = "" } /^[0-9]+ states generated/ { exit } { text = text $0 "\n" } END { print text }' \
        "$scratch/$1.out"
}

# expect NAME WHAT <MODULE
expect() {
    local found began=$SECONDS states
    found=$(judge "$1")
    states=$(sed -n 's/^\([0-9]*\) states generated.*/\1/p' "$scratch/$1.out" | tail -n 1)
    printf '%-28s %-9s %8s states %4d s  %s\n' "$1" "$found" "$states" $((SECONDS - began)) \
        "$([[ $found == accepted ]] || explain "$1")"
    [[ $found == "$2" ]] || fail "$1 should be $2"
}

# A client says that it holds the lock for longer than it may: the first time in each trace.
claim_more() {
    awk -F, '/^\[seed/ { done = 0 } /"holds"/ && !done++ { sub(/[0-9]+>>,$/, $4 + 10 ">>,") } { print }'
}

# No node set a key for the first attempt of each trace.
drop_grants() {
    awk '/^\[seed/ { begun = 0 } /"begin"/ { begun++ } !(/"set"/ && begun == 1) { print }'
}

all=no seed='' bug=none
[[ $# -gt 0 ]] || fail 'which redlock_sim?'
sim=$(realpath "$1")
shift
while (($# > 0)); do
    case $1 in
    --all) all=yes ;;
    --seed) seed=$2 && shift ;;
    --bug) bug=$2 && shift ;;
    *) fail "no option $1" ;;
    esac
    shift
done
command -v java >/dev/null || skip 'there is no Java: scripts/install-tlc.sh installs it'
[[ -f $jar ]] || skip "there is no TLC ($jar): scripts/install-tlc.sh installs it"
jar=$(realpath "$jar")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$here"/{Lock,Trace,Goals,MCTrace}.tla "$here/MCTrace.cfg" "$scratch"

if [[ $seed ]]; then
    found=$(module --seed "$seed" --schedules 1 --bug "$bug" | judge one)
    echo "$found"
    [[ $found == accepted ]] || { explain one && last_state one; }
    exit
fi
if [[ $all == yes ]]; then
    schedules=800
    bugs+=("${more_bugs[@]}")
fi
module --schedules "$schedules" | expect "$schedules schedules" accepted
sed -n 's/^<<"expected", "\(.*\)">>$/\1/p' "$scratch/$schedules schedules.out" | while IFS= read -r goal; do
    grep -qF "<<\"met\", \"$goal\">>" "$scratch/$schedules schedules.out" || fail "no trace has a $goal"
done
module --schedules 10 | claim_more | expect 'longer claims' refused
module --schedules 10 | drop_grants | expect 'first attempt unheard' refused
for bug in "${bugs[@]}"; do
    module --schedules "$few" --bug "$bug" | expect "$bug" refused
done
