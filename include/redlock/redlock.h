/**
 * @file redlock.h
 * The asynchronous lock: Redlock over N independent Redis nodes, on the caller's event loop: libev
 * here, any other one by redlock/adapters/ or redlock/loop.h.
 *
 * One thread: call every function only on the thread that runs the manager's loop, except those
 * marked "any thread". No callback ever runs inside the call that made its request. Every accepted
 * request (its call returned #REDLOCK_OK) completes exactly once, also after cancel and close. A
 * call that returns an error makes no callback and changes nothing.
 *
 * The algorithm is that of
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/, with the rules R1 to
 * R20 of docs/algorithm.md. The codes and the functions on results are in redlock/result.h.
 */
/**
 * @mainpage
 * libredlock locks a resource across N independent Redis nodes. It has ten headers for C, adapters
 * for event loops, and one header for C++:
 *
 * - redlock/redlock.h: the lock for programs on an event loop. One thread, callbacks, nothing
 *   blocks.
 * - redlock/result.h: codes, votes and results. All others include it.
 * - redlock/manager.h: a manager of nodes, with its options; redlock/redlock.h includes it.
 * - redlock/node.h: the state and the credentials of nodes; redlock/redlock.h includes it.
 * - redlock/tls.h: TLS to the nodes; redlock/redlock.h includes it.
 * - redlock/election.h: leader election and observers, for programs on an event loop.
 * - redlock/list.h: all locks of the nodes, for programs that watch over locks.
 * - redlock/telemetry.h: what a manager or a client counts, and the events of its locks.
 * - redlock/blocking.h: locks and elections for threads that block. It includes those above.
 * - redlock/loop.h: a manager on any event loop, for those who write an adapter.
 * - redlock/adapters/: libuv.h, libevent.h, glib.h, and poll.h for a loop of your own. libev needs
 *   none.
 * - redlock/redlock.hpp: all of it for C++17, in the namespace redlock. docs/cpp.md says how.
 *
 * Every code that a call or a result can carry is in #REDLOCK_ERROR_MAP. Each function says which
 * codes it returns, who owns what it gives, and from which thread it may be called.
 */
#ifndef REDLOCK_REDLOCK_H
#define REDLOCK_REDLOCK_H

#include <redlock/manager.h>
#include <redlock/result.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redlock_cancel; /* blocking.h */

typedef struct redlock_request redlock_request; /**< A pending acquire; ends after its callback. */

/** The longest resource name, in bytes, key prefix included. */
#define REDLOCK_RESOURCE_SIZE_MAX 1024
/** The longest token that can be adopted, in bytes. The library makes 32 digits, or 48 for a lease
 * that waited in a queue; an `s` if it is SHARED; then `@` and the holder's text, if there is one.
 * The digits are hexadecimal, but the first of 32 is from g to v. Once somebody has waited for the
 * lock, the key on a node has it as a capital, G to V, until the release: programs that compare the
 * token themselves do not find it then (docs/waiting.md, "The mark"). */
#define REDLOCK_TOKEN_SIZE_MAX 128
/** The most resources in one lease. */
#define REDLOCK_ITEMS_MAX   64
#define REDLOCK_PERMITS_MAX 64   /**< Permits of a lease. */
#define REDLOCK_LIMIT_MAX   4096 /**< Permits of a resource. */
/** wait_timeout_ms: wait until the lock is taken or the request is cancelled. */
#define REDLOCK_WAIT_FOREVER INT64_C(-1)

/** How an acquire that waits finds out that the resource is free. */
typedef enum redlock_order {
    /** In a queue on the nodes, in the order in which the acquires began (docs/waiting.md). */
    REDLOCK_ORDER_FAIR = 0,
    /**
     * By trying again after a random delay. Who tries at the right moment wins. Its release hands
     * the lock to those who queue, as any other does.
     */
    REDLOCK_ORDER_NONE
} redlock_order;

/** Who may have a lock at the same time. */
typedef enum redlock_mode {
    REDLOCK_EXCLUSIVE, /**< One has it alone: to write, say. */
    REDLOCK_SHARED     /**< Others have it, too: all who read. */
} redlock_mode;

/**
 * Runs once when a lease is lost (R3): at its deadline; or earlier, when so many nodes say that the
 * key is not ours that no quorum can have it, or when nodes' clocks have jumped and too few votes
 * are left. Stop the work that the lock protects. The callback may call the same functions as a
 * request's callback. The lease stays a valid handle: end it with redlock_release().
 * @param lease   the lost lease; its validity is 0.
 * @param reason  one sentence, valid only during the call.
 */
typedef void (*redlock_lost_callback)(redlock_lease *lease, const char *reason, void *data);

/**
 * Runs when a lease will end unless a renewal or redlock_extend() succeeds: the time that is left
 * of it has come down to redlock_acquire_options.expiring_ms. Bring the work to a point where it
 * can stop, or hand it over. It runs once for each deadline: if the lease is extended and its new
 * deadline comes near, too, it runs again. A lease that begins with less time than that is told of
 * at once. Never after on_lost, and never for a lease that was released or forgotten. If the loop
 * stood still until the deadline, or the lease is lost earlier than at its deadline, on_lost is all
 * that runs. The callback may call the same functions as a request's callback.
 * @param lease         the lease; still held.
 * @param remaining_ms  redlock_lease_validity_ms() now: 1 to expiring_ms.
 */
typedef void (*redlock_expiring_callback)(redlock_lease *lease, int64_t remaining_ms, void *data);

/** @name The lock
 * @{ */

/** Options of an acquire. */
typedef struct redlock_acquire_options {
    size_t size;    /**< sizeof this struct; set by the _default function. */
    int64_t ttl_ms; /**< 1 to #REDLOCK_TTL_MS_MAX; default 10000. */
    /** How long to keep trying, or #REDLOCK_WAIT_FOREVER; 0, the default, tries once. */
    int64_t wait_timeout_ms;
    int64_t retry_delay_min_ms; /**< The shortest random delay between attempts; default 50. */
    int64_t retry_delay_max_ms; /**< The longest, 1 or more, at least the shortest; default 200. */
    /** Renew at a third of the ttl or earlier, until released, lost or capped. Default false. */
    bool auto_extend;
    /** The cap: no renewal after this long since the lease began; default 0, no cap. */
    int64_t auto_extend_max_ms;
    redlock_lost_callback on_lost; /**< Default none; see redlock_lost_callback. */
    void *lost_data;               /**< Given to on_lost. */
    /**
     * Asks for a fencing token, redlock_lease_fence(): a number that rises with each lease of the
     * resource and is never given twice. The resource uses it to refuse late writers
     * (docs/fencing.md). Needs Redis 5 or newer. Default false.
     */
    bool fencing;
    /**
     * Sets the key again on nodes that lost it or never had it: after each extension that a quorum
     * confirmed, and once after the acquire. This never counts as a vote. A key that is deleted by
     * hand on a minority of nodes comes back. Default true.
     */
    bool heal;
    /**
     * Keeps others out for this long after a lease that was lost or forgotten, or whose holder
     * died: the keys outlive the lease by this time (as lock-delay in Chubby and Consul). Use it
     * for resources that cannot check a fencing token. Releasing a lease in time frees the resource
     * at once; releasing a lost lease does not. 0 to #REDLOCK_TTL_MS_MAX - ttl_ms; default 0.
     */
    int64_t lock_delay_ms;
    /**
     * How it waits, with a wait_timeout_ms other than 0. FAIR takes a place in the resource's queue
     * on every node. A holder that releases the lock hands it to the first in the queue. The retry
     * delays are then used only where too few nodes answer, or nodes cannot keep a queue. Default
     * FAIR.
     */
    redlock_order order;
    /**
     * Only for redlock_client_acquire() and redlock_client_with(): lets another thread end the
     * wait; see redlock_cancel_new(). Any other call refuses it. Default NULL: nobody can.
     */
    struct redlock_cancel *cancel;
    /** For on_event, in the events of this acquire and its lease: a span, say. Default NULL. */
    void *trace;
    /**
     * How long before the deadline on_expiring runs. At most half of the ttl, also of a later
     * redlock_extend(): the first renewal begins at a third, so it has the time between to succeed.
     * 2 to ttl_ms / 2: in its last millisecond a lease has no validity left. Default 0, never.
     */
    int64_t expiring_ms;
    /** Default none; see redlock_expiring_callback. Needs expiring_ms. */
    redlock_expiring_callback on_expiring;
    void *expiring_data; /**< Given to on_expiring. */
    /**
     * SHARED to read: others who read may have the lock at the same time, and nobody who has it
     * alone. All wait in one order, so neither side starves. Who reads without a wait, or in no
     * order, gets in only while nobody waits. Default EXCLUSIVE.
     */
    redlock_mode mode;
    /**
     * How many permits of the resource: up to `limit` are in use at once, by all who hold some. 1
     * to #REDLOCK_PERMITS_MAX, and no more than `limit`; default 0: the lock itself. A resource has
     * permits or is a lock, not both: a lock of it keeps newcomers out, and not those who have
     * permits (docs/protocols.md, "Permits").
     */
    uint32_t permits;
    /**
     * With permits: how many there are, 1 to #REDLOCK_LIMIT_MAX. All clients of a resource need the
     * same. While they differ, there are never more than the largest of them. Default 0.
     */
    uint32_t limit;
    const uint32_t *slots; /**< Only for redlock_adopt(), with permits: the slots; copied. */
} redlock_acquire_options;

/** Fills in the defaults. Call it first, then set what you need. Any thread. */
REDLOCK_API void redlock_acquire_options_default(redlock_acquire_options *options);

/**
 * Asks for the lock. The result is #REDLOCK_OK with a lease, or #REDLOCK_ERR_CONTENDED (a quorum
 * answered, and too few of them granted), #REDLOCK_ERR_NO_QUORUM (fewer than a quorum of answers
 * count: late ones, errors, and those of nodes that may not vote do not), #REDLOCK_ERR_TOO_SLOW (a
 * quorum answered too late; the ttl is too short), #REDLOCK_ERR_CANCELLED, #REDLOCK_ERR_CLOSED,
 * #REDLOCK_ERR_RANDOM, or with `fencing` #REDLOCK_ERR_LIMIT (the fencing counters of a quorum of
 * nodes are at the last number).
 * CONTENDED and NO_QUORUM tell of the last round of requests; or of the one before, if the wait
 * ended while answers to the last one could still decide it. Unless it succeeds, the library
 * releases every key that it may have set (R8).
 *
 * @param resource  the key's name (after the prefix), 1 byte or more, no NUL inside; copied.
 * @param options   NULL for the defaults; copied.
 * @param request   set to a handle for redlock_request_cancel(), valid until cb has run; may be
 *                  NULL.
 * @param cb        not NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID (redlock_manager_invalid() says why),
 *         #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED, #REDLOCK_ERR_LIMIT,
 *         #REDLOCK_ERR_RANDOM
 */
REDLOCK_API int redlock_acquire(redlock_manager *manager, const char *resource, const redlock_acquire_options *options,
                                redlock_request **request, redlock_callback cb, void *data);

/**
 * Gives up a pending acquire. It completes with #REDLOCK_ERR_CANCELLED, and the library releases
 * every key that it may have set. A second call before the callback has no effect.
 */
REDLOCK_API void redlock_request_cancel(redlock_request *request);

/**
 * Asks every node to let the key live for ttl_ms from now. It never shortens: a key that lives
 * longer already keeps its time. Otherwise, an extension that a node applies late could cut short a
 * lease that is held. The result is #REDLOCK_OK (the validity is recomputed),
 * #REDLOCK_ERR_NO_QUORUM (the old deadline stays; try again), #REDLOCK_ERR_LOST,
 * #REDLOCK_ERR_TOO_SLOW (the ttl is too short), #REDLOCK_ERR_CANCELLED (redlock_release() or
 * redlock_lease_forget() was called meanwhile), or #REDLOCK_ERR_CLOSED.
 * @param ttl_ms  1 to #REDLOCK_TTL_MS_MAX, or with a guard to ttl_max_ms, both minus the lease's
 *                lock delay, and at least twice its expiring_ms; also the ttl of later automatic
 *                renewals.
 * @param cb      may be NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_LOST, #REDLOCK_ERR_BUSY,
 *         #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_extend(redlock_lease *lease, int64_t ttl_ms, redlock_callback cb, void *data);

/**
 * Turns a lease that has the lock alone into one that shares it, without a gap in which another one
 * could write: those who wait to read come in. The lease counts as shared from this call on, also
 * if the result is an error. It is an extension by the last ttl, with the results of
 * redlock_extend(); of a lease that is shared it is no more than that. There is no way back: two
 * who wait for each other to stop reading would never write. Release it, and acquire again.
 * @param cb  may be NULL.
 * @return as redlock_extend()
 */
REDLOCK_API int redlock_downgrade(redlock_lease *lease, redlock_callback cb, void *data);

/**
 * Releases the lock on every node and ends the handle: do not use the lease after this call. The
 * result is #REDLOCK_OK (it was ours at a quorum until now), #REDLOCK_ERR_LOST (it had expired or
 * was taken), #REDLOCK_ERR_NO_QUORUM (too few nodes answered; the library goes on releasing until
 * the keys' ttl has passed), or #REDLOCK_ERR_CLOSED.
 * @param cb  may be NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_FORKED; an error leaves the handle valid
 */
REDLOCK_API int redlock_release(redlock_lease *lease, redlock_callback cb, void *data);

/** Ends the handle without a release: the keys stay until their ttl, and can be adopted. */
REDLOCK_API void redlock_lease_forget(redlock_lease *lease);

/**
 * Makes a handle for a lock that was taken elsewhere, from its resource and token. Its validity is
 * unknown, so it is 0 until a redlock_extend() succeeds. The call asks no node.
 * @param token    1 to #REDLOCK_TOKEN_SIZE_MAX bytes; copied.
 * @param options  ttl_ms, auto_extend, heal, lock_delay_ms, on_lost, expiring_ms, on_expiring and
 *                 mode are used; NULL for the defaults. A token that was acquired to read says so
 *                 by itself. That of a lease that was downgraded does not: it needs SHARED.
 * @param lease    set on success; end it with redlock_release() or redlock_lease_forget().
 * @return as redlock_acquire(), but never #REDLOCK_ERR_RANDOM
 */
REDLOCK_API int redlock_adopt(redlock_manager *manager, const char *resource, const char *token,
                              const redlock_acquire_options *options, redlock_lease **lease);

/** One of several resources. Set `size` in each; what is not set is 0. */
typedef struct redlock_item {
    size_t size;          /**< sizeof this struct. */
    const char *resource; /**< As that of redlock_acquire(). A resource can stand in a list once. */
    redlock_mode mode;    /**< Default EXCLUSIVE. */
    const char *token;    /**< Only for redlock_adopt_all(). */
} redlock_item;

/**
 * Asks for several resources: all of them or none, in one lease. If they are free, it takes as long
 * as one. Otherwise it keeps those that come before the first that is not free, in the order of
 * their names, and waits for that one. So callers may give them in any order, and wait for each
 * other never. The place in each queue is that of the time of this call.
 *
 * The lease ends with the first of its items: its validity is the shortest of theirs, and if one is
 * lost, all are. on_lost tells that once, with a reason that begins with the name of that resource.
 * The library then releases the others, unless there is a lock delay. redlock_extend(),
 * redlock_downgrade(), redlock_release() and redlock_lease_forget() are about all items. A result
 * has the resource and the votes of the item that decided it: the last that was acquired, the first
 * that was missing, or the one with the worst code.
 *
 * In redlock_statistics and in events each item is an acquire and a lease of its own; one that was
 * missing and is waited for is two acquires.
 *
 * @param items    copied, with their strings.
 * @param count    1 to #REDLOCK_ITEMS_MAX.
 * @param options  those of each item; NULL for the defaults. Its `mode` is not used: it must be
 *                 EXCLUSIVE. No permits.
 * @param request  as that of redlock_acquire().
 * @return as redlock_acquire(). What is refused for a single item only after this call has returned
 *         (#REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_LIMIT, #REDLOCK_ERR_RANDOM) is the result.
 */
REDLOCK_API int redlock_acquire_all(redlock_manager *manager, const redlock_item *items, size_t count,
                                    const redlock_acquire_options *options, redlock_request **request,
                                    redlock_callback cb, void *data);

/**
 * Makes a handle for several locks that were taken elsewhere, with the token of each item:
 * redlock_lease_item_token(). As redlock_adopt(), for all of them. The mode of an item matters if
 * its lease was downgraded.
 * @param options  as those of redlock_adopt(); their `mode` must be EXCLUSIVE.
 * @return as redlock_adopt()
 */
REDLOCK_API int redlock_adopt_all(redlock_manager *manager, const redlock_item *items, size_t count,
                                  const redlock_acquire_options *options, redlock_lease **lease);

/**
 * How many resources the lease has: 1, but for one of redlock_acquire_all() or redlock_adopt_all().
 * An item is one of them, in the order in which they were given. The functions on a lease that tell
 * of one resource tell of item 0. Any thread, as the next three, while the handle is valid.
 */
REDLOCK_API size_t redlock_lease_item_count(const redlock_lease *lease);
/** The resource of an item, or NULL if there is no such item. Owned by the lease. */
REDLOCK_API const char *redlock_lease_item_resource(const redlock_lease *lease, size_t item);
/** The token of an item, for redlock_adopt_all(), or NULL if there is no such item. The lease's. */
REDLOCK_API const char *redlock_lease_item_token(const redlock_lease *lease, size_t item);
/** The fencing token of an item, as redlock_lease_fence(): each resource has numbers of its own. */
REDLOCK_API uint64_t redlock_lease_item_fence(const redlock_lease *lease, size_t item);

/**
 * Asks every node who holds the resource. A vote is GRANTED if the node has the key (with holder
 * and holder_ttl_ms), DENIED if the resource is free there. The result is #REDLOCK_OK,
 * #REDLOCK_ERR_NO_QUORUM if too few nodes answered, or #REDLOCK_ERR_CLOSED. This observes; it takes
 * no lock.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_inspect(redlock_manager *manager, const char *resource, redlock_callback cb, void *data);

/**
 * The time that is left of the lease, in ms rounded down; 0 means stop work. It is 0 in the last
 * millisecond already, before on_lost. Reads the clock. Any thread, while the handle is valid.
 */
REDLOCK_API int64_t redlock_lease_validity_ms(const redlock_lease *lease);

/** The key's value, for redlock_adopt(); the lease's. Any thread, while the handle is valid. */
REDLOCK_API const char *redlock_lease_token(const redlock_lease *lease);

/**
 * The fencing token: larger than that of every lease of this resource that was acquired before. The
 * resource that the lock guards compares it, and accepts a write if and only if its token is at
 * least the highest seen. It has 19 decimal digits today; it fits a signed 64-bit integer, but not
 * a double. It is 0 for a lease without a token: adopted, or acquired without `fencing`. Extensions
 * do not change it. Any thread, while the handle is valid.
 */
REDLOCK_API uint64_t redlock_lease_fence(const redlock_lease *lease);

/**
 * The slots of a lease with permits: which of the `limit` permits it has, from 0 on. No two leases
 * have the same one at a time, so a slot can stand for a thing: a port, a worker's directory. Any
 * thread, while the handle is valid.
 * @param slots  gets up to `room` of them; may be NULL if room is 0.
 * @return how many there are; 0 for a lease without permits
 */
REDLOCK_API size_t redlock_lease_slots(const redlock_lease *lease, uint32_t *slots, size_t room);

/**
 * The holder's text in a token: "web-3:4711" in "<digits>@web-3:4711". It points into the token. ""
 * if there is none, or the token is not of this library. What it returns has only printable ASCII,
 * but anybody may have written it: show it to people, and decide nothing by it.
 * @param token  such as redlock_lease_token() or the holder of a redlock_vote; NULL is allowed. Any
 *               thread.
 */
REDLOCK_API const char *redlock_token_holder(const char *token);

/** The resource as it was given. Owned by the lease. Any thread, while the handle is valid. */
REDLOCK_API const char *redlock_lease_resource(const redlock_lease *lease);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
