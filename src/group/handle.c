/* The memory of a lease, its votes as a result shows them, and how it was lost. */
#include "group/handle.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/holder.h"

/* With what nodes gave; the target behind it is aligned to 2. */
static size_t permits_size(const struct redlock_group *group, unsigned permits) {
    return permits == 0 ? 0 : sizeof(struct redlock_permits) + group->node_count * permits * sizeof(uint16_t);
}

struct redlock_lease *redlock_handle_new(struct redlock_group *group, const char *resource, size_t key_size,
                                         size_t token_size, bool may_queue, const redlock_acquire_options *options) {
    const size_t details_size = group->node_count * sizeof(struct redlock_result_vote);
    const size_t expiring_size = options->on_expiring ? sizeof(struct redlock_expiring) : 0;
    const size_t trace_size = options->trace ? sizeof options->trace : 0;
    const size_t details_and_more_size = details_size + expiring_size + trace_size;
    const size_t waiting_size = may_queue ? sizeof(struct redlock_waiting) + sizeof(struct redlock_grants) +
                                                group->node_count * sizeof(struct redlock_grants_node)
                                          : permits_size(group, options->permits);
    const size_t zeroed = sizeof(struct redlock_lease) + details_and_more_size + waiting_size;
    const size_t target_size = redlock_target_size(key_size) + redlock_target_slots_size(options->permits);
    struct redlock_lease *lease =
        redlock_requester_new(group, REDLOCK_REQUESTER_LEASE, zeroed + target_size + token_size + 1, zeroed);
    if (!lease) {
        return NULL;
    }
    lease->group = group;
    char *room = (char *)(lease->details + group->node_count);
    if (options->on_expiring) {
        lease->has_expiring = true;
        *redlock_handle_expiring(lease) =
            (struct redlock_expiring){.cb = options->on_expiring, .data = options->expiring_data};
        room += expiring_size;
    }
    if (options->trace) {
        lease->is_traced = true;
        *(void **)(void *)room = options->trace;
        room += trace_size;
    }
    if (may_queue) {
        lease->waiting = (struct redlock_waiting *)(void *)room;
    }
    room += waiting_size;
    lease->target = redlock_group_target(group, resource, key_size, room);
    if (options->permits > 0) {
        redlock_target_add_slots(lease->target, options->permits, options->limit);
    }
    *redlock_handle_own_token(lease) = '\0';
    return lease;
}

size_t redlock_handle_slots(const struct redlock_lease *lease, uint32_t *slots, size_t room) {
    const struct redlock_slots *own = lease->target->has_slots ? redlock_target_slots(lease->target) : NULL;
    const size_t count = own && own->taken ? own->permits : 0;
    for (size_t i = 0; i < count && i < room; i++) {
        slots[i] = own->numbers[i];
    }
    return count;
}

/* The votes of an acquire say nothing about a deadline that passed later. */
static void silence(struct redlock_result *result) {
    for (unsigned i = 0; i < result->count; i++) {
        result->votes[i].text = NULL;
        result->votes[i].latency_us = -1;
        result->votes[i].kind = REDLOCK_VOTE_ABSTAINED;
    }
}

void redlock_handle_fill_result(const struct redlock_lease *lease, struct redlock_result *result) {
    const struct redlock_group *group = lease->group;
    const unsigned count = group->node_count;
    result->resource = redlock_handle_resource(lease);
    result->ttl_ms = lease->core.plan.ttl_ms;
    result->cap_ms = lease->core.plan.auto_extend_max_ms;
    result->quorum = group->quorum;
    result->count = count;
    result->nodes = group->node_names;
    for (unsigned i = 0; i < count; i++) {
        result->votes[i] = lease->details[i];
    }
    if ((result->loss == REDLOCK_LOSS_DEADLINE || result->loss == REDLOCK_LOSS_CAP) &&
        lease->core.operation == REDLOCK_OP_ACQUIRE) {
        silence(result);
    }
}

/* No vote that is pending in a round that was not won came in time. */
static void end_pending(const struct redlock_lease *lease, struct redlock_result *result) {
    const bool won = redlock_round_outcome(&lease->core.votes) == REDLOCK_ROUND_WON;
    for (unsigned i = 0; i < result->count && !won && lease->core.operation == REDLOCK_OP_EXTEND; i++) {
        if (result->votes[i].kind == REDLOCK_VOTE_PENDING) {
            result->votes[i].kind = REDLOCK_VOTE_UNKNOWN;
        }
    }
}

void redlock_handle_loss_text(const struct redlock_lease *lease, char *buffer, size_t size) {
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.loss = (enum redlock_loss)lease->loss, .votes = votes};
    redlock_handle_fill_result(lease, &result);
    if (lease->loss == REDLOCK_LOSS_DEADLINE) {
        end_pending(lease, &result);
    }
    redlock_message_loss(&result, buffer, size);
}

void redlock_handle_round_text(const struct redlock_lease *lease, int code, char *buffer, size_t size) {
    assert(code != REDLOCK_OK && lease->core.operation == REDLOCK_OP_EXTEND);
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.of = REDLOCK_RESULT_EXTEND, .code = code, .votes = votes};
    redlock_handle_fill_result(lease, &result);
    redlock_message_votes(&result, buffer, size);
}

/* A waiter's token begins with its ticket. Before the mark, the ticket of a first try was 0. */
static enum redlock_grants_holder holder_of(const struct redlock_lease *lease, const char *token, size_t size) {
    static const char first_try[REDLOCK_TICKET_DIGITS + 1] = "0000000000000000";
    const size_t digits = REDLOCK_TICKET_DIGITS + REDLOCK_TOKEN_DIGITS;
    if (!token) {
        return REDLOCK_HOLDER_NONE;
    }
    if (redlock_holder_is_try(token, size)) {
        return REDLOCK_HOLDER_DIRECT;
    }
    if (!redlock_holder_has_ticket(token, size)) {
        return REDLOCK_HOLDER_STRANGER;
    }
    if (memcmp(token, first_try, REDLOCK_TICKET_DIGITS) == 0) {
        return REDLOCK_HOLDER_DIRECT;
    }
    return memcmp(token, redlock_handle_own_token(lease), digits) < 0 ? REDLOCK_HOLDER_EARLIER : REDLOCK_HOLDER_LATER;
}

struct redlock_grants_view redlock_handle_view(const struct redlock_lease *lease, const struct redlock_answer *answer) {
    assert(lease->waiting); /* its token begins with a ticket */
    return (struct redlock_grants_view){
        .holder = answer->ahead ? REDLOCK_HOLDER_AHEAD : holder_of(lease, answer->holder, answer->holder_size),
        .holder_id = answer->holder ? redlock_hash(answer->holder, answer->holder_size) : 0,
        .pttl_ms = answer->holder_ttl_ms,
        .rank = answer->rank};
}
