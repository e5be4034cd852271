/* What the nodes have said to a waiter: which grants count, from when, and whom it waits for. */
#include "core/grants.h"
#include "core/time.h"
#include "test.h"

#define MS REDLOCK_NS_PER_MS

struct record {
    _Alignas(struct redlock_grants) unsigned char memory[sizeof(struct redlock_grants) +
                                                         REDLOCK_NODES_MAX * sizeof(struct redlock_grants_node)];
};

/* A token whose WAITs have the rounds 3 to `last`. WAIT n was sent at n ms. */
static struct redlock_grants *begin(struct record *record, uint32_t last) {
    memset(record, 0, sizeof *record);
    struct redlock_grants *queue = (struct redlock_grants *)(void *)record->memory;
    redlock_grants_begin(queue, REDLOCK_NODES_MAX, 3);
    for (uint32_t round = 3; round <= last; round++) {
        redlock_grants_sent(queue, round, round * MS);
    }
    return queue;
}

static void deny(struct redlock_grants *queue, unsigned node, enum redlock_grants_holder holder, uint64_t id) {
    redlock_grants_deny(queue, node, &(struct redlock_grants_view){.holder = holder, .holder_id = id, .pttl_ms = 5},
                        10 * MS);
}

TEST(only_a_wait_of_this_token_that_we_remember_can_be_granted) {
    struct record record;
    struct redlock_grants *queue = begin(&record, 6);
    assert_false(redlock_grants_grant(queue, 0, 2, 20 * MS)); /* an older token */
    assert_false(redlock_grants_grant(queue, 0, 7, 20 * MS)); /* never sent */
    assert_int_equal(queue->granted, 0);
    assert_true(redlock_grants_grant(queue, 0, 3, 20 * MS));
    assert_int_equal(queue->nodes[0].bound_ns, 3 * MS);
    queue = begin(&record, 3 + REDLOCK_GRANTS_SENT_MAX);
    assert_false(redlock_grants_grant(queue, 0, 3, 20 * MS)); /* its send time is forgotten */
    assert_true(redlock_grants_grant(queue, 0, 4, 20 * MS));
    assert_int_equal(queue->nodes[0].bound_ns, 4 * MS);
}

TEST(a_grant_counts_once_and_only_a_later_one_moves_its_bound) {
    struct record record;
    struct redlock_grants *queue = begin(&record, 6);
    assert_true(redlock_grants_grant(queue, 1, 4, 20 * MS));
    assert_false(redlock_grants_grant(queue, 1, 4, 21 * MS));
    assert_false(redlock_grants_grant(queue, 1, 3, 21 * MS));
    assert_int_equal(queue->nodes[1].bound_ns, 4 * MS);
    assert_true(redlock_grants_grant(queue, 1, 6, 21 * MS));
    assert_int_equal(queue->nodes[1].bound_ns, 6 * MS);
    assert_int_equal(queue->granted, 2);
}

TEST(an_older_grant_than_an_answer_queued_is_stale) {
    struct record record;
    struct redlock_grants *queue = begin(&record, 5);
    assert_true(redlock_grants_grant(queue, 0, 4, 20 * MS));
    deny(queue, 0, REDLOCK_HOLDER_LATER, 7); /* to WAIT 5 */
    assert_int_equal(queue->granted, 0);
    assert_false(redlock_grants_grant(queue, 0, 4, 20 * MS));
    assert_false(redlock_grants_grant(queue, 0, 3, 20 * MS));
    assert_true(redlock_grants_grant(queue, 0, 5, 20 * MS));
    deny(queue, 0, REDLOCK_HOLDER_LATER, 7); /* the push came before the answer to its own WAIT */
    assert_int_equal(queue->granted, 1);
    assert_int_equal(queue->fresh, 1);
    redlock_grants_sent(queue, 6, 6 * MS);
    assert_int_equal(queue->fresh, 0);
    assert_int_equal(queue->granted, 1); /* until its answer */
}

TEST(a_void_takes_all_grants_of_waits_sent_before_it) {
    struct record record;
    struct redlock_grants *queue = begin(&record, 5);
    assert_true(redlock_grants_grant(queue, 0, 5, 20 * MS));
    assert_true(redlock_grants_grant(queue, 2, 5, 20 * MS));
    queue->fresh = 5;
    redlock_grants_void(queue, 6);
    assert_int_equal(queue->granted, 1);
    assert_int_equal(queue->fresh, 1); /* a grant that does not count says nothing of a holder */
    assert_false(redlock_grants_grant(queue, 1, 5, 20 * MS));
    assert_false(redlock_grants_grant(queue, 2, 5, 20 * MS));
    assert_false(redlock_grants_grant(queue, 0, 5, 20 * MS));
    deny(queue, 2, REDLOCK_HOLDER_LATER, 7); /* an answer from before the jump ends no void */
    assert_false(redlock_grants_grant(queue, 2, 5, 20 * MS));
    redlock_grants_sent(queue, 6, 6 * MS);
    assert_true(redlock_grants_grant(queue, 2, 6, 20 * MS));
    redlock_grants_begin(queue, REDLOCK_NODES_MAX, 7);
    redlock_grants_sent(queue, 7, 7 * MS);
    assert_int_equal(queue->granted, 0);
    assert_false(redlock_grants_grant(queue, 0, 6, 20 * MS));
    assert_true(redlock_grants_grant(queue, 1, 7, 20 * MS));
}

/* The lease counts from the latest time that a quorum of grants allows. */
TEST(the_bound_is_the_quorum_th_latest) {
    struct record record;
    static const uint32_t rounds[] = {5, 3, 9, 0, 7, 5};
    struct redlock_grants *queue = begin(&record, 9);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(redlock_grants_grant(queue, i, rounds[i], 20 * MS), rounds[i] != 0);
    }
    static const int64_t bounds_ms[] = {9, 7, 5, 5, 3};
    static const redlock_nodes backing[] = {4, 20, 53, 53, 55};
    for (unsigned quorum = 1; quorum <= 5; quorum++) {
        const int64_t bound_ns = redlock_grants_bound_ns(queue, quorum);
        assert_int_equal(bound_ns, bounds_ms[quorum - 1] * MS);
        assert_int_equal(redlock_grants_backing(queue, bound_ns), backing[quorum - 1]);
    }
    for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
        (void)redlock_grants_grant(queue, i, 9, 20 * MS);
    }
    assert_int_equal(redlock_grants_bound_ns(queue, REDLOCK_NODES_MAX), 9 * MS);
    assert_int_equal(redlock_grants_backing(queue, 9 * MS), redlock_nodes_all(REDLOCK_NODES_MAX));
}

TEST(nodes_are_alike_if_one_token_holds_them) {
    struct record record;
    struct redlock_grants *queue = begin(&record, 4);
    deny(queue, 0, REDLOCK_HOLDER_EARLIER, 7);
    deny(queue, 2, REDLOCK_HOLDER_EARLIER, 7);
    deny(queue, 3, REDLOCK_HOLDER_LATER, 8);
    deny(queue, 4, REDLOCK_HOLDER_NONE, 0);
    deny(queue, 5, REDLOCK_HOLDER_NONE, 0);
    assert_int_equal(redlock_grants_count_like(queue, 0), 2);
    assert_int_equal(redlock_grants_count_like(queue, 3), 1);
    assert_int_equal(redlock_grants_count_like(queue, 4), 0); /* free at two nodes: nobody's */
    assert_int_equal(redlock_grants_held_by(queue, REDLOCK_HOLDER_EARLIER), 5);
    assert_int_equal(redlock_grants_held_by(queue, REDLOCK_HOLDER_LATER), 8);
    assert_int_equal(redlock_grants_held_by(queue, REDLOCK_HOLDER_STRANGER), 0);
    assert_true(redlock_grants_grant(queue, 2, 4, 20 * MS)); /* handed over since */
    assert_int_equal(redlock_grants_count_like(queue, 0), 1);
    assert_int_equal(redlock_grants_held_by(queue, REDLOCK_HOLDER_EARLIER), 1);
}

TEST(rank_and_expiry_are_those_of_the_nodes_that_answered) {
    struct record record;
    struct redlock_grants *queue = begin(&record, 4);
    static const struct redlock_grants_view views[] =
        LIST({.pttl_ms = 500, .rank = 1}, {.pttl_ms = -1}, {.pttl_ms = -2, .rank = 1}, {.pttl_ms = 100},
             {.pttl_ms = INT64_MAX, .rank = 3});
    assert_int_equal(redlock_grants_expiry_ns(queue, 1), REDLOCK_NEVER_NS);
    for (unsigned i = 0; i < 5; i++) {
        redlock_grants_deny(queue, i, &views[i], 10 * MS);
    }
    assert_int_equal(redlock_grants_first_at(queue), 10);
    assert_int_equal(redlock_grants_rank(queue), 0);
    static const int64_t ends_ms[] = {10, 110, 510};
    for (unsigned quorum = 1; quorum <= 3; quorum++) {
        assert_int_equal(redlock_grants_expiry_ns(queue, quorum), ends_ms[quorum - 1] * MS);
    }
    assert_int_equal(redlock_grants_expiry_ns(queue, 4), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_grants_expiry_ns(queue, 6), REDLOCK_NEVER_NS); /* too few answered */
    assert_true(redlock_grants_grant(queue, 3, 4, 20 * MS));
    assert_int_equal(redlock_grants_first_at(queue), 2);
    assert_true(redlock_grants_grant(queue, 1, 4, 20 * MS));
    assert_int_equal(redlock_grants_rank(queue), 1);
    redlock_grants_sent(queue, 5, 5 * MS);
    assert_true(redlock_grants_rank(queue) == UINT32_MAX);
}
