/* libevent, for the tests of loops. */
#include <redlock/adapters/libevent.h>

#include "kind.h"

static struct event_base *base;
static struct event *timer, *io;
static loop_callback on_timer, on_io;

static void event_cb(evutil_socket_t fd, short events, void *callback) {
    (void)fd, (void)events;
    (*(loop_callback *)callback)();
}

void loop_open(void) {
    base = event_base_new();
    timer = event_new(base, -1, EV_PERSIST, event_cb, &on_timer);
}

int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size) {
    return redlock_manager_create_libevent(base, options, manager, error, size);
}

void loop_turn(void) {
    event_base_loop(base, EVLOOP_ONCE);
}

void loop_start_timer(int ms, loop_callback callback) {
    const struct timeval every = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    on_timer = callback;
    event_add(timer, &every);
}

void loop_stop_timer(void) {
    event_del(timer);
}

void loop_start_reading(int fd, loop_callback callback) {
    on_io = callback;
    io = event_new(base, fd, EV_READ | EV_PERSIST, event_cb, &on_io);
    event_add(io, NULL);
}

void loop_stop_reading(void) {
    if (io != NULL) {
        event_free(io);
        io = NULL;
    }
}

/* libevent 2.1 has no call before it waits. */
bool loop_before_wait(loop_callback callback) {
    (void)callback;
    return false;
}

void loop_after_fork(void) {
    event_reinit(base);
}

bool loop_close(void) {
    event_free(timer);
    const bool clean = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE) == 0;
    event_base_free(base);
    return clean;
}
