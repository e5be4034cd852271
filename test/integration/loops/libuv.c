/* libuv, for the tests of loops. */
#include <redlock/adapters/libuv.h>

#include "kind.h"

static uv_loop_t uv;
static uv_timer_t timer;
static uv_poll_t *io;
static uv_prepare_t prepare; /* runs behind idle handles */
static loop_callback on_timer, on_io, on_prepare;

static void timer_cb(uv_timer_t *handle) {
    (void)handle;
    on_timer();
}

static void io_cb(uv_poll_t *handle, int status, int events) {
    (void)handle, (void)status, (void)events;
    on_io();
}

static void prepare_cb(uv_prepare_t *handle) {
    uv_prepare_stop(handle);
    on_prepare();
}

static void on_closed(uv_handle_t *handle) {
    free(handle);
}

void loop_open(void) {
    uv_loop_init(&uv);
    uv_timer_init(&uv, &timer);
    uv_prepare_init(&uv, &prepare);
}

int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size) {
    return redlock_manager_create_libuv(&uv, options, manager, error, size);
}

void loop_turn(void) {
    uv_run(&uv, UV_RUN_ONCE);
}

void loop_start_timer(int ms, loop_callback callback) {
    on_timer = callback;
    uv_update_time(&uv);
    uv_timer_start(&timer, timer_cb, (uint64_t)ms, (uint64_t)ms);
}

void loop_stop_timer(void) {
    uv_timer_stop(&timer);
}

void loop_start_reading(int fd, loop_callback callback) {
    on_io = callback;
    io = calloc(1, sizeof *io);
    uv_poll_init(&uv, io, fd);
    uv_poll_start(io, UV_READABLE, io_cb);
}

void loop_stop_reading(void) {
    if (io != NULL) {
        uv_close((uv_handle_t *)io, on_closed);
        io = NULL;
    }
}

bool loop_before_wait(loop_callback callback) {
    on_prepare = callback;
    uv_prepare_start(&prepare, prepare_cb);
    return true;
}

void loop_after_fork(void) {
    uv_loop_fork(&uv);
}

bool loop_close(void) {
    uv_close((uv_handle_t *)&timer, NULL);
    uv_close((uv_handle_t *)&prepare, NULL);
    /* Runs what closes, and would wait for a handle that was left. */
    const bool clean = uv_run(&uv, UV_RUN_NOWAIT) == 0;
    return uv_loop_close(&uv) == 0 && clean;
}
