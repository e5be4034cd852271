/* The clock of a test that is a server to its own node, by the linker's hand. */
#include "peer_clock.h"

#include <sys/timerfd.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static int64_t shown_ns, behind_ns; /* of the real clock; 0: not looked at yet */
static int64_t asleep_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

static int64_t ns_of(const struct timespec *time) {
    return time->tv_sec * NS_PER_S + time->tv_nsec;
}

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

void peer_clock_sleep_s(int64_t asleep_s) {
    asleep_ns = asleep_s * NS_PER_S;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    const int failed = __real_clock_gettime(clock, now);
    if (failed != 0 || clock != CLOCK_BOOTTIME) {
        return failed;
    }
    const int64_t now_ns = ns_of(now) - behind_ns;
    const int64_t most_ns = shown_ns + PEER_CLOCK_STEP_NS;
    behind_ns += shown_ns != 0 && now_ns > most_ns ? now_ns - most_ns : 0;
    shown_ns = ns_of(now) - behind_ns;
    *now = timespec_of(shown_ns + asleep_ns);
    return 0;
}

/* If more time is lost until then, it fires early, and is set again. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    const int64_t real_ns = ns_of(&at->it_value) + behind_ns - asleep_ns;
    const struct itimerspec real = {.it_value = timespec_of(real_ns > 0 ? real_ns : 1)};
    return __real_timerfd_settime(fd, flags, &real, before);
}
