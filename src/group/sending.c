/* What one lease sends: tokens, rounds, HEAL, and a request again by its source. */
#include "group/sending.h"

#include <assert.h>
#include <string.h>

#include "base/holder.h"
#include "group/guards.h"
#include "group/slots.h"
#include "group/tell.h"
#include "group/waiting.h"

static char digit(unsigned nibble) {
    return (char)(nibble + '0' + (nibble > 9 ? 'a' - '0' - 10 : 0));
}

/* The tokens of waiters sort by their tickets. */
static size_t write_ticket(struct redlock_lease *lease) {
    assert(lease->waiting);
    const uint64_t ticket = redlock_waiting_ticket(lease);
    char *token = redlock_handle_own_token(lease);
    for (unsigned i = 0; i < REDLOCK_TICKET_DIGITS; i++) {
        token[i] = digit((unsigned)(ticket >> (4 * (REDLOCK_TICKET_DIGITS - 1 - i)) & 15));
    }
    return REDLOCK_TICKET_DIGITS;
}

static void say_reads(struct redlock_lease *lease) {
    char *token = redlock_handle_own_token(lease);
    lease->by_try = false;
    token[lease->token_size++] = REDLOCK_HOLDER_READS;
    token[lease->token_size] = '\0';
}

static void append_holder(struct redlock_lease *lease) {
    const struct redlock_group *group = lease->group;
    char *token = redlock_handle_own_token(lease);
    memcpy(token + lease->token_size, group->holder, group->holder_size);
    lease->token_size = (uint8_t)(lease->token_size + group->holder_size);
    token[lease->token_size] = '\0';
}

/* 128 bits and the end. */
static void write_digits(char *restrict digits, const unsigned char *restrict bytes) {
    const size_t size = REDLOCK_TOKEN_DIGITS / 2;
    for (size_t i = 0; i < size; i++) {
        digits[i] = digit(bytes[i] >> 4);
        digits[i + size] = digit(bytes[i] & 15);
    }
    digits[REDLOCK_TOKEN_DIGITS] = '\0';
}

/*
 * R10: a fresh token for every attempt: 128 bits from the kernel, printable. Two copies of a
 * virtual machine have the same bytes in their pools, but hardly the same nanosecond. So half of
 * the token is mixed with the time, which keeps it as random as it was.
 */
int redlock_sending_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place) {
    uint64_t halves[2];
    const int code = lease->group->env.random(lease->group->env.ctx, halves, sizeof halves);
    if (code != REDLOCK_OK) {
        return code;
    }
    halves[1] ^= (uint64_t)now_ns;
    const size_t ticket_size = for_place ? write_ticket(lease) : 0;
    write_digits(redlock_handle_own_token(lease) + ticket_size, (const unsigned char *)halves);
    lease->token_size = (uint8_t)(ticket_size + REDLOCK_TOKEN_DIGITS);
    const bool is_try = !for_place && !lease->target->has_slots; /* who has a slot is not marked */
    lease->by_try = is_try;
    if (is_try) {
        const unsigned char first = *(const unsigned char *)halves;
        redlock_handle_own_token(lease)[0] = (char)(REDLOCK_TRY_ZERO + (first >> 4));
    }
    if (lease->core.fence.reads) {
        say_reads(lease);
    } else if (for_place && lease->waiting->is_gate) {
        redlock_handle_own_token(lease)[lease->token_size++] = REDLOCK_HOLDER_GATE;
        redlock_handle_own_token(lease)[lease->token_size] = '\0';
    }
    if (lease->group->holder_size > 0) {
        append_holder(lease);
    }
    return REDLOCK_OK;
}

static void begin_details(struct redlock_lease *lease, redlock_nodes asked) {
    const unsigned count = lease->group->node_count;
    struct redlock_result_vote *detail = lease->details, *end = detail + count;
    redlock_handle_drop_texts(lease);
    do { /* there is one at least */
        detail->latency_us = -1;
        detail->kind = REDLOCK_VOTE_PENDING;
    } while (++detail < end);
    for (redlock_nodes left = redlock_nodes_all(count) & ~asked; left != 0; left &= left - 1) {
        lease->details[redlock_nodes_first(left)].kind = REDLOCK_VOTE_ABSTAINED;
    }
}

/* If a guard keeps these nodes from voting, says why. */
static void excuse_details(struct redlock_lease *lease, redlock_nodes not_asked) {
    assert(lease->group->guards);
    for (unsigned i = 0; i < lease->group->node_count; i++) {
        if (not_asked & REDLOCK_NODE(i)) {
            redlock_handle_put_text(lease, i, redlock_guards_text(lease->group, i));
        }
    }
}

/* `spared`: these could have been asked. */
static void refuse_details(struct redlock_lease *lease, redlock_nodes refused, redlock_nodes spared) {
    static const struct redlock_text early = {
        .string = "not asked: a place in the queue waits until a quorum of nodes is connected",
        .cause = REDLOCK_CAUSE_CONNECTION};
    const struct redlock_env *env = &lease->group->env;
    for (unsigned i = 0; i < lease->group->node_count; i++) {
        if (refused & REDLOCK_NODE(i)) {
            lease->details[i].kind = REDLOCK_VOTE_FAILED;
            redlock_handle_put_text(lease, i,
                                    spared & REDLOCK_NODE(i) ? redlock_text_constant(&early)
                                                             : redlock_text_keep(env->refusal(env->ctx, i)));
            redlock_tell_voted(lease->group, i, REDLOCK_VOTE_FAILED, lease->details[i].text);
        }
    }
}

static struct redlock_message message_of(const struct redlock_lease *lease) {
    const struct redlock_group *group = lease->group;
    struct redlock_message message = {.operation = lease->core.operation,
                                      .target = lease->target,
                                      .token = redlock_handle_own_token(lease),
                                      .token_size = lease->token_size,
                                      .ttl_ms = redlock_lease_key_ttl_ms(&lease->core),
                                      .timed = group->watching_clocks,
                                      .shared = lease->core.shared,
                                      .fence = lease->core.plan.fencing ? lease->core.fence.token : 0,
                                      .fence_keys = &group->fence_keys,
                                      .wait_suffix = group->wait_suffix,
                                      .now_ns = lease->core.start_ns,
                                      .round = lease->core.round};
    if (lease->core.plan.slots) { /* a branch costs less than the bit */
        message.slots = true;
    }
    return message;
}

static bool may_serve(const struct redlock_message *message) {
    return message->operation == REDLOCK_OP_RELEASE || (message->operation == REDLOCK_OP_EXTEND && message->shared);
}

/* Without guards, it costs a plain lock two branches. */
static inline redlock_nodes send(struct redlock_lease *lease, redlock_nodes nodes, struct redlock_message *message) {
    struct redlock_group *group = lease->group;
    struct redlock_place place;
    struct redlock_gate gate;
    uint64_t seals[REDLOCK_NODES_MAX];
    if (message->operation == REDLOCK_OP_WAIT) {
        place = redlock_waiting_place(lease, nodes, seals);
        message->place = &place;
    } else if (lease->waiting && message->operation == REDLOCK_OP_RELEASE) {
        message->handing = (enum redlock_handing)lease->waiting->handing;
        message->by_try = message->by_try && message->handing == REDLOCK_HAND_OVER;
    } else if (message->slots && message->operation == REDLOCK_OP_ACQUIRE) {
        message->gate = redlock_slots_gate(lease, &gate);
    }
    return group->guards && may_serve(message) ? redlock_guards_release(group, &lease->requester, nodes, message)
                                               : redlock_requester_send(group, &lease->requester, nodes, message);
}

redlock_nodes redlock_sending_round(struct redlock_lease *lease, const struct redlock_actions *actions) {
    struct redlock_group *group = lease->group;
    assert(actions->round == lease->core.round && actions->send == lease->core.operation);
    /* A waiter that gave its votes back may ask nobody for a while: the last answers stand. */
    const bool pauses = actions->did == REDLOCK_GRANTS_YIELDED && actions->send_nodes == 0;
    struct redlock_message message = message_of(lease);
    redlock_nodes asked = actions->send_nodes;
    if (!pauses) {
        begin_details(lease, actions->send_nodes);
    }
    switch (actions->send) {
    case REDLOCK_OP_ACQUIRE:
    case REDLOCK_OP_WAIT:
        group->statistics.attempts += actions->fresh_token;
        if (group->guards && !pauses) {
            excuse_details(lease, ~actions->send_nodes);
        }
        if (message.slots) {
            redlock_slots_begin(lease, actions->send_nodes);
        }
        break;
    case REDLOCK_OP_EXTEND:
        group->statistics.extends++;
        break;
    case REDLOCK_OP_RELEASE: /* counted when it is confirmed */
        message.by_try = lease->by_try && !lease->target->announced;
        break;
    case REDLOCK_OP_FENCE: /* a part of an attempt */
        break;
    case REDLOCK_OP_HEAL:
    case REDLOCK_OP_TIME:
    case REDLOCK_OP_INSPECT:
    case REDLOCK_OP_LIST:
    case REDLOCK_OP_NONE:
        assert(false && "a lease does not send this");
    }
    if (actions->send == REDLOCK_OP_WAIT && !redlock_waiting_may_ask(group)) {
        asked = 0;
    } else if (actions->handing == REDLOCK_HAND_LATER) {
        lease->waiting->handing = REDLOCK_HAND_LATER;
        group->statistics.left_free++;
    }
    if (actions->send != REDLOCK_OP_RELEASE && message.ttl_ms > lease->ttl_sent_max_ms) {
        lease->ttl_sent_max_ms = (int32_t)message.ttl_ms;
    }
    const redlock_nodes taken = send(lease, asked, &message);
    redlock_keys_sent(&lease->core.keys, actions->send, taken);
    if (lease->waiting) {
        redlock_waiting_sent(lease, actions, taken);
    }
    const redlock_nodes refused = actions->send_nodes & ~taken;
    if (refused && message.slots && actions->send == REDLOCK_OP_ACQUIRE) {
        redlock_handle_permits(lease)->core.ballot.asked = taken;
    }
    if (refused) {
        refuse_details(lease, refused, asked == 0 ? group->ready : 0);
    }
    return refused;
}

void redlock_sending_heal(struct redlock_lease *lease, redlock_nodes asked) {
    assert(asked != 0 && redlock_lease_is_held(&lease->core));
    struct redlock_message message = message_of(lease);
    message.operation = REDLOCK_OP_HEAL;
    message.round = REDLOCK_ROUND_HEAL;
    /* Nobody asks again, and a new server knows no script. */
    message.by_source = message.shared || message.slots;
    message.now_ns = redlock_group_now_ns(lease->group);
    const redlock_nodes nodes = asked & ~redlock_guards_may_not_vote(lease->group, message.now_ns);
    const redlock_nodes taken = redlock_requester_send(lease->group, &lease->requester, nodes, &message);
    redlock_keys_heal_sent(&lease->core.keys, &lease->core.votes, asked, taken);
    if (lease->waiting) {
        redlock_push_step_all(lease->core.grants, taken, REDLOCK_PUSH_TELL);
    }
}

bool redlock_sending_again(struct redlock_lease *lease, unsigned node, enum redlock_again again) {
    assert(node < lease->group->node_count && again != REDLOCK_AGAIN_NOT);
    const bool by_source = again == REDLOCK_AGAIN_BY_SOURCE;
    const bool wanted = lease->core.operation == REDLOCK_OP_RELEASE || redlock_lease_round_is_open(&lease->core);
    const bool votes = lease->core.operation == REDLOCK_OP_ACQUIRE || lease->core.operation == REDLOCK_OP_WAIT;
    if (!wanted || (by_source && !redlock_requester_may_ask_by_source(&lease->requester, node))) {
        return false;
    }
    /* Its clock may have jumped since it was asked. */
    const int64_t now_ns = redlock_group_now_ns(lease->group);
    if (votes && (redlock_guards_may_not_vote(lease->group, now_ns) & REDLOCK_NODE(node)) != 0) {
        return false;
    }
    struct redlock_message message = message_of(lease);
    message.by_source = by_source;
    message.now_ns = now_ns;
    return send(lease, REDLOCK_NODE(node), &message) != 0;
}
