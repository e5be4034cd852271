#!/usr/bin/env bash
# Runs redlock_model and compares the states, or the steps of the counterexample, with the row for
# this command in a README.
set -euo pipefail

model=${1:?usage: test_counted.sh REDLOCK_MODEL README ARGUMENT…}
readme=${2:?}
shift 2

status=0
said=$("$model" "$@") || status=$?
printf '%s\n' "$said"
((status == 0)) || exit "$status"
counted=$(sed -n -e 's/^no violation in any state: \([0-9,]*\) states.*/\1/p' -e \
    's/^VIOLATION: .* steps \([0-9]*\),.*/\1/p' <<<"$said")
row=$(grep -F "| \`redlock_model $*\` |" "$readme") || {
    echo "$readme has no row for: redlock_model $*"
    exit 1
}
[[ $row == *"| $counted |" ]] || {
    echo "$readme says: $row"
    exit 1
}
