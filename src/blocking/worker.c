/* A worker: the start, the turns and the end of its loop, who makes the turns, and how calls reach
 * it and return. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocking/drive.h"
#include "blocking/worker.h"
#include "loop/loop.h"

/* The thread goes on driving while calls overlap: until this many in a row have found no other, or
 * none has come for this long. To pass the drive on costs more than such a call. */
#define LONE_CALLS 8
#define CROWDED_MS 1

/* With a shorter node timeout, the thread alone drives. */
#define SHARED_TIMEOUT_MS 10

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

void redlock_worker_complete(struct redlock_call *call, int code, const redlock_result *result) {
    struct redlock_worker *worker = call->worker;
    assert(!call->done && worker->open > 0);
    call->code = code;
    call->done = true;
    worker->open--;
    if (call->tells && !call->acquired) {
        assert(worker->tellers > 0);
        worker->tellers--;
    }
    if (call->result != NULL && result != NULL) {
        *call->result = redlock_result_copy(result);
    }
    if (redlock_list_is_in(&call->entry)) {
        redlock_list_remove(&call->entry);
    }
    redlock_list_append(&worker->completed, &call->entry);
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
    worker->tellers += call->tells;
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

/* On the thread. */
static void begin_for_thread(struct redlock_worker *worker) {
    struct redlock_list_entry *first;
    assert(!worker->own);
    while ((first = redlock_list_pop(&worker->for_thread))) {
        begin(worker, REDLOCK_CONTAINER(first, struct redlock_call, entry));
    }
}

static void perform(struct redlock_worker *worker, struct redlock_mailbox_item *item) {
    while (item) {
        struct redlock_mailbox_item *next = item->next;
        struct redlock_call *call = (struct redlock_call *)item;
        worker->open++;
        worker->lone = worker->open > 1 ? 0 : worker->lone + 1;
        if (call->tells && worker->own) {
            redlock_list_append(&worker->for_thread, &call->entry);
        } else {
            begin(worker, call);
        }
        item = next;
    }
}

/* Callbacks of the program run on the thread only, so a caller does not drive where one may. */
static bool only_thread_drives(const struct redlock_worker *worker) {
    return worker->tellers > 0 || worker->closing || !redlock_list_is_empty(&worker->for_thread);
}

static bool has_work(const struct redlock_worker *worker) {
    return worker->open > 0 || only_thread_drives(worker);
}

/*
 * What a turn does before it waits. Calls that came during the last turn are queued with its other
 * requests: one write for each node (R6). Callers are woken before that, so that what they ask next
 * goes out with it, and once more for what the flush has completed.
 */
static void settle(struct redlock_worker *worker) {
    /* If several were just woken, they get the processor for a moment, so that the same writes
     * carry their next calls too. */
    if (wake_callers(worker) > 1) {
        (void)sched_yield();
    }
    if (!worker->own) {
        begin_for_thread(worker);
    }
    perform(worker, redlock_mailbox_take(&worker->mailbox));
    redlock_poll_flush(worker->poll);
    (void)wake_callers(worker);
    assert(redlock_list_is_empty(&worker->completed));
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

/* Whether the caller that drives is done with that. */
static bool is_driven(const struct redlock_worker *worker) {
    return worker->own->done || only_thread_drives(worker);
}

static void turn(struct redlock_worker *worker, int timeout_ms) {
    settle(worker);
    if (!worker->manager || (worker->own && is_driven(worker))) {
        return;
    }
    if (!redlock_mailbox_sleep(&worker->mailbox)) {
        timeout_ms = 0;
    }
    atomic_store(&worker->in_turn, false);
    worker->quiet = redlock_poll_wait(worker->poll, timeout_ms) == 0;
    atomic_store(&worker->in_turn, true);
    redlock_mailbox_awake(&worker->mailbox);
    if (atomic_load(&worker->cancelled) && atomic_exchange(&worker->cancelled, false)) {
        stop_cancelled(worker);
        redlock_reentrant_wake(worker->reentrant);
    }
    redlock_poll_report(worker->poll);
}

/* The caller that drives stops. What is under way needs the thread. */
static void exit_drive(struct redlock_worker *worker) {
    const struct redlock_call *own = worker->own;
    for (bool again = false;; again = true) {
        settle(worker);
        const bool passes = again || has_work(worker);
        worker->own = NULL;
        atomic_store(&worker->in_turn, false);
        if (passes) {
            redlock_drive_pass(&worker->drive);
            return;
        }
        redlock_drive_exit(&worker->drive);
        if (redlock_mailbox_is_empty(&worker->mailbox) || !redlock_drive_claim(&worker->drive)) {
            return;
        }
        atomic_store(&worker->in_turn, true);
        worker->own = own;
    }
}

/* Drives until the call is done, or until only the thread may drive. */
static void drive(struct redlock_worker *worker, const struct redlock_call *call) {
    atomic_store(&worker->in_turn, true);
    worker->own = call;
    do {
        turn(worker, -1);
    } while (!is_driven(worker));
    exit_drive(worker);
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

/* The thread has nothing to do. `watches`: it has looked at the loop until a turn was quiet.
 * Returns when it drives again, and whether it must look. */
static bool rest(struct redlock_worker *worker, bool watches) {
    const bool is_empty = redlock_mailbox_is_empty(&worker->mailbox);
    settle(worker);
    if (has_work(worker)) {
        return false;
    }
    atomic_store(&worker->in_turn, false);
    redlock_drive_rest(&worker->drive, watches && is_empty);
    const bool resumes = !redlock_mailbox_is_empty(&worker->mailbox) && redlock_drive_resume(&worker->drive);
    const bool looks = !resumes && redlock_drive_sleep(&worker->drive, redlock_poll_fd(worker->poll));
    atomic_store(&worker->in_turn, true);
    return looks;
}

static void *run(void *data) {
    struct redlock_worker *worker = data;
    bool looks = false;
    perform(worker, redlock_mailbox_take(&worker->mailbox));
    while (worker->manager) {
        if (has_work(worker)) {
            turn(worker, -1);
            looks = false;
        } else if (worker->lone < LONE_CALLS) {
            turn(worker, CROWDED_MS);
            worker->lone = worker->quiet ? LONE_CALLS : worker->lone;
            looks = false;
        } else if (looks && !worker->quiet) {
            turn(worker, 0);
        } else {
            looks = rest(worker, looks);
            worker->quiet = false;
        }
    }
    assert(!worker->manager);
    begin_for_thread(worker);
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
    if (given == REDLOCK_MAILBOX_CLOSED) {
        call->code = REDLOCK_ERR_CLOSED;
    } else {
        if (redlock_drive_claim(&worker->drive)) {
            drive(worker, call);
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
    failed = pthread_create(&worker->thread, NULL, run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* Starts the thread, whose first call is the start, and waits for that. */
static int start_thread(struct redlock_worker *worker, const redlock_manager_options *options, int64_t connect_ms,
                        struct redlock_error_text *failure) {
    struct start_call start = {.call = {.begin = start_begins, .answers = true},
                               .options = options,
                               .connect_ms = connect_ms,
                               .failure = failure};
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
static bool is_for_thread(const redlock_manager_options *options) {
    redlock_manager_options known = {.size = sizeof known};
    struct redlock_error_text none = {NULL, 0};
    return redlock_check_options(&none, "redlock_manager_options", &known, sizeof known, options) == REDLOCK_OK &&
           (known.on_log || known.on_event || known.node_timeout_ms < SHARED_TIMEOUT_MS);
}

int redlock_worker_open(const redlock_manager_options *options, int64_t connect_ms, struct redlock_reentrant *reentrant,
                        struct redlock_worker **worker, struct redlock_error_text *failure) {
    struct redlock_worker *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "cannot open a client: %s", strerror(ENOMEM));
    }
    redlock_mailbox_init(&opened->mailbox);
    redlock_eventcount_init(&opened->eventcount);
    atomic_init(&opened->in_turn, true);
    atomic_init(&opened->cancelled, false);
    opened->tellers = is_for_thread(options);
    redlock_list_init(&opened->for_thread);
    redlock_list_init(&opened->cancellables);
    redlock_list_init(&opened->attached);
    redlock_list_init(&opened->completed);
    opened->reentrant = reentrant;
    int code = create_loop(opened, failure);
    if (code == REDLOCK_OK) {
        code = start_thread(opened, options, connect_ms, failure);
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
