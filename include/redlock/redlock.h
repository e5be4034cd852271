/**
 * @file redlock.h
 * The asynchronous lock: Redlock over N independent Redis nodes, on a caller's libev loop.
 *
 * One thread: every function here belongs to the thread that runs the manager's loop, except those
 * marked "any thread". No callback ever runs inside the call that made its request, and every request
 * that was accepted (its call returned #REDLOCK_OK) completes exactly once, through cancel and close too.
 * A call that returns an error makes no callback and changes nothing.
 *
 * The algorithm is the one of https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/,
 * with the rules R1 to R20 of docs/algorithm.md.
 */
#ifndef REDLOCK_REDLOCK_H
#define REDLOCK_REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/** Marks what the library exports. */
#define REDLOCK_API __attribute__((visibility("default")))
#else
#define REDLOCK_API
#endif

struct ev_loop;

typedef struct redlock_manager redlock_manager; /**< N nodes, bound to one loop. */
typedef struct redlock_request redlock_request; /**< An acquire under way; ends when its callback ran. */
typedef struct redlock_lease redlock_lease;     /**< A lock that we hold, until its deadline. */
typedef struct redlock_result redlock_result;   /**< What came of a request, with the vote of each node. */

/** The largest number of nodes. */
#define REDLOCK_NODES_MAX 31
/** The longest resource name, in bytes, key prefix included. */
#define REDLOCK_RESOURCE_SIZE_MAX 1024
/** The longest token that can be adopted, in bytes; our own tokens have 32 hexadecimal digits. */
#define REDLOCK_TOKEN_SIZE_MAX 64
/** The longest ttl, in ms (about 24 days). */
#define REDLOCK_TTL_MS_MAX INT64_C(2147483647)
/** wait_timeout_ms: wait until the lock is taken or the request is cancelled. */
#define REDLOCK_WAIT_FOREVER INT64_C(-1)

/** Every code that a function or a result can carry: name, value, and what redlock_strerror() says. */
#define REDLOCK_ERROR_MAP(X)                                                                                           \
    X(OK, 0, "done")                                                                                                   \
    X(ERR_CONTENDED, -1, "held by others: enough nodes answered, too few granted")                                     \
    X(ERR_NO_QUORUM, -2, "no quorum: too few nodes answered")                                                          \
    X(ERR_TOO_SLOW, -3, "too slow: no validity is left of the ttl")                                                    \
    X(ERR_LOST, -4, "the lease is lost: it expired or was taken")                                                      \
    X(ERR_CANCELLED, -5, "cancelled")                                                                                  \
    X(ERR_CLOSED, -6, "the manager is closing")                                                                        \
    X(ERR_INVALID, -7, "invalid argument")                                                                             \
    X(ERR_NO_MEMORY, -8, "out of memory")                                                                              \
    X(ERR_BUSY, -9, "another operation on this lease is under way")                                                    \
    X(ERR_FORKED, -10, "created before a fork: the child process needs a manager or client of its own")                \
    X(ERR_RANDOM, -11, "the kernel gave no random bytes for a token")                                                  \
    X(ERR_SYSTEM, -12, "a system call failed")                                                                         \
    X(ERR_NOT_OWNER, -13, "this owner does not hold the reentrant lease")                                              \
    X(ERR_LIMIT, -14, "a bound of the library is reached")

/** Codes: 0 is success, negative is an error. */
typedef enum redlock_error {
#define REDLOCK_X(name, value, text) REDLOCK_##name = (value),
    REDLOCK_ERROR_MAP(REDLOCK_X)
#undef REDLOCK_X
} redlock_error;

/** What one node answered to one round (R4). Only GRANTED counts. */
typedef enum redlock_vote_kind {
    REDLOCK_VOTE_PENDING = 0, /**< No answer yet; the round was decided without it. */
    REDLOCK_VOTE_GRANTED,     /**< The node did what was asked. */
    REDLOCK_VOTE_DENIED,      /**< Acquire: held under another token. Extend, release: missing, or another token. */
    REDLOCK_VOTE_FAILED,      /**< Surely not applied: never sent, or an error reply. */
    REDLOCK_VOTE_UNKNOWN,     /**< Perhaps applied: timed out, or the connection was lost after the write. */
    REDLOCK_VOTE_ABSTAINED    /**< The node was not asked; the vote's error says why if a guard keeps it from voting. */
} redlock_vote_kind;

/** The state of the connection to a node. */
typedef enum redlock_node_state {
    REDLOCK_NODE_CONNECTING = 0, /**< Resolving the name, connecting, or in the handshake. */
    REDLOCK_NODE_READY,          /**< Votes. */
    REDLOCK_NODE_STALLED,        /**< Timed out repeatedly; probed with PING (R17). */
    REDLOCK_NODE_WAITING,        /**< Not connected; the next try follows a random backoff (R16). */
    REDLOCK_NODE_UNUSABLE        /**< Answers but may not vote: a replica, the same server twice, no access (R18). */
} redlock_node_state;

/** What a node must show before it may vote on an acquire, after a restart in which it may have forgotten locks. */
typedef enum redlock_restart_guard {
    REDLOCK_RESTART_GUARD_OFF = 0,  /**< Nothing: nodes are trusted to remember (the default). */
    REDLOCK_RESTART_GUARD_OBSERVED, /**< A restart that this manager notices: no vote for ttl_max_ms. */
    REDLOCK_RESTART_GUARD_STRICT    /**< Likewise each node that this manager meets for the first time. */
} redlock_restart_guard;

/** How much on_log gets to see. */
typedef enum redlock_log_level {
    REDLOCK_LOG_ERROR = 0, /**< Needs somebody: a node is unusable, a lease was lost. */
    REDLOCK_LOG_WARNING,   /**< A node went away, evicts, answers out of protocol, restarted or jumped under a guard. */
    REDLOCK_LOG_INFO,      /**< A node came, with its version; a strict guard met it, and lets it vote after all. */
    REDLOCK_LOG_DEBUG      /**< Attempts, votes, retries. */
} redlock_log_level;

/**
 * Runs when a request completes, on the loop's thread, with no lock held. May call any function of this header but
 * redlock_manager_abandon(). Must not run the loop: nothing else completes until it has returned.
 * @param result  valid only during the call; redlock_result_copy() keeps it.
 * @param data    the pointer given with the request.
 */
typedef void (*redlock_callback)(const redlock_result *result, void *data);

/**
 * Runs once when a lease is lost (R3): at its deadline, or earlier when a majority of nodes says that the key is not
 * ours, or when the clocks of nodes have jumped and with them too few votes are left. Stop the work that the lock guards. May call what a request's callback may. The lease stays a valid handle: end it with redlock_release().
 * @param lease   the lost lease; its validity is 0.
 * @param reason  one sentence, valid only during the call.
 */
typedef void (*redlock_lost_callback)(redlock_lease *lease, const char *reason, void *data);

/** Runs when redlock_manager_close() is done; the manager is gone. */
typedef void (*redlock_closed_callback)(void *data);

/**
 * One line without a newline, valid only during the call. Passwords and tokens are never in it. Must not call any function
 * of this header that takes a manager, a request or a lease.
 */
typedef void (*redlock_log_callback)(redlock_log_level level, const char *line, void *data);

/** @name Manager
 * @{ */

/** Options of a manager. */
typedef struct redlock_manager_options {
    size_t size;                 /**< sizeof this struct; set by redlock_manager_options_default(). */
    const char *const *nodes;    /**< Node URIs; copied. See redlock_manager_create(). */
    size_t node_count;           /**< 1 to #REDLOCK_NODES_MAX; odd numbers make sense. */
    int64_t node_timeout_ms;     /**< How long one node may take to answer one request; 1 to 60000, default 50 (R7). */
    int64_t connect_timeout_ms;  /**< Connect and handshake together; 1 to 60000, default 1000. */
    const char *key_prefix;      /**< Put before each resource to make its key; copied; default none. */
    const char *client_name;     /**< For CLIENT SETNAME; copied; default "redlock". */
    redlock_log_callback on_log; /**< Default none. */
    redlock_log_level log_level; /**< The most detailed level that on_log gets; default WARNING. */
    void *log_data;              /**< Given to on_log. */
    /**
     * Keeps the votes of restarted nodes out (docs/safety.md). Such a node casts no vote on an
     * acquire (#REDLOCK_VOTE_ABSTAINED) for ttl_max_ms; extensions and releases go on. It may vote
     * at once where it has been up for longer than ttl_max_ms, judged by a clock that agrees with
     * the other nodes' median.
     */
    redlock_restart_guard restart_guard;
    /**
     * Watches the nodes' clocks: a node whose clock jumps forward loses the votes that it gave to
     * leases held (one that has fewer than a quorum left is lost, at once), and casts no vote on an
     * acquire for ttl_max_ms. Nor does a node that was just met, until a quorum of nodes confirms
     * its clock. Default false.
     */
    bool clock_guard;
    /** With a restart guard: no node has ever granted a lock, so each is trusted at its first connection, within
     * ttl_max_ms of redlock_manager_create(). For the very first start of the nodes, not for a
     * program's settings: later
     * it switches off what STRICT adds. Default false. */
    bool first_boot;
    /** The longest ttl, lock delay included, that any client of these nodes uses; needed with either guard, and no longer one is
     * accepted then. 1 to #REDLOCK_TTL_MS_MAX; default 0, none. */
    int64_t ttl_max_ms;
    const char *
        fence_suffix; /**< A resource's counter is the key with this behind it; 1 to 64 bytes; copied; default ":fence". */
    int64_t
        fence_expiry_ms; /**< A counter that is not used for so long is dropped; from 10800000 (3 h); default 0, never. */
} redlock_manager_options;

/** Fills in the defaults. Call it first, then set what differs. Any thread. */
REDLOCK_API void redlock_manager_options_default(redlock_manager_options *options);

/**
 * Creates a manager on a loop and begins to connect to every node. Never blocks; unreachable nodes are not an error
 * here: they are tried for ever and their votes are FAILED until they answer.
 *
 * Node URIs: `redis://[user[:password]@]host[:port][/db]`, `unix:///path[?db=n]`, `host:port`, `[v6]:port`.
 * `rediss://` needs TLS, which this version does not have, and is refused.
 *
 * @param loop        the caller's; outlives the manager. Not NULL.
 * @param options     copied, with all its strings.
 * @param manager     set on success; end it with redlock_manager_close().
 * @param error       where a sentence about a failure goes; may be NULL.
 * @param error_size  bytes at error; 256 is enough.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_SYSTEM
 */
REDLOCK_API int redlock_manager_create(struct ev_loop *loop, const redlock_manager_options *options,
                                       redlock_manager **manager, char *error, size_t error_size);

/**
 * Completes with #REDLOCK_OK once every node is ready or has failed its first try, or with what is
 * there after timeout_ms: #REDLOCK_OK if a quorum of nodes is ready, else #REDLOCK_ERR_NO_QUORUM;
 * #REDLOCK_ERR_CLOSED if the manager is closed before. The votes of the result are the nodes:
 * GRANTED where ready, else FAILED with the reason. Not needed before redlock_acquire(), which
 * waits for first connections up to the node timeout; useful for programs that try once, right
 * after their start.
 * @param timeout_ms  0 to 60000.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_manager_connect(redlock_manager *manager, int64_t timeout_ms, redlock_callback cb, void *data);

/**
 * Ends the manager: pending requests complete with #REDLOCK_ERR_CLOSED, leases still held are released (their handles
 * end here, without on_lost), releases are given up to two node timeouts to be answered, then cb runs once, last.
 * New requests are refused with #REDLOCK_ERR_CLOSED meanwhile. The loop must run on until cb.
 * @param cb  may be NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_CLOSED when it was called before, or #REDLOCK_ERR_FORKED in a child process, for which
 *         redlock_manager_abandon() is there
 */
REDLOCK_API int redlock_manager_close(redlock_manager *manager, redlock_closed_callback cb, void *data);

/**
 * For a child process after fork(): frees this process's copy without a byte on the parent's connections and without
 * any callback. Call ev_loop_fork() first if the loop goes on in the child. Not inside a callback. Elsewhere use redlock_manager_close().
 */
REDLOCK_API void redlock_manager_abandon(redlock_manager *manager);

/** What is known of a node. Strings are owned by the manager and valid until control returns to the loop. */
typedef struct redlock_node_info {
    size_t size;              /**< sizeof this struct; set it before the call. */
    redlock_node_state state; /**< Now. */
    const char *name;         /**< host:port or the socket's path, never a password. */
    const char *version;    /**< As INFO says, with the server's kind ("redis 7.0.15"); "" until the first handshake. */
    const char *role;       /**< "master" or "slave" as INFO says; "" until the first handshake. */
    const char *warning;    /**< Such as an evicting maxmemory policy; "" for none. */
    const char *error;      /**< Why it is not ready; "" when it is. */
    int64_t uptime_s;       /**< At the handshake; at most 285 years. -1 until then, or if the node told none. */
    int64_t round_trip_us;  /**< Of the last answer; -1 until then. */
    uint64_t connects;      /**< Handshakes completed. */
    int64_t quarantine_ms;  /**< For how long it casts no vote on an acquire, though it may be READY; 0 where it may. */
    const char *quarantine; /**< Why; "" where it may vote. */
} redlock_node_info;

/** The number of configured nodes. */
REDLOCK_API size_t redlock_manager_node_count(const redlock_manager *manager);

/** @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for an index out of range or a size of 0 */
REDLOCK_API int redlock_manager_node(const redlock_manager *manager, size_t index, redlock_node_info *info);

/** Counters since the manager was created, and gauges (marked *). */
typedef struct redlock_statistics {
    size_t size;               /**< sizeof this struct; set it before the call. */
    uint64_t acquires;         /**< Accepted acquire requests. */
    uint64_t attempts;         /**< Rounds of SET that were sent for them. */
    uint64_t acquired;         /**< That became a lease. */
    uint64_t contended;        /**< That ended CONTENDED. */
    uint64_t no_quorum;        /**< That ended NO_QUORUM. */
    uint64_t too_slow;         /**< That ended TOO_SLOW. */
    uint64_t cancelled;        /**< That ended CANCELLED or CLOSED. */
    uint64_t extends;          /**< Rounds of extension, automatic ones included. */
    uint64_t extends_failed;   /**< Of these, without a quorum. */
    uint64_t lost;             /**< Leases lost. */
    uint64_t released;         /**< Releases that ended OK. */
    uint64_t votes_late;       /**< Votes that came after their round was decided or given up. */
    uint64_t releases_owed;    /**< * Releases that wait for a node to come back. */
    uint64_t releases_dropped; /**< Given up: the key's ttl ended it, or the bound was reached. */
    uint64_t requests_pending; /**< * Accepted requests that have not completed. */
    uint64_t leases_held;      /**< * */
    uint64_t fenced_fast;      /**< Fencing tokens that took one round trip. */
    uint64_t fenced_slow;      /**< Fencing tokens that had to be written back. */
    uint64_t healed;           /**< Keys that were set again on nodes that had lost or never had them. */
    uint64_t quarantines;      /**< Nodes kept from voting by a guard; with STRICT also for a moment at the start. */
    uint64_t clock_jumps;      /**< Forward steps of nodes' clocks that were noticed. */
} redlock_statistics;

/** @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for a size of 0 */
REDLOCK_API int redlock_manager_statistics(const redlock_manager *manager, redlock_statistics *statistics);

/** @} */
/** @name The lock
 * @{ */

/** Options of an acquire. */
typedef struct redlock_acquire_options {
    size_t size;    /**< sizeof this struct; set by redlock_acquire_options_default(). */
    int64_t ttl_ms; /**< 1 to #REDLOCK_TTL_MS_MAX; default 10000. */
    int64_t
        wait_timeout_ms; /**< 0 tries once (the default); else attempts go on until then; or #REDLOCK_WAIT_FOREVER. */
    int64_t retry_delay_min_ms; /**< A random delay between attempts, from this (0 or more); default 50. */
    int64_t retry_delay_max_ms; /**< To this (1 or more, not below the former); default 200. */
    bool auto_extend; /**< Renew at a third of the ttl, at the latest, until released, lost, capped. Default no. */
    int64_t auto_extend_max_ms;    /**< No renewal after this long since the lease began; 0 for no cap (the default). */
    redlock_lost_callback on_lost; /**< Default none; see redlock_lost_callback. */
    void *lost_data;               /**< Given to on_lost. */
    /**
     * Asks for a fencing token, redlock_lease_fence(): a number that rises with each lease of the resource and is never given
     * twice, for a resource that refuses late writers (docs/fencing.md). Needs Redis 5 or newer. Default false.
     */
    bool fencing;
    /**
     * Sets the key again where a node has lost it or never had it: after each extension that a quorum confirmed, and once after
     * the acquire. Never counted as a vote. A key that is deleted by hand on a minority of nodes comes back. Default true.
     */
    bool heal;
    /**
     * Keeps the resource unavailable for so long after a lease that was lost, forgotten, or whose holder died: the keys outlive
     * the lease by this (Chubby's and Consul's lock-delay). For resources that cannot check a fencing token. A lease that is released in
     * time frees the resource at once; releasing a lost one does not. 0 to #REDLOCK_TTL_MS_MAX - ttl_ms; default 0.
     */
    int64_t lock_delay_ms;
} redlock_acquire_options;

/** Fills in the defaults. Call it first, then set what differs. Any thread. */
REDLOCK_API void redlock_acquire_options_default(redlock_acquire_options *options);

/**
 * Asks for the lock. The result is #REDLOCK_OK with a lease, or #REDLOCK_ERR_CONTENDED,
 * #REDLOCK_ERR_NO_QUORUM, #REDLOCK_ERR_TOO_SLOW (a quorum came too late; the ttl is too short),
 * #REDLOCK_ERR_CANCELLED, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_RANDOM, or with `fencing`
 * #REDLOCK_ERR_LIMIT (a quorum of nodes has fencing counters that nothing can follow). In every
 * case but success the library releases what it may have taken (R8).
 *
 * @param resource  the key's name (after the prefix), 1 byte or more, no NUL inside; copied.
 * @param options   NULL for the defaults; copied.
 * @param request   set to a handle for redlock_request_cancel(), valid until cb has run; may be NULL.
 * @param cb        not NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID (what is wrong with resource or options is told to on_log, as an ERROR),
 * #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED, #REDLOCK_ERR_LIMIT, #REDLOCK_ERR_RANDOM
 */
REDLOCK_API int redlock_acquire(redlock_manager *manager, const char *resource, const redlock_acquire_options *options,
                                redlock_request **request, redlock_callback cb, void *data);

/**
 * Gives up a pending acquire: it completes with #REDLOCK_ERR_CANCELLED, and what it may have taken is released.
 * Calling it again before the callback ran changes nothing.
 */
REDLOCK_API void redlock_request_cancel(redlock_request *request);

/**
 * Asks every node to let the key live for ttl_ms from now. It never shortens: where the key lives
 * longer already, that stands (an extension that a node applies late could else cut short a lease
 * that is held). The result is #REDLOCK_OK (the validity is recomputed), #REDLOCK_ERR_NO_QUORUM
 * (the old deadline stands; try again), #REDLOCK_ERR_LOST, #REDLOCK_ERR_TOO_SLOW (the ttl is too
 * short), #REDLOCK_ERR_CANCELLED when redlock_release() or redlock_lease_forget() overtook it, or
 * #REDLOCK_ERR_CLOSED.
 * @param ttl_ms  1 to #REDLOCK_TTL_MS_MAX, with a guard to ttl_max_ms, either less the lease's lock delay; also the ttl of
 *                later automatic renewals.
 * @param cb      may be NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_LOST, #REDLOCK_ERR_BUSY, #REDLOCK_ERR_CLOSED,
 * #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_extend(redlock_lease *lease, int64_t ttl_ms, redlock_callback cb, void *data);

/**
 * Releases the lock on every node and ends the handle: the lease may not be used after this call. The result is
 * #REDLOCK_OK (it was ours at a quorum until now), #REDLOCK_ERR_LOST (it had expired or was taken),
 * #REDLOCK_ERR_NO_QUORUM (too few nodes answered; the library goes on releasing until the keys' ttl has passed), or
 * #REDLOCK_ERR_CLOSED.
 * @param cb  may be NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_FORKED (the handle is not ended by an error)
 */
REDLOCK_API int redlock_release(redlock_lease *lease, redlock_callback cb, void *data);

/** Ends the handle without releasing: the keys stay until their ttl, for whoever knows resource and token. */
REDLOCK_API void redlock_lease_forget(redlock_lease *lease);

/**
 * Makes a handle for a lock that was taken elsewhere, from its resource and token. Its validity is unknown, so it is 0
 * until a redlock_extend() succeeds. No node is asked.
 * @param token    1 to #REDLOCK_TOKEN_SIZE_MAX bytes; copied.
 * @param options  ttl_ms, auto_extend, heal, lock_delay_ms and on_lost are used; NULL for the defaults.
 * @param lease    set on success; end it with redlock_release() or redlock_lease_forget().
 * @return as redlock_acquire(), but never #REDLOCK_ERR_RANDOM
 */
REDLOCK_API int redlock_adopt(redlock_manager *manager, const char *resource, const char *token,
                              const redlock_acquire_options *options, redlock_lease **lease);

/**
 * Asks every node who holds the resource. Votes: GRANTED where the key is held (with holder and
 * holder_ttl_ms), DENIED where it is free. The result is #REDLOCK_OK, #REDLOCK_ERR_NO_QUORUM when
 * too few nodes answered, or #REDLOCK_ERR_CLOSED. An observation, not a lock.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_inspect(redlock_manager *manager, const char *resource, redlock_callback cb, void *data);

/**
 * What is left of the lease, in ms rounded down (so it is 0 in the last millisecond, before on_lost); reads the clock; 0
 * means stop work. Any thread, while the handle is valid.
 */
REDLOCK_API int64_t redlock_lease_validity_ms(const redlock_lease *lease);

/** The token at the key, for redlock_adopt(). Owned by the lease. Any thread, while the handle is valid. */
REDLOCK_API const char *redlock_lease_token(const redlock_lease *lease);

/**
 * The fencing token: larger than that of every lease of this resource that was acquired before, for the resource that the
 * lock guards to compare (accept if and only if it is at least the highest seen). 19 decimal digits today; fits
 * a signed 64-bit integer, not a double. 0 for a lease without: adopted, or acquired without `fencing`. It stays the same through
 * extensions. Any thread, while the handle is valid.
 */
REDLOCK_API uint64_t redlock_lease_fence(const redlock_lease *lease);

/** The resource as it was given. Owned by the lease. Any thread, while the handle is valid. */
REDLOCK_API const char *redlock_lease_resource(const redlock_lease *lease);

/** @} */
/** @name Results
 * @{ */

/** One node's vote. Strings are valid as long as the result. */
typedef struct redlock_vote {
    size_t size;            /**< sizeof this struct; set it before the call. */
    const char *node;       /**< The node's name. */
    redlock_vote_kind kind; /**< The vote. */
    const char *error;      /**< What the node said or what went wrong; "" when there is nothing to say. */
    int64_t
        latency_us; /**< From the start of the round to the vote; -1 while PENDING or where the node took no request. */
    const char *holder;    /**< redlock_inspect(): the token at the key; "" elsewhere. */
    int64_t holder_ttl_ms; /**< redlock_inspect(): what is left of the key, 2^53 - 1 at most; -1 where it has no ttl. */
} redlock_vote;

/** #REDLOCK_OK or why not. Any thread, as are all functions on results. */
REDLOCK_API int redlock_result_code(const redlock_result *result);

/** The lease of a successful acquire, NULL elsewhere. */
REDLOCK_API redlock_lease *redlock_result_lease(const redlock_result *result);

/** The resource as it was given; "" for redlock_manager_connect(). */
REDLOCK_API const char *redlock_result_resource(const redlock_result *result);

/** How many attempts were made; 1 for anything but an acquire. */
REDLOCK_API uint64_t redlock_result_attempts(const redlock_result *result);

/** The number of nodes. */
REDLOCK_API size_t redlock_result_vote_count(const redlock_result *result);

/** The vote of node index in the last round. @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for an index out of range or
 * a size of 0 */
REDLOCK_API int redlock_result_vote(const redlock_result *result, size_t index, redlock_vote *vote);

/**
 * A sentence for people: what was tried, what came of it, what each node that did not grant said, what to do.
 * 2048 bytes are enough for any but the most talkative nodes.
 * @param result  NULL gives an empty sentence.
 * @return the length it has or would have had, as snprintf does; buffer is always terminated if size is not 0.
 */
REDLOCK_API size_t redlock_result_message(const redlock_result *result, char *buffer, size_t size);

/** A copy that outlives the callback (its lease is the same handle), or NULL without memory. Free it with
 * redlock_result_free(). */
REDLOCK_API redlock_result *redlock_result_copy(const redlock_result *result);

/** Frees what redlock_result_copy() or the blocking API gave; NULL is allowed. */
REDLOCK_API void redlock_result_free(redlock_result *result);

/** @} */
/** @name Names
 * @{ */

/** A short text for a code; never NULL. Any thread. */
REDLOCK_API const char *redlock_strerror(int code);
/** "OK", "CONTENDED", "NO_QUORUM", …: the code's name without its prefix; never NULL. Any thread. */
REDLOCK_API const char *redlock_error_name(int code);
/** "GRANTED", "DENIED", …; never NULL. Any thread. */
REDLOCK_API const char *redlock_vote_name(redlock_vote_kind kind);
/** "READY", "STALLED", …; never NULL. Any thread. */
REDLOCK_API const char *redlock_node_state_name(redlock_node_state state);
/** The version of the library that is linked, such as "0.1.0". Any thread. */
REDLOCK_API const char *redlock_version(void);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
