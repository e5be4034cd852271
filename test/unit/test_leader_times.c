/* When an observer asks whom: the times in the tables of core/leader.h. */
#include "leader_kit.h"

#define FRESH_TEST(name) TEST_WITH(name, setup, NULL)

/* Hints say nothing. */
FRESH_TEST(a_hint_changes_nothing_but_when_to_ask) {
    know(ALICE, 5000);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
    }
    assert_no_news();
    assert_asked(ALL);
    for (unsigned i = 0; i < 4; i++) {
        answer(i, ALICE, 5000);
    }
    fail_to_answer(4);
    assert_no_news();
    hint(4); /* sooner than after a second */
    assert_asked(16);
}

FRESH_TEST(hints_make_16_questions_at_once_and_then_one_in_20_ms) {
    know(ALICE, 60000);
    for (unsigned i = 0; i < 16; i++) {
        announce(2, ALICE, 60000);
    }
    for (unsigned i = 0; i < 3; i++) {
        hint(2);
        assert_asked(0);
        pass_to_next(20, 20);
        assert_asked(4);
        answer(2, ALICE, 60000);
    }
    announce(1, ALICE, 60000); /* of another node */
    now_ns += 1000 * MS;
    for (unsigned i = 0; i < 16; i++) {
        announce(2, ALICE, 60000);
    }
    hint(2);
    assert_asked(0);
}

FRESH_TEST(who_cannot_answer_counts_no_more) {
    know("", -1);
    now_ns += 2500 * MS;
    assert_asked(ALL);
    fail_to_answer(0);
    fail_to_answer(1);
    fail_to_answer(2);
    answer(3, ALICE, 5000);
    answer(4, "", -1);
    announce(0, ALICE, 5000);
    assert_no_news();
    pass_to_next(900, 1000);
    const redlock_nodes asked = redlock_leadership_ask(&it, now_ns + 100 * MS);
    assert_int_equal(asked, 6); /* those that failed and did not announce since */
    answer(1, "", -1);
    assert_no_news();
    answer(2, ALICE, 5000);
    assert_news(ALICE);
}

/* Nor does what it said before that. */
FRESH_TEST(who_cannot_answer_any_more_has_said_nothing) {
    assert_asked(ALL);
    answer(0, ALICE, 100);
    answer(1, ALICE, 60000);
    for (unsigned i = 2; i < 5; i++) {
        fail_to_answer(i);
    }
    now_ns += 112 * MS;
    assert_asked(REDLOCK_NODE(0));
    fail_to_answer(0);
    now_ns += 888 * MS;
    assert_asked(ALL & ~3u);
    answer(2, ALICE, 60000);
    assert_no_news();
    answer(3, ALICE, 60000);
    assert_news(ALICE);
}

FRESH_TEST(who_is_heard_is_asked_seldom) {
    know(BOB, 600000);
    hear(ALL, true);
    pass_to_next(0, 0);
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, i < 2 ? ALICE : BOB, 600000);
    }
    pass_to_next(9000, 10000);
}

/* Whoever takes it without an election announces nothing. */
FRESH_TEST(a_free_lock_is_looked_at_often) {
    hear(ALL, true);
    know("", -1);
    pass_to_next(2250, 2500);
    begin(5);
    hear(ALL, true);
    know(ALICE, 600000);
    for (unsigned i = 0; i < 3; i++) {
        announce(i, "", 0);
    }
    assert_news("");
    pass_to_next(2250, 2500);
}

FRESH_TEST(who_is_not_heard_is_asked_often) {
    know(ALICE, 600000);
    pass_to_next(2250, 2500);
}

/* Nobody announces when the lock of a stranger ends. */
FRESH_TEST(a_stranger_is_looked_at_often) {
    static const char *const strangers[] = {
        "0123456789abcdef0123456789abcdef",                                 /* did not queue */
        "00000000000000000123456789abcdef0123456789abcdef",                 /* a first try */
        "00000000000000aa0123456789abcdef0123456789abcdeF",                 /* no digits */
        "somebody else, whose token is as long as that of an election, so", /* 64 bytes */
    };
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        begin(5);
        hear(ALL, true);
        know(strangers[i], 600000);
        pass_to_next(2250, 2500);
    }
    begin(5);
    hear(ALL, true);
    assert_asked(ALL);
    for (unsigned n = 0; n < 5; n++) {
        answer(n, ALICE " of rack 7", 600000);
    }
    assert_news(ALICE " of rack 7");
    pass_to_next(9000, 10000);
}

FRESH_TEST(the_end_of_a_key_is_looked_at) {
    hear(ALL, true);
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, ALICE, i == 4 ? -1 : 700); /* -1: a key without an end */
    }
    assert_news(ALICE);
    announce(0, ALICE, 300);
    pass_to_next(302, 312);
    assert_asked(1);
    answer(0, "", -1);
    pass_to_next(702 - 312, 712 - 302);
    assert_int_equal(redlock_leadership_ask(&it, now_ns + 10 * MS), 14);
    answer(1, "", -1);
    assert_no_news();
    answer(2, "", -1);
    assert_news("");
}

/* It may have changed between the question and the subscription. */
FRESH_TEST(who_is_heard_from_now_on_is_asked_once_more) {
    assert_asked(ALL);
    hear(4, true);
    hear(4, false);
    hear(4, true);
    assert_asked(0);
    answer(2, ALICE, 5000);
    assert_true(redlock_leadership_next_ns(&it) == now_ns);
    assert_asked(4);
    answer(2, BOB, 5000);
    assert_true(redlock_leadership_next_ns(&it) > now_ns);
}

FRESH_TEST(who_is_heard_no_more_is_asked_soon) {
    hear(ALL, true);
    know(ALICE, 600000);
    hear(ALL, false);
    pass_to_next(2250, 2500);
    hear(1, false); /* does not put it off */
    assert_true(redlock_leadership_next_ns(&it) <= now_ns);
}

/* After how long the only node is asked again if it says this, for many observers: they do not ask
 * together. */
static void ask_many(const char *token, int64_t ttl_ms, int64_t *least_ms, int64_t *most_ms) {
    const struct redlock_leader_word word = {.token = token, .token_size = strlen(token), .ttl_ms = ttl_ms};
    *least_ms = INT64_MAX;
    *most_ms = 0;
    for (uint32_t seed = 0; seed < 5000; seed++) {
        struct redlock_leader_node node = {0};
        struct redlock_leadership observer = {.node_count = 1, .quorum = 1, .nodes = &node};
        redlock_leadership_init(&observer, seed, 0);
        assert_int_equal(redlock_leadership_ask(&observer, 0), 1);
        redlock_leadership_answer(&observer, 0, &word, 0);
        const int64_t next_ms = redlock_leadership_next_ns(&observer) / MS;
        *least_ms = next_ms < *least_ms ? next_ms : *least_ms;
        *most_ms = next_ms > *most_ms ? next_ms : *most_ms;
    }
}

FRESH_TEST(within_ten_ms_after_the_end_of_a_key) {
    int64_t least_ms, most_ms;
    ask_many(ALICE, 100, &least_ms, &most_ms);
    assert_int_equal(least_ms, 102);
    assert_int_equal(most_ms, 111);
}

FRESH_TEST(within_a_tenth_of_the_time_between_two_looks) {
    int64_t least_ms, most_ms;
    ask_many("", -2, &least_ms, &most_ms);
    assert_in_range(least_ms, 2251, 2255);
    assert_in_range(most_ms, 2496, 2500);
}
