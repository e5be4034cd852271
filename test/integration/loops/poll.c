/* A loop around poll(), for the tests of loops: the library's descriptor is one of its own. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include <redlock/adapters/poll.h>

#include "kind.h"

struct test_loop {
    redlock_poll *poll;
    struct pollfd fds[2];
    int64_t timer_ms, every_ms;          /* 0: off */
    loop_callback on_timer, on_io, late; /* late: NULL, or before the next poll() */
    void *timer_data, *io_data, *late_data;
};

static int64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->poll = redlock_poll_new();
    loop->fds[0] = (struct pollfd){.fd = redlock_poll_fd(loop->poll), .events = POLLIN};
    loop->fds[1] = (struct pollfd){.fd = -1};
    return loop;
}

static int create(void *context, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    struct test_loop *loop = context;
    return redlock_manager_create_poll(loop->poll, options, manager, error, error_size);
}

static void run_late(struct test_loop *loop) {
    const loop_callback late = loop->late;
    loop->late = NULL;
    if (late != NULL) {
        late(loop->late_data);
    }
}

static void turn(void *context) {
    struct test_loop *loop = context;
    run_late(loop);
    int64_t left_ms = loop->every_ms == 0 ? -1 : loop->timer_ms - now_ms();
    const int ready = poll(loop->fds, 2, (int)(loop->every_ms != 0 && left_ms < 0 ? 0 : left_ms));
    if (ready < 0 && errno != EINTR) {
        abort();
    }
    if (loop->every_ms != 0 && loop->timer_ms <= now_ms()) {
        loop->timer_ms = now_ms() + loop->every_ms;
        loop->on_timer(loop->timer_data);
    }
    if (ready > 0 && loop->fds[1].revents != 0) {
        loop->on_io(loop->io_data);
    }
    if (ready > 0 && loop->fds[0].revents != 0 && redlock_poll_dispatch(loop->poll) == REDLOCK_ERR_SYSTEM) {
        abort();
    }
}

static void start_timer(void *context, int ms, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_timer = callback;
    loop->timer_data = data;
    loop->every_ms = ms;
    loop->timer_ms = now_ms() + ms;
}

static void stop_timer(void *context) {
    struct test_loop *loop = context;
    loop->every_ms = 0;
}

static void start_reading(void *context, int fd, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_io = callback;
    loop->io_data = data;
    loop->fds[1] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void stop_reading(void *context) {
    struct test_loop *loop = context;
    loop->fds[1].fd = -1;
}

static void before_wait(void *context, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->late = callback;
    loop->late_data = data;
}

static void after_fork(void *context) {
    struct test_loop *loop = context;
    loop->fds[0].fd = -1; /* the descriptor is the parent's */
}

static bool close_loop(void *context) {
    struct test_loop *loop = context;
    const bool clean = redlock_poll_free(loop->poll) == REDLOCK_OK;
    free(loop);
    return clean;
}

const struct loop_kind loop_kind = {.open = open_loop,
                                    .create = create,
                                    .turn = turn,
                                    .start_timer = start_timer,
                                    .stop_timer = stop_timer,
                                    .start_reading = start_reading,
                                    .stop_reading = stop_reading,
                                    .before_wait = before_wait,
                                    .after_fork = after_fork,
                                    .close = close_loop};
