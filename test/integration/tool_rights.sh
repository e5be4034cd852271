#!/usr/bin/env bash
# What a node lets us do, and which server it is, is proven before it grants a lock.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

# rights RULE… : the only user of the node has these rights from now on.
rights() {
    redis 0 acl setuser user reset on '>secret' "$@" >/dev/null
}

# as_user ARGUMENTS… : the tool on the first node, as that user.
as_user() {
    "$REDLOCK_TOOL" -n "redis://user:secret@127.0.0.1:${ports[0]}" --node-timeout 5000 --connect-timeout 10s "$@"
}

# Nothing is granted there, and all say why: the words of $1.
grants_nothing() {
    expect 69 as_user status
    says "$out" " UNUSABLE .*$1"
    says "$out" '^0 of 1 nodes ready; a quorum is 1: locks cannot be taken'
    expect 69 as_user run lock:a -- touch "$work/ran"
    says "$err" "^redlock: cannot acquire 'lock:a': no quorum: .*$1"
    is 'the command ran' "$([[ -e $work/ran ]] && echo yes)" ''
    is 'keys of the refused lock' "$(keys_left lock:a)" 0
}

start_node
all=(-@all +set +get +del +pexpire +pttl +type +eval +evalsha +'script|load' +ping +info +select +time
    +'client|setname' +'client|id' +'client|kill' +exists +zadd +zpopmin +zrem +zrank +zcard +zrange +zscore
    +zremrangebyscore +hset +hget +hdel +publish +subscribe)

# A user may have all keys, or only those of its locks.
for keys in allkeys '~lock:*' '~lock:* ~redlock:*'; do
    read -ra patterns <<<"$keys"
    rights resetkeys "${patterns[@]}" allchannels "${all[@]}"
    expect_no_err 0 as_user run lock:a -- true
    for command in get set pttl pexpire del evalsha; do
        rights resetkeys "${patterns[@]}" allchannels "${all[@]}" "-$command"
        grants_nothing "this user may not run ${command^^}, so no lease could be renewed and released here.*\\+$command"
    done
    # EVAL is needed only where SCRIPT LOAD is refused, and the other way round.
    rights resetkeys "${patterns[@]}" allchannels "${all[@]}" -eval
    expect_no_err 0 as_user run lock:a -- true
    redis 0 script flush >/dev/null
    rights resetkeys "${patterns[@]}" allchannels "${all[@]}" -script
    expect 0 as_user -q run lock:a -- true
    rights resetkeys "${patterns[@]}" allchannels "${all[@]}" -eval -script
    grants_nothing 'this user may not run EVAL and SCRIPT LOAD'
done

# With the ACL of operations.md the server logs nothing, and counts no refusal.
redis 0 acl log reset >/dev/null
redis 0 config resetstat >/dev/null
rights resetkeys '~lock:*' '~redlock:*' resetchannels '&redlock:*' "${all[@]}"
expect 0 as_user run lock:a -- true
is 'what the ACL log has' "$(redis 0 acl log)" ''
is 'refused commands' "$(redis 0 info commandstats | grep -c 'rejected_calls=[1-9]')" 0
is 'keys of the probe' "$(redis 0 keys '*')" ''

# The operator mends the ACL while a job waits.
rights allkeys allchannels "${all[@]}" -pexpire
forget_words
as_user -v run -w 1m lock:a -- touch "$work/healed" >"$out" 2>"$err" &
waiter=$!
eventually grep -q 'may not run PEXPIRE' "$err"
is 'the command ran' "$([[ -e $work/healed ]] && echo yes)" ''
rights allkeys allchannels "${all[@]}"
eventually test -e "$work/healed"
wait $waiter
is 'its status' $? 0

# What only waiters need is no warning to a job that does not wait. The node says what is missing.
rights allkeys allchannels "${all[@]}" -zpopmin -publish
expect_no_err 0 as_user run lock:a -- true
expect 0 as_user status
says "$out" ' READY .* no queue: waiting in order needs \+zpopmin \+publish &redlock:\*$'
says "$out" ': locks can be taken; too few nodes keep queues: who waits tries again after random delays$'

# Nor is what only those need who read with others.
rights allkeys allchannels "${all[@]}" -zscore -zremrangebyscore
expect_no_err 0 as_user run -w 1s lock:a -- true
expect 0 as_user status
says "$out" ' READY .* no shared locks: reading with others needs \+zscore \+zremrangebyscore$'
says "$out" ': locks can be taken$'
expect 0 as_user --json status
json '.nodes[0].shared_error == "reading with others needs +zscore +zremrangebyscore"'
rights allkeys allchannels "${all[@]}"
expect 0 as_user --json status
json '.nodes[0].shared_error == ""'

# Commands that the server's configuration took away.
redis 0 config resetstat >/dev/null
for command in EVALSHA PEXPIRE DEL; do
    kill_node 0
    ports=() pids=() nodes=
    start_node --rename-command "$command" ''
    rights allkeys allchannels +@all
    grants_nothing "the server does not know $command, so no lease could be renewed and released here"
done
kill_node 0

# Without INFO: a replica is told by HELLO; one server has one vote, whatever its names.
ports=() pids=() nodes=
start_nodes 2
port=${ports[0]}
redis 0 acl setuser default -info >/dev/null
redis 1 acl setuser default -info >/dev/null
expect 0 tool run -t 1m resource -- true
says "$err" '^redlock: warning: node .*: INFO refused \(NOPERM.*\): cannot see whether it may evict locks$'
expect 0 tool status
says "$out" "^127.0.0.1:$port +READY +redis [0-9.]+ +master "
# A job whose servers are known leaves that out of its mail, but no error.
for option in --no-warn=settings --no-warn=all; do
    expect_no_err 0 tool "$option" run resource -- true
    expect 69 "$REDLOCK_TOOL" -n "127.0.0.1:$port,127.0.0.1:1" "$option" run resource -- true
    says "$err" "^redlock: cannot acquire 'resource': no quorum: "
done
REDLOCK_NO_WARN=settings expect 0 tool run resource -- true
says_nothing "$err"
expect 0 tool --no-warn none --json run resource -- true
says "$err" '"warning":"NODE_SETTINGS"'
expect 64 tool --no-warn errors status
says "$err" "no-warn 'errors': it must be settings, all or none"
for way in '' '-w 2s' '-E 0'; do
    # shellcheck disable=SC2086 # two words
    expect 69 "$REDLOCK_TOOL" -n "127.0.0.1:$port,localhost:$port,127.0.0.1:${ports[1]}" --quorum 3 \
        --node-timeout 5000 run $way resource -- touch "$work/ran"
    says "$err" "the same server as 127.0.0.1:$port"
done
is 'the command ran' "$([[ -e $work/ran ]] && echo yes)" ''
expect 69 "$REDLOCK_TOOL" -n "127.0.0.1:$port,localhost:$port,127.0.0.1:${ports[1]}" --quorum 3 status
says "$out" 'the same server'
is 'it has more than one vote' "$(($(grep -cE "^(127.0.0.1|localhost):$port +READY" "$out") > 1))" 0
# So has one server with two databases.
expect 69 "$REDLOCK_TOOL" -n "redis://127.0.0.1:$port/0,redis://localhost:$port/1" run resource -- touch "$work/ran"
says "$err" "the same server as 127.0.0.1:$port"
# A marker of another program is none of ours; each ends by itself.
expect 0 tool run resource -- true
ttl=$(redis 0 pttl "$(redis 0 keys 'redlock:server:*' | head -n 1)")
is 'the marker ends' "$((ttl > 0 && ttl <= 600000))" 1
# Where the marker is forbidden, a warning names its key.
redis 0 acl setuser user reset on '>secret' '~lock:*' allchannels "${all[@]}" -info >/dev/null
expect 0 "$REDLOCK_TOOL" -n "redis://user:secret@127.0.0.1:$port,127.0.0.1:${ports[1]}" --node-timeout 5000 \
    run lock:a -- true
says "$err" 'cannot see whether it is the same server as another, .*the key redlock:server:[0-9a-f]* would show it'
# There, a token that comes back from a node that has not got it tells it at the first lock.
for way in '' '-E 0'; do
    # shellcheck disable=SC2086 # two words
    expect 69 "$REDLOCK_TOOL" -n "redis://user:secret@127.0.0.1:$port,redis://user:secret@localhost:$port" \
        --node-timeout 5000 --no-warn settings run $way lock:a -- touch "$work/ran"
    says "$err" 'it had our own token before it was asked: it is the same server as another node'
    never_says "$err" warning
done
is 'the command ran' "$([[ -e $work/ran ]] && echo yes)" ''
redis 1 replicaof 127.0.0.1 "$port" >/dev/null
expect 69 tool --quorum 2 status
says "$out" "^127.0.0.1:${ports[1]} +UNUSABLE .*the node is a replica"
# Nor HELLO and ROLE: a write tells it.
kill_node 0 1
ports=() pids=() nodes=
start_node --rename-command INFO '' --rename-command HELLO '' --rename-command ROLE ''
redis 0 replicaof 127.0.0.1 "$port" >/dev/null
expect 69 tool status
says "$out" "^127.0.0.1:${ports[0]} +UNUSABLE .*the node takes no writes \(READONLY\), as a replica"
kill_node 0

finish
