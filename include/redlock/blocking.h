/**
 * @file blocking.h
 * The lock for threads that block: a client with its own loop thread, safe to call from any number of threads.
 *
 * Every function may be called from any thread but the client's own loop thread (on which on_lost and on_log run):
 * there a blocking call returns #REDLOCK_ERR_INVALID, for it could never end. No mutex is held while a callback runs;
 * but no call of the client completes meanwhile, so keep callbacks short, and never let one wait for a thread that may
 * be inside a call. The loop thread blocks the application's signals.
 *
 * Leases are the handles of redlock.h: redlock_lease_validity_ms(), redlock_lease_fence(), redlock_lease_token() and
 * redlock_lease_resource() work on them from any thread, without a lock; every other function of redlock.h that takes a
 * lease does not.
 *
 * After fork() the child needs a client of its own: calls on its parent's return #REDLOCK_ERR_FORKED.
 * A thread is never cancelled inside a call: pthread_cancel() takes effect at its next cancellation point after it.
 * Bound a call that must end with wait_timeout_ms.
 */
#ifndef REDLOCK_BLOCKING_H
#define REDLOCK_BLOCKING_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redlock_client redlock_client; /**< A manager on a thread of its own. */

/**
 * Starts a client. Blocks until every node is ready or has failed its first try, at most options->connect_timeout_ms;
 * nodes that are down are no error (they are tried for ever).
 * @param options     as for redlock_manager_create(); on_log runs on the loop thread.
 * @param client      set on success; end it with redlock_client_close().
 * @param error       where a sentence about a failure goes; may be NULL.
 * @param error_size  bytes at error; 256 is enough.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_SYSTEM
 */
REDLOCK_API int redlock_client_open(const redlock_manager_options *options, redlock_client **client, char *error,
                                    size_t error_size);

/**
 * Ends the client: calls that other threads are blocked in return #REDLOCK_ERR_CLOSED, leases still held are released,
 * the thread is joined. All handles of leases end here, so no other call may begin after this one, and no thread may
 * still use a lease, be it in the work of redlock_client_with(). In a child process after fork() it frees this process's
 * copy and sends nothing; what the loop thread was changing at the moment of the fork is left to the process's end.
 * @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID on the loop thread
 */
REDLOCK_API int redlock_client_close(redlock_client *client);

/** Options of a blocking acquire. */
typedef struct redlock_client_acquire_options {
    size_t size;                  /**< sizeof this struct; set by redlock_client_acquire_options_default(). */
    uint64_t owner;               /**< With reentrant: who asks; 0, the default, is the calling thread. */
    bool reentrant;               /**< The owner may acquire again what it holds; a count is kept. Default false. */
    redlock_acquire_options lock; /**< As for redlock_acquire(); on_lost runs on the loop thread. Last: it may grow. */
} redlock_client_acquire_options;

/** Fills in the defaults. Call it first, then set what differs. */
REDLOCK_API void redlock_client_acquire_options_default(redlock_client_acquire_options *options);

/**
 * Blocks until the lock is taken or cannot be. Returns what redlock_acquire() returns, or else its
 * result.
 *
 * A reentrant acquire by the owner that holds the resource through this client returns at once,
 * with the same lease and a count one higher; #REDLOCK_ERR_LOST if that lease is lost meanwhile
 * (release it as often as it was acquired, then begin anew), #REDLOCK_ERR_LIMIT where the count is
 * at its end (2^32 - 1). The count lives in the client, not on the nodes (docs/algorithm.md says
 * why). The ttl and auto_extend of the first acquire stay. Another owner of the same process waits
 * or is refused like a stranger.
 *
 * Where several threads name one owner, at most one of them asks the nodes. The others wait for what comes of it, as
 * long as their own wait_timeout_ms allows, and at least for one node timeout (a try may take that long); then they
 * share the lease, or, where it failed, try in their turn. #REDLOCK_ERR_CONTENDED if the time does not suffice. A thread
 * that ends without releasing leaves its lease to nobody: prefer redlock_client_with().
 *
 * @param options  NULL for the defaults.
 * @param lease    set on success; end it with redlock_client_release().
 * @param result   set to a result to be freed with redlock_result_free(), in case of success and of failure; may be
 * NULL; NULL is stored where no node was asked, as for a lease that is held already, or for #REDLOCK_ERR_INVALID (on_log is
 * told what is wrong with resource or lock), or where there was no memory.
 */
REDLOCK_API int redlock_client_acquire(redlock_client *client, const char *resource,
                                       const redlock_client_acquire_options *options, redlock_lease **lease,
                                       redlock_result **result);

/** Blocks until the extension is decided. Returns what redlock_extend() returns, or else its result.
 * @param result as for redlock_client_acquire()
 */
REDLOCK_API int redlock_client_extend(redlock_client *client, redlock_lease *lease, int64_t ttl_ms,
                                      redlock_result **result);

/**
 * Blocks until the release is decided. Returns what redlock_release() returns, or else its result.
 * The handle ends, unless it is a reentrant lease with a count left: then #REDLOCK_OK at once. A
 * reentrant lease is released by its owner only: from another thread, where the owner is the
 * thread, the answer is #REDLOCK_ERR_NOT_OWNER.
 */
REDLOCK_API int redlock_client_release(redlock_client *client, redlock_lease *lease, redlock_result **result);

/** As redlock_client_release(), for a lease that was acquired under an owner id; 0 is the calling thread. */
REDLOCK_API int redlock_client_release_as(redlock_client *client, redlock_lease *lease, uint64_t owner,
                                          redlock_result **result);

/** As redlock_adopt(); the lease ends with redlock_client_release() or redlock_client_forget(). */
REDLOCK_API int redlock_client_adopt(redlock_client *client, const char *resource, const char *token,
                                     const redlock_acquire_options *options, redlock_lease **lease);

/**
 * As redlock_lease_forget(): #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_CLOSED,
 * #REDLOCK_ERR_FORKED. A reentrant lease needs its last count for that, else #REDLOCK_ERR_BUSY;
 * and, where the owner is a thread, that thread, else #REDLOCK_ERR_NOT_OWNER.
 */
REDLOCK_API int redlock_client_forget(redlock_client *client, redlock_lease *lease);

/** Blocks until the nodes have answered. Returns what redlock_inspect() returns, or else its result. */
REDLOCK_API int redlock_client_inspect(redlock_client *client, const char *resource, redlock_result **result);

/** As redlock_manager_statistics(), as of now; #REDLOCK_ERR_CLOSED and #REDLOCK_ERR_FORKED besides. */
REDLOCK_API int redlock_client_statistics(redlock_client *client, redlock_statistics *statistics);

/**
 * Work to do under a lock. It learns of a loss by redlock_lease_validity_ms(lease) == 0 (cheap: ask before each step
 * that counts) or by on_lost.
 * @return anything; redlock_client_with() hands it on.
 */
typedef int (*redlock_work)(redlock_lease *lease, void *data);

/**
 * Acquires, runs work on the calling thread, and releases however it ends: by return, pthread_exit() or cancellation of
 * the thread (not by longjmp() or a C++ exception, which must not leave work).
 * @param work_result  what work returned; untouched if it did not run; may be NULL.
 * @param result       of the acquire if that failed, else of the release; as for redlock_client_acquire().
 * @return as redlock_client_acquire() if the lock was not taken, in which case work did not run; else as
 * redlock_client_release(): #REDLOCK_OK says that the lock was ours until work had ended, anything else that the work
 * may have overlapped with another's.
 */
REDLOCK_API int redlock_client_with(redlock_client *client, const char *resource,
                                    const redlock_client_acquire_options *options, redlock_work work, void *data,
                                    int *work_result, redlock_result **result);

#ifdef __cplusplus
}
#endif

#endif
