#!/usr/bin/env bash
# The examples of docs/fencing.md, unchanged: old tokens, equal ones, newer ones, concurrent
# writers, paused clients.
# shellcheck disable=SC2016,SC2317 # variables of the commands; functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

docs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../docs" && pwd)
examples=$docs/examples
start_nodes 3
start_node # the Redis that keeps data; no node of the lock
data_socket=$work/${ports[3]}/socket

# The examples call `redlock`, without timeouts for loaded machines.
mkdir "$work/bin"
printf '#!/bin/bash\nexec "%s" --node-timeout 5000 --connect-timeout 10s "$@"\n' "$REDLOCK_TOOL" >"$work/bin/redlock"
chmod +x "$work/bin/redlock"
export PATH=$work/bin:$PATH
REDLOCK_NODES=127.0.0.1:${ports[0]},127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}
export REDLOCK_NODES

# The page quotes each of its files exactly. (leader.c belongs to another page.)
page=$(cat "$docs/fencing.md")
quoted=0
for file in "$examples"/*.{sh,sql,lua}; do
    checks=$((checks + 1))
    quoted=$((quoted + 1))
    [[ $page == *"\`\`\`${file##*.}"$'\n'"$(cat "$file")"$'\n'"\`\`\`"* ]] ||
        fail "docs/fencing.md does not quote $file"
    [[ $page == *"](examples/${file##*/})"* ]] || fail "docs/fencing.md does not link $file"
done
is 'the number of quoted files' "$quoted" 7

# The three kinds of data. write_KIND FENCE VALUE returns 0 if accepted, 1 if refused. read_KIND
# prints "VALUE HIGHEST".
write_sql() {
    REDLOCK_FENCE=$1 "$examples/fenced-account.sh" "$work/bank.db" alice "$2"
}
read_sql() {
    sqlite3 -separator ' ' "$work/bank.db" "SELECT balance, fence FROM account WHERE name = 'alice'"
}
write_file() {
    echo "$2" | REDLOCK_FENCE=$1 "$examples/fenced-write.sh" "$work/report"
}
read_file() {
    echo "$(cat "$work/report") $(cat "$work/report.fence")"
}
write_redis() {
    local reply
    reply=$(redis-cli -s "$data_socket" --eval "$examples/fenced-set.lua" report:data report:highest , "$1" "$2")
    case $reply in
    1) return 0 ;;
    0) return 1 ;;
    *) echo "$reply" >&2 && return 2 ;;
    esac
}
read_redis() {
    redis-cli -s "$data_socket" mget report:data report:highest | tr '\n' ' ' | sed 's/ $//'
}
export examples work data_socket
export -f write_sql write_file write_redis

expect 0 sqlite3 "$work/bank.db" ".read $examples/account.sql" \
    "INSERT INTO account (name, balance) VALUES ('alice', 50)"

# One number below and one above those that a double cannot tell from the first.
low=1795167037123456000
for kind in sql file redis; do
    expect 0 write_$kind $((low + 1)) 1
    expect 1 write_$kind "$low" 2
    is "$kind after an old token" "$(read_$kind)" "1 $((low + 1))"
    expect 0 write_$kind $((low + 1)) 3
    is "$kind after the same token" "$(read_$kind)" "3 $((low + 1))"
    expect 1 write_$kind 999999999999999999 4
    expect 0 write_$kind $((low + 2)) 5
    expect 1 write_$kind $((low + 1)) 6
    is "$kind after a newer token" "$(read_$kind)" "5 $((low + 2))"
    for bad in '' x -1 1.5 1e30; do
        expect 2 write_$kind "$bad" 7
    done
    is "$kind after what is no token" "$(read_$kind)" "5 $((low + 2))"
done

# A client that claims the data before it reads keeps older leases out.
expect 0 env REDLOCK_FENCE=$((low + 4)) "$examples/fenced-account.sh" "$work/bank.db" alice
expect 1 write_sql $((low + 3)) 8
is 'sql after a claim' "$(read_sql)" "5 $((low + 4))"
expect 1 env REDLOCK_FENCE=$((low + 3)) "$examples/fenced-account.sh" "$work/bank.db" alice
expect 1 env REDLOCK_FENCE=$((low + 3)) "$examples/fenced-account.sh" "$work/bank.db" nobody 1
is 'the reply to a claim' \
    "$(redis-cli -s "$data_socket" --eval "$examples/fenced-set.lua" report:data report:highest , $((low + 4)))" 1
expect 1 write_redis $((low + 3)) 8
is 'redis after a claim' "$(read_redis)" "5 $((low + 4))"

# A write that cannot be tried is neither accepted nor refused.
expect 2 env REDLOCK_FENCE=$((low + 9)) "$examples/fenced-account.sh" "$work/none.db" alice 1
expect 2 env REDLOCK_FENCE=$((low + 9)) "$examples/fenced-write.sh" "$work/none/report"
echo rubbish >"$work/broken.fence"
expect 2 env REDLOCK_FENCE=$((low + 9)) "$examples/fenced-write.sh" "$work/broken"

# Concurrent writers: the highest token wins, and each writer learns its result.
for kind in sql file redis; do
    writers=()
    for i in $(seq 11 22 | shuf); do
        write_$kind $((low + i)) "$i" &
        writers[i]=$!
    done
    for i in "${!writers[@]}"; do
        wait "${writers[$i]}"
        result=$?
        checks=$((checks + 1))
        ((result == 0 || (result == 1 && i < 22))) || fail "$kind: writer $i ended with $result"
    done
    is "$kind after twelve writers" "$(read_$kind)" "22 $((low + 22))"
done

# A is stopped beyond the end of its lease. B gets the lock and writes. A continues, and its write
# is refused.
stopped() {
    [[ $(cat "/proc/$1/stat") == *') T '* ]]
}
for kind in sql file redis; do
    bash -c 'lock=$(redlock acquire --fence -t 2s "$0") || exit 3
        kill -STOP $$
        "write_$0" "${lock#* }" 100' $kind &
    late=$!
    eventually stopped $late
    expect 0 redlock run --fence -w 1m $kind -- bash -c '"write_$0" "$REDLOCK_FENCE" 200' $kind
    before=$(read_$kind)
    is "$kind as B left it" "${before% *}" 200
    kill -CONT $late
    wait $late
    is "$kind: the result of the late write" $? 1
    is "$kind after the late write" "$(read_$kind)" "$before"
done

# The output is exactly what the page shows.
rm -f "$work/report"*
expect 0 "$examples/late-writer.sh" "$work/report"
shown=$(sed -n '/^\$ docs\/examples\/late-writer.sh/,/^```/{/^[$`]/!p}' "$docs/fencing.md")
is 'the output of late-writer.sh' "$(cat "$out")" "$shown"
finish
