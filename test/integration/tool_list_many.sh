#!/usr/bin/env bash
# status --all on nodes with very many keys: none is missed, others are served meanwhile, and more
# locks than fit into memory are refused with a sentence.
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3

# fill NODE COUNT PREFIX : so many locks.
fill() {
    redis "$1" eval "for i = 1, $2 do
        redis.call('set', '$3' .. i, ('%032x@h'):format(i), 'px', 36000000) end" 0 >/dev/null
}

# 2,000 locks among 40,000 other keys, in tables that grew and shrank.
for i in 0 1 2; do
    redis $i eval "for i = 1, 80000 do redis.call('set', 'other' .. i, i) end
        for i = 1, 40000 do redis.call('del', 'other' .. i) end" 0 >/dev/null
    fill $i 2000 lock
done
expect 0 tool --json status --all
json '(.resources | length) == 2000 and all(.resources[]; .held_on == 3 and .verdict == "held")'
expect 0 tool --json status --match 'lock77*'
json '(.resources | length) == 11'

# More keys of locks than the tool takes: a sentence, and no list that only looks whole.
start_node
nodes=127.0.0.1:${ports[3]}
fill 3 1000001 more
expect 71 tool --json status --all
json '.error == "LIMIT" and (.message | test("more than 1000000 keys of locks: give --match PATTERN"))'
expect 0 tool --json status --match 'more33333*'
json '(.resources | length) == 11'
finish
