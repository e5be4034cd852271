/* Quarantines: each row of the table in core/guard.h, and the limits of what nodes may tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "greetings.h"

static void it_is_on_with_either_guard(void **state) {
    (void)state;
    start(OFF, false, 3);
    assert_false(redlock_guard_is_on(&guard.plan));
    start(OFF, true, 3);
    assert_true(redlock_guard_is_on(&guard.plan));
    start(OBSERVED, false, 3);
    assert_true(redlock_guard_is_on(&guard.plan));
    start(STRICT, false, 3);
    assert_true(redlock_guard_is_on(&guard.plan));
    assert_int_equal(redlock_guard_barred(&guard, T0), 0);
}

static void a_first_greeting_bars_where_it_is_strict(void **state) {
    (void)state;
    for (int restart = OFF; restart <= STRICT; restart++) {
        for (int first_boot = 0; first_boot <= 1; first_boot++) {
            start((redlock_restart_guard)restart, false, 3);
            guard.plan.first_boot = first_boot != 0;
            const bool bars = restart == STRICT && !first_boot;
            assert_int_equal(greet(1, "a", T0, (struct said){0}), bars ? 2 : 0);
            assert_false(jumped);
            if (bars) {
                expect_barred(1, T0, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
            } else {
                expect_free(1, T0);
            }
            expect_free(0, T0);
            expect_free(2, T0);
        }
    }
}

static void another_run_bars_unless_off(void **state) {
    (void)state;
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
                expect_barred(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
            }
        }
    }
}

static void an_id_that_does_not_fit_is_none(void **state) {
    (void)state;
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
    assert_int_equal(greet(0, "q", T0, (struct said){0}), 1); /* another was there meanwhile */
    assert_int_equal(greet(0, "", T0, (struct said){0}), 1);
    static const char *const shorter[] = {"abc", "ab", "a"}; /* nothing of a longer one is left */
    for (size_t i = 0; i < sizeof shorter / sizeof shorter[0]; i++) {
        assert_int_equal(greet(0, shorter[i], T0, (struct said){0}), 1);
        assert_int_equal(greet(0, shorter[i], T0, (struct said){0}), 0);
    }
}

static void the_same_run_is_as_it_was(void **state) {
    (void)state;
    start(STRICT, false, 3);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "a", T0 + S, (struct said){.synced = true}), 0);
    expect_barred(0, T0 + S, T0 + LENGTH_NS, REDLOCK_GUARD_UNKNOWN);
    assert_int_equal(greet(0, "a", T0 + 100 * S, (struct said){0}), 0);
    expect_free(0, T0 + 100 * S);
    assert_int_equal(greet(0, "b", T0 + 200 * S, (struct said){0}), 1);
    assert_int_equal(greet(0, "c", T0 + 201 * S, (struct said){0}), 1); /* again: the latest counts */
    expect_barred(0, T0 + 201 * S, T0 + 201 * S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
}

static void a_node_that_synced_always_forgot_nothing(void **state) {
    (void)state;
    static const bool table[][3] = {
        {false, false, true}, {false, true, true}, {true, false, true}, {true, true, false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        start(OBSERVED, false, 3);
        greet(0, "a", T0, (struct said){.synced = table[i][0]});
        assert_int_equal(greet(0, "b", T0 + S, (struct said){.synced = table[i][1]}), table[i][2]);
        assert_int_equal(redlock_guard_barred(&guard, T0 + S), table[i][2]);
    }
    start(STRICT, false, 3);
    assert_int_equal(greet(0, "a", T0, (struct said){.synced = true}), 0);
    expect_free(0, T0);
}

/* What was forgotten at one restart is not remembered by the next. */
static void a_synced_restart_does_not_lift_what_there_is(void **state) {
    (void)state;
    start(OBSERVED, false, 3);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "b", T0 + S, (struct said){.synced = true}), 1);
    assert_int_equal(greet(0, "c", T0 + 2 * S, (struct said){.synced = true}), 0);
    expect_barred(0, T0 + 2 * S, T0 + S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
}

static void a_step_forward_bars_with_the_clock_guard(void **state) {
    (void)state;
    for (int clock = 0; clock <= 1; clock++) {
        start(OFF, clock != 0, 3);
        greet(0, "a", T0, (struct said){0});
        int64_t step_ns = 7;
        struct redlock_clock_sample reading = told(T0 + S, 120 * S);
        const enum redlock_clock_verdict verdict = redlock_guard_sample(&guard, 0, &reading, T0 + S, &step_ns);
        if (!clock) {
            assert_int_equal(verdict, REDLOCK_CLOCK_STEADY);
            assert_int_equal(step_ns, 0);
            expect_free(0, T0 + S);
            continue;
        }
        assert_int_equal(verdict, REDLOCK_CLOCK_FORWARD);
        assert_int_equal(step_ns, 120 * S);
        assert_int_equal(guard.nodes[0].step_ns, 120 * S);
        expect_barred(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
        assert_int_equal(sample(0, T0 + 2 * S, 120 * S), REDLOCK_CLOCK_STEADY);
        expect_barred(0, T0 + 2 * S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
        assert_int_equal(sample(0, T0 + 3 * S, 130 * S), REDLOCK_CLOCK_FORWARD); /* the latest counts */
        expect_barred(0, T0 + 3 * S, T0 + 3 * S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
        assert_int_equal(guard.nodes[0].step_ns, 10 * S);
        assert_int_equal(sample(0, T0 + 4 * S, 0), REDLOCK_CLOCK_BACKWARD);
        expect_barred(0, T0 + 4 * S, T0 + 3 * S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
    }
}

static void a_step_is_seen_at_a_greeting_and_over_a_restart(void **state) {
    (void)state;
    start(OBSERVED, true, 3);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "a", T0 + S, (struct said){.ahead_ns = 120 * S}), 1);
    assert_true(jumped);
    expect_barred(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
    assert_int_equal(greet(0, "b", T0 + 2 * S, (struct said){.ahead_ns = 240 * S}), 1);
    assert_true(jumped);
    expect_barred(0, T0 + 2 * S, T0 + 2 * S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
    assert_int_equal(greet(0, "b", T0 + 3 * S, (struct said){0}), 0);
    assert_false(jumped);
    start(OBSERVED, false, 3);
    greet(0, "a", T0, (struct said){0});
    assert_int_equal(greet(0, "a", T0 + S, (struct said){.ahead_ns = 120 * S}), 0);
    assert_false(jumped);
}

static void what_ends_last_is_why(void **state) {
    (void)state;
    start(STRICT, true, 3);
    greet(0, "a", T0, (struct said){0});
    sample(0, T0 + S, 120 * S);
    expect_barred(0, T0 + S, T0 + S + LENGTH_NS, REDLOCK_GUARD_CLOCK_STEP);
    greet(0, "b", T0 + 2 * S, (struct said){.ahead_ns = 120 * S});
    expect_barred(0, T0 + 2 * S, T0 + 2 * S + LENGTH_NS, REDLOCK_GUARD_RESTARTED);
}

/* Two of three clocks are 1 s apart, one is ahead of them: by whichever node it is told first. */
static void a_clock_ahead_of_the_median_bars_in_whichever_order(void **state) {
    (void)state;
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        start(OFF, true, 5);
        redlock_nodes began = 0;
        for (unsigned k = 0; k < 3; k++) {
            const int64_t ahead_ns[] = {0, S, 3 * S};
            began |= greet(orders[i][k], "a", T0, (struct said){.ahead_ns = ahead_ns[orders[i][k]]});
            assert_false(jumped);
            assert_int_equal(began, k == 2 ? 4 : 0);
        }
        expect_barred(2, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
        assert_int_equal(guard.nodes[2].step_ns, 2 * S);
        expect_free(0, T0);
        expect_free(1, T0);
        assert_int_equal(greet(3, "a", T0, (struct said){.ahead_ns = S + MS}), 0);          /* by a millisecond */
        assert_int_equal(greet(2, "a", T0 + S, (struct said){.ahead_ns = 3 * S}), 0);       /* but once */
        assert_int_equal(greet(4, "a", T0, (struct said){.ahead_ns = 2 * S + 2 * MS}), 16); /* more than a second */
    }
    start(OBSERVED, false, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(greet(i, "a", T0, (struct said){.ahead_ns = i * 10 * S}), 0);
    }
}

static void ahead_is_more_than_a_second_above_the_lower_median(void **state) {
    (void)state;
    for (unsigned count = 2; count <= 4; count++) {
        for (int64_t more_ns = 0; more_ns <= 1000; more_ns += 1000) {
            start(OFF, true, 3 + count / 4);
            for (unsigned i = 0; i < count - 1; i++) {
                assert_int_equal(greet(i, "a", T0, (struct said){.ahead_ns = i == 2 ? S : 0}), 0);
            }
            assert_int_equal(greet(count - 1, "a", T0, (struct said){.ahead_ns = S + more_ns}),
                             more_ns == 0 ? 0 : REDLOCK_NODE(count - 1));
        }
    }
}

static void the_first_reading_may_come_with_a_vote(void **state) {
    (void)state;
    start(OFF, true, 3);
    for (unsigned i = 0; i < 3; i++) {
        greet(i, "a", T0, (struct said){.no_clock = true});
    }
    const struct redlock_clock_sample silent = {.sent_ns = T0, .read_ns = T0};
    int64_t step_ns = 7;
    assert_int_equal(redlock_guard_sample(&guard, 0, &silent, T0, &step_ns), REDLOCK_CLOCK_STEADY);
    assert_int_equal(step_ns, 0);
    assert_int_equal(sample(0, T0, 0), REDLOCK_CLOCK_STEADY);
    assert_int_equal(sample(1, T0, 0), REDLOCK_CLOCK_STEADY);
    const struct redlock_clock_sample ahead = told(T0, 2 * S);
    assert_int_equal(redlock_guard_sample(&guard, 2, &ahead, T0, &step_ns), REDLOCK_CLOCK_FORWARD);
    assert_int_equal(step_ns, 2 * S);
    expect_barred(2, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    assert_int_equal(guard.ahead, 4);
    assert_int_equal(sample(2, T0, 2 * S), REDLOCK_CLOCK_STEADY);
    assert_int_equal(guard.ahead, 0); /* but once */
}

/* The reading of one may show that another is ahead. */
static void a_vote_may_give_another_node_away(void **state) {
    (void)state;
    start(OFF, true, 3);
    greet(0, "a", T0, (struct said){.ahead_ns = 7 * S});
    greet(1, "b", T0, (struct said){.no_clock = true});
    assert_int_equal(sample(1, T0, 0), REDLOCK_CLOCK_STEADY);
    assert_int_equal(guard.ahead, 1);
    expect_barred(0, T0, T0 + LENGTH_NS, REDLOCK_GUARD_CLOCK_AHEAD);
    expect_free(1, T0);
}

static void many_nodes_and_far_times(void **state) {
    (void)state;
    redlock_guard_init(&guard, &(struct redlock_guard_plan){.restart = STRICT,
                                                            .clock = true,
                                                            .ttl_max_ms = REDLOCK_TTL_MS_MAX,
                                                            .node_count = REDLOCK_NODES_MAX});
    const int64_t far_ns = INT64_MAX - S;
    for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
        const struct redlock_greeting greeting = {
            .run_id = "a",
            .uptime_s = i % 2 == 0 ? INT64_MAX : INT64_MIN,
            .clock = {.sent_ns = i, .read_ns = far_ns, .server_us = i % 3 == 0 ? INT64_C(9000000000000000) : 1}};
        assert_int_equal(redlock_guard_greet(&guard, i, &greeting, far_ns, &jumped) & REDLOCK_NODE(i), REDLOCK_NODE(i));
    }
    assert_int_equal(redlock_guard_barred(&guard, far_ns), redlock_nodes_all(REDLOCK_NODES_MAX));
    assert_int_equal(redlock_guard_until_ns(&guard, 30, far_ns), REDLOCK_NEVER_NS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_on_with_either_guard),
        cmocka_unit_test(a_first_greeting_bars_where_it_is_strict),
        cmocka_unit_test(another_run_bars_unless_off),
        cmocka_unit_test(an_id_that_does_not_fit_is_none),
        cmocka_unit_test(the_same_run_is_as_it_was),
        cmocka_unit_test(a_node_that_synced_always_forgot_nothing),
        cmocka_unit_test(a_synced_restart_does_not_lift_what_there_is),
        cmocka_unit_test(a_step_forward_bars_with_the_clock_guard),
        cmocka_unit_test(a_step_is_seen_at_a_greeting_and_over_a_restart),
        cmocka_unit_test(what_ends_last_is_why),
        cmocka_unit_test(a_clock_ahead_of_the_median_bars_in_whichever_order),
        cmocka_unit_test(ahead_is_more_than_a_second_above_the_lower_median),
        cmocka_unit_test(the_first_reading_may_come_with_a_vote),
        cmocka_unit_test(a_vote_may_give_another_node_away),
        cmocka_unit_test(many_nodes_and_far_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
