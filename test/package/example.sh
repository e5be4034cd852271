#!/usr/bin/env bash
# The example docs/examples/leader.c compiles, and does what docs/election.md says: one process
# works, and another one goes on after its end, its death, its loss, or when it stands back.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=example_lib.sh
source "$(dirname "$0")/example_lib.sh"

compile_example leader
start_nodes

# starts FILE : one more process, which writes there; sets process.
starts() {
    "$work/leader" job "${nodes[@]}" >"$1" 2>&1 &
    process=$!
    pids+=("$process")
}

# eventually FILE TEXT : the file has a line that begins like this, within 30 s.
eventually() {
    local deadline=$((SECONDS + 30))
    until grep -q "^$2" "$1"; do
        ((SECONDS <= deadline)) || { echo "$1 never said: $2"; cat "$1"; exit 1; }
        sleep 0.02
    done
}

# last_fence FILE
last_fence() {
    sed -n 's/^step with fence //p' "$1" | tail -n 1
}

# works_above FILE FENCE : it makes a step with a larger fence, within 30 s.
works_above() {
    local deadline=$((SECONDS + 30)) fence
    until fence=$(last_fence "$1") && ((${fence:-0} > $2)); do
        ((SECONDS <= deadline)) || { echo "$1 makes no step above $2"; cat "$1"; exit 1; }
        sleep 0.02
    done
}

# A wrong argument is named, and so are the nodes that are away.
if said=$("$work/leader" "" "${nodes[@]}" 2>&1); then echo "it takes an empty name"; exit 1; fi
[[ $said == *"name has 0 bytes"* ]] || { echo "$said"; exit 1; }
"$work/leader" job 127.0.0.1:1 >"$work/alone" 2>&1 &
pids+=($!)
eventually "$work/alone" 'trouble: .*127\.0\.0\.1:1: connection refused'

starts "$work/1" && first=$process
eventually "$work/1" 'step with fence'
starts "$work/2" && second=$process
eventually "$work/2" "the leader is $(hostname | cut -c 1-40):$first\$"
starts "$work/3" && third=$process
eventually "$work/3" "the leader is $(hostname | cut -c 1-40):$first\$"
kill -TERM "$first"
wait "$first" || { echo "the first one ended with $?"; exit 1; }
eventually "$work/2" 'step with fence'
eventually "$work/2" 'the leader is this program'
kill -KILL "$second"
eventually "$work/3" 'step with fence'
first_fence=$(last_fence "$work/1") second_fence=$(last_fence "$work/2")

# The third one stands back, and the fourth one leads.
starts "$work/4" && fourth=$process
eventually "$work/4" "the leader is $(hostname | cut -c 1-40):$third\$"
kill -HUP "$third"
eventually "$work/3" 'resigned: done'
third_fence=$(last_fence "$work/3")
works_above "$work/4" "$third_fence"
eventually "$work/3" "the leader is $(hostname | cut -c 1-40):$fourth\$"
# The fourth one loses its lease while it is stopped. It is told so, and campaigns again.
kill -STOP "$fourth"
fourth_fence=$(last_fence "$work/4")
works_above "$work/3" "$fourth_fence"
kill -CONT "$fourth"
eventually "$work/4" 'lost: '
kill -TERM "$third"
wait "$third" || { echo "the third one ended with $?"; exit 1; }
works_above "$work/4" "$(last_fence "$work/3")"
kill -TERM "$fourth"
wait "$fourth" || { echo "the fourth one ended with $?"; exit 1; }

fences=("$first_fence" "$second_fence" "$third_fence" "$fourth_fence" "$(last_fence "$work/3")"
    "$(last_fence "$work/4")")
for ((i = 1; i < ${#fences[@]}; i++)); do
    ((fences[i - 1] < fences[i])) || { echo "the fences do not rise: ${fences[*]}"; exit 1; }
done
# Nobody works without leading.
idle='/^leading/ { leads = 1 } /^(lost|resigned)/ { leads = 0 } /^step/ && !leads { exit 1 }'
for file in "$work"/[1-4]; do
    awk "$idle" "$file" || { echo "a step without leading:"; cat "$file"; exit 1; }
done
! printf 'leading, term 1\nlost: x\nstep with fence 1\n' | awk "$idle" || { echo "control failed"; exit 1; }
echo "six leaderships of four processes, with the fences ${fences[*]}"
