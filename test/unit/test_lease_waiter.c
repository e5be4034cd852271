/* When a waiter asks again and polls: the first rows of core/waiter.h. */
#include "core/waiter.h"
#include "life.h"

#define R_MS 2500 /* a quarter of the ttl */

TEST(places_are_refreshed_after_a_quarter_of_the_ttl) {
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
        assert_int_equal(redlock_waiter_stale_ms(life.core.grants), 3 * cases[i].refresh_ms);
        int64_t least_ns = INT64_MAX, most_ns = 0;
        for (unsigned round = 2; round < 50; round++) {
            const int64_t in_ns = redlock_lease_next_ns(&life.core) - life.core.start_ns;
            assert_in_range(in_ns, cases[i].refresh_ms * MS * 9 / 10, cases[i].refresh_ms * MS * 11 / 10);
            least_ns = in_ns < least_ns ? in_ns : least_ns;
            most_ns = in_ns > most_ns ? in_ns : most_ns;
            life_expect(life_timer(life_at(&life, life_next_ms(&life) + 1)), QUEUED, WAITS(7, round, REFRESHED));
        }
        /* Those who came together do not refresh together. */
        assert_in_range(least_ns, 0, cases[i].refresh_ms * MS * 19 / 20);
        assert_in_range(most_ns, cases[i].refresh_ms * MS * 21 / 20, INT64_MAX);
    }
}

LIFE_TEST(a_timer_before_its_time_changes_nothing, life_begin_in_line(&life, 3)) {
    life_expect(life_timer(life_at(&life, 2000)), QUEUED, NOTHING);
}

/* A key that the holder has lost at some node stays free for the holder. */
LIFE_TEST(who_is_behind_takes_nothing, life_begin_in_line(&life, 5)) {
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    life_expect(life_answer_queued(&life, 24, LIFE_VIEW(NONE, 0, -2, 0)), QUEUED, NOTHING);
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 2, REFRESHED));
    assert_false(life_queue(&life)->takes);
    life_answer_queued(&life, 31, LIFE_VIEW(LATER, 9, 60000, 1));
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_timer(&life);
    assert_false(life_queue(&life)->takes);
    /* A holder that has fewer nodes than a quorum is none. */
    life_answer_queued(&life, 3, LIFE_VIEW(LATER, 9, 60000, 1));
    life_answer_queued(&life, 12, LIFE_VIEW(NONE, 0, -2, 1));
    life_expect(life_queued(&life, 4, LIFE_VIEW(DIRECT, 10, 60000, 1)), QUEUED, WAITS(31, 4, REFRESHED));
    assert_true(life_queue(&life)->takes);
    /* At once only where it had taken nothing. */
    life_expect(life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1)), QUEUED, NOTHING);
    assert_int_equal(life_queue(&life)->passed_over, 1); /* the same holder all the time */
}

/* Nodes skip us, so nobody may take a lock that gets free. */
LIFE_TEST(who_can_be_told_by_too_few_nodes_refreshes_soon, life_begin_in_line(&life, 5)) {
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_queue(&life)->unheard = true;
    for (unsigned round = 2; round < 20; round++) {
        life_expect(life_timer(&life), QUEUED, WAITS(31, round, REFRESHED));
        life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
        life_expect_next(&life, 50, 200); /* the retry delay */
    }
    life_queue(&life)->unheard = false;
    life_expect(life_timer(&life), QUEUED, WAITS(31, 20, REFRESHED));
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
}

/* A grant that came too late is unknown to us, and others may lack this node. */
LIFE_TEST(who_may_have_a_silent_node_asks_it_again, life_begin_in_line(&life, 3)) {
    life_queued(&life, 0, LIFE_VIEW(LATER, 9, 60000, 0));
    life_queued(&life, 1, LIFE_VIEW(LATER, 8, 60000, 0));
    life_vote(&life, 2, F); /* it has not got the WAIT */
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_timer(&life);
    for (unsigned round = 3; round < 20; round++) {
        life_queued(&life, 0, LIFE_VIEW(LATER, 9, 60000, 0));
        life_queued(&life, 1, LIFE_VIEW(LATER, 8, 60000, 0));
        life_vote(&life, 2, U);
        life_expect_next(&life, 50, 200);
        life_expect(life_timer(&life), QUEUED, WAITS(7, round, REFRESHED));
    }
    life_queued(&life, 0, LIFE_VIEW(LATER, 9, 60000, 0));
    life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0)); /* who has a quorum lacks no node */
    life_vote(&life, 2, U);
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
}

/* A WAIT that no node may get says nothing of the holder. */
LIFE_TEST(who_asks_nobody_stays_behind, life_init(&life, 3)) {
    life_may_queue(&life);
    life.plan.ttl_ms = 40; /* it refreshes before it would ask again */
    life.in_line = true;
    life_begin(&life);
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    life_expect_next(&life, 9, 11);
    life.may_not_vote = 7;
    life_expect(life_timer(&life), QUEUED, WAITS(0, 2, REFRESHED));
    life_expect_next(&life, 9, 11);
    life.may_not_vote = 0;
    life_expect(life_timer(&life), QUEUED, WAITS(7, 3, REFRESHED));
    assert_false(life_queue(&life)->takes);
}

LIFE_TEST(silent_nodes_that_change_nothing_are_not_waited_for, life_begin_in_line(&life, 5)) {
    life_queue(&life)->takes = false;
    life_answer_queued(&life, 3, LIFE_VIEW(LATER, 9, 60000, 0));
    /* one more makes it a quorum */
    life_expect(life_queued(&life, 2, LIFE_VIEW(NONE, 0, -2, 0)), QUEUED, NOTHING);
    life_expect(life_queued(&life, 3, LIFE_VIEW(LATER, 9, 60000, 0)), QUEUED, NOTHING);
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_begin_in_line(&life, 5);
    life_queue(&life)->takes = false;
    life_answer_queued(&life, 7, LIFE_VIEW(NONE, 0, -2, 0)); /* two more would be no quorum */
    life_expect(&life, QUEUED, WAITS(31, 2, REFRESHED));
}

LIFE_TEST(without_answers_of_a_quorum_it_asks_after_the_retry_delay, life_begin_in_line(&life, 3)) {
    life_vote(&life, 0, U);
    life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0));
    life_expect(life_refuse(&life, 4), QUEUED, NOTHING);
    life_expect_next(&life, 50, 200);
    life_expect(life_timer(&life), QUEUED, WAITS(7, 2, POLLED));
}

/* A round trip that is longer than a quarter of the ttl: another WAIT would make every answer
 * late. */
LIFE_TEST(an_open_wait_is_not_overtaken, life_init(&life, 3)) {
    life_may_queue(&life);
    life.plan.ttl_ms = 100;
    life.in_line = true;
    life_begin(&life);
    life_expect_next(&life, 50, 50); /* the nodes' time is over */
    life_expect(life_timer(&life), QUEUED, WAITS(7, 2, REFRESHED));
    life_expect(life_timer(life_at(&life, 85)), QUEUED, NOTHING);
    life_expect(life_listen(&life), QUEUED, NOTHING);
    life_expect_next(&life, 15, 15);
    life_answer_queued(life_at(&life, 90), 3, LIFE_VIEW(LATER, 9, 1000, 1));
    assert_true(life_next_ms(&life) < life.at_ms); /* due since then */
    life_expect(life_timer(&life), QUEUED, WAITS(7, 3, REFRESHED));
}

/* A near node grants long before the others can have answered. */
LIFE_TEST(far_nodes_have_time_to_grant, life_begin_in_line(&life, 3)) {
    life_vote(life_at(&life, 1), 0, G);
    assert_true(life_next_ms(&life) > 50);
    life_expect(life_timer(life_at(&life, 40)), QUEUED, NOTHING);
    life_expect(life_queued(&life, 1, LIFE_VIEW(DIRECT, 9, 60000, 0)), QUEUED, NOTHING);
    life_expect_next(&life, 50, 50); /* twice the slowest answer is longer than nodes may take */
    life_expect(life_vote(life_at(&life, 41), 2, G), HELD, ACQUIRED(OK));
}

LIFE_TEST(who_hears_of_grants_from_now_on_takes_its_places_again, life_begin_in_line(&life, 3)) {
    life_answer_queued(&life, 3, LIFE_VIEW(LATER, 9, 60000, 1));
    life_listen(life_at(&life, 10));
    life_expect_next(&life, 2, 2);
    life_listen(&life); /* another node, a little later */
    life_expect(life_timer(&life), QUEUED, WAITS(7, 2, REFRESHED));
}

LIFE_TEST(who_is_told_that_the_lock_is_left_free_asks_when_that_is_over, life_begin_in_line(&life, 3)) {
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 0));
    life_expect(life_left(life_at(&life, 10)), QUEUED, NOTHING);
    life_expect_next(&life, REDLOCK_HAND_LATER + 2, REDLOCK_HAND_LATER + 2);
    life_left(life_at(&life, 20)); /* by another node */
    assert_int_equal(life_next_ms(&life), 10 + REDLOCK_HAND_LATER + 2);
    life_expect(life_timer(life_at(&life, 10 + REDLOCK_HAND_LATER + 2)), QUEUED, WAITS(7, 2, REFRESHED));
    assert_false(life_queue(&life)->takes);                  /* anybody may say so */
    life_answer_queued(&life, 3, LIFE_VIEW(NONE, 0, -2, 0)); /* one more would be no quorum */
    life_expect(&life, QUEUED, WAITS(7, 3, REFRESHED));
    assert_true(life_queue(&life)->takes);
}

/* The nodes executed that WAIT before the release. */
LIFE_TEST(no_answer_puts_off_the_look_at_a_lock_that_is_left_free, life_begin_in_line(&life, 3)) {
    life_left(life_at(&life, 10));
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 0));
    life_expect_next(&life, REDLOCK_HAND_LATER + 2, REDLOCK_HAND_LATER + 2);
}

/* The nodes execute that WAIT while the lock is still left free. */
LIFE_TEST(no_wait_puts_off_the_look_at_a_lock_that_is_left_free, life_begin_in_line(&life, 3)) {
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    life_left(life_at(&life, 10));
    life_listen(&life);
    life_expect(life_timer(life_at(&life, 12)), QUEUED, WAITS(7, 2, REFRESHED));
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    assert_int_equal(life_next_ms(&life), 10 + REDLOCK_HAND_LATER + 2);
    life_expect(life_timer(life_at(&life, 10 + REDLOCK_HAND_LATER + 2)), QUEUED, WAITS(7, 3, REFRESHED));
    life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 60000, 1));
    assert_true(life_next_ms(&life) > 2000); /* once */
}

/* One that has answered, or still may, needs no other WAIT. */
LIFE_TEST(a_node_that_can_be_asked_gets_a_place_if_it_has_none, life_begin_in_line(&life, 5)) {
    life_refuse(&life, REDLOCK_NODE(3));
    life_vote(&life, 4, U);
    life_queued(&life, 0, LIFE_VIEW(LATER, 9, 60000, 1));
    life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 1));
    life.at_ms = 10;
    const int64_t refresh_ms = life_next_ms(&life);
    life_ready(&life, 0);
    life_expect(life_ready(&life, 2), QUEUED, NOTHING);
    assert_int_equal(life_next_ms(&life), refresh_ms);
    life_queued(&life, 2, LIFE_VIEW(LATER, 9, 60000, 1));
    assert_true(life_next_ms(&life) > 2000);
    life_ready(&life, 3);
    life_expect_next(&life, 2, 2);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 2, REFRESHED));
}

LIFE_TEST(the_first_asks_when_the_holders_keys_have_ended_at_a_quorum, life_begin_in_line(&life, 5)) {
    for (unsigned i = 0; i < 4; i++) {
        life_expect(life_queued(&life, i, LIFE_VIEW(LATER, 9, 400 + 100 * i, i != 3)), QUEUED, NOTHING);
    }
    life_vote(&life, 4, U);
    life_expect_next(&life, 601, 602);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 2, POLLED));
    assert_true(life_queue(&life)->takes);
    life_answer_queued(&life, 31, LIFE_VIEW(LATER, 9, 600, 8)); /* far from the first now */
    life_expect_next(&life, 621, 682);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 3, REFRESHED));
    assert_false(life_queue(&life)->takes);
}

/* However many are before it, who may all be dead: soon, and those who live at different times. */
TEST(all_who_wait_look_within_80_ms) {
    static const uint32_t before[] = {8, 12, 64, 1000, UINT32_MAX - 1};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        unsigned early = 0, late = 0;
        for (unsigned seed = 1; seed <= 100; seed++) {
            struct life life;
            life_begin_in_line(&life, 3);
            life.core.jitter = seed * 2654435761U;
            life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 600, before[i]));
            life_expect_next(&life, 621, 682);
            early += life_next_ms(&life) < 640;
            late += life_next_ms(&life) > 662;
        }
        assert_in_range(early, 1, 99);
        assert_in_range(late, 1, 99);
    }
}

/* The lock was free and nobody got it: more are dead than one request passes over, or it is left
 * free. */
TEST(who_finds_it_free_looks_again) {
    static const int64_t left_ms[] = {-2, 50};
    for (int i = 0; i < 2; i++) {
        struct life life;
        life_begin_in_line(&life, 3);
        life_expect(life_answer_queued(&life, 7, LIFE_VIEW(NONE, 0, left_ms[i], 3)), QUEUED, NOTHING);
        life_expect_next(&life, 21 + 50 * i, 82 + 50 * i);
        life_expect(life_timer(&life), QUEUED, WAITS(7, 2, REFRESHED));
        assert_true(life_queue(&life)->takes);
    }
}

/* Ten milliseconds later for each who is before it, and it takes nothing yet. */
TEST(the_next_ones_look_too_when_the_holders_keys_have_ended) {
    for (unsigned before = 1; before < 8; before++) {
        struct life life;
        life_begin_in_line(&life, 3);
        life_answer_queued(&life, 7, LIFE_VIEW(LATER, 9, 600, before));
        life_expect_next(&life, 601 + 10 * before, 602 + 10 * before);
        life_expect(life_timer(&life), QUEUED, WAITS(7, 2, REFRESHED));
        assert_false(life_queue(&life)->takes);
        life_queued(&life, 0, LIFE_VIEW(NONE, 0, -2, before));
        /* Split: who looked would take a part again. */
        life_queued(&life, 1, LIFE_VIEW(EARLIER, 8, 500, before));
        life_expect(life_vote(&life, 2, F), QUEUED, NOTHING);
        life_expect_next(&life, 521, 582);
    }
}

TEST(a_key_that_never_ends_is_not_asked_for_early) {
    static const int64_t pttls_ms[] = {-1, INT64_MAX, REDLOCK_NEVER_NS / MS - 1, REDLOCK_NEVER_NS / MS - T0 / MS};
    for (unsigned i = 0; i < 4; i++) {
        struct life life;
        life_begin_in_line(&life, 3);
        life_answer_queued(&life, 7, LIFE_VIEW(DIRECT, 9, pttls_ms[i], 0));
        life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    }
}

/* Between a sixteenth and a quarter of the time that the holder was seen, 10 to 40 ms at first. */
TEST(the_first_behind_a_stranger_polls) {
    static const struct {
        int64_t seen_ms, least_ms, most_ms;
    } cases[] = {{0, 10, 40},   {130, 10, 40},  {160, 10, 40},   {180, 11, 45},
                 {320, 20, 80}, {640, 40, 160}, {2000, 50, 200}, {1000000, 50, 200}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t least_ms = INT64_MAX, most_ms = 0;
        for (unsigned seed = 1; seed < 1000; seed++) {
            struct life life;
            life_begin_in_line(&life, 3);
            life.core.jitter = seed;
            life_answer_queued(&life, 3, LIFE_VIEW(STRANGER, 9, -1, 0));
            life_queue(&life)->holder_since_ns -= cases[i].seen_ms * MS;
            life_vote(&life, 2, U);
            const int64_t in_ms = life_next_ms(&life) - life.at_ms;
            least_ms = in_ms < least_ms ? in_ms : least_ms;
            most_ms = in_ms > most_ms ? in_ms : most_ms;
            life_expect_next(&life, cases[i].least_ms, cases[i].most_ms);
            life_expect(life_timer(&life), QUEUED, WAITS(7, 2, POLLED));
            assert_true(life_queue(&life)->takes);
        }
        assert_int_equal(least_ms, cases[i].least_ms);
        assert_in_range(most_ms, cases[i].most_ms - 1, cases[i].most_ms);
    }
}

LIFE_TEST(who_is_not_the_first_behind_a_stranger_does_not_poll, life_begin_in_line(&life, 3)) {
    life_answer_queued(&life, 7, LIFE_VIEW(STRANGER, 9, 60000, 1));
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_begin_in_line(&life, 3); /* first elsewhere, but not there */
    life_queued(&life, 0, LIFE_VIEW(STRANGER, 8, 500, 1));
    life_queued(&life, 1, LIFE_VIEW(LATER, 9, 600, 0));
    life_vote(&life, 2, F);
    life_expect_next(&life, 601, 602);
    life_begin_in_line(&life, 3); /* a stranger at one node, which is no holder */
    life_queued(&life, 0, LIFE_VIEW(STRANGER, 8, 60000, 0));
    life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0));
    life_vote(&life, 2, U);
    life_expect_next(&life, 10, 40);
}

LIFE_TEST(a_lock_that_goes_to_a_later_ticket_is_counted, life_begin_in_line(&life, 1)) {
    static const struct {
        enum redlock_grants_holder holder;
        uint64_t id;
        uint32_t passed_over;
    } views[] = {{REDLOCK_HOLDER_LATER, 1, 1},    {REDLOCK_HOLDER_LATER, 1, 1}, {REDLOCK_HOLDER_EARLIER, 2, 1},
                 {REDLOCK_HOLDER_STRANGER, 3, 1}, {REDLOCK_HOLDER_LATER, 4, 2}, {REDLOCK_HOLDER_LATER, 1, 3}};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        life_queued(&life, 0,
                    (struct redlock_grants_view){
                        .holder = views[i].holder, .holder_id = views[i].id, .pttl_ms = 60000, .rank = 1});
        assert_int_equal(life_queue(&life)->passed_over, views[i].passed_over);
        life.at_ms += 3000;
        life_timer(&life);
    }
}

/* --- It is released --- */

#define DRAWN_NS (10000 * MS) /* below this */

/* The release of a lock that all nodes handed over, held for so long. */
static bool is_left_free(uint32_t jitter, int64_t held_ns) {
    struct life life;
    life_begin_in_line(&life, 3);
    life_expect(life_votes(&life, "GG"), HELD, ACQUIRED(OK));
    life.core.jitter = jitter;
    life.core.begun_ns = T0 + 20 * MS - held_ns;
    life.at_ms = 20;
    life.may_leave_free = true;
    life_release(&life);
    const bool later = life.did.handing == REDLOCK_HAND_LATER;
    life_expect(&life, RELEASING, SENDS(RELEASE, 7, 2), .handing = later ? REDLOCK_HAND_LATER : REDLOCK_HAND_OVER);
    return later;
}

TEST(the_longer_it_was_held_the_likelier_it_is_left_free) {
    const int64_t handover_ns = MS / 2;
    for (uint32_t seed = 0; seed < 1000; seed++) {
        uint32_t jitter = seed;
        const int64_t drawn_ns = redlock_between_ns(&jitter, 0, DRAWN_NS - 1);
        assert_false(is_left_free(seed, drawn_ns - handover_ns));
        assert_true(is_left_free(seed, drawn_ns - handover_ns + 1));
        assert_true(is_left_free(seed, DRAWN_NS));
    }
}

TEST(nothing_else_is_left_free) {
    enum { TRIED, CLOSES, LOST, WAYS };
    for (int way = 0; way < WAYS; way++) {
        struct life life;
        life_init(&life, 3);
        life_may_queue(&life);
        life.in_line = way != TRIED;
        life_begin(&life);
        life_votes(&life, "GG");
        life.core.begun_ns = T0 - DRAWN_NS;
        life.may_leave_free = way != CLOSES;
        life.at_ms = way == LOST ? END_MS : 20;
        if (way == LOST) {
            life_timer(&life);
            life_expect(life_release(&life), ENDED, RELEASED(ERR_LOST));
            continue;
        }
        life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 7, 2));
    }
}
