/* When a waiter asks again, looks, yields and polls: the rows of core/waiter.h. */
#include "core/waiter.h"
#include "life.h"

#define R_MS 2500 /* a quarter of the ttl */

#define VIEW(kind, id, pttl, before)                                                                                   \
    (struct redlock_queue_view) {                                                                                      \
        .holder = REDLOCK_HOLDER_##kind, .holder_id = (id), .pttl_ms = (pttl), .rank = (before)                        \
    }

static void begin(struct life *life, unsigned n) {
    life_init(life, n);
    life_may_queue(life);
    life->in_line = true;
    life_begin(life);
    life_expect(life, QUEUED, WAITS(redlock_nodes_all(n), 1, ENTERED));
}

/* These nodes answer the current WAIT; all but the last must cause no action. */
static void answer(struct life *life, redlock_nodes nodes, struct redlock_queue_view view) {
    life->view = view;
    for (unsigned i = 0; nodes >> i != 0; i++) {
        if (nodes & REDLOCK_NODE(i)) {
            life_vote(life, i, D);
            if (nodes >> i != 1) {
                life_expect(life, QUEUED, NOTHING);
            }
        }
    }
}

/* The next TIMER is due in this time, in ms; it is the next event. */
static void expect_next(struct life *life, int64_t least_ms, int64_t most_ms) {
    const int64_t next_ms = life_next_ms(life);
    assert_in_range(next_ms - life->at_ms, least_ms, most_ms);
    const bool is_whole = redlock_lease_next_ns(&life->core) == T0 + next_ms * MS;
    life->at_ms = is_whole ? next_ms : next_ms + 1;
}

static bool takes(struct life *life) {
    return life_queue(life)->takes;
}

static void places_are_refreshed_after_a_quarter_of_the_ttl(void **state) {
    (void)state;
    static const struct {
        int32_t ttl_ms, refresh_ms;
    } cases[] = {{4, 1}, {7, 1}, {10, 2}, {400, 100}, {9999, 2499}, {10000, 2500}, {60000, 2500}, {INT32_MAX, 2500}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct life life;
        life_init(&life, 3);
        life_may_queue(&life);
        life.plan.node_timeout_ms = 0;
        life.plan.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
        life.plan.ttl_ms = cases[i].ttl_ms;
        life.in_line = true;
        life_begin(&life);
        assert_int_equal(redlock_waiter_stale_ms(&life.core), 3 * cases[i].refresh_ms);
        assert_int_equal(redlock_waiter_queue_ttl_ms(&life.core), 6 * cases[i].refresh_ms);
        for (unsigned round = 2; round < 50; round++) {
            const int64_t in_ns = redlock_lease_next_ns(&life.core) - life.core.start_ns;
            assert_in_range(in_ns, cases[i].refresh_ms * MS * 9 / 10, cases[i].refresh_ms * MS * 11 / 10);
            life.at_ms = life_next_ms(&life) + 1;
            life_timer(&life);
            life_expect(&life, QUEUED, WAITS(7, round, REFRESHED));
        }
    }
}

static void a_timer_before_its_time_changes_nothing(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    life.at_ms = 2000;
    life_timer(&life);
    life_expect(&life, QUEUED, NOTHING);
}

/* A key that the holder has lost at some node stays free for the holder. */
static void who_is_behind_takes_nothing(void **state) {
    (void)state;
    struct life life;
    begin(&life, 5);
    answer(&life, 7, VIEW(LATER, 9, 60000, 1));
    answer(&life, 24, VIEW(NONE, 0, -2, 0));
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 2, REFRESHED));
    assert_false(takes(&life));
    answer(&life, 31, VIEW(LATER, 9, 60000, 1));
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_timer(&life);
    assert_false(takes(&life));
    /* A holder that has fewer nodes than a quorum is none. */
    answer(&life, 3, VIEW(LATER, 9, 60000, 1));
    answer(&life, 12, VIEW(NONE, 0, -2, 1));
    life_queued(&life, 4, VIEW(DIRECT, 10, 60000, 1));
    life_expect(&life, QUEUED, WAITS(31, 4, REFRESHED));
    assert_true(takes(&life));
    answer(&life, 7, VIEW(LATER, 9, 60000, 1)); /* at once only where it had taken nothing */
    life_expect(&life, QUEUED, NOTHING);
    assert_int_equal(life_queue(&life)->passed_over, 1); /* the same holder all the time */
}

static void silent_nodes_that_change_nothing_are_not_waited_for(void **state) {
    (void)state;
    struct life life;
    begin(&life, 5);
    life_queue(&life)->takes = false;
    answer(&life, 3, VIEW(LATER, 9, 60000, 0));
    life_queued(&life, 2, VIEW(NONE, 0, -2, 0));
    life_expect(&life, QUEUED, NOTHING); /* one more makes it a quorum */
    life_queued(&life, 3, VIEW(LATER, 9, 60000, 0));
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    begin(&life, 5);
    life_queue(&life)->takes = false;
    answer(&life, 7, VIEW(NONE, 0, -2, 0)); /* two more would be no quorum */
    life_expect(&life, QUEUED, WAITS(31, 2, REFRESHED));
}

static void without_answers_of_a_quorum_it_asks_after_the_retry_delay(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    life_vote(&life, 0, U);
    life_queued(&life, 1, VIEW(LATER, 9, 60000, 0));
    life_refuse(&life, 4);
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, 50, 200);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(7, 2, POLLED));
}

/* A round trip that is longer than a quarter of the ttl: another WAIT would make every answer
 * late. */
static void an_open_wait_is_not_overtaken(void **state) {
    (void)state;
    struct life life;
    life_init(&life, 3);
    life_may_queue(&life);
    life.plan.ttl_ms = 100;
    life.in_line = true;
    life_begin(&life);
    expect_next(&life, 50, 50); /* the nodes' time is over */
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(7, 2, REFRESHED));
    life.at_ms = 85;
    life_timer(&life);
    life_expect(&life, QUEUED, NOTHING);
    life_listen(&life);
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, 15, 15);
    life.at_ms = 90;
    answer(&life, 3, VIEW(LATER, 9, 1000, 1));
    assert_true(life_next_ms(&life) < life.at_ms); /* due since then */
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(7, 3, REFRESHED));
}

/* A near node grants long before the others can have answered. */
static void far_nodes_have_time_to_grant(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    life.at_ms = 1;
    life_vote(&life, 0, G);
    assert_true(life_next_ms(&life) > 50);
    life.at_ms = 40;
    life_timer(&life);
    life_expect(&life, QUEUED, NOTHING);
    life_queued(&life, 1, VIEW(DIRECT, 9, 60000, 0));
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, 50, 50); /* twice the slowest answer is longer than nodes may take */
    life.at_ms = 41;
    life_vote(&life, 2, G);
    life_expect(&life, HELD, ACQUIRED(OK));
}

static void who_hears_of_grants_from_now_on_takes_its_places_again(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    answer(&life, 3, VIEW(LATER, 9, 60000, 1));
    life.at_ms = 10;
    life_listen(&life);
    expect_next(&life, 2, 2);
    life_listen(&life); /* another node, a little later */
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(7, 2, REFRESHED));
}

static void the_first_asks_when_the_holders_keys_have_ended_at_a_quorum(void **state) {
    (void)state;
    struct life life;
    begin(&life, 5);
    for (unsigned i = 0; i < 4; i++) {
        life_queued(&life, i, VIEW(LATER, 9, 400 + 100 * i, i != 3));
        life_expect(&life, QUEUED, NOTHING);
    }
    life_vote(&life, 4, U);
    expect_next(&life, 601, 602);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 2, POLLED));
    assert_true(takes(&life));
    answer(&life, 31, VIEW(LATER, 9, 600, 8)); /* far from the first now */
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
}

/* Ten milliseconds later for each who is before it, and it takes nothing yet. */
static void the_next_ones_look_too_when_the_holders_keys_have_ended(void **state) {
    (void)state;
    for (unsigned before = 1; before < 8; before++) {
        struct life life;
        begin(&life, 3);
        answer(&life, 7, VIEW(LATER, 9, 600, before));
        expect_next(&life, 601 + 10 * before, 602 + 10 * before);
        life_timer(&life);
        life_expect(&life, QUEUED, WAITS(7, 2, REFRESHED));
        assert_false(takes(&life));
        life_queued(&life, 0, VIEW(NONE, 0, -2, before));
        life_queued(&life, 1, VIEW(EARLIER, 8, 500, before)); /* split: who looked would take a part again */
        life_vote(&life, 2, U);
        expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    }
}

static void a_key_that_never_ends_is_not_asked_for_early(void **state) {
    (void)state;
    static const int64_t pttls_ms[] = {-1, INT64_MAX, REDLOCK_NEVER_NS / MS - 1, REDLOCK_NEVER_NS / MS - T0 / MS};
    for (unsigned i = 0; i < 4; i++) {
        struct life life;
        begin(&life, 3);
        answer(&life, 7, VIEW(DIRECT, 9, pttls_ms[i], 0));
        expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    }
}

/* Between a sixteenth and a quarter of the time that the holder was seen, 10 to 40 ms at first. */
static void the_first_behind_a_stranger_polls(void **state) {
    (void)state;
    static const struct {
        int64_t seen_ms, least_ms, most_ms;
    } cases[] = {{0, 10, 40}, {160, 10, 40}, {320, 20, 80}, {640, 40, 160}, {2000, 50, 200}, {1000000, 50, 200}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (unsigned seed = 1; seed < 20; seed++) {
            struct life life;
            begin(&life, 3);
            life.core.jitter = seed;
            answer(&life, 3, VIEW(STRANGER, 9, -1, 0));
            life_queue(&life)->holder_since_ns -= cases[i].seen_ms * MS;
            life_vote(&life, 2, U);
            expect_next(&life, cases[i].least_ms, cases[i].most_ms);
            life_timer(&life);
            life_expect(&life, QUEUED, WAITS(7, 2, POLLED));
            assert_true(takes(&life));
        }
    }
}

static void who_is_not_the_first_behind_a_stranger_does_not_poll(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    answer(&life, 7, VIEW(STRANGER, 9, 60000, 1));
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    begin(&life, 3); /* first elsewhere, but not there */
    life_queued(&life, 0, VIEW(STRANGER, 8, 500, 1));
    life_queued(&life, 1, VIEW(LATER, 9, 600, 0));
    life_vote(&life, 2, U);
    expect_next(&life, 601, 602);
    begin(&life, 3); /* a stranger at one node, which is no holder */
    life_queued(&life, 0, VIEW(STRANGER, 8, 60000, 0));
    life_queued(&life, 1, VIEW(LATER, 9, 60000, 0));
    life_vote(&life, 2, U);
    expect_next(&life, 10, 40);
}

/* A lease that one of five nodes has granted, and that looks. */
static void look(struct life *life) {
    begin(life, 5);
    life->at_ms = 5;
    answer(life, 30, VIEW(LATER, 9, 60000, 0));
    life->at_ms = 10;
    life_push(life, 0, 1);
    life_expect(life, QUEUED, NOTHING);
    expect_next(life, 10, 10); /* twice the slowest answer */
    life_timer(life);
    life_expect(life, QUEUED, WAITS(31, 2, LOOKED));
    assert_true(takes(life));
    assert_int_equal(life->core.keys.touched, 31);
}

static void a_split_is_looked_at_after_the_slowest_answer_twice(void **state) {
    (void)state;
    static const int64_t took_ms[] = {0, 1, 3, 40}, look_ms[] = {2, 2, 6, 50};
    for (unsigned i = 0; i < 4; i++) {
        struct life life;
        begin(&life, 3);
        answer(&life, 1, VIEW(LATER, 9, 60000, 0));
        life.at_ms = took_ms[i];
        answer(&life, 2, VIEW(LATER, 9, 60000, 0));
        life_vote(&life, 2, G);
        life_expect(&life, QUEUED, NOTHING);
        expect_next(&life, look_ms[i], look_ms[i]);
        life_timer(&life);
        life_expect(&life, QUEUED, WAITS(7, 2, LOOKED));
    }
}

static void a_look_may_find_the_missing_grants(void **state) {
    (void)state;
    struct life life;
    look(&life);
    life_votes(&life, "GGG");
    life_expect(&life, HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(&life), 20 + END_MS);
}

static void a_grant_that_is_gone_is_no_split(void **state) {
    (void)state;
    struct life life;
    look(&life);
    answer(&life, 31, VIEW(LATER, 9, 60000, 0));
    life_expect(&life, QUEUED, NOTHING);
    assert_int_equal(life_queue(&life)->granted, 0);
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 3, REFRESHED));
    look(&life);
    life_void(&life, 1);
    life_expect(&life, QUEUED, NOTHING);
}

static void behind_another_that_has_a_quorum_it_yields_to_nobody(void **state) {
    (void)state;
    static const enum redlock_queue_holder holders[] = {REDLOCK_HOLDER_LATER, REDLOCK_HOLDER_EARLIER,
                                                        REDLOCK_HOLDER_DIRECT, REDLOCK_HOLDER_STRANGER};
    for (unsigned i = 0; i < 4; i++) {
        struct life life;
        look(&life);
        life_vote(&life, 0, G);
        life.view = VIEW(NONE, 9, 60000, 0);
        life.view.holder = holders[i];
        life_votes(&life, ".DDD");
        life_expect(&life, QUEUED, NOTHING);
        life_vote(&life, 4, U);
        life_expect(&life, QUEUED, .cleanup = 31, .keeps = true, WAITS(31, 3, YIELDED));
        assert_true(life.did.fresh_token);
        assert_false(takes(&life));
        assert_int_equal(life_queue(&life)->granted, 0);
        assert_int_equal(life.core.attempts, 2);
    }
}

static void to_an_earlier_waiter_it_yields_its_nodes(void **state) {
    (void)state;
    struct life life;
    look(&life);
    life_vote(&life, 0, G);
    answer(&life, 6, VIEW(LATER, 9, 60000, 0));
    life_queued(&life, 3, VIEW(EARLIER, 8, 60000, 1));
    life_vote(&life, 4, U);
    life_expect(&life, QUEUED, .cleanup = 31, WAITS(31, 3, YIELDED));
    assert_true(life.did.fresh_token);
    assert_false(takes(&life));
    life_push(&life, 0, 2); /* of the old token */
    assert_int_equal(life_queue(&life)->granted, 0);
    answer(&life, 3, VIEW(EARLIER, 8, 60000, 1));
    answer(&life, 28, VIEW(NONE, 0, -2, 1));
    life_expect(&life, QUEUED, NOTHING); /* it takes nothing yet */
    expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 4, REFRESHED));
    assert_true(takes(&life));
}

static void who_hears_too_few_nodes_gives_its_grants_up(void **state) {
    (void)state;
    struct life life;
    look(&life);
    life_votes(&life, "GUUU");
    life_expect(&life, QUEUED, NOTHING);
    life_queued(&life, 4, VIEW(LATER, 9, 60000, 0));
    life_expect(&life, QUEUED, .cleanup = 31, WAITS(0, 3, YIELDED));
    assert_true(life.did.fresh_token);
    expect_next(&life, 50, 200); /* two of them would hand the lock to each other all the time */
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 4, POLLED));
    assert_true(takes(&life));
    assert_int_equal(life.core.keys.touched, 31);
}

/* An earlier waiter that is dead: those behind it hand the lock to each other. */
static void a_split_lock_is_handed_over_only_twice(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    for (int yields = 0; yields < 5; yields++) {
        const int kind = yields < 4 ? REDLOCK_HOLDER_EARLIER : REDLOCK_HOLDER_LATER;
        life_vote(&life, 0, G);
        life_queued(&life, 1, VIEW(LATER, 9, 60000, 0));
        life_queued(&life, 2, VIEW(DIRECT, 7, 60000, 0));
        expect_next(&life, 2, 2);
        life_timer(&life);
        assert_int_equal(life.did.step, REDLOCK_QUEUE_LOOKED);
        life_vote(&life, 0, G);
        life_queued(&life, 1, VIEW(LATER, 9, 60000, 0));
        life.view.holder = (enum redlock_queue_holder)kind;
        life.view.holder_id += yields < 4;
        life_vote(&life, 2, D);
        assert_int_equal(life.did.step, REDLOCK_QUEUE_YIELDED);
        assert_int_equal(life.did.keeps, yields >= 2);
    }
    assert_int_equal(life_queue(&life)->yields, 1); /* another had a quorum: it is alive */
}

static void with_none_before_it_it_stays_and_looks_again(void **state) {
    (void)state;
    struct life life;
    look(&life);
    life.at_ms = 23;
    life_vote(&life, 0, G);
    answer(&life, 6, VIEW(LATER, 9, 60000, 0));
    life_queued(&life, 3, VIEW(DIRECT, 8, 60000, 1));
    life_expect(&life, QUEUED, NOTHING);
    life_vote(&life, 4, U);
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, 12, 12);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 3, LOOKED));
}

static void a_look_does_not_wait_for_a_node_that_is_slower_than_all_others(void **state) {
    (void)state;
    struct life life;
    look(&life);
    life.at_ms = 23;
    life_vote(&life, 0, G);
    answer(&life, 2, VIEW(DIRECT, 8, 60000, 0));
    answer(&life, 12, VIEW(EARLIER, 7, 60000, 0));
    life_expect(&life, QUEUED, NOTHING);
    expect_next(&life, 6, 6);
    life_timer(&life);
    life_expect(&life, QUEUED, .cleanup = 31, WAITS(31, 3, YIELDED));
}

/* The timer is late, and everything is due at once. */
static void a_late_timer_asks_once(void **state) {
    (void)state;
    struct life life;
    begin(&life, 3);
    answer(&life, 3, VIEW(STRANGER, 9, 500, 0));
    life.at_ms = 50000;
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(7, 2, POLLED));
    expect_next(&life, 50, R_MS * 11 / 10);
    look(&life);
    life_vote(&life, 0, G);
    answer(&life, 6, VIEW(LATER, 9, 60000, 0));
    life.at_ms = 50000;
    life_timer(&life);
    life_expect(&life, QUEUED, NOTHING);
    life_timer(&life);
    life_expect(&life, QUEUED, WAITS(31, 3, LOOKED));
    assert_true(life_next_ms(&life) > life.at_ms);
}

static void a_lock_that_goes_to_a_later_ticket_is_counted(void **state) {
    (void)state;
    struct life life;
    begin(&life, 1);
    static const struct {
        enum redlock_queue_holder holder;
        uint64_t id;
        uint32_t passed_over;
    } views[] = {{REDLOCK_HOLDER_LATER, 1, 1},    {REDLOCK_HOLDER_LATER, 1, 1}, {REDLOCK_HOLDER_EARLIER, 2, 1},
                 {REDLOCK_HOLDER_STRANGER, 3, 1}, {REDLOCK_HOLDER_LATER, 4, 2}, {REDLOCK_HOLDER_LATER, 1, 3}};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        life_queued(&life, 0,
                    (struct redlock_queue_view){
                        .holder = views[i].holder, .holder_id = views[i].id, .pttl_ms = 60000, .rank = 1});
        assert_int_equal(life_queue(&life)->passed_over, views[i].passed_over);
        life.at_ms += 3000;
        life_timer(&life);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_refreshed_after_a_quarter_of_the_ttl),
        cmocka_unit_test(a_timer_before_its_time_changes_nothing),
        cmocka_unit_test(who_is_behind_takes_nothing),
        cmocka_unit_test(silent_nodes_that_change_nothing_are_not_waited_for),
        cmocka_unit_test(without_answers_of_a_quorum_it_asks_after_the_retry_delay),
        cmocka_unit_test(an_open_wait_is_not_overtaken),
        cmocka_unit_test(far_nodes_have_time_to_grant),
        cmocka_unit_test(who_hears_of_grants_from_now_on_takes_its_places_again),
        cmocka_unit_test(the_first_asks_when_the_holders_keys_have_ended_at_a_quorum),
        cmocka_unit_test(the_next_ones_look_too_when_the_holders_keys_have_ended),
        cmocka_unit_test(a_key_that_never_ends_is_not_asked_for_early),
        cmocka_unit_test(the_first_behind_a_stranger_polls),
        cmocka_unit_test(who_is_not_the_first_behind_a_stranger_does_not_poll),
        cmocka_unit_test(a_split_is_looked_at_after_the_slowest_answer_twice),
        cmocka_unit_test(a_look_may_find_the_missing_grants),
        cmocka_unit_test(a_grant_that_is_gone_is_no_split),
        cmocka_unit_test(behind_another_that_has_a_quorum_it_yields_to_nobody),
        cmocka_unit_test(to_an_earlier_waiter_it_yields_its_nodes),
        cmocka_unit_test(who_hears_too_few_nodes_gives_its_grants_up),
        cmocka_unit_test(a_split_lock_is_handed_over_only_twice),
        cmocka_unit_test(with_none_before_it_it_stays_and_looks_again),
        cmocka_unit_test(a_look_does_not_wait_for_a_node_that_is_slower_than_all_others),
        cmocka_unit_test(a_late_timer_asks_once),
        cmocka_unit_test(a_lock_that_goes_to_a_later_ticket_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
