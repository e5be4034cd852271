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
 * libredlock locks a resource across N independent Redis nodes. It has nine headers for C, adapters
 * for event loops, and one header for C++:
 *
 * - redlock/redlock.h: the lock for programs on an event loop. One thread, callbacks, nothing
 *   blocks.
 * - redlock/result.h: codes, votes and results. All others include it.
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
struct redlock_cancel; /* blocking.h */

typedef struct redlock_request redlock_request; /**< A pending acquire; ends after its callback. */

/** The longest resource name, in bytes, key prefix included. */
#define REDLOCK_RESOURCE_SIZE_MAX 1024
/** The longest token that can be adopted, in bytes. The library makes 32 digits, or 48 for a lease
 * that waited in a queue; then `@` and the holder's text, if there is one. The digits are
 * hexadecimal, but the first of 32 is from g to v. Once somebody has waited for the lock, the key
 * on a node has it as a capital, G to V, until the release: programs that compare the token
 * themselves do not find it then (docs/waiting.md, "The mark"). */
#define REDLOCK_TOKEN_SIZE_MAX 128
/** The longest text about the holder of a lock, in bytes. */
#define REDLOCK_HOLDER_SIZE_MAX 64
#define REDLOCK_PERMITS_MAX     64   /**< Permits of a lease. */
#define REDLOCK_LIMIT_MAX       4096 /**< Permits of a resource. */
/** The longest ttl, in ms (about 24 days). */
#define REDLOCK_TTL_MS_MAX INT64_C(2147483647)
/** wait_timeout_ms: wait until the lock is taken or the request is cancelled. */
#define REDLOCK_WAIT_FOREVER INT64_C(-1)

/** Which nodes may not vote on an acquire, because a restart may have made them forget locks. */
typedef enum redlock_restart_guard {
    REDLOCK_RESTART_GUARD_OFF = 0, /**< None: the manager trusts nodes to remember (the default). */
    /** A node whose restart this manager notices does not vote for ttl_max_ms. */
    REDLOCK_RESTART_GUARD_OBSERVED,
    /** The same, and also for each node that this manager meets for the first time. */
    REDLOCK_RESTART_GUARD_STRICT
} redlock_restart_guard;

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
 * of this header except redlock_manager_abandon(). It must not run the loop. Nothing else completes
 * until it has returned.
 * @param result  valid only during the call; redlock_result_copy() keeps it.
 * @param data    the pointer given with the request.
 */
typedef void (*redlock_callback)(const redlock_result *result, void *data);

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

/** Runs when redlock_manager_close() has finished. The manager no longer exists. */
typedef void (*redlock_closed_callback)(void *data);

/**
 * Gets one line without a newline, valid only during the call. The line never holds a password or a
 * token. The callback must not call any function of this header that takes a manager, a request or
 * a lease.
 */
typedef void (*redlock_log_callback)(redlock_log_level level, const char *line, void *data);

/** What happened to a lock or a node: redlock/telemetry.h. */
typedef struct redlock_telemetry_event redlock_telemetry_event;

/**
 * Is told what happens, for traces, in the middle of the library's work. The callback must not call
 * any function of this header, except those marked "any thread". Keep it short: the locks wait.
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
