/* A clock that stands still, and a timer by it. */
#include "still_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "contender.h"

static int64_t clock_ns = STILL_CLOCK_S * 1000000000, timer_ns;
/* The library has one timer at a time. It closes its descriptor, but not ours. */
static int timer_fd = -1, own_fd = -1;

/* These three replace libc's functions, also for the libraries. */
#pragma GCC visibility push(default)

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    *now = (struct timespec){.tv_sec = clock_ns / 1000000000, .tv_nsec = clock_ns % 1000000000};
    return 0;
}

int timerfd_create(int clock, int flags) {
    (void)clock;
    if (own_fd >= 0) {
        (void)close(own_fd);
    }
    timer_ns = 0;
    timer_fd = eventfd(0, ((flags & TFD_NONBLOCK) != 0 ? EFD_NONBLOCK : 0) | EFD_CLOEXEC);
    own_fd = fcntl(timer_fd, F_DUPFD_CLOEXEC, 0);
    return timer_fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *was) {
    if (fd != timer_fd || flags != TFD_TIMER_ABSTIME || was) {
        errno = EINVAL;
        return -1;
    }
    timer_ns = (int64_t)to->it_value.tv_sec * 1000000000 + to->it_value.tv_nsec;
    return 0;
}

#pragma GCC visibility pop

void still_clock_pass(int64_t ns) {
    clock_ns += ns;
    if (timer_ns != 0 && timer_ns <= clock_ns) {
        timer_ns = 0;
        if (eventfd_write(own_fd, 1) != 0) {
            contender_fatal("eventfd_write: %s", strerror(errno));
        }
    }
}

bool still_clock_is_used(void) {
    return timer_ns != 0;
}
