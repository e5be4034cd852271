/* Threads beside the loop. */
#ifndef TOOL_THREAD_H
#define TOOL_THREAD_H

#include <pthread.h>
#include <time.h>

/* Those with a code return 0 or an errno. */

/* The condition's times are those of CLOCK_MONOTONIC. */
int tool_thread_mutex(pthread_mutex_t *mutex, pthread_cond_t *condition);

/* The thread blocks all signals: the loop handles them. */
int tool_thread_start(pthread_t *thread, void *(*run)(void *), void *data);

/* So many seconds from now, for a wait for the condition. */
int tool_thread_deadline(struct timespec *deadline, int seconds);

/* Waits for the end of the thread, and ends what it was started with. */
void tool_thread_end(pthread_t thread, pthread_mutex_t *mutex, pthread_cond_t *condition);

#endif
