#!/usr/bin/env bash
# What redlock_model prints and how it exits: a counterexample is a numbered trace that ends with
# what is wrong.
set -euo pipefail

model=${1:?usage: test_trace.sh REDLOCK_MODEL}

fail() {
    echo "$1"
    printf '%s\n' "${said-}"
    exit 1
}

# expect STATUS ARGUMENT…: runs it, keeps what it prints in $said.
expect() {
    local wanted=$1 status=0
    shift
    said=$("$model" "$@" 2>&1) || status=$?
    ((status == wanted)) || fail "redlock_model $*: status $status instead of $wanted"
}

# steps N SENTENCE: the trace has the steps 1 to N and ends with this sentence.
steps() {
    local numbers
    numbers=$(sed -n 's/^ *\([0-9][0-9]*\)\. .*/\1/p' <<<"$said" | tr '\n' ' ')
    [[ $numbers == "$(seq -s ' ' "$1") " ]] || fail "the steps are numbered $numbers, not 1 to $1"
    grep -qxF "   => $2" <<<"$said" || fail "no line says: $2"
    grep -q "^VIOLATION: .* states, .* transitions, steps $1," <<<"$said" || fail "the last line does not say steps $1"
}

# The shortest there are, worked out by hand: two proposals, two nodes for each attempt with a key
# of the first gone between, two quorums heard.
expect 1 fence --collide --bug accepts-equal
steps 9 "two grants have one fencing token"
expect 0 fence --collide --bug accepts-equal --expect-violation
steps 9 "two grants have one fencing token"
expect 1 fence --losses 1
steps 9 "a grant that began after another had returned has a lower fencing token"
# Two attempts, two nodes each, a restart and a connection between them, two quorums heard.
expect 1 lock --bug unguarded
steps 10 "A and B hold the lock at the same time"
# Somebody queued on two nodes, a second one with a slow clock queued on two nodes, and two
# handovers to it.
expect 1 order --bug own-clock
steps 9 "a client holds the lock that began when an earlier one was queued on a quorum"
# A place on three nodes, two handed over, a lease, and the RELEASE that reaches the third node.
expect 1 order --bug stays-queued
steps 9 "a token is queued at a node that has executed its RELEASE"

expect 1 lock --expect-violation
grep -q "^no violation in any state: " <<<"$said" || fail "it does not say that nothing is wrong"
expect 1 lock --states 1000
grep -q "^GIVEN UP, no violation so far: 1,000 states" <<<"$said" || fail "it does not say that it gave up"
# One attempt alone is never beaten and follows no other: a search that came across too little has
# proved little.
expect 1 fence --attempts A
grep -q "grant after a grant: MISSING" <<<"$said" || fail "it does not say what it did not come across"

for wrong in "" house "lock --nodes 0" "lock --nodes x" "lock --nodes" "lock --attempts A" "fence --attempts AE" \
    "lock --ttl 3" \
    "fence --bug heal-counts" "fence --ttl 1" "queue --bug own-clock" "queue --restarts 1" "queue --ttl 4" \
    "order --ttl 1" "order --waiters 4" "lock --clients 123/2" "lock --clients 12/3,12/2" "lock --clients 13/2,13/2" \
    "lock --clients 123/2,124" "lock --clients 123/2,123/2,123/2" "fence --clients 123/2" \
    "fence --clients 123/0,123/2" "fence --clients 1237/2,123/2" "queue --clients 123/2,123/2"; do
    # shellcheck disable=SC2086 # words
    expect 64 $wrong
done
expect 0 --help
echo "traces and exit statuses are as they should be"
