/* A lock that is left free on a real server: who may take it, who is told, and who gets it then. */
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
    assert_told(FIRST, CHANNEL); /* who is of the same process */
    assert_left_free((struct wait){.token = THIRD, .ticket = 3}, 2);
    assert_left_free((struct wait){.token = FIRST, .ticket = 1}, 0);
}

static void end_left(const char *until_ms) {
    assert_string_equal(server_ask(server, "HSET", WAITERS, "left", until_ms), "0");
}

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(whoever_tries_gets_a_lock_that_is_left_free) {
    leave_free();
    lock_as("another library");
    assert_queued((struct wait){.token = THIRD, .ticket = 3}, 2, "another library");
    assert_value("door", "another library");
    assert_silence();
}

/* Its release hands the lock over. */
QUEUE_TEST(a_try_that_got_a_lock_that_is_left_free_is_marked_by_who_asks) {
    static const char try[] = "g123456789abcdef0123456789abcdef", marked[] = "G123456789abcdef0123456789abcdef";
    leave_free();
    lock_as(try);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, try);
    assert_value("door", marked);
    assert_int_equal(release_as(try), HANDED_OVER);
    assert_pushed(FIRST);
}

/* Whoever asks then. The clock of a node that was set back does not matter. */
QUEUE_TEST(a_lock_is_not_left_free_for_long) {
    /* over; the clock was set back */
    static const char *const until_ms[] = {"1", "99999999999999"};
    for (int i = 0; i < 2; i++) {
        start_anew();
        leave_free();
        end_left(until_ms[i]);
        assert_queued((struct wait){.token = THIRD, .ticket = 3}, 1, FIRST);
        assert_pushed(FIRST);
        start_anew();
        leave_free();
        end_left(until_ms[i]);
        assert_taken((struct wait){.token = FIRST, .ticket = 1});
        assert_silence();
    }
}

/* Those behind may be needed: the first may die, or give up. */
QUEUE_TEST(the_first_of_three_processes_are_told) {
    static const char *const channels[] = {CHANNEL "1", CHANNEL "2", CHANNEL "3"};
    static const char *const tokens[] = {FIRST, SECOND, THIRD};
    char token[] = THIRD;
    lock_as(OURS);
    assert_string_equal(raw_ask(&listener, "SUBSCRIBE", channels[0]), "subscribe\nredlock:heard1\n2\n");
    assert_string_equal(raw_ask(&listener, "SUBSCRIBE", channels[1]), "subscribe\nredlock:heard2\n3\n");
    assert_string_equal(raw_ask(&listener, "SUBSCRIBE", channels[2]), "subscribe\nredlock:heard3\n4\n");
    queue_add(0, "dead", DEAF, STALE_MS);
    queue_add(0, "stale", CHANNEL "1", -1000);
    for (unsigned i = 0; i < 12; i++) {
        token[47] = "0123456789ab"[i];
        queue_add(1 + i, i % 4 == 0 && i < 12 ? tokens[i / 4] : token, channels[i / 4], STALE_MS);
    }
    queue_add(90, "fourth", CHANNEL, STALE_MS);
    assert_int_equal(release_with(OURS, LONG_LEFT), HANDED_OVER);
    for (unsigned i = 0; i < 3; i++) {
        assert_told(tokens[i], channels[i]);
    }
    assert_silence();
    assert_free();
}

QUEUE_TEST(the_living_behind_many_who_are_dead_are_told) {
    char token[16];
    lock_as(OURS);
    for (unsigned i = 0; i < 63; i++) {
        (void)snprintf(token, sizeof token, "dead %u", i);
        queue_add(1, token, DEAF, STALE_MS);
    }
    queue_add(2, FIRST, CHANNEL, STALE_MS);
    queue_add(3, SECOND, CHANNEL, STALE_MS);
    assert_int_equal(release_with(OURS, LONG_LEFT), HANDED_OVER);
    assert_told(FIRST, CHANNEL);
    assert_free();
    assert_int_equal(release_as(SECOND), MISSING);
    assert_told(FIRST, CHANNEL);
    queue_add(1, "one more", DEAF, STALE_MS);
    queue_add(3, SECOND, CHANNEL, STALE_MS);
    assert_int_equal(release_as(SECOND), MISSING); /* many may give up, so it looks at few */
    assert_silence();
}

/* It may be the one who was told. Those who are told twice ask once. */
QUEUE_TEST(who_gives_up_while_the_lock_is_left_free_tells_the_next) {
    leave_free();
    assert_int_equal(release_as(FIRST), MISSING);
    assert_told(SECOND, CHANNEL);
    assert_free();
    assert_int_equal(release_as(FIRST), MISSING); /* it was not in line */
    assert_silence();
    lock_as(OURS);
    assert_int_equal(release_as(SECOND), OTHERS);
    assert_silence();
    assert_int_equal(release_as(OURS), HANDED_OVER);
    assert_pushed(THIRD);
}

/* It may be the only one who knows: it gave the lock back to nobody, or saw it end. */
QUEUE_TEST(who_gives_up_where_the_lock_is_free_tells_the_next) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_queued((struct wait){.token = SECOND, .ticket = 2}, 1, OURS);
    assert_queued((struct wait){.token = THIRD, .ticket = 3}, 2, OURS);
    assert_int_equal(release_with(OURS, REDLOCK_HAND_NOBODY), DELETED);
    assert_silence();
    assert_int_equal(release_as(FIRST), MISSING);
    assert_told(SECOND, CHANNEL);
    assert_int_equal(release_with(SECOND, REDLOCK_HAND_NOBODY), MISSING);
    assert_told(THIRD, CHANNEL);
    assert_int_equal(release_as(THIRD), MISSING);
    assert_silence();
    assert_int_equal(server_key_count(server), 0);
}

/* Whoever hears a seal could make a grant of it. */
QUEUE_TEST(what_is_told_has_no_seal) {
    char entry[128];
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    (void)snprintf(entry, sizeof entry, "%s", server_ask(server, "HGET", WAITERS, FIRST));
    char *seal = strstr(entry, " 0000000009");
    assert_non_null(seal);
    memcpy(seal + sizeof " 0000000009" - 1, "12345678901234567890", 20);
    assert_string_equal(server_ask(server, "HSET", WAITERS, FIRST, entry), "0");
    assert_int_equal(release_with(OURS, LONG_LEFT), HANDED_OVER);
    assert_told(FIRST, CHANNEL);
}

QUEUE_TEST(without_a_queue_nothing_is_left) {
    lock_as(OURS);
    assert_int_equal(release_with(OURS, LONG_LEFT), DELETED);
    assert_int_equal(server_key_count(server), 0);
    assert_int_equal(release_with(OURS, LONG_LEFT), MISSING);
    leave_free();
    for (int i = 0; i < 3; i++) {
        static const char *const waiting[] = {FIRST, SECOND, THIRD};
        assert_int_equal(release_as(waiting[i]), MISSING);
        if (i < 2) {
            assert_told(waiting[i + 1], CHANNEL);
        }
    }
    assert_silence();
    assert_string_equal(say("HKEYS", WAITERS), "left\n"); /* ends with its ttl at the latest */
    assert_true(server_pttl_ms(server, WAITERS) > 0);
}

/* Nobody would ask when the time is over. */
QUEUE_TEST(where_nobody_can_be_told_nothing_is_left) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    (void)say("DEL", WAITERS);
    assert_int_equal(release_with(OURS, LONG_LEFT), DELETED);
    assert_int_equal(server_key_count(server), 0);
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .channel = DEAF}, 0, OURS);
    assert_int_equal(release_with(OURS, LONG_LEFT), DELETED);
    assert_int_equal(server_key_count(server), 0);
}

/* As wherever the queue fails: its errors keep nobody from the release. */
QUEUE_TEST(where_the_queue_is_something_else_nothing_is_left) {
    lock_as(OURS);
    assert_string_equal(server_ask(server, "SET", QUEUE, "x"), "OK");
    assert_int_equal(release_with(OURS, LONG_LEFT), DELETED);
    assert_free();
}
