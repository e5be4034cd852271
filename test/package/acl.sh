#!/usr/bin/env bash
# The ACL of docs/operations.md is enough for all that the tool does, and allows nothing else.
set -euo pipefail

command -v redis-server >/dev/null || { echo "skipped: no redis-server"; exit 77; }
command -v redis-cli >/dev/null || { echo "skipped: no redis-cli"; exit 77; }
tool=$1 document=$2
work=$(mktemp -d)
started=
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cleanup() {
    [[ -z $started ]] || kill -KILL "$started" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

rule=$(awk '/^```acl$/ { on = 1; next } /^```/ { on = 0 } on' "$document")
[[ $rule == 'ACL SETUSER locker '* && $(wc -l <<<"$rule") == 1 ]] || { echo "no single ACL rule in $document"; exit 1; }

socket=$work/node/socket
admin() {
    redis-cli -s "$socket" "$@"
}
for ((try = 0; try < 50; try++)); do
    port=$((20000 + RANDOM % 12000))
    ! redlock_start_server "$port" "$work/node" || break
done
[[ $(admin ping) == PONG ]] || { cat "$work/node/log"; exit 1; }
version=$(admin info server | tr -d '\r' | sed -n 's/^redis_version://p')
((${version%%.*} >= 6)) || { echo "skipped: redis $version has no ACL"; exit 77; }
read -ra words <<<"$rule"
[[ $(admin "${words[@]}") == OK ]] || { echo "refused: $rule"; exit 1; }
operator=$(awk '/^```acl-operator$/ { on = 1; next } /^```/ { on = 0 } on' "$document")
read -ra words <<<"$operator"
[[ $operator == 'ACL SETUSER operator '* && $(admin "${words[@]}") == OK ]] || { echo "refused: $operator"; exit 1; }
admin acl setuser default off >/dev/null 2>&1 || true

locker() {
    redis-cli -s "$socket" --no-auth-warning --user locker --pass secret "$@"
}
[[ $(locker ping) == PONG ]] || { echo "the user cannot log in"; exit 1; }
for forbidden in "get other" "set other 1" "zadd other 1 x" "publish other x" "flushall" "keys *" \
    "config get maxmemory" "acl list" "shutdown nosave"; do
    read -ra words <<<"$forbidden"
    [[ $(locker "${words[@]}" 2>&1) == *NOPERM* ]] || { echo "the user may: $forbidden"; exit 1; }
done

# Times are long: a loaded machine must not make this test fail.
export REDLOCK_NODES=redis://locker:secret@127.0.0.1:$port
lock() {
    echo "+ redlock --node-timeout 10s $*" >&2
    "$tool" --node-timeout 10s "$@"
}
as_operator() {
    REDLOCK_NODES=redis://operator:secret@127.0.0.1:$port "$tool" --node-timeout 10s "$@"
}
lock status >"$work/status" || { cat "$work/status"; exit 1; }
token=$(lock acquire -t 10m lock:acl)
lock extend -t 10m lock:acl "$token"
lock status lock:acl >"$work/status" || { cat "$work/status"; exit 1; }
lock release lock:acl "$token"
guarded=(--restart-guard=strict --first-boot --clock-guard --ttl-max 10m)
token=$(lock "${guarded[@]}" acquire --fence -t 10m lock:acl)
lock "${guarded[@]}" extend -t 10m lock:acl "${token% *}"
lock "${guarded[@]}" release lock:acl "${token% *}"
[[ -z $(locker get lock:acl) ]] || { echo "the key is still there"; exit 1; }
# Without its scripts the node must get them again (R11): by EVAL, or by SCRIPT LOAD.
token=$(lock acquire -t 10m lock:acl)
lock release lock:acl "$token"
lock run -t 10m lock:acl -- true
# A place in the queue, and who waits there.
token=$(lock acquire -t 10m lock:acl)
lock -v acquire -w 30s lock:acl >"$work/waiter" 2>"$work/words" &
waiter=$!
for ((looks = 0; looks < 600; looks++)); do
    lock status lock:acl >"$work/status" 2>/dev/null
    ! grep -q '; 1 waits, for ' "$work/status" || break
done
grep -q '; 1 waits, for ' "$work/status" || { echo "nobody waits:"; cat "$work/status" "$work/words"; exit 1; }
lock release lock:acl "$token"
wait "$waiter" || { cat "$work/words" "$work/status"; exit 1; }
! grep -E 'cannot keep|NOPERM' "$work/words" "$work/status" || exit 1
lock release lock:acl "$(<"$work/waiter")"
# Those who read, one who wrote before, and one who waits behind them.
first=$(lock acquire -t 10m --shared lock:acl)
second=$(lock acquire -t 10m --shared --fence lock:acl)
lock extend -t 10m lock:acl "$first"
lock release lock:acl "${second% *}"
lock release lock:acl "$first"
first=$(lock acquire -t 10m lock:acl)
lock downgrade -t 10m lock:acl "$first"
lock -v acquire -t 10m -w 30s lock:acl >"$work/waiter" 2>"$work/words" &
waiter=$!
for ((looks = 0; looks < 600; looks++)); do
    as_operator status lock:acl >"$work/status" 2>/dev/null
    ! grep -q '^lock:acl: read by .*; 1 waits, for ' "$work/status" || break
done
grep -q '^lock:acl: read by .*; 1 waits, for ' "$work/status" || { cat "$work/status" "$work/words"; exit 1; }
lock release lock:acl "$first"
wait "$waiter" || { cat "$work/words" "$work/status"; exit 1; }
lock release lock:acl "$(<"$work/waiter")"
lock acquire -t 10m --shared lock:acl
as_operator clear --yes lock:acl >"$work/status" 2>&1 || { cat "$work/status"; exit 1; }
[[ $(locker exists lock:acl) == 0 ]] || { echo "the key is still there after clear"; exit 1; }
[[ $(as_operator status) != *'no shared locks'* ]] || { echo "the operator lacks rights of shared locks"; exit 1; }
# The operator lists and clears; the user that only locks cannot list, and is told so.
token=$(lock acquire -t 10m --holder me lock:acl)
as_operator status --all >"$work/status" || { cat "$work/status"; exit 1; }
grep -Eq '^lock:acl +held +1/1 .* me$' "$work/status" || { echo "it is not listed:"; cat "$work/status"; exit 1; }
[[ $(as_operator --json status --all) != *'"listed":false'* ]] || { echo "the operator cannot list"; exit 1; }
[[ $(lock --json status --all 2>&1) == *'"listed":false,"list_error":"'*SCAN* ]] ||
    { echo "the locker may list"; exit 1; }
as_operator clear --yes lock:acl >"$work/status" 2>&1 || { cat "$work/status"; exit 1; }
[[ -z $(locker get lock:acl) ]] || { echo "the key is still there after clear"; exit 1; }
# Nothing that the library sent was refused.
refused=$(redis-cli -s "$socket" --no-auth-warning --user locker --pass secret info commandstats | tr -d '\r' |
    grep -E 'rejected_calls=[1-9]' |
    grep -vE '^cmdstat_(get|set|zadd|publish|flushall|keys|config|acl|shutdown|scan)' || true)
[[ -z $refused ]] || { echo "the ACL refused:"; echo "$refused"; exit 1; }
if lock acquire -t 10m other >"$work/out" 2>&1; then
    echo "the user locked a resource that it may not touch"
    exit 1
fi
grep -q NOPERM "$work/out" || { echo "the error does not say NOPERM:"; cat "$work/out"; exit 1; }
