/**
 * @file manager.h
 * A manager of nodes: options, beginning and end, and what it counts. redlock.h includes it.
 *
 * The rules of redlock.h for threads and callbacks hold here.
 */
#ifndef REDLOCK_MANAGER_H
#define REDLOCK_MANAGER_H

#include <redlock/node.h>
#include <redlock/result.h>
#include <redlock/tls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;

/** The longest text about the holder of a lock, in bytes. */
#define REDLOCK_HOLDER_SIZE_MAX 64
/** The longest ttl, in ms (about 24 days). */
#define REDLOCK_TTL_MS_MAX INT64_C(2147483647)

/** Which nodes may not vote on an acquire, because a restart may have made them forget locks. */
typedef enum redlock_restart_guard {
    REDLOCK_RESTART_GUARD_OFF = 0, /**< None: the manager trusts nodes to remember (the default). */
    /** A node whose restart this manager notices does not vote for ttl_max_ms. */
    REDLOCK_RESTART_GUARD_OBSERVED,
    /** The same, and also for each node that this manager meets for the first time. */
    REDLOCK_RESTART_GUARD_STRICT
} redlock_restart_guard;

/** How much on_log gets. */
typedef enum redlock_log_level {
    REDLOCK_LOG_ERROR = 0, /**< Needs a person: a node is unusable, or a lease was lost. */
    /** A node went away, evicts keys or breaks the protocol; with a guard: restarted or jumped. */
    REDLOCK_LOG_WARNING,
    /** A node connected, with its version; a strict guard met it, or lets it vote. */
    REDLOCK_LOG_INFO,
    REDLOCK_LOG_DEBUG /**< Attempts, votes, retries. */
} redlock_log_level;

/**
 * Runs when a request completes, on the loop's thread, with no mutex held. It may call any function
 * of redlock.h except redlock_manager_abandon(). It must not run the loop. Nothing else completes
 * until it has returned.
 * @param result  valid only during the call; redlock_result_copy() keeps it.
 * @param data    the pointer given with the request.
 */
typedef void (*redlock_callback)(const redlock_result *result, void *data);

/** Runs when redlock_manager_close() has finished. The manager no longer exists. */
typedef void (*redlock_closed_callback)(void *data);

/**
 * Gets one line without a newline, valid only during the call. The line never holds a password or a
 * token. The callback must not call any function of redlock.h that takes a manager, a request or a
 * lease.
 */
typedef void (*redlock_log_callback)(redlock_log_level level, const char *line, void *data);

/** What happened to a lock or a node: redlock/telemetry.h. */
typedef struct redlock_telemetry_event redlock_telemetry_event;

/**
 * Is told what happens, for traces, in the middle of the library's work. The callback must not call
 * any function of redlock.h, except those marked "any thread". Keep it short: the locks wait.
 * @param event  valid only during the call.
 */
typedef void (*redlock_event_callback)(const redlock_telemetry_event *event, void *data);

/** The version of the library that is linked, such as "0.1.0". Any thread. */
REDLOCK_API const char *redlock_version(void);

/** @name Manager
 * @{ */

#define REDLOCK_LOOPS_MAX 16 /**< Loops of a client. */

/** Options of a manager. */
typedef struct redlock_manager_options {
    size_t size;                 /**< sizeof this struct; set by the _default function. */
    const char *const *nodes;    /**< Node URIs; copied. See redlock_manager_create(). */
    size_t node_count;           /**< 1 to #REDLOCK_NODES_MAX; use an odd number. */
    int64_t node_timeout_ms;     /**< For one answer of one node; 1 to 60000, default 50 (R7). */
    int64_t connect_timeout_ms;  /**< Connect and handshake together; 1 to 60000, default 1000. */
    const char *key_prefix;      /**< Stands before the resource in a key; copied; default none. */
    const char *client_name;     /**< For CLIENT SETNAME; copied; default "redlock". */
    redlock_log_callback on_log; /**< Default none. */
    redlock_log_level log_level; /**< The most detailed level that on_log gets; default WARNING. */
    void *log_data;              /**< Given to on_log. */
    /**
     * Keeps nodes that restarted from voting (docs/safety.md). For ttl_max_ms the vote of such a
     * node on an acquire is #REDLOCK_VOTE_ABSTAINED; extensions and releases go on. The node may
     * vote at once if it has been up for longer than ttl_max_ms, judged by a clock that agrees with
     * the other nodes' median.
     */
    redlock_restart_guard restart_guard;
    /**
     * Watches the nodes' clocks. A node whose clock jumps forward loses the votes that it gave to
     * leases that are held; a lease with fewer votes than a quorum is lost at once. The node does
     * not vote on an acquire for ttl_max_ms. A node that the manager has just met does not vote
     * until a quorum of nodes confirms its clock. Default false.
     */
    bool clock_guard;
    /**
     * With a restart guard: says that no node has ever granted a lock. The manager then trusts each
     * node at its first connection, within ttl_max_ms of redlock_manager_create(). Use it only for
     * the very first start of the nodes, not as a lasting setting: later it switches off what
     * STRICT adds. Default false.
     */
    bool first_boot;
    /**
     * The longest ttl, lock delay included, that any client of these nodes uses. Either guard needs
     * it. A longer ttl is then refused. 1 to #REDLOCK_TTL_MS_MAX; default 0, none.
     */
    int64_t ttl_max_ms;
    /** Ends the key of a counter, after the lock's key; 1 to 64 bytes; copied; default ":fence". */
    const char *fence_suffix;
    /** Nodes drop a counter unused for so long; 10800000 (3 h) or more; default 0, never. */
    int64_t fence_expiry_ms;
    /**
     * Ends the key of a resource's queue, after the lock's key; the key of its waiters ends in the
     * same with "er". All clients of a resource need the same. 1 to 62 bytes; copied; default
     * ":wait".
     */
    const char *wait_suffix;
    /**
     * Opens the second connection to each node at once. On it a node tells us that it handed us a
     * lock. Otherwise the manager opens it when somebody first waits. Default false.
     */
    bool listen;
    /**
     * A text for people: who holds the lock, such as "web-3:4711" (host and process). It stands at
     * the end of every token that the manager makes, so everybody who sees the key can read it:
     * redlock_token_holder(). Up to #REDLOCK_HOLDER_SIZE_MAX bytes of printable ASCII without
     * spaces (0x21 to 0x7e); copied. NULL (the default) and "" mean no text. It identifies nobody:
     * anybody may write any text.
     */
    const char *holder;
    /** How to speak TLS with the nodes whose URI is rediss://; copied. NULL: the defaults. */
    const redlock_tls_options *tls;
    /** Is told each step of each lock, on the loop's thread. Default none, which costs nothing. */
    redlock_event_callback on_event;
    void *event_data; /**< Given to on_event. */
    /**
     * How many nodes must grant a lock, and confirm an extension or a release: node_count / 2 + 1
     * to node_count; default 0, the smallest of these. All clients of the nodes need the same,
     * except while the set of nodes is changed: docs/operations.md, "Changing the nodes", says
     * which quorums may run beside each other. A larger one than the default tolerates fewer failed
     * nodes.
     */
    size_t quorum;
    /**
     * How many loops a client has (redlock/blocking.h): each with a thread, and with connections to
     * every node. A resource belongs to one of them, by its hash. More than one pays where many
     * threads lock many resources, and one processor is not enough for the work with the nodes.
     * Callbacks of different loops may run at once. 1 to #REDLOCK_LOOPS_MAX; default 1. A manager
     * has no use for it.
     */
    size_t loops;
} redlock_manager_options;

/** Fills in the defaults. Call it first, then set what you need. Any thread. */
REDLOCK_API void redlock_manager_options_default(redlock_manager_options *options);

/**
 * Creates a manager on a libev loop and begins to connect to every node. Never blocks. A node that
 * cannot be reached is no error here: the manager keeps trying, and the node's votes are FAILED
 * until it answers.
 *
 * Node URIs: `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS
 * (redlock/tls.h), `unix:///path[?db=n]`, `host:port`, `[v6]:port`.
 *
 * @param loop        the caller's; must outlive the manager. Not NULL.
 * @param options     copied, with all its strings.
 * @param manager     set on success; end it with redlock_manager_close().
 * @param error       where a sentence about a failure goes; may be NULL.
 * @param error_size  bytes at error; 256 is enough.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_SYSTEM
 */
REDLOCK_API int redlock_manager_create(struct ev_loop *loop, const redlock_manager_options *options,
                                       redlock_manager **manager, char *error, size_t error_size);

/**
 * Waits for the first connections: until every node is ready or has failed its first try, but at
 * most timeout_ms. The result is #REDLOCK_OK if a quorum of nodes is ready, #REDLOCK_ERR_NO_QUORUM
 * if not, or #REDLOCK_ERR_CLOSED if the manager was closed before. Each vote of the result is
 * GRANTED if the node is ready, else FAILED with the reason. A node that is farther away than
 * node_timeout_ms does not count: no vote of it would come in time. redlock_acquire() does not need
 * this call: it waits for the first try of the nodes that it needs, up to connect_timeout_ms. Use
 * it to learn whether locks can be taken.
 * @param timeout_ms  0 to 60000.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_NO_MEMORY,
 *         #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_manager_connect(redlock_manager *manager, int64_t timeout_ms, redlock_callback cb, void *data);

/**
 * Ends the manager. Pending requests complete with #REDLOCK_ERR_CLOSED. The manager releases the
 * leases that are still held; their handles end here, without on_lost. It waits up to two node
 * timeouts for the answers to releases. Then cb runs once, as the last callback. Meanwhile the
 * manager refuses new requests with #REDLOCK_ERR_CLOSED. The loop must keep running until cb.
 * @param cb  may be NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_CLOSED if it was called before, or #REDLOCK_ERR_FORKED in a
 *         child process: use redlock_manager_abandon() there
 */
REDLOCK_API int redlock_manager_close(redlock_manager *manager, redlock_closed_callback cb, void *data);

/**
 * For a child process after fork(): frees this process's copy. It sends no byte on the parent's
 * connections and makes no callback. Call ev_loop_fork() first if the child goes on using the loop;
 * what other loops need is in their adapters. Do not call it inside a callback. In any other
 * process use redlock_manager_close().
 */
REDLOCK_API void redlock_manager_abandon(redlock_manager *manager);

/**
 * What was wrong with the arguments of the last call on this manager, its leases and its elections
 * that returned #REDLOCK_ERR_INVALID: "ttl_ms is 0; it must be 1 to 2147483647". on_log gets it,
 * too, as an ERROR, except from redlock_manager_node(). "" if there was none. A call whose manager,
 * lease or election was NULL changes nothing here. The manager owns the string; the next such call
 * changes it.
 */
REDLOCK_API const char *redlock_manager_invalid(const redlock_manager *manager);

/** Counters since the manager was created, and gauges (marked *). */
typedef struct redlock_statistics {
    size_t size;               /**< sizeof this struct; set it before the call. */
    uint64_t acquires;         /**< Accepted acquire requests. */
    uint64_t attempts;         /**< Rounds of SET that were sent for them. */
    uint64_t acquired;         /**< Acquires that became a lease. */
    uint64_t contended;        /**< Acquires that ended CONTENDED. */
    uint64_t no_quorum;        /**< Acquires that ended NO_QUORUM. */
    uint64_t too_slow;         /**< Acquires that ended TOO_SLOW. */
    uint64_t cancelled;        /**< Acquires that ended CANCELLED or CLOSED. */
    uint64_t extends;          /**< Rounds of extension, automatic ones included. */
    uint64_t extends_failed;   /**< Rounds of extension without a quorum. */
    uint64_t lost;             /**< Leases lost. */
    uint64_t released;         /**< Releases that ended OK. */
    uint64_t votes_late;       /**< Votes that came after their round was decided or given up. */
    uint64_t releases_owed;    /**< * Releases that wait for a node to come back. */
    uint64_t releases_dropped; /**< Releases given up: the key's ttl passed, or too many waited. */
    uint64_t requests_pending; /**< * Accepted requests that have not completed. */
    uint64_t leases_held;      /**< * Leases that are held now. */
    uint64_t fenced_fast;      /**< Fencing tokens that took one round trip. */
    uint64_t fenced_slow;      /**< Fencing tokens that had to be written back. */
    uint64_t healed;           /**< Keys set again on nodes that had lost them or never had them. */
    uint64_t quarantines;      /**< Nodes that a guard kept from voting; STRICT: at start, too. */
    uint64_t clock_jumps;      /**< Forward steps of nodes' clocks that were noticed. */
    uint64_t queued;           /**< Acquires that began to wait in a queue. */
    uint64_t handed_over;      /**< Acquires that became a lease while they waited in a queue. */
    uint64_t splits;           /**< Times a waiter had the grant of some nodes, but no quorum. */
    uint64_t yields;           /**< Of these, the times it gave its grants back. */
    uint64_t polls;            /**< Times the first in the queue asked; nobody would tell it. */
    uint64_t passed_over;      /**< Times a waiter saw the lock go to one that came later. */
    uint64_t left_free;        /**< Releases that left the lock free for a moment, for pollers. */
    uint64_t expiring;         /**< Times an owner was told that the deadline is near. */
    uint64_t pushes_refused;   /**< Pushes not about a recent request of ours; many: a forger. */
} redlock_statistics;

/** @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for a size of 0 */
REDLOCK_API int redlock_manager_statistics(const redlock_manager *manager, redlock_statistics *statistics);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
