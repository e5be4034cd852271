/* What lifts a quarantine: an uptime that is surely long enough; and what makes an uptime doubtful
 * (core/guard.h). */

#include "greetings.h"
#include "test.h"

TEST(a_long_uptime_lifts_if_clocks_agree) {
    /* More than 30302 ms is needed. An uptime of 32 s, cut to seconds, covers a disagreement of 697
     * ms but not of 698 ms. */
    static const struct {
        int64_t up_s, ahead_ns;
        bool may_not_vote;
    } table[] = {
        {32, 0, false},
        {31, 0, true},
        {32, 600 * MS, false},
        {32, -600 * MS, false},
        {32, 697 * MS, false},
        {32, 698 * MS, true},
        {32, -698 * MS, true},
        {33, 999 * MS, false},
        {33, -999 * MS, false},
        {33, 1000 * MS, true}, /* with the error of the reading, more than a second */
        {1000, 1100 * MS, true},
        {1000, -1100 * MS, true},
        {1000, 120 * S, true},
        {INT64_MAX, 0, false},
        {INT64_MAX, 2 * S, true},
        {0, 0, true},
        {1, 0, true},
        {2, 1000 * MS - 2000, true},
        {-1, 0, true},
        {INT64_MIN, 0, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        start(STRICT, false, 3);
        greet(1, "b", T0, (struct said){0});
        greet(2, "c", T0, (struct said){0});
        assert_int_equal(greet(0, "a", T0, (struct said){.up_s = table[i].up_s, .ahead_ns = table[i].ahead_ns}),
                         table[i].may_not_vote);
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0) & 1, table[i].may_not_vote);
    }
}

/* Of a second, nothing is left that is sure. */
TEST(an_uptime_of_two_seconds_is_the_first_that_counts) {
    for (int up_s = 0; up_s <= 2; up_s++) {
        start(STRICT, false, 3);
        guard.plan.ttl_max_ms = 500;
        greet(1, "b", T0, (struct said){0});
        assert_int_equal(greet(0, "a", T0, (struct said){.up_s = up_s}), up_s < 2);
    }
}

/* Greets nodes 1 and 2 again, so that their clocks are known now. */
static void greet_two(const char *run_id, int64_t now_ns) {
    greet(1, run_id, now_ns, (struct said){.up_s = 100000});
    greet(2, run_id, now_ns, (struct said){.up_s = 100000});
}

/* Node 1 was an hour ahead and is gone. The clock of node 2 was stepped by an hour after its start.
 * Never two at one time. */
TEST(a_clock_that_was_read_long_ago_confirms_no_other) {
    for (int late = 0; late <= 1; late++) {
        const int64_t now_ns = T0 + 3 * S + late;
        start(STRICT, false, 3);
        greet(1, "b", T0, (struct said){.up_s = 4000, .ahead_ns = 3600 * S});
        greet(2, "c", now_ns, (struct said){.up_s = 3605, .ahead_ns = 3600 * S});
        assert_int_equal(redlock_guard_may_not_vote(&guard, now_ns) & 4, late ? 4 : 0);
    }
}

TEST(it_is_looked_at_again_with_each_greeting) {
    start(STRICT, false, 5);
    assert_int_equal(greet(0, "a", T0, (struct said){.up_s = 1000}), 1);
    assert_int_equal(greet(1, "b", T0, (struct said){.no_clock = true, .up_s = 1000}), 2);
    assert_int_equal(greet(2, "c", T0, (struct said){.up_s = 29}), 4);
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 7);
    assert_int_equal(greet(3, "d", T0, (struct said){.up_s = 1000}), 0); /* three of five clocks */
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 2 | 4);
    /* The third node has been up for its 28 s and this time, less the errors of two clocks. */
    const int64_t later_ns = T0 + 2302 * MS + 2 * guard.nodes[2].clock.error_ns;
    assert_int_equal(greet(4, "e", later_ns, (struct said){.up_s = 1000}), 0);
    assert_int_equal(redlock_guard_may_not_vote(&guard, later_ns), 2 | 4);
    greet(4, "e", later_ns + 1, (struct said){.up_s = 1000});
    assert_int_equal(redlock_guard_may_not_vote(&guard, later_ns + 1), 2);
}

/* The uptime of the node does not depend on how long we have been up. */
TEST(a_client_that_has_just_booted_believes_it_too) {
    start(STRICT, false, 3);
    greet(1, "b", 5 * S, (struct said){0});
    assert_int_equal(greet(0, "a", 5 * S, (struct said){.up_s = 1000}), 0);
}

TEST(one_clock_is_no_majority) {
    start(STRICT, true, 1);
    assert_int_equal(greet(0, "a", T0, (struct said){.up_s = 1000}), 1);
    expect_quarantine(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
    start(STRICT, true, 2);
    assert_int_equal(greet(0, "a", T0, (struct said){.up_s = 1000}), 1);
    assert_int_equal(greet(1, "b", T0, (struct said){.up_s = 1000}), 0);
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 0);
}

/* It started while its clock was behind, and the clock was set right since. Its uptime says 1000 s,
 * but we saw the run before it 20 s ago. */
TEST(no_run_is_older_than_the_last_sight_of_the_one_before) {
    const struct redlock_clock_sample silent = {.sent_ns = T0 + 110 * S, .read_ns = T0 + 110 * S};
    for (int by_greeting = 0; by_greeting <= 1; by_greeting++) {
        for (int seen_s = 60; seen_s <= 100; seen_s += 40) {
            start(OBSERVED, true, 3);
            for (unsigned i = 0; i < 3; i++) {
                greet(i, "a", T0, (struct said){0});
            }
            if (by_greeting) {
                greet(0, "a", T0 + seen_s * S, (struct said){0});
            } else {
                sample(0, T0 + seen_s * S, 0);
            }
            redlock_guard_sample(&guard, 0, &silent, T0 + 110 * S, NULL); /* no sign of life */
            const redlock_nodes may_not_vote = seen_s == 100;
            greet_two("a", T0 + 120 * S);
            assert_int_equal(greet(0, "b", T0 + 120 * S, (struct said){.up_s = 1000}), may_not_vote);
            assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + 120 * S), may_not_vote);
            greet_two("a", T0 + 130 * S);
            /* So it is the next time. */
            assert_int_equal(greet(0, "b", T0 + 130 * S, (struct said){.up_s = 1010}), 0);
            assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + 130 * S), may_not_vote);
        }
    }
}

/* The same without the clock guard, where any answer is a sight of the run. */
TEST(an_answer_shows_that_the_run_is_up) {
    for (int seen = 0; seen <= 1; seen++) {
        start(OBSERVED, false, 3);
        for (unsigned i = 0; i < 3; i++) {
            greet(i, "a", T0, (struct said){0});
        }
        if (seen) {
            redlock_guard_seen(&guard, 0, T0 + 900 * S);
            redlock_guard_seen(&guard, 0, T0 + 800 * S); /* reported late */
        }
        greet_two("a", T0 + 930 * S);
        assert_int_equal(greet(0, "b", T0 + 930 * S, (struct said){.up_s = 3610}), seen);
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + 930 * S), seen);
    }
}

/* It started an hour behind, we met it, and its clock was set right since. The uptime of the next
 * greeting and of each later one is an hour too long. */
TEST(a_step_between_greetings_does_not_count_as_uptime) {
    for (int clock = 0; clock <= 1; clock++) {
        start(STRICT, clock != 0, 3);
        greet(1, "b", T0, (struct said){.up_s = 1000});
        greet(2, "c", T0, (struct said){.up_s = 1000});
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 0);
        assert_int_equal(greet(0, "a", T0, (struct said){.up_s = 5, .ahead_ns = -3600 * S}), 1);
        greet(0, "a", T0 + S, (struct said){.up_s = 3606});
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + S), 1);
        greet(0, "a", T0 + 2 * S, (struct said){.up_s = 3607});
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + 2 * S), 1);
        assert_true(guard.nodes[0].run_until_ns == T0 + LENGTH_NS);
        /* The next run does not have that hour. */
        greet_two("b", T0 + 100 * S);
        assert_int_equal(greet(0, "d", T0 + 100 * S, (struct said){.up_s = 60}), 0);
        expect_free(0, T0 + 100 * S);
    }
    start(STRICT, true, 3); /* a step that came with a vote */
    greet(1, "b", T0, (struct said){.up_s = 1000});
    greet(0, "a", T0, (struct said){.up_s = 5, .ahead_ns = -3600 * S});
    greet(2, "c", T0, (struct said){.up_s = 1000});
    assert_is(sample(0, T0 + S, 0), REDLOCK_CLOCK_FORWARD);
    greet(0, "a", T0 + 2 * S, (struct said){.up_s = 3607});
    assert_int_equal(guard.nodes[0].run_until_ns, T0 + LENGTH_NS);
}

/* Of two clocks, one is the median and agrees with itself. */
TEST(two_clocks_that_disagree_confirm_no_other) {
    for (int ahead = -1; ahead <= 1; ahead++) {
        start(STRICT, false, 3);
        greet(0, "a", T0, (struct said){.up_s = 4000, .ahead_ns = ahead * 3600 * S});
        greet(1, "b", T0, (struct said){.up_s = 4000});
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0), ahead == 0 ? 0 : 3);
        greet(2, "c", T0, (struct said){.up_s = 4000});
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0), ahead == 0 ? 0 : 1);
    }
}

/* Servers that started a second ago, or as long ago as is needed, and whose clocks were stepped
 * alike since. A quorum of them would confirm each other. Fewer do not, whatever our own quorum is,
 * and not even by a second. */
TEST(fewer_wrong_clocks_than_our_quorum_confirm_none) {
    static const struct { unsigned nodes, quorum; } table[] = {{3, 2}, {5, 3}, {5, 4}, {3, 3}};
    static const struct said wrongs[] = {{.up_s = 3601, .ahead_ns = 3600 * S}, {.up_s = 32, .ahead_ns = 900 * MS}};
    for (size_t i = 0; i < 2 * sizeof table / sizeof table[0]; i++) {
        const unsigned nodes = table[i / 2].nodes, quorum = table[i / 2].quorum;
        const redlock_nodes wrong = redlock_nodes_all(quorum - 1);
        start(STRICT, false, nodes);
        guard.plan.quorum = quorum;
        for (unsigned node = 0; node < nodes; node++) {
            const bool is_wrong = (wrong & REDLOCK_NODE(node)) != 0;
            greet(node, "a", T0, is_wrong ? wrongs[i % 2] : (struct said){.up_s = 4000});
            assert_int_equal(redlock_guard_may_not_vote(&guard, T0) & wrong, wrong & redlock_nodes_all(node + 1));
        }
    }
}

/* Each clock is compared with the third nearest of five, in whatever order they were read. Compared
 * with the fourth, two of these nodes would be too far off to vote. */
TEST(the_quorum_nearest_clocks_are_the_same_in_all_orders) {
    static const int64_t ahead_ms[] = {0, 200, 400, 800, 1090};
    for (unsigned order = 0; order < 120; order++) {
        unsigned left[] = {0, 1, 2, 3, 4};
        start(STRICT, false, 5);
        for (unsigned count = 5, rest = order; count > 0; count--) {
            const unsigned place = rest % count, node = left[place];
            rest /= count;
            left[place] = left[count - 1];
            greet(node, "a", T0, (struct said){.up_s = 32, .ahead_ns = ahead_ms[node] * MS});
        }
        assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 0);
    }
}

/* The last one is within a second of one other: of four, that is no quorum. */
TEST(a_clock_that_is_near_fewer_than_a_quorum_is_not_confirmed) {
    static const int64_t ahead_ms[] = {0, 200, 900, 1850};
    start(STRICT, false, 4);
    for (unsigned node = 0; node < 4; node++) {
        greet(node, "a", T0, (struct said){.up_s = 4000, .ahead_ns = ahead_ms[node] * MS});
    }
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 8);
}

/* Its clock is known from the run before. The clock that this uptime comes from may be another
 * one. */
TEST(an_uptime_without_a_clock_says_nothing) {
    for (int no_clock = 0; no_clock <= 1; no_clock++) {
        start(OBSERVED, false, 3);
        for (unsigned i = 0; i < 3; i++) {
            greet(i, "a", T0, (struct said){0});
        }
        greet_two("a", T0 + 100 * S);
        assert_int_equal(greet(0, "b", T0 + 100 * S, (struct said){.no_clock = no_clock != 0, .up_s = 1000}), no_clock);
    }
}

/* The uptime comes from a clock that has been set back since. The clock is right now; the uptime
 * was not. */
TEST(an_uptime_is_valid_until_its_clock_steps) {
    start(STRICT, true, 3);
    greet(1, "b", T0, (struct said){0});
    greet(2, "c", T0, (struct said){0});
    greet(0, "a", T0, (struct said){.up_s = 1000, .ahead_ns = 120 * S});
    expect_quarantine(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
    assert_is(sample(0, T0 + S, 0), REDLOCK_CLOCK_BACKWARD);
    greet(2, "c", T0 + 2 * S, (struct said){0});
    expect_quarantine(0, T0 + 2 * S, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
}
