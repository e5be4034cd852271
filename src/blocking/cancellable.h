/* The inside of a redlock_cancel, and the calls that it may end. */
#ifndef REDLOCK_BLOCKING_CANCELLABLE_H
#define REDLOCK_BLOCKING_CANCELLABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <redlock/blocking.h>

#include "base/list.h"

/*
 * Each change between clear and set adds one to `turns`: it is odd while the object is set. A call
 * reads it when it begins. So a call is cancelled if and only if the object was set when the call
 * began, or was set since, also if it is clear again by now.
 *
 * when the object is set       the call
 * before it begins             returns CANCELLED at once; the loop thread is not asked
 * before the loop thread has   returns CANCELLED; no node was asked
 *   its call
 * while it waits for nodes,    on_wake() stops the request. It completes with CANCELLED, and what
 *   or in a queue              it got is released (R8). It never completes with OK after that.
 * while it waits for another   redlock_reentrant_wake() wakes it, and it returns CANCELLED
 *   thread of its owner
 * after the request completed  nothing: the call returns what it completed with
 */
struct redlock_cancel {
    redlock_client *client;
    atomic_uint turns;
};

/* One call. Its caller owns it until the request begins; from then until it completes, the loop
 * thread does. All zero: nobody can cancel it. */
struct redlock_cancellable {
    const redlock_cancel *cancel;
    unsigned turns; /* when the call began */
    /* Ends the request. No callback may run inside it. */
    void (*stop)(struct redlock_cancellable *call);
    struct redlock_list_entry entry;
};

/* In the caller's thread, when the call begins. */
static inline void redlock_cancellable_begin(struct redlock_cancellable *call, const redlock_cancel *cancel) {
    call->cancel = cancel;
    call->turns = cancel != NULL ? atomic_load(&cancel->turns) : 0;
}

/* Any thread. */
static inline bool redlock_cancellable_is_cancelled(const struct redlock_cancellable *call) {
    return call->cancel != NULL && ((call->turns & 1) != 0 || atomic_load(&call->cancel->turns) != call->turns);
}

/* The loop thread's. A call that nobody can cancel is in no list. */
void redlock_cancellable_add(struct redlock_list *list, struct redlock_cancellable *call);
void redlock_cancellable_remove(struct redlock_cancellable *call);
/* Stops the requests of the calls that are cancelled. */
void redlock_cancellables_check(const struct redlock_list *list);

#endif
