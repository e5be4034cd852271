/* What a test has on a loop around poll() besides the library. */
#include "polled.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static int read_fd = -1;                    /* -1: off */
static int64_t timer_ms, every_ms;          /* 0: off */
static loop_callback on_timer, on_io, late; /* late: NULL, or before the next poll() */

static int64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void polled_late(void) {
    const loop_callback is_late = late;
    late = NULL;
    if (is_late != NULL) {
        is_late();
    }
}

bool polled_wait(struct pollfd *fds, nfds_t count) {
    const int64_t left_ms = every_ms == 0 ? -1 : timer_ms - now_ms();
    struct pollfd *own = &fds[count - 1];
    *own = (struct pollfd){.fd = read_fd, .events = POLLIN};
    if (poll(fds, count, (int)(every_ms != 0 && left_ms < 0 ? 0 : left_ms)) < 0) {
        assert(errno == EINTR);
        return false;
    }
    if (every_ms != 0 && timer_ms <= now_ms()) {
        timer_ms = now_ms() + every_ms;
        on_timer();
    }
    if (own->revents != 0 && read_fd >= 0) {
        on_io();
    }
    return true;
}

void loop_start_timer(int ms, loop_callback callback) {
    on_timer = callback;
    every_ms = ms;
    timer_ms = now_ms() + ms;
}

void loop_stop_timer(void) {
    every_ms = 0;
}

void loop_start_reading(int fd, loop_callback callback) {
    on_io = callback;
    read_fd = fd;
}

void loop_stop_reading(void) {
    read_fd = -1;
}

bool loop_before_wait(loop_callback callback) {
    late = callback;
    return true;
}
