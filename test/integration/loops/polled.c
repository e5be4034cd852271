/* What a test has on a loop around poll() besides the library. */
#include "polled.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static int64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void polled_late(struct polled *polled) {
    const loop_callback late = polled->late;
    polled->late = NULL;
    if (late != NULL) {
        late(polled->late_data);
    }
}

bool polled_wait(struct polled *polled, struct pollfd *fds, nfds_t count) {
    const int64_t left_ms = polled->every_ms == 0 ? -1 : polled->timer_ms - now_ms();
    struct pollfd *own = &fds[count - 1];
    *own = (struct pollfd){.fd = polled->fd, .events = POLLIN};
    if (poll(fds, count, (int)(polled->every_ms != 0 && left_ms < 0 ? 0 : left_ms)) < 0) {
        assert(errno == EINTR);
        return false;
    }
    if (polled->every_ms != 0 && polled->timer_ms <= now_ms()) {
        polled->timer_ms = now_ms() + polled->every_ms;
        polled->on_timer(polled->timer_data);
    }
    if (own->revents != 0 && polled->fd >= 0) {
        polled->on_io(polled->io_data);
    }
    return true;
}

void polled_start_timer(void *loop, int ms, loop_callback callback, void *data) {
    struct polled *polled = loop;
    polled->on_timer = callback;
    polled->timer_data = data;
    polled->every_ms = ms;
    polled->timer_ms = now_ms() + ms;
}

void polled_stop_timer(void *loop) {
    struct polled *polled = loop;
    polled->every_ms = 0;
}

void polled_start_reading(void *loop, int fd, loop_callback callback, void *data) {
    struct polled *polled = loop;
    polled->on_io = callback;
    polled->io_data = data;
    polled->fd = fd;
}

void polled_stop_reading(void *loop) {
    struct polled *polled = loop;
    polled->fd = -1;
}

void polled_before_wait(void *loop, loop_callback callback, void *data) {
    struct polled *polled = loop;
    polled->late = callback;
    polled->late_data = data;
}
