/* libuv, for the tests of loops. */
#include <redlock/adapters/libuv.h>

#include "kind.h"

struct test_loop {
    uv_loop_t uv;
    uv_timer_t timer;
    uv_poll_t *io;
    uv_prepare_t prepare; /* runs behind idle handles */
    loop_callback on_timer, on_io, on_prepare;
    void *timer_data, *io_data, *prepare_data;
};

static void on_timer(uv_timer_t *timer) {
    struct test_loop *loop = timer->data;
    loop->on_timer(loop->timer_data);
}

static void on_io(uv_poll_t *io, int status, int events) {
    struct test_loop *loop = io->data;
    (void)status, (void)events;
    loop->on_io(loop->io_data);
}

static void on_prepare(uv_prepare_t *prepare) {
    struct test_loop *loop = prepare->data;
    uv_prepare_stop(prepare);
    loop->on_prepare(loop->prepare_data);
}

static void on_closed(uv_handle_t *handle) {
    free(handle);
}

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    uv_loop_init(&loop->uv);
    uv_timer_init(&loop->uv, &loop->timer);
    uv_prepare_init(&loop->uv, &loop->prepare);
    loop->timer.data = loop->prepare.data = loop;
    return loop;
}

static int create(void *context, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    struct test_loop *loop = context;
    return redlock_manager_create_libuv(&loop->uv, options, manager, error, error_size);
}

static void turn(void *context) {
    struct test_loop *loop = context;
    uv_run(&loop->uv, UV_RUN_ONCE);
}

static void start_timer(void *context, int ms, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_timer = callback;
    loop->timer_data = data;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->timer, on_timer, (uint64_t)ms, (uint64_t)ms);
}

static void stop_timer(void *context) {
    struct test_loop *loop = context;
    uv_timer_stop(&loop->timer);
}

static void start_reading(void *context, int fd, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_io = callback;
    loop->io_data = data;
    loop->io = calloc(1, sizeof *loop->io);
    uv_poll_init(&loop->uv, loop->io, fd);
    loop->io->data = loop;
    uv_poll_start(loop->io, UV_READABLE, on_io);
}

static void stop_reading(void *context) {
    struct test_loop *loop = context;
    if (loop->io != NULL) {
        uv_close((uv_handle_t *)loop->io, on_closed);
        loop->io = NULL;
    }
}

static void before_wait(void *context, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_prepare = callback;
    loop->prepare_data = data;
    uv_prepare_start(&loop->prepare, on_prepare);
}

static void after_fork(void *context) {
    struct test_loop *loop = context;
    uv_loop_fork(&loop->uv);
}

static bool close_loop(void *context) {
    struct test_loop *loop = context;
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    /* Runs what closes, and would wait for a handle that was left. */
    const bool clean = uv_run(&loop->uv, UV_RUN_NOWAIT) == 0;
    const bool closed = uv_loop_close(&loop->uv) == 0;
    if (closed) {
        free(loop);
    }
    return clean && closed;
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
