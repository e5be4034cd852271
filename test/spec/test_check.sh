#!/usr/bin/env bash
# test_check.sh CHECK : spec/check.sh must complain of each search that is not as it must be.
set -euo pipefail

check=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tiny='Ttl = 1; TtlMax = 1; Patience = 1; Restarts = 0'
cat >"$scratch/searches" <<END
ci | right | MCLock | breaks Exclusion | Broken = {"unknown-grants"}; Restarts = 0
ci | finds | MCLock | good | Broken = {"unknown-grants"}; Restarts = 0
ci | finds-nothing | MCLock | breaks Exclusion | $tiny
ci | misses | MCLock | good | $tiny
ci | is-no-search | MCLock | good | Ttl = 0
ci | holds-in-the-end | MCOrder | dies Served | Waiters = 1
ci | never-ends | MCObserver | lives Told | Broken = {"asks-once"}; Terms = 1; Fails = FALSE; Own = {}
END
export SEARCHES=$scratch/searches

expect() {
    grep -Eq "^$1 .* $2" "$scratch/output" || {
        cat "$scratch/output"
        echo "test_check.sh: no row of $1 says: $2" >&2
        exit 1
    }
}

status=0
"$check" >"$scratch/output" 2>&1 || status=$?
[[ $status != 77 ]] || { cat "$scratch/output" && exit 77; }
[[ $status == 1 ]] || { cat "$scratch/output" && echo "test_check.sh: exit status $status" >&2 && exit 1; }
expect right 'ok$'
expect finds 'VIOLATION$'
expect finds-nothing 'NO COUNTEREXAMPLE$'
expect misses 'NEVER MET: extended$'
expect is-no-search 'TLC FAILED$'
expect holds-in-the-end 'NO COUNTEREXAMPLE$'
expect never-ends 'VIOLATION$'
"$check" right >/dev/null
