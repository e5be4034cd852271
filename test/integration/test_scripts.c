/* What the scripts do on a real server and how the library reads that: who has the lock, who raises
 * the counter. */
#include "core/fence.h"
#include "scripts_kit.h"

#define HOUR_US INT64_C(3600000000)
#define DAY_MS  INT64_C(86400000)
/* Outside of what a node accepts, however slow this machine is. */
#define LONG_US  (HOUR_US + HOUR_US / 6)
#define SHORT_US (HOUR_US - HOUR_US / 6)

TESTS_WITH(scripts_begin, scripts_end);
#define SCRIPT_TEST(name) TEST_WITH(name, scripts_setup, scripts_teardown)

SCRIPT_TEST(the_sha1s_are_the_servers) {
    for (int i = 0; i < REDLOCK_SCRIPT_COUNT; i++) {
        const struct redlock_script *script = redlock_script_get((enum redlock_script_id)i);
        assert_string_equal(server_ask(server, "SCRIPT", "LOAD", script->source), script->sha1);
    }
}

/* Every acquire sets the same plain string with a ttl. */
SCRIPT_TEST(every_acquire_sets_the_same_key) {
    for (size_t i = 0; i < FORMS; i++) {
        for (uint64_t fence = 0; fence <= 5; fence += 5) {
            struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE, fence);
            take_form(&message, i);
            start_anew();
            assert_granted(&message);
            assert_value("door", OURS);
            assert_in_range(server_pttl_ms(server, "door"), 1, TTL_MS);
            assert_int_equal(server_key_count(server), fence == 0 ? 1 : 2);
            lock_as(THEIRS);
            if (fence == 0) {
                assert_denied(&message, "held under another token");
            } else {
                assert_answer(&message, REDLOCK_VOTE_DENIED, true, false, fence);
                assert_says("held under another token");
            }
            assert_value("door", THEIRS);
        }
    }
}

SCRIPT_TEST(a_proposal_is_accepted_above_the_counter_only) {
    for (size_t i = 0; i < FORMS; i++) {
        start_anew();
        struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE, UINT64_C(1795167037123456789));
        take_form(&message, i);
        lock_as(THEIRS);
        assert_denied(&message, "held under another token"); /* and without a counter */
        unlock();
        assert_granted(&message);
        assert_counter(message.fence);
        assert_int_equal(server_pttl_ms(server, "door:fence"), -1);
        for (uint64_t lower = 0; lower < 2; lower++) {
            struct redlock_message beaten = message;
            beaten.fence -= lower;
            unlock();
            assert_answer(&beaten, REDLOCK_VOTE_GRANTED, true, false, message.fence);
            assert_value("door", OURS);
            assert_counter(message.fence);
            assert_answer(&beaten, REDLOCK_VOTE_DENIED, true, false, message.fence);
        }
        unlock();
        message.fence++;
        assert_granted(&message);
        assert_counter(message.fence);
    }
}

/* A node stores no number that a clock has not reached yet, whoever asks. Else all other nodes
 * would have to go above it. */
SCRIPT_TEST(a_number_far_ahead_of_the_nodes_clock_is_not_stored) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_FENCE};
    static const char words[] = "ERR the fencing token is over a day ahead of the clock of the node";
    const uint64_t day = (uint64_t)DAY_MS * 1000000;
    for (size_t i = 0; i < 2 * FORMS; i++) {
        const enum redlock_operation operation = operations[i % 2];
        const uint64_t now = (uint64_t)server_now_us() * 1000;
        start_anew();
        struct redlock_message message = message_of(operation, REDLOCK_FENCE_MAX);
        take_form(&message, i / 2);
        if (operation == REDLOCK_OP_FENCE) {
            lock_as(OURS);
        }
        assert_failed(&message, words);
        message.fence = now + day + LONG_US * 1000;
        assert_failed(&message, words);
        assert_int_equal(server_key_count(server), operation == REDLOCK_OP_FENCE ? 1 : 0);
        message.fence = now + day - LONG_US * 1000;
        assert_granted(&message);
        assert_counter(message.fence);
        /* A counter that is already far ahead goes on from there. */
        const uint64_t far = UINT64_C(5680281600123456789);
        set_counter(far);
        unlock();
        if (operation == REDLOCK_OP_FENCE) {
            lock_as(OURS);
        }
        message.fence = far + day + 1;
        assert_failed(&message, words);
        message.fence = far + day;
        assert_granted(&message);
        assert_counter(message.fence);
        unlock();
        if (operation == REDLOCK_OP_FENCE) {
            lock_as(OURS);
        }
        set_counter(REDLOCK_FENCE_MAX);
        message.fence = REDLOCK_FENCE_MAX;
        assert_answer(&message, operation == REDLOCK_OP_FENCE ? REDLOCK_VOTE_DENIED : REDLOCK_VOTE_GRANTED, true, false,
                      REDLOCK_FENCE_MAX);
    }
}

SCRIPT_TEST(a_token_is_written_back_where_the_lock_is_ours) {
    for (int i = 0; i < 2; i++) { /* by its SHA1, by its source */
        start_anew();
        struct redlock_message message = message_of(REDLOCK_OP_FENCE, 100);
        message.by_source = i == 1;
        assert_denied(&message, "the key is missing");
        lock_as(THEIRS);
        assert_denied(&message, "held under another token");
        unlock();
        assert_string_equal(server_ask(server, "RPUSH", "door", "x"), "1");
        assert_denied(&message, "held under another token");
        assert_false(server_has_key(server, "door:fence"));
        lock_as(OURS);
        assert_granted(&message);
        assert_counter(100);
        assert_int_equal(server_pttl_ms(server, "door:fence"), -1);
        /* An equal number need not be ours. */
        assert_answer(&message, REDLOCK_VOTE_DENIED, true, false, 100);
        assert_says("not below");
        message.fence = 99;
        assert_answer(&message, REDLOCK_VOTE_DENIED, true, false, 100);
        message.fence = 101;
        assert_granted(&message);
        assert_counter(101);
        assert_value("door", OURS);
        assert_in_range(server_pttl_ms(server, "door"), 1, TTL_MS);
    }
}

static const struct redlock_fence_keys a_day = {.suffix = ":fence", .suffix_size = 6, .expiry_ms = DAY_MS};

static struct redlock_message expiring(enum redlock_operation operation, int64_t ahead_us, size_t form) {
    struct redlock_message message = message_of(operation, (uint64_t)(server_now_us() + ahead_us) * 1000 + 7);
    message.fence_keys = &a_day;
    take_form(&message, form);
    if (operation == REDLOCK_OP_FENCE) {
        lock_as(OURS);
    }
    return message;
}

/* With an expiry, a proposal may not be far ahead of the node's clock, and not far behind it if the
 * counter may have expired. */
SCRIPT_TEST(a_counter_that_expires_keeps_to_the_nodes_clock) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_FENCE};
    for (size_t i = 0; i < 2 * FORMS; i++) {
        const enum redlock_operation operation = operations[i % 2];
        start_anew();
        struct redlock_message message = expiring(operation, LONG_US, i / 2);
        assert_failed(&message, "ERR the fencing token is over an hour ahead of the clock of the node");
        assert_int_equal(server_key_count(server), operation == REDLOCK_OP_FENCE ? 1 : 0);
        message = expiring(operation, SHORT_US, i / 2);
        assert_granted(&message);
        assert_counter(message.fence);
        assert_in_range(server_pttl_ms(server, "door:fence"), DAY_MS / 2, DAY_MS);
        start_anew();
        message = expiring(operation, -SHORT_US, i / 2);
        assert_granted(&message);
        /* A used counter lives for another day. A lower proposal is refused, and would also be too
         * low without the counter. */
        assert_string_equal(server_ask(server, "PEXPIRE", "door:fence", "3600000"), "1");
        unlock();
        message = expiring(operation, 0, i / 2);
        assert_granted(&message);
        assert_in_range(server_pttl_ms(server, "door:fence"), DAY_MS / 2, DAY_MS);
        unlock();
        set_counter((uint64_t)(server_now_us() - 2 * LONG_US) * 1000);
        message = expiring(operation, -LONG_US, i / 2);
        assert_granted(&message);
    }
}

/* As if the counter were an hour behind the node's clock: any counter that expired was lower. */
SCRIPT_TEST(a_proposal_too_low_for_a_missing_counter_is_not_accepted) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_FENCE};
    for (size_t i = 0; i < 2 * FORMS; i++) {
        const enum redlock_operation operation = operations[i % 2];
        start_anew();
        struct redlock_message message = expiring(operation, -LONG_US, i / 2);
        const int64_t before_us = server_now_us();
        struct redlock_answer answer = ask(&message);
        const int64_t after_us = server_now_us();
        assert_int_equal(answer.vote, operation == REDLOCK_OP_FENCE ? REDLOCK_VOTE_DENIED : REDLOCK_VOTE_GRANTED);
        assert_true(answer.fenced && !answer.accepted);
        assert_true(answer.counter / 1000 >= (uint64_t)(before_us - HOUR_US));
        assert_true(answer.counter / 1000 <= (uint64_t)(after_us - HOUR_US));
        assert_value("door", OURS);
        assert_false(server_has_key(server, "door:fence"));
    }
}

SCRIPT_TEST(an_extension_may_return_the_time) {
    for (size_t i = 0; i < FORMS; i++) {
        start_anew();
        struct redlock_message message = message_of(REDLOCK_OP_EXTEND, 0);
        take_form(&message, i);
        assert_denied(&message, "the key is missing");
        lock_as(THEIRS);
        assert_denied(&message, "held under another token");
        unlock();
        assert_string_equal(server_ask(server, "RPUSH", "door", "x"), "1");
        assert_denied(&message, "held under another token");
        lock_as(OURS);
        message.ttl_ms = 2 * TTL_MS;
        const int64_t before_us = server_now_us();
        struct redlock_answer answer = ask(&message);
        assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
        if (message.timed) {
            assert_true(answer.clock.server_us >= before_us && answer.clock.server_us <= server_now_us());
        }
        assert_in_range(server_pttl_ms(server, "door"), TTL_MS + 1, 2 * TTL_MS);
        message.ttl_ms = 1000; /* the ttl is never shortened */
        assert_granted(&message);
        assert_in_range(server_pttl_ms(server, "door"), TTL_MS, 2 * TTL_MS);
    }
}

SCRIPT_TEST(time_and_healing) {
    const int64_t before_us = server_now_us();
    struct redlock_answer answer = ask(&(struct redlock_message){.operation = REDLOCK_OP_TIME});
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_true(answer.clock.server_us >= before_us && answer.clock.server_us <= server_now_us());
    struct redlock_message heal = message_of(REDLOCK_OP_HEAL, 0);
    assert_granted(&heal);
    assert_value("door", OURS);
    assert_in_range(server_pttl_ms(server, "door"), 1, TTL_MS);
    assert_denied(&heal, "another token"); /* our key, too: heal never counts */
    lock_as(THEIRS);
    assert_denied(&heal, "another token");
    assert_value("door", THEIRS);
}

SCRIPT_TEST(a_release_compares) {
    for (int i = 0; i < 2; i++) { /* by its SHA1, by its source */
        struct redlock_message message = message_of(REDLOCK_OP_RELEASE, 0);
        message.by_source = i == 1;
        assert_denied(&message, "the key is missing");
        lock_as(THEIRS);
        assert_denied(&message, "held under another token");
        assert_value("door", THEIRS);
        lock_as(OURS);
        assert_granted(&message);
        assert_false(server_has_key(server, "door"));
    }
}
