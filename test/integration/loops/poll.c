/* A loop around poll(), for the tests of loops: the library's descriptor is one of its own. */
#include <stdlib.h>

#include <redlock/adapters/poll.h>

#include "polled.h"

static redlock_poll *library;
static int library_fd;

void loop_open(void) {
    library = redlock_poll_new();
    library_fd = redlock_poll_fd(library);
}

int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size) {
    return redlock_manager_create_poll(library, options, manager, error, size);
}

void loop_turn(void) {
    struct pollfd fds[2] = {{.fd = library_fd, .events = POLLIN}};
    polled_late();
    if (polled_wait(fds, 2) && fds[0].revents != 0 && redlock_poll_dispatch(library) == REDLOCK_ERR_SYSTEM) {
        abort();
    }
}

void loop_after_fork(void) {
    library_fd = -1; /* the descriptor is the parent's */
}

bool loop_close(void) {
    return redlock_poll_free(library) == REDLOCK_OK;
}
