/* What a test has on a loop around poll() besides the library: a timer, a descriptor and a late
 * call. */
#ifndef TEST_INTEGRATION_LOOPS_POLLED_H
#define TEST_INTEGRATION_LOOPS_POLLED_H

#include <poll.h>

#include "kind.h"

void polled_late(void);
/* Calls poll() until something happens, with the test's descriptor as the last of `fds`, and then
 * the test's callbacks that are due. Returns false if a signal came instead. */
bool polled_wait(struct pollfd *fds, nfds_t count);

#endif
