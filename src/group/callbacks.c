/* Calls the callbacks of a lease: the results of its requests, and its loss. */
#include "group/callbacks.h"

#include "group/driver.h"
#include "group/tell.h"
#include "result/result.h"

#define LOSS_SIZE 1024 /* the text of 31 nodes may be longer: then it is cut */

static void run_callback(const struct redlock_lease *lease, enum redlock_result_of of, int code, redlock_callback cb,
                         void *data) {
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.code = code,
                                    .of = of,
                                    .loss =
                                        code == REDLOCK_ERR_LOST ? (enum redlock_loss)lease->loss : REDLOCK_LOSS_NONE,
                                    .attempts = of == REDLOCK_RESULT_ACQUIRE ? lease->core.attempts : 1,
                                    .votes = votes};
    if (of == REDLOCK_RESULT_ACQUIRE && code == REDLOCK_OK) {
        result.lease = (struct redlock_lease *)(uintptr_t)lease;
    }
    if (of == REDLOCK_RESULT_ACQUIRE && lease->waiting) {
        result.passed_over = lease->core.queue->passed_over;
    }
    redlock_handle_fill_result(lease, &result);
    if (of == REDLOCK_RESULT_EXTEND) {
        result.ttl_ms = lease->extend_ttl_ms;
    }
    /* `cb` may start a new round of this lease, which drops the texts. Keep them until `cb` has
     * returned. */
    struct redlock_text *texts[REDLOCK_NODES_MAX];
    unsigned kept = 0;
    for (const struct redlock_detail *at = lease->details, *end = at + result.count; at < end; at++) {
        if (at->text) {
            texts[kept++] = redlock_text_keep(at->text);
        }
    }
    cb(&result, data);
    while (kept > 0) {
        redlock_text_drop(texts[--kept]);
    }
}

void redlock_callbacks_describe(const struct redlock_lease *lease, int code, redlock_callback cb, void *data) {
    run_callback(lease, REDLOCK_RESULT_ACQUIRE, code, cb, data);
}

static void count_acquired(struct redlock_group *group, int code) {
    redlock_statistics *statistics = &group->statistics;
    statistics->requests_pending--;
    switch (code) {
    case REDLOCK_OK:
        statistics->acquired++;
        break;
    case REDLOCK_ERR_CONTENDED:
        statistics->contended++;
        break;
    case REDLOCK_ERR_NO_QUORUM:
        statistics->no_quorum++;
        break;
    case REDLOCK_ERR_TOO_SLOW:
        statistics->too_slow++;
        break;
    default:
        statistics->cancelled++;
    }
}

static void call_acquired(struct redlock_lease *lease) {
    const redlock_callback cb = lease->cb;
    count_acquired(lease->group, lease->acquired_code);
    lease->cb = NULL;
    redlock_handle_become(lease, lease->acquired_code == REDLOCK_OK ? REDLOCK_LIFE_OUT : REDLOCK_LIFE_OVER);
    redlock_tell_acquire_ended(lease);
    run_callback(lease, REDLOCK_RESULT_ACQUIRE, lease->acquired_code, cb, lease->data);
}

static void call_extended(struct redlock_lease *lease) {
    const redlock_callback cb = lease->extend_cb;
    lease->extend_pending = false;
    lease->extend_cb = NULL;
    lease->group->statistics.requests_pending--;
    if (cb) {
        run_callback(lease, REDLOCK_RESULT_EXTEND, lease->extended_code, cb, lease->extend_data);
    }
}

/* Other callbacks may have run since it was decided (R1): one that ended the lease, or was slow. */
__attribute__((noinline, cold)) static void call_expiring(struct redlock_lease *lease) {
    const struct redlock_expiring *expiring = redlock_handle_expiring(lease);
    const int64_t remaining_ms = redlock_lease_validity_ms(lease);
    if (lease->life != REDLOCK_LIFE_OUT || remaining_ms == 0) {
        return;
    }
    lease->group->statistics.expiring++;
    redlock_tell_expiring(lease, remaining_ms);
    if (expiring) {
        expiring->cb(lease, remaining_ms, expiring->data);
    }
}

__attribute__((noinline, cold)) static void call_lost(struct redlock_lease *lease) {
    char reason[LOSS_SIZE];
    redlock_tell_lost(lease);
    if (lease->lost_cb && lease->life == REDLOCK_LIFE_OUT) {
        redlock_handle_loss_text(lease, reason, sizeof reason);
        lease->lost_cb(lease, reason, lease->lost_data);
    }
}

static void call_released(struct redlock_lease *lease) {
    const redlock_callback cb = lease->cb;
    lease->cb = NULL;
    lease->group->statistics.requests_pending -= lease->life == REDLOCK_LIFE_RELEASING;
    redlock_tell_released(lease);
    redlock_handle_become(lease, REDLOCK_LIFE_OVER);
    if (cb) {
        run_callback(lease, REDLOCK_RESULT_RELEASE, lease->released_code, cb, lease->data);
    }
}

void redlock_callbacks_run(struct redlock_lease *lease) {
    /* Callbacks that are added now run in the next turn. Else a caller that tries again and fails
     * at once would loop here. */
    const unsigned callbacks = lease->callbacks;
    lease->callbacks = 0;
    lease->in_callback = true;
    if (callbacks & REDLOCK_CALLBACK_ACQUIRED) {
        call_acquired(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_EXTENDED) {
        call_extended(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_EXPIRING) {
        call_expiring(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_LOST) {
        call_lost(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_RELEASED) {
        call_released(lease);
    }
    lease->in_callback = false;
    redlock_driver_free_if_over(lease);
}
