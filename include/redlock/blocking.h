/**
 * @file blocking.h
 * The lock for threads that block: a client with its own loop thread. Any number of threads may
 * call it. A call that finds the loop thread idle does its own work with the nodes, on the calling
 * thread and its stack, which needs 64 KiB for that. Callbacks run on the loop thread only: as long
 * as a lease has on_lost or on_expiring, and always in a client with on_log or on_event, all work
 * is done there, and each call takes two switches of threads more. With options.loops above 1 the
 * client has several loop threads; what this header says of the loop thread is true of each.
 *
 * You may call every function from any thread except the client's own loop thread, on which
 * on_lost, on_expiring and on_log run. There a blocking call could never end, so it returns
 * #REDLOCK_ERR_INVALID. No mutex is held while a callback runs, but no call of the client completes
 * meanwhile. So keep callbacks short, and never let one wait for a thread that may be inside a
 * call. The loop thread blocks the application's signals.
 *
 * Leases are the handles of redlock.h. redlock_lease_validity_ms(), redlock_lease_fence(),
 * redlock_lease_token() and redlock_lease_resource() work on them from any thread, without a mutex.
 * Do not use any other function of redlock.h that takes a lease.
 *
 * After fork() the child needs its own client: calls on its parent's client return
 * #REDLOCK_ERR_FORKED. A signal handler that may interrupt a call of a client must be short, since
 * the thread may be doing the work of others there, and may call redlock_cancel_set() only: no
 * other function of the client, and not fork(). A thread is never cancelled inside a call:
 * pthread_cancel() takes effect at the next cancellation point after the call. If an acquire must
 * end, limit it with wait_timeout_ms or give it a redlock_cancel. redlock_client_list() takes as
 * long as the nodes need to look through their keys; it takes a redlock_cancel, too. All other
 * calls end within about two node timeouts.
 */
#ifndef REDLOCK_BLOCKING_H
#define REDLOCK_BLOCKING_H

#include <redlock/election.h>
#include <redlock/list.h>
#include <redlock/redlock.h>
#include <redlock/telemetry.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redlock_client redlock_client; /**< A manager on its own thread, or several. */

/**
 * Starts a client. Blocks until every node is ready or has failed its first try, but at most
 * options->connect_timeout_ms. Nodes that are down are no error: the client keeps trying.
 * @param options     as for redlock_manager_create(); on_log runs on the loop thread.
 * @param client      set on success; end it with redlock_client_close().
 * @param error       where a sentence about a failure goes; may be NULL.
 * @param error_size  bytes at error; 256 is enough.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_SYSTEM
 */
REDLOCK_API int redlock_client_open(const redlock_manager_options *options, redlock_client **client, char *error,
                                    size_t error_size);

/**
 * Ends the client. Calls that block in other threads return #REDLOCK_ERR_CLOSED. The client
 * releases the leases that are still held, and joins its thread. All handles of leases and of
 * elections end here. So no other call may begin after this one, and no thread may still use a
 * lease, also not in the work of redlock_client_with(). If threads read an election, first end it
 * and join them. In a child process after fork() it frees this process's copy and sends nothing.
 * Memory that the loop thread was changing at the moment of the fork stays until the process ends.
 * @return #REDLOCK_OK, or #REDLOCK_ERR_INVALID on the loop thread
 */
REDLOCK_API int redlock_client_close(redlock_client *client);

/** Options of a blocking acquire. */
typedef struct redlock_client_acquire_options {
    size_t size;    /**< sizeof this struct; set by the _default function. */
    uint64_t owner; /**< With reentrant: who asks; 0, the default, is the calling thread. */
    /** The owner may acquire again what it holds, with a count. Not with permits. Default false. */
    bool reentrant;
    /** redlock_client_with(): do not renew the lease while the work runs. Default false. */
    bool no_auto_extend;
    /** As for redlock_acquire(); on_lost and on_expiring run on the loop thread. Last, because it
     * may grow. */
    redlock_acquire_options lock;
} redlock_client_acquire_options;

/** Fills in the defaults. Call it first, then set what you need. */
REDLOCK_API void redlock_client_acquire_options_default(redlock_client_acquire_options *options);

/**
 * Blocks until the lock is taken or the acquire has failed. Returns the error of redlock_acquire(),
 * or else the code of its result.
 *
 * A reentrant acquire by the owner that holds the resource through this client returns at once,
 * with the same lease and a count one higher. It returns #REDLOCK_ERR_LOST if that lease has been
 * lost (release it as often as it was acquired, then start again), and #REDLOCK_ERR_LIMIT if the
 * count is at its maximum (2^32 - 1). The count lives in the client, not on the nodes
 * (docs/protocols.md says why). The ttl, auto_extend and callbacks of the first acquire stay, and
 * its mode: who has the lock alone may ask to read it, too, and goes on having it alone. Who reads
 * and asks to have it alone would wait for itself: it gets #REDLOCK_ERR_UPGRADE, and must release
 * first. Another owner in the same process waits or is refused, like any other client.
 *
 * If several threads name one owner, at most one of them asks the nodes. The others wait for its
 * outcome, as long as their own wait_timeout_ms allows, and at least for node_timeout_ms or
 * connect_timeout_ms, whichever is longer, because a try may take that long. Then they share the
 * lease; if the acquire failed, they try in their turn. They get #REDLOCK_ERR_CONTENDED if the time
 * is too short. If a thread ends without a release, nobody releases its lease: prefer
 * redlock_client_with().
 *
 * @param options  NULL for the defaults.
 * @param lease    set on success; end it with redlock_client_release().
 * @param result   set to a result after success and after failure; free it with
 *                 redlock_result_free(). May be NULL. For #REDLOCK_ERR_INVALID the result has no
 *                 votes, and its sentence says which argument is wrong and what it must be:
 *                 "cannot acquire 'r': invalid argument: ttl_ms is 0; it must be 1 to 2147483647."
 *                 It is set to NULL if no node was asked otherwise (as for a lease that is held
 *                 already), or if there was no memory.
 */
REDLOCK_API int redlock_client_acquire(redlock_client *client, const char *resource,
                                       const redlock_client_acquire_options *options, redlock_lease **lease,
                                       redlock_result **result);

/**
 * As redlock_client_acquire(), for several resources in one lease: redlock_acquire_all(). All other
 * calls on a lease are for such a lease, too. It cannot be reentrant.
 * @param items  read until the call returns.
 */
REDLOCK_API int redlock_client_acquire_all(redlock_client *client, const redlock_item *items, size_t count,
                                           const redlock_client_acquire_options *options, redlock_lease **lease,
                                           redlock_result **result);

/**
 * Blocks until the extension is decided. Returns the error of redlock_extend(), or else the code of
 * its result.
 * @param result  as for redlock_client_acquire().
 */
REDLOCK_API int redlock_client_extend(redlock_client *client, redlock_lease *lease, int64_t ttl_ms,
                                      redlock_result **result);

/**
 * Blocks until redlock_downgrade() is decided. Returns its error, or else the code of its result.
 * A reentrant lease must be at its last count, else the call returns #REDLOCK_ERR_BUSY: whoever
 * else holds it counts on having it alone.
 * @param result  as for redlock_client_acquire().
 */
REDLOCK_API int redlock_client_downgrade(redlock_client *client, redlock_lease *lease, redlock_result **result);

/**
 * Blocks until the release is decided. Returns the error of redlock_release(), or else the code of
 * its result. The handle ends, unless it is a reentrant lease with a count left: then the call
 * returns #REDLOCK_OK at once. Only its owner can release a reentrant lease. If the owner is a
 * thread, a call from another thread returns #REDLOCK_ERR_NOT_OWNER.
 */
REDLOCK_API int redlock_client_release(redlock_client *client, redlock_lease *lease, redlock_result **result);

/** As redlock_client_release(), for a lease with an owner id; 0 is the calling thread. */
REDLOCK_API int redlock_client_release_as(redlock_client *client, redlock_lease *lease, uint64_t owner,
                                          redlock_result **result);

/** As redlock_adopt(); the lease ends with redlock_client_release() or redlock_client_forget(). */
REDLOCK_API int redlock_client_adopt(redlock_client *client, const char *resource, const char *token,
                                     const redlock_acquire_options *options, redlock_lease **lease);

/** As redlock_client_adopt(), for several: redlock_adopt_all(). */
REDLOCK_API int redlock_client_adopt_all(redlock_client *client, const redlock_item *items, size_t count,
                                         const redlock_acquire_options *options, redlock_lease **lease);

/**
 * As redlock_lease_forget(). A reentrant lease must be at its last count, else the call returns
 * #REDLOCK_ERR_BUSY. If its owner is a thread, any other thread gets #REDLOCK_ERR_NOT_OWNER.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED,
 *         #REDLOCK_ERR_BUSY, #REDLOCK_ERR_NOT_OWNER
 */
REDLOCK_API int redlock_client_forget(redlock_client *client, redlock_lease *lease);

/**
 * Blocks until the nodes have answered. Returns the error of redlock_inspect(), or else the code of
 * its result.
 */
REDLOCK_API int redlock_client_inspect(redlock_client *client, const char *resource, redlock_result **result);

/**
 * As redlock_list(), but blocks until the listing is over. Returns the error of redlock_list(), or
 * else the code of its result.
 * @param options  NULL for the defaults.
 * @param each     gets the locks on the loop thread, while the caller waits: what only these two
 *                 use needs no mutex. It may call no function of the client that blocks. Not NULL.
 * @param data     given to each.
 * @param result   as for redlock_client_acquire(): the vote of each node says whether it named all
 *                 of its locks.
 */
REDLOCK_API int redlock_client_list(redlock_client *client, const redlock_list_options *options,
                                    redlock_list_callback each, void *data, redlock_result **result);

/** As redlock_manager_statistics(), the sum of all loops; also returns #REDLOCK_ERR_CLOSED,
 * #REDLOCK_ERR_FORKED and, with several loops, #REDLOCK_ERR_NO_MEMORY. */
REDLOCK_API int redlock_client_statistics(redlock_client *client, redlock_statistics *statistics);

/** As redlock_manager_telemetry(), the sum of all loops; also returns #REDLOCK_ERR_CLOSED,
 * #REDLOCK_ERR_FORKED and, with several loops, #REDLOCK_ERR_NO_MEMORY. */
REDLOCK_API int redlock_client_telemetry(redlock_client *client, redlock_telemetry *telemetry);

/**
 * What was wrong with the arguments of the calling thread's last call of this header that returned
 * #REDLOCK_ERR_INVALID: "lease is NULL", "ttl_ms is 0; it must be 1 to 2147483647". For calls that
 * have no result, such as redlock_client_adopt() and redlock_client_election_next(). Other threads
 * and calls that do not return #REDLOCK_ERR_INVALID change nothing here. Empty if the thread made
 * no such call. redlock_client_open() has `error` instead.
 * @param client  any client of the program, or NULL: the sentence belongs to the thread.
 * @param buffer  gets the sentence; 256 bytes are enough.
 * @return the length of the whole sentence, as snprintf does
 */
REDLOCK_API size_t redlock_client_invalid(redlock_client *client, char *buffer, size_t size);

/** @name Nodes
 * @{ */

/** The number of configured nodes. Any thread, also the loop thread; never blocks. */
REDLOCK_API size_t redlock_client_node_count(const redlock_client *client);

/** As redlock_manager_quorum(). Any thread, also the loop thread; never blocks. */
REDLOCK_API size_t redlock_client_quorum(const redlock_client *client);

/**
 * As redlock_manager_node(), but the strings are copies that belong to the caller. Of several loops
 * it tells what the first one says that is not READY, or has credentials pending; else the first.
 * @param info  set its size before the call. After #REDLOCK_OK, end it with
 *              redlock_node_info_free().
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_client_node(redlock_client *client, size_t index, redlock_node_info *info);

/**
 * As redlock_manager_set_credentials(), for all loops. It does not wait for the nodes:
 * redlock_client_node() tells which of them have accepted. Of several loops, some may have the new
 * credentials after #REDLOCK_ERR_NO_MEMORY, others the old ones: call again.
 */
REDLOCK_API int redlock_client_set_credentials(redlock_client *client, size_t node, const char *user,
                                               const char *password);

/** Frees the strings of redlock_client_node(). All members but `size` become 0: the struct is ready
 * for the next call. NULL is allowed. Not for what redlock_manager_node() filled in. */
REDLOCK_API void redlock_node_info_free(redlock_node_info *info);

/** @} */
/** @name Cancel
 * @{ */

/**
 * Lets any thread end acquires that block. It is a flag: while it is set, each acquire that names
 * it in its options (lock.cancel) returns #REDLOCK_ERR_CANCELLED, those that wait and those that
 * begin later. What such an acquire got of the lock by then, the library releases. So after
 * #REDLOCK_ERR_CANCELLED nothing is held. An acquire that was won before the flag was set may
 * still return #REDLOCK_OK, and then its caller holds the lock. It ends redlock_client_list() in
 * the same way.
 *
 * One object may serve any number of calls of one client. In redlock_client_with() it ends the
 * wait for the lock, but not the work, which can ask redlock_cancel_is_set().
 *
 * An election needs none. redlock_client_elect() waits for nothing. A thread that blocks in
 * redlock_client_election_next() is woken when another thread calls
 * redlock_client_election_resign() or redlock_client_election_end(). These two take about two node
 * timeouts at most, and a signal handler may not call them: let it set a flag, and give
 * redlock_client_election_next() a timeout, or wait for signals in a thread of their own.
 */
typedef struct redlock_cancel redlock_cancel;

/** Makes one, not set. @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY */
REDLOCK_API int redlock_cancel_new(redlock_client *client, redlock_cancel **cancel);

/**
 * Sets it, and returns at once. Any thread, also in callbacks of the client and in a signal
 * handler. Not after redlock_client_close(). If it is set already, nothing happens.
 */
REDLOCK_API void redlock_cancel_set(redlock_cancel *cancel);

/** For the next acquires. Those that began before or while it was set return
 * #REDLOCK_ERR_CANCELLED all the same. Any thread. */
REDLOCK_API void redlock_cancel_clear(redlock_cancel *cancel);

/** Any thread. */
REDLOCK_API bool redlock_cancel_is_set(const redlock_cancel *cancel);

/** Frees it; NULL is allowed. No acquire that names it may be under way or begin. May come after
 * the close of the client, which does not free it. */
REDLOCK_API void redlock_cancel_free(redlock_cancel *cancel);

/** @} */

/**
 * Work to do under a lock. It learns of a loss by redlock_lease_validity_ms(lease) == 0 or by
 * on_lost, and of one that is near by on_expiring. The call is cheap: make it before each step that
 * the lock must protect.
 * @return any value; redlock_client_with() returns it in work_result.
 */
typedef int (*redlock_work)(redlock_lease *lease, void *data);

/**
 * Acquires the lock, runs work on the calling thread, and releases the lock however work ends: by
 * return, pthread_exit() or cancellation of the thread. work must not end by longjmp() or a C++
 * exception.
 *
 * The lease is renewed while work runs, as with auto_extend, also with options of NULL.
 * options->lock.auto_extend_max_ms limits that, and options->no_auto_extend switches it off: then
 * the lease ends ttl_ms after the lock was taken, whatever work does. A work that may hang needs a
 * cap: without one, nobody else gets the lock until the process ends.
 * @param work_result  what work returned; unchanged if it did not run; may be NULL.
 * @param result       of the acquire if that failed, else of the release; as for
 *                     redlock_client_acquire().
 * @return as redlock_client_acquire() if the lock was not taken; work did not run then. Else as
 *         redlock_client_release(): #REDLOCK_OK means that the lock was ours until work had ended;
 *         after any other code, work may have overlapped with another holder's.
 */
REDLOCK_API int redlock_client_with(redlock_client *client, const char *resource,
                                    const redlock_client_acquire_options *options, redlock_work work, void *data,
                                    int *work_result, redlock_result **result);

/** The same under a lease of several resources: redlock_client_acquire_all(). */
REDLOCK_API int redlock_client_with_all(redlock_client *client, const redlock_item *items, size_t count,
                                        const redlock_client_acquire_options *options, redlock_work work, void *data,
                                        int *work_result, redlock_result **result);

/** @name Election
 * @{ */

/**
 * A candidate of a client (docs/election.md). Any number of threads may use it. The handle is valid
 * until the close of its client, also after redlock_client_election_end(), and takes about 4 KB. So
 * do not make one for each term: redlock_client_election_campaign() begins the next one.
 */
typedef struct redlock_client_election redlock_client_election;

/**
 * Becomes a candidate, as redlock_elect(). Does not wait for anything:
 * redlock_client_election_next() tells what happens. With options->campaign false it only observes.
 * @param options   NULL for the defaults.
 * @param election  set on success.
 * @return as redlock_elect(); also #REDLOCK_ERR_SYSTEM
 */
REDLOCK_API int redlock_client_elect(redlock_client *client, const char *name, const redlock_election_options *options,
                                     redlock_client_election **election);

/**
 * Blocks until there is an event, and returns it. Events that wait are merged, so that what one
 * reads is never out of date: LOST always comes first; a leadership that is over before anybody has
 * read of it is not told, nor is EXPIRING after the lease was extended; of LEADER and TROUBLE only
 * the newest is. ENDED is the last one.
 *
 * One thread at a time. It should look at redlock_client_election_validity_ms() while it works, or
 * let another thread wait for LOST.
 * @param timeout_ms  how long to wait; 0 does not wait; or #REDLOCK_WAIT_FOREVER.
 * @param event       set its size before the call. Its kind is #REDLOCK_ELECTION_NOTHING if the
 *                    time was over. What it points to is valid until the next call.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_BUSY (another thread is inside),
 *         #REDLOCK_ERR_CLOSED after ENDED, #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_client_election_next(redlock_client_election *election, int64_t timeout_ms,
                                             redlock_election_event *event);

/**
 * As redlock_election_resign(), but blocks until that is decided. The event RESIGNED is told, too.
 * @param result  of the release; as for redlock_client_acquire(). NULL if it did not lead.
 * @return the code of RESIGNED (or of ENDED, if that came first), #REDLOCK_OK if it was out
 *         already, or an error as redlock_election_resign()
 */
REDLOCK_API int redlock_client_election_resign(redlock_client_election *election, redlock_result **result);

/** As redlock_election_campaign(). Does not wait for the leadership. */
REDLOCK_API int redlock_client_election_campaign(redlock_client_election *election);

/**
 * Resigns, if it is not out, and ends; blocks until that is decided. Other threads need not know:
 * one that blocks in redlock_client_election_next() gets ENDED there, and then #REDLOCK_ERR_CLOSED;
 * the validity is 0; other calls return #REDLOCK_ERR_INVALID.
 * @param result  of the release; as for redlock_client_election_resign(). The event ENDED has none.
 * @return the code of ENDED, or #REDLOCK_ERR_INVALID, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED:
 *         then the close of the client ends it
 */
REDLOCK_API int redlock_client_election_end(redlock_client_election *election, redlock_result **result);

/** As redlock_election_validity_ms(). Any thread. 0 after the end. Takes no mutex. */
REDLOCK_API int64_t redlock_client_election_validity_ms(const redlock_client_election *election, uint64_t term);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
