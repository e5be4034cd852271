/* What nodes say of themselves to a guard. */
#include "greetings.h"

#include "test.h"
struct redlock_guard guard;
bool jumped;

void start(redlock_restart_guard restart, bool clock, unsigned node_count) {
    redlock_guard_init(&guard, &(struct redlock_guard_plan){.restart = restart,
                                                            .clock = clock,
                                                            .ttl_max_ms = TTL_MAX_MS,
                                                            .node_count = node_count,
                                                            .quorum = redlock_quorum(node_count),
                                                            .start_ns = T0});
}

struct redlock_clock_sample reading_at(int64_t now_ns, int64_t ahead_ns) {
    return (struct redlock_clock_sample){
        .sent_ns = now_ns, .read_ns = now_ns, .server_us = EPOCH_US + (now_ns + ahead_ns) / 1000};
}

redlock_nodes greet(unsigned node, const char *run_id, int64_t now_ns, struct said said) {
    struct redlock_greeting greeting = {.run_id = run_id, .uptime_s = said.up_s};
    if (!said.no_clock) {
        greeting.clock = reading_at(now_ns, said.ahead_ns);
    }
    return redlock_guard_greet(&guard, node, &greeting, now_ns, &jumped);
}

enum redlock_clock_verdict sample(unsigned node, int64_t now_ns, int64_t ahead_ns) {
    const struct redlock_clock_sample reading = reading_at(now_ns, ahead_ns);
    return redlock_guard_sample(&guard, node, &reading, now_ns, NULL);
}

void expect_free(unsigned node, int64_t now_ns) {
    assert_int_equal(redlock_guard_may_not_vote(&guard, now_ns) & REDLOCK_NODE(node), 0);
    assert_int_equal(redlock_guard_until_ns(&guard, node, now_ns), 0);
    assert_is(redlock_guard_why(&guard, node, now_ns), REDLOCK_GUARD_NONE);
}

void expect_quarantine(unsigned node, int64_t now_ns, int64_t until_ns, enum redlock_guard_reason why) {
    assert_int_equal(redlock_guard_may_not_vote(&guard, now_ns) & REDLOCK_NODE(node), REDLOCK_NODE(node));
    assert_int_equal(redlock_guard_until_ns(&guard, node, now_ns), until_ns);
    assert_int_equal(redlock_guard_why(&guard, node, now_ns), why);
    assert_int_equal(redlock_guard_until_ns(&guard, node, until_ns - 1), until_ns);
    expect_free(node, until_ns);
}
