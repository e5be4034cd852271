/* What one lease sends: rounds, HEAL, and a request again by its source. */
#include "group/sending.h"

#include <assert.h>

#include "group/quarantine.h"
#include "group/telemetry.h"
#include "group/waiting.h"

static void begin_details(struct redlock_lease *lease, redlock_nodes asked) {
    struct redlock_detail *detail = lease->details, *end = detail + lease->group->node_count;
    for (; detail < end; detail++, asked >>= 1) {
        redlock_text_drop(detail->text);
        *detail = (struct redlock_detail){.latency_us = -1,
                                          .kind = asked & 1 ? REDLOCK_VOTE_PENDING : REDLOCK_VOTE_ABSTAINED,
                                          .logged = detail->logged};
    }
}

/* If a guard keeps these nodes from voting, says why. */
static void excuse_details(struct redlock_lease *lease, redlock_nodes not_asked) {
    for (unsigned i = 0; i < lease->group->node_count; i++) {
        if (not_asked & REDLOCK_NODE(i)) {
            lease->details[i].text = redlock_quarantine_text(lease->group, i);
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
            lease->details[i].text =
                spared & REDLOCK_NODE(i) ? redlock_text_constant(&early) : redlock_text_keep(env->refusal(env->ctx, i));
            redlock_telemetry_voted(lease->group, i, REDLOCK_VOTE_FAILED, lease->details[i].text);
        }
    }
}

static struct redlock_message message_of(const struct redlock_lease *lease) {
    const struct redlock_group *group = lease->group;
    return (struct redlock_message){.operation = lease->core.operation,
                                    .target = &lease->target,
                                    .token = redlock_lease_own_token(lease),
                                    .token_size = lease->token_size,
                                    .ttl_ms = redlock_lease_key_ttl_ms(&lease->core),
                                    .timed = group->watching_clocks,
                                    .fence = lease->core.plan.fencing ? lease->core.fence.token : 0,
                                    .fence_keys = &group->fence_keys,
                                    .wait_suffix = group->wait_suffix,
                                    .now_ns = lease->core.start_ns,
                                    .round = lease->core.round};
}

/* Without guards, it costs a plain lock a branch. */
static inline redlock_nodes send(struct redlock_lease *lease, redlock_nodes nodes, struct redlock_message *message) {
    struct redlock_group *group = lease->group;
    return group->guards && message->operation == REDLOCK_OP_RELEASE
               ? redlock_quarantine_release(group, &lease->owner, nodes, message)
               : redlock_group_send(group, &lease->owner, nodes, message);
}

redlock_nodes redlock_lease_send_round(struct redlock_lease *lease, const struct redlock_actions *actions) {
    struct redlock_group *group = lease->group;
    assert(actions->round == lease->core.round && actions->send == lease->core.operation);
    /* A waiter that gave its votes back may ask nobody for a while: the last answers stand. */
    const bool pauses = actions->step == REDLOCK_QUEUE_YIELDED && actions->send_nodes == 0;
    struct redlock_message message = message_of(lease);
    struct redlock_place place;
    redlock_nodes asked = actions->send_nodes;
    uint64_t seals[REDLOCK_NODES_MAX];
    if (!pauses) {
        begin_details(lease, actions->send_nodes);
    }
    switch (actions->send) {
    case REDLOCK_OP_ACQUIRE:
    case REDLOCK_OP_WAIT:
        group->statistics.attempts += actions->fresh_token;
        lease->token_drawn = false;
        if (group->guards && !pauses) {
            excuse_details(lease, ~actions->send_nodes);
        }
        break;
    case REDLOCK_OP_EXTEND:
        group->statistics.extends++;
        break;
    case REDLOCK_OP_RELEASE: /* counted when it is confirmed */
        message.only_deletes = lease->only_deletes;
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
    if (actions->send == REDLOCK_OP_WAIT) {
        place = redlock_waiting_sealed_place(lease, actions->send_nodes, seals);
        message.place = &place;
        asked = redlock_waiting_may_ask(group) ? asked : 0;
    } else if (actions->handing == REDLOCK_HAND_LATER) {
        message.handing = redlock_waiting_leave(lease, actions->send_nodes);
        lease->waiting->handing = (uint8_t)message.handing;
    }
    if (actions->send != REDLOCK_OP_RELEASE && message.ttl_ms > lease->ttl_sent_max_ms) {
        lease->ttl_sent_max_ms = (int32_t)message.ttl_ms;
    }
    const redlock_nodes taken = send(lease, asked, &message);
    redlock_keys_sent(&lease->core.keys, actions->send, taken);
    const redlock_nodes refused = actions->send_nodes & ~taken;
    if (refused) {
        refuse_details(lease, refused, asked == 0 ? group->ready : 0);
    }
    return refused;
}

void redlock_lease_heal(struct redlock_lease *lease, redlock_nodes asked) {
    struct redlock_message message = message_of(lease);
    message.operation = REDLOCK_OP_HEAL;
    message.round = REDLOCK_ROUND_HEAL;
    message.now_ns = redlock_group_now_ns(lease->group);
    const redlock_nodes nodes = asked & ~redlock_quarantine_may_not_vote(lease->group, message.now_ns);
    const redlock_nodes taken = redlock_group_send(lease->group, &lease->owner, nodes, &message);
    redlock_keys_heal_sent(&lease->core.keys, &lease->core.votes, asked, taken);
    if (lease->waiting) {
        lease->waiting->no_push_due |= taken;
    }
}

bool redlock_lease_send_by_source(struct redlock_lease *lease, unsigned node) {
    const bool wanted = lease->core.operation == REDLOCK_OP_RELEASE || redlock_lease_round_is_open(&lease->core);
    const bool votes = lease->core.operation == REDLOCK_OP_ACQUIRE || lease->core.operation == REDLOCK_OP_WAIT;
    if (!wanted || !redlock_group_may_ask_by_source(&lease->owner, node)) {
        return false;
    }
    /* Its clock may have jumped since it was asked. */
    const int64_t now_ns = redlock_group_now_ns(lease->group);
    if (votes && (redlock_quarantine_may_not_vote(lease->group, now_ns) & REDLOCK_NODE(node)) != 0) {
        return false;
    }
    struct redlock_message message = message_of(lease);
    struct redlock_place place;
    uint64_t seals[REDLOCK_NODES_MAX];
    if (lease->core.operation == REDLOCK_OP_WAIT) {
        place = redlock_waiting_sealed_place(lease, REDLOCK_NODE(node), seals);
        message.place = &place;
    } else if (lease->core.operation == REDLOCK_OP_RELEASE && lease->waiting) {
        message.handing = (enum redlock_handing)lease->waiting->handing;
    }
    message.by_source = true;
    message.now_ns = now_ns;
    return send(lease, REDLOCK_NODE(node), &message) != 0;
}
