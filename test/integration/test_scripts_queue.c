/* The queue of a lock on a real server: who is next, who is told, and what stands after a fault. */
#include "queue_scripts.h"

static void assert_refused(struct wait wait, const char *words) {
    assert_is(wait_as(wait).vote, REDLOCK_VOTE_FAILED);
    assert_says(words);
}

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(waiters_are_served_in_the_order_of_their_tickets) {
    for (int by_source = 0; by_source < 2; by_source++) {
        start_anew();
        lock_as(OURS);
        assert_queued((struct wait){.token = FIRST, .ticket = 30, .by_source = by_source}, 0, OURS);
        assert_queued((struct wait){.token = THIRD, .ticket = 20, .by_source = by_source}, 0, OURS);
        /* By token. */
        assert_queued((struct wait){.token = SECOND, .ticket = 20, .by_source = by_source}, 0, OURS);
        assert_queued((struct wait){.token = FIRST, .ticket = 30, .by_source = by_source}, 2, OURS);
        static const char *const order[] = {OURS, SECOND, THIRD, FIRST};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(release_as(order[i]), HANDED_OVER);
            assert_value("door", order[i + 1]);
            assert_in_range(server_pttl_ms(server, "door"), TTL_MS / 2, TTL_MS);
            assert_pushed(order[i + 1]);
        }
        assert_int_equal(release_as(FIRST), DELETED);
        assert_int_equal(server_key_count(server), 0);
        assert_silence();
    }
}

QUEUE_TEST(the_queues_keys_end_by_themselves) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_in_range(server_pttl_ms(server, QUEUE), QUEUE_MS / 2, QUEUE_MS);
    assert_in_range(server_pttl_ms(server, WAITERS), QUEUE_MS / 2, QUEUE_MS);
    assert_string_equal(server_ask(server, "PEXPIRE", QUEUE, "400000"), "1");
    assert_string_equal(server_ask(server, "PEXPIRE", WAITERS, "400000"), "1");
    /* One entry, and a later end. */
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_string_equal(say("ZCARD", QUEUE), "1");
    assert_string_equal(say("HLEN", WAITERS), "1");
    assert_true(server_pttl_ms(server, QUEUE) > 400000 && server_pttl_ms(server, WAITERS) > 400000);
}

QUEUE_TEST(a_free_lock_is_taken_on_request) {
    assert_queued((struct wait){.token = SECOND, .ticket = 2, .enters_only = true}, 0, NULL);
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .enters_only = true}, 0, NULL);
    assert_queued((struct wait){.token = THIRD, .ticket = 3}, 1, FIRST); /* it serves the first */
    assert_pushed(FIRST);
    unlock();
    assert_taken((struct wait){.token = SECOND, .ticket = 2}); /* its answer is its grant */
    assert_silence();
    assert_in_range(server_pttl_ms(server, "door"), TTL_MS / 2, TTL_MS);
    assert_string_equal(server_ask(server, "ZRANGE", QUEUE, "0", "-1"), THIRD "\n");
    assert_string_equal(say("HKEYS", WAITERS), THIRD "\n");
    start_anew();
    assert_taken((struct wait){.token = SECOND, .ticket = 2});
    assert_int_equal(server_key_count(server), 1);
}

/* The grant is that of the last request: the key lives for its whole ttl. */
QUEUE_TEST(who_holds_the_lock_is_told_so) {
    for (int enters_only = 0; enters_only < 2; enters_only++) {
        lock_as(FIRST);
        assert_string_equal(server_ask(server, "PEXPIRE", "door", "100000"), "1");
        assert_taken((struct wait){.token = FIRST, .ticket = 1, .enters_only = enters_only});
        assert_in_range(server_pttl_ms(server, "door"), TTL_MS / 2, TTL_MS);
        /* Never shortened. */
        assert_string_equal(server_ask(server, "PEXPIRE", "door", "900000"), "1");
        assert_taken((struct wait){.token = FIRST, .ticket = 1, .enters_only = enters_only});
        assert_in_range(server_pttl_ms(server, "door"), TTL_MS + 1, 900000);
        assert_int_equal(server_key_count(server), 1);
    }
}

QUEUE_TEST(who_cannot_be_told_is_passed_over) {
    for (int released = 0; released < 2; released++) { /* by a release, by a WAIT */
        start_anew();
        lock_as(OURS);
        assert_queued((struct wait){.token = THIRD, .ticket = 4}, 0, OURS);
        assert_queued((struct wait){.token = FIRST, .ticket = 1, .channel = DEAF}, 0, OURS);
        /* Stale at once. It meets the first, whom nobody can tell. */
        assert_queued((struct wait){.token = SECOND, .ticket = 2, .stale_ms = -1}, 0, OURS);
        assert_string_equal(say("ZCARD", QUEUE), "2");
        queue_add(1, FIRST, DEAF, STALE_MS);
        assert_string_equal(server_ask(server, "ZADD", QUEUE, "3", "no details"), "1");
        assert_string_equal(server_ask(server, "ZADD", QUEUE, "3", "odd details"), "1");
        assert_string_equal(server_ask(server, "HSET", WAITERS, "odd details", "99999999999999 1000 5 9"), "1");
        if (released) {
            assert_int_equal(release_as(OURS), HANDED_OVER);
        } else {
            unlock();
            assert_queued((struct wait){.token = OURS, .ticket = 5}, 0, THIRD);
            assert_int_equal(release_as(OURS), OTHERS);
        }
        assert_value("door", THIRD);
        assert_pushed(THIRD);
        assert_int_equal(server_key_count(server), 1);
    }
}

QUEUE_TEST(nobody_who_can_be_told_leaves_the_lock_free) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .channel = DEAF}, 0, OURS);
    assert_int_equal(release_as(OURS), DELETED);
    assert_int_equal(server_key_count(server), 0);
}

QUEUE_TEST(a_release_can_keep_the_lock_from_the_queue) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_int_equal(release_with(OURS, REDLOCK_HAND_NOBODY), DELETED);
    assert_free();
    assert_silence();
    assert_string_equal(say("ZCARD", QUEUE), "1");
}

QUEUE_TEST(a_release_leaves_the_queue) {
    for (int keeps = 0; keeps < 2; keeps++) {
        start_anew();
        lock_as(OURS);
        assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
        assert_queued((struct wait){.token = SECOND, .ticket = 2}, 1, OURS);
        assert_int_equal(release_with(FIRST, (enum redlock_handing)keeps), OTHERS);
        assert_string_equal(server_ask(server, "ZRANGE", QUEUE, "0", "-1"), SECOND "\n");
        assert_string_equal(say("HKEYS", WAITERS), SECOND "\n");
        unlock();
        assert_int_equal(release_with(SECOND, (enum redlock_handing)keeps), MISSING);
        assert_int_equal(server_key_count(server), 0);
    }
    /* A lock that was healed while its token was in line does not go to itself. */
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .enters_only = true}, 0, NULL);
    assert_queued((struct wait){.token = SECOND, .ticket = 2, .enters_only = true}, 1, NULL);
    lock_as(FIRST);
    assert_int_equal(release_as(FIRST), HANDED_OVER);
    assert_value("door", SECOND);
    assert_pushed(SECOND);
    assert_int_equal(server_key_count(server), 1);
    /* Nor does it stay in line if nobody gets the lock. */
    start_anew();
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .enters_only = true}, 0, NULL);
    lock_as(FIRST);
    assert_int_equal(release_with(FIRST, REDLOCK_HAND_NOBODY), DELETED);
    assert_int_equal(server_key_count(server), 0);
}

QUEUE_TEST(keys_of_another_type_are_faults_of_the_queue_alone) {
    static const char *const broken[] = {QUEUE, WAITERS};
    for (int i = 0; i < 2; i++) {
        start_anew();
        assert_string_equal(server_ask(server, "RPUSH", broken[i], "x"), "1");
        assert_refused((struct wait){.token = FIRST, .ticket = 1}, "WRONGTYPE");
        assert_free();
        lock_as(OURS);
        assert_refused((struct wait){.token = FIRST, .ticket = 1}, "WRONGTYPE");
        assert_int_equal(release_as(FIRST), OTHERS);
        assert_value("door", OURS);
        assert_in_range(server_pttl_ms(server, "door"), TTL_MS / 2, TTL_MS);
        if (i == 1) { /* some entry of before */
            assert_string_equal(server_ask(server, "ZADD", QUEUE, "1", SECOND), "1");
        }
        assert_int_equal(release_as(OURS), DELETED);
        assert_free();
        assert_string_equal(say("LLEN", broken[i]), "1");
        assert_int_equal(server_key_count(server), 1);
    }
    /* A lock of another type is a lock of somebody else. */
    start_anew();
    assert_string_equal(server_ask(server, "RPUSH", "door", "x"), "1");
    const struct redlock_answer answer = wait_as((struct wait){.token = FIRST, .ticket = 1});
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_memory_equal(answer.holder, "(a list)", answer.holder_size);
    assert_int_equal(answer.holder_ttl_ms, -1);
    assert_int_equal(release_as(FIRST), OTHERS);
    assert_string_equal(say("LLEN", "door"), "1");
}

/* Each misses one right. Whichever it is, no lock is left to nobody, and no queue without end. */
QUEUE_TEST(an_acl_without_the_queue_leaves_no_lock) {
    static const struct {
        const char *right;
        enum released released;
        redlock_vote_kind vote;
    } rows[] = {
        {"-publish", DELETED, REDLOCK_VOTE_FAILED},    {"resetchannels", DELETED, REDLOCK_VOTE_FAILED},
        {"-zadd", HANDED_OVER, REDLOCK_VOTE_FAILED},   {"-hset", HANDED_OVER, REDLOCK_VOTE_FAILED},
        {"-zpopmin", DELETED, REDLOCK_VOTE_FAILED},    {"-hget", DELETED, REDLOCK_VOTE_FAILED},
        {"-hdel", DELETED, REDLOCK_VOTE_FAILED},       {"-time", DELETED, REDLOCK_VOTE_FAILED},
        {"-zrank", HANDED_OVER, REDLOCK_VOTE_FAILED},  {"-pexpire", HANDED_OVER, REDLOCK_VOTE_FAILED},
        {"-exists", DELETED, REDLOCK_VOTE_DENIED},     {"-zrem", DELETED, REDLOCK_VOTE_DENIED},
        {"-zrange", HANDED_OVER, REDLOCK_VOTE_DENIED}, {"-pubsub", HANDED_OVER, REDLOCK_VOTE_DENIED},
        {"-zcard", HANDED_OVER, REDLOCK_VOTE_DENIED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *right = rows[i].right;
        start_anew();
        assert_string_equal(raw_ask(&line, "AUTH", "all", "geheim"), "OK");
        lock_as(OURS);
        assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
        assert_string_equal(
            server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~*", "allchannels", right),
            "OK");
        assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
        assert_int_equal(release_as(OURS), rows[i].released);
        start_anew();
        assert_string_equal(server_ask(server, "ZADD", QUEUE, "1", FIRST), "1");
        assert_string_equal(server_ask(server, "HSET", WAITERS, FIRST, "99999999999999 600000 5 9 " CHANNEL), "1");
        assert_int_equal(wait_as((struct wait){.token = SECOND, .ticket = 2}).vote, rows[i].vote);
        const bool served = rows[i].vote == REDLOCK_VOTE_DENIED || strcmp(right, "-zrank") == 0;
        assert_string_equal(say("GET", "door"), served ? FIRST : "(nil)");
        assert_string_equal(server_ask(server, "ZSCORE", QUEUE, SECOND),
                            rows[i].vote == REDLOCK_VOTE_DENIED ? "2" : "(nil)");
    }
}

QUEUE_TEST(without_the_keys_a_release_deletes) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_string_equal(server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~door"), "OK");
    assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
    assert_refused((struct wait){.token = SECOND, .ticket = 2}, "NOPERM");
    assert_int_equal(release_as(OURS), DELETED);
    assert_free();
    assert_int_equal(release_as(OURS), MISSING);
}

QUEUE_TEST(without_memory_nobody_enters_and_releases_hand_over) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "1"), "OK");
    assert_refused((struct wait){.token = SECOND, .ticket = 2}, "OOM command");
    assert_string_equal(say("ZCARD", QUEUE), "1");
    assert_int_equal(release_as(OURS), HANDED_OVER);
    assert_value("door", FIRST);
    assert_is(wait_as((struct wait){.token = FIRST, .ticket = 1}).vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(release_as(FIRST), DELETED);
    assert_refused((struct wait){.token = SECOND, .ticket = 2}, "OOM");
    assert_int_equal(server_key_count(server), 0);
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "0"), "OK");
}

/* The next would be given the lock for a time that the server refuses: it is told nothing. */
QUEUE_TEST(a_lock_that_cannot_be_set_is_not_announced) {
    for (int released = 0; released < 2; released++) {
        start_anew();
        assert_string_equal(server_ask(server, "ZADD", QUEUE, "1", FIRST), "1");
        assert_string_equal(server_ask(server, "HSET", WAITERS, FIRST, "99999999999999 0 5 9 " CHANNEL), "1");
        if (released) {
            lock_as(OURS);
            assert_int_equal(release_as(OURS), DELETED);
        } else {
            assert_refused((struct wait){.token = SECOND, .ticket = 2}, "invalid expire");
        }
        assert_int_equal(server_key_count(server), 0);
        assert_silence();
    }
}

QUEUE_TEST(a_replica_hands_nothing_over) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_string_equal(server_ask(server, "REPLICAOF", "127.0.0.1", "1"), "OK");
    assert_refused((struct wait){.token = SECOND, .ticket = 2}, "READONLY");
    struct redlock_message release = message_with(REDLOCK_OP_RELEASE, OURS);
    assert_failed(&release, "READONLY");
    assert_value("door", OURS);
    assert_string_equal(server_ask(server, "REPLICAOF", "NO", "ONE"), "OK");
    assert_silence();
}

/* RELEASE cannot take a token out of the line there. The line may still serve it, and its push is
 * then given back. */
QUEUE_TEST(a_replica_keeps_a_place_after_its_release) {
    lock_as(OURS);
    assert_queued((struct wait){.token = FIRST, .ticket = 1}, 0, OURS);
    assert_queued((struct wait){.token = SECOND, .ticket = 2}, 1, OURS);
    assert_string_equal(server_ask(server, "REPLICAOF", "127.0.0.1", "1"), "OK");
    assert_int_equal(release_as(FIRST), OTHERS);
    assert_string_equal(server_ask(server, "REPLICAOF", "NO", "ONE"), "OK");
    assert_int_equal(release_as(OURS), HANDED_OVER);
    assert_pushed(FIRST);
    assert_int_equal(release_as(FIRST), HANDED_OVER);
    assert_pushed(SECOND);
    assert_int_equal(release_as(SECOND), DELETED);
    assert_free();
}
