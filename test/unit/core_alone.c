/* Links only the core of the library, and takes one lease through its life with events made by
 * hand. */
#include <stdio.h>

#include "core/debt.h"
#include "core/guard.h"
#include "core/lease.h"
#include "core/time.h"

#define MS REDLOCK_NS_PER_MS

static struct redlock_lease_core lease;
static struct redlock_actions actions;
static int failures;

static void feed(const struct redlock_event *event) {
    redlock_lease_step(&lease, event, &actions);
}

static void expect(bool met, const char *what) {
    if (!met) {
        printf("not met: %s\n", what);
        failures++;
    }
}

static void vote(redlock_nodes node, redlock_vote_kind kind, int64_t now_ns) {
    feed(&(struct redlock_event){
        .type = REDLOCK_EVENT_VOTE, .now_ns = now_ns, .nodes = node, .vote = kind, .round = lease.round});
}

static void fence_and_guard(void) {
    struct redlock_fence fence = {.client = 7};
    expect(redlock_fence_propose(&fence, 1000) && fence.token == 1000007, "a number of the clock and the client");
    redlock_fence_note(&fence, 0, true, 0, 1000);
    expect(redlock_fence_is_won(&fence, 7, 1) && !redlock_fence_is_won(&fence, 7, 2), "one node took it");
    struct redlock_guard guard;
    bool jumped;
    redlock_guard_init(&guard, &(struct redlock_guard_plan){.restart = REDLOCK_RESTART_GUARD_STRICT,
                                                            .ttl_max_ms = 1000,
                                                            .node_count = 3,
                                                            .quorum = redlock_quorum(3)});
    redlock_guard_greet(&guard, 1, &(struct redlock_greeting){.run_id = "a"}, 500 * MS, &jumped);
    expect(redlock_guard_may_not_vote(&guard, 1511 * MS) == 2, "a node met for the first time is kept from voting");
    expect(redlock_guard_may_not_vote(&guard, 1512 * MS) == 0, "for ttl_max and its drift");
}

int main(void) {
    const struct redlock_plan plan = {.ttl_ms = 1000,
                                      .wait_timeout_ms = 5000,
                                      .retry_delay_min_ms = 50,
                                      .retry_delay_max_ms = 50,
                                      .auto_extend = true};
    struct redlock_debt debt;
    redlock_lease_init(&lease, 3, 2, 1);
    feed(&(struct redlock_event){.type = REDLOCK_EVENT_BEGIN, .now_ns = 0, .plan = &plan});
    expect(actions.send == REDLOCK_OP_ACQUIRE && actions.send_nodes == 7, "the first attempt goes to all nodes");
    vote(1, REDLOCK_VOTE_DENIED, 1 * MS);
    vote(2, REDLOCK_VOTE_DENIED, 50 * MS);
    expect(lease.state == REDLOCK_LEASE_RETRYING && actions.cleanup == 7, "it is lost and cleaned up");
    redlock_debt_start(&debt, actions.cleanup, 0, redlock_after_ms(50 * MS, plan.ttl_ms));
    expect(redlock_debt_ask(&debt, 7, 50 * MS) == 7, "every node is asked for its release");
    for (unsigned i = 0; i < 3; i++) {
        redlock_debt_vote(&debt, i, REDLOCK_VOTE_GRANTED, 51 * MS);
    }
    expect(redlock_debt_over(&debt, 51 * MS), "and has confirmed it");
    feed(&(struct redlock_event){.type = REDLOCK_EVENT_TIMER, .now_ns = redlock_lease_next_ns(&lease)});
    expect(actions.send == REDLOCK_OP_ACQUIRE && lease.start_ns == 100 * MS, "the second attempt comes 50 ms later");
    vote(1, REDLOCK_VOTE_GRANTED, 101 * MS);
    vote(4, REDLOCK_VOTE_GRANTED, 102 * MS);
    expect(actions.acquired && actions.acquired_code == REDLOCK_OK, "it is won");
    expect(redlock_validity_ms(redlock_lease_held_until_ns(&lease), 102 * MS) == 986, "validity is ttl - 2 - drift");
    feed(&(struct redlock_event){.type = REDLOCK_EVENT_TIMER, .now_ns = redlock_lease_next_ns(&lease)});
    expect(actions.send == REDLOCK_OP_EXTEND, "it is renewed");
    vote(1, REDLOCK_VOTE_GRANTED, 440 * MS);
    vote(2, REDLOCK_VOTE_GRANTED, 440 * MS);
    expect(lease.state == REDLOCK_LEASE_HELD, "and held on");
    feed(&(struct redlock_event){.type = REDLOCK_EVENT_RELEASE, .now_ns = 500 * MS});
    expect(actions.send == REDLOCK_OP_RELEASE && actions.send_nodes == 7, "it is released everywhere");
    vote(1, REDLOCK_VOTE_GRANTED, 501 * MS);
    vote(2, REDLOCK_VOTE_GRANTED, 501 * MS);
    expect(actions.released && actions.released_code == REDLOCK_OK && lease.state == REDLOCK_LEASE_ENDED, "to the end");
    fence_and_guard();
    uint32_t jitter = 1;
    expect(redlock_backoff_ns(&jitter, 1, 10, 2000) <= 10 * MS, "a delay within its bounds");
    if (failures == 0) {
        puts("OK");
    }
    return failures != 0;
}
