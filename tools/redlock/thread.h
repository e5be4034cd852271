/* A thread beside the loop. */
#ifndef TOOL_THREAD_H
#define TOOL_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct tool_thread {
    pthread_t thread;
    pthread_mutex_t mutex;  /* protects the members below, and what its user says */
    pthread_cond_t changed; /* signalled when one of them changes */
    bool ending;            /* it is to end */
    bool over;              /* it touches nothing any more */
};

/* Starts it. It blocks all signals: the loop handles them. When it ends, it calls
 * tool_thread_is_over() with the mutex held. Returns 0 or an errno. */
int tool_thread_start(struct tool_thread *thread, void *(*run)(void *), void *data);
void tool_thread_is_over(struct tool_thread *thread);

/* With the mutex held: waits until the condition is true, for so long; where progress is not NULL,
 * for so long without any. Returns whether it is true. */
bool tool_thread_wait(struct tool_thread *thread, int seconds, const bool *condition, const unsigned long *progress);

/* Has it end, and waits for that in the same way. False if it goes on: then it keeps what it
 * uses. */
bool tool_thread_end(struct tool_thread *thread, int seconds, const unsigned long *progress);

#endif
