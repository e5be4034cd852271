/* What a test has on a loop around poll() besides the library: a timer, a descriptor and a late
 * call. A loop's struct begins with it, so that its functions serve in a struct loop_kind. */
#ifndef TEST_INTEGRATION_LOOPS_POLLED_H
#define TEST_INTEGRATION_LOOPS_POLLED_H

#include <poll.h>
#include <stdint.h>

#include "kind.h"

struct polled {
    int fd;                              /* -1: off */
    int64_t timer_ms, every_ms;          /* 0: off */
    loop_callback on_timer, on_io, late; /* late: NULL, or before the next poll() */
    void *timer_data, *io_data, *late_data;
};

void polled_late(struct polled *polled);
/* Calls poll() until something happens, with the test's descriptor as the last of `fds`, and then
 * the test's callbacks that are due. Returns false if a signal came instead. */
bool polled_wait(struct polled *polled, struct pollfd *fds, nfds_t count);

void polled_start_timer(void *loop, int ms, loop_callback callback, void *data);
void polled_stop_timer(void *loop);
void polled_start_reading(void *loop, int fd, loop_callback callback, void *data);
void polled_stop_reading(void *loop);
void polled_before_wait(void *loop, loop_callback callback, void *data);

#endif
