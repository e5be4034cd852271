#!/usr/bin/env bash
# The file of the nodes changes while the tool runs: a password is added, rolled out and removed,
# and no lock is lost; what else changes is ignored, and told once; nothing shows a secret.
# shellcheck disable=SC2317 # functions called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
unset REDLOCK_NODES
file=$work/nodes
from_file=(--nodes-file "$file" --node-timeout 5s --connect-timeout 10s)
if ! redis 0 acl whoami >/dev/null 2>&1 || [[ $(redis 0 acl whoami) != default ]]; then
    echo 'skipped: this redis has no ACL'
    exit 77
fi

on_each() {
    local i
    for i in 0 1 2; do
        redis $i "$@" >>"$work/said"
    done
}

# write PASSWORD [LINE…] : replaces the file, with more lines behind the nodes.
write() {
    local port
    {
        echo '# the fleet'
        for port in "${ports[@]}"; do
            echo "redis://locker:$1@127.0.0.1:$port"
        done
        (($# < 2)) || printf '%s\n' "${@:2}"
    } >"$file.new"
    chmod 600 "$file.new"
    mv "$file.new" "$file"
}

# background ARGUMENTS… : the tool, with its output in out and err.
background() {
    forget_words
    "$REDLOCK_TOOL" "${from_file[@]}" "$@" >"$out" 2>"$err" </dev/null &
    tool_pid=$!
}

said() {
    (($(grep -Ec -- "$2" "$err") >= $1))
}

# renewed INDEX : the key lives for longer than at some earlier look; so a renewal has come.
renewed() {
    local now
    now=$(redis "$1" pttl job)
    ((now > ${lived[$1]:-1000000})) && return 0
    lived[$1]=$now
    return 1
}

clients_of_locker() {
    redis "$1" client list | grep -c 'user=locker'
}

# log_out : closes the tool's connections; those that come back have logged in again.
log_out() {
    on_each client kill user locker
}

on_each acl setuser locker on '>old%secret' '~*' '&*' +@all
write 'old%25secret'
mkfifo "$work/go"
background run -t 10s job -- sh -c "echo held >'$work/held'; read -r line <'$work/go'; exit 7"
eventually test -e "$work/held"
token=$(redis 0 get job)

# Rolled out before the nodes know it: each refuses it, and nothing is lost.
write 'new%3asecret'
eventually said 3 \
    'warning: node .* refuses its user and password in .*/nodes: AUTH failed: WRONGPASS.*; it goes on with the old ones'
# Now they know it.
on_each acl setuser locker '>new:secret'
touch "$file"
eventually said 1 '^redlock: all nodes have accepted the users and passwords in .*/nodes$'
on_each acl setuser locker '<old%secret'
log_out
lived=()
for i in 0 1 2; do
    eventually renewed $i
    is "the holder on node $i" "$(redis $i get job)" "$token"
    is "connections of node $i" "$(clients_of_locker $i)" 1
done
is 'what was said of a loss' "$(grep -Ec 'lost|renewal|UNUSABLE' "$err")" 0

# A file that cannot be used changes nothing. The same again is not told again.
write 'new%3asecret' '127.0.0.1:1;127.0.0.1:2'
eventually said 1 "cannot be used: line 5 of .*/nodes has a ';' inside.*; the old users and passwords stay in use"
rm "$file"
eventually said 1 'cannot be used: cannot read the nodes from .*/nodes: No such file'
write 'new%3asecret' 'redis://locker:hunter2@127.0.0.1:1'
eventually said 1 'line 5 is none of the nodes that are in use; only users and passwords may change while redlock runs'
write 'new%zzsecret'
eventually said 1 "line 2: a '%' in its password needs two hexadecimal digits"
# With other nodes in it, passwords count all the same. In another order they are the same nodes.
on_each acl setuser other on '>third' '~*' '&*' +@all
{
    echo "redis://other:third@127.0.0.1:${ports[2]}"
    echo "redis://other:third@127.0.0.1:${ports[0]}"
} >"$file"
eventually said 1 "does not have node 127.0.0.1:${ports[1]} any more; only users"
eventually said 2 '^redlock: all nodes have accepted'
echo "redis://other:third@127.0.0.1:${ports[1]}" >>"$file"
eventually said 3 '^redlock: all nodes have accepted'
on_each acl deluser locker
lived=()
for i in 0 1 2; do
    eventually renewed $i
    is "the holder on node $i" "$(redis $i get job)" "$token"
done
echo go >"$work/go"
wait "$tool_pid"
is 'the exit status' $? 7
is 'the number of lines' "$(wc -l <"$err")" 11
for secret in secret hunter2 third; do
    never_says "$err" $secret
    never_says "$out" $secret
done

# A candidate that waits for its turn; an observer; a watch.
reloads() {
    "$REDLOCK_TOOL" "${from_file[@]}" "$@"
}
sed -i 's/^#.*//' "$file"
rm "$work/held"
expect 0 reloads acquire -t 1h leader
rival=$(cat "$out")
background --json elect leader -- sh -c "echo led >'$work/held'; read -r line <'$work/go'"
candidate=$tool_pid
# Not by a function: that would be a subshell, and the signals at the end would not reach the tool.
"$REDLOCK_TOOL" "${from_file[@]}" --json elect --observe leader >"$work/observed" 2>"$work/observer" &
"$REDLOCK_TOOL" "${from_file[@]}" --json status --watch=100ms leader >"$work/watched" 2>"$work/watch" &
watch=$!
eventually grep -q token "$work/observed"
eventually grep -q '"state":"READY"' "$work/watched"
on_each acl setuser other '>fourth'
sed -i 's/:third@/:fourth@/' "$file"
eventually said 1 '^[{]"credentials":"ACCEPTED","nodes_file":".*/nodes"[}]$'
eventually grep -q ACCEPTED "$work/observer"
on_each acl setuser other '<third'
on_each client kill user other
expect 0 reloads release leader "$rival"
eventually test -e "$work/held"
eventually gives 2 grep -c holder "$work/observed"
echo go >"$work/go"
wait "$candidate"
is 'the exit status of the candidate' $? 0
: >"$work/watched"
eventually grep -q '"ready":3' "$work/watched"
kill "$watch"
wait "$watch"
is 'the exit status of the watch' $? 143
never_says "$work/watched" WRONGPASS
says_nothing "$work/watch"

# Whoever opens the file hangs, as on a file system that is away: the lock is renewed, and the tool
# ends. The third renewal comes long after two looks.
rm "$work/held"
background run -t 9s job -- sh -c "echo held >'$work/held'; read -r line <'$work/go'; exit 7"
eventually test -e "$work/held"
mkfifo "$file.new"
cp "$file" "$work/kept"
mv "$file.new" "$file"
for _ in 1 2 3; do
    lived=()
    eventually renewed 0
done
echo go >"$work/go"
wait "$tool_pid"
is 'the exit status' $? 7
says_nothing "$err"
mv "$work/kept" "$file"

# A file that cannot change is not looked at: a pipe.
expect 0 "$REDLOCK_TOOL" --nodes-file <(cat "$file") --connect-timeout 10s --node-timeout 5s run piped -- true
finish
