/**
 * @file node.h
 * The nodes of a manager: the state of each, and new credentials. redlock.h includes it.
 *
 * The rules of redlock.h for threads and callbacks hold here.
 */
#ifndef REDLOCK_NODE_H
#define REDLOCK_NODE_H

#include <redlock/result.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redlock_manager redlock_manager; /**< N nodes, bound to one loop. */

/** The largest number of nodes. */
#define REDLOCK_NODES_MAX 31

/** The state of the connection to a node. */
typedef enum redlock_node_state {
    REDLOCK_NODE_CONNECTING = 0, /**< Resolving the name, connecting, or in the handshake. */
    REDLOCK_NODE_READY,          /**< May vote, if round_trip_min_us and quarantine_ms let it. */
    REDLOCK_NODE_STALLED,        /**< Timed out repeatedly; probed with PING (R17). */
    REDLOCK_NODE_WAITING,        /**< Not connected; the next try follows a random backoff (R16). */
    /** Answers but may not vote (R18): a replica, the same server twice, no access, or no right to
     * renew and release. */
    REDLOCK_NODE_UNUSABLE
} redlock_node_state;

/** The state of a node. The manager owns the strings, valid until control returns to the loop. */
typedef struct redlock_node_info {
    size_t size;              /**< sizeof this struct; set it before the call. */
    redlock_node_state state; /**< The state now. */
    const char *name;         /**< host:port or the socket's path, never a password. */
    const char *version;      /**< "redis 7.0.15", from INFO; "" until the first handshake. */
    const char *role;         /**< "master" or "slave", from INFO; "" until the first handshake. */
    const char *warning;      /**< Such as an evicting maxmemory policy; "" for none. */
    const char *error;        /**< Why the node is not ready; "" if it is. */
    /** At the handshake; at most 285 years. -1 until then, or if the node told none. */
    int64_t uptime_s;
    int64_t round_trip_us; /**< Of the last answer; -1 until then. */
    uint64_t connects;     /**< Handshakes completed. */
    /** How long a guard keeps it from voting on an acquire, even if READY; 0: it may vote. */
    int64_t quarantine_ms;
    const char *quarantine; /**< Why it may not vote; "" if it may. */
    bool listens;           /**< It tells us when a lock is handed to us (docs/waiting.md). */
    /** Why it does not, if that was tried; else "". */
    const char *queue_error;
    /** queue_error came again and again, or is a refusal: waiters do not rely on this node. It is
     * tried again all the same, at least every 10 s. */
    bool queue_refused;
    /** It has not accepted what redlock_manager_set_credentials() gave last. */
    bool credentials_pending;
    /** Why it refused that; "" if it did not. Then the old credentials stay in use. */
    const char *credentials_error;
    /**
     * The shortest on this connection; -1 if there is none. A node that is READY and farther away
     * than node_timeout_ms answers, but no vote of it comes in time: no lock can be taken with it.
     */
    int64_t round_trip_min_us;
    /** Which rights or commands #REDLOCK_SHARED lacks there; "" for none, or if it is not READY. */
    const char *shared_error;
} redlock_node_info;

/** The number of configured nodes. */
REDLOCK_API size_t redlock_manager_node_count(const redlock_manager *manager);

/** How many nodes must grant a lock: `quorum` of the options, or n/2 + 1 of the n nodes. */
REDLOCK_API size_t redlock_manager_quorum(const redlock_manager *manager);

/** @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for an index out of range or a size of 0 */
REDLOCK_API int redlock_manager_node(const redlock_manager *manager, size_t index, redlock_node_info *info);

/** "READY", "STALLED", …; never NULL. Any thread. */
REDLOCK_API const char *redlock_node_state_name(redlock_node_state state);

/** For redlock_manager_set_credentials(): every node. */
#define REDLOCK_ALL_NODES SIZE_MAX
/** The longest user name or password of redlock_manager_set_credentials(), in bytes. */
#define REDLOCK_CREDENTIAL_SIZE_MAX 16384

/**
 * Gives new credentials for nodes, instead of those in their URIs. Locks go on, and no connection
 * is closed: a node that is connected gets AUTH, in order with the requests. The next connection to
 * each node uses the new ones, too. docs/operations.md says how to change a password without a gap.
 *
 * The URIs may be without user and password: then call this right after the manager was created. It
 * needs no percent-encoding.
 *
 * The call does not wait. A node has accepted them when `credentials_pending` of
 * redlock_manager_node() is false. If it refuses them, its connection goes on with the old ones, a
 * WARNING is logged, and `warning` and `credentials_error` say why; new connections then try the
 * new ones first. Call again when the node has them. When a node has accepted the new ones, the old
 * ones are overwritten in memory. A node of Redis 5 gets them with its next connection, because it
 * logs a connection out when AUTH fails.
 *
 * @param node      an index, or #REDLOCK_ALL_NODES.
 * @param user      1 to #REDLOCK_CREDENTIAL_SIZE_MAX bytes; copied. NULL is the default user.
 * @param password  likewise, but not NULL.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY (nothing has changed),
 *         #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_manager_set_credentials(redlock_manager *manager, size_t node, const char *user,
                                                const char *password);

#ifdef __cplusplus
}
#endif

#endif
