/* How a node's second connection ends: by whom, who is told, and whether it comes back. */
#include "test.h"
#include <sys/wait.h>
#include <unistd.h>

#include "scarce_memory.h"
#include "subscriber.h"

#define FRESH_TEST(name) TEST_WITH(name, subscriber_setup, subscriber_teardown)

FRESH_TEST(closed_by_the_server_it_comes_back) {
    listen_on_it();
    for (int i = 0; i < 3; i++) {
        peer_close(&second);
        until_told(REDLOCK_LISTENING_NOT, "connection closed by the node");
        greet_second();
        peer_say(&second, A_PUSH);
        PEER_UNTIL(&second, peer.pushes == i + 1);
    }
    assert_int_equal(peer.became_unready, 0);
}

/* R20: what a subscriber cannot hear. */
FRESH_TEST(out_of_protocol_it_ends_and_comes_back) {
    static const char *const lies[] = {
        "+OK\r\n",
        ":1\r\n",
        "?\r\n",
        "$-1\r\n",
        PONG, /* to no PING */
        "-ERR no\r\n",
        SUBSCRIBED,
        "*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n",
        "*2\r\n$7\r\nmessage\r\n$2\r\nch\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\nc\r\n$2\r\nch\r\n$1\r\na\r\n",
        "*0\r\n",
    };
    listen_on_it();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        peer_say(&second, lies[i]);
        until_told(REDLOCK_LISTENING_NOT, "out of protocol");
        greet_second();
    }
    assert_int_equal(peer.became_unready, 0);
}

/* Whoever may publish can do that. */
FRESH_TEST(a_message_that_is_too_large_is_named) {
    static char block[64 * 1024 + 1];
    listen_on_it();
    memset(block, 'x', sizeof block - 1);
    peer_say(&second, "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1100000\r\n");
    for (int i = 0; i < 15; i++) {
        peer_say(&second, block);
        peer_turn(&peer);
    }
    peer_say(&second, block);
    peer_say(&second, "more than 1 MiB now");
    until_told(REDLOCK_LISTENING_NOT, "a message was too large: more than 1 MiB");
    greet_second();
    assert_int_equal(peer.became_unready, 0);
}

FRESH_TEST(it_ends_with_the_first_connection) {
    listen_on_it();
    peer_close(&peer);
    until_told(REDLOCK_LISTENING_NOT, "connection closed by the node");
    peer_expect_end(&second, true);
    peer_greet(&peer, "r1", 8, 7);
    greet_second_that_kills();
    /* In its greeting nobody is told. */
    peer_close(&second);
    until_told(REDLOCK_LISTENING_NOT, "");
    peer_accept(&second);
    peer_expect(&second, HELLO);
    const int told = peer.told_listening;
    peer_close(&peer);
    peer_expect_end(&second, true);
    assert_int_equal(peer.told_listening, told);
    peer_greet(&peer, "r1", 9, 8);
    greet_second();
}

/* There the id may be a stranger's. */
FRESH_TEST(a_connection_of_another_server_is_not_killed) {
    listen_on_it();
    peer_close(&peer);
    until_told(REDLOCK_LISTENING_NOT, "connection closed by the node");
    peer_greet(&peer, "r2", 8, 0);
    peer_accept(&second);
    peer_serve(&second, HELLO, "$11\r\nrun_id:r2\r\n\r\n:9\r\n+OK\r\n" SUBSCRIBED);
    until_told(REDLOCK_LISTENING, "");
}

/* The server is alive, but this connection is dead, and nobody publishes. */
FRESH_TEST(ping_finds_a_dead_connection) {
    int64_t begin_ns = redlock_loop_now_ns(NULL);
    listen_on_it();
    peer_expect(&second, PING);
    assert_true(redlock_loop_now_ns(NULL) - begin_ns >= INT64_C(4900000000));
    begin_ns = redlock_loop_now_ns(NULL);
    peer_say(&second, A_PUSH PONG);
    PEER_UNTIL(&second, peer.pushes == 1);
    peer_expect(&second, PING);
    assert_true(redlock_loop_now_ns(NULL) - begin_ns >= INT64_C(4900000000));
    peer_say(&second, A_PUSH); /* is no answer */
    until_told(REDLOCK_LISTENING_NOT, "no answer to PING within 5000 ms");
    assert_true(redlock_loop_now_ns(NULL) - begin_ns >= INT64_C(9800000000));
    assert_int_equal(peer.pushes, 2);
    peer_expect_end(&second, true);
    greet_second_that_kills();
    memory_fails_at(1);
    until_told(REDLOCK_LISTENING_NOT, "no memory for a subscription"); /* for the next PING */
    memory.armed = false;
    greet_second();
    assert_int_equal(peer.became_unready, 0);
}

/* Answers whatever connection comes, until the subscription stands. */
static void serve_until_it_listens(void) {
    while (peer.listening != REDLOCK_LISTENING) {
        peer_accept(&second);
        PEER_UNTIL(&second, second.heard_size >= sizeof HELLO - 1 || second.heard_end || second.heard_reset);
        if (second.heard_size >= sizeof HELLO - 1) {
            peer_say(&second, RUN_ID_R1 "+OK\r\n" SUBSCRIBED);
            PEER_UNTIL(&second, peer.listening == REDLOCK_LISTENING || second.heard_end || second.heard_reset);
        }
    }
}

FRESH_TEST(without_memory_it_is_tried_again) {
    listen_on_it();
    bool failed = true;
    for (memory.fails = 1; failed; memory.fails++) {
        peer_close(&second);
        until_told(REDLOCK_LISTENING_NOT, "connection closed");
        memory_fails_at(memory.fails);
        serve_until_it_listens();
        memory.armed = false;
        failed = memory.count >= memory.fails;
        peer_say(&second, A_PUSH);
        PEER_UNTIL(&second, peer.pushes == memory.fails);
    }
    assert_true(memory.fails > 3);
    assert_true(count_in_log("no memory for a subscription") > 0);
    assert_int_equal(peer.became_unready, 0);
}

/* A plain close: it sends no RST. */
FRESH_TEST(its_deletion_closes_it) {
    listen_on_it();
    redlock_node_delete(peer.node, false);
    peer.node = NULL;
    peer_expect_end(&second, false);
    assert_false(second.heard_reset);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(its_deletion_while_it_greets_tells_nobody) {
    connect_it();
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    redlock_node_delete(peer.node, false);
    peer.node = NULL;
    PEER_UNTIL(&second, second.heard_end);
    assert_int_equal(peer.told_listening, 0);
}

FRESH_TEST(a_forked_child_only_closes_it) {
    listen_on_it();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        redlock_node_delete(peer.node, true);
        _exit(0);
    }
    assert_exits(child, 0);
    peer_say(&second, A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_false(second.heard_end || second.heard_reset);
    assert_int_equal(second.heard_size, 0);
    assert_int_equal(peer.told_listening, 1);
}
