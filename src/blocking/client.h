/* The inside of a blocking client: its workers, the table of reentrant holds, and who is inside. */
#ifndef REDLOCK_BLOCKING_CLIENT_H
#define REDLOCK_BLOCKING_CLIENT_H

#include <pthread.h>

#include "base/random.h"
#include "blocking/rundown.h"
#include "blocking/worker.h"

struct redlock_client {
    struct redlock_worker *workers[REDLOCK_LOOPS_MAX];
    unsigned loops;
    struct redlock_reentrant reentrant;
    struct redlock_rundown rundown; /* all calls that use this memory are inside */
    pthread_mutex_t credentials;    /* all loops get those of one call before those of the next */
    struct redlock_random *fork_mark;
    int64_t try_ms; /* the longest that one try may take */
    size_t node_count, quorum;
};

/*
 * Every public function that asks the worker calls these two. Enter returns REDLOCK_ERR_INVALID,
 * with a sentence, for NULL and on the loop thread, and REDLOCK_ERR_FORKED in a child process; a
 * call, if there is one, is refused with that. Until exit, nobody frees the client, and the thread
 * cannot be cancelled: the worker may be using its stack. A function that only reads enters the
 * rundown alone.
 */
int redlock_client_enter(redlock_client *client, struct redlock_call *call, int *cancel_state);
void redlock_client_exit(redlock_client *client, int cancel_state);

/* Most calls: enters, lets the resource's worker do the call, and exits. Returns its code. */
int redlock_client_perform(redlock_client *client, const char *resource, struct redlock_call *call);
/* The same for this worker, whatever it is where the client is NULL. */
int redlock_client_perform_on(redlock_client *client, struct redlock_worker *worker, struct redlock_call *call);

/* The worker of a resource; the first one for NULL. */
struct redlock_worker *redlock_client_worker(const redlock_client *client, const char *resource);

#endif
