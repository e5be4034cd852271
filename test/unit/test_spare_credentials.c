/* New credentials while the connection is silent: what the second one says. */
#include "test.h"
#include <unistd.h>

#include "credentials_kit.h"

/* READY, with a request that gets no answer; the next to connect is a spare. */
static int go_silent(void) {
    peer_sends(&peer, "aa", 1);
    return peer_put_aside(&peer);
}

static void assert_replaced(void) {
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
    assert_int_equal(peer.became_unready, 0);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_null(peer.node->server.rotation.spare.password);
}

#define FRESH_TEST(name) TEST_WITH(name, subscriber_setup_with_password, credentials_teardown)

/* The password was changed while the connection was silent. */
FRESH_TEST(a_spare_begins_with_the_new_ones) {
    connect_with(OLD);
    const int old = go_silent();
    offer("bob", "neu-1");
    connect_with(NEW);
    assert_replaced();
    assert_accepted();
    assert_int_equal(count_in_log("has accepted the new credentials"), 1);
    assert_true(peer_send(&peer, "bb", 2));
    peer_expect(&peer, "bb"); /* without AUTH */
    peer_close(&peer);
    connect_with(NEW);
    (void)close(old);
}

/* The client was told before the server. */
FRESH_TEST(a_spare_that_is_refused_with_the_new_ones_has_the_old_next) {
    connect_with(OLD);
    const int old = go_silent();
    offer("bob", "neu-1");
    hear_auth(NEW);
    refuse_handshake();
    peer_expect_end(&peer, true);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    connect_with(OLD);
    assert_replaced();
    peer_expect(&peer, NEW WITH_PING); /* they are not forgotten */
    peer_say(&peer, "+OK\r\n" ECHO);
    assert_accepted();
    (void)close(old);
}

/* The server was told after it had refused the new ones. */
FRESH_TEST(a_spare_that_is_refused_with_the_old_ones_has_the_new_next) {
    connect_with(OLD);
    offer("bob", "neu-1");
    peer_serve(&peer, NEW WITH_PING, REFUSED ECHO);
    PEER_UNTIL(&peer, peer_info(&peer).credentials_error[0] != '\0');
    const int old = go_silent();
    hear_auth(OLD);
    refuse_handshake();
    peer_expect_end(&peer, true);
    connect_with(NEW);
    assert_replaced();
    assert_accepted();
    (void)close(old);
}

/* The old connection was only slow. */
FRESH_TEST(a_needless_spare_changes_no_credentials) {
    connect_with(OLD);
    const int old = go_silent();
    offer("bob", "neu-1");
    hear_auth(NEW);
    assert_int_equal(send(old, "+OK\r\n", 5, MSG_NOSIGNAL), 5);
    peer_expect_end(&peer, true);
    assert_null(peer.node->server.rotation.spare.password);
    assert_true(peer_info(&peer).credentials_pending);
    assert_int_equal(send(old, "+OK\r\n" ECHO, 5 + sizeof ECHO - 1, MSG_NOSIGNAL), 5 + (ssize_t)sizeof ECHO - 1);
    assert_accepted();
    assert_int_equal(peer_info(&peer).connects, 1);
    (void)close(old);
}
