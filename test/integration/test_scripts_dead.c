/* The dead in the queue of a lock, on a real server: they cost the living little, and they go. */
#include "queue_scripts.h"

#define MONITOR "redlock:*"
#define MOST    2000 /* entries for one script */

/* So many, of one process or of a process each. They come before FIRST. */
static void add_dead(int count, bool share_channel, int64_t good_ms) {
    char token[64], channel[48] = DEAF;
    for (int i = 0; i < count; i++) {
        (void)snprintf(token, sizeof token, "0000000000000001%032x", i + 1);
        if (!share_channel) {
            (void)snprintf(channel, sizeof channel, DEAF "%d", i);
        }
        queue_add(1, token, channel, good_ms);
    }
}

static void assert_left(int count) {
    char number[16];
    (void)snprintf(number, sizeof number, "%d", count);
    assert_string_equal(say("ZCARD", QUEUE), number);
    assert_string_equal(say("HLEN", WAITERS), number);
}

static struct redlock_answer look(void) {
    struct redlock_message inspect = message_of(REDLOCK_OP_INSPECT, 0);
    return ask(&inspect);
}

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(one_release_passes_over_a_thousand) {
    static const int counts[] = {1, 64, 65, 200, 1000, MOST - 1};
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
        start_anew();
        lock_as(OURS);
        add_dead(counts[i / 2], i % 2, STALE_MS);
        queue_add(2, FIRST, CHANNEL, STALE_MS);
        assert_int_equal(release_as(OURS), HANDED_OVER);
        assert_value("door", FIRST);
        assert_pushed(FIRST);
        assert_int_equal(server_key_count(server), 1);
    }
}

QUEUE_TEST(one_wait_that_takes_passes_over_a_thousand) {
    add_dead(1000, false, STALE_MS);
    queue_add(2, FIRST, CHANNEL, STALE_MS);
    assert_queued((struct wait){.token = SECOND, .ticket = 3}, 0, FIRST);
    assert_pushed(FIRST);
    assert_left(1);
}

/* No script keeps a node busy for longer. */
QUEUE_TEST(more_are_passed_over_in_turns) {
    lock_as(OURS);
    add_dead(2 * MOST, true, STALE_MS);
    queue_add(2, FIRST, CHANNEL, STALE_MS);
    assert_int_equal(release_as(OURS), DELETED);
    assert_left(MOST + 1);
    assert_queued((struct wait){.token = SECOND, .ticket = 3, .enters_only = true}, 1, NULL);
    assert_left(2);
    assert_taken((struct wait){.token = FIRST, .ticket = 2});
}

/* Behind another library, the first polls: it must know that it is the first. */
QUEUE_TEST(who_waits_behind_the_dead_is_the_first) {
    static const char *const channels[] = {DEAF, CHANNEL};
    for (int stale = 0; stale < 2; stale++) {
        start_anew();
        lock_as("of another library");
        queue_add(1, SECOND, channels[stale], stale ? -1 : STALE_MS);
        assert_queued((struct wait){.token = FIRST, .ticket = 2}, 0, "of another library");
        assert_left(1);
        /* And it stays where it is behind the living. */
        queue_add(1, SECOND, CHANNEL, STALE_MS);
        assert_queued((struct wait){.token = FIRST, .ticket = 2}, 1, "of another library");
        assert_left(2);
    }
}

/* Its own subscription may not be confirmed yet. */
QUEUE_TEST(a_place_is_not_taken_from_who_asks) {
    lock_as(OURS);
    queue_add(2, SECOND, CHANNEL, STALE_MS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .channel = DEAF}, 0, OURS);
    assert_left(2);
    unlock();
    assert_taken((struct wait){.token = FIRST, .ticket = 1, .channel = DEAF});
}

/* They crash, start again and take a place, behind somebody who waits for long. */
QUEUE_TEST(the_memory_of_those_who_crash_is_bounded) {
    char token[64];
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(token, sizeof token, "0000000000000002%032x", i + 1);
        const struct wait crashed = {.token = token, .ticket = 2 + (uint64_t)i, .channel = DEAF, .stale_ms = -1};
        assert_is(wait_as(crashed).vote, REDLOCK_VOTE_DENIED);
        if (i % 100 == 0) {
            assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
        }
    }
    char *end;
    assert_in_range(strtol(say("ZCARD", QUEUE), &end, 10), 1, 200);
    assert_in_range(strtol(say("HLEN", WAITERS), &end, 10), 1, 200);
}

/* A monitor subscribes to everything. */
QUEUE_TEST(a_pattern_makes_nobody_alive) {
    struct raw monitor;
    assert_true(raw_open_tcp(&monitor, "127.0.0.1", server->port));
    assert_string_equal(raw_ask(&monitor, "AUTH", "all", "geheim"), "OK");
    assert_string_equal(raw_ask(&monitor, "PSUBSCRIBE", MONITOR), "psubscribe\n" MONITOR "\n1\n");
    lock_as(OURS);
    add_dead(20, false, STALE_MS);
    queue_add(2, FIRST, CHANNEL, STALE_MS);
    assert_int_equal(look().waiters, 1);
    assert_int_equal(release_as(OURS), HANDED_OVER);
    assert_value("door", FIRST);
    assert_pushed(FIRST);
    raw_close(&monitor);
}

QUEUE_TEST(the_living_are_counted) {
    lock_as(OURS);
    add_dead(1000, false, STALE_MS);
    queue_add(1, SECOND, CHANNEL, -1);
    assert_int_equal(look().waiters, 0);
    assert_int_equal(look().waited_ms, -1);
    const uint64_t since_us = (uint64_t)server_now_us() - 5000000;
    queue_add(since_us, FIRST, CHANNEL, STALE_MS);
    queue_add(since_us + 1000000, THIRD, CHANNEL, STALE_MS);
    const struct redlock_answer answer = look();
    assert_int_equal(answer.waiters, 2);
    assert_in_range(answer.waited_ms, 5000, 60000);
    assert_left(1003);
}

/* No more are looked at; those behind count as living. A request that does not ask for the queue
 * learns nothing of it. */
QUEUE_TEST(one_look_has_its_bound) {
    lock_as(OURS);
    add_dead(MOST + 10, true, STALE_MS);
    assert_int_equal(look().waiters, 10);
    struct redlock_message inspect = message_of(REDLOCK_OP_INSPECT, 0);
    inspect.wait_suffix = NULL;
    const struct redlock_answer answer = ask(&inspect);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.waiters, -1);
    assert_int_equal(answer.waited_ms, -1);
}

/* Without the right to ask who listens, PUBLISH decides, and all who are not stale count. */
QUEUE_TEST(without_pubsub_publish_decides) {
    assert_string_equal(raw_ask(&line, "AUTH", "all", "geheim"), "OK");
    lock_as(OURS);
    add_dead(100, true, STALE_MS);
    queue_add(2, FIRST, CHANNEL, STALE_MS);
    queue_add(3, SECOND, CHANNEL, -1);
    assert_string_equal(
        server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~*", "allchannels", "-pubsub"),
        "OK");
    assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
    assert_int_equal(look().waiters, 101);
    assert_queued((struct wait){.token = THIRD, .ticket = 4}, 102, OURS);
    assert_int_equal(release_as(OURS), HANDED_OVER);
    assert_value("door", FIRST);
    assert_pushed(FIRST);
    assert_left(2);
}

/* Whoever may write the entries need not have a right to the channels that they name. */
QUEUE_TEST(nobody_speaks_on_the_channels_of_others) {
    static const char *const channels[] = {"orders", "redlock:leader:door", "xredlock:heard", "redlock:"};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct raw other;
        assert_true(raw_open_tcp(&other, "127.0.0.1", server->port));
        assert_string_equal(raw_ask(&other, "AUTH", "all", "geheim"), "OK");
        (void)raw_ask(&other, "SUBSCRIBE", channels[i]);
        start_anew();
        lock_as(OURS);
        queue_add(1, SECOND, channels[i], STALE_MS);
        queue_add(2, FIRST, CHANNEL, STALE_MS);
        assert_int_equal(look().waiters, 1);
        assert_int_equal(release_as(OURS), HANDED_OVER);
        assert_value("door", FIRST);
        assert_pushed(FIRST);
        assert_string_equal(raw_ask(&other, "PING"), "pong\n\n");
        raw_close(&other);
    }
}
