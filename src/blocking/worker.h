/* A worker of a blocking client: a thread with a loop and a manager, and the mailbox by which calls
 * reach it. A call is a struct on its caller's stack: the worker gets a pointer to it, and the
 * caller waits until it is done. */
#ifndef REDLOCK_BLOCKING_WORKER_H
#define REDLOCK_BLOCKING_WORKER_H

#include <redlock/blocking.h>

#include "base/check.h"
#include "base/list.h"
#include "blocking/cancellable.h"
#include "blocking/eventcount.h"
#include "blocking/mailbox.h"
#include "blocking/reentrant.h"
#include "result/result.h"

/* One blocking call. The caller owns it until it puts it into the mailbox. Then the worker owns it
 * until it finishes `sleeper`. */
struct redlock_call {
    /* First member. */
    struct redlock_mailbox_item item;
    struct redlock_list_entry completed;
    /* Runs on the loop thread. True if a request will call redlock_call_answer(); false if `code`
     * is set. */
    bool (*begin)(redlock_manager *manager, struct redlock_call *call);
    struct redlock_worker *worker;
    char *sentence; /* that of the calling thread; set by redlock_worker_perform() */
    /* For the result of a call that is refused; NULL: it has none. */
    const char *resource;
    enum redlock_result_of of;
    redlock_lease *acquired;
    redlock_result *result; /* a copy, if it is wanted and there is memory */
    bool want_result;
    /* Why `begin` refused the call with ERR_INVALID; NULL: the manager says it. */
    const char *reason;
    int code;
    struct redlock_sleeper sleeper; /* the caller */
};

/* The callback of each request. `data` is the call. */
void redlock_call_answer(const redlock_result *result, void *data);
/* For a call that no request answers. Its code is set. */
void redlock_call_complete(struct redlock_call *call);

/* For a call that was refused before a node was asked: makes its result, where it has one. `reason`
 * is for ERR_INVALID, and goes into the sentence of the calling thread, too. Returns `code`. */
int redlock_call_refuse(struct redlock_call *call, int code, const char *reason);

/* Starts the thread, and waits until its manager is connected to its nodes, or could not be made. A
 * cancel also wakes who waits in the client's table of reentrant holds. */
int redlock_worker_open(const redlock_manager_options *options, struct redlock_reentrant *reentrant,
                        struct redlock_worker **worker, struct redlock_error_text *failure);
/* Closes the manager, which ends all calls, and joins the thread. Once. */
void redlock_worker_close(struct redlock_worker *worker);
/* When no thread is in a function of the worker any more. */
void redlock_worker_free(struct redlock_worker *worker);
/* Instead of both, in a child process. */
void redlock_worker_abandon(struct redlock_worker *worker);

/* Does the call on the loop thread, waits, and returns its code. */
int redlock_worker_perform(struct redlock_worker *worker, struct redlock_call *call);

/* Whether the calling thread is this loop thread. */
bool redlock_worker_is_current(const struct redlock_worker *worker);
/* For what never changes of it, before the close. */
const redlock_manager *redlock_worker_manager(const struct redlock_worker *worker);

/* A handle that redlock_worker_free() frees. Only the loop thread attaches. Embed it. */
struct redlock_attached {
    struct redlock_list_entry entry;
    void (*free)(struct redlock_attached *attached);
};
void redlock_worker_attach(struct redlock_worker *worker, struct redlock_attached *attached);

/* The calls that somebody may cancel; for the loop thread. */
struct redlock_list *redlock_worker_cancellables(struct redlock_worker *worker);
/* The loop thread looks which of them are cancelled. Any thread; safe in a signal handler. */
void redlock_worker_wake_cancelled(struct redlock_worker *worker);

/* Where the calling thread's sentence for redlock_client_invalid() goes. */
struct redlock_error_text redlock_client_failure(void);

#endif
