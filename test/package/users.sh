#!/usr/bin/env bash
# The users of docs/operations.md survive a restart of their node, in an aclfile and in redis.conf.
# As a control, a change that is not saved is lost.
set -euo pipefail

command -v redis-server >/dev/null || { echo "skipped: no redis-server"; exit 77; }
command -v redis-cli >/dev/null || { echo "skipped: no redis-cli"; exit 77; }
tool=$1 document=$2
work=$(mktemp -d)
server=
cleanup() {
    [[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
fail() {
    echo "$*"
    exit 1
}

block() {
    awk -v wanted="\`\`\`$1" '$0 == wanted { on = 1; next } /^```/ { on = 0 } on' "$document"
}
users=$(block acl-users) setting=$(block 'conf users')
[[ $users == *$'\nuser locker '* && $setting == 'aclfile /etc/redis/users.acl' ]] || fail "no users in $document"
[[ $(sed -n 's/^user locker /ACL SETUSER locker /p' <<<"$users") == "$(block acl)" ]] ||
    fail "two different rules for locker in $document"

admin() {
    redis-cli -s "$folder/socket" --no-auth-warning --user admin --pass admin-secret "$@"
}
# start : the server of redis.conf in the folder. Fails if it ends.
start() {
    redis-server "$folder/redis.conf" >"$folder/log" 2>&1 &
    server=$!
    local deadline=$((SECONDS + 30))
    while kill -0 "$server" 2>/dev/null && ((SECONDS <= deadline)); do
        [[ $(admin ping 2>&1) != PONG ]] || return 0
        sleep 0.02
    done
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" || true
    return 1
}
restart() {
    kill -TERM "$server"
    wait "$server" || fail "the server ended with $?"
    start || fail "no restart: $(cat "$folder/log")"
}
# lock PASSWORD : locks as the user, and ends with the tool's status. Times are long, for a loaded
# machine.
lock() {
    REDLOCK_NODES=redis://locker:$1@127.0.0.1:$port "$tool" --node-timeout 10s --connect-timeout 10s \
        run lock:users -- true >"$work/said" 2>&1
}
# refused PASSWORD
refused() {
    local status=0
    lock "$1" || status=$?
    [[ $status == 69 && $(<"$work/said") == *WRONGPASS* ]] || fail "$1 is not refused: $(cat "$work/said")"
}

version=$(redis-server --version | sed -E 's/.* v=([0-9]+).*/\1/')
((version >= 6)) || { echo "skipped: redis $version has no ACL"; exit 77; }
for way in aclfile redis.conf; do
    folder=$work/$way
    mkdir "$folder"
    for ((try = 0; ; try++)); do
        ((try < 50)) || fail "no server starts: $(cat "$folder/log")"
        port=$((20000 + RANDOM % 12000))
        printf '%s\n' "port $port" 'bind 127.0.0.1' "dir $folder" "unixsocket $folder/socket" 'save ""' \
            >"$folder/redis.conf"
        if [[ $way == aclfile ]]; then
            echo "$users" >"$folder/users.acl"
            echo "${setting/\/etc\/redis/$folder}" >>"$folder/redis.conf"
            save=(ACL SAVE)
        else
            echo "$users" >>"$folder/redis.conf"
            save=(CONFIG REWRITE)
        fi
        ! start || break
    done
    lock secret || fail "$way: the user cannot lock: $(cat "$work/said")"
    [[ $(redis-cli -s "$folder/socket" ping 2>&1) == *NOAUTH* ]] || fail "$way: all may come in without a password"
    # Not saved: lost.
    [[ $(admin ACL SETUSER locker '>unsaved') == OK ]] || fail "$way: no new password"
    lock unsaved || fail "$way: a new password is refused: $(cat "$work/said")"
    restart
    refused unsaved
    lock secret || fail "$way: the user is gone: $(cat "$work/said")"
    # Saved: there.
    [[ $(admin ACL SETUSER locker '>saved' '<secret') == OK && $(admin "${save[@]}") == OK ]] ||
        fail "$way: the user cannot be saved"
    ! grep -rE '>?(admin-)?secret' "$folder"/redis.conf "$folder"/*.acl 2>/dev/null || fail "$way: a password in clear"
    restart
    lock saved || fail "$way: a saved user is gone: $(cat "$work/said")"
    refused secret
    kill -KILL "$server"
    wait "$server" 2>/dev/null || true
done
# Both at once.
echo "${setting/\/etc\/redis/$work/aclfile}" >>"$folder/redis.conf"
! start || fail "a server starts with users in redis.conf and with an aclfile"
grep -q 'ACL file' "$folder/log" || fail "it refused for another reason: $(cat "$folder/log")"
echo "users survive a restart in both ways"
