/* A node's second connection after a time in which the process was stopped. */
#include "peer_clock.h"
#include "subscriber.h"
#include "test.h"

#define FRESH_TEST(name) TEST_WITH(name, subscriber_setup, subscriber_teardown)

/* The next PING was due 5 s after the greeting: it is sent now, and has its whole time. */
FRESH_TEST(what_came_during_a_sleep_is_read) {
    listen_on_it();
    peer_say(&second, A_PUSH);
    peer_clock_sleep_s(60);
    PEER_UNTIL(&second, peer.pushes == 1);
    peer_serve(&second, PING, PONG A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 2);
    assert_int_equal(peer.told_listening, 1);
    assert_int_equal(peer.became_unready, 0);
}

/* The PONG was due 5 s after the PING. It came in time, but nobody looked. */
FRESH_TEST(a_pong_that_came_during_a_sleep_counts) {
    listen_on_it();
    peer_clock_sleep_s(6);
    peer_serve(&second, PING, PONG A_PUSH);
    peer_clock_sleep_s(60);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(who_died_during_a_sleep_is_found_by_a_ping) {
    listen_on_it();
    peer_clock_sleep_s(60);
    peer_expect(&second, PING);
    peer_clock_sleep_s(66);
    until_told(REDLOCK_LISTENING_NOT, "no answer to PING within 5000 ms");
    peer_expect_end(&second, true);
    greet_second_that_kills();
}
