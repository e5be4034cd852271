/* The loop: wake-ups, timers, the flush before the poll, deletion inside a callback, and a forked
 * child. */
#include "test.h"
#include <ev.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/time.h"
#include "loop/loop.h"

/* The machine was suspended for this long: only CLOCK_BOOTTIME has gone on. */
static time_t suspended_s;
static clockid_t timer_clock = -1;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_create(clockid_t clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = __real_clock_gettime(clock, now);
    now->tv_sec += clock == CLOCK_BOOTTIME ? suspended_s : 0;
    return failed;
}

int __wrap_timerfd_create(clockid_t clock, int flags) {
    timer_clock = clock;
    return __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    if (timer_clock == CLOCK_BOOTTIME && (flags & TFD_TIMER_ABSTIME) != 0) {
        real.it_value.tv_sec -= suspended_s;
    }
    return __real_timerfd_settime(fd, flags, &real, before);
}

static struct ev_loop *ev;
static struct redlock_loop *loop;
static struct redlock_reactor reactor;
static struct redlock_watch waker; /* has a timer only */
static int wakes, timers, flushes, ios;
static int64_t woken_ns;
static bool delete_in_wake;
static char logged[1024];

static void on_wake(struct redlock_watch *watch) {
    wakes++;
    woken_ns = redlock_loop_now_ns(loop);
    if (delete_in_wake) {
        reactor.detach(reactor.ctx, watch);
        redlock_loop_delete(loop);
        loop = NULL;
    }
}

static void on_log(redlock_log_level level, const char *line, void *data) {
    (void)level;
    (void)data;
    (void)snprintf(logged, sizeof logged, "%s", line);
}

static void on_timer(struct redlock_watch *watch) {
    (void)watch;
    timers++;
}

static void on_flush(struct redlock_watch *watch) {
    (void)watch;
    flushes++;
}

static void on_io(struct redlock_watch *watch, unsigned events) {
    (void)watch;
    (void)events;
    ios++;
}

static int setup(UNUSED void **state) {
    struct redlock_loop_hooks hooks = {.on_log = on_log, .log_level = REDLOCK_LOG_WARNING};
    wakes = timers = flushes = ios = 0;
    delete_in_wake = false;
    suspended_s = 0;
    ev = ev_loop_new(0);
    loop = redlock_loop_new(&redlock_libev_ops, ev, &hooks);
    if (loop == NULL) {
        return -1;
    }
    redlock_loop_reactor(loop, &reactor);
    waker = (struct redlock_watch){.on_timer = on_wake};
    return reactor.attach(reactor.ctx, &waker);
}

static int teardown(UNUSED void **state) {
    if (loop != NULL) {
        reactor.detach(reactor.ctx, &waker);
    }
    redlock_loop_delete(loop);
    ev_loop_destroy(ev);
    return 0;
}

static void wake_at(int64_t when_ns) {
    reactor.timer_at(reactor.ctx, &waker, when_ns);
}

static void run_until(const int *count, int wanted) {
    int64_t end_ns = redlock_loop_now_ns(loop) + 20000 * REDLOCK_NS_PER_MS;
    while (*count < wanted) {
        ev_run(ev, EVRUN_ONCE);
        assert_true(loop == NULL || redlock_loop_now_ns(loop) < end_ns);
    }
}

/* A timer of libev itself, which ends a turn of the loop that nothing else ends. */
static void end_turn(struct ev_loop *turning, ev_timer *timer, int events) {
    (void)turning;
    (void)timer;
    (void)events;
}

#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

FRESH_TEST(a_wake_up_comes_at_its_time) {
    int64_t when_ns = redlock_loop_now_ns(loop) + 30 * REDLOCK_NS_PER_MS;
    wake_at(when_ns);
    run_until(&wakes, 1);
    assert_true(woken_ns >= when_ns);
}

/* In a time namespace, the kernel itself puts CLOCK_BOOTTIME ahead of all other clocks. */
FRESH_TEST(the_time_is_the_kernels_boottime) {
    struct timespec before, after;
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &before), 0);
    int64_t now_ns = redlock_loop_now_ns(loop);
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &after), 0);
    assert_true(now_ns >= before.tv_sec * INT64_C(1000000000) + before.tv_nsec);
    assert_true(now_ns <= after.tv_sec * INT64_C(1000000000) + after.tv_nsec);
}

/* R2: a lease also ends while the machine is suspended. By another clock it would last longer by
 * the time of the suspension. */
FRESH_TEST(the_time_goes_on_while_the_machine_is_suspended) {
    int64_t before_ns = redlock_loop_now_ns(loop);
    assert_true(reactor.now_ns(reactor.ctx) >= before_ns);
    wake_at(before_ns + 1000 * REDLOCK_NS_PER_MS);
    suspended_s = 3600;
    assert_true(redlock_loop_now_ns(loop) - before_ns >= 3600 * 1000 * REDLOCK_NS_PER_MS);
    assert_true(reactor.now_ns(reactor.ctx) - before_ns >= 3600 * 1000 * REDLOCK_NS_PER_MS);
}

/* R2: the timer uses the same clock; else it would fire an hour late, or at once. */
FRESH_TEST(a_wake_up_comes_at_its_time_after_a_suspension) {
    suspended_s = 3600;
    int64_t when_ns = redlock_loop_now_ns(loop) + 30 * REDLOCK_NS_PER_MS;
    wake_at(when_ns);
    ev_timer guard;
    ev_timer_init(&guard, end_turn, 20., 0.);
    ev_timer_start(ev, &guard);
    run_until(&wakes, 1);
    ev_timer_stop(ev, &guard);
    assert_true(woken_ns >= when_ns);
}

FRESH_TEST(a_time_that_has_come_wakes_but_not_inside_the_call) {
    wake_at(0);
    wake_at(0);
    assert_int_equal(wakes, 0);
    run_until(&wakes, 1);
    for (int i = 0; i < 3; i++) {
        ev_run(ev, EVRUN_NOWAIT);
    }
    assert_int_equal(wakes, 1);
}

FRESH_TEST(a_later_time_replaces_the_earlier) {
    int64_t now_ns = redlock_loop_now_ns(loop), when_ns = now_ns + 60 * REDLOCK_NS_PER_MS;
    wake_at(now_ns + 20 * REDLOCK_NS_PER_MS);
    wake_at(when_ns);
    run_until(&wakes, 1);
    assert_true(woken_ns >= when_ns);
    wake_at(redlock_loop_now_ns(loop) + 5 * REDLOCK_NS_PER_MS);
    wake_at(REDLOCK_NEVER_NS);
    wake_at(redlock_loop_now_ns(loop) + 20 * REDLOCK_NS_PER_MS);
    run_until(&wakes, 2);
    assert_int_equal(wakes, 2);
}

FRESH_TEST(watches_have_timer_flush_and_descriptor) {
    struct redlock_watch watches[3];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 3; i++) {
        watches[i] = (struct redlock_watch){.on_io = on_io, .on_timer = on_timer, .on_flush = on_flush};
        assert_int_equal(reactor.attach(reactor.ctx, &watches[i]), 0);
        reactor.timer_at(reactor.ctx, &watches[i], redlock_loop_now_ns(loop) + (i + 1) * REDLOCK_NS_PER_MS);
    }
    run_until(&timers, 3);
    for (int i = 0; i < 3; i++) {
        reactor.flush_soon(reactor.ctx, &watches[i]);
        reactor.flush_soon(reactor.ctx, &watches[i]);
    }
    /* The last of the list; the next one goes behind the second. */
    reactor.detach(reactor.ctx, &watches[2]);
    reactor.flush_soon(reactor.ctx, &watches[0]);
    ev_run(ev, EVRUN_NOWAIT);
    assert_int_equal(flushes, 2);
    reactor.watch(reactor.ctx, &watches[0], ends[0], REDLOCK_READABLE);
    ev_run(ev, EVRUN_NOWAIT);
    assert_int_equal(ios, 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    run_until(&ios, 1);
    reactor.watch(reactor.ctx, &watches[0], -1, 0);
    int seen = ios;
    ev_run(ev, EVRUN_NOWAIT);
    assert_int_equal(ios, seen);
    reactor.detach(reactor.ctx, &watches[0]);
    reactor.detach(reactor.ctx, &watches[1]);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

FRESH_TEST(the_wake_up_may_delete_the_loop) {
    delete_in_wake = true;
    wake_at(0);
    run_until(&wakes, 1);
    assert_null(loop);
    ev_run(ev, EVRUN_NOWAIT); /* the loop has no watchers left */
}

FRESH_TEST(only_the_levels_asked_for_are_logged) {
    char line[700];
    logged[0] = '\0';
    redlock_loop_log(loop, REDLOCK_LOG_INFO, "no");
    assert_string_equal(logged, "");
    redlock_loop_log(loop, REDLOCK_LOG_WARNING, "%d %s", 1, "yes");
    assert_string_equal(logged, "1 yes");
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    redlock_loop_log(loop, REDLOCK_LOG_ERROR, "%s", line);
    assert_int_equal(strlen(logged), 511);
}

/* In a child the callbacks must do nothing: the descriptors belong to the parent. */
FRESH_TEST(a_child_runs_nothing) {
    struct redlock_watch watch = {.on_io = on_io, .on_timer = on_timer, .on_flush = on_flush};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(reactor.attach(reactor.ctx, &watch), 0);
    reactor.watch(reactor.ctx, &watch, ends[0], REDLOCK_READABLE);
    reactor.flush_soon(reactor.ctx, &watch);
    wake_at(0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ev_loop_fork(ev);
        for (int i = 0; i < 5; i++) {
            ev_run(ev, EVRUN_NOWAIT);
        }
        _exit(redlock_loop_forked(loop) && wakes + timers + flushes + ios == 0 ? 0 : 1);
    }
    assert_exits(child, 0);
    run_until(&ios, 1);
    assert_int_equal(flushes, 1);
    run_until(&wakes, 1);
    reactor.detach(reactor.ctx, &watch);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Both processes share one timer. If a child set it, it would delay the wake-up of its parent, and
 * so a loss (R3). */
FRESH_TEST(a_child_does_not_move_the_timer_of_its_parent) {
    int armed[2];
    assert_int_equal(pipe(armed), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte;
        bool fired = read(armed[0], &byte, 1) == 1;
        wake_at(redlock_loop_now_ns(loop) + 3600 * 1000 * REDLOCK_NS_PER_MS);
        _exit(fired ? 0 : 1);
    }
    wake_at(redlock_loop_now_ns(loop) + 300 * REDLOCK_NS_PER_MS);
    assert_int_equal(write(armed[1], "x", 1), 1);
    assert_exits(child, 0);
    run_until(&wakes, 1);
    assert_int_equal(wakes, 1);
    close(armed[0]);
    close(armed[1]);
}
