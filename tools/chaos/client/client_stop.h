/* How a client is asked to end: SIGTERM, which cuts an acquire that waits. */
#ifndef CHAOS_CLIENT_STOP_H
#define CHAOS_CLIENT_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <redlock/blocking.h>

/*
 * A thread takes the signal. An acquire may wait for long; what ends it is redlock_client_close()
 * from another thread, after which no call may begin. So it is only called while the one other
 * thread is surely inside its acquire:
 *
 * state    event                                                             → state
 * FREE     main: is about to acquire                                         → WAITING
 *          main: is over                                                     → OVER
 * WAITING  main: the acquire has returned                                    → FREE
 *          thread: SIGTERM came, and the library has the acquire: it closes  → CUT
 * CUT      main makes no further call of the library, and touches no lease
 * OVER     the thread touches nothing
 */
enum chaos_stop_state { CHAOS_STOP_FREE, CHAOS_STOP_WAITING, CHAOS_STOP_CUT, CHAOS_STOP_OVER };

struct chaos_stop {
    redlock_client *library;
    pthread_t thread;
    int event; /* an eventfd, readable once SIGTERM has come */
    _Atomic int state;
    redlock_statistics last; /* of the library's client, right before it was closed: in CUT only */
};

static inline sigset_t chaos_stop_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return set;
}

/* Before anything else, so that a signal that comes early waits for the thread. */
bool chaos_stop_block(void);
/* False with errno. */
bool chaos_stop_start(struct chaos_stop *stop, redlock_client *library);
/* Joins the thread. False if it has closed the library's client. */
bool chaos_stop_finish(struct chaos_stop *stop);

/* Around an acquire; the second says false if the library's client is closed. */
void chaos_stop_enter(struct chaos_stop *stop);
bool chaos_stop_leave(struct chaos_stop *stop);
/* Whether the library's client was closed under an acquire. */
bool chaos_stop_cut(const struct chaos_stop *stop);

/* Sleeps so long, or until SIGTERM comes; true if it has. */
bool chaos_stop_wait_us(const struct chaos_stop *stop, int64_t time_us);

#endif
