/* A script that a real server refuses has done nothing: no lock is left, and no counter is lost
 * (R4). */
#include "scripts_kit.h"

TESTS_WITH(scripts_begin, scripts_end);
#define SCRIPT_TEST(name) TEST_WITH(name, scripts_setup, scripts_teardown)

/* A list in place of the lock is a lock of somebody else. In place of the counter it is an error
 * that leaves no lock. */
SCRIPT_TEST(keys_of_another_type) {
    for (size_t i = 0; i < FORMS; i++) {
        start_anew();
        struct redlock_message acquire = message_of(REDLOCK_OP_ACQUIRE, 100), fence = message_of(REDLOCK_OP_FENCE, 100);
        take_form(&acquire, i);
        take_form(&fence, i);
        assert_string_equal(server_ask(server, "RPUSH", "door", "x"), "1");
        assert_denied(&acquire, "held under another token");
        set_counter(7);
        assert_answer(&acquire, REDLOCK_VOTE_DENIED, true, false, 7);
        assert_string_equal(say("TYPE", "door"), "list");
        start_anew();
        assert_string_equal(server_ask(server, "RPUSH", "door:fence", "x"), "1");
        assert_failed(&acquire, "WRONGTYPE");
        assert_int_equal(server_key_count(server), 1);
        lock_as(OURS);
        assert_failed(&fence, "WRONGTYPE");
        assert_string_equal(say("LLEN", "door:fence"), "1");
    }
}

SCRIPT_TEST(a_value_that_is_not_a_counter_is_not_overwritten) {
    static const char *const strangers[] = {
        "0000000000000000000x",
        "x0000000000000000000",
        "0000000000000000000 ",
        "-0000000000000000001",
        "+0000000000000000001",
        "0x000000000000000001",
        "0000000000.000000001",
        "\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa0\xd9\xa1",
        "0000000000000000001",
        "000000000000000000001",
        "09223372036854775808",
        "99999999999999999999",
        "",
        THEIRS};
    for (size_t i = 0; i < FORMS; i++) {
        for (size_t s = 0; s < sizeof strangers / sizeof *strangers; s++) {
            struct redlock_message acquire = message_of(REDLOCK_OP_ACQUIRE, 100),
                                   fence = message_of(REDLOCK_OP_FENCE, 100);
            take_form(&acquire, i);
            take_form(&fence, i);
            start_anew();
            assert_string_equal(server_ask(server, "SET", "door:fence", strangers[s]), "OK");
            assert_failed(&acquire, "ERR the key of the fencing counter holds something else");
            assert_false(server_has_key(server, "door"));
            lock_as(OURS);
            assert_failed(&fence, "ERR the key of the fencing counter holds something else");
            assert_value("door:fence", strangers[s]);
        }
    }
}

/* The lock is set before the counter. If the counter cannot be set, the lock is deleted again. */
SCRIPT_TEST(a_counter_that_cannot_be_set_leaves_no_lock) {
    const struct redlock_fence_keys absurd = {.suffix = ":fence", .suffix_size = 6, .expiry_ms = INT64_MAX};
    for (size_t i = 0; i < FORMS; i++) {
        start_anew();
        struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE, (uint64_t)server_now_us() * 1000);
        take_form(&message, i);
        message.fence_keys = &absurd;
        assert_failed(&message, "invalid expire");
        assert_int_equal(server_key_count(server), 0);
    }
}

/* R11: a server that does not know the script has done nothing, and accepts the source. */
SCRIPT_TEST(unknown_scripts) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_FENCE, REDLOCK_OP_EXTEND,
                                                        REDLOCK_OP_RELEASE};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        start_anew();
        assert_string_equal(server_ask(server, "SCRIPT", "FLUSH"), "OK");
        struct redlock_message message = message_of(operations[i], 100);
        if (operations[i] != REDLOCK_OP_ACQUIRE) {
            lock_as(OURS);
        }
        struct redlock_answer answer = ask(&message);
        assert_is(answer.vote, REDLOCK_VOTE_FAILED);
        assert_true(answer.again);
        assert_int_equal(server_key_count(server), operations[i] == REDLOCK_OP_ACQUIRE ? 0 : 1);
        message.by_source = true;
        assert_granted(&message);
        start_anew();
        if (operations[i] != REDLOCK_OP_ACQUIRE) {
            lock_as(OURS);
        }
        message.by_source = false; /* the server learnt it from EVAL */
        assert_granted(&message);
    }
}

static const struct redlock_target *gate(void) {
    static uint16_t room[16];
    return redlock_target_make(room, "", 0, "gate", 4);
}

SCRIPT_TEST(without_memory_nothing_is_set_and_releases_go_on) {
    lock_as(OURS);
    assert_string_equal(server_ask(server, "SET", "other", "x"), "OK");
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "1"), "OK");
    for (size_t i = 0; i < FORMS; i++) {
        struct redlock_message acquire = message_of(REDLOCK_OP_ACQUIRE, 100), fence = message_of(REDLOCK_OP_FENCE, 100);
        take_form(&acquire, i);
        take_form(&fence, i);
        acquire.target = gate();
        assert_failed(&acquire, "OOM");
        assert_failed(&fence, "OOM");
        assert_int_equal(server_key_count(server), 2);
    }
    struct redlock_message extend = message_of(REDLOCK_OP_EXTEND, 0), release = message_of(REDLOCK_OP_RELEASE, 0);
    assert_granted(&extend);
    assert_granted(&release);
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "0"), "OK");
}

SCRIPT_TEST(a_replica_sets_nothing) {
    lock_as(OURS);
    assert_string_equal(server_ask(server, "REPLICAOF", "127.0.0.1", "1"), "OK");
    for (size_t i = 0; i < FORMS; i++) {
        struct redlock_message acquire = message_of(REDLOCK_OP_ACQUIRE, 100), fence = message_of(REDLOCK_OP_FENCE, 100);
        take_form(&acquire, i);
        take_form(&fence, i);
        acquire.target = gate();
        assert_failed(&acquire, "READONLY");
        assert_failed(&fence, "READONLY");
    }
    assert_string_equal(server_ask(server, "REPLICAOF", "NO", "ONE"), "OK");
    assert_int_equal(server_key_count(server), 1);
}

/* With an ACL for the lock but not for its counter, or only for reading the counter, there is an
 * error and no lock. */
SCRIPT_TEST(an_acl_without_the_counter_leaves_no_lock) {
    static const char *const counters[] = {"~elsewhere", "%R~door:fence"};
    for (size_t i = 0; i < 2 * FORMS; i++) {
        struct redlock_message acquire = message_of(REDLOCK_OP_ACQUIRE, 100), fence = message_of(REDLOCK_OP_FENCE, 100);
        const char *made = server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~door",
                                      counters[i / FORMS]);
        if (i >= FORMS && made[0] == '-') {
            break; /* before Redis 7 there is no right to read only */
        }
        assert_string_equal(made, "OK");
        take_form(&acquire, i % FORMS);
        take_form(&fence, i % FORMS);
        start_anew();
        assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
        assert_failed(&acquire, "NOPERM");
        assert_int_equal(server_key_count(server), 0);
        lock_as(OURS);
        assert_failed(&fence, "NOPERM");
        assert_int_equal(server_key_count(server), 1);
        struct redlock_message release = message_of(REDLOCK_OP_RELEASE, 0);
        assert_granted(&release);
    }
}
