/**
 * @file list.h
 * All locks of the nodes: for tools and programs that watch over locks. Nothing else needs it.
 *
 * The rules of redlock.h for threads and callbacks hold here.
 */
#ifndef REDLOCK_LIST_H
#define REDLOCK_LIST_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One lock at one node. The strings are valid only during the callback. */
typedef struct redlock_listed {
    size_t size;          /**< sizeof this struct, set by the library. */
    size_t node;          /**< The index of the node, as for redlock_manager_node(). */
    const char *resource; /**< The key without the key prefix. */
    const char *token;    /**< The key's value: redlock_token_holder() has the holder's text. */
    int64_t ttl_ms;       /**< How long the key will live; -1 if it has no ttl. */
    int64_t waiters;      /**< How many wait at this node and are alive; -1 if it cannot tell. */
    /** How many read the lock at this node, up to 1000; `token` is the lowest of theirs. 0: one has
     * it alone. */
    int64_t readers;
} redlock_listed;

/**
 * Gets each lock of each node, in no order. A lock that is held at three nodes comes three times. A
 * node may name a lock more than once. A lock that is taken or released meanwhile may be missing.
 * @param lock  valid only during the call.
 * @return true to go on; false to stop, and then the result is #REDLOCK_ERR_CANCELLED
 */
typedef bool (*redlock_list_callback)(const redlock_listed *lock, void *data);

/** What to list. */
typedef struct redlock_list_options {
    size_t size; /**< sizeof this struct; set by the _default function. */
    /**
     * A pattern for the names of resources, as KEYS of Redis takes it: `*`, `?`, `[ab]`, and `\`
     * before a byte that means itself. Up to #REDLOCK_RESOURCE_SIZE_MAX bytes; copied. Default
     * NULL: all.
     */
    const char *match;
    /**
     * Lists also the locks of other libraries: all strings that have a ttl and up to
     * #REDLOCK_TOKEN_SIZE_MAX bytes, except fencing counters. Without it a lock is a string that
     * looks like a token of this library: 32 or 48 digits in lower case, perhaps with a
     * holder's text; or a set of such tokens, where some read it. Default false.
     */
    bool others;
    /**
     * Only for redlock_client_list(): lets another thread end it; see redlock_cancel_new().
     * redlock_list() refuses it. Default NULL: nobody can.
     */
    struct redlock_cancel *cancel;
} redlock_list_options;

/** Fills in the defaults. Call it first, then set what you need. Any thread. */
REDLOCK_API void redlock_list_options_default(redlock_list_options *options);

/**
 * Asks every node for its locks. Nodes look through all of their keys, some at a time, with a
 * script of SCAN, GETRANGE, PTTL, ZCARD and ZRANGE. So this takes long where a node has millions of
 * keys, but it never keeps a node from other requests for long. Each part has the node timeout. A
 * part that is not answered in time is asked again, for fewer keys; after three times in a row the
 * node is given up.
 *
 * The result has a vote for each node: GRANTED if the node named all of its locks. Its error then
 * may say how many keys the user may not read. Any other vote says why the node named none, or not
 * all. #REDLOCK_OK if a quorum of nodes granted, else #REDLOCK_ERR_NO_QUORUM; or
 * #REDLOCK_ERR_CANCELLED, #REDLOCK_ERR_CLOSED. This observes; it takes no lock.
 *
 * @param options  NULL for the defaults; copied.
 * @param each     gets the locks; not NULL.
 * @param done     gets the result, after all calls of `each`; not NULL.
 * @param data     given to both.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_list(redlock_manager *manager, const redlock_list_options *options, redlock_list_callback each,
                             redlock_callback done, void *data);

#ifdef __cplusplus
}
#endif

#endif
