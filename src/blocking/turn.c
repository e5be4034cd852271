/* The turns of a worker's loop: those of its thread, and those of a caller that drives. */
#include "blocking/turn.h"

#include <assert.h>
#include <sched.h>

#include "core/time.h"

/* The thread goes on driving while calls overlap: until this many in a row have found no other, or
 * none has come for this long. To pass the drive on costs more than such a call. */
#define LONE_CALLS 8
#define CROWDED_MS 1

void redlock_turn_complete(struct redlock_call *call, int code, const redlock_result *result) {
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
        redlock_turn_complete(call, code, NULL);
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

/* Returns whether it has looked at the loop. */
static bool turn(struct redlock_worker *worker, int timeout_ms) {
    settle(worker);
    if (!worker->manager || (worker->own && is_driven(worker))) {
        return false;
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
    return true;
}

/* The caller that drives stops. What is under way needs the thread. */
static void exit_drive(struct redlock_worker *worker, bool looked) {
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
        redlock_drive_exit(&worker->drive, looked);
        if (redlock_mailbox_is_empty(&worker->mailbox) || !redlock_drive_claim(&worker->drive)) {
            return;
        }
        atomic_store(&worker->in_turn, true);
        worker->own = own;
    }
}

void redlock_turn_drive(struct redlock_worker *worker, const struct redlock_call *call) {
    atomic_store(&worker->in_turn, true);
    worker->own = call;
    bool looked = false, blind = redlock_drive_is_blind(&worker->drive);
    const int64_t until_ns = blind ? redlock_loop_now_ns(NULL) + REDLOCK_DRIVE_NAP_MS * REDLOCK_NS_PER_MS : 0;
    do {
        looked |= turn(worker, blind ? REDLOCK_DRIVE_NAP_MS : -1);
        if (blind && !is_driven(worker) && redlock_loop_now_ns(NULL) >= until_ns) {
            redlock_drive_end_blind(&worker->drive);
            blind = false;
        }
    } while (!is_driven(worker) && !redlock_drive_is_wanted(&worker->drive));
    exit_drive(worker, looked);
}

/* The thread has nothing to do. `watches`: it has looked at the loop until a turn was quiet.
 * Returns when it drives again, and whether it must look: others may have driven, and calls that
 * are done at once do not look. */
static bool rest(struct redlock_worker *worker, bool watches) {
    const bool is_empty = redlock_mailbox_is_empty(&worker->mailbox);
    settle(worker);
    if (has_work(worker)) {
        return false;
    }
    atomic_store(&worker->in_turn, false);
    redlock_drive_rest(&worker->drive, watches && is_empty);
    if (redlock_mailbox_is_empty(&worker->mailbox) || !redlock_drive_resume(&worker->drive)) {
        while (!redlock_drive_sleep(&worker->drive, redlock_poll_fd(worker->poll))) {
            redlock_poll_wake(worker->poll);
        }
    }
    atomic_store(&worker->in_turn, true);
    return true;
}

void *redlock_turn_run(void *data) {
    struct redlock_worker *worker = data;
    bool looks = false;
    perform(worker, redlock_mailbox_take(&worker->mailbox));
    while (worker->manager) {
        if (has_work(worker)) {
            (void)turn(worker, -1);
            looks = false;
        } else if (worker->lone < LONE_CALLS) {
            (void)turn(worker, CROWDED_MS);
            worker->lone = worker->quiet ? LONE_CALLS : worker->lone;
            looks = false;
        } else if (looks && !worker->quiet) {
            (void)turn(worker, 0);
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
