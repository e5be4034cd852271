/* Quarantines: each row of the table in core/guard.h, and the limits of what nodes may say. */
#include "greetings.h"
#include "test.h"

TEST(it_is_on_with_either_guard) {
    start(OFF, false, 3);
    assert_false(redlock_guard_is_on(&guard.plan));
    start(OFF, true, 3);
    assert_true(redlock_guard_is_on(&guard.plan));
    start(OBSERVED, false, 3);
    assert_true(redlock_guard_is_on(&guard.plan));
    start(STRICT, false, 3);
    assert_true(redlock_guard_is_on(&guard.plan));
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0), 0);
}

TEST(a_first_greeting_under_strict_starts_a_quarantine) {
    for (int restart = OFF; restart <= STRICT; restart++) {
        for (int first_boot = 0; first_boot <= 1; first_boot++) {
            start((redlock_restart_guard)restart, false, 3);
            guard.plan.first_boot = first_boot != 0;
            const bool quarantined = restart == STRICT && !first_boot;
            assert_int_equal(greet(1, "a", T0, (struct said){0}), quarantined ? 2 : 0);
            assert_false(jumped);
            if (quarantined) {
                expect_quarantine(1, T0, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
            } else {
                expect_free(1, T0);
            }
            expect_free(0, T0);
            expect_free(2, T0);
        }
    }
}

TEST(another_run_starts_a_quarantine_unless_off) {
    static const char *const runs[][2] = {{"a", "b"}, {"a", ""}, {"", "a"}, {"", ""}, {"a", "ab"}, {"ab", "a"}};
    for (int restart = OFF; restart <= STRICT; restart++) {
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
            start((redlock_restart_guard)restart, false, 3);
            guard.plan.first_boot = true; /* that was the first connection only */
            greet(0, runs[i][0], T0, (struct said){0});
            expect_free(0, T0);
            assert_int_equal(greet(0, runs[i][1], T0 + S, (struct said){0}), restart == OFF ? 0 : 1);
            if (restart == OFF) {
                expect_free(0, T0 + S);
            } else {
                expect_quarantine(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
            }
        }
    }
}

TEST(an_id_that_does_not_fit_is_none) {
    char run_id[2 * REDLOCK_RUN_ID_SIZE] = {0};
    start(OBSERVED, false, 3);
    memset(run_id, 'x', REDLOCK_RUN_ID_SIZE - 1);
    greet(0, run_id, T0, (struct said){0});
    assert_int_equal(greet(0, run_id, T0, (struct said){0}), 0);
    run_id[REDLOCK_RUN_ID_SIZE - 1] = 'x';
    assert_int_equal(greet(0, run_id, T0, (struct said){0}), 1);
    assert_int_equal(greet(0, run_id, T0, (struct said){0}), 1);
    memset(run_id, 'x', sizeof run_id - 1);
    assert_int_equal(greet(0, run_id, T0, (struct said){0}), 1);
    assert_int_equal(greet(0, "q", T0, (struct said){0}), 1);
    assert_int_equal(greet(0, run_id, T0, (struct said){0}), 1);
    assert_int_equal(greet(0, "q", T0, (struct said){0}), 1); /* another run was there in between */
    assert_int_equal(greet(0, "", T0, (struct said){0}), 1);
    static const char *const shorter[] = {"abc", "ab", "a"}; /* no trace of the longer id */
    for (size_t i = 0; i < sizeof shorter / sizeof shorter[0]; i++) {
        assert_int_equal(greet(0, shorter[i], T0, (struct said){0}), 1);
        assert_int_equal(greet(0, shorter[i], T0, (struct said){0}), 0);
    }
}

TEST(the_same_run_is_as_it_was) {
    start(STRICT, false, 3);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "a", T0 + S, (struct said){0}), 0);
    expect_quarantine(0, T0 + S, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
    assert_int_equal(greet(0, "a", T0 + 100 * S, (struct said){0}), 0);
    expect_free(0, T0 + 100 * S);
    assert_int_equal(greet(0, "b", T0 + 200 * S, (struct said){0}), 1);
    /* Again: the latest counts. */
    assert_int_equal(greet(0, "c", T0 + 201 * S, (struct said){0}), 1);
    expect_quarantine(0, T0 + 201 * S, T0 + 201 * S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
}

/* A node that is met a day later and has been up for a second may have granted many locks. */
TEST(a_first_boot_ends_after_ttl_max) {
    start(STRICT, false, 3);
    guard.plan.first_boot = true;
    assert_int_equal(greet(0, "a", T0 + TTL_MAX_MS * MS - 1, (struct said){0}), 0);
    expect_free(0, T0 + TTL_MAX_MS * MS - 1);
    assert_int_equal(greet(1, "b", T0 + TTL_MAX_MS * MS, (struct said){.up_s = 1}), 2);
    expect_quarantine(1, T0 + TTL_MAX_MS * MS, T0 + TTL_MAX_MS * MS + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
}

TEST(a_step_forward_starts_a_quarantine_with_the_clock_guard) {
    for (int clock = 0; clock <= 1; clock++) {
        start(OFF, clock != 0, 1); /* one clock is compared with no other */
        greet(0, "a", T0, (struct said){0});
        int64_t step_ns = 7;
        struct redlock_clock_sample reading = reading_at(T0 + S, 120 * S);
        const enum redlock_clock_verdict verdict = redlock_guard_sample(&guard, 0, &reading, T0 + S, &step_ns);
        if (!clock) {
            assert_is(verdict, REDLOCK_CLOCK_STEADY);
            assert_int_equal(step_ns, 0);
            expect_free(0, T0 + S);
            continue;
        }
        assert_is(verdict, REDLOCK_CLOCK_FORWARD);
        assert_int_equal(step_ns, 120 * S);
        assert_int_equal(guard.nodes[0].step_ns, 120 * S);
        expect_quarantine(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
        assert_is(sample(0, T0 + 2 * S, 120 * S), REDLOCK_CLOCK_STEADY);
        expect_quarantine(0, T0 + 2 * S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
        /* The latest counts. */
        assert_is(sample(0, T0 + 3 * S, 130 * S), REDLOCK_CLOCK_FORWARD);
        expect_quarantine(0, T0 + 3 * S, T0 + 3 * S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
        assert_int_equal(guard.nodes[0].step_ns, 10 * S);
        assert_is(sample(0, T0 + 4 * S, 0), REDLOCK_CLOCK_BACKWARD);
        expect_quarantine(0, T0 + 4 * S, T0 + 3 * S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
    }
}

TEST(a_step_is_seen_at_a_greeting_and_over_a_restart) {
    start(OBSERVED, true, 1);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "a", T0 + S, (struct said){.ahead_ns = 120 * S}), 1);
    assert_true(jumped);
    expect_quarantine(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
    assert_int_equal(greet(0, "b", T0 + 2 * S, (struct said){.ahead_ns = 240 * S}), 1);
    assert_true(jumped);
    expect_quarantine(0, T0 + 2 * S, T0 + 2 * S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
    assert_int_equal(greet(0, "b", T0 + 3 * S, (struct said){0}), 0);
    assert_false(jumped);
    start(OBSERVED, false, 3);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "a", T0 + S, (struct said){.ahead_ns = 120 * S}), 0);
    assert_false(jumped);
}

TEST(the_reason_is_the_quarantine_that_ends_last) {
    start(STRICT, true, 1);
    greet(0, "a", T0, (struct said){0});
    sample(0, T0 + S, 120 * S);
    expect_quarantine(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
    greet(0, "b", T0 + 2 * S, (struct said){.ahead_ns = 120 * S});
    expect_quarantine(0, T0 + 2 * S, T0 + 2 * S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
}

/* --- Clocks that are compared: fewer than a quorum of them are wrong. --- */

/* The error of the clock of a wrong node. */
enum wrongs { AHEAD, BEHIND, EITHER, SCATTERED, WRONGS };

static int64_t wrong_by_ns(enum wrongs wrongs, unsigned node) {
    switch (wrongs) {
    case BEHIND:
        return -120 * S;
    case EITHER:
        return node % 2 == 0 ? 120 * S : -120 * S;
    case SCATTERED:
        return (2 + 3 * (int64_t)node) * S;
    default:
        return 120 * S;
    }
}

/* The clocks of the first `wrong` nodes are off. In this order of greetings no node that is ahead
 * may ever vote, and the right nodes soon may. */
static void expect_order_is_safe(unsigned count, const unsigned *order, unsigned wrong, enum wrongs wrongs) {
    const unsigned quorum = redlock_quorum(count);
    unsigned right = 0;
    start(OFF, true, count);
    for (unsigned k = 0; k < count; k++) {
        const unsigned node = order[k];
        greet(node, "a", T0, (struct said){.ahead_ns = node < wrong ? wrong_by_ns(wrongs, node) : 0});
        right += node >= wrong;
        const redlock_nodes may_not_vote = redlock_guard_may_not_vote(&guard, T0);
        for (unsigned i = 0; i <= k; i++) {
            const bool is_ahead = order[i] < wrong && wrong_by_ns(wrongs, order[i]) > 0;
            const bool may_vote = (may_not_vote & REDLOCK_NODE(order[i])) == 0;
            assert_false(is_ahead && may_vote);
            assert_true(right < quorum || order[i] < wrong || may_vote);
        }
    }
}

/* Heap's algorithm: all orders, each one swap from the last. */
static void for_all_orders(unsigned count, unsigned wrong, enum wrongs wrongs, unsigned *tried) {
    unsigned order[7], turn[7] = {0};
    for (unsigned i = 0; i < count; i++) {
        order[i] = i;
    }
    expect_order_is_safe(count, order, wrong, wrongs);
    ++*tried;
    for (unsigned i = 0; i < count;) {
        if (turn[i] == i) {
            turn[i++] = 0;
            continue;
        }
        const unsigned other = i % 2 == 0 ? 0 : turn[i], swapped = order[i];
        order[i] = order[other];
        order[other] = swapped;
        expect_order_is_safe(count, order, wrong, wrongs);
        ++*tried;
        turn[i]++;
        i = 0;
    }
}

TEST(no_wrong_clock_passes_in_any_order) {
    for (unsigned count = 2; count <= 7; count++) {
        unsigned tried = 0, orders = 1;
        for (unsigned i = 2; i <= count; i++) {
            orders *= i;
        }
        for (unsigned wrong = 1; wrong < redlock_quorum(count); wrong++) {
            for (int wrongs = 0; wrongs < WRONGS; wrongs++) {
                for_all_orders(count, wrong, (enum wrongs)wrongs, &tried);
            }
        }
        assert_int_equal(tried, orders * WRONGS * (redlock_quorum(count) - 1));
    }
}

TEST(ahead_is_more_than_a_second_with_the_errors_of_both) {
    for (int64_t more_ns = 0; more_ns <= 1000; more_ns += 1000) {
        start(OFF, true, 2);
        greet(0, "a", T0, (struct said){0});
        expect_quarantine(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_UNCONFIRMED);
        assert_int_equal(redlock_guard_may_not_vote_by_clock(&guard, T0), 0);
        start(OFF, true, 2);
        greet(0, "a", T0, (struct said){0});
        const int64_t errors_ns = 2 * guard.nodes[0].clock.error_ns;
        const int64_t ahead_ns = (S - errors_ns) / 1000 * 1000 + more_ns;
        assert_int_equal(greet(1, "b", T0, (struct said){.ahead_ns = ahead_ns}), more_ns == 0 ? 0 : 2);
        expect_free(0, T0);
        if (more_ns == 0) {
            expect_free(1, T0);
        } else {
            assert_int_equal(redlock_guard_may_not_vote_by_clock(&guard, T0), 2);
            assert_int_equal(guard.nodes[1].step_ns, ahead_ns + errors_ns);
            expect_quarantine(1, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
        }
    }
    /* A round trip whose error makes the difference exactly one second. */
    start(OFF, true, 2);
    greet(0, "a", T0, (struct said){0});
    const struct redlock_greeting to_the_second = {
        .run_id = "b",
        .clock = {.sent_ns = T0, .read_ns = T0 + 199600, .server_us = EPOCH_US + (T0 + S - 3000) / 1000}};
    assert_int_equal(redlock_guard_greet(&guard, 1, &to_the_second, T0, &jumped), 0);
    expect_free(1, T0);
    start(OBSERVED, false, 3); /* without the clock guard, clocks are not compared */
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(greet(i, "a", T0, (struct said){.ahead_ns = i * 10 * S}), 0);
        expect_free(i, T0);
    }
}

/* Two of three clocks are behind. The third seems to be ahead until the others are known. */
TEST(a_clock_is_compared_again_with_each_that_is_read) {
    start(OFF, true, 5);
    greet(0, "a", T0, (struct said){0});
    greet(1, "b", T0, (struct said){.ahead_ns = -60 * S});
    assert_int_equal(greet(2, "c", T0, (struct said){.ahead_ns = -60 * S}), 1);
    expect_free(1, T0);
    assert_int_equal(redlock_guard_may_not_vote_by_clock(&guard, T0), 1);
    assert_int_equal(greet(3, "d", T0 + S, (struct said){0}), 8);
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + S), 1 | 8);
    assert_int_equal(greet(4, "e", T0 + 2 * S, (struct said){0}), 0);
    assert_int_equal(redlock_guard_may_not_vote(&guard, T0 + 2 * S), 0);
}

/* Two clocks are behind, and one of them is set right: now the first clock agrees with a quorum. */
TEST(a_reading_of_a_confirmed_clock_may_confirm_another) {
    start(OFF, true, 3);
    greet(0, "a", T0, (struct said){0});
    for (unsigned i = 1; i <= 2; i++) {
        greet(i, "b", T0, (struct said){.no_clock = true});
        sample(i, T0, -60 * S);
        expect_free(i, T0);
    }
    expect_quarantine(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    assert_is(sample(1, T0 + S, 0), REDLOCK_CLOCK_FORWARD);
    expect_free(0, T0 + S);
}

/* It was ahead when we met it, so keys of earlier votes may have expired too early. That it is
 * right now proves nothing. */
TEST(a_clock_that_steps_is_never_confirmed) {
    start(OFF, true, 3);
    greet(0, "a", T0, (struct said){.ahead_ns = 60 * S});
    assert_is(sample(0, T0 + S, 0), REDLOCK_CLOCK_BACKWARD);
    greet(1, "b", T0 + 2 * S, (struct said){0});
    greet(2, "c", T0 + 2 * S, (struct said){0});
    expect_free(1, T0 + 2 * S);
    expect_quarantine(0, T0 + 2 * S, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_UNCONFIRMED);
}

/* Only keys that it granted before the first reading can have expired too early. */
TEST(a_clock_that_is_ahead_may_vote_after_a_quarantine) {
    start(OFF, true, 3);
    greet(0, "a", T0, (struct said){.ahead_ns = 60 * S});
    greet(1, "b", T0 + S, (struct said){0});
    expect_quarantine(0, T0 + S, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    sample(1, T0 + LENGTH_NS, 0);
    assert_int_equal(greet(2, "c", T0 + LENGTH_NS, (struct said){0}), 0);
    expect_free(0, T0 + LENGTH_NS);
    assert_int_equal(guard.unjudged, 0);
}

/* Node 0 was ahead and is right again; node 1 is ahead now. Never more than one at a time. */
TEST(clocks_that_were_not_read_at_one_time_are_not_compared) {
    for (int late = 0; late <= 1; late++) {
        const int64_t now_ns = T0 + 3 * S + late;
        start(OFF, true, 3);
        greet(0, "a", T0, (struct said){.ahead_ns = 60 * S});
        greet(1, "b", now_ns, (struct said){.ahead_ns = 60 * S});
        assert_int_equal(redlock_guard_may_not_vote(&guard, now_ns), late ? 3 : 0);
        sample(0, now_ns, 0);
        assert_int_equal(redlock_guard_may_not_vote(&guard, now_ns), late ? 3 : 0);
    }
}

TEST(the_first_reading_may_come_with_a_vote) {
    start(OFF, true, 3);
    for (unsigned i = 0; i < 3; i++) {
        greet(i, "a", T0, (struct said){.no_clock = true});
        expect_quarantine(i, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_UNCONFIRMED);
    }
    const struct redlock_clock_sample silent = {.sent_ns = T0, .read_ns = T0};
    int64_t step_ns = 7;
    assert_is(redlock_guard_sample(&guard, 0, &silent, T0, &step_ns), REDLOCK_CLOCK_STEADY);
    assert_int_equal(step_ns, 0);
    assert_is(sample(0, T0, 0), REDLOCK_CLOCK_STEADY);
    expect_quarantine(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_UNCONFIRMED);
    assert_is(sample(1, T0, 0), REDLOCK_CLOCK_STEADY);
    expect_free(0, T0);
    expect_free(1, T0);
    assert_is(sample(2, T0, 2 * S), REDLOCK_CLOCK_STEADY);
    expect_quarantine(2, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    assert_int_equal(guard.ahead, 4);
    assert_is(sample(2, T0, 2 * S), REDLOCK_CLOCK_STEADY);
    assert_int_equal(guard.ahead, 0); /* that changes nothing */
}

/* Its quarantine ended without a reading, and it may have jumped a moment ago. The reading comes
 * with a vote or with a greeting. */
TEST(a_late_first_reading_starts_another_quarantine) {
    const int64_t late_ns = T0 + 2 * LENGTH_NS;
    start(OFF, true, 3);
    for (unsigned i = 0; i < 3; i++) {
        greet(i, "a", T0, (struct said){.no_clock = true});
    }
    for (unsigned i = 0; i < 3; i++) {
        greet(i, "a", late_ns, (struct said){.ahead_ns = i == 0 ? 3600 * S : 0});
    }
    expect_quarantine(0, late_ns, late_ns + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    expect_free(1, late_ns);
    expect_free(2, late_ns);
    start(OFF, true, 3);
    greet(0, "a", T0, (struct said){.no_clock = true});
    greet(1, "b", T0, (struct said){.no_clock = true});
    expect_free(0, late_ns);
    assert_is(sample(0, late_ns, 60 * S), REDLOCK_CLOCK_STEADY);
    expect_quarantine(0, late_ns, late_ns + LENGTH_NS, REDLOCK_GUARD_CLOCK_UNCONFIRMED);
}

/* A reading of one clock may show that another clock is ahead. */
TEST(a_vote_may_show_that_another_node_is_ahead) {
    start(OFF, true, 3);
    greet(0, "a", T0, (struct said){.ahead_ns = 7 * S});
    greet(1, "b", T0, (struct said){.no_clock = true});
    assert_is(sample(1, T0, 0), REDLOCK_CLOCK_STEADY);
    assert_int_equal(guard.ahead, 1);
    expect_quarantine(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    expect_free(1, T0);
}

TEST(many_nodes_and_far_times) {
    redlock_guard_init(&guard, &(struct redlock_guard_plan){.restart = STRICT,
                                                            .clock = true,
                                                            .ttl_max_ms = REDLOCK_TTL_MS_MAX,
                                                            .node_count = REDLOCK_NODES_MAX,
                                                            .quorum = redlock_quorum(REDLOCK_NODES_MAX)});
    const int64_t far_ns = INT64_MAX - S;
    for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
        const struct redlock_greeting greeting = {
            .run_id = "a",
            .uptime_s = i % 2 == 0 ? INT64_MAX : INT64_MIN,
            .clock = {.sent_ns = i, .read_ns = far_ns, .server_us = i % 3 == 0 ? INT64_C(9000000000000000) : 1}};
        assert_int_equal(redlock_guard_greet(&guard, i, &greeting, far_ns, &jumped) & REDLOCK_NODE(i), REDLOCK_NODE(i));
    }
    assert_int_equal(redlock_guard_may_not_vote(&guard, far_ns), redlock_nodes_all(REDLOCK_NODES_MAX));
    assert_int_equal(redlock_guard_until_ns(&guard, 30, far_ns), REDLOCK_NEVER_NS);
}
