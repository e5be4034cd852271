/* What the tests of loops share. */
#include "kit.h"

#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 10

struct own own;
time_t kit_suspended_s;
int kit_timer_fd = -1, kit_sends;
clockid_t kit_timer_clock = -1;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    const int failed = __real_clock_gettime(clock, now);
    now->tv_sec += clock == CLOCK_BOOTTIME ? kit_suspended_s : 0;
    return failed;
}

int __wrap_timerfd_create(clockid_t clock, int flags) {
    kit_timer_clock = clock;
    return kit_timer_fd = __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    real.it_value.tv_sec -= real.it_value.tv_sec > kit_suspended_s ? kit_suspended_s : 0;
    return __real_timerfd_settime(fd, flags, &real, before);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags) {
    kit_sends++;
    return __real_send(fd, bytes, size, flags);
}

void kit_on_tick(void) {
    own.ticks++;
    if (write(own.ends[0], "x", 1) != 1) {
        support_fatal("the test's own socket is broken");
    }
}

static void on_echo(void) {
    char bytes[64];
    own.echoes += (int)read(own.ends[1], bytes, sizeof bytes) > 0;
}

void kit_start_own(void) {
    loop_start_timer(TICK_MS, kit_on_tick);
    loop_start_reading(own.ends[1], on_echo);
}

void kit_stop_own(void) {
    loop_stop_timer();
    loop_stop_reading();
}

int kit_setup(void **state) {
    if (world_setup(state) != 0) {
        return -1;
    }
    memset(&own, 0, sizeof own);
    kit_suspended_s = 0;
    loop_open();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, own.ends), 0);
    kit_start_own();
    return 0;
}

int kit_teardown(void **state) {
    const int result = world_teardown(state);
    kit_stop_own();
    (void)close(own.ends[0]);
    (void)close(own.ends[1]);
    /* If the test failed half-way, its managers are still on the loop. */
    return loop_close() ? result : -1;
}

redlock_manager *kit_try_manager(redlock_manager_options *options) {
    redlock_manager *manager = NULL;
    char error[256] = "";
    options->on_log = log_collect;
    options->log_data = &world_log;
    options->log_level = REDLOCK_LOG_DEBUG;
    if (loop_create(options, &manager, error, sizeof error) != REDLOCK_OK) {
        fail_msg("creating a manager: %s", error);
    }
    return manager;
}

redlock_manager *kit_connected(redlock_manager_options *options) {
    redlock_manager *manager = kit_try_manager(options);
    struct outcome *outcome = world_outcome();
    assert_is(redlock_manager_connect(manager, DRIVE_TIMEOUT_MS, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    return manager;
}

redlock_manager_options kit_options(void) {
    redlock_manager_options options = world_options();
    options.connect_timeout_ms = DRIVE_TIMEOUT_MS;
    return options;
}

redlock_manager *kit_new_manager(void) {
    redlock_manager_options options = kit_options();
    return kit_connected(&options);
}

void kit_on_closed(void *data) {
    (void)data;
    own.closed++;
}

void kit_close_manager(redlock_manager *manager) {
    const int before = own.closed;
    assert_is(redlock_manager_close(manager, kit_on_closed, NULL), REDLOCK_OK);
    assert_int_equal(own.closed, before); /* never inside the call */
    UNTIL(own.closed == before + 1);
}

redlock_lease *kit_acquire(redlock_manager *manager, const char *resource, redlock_acquire_options *options) {
    struct outcome *outcome = world_outcome();
    assert_is(redlock_acquire(manager, resource, options, NULL, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    assert_is(outcome->code, REDLOCK_OK);
    return outcome->lease;
}

int kit_release(redlock_lease *lease) {
    struct outcome *outcome = world_outcome();
    assert_is(redlock_release(lease, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    return outcome->code;
}
