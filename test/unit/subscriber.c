/* The server's end of a node's second connection. */
#include "subscriber.h"

#include "test.h"
#include <sys/socket.h>

struct peer peer, second;

static void share(void) {
    memset(&second, 0, sizeof second);
    second.ev = peer.ev;
    second.listener = peer.listener;
    second.connection = -1;
}

int first_setup(UNUSED void **state) {
    peer_start(&peer);
    return 0;
}

int first_teardown(UNUSED void **state) {
    peer_stop(&peer);
    return 0;
}

int subscriber_setup(UNUSED void **state) {
    peer_start(&peer);
    share();
    return 0;
}

int subscriber_setup_with_password(UNUSED void **state) {
    peer_start_with(&peer, "bob:geheim@");
    share();
    return 0;
}

int subscriber_teardown(UNUSED void **state) {
    peer_stop(&peer);
    peer_close(&second);
    return 0;
}

void connect_it(void) {
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

static void until_listening(int before) {
    PEER_UNTIL(&second, peer.told_listening > before);
    assert_int_equal(peer.told_listening, before + 1);
    assert_is(peer.listening, REDLOCK_LISTENING);
    assert_string_equal(peer.why_not, "");
}

void greet_second(void) {
    const int before = peer.told_listening;
    peer_accept(&second);
    peer_serve(&second, HELLO, RUN_ID_R1 "+OK\r\n" SUBSCRIBED);
    until_listening(before);
}

void greet_second_that_kills(void) {
    const int before = peer.told_listening;
    peer_accept(&second);
    peer_serve(&second, INFO ID NAME, RUN_ID_R1 "+OK\r\n");
    peer_serve(&second, KILL LISTEN, ":1\r\n" SUBSCRIBED);
    until_listening(before);
}

void listen_on_it(void) {
    connect_it();
    redlock_node_listen(peer.node, "ch");
    greet_second();
}

void until_told(enum redlock_listening listening, const char *words) {
    const int before = peer.told_listening;
    PEER_UNTIL(&second, peer.told_listening > before);
    assert_int_equal(peer.told_listening, before + 1);
    assert_int_equal(peer.listening, listening);
    assert_contains(peer.why_not, words);
}

int count_in_log(const char *words) {
    int count = 0;
    for (const char *at = peer.log; (at = strstr(at, words)) != NULL; at++) {
        count++;
    }
    return count;
}

void assert_nobody_comes(void) {
    for (int64_t end_ns = redlock_loop_now_ns(NULL) + INT64_C(60000000); redlock_loop_now_ns(NULL) < end_ns;) {
        peer_turn(&peer);
        assert_int_equal(accept4(peer.listener, NULL, NULL, SOCK_CLOEXEC), -1);
    }
}
