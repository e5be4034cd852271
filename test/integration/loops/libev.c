/* libev, for the tests of loops. */
#include <ev.h>
#include <stdlib.h>

#include "kind.h"

struct test_loop {
    struct ev_loop *ev;
    ev_timer timer;
    ev_io io;
    ev_prepare prepare;
    loop_callback on_timer, on_io, on_prepare;
    void *timer_data, *io_data, *prepare_data;
};

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events) {
    struct test_loop *loop = timer->data;
    (void)ev, (void)events;
    loop->on_timer(loop->timer_data);
}

static void on_io(struct ev_loop *ev, ev_io *io, int events) {
    struct test_loop *loop = io->data;
    (void)ev, (void)events;
    loop->on_io(loop->io_data);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events) {
    struct test_loop *loop = prepare->data;
    (void)events;
    ev_prepare_stop(ev, prepare);
    loop->on_prepare(loop->prepare_data);
}

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->ev = ev_loop_new(EVFLAG_AUTO);
    ev_timer_init(&loop->timer, on_timer, 0., 0.);
    ev_io_init(&loop->io, on_io, 0, EV_READ);
    ev_prepare_init(&loop->prepare, on_prepare);
    loop->timer.data = loop->io.data = loop->prepare.data = loop;
    return loop;
}

static int create(void *context, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    struct test_loop *loop = context;
    return redlock_manager_create(loop->ev, options, manager, error, error_size);
}

static void turn(void *context) {
    struct test_loop *loop = context;
    ev_run(loop->ev, EVRUN_ONCE);
}

static void start_timer(void *context, int ms, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_timer = callback;
    loop->timer_data = data;
    ev_now_update(loop->ev);
    ev_timer_set(&loop->timer, ms / 1e3, ms / 1e3);
    ev_timer_start(loop->ev, &loop->timer);
}

static void stop_timer(void *context) {
    struct test_loop *loop = context;
    ev_timer_stop(loop->ev, &loop->timer);
}

static void start_reading(void *context, int fd, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_io = callback;
    loop->io_data = data;
    ev_io_set(&loop->io, fd, EV_READ);
    ev_io_start(loop->ev, &loop->io);
}

static void stop_reading(void *context) {
    struct test_loop *loop = context;
    ev_io_stop(loop->ev, &loop->io);
}

static void before_wait(void *context, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_prepare = callback;
    loop->prepare_data = data;
    ev_prepare_start(loop->ev, &loop->prepare);
}

static void after_fork(void *context) {
    struct test_loop *loop = context;
    ev_loop_fork(loop->ev);
}

static bool close_loop(void *context) {
    struct test_loop *loop = context;
    const bool clean = !ev_run(loop->ev, EVRUN_NOWAIT); /* no watcher is left */
    ev_loop_destroy(loop->ev);
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
