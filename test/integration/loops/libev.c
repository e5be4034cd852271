/* libev, for the tests of loops. */
#include <ev.h>

#include "kind.h"

static struct ev_loop *ev;
static ev_timer timer;
static ev_io io;
static ev_prepare prepare;
static loop_callback on_timer, on_io, on_prepare;

static void timer_cb(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop, (void)watcher, (void)events;
    on_timer();
}

static void io_cb(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop, (void)watcher, (void)events;
    on_io();
}

static void prepare_cb(struct ev_loop *loop, ev_prepare *watcher, int events) {
    (void)events;
    ev_prepare_stop(loop, watcher);
    on_prepare();
}

void loop_open(void) {
    ev = ev_loop_new(EVFLAG_AUTO);
    ev_timer_init(&timer, timer_cb, 0., 0.);
    ev_io_init(&io, io_cb, 0, EV_READ);
    ev_prepare_init(&prepare, prepare_cb);
}

int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size) {
    return redlock_manager_create(ev, options, manager, error, size);
}

void loop_turn(void) {
    ev_run(ev, EVRUN_ONCE);
}

void loop_start_timer(int ms, loop_callback callback) {
    on_timer = callback;
    ev_now_update(ev);
    ev_timer_set(&timer, ms / 1e3, ms / 1e3);
    ev_timer_start(ev, &timer);
}

void loop_stop_timer(void) {
    ev_timer_stop(ev, &timer);
}

void loop_start_reading(int fd, loop_callback callback) {
    on_io = callback;
    ev_io_set(&io, fd, EV_READ);
    ev_io_start(ev, &io);
}

void loop_stop_reading(void) {
    ev_io_stop(ev, &io);
}

bool loop_before_wait(loop_callback callback) {
    on_prepare = callback;
    ev_prepare_start(ev, &prepare);
    return true;
}

void loop_after_fork(void) {
    ev_loop_fork(ev);
}

bool loop_close(void) {
    const bool clean = !ev_run(ev, EVRUN_NOWAIT); /* no watcher is left */
    ev_loop_destroy(ev);
    return clean;
}
