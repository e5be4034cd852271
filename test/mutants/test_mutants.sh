#!/usr/bin/env bash
# mutants.py on a sample: what it changes and leaves alone, what is killed and what survives, and
# what an explanation does.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
work=$(mktemp -d "${TMPDIR:-/tmp}/redlock-mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
for program in python3 ninja ctest; do
    command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done

fail() {
    echo "FAILED: $*"
    [[ ! -s $work/out ]] || cat "$work/out"
    exit 1
}

# mutants STATUS ARGUMENTS… : on the sample; what it says is in out.
mutants() {
    local wanted=$1 status=0
    shift
    python3 "$here/mutants.py" --tree "$here/sample" --work "$work/copy" --explained "$work/explained" \
        --stages unit "$@" sample.c >"$work/out" 2>&1 || status=$?
    [[ $status == "$wanted" ]] || fail "mutants.py $* ended with $status, not $wanted"
}

says() {
    grep -Fq -- "$1" "$work/out" || fail "it does not say: $1"
}

# What is listed: the one statement, not the comment, the assertion or the planted bug. It is the
# same each time.
mutants 0 --list
cp "$work/out" "$work/list"
says '9 mutants'
says '+ return weight >= 10 ? 20 : 5;'
says '+ return !(weight > 10) ? 20 : 5;'
says '+ return weight > 11 ? 20 : 5;'
says '+ return 0;'
[[ $(grep -c '^sample.c:14 in sample_fee()' "$work/out") == 9 ]] || fail 'another line than 14 is changed'
mutants 0 --list
cmp "$work/list" "$work/out" || fail 'the list differs from the one before'
mutants 0 --list --seed 3 --count 2
cp "$work/out" "$work/sample"
says '2 mutants'
mutants 0 --list --seed 3 --count 2
cmp "$work/sample" "$work/out" || fail 'the sample differs from the one before'

# What survives is at the limit, where the test does not look.
mutants 1 --only sample.c:14
says 'killed by test_sample'
says 'SURVIVOR: sample.c:14 in sample_fee(), sign'
says '9 mutants: 6 killed (6 by unit), 0 survivors explained, 3 not'

# With reasons all is well. One that explains nothing is told of.
cat >"$work/explained" <<'END'
# Comments are skipped.
file: sample.c
function: sample_fee
- return weight > 10 ? 20 : 5;
+ return weight >= 10 ? 20 : 5;
- return weight > 10 ? 20 : 5;
+ return weight > 11 ? 20 : 5;
- return weight > 10 ? 20 : 5;
+ return weight > 9 ? 20 : 5;
why: nobody has said
  where the limit is

file: sample.c
function: sample_fee
- return weight > 12 ? 20 : 5;
+ return weight >= 12 ? 20 : 5;
why: the line is another by now
END
mutants 0
says 'why: nobody has said where the limit is'
says '9 mutants: 6 killed (6 by unit), 3 survivors explained, 0 not'
says 'explains no mutant any more: sample.c in sample_fee'
echo '- half' >>"$work/explained"
mutants 2
says 'lacks file, lines or why'
rm "$work/explained"

# What cannot be run is said, and is no success.
mutants 2 --only sample.c:1
says 'there is no such mutant'
echo 'ok'
