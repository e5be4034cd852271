#!/bin/sh
# late-writer.sh FILE: client A is paused beyond the end of its lease, and writes after B has
# written. Needs REDLOCK_NODES.
file=$1
here=$(dirname "$0")

(
    lock=$(redlock acquire --fence -t 2s report) || exit
    sh -c 'kill -STOP "$PPID"' # any pause: swapping, a debugger, a virtual machine that is moved
    echo "from A, late" | REDLOCK_FENCE=${lock#* } "$here/fenced-write.sh" "$file"
    echo "A: fenced-write.sh ended with $?"
) &
until grep -q '^State:.[TZ]' "/proc/$!/status"; do sleep 0.1; done # stopped, or at its end

echo "from B" | redlock run --fence -w 30s report -- "$here/fenced-write.sh" "$file"
echo "B: fenced-write.sh ended with $?"

kill -CONT $!
wait
cat "$file"
