/* A blocking call: what a thread asks of a worker, and what comes back. It is on the stack
 * of the thread, which waits. */
#ifndef REDLOCK_BLOCKING_CALL_H
#define REDLOCK_BLOCKING_CALL_H

#include <redlock/blocking.h>

#include "base/check.h"
#include "base/list.h"
#include "blocking/cancellable.h"
#include "blocking/eventcount.h"
#include "blocking/mailbox.h"
#include "result/result.h"

/* The caller owns it until it puts it into the mailbox. Then the worker owns it until it finishes
 * `sleeper`. */
struct redlock_call {
    struct redlock_mailbox_item item; /* first member */
    /* In a list of the worker: of the calls that somebody may cancel, or of those that are
     * complete. Or in the election's list of calls that wait for its end. */
    struct redlock_list_entry entry;
    /* Runs where the loop is driven, and returns the code. */
    int (*begin)(struct redlock_call *call);
    void *data;   /* for `begin` */
    bool answers; /* after `begin` was OK, redlock_worker_complete() will follow */
    /* It, or the lease that it makes, may run a callback of the program: that runs on the worker's
     * thread. The call of a release gets this with the lease. */
    bool tells;
    /* Ends the request, if the call is cancelled. No callback may run inside it. */
    void (*stop)(struct redlock_call *call);
    struct redlock_cancellable cancellable;
    /* For the result of a call that is refused; NULL: it has none. */
    const char *resource;
    enum redlock_result_of of;
    /* Why `begin` refused the call with ERR_INVALID; NULL: the manager says it. */
    const char *reason;
    /* Set by redlock_worker_perform(). */
    struct redlock_worker *worker;
    char *sentence;                 /* that of the calling thread */
    struct redlock_sleeper sleeper; /* the caller */
    /* What comes back. */
    int code;
    bool done;    /* it is complete; whoever drives the loop reads this */
    bool refused; /* `begin` refused it: nothing has changed */
    redlock_lease *acquired;
    redlock_result **result; /* the caller's, for a copy, if there is memory; NULL: not wanted */
};

/* A call whose request has a result. */
struct redlock_call redlock_call_of(int (*begin)(struct redlock_call *call), enum redlock_result_of of,
                                    const char *resource, redlock_result **result);

/* For a call that was refused before a node was asked: makes its result, where it has one. `reason`
 * is for ERR_INVALID, and goes into the sentence of the calling thread, too. Returns `code`. */
int redlock_call_refuse(struct redlock_call *call, int code, const char *reason);

/* Where the calling thread's sentence for redlock_client_invalid() goes. */
struct redlock_error_text redlock_call_failure(void);

#endif
