/* A monitor: a mutex, and a condition variable for what it guards. */
#ifndef REDLOCK_BLOCKING_MONITOR_H
#define REDLOCK_BLOCKING_MONITOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct redlock_monitor {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Returns REDLOCK_OK or REDLOCK_ERR_SYSTEM. */
int redlock_monitor_init(struct redlock_monitor *monitor);
void redlock_monitor_destroy(struct redlock_monitor *monitor);

void redlock_monitor_lock(struct redlock_monitor *monitor);
void redlock_monitor_unlock(struct redlock_monitor *monitor);

/* With the mutex locked: wakes all that wait. */
void redlock_monitor_notify(struct redlock_monitor *monitor);
/* With the mutex locked: waits for that, but no longer than until this time of CLOCK_MONOTONIC or
 * CLOCK_BOOTTIME; INT64_MAX is no limit. False if that time has passed. It may wake early. */
bool redlock_monitor_wait(struct redlock_monitor *monitor, clockid_t clock, int64_t until_ns);

int64_t redlock_monitor_now_ns(clockid_t clock);

#endif
