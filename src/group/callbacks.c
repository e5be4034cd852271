/* What the owner of a lease is told: results of its requests, and its loss. */
#include "group/state.h"
#include "result/result.h"

#define LOSS_SIZE 1024 /* 31 nodes may have something to say; what does not fit is cut */

/* The votes of an acquire say nothing of a loss that came later, but for those that a clock made void. */
static void silence(struct redlock_result *result) {
    for (unsigned i = 0; i < result->count; i++) {
        result->votes[i].error = "";
        result->votes[i].latency_us = -1;
        result->votes[i].kind = REDLOCK_VOTE_ABSTAINED;
    }
}

/* The votes of the last round. */
static void fill_result(const struct redlock_lease *lease, struct redlock_result *result) {
    const redlock_manager *manager = lease->manager;
    const unsigned count = manager->node_count;
    result->resource = redlock_lease_resource(lease);
    result->ttl_ms = lease->core.plan.ttl_ms;
    result->cap_ms = lease->core.plan.auto_extend_max_ms;
    result->count = count;
    for (unsigned i = 0; i < count; i++) {
        const struct redlock_detail *detail = &lease->details[i];
        result->votes[i] = (struct redlock_result_vote){.node = manager->node_names[i],
                                                        .error = redlock_text_string(detail->text),
                                                        .holder = "",
                                                        .latency_us = detail->latency_us,
                                                        .holder_ttl_ms = -1,
                                                        .kind = (redlock_vote_kind)detail->kind};
    }
    if (result->loss != REDLOCK_LOSS_NONE && result->loss != REDLOCK_LOSS_CLOCK &&
        lease->core.operation == REDLOCK_OP_ACQUIRE) {
        silence(result);
    }
}

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
    fill_result(lease, &result);
    if (of == REDLOCK_RESULT_EXTEND) {
        result.ttl_ms = lease->extend_ttl_ms;
    }
    /* What cb asks of this lease may begin a round that drops the texts which cb still reads. */
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

void redlock_lease_loss_text(const struct redlock_lease *lease, char *buffer, size_t size) {
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.loss = (enum redlock_loss)lease->loss, .votes = votes};
    fill_result(lease, &result);
    redlock_message_loss(&result, buffer, size);
}

static void count_acquired(redlock_manager *manager, int code) {
    redlock_statistics *statistics = &manager->statistics;
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

static void tell_acquired(struct redlock_lease *lease) {
    const redlock_callback cb = lease->cb;
    count_acquired(lease->manager, lease->acquired_code);
    lease->cb = NULL;
    if (lease->acquired_code != REDLOCK_OK) {
        lease->handle_ended = true;
    }
    run_callback(lease, REDLOCK_RESULT_ACQUIRE, lease->acquired_code, cb, lease->data);
}

static void tell_extended(struct redlock_lease *lease) {
    const redlock_callback cb = lease->extend_cb;
    lease->extend_pending = false;
    lease->extend_cb = NULL;
    lease->manager->statistics.requests_pending--;
    if (cb) {
        run_callback(lease, REDLOCK_RESULT_EXTEND, lease->extended_code, cb, lease->extend_data);
    }
}

static void tell_lost(struct redlock_lease *lease) {
    char reason[LOSS_SIZE];
    if (lease->lost_cb && !lease->handle_ended) {
        redlock_lease_loss_text(lease, reason, sizeof reason);
        lease->lost_cb(lease, reason, lease->lost_data);
    }
}

static void tell_released(struct redlock_lease *lease) {
    const redlock_callback cb = lease->cb;
    lease->cb = NULL;
    if (lease->release_pending) {
        lease->release_pending = false;
        lease->manager->statistics.requests_pending--;
    }
    if (cb) {
        run_callback(lease, REDLOCK_RESULT_RELEASE, lease->released_code, cb, lease->data);
    }
}

void redlock_lease_tell(struct redlock_lease *lease) {
    /* What a callback adds is queued again, for the next turn: a caller that asks anew and fails at once must not loop here. */
    const unsigned tell = lease->tell;
    lease->tell = 0;
    lease->telling = true;
    if (tell & REDLOCK_TELL_ACQUIRED) {
        tell_acquired(lease);
    }
    if (tell & REDLOCK_TELL_EXTENDED) {
        tell_extended(lease);
    }
    if (tell & REDLOCK_TELL_LOST) {
        tell_lost(lease);
    }
    if (tell & REDLOCK_TELL_RELEASED) {
        tell_released(lease);
    }
    lease->telling = false;
    redlock_lease_free_if_over(lease);
}
