/**
 * @file result.h
 * What came of a request: codes, votes and results. redlock.h includes it.
 */
#ifndef REDLOCK_RESULT_H
#define REDLOCK_RESULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef REDLOCK_API
#if defined(__GNUC__)
/** Marks a function that the library exports. A tool that cannot parse attributes, such as cffi for
 * Python, may define it before the headers, as nothing. */
#define REDLOCK_API __attribute__((visibility("default")))
#else
#define REDLOCK_API
#endif
#endif

typedef struct redlock_lease redlock_lease;   /**< A lock that we hold until its deadline. */
typedef struct redlock_result redlock_result; /**< What came of a request: votes and code. */

/** Every code of a function or a result: name, value, and the text of redlock_strerror(). */
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
    X(ERR_LIMIT, -14, "a bound of the library is reached")                                                             \
    X(ERR_UPGRADE, -15, "this owner reads the lock: it must release it before it asks to have it alone")

/** The codes: 0 is success, a negative code is an error. */
typedef enum redlock_error {
#define REDLOCK_X(name, value, text) REDLOCK_##name = (value),
    REDLOCK_ERROR_MAP(REDLOCK_X)
#undef REDLOCK_X
} redlock_error;

/** One node's answer in one round (R4). Only GRANTED counts. */
typedef enum redlock_vote_kind {
    REDLOCK_VOTE_PENDING = 0, /**< No answer yet; the round was decided without it. */
    REDLOCK_VOTE_GRANTED,     /**< The node did what was asked. */
    /** Acquire: the key has another token. Extend, release: that, or the key is missing. */
    REDLOCK_VOTE_DENIED,
    REDLOCK_VOTE_FAILED,  /**< Not applied: the request was not sent, or the reply was an error. */
    REDLOCK_VOTE_UNKNOWN, /**< Perhaps applied: a timeout, or a connection lost after the write. */
    /** The node was not asked. If a guard keeps it from voting, the vote's error says why. */
    REDLOCK_VOTE_ABSTAINED
} redlock_vote_kind;

/** @name Results
 * @{ */

/** One node's vote. Strings are valid as long as the result. */
typedef struct redlock_vote {
    size_t size;            /**< sizeof this struct; set it before the call. */
    const char *node;       /**< The node's name. */
    redlock_vote_kind kind; /**< The vote. */
    const char *error;      /**< What the node said or what went wrong; "" for nothing. */
    /** From the start of the round to the vote; -1 while PENDING or if no request was sent. */
    int64_t latency_us;
    const char *holder; /**< redlock_inspect(): the value of the key; else "". */
    /** redlock_inspect(): how long the key will live, 2^53 - 1 at most; -1 if it has no ttl. */
    int64_t holder_ttl_ms;
    /**
     * Who has the lock at this node, as in redlock_token_holder(). Set by redlock_inspect(), by an
     * acquire that waited in a queue, and by one that the node denied, if the node can say it
     * (Redis 7.0, Valkey; SET with GET) and its handshake was over when the acquire was sent; ""
     * otherwise, or if the token has no text.
     */
    const char *holder_text;
} redlock_vote;

/** #REDLOCK_OK or the error. Any thread, as all functions on results. */
REDLOCK_API int redlock_result_code(const redlock_result *result);

/** The lease of a successful acquire, else NULL. */
REDLOCK_API redlock_lease *redlock_result_lease(const redlock_result *result);

/** The resource as it was given; "" for redlock_manager_connect(). */
REDLOCK_API const char *redlock_result_resource(const redlock_result *result);

/** How many attempts an acquire made; 1 for any other request. */
REDLOCK_API uint64_t redlock_result_attempts(const redlock_result *result);

/**
 * How often a FAIR acquire saw the lock go to one that began to wait later; 0 for any other
 * request. It should be 0, but for nodes that failed and waiters that could not be told in time.
 */
REDLOCK_API uint64_t redlock_result_passed_over(const redlock_result *result);

/**
 * redlock_inspect(): how many wait for the resource in queues: the median of what the nodes say, -1
 * if fewer than a quorum could tell, or for any other request. One that died does not count, once
 * the nodes have noticed it. Those whose order is NONE do not count.
 */
REDLOCK_API int64_t redlock_result_waiters(const redlock_result *result);

/**
 * redlock_inspect(): for how long the first of them has waited: the median by the nodes' clocks; -1
 * if nobody waits or it is not known.
 */
REDLOCK_API int64_t redlock_result_waited_ms(const redlock_result *result);

/**
 * redlock_inspect(): how many read the lock together, up to 1000: the median of what the nodes say;
 * 0 if one has it alone, or nobody has it; -1 if fewer than a quorum could tell, or for any other
 * request. The votes name the one whose token is the lowest.
 */
REDLOCK_API int64_t redlock_result_readers(const redlock_result *result);

/** The number of nodes. */
REDLOCK_API size_t redlock_result_vote_count(const redlock_result *result);

/**
 * The vote of node index in the last round.
 * @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID for an index out of range or a size of 0
 */
REDLOCK_API int redlock_result_vote(const redlock_result *result, size_t index, redlock_vote *vote);

/**
 * A sentence for people: what was tried, what came of it, what each node said that did not grant,
 * what to do. 2048 bytes are usually enough for five nodes. There is no upper limit: a call with
 * size 0 says how long it is.
 * @param result  NULL gives an empty sentence.
 * @return the length of the whole sentence, as snprintf does; if size is not 0, buffer is always
 *         terminated
 */
REDLOCK_API size_t redlock_result_message(const redlock_result *result, char *buffer, size_t size);

/**
 * A copy that outlives the callback, or NULL if there is no memory. Its lease is the same handle.
 * Free it with redlock_result_free().
 */
REDLOCK_API redlock_result *redlock_result_copy(const redlock_result *result);

/** Frees a result of redlock_result_copy() or of the blocking API; NULL is allowed. */
REDLOCK_API void redlock_result_free(redlock_result *result);

/** @} */
/** @name Names
 * @{ */

/** A short text for a code; never NULL. Any thread. */
REDLOCK_API const char *redlock_strerror(int code);
/** "OK", "CONTENDED", …: the code's name without its prefix; never NULL. Any thread. */
REDLOCK_API const char *redlock_error_name(int code);
/** "GRANTED", "DENIED", …; never NULL. Any thread. */
REDLOCK_API const char *redlock_vote_name(redlock_vote_kind kind);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
