/* Shared locks on a real server: who reads with whom, until when, and what others see of it. */
#include "core/fence.h"
#include "shared_scripts.h"
#include "wire/page.h"

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(those_who_read_hold_the_lock_together) {
    assert_reads(TRY_A);
    assert_reads(READER_B);
    assert_string_equal(say("TYPE", "door"), "zset");
    assert_entry_ms(TRY_A, TTL_MS / 2, TTL_MS);
    assert_readers(TRY_A, READER_B, NULL);
    assert_int_equal(release_as(TRY_A), DELETED);
    assert_readers(READER_B, NULL);
    assert_int_equal(release_as(TRY_A), OTHERS);
    assert_int_equal(release_as(READER_B), DELETED);
    assert_int_equal(release_as(READER_B), MISSING);
    assert_int_equal(server_key_count(server), 0);
}

QUEUE_TEST(who_has_it_alone_keeps_readers_out_and_they_keep_it_out) {
    lock_as(OURS);
    assert_is(try_for(TRY_A, 0), REDLOCK_VOTE_DENIED);
    assert_says("held under another token");
    assert_is(keep_for(TRY_A, 0), REDLOCK_VOTE_DENIED);
    assert_is(heal_as(TRY_A), REDLOCK_VOTE_DENIED);
    assert_value("door", OURS);
    unlock();
    assert_reads(TRY_A);
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE, 0);
    assert_denied(&message, "held under another token");
    message.form.holder_query = REDLOCK_HOLDER_QUERY_ONCE;
    assert_denied(&message, "held under another token");
    message.form.holder_query = REDLOCK_HOLDER_QUERY_NOT;
    message.timed = true;
    assert_denied(&message, "held under another token");
    message = message_of(REDLOCK_OP_EXTEND, 0);
    assert_denied(&message, "held under another token");
    assert_readers(TRY_A, NULL);
}

/* Other libraries compare strings. */
QUEUE_TEST(scripts_of_others_change_nothing) {
    static const char *const scripts[] = {
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], 1) else return 0 end"};
    assert_reads(TRY_A);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        assert_contains(server_ask(server, "EVAL", scripts[i], "1", "door", TRY_A), "WRONGTYPE");
    }
    assert_contains(server_ask(server, "SET", "door", OURS, "NX", "PX", "1000", "GET"), "WRONGTYPE");
    assert_string_equal(server_ask(server, "SET", "door", OURS, "NX", "PX", "1000"), "(nil)");
    assert_entry_ms(TRY_A, TTL_MS / 2, TTL_MS);
}

QUEUE_TEST(each_entry_ends_by_itself_and_the_key_with_the_last) {
    assert_reads(READER_A);
    assert_is(try_for(READER_B, 50), REDLOCK_VOTE_GRANTED);
    assert_in_range(server_pttl_ms(server, "door"), TTL_MS / 2, TTL_MS + 1);
    assert_int_equal(release_as(READER_A), DELETED);
    assert_in_range(server_pttl_ms(server, "door"), 0, 51);
    wait_ms(60);
    assert_free();
    assert_is(try_for(READER_A, 50), REDLOCK_VOTE_GRANTED);
    assert_reads(READER_B);
    wait_ms(60);
    assert_is(keep_for(READER_A, 0), REDLOCK_VOTE_DENIED);
    assert_says("the key is missing");
    /* It drops the other, and shortens nothing. */
    assert_is(keep_for(READER_B, TTL_MS / 4), REDLOCK_VOTE_GRANTED);
    assert_readers(READER_B, NULL);
    assert_entry_ms(READER_B, TTL_MS / 2, TTL_MS);
    assert_is(keep_for(READER_B, 2 * TTL_MS), REDLOCK_VOTE_GRANTED);
    assert_entry_ms(READER_B, 2 * TTL_MS - 60000, 2 * TTL_MS);
}

QUEUE_TEST(who_joins_drops_those_who_ended_and_they_hold_nobody_up) {
    assert_is(try_for(READER_A, 50), REDLOCK_VOTE_GRANTED);
    assert_reads(READER_B);
    wait_ms(60);
    assert_reads(READER_C);
    assert_readers(READER_B, READER_C, NULL);
    /* An entry that ended does not keep the last one from freeing the lock. */
    start_anew();
    assert_is(try_for(READER_A, 50), REDLOCK_VOTE_GRANTED);
    assert_reads(READER_B);
    assert_waits_beside((struct wait){.token = FIRST, .ticket = 1}, 0, READER_A);
    wait_ms(60);
    assert_waits_beside((struct wait){.token = FIRST, .ticket = 1}, 0, READER_B);
    assert_int_equal(release_as(READER_A), OTHERS);
    assert_int_equal(release_as(READER_B), HANDED_OVER);
    assert_value("door", FIRST);
    assert_pushed(FIRST);
}

/* Whatever is not ours is held by somebody else, and stays as it is. */
QUEUE_TEST(a_set_without_an_end_is_somebody_elses) {
    assert_string_equal(server_ask(server, "ZADD", "door", "1", "x", "2", READER_A), "2");
    assert_is(try_for(READER_A, 0), REDLOCK_VOTE_DENIED);
    assert_is(heal_as(READER_B), REDLOCK_VOTE_DENIED);
    assert_is(keep_for(READER_A, 0), REDLOCK_VOTE_DENIED);
    const struct redlock_answer answer = wait_as((struct wait){.token = READER_B, .ticket = 1});
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_memory_equal(answer.holder, "(a zset)", answer.holder_size);
    assert_int_equal(release_as(READER_A), OTHERS);
    assert_int_equal(release_as(READER_B), OTHERS);
    assert_string_equal(server_ask(server, "ZRANGE", "door", "0", "-1"), "x\n" READER_A "\n");
    assert_int_equal(server_pttl_ms(server, "door"), -1);
}

QUEUE_TEST(a_writer_becomes_a_reader) {
    for (int by_try = 0; by_try < 2; by_try++) {
        static const char *const writers[] = {SECOND, "k123456789abcdef0123456789abcdef"};
        const char *writer = writers[by_try];
        start_anew();
        lock_as(writer);
        assert_queued((struct wait){.token = READER_C, .ticket = 5}, 0, writer); /* marks a try's */
        assert_is(wait_as((struct wait){.token = READER_D, .ticket = 6}).vote, REDLOCK_VOTE_DENIED);
        assert_is(wait_as((struct wait){.token = THIRD, .ticket = 7}).vote, REDLOCK_VOTE_DENIED);
        assert_string_equal(server_ask(server, "PEXPIRE", "door", "900000"), "1");
        assert_is(keep_for(writer, 0), REDLOCK_VOTE_GRANTED);
        assert_pushed(READER_C);
        assert_pushed(READER_D);
        assert_silence();
        assert_readers(writer, READER_C, READER_D, NULL);
        assert_entry_ms(writer, TTL_MS + 1, 900000); /* never shortened */
        struct redlock_message late = message_with(REDLOCK_OP_EXTEND, writer);
        assert_denied(&late, "held under another token");
        assert_is(keep_for(writer, 0), REDLOCK_VOTE_GRANTED); /* an extension */
        assert_int_equal(release_as(writer), DELETED);
        assert_is(keep_for(writer, 0), REDLOCK_VOTE_DENIED);
        assert_int_equal(release_as(READER_C), DELETED);
        assert_int_equal(release_as(READER_D), HANDED_OVER);
        assert_pushed(THIRD);
    }
}

QUEUE_TEST(a_node_that_may_not_vote_lets_nobody_in) {
    lock_as(FIRST);
    assert_queued((struct wait){.token = READER_A, .ticket = 1}, 0, FIRST);
    assert_is(keep_letting_nobody_in(FIRST), REDLOCK_VOTE_GRANTED);
    assert_silence();
    assert_readers(FIRST, NULL);
    assert_joins((struct wait){.token = READER_A, .ticket = 1}); /* by itself */
    assert_readers(FIRST, READER_A, NULL);
    /* A RELEASE hands to nobody there. */
    assert_waits_beside((struct wait){.token = SECOND, .ticket = 2}, 0, FIRST);
    assert_int_equal(release_with(FIRST, REDLOCK_HAND_NOBODY), DELETED);
    assert_int_equal(release_with(READER_A, REDLOCK_HAND_NOBODY), DELETED);
    assert_free();
    assert_silence();
}

QUEUE_TEST(what_comes_late_finds_nothing) {
    assert_is(keep_for(TRY_A, 0), REDLOCK_VOTE_DENIED);
    assert_is(keep_letting_nobody_in(TRY_A), REDLOCK_VOTE_DENIED);
    assert_free();
    assert_is(heal_as(TRY_A), REDLOCK_VOTE_GRANTED);
    assert_readers(TRY_A, NULL);
}

/* Who holds heals, so it delays nobody who was not kept out before. */
QUEUE_TEST(a_heal_joins_beside_one_who_waits) {
    assert_reads(TRY_A);
    assert_waits_beside((struct wait){.token = FIRST, .ticket = 1}, 0, TRY_A);
    assert_is(try_for(TRY_B, 0), REDLOCK_VOTE_DENIED);
    assert_says("others wait for it");
    assert_is(heal_as(TRY_B), REDLOCK_VOTE_GRANTED);
    assert_readers(TRY_A, TRY_B, NULL);
}

QUEUE_TEST(without_memory_nobody_comes_in_and_those_who_read_go_on) {
    assert_reads(READER_A);
    assert_reads(READER_B);
    assert_waits_beside((struct wait){.token = FIRST, .ticket = 1}, 0, READER_A);
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "1"), "OK");
    assert_is(try_for(READER_C, 0), REDLOCK_VOTE_DENIED); /* somebody waits */
    assert_is(keep_for(READER_A, 2 * TTL_MS), REDLOCK_VOTE_GRANTED);
    assert_entry_ms(READER_A, TTL_MS + 1, 2 * TTL_MS);
    assert_is(wait_as((struct wait){.token = READER_B, .ticket = 1}).vote, REDLOCK_VOTE_GRANTED);
    assert_is(heal_as(READER_C), REDLOCK_VOTE_FAILED);
    assert_says("OOM");
    assert_int_equal(release_as(READER_A), DELETED);
    assert_int_equal(release_as(READER_B), HANDED_OVER);
    assert_value("door", FIRST);
    assert_is(keep_for(FIRST, 0), REDLOCK_VOTE_GRANTED); /* a downgrade */
    assert_int_equal(release_as(FIRST), DELETED);
    assert_is(try_for(READER_C, 0), REDLOCK_VOTE_FAILED);
    assert_int_equal(server_key_count(server), 0);
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "0"), "OK");
}

static struct redlock_answer inspect(void) {
    const struct redlock_message message = message_of(REDLOCK_OP_INSPECT, 0);
    return ask(&message);
}

QUEUE_TEST(who_looks_sees_how_many_read) {
    assert_reads(TRY_A);
    assert_reads(READER_B);
    assert_reads(READER_A);
    assert_waits_beside((struct wait){.token = FIRST, .ticket = 1}, 0, READER_A);
    struct redlock_answer answer = inspect();
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.readers, 3);
    assert_int_equal(answer.waiters, 1);
    assert_int_equal(answer.holder_size, strlen(READER_A));
    assert_memory_equal(answer.holder, READER_A, answer.holder_size);
    assert_true(answer.holder_ttl_ms > TTL_MS / 2);
    static const char *const named[] = {READER_A, READER_B, TRY_A}; /* by their tokens */
    const char *at = answer.first, *end = at + answer.first_size;
    struct redlock_page_name reader;
    for (size_t i = 0; i < 3; i++) {
        assert_true(redlock_page_next_name(&at, end, &reader));
        assert_int_equal(reader.token_size, strlen(named[i]));
        assert_memory_equal(reader.token, named[i], reader.token_size);
        assert_true(!reader.waits && reader.ms > TTL_MS / 2 && reader.ms <= TTL_MS);
    }
    assert_true(redlock_page_next_name(&at, end, &reader));
    assert_true(reader.waits && reader.ms > 0);
    assert_memory_equal(reader.token, FIRST, reader.token_size);
    assert_ptr_equal(at, end);
    /* Who has ended is not named, and an observer needs no names. */
    assert_string_equal(server_ask(server, "ZADD", "door", "1", TRY_B), "1");
    assert_int_equal(inspect().first_size, answer.first_size);
    struct redlock_message message = message_of(REDLOCK_OP_INSPECT, 0);
    message.wait_suffix = NULL;
    answer = ask(&message);
    assert_int_equal(answer.readers, 3);
    assert_int_equal(answer.first_size, 0);
    start_anew();
    lock_as(OURS);
    answer = inspect();
    assert_true(answer.readers == 0 && answer.first_size == 0);
}

/* The end of each is told, whatever the number. */
QUEUE_TEST(a_set_of_others_is_told_as_it_is) {
    assert_string_equal(server_ask(server, "ZADD", "door", "+inf", "a", "1.7e300", "b", "2795862442151.5", "c"), "3");
    assert_string_equal(server_ask(server, "PEXPIRE", "door", "600000"), "1");
    const struct redlock_answer answer = inspect();
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    const char *at = answer.first, *end = at + answer.first_size;
    struct redlock_page_name reader;
    for (int64_t i = 0; i < 3; i++) {
        assert_true(redlock_page_next_name(&at, end, &reader));
        assert_int_equal(reader.token[0], 'a' + i);
        assert_true(i == 2 ? reader.ms > 900000000000 : reader.ms == INT64_C(90000000000000));
    }
    assert_ptr_equal(at, end);
}

QUEUE_TEST(no_more_than_a_thousand_are_named) {
    char entry[2][32], ends_at[24];
    (void)snprintf(ends_at, sizeof ends_at, "%lld", (long long)(server_now_us() / 1000 + 2 * TTL_MS));
    for (int i = 0; i < 1010; i++) {
        (void)snprintf(entry[0], sizeof entry[0], "%04ds", i);
        (void)server_ask(server, "ZADD", "door", ends_at, entry[0]);
    }
    assert_string_equal(server_ask(server, "PEXPIRE", "door", "600000"), "1");
    const struct redlock_answer answer = inspect();
    const char *at = answer.first, *end = at + answer.first_size;
    struct redlock_page_name reader;
    int named = 0;
    while (redlock_page_next_name(&at, end, &reader)) {
        named++;
    }
    assert_true(at == end && named == 1000 && answer.readers == 1000);
}

/* What a reader of this number would be told: its counter. */
static uint64_t counter_of(const struct redlock_message *message) {
    const struct redlock_answer answer = ask(message);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_true(answer.fenced && !answer.accepted);
    return answer.counter;
}

static struct redlock_message reading_as(const char *token, uint64_t least) {
    struct redlock_message message = message_with(REDLOCK_OP_ACQUIRE, token);
    message.shared = message.by_source = true;
    message.fence = least;
    return message;
}

QUEUE_TEST(a_readers_number_ends_with_999_and_is_above_the_last_writers) {
    const uint64_t written = (uint64_t)server_now_us() / 1000 * 1000000 + 41; /* …041 */
    for (int timed = 0; timed < 2; timed++) {
        start_anew();
        struct redlock_message message = reading_as(TRY_A, written - 42999);
        message.timed = timed;
        assert_true(counter_of(&message) == written - 42999); /* nobody ever wrote */
        assert_counter(written - 42999);
        set_counter(written);
        message = reading_as(TRY_B, written - 42999);
        assert_true(counter_of(&message) == written + 958);
        assert_counter(written + 958);
        assert_int_equal(server_pttl_ms(server, "door:fence"), -1);
        message = reading_as(READER_A, written + 958); /* the same number */
        message.timed = timed;
        assert_true(counter_of(&message) == written + 958);
        assert_int_equal(ask(&message).clock.server_us != 0, timed);
        message = reading_as(READER_C, written + 5958); /* by its clock */
        assert_true(counter_of(&message) == written + 5958);
        assert_counter(written + 5958);
        assert_readers(TRY_A, TRY_B, READER_A, READER_C, NULL);
    }
    /* Nobody who is refused raises it. */
    start_anew();
    set_counter(written);
    lock_as(OURS);
    struct redlock_message message = reading_as(TRY_A, written + 958);
    assert_answer(&message, REDLOCK_VOTE_DENIED, true, false, written);
    assert_counter(written);
    /* A counter that may expire lives on. One that is gone was of an hour ago. */
    start_anew();
    set_counter(written);
    const struct redlock_fence_keys expires = {.suffix = ":fence", .suffix_size = 6, .expiry_ms = 20000000};
    message = reading_as(TRY_A, 999);
    message.fence_keys = &expires;
    assert_true(counter_of(&message) == written + 958);
    assert_in_range(server_pttl_ms(server, "door:fence"), 10000000, 20000000);
    start_anew();
    assert_in_range(counter_of(&message), written - UINT64_C(3700000000000), written - UINT64_C(3500000000000));
    /* No wrong clock drives it to its end, and there is no number above the last one. */
    start_anew();
    message = reading_as(TRY_A, written - 41 + 999 + UINT64_C(90000000000000));
    assert_failed(&message, "over a day ahead");
    assert_free();
    message = reading_as(TRY_A, written + 958);
    set_counter(INT64_MAX);
    assert_true(counter_of(&message) == INT64_MAX);
    start_anew();
    assert_string_equal(server_ask(server, "SET", "door:fence", "x"), "OK");
    assert_failed(&message, "the key of the fencing counter holds something else");
    assert_free();
}

QUEUE_TEST(a_reader_may_write_a_number_back_that_is_there) {
    const uint64_t mine = (uint64_t)server_now_us() / 1000 * 1000000 + 999;
    struct redlock_message message = message_with(REDLOCK_OP_FENCE, TRY_A);
    message.fence = mine;
    assert_denied(&message, "the key is missing");
    assert_reads(READER_A);
    assert_denied(&message, "held under another token");
    assert_reads(TRY_A);
    assert_granted(&message);
    assert_counter(mine);
    assert_granted(&message); /* as others do who read */
    message.fence = mine - 1;
    assert_answer(&message, REDLOCK_VOTE_DENIED, true, false, mine);
    message.fence = mine + 1000;
    assert_granted(&message);
    /* A writer's is above what was there before. */
    message.fence = mine + 1001;
    assert_granted(&message);
    assert_answer(&message, REDLOCK_VOTE_DENIED, true, false, mine + 1001);
    /* An entry that has ended is none. */
    start_anew();
    assert_reads(READER_A);
    assert_is(try_for(TRY_A, 50), REDLOCK_VOTE_GRANTED);
    wait_ms(60);
    assert_denied(&message, "the key is missing");
}
