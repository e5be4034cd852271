/* A monitor, by POSIX threads. What cannot fail in a correct program is asserted. */
#include "blocking/monitor.h"

#include <assert.h>
#include <errno.h>

#include <redlock/result.h>

#define NS_PER_S INT64_C(1000000000)

int redlock_monitor_init(struct redlock_monitor *monitor) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return REDLOCK_ERR_SYSTEM;
    }
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&monitor->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (made && pthread_mutex_init(&monitor->mutex, NULL) != 0) {
        pthread_cond_destroy(&monitor->changed);
        made = false;
    }
    return made ? REDLOCK_OK : REDLOCK_ERR_SYSTEM;
}

void redlock_monitor_destroy(struct redlock_monitor *monitor) {
    pthread_cond_destroy(&monitor->changed);
    const int failed = pthread_mutex_destroy(&monitor->mutex);
    assert(failed == 0); /* nobody is inside */
    (void)failed;
}

void redlock_monitor_lock(struct redlock_monitor *monitor) {
    const int failed = pthread_mutex_lock(&monitor->mutex);
    assert(failed == 0);
    (void)failed;
}

void redlock_monitor_unlock(struct redlock_monitor *monitor) {
    const int failed = pthread_mutex_unlock(&monitor->mutex);
    assert(failed == 0);
    (void)failed;
}

void redlock_monitor_notify(struct redlock_monitor *monitor) {
    const int failed = pthread_cond_broadcast(&monitor->changed);
    assert(failed == 0);
    (void)failed;
}

int64_t redlock_monitor_now_ns(clockid_t clock) {
    struct timespec now;
    const int failed = clock_gettime(clock, &now);
    assert(failed == 0);
    (void)failed;
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool redlock_monitor_wait(struct redlock_monitor *monitor, clockid_t clock, int64_t until_ns) {
    if (until_ns == INT64_MAX) {
        const int failed = pthread_cond_wait(&monitor->changed, &monitor->mutex);
        assert(failed == 0);
        (void)failed;
        return true;
    }
    const int64_t left_ns = until_ns - redlock_monitor_now_ns(clock);
    if (left_ns <= 0) {
        return false;
    }
    /* A condition variable cannot wait by CLOCK_BOOTTIME (R2), so it only wakes us. */
    const int64_t wake_ns = redlock_monitor_now_ns(CLOCK_MONOTONIC) + left_ns;
    const struct timespec wake = {.tv_sec = (time_t)(wake_ns / NS_PER_S), .tv_nsec = (long)(wake_ns % NS_PER_S)};
    const int failed = pthread_cond_timedwait(&monitor->changed, &monitor->mutex, &wake);
    assert(failed == 0 || failed == ETIMEDOUT);
    (void)failed;
    return true;
}
