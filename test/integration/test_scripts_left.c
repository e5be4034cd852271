/* A lock that is left free on a real server: who may take it, and who gets it then. */
#include "queue_scripts.h"

#define LONG_LEFT ((enum redlock_handing)50000) /* ms: no test takes so long */

/* Nobody in line gets the lock, whoever asks. */
static void assert_left_free(struct wait wait, uint32_t rank) {
    const struct redlock_answer answer = wait_as(wait);
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_int_equal(answer.rank, rank);
    assert_null(answer.holder);
    assert_in_range(answer.holder_ttl_ms, 1, LONG_LEFT);
    assert_free();
    assert_silence();
}

static void leave_free(void) {
    lock_as(OURS);
    assert_queued((struct wait){.token = SECOND, .ticket = 2}, 0, OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_int_equal(release_with(OURS, LONG_LEFT), HANDED_OVER);
    assert_left_free((struct wait){.token = THIRD, .ticket = 3}, 2);
    assert_left_free((struct wait){.token = FIRST, .ticket = 1}, 0);
}

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(a_lock_that_is_left_free_then_goes_to_the_first_in_line) {
    leave_free();
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), HANDED_OVER);
    assert_value("door", FIRST);
    assert_pushed(FIRST);
    assert_string_equal(server_ask(server, "HEXISTS", WAITERS, "left"), "0");
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), OTHERS); /* not twice */
    assert_value("door", FIRST);
    assert_silence();
}

QUEUE_TEST(whoever_tries_gets_a_lock_that_is_left_free) {
    leave_free();
    assert_string_equal(server_ask(server, "SET", "door", "another library", "NX", "PX", "900000"), "OK");
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), OTHERS);
    assert_value("door", "another library");
    assert_silence();
    unlock();
    /* nothing keeps it free now */
    assert_queued((struct wait){.token = THIRD, .ticket = 3}, 1, FIRST);
    assert_pushed(FIRST);
}

/* Who left it free has died, and its node's clock does not matter. */
QUEUE_TEST(a_lock_is_not_left_free_for_long) {
    /* over; the clock was set back */
    static const char *const until_ms[] = {"1", "99999999999999"};
    for (int i = 0; i < 2; i++) {
        start_anew();
        leave_free();
        assert_string_equal(server_ask(server, "HSET", WAITERS, "left", until_ms[i]), "0");
        assert_queued((struct wait){.token = THIRD, .ticket = 3}, 1, FIRST);
        assert_pushed(FIRST);
    }
}

QUEUE_TEST(without_a_queue_nothing_is_left) {
    lock_as(OURS);
    assert_int_equal(release_with(OURS, LONG_LEFT), DELETED);
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), MISSING);
    assert_int_equal(server_key_count(server), 0);
    lock_as(OURS);
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), DELETED);
    leave_free();
    for (int i = 0; i < 3; i++) {
        static const char *const waiting[] = {FIRST, SECOND, THIRD};
        assert_int_equal(release_as(waiting[i]), MISSING);
    }
    assert_string_equal(say("HKEYS", WAITERS), "left\n"); /* ends with its ttl at the latest */
    assert_true(server_pttl_ms(server, WAITERS) > 0);
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), MISSING);
    assert_int_equal(server_key_count(server), 0);
}

/* Without a waiter's entry nobody can be told. What says that the lock is left free would have no
 * ttl then. */
QUEUE_TEST(where_nobody_can_be_told_nothing_is_left) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    (void)say("DEL", WAITERS);
    assert_int_equal(release_with(OURS, LONG_LEFT), DELETED);
    assert_int_equal(server_key_count(server), 0);
}

QUEUE_TEST(who_is_still_in_the_lock_hands_it_over) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_int_equal(release_with(OURS, REDLOCK_HAND_FREE), HANDED_OVER);
    assert_value("door", FIRST);
    assert_pushed(FIRST);
}
