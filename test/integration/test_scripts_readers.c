/* Readers and writers in one queue on a real server: who is next, who comes in, who is told. */
#include "shared_scripts.h"

#define WRITES_FIRST  ((struct wait){.token = FIRST, .ticket = 10})
#define READS_A       ((struct wait){.token = READER_A, .ticket = 11})
#define WRITES_SECOND ((struct wait){.token = SECOND, .ticket = 12})
#define READS_B       ((struct wait){.token = READER_B, .ticket = 13})
#define READS_C       ((struct wait){.token = READER_C, .ticket = 14})
#define WRITES_THIRD  ((struct wait){.token = THIRD, .ticket = 15})
#define READS_D       ((struct wait){.token = READER_D, .ticket = 16})

TESTS_WITH(scripts_begin, scripts_end);

static void assert_in_line(const char *tokens) {
    assert_string_equal(server_ask(server, "ZRANGE", QUEUE, "0", "-1"), tokens);
}

/* Whom a WAIT meets that nobody grants: those who write see who has the lock, those who read who
 * keeps them out. */
QUEUE_TEST(nobody_passes_who_came_first) {
    assert_reads(TRY_A);
    assert_reads(TRY_B);
    assert_waits_beside(WRITES_FIRST, 0, TRY_B); /* g comes before k */
    assert_is(try_for(READER_D, 0), REDLOCK_VOTE_DENIED);
    assert_kept_out_by(READS_A, 1, FIRST);
    assert_waits_beside(WRITES_SECOND, 2, TRY_B);
    assert_kept_out_by(READS_B, 3, FIRST);
    assert_kept_out_by(READS_C, 4, FIRST);
    assert_waits_beside(WRITES_THIRD, 5, TRY_B);
    assert_in_line(FIRST "\n" READER_A "\n" SECOND "\n" READER_B "\n" READER_C "\n" THIRD "\n");
    assert_int_equal(release_as(TRY_A), DELETED);
    assert_silence();
    assert_int_equal(release_as(TRY_B), HANDED_OVER);
    assert_pushed(FIRST);
    assert_value("door", FIRST);
    assert_int_equal(release_as(FIRST), HANDED_OVER);
    assert_pushed(READER_A);
    assert_readers(READER_A, NULL);
    assert_int_equal(release_as(READER_A), HANDED_OVER);
    assert_pushed(SECOND);
    assert_int_equal(release_as(SECOND), HANDED_OVER); /* to all who read, up to the next writer */
    assert_pushed(READER_B);
    assert_pushed(READER_C);
    assert_silence();
    assert_readers(READER_B, READER_C, NULL);
    assert_entry_ms(READER_C, TTL_MS / 2, TTL_MS);
    assert_in_line(THIRD "\n");
    assert_true(server_pttl_ms(server, QUEUE) > 0);
    assert_int_equal(release_as(READER_B), DELETED);
    assert_int_equal(release_as(READER_C), HANDED_OVER);
    assert_pushed(THIRD);
    assert_int_equal(release_as(THIRD), DELETED);
    assert_int_equal(server_key_count(server), 0);
}

QUEUE_TEST(a_free_lock_goes_to_the_first_and_to_those_who_read_with_it) {
    assert_joins(READS_A);
    assert_int_equal(server_key_count(server), 1);
    assert_joins(READS_B); /* nobody is before it */
    assert_readers(READER_A, READER_B, NULL);
    start_anew();
    for (int i = 0; i < 2; i++) {
        static const struct wait enters[] = {{.token = READER_A, .ticket = 11, .enters_only = true},
                                             {.token = READER_B, .ticket = 13, .enters_only = true}};
        assert_queued(enters[i], (uint32_t)i, NULL);
    }
    assert_joins(READS_C); /* it serves those before it, too */
    assert_pushed(READER_A);
    assert_pushed(READER_B);
    assert_silence();
    assert_readers(READER_A, READER_B, READER_C, NULL);
    /* One who writes serves them as well, and sees them. */
    start_anew();
    assert_queued((struct wait){.token = READER_A, .ticket = 11, .enters_only = true}, 0, NULL);
    assert_waits_beside(WRITES_SECOND, 0, READER_A);
    assert_pushed(READER_A);
    assert_int_equal(release_as(READER_A), HANDED_OVER);
    assert_value("door", SECOND);
}

QUEUE_TEST(a_wait_that_does_not_take_does_not_join) {
    assert_reads(TRY_A);
    assert_waits_beside((struct wait){.token = READER_A, .ticket = 11, .enters_only = true}, 0, NULL);
    assert_readers(TRY_A, NULL);
    /* It is told so, and asks. */
    assert_joins(READS_A);
}

QUEUE_TEST(who_reads_is_told_so_again) {
    assert_joins(READS_A);
    assert_string_equal(server_ask(server, "ZADD", "door", "XX", "9999999999999", READER_A), "0");
    assert_joins(READS_A); /* never shortened */
    assert_string_equal(server_ask(server, "ZSCORE", "door", READER_A), "9999999999999");
    assert_int_equal(server_key_count(server), 1);
}

QUEUE_TEST(a_writer_who_gives_up_lets_readers_in) {
    for (int keeps = 0; keeps < 2; keeps++) {
        start_anew();
        assert_reads(TRY_A);
        assert_waits_beside(WRITES_FIRST, 0, TRY_A);
        assert_kept_out_by(READS_A, 1, FIRST);
        assert_kept_out_by(READS_B, 2, FIRST);
        assert_waits_beside(WRITES_THIRD, 3, TRY_A);
        assert_int_equal(release_with(FIRST, (enum redlock_handing)keeps), OTHERS);
        if (keeps) { /* to a node that may not vote */
            assert_readers(TRY_A, NULL);
        } else {
            assert_pushed(READER_A);
            assert_pushed(READER_B);
            assert_readers(TRY_A, READER_A, READER_B, NULL);
        }
        assert_silence();
    }
}

QUEUE_TEST(a_reader_who_leaves_lets_readers_in) {
    assert_reads(TRY_A);
    assert_reads(TRY_B);
    queue_add(11, READER_A, CHANNEL, STALE_MS);
    assert_int_equal(release_as(TRY_A), HANDED_OVER);
    assert_pushed(READER_A);
    assert_readers(TRY_B, READER_A, NULL);
}

/* Nobody listens for them, or their places are stale. */
QUEUE_TEST(the_dead_keep_nobody_out) {
    static const struct {
        const char *channel;
        int64_t good_ms;
    } dead[] = {{DEAF, STALE_MS}, {CHANNEL, -1}};
    for (int i = 0; i < 2; i++) {
        for (int by = 0; by < 3; by++) { /* a try, a WAIT, a RELEASE */
            start_anew();
            assert_reads(TRY_A);
            queue_add(10, FIRST, dead[i].channel, dead[i].good_ms);
            if (by == 0) {
                assert_reads(TRY_B);
                assert_int_equal(server_key_count(server), 1);
                continue;
            }
            queue_add(12, SECOND, dead[i].channel, dead[i].good_ms);
            if (by == 1) {
                assert_joins(READS_B);
            } else {
                queue_add(13, READER_B, CHANNEL, STALE_MS);
                assert_int_equal(release_as(TRY_A), HANDED_OVER);
                assert_pushed(READER_B);
                assert_reads(TRY_A);
            }
            assert_readers(TRY_A, READER_B, NULL);
            assert_int_equal(server_key_count(server), 1);
        }
    }
}

QUEUE_TEST(readers_and_writers_who_cannot_be_told_are_passed_over) {
    for (int by_wait = 0; by_wait < 2; by_wait++) {
        start_anew();
        lock_as(OURS);
        /* Dead ones of each kind before and between the living. */
        queue_add(1, "00000000000000010123456789abcdef0123456789abcdefs", DEAF, STALE_MS);
        queue_add(2, "00000000000000020123456789abcdef0123456789abcdef", DEAF, STALE_MS);
        queue_add(11, READER_A, CHANNEL, STALE_MS);
        queue_add(12, SECOND, DEAF, STALE_MS);
        queue_add(13, READER_B, CHANNEL, STALE_MS);
        queue_add(14, READER_C, DEAF, STALE_MS);
        queue_add(15, THIRD, CHANNEL, STALE_MS);
        queue_add(16, READER_D, CHANNEL, STALE_MS);
        if (by_wait) {
            unlock();
            assert_waits_beside((struct wait){.token = FIRST, .ticket = 20}, 2, READER_A);
        } else {
            assert_int_equal(release_as(OURS), HANDED_OVER);
        }
        assert_pushed(READER_A);
        assert_pushed(READER_B);
        assert_silence();
        assert_readers(READER_A, READER_B, NULL);
    }
}

/* What the server counts as heard and what hears may differ, where it may not be asked. */
QUEUE_TEST(an_entry_that_nobody_hears_of_is_taken_back) {
    assert_string_equal(
        server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~*", "allchannels", "-pubsub"),
        "OK");
    assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
    lock_as(OURS);
    queue_add(11, READER_A, DEAF, STALE_MS);
    assert_int_equal(release_as(OURS), DELETED);
    assert_int_equal(server_key_count(server), 0);
    /* Beside others: the key ends with them again. */
    assert_is(try_for(TRY_A, 100000), REDLOCK_VOTE_GRANTED);
    assert_reads(TRY_B);
    queue_add(11, READER_A, DEAF, STALE_MS);
    queue_add(12, READER_B, CHANNEL, STALE_MS);
    queue_add(13, READER_C, DEAF, STALE_MS);
    assert_int_equal(release_as(TRY_B), HANDED_OVER);
    assert_pushed(READER_B);
    assert_readers(TRY_A, READER_B, NULL);
    assert_int_equal(release_as(READER_B), DELETED);
    assert_in_range(server_pttl_ms(server, "door"), 50000, 100001);
}

/* The first is told; then the server refuses. */
QUEUE_TEST(an_error_takes_nothing_from_those_who_were_told) {
    for (int by_wait = 0; by_wait < 2; by_wait++) {
        start_anew();
        lock_as(OURS);
        queue_add(11, READER_A, CHANNEL, STALE_MS);
        /* A ttl that no key can have. */
        assert_string_equal(server_ask(server, "ZADD", QUEUE, "12", READER_B), "1");
        assert_string_equal(
            server_ask(server, "HSET", WAITERS, READER_B, "99999999999999 9223372036854775807 5 9 " CHANNEL), "1");
        if (by_wait) {
            unlock();
            (void)wait_as((struct wait){.token = THIRD, .ticket = 20});
            assert_string_equal(server_ask(server, "ZSCORE", QUEUE, THIRD), "(nil)");
        } else {
            assert_int_equal(release_as(OURS), HANDED_OVER);
        }
        assert_pushed(READER_A);
        assert_silence();
        assert_string_not_equal(server_ask(server, "ZSCORE", "door", READER_A), "(nil)");
        assert_in_range(server_pttl_ms(server, "door"), TTL_MS / 2, TTL_MS);
    }
}

QUEUE_TEST(without_a_right_to_publish_no_reader_is_left_behind) {
    assert_string_equal(
        server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~*", "allchannels", "-publish"),
        "OK");
    assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
    lock_as(OURS);
    queue_add(11, READER_A, CHANNEL, STALE_MS);
    assert_int_equal(release_as(OURS), DELETED);
    assert_free();
    assert_reads(TRY_A);
    assert_reads(TRY_B);
    queue_add(11, READER_A, CHANNEL, STALE_MS);
    assert_int_equal(release_as(TRY_B), DELETED);
    assert_readers(TRY_A, NULL);
    queue_add(11, READER_A, CHANNEL, STALE_MS);
    assert_is(wait_as(READS_B).vote, REDLOCK_VOTE_FAILED);
    assert_readers(TRY_A, NULL);
}

/* That is 0.6 ms of the node's time. The next one asks for all that are left. */
QUEUE_TEST(at_most_64_come_in_at_once_and_the_next_is_told) {
    char token[64];
    lock_as(OURS);
    for (int i = 0; i < 70; i++) {
        (void)snprintf(token, sizeof token, "%016x0123456789abcdef0123456789abcdefs", 0x1000 + i);
        queue_add((uint64_t)i, token, CHANNEL, STALE_MS);
    }
    assert_int_equal(release_as(OURS), HANDED_OVER);
    for (int i = 0; i < 65; i++) {
        (void)snprintf(token, sizeof token, "%016x0123456789abcdef0123456789abcdefs", 0x1000 + i);
        if (i < 64) {
            assert_pushed(token);
        } else {
            assert_told(token, CHANNEL);
        }
    }
    assert_silence();
    assert_string_equal(say("ZCARD", "door"), "64");
    assert_joins((struct wait){.token = token, .ticket = 64});
    assert_string_equal(say("ZCARD", "door"), "70");
    assert_joins((struct wait){.token = READER_D, .ticket = 100});
    assert_string_equal(say("ZCARD", "door"), "71");
}

QUEUE_TEST(while_the_lock_is_left_free_no_reader_comes_in) {
    for (int reads = 0; reads < 2; reads++) { /* a writer leaves it, or the last reader */
        start_anew();
        if (reads) {
            assert_reads(TRY_A);
            assert_reads(TRY_B);
            queue_add(11, READER_A, CHANNEL, STALE_MS);
            queue_add(12, SECOND, CHANNEL, STALE_MS);
            queue_add(9, FIRST, CHANNEL, STALE_MS);
            assert_int_equal(release_with(TRY_A, REDLOCK_HAND_LATER), DELETED); /* others read on */
            assert_silence();
            assert_int_equal(release_with(TRY_B, REDLOCK_HAND_LATER), HANDED_OVER);
            assert_told(FIRST, CHANNEL);
            assert_int_equal(release_as(FIRST), MISSING);
        } else {
            lock_as(OURS);
            queue_add(11, READER_A, CHANNEL, STALE_MS);
            queue_add(12, SECOND, CHANNEL, STALE_MS);
            assert_int_equal(release_with(OURS, REDLOCK_HAND_LATER), HANDED_OVER);
        }
        assert_told(READER_A, CHANNEL);
        assert_free();
        assert_is(try_for(READER_D, 0), REDLOCK_VOTE_DENIED);
        const struct redlock_answer answer = wait_as(READS_A);
        assert_is(answer.vote, REDLOCK_VOTE_DENIED);
        assert_null(answer.holder);
        assert_true(answer.holder_ttl_ms > 0 && answer.holder_ttl_ms <= 50);
        assert_free();
        wait_ms(60);
        assert_joins(READS_A);
        assert_silence();
    }
}

QUEUE_TEST(keys_of_another_type_are_faults_of_the_queue_alone) {
    assert_reads(TRY_A);
    assert_string_equal(server_ask(server, "SET", WAITERS, "x"), "OK");
    assert_is(wait_as(READS_A).vote, REDLOCK_VOTE_FAILED);
    assert_says("WRONGTYPE");
    assert_readers(TRY_A, NULL);
    assert_false(server_has_key(server, QUEUE));
    assert_string_equal(server_ask(server, "ZADD", QUEUE, "1", READER_B), "1");
    assert_int_equal(release_as(TRY_A), DELETED);
    assert_free();
}

/* With docs/operations.md's line for those who only write, and with two more commands. */
QUEUE_TEST(those_who_read_need_two_commands_more) {
    for (int more = 0; more < 2; more++) {
        start_anew();
        assert_string_equal(raw_ask(&line, "AUTH", "all", "geheim"), "OK");
        assert_string_equal(server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "~*", "&redlock:*",
                                       "-@all", "+set", "+get", "+del", "+pexpire", "+pttl", "+type", "+eval",
                                       "+evalsha", "+time", "+exists", "+zadd", "+zpopmin", "+zrem", "+zrank", "+zcard",
                                       "+zrange", "+hset", "+hget", "+hdel", "+publish", "+pubsub|numsub",
                                       more ? "+zscore" : "+ping", more ? "+zremrangebyscore" : "+ping"),
                            "OK");
        assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
        /* One who writes never misses them. */
        assert_taken(WRITES_FIRST);
        assert_queued(WRITES_SECOND, 0, FIRST);
        assert_int_equal(release_as(FIRST), HANDED_OVER);
        assert_pushed(SECOND);
        assert_int_equal(release_as(SECOND), DELETED);
        if (!more) {
            assert_is(try_for(TRY_A, 0), REDLOCK_VOTE_FAILED);
            assert_is(wait_as(READS_A).vote, REDLOCK_VOTE_FAILED);
            assert_int_equal(server_key_count(server), 0);
            continue;
        }
        assert_reads(TRY_A);
        assert_reads(TRY_B);
        assert_is(keep_for(TRY_A, 0), REDLOCK_VOTE_GRANTED);
        assert_waits_beside(WRITES_FIRST, 0, TRY_B);
        assert_kept_out_by(READS_A, 1, FIRST);
        assert_int_equal(release_as(TRY_A), DELETED);
        assert_int_equal(release_as(TRY_B), HANDED_OVER);
        assert_int_equal(release_as(FIRST), HANDED_OVER);
        assert_pushed(FIRST);
        assert_pushed(READER_A);
        assert_int_equal(release_as(READER_A), DELETED);
        assert_int_equal(server_key_count(server), 0);
    }
}

/* FAILED means "not applied" (R4): no release goes there. */
QUEUE_TEST(a_try_that_fails_leaves_no_entry) {
    static const char *const needed[] = {"-zscore", "-zremrangebyscore", "-zrange", "-zadd"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        start_anew();
        assert_reads(TRY_A);
        assert_string_equal(server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "allkeys",
                                       "allchannels", "+@all", needed[i]),
                            "OK");
        assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
        if (try_for(TRY_B, 0) == REDLOCK_VOTE_GRANTED) {
            assert_readers(TRY_A, TRY_B, NULL);
        } else {
            assert_readers(TRY_A, NULL);
        }
        assert_string_equal(raw_ask(&line, "AUTH", "all", "geheim"), "OK");
    }
}
