/**
 * @file election.h
 * Who leads: observers, which are told of each change, and elections.
 *
 * The leader of a resource is whoever holds its lock by an election. What an observer is told is
 * news: it may be old when it comes. So never act on a guarded resource because of it; that is what
 * a lease and its fencing token are for.
 *
 * The rules of redlock.h for threads, callbacks, errors and forks hold here, too.
 */
#ifndef REDLOCK_ELECTION_H
#define REDLOCK_ELECTION_H

#include "redlock/redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @name Observers
 * @{ */

typedef struct redlock_observer redlock_observer; /**< Is told who leads a resource. */

/** Who leads. Strings are valid only during the callback. */
typedef struct redlock_leader {
    size_t size;        /**< sizeof this struct, as the library knows it. */
    const char *token;  /**< The value of the lock's key; "" if nobody leads. */
    const char *holder; /**< The text that the leader gave itself; "" if it gave none. */
    bool is_self;       /**< The election that tells it leads; always false for an observer. */
} redlock_leader;

/**
 * Runs first when the observer knows who leads, and then at each change, with the newest state.
 * Changes that follow each other fast may be told as one. It may call the same functions as a
 * request's callback, and redlock_observer_end().
 */
typedef void (*redlock_leader_callback)(const redlock_leader *leader, void *data);

/**
 * Tells who leads the resource, from now on. A quorum of nodes must name the same leader, or say
 * that the resource is free; while they do neither, or cannot be reached, the last news stands.
 *
 * A node tells its observers when a leader is elected, hands over or resigns. A leader that dies is
 * noticed when its keys end. Where a node does not let the observer subscribe, or the lock is held
 * by somebody without an election, the observer asks instead, every 2.5 s or more often.
 *
 * @param resource  as for redlock_acquire().
 * @param cb        not NULL.
 * @param observer  set on success; end it with redlock_observer_end(). redlock_manager_close() ends
 *                  it, too, without a callback.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED, #REDLOCK_ERR_RANDOM, #REDLOCK_ERR_LIMIT (1024 observers)
 */
REDLOCK_API int redlock_observe(redlock_manager *manager, const char *resource, redlock_leader_callback cb, void *data,
                                redlock_observer **observer);

/** Ends the observer. Its callback does not run any more. NULL is allowed. */
REDLOCK_API void redlock_observer_end(redlock_observer *observer);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
