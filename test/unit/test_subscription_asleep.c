/* A node's second connection after a time in which the process was stopped. */
#include "test.h"
#include <sys/timerfd.h>
#include <time.h>

#include "subscriber.h"

/* It slept for so long. */
static time_t asleep_s;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = __real_clock_gettime(clock, now);
    now->tv_sec += clock == CLOCK_BOOTTIME ? asleep_s : 0;
    return failed;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    real.it_value.tv_sec -= real.it_value.tv_sec > asleep_s ? asleep_s : 0;
    return __real_timerfd_settime(fd, flags, &real, before);
}

static int setup(void **state) {
    asleep_s = 0;
    return subscriber_setup(state);
}

#define FRESH_TEST(name) TEST_WITH(name, setup, subscriber_teardown)

/* The next PING was due 5 s after the greeting: it is sent now, and has its whole time. */
FRESH_TEST(what_came_during_a_sleep_is_read) {
    listen_on_it();
    peer_say(&second, A_PUSH);
    asleep_s = 60;
    PEER_UNTIL(&second, peer.pushes == 1);
    peer_serve(&second, PING, PONG A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 2);
    assert_int_equal(peer.told_listening, 1);
    assert_int_equal(peer.became_unready, 0);
}

/* The PONG was due 5 s after the PING. It came in time, but nobody looked. */
FRESH_TEST(a_pong_that_came_during_a_sleep_counts) {
    listen_on_it();
    asleep_s = 6;
    peer_serve(&second, PING, PONG A_PUSH);
    asleep_s = 60;
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(who_died_during_a_sleep_is_found_by_a_ping) {
    listen_on_it();
    asleep_s = 60;
    peer_expect(&second, PING);
    asleep_s = 66;
    until_told(REDLOCK_LISTENING_NOT, "no answer to PING within 5000 ms");
    peer_expect_end(&second, true);
    greet_second_that_kills();
}
