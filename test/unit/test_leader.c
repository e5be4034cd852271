/* Who leads, as an observer knows it: every line of the tables in core/leader.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/leader.h"
#include "core/validity.h"

#define MS    REDLOCK_NS_PER_MS
#define ALICE "00000000000000aa0123456789abcdef0123456789abcdef"
#define BOB   "00000000000000bb0123456789abcdef0123456789abcdef"
#define ALL   31u

static struct redlock_leader_node nodes[REDLOCK_NODES_MAX];
static struct redlock_leadership it;
static int64_t now_ns;

static void begin(unsigned node_count) {
    memset(nodes, 0, sizeof nodes);
    it = (struct redlock_leadership){.node_count = node_count, .quorum = redlock_quorum(node_count), .nodes = nodes};
    now_ns = 1000 * MS;
    redlock_leadership_init(&it, 7, now_ns);
}

static int setup(void **state) {
    (void)state;
    begin(5);
    return 0;
}

static struct redlock_leader_word word_of(const char *token, int64_t ttl_ms) {
    return (struct redlock_leader_word){.token = token, .token_size = strlen(token), .ttl_ms = ttl_ms};
}

static void answer(unsigned node, const char *token, int64_t ttl_ms) {
    const struct redlock_leader_word word = word_of(token, ttl_ms);
    redlock_leadership_answer(&it, node, &word, now_ns);
}

static void fail_to_answer(unsigned node) {
    redlock_leadership_answer(&it, node, NULL, now_ns);
}

static void hint(unsigned node) {
    redlock_leadership_hint(&it, node);
}

/* It announces a change. So it is asked, and nobody else, and says so. */
static void announce(unsigned node, const char *token, int64_t ttl_ms) {
    hint(node);
    assert_int_equal(redlock_leadership_ask(&it, now_ns), REDLOCK_NODE(node));
    answer(node, token, ttl_ms);
}

static void hear(redlock_nodes which, bool heard) {
    for (unsigned i = 0; i < it.node_count; i++) {
        if (which & REDLOCK_NODE(i)) {
            redlock_leadership_hear(&it, i, heard, now_ns);
        }
    }
}

/* These nodes are asked now; nobody else is. */
static void assert_asked(redlock_nodes which) {
    assert_int_equal(redlock_leadership_ask(&it, now_ns), which);
}

static void assert_news(const char *token) {
    assert_true(redlock_leadership_is_news(&it));
    const struct redlock_leader_token *told = redlock_leadership_tell(&it);
    assert_string_equal(told->bytes, token);
    assert_int_equal(told->size, strlen(token));
    assert_false(redlock_leadership_is_news(&it));
}

static void assert_no_news(void) {
    assert_false(redlock_leadership_is_news(&it));
}

/* The next time is in this range, from now. Then it is that time. */
static void pass_to_next(int64_t least_ms, int64_t most_ms) {
    const int64_t next_ns = redlock_leadership_next_ns(&it);
    assert_true(next_ns >= now_ns + least_ms * MS);
    assert_true(next_ns <= now_ns + most_ms * MS);
    now_ns = next_ns;
}

/* All five have answered this, and it is told. */
static void know(const char *token, int64_t ttl_ms) {
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, token, ttl_ms);
    }
    assert_news(token);
}

static void all_are_asked_at_the_start(void **state) {
    (void)state;
    assert_no_news();
    assert_true(redlock_leadership_next_ns(&it) == now_ns);
    assert_asked(ALL);
    assert_asked(0);
    assert_true(redlock_leadership_next_ns(&it) == REDLOCK_NEVER_NS);
    assert_no_news();
}

/* Whoever asks one server under two names hears one word. */
static void another_server_has_said_nothing(void **state) {
    (void)state;
    assert_asked(ALL);
    for (unsigned i = 0; i < 4; i++) {
        answer(i, i < 2 ? ALICE : BOB, 5000);
    }
    redlock_leadership_forget(&it, 0, now_ns);
    redlock_leadership_forget(&it, 4, now_ns); /* its answer is still to come */
    assert_asked(REDLOCK_NODE(0));
    announce(2, ALICE, 5000);
    answer(4, ALICE, 5000); /* of the server before */
    assert_no_news();
    assert_asked(REDLOCK_NODE(4));
    answer(4, ALICE, 5000);
    assert_news(ALICE);
}

static void a_quorum_names_the_leader(void **state) {
    (void)state;
    assert_asked(ALL);
    answer(0, ALICE, 5000);
    answer(1, ALICE, 5000);
    answer(2, BOB, 5000);
    assert_no_news();
    answer(3, ALICE, 5000);
    assert_news(ALICE);
    answer(4, "", -1);
    assert_no_news();
}

static void a_quorum_says_that_nobody_leads(void **state) {
    (void)state;
    assert_asked(ALL);
    /* Its token is NULL. */
    redlock_leadership_answer(&it, 0, &(struct redlock_leader_word){.token_size = 9, .ttl_ms = -1}, now_ns);
    answer(1, "", -1);
    answer(2, ALICE, 5000);
    assert_no_news();
    answer(3, "", -1);
    assert_news("");
}

static void every_change_is_told_once(void **state) {
    (void)state;
    hear(ALL, true);
    know(ALICE, 5000);
    static const char *const changes[] = {BOB, "", ALICE, BOB};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        announce(0, changes[i], 5000);
        announce(1, changes[i], 5000);
        assert_no_news();
        announce(2, changes[i], 5000);
        assert_news(changes[i]);
        announce(3, changes[i], 5000);
        announce(4, changes[i], 5000);
        assert_no_news();
    }
}

/* The observer was not told yet when it changed back. */
static void what_changed_back_is_no_news(void **state) {
    (void)state;
    know(ALICE, 5000);
    for (unsigned i = 0; i < 3; i++) {
        announce(i, BOB, 5000);
    }
    assert_true(redlock_leadership_is_news(&it));
    announce(0, ALICE, 5000);
    assert_asked(24); /* they said so before Bob led */
    answer(3, ALICE, 5000);
    answer(4, ALICE, 5000);
    assert_no_news();
}

static void without_a_quorum_the_last_news_stands(void **state) {
    (void)state;
    know(ALICE, 5000);
    announce(0, BOB, 5000);
    announce(1, BOB, 5000);
    announce(2, "", 0);
    announce(3, "", 0);
    assert_no_news();
    announce(4, BOB, 5000);
    assert_news(BOB);
}

/* Node 2 said "free" before Alice led, and node 1 says "Alice" after she has resigned. */
static void words_from_before_a_leader_make_no_other(void **state) {
    (void)state;
    begin(3);
    assert_asked(7);
    answer(2, "", -1);
    answer(0, ALICE, 5000);
    answer(1, ALICE, 5000);
    assert_news(ALICE);
    announce(0, "", 0);
    assert_no_news();
    assert_asked(4);
    answer(2, ALICE, 5000); /* the node was slow: it is from before she resigned */
    assert_no_news();
    announce(1, "", 0);
    assert_news("");
    announce(2, "", 0);
    assert_no_news();
}

/* They say so still: the question costs one round trip. */
static void old_words_are_asked_for_again(void **state) {
    (void)state;
    assert_asked(ALL);
    answer(3, BOB, 5000);
    answer(4, BOB, 5000);
    for (unsigned i = 0; i < 3; i++) {
        answer(i, ALICE, 5000);
    }
    assert_news(ALICE);
    announce(0, BOB, 5000);
    assert_no_news();
    assert_asked(24);
    answer(3, BOB, 5000);
    assert_no_news();
    answer(4, BOB, 5000);
    assert_news(BOB);
}

/* So is an answer to a question from before; then the node is asked once more. */
static void an_answer_from_before_a_leader_is_old(void **state) {
    (void)state;
    know("", -1);
    now_ns += 2500 * MS;
    assert_asked(ALL);
    for (unsigned i = 0; i < 3; i++) {
        answer(i, ALICE, 5000);
    }
    assert_news(ALICE);
    announce(0, "", 0);
    answer(3, "", -1);
    answer(4, "", -1);
    assert_no_news();
    assert_asked(24);
    answer(3, ALICE, 5000);
    answer(4, "", -1);
    assert_no_news();
    announce(1, "", 0);
    assert_news("");
}

/* Their answers will not be old: nobody is asked twice. */
static void a_question_after_a_leader_is_enough(void **state) {
    (void)state;
    know(ALICE, 5000);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
    }
    assert_asked(ALL);
    for (unsigned i = 0; i < 3; i++) {
        answer(i, BOB, 5000);
    }
    assert_news(BOB);
    answer(3, "", -1); /* he has resigned there before it was asked */
    answer(4, "", -1);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
    }
    assert_asked(ALL);
    answer(0, "", -1); /* with the words of 3 and 4 a quorum, but those are old */
    assert_no_news();
    answer(3, "", -1);
    answer(4, "", -1);
    assert_news("");
    assert_asked(0);
}

/* So is what nodes said before we led ourselves. */
static void words_from_before_we_lead_are_old(void **state) {
    (void)state;
    begin(3);
    assert_asked(7);
    answer(2, "", -1);
    redlock_leadership_lead(&it, ALICE, strlen(ALICE));
    assert_news(ALICE);
    answer(0, "", -1);
    assert_no_news();
    assert_asked(5);
    answer(2, "", -1);
    answer(0, ALICE, 5000);
    assert_no_news();
    announce(0, "", 0);
    assert_news("");
}

/* What changed after the question, nobody knows yet. */
static void a_hint_during_a_question_makes_one_more(void **state) {
    (void)state;
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
        hint(i);
    }
    assert_asked(0);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, ALICE, 5000);
    }
    assert_news(ALICE);
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, BOB, 5000);
    }
    assert_news(BOB);
    assert_asked(0);
}

/* Hints say nothing. */
static void a_hint_changes_nothing_but_when_to_ask(void **state) {
    (void)state;
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

static void hints_make_16_questions_at_once_and_then_one_in_20_ms(void **state) {
    (void)state;
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

static void who_cannot_answer_counts_no_more(void **state) {
    (void)state;
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

static void who_is_heard_is_asked_seldom(void **state) {
    (void)state;
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
static void a_free_lock_is_looked_at_often(void **state) {
    (void)state;
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

static void who_is_not_heard_is_asked_often(void **state) {
    (void)state;
    know(ALICE, 600000);
    pass_to_next(2250, 2500);
}

/* Nobody announces when the lock of a stranger ends. */
static void a_stranger_is_looked_at_often(void **state) {
    static const char *const strangers[] = {
        "0123456789abcdef0123456789abcdef",                                 /* did not queue */
        "00000000000000000123456789abcdef0123456789abcdef",                 /* a first try */
        "00000000000000aa0123456789abcdef0123456789abcdeF",                 /* no digits */
        "somebody else, whose token is as long as that of an election, so", /* 64 bytes */
    };
    (void)state;
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

static void the_end_of_a_key_is_looked_at(void **state) {
    (void)state;
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
static void who_is_heard_from_now_on_is_asked_once_more(void **state) {
    (void)state;
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

static void who_is_heard_no_more_is_asked_soon(void **state) {
    (void)state;
    hear(ALL, true);
    know(ALICE, 600000);
    hear(ALL, false);
    pass_to_next(2250, 2500);
    hear(1, false); /* does not put it off */
    assert_true(redlock_leadership_next_ns(&it) <= now_ns);
}

static void a_long_token_is_cut_off(void **state) {
    char token[REDLOCK_TOKEN_SIZE_MAX + 30];
    (void)state;
    memset(token, 'x', sizeof token - 1);
    token[sizeof token - 1] = '\0';
    assert_asked(ALL);
    for (unsigned i = 0; i < 3; i++) {
        token[sizeof token - 2] = (char)('a' + i); /* which it does not see */
        answer(i, token, 5000);
    }
    token[REDLOCK_TOKEN_SIZE_MAX] = '\0';
    assert_news(token);
}

/* Bytes that are no text count, too. */
static void a_token_may_hold_any_byte(void **state) {
    static const char tokens[2][5] = {"a\0b", "a\0c"};
    (void)state;
    assert_asked(ALL);
    for (unsigned i = 0; i < 4; i++) {
        const struct redlock_leader_word word = {.token = tokens[i % 2], .token_size = 3, .ttl_ms = 5000};
        redlock_leadership_answer(&it, i, &word, now_ns);
    }
    assert_no_news();
    const struct redlock_leader_word word = {.token = tokens[1], .token_size = 3, .ttl_ms = 5000};
    redlock_leadership_answer(&it, 4, &word, now_ns);
    assert_true(redlock_leadership_is_news(&it));
    assert_memory_equal(redlock_leadership_tell(&it)->bytes, tokens[1], 4);
}

static void one_node_is_a_quorum_of_one(void **state) {
    (void)state;
    begin(1);
    assert_asked(1);
    answer(0, ALICE, 5000);
    assert_news(ALICE);
    begin(REDLOCK_NODES_MAX);
    assert_asked(0x7fffffff);
    for (unsigned i = 0; i < 16; i++) {
        assert_no_news();
        answer(30 - i, BOB, 5000);
    }
    assert_news(BOB);
}

#define TEST(function) cmocka_unit_test_setup(function, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_are_asked_at_the_start),
        TEST(another_server_has_said_nothing),
        TEST(a_quorum_names_the_leader),
        TEST(a_quorum_says_that_nobody_leads),
        TEST(every_change_is_told_once),
        TEST(what_changed_back_is_no_news),
        TEST(without_a_quorum_the_last_news_stands),
        TEST(words_from_before_a_leader_make_no_other),
        TEST(old_words_are_asked_for_again),
        TEST(an_answer_from_before_a_leader_is_old),
        TEST(a_question_after_a_leader_is_enough),
        TEST(words_from_before_we_lead_are_old),
        TEST(a_hint_during_a_question_makes_one_more),
        TEST(a_hint_changes_nothing_but_when_to_ask),
        TEST(hints_make_16_questions_at_once_and_then_one_in_20_ms),
        TEST(who_cannot_answer_counts_no_more),
        TEST(who_is_heard_is_asked_seldom),
        TEST(who_is_not_heard_is_asked_often),
        TEST(a_free_lock_is_looked_at_often),
        TEST(a_stranger_is_looked_at_often),
        TEST(the_end_of_a_key_is_looked_at),
        TEST(who_is_heard_from_now_on_is_asked_once_more),
        TEST(who_is_heard_no_more_is_asked_soon),
        TEST(a_long_token_is_cut_off),
        TEST(a_token_may_hold_any_byte),
        TEST(one_node_is_a_quorum_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
