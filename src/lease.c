/* One lease's memory: steps its core, carries out the actions, takes its answers, tells its owner, and ends. */
#include "state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/planted.h"
#include "result.h"

#define LOSS_SIZE 1024 /* 31 nodes may have something to say; what does not fit is cut */

static const char *lease_key(const struct redlock_lease *lease) {
    return (const char *)(lease->details + lease->manager->node_count);
}

const char *redlock_lease_resource(const redlock_lease *lease) {
    return lease_key(lease) + lease->manager->key_prefix_size;
}

struct redlock_lease *redlock_lease_new(redlock_manager *manager, const char *resource, size_t key_size) {
    if (!redlock_schedule_reserve(&manager->schedule)) {
        return NULL;
    }
    struct redlock_lease *lease = malloc(sizeof *lease + manager->node_count * sizeof lease->details[0] + key_size + 1);
    if (!lease) {
        redlock_schedule_unreserve(&manager->schedule, &(struct redlock_due){0});
        return NULL;
    }
    memset(lease, 0, sizeof *lease + manager->node_count * sizeof lease->details[0]);
    lease->manager = manager;
    lease->key_size = (uint16_t)key_size;
    redlock_manager_write_key(manager, resource, key_size, (char *)(lease->details + manager->node_count));
    redlock_manager_own(&manager->leases, &lease->owner, REDLOCK_OWNER_LEASE);
    return lease;
}

void redlock_lease_free(struct redlock_lease *lease) {
    redlock_manager *manager = lease->manager;
    if (lease->owing && !manager->deleting) {
        /* What was asked in the release's own round and not confirmed stays the library's duty (R8). */
        redlock_owed_add(manager, lease_key(lease), lease->key_size, lease->token, lease->token_size, lease->owing,
                         lease->owing, lease->ttl_sent_max_ms);
    }
    for (unsigned i = 0; i < manager->node_count; i++) {
        redlock_text_drop(lease->details[i].text);
    }
    redlock_manager_disown(manager, &manager->leases, &lease->owner);
    free(lease);
}

static void free_if_over(struct redlock_lease *lease) {
    const bool over = lease->core.state == REDLOCK_LEASE_ENDED || lease->forgotten;
    if (over && lease->handle_ended && !lease->tell && !lease->telling && lease->owner.in_flight == 0) {
        assert(!lease->queued_to_tell);
        redlock_lease_free(lease);
    }
}

/* R10: a fresh token for every attempt, 128 bits from the kernel, printable. */
int redlock_lease_draw_token(struct redlock_lease *lease) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[REDLOCK_TOKEN_DIGITS / 2];
    const int code = lease->manager->env.random(lease->manager->env.ctx, bytes, sizeof bytes);
    if (code != REDLOCK_OK) {
        return code;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        lease->token[2 * i] = digits[bytes[i] >> 4];
        lease->token[2 * i + 1] = digits[bytes[i] & 15];
    }
    lease->token[REDLOCK_TOKEN_DIGITS] = '\0';
    lease->token_size = REDLOCK_TOKEN_DIGITS;
    lease->token_drawn = true;
    return REDLOCK_OK;
}

static void queue_to_tell(struct redlock_lease *lease, unsigned what) {
    redlock_manager *manager = lease->manager;
    lease->tell |= (uint8_t)what;
    if (lease->queued_to_tell) {
        return;
    }
    lease->queued_to_tell = true;
    lease->next_told = NULL;
    if (manager->told_last) {
        manager->told_last->next_told = lease;
    } else {
        manager->told_first = lease;
    }
    manager->told_last = lease;
}

static void begin_details(struct redlock_lease *lease, redlock_nodes asked) {
    for (unsigned i = 0; i < lease->manager->node_count; i++) {
        struct redlock_detail *detail = &lease->details[i];
        redlock_text_drop(detail->text);
        detail->text = NULL;
        detail->latency_us = -1;
        detail->kind = asked & REDLOCK_NODE(i) ? REDLOCK_VOTE_PENDING : REDLOCK_VOTE_ABSTAINED;
    }
}

static void refuse_details(struct redlock_lease *lease, redlock_nodes refused) {
    const struct redlock_env *env = &lease->manager->env;
    for (unsigned i = 0; i < lease->manager->node_count; i++) {
        if (refused & REDLOCK_NODE(i)) {
            lease->details[i].kind = REDLOCK_VOTE_FAILED;
            lease->details[i].text = redlock_text_keep(env->refusal(env->ctx, i));
        }
    }
}

static struct redlock_message message_of(const struct redlock_lease *lease) {
    return (struct redlock_message){.operation = lease->core.operation,
                                    .key = lease_key(lease),
                                    .key_size = lease->key_size,
                                    .token = lease->token,
                                    .token_size = lease->token_size,
                                    .ttl_ms = lease->core.round_ttl_ms,
                                    .now_ns = lease->core.start_ns,
                                    .round = lease->core.round};
}

/* Sends the core's round; returns the nodes that refused it. */
static redlock_nodes send_round(struct redlock_lease *lease, const struct redlock_actions *actions) {
    redlock_manager *manager = lease->manager;
    assert(actions->round == lease->core.round && actions->send == lease->core.operation);
    begin_details(lease, actions->send_nodes);
    switch (actions->send) {
    case REDLOCK_OP_ACQUIRE:
        manager->statistics.attempts++;
        lease->token_drawn = false;
        break;
    case REDLOCK_OP_EXTEND:
        manager->statistics.extends++;
        break;
    case REDLOCK_OP_RELEASE:
        lease->owing = actions->send_nodes;
        break;
    case REDLOCK_OP_FENCE:
        break;
    case REDLOCK_OP_HEAL:
    case REDLOCK_OP_TIME:
    case REDLOCK_OP_INSPECT:
    case REDLOCK_OP_NONE:
        assert(false && "not a lease's");
    }
    if (actions->send != REDLOCK_OP_RELEASE && lease->core.round_ttl_ms > lease->ttl_sent_max_ms) {
        lease->ttl_sent_max_ms = lease->core.round_ttl_ms;
    }
    struct redlock_message message = message_of(lease);
    const redlock_nodes taken = redlock_manager_send(manager, &lease->owner, actions->send_nodes, &message);
    if (REDLOCK_PLANTED(START_AFTER_SEND) && actions->send == REDLOCK_OP_ACQUIRE) {
        lease->core.start_ns = redlock_manager_now_ns(manager);
        lease->core.deadline_ns = redlock_deadline_ns(lease->core.start_ns, lease->core.round_ttl_ms);
    }
    refuse_details(lease, actions->send_nodes & ~taken);
    return actions->send_nodes & ~taken;
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

static void note_results(struct redlock_lease *lease, const struct redlock_actions *actions) {
    redlock_manager *manager = lease->manager;
    if (actions->acquired) {
        lease->acquired_code = (int8_t)actions->acquired_code;
        queue_to_tell(lease, REDLOCK_TELL_ACQUIRED);
    }
    if (actions->extended) {
        lease->extended_code = (int8_t)actions->extended_code;
        if (lease->extend_pending) {
            queue_to_tell(lease, REDLOCK_TELL_EXTENDED);
        }
    }
    if (actions->lost) {
        lease->loss = actions->lost_by_votes                  ? REDLOCK_LOSS_VOTES
                      : redlock_lease_is_capped(&lease->core) ? REDLOCK_LOSS_CAP
                                                              : REDLOCK_LOSS_DEADLINE;
        manager->statistics.lost++;
        queue_to_tell(lease, REDLOCK_TELL_LOST);
    }
    if (actions->released) {
        lease->released_code = (int8_t)actions->released_code;
        manager->statistics.released += actions->released_code == REDLOCK_OK;
        queue_to_tell(lease, REDLOCK_TELL_RELEASED);
    }
}

/* A renewal that fails tells nobody as long as the lease lives; the count does. */
static void count_extend(const struct redlock_lease *lease, enum redlock_lease_state before) {
    const enum redlock_lease_state after = lease->core.state;
    if (before != REDLOCK_LEASE_EXTENDING || after == REDLOCK_LEASE_EXTENDING || after == REDLOCK_LEASE_RELEASING) {
        return;
    }
    const bool won = after == REDLOCK_LEASE_HELD && redlock_round_outcome(&lease->core.votes) == REDLOCK_ROUND_WON;
    lease->manager->statistics.extends_failed += !won;
}

static void publish(struct redlock_lease *lease) {
    redlock_manager *manager = lease->manager;
    const int64_t until_ns = redlock_lease_held_until_ns(&lease->core);
    if (until_ns != atomic_load_explicit(&lease->held_until_ns, memory_order_relaxed)) {
        atomic_store_explicit(&lease->held_until_ns, until_ns, memory_order_release);
    }
    const bool held = until_ns != 0;
    if (held != lease->counted_held) {
        manager->statistics.leases_held += held ? 1u : (uint64_t)-1;
        lease->counted_held = held;
    }
    redlock_schedule_set(&manager->schedule, &lease->owner.due, redlock_lease_next_ns(&lease->core));
}

void redlock_lease_feed(struct redlock_lease *lease, const struct redlock_event *event) {
    struct redlock_actions actions;
    const enum redlock_lease_state before = lease->core.state;
    redlock_lease_step(&lease->core, event, &actions);
    if (event->type == REDLOCK_EVENT_VOTE && lease->core.state == before) {
        return; /* most votes decide nothing, and then nothing is to do and nothing is due at another time */
    }
    count_extend(lease, before);
    if (actions.cleanup) {
        redlock_owed_add(lease->manager, lease_key(lease), lease->key_size, lease->token, lease->token_size,
                         actions.cleanup, lease->core.votes.unknown | redlock_round_pending(&lease->core.votes),
                         lease->ttl_sent_max_ms);
    }
    redlock_nodes refused = 0;
    int random_code = REDLOCK_OK;
    if (actions.send != REDLOCK_OP_NONE) {
        if (actions.send == REDLOCK_OP_ACQUIRE && !lease->token_drawn && !REDLOCK_PLANTED(TOKEN_REUSED)) {
            random_code = redlock_lease_draw_token(lease);
        }
        refused = random_code == REDLOCK_OK ? send_round(lease, &actions) : 0;
    }
    note_results(lease, &actions);
    redlock_journal_step(lease, before, &actions, event->now_ns);
    if (random_code != REDLOCK_OK) {
        /* No token, no attempt: nothing was sent, so there is nothing to clean up. */
        redlock_lease_step(
            &lease->core,
            &(struct redlock_event){.type = REDLOCK_EVENT_CANCEL, .now_ns = event->now_ns, .code = random_code},
            &actions);
        note_results(lease, &actions);
    }
    if (refused) {
        redlock_lease_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_REFUSED,
                                                          .now_ns = event->now_ns,
                                                          .nodes = refused,
                                                          .round = lease->core.round});
        return;
    }
    publish(lease);
}

/* A node does not know the script (R11): the same request again, by source, while somebody still waits for its vote. */
static bool sent_by_source(struct redlock_lease *lease, unsigned node) {
    const bool wanted = lease->core.operation == REDLOCK_OP_RELEASE ||
                        (lease->core.operation == REDLOCK_OP_EXTEND && lease->core.state == REDLOCK_LEASE_EXTENDING);
    if (!wanted || !redlock_manager_may_ask_by_source(&lease->owner, node)) {
        return false;
    }
    struct redlock_message message = message_of(lease);
    message.by_source = true;
    message.now_ns = redlock_manager_now_ns(lease->manager);
    return redlock_manager_send(lease->manager, &lease->owner, REDLOCK_NODE(node), &message) != 0;
}

static void note_vote(struct redlock_lease *lease, unsigned node, const struct redlock_answer *answer) {
    struct redlock_detail *detail = &lease->details[node];
    redlock_text_drop(detail->text);
    detail->text = redlock_text_keep(answer->text);
    detail->kind = (uint8_t)answer->vote;
    const int64_t latency_us = (answer->read_ns - lease->core.start_ns) / 1000;
    detail->latency_us = latency_us < INT32_MAX ? (int32_t)latency_us : INT32_MAX;
    if (lease->core.operation == REDLOCK_OP_RELEASE &&
        (answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED)) {
        lease->owing &= ~REDLOCK_NODE(node);
    }
}

void redlock_lease_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer) {
    if (round != lease->core.round || lease->forgotten) {
        /* A vote of a round that was given up. The release that followed it on its connection settles the node (R9). */
        lease->manager->statistics.votes_late++;
    } else if (!answer->no_script || !sent_by_source(lease, node)) {
        lease->manager->statistics.votes_late += !redlock_lease_round_is_open(&lease->core);
        note_vote(lease, node, answer);
        redlock_journal_vote(lease, node);
        if (!redlock_lease_count_only(&lease->core, node, answer->vote)) {
            /* R1, R3: what makes a lease must be in time by the clock, not only when the vote was read. */
            redlock_lease_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_VOTE,
                                                              .now_ns = redlock_manager_now_ns(lease->manager),
                                                              .nodes = REDLOCK_NODE(node),
                                                              .vote = answer->vote,
                                                              .round = round});
        }
    }
    free_if_over(lease);
}

void redlock_lease_due(struct redlock_lease *lease, int64_t now_ns) {
    redlock_lease_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_TIMER, .now_ns = now_ns});
    free_if_over(lease);
}

void redlock_lease_abort(struct redlock_lease *lease) {
    if (lease->release_pending && !(lease->tell & REDLOCK_TELL_RELEASED)) {
        lease->released_code = REDLOCK_ERR_CLOSED;
        queue_to_tell(lease, REDLOCK_TELL_RELEASED);
    }
}

void redlock_lease_retire(struct redlock_lease *lease) {
    lease->forgotten = true;
    redlock_schedule_set(&lease->manager->schedule, &lease->owner.due, REDLOCK_NEVER_NS);
    if (lease->counted_held) {
        lease->manager->statistics.leases_held--;
        lease->counted_held = false;
    }
    if (lease->extend_pending) {
        lease->extended_code = REDLOCK_ERR_CANCELLED;
        queue_to_tell(lease, REDLOCK_TELL_EXTENDED);
    }
    free_if_over(lease);
}

/* The votes of the last round. Of a lease that was lost before, only those of an extension say anything about the loss. */
static void fill_result(const struct redlock_lease *lease, struct redlock_result *result) {
    const redlock_manager *manager = lease->manager;
    const bool silent = result->loss != REDLOCK_LOSS_NONE && lease->core.operation == REDLOCK_OP_ACQUIRE;
    result->resource = redlock_lease_resource(lease);
    result->ttl_ms = lease->core.plan.ttl_ms;
    result->cap_ms = lease->core.plan.auto_extend_max_ms;
    result->count = manager->node_count;
    for (unsigned i = 0; i < manager->node_count; i++) {
        const struct redlock_detail *detail = &lease->details[i];
        result->votes[i] =
            (struct redlock_result_vote){.node = manager->node_names[i],
                                         .error = silent ? "" : redlock_text_string(detail->text),
                                         .holder = "",
                                         .latency_us = silent ? -1 : detail->latency_us,
                                         .holder_ttl_ms = -1,
                                         .kind = silent ? REDLOCK_VOTE_ABSTAINED : (redlock_vote_kind)detail->kind};
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
    for (unsigned i = 0; i < result.count; i++) {
        texts[i] = redlock_text_keep(lease->details[i].text);
    }
    cb(&result, data);
    for (unsigned i = 0; i < result.count; i++) {
        redlock_text_drop(texts[i]);
    }
}

void redlock_lease_loss_text(const struct redlock_lease *lease, char *buffer, size_t size) {
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.loss = (enum redlock_loss)lease->loss, .votes = votes};
    fill_result(lease, &result);
    redlock_message_loss(&result, buffer, size);
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
    free_if_over(lease);
}
