/* What WAIT and RELEASE of an election publish on a real server. */
#include "scripts_kit.h"

#define FIRST   "00000000000000aa0123456789abcdef0123456789abcdef"
#define SECOND  "00000000000000bb0123456789abcdef0123456789abcdef"
#define CHANNEL "redlock:heard"
#define LEADER  "redlock:leader:door"

static uint16_t room[16];
static struct redlock_target *target;
static bool by_source;
static struct raw observer, waiter; /* subscribed to LEADER, and to CHANNEL */

static struct redlock_answer wait_as(const char *token, uint64_t ticket, bool takes) {
    const struct redlock_place place = {
        .ticket = ticket, .stale_ms = 300000, .queue_ttl_ms = 900000, .channel = CHANNEL, .id = 9, .takes = takes};
    struct redlock_message message = message_of(REDLOCK_OP_WAIT, 0);
    message.target = target;
    message.token = token;
    message.token_size = strlen(token);
    message.place = &place;
    message.round = 5;
    message.by_source = by_source;
    return ask(&message);
}

static struct redlock_answer release_as(const char *token, bool keeps) {
    struct redlock_message message = message_of(REDLOCK_OP_RELEASE, 0);
    message.target = target;
    message.token = token;
    message.token_size = strlen(token);
    message.handing = keeps ? REDLOCK_HAND_NOBODY : REDLOCK_HAND_OVER;
    message.by_source = by_source;
    return ask(&message);
}

/* Observers see this next; "" for nobody. */
static void assert_announced(const char *token) {
    const char *message = raw_read(&observer);
    static const char head[] = "message\n" LEADER "\n";
    assert_memory_equal(message, head, sizeof head - 1);
    message += sizeof head - 1;
    if (token[0] == '\0') {
        assert_string_equal(message, "\n");
        return;
    }
    char got[80];
    long long ttl_ms;
    assert_int_equal(sscanf(message, "%lld %79s\n", &ttl_ms, got), 2);
    assert_string_equal(got, token);
    assert_true(ttl_ms > TTL_MS / 2 && ttl_ms <= TTL_MS);
}

/* Nothing more was announced: a ping is answered first. */
static void assert_silence(void) {
    assert_string_equal(raw_ask(&observer, "PING"), "pong\n\n");
}

static void assert_waiter_is_told(void) {
    assert_contains(raw_read(&waiter), " door");
}

static int setup(void **state);
static int teardown(void **state);
TESTS_WITH(scripts_begin, scripts_end);
#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

FRESH_TEST(who_takes_a_free_lock_is_announced) {
    for (by_source = false;; by_source = true) {
        start_anew();
        assert_is(wait_as(FIRST, 1, false).vote, REDLOCK_VOTE_DENIED); /* only enters */
        assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_GRANTED);
        assert_announced(FIRST);
        assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_GRANTED); /* has it already */
        assert_is(wait_as(SECOND, 2, true).vote, REDLOCK_VOTE_DENIED); /* is queued */
        assert_silence();
        if (by_source) {
            break;
        }
    }
}

FRESH_TEST(so_is_who_was_first_in_line_then) {
    assert_is(wait_as(FIRST, 1, false).vote, REDLOCK_VOTE_DENIED);
    assert_is(wait_as(SECOND, 2, true).vote, REDLOCK_VOTE_DENIED);
    assert_value("door", FIRST);
    assert_waiter_is_told();
    assert_announced(FIRST);
    assert_silence();
}

FRESH_TEST(who_releases_announces_the_next_or_nobody) {
    for (by_source = false;; by_source = true) {
        start_anew();
        lock_as(OURS);
        assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_DENIED);
        assert_true(release_as(OURS, false).handed_over);
        assert_waiter_is_told();
        assert_announced(FIRST);
        assert_is(release_as(OURS, false).vote, REDLOCK_VOTE_DENIED);   /* another's */
        assert_is(release_as(SECOND, false).vote, REDLOCK_VOTE_DENIED); /* waits no more */
        assert_silence();
        const struct redlock_answer answer = release_as(FIRST, false);
        assert_true(answer.vote == REDLOCK_VOTE_GRANTED && !answer.handed_over);
        assert_announced("");
        assert_int_equal(server_key_count(server), 0);
        assert_is(release_as(FIRST, false).vote, REDLOCK_VOTE_DENIED); /* missing */
        assert_silence();
        if (by_source) {
            break;
        }
    }
}

/* Who yields hands the lock to nobody, although somebody waits. */
FRESH_TEST(a_release_that_keeps_the_lock_announces_nobody) {
    lock_as(OURS);
    assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_DENIED);
    const struct redlock_answer answer = release_as(OURS, true);
    assert_true(answer.vote == REDLOCK_VOTE_GRANTED && !answer.handed_over);
    assert_announced("");
    assert_false(server_has_key(server, "door"));
    assert_string_equal(say("ZCARD", "door:wait"), "1");
    assert_silence();
}

/* What others in line are told is not for observers. */
FRESH_TEST(who_gives_up_where_the_lock_is_free_announces_nothing) {
    assert_is(wait_as(FIRST, 1, false).vote, REDLOCK_VOTE_DENIED);
    assert_is(wait_as(SECOND, 2, false).vote, REDLOCK_VOTE_DENIED);
    assert_is(release_as(FIRST, false).vote, REDLOCK_VOTE_DENIED); /* missing */
    assert_waiter_is_told();
    assert_is(release_as(SECOND, false).vote, REDLOCK_VOTE_DENIED);
    assert_silence();
    assert_int_equal(server_key_count(server), 0);
}

FRESH_TEST(a_lock_that_nobody_can_be_given_is_free) {
    raw_close(&waiter);
    lock_as(OURS);
    assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_DENIED);
    const struct redlock_answer answer = release_as(OURS, false);
    assert_true(answer.vote == REDLOCK_VOTE_GRANTED && !answer.handed_over);
    assert_announced("");
    assert_silence();
}

FRESH_TEST(any_other_lock_announces_nothing) {
    target->announced = false;
    assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_GRANTED);
    assert_is(wait_as(SECOND, 2, true).vote, REDLOCK_VOTE_DENIED);
    assert_true(release_as(FIRST, false).handed_over);
    assert_is(release_as(SECOND, true).vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(server_key_count(server), 0);
    assert_silence();
}

/* The lock is the same without the news. */
FRESH_TEST(who_may_not_publish_leads_all_the_same) {
    for (by_source = false;; by_source = true) {
        start_anew();
        assert_string_equal(raw_ask(&line, "AUTH", "all", "geheim"), "OK");
        assert_string_equal(server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "~*",
                                       "resetchannels", "&" CHANNEL),
                            "OK");
        assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
        assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_GRANTED);
        assert_is(wait_as(SECOND, 2, true).vote, REDLOCK_VOTE_DENIED);
        assert_true(release_as(FIRST, false).handed_over);
        assert_waiter_is_told();
        assert_value("door", SECOND);
        assert_is(release_as(SECOND, false).vote, REDLOCK_VOTE_GRANTED);
        assert_int_equal(server_key_count(server), 0);
        assert_silence();
        if (by_source) {
            break;
        }
    }
}

/* An error would say that the lock is not set, so nobody would release it. */
FRESH_TEST(who_may_not_read_a_ttl_gets_no_error_for_a_lock_that_is_set) {
    assert_string_equal(
        server_ask(server, "ACL", "SETUSER", "few", "reset", "on", ">geheim", "+@all", "-pttl", "~*", "allchannels"),
        "OK");
    assert_string_equal(raw_ask(&line, "AUTH", "few", "geheim"), "OK");
    assert_is(wait_as(FIRST, 1, true).vote, REDLOCK_VOTE_GRANTED);
    assert_value("door", FIRST);
    assert_is(wait_as(SECOND, 2, true).vote, REDLOCK_VOTE_FAILED);
    assert_is(release_as(FIRST, false).vote, REDLOCK_VOTE_GRANTED);
    assert_announced("");
    assert_int_equal(server_key_count(server), 0);
}

static void subscribe(struct raw *raw, const char *channel) {
    assert_true(raw_open_tcp(raw, "127.0.0.1", server->port));
    assert_string_equal(raw_ask(raw, "AUTH", "all", "geheim"), "OK");
    assert_contains(raw_ask(raw, "SUBSCRIBE", channel), channel);
}

static int setup(void **state) {
    const int failed = scripts_setup(state);
    (void)server_ask(server, "ACL", "SETUSER", "all", "allchannels"); /* unknown before Redis 6.2 */
    target = redlock_target_make(room, "", 0, "door", 4);
    target->announced = true;
    by_source = false;
    subscribe(&observer, LEADER);
    subscribe(&waiter, CHANNEL);
    return failed;
}

static int teardown(void **state) {
    raw_close(&observer);
    raw_close(&waiter);
    return scripts_teardown(state);
}
