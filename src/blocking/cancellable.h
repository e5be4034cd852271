/* The inside of a redlock_cancel, and of a call that it may end. */
#ifndef REDLOCK_BLOCKING_CANCELLABLE_H
#define REDLOCK_BLOCKING_CANCELLABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <redlock/blocking.h>

/*
 * Each change between clear and set adds one to `turns`: it is odd while the object is set. A call
 * reads it when it begins. So a call is cancelled if and only if the object was set when the call
 * began, or was set since, also if it is clear again by now.
 *
 * when the object is set       the call
 * before it begins             returns CANCELLED at once; the loop thread is not asked
 * before the loop thread has   returns CANCELLED; no node was asked
 *   its call
 * while it waits for nodes,    stop_cancelled() of `turn` stops the request. It completes with
 *   or in a queue              CANCELLED, and what it got is released (R8). It never completes with
 *                              OK after that.
 * while it waits for another   redlock_reentrant_wake() wakes it, and it returns CANCELLED
 *   thread of its owner
 * after the request completed  nothing: the call returns what it completed with
 */
struct redlock_cancel {
    redlock_client *client;
    atomic_uint turns;
};

/* What a call knows of it. All zero: nobody can cancel the call. */
struct redlock_cancellable {
    const redlock_cancel *cancel;
    unsigned turns; /* when the call began */
};

/* When the call begins. */
static inline struct redlock_cancellable redlock_cancellable_of(const redlock_cancel *cancel) {
    return (struct redlock_cancellable){.cancel = cancel, .turns = cancel != NULL ? atomic_load(&cancel->turns) : 0};
}

/* Any thread. */
static inline bool redlock_cancellable_is_cancelled(const struct redlock_cancellable *call) {
    return call->cancel != NULL && ((call->turns & 1) != 0 || atomic_load(&call->cancel->turns) != call->turns);
}

#endif
