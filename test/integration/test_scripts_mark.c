/* The mark on a real server: whose lock a WAIT marks, who reads it, and what the release of a
 * marked lock does. */
#include "queue_scripts.h"

#define TRY        "k123456789abcdef0123456789abcdef"
#define MARKED     "K123456789abcdef0123456789abcdef"
#define FIRST_WAIT ((struct wait){.token = FIRST, .ticket = 1})

/* The release of a lease that a try took. */
static enum released release_try(const char *token) {
    struct redlock_message message = message_with(REDLOCK_OP_RELEASE, token);
    message.by_try = true;
    return released_by(&message);
}

static redlock_vote_kind vote_on(enum redlock_operation operation) {
    struct redlock_message message = message_with(operation, TRY);
    message.fence_keys = &(struct redlock_fence_keys){.suffix = ":fence", .suffix_size = 6};
    message.fence = operation == REDLOCK_OP_FENCE ? 1 : 0;
    return ask(&message).vote;
}

static const char *inspected(void) {
    static char holder[REDLOCK_TOKEN_SIZE_MAX + 1];
    const struct redlock_message message = message_of(REDLOCK_OP_INSPECT, 0);
    const struct redlock_answer answer = ask(&message);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    (void)snprintf(holder, sizeof holder, "%.*s", (int)answer.holder_size, answer.holder);
    return holder;
}

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(a_wait_marks_the_lock_of_a_try) {
    lock_as(TRY);
    const int64_t before_ms = server_pttl_ms(server, "door");
    for (int times = 0; times < 2; times++) {
        assert_queued(FIRST_WAIT, 0, TRY);
        assert_value("door", MARKED);
        assert_in_range(server_pttl_ms(server, "door"), before_ms - 60000, before_ms);
    }
    assert_queued((struct wait){.token = SECOND, .ticket = 2, .by_source = true}, 1, TRY);
    assert_value("door", MARKED);
}

QUEUE_TEST(a_text_stays_behind_the_mark) {
    lock_as(TRY "@web-3:4711K");
    assert_queued(FIRST_WAIT, 0, TRY "@web-3:4711K");
    assert_value("door", MARKED "@web-3:4711K");
    assert_int_equal(release_try(TRY "@web-3:4711K"), HANDED_OVER);
}

/* Other libraries compare what they wrote. */
QUEUE_TEST(nothing_else_is_marked) {
    static const char *const values[] = {SECOND,
                                         "0123456789abcdef0123456789abcdef",
                                         "k123456789abcdef0123456789abcde",
                                         "k123456789abcdef0123456789abcdef0",
                                         "k123456789abcdef0123456789abcde@x",
                                         "k123456789abcdef0123456789abcdeF",
                                         "k123456789abcdef0123456789abcdeg",
                                         "w123456789abcdef0123456789abcdef",
                                         "f123456789abcdef0123456789abcdef",
                                         "@123456789abcdef0123456789abcdef",
                                         MARKED,
                                         "another library's",
                                         "g"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        start_anew();
        lock_as(values[i]);
        assert_is(wait_as(FIRST_WAIT).vote, REDLOCK_VOTE_DENIED);
        assert_value("door", values[i]);
    }
}

QUEUE_TEST(a_lock_that_never_ends_is_not_marked) {
    assert_string_equal(server_ask(server, "SET", "door", TRY), "OK");
    assert_is(wait_as(FIRST_WAIT).vote, REDLOCK_VOTE_DENIED);
    assert_value("door", TRY);
    assert_int_equal(server_pttl_ms(server, "door"), -1);
    unlock();
    assert_string_equal(server_ask(server, "RPUSH", "door", TRY), "1");
    const struct redlock_answer answer = wait_as(FIRST_WAIT);
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_memory_equal(answer.holder, "(a list)", answer.holder_size);
    assert_string_equal(server_ask(server, "LRANGE", "door", "0", "-1"), TRY "\n");
}

QUEUE_TEST(the_mark_is_no_other_token) {
    for (int marked = 0; marked < 2; marked++) {
        start_anew();
        lock_as(TRY);
        if (marked) {
            assert_queued(FIRST_WAIT, 0, TRY);
        }
        assert_is(vote_on(REDLOCK_OP_EXTEND), REDLOCK_VOTE_GRANTED);
        assert_is(vote_on(REDLOCK_OP_FENCE), REDLOCK_VOTE_GRANTED);
        assert_string_equal(inspected(), TRY);
        assert_value("door", marked ? MARKED : TRY);
    }
}

QUEUE_TEST(a_release_looks_only_where_it_finds_the_mark) {
    lock_as(TRY);
    assert_queued(FIRST_WAIT, 0, TRY);
    assert_int_equal(release_try(TRY), HANDED_OVER);
    assert_value("door", FIRST);
    assert_pushed(FIRST);
    assert_int_equal(release_try(TRY), OTHERS);
    /* A first try came before the queue: whoever waits looks by itself. */
    start_anew();
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .enters_only = true}, 0, NULL);
    lock_as(TRY);
    assert_int_equal(release_try(TRY), DELETED);
    assert_silence();
    assert_int_equal(release_try(TRY), MISSING);
    /* A mark that is left over costs a look. */
    start_anew();
    lock_as(MARKED);
    assert_int_equal(release_try(TRY), DELETED);
    assert_int_equal(server_key_count(server), 0);
}

/* The release of an attempt that lost, and one that is owed, look in any case. */
QUEUE_TEST(any_other_release_needs_no_mark) {
    lock_as(TRY);
    assert_queued(FIRST_WAIT, 0, TRY);
    assert_int_equal(release_as(TRY), HANDED_OVER);
    assert_pushed(FIRST);
    start_anew();
    assert_queued((struct wait){.token = FIRST, .ticket = 1, .enters_only = true}, 0, NULL);
    lock_as(TRY);
    assert_int_equal(release_as(TRY), HANDED_OVER);
    assert_pushed(FIRST);
}
