/* The inside of a worker, and the turns of its loop: who begins calls, and when it stops. */
#ifndef REDLOCK_BLOCKING_TURN_H
#define REDLOCK_BLOCKING_TURN_H

#include <pthread.h>

#include "blocking/call.h"
#include "blocking/drive.h"
#include "blocking/reentrant.h"
#include "loop/loop.h"

struct redlock_worker {
    struct redlock_mailbox mailbox;
    struct redlock_drive drive;
    struct redlock_eventcount eventcount; /* wakes the callers of completed calls */
    struct redlock_reentrant *reentrant;  /* the client's */
    pthread_t thread;
    redlock_poll *poll;
    atomic_bool cancelled; /* who drives must look for calls that are cancelled */
    atomic_bool in_turn;   /* during a turn, a fork would copy half-changed data */
    /* Only who drives uses these: */
    redlock_manager *manager; /* NULL before the start and after the close */
    bool closing;
    bool quiet; /* the last turn had no event */
    /* Calls that are not complete; calls and leases that may run a callback of the program, and one
     * for the client's options if they keep the drive on the thread. */
    unsigned open, tellers;
    unsigned lone;                  /* calls in a row that began while no other was open */
    const struct redlock_call *own; /* of the caller that drives; NULL: the thread does */
    struct redlock_list for_thread; /* calls that only the thread may begin */
    struct redlock_list cancellables, attached;
    struct redlock_list completed; /* their callers are woken before the loop polls */
};

/* For who drives, and a call that answers: what came of it. `result` may be NULL. */
void redlock_turn_complete(struct redlock_call *call, int code, const redlock_result *result);

/* A caller that has claimed the drive: until its call is done, or until only the thread may drive,
 * or wants to. */
void redlock_turn_drive(struct redlock_worker *worker, const struct redlock_call *call);

/* The thread, until the manager is closed. Its data is the worker; returns NULL. */
void *redlock_turn_run(void *data);

#endif
