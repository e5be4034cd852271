#!/usr/bin/env bash
# The example docs/examples/threads.c compiles, and does what docs/operations.md says: its threads
# work one at a time, take a new password while they work, and stop at SIGTERM.
set -euo pipefail

command -v redis-cli >/dev/null || { echo "skipped: no redis-cli"; exit 77; }
# shellcheck source-path=SCRIPTDIR source=example_lib.sh
source "$(dirname "$0")/example_lib.sh"
daemons=()

compile_example threads -pthread
start_nodes
version=$(redis-cli -u "redis://${nodes[0]}" info server | tr -d '\r' | sed -n 's/^redis_version://p')
((${version%%.*} >= 6)) || { echo "skipped: redis $version has no ACL"; exit 77; }

# acl WORD… : a rule for the user, on all nodes.
acl() {
    local node
    for node in "${nodes[@]}"; do
        [[ $(redis-cli -u "redis://$node" ACL SETUSER locker "$@") == OK ]] || { echo "refused: $*"; exit 1; }
    done
}
# eventually COUNT TEXT : the first daemon says this so often, within 30 s.
eventually() {
    local deadline=$((SECONDS + 30))
    until (($(grep -c "$2" "$work/1") >= $1)); do
        ((SECONDS <= deadline)) || { echo "the daemon never said so often: $2"; cat "$work/1"; exit 1; }
        sleep 0.02
    done
}

# A file without a password is no password.
echo >"$work/password"
if said=$("$work/threads" "$work/password" locker "${nodes[@]}" 2>&1); then echo "it takes an empty file"; exit 1; fi
[[ $said == *"/password: no password in it"* ]] || { echo "$said"; exit 1; }

acl reset on '~*' '&*' +@all '>first@:/%'
echo 'first@:/%' >"$work/password"
for n in 1 2; do
    "$work/threads" "$work/password" locker "${nodes[@]}" >"$work/$n" 2>&1 &
    pids+=($!)
    daemons+=($!)
done
eventually 1 '^3 of 3 nodes have accepted'
eventually 5 '^did job'
# A wrong one leaves the old one in use.
echo wrong >"$work/password"
kill -HUP "${daemons[0]}"
eventually 3 'WRONGPASS'
eventually 1 '^0 of 3 nodes have accepted'
done_before=$(grep -c '^did job' "$work/1")
eventually $((done_before + 3)) '^did job'
acl '>second'
echo second >"$work/password"
kill -HUP "${daemons[@]}"
eventually 2 '^3 of 3 nodes have accepted'
acl '<first@:/%'
# The next connections use the new one.
for node in "${nodes[@]}"; do
    redis-cli -u "redis://$node" CLIENT KILL USER locker >/dev/null
done
done_before=$(grep -c '^did job' "$work/1")
eventually $((done_before + 5)) '^did job'
kill -TERM "${daemons[@]}"
for pid in "${daemons[@]}"; do
    wait "$pid" || { echo "a daemon ended with $?"; cat "$work/1" "$work/2"; exit 1; }
done
grep -q '^stopped' "$work/1" || { echo "the daemon did not say that it stopped"; cat "$work/1"; exit 1; }
for node in "${nodes[@]}"; do
    # Nothing is held, and nobody waits; a key that marks the queue as left may still end.
    [[ $(redis-cli -u "redis://$node" EXISTS job) == 0 ]] || { echo "$node: the lock is still held"; exit 1; }
done
