/* Owed releases: which node is asked and when, when the debt ends; then thousands of random debts
 * against the invariants. */

#include "core/debt.h"
#include "core/time.h"
#include "test.h"

#define MS      REDLOCK_NS_PER_MS
#define EXPIRES (10000 * MS)

static struct redlock_debt of(redlock_nodes owing) {
    struct redlock_debt debt;
    redlock_debt_start(&debt, owing, 0, EXPIRES);
    return debt;
}

TEST(every_node_is_asked_once) {
    struct redlock_debt debt = of(7);
    assert_int_equal(redlock_debt_next_ns(&debt, ~0U, 0), 0);
    assert_int_equal(redlock_debt_ask(&debt, 31, 5 * MS), 7);
    assert_int_equal(redlock_debt_ask(&debt, 31, 5 * MS), 0);
    assert_int_equal(redlock_debt_next_ns(&debt, ~0U, 5 * MS), REDLOCK_NEVER_NS);
    assert_false(redlock_debt_over(&debt, 5 * MS));
}

TEST(granted_and_denied_pay) {
    struct redlock_debt debt = of(3);
    redlock_debt_ask(&debt, 3, 0);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_GRANTED, MS);
    assert_false(redlock_debt_over(&debt, MS));
    redlock_debt_vote(&debt, 1, REDLOCK_VOTE_DENIED, MS);
    assert_true(redlock_debt_over(&debt, MS));
    assert_int_equal(debt.owing, 0);
    assert_int_equal(redlock_debt_next_ns(&debt, ~0U, MS), REDLOCK_NEVER_NS);
}

TEST(failed_and_unknown_are_asked_again_later_and_later) {
    static const int64_t most_ms[] = {100, 200, 400, 800, 1600, 2000, 2000};
    struct redlock_debt debt = of(1);
    debt.expires_ns = REDLOCK_NEVER_NS;
    int64_t now_ns = 3 * MS;
    for (size_t i = 0; i < sizeof most_ms / sizeof most_ms[0]; i++) {
        assert_int_equal(redlock_debt_ask(&debt, 1, now_ns), 1);
        redlock_debt_vote(&debt, 0, i % 2 ? REDLOCK_VOTE_FAILED : REDLOCK_VOTE_UNKNOWN, now_ns);
        const int64_t delay_ns = redlock_debt_next_ns(&debt, ~0U, now_ns) - now_ns;
        assert_true(delay_ns >= most_ms[i] * MS / 2 && delay_ns <= most_ms[i] * MS);
        now_ns = redlock_debt_next_ns(&debt, ~0U, now_ns);
    }
    debt.failures = UINT8_MAX;
    redlock_debt_ask(&debt, 1, now_ns);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_FAILED, now_ns);
    assert_int_equal(debt.failures, UINT8_MAX);
    assert_true(redlock_debt_next_ns(&debt, ~0U, now_ns) >= now_ns + 1000 * MS);
}

TEST(nodes_that_fail_together_are_asked_together) {
    struct redlock_debt debt = of(31);
    redlock_debt_ask(&debt, 31, 0);
    for (unsigned i = 0; i < 5; i++) {
        redlock_debt_vote(&debt, i, REDLOCK_VOTE_UNKNOWN, (50 + i) * MS);
    }
    assert_int_equal(debt.failures, 1);
    const int64_t next_ns = redlock_debt_next_ns(&debt, ~0U, 54 * MS);
    assert_true(next_ns >= 100 * MS && next_ns <= 150 * MS);
    assert_int_equal(redlock_debt_ask(&debt, 31, next_ns), 31);
}

/* R9: at the moment when it can be paid. */
TEST(a_node_that_becomes_ready_is_asked_at_once) {
    struct redlock_debt debt = of(3);
    redlock_debt_ask(&debt, 3, 0);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_FAILED, 0);
    redlock_debt_vote(&debt, 1, REDLOCK_VOTE_FAILED, 0);
    assert_int_equal(redlock_debt_ask(&debt, REDLOCK_NODE(1), MS), REDLOCK_NODE(1));
    redlock_debt_vote(&debt, 1, REDLOCK_VOTE_GRANTED, 2 * MS);
    assert_int_equal(debt.owing, 1);
    assert_true(redlock_debt_next_ns(&debt, ~0U, 2 * MS) >= 50 * MS);
}

TEST(nodes_that_are_not_ready_do_not_make_it_spin) {
    struct redlock_debt debt = of(3);
    assert_int_equal(redlock_debt_ask(&debt, 0, MS), 0);
    const int64_t next_ns = redlock_debt_next_ns(&debt, ~0U, MS);
    assert_true(next_ns >= 51 * MS && next_ns <= 101 * MS);
    assert_int_equal(redlock_debt_ask(&debt, 0, next_ns), 0);
    assert_true(redlock_debt_next_ns(&debt, ~0U, next_ns) >= next_ns + 100 * MS);
}

TEST(the_ttl_ends_it_but_not_under_a_request) {
    struct redlock_debt debt = of(3);
    redlock_debt_ask(&debt, 1, EXPIRES - MS);
    assert_true(redlock_debt_next_ns(&debt, ~0U, EXPIRES - MS) > EXPIRES - MS);
    assert_false(redlock_debt_over(&debt, EXPIRES));
    assert_int_equal(redlock_debt_ask(&debt, 3, EXPIRES), 0);
    assert_int_equal(redlock_debt_next_ns(&debt, ~0U, EXPIRES), REDLOCK_NEVER_NS);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_UNKNOWN, EXPIRES + 49 * MS);
    assert_true(redlock_debt_over(&debt, EXPIRES + 49 * MS));
    assert_int_equal(debt.owing, 3); /* never confirmed; counted in the statistics */
}

TEST(it_wakes_at_its_expiry) {
    struct redlock_debt debt = of(1);
    redlock_debt_ask(&debt, 1, EXPIRES - MS);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_FAILED, EXPIRES - MS);
    assert_int_equal(redlock_debt_next_ns(&debt, ~0U, EXPIRES - MS), EXPIRES);
    assert_false(redlock_debt_over(&debt, EXPIRES - 1));
    assert_true(redlock_debt_over(&debt, EXPIRES));
}

TEST(a_vote_of_somebody_else_changes_nothing) {
    struct redlock_debt debt = of(1);
    redlock_debt_ask(&debt, 1, 0);
    redlock_debt_vote(&debt, 4, REDLOCK_VOTE_FAILED, 0);
    assert_int_equal(debt.owing, 1);
    assert_int_equal(debt.asked, 1);
    assert_int_equal(debt.retry_ns, 0);
}

/* A SET that was never answered may run after any ttl. Only an answer of the node to a release ends
 * the debt. */
TEST(the_ttl_does_not_end_an_uncertain_one) {
    struct redlock_debt debt;
    redlock_debt_start(&debt, 3, ~REDLOCK_NODE(1), EXPIRES);
    assert_int_equal(debt.uncertain, 1);
    assert_int_equal(redlock_debt_ask(&debt, 3, 0), 3);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_UNKNOWN, 50 * MS);
    redlock_debt_vote(&debt, 1, REDLOCK_VOTE_UNKNOWN, 50 * MS);
    assert_int_equal(redlock_debt_next_ns(&debt, 0, 50 * MS), EXPIRES); /* an answer of node 1 */
    assert_false(redlock_debt_over(&debt, EXPIRES));
    assert_int_equal(redlock_debt_next_ns(&debt, 2, EXPIRES), REDLOCK_NEVER_NS);
    /* Node 1 is paid. Node 0 is asked when it becomes ready, and again until it answers. */
    for (int64_t now_ns = EXPIRES; now_ns < 1000 * EXPIRES; now_ns += 100 * EXPIRES) {
        assert_int_equal(redlock_debt_next_ns(&debt, 0, now_ns), REDLOCK_NEVER_NS);
        assert_true(redlock_debt_next_ns(&debt, 1, now_ns) < now_ns + 2000 * MS);
        assert_int_equal(redlock_debt_ask(&debt, 3, now_ns), 1);
        assert_int_equal(redlock_debt_next_ns(&debt, 3, now_ns), REDLOCK_NEVER_NS);
        redlock_debt_vote(&debt, 0, REDLOCK_VOTE_FAILED, now_ns);
        assert_false(redlock_debt_over(&debt, now_ns));
    }
    assert_int_equal(redlock_debt_ask(&debt, 3, 1000 * EXPIRES), 1);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_DENIED, 1000 * EXPIRES);
    assert_true(redlock_debt_over(&debt, 1000 * EXPIRES));
    assert_int_equal(debt.owing, 2); /* never confirmed; counted in the statistics */
}

TEST(the_clock_does_not_wake_where_only_uncertain_ones_wait) {
    struct redlock_debt debt;
    redlock_debt_start(&debt, 3, 3, EXPIRES);
    assert_int_equal(redlock_debt_ask(&debt, 3, 0), 3);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_FAILED, 0);
    redlock_debt_vote(&debt, 1, REDLOCK_VOTE_GRANTED, 0);
    assert_int_equal(redlock_debt_next_ns(&debt, 0, 0), REDLOCK_NEVER_NS);
    assert_true(redlock_debt_next_ns(&debt, 1, 0) < EXPIRES);
    assert_int_equal(redlock_debt_ask(&debt, 1, 2 * EXPIRES), 1);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_GRANTED, 2 * EXPIRES);
    assert_true(redlock_debt_over(&debt, 2 * EXPIRES));
    assert_int_equal(debt.owing, 0);
}

/* Nodes refuse, hang, fail and confirm at random. Each debt ends by its expiry, or with the last
 * vote after that, but not before every uncertain node has answered. It never has two requests at
 * one node, and never asks for a timer without something to do. */
TEST(random_debts_end) {
    for (uint32_t seed = 1; seed <= 20000; seed++) {
        uint32_t random = seed;
        const redlock_nodes owing = 1 + redlock_jitter_next(&random) % 127;
        const redlock_nodes uncertain = seed % 2 == 0 ? 0 : owing & redlock_jitter_next(&random);
        struct redlock_debt debt;
        redlock_debt_start(&debt, owing, uncertain, EXPIRES);
        redlock_nodes asked = 0, paid = 0;
        int64_t answer_ns[7], now_ns = 0;
        int looks = 0;
        while (!redlock_debt_over(&debt, now_ns)) {
            assert_int_equal(debt.asked, asked);
            assert_int_equal(debt.owing, owing & ~paid);
            int64_t next_ns = redlock_debt_next_ns(&debt, ~0U, now_ns);
            unsigned node = 7;
            for (unsigned i = 0; i < 7; i++) {
                if ((asked & REDLOCK_NODE(i)) != 0 && answer_ns[i] < next_ns) {
                    next_ns = answer_ns[i];
                    node = i;
                }
            }
            assert_true(next_ns < REDLOCK_NEVER_NS);
            now_ns = next_ns > now_ns ? next_ns : now_ns;
            if (node < 7) {
                const uint32_t draw = redlock_jitter_next(&random) % 6;
                const redlock_vote_kind vote =
                    draw < 2 ? (redlock_vote_kind)(draw + 1) : (redlock_vote_kind)(3 + draw % 2);
                asked &= ~REDLOCK_NODE(node);
                paid |= draw < 2 ? REDLOCK_NODE(node) : 0;
                redlock_debt_vote(&debt, node, vote, now_ns);
            } else {
                const redlock_nodes ready = redlock_jitter_next(&random);
                const redlock_nodes ask = redlock_debt_ask(&debt, ready, now_ns);
                assert_int_equal(ask & ~ready, 0);
                assert_int_equal(ask & asked, 0);
                assert_int_equal(ask & ~(owing & ~paid), 0);
                assert_int_equal(now_ns < EXPIRES ? 0 : ask & ~uncertain, 0);
                asked |= ask;
                for (unsigned i = 0; i < 7; i++) {
                    if ((ask & REDLOCK_NODE(i)) != 0) {
                        answer_ns[i] = now_ns + redlock_jitter_next(&random) % (60 * MS);
                    }
                }
                assert_true(redlock_debt_next_ns(&debt, ~0U, now_ns) > now_ns || redlock_debt_over(&debt, now_ns));
            }
            assert_true(++looks < 1000);
        }
        assert_true(now_ns <= EXPIRES + 60 * MS || uncertain != 0);
        assert_true(now_ns >= EXPIRES || debt.owing == 0);
        assert_int_equal(debt.owing & uncertain, 0);
    }
}

/* The timer asks no node that is not ready; the ttl still ends the debt. */
TEST(a_node_that_is_not_ready_is_left_alone) {
    struct redlock_debt debt;
    redlock_debt_start(&debt, 3, 0, EXPIRES);
    assert_int_equal(redlock_debt_ask(&debt, 3, 0), 3);
    assert_int_equal(redlock_debt_next_ns(&debt, 2, 0), REDLOCK_NEVER_NS);
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_UNKNOWN, 0);
    /* Node 1 has yet to answer. */
    assert_int_equal(redlock_debt_next_ns(&debt, 2, 0), REDLOCK_NEVER_NS);
    redlock_debt_vote(&debt, 1, REDLOCK_VOTE_GRANTED, 0);
    assert_int_equal(redlock_debt_next_ns(&debt, 2, 0), EXPIRES);
    assert_true(redlock_debt_next_ns(&debt, 3, 0) < EXPIRES);
    assert_int_equal(redlock_debt_ask(&debt, 1, 50 * MS), 1); /* it became ready */
    redlock_debt_vote(&debt, 0, REDLOCK_VOTE_DENIED, 51 * MS);
    assert_true(redlock_debt_over(&debt, 51 * MS));
}
