/* A blocking client inside: calls travel as structs on their callers' stacks to the loop thread and back. */
#ifndef REDLOCK_BLOCKING_CLIENT_H
#define REDLOCK_BLOCKING_CLIENT_H

#include <redlock/blocking.h>

#include "blocking/bell.h"
#include "blocking/mailbox.h"
#include "blocking/reentrant.h"

/*
 * One blocking call. It is the caller's until it is put into the mailbox, the loop thread's until `sleeper` is
 * finished, then the caller's again.
 */
struct redlock_call {
    struct redlock_letter letter; /* first: in the mailbox, then among those completed */
    /* Runs on the loop thread. True: redlock_call_answer() was given to a request; false: `code` is set. */
    bool (*begin)(redlock_manager *manager, struct redlock_call *call);
    redlock_client *client;
    redlock_lease *acquired;
    redlock_result *result; /* a copy, if it is wanted and there was memory */
    bool want_result;
    int code;
    struct redlock_sleeper sleeper; /* the caller */
};

/* The callback of each request that a call makes; data is the call. */
void redlock_call_answer(const redlock_result *result, void *data);

/*
 * Around every public function: REDLOCK_ERR_INVALID on the loop thread, REDLOCK_ERR_FORKED in a child process. Between
 * the two the client is not freed and the thread is not cancelled, for the loop thread may be using its stack.
 */
int redlock_client_enter(redlock_client *client, int *cancel_state);
void redlock_client_leave(redlock_client *client, int cancel_state);

/* Has the call done by the loop thread and returns its code. */
int redlock_client_perform(redlock_client *client, struct redlock_call *call);

struct redlock_reentrant *redlock_client_reentrant(redlock_client *client);
int64_t redlock_client_node_timeout_ms(const redlock_client *client);

#endif
