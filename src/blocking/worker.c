/* A worker: the start, the turns and the end of its thread, and how calls reach it and return. */
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "blocking/worker.h"

struct redlock_worker {
    struct redlock_mailbox mailbox;
    struct redlock_eventcount eventcount; /* wakes the callers of completed calls */
    struct redlock_reentrant *reentrant;  /* the client's */
    pthread_t thread;
    struct ev_loop *loop;
    ev_async wake;
    ev_prepare drain;
    atomic_bool cancelled; /* on_wake() must look for calls that are cancelled */
    atomic_bool in_turn;   /* during a turn, a fork would copy half-changed data */
    /* Only the loop thread uses these: */
    redlock_manager *manager; /* NULL before the start and after the close */
    bool closing;
    struct redlock_list cancellables, attached;
    struct redlock_list completed; /* their callers are woken before the loop polls */
};

void redlock_worker_complete(struct redlock_call *call, int code, const redlock_result *result) {
    assert(call->worker);
    call->code = code;
    if (call->result != NULL && result != NULL) {
        *call->result = redlock_result_copy(result);
    }
    if (redlock_list_is_in(&call->entry)) {
        redlock_list_remove(&call->entry);
    }
    redlock_list_append(&call->worker->completed, &call->entry);
}

void redlock_worker_answer(const redlock_result *result, void *data) {
    struct redlock_call *call = data;
    assert(!call->acquired);
    call->acquired = redlock_result_lease(result);
    redlock_worker_complete(call, redlock_result_code(result), result);
}

/* Wakes the callers of completed calls and returns their number. A finished call belongs to its
 * caller again, whose stack may be gone. */
static unsigned wake_callers(struct redlock_worker *worker) {
    struct redlock_list_entry *first;
    unsigned woken = 0;
    for (; (first = redlock_list_pop(&worker->completed)); woken++) {
        struct redlock_call *call = REDLOCK_CONTAINER(first, struct redlock_call, entry);
        redlock_eventcount_finish(&worker->eventcount, &call->sleeper);
    }
    redlock_eventcount_notify(&worker->eventcount);
    return woken;
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

/* Completes the call, unless its answer will. */
static void begin(struct redlock_worker *worker, struct redlock_call *call) {
    int code = worker->closing ? REDLOCK_ERR_CLOSED : REDLOCK_OK;
    assert(call->worker == worker);
    if (code == REDLOCK_OK && redlock_cancellable_is_cancelled(&call->cancellable)) {
        code = redlock_call_refuse(call, REDLOCK_ERR_CANCELLED, NULL);
    }
    if (code == REDLOCK_OK) {
        code = call->begin(call);
        call->refused = code != REDLOCK_OK;
    }
    if (call->refused) {
        (void)redlock_call_refuse(call, code, call->reason ? call->reason : redlock_manager_invalid(worker->manager));
    }
    if (code != REDLOCK_OK || !call->answers) {
        redlock_worker_complete(call, code, NULL);
    } else if (call->cancellable.cancel != NULL) {
        assert(call->stop);
        redlock_list_prepend(&worker->cancellables, &call->entry);
    }
}

static void perform(struct redlock_worker *worker, struct redlock_mailbox_item *item) {
    while (item) {
        struct redlock_mailbox_item *next = item->next;
        begin(worker, (struct redlock_call *)item);
        item = next;
    }
}

/* No callback runs inside stop(), so no call is unlisted meanwhile. */
static void stop_cancelled(const struct redlock_worker *worker) {
    REDLOCK_LIST_EACH(at, &worker->cancellables) {
        struct redlock_call *call = REDLOCK_CONTAINER(at, struct redlock_call, entry);
        if (redlock_cancellable_is_cancelled(&call->cancellable)) {
            call->stop(call);
        }
    }
}

/* It ends the poll: on_prepare() empties the mailbox before the next one. Only cancellations are
 * taken here. */
static void on_wake(struct ev_loop *loop, ev_async *wake, int events) {
    struct redlock_worker *worker = wake->data;
    (void)loop, (void)events;
    if (atomic_exchange(&worker->cancelled, false)) {
        stop_cancelled(worker);
        redlock_reentrant_wake(worker->reentrant);
    }
}

/*
 * Calls that came during this turn are queued with the other requests of the turn: one write for
 * each node (R6). If several callers were just woken, they get the processor for a moment, so that
 * the same writes carry their next calls too.
 */
static void on_prepare(struct ev_loop *loop, ev_prepare *drain, int events) {
    struct redlock_worker *worker = drain->data;
    (void)loop, (void)events;
    if (wake_callers(worker) > 1) {
        (void)sched_yield();
    }
    perform(worker, redlock_mailbox_take(&worker->mailbox));
}

/* Runs last before the poll: wakes the callers of calls that on_prepare() and the flush
 * completed. */
static void before_poll(struct ev_loop *loop) {
    struct redlock_worker *worker = ev_userdata(loop);
    (void)wake_callers(worker);
    assert(redlock_list_is_empty(&worker->completed));
    if (!redlock_mailbox_sleep(&worker->mailbox)) {
        ev_async_send(loop, &worker->wake);
    }
    atomic_store(&worker->in_turn, false);
}

static void after_poll(struct ev_loop *loop) {
    struct redlock_worker *worker = ev_userdata(loop);
    atomic_store(&worker->in_turn, true);
    redlock_mailbox_awake(&worker->mailbox);
}

static void on_closed(void *data) {
    struct redlock_worker *worker = data;
    assert(worker->closing && redlock_list_is_empty(&worker->cancellables));
    worker->manager = NULL;
    ev_break(worker->loop, EVBREAK_ALL);
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
    struct redlock_error_text *failure;
};

/* A node that is down is no error here. The votes on each lock show it. */
static void on_connected(const redlock_result *result, void *data) {
    (void)result;
    redlock_worker_complete(data, REDLOCK_OK, NULL);
}

static int start_begins(struct redlock_call *call) {
    const struct start_call *start = (struct start_call *)call;
    const redlock_manager_options *options = start->options;
    struct redlock_error_text *failure = start->failure;
    struct redlock_worker *worker = call->worker;
    assert(!worker->manager && call->answers);
    int code = redlock_manager_create(worker->loop, options, &worker->manager, failure->text, failure->size);
    if (code == REDLOCK_OK) {
        code = redlock_manager_connect(worker->manager, options->connect_timeout_ms, on_connected, call);
        if (code == REDLOCK_OK) {
            return code;
        }
        (void)redlock_fail(failure, code, "cannot wait for the nodes: %s", redlock_strerror(code));
        begin_close(worker);
    }
    redlock_worker_complete(call, code, NULL);
    return REDLOCK_OK;
}

static void *run(void *data) {
    struct redlock_worker *worker = data;
    perform(worker, redlock_mailbox_take(&worker->mailbox));
    if (worker->manager) {
        ev_run(worker->loop, 0);
    }
    assert(!worker->manager);
    perform(worker, redlock_mailbox_close(&worker->mailbox));
    (void)wake_callers(worker);
    return NULL;
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
    if (given == REDLOCK_MAILBOX_WAKE) {
        ev_async_send(worker->loop, &worker->wake);
    }
    if (given == REDLOCK_MAILBOX_CLOSED) {
        call->code = REDLOCK_ERR_CLOSED;
    } else {
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
    failed = pthread_create(&worker->thread, NULL, run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* Starts the thread, whose first call is the start, and waits for that. */
static int start_thread(struct redlock_worker *worker, const redlock_manager_options *options,
                        struct redlock_error_text *failure) {
    struct start_call start = {
        .call = {.begin = start_begins, .answers = true}, .options = options, .failure = failure};
    (void)put(worker, &start.call); /* nobody reads the mailbox yet */
    const int failed = create_thread(worker);
    if (failed) {
        start.call.code =
            redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot start the client's loop thread: %s", strerror(failed));
    } else {
        redlock_eventcount_sleep(&worker->eventcount, &start.call.sleeper);
        if (start.call.code != REDLOCK_OK) {
            pthread_join(worker->thread, NULL);
        }
    }
    redlock_eventcount_remove(&worker->eventcount, &start.call.sleeper);
    return start.call.code;
}

/* The manager and the thread must be gone, or not exist yet. */
static void destroy_loop(struct redlock_worker *worker) {
    ev_prepare_stop(worker->loop, &worker->drain);
    ev_async_stop(worker->loop, &worker->wake);
    ev_loop_destroy(worker->loop);
}

static int create_loop(struct redlock_worker *worker, struct redlock_error_text *failure) {
    errno = 0;
    /* ev_async_start() ends the program if there is no descriptor for it, so keep one. */
    const int reserve = eventfd(0, EFD_CLOEXEC);
    worker->loop = reserve < 0 ? NULL : ev_loop_new(EVFLAG_AUTO);
    if (!worker->loop) {
        (void)redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot create an event loop: %s", strerror(errno));
        (void)close(reserve);
        return REDLOCK_ERR_SYSTEM;
    }
    ev_async_init(&worker->wake, on_wake);
    worker->wake.data = worker;
    ev_prepare_init(&worker->drain, on_prepare);
    worker->drain.data = worker;
    ev_set_userdata(worker->loop, worker);
    ev_set_loop_release_cb(worker->loop, before_poll, after_poll);
    (void)close(reserve);
    ev_async_start(worker->loop, &worker->wake);
    ev_prepare_start(worker->loop, &worker->drain);
    return REDLOCK_OK;
}

int redlock_worker_open(const redlock_manager_options *options, struct redlock_reentrant *reentrant,
                        struct redlock_worker **worker, struct redlock_error_text *failure) {
    struct redlock_worker *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "cannot open a client: %s", strerror(ENOMEM));
    }
    redlock_mailbox_init(&opened->mailbox);
    redlock_eventcount_init(&opened->eventcount);
    atomic_init(&opened->in_turn, true);
    atomic_init(&opened->cancelled, false);
    redlock_list_init(&opened->cancellables);
    redlock_list_init(&opened->attached);
    redlock_list_init(&opened->completed);
    opened->reentrant = reentrant;
    int code = create_loop(opened, failure);
    if (code == REDLOCK_OK) {
        code = start_thread(opened, options, failure);
        if (code == REDLOCK_OK) {
            *worker = opened;
            return code;
        }
        destroy_loop(opened);
    }
    free(opened);
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
    const int failed = pthread_join(worker->thread, NULL);
    assert(failed == 0);
    (void)code, (void)failed;
}

void redlock_worker_free(struct redlock_worker *worker) {
    assert(!worker->manager && worker->closing);
    free_attached(worker);
    destroy_loop(worker);
    free(worker);
}

/* If the fork came in the middle of a turn, the lists of the manager and of libev may be
 * half-changed: they stay as they are. */
void redlock_worker_abandon(struct redlock_worker *worker) {
    if (!atomic_load(&worker->in_turn)) {
        redlock_manager_abandon(worker->manager);
        ev_loop_destroy(worker->loop);
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
    ev_async_send(worker->loop, &worker->wake);
}
