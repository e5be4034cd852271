/* A loop around poll(), for the tests of loops: the library's descriptor is one of its own. */
#include <stdlib.h>

#include <redlock/adapters/poll.h>

#include "polled.h"

struct test_loop {
    struct polled polled; /* must be first */
    redlock_poll *poll;
    int fd;
};

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->poll = redlock_poll_new();
    loop->fd = redlock_poll_fd(loop->poll);
    loop->polled.fd = -1;
    return loop;
}

static int create(void *context, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    struct test_loop *loop = context;
    return redlock_manager_create_poll(loop->poll, options, manager, error, error_size);
}

static void turn(void *context) {
    struct test_loop *loop = context;
    struct pollfd fds[2] = {{.fd = loop->fd, .events = POLLIN}};
    polled_late(&loop->polled);
    if (polled_wait(&loop->polled, fds, 2) && fds[0].revents != 0 &&
        redlock_poll_dispatch(loop->poll) == REDLOCK_ERR_SYSTEM) {
        abort();
    }
}

static void after_fork(void *context) {
    struct test_loop *loop = context;
    loop->fd = -1; /* the descriptor is the parent's */
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
                                    .start_timer = polled_start_timer,
                                    .stop_timer = polled_stop_timer,
                                    .start_reading = polled_start_reading,
                                    .stop_reading = polled_stop_reading,
                                    .before_wait = polled_before_wait,
                                    .after_fork = after_fork,
                                    .close = close_loop};
