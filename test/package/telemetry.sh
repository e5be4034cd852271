#!/usr/bin/env bash
# The example docs/examples/telemetry.c compiles, and writes what docs/telemetry.md lists, as text
# that Prometheus can read. The C blocks of that page compile.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=example_lib.sh
source "$(dirname "$0")/example_lib.sh"
page=$REDLOCK_SOURCE/docs/telemetry.md

fail() {
    echo "$*"
    [[ ! -e $work/locks.prom ]] || cat "$work/locks.prom"
    exit 1
}

compile_example telemetry

# The page's blocks: a statement in a function, and a callback for a tracer of which only the types
# count here.
awk -v dir="$work" '/^```c$/ { file = dir "/block" ++n ".c"; next } /^```/ { file = "" } file { print >file }' "$page"
{
    printf '#include <redlock/blocking.h>\n#include <stdio.h>\nvoid show(redlock_client *client);\n'
    printf 'void show(redlock_client *client) {\n#include "block1.c"\n}\n'
    printf 'struct span;\nvoid span_add_event(struct span *span, const char *name, const char *code);\n'
    printf 'void span_end(struct span *span);\nextern redlock_event_callback used;\n'
    printf '#include "block2.c"\nredlock_event_callback used = on_event;\n'
} >"$work/blocks.c"
[[ -s $work/block2.c && ! -e $work/block3.c ]] || fail "the page has not two blocks of C"
compile "$work/blocks.c" "$work/blocks.o" -c

start_nodes
kill -KILL "${pids[2]}"

"$work/telemetry" "$work/locks.prom" 5 "${nodes[@]}" >"$work/said" 2>&1 || { cat "$work/said"; fail "it failed"; }
[[ ! -e $work/locks.prom.new ]] || fail "half a file was left"

# value METRIC: of the one line with this name and these labels.
value() {
    local values
    values=$(awk -v metric="$1" '$1 == metric { print $2 }' "$work/locks.prom")
    [[ -n $values && $values != *$'\n'* ]] || fail "not one line with $1"
    echo "$values"
}
# same METRIC VALUE
same() {
    [[ $(value "$1") == "$2" ]] || fail "$1 is $(value "$1"), not $2"
}
same 'redlock_client_acquires_total{result="acquired"}' 5
same 'redlock_client_acquires_total{result="no_quorum"}' 0
same redlock_client_released_total 5
same redlock_client_acquire_seconds_count 5
same redlock_client_held_seconds_count 5
same redlock_client_wait_seconds_count 0
same redlock_client_leases_held 0
same "redlock_client_node_ups_total{node=\"${nodes[0]}\"}" 1
same "redlock_client_node_downs_total{node=\"${nodes[2]}\"}" 1
(($(value "redlock_client_votes_total{node=\"${nodes[0]}\",vote=\"granted\"}") >= 10)) || fail "too few votes"
(($(value "redlock_client_votes_total{node=\"${nodes[2]}\",vote=\"connection\"}") >= 5)) || fail "too few failures"
! grep -qF "node=\"${nodes[2]}\",vote=\"granted\"" "$work/locks.prom" || fail "a dead node has voted"
# Five times 20 ms.
awk '$1 == "redlock_client_held_seconds_sum" && $2 >= 0.1 { good = 1 } END { exit !good }' "$work/locks.prom" ||
    fail "the locks were held for too short a time"

# The form: each metric has its help and its type, before its values; buckets rise to the count.
check_form() {
    awk '
        function bad(why) { print FILENAME ":" FNR ": " why ": " $0; failed = 1 }
        /^# HELP / { if (NF < 4) bad("no help"); helped[$3] = 1; next }
        /^# TYPE / { if (!helped[$3]) bad("a type without help"); type[$3] = $4; next }
        !/^[a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? [0-9.]+$/ { bad("not a sample"); next }
        { name = $1; sub(/\{.*/, "", name); base = name }
        name ~ /_(bucket|sum|count)$/ { sub(/_(bucket|sum|count)$/, "", base) }
        !(base in type) && !(name in type) { bad("no type") }
        type[base] == "histogram" && name ~ /_bucket$/ {
            if (base != last) below = 0
            if ($2 < below) bad("the buckets fall")
            below = $2; last = base; infinite[base] = $1 ~ /\+Inf/ ? $2 : -1
        }
        type[base] == "histogram" && name ~ /_count$/ && $2 != infinite[base] { bad("the count differs from +Inf") }
        type[name] == "counter" && name !~ /_total$/ { bad("a counter without _total") }
        END { exit failed }' "$1"
}
check_form "$work/locks.prom" || fail "not what Prometheus reads"
sed '0,/^redlock_client_acquire_seconds_bucket/s//&{le="9"} 7\n&/; s/^# TYPE redlock_client_lost_total.*//' \
    "$work/locks.prom" >"$work/wrong"
said=$(check_form "$work/wrong") && fail "control failed: a wrong file was taken"
[[ $said == *'the buckets fall'* && $said == *'no type'* ]] || fail "control failed: $said"

# The page names the same metrics as the example writes.
diff <(sed -nE '/^\| Prometheus/,/^$/p' "$page" | grep -oE 'redlock_client_[a-z_]+' | sort -u) \
    <(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$work/locks.prom" | sort -u) ||
    fail "the page's metrics (<) are not the example's (>)"
# shellcheck disable=SC2016 # Markdown
diff <(sed -nE '/^\| `vote` \|/,/^$/s/^\| (`.*) \| .*/\1/p' "$page" | grep -oE '`[a-z_]+`' | tr -d '`' |
    grep -vx vote | sort -u) \
    <(sed -nE 's/^ *REDLOCK_VOTED_([A-Z_]+)( = 0)?(,.*)?( .*)?$/\1/p' "$REDLOCK_SOURCE/include/redlock/telemetry.h" |
        tr '[:upper:]' '[:lower:]' | sort -u) || fail "the page's votes (<) are not the header's (>)"
echo "$(grep -c '^redlock' "$work/locks.prom") samples"
