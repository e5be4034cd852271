/* A thread beside the loop. */
#include "thread.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

/* The condition's times are those of CLOCK_MONOTONIC. */
static int make_condition(pthread_cond_t *condition) {
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
    return error;
}

int tool_thread_start(struct tool_thread *thread, void *(*run)(void *), void *data) {
    sigset_t all;
    sigset_t before;
    int error = make_condition(&thread->changed);
    if (error == 0) {
        error = pthread_mutex_init(&thread->mutex, NULL);
    }
    if (error == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&thread->thread, NULL, run, data);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return error;
}

void tool_thread_is_over(struct tool_thread *thread) {
    thread->over = true;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
}

bool tool_thread_wait(struct tool_thread *thread, int seconds, const bool *condition, const unsigned long *progress) {
    static const unsigned long none;
    unsigned long seen;
    progress = progress != NULL ? progress : &none;
    do {
        struct timespec deadline;
        int error = clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += seconds;
        seen = *progress;
        while (!*condition && *progress == seen && error == 0) {
            error = pthread_cond_timedwait(&thread->changed, &thread->mutex, &deadline);
        }
    } while (!*condition && *progress != seen);
    return *condition;
}

bool tool_thread_end(struct tool_thread *thread, int seconds, const unsigned long *progress) {
    pthread_mutex_lock(&thread->mutex);
    thread->ending = true;
    pthread_cond_signal(&thread->changed);
    const bool over = tool_thread_wait(thread, seconds, &thread->over, progress);
    pthread_mutex_unlock(&thread->mutex);
    if (over) {
        (void)pthread_join(thread->thread, NULL);
        (void)pthread_cond_destroy(&thread->changed);
        (void)pthread_mutex_destroy(&thread->mutex);
    }
    return over;
}
