#!/usr/bin/env bash
# The commands of docs/operations.md that change a password, on three nodes, while a lock is held.
set -euo pipefail

command -v redis-server >/dev/null || { echo "skipped: no redis-server"; exit 77; }
command -v redis-cli >/dev/null || { echo "skipped: no redis-cli"; exit 77; }
tool=$1 document=$2
work=$(mktemp -d)
holder='' servers=()
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cleanup() {
    kill -KILL ${holder:+"$holder"} "${servers[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
fail() {
    echo "$*"
    exit 1
}

# The two blocks of commands; they are indented as parts of a list.
block() {
    awk -v wanted="$1" '/^ *```sh rotation$/ { on = ++count == wanted; next } /^ *```/ { on = 0 } on' "$document" |
        sed 's/^ *//'
}
add=$(block 1) remove=$(block 2)
[[ $add == *SETUSER* && $remove == *SETUSER* && -z $(block 3) ]] || fail "not two blocks of commands in $document"

nodes=()
for n in 1 2 3; do
    mkdir -p "$work/node$n"
    : >"$work/node$n/users.acl"
    for ((try = 0; try < 50; try++)); do
        port=$((20000 + RANDOM % 12000))
        ! redlock_start_server "$port" "$work/node$n" --aclfile "$work/node$n/users.acl" || break
    done
    servers+=("$started")
    nodes+=("redis://127.0.0.1:$port")
    version=$(redis-cli -u "${nodes[-1]}" info server | tr -d '\r' | sed -n 's/^redis_version://p')
    ((${version%%.*} >= 6)) || { echo "skipped: redis $version has no ACL"; exit 77; }
    redis-cli -u "${nodes[-1]}" ACL SETUSER locker on '>secret' '~*' '&*' +@all >/dev/null
done
with_password() {
    local list='' uri
    for uri in "${nodes[@]}"; do
        list+=,redis://locker:$1@${uri#redis://}
    done
    echo "${list#,}"
}
redlock() {
    "$tool" --node-timeout 10s "$@"
}
# every COMMANDS : on each node, with NODE, and with the tool as `redlock`.
every() {
    for NODE in "${nodes[@]}"; do
        eval "$1" >"$work/said" || fail "failed on $NODE: $1"$'\n'"$(cat "$work/said")"
        ! grep -E '^(ERR|WRONGPASS|NOAUTH|NOPERM)' "$work/said" || fail "refused on $NODE: $1"
    done
}

REDLOCK_NODES=$(with_password secret)
export REDLOCK_NODES
# Holds the lock from before to after, and renews it.
mkfifo "$work/go"
redlock run -t 2s job -- sh -c "echo held >'$work/held'; read -r line <'$work/go'; exit 7" &
holder=$!
for ((looks = 0; looks < 600; looks++)); do
    [[ ! -e $work/held ]] || break
    sleep 0.1
done
[[ -e $work/held ]] || fail "the lock was not acquired"
every "$add"
REDLOCK_NODES=$(with_password new-secret)
redlock run between -- true || fail "the new password is not accepted"
every "$remove"
[[ $(redlock status | grep -c READY) == 3 ]] || fail "not all nodes are READY: $(redlock status)"
# Nobody gets in with the old one; the holder still holds.
status=0
REDLOCK_NODES=$(with_password secret) redlock acquire other >"$work/out" 2>&1 || status=$?
[[ $status == 69 ]] || fail "the old password is still good: $(cat "$work/out")"
grep -q WRONGPASS "$work/out" || fail "the error does not say WRONGPASS: $(cat "$work/out")"
status=0
redlock acquire job >"$work/out" 2>&1 || status=$?
[[ $status == 75 ]] || fail "the lock was lost: $(cat "$work/out")"
echo go >"$work/go"
status=0
wait "$holder" || status=$?
holder=''
[[ $status == 7 ]] || fail "run ended with $status"
# Users that are in redis.conf survive by CONFIG REWRITE.
conf=$work/redis.conf
printf 'port 0\nunixsocket %s/socket\nsave ""\n' "$work" >"$conf"
redis-server "$conf" >"$work/log" 2>&1 &
servers+=($!)
disown
for ((looks = 0; looks < 600; looks++)); do
    [[ $(redis-cli -s "$work/socket" ping 2>&1) != PONG ]] || break
    sleep 0.05
done
redis-cli -s "$work/socket" ACL SETUSER locker on '>new-secret' >/dev/null
[[ $(redis-cli -s "$work/socket" CONFIG REWRITE) == OK ]] || fail "CONFIG REWRITE failed"
grep -q '^user locker ' "$conf" || fail "CONFIG REWRITE has not saved the user"
# The users survive a restart of the node.
for n in 1 2 3; do
    grep -q '^user locker ' "$work/node$n/users.acl" || fail "ACL SAVE has not saved the user"
done
