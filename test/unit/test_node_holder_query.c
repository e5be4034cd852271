/* Acquires that ask a node for the holder's name: what both first replies mean, what the node
 * learns from them, and when it is asked no more. */
#include "kinds.h"
#include "peer.h"
#include "test.h"

#define BOTH_SENT "setset"
#define TOKEN     "0123456789abcdef0123456789abcdef"
#define NIL       "$-1\r\n"
#define VALUE     "$34\r\n" TOKEN "@b\r\n"
#define OURS      "$34\r\n" PEER_TOKEN "\r\n"
#define OK        "+OK\r\n"
#define OOM       "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
#define SYNTAX    "-ERR syntax error\r\n"
#define WRONGTYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
#define NUMBER    ":1\r\n"

static struct peer peer;
static int id; /* of the connection, at the server */

static int start(UNUSED void **state) {
    peer_start(&peer);
    id = 7;
    return 0;
}

static int stop(UNUSED void **state) {
    peer_stop(&peer);
    return 0;
}

static void connect_as(const char *version) {
    peer.version = version;
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

static void greet_again(void) {
    peer_greet(&peer, "r1", id + 1, id);
    id++;
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

static void reconnect(void) {
    peer_close(&peer);
    greet_again();
}

/* An acquire that is sent twice, and both replies. */
static const struct peer_answer *ask_twice(const char *first, const char *second) {
    const size_t answers = peer.answer_count;
    assert_true(peer_send_as(&peer, BOTH_SENT, NAMED_TWICE, 1));
    peer_serve(&peer, BOTH_SENT, first);
    peer_say(&peer, second);
    peer_until_answers(&peer, answers + 1);
    return &peer.answers[answers];
}

static void expect_answer(const struct peer_answer *answer, redlock_vote_kind vote, const char *text) {
    assert_int_equal(answer->vote, vote);
    assert_contains(answer->text, text);
}

#define HOLDER_QUERY_TEST(name) TEST_WITH(name, start, stop)

HOLDER_QUERY_TEST(only_a_server_that_has_it_is_asked) {
    connect_as("redis_version:6.2.14");
    assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_NOT);
    peer_close(&peer);
    peer.version = "redis_version:7.0.15";
    peer_greet(&peer, "r2", 8, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_TWICE);
}

struct pair {
    const char *first, *second;
    redlock_vote_kind vote;
    const char *text;
    enum redlock_holder_query holder_query;
};

/* The table in wire/holder_query.h, but for what is out of protocol. */
HOLDER_QUERY_TEST(both_replies_make_one_vote) {
    static const struct pair pairs[] = {
        {NIL, NIL, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_NOT},
        {NIL, OURS, REDLOCK_VOTE_GRANTED, "", REDLOCK_HOLDER_QUERY_ONCE},
        {NIL, VALUE, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {NIL, WRONGTYPE, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {NIL, OK, REDLOCK_VOTE_GRANTED, "", REDLOCK_HOLDER_QUERY_NOT},
        {NIL, OOM, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {NIL, SYNTAX, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {OURS, NIL, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {OURS, OURS, REDLOCK_VOTE_UNKNOWN, "it is the same server as another node", REDLOCK_HOLDER_QUERY_TWICE},
        {OURS, VALUE, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {OURS, OOM, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {VALUE, NIL, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {VALUE, OURS, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {VALUE, VALUE, REDLOCK_VOTE_DENIED, "held by b", REDLOCK_HOLDER_QUERY_TWICE},
        {VALUE, WRONGTYPE, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {VALUE, OOM, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {VALUE, SYNTAX, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {WRONGTYPE, NIL, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {WRONGTYPE, OURS, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {WRONGTYPE, VALUE, REDLOCK_VOTE_DENIED, "held by b", REDLOCK_HOLDER_QUERY_TWICE},
        {WRONGTYPE, WRONGTYPE, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {WRONGTYPE, OOM, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {WRONGTYPE, SYNTAX, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {OK, NIL, REDLOCK_VOTE_GRANTED, "", REDLOCK_HOLDER_QUERY_NOT},
        {OK, OOM, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {OOM, NIL, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {OOM, OURS, REDLOCK_VOTE_UNKNOWN, "did not make clear", REDLOCK_HOLDER_QUERY_TWICE},
        {OOM, VALUE, REDLOCK_VOTE_DENIED, "held by b", REDLOCK_HOLDER_QUERY_TWICE},
        {OOM, WRONGTYPE, REDLOCK_VOTE_DENIED, "held under another token", REDLOCK_HOLDER_QUERY_TWICE},
        {OOM, OK, REDLOCK_VOTE_GRANTED, "", REDLOCK_HOLDER_QUERY_NOT},
        {OOM, OOM, REDLOCK_VOTE_FAILED, "OOM", REDLOCK_HOLDER_QUERY_TWICE},
        {SYNTAX, SYNTAX, REDLOCK_VOTE_FAILED, "ERR syntax error", REDLOCK_HOLDER_QUERY_NOT},
        {SYNTAX, OOM, REDLOCK_VOTE_FAILED, "OOM", REDLOCK_HOLDER_QUERY_TWICE},
        {OOM, SYNTAX, REDLOCK_VOTE_FAILED, "ERR syntax error", REDLOCK_HOLDER_QUERY_NOT},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        connect_as(NULL);
        const struct peer_answer *answer = ask_twice(pairs[i].first, pairs[i].second);
        if (answer->vote != pairs[i].vote || redlock_node_form(peer.node).holder_query != pairs[i].holder_query ||
            strstr(answer->text, pairs[i].text) == NULL || (answer->text[0] != '\0' && pairs[i].text[0] == '\0')) {
            fail_msg("%s then %s: vote %d, '%s', holder_query %d", pairs[i].first, pairs[i].second, (int)answer->vote,
                     answer->text, (int)redlock_node_form(peer.node).holder_query);
        }
        /* Nothing of it stays behind on the connection. */
        assert_true(peer_send(&peer, "s", 2));
        peer_serve(&peer, "s", OK);
        PEER_UNTIL(&peer, peer.answers[peer.answer_count - 1].round == 2);
        (void)stop(state);
        (void)start(state);
    }
}

/* R20. Then this node is not asked again, whatever the connection: it would be lost each time. */
HOLDER_QUERY_TEST(what_is_out_of_protocol_ends_the_connection_once) {
    static const char *const pairs[][2] = {{OURS, OK}, {VALUE, OK},   {OK, OK},      {OK, VALUE},
                                           {OK, OURS}, {NUMBER, NIL}, {NIL, NUMBER}, {"+QUEUED\r\n", "+QUEUED\r\n"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        connect_as(NULL);
        expect_answer(ask_twice(pairs[i][0], pairs[i][1]), REDLOCK_VOTE_UNKNOWN, "out of protocol");
        peer_expect_end(&peer, true);
        greet_again();
        assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_NOT);
        (void)stop(state);
        (void)start(state);
    }
}

HOLDER_QUERY_TEST(a_proven_connection_is_asked_once) {
    connect_as(NULL);
    (void)ask_twice(NIL, OURS);
    static const struct pair replies[] = {
        {NIL, NULL, REDLOCK_VOTE_GRANTED, "", REDLOCK_HOLDER_QUERY_ONCE},
        {VALUE, NULL, REDLOCK_VOTE_DENIED, "held by b", REDLOCK_HOLDER_QUERY_ONCE},
        {OURS, NULL, REDLOCK_VOTE_UNKNOWN, "the same server", REDLOCK_HOLDER_QUERY_ONCE},
        {WRONGTYPE, NULL, REDLOCK_VOTE_DENIED, "held under", REDLOCK_HOLDER_QUERY_ONCE},
        {OOM, NULL, REDLOCK_VOTE_FAILED, "OOM", REDLOCK_HOLDER_QUERY_ONCE},
        {SYNTAX, NULL, REDLOCK_VOTE_FAILED, "ERR syntax", REDLOCK_HOLDER_QUERY_NOT}};
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        const size_t answers = peer.answer_count;
        assert_true(peer_send_as(&peer, "s", NAMED, 2));
        peer_serve(&peer, "s", replies[i].first);
        peer_until_answers(&peer, answers + 1);
        expect_answer(&peer.answers[answers], replies[i].vote, replies[i].text);
        assert_int_equal(redlock_node_form(peer.node).holder_query, replies[i].holder_query);
    }
    assert_int_equal(peer_times_logged(&peer, "does not tell an acquire who holds the lock"), 1);
    (void)ask_twice(NIL, OURS); /* one that was under way proves nothing any more */
    assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_NOT);
    reconnect();
    (void)ask_twice(OK, NIL);
    assert_int_equal(peer_times_logged(&peer, "it ignores the GET of a SET"), 1);
}

HOLDER_QUERY_TEST(one_reply_out_of_protocol_bars_the_node_too) {
    connect_as(NULL);
    (void)ask_twice(NIL, OURS);
    assert_true(peer_send_as(&peer, "s", NAMED, 2));
    peer_serve(&peer, "s", OK);
    peer_until_answers(&peer, 2);
    expect_answer(&peer.answers[1], REDLOCK_VOTE_UNKNOWN, "out of protocol");
    peer_expect_end(&peer, true);
    greet_again();
    assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_NOT);
}

/* A huge value at the key of a lock ends one connection, not one after the other. */
HOLDER_QUERY_TEST(a_value_over_the_limit_bars_the_node) {
    static char bytes[32768];
    connect_as(NULL);
    memset(bytes, 'x', sizeof bytes - 1);
    assert_true(peer_send_as(&peer, BOTH_SENT, NAMED_TWICE | REDLOCK_SERVER_NO_TIMEOUT, 1));
    peer_serve(&peer, BOTH_SENT, "$2000000\r\n");
    for (size_t said = 0; said <= REDLOCK_REPLY_SIZE_MAX && peer.answer_count == 0; said += sizeof bytes - 1) {
        peer_say(&peer, bytes);
        peer_turn(&peer);
    }
    peer_until_answers(&peer, 1);
    expect_answer(&peer.answers[0], REDLOCK_VOTE_UNKNOWN, "1 MiB");
    peer_expect_end(&peer, true);
    greet_again();
    assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_NOT);
}

/* Between both replies the request still waits: it times out, and is UNKNOWN with the connection,
 * like any other. What comes late proves nothing. */
HOLDER_QUERY_TEST(between_both_replies_it_is_still_under_way) {
    connect_as(NULL);
    assert_true(peer_send_as(&peer, BOTH_SENT, NAMED_TWICE, 1));
    peer_serve(&peer, BOTH_SENT, NIL);
    peer_until_answers(&peer, 1);
    expect_answer(&peer.answers[0], REDLOCK_VOTE_UNKNOWN, "no answer within");
    assert_true(peer_send(&peer, "s", 2));
    peer_say(&peer, OURS);
    peer_serve(&peer, "s", OK);
    peer_until_answers(&peer, 2);
    assert_int_equal(peer.answers[1].round, 2);
    /* Nobody knows its token any more. */
    assert_is(redlock_node_form(peer.node).holder_query, REDLOCK_HOLDER_QUERY_TWICE);
    /* Both replies late. */
    assert_true(peer_send_as(&peer, BOTH_SENT, NAMED_TWICE, 3));
    peer_expect(&peer, BOTH_SENT);
    peer_until_answers(&peer, 3);
    peer_say(&peer, NIL);
    assert_true(peer_send(&peer, "s", 4));
    peer_serve(&peer, "s", OURS OK);
    peer_until_answers(&peer, 4);
    assert_int_equal(peer.answers[3].round, 4);
    assert_true(peer_send_as(&peer, BOTH_SENT, NAMED_TWICE, 5));
    peer_serve(&peer, BOTH_SENT, NIL);
    peer_turn(&peer);
    peer_close(&peer);
    peer_until_answers(&peer, 5);
    expect_answer(&peer.answers[4], REDLOCK_VOTE_UNKNOWN, "after the request was written");
    greet_again();
    /* No first reply was left. */
    expect_answer(ask_twice(VALUE, VALUE), REDLOCK_VOTE_DENIED, "held by b");
}
