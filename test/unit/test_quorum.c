/* Quorums and rounds: every set of votes of up to five nodes, and every order of up to four,
 * against simple oracles. */
#include "core/quorum.h"
#include "test.h"

#define KINDS 6 /* redlock_vote_kind, PENDING first */

TEST(sets) {
    assert_int_equal(redlock_nodes_all(1), 1);
    assert_int_equal(redlock_nodes_all(5), 31);
    assert_int_equal(redlock_nodes_all(31), 0x7fffffff);
    assert_int_equal(redlock_nodes_count(0), 0);
    assert_int_equal(redlock_nodes_count(0x55555555), 16);
    for (unsigned n = 1; n <= REDLOCK_NODES_MAX; n++) {
        assert_int_equal(redlock_nodes_count(redlock_nodes_all(n)), n);
    }
}

TEST(quorum_is_the_smallest_majority) {
    static const unsigned expected[] = {0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6};
    for (unsigned n = 1; n < sizeof expected / sizeof expected[0]; n++) {
        assert_int_equal(redlock_quorum(n), expected[n]);
    }
    for (unsigned n = 1; n <= REDLOCK_NODES_MAX; n++) {
        assert_true(2 * redlock_quorum(n) > n);
        assert_true(2 * (redlock_quorum(n) - 1) <= n);
    }
}

TEST(a_round_starts_with_those_asked_pending) {
    struct redlock_round round;
    redlock_round_start(&round, 3, REDLOCK_NODE(0) | REDLOCK_NODE(3));
    assert_int_equal(round.asked, 9);
    assert_int_equal(round.quorum, 3);
    assert_int_equal(redlock_round_pending(&round), 9);
    /* Two can never become three. */
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_LOST);
}

TEST(the_first_vote_counts) {
    for (int first = REDLOCK_VOTE_GRANTED; first < REDLOCK_VOTE_ABSTAINED; first++) {
        for (int second = REDLOCK_VOTE_PENDING; second < KINDS; second++) {
            struct redlock_round round;
            redlock_round_start(&round, 2, 7);
            assert_true(redlock_round_vote(&round, REDLOCK_NODE(1), (redlock_vote_kind)first));
            const struct redlock_round before = round;
            assert_false(redlock_round_vote(&round, REDLOCK_NODE(1), (redlock_vote_kind)second));
            assert_memory_equal(&round, &before, sizeof round);
        }
    }
}

TEST(a_node_that_was_not_asked_has_no_vote) {
    struct redlock_round round;
    redlock_round_start(&round, 2, 3);
    assert_false(redlock_round_vote(&round, REDLOCK_NODE(2), REDLOCK_VOTE_GRANTED));
    assert_int_equal(round.granted, 0);
    assert_int_equal(redlock_round_pending(&round), 3);
}

TEST(a_node_that_is_asked_later_has_a_vote_and_may_win_the_round) {
    struct redlock_round round;
    redlock_round_start(&round, 2, REDLOCK_NODE(0));
    assert_int_equal(redlock_round_vote(&round, 1, REDLOCK_VOTE_GRANTED), 1);
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_LOST);
    redlock_round_ask(&round, REDLOCK_NODE(0) | REDLOCK_NODE(1));
    /* A node that has voted is not asked again. */
    assert_int_equal(redlock_round_pending(&round), REDLOCK_NODE(1));
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_PENDING);
    assert_int_equal(redlock_round_vote(&round, 3, REDLOCK_VOTE_GRANTED), REDLOCK_NODE(1));
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_WON);
}

TEST(pending_is_no_vote) {
    struct redlock_round round;
    redlock_round_start(&round, 2, 7);
    assert_false(redlock_round_vote(&round, REDLOCK_NODE(0), REDLOCK_VOTE_PENDING));
    assert_false(redlock_round_vote(&round, REDLOCK_NODE(0), REDLOCK_VOTE_ABSTAINED));
    assert_int_equal(redlock_round_pending(&round), 7);
}

/* All sets of grants of up to four nodes, with the other votes denied: only a true majority is a
 * quorum. */
TEST(every_mask_of_grants) {
    for (unsigned n = 1; n <= 4; n++) {
        for (unsigned mask = 0; mask < 1u << n; mask++) {
            struct redlock_round round;
            redlock_round_start(&round, redlock_quorum(n), redlock_nodes_all(n));
            unsigned granted = 0;
            for (unsigned i = 0; i < n; i++) {
                const bool grants = (mask >> i & 1) != 0;
                granted += grants;
                assert_true(
                    redlock_round_vote(&round, REDLOCK_NODE(i), grants ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED));
            }
            assert_int_equal(round.granted, mask);
            assert_int_equal(redlock_round_outcome(&round), 2 * granted > n ? REDLOCK_ROUND_WON : REDLOCK_ROUND_LOST);
        }
    }
}

/* R5: a tie is lost at once, with the vote that makes it a tie. */
TEST(a_tie_is_lost_at_once) {
    struct redlock_round round;
    redlock_round_start(&round, 2, 3);
    redlock_round_vote(&round, REDLOCK_NODE(0), REDLOCK_VOTE_DENIED);
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_LOST);
    redlock_round_start(&round, 3, 15);
    redlock_round_vote(&round, REDLOCK_NODE(0), REDLOCK_VOTE_GRANTED);
    redlock_round_vote(&round, REDLOCK_NODE(1), REDLOCK_VOTE_DENIED);
    redlock_round_vote(&round, REDLOCK_NODE(2), REDLOCK_VOTE_GRANTED);
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_PENDING);
    redlock_round_vote(&round, REDLOCK_NODE(3), REDLOCK_VOTE_DENIED);
    assert_is(redlock_round_outcome(&round), REDLOCK_ROUND_LOST);
    assert_true(redlock_round_answered(&round));
}

/* Whether these votes can still end as WON (or not WON), by trying all pending votes. */
static void completions(const int *votes, unsigned n, unsigned i, unsigned granted, bool *can_win, bool *can_lose) {
    if (i == n) {
        *(2 * granted > n ? can_win : can_lose) = true;
        return;
    }
    if (votes[i] == REDLOCK_VOTE_PENDING || votes[i] == REDLOCK_VOTE_GRANTED) {
        completions(votes, n, i + 1, granted + 1, can_win, can_lose);
    }
    if (votes[i] != REDLOCK_VOTE_GRANTED) {
        completions(votes, n, i + 1, granted, can_win, can_lose);
    }
}

static unsigned how_many(const int *votes, unsigned n, int kind) {
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++) {
        count += votes[i] == kind;
    }
    return count;
}

static void check_against_oracle(const struct redlock_round *round, const int *votes, unsigned n) {
    bool can_win = false, can_lose = false;
    completions(votes, n, 0, 0, &can_win, &can_lose);
    const enum redlock_outcome expected =
        can_win && can_lose ? REDLOCK_ROUND_PENDING : (can_win ? REDLOCK_ROUND_WON : REDLOCK_ROUND_LOST);
    assert_int_equal(redlock_round_outcome(round), expected);
    const unsigned granted = how_many(votes, n, REDLOCK_VOTE_GRANTED), denied = how_many(votes, n, REDLOCK_VOTE_DENIED);
    const unsigned pending = how_many(votes, n, REDLOCK_VOTE_PENDING);
    assert_int_equal(redlock_nodes_count(redlock_round_pending(round)), pending);
    assert_int_equal(redlock_round_answered(round), 2 * (granted + denied + pending) > n);
    assert_int_equal(redlock_round_answered_by_now(round), 2 * (granted + denied) > n);
    const redlock_nodes all[] = {round->granted, round->denied, round->failed, round->unknown,
                                 redlock_round_pending(round)};
    redlock_nodes seen = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(seen & all[i], 0);
        seen |= all[i];
    }
    assert_int_equal(seen, round->asked);
}

TEST(every_set_of_votes) {
    for (unsigned n = 1; n <= 5; n++) {
        unsigned cases = 1;
        for (unsigned i = 0; i < n; i++) {
            cases *= KINDS;
        }
        for (unsigned c = 0; c < cases; c++) {
            int votes[5];
            struct redlock_round round;
            redlock_round_start(&round, redlock_quorum(n), 0);
            unsigned rest = c;
            for (unsigned i = 0; i < n; i++, rest /= KINDS) {
                votes[i] = (int)(rest % KINDS);
                redlock_round_ask(&round, votes[i] == REDLOCK_VOTE_ABSTAINED ? 0 : REDLOCK_NODE(i));
                redlock_round_vote(&round, REDLOCK_NODE(i), (redlock_vote_kind)votes[i]);
            }
            check_against_oracle(&round, votes, n);
        }
    }
}

static unsigned orders_seen;

/* All votes in all orders: after each vote the outcome equals the one of the oracle, and a decided
 * outcome never changes. */
static void next_vote(struct redlock_round round, int *votes, unsigned n, enum redlock_outcome before) {
    check_against_oracle(&round, votes, n);
    const enum redlock_outcome now = redlock_round_outcome(&round);
    if (before != REDLOCK_ROUND_PENDING) {
        assert_int_equal(now, before);
    }
    orders_seen += redlock_round_pending(&round) == 0;
    for (unsigned i = 0; i < n; i++) {
        for (int kind = REDLOCK_VOTE_GRANTED; votes[i] == REDLOCK_VOTE_PENDING && kind < REDLOCK_VOTE_ABSTAINED;
             kind++) {
            struct redlock_round after = round;
            assert_true(redlock_round_vote(&after, REDLOCK_NODE(i), (redlock_vote_kind)kind));
            votes[i] = kind;
            next_vote(after, votes, n, now);
            votes[i] = REDLOCK_VOTE_PENDING;
        }
    }
}

TEST(every_order_of_votes) {
    static const unsigned expected[] = {0, 4, 2 * 16, 6 * 64, 24 * 256};
    for (unsigned n = 1; n <= 4; n++) {
        struct redlock_round round;
        int votes[4] = {0};
        redlock_round_start(&round, redlock_quorum(n), redlock_nodes_all(n));
        orders_seen = 0;
        next_vote(round, votes, n, REDLOCK_ROUND_PENDING);
        assert_int_equal(orders_seen, expected[n]);
    }
}
