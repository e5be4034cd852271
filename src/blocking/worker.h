/* A worker of a blocking client: a thread with a loop and a manager, and the mailbox by which calls
 * reach them. A call is a struct on its caller's stack: the worker gets a pointer to it, and the
 * caller waits until it is done, or drives the loop itself until then (drive.h). */
#ifndef REDLOCK_BLOCKING_WORKER_H
#define REDLOCK_BLOCKING_WORKER_H

#include <redlock/blocking.h>

#include "base/check.h"
#include "base/list.h"
#include "blocking/call.h"
#include "blocking/reentrant.h"

/* Starts the thread. `known` is what redlock_manager_options_read() has made of the options. A
 * cancel also wakes who waits in the client's table of reentrant holds. */
int redlock_worker_open(const redlock_manager_options *options, const redlock_manager_options *known,
                        struct redlock_reentrant *reentrant, struct redlock_worker **worker,
                        struct redlock_error_text *failure);
/* Then: waits until its manager is connected to its nodes, or could not be made, but no longer than
 * the connect timeout. Frees it in the second case. The same thread. */
int redlock_worker_wait(struct redlock_worker *worker, struct redlock_error_text *failure);
/* Begins to close the manager, which ends all calls. Once. */
void redlock_worker_close(struct redlock_worker *worker);
/* Then: waits for the end of that, and joins the thread. */
void redlock_worker_join(struct redlock_worker *worker);
/* When no thread is in a function of the worker any more. */
void redlock_worker_free(struct redlock_worker *worker);
/* Instead of both, in a child process. */
void redlock_worker_abandon(struct redlock_worker *worker);

/* Lets the worker do the call, or drives its loop for that, until it is done. Returns its code. */
int redlock_worker_perform(struct redlock_worker *worker, struct redlock_call *call);

/* For who drives the loop, and a call that answers: what came of it. `result` may be NULL. */
void redlock_worker_complete(struct redlock_call *call, int code, const redlock_result *result);
/* The same as the callback of a request, whose data is the call. */
void redlock_worker_answer(const redlock_result *result, void *data);

/* Whether the calling thread is this loop thread. */
bool redlock_worker_is_current(const struct redlock_worker *worker);
/* For who drives the loop, and for what never changes of it; before the close. */
redlock_manager *redlock_worker_manager(const struct redlock_worker *worker);

/* A handle that redlock_worker_free() frees. Only who drives the loop attaches. Embed it. */
struct redlock_attached {
    struct redlock_list_entry entry;
    void (*free)(struct redlock_attached *attached);
};
void redlock_worker_attach(struct redlock_worker *worker, struct redlock_attached *attached);

/* Who drives the loop looks which calls are cancelled. Any thread; safe in a signal handler. */
void redlock_worker_wake_cancelled(struct redlock_worker *worker);

#endif
