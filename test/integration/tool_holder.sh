#!/usr/bin/env bash
# What the tool says of the holder of a lock: the default text, --holder, REDLOCK_HOLDER, none; who
# refuses an acquire; status; tokens of others.
# shellcheck disable=SC2016 # variables of the commands
# shellcheck source-path=SCRIPTDIR source=tool_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

start_nodes 3
host=$(hostname)
digits=00112233445566778899aabbccddeeff

# bad PATTERN ARGUMENTS… : refused with one line.
bad() {
    local pattern=$1
    shift
    expect 64 "$@"
    says "$err" "^redlock: .*$pattern"
    is "the number of lines for $*" "$(wc -l <"$err")" 1
}

# The holder of a run is the tool itself, which ends with the command; acquire ends at once, so its
# holder is the script that called it.
expect 0 tool run job -- sh -c 'echo "$REDLOCK_TOKEN" $PPID'
says "$out" "^[g-v][0-9a-f]{31}@$host:[0-9]+ [0-9]+\$"
read -r token parent <"$out"
is 'the holder of run' "${token#*@}" "$host:$parent"
expect 0 tool acquire -t 1m default
token=$(cat "$out")
is 'the holder of acquire' "${token#*@}" "$host:$$"
expect 0 tool status default
says "$out" "^default: held by $host:$$ on 3 of 3 nodes, for [0-9.]+s more\$"
says "$out" "^  127.0.0.1:${ports[1]}: held by $token, for [0-9.]+s more\$"
expect 0 tool release default "$token"

# A text of one's own, of any length up to 64; the option comes before the environment. Its token is
# good for extend, release, and the next rival.
longest=$(printf 'x%.0s' {1..64})
for text in x deploy@web-3:4711 $'"\\' '$HOME`id`' "$longest"; do
    export REDLOCK_HOLDER=other
    expect 0 tool acquire -t 1m --holder "$text" named
    unset REDLOCK_HOLDER
    token=$(cat "$out")
    is 'the text' "${token#*@}" "$text"
    is 'the length' "${#token}" $((33 + ${#text}))
    eventually gives "$token" redis 0 get named
    expect 75 tool acquire named
    checks=$((checks + 1))
    grep -Fq -- "Give -w TIME to wait; $text holds it; its keys end in " "$err" || fail "no holder"
    expect 0 tool --json status named
    checks=$((checks + 1))
    jq -e --arg text "$text" --arg token "$token" '.resources[0] | .holder_text == $text and
        .token == $token and ([.votes[] | select(.holder_text == $text and .holder == $token)] |
        length == 3)' "$out" >/dev/null || fail 'the JSON'
    expect 0 tool extend -t 1m named "$token"
    expect 0 tool release named "$token"
    eventually no_keys_left named
done
export REDLOCK_HOLDER=web-3
expect 0 tool run job -- sh -c 'echo "$REDLOCK_TOKEN"'
unset REDLOCK_HOLDER
says "$out" '^[g-v][0-9a-f]{31}@web-3$'
bad "--holder has 65 bytes; it must have 0 to 64" tool acquire --holder "x$longest" r
bad "REDLOCK_HOLDER has 65 bytes" env REDLOCK_HOLDER="x$longest" "$REDLOCK_TOOL" -n "$nodes" acquire r
for text in ' ' 'web 3' $'web\n' $'\e[31m' $'w\xc3\xbc'; do
    bad "--holder '.*': it must be printable ASCII without spaces" tool run --holder "$text" r -- true
    never_says "$err" $'\e'
done
bad 'status has no option --holder' tool status --holder x r

# None: then the whole token stands for it.
for option in '' --holder=; do
    export REDLOCK_HOLDER=${option:+other}
    expect 0 tool acquire -t 1m ${option:+"$option"} bare
    unset REDLOCK_HOLDER
    says "$out" '^[g-v][0-9a-f]{31}$'
    token=$(cat "$out")
    expect 75 tool acquire bare
    says "$err" "held by others: .*; 'redlock status RESOURCE' shows who holds it and for how long\.$"
    expect 0 tool status bare
    says "$out" "^bare: held by $token on 3 of 3 nodes"
    expect 0 tool --json status bare
    json '.resources[0] | .holder_text == "" and ([.votes[] | select(.holder_text == "")] | length == 3)'
    expect 0 tool release bare "$token"
done

# Who waited in the queue hears it from the nodes. This holder may have waited, too: it hands over,
# so the nodes are asked once and not again and again.
expect 0 tool acquire -t 1h -w 1s --holder deploy@web-3 held
expect 75 tool acquire -w 2s held
says "$err" "'held': held by deploy@web-3: 0 of 3 nodes granted it, 2 are needed \(.*: queued behind deploy@web-3\)"
says "$err" "; deploy@web-3 holds it; its keys end in 5[0-9]m [0-9]+s if they are not renewed\.$"
expect 75 tool --json acquire -w 2s held
json '[.votes[] | select(.holder_text == "deploy@web-3")] | length >= 2'
expect_no_err 3 tool acquire -E 3 held
expect_no_err 75 tool -q acquire held
# The logs name the holder, and never print a token.
expect 75 tool -v acquire -w 3s held
says "$err" 'wait .held.: node .*: DENIED .*: queued behind deploy@web-3(,|$)'
is 'the lines with a token' "$(grep -Ec '[0-9a-f]{31}' "$err")" 0

# Tokens of others, which anybody may have written: what steers a terminal is no text.
for foreign in "$digits@"$'\e[2J' "$digits@$longest$longest" $'a\e[2J@web' "$digits@two words"; do
    redis_on '0 1 2' set foreign "$foreign" px 60000
    expect 0 tool status foreign
    never_says "$out" $'\e'
    expect 0 tool --json status foreign
    never_says "$out" $'\e'
    json '.resources[0] | .verdict == "held" and .holder_text == ""'
    expect 75 tool acquire -w 100ms foreign
    never_says "$err" $'\e'
    never_says "$err" "$digits"
    says "$err" ': held by '
done
# A key that somebody set without a ttl.
redis_on '0 1 2' set endless "$digits@web-3"
expect 75 tool acquire endless
says "$err" "Give -w TIME to wait; web-3 holds it; its keys have no end\.$"
finish
