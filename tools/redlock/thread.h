/* Threads beside the loop. */
#ifndef TOOL_THREAD_H
#define TOOL_THREAD_H

#include <pthread.h>

/* Both return 0 or an errno. */

/* The condition's times are those of CLOCK_MONOTONIC. */
int tool_thread_mutex(pthread_mutex_t *mutex, pthread_cond_t *condition);

/* The thread blocks all signals: the loop handles them. */
int tool_thread_start(pthread_t *thread, void *(*run)(void *), void *data);

#endif
