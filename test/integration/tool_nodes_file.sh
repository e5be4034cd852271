#!/usr/bin/env bash
# --nodes-file and REDLOCK_NODES_FILE: one URI a line, comments; who may read and write it; no error
# shows what a line holds.
# shellcheck disable=SC2016 # programs, and the marks of code
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
t=$REDLOCK_TOOL
file=$work/nodes
unset REDLOCK_NODES
wait=(--node-timeout 5s --connect-timeout 10s)

# write TEXT [MODE] : the file.
write() {
    printf '%b' "$1" >"$file"
    chmod "${2:-600}" "$file"
}

# bad PATTERN : refused with one line, which has no secret.
bad() {
    expect_no_out 64 "$t" --nodes-file "$file" status
    says "$err" "^redlock: .*$1"
    is 'the number of lines' "$(wc -l <"$err")" 1
    never_says "$err" hunter2
}

redis_on '0 1 2' config set requirepass hunter2
uri=redis://:hunter2@127.0.0.1
write "# the nodes of the fleet\n\n  $uri:${ports[0]}  \n$uri:${ports[1]}\r\n\t# one more, at the end\n$uri:${ports[2]}"
expect 0 "$t" --nodes-file "$file" "${wait[@]}" status
says "$out" '^3 of 3 nodes ready'
says_nothing "$err"
expect 0 env REDLOCK_NODES_FILE="$file" "$t" "${wait[@]}" run job -- sh -c 'env; tr "\0" " " <"/proc/$PPID/cmdline"'
never_says "$out" hunter2
# As an editor of another system writes it.
write "\xef\xbb\xbf# nodes\r\n$uri:${ports[0]}\r\n$uri:${ports[1]}\r\n$uri:${ports[2]}\r\n"
expect 0 "$t" --nodes-file "$file" "${wait[@]}" status
# From a pipe, as a secret store gives it.
expect 0 "$t" --nodes-file <(cat "$file") "${wait[@]}" status

# Who may do what with it.
chmod 640 "$file"
expect_no_err 0 "$t" --nodes-file "$file" "${wait[@]}" status
chmod 644 "$file"
expect 0 "$t" --nodes-file "$file" "${wait[@]}" status
says "$err" "^redlock: warning: every user of this machine may read $file, and it has passwords: chmod o-r$"
expect_no_err 0 "$t" -q --nodes-file "$file" "${wait[@]}" status
expect 0 "$t" --json --nodes-file "$file" "${wait[@]}" status
json '.warning == "NODES_FILE"' "$err"
chmod 602 "$file"
bad "anybody may write $file, and so name other nodes"
write "127.0.0.1:${ports[0]}\n" 644
expect_no_err 69 "$t" --nodes-file "$file" "${wait[@]}" status

# What is wrong with it, and in which line.
write "$uri:1\n# x\nhttp://:hunter2@a:1\n"
bad "line 3 of $file: "
write "$uri:1\n$uri:2,$uri:3\n"
bad "line 2 of $file has a ',' inside: write one node a line"
write "$uri:1\n$uri:2 $uri:3\n"
bad "line 2 of $file has white space inside: separate nodes with new lines"
write "$uri:1;$uri:3\n"
bad "line 1 of $file has a ';' inside"
write "# x\n$uri:1 # the first\n"
bad "line 2 of $file has white space inside: .*; a comment needs a line of its own"
write "$uri:1\nredis//:hunter2@a:1\n"
bad "line 2 of $file: the scheme 'redis' of a node URI is not followed by '://'"
write "$uri:1$uri:2\n"
bad "line 1 of $file: a node URI has a second 'redis://' inside: separate two nodes"
write "$uri:1\n\n$uri:2\n# x\n$uri:1\n"
bad "lines 1 and 5 of $file are both '127.0.0.1:1'"
write "\n# nothing\n\n"
bad "$file has no nodes: write one URI a line"
write ''
bad "$file has no nodes"
write "$uri:1\n\0hunter2\n"
bad "$file is no text"
{
    for i in {1..32}; do
        echo "$uri:$i"
    done
} >"$file"
bad 'more than 31 nodes'
head -c 300000 /dev/zero | tr '\0' '#' >"$file"
bad 'longer than 256 KiB'
rm "$file"
bad "cannot read the nodes from $file: No such file or directory"
mkdir "$file"
bad 'it is a directory'
rmdir "$file"

# Two lists: one of them is old.
write "$uri:1\n"
expect 64 "$t" -n a:1 --nodes-file "$file" status
says "$err" '^redlock: two lists of nodes, -n and --nodes-file: give one of them'
expect 64 env REDLOCK_NODES=a:1 REDLOCK_NODES_FILE="$file" "$t" status
says "$err" '^redlock: two lists of nodes, REDLOCK_NODES and REDLOCK_NODES_FILE'
# What is given on the command line comes before the environment.
good="$uri:${ports[0]}"
expect 0 env REDLOCK_NODES_FILE="$work/none" "$t" -n "$good" "${wait[@]}" status
expect 0 env REDLOCK_NODES_FILE= REDLOCK_NODES="$good" "$t" "${wait[@]}" status
write "$good\n"
expect 0 env REDLOCK_NODES=a:1 "$t" --nodes-file "$file" "${wait[@]}" status
expect 64 "$t" --nodes-file '' status
finish
