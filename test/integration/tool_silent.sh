#!/usr/bin/env bash
# Connections that die without a sound, while new ones work: what `run` and `elect` do, and what
# they say when a release was not confirmed.
# shellcheck disable=SC2317 # functions that are called by name
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
start_proxy
nodes=127.0.0.1:${links[0]},127.0.0.1:${links[1]},127.0.0.1:${links[2]}
node_timeout=1000
connect_timeout=2s

# The command of the tests: it says that it has begun, and ends with a status when it is told to.
# shellcheck disable=SC2016 # the variables of the command
work_until_told='touch "$0/began"; until [[ -e $0/end ]]; do sleep 0.02; done; exit "$1"'

# begin COMMAND… : runs the tool in the background, until its command has begun.
begin() {
    rm -f "$work/began" "$work/end"
    forget_words
    tool "$@" >"$out" 2>"$err" &
    runner=$!
    eventually test -e "$work/began"
}

# ended STATUS : lets the command end, and checks the tool's exit status.
ended() {
    touch "$work/end"
    wait "$runner"
    is 'the exit status' $? "$1"
}

# A release goes through, on new connections. No key is left for its ttl.
begin run -t 1h job -- bash -c "$work_until_told" "$work" 0
tell treat all freeze
ended 0
says_nothing "$err"
eventually no_keys_left job
begin elect -t 1h leader -- bash -c "$work_until_told" "$work" 0
tell treat all freeze
ended 0
eventually no_keys_left leader

# No new connection works, either: the work is done, and the lock stays.
begin run -t 1h job -- bash -c "$work_until_told" "$work" 0
tell set all refuse 1
tell treat all freeze
ended 70
says "$err" "^redlock: .*no quorum"
says "$err" '^redlock: the command succeeded; the keys that are left end with their ttl$'
tell set all refuse 0
tell treat all thaw
eventually no_keys_left job || redis 0 del job
redis_on '0 1 2' del job
begin elect -t 1h leader -- bash -c "$work_until_told" "$work" 0
tell set all refuse 1
tell treat all freeze
ended 70
redis_on '0 1 2' del leader
# It is told which nodes have confirmed the release, though they were asked again since then.
tell set all refuse 0
begin run -t 1h job -- bash -c "$work_until_told" "$work" 0
for link in 0 1; do
    tell set $link refuse 1
    tell treat $link freeze
done
ended 70
says "$err" 'no quorum: 1 of 3 nodes confirmed it'
never_says "$err" 'the key is missing'
redis_on '0 1 2' del job
# A failure says more than that.
tell set all refuse 0
begin run -t 1h job -- bash -c "$work_until_told" "$work" 7
tell set all refuse 1
tell treat all freeze
ended 7
says "$err" "the exit status is the command's"
finish
