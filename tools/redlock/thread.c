/* Threads beside the loop. */
#include "thread.h"

#include <errno.h>
#include <signal.h>

int tool_thread_mutex(pthread_mutex_t *mutex, pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) {
        error = pthread_cond_init(condition, &attributes);
    }
    (void)pthread_condattr_destroy(&attributes);
    return error == 0 ? pthread_mutex_init(mutex, NULL) : error;
}

int tool_thread_start(pthread_t *thread, void *(*run)(void *), void *data) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, run, data);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int tool_thread_deadline(struct timespec *deadline, int seconds) {
    if (clock_gettime(CLOCK_MONOTONIC, deadline) != 0) {
        return errno;
    }
    deadline->tv_sec += seconds;
    return 0;
}

void tool_thread_end(pthread_t thread, pthread_mutex_t *mutex, pthread_cond_t *condition) {
    (void)pthread_join(thread, NULL);
    (void)pthread_cond_destroy(condition);
    (void)pthread_mutex_destroy(mutex);
}
