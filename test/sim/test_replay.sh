#!/bin/sh
# The same seed makes the same schedule: in another process, after other schedules, traced or not.
# usage: test_replay.sh REDLOCK_SIM [OPTION...]
set -eu
sim=$1
shift
seeds=40
together=$("$sim" "$@" --hash --seed 1 --schedules $seeds)
again=$("$sim" "$@" --hash --seed 1 --schedules $seeds)
if [ "$together" != "$again" ]; then
    echo "two runs of the same seeds differ"
    exit 1
fi
alone=$(seed=1; while [ $seed -le $seeds ]; do "$sim" "$@" --hash --seed $seed --schedules 1; seed=$((seed + 1)); done)
if [ "$together" != "$alone" ]; then
    echo "a seed depends on what ran before it"
    exit 1
fi
different=$(echo "$together" | cut -d' ' -f4 | sort -u | wc -l)
if [ "$different" -ne $seeds ]; then
    echo "only $different of $seeds seeds differ"
    exit 1
fi
traced=$(echo "$together" | awk '{ sum += $6 } END { print sum }')
untraced=$("$sim" "$@" --seed 1 --schedules $seeds | sed -n 's/.*schedules, \([0-9]*\) events.*/\1/p')
if [ "$traced" != "$untraced" ]; then
    echo "with a trace there are $traced events, without it $untraced"
    exit 1
fi
echo "OK: $seeds seeds, $traced events"
