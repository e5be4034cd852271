/* A worker: the start and the end of its loop, and how calls reach it and return. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocking/turn.h"
#include "blocking/worker.h"

/* With a shorter node timeout or connect timeout, the thread alone drives. */
#define SHARED_TIMEOUT_MS 10

void redlock_worker_complete(struct redlock_call *call, int code, const redlock_result *result) {
    redlock_turn_complete(call, code, result);
}

void redlock_worker_answer(const redlock_result *result, void *data) {
    struct redlock_call *call = data;
    assert(!call->acquired);
    call->acquired = redlock_result_lease(result);
    redlock_worker_complete(call, redlock_result_code(result), result);
}

void redlock_worker_attach(struct redlock_worker *worker, struct redlock_attached *attached) {
    assert(attached->free && worker->manager);
    redlock_list_prepend(&worker->attached, &attached->entry);
}

static void free_attached(struct redlock_worker *worker) {
    struct redlock_list_entry *first;
    while ((first = redlock_list_pop(&worker->attached))) {
        struct redlock_attached *attached = REDLOCK_CONTAINER(first, struct redlock_attached, entry);
        attached->free(attached);
    }
}

static void on_closed(void *data) {
    struct redlock_worker *worker = data;
    assert(worker->closing && redlock_list_is_empty(&worker->cancellables));
    worker->manager = NULL;
}

static void begin_close(struct redlock_worker *worker) {
    assert(worker->manager && !worker->closing);
    worker->closing = true;
    int failed = redlock_manager_close(worker->manager, on_closed, worker);
    assert(failed == 0);
    (void)failed;
}

/* The first call, by redlock_worker_open(). */
struct start_call {
    struct redlock_call call;
    const redlock_manager_options *options;
    int64_t connect_ms;
    struct redlock_error_text failure;
};

/* A worker's memory: several start at the same time. */
struct starting {
    struct redlock_worker worker; /* first member */
    struct start_call start;
    char text[256]; /* the failure, by the worker's thread */
};

/* A node that is down is no error here. The votes on each lock show it. */
static void on_connected(const redlock_result *result, void *data) {
    (void)result;
    redlock_worker_complete(data, REDLOCK_OK, NULL);
}

static int start_begins(struct redlock_call *call) {
    struct start_call *start = (struct start_call *)call;
    const redlock_manager_options *options = start->options;
    struct redlock_error_text *failure = &start->failure;
    struct redlock_worker *worker = call->worker;
    assert(!worker->manager && call->answers);
    int code = redlock_manager_create_poll(worker->poll, options, &worker->manager, failure->text, failure->size);
    if (code == REDLOCK_OK) {
        code = redlock_manager_connect(worker->manager, start->connect_ms, on_connected, call);
        if (code == REDLOCK_OK) {
            return code;
        }
        (void)redlock_fail(failure, code, "cannot wait for the nodes: %s", redlock_strerror(code));
        begin_close(worker);
    }
    redlock_worker_complete(call, code, NULL);
    return REDLOCK_OK;
}

static enum redlock_mailbox_put put(struct redlock_worker *worker, struct redlock_call *call) {
    assert(call->begin && !call->worker);
    call->worker = worker;
    call->sentence = redlock_call_failure().text;
    redlock_eventcount_add(&worker->eventcount, &call->sleeper);
    return redlock_mailbox_put(&worker->mailbox, &call->item);
}

int redlock_worker_perform(struct redlock_worker *worker, struct redlock_call *call) {
    const enum redlock_mailbox_put given = put(worker, call);
    if (given == REDLOCK_MAILBOX_CLOSED) {
        call->code = REDLOCK_ERR_CLOSED;
    } else {
        if (redlock_drive_claim(&worker->drive)) {
            redlock_turn_drive(worker, call);
        } else if (given == REDLOCK_MAILBOX_WAKE) {
            redlock_poll_wake(worker->poll);
        }
        redlock_eventcount_sleep(&worker->eventcount, &call->sleeper);
    }
    redlock_eventcount_remove(&worker->eventcount, &call->sleeper);
    assert(!redlock_list_is_in(&call->entry));
    return call->code;
}

/* This thread blocks the application's signals, but not those that its own faults raise. */
static int create_thread(struct redlock_worker *worker) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(&blocked, faults[i]);
    }
    int failed = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (failed) {
        return failed;
    }
    failed = pthread_create(&worker->thread, NULL, redlock_turn_run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* The manager and the thread must be gone, or not exist yet. */
static void destroy_loop(struct redlock_worker *worker) {
    const int code = redlock_poll_free(worker->poll);
    assert(code == REDLOCK_OK);
    (void)code;
    redlock_drive_destroy(&worker->drive);
}

static int create_loop(struct redlock_worker *worker, struct redlock_error_text *failure) {
    int failed = redlock_drive_init(&worker->drive);
    if (!failed) {
        worker->poll = redlock_poll_new_parted();
        if (worker->poll) {
            return REDLOCK_OK;
        }
        failed = errno;
        redlock_drive_destroy(&worker->drive);
    }
    return redlock_fail(failure, failed == ENOMEM ? REDLOCK_ERR_NO_MEMORY : REDLOCK_ERR_SYSTEM,
                        "cannot create an event loop: %s", strerror(failed));
}

/* Whether the program has callbacks for all that the client does, or answers that wait for a nap
 * would come too late. */
static bool is_for_thread(const redlock_manager_options *known) {
    return known->on_log || known->on_event || known->node_timeout_ms < SHARED_TIMEOUT_MS ||
           known->connect_timeout_ms < SHARED_TIMEOUT_MS;
}

int redlock_worker_open(const redlock_manager_options *options, const redlock_manager_options *known,
                        struct redlock_reentrant *reentrant, struct redlock_worker **worker,
                        struct redlock_error_text *failure) {
    struct starting *starting = calloc(1, sizeof *starting);
    if (!starting) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "cannot open a client: %s", strerror(ENOMEM));
    }
    struct redlock_worker *opened = &starting->worker;
    redlock_mailbox_init(&opened->mailbox);
    redlock_eventcount_init(&opened->eventcount);
    atomic_init(&opened->in_turn, true);
    atomic_init(&opened->cancelled, false);
    opened->tellers = is_for_thread(known);
    redlock_list_init(&opened->for_thread);
    redlock_list_init(&opened->cancellables);
    redlock_list_init(&opened->attached);
    redlock_list_init(&opened->completed);
    opened->reentrant = reentrant;
    int code = create_loop(opened, failure);
    if (code == REDLOCK_OK) {
        starting->start = (struct start_call){.call = {.begin = start_begins, .answers = true},
                                              .options = options,
                                              .connect_ms = known->connect_timeout_ms,
                                              .failure = {starting->text, sizeof starting->text}};
        (void)put(opened, &starting->start.call); /* nobody reads the mailbox yet */
        const int failed = create_thread(opened);
        if (!failed) {
            *worker = opened;
            return code;
        }
        code = redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot start the client's loop thread: %s", strerror(failed));
        redlock_eventcount_remove(&opened->eventcount, &starting->start.call.sleeper);
        destroy_loop(opened);
    }
    free(starting);
    return code;
}

int redlock_worker_wait(struct redlock_worker *worker, struct redlock_error_text *failure) {
    struct starting *starting = (struct starting *)worker;
    struct redlock_call *call = &starting->start.call;
    redlock_eventcount_sleep(&worker->eventcount, &call->sleeper);
    redlock_eventcount_remove(&worker->eventcount, &call->sleeper);
    const int code = call->code;
    if (code != REDLOCK_OK) {
        redlock_worker_join(worker);
        destroy_loop(worker);
        (void)redlock_fail(failure, code, "%s", starting->text);
        free(starting);
    }
    return code;
}

static int close_begins(struct redlock_call *call) {
    begin_close(call->worker);
    return REDLOCK_OK;
}

void redlock_worker_close(struct redlock_worker *worker) {
    struct redlock_call call = {.begin = close_begins};
    const int code = redlock_worker_perform(worker, &call);
    assert(code == REDLOCK_OK);
    (void)code;
}

void redlock_worker_join(struct redlock_worker *worker) {
    const int failed = pthread_join(worker->thread, NULL);
    assert(failed == 0);
    (void)failed;
}

void redlock_worker_free(struct redlock_worker *worker) {
    assert(!worker->manager && worker->closing);
    free_attached(worker);
    destroy_loop(worker);
    free(worker);
}

/* If the fork came in the middle of a turn, the lists of the manager and of the loop may be
 * half-changed: they stay as they are. */
void redlock_worker_abandon(struct redlock_worker *worker) {
    if (!atomic_load(&worker->in_turn)) {
        redlock_manager_abandon(worker->manager);
        destroy_loop(worker);
        free_attached(worker);
    }
    free(worker);
}

bool redlock_worker_is_current(const struct redlock_worker *worker) {
    return pthread_equal(pthread_self(), worker->thread) != 0;
}

redlock_manager *redlock_worker_manager(const struct redlock_worker *worker) {
    return worker->manager;
}

void redlock_worker_wake_cancelled(struct redlock_worker *worker) {
    atomic_store(&worker->cancelled, true);
    redlock_poll_wake(worker->poll);
}
