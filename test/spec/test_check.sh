#!/usr/bin/env bash
# test_check.sh SPEC : spec/check.sh must complain of each search that is not as it must be, and
# write its rows. It and trace.sh must say what they miss. README.md has a row of each search.
set -euo pipefail

spec=$1
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
all | takes-long | MCLock | good |
all | finds-late | MCLock | breaks Exclusion | Broken = {"heal-quarantined"}
all | is-misspelt | MCLock | good | Tll = 1
END
export SEARCHES=$scratch/searches

fail() {
    cat "$scratch/output"
    echo "test_check.sh: $*" >&2
    exit 1
}

# says STATUS TEXT COMMAND…
says() {
    local status=0
    "${@:3}" >"$scratch/output" 2>&1 || status=$?
    ((status == $1)) || fail "${*:3}: exit status $status"
    grep -qF -- "$2" "$scratch/output" || fail "${*:3}: does not say: $2"
}

# unrecorded PAGE: the searches of SPEC that have no row there.
unrecorded() {
    awk -F ' *[|] *' '
        FILENAME == ARGV[1] { if ($3 ~ /^[0-9,]+$/ && $4 ~ /^[0-9,]+$/) recorded[$2] = 1; next }
        $1 ~ /^(ci|all)$/ && !("`" $2 "`" in recorded) { print $2 }' "$1" "$spec/searches"
}
unrecorded "$spec/README.md" >"$scratch/output"
[[ ! -s $scratch/output ]] || fail 'README.md has no row of these: spec/check.sh --record'
sed -E '/^[|] .(lock|order-lives). [|]/d' "$spec/README.md" >"$scratch/README.md"
[[ $(unrecorded "$scratch/README.md") == $'lock\norder-lives' ]] || fail 'a row that is missing is not missed'

says 77 'there is no TLC' env TLA2TOOLS=/nowhere "$spec/check.sh"
says 77 'there is no TLC' env TLA2TOOLS=/nowhere "$spec/trace.sh" /dev/null
mkdir "$scratch/bin"
for tool in bash dirname realpath; do
    ln -s "$(command -v "$tool")" "$scratch/bin"
done
says 77 'there is no Java' env PATH="$scratch/bin" "$spec/check.sh"
says 77 'there is no Java' env PATH="$scratch/bin" "$spec/trace.sh" /dev/null

cp "$spec"/*.tla "$spec"/*.cfg "$spec/check.sh" "$scratch"
cat >"$scratch/README.md" <<'END'
| search | states | generated | time | steps |
| --- | --- | --- | --- | --- |
| `gone` | 1 | 2 | 3 s | old |
| `misses` | 1 | 2 | 1200 s | no end |

All rows together: 7 s of nothing.

| search | in C | TLC |
| --- | --- | --- |
| `misses` | 3 states | 3 states |
| `right` | 3 steps | |
| `finds` | 3 steps | old |

| search | steps in C | what is searched in its place |
| --- | --- | --- |
| `finds` | 3 | `right` |
END
check=$scratch/check.sh
export TLA2TOOLS=${TLA2TOOLS:-$spec/tla2tools.jar}
status=0
"$check" --record >"$scratch/output" 2>&1 || status=$?
[[ $status != 77 ]] || { cat "$scratch/output" && exit 77; }
[[ $status == 1 ]] || fail "exit status $status"

# expect SEARCH WHAT IT SAYS
expect() {
    grep -Eq "^$1 .* $2" "$scratch/output" || fail "no row of $1 says: $2"
}
expect right 'ok$'
expect finds 'VIOLATION$'
expect finds-nothing 'NO COUNTEREXAMPLE$'
expect misses 'NEVER MET: extended$'
expect is-no-search 'TLC FAILED$'
expect holds-in-the-end 'NO COUNTEREXAMPLE$'
expect never-ends 'VIOLATION$'

# Of these, only one row may be written. One of a search that is no longer listed goes, and one of a
# search that went wrong stays.
sed -i 's/[0-9]* s |/N s |/; s/^\(All .* 1,20\)[0-9] s/\1N s/' "$scratch/README.md"
diff - "$scratch/README.md" <<'END' || fail 'the rows are not as they must be'
| search | states | generated | time | steps |
| --- | --- | --- | --- | --- |
| `right` | 31 | 80 | N s | 4 steps |
| `misses` | 1 | 2 | N s | no end |

All rows together: 1,20N s of nothing.

| search | in C | TLC |
| --- | --- | --- |
| `misses` | 3 states | 1 states, no end |
| `right` | 3 steps | 4 steps |
| `finds` | 3 steps | |

| search | steps in C | what is searched in its place |
| --- | --- | --- |
| `finds` | 3 | `right` |
END
says 0 '/right.states/Integers.tla' "$check" --trace right # not where other TLCs have it
says 2 'no search left' "$check" right left
says 2 'nothing to search' "$check" --module None
says 2 'no option --al' "$check" --al
says 0 'no end, none bad, ' env LIMIT=2 "$check" takes-long
says 1 'TLC FAILED' env LIMIT=2 "$check" finds-late
says 2 'MCLock.cfg has no Tll' "$check" is-misspelt
echo 'all | right-at-night | MCLock | breaks Exclusion | Broken = {"unknown-grants"}; Restarts = 0' >"$SEARCHES"
says 0 'right-at-night ' "$spec/../scripts/nightly.sh"
