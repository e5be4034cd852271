/* libevent, for the tests of loops. */
#include <redlock/adapters/libevent.h>

#include "kind.h"

struct test_loop {
    struct event_base *base;
    struct event *timer, *io;
    loop_callback on_timer, on_io;
    void *timer_data, *io_data;
};

static void on_timer(evutil_socket_t fd, short events, void *data) {
    struct test_loop *loop = data;
    (void)fd, (void)events;
    loop->on_timer(loop->timer_data);
}

static void on_io(evutil_socket_t fd, short events, void *data) {
    struct test_loop *loop = data;
    (void)fd, (void)events;
    loop->on_io(loop->io_data);
}

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->base = event_base_new();
    loop->timer = event_new(loop->base, -1, EV_PERSIST, on_timer, loop);
    return loop;
}

static int create(void *context, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    struct test_loop *loop = context;
    return redlock_manager_create_libevent(loop->base, options, manager, error, error_size);
}

static void turn(void *context) {
    struct test_loop *loop = context;
    event_base_loop(loop->base, EVLOOP_ONCE);
}

static void start_timer(void *context, int ms, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    const struct timeval every = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    loop->on_timer = callback;
    loop->timer_data = data;
    event_add(loop->timer, &every);
}

static void stop_timer(void *context) {
    struct test_loop *loop = context;
    event_del(loop->timer);
}

static void start_reading(void *context, int fd, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_io = callback;
    loop->io_data = data;
    loop->io = event_new(loop->base, fd, EV_READ | EV_PERSIST, on_io, loop);
    event_add(loop->io, NULL);
}

static void stop_reading(void *context) {
    struct test_loop *loop = context;
    if (loop->io != NULL) {
        event_free(loop->io);
        loop->io = NULL;
    }
}

static void after_fork(void *context) {
    struct test_loop *loop = context;
    event_reinit(loop->base);
}

static bool close_loop(void *context) {
    struct test_loop *loop = context;
    event_free(loop->timer);
    const bool clean = event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE) == 0;
    event_base_free(loop->base);
    free(loop);
    return clean;
}

/* libevent 2.1 has no call before it waits: no before_wait. */
const struct loop_kind loop_kind = {.open = open_loop,
                                    .create = create,
                                    .turn = turn,
                                    .start_timer = start_timer,
                                    .stop_timer = stop_timer,
                                    .start_reading = start_reading,
                                    .stop_reading = stop_reading,
                                    .after_fork = after_fork,
                                    .close = close_loop};
