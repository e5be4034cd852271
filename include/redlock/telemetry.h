/**
 * @file telemetry.h
 * What a manager does, for dashboards and traces: a snapshot with histograms, and an event for each
 * step of a lock. docs/telemetry.md lists both, with names for Prometheus, and the static probes.
 *
 * The library opens no port, writes no file and calls nobody but redlock_manager_options.on_event.
 */
#ifndef REDLOCK_TELEMETRY_H
#define REDLOCK_TELEMETRY_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @name Histograms
 * @{ */

/** Four buckets for each power of two of µs, so a bucket is at most a quarter wider than its
 * smallest value. */
#define REDLOCK_HISTOGRAM_BUCKETS 160

/** How long something took, and how often. Never grows. */
typedef struct redlock_histogram {
    uint64_t count;                              /**< The number of values. */
    uint64_t sum_us;                             /**< Their sum. */
    uint64_t buckets[REDLOCK_HISTOGRAM_BUCKETS]; /**< How many of them are in each bucket. */
} redlock_histogram;

/**
 * The upper bound of a bucket: its values are less than this, and not less than the bound of the
 * bucket before. The bounds are 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, … µs. Of
 * bucket 3, 7, 11, … they are powers of two. Any thread.
 * @return INT64_MAX for the last bucket, which also has everything from 22 days on
 */
REDLOCK_API int64_t redlock_histogram_bound_us(size_t bucket);

/**
 * A quantile, such as the median for 0.5, with an error of at most a quarter of the value. It is
 * taken to lie in its bucket as if the values there were spread evenly. Any thread.
 * @param quantile  0 to 1; less counts as 0, more as 1.
 * @return -1 if the histogram is empty
 */
REDLOCK_API int64_t redlock_histogram_quantile_us(const redlock_histogram *histogram, double quantile);

/** @} */
/** @name Snapshot
 * @{ */

/** What a node said to a request for a lock, or why it said nothing. */
typedef enum redlock_voted {
    REDLOCK_VOTED_GRANTED = 0, /**< It did what was asked. */
    /** Others hold the lock, the waiter is queued, or the key is not ours (any more). */
    REDLOCK_VOTED_DENIED,
    REDLOCK_VOTED_OTHER,       /**< None of these. */
    REDLOCK_VOTED_OURS,        /**< This process: no memory, a fork, too many requests in flight. */
    REDLOCK_VOTED_CONNECTION,  /**< Not connected, cannot connect, or the connection ended. */
    REDLOCK_VOTED_TIMEOUT,     /**< No answer within the node timeout. */
    REDLOCK_VOTED_STALLED,     /**< Not asked: it has timed out too often. */
    REDLOCK_VOTED_NOT_A_NODE,  /**< It does not speak the protocol, or is a Sentinel. */
    REDLOCK_VOTED_REPLICA,     /**< It is a replica. */
    REDLOCK_VOTED_SAME_SERVER, /**< Another node is the same server. */
    REDLOCK_VOTED_QUARANTINE,  /**< It granted, but a guard keeps it from voting. */
    REDLOCK_VOTED_AUTH,        /**< It refuses the password. */
    REDLOCK_VOTED_NOPERM,      /**< Its ACL forbids the command. */
    REDLOCK_VOTED_NOSCRIPT,    /**< It forgets scripts at once. */
    REDLOCK_VOTED_OOM,         /**< Its memory is full. */
    REDLOCK_VOTED_MISCONF,     /**< It stops writes by its own settings. */
    REDLOCK_VOTED_LOADING,     /**< It is starting. */
    REDLOCK_VOTED_BUSY,        /**< It is busy, such as in a script. */
    REDLOCK_VOTED_CLUSTER,     /**< It is of a cluster. */
    REDLOCK_VOTED_SERVER,      /**< Another error of the server. */
    REDLOCK_VOTED_TLS          /**< We do not agree on TLS: a certificate, a name or a version. */
} redlock_voted;

/** Room for more of redlock_voted. */
#define REDLOCK_VOTED_MAX 32

/** Since the manager was created. redlock_statistics has the plain counters. */
typedef struct redlock_telemetry {
    size_t size; /**< sizeof this struct; set it before the call. */
    /** From redlock_acquire() to the lease, of acquires that became one. */
    redlock_histogram acquire;
    /** From redlock_acquire() to its end, of acquires that had to wait: whose first try failed, or
     * that queued. Whether they got the lock in the end makes no difference. */
    redlock_histogram wait;
    /** How long leases were held: until the release was asked for, the loss, or
     * redlock_lease_forget(). */
    redlock_histogram held;
    /** How late automatic renewals began: after the time that the library had planned. Large values
     * say that the loop or the process stood still. */
    redlock_histogram renewal_late;
    uint64_t node_ups[REDLOCK_NODES_MAX]; /**< Times that each node became READY. */
    /** Times that each node stopped being READY; also a first try that failed. */
    uint64_t node_downs[REDLOCK_NODES_MAX];
    /** What the nodes voted: [redlock_voted][index of the node]. */
    uint64_t votes[REDLOCK_VOTED_MAX][REDLOCK_NODES_MAX];
} redlock_telemetry;

/** Copies the snapshot, about 13 KB.
 * @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for a size of 0 */
REDLOCK_API int redlock_manager_telemetry(const redlock_manager *manager, redlock_telemetry *telemetry);

/** @} */
/** @name Events
 * @{ */

/**
 * What happened. An acquire tells STARTED, then any number of DENIED and QUEUED, then ACQUIRED or
 * FAILED. A lease that was ACQUIRED or ADOPTED then tells any number of EXTENDED and EXPIRING, LOST
 * at most once, and RELEASED or FORGOTTEN as its last event. EXPIRING never comes after LOST. Each
 * is told once. A manager that is closed tells all that is still to come before its
 * redlock_closed_callback; in a child process after fork(), and after redlock_manager_abandon(),
 * nothing more is told.
 */
typedef enum redlock_telemetry_kind {
    /** redlock_acquire() was accepted. Told inside that call. */
    REDLOCK_TELEMETRY_STARTED = 0,
    /** A try failed because of `code`, and the acquire goes on. */
    REDLOCK_TELEMETRY_DENIED,
    /** It waits in the queue of the resource. Once for each acquire. */
    REDLOCK_TELEMETRY_QUEUED,
    /** The lock is ours: `attempts`, `elapsed_us`, `validity_ms`, `fence`. Told right before the
     * callback of the acquire. */
    REDLOCK_TELEMETRY_ACQUIRED,
    /** The acquire ended without the lock: `code`, `attempts`, `elapsed_us`. Likewise. */
    REDLOCK_TELEMETRY_FAILED,
    /** redlock_adopt() made a lease. Told inside that call. */
    REDLOCK_TELEMETRY_ADOPTED,
    /** A round of extension has ended: `code`, `automatic`, `elapsed_us` of the round,
     * `validity_ms`; without a quorum `reason`: what the nodes said. */
    REDLOCK_TELEMETRY_EXTENDED,
    /** The lease is lost: `reason`, `elapsed_us`. Told right before on_lost. */
    REDLOCK_TELEMETRY_LOST,
    /** The release is decided: `code`, `elapsed_us`. Told right before its callback. A lease that
     * redlock_manager_close() ends tells it, too. */
    REDLOCK_TELEMETRY_RELEASED,
    /** redlock_lease_forget() ended the handle: `elapsed_us`. Told inside that call. */
    REDLOCK_TELEMETRY_FORGOTTEN,
    REDLOCK_TELEMETRY_NODE_UP, /**< The node is READY: `node`, `node_index`. */
    /** The node is READY no more, or its first try failed: `node`, `node_index`, `reason`. Not told
     * again while it stays away. */
    REDLOCK_TELEMETRY_NODE_DOWN,
    /** The lease will end unless a renewal succeeds: `validity_ms`, `elapsed_us`. Told right before
     * on_expiring. */
    REDLOCK_TELEMETRY_EXPIRING
} redlock_telemetry_kind;

/** An event. What it points to is valid only during the call. Members it does not use are 0 or "".
 */
struct redlock_telemetry_event {
    size_t size;                 /**< sizeof this struct, set by the library. */
    redlock_telemetry_kind kind; /**< What happened. */
    /** #REDLOCK_OK or a redlock_error, as in the result of the request. */
    int code;
    /** Of an acquire and its lease: the same in all their events. After the last one it may be
     * given to another. 0 for events of nodes. */
    uint64_t id;
    /** redlock_acquire_options.trace of the acquire or the adoption, or that of the election. NULL
     * for events of nodes. */
    void *trace;
    const char *resource; /**< As it was given; "" for events of nodes. */
    const char *node;     /**< NODE_UP, NODE_DOWN: the node's name, never a password. */
    size_t node_index;    /**< Its place in redlock_manager_options.nodes. */
    const char *reason;   /**< One sentence. */
    uint64_t attempts;    /**< The tries of the acquire until now. */
    /**
     * EXTENDED: how long the round took. EXPIRING, LOST, RELEASED, FORGOTTEN: how long the lock was
     * held. Others: since STARTED.
     */
    int64_t elapsed_us;
    int64_t validity_ms; /**< As redlock_lease_validity_ms(). */
    uint64_t fence;      /**< As redlock_lease_fence(). */
    bool automatic;      /**< The library renewed the lease; false: redlock_extend() asked. */
    /** What the acquire asked for; of a lease that was downgraded, SHARED from the call on. */
    redlock_mode mode;
};

/** "STARTED", "ACQUIRED", …; never NULL. Any thread. */
REDLOCK_API const char *redlock_telemetry_kind_name(redlock_telemetry_kind kind);

/** "granted", "timeout", …, as a label of a metric; "" for a number that has no meaning yet. Never
 * NULL. Any thread. */
REDLOCK_API const char *redlock_voted_name(redlock_voted voted);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
