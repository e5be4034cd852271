/* What nodes tell a group of the queues: pushes, and whether they can be heard. */
#include "group/handover.h"

#include <string.h>

#include "core/planted.h"
#include "group/journal.h"
#include "group/lease.h"
#include "group/owed.h"
#include "group/seal.h"
#include "group/telemetry.h"
#include "group/waiting.h"

#define GIVE_BACK_MS INT64_C(3600000) /* the ttl is not known; the release is asked for so long */

/* Feeds the event to every lease that is QUEUED. */
static void feed_all(struct redlock_group *group, enum redlock_event_type type, redlock_nodes nodes) {
    for (uint32_t i = 0; i < group->line.place_count; i++) {
        struct redlock_lease *lease = group->line.places[i];
        if (lease && lease->core.state == REDLOCK_LEASE_QUEUED && !lease->forgotten) {
            struct redlock_event event = redlock_lease_event(lease, type);
            event.nodes = nodes;
            redlock_lease_feed(lease, &event);
        }
    }
}

void redlock_handover_moved(struct redlock_group *group, unsigned node) {
    feed_all(group, REDLOCK_EVENT_VOID, REDLOCK_NODE(node));
}

void redlock_handover_listens(struct redlock_group *group, unsigned node, enum redlock_listening listening,
                              const struct redlock_text *why) {
    switch (listening) {
    case REDLOCK_LISTENING:
        redlock_waiting_note_listening(group, node);
        /* Until now the node served nobody whom it could not tell. */
        feed_all(group, REDLOCK_EVENT_LISTEN, 0);
        break;
    case REDLOCK_LISTENING_REFUSED:
        if (redlock_waiting_note_refusing(group, node, why)) {
            feed_all(group, REDLOCK_EVENT_POLL, 0);
        }
        break;
    case REDLOCK_LISTENING_NOT:
        redlock_line_lose_pushes(&group->line, node);
        break;
    }
}

static bool is_about(const struct redlock_lease *lease, const struct redlock_push *push) {
    return lease->token_size == push->token_size &&
           memcmp(redlock_lease_own_token(lease), push->token, push->token_size) == 0 &&
           lease->target.key_size == push->key_size && memcmp(lease->target.key, push->key, push->key_size) == 0;
}

static bool may_hold(const struct redlock_lease *lease) {
    switch (lease->core.state) {
    case REDLOCK_LEASE_QUEUED:
    case REDLOCK_LEASE_FENCING:
    case REDLOCK_LEASE_HELD:
    case REDLOCK_LEASE_EXTENDING:
    case REDLOCK_LEASE_RELEASING: /* its releases are under way */
        return true;
    default:
        return false;
    }
}

/* The release went to this node, too. Unless it answered that it had no key of ours, the release
 * removes the granted key, has removed it, or the library still owes it. If that answer is still to
 * come, it is owed when the lease ends. */
static bool is_released(struct redlock_lease *lease, unsigned node) {
    const struct redlock_round *votes = &lease->core.votes;
    if (lease->core.operation != REDLOCK_OP_RELEASE) {
        return false;
    }
    lease->waiting->crossed |= redlock_round_pending(votes) & REDLOCK_NODE(node);
    return (votes->asked & ~votes->denied & REDLOCK_NODE(node)) != 0;
}

/* The node gave the lock to a token that nobody here waits with any more. It is ours: the seal says
 * so. A lease that was forgotten is known for as long as its seals fit. */
static void give_back(struct redlock_group *group, unsigned node, const struct redlock_push *push, bool announced) {
    char key[REDLOCK_RESOURCE_SIZE_MAX + 1];
    if (!redlock_line_give(&group->line, push)) {
        return; /* a copy */
    }
    memcpy(key, push->key, push->key_size);
    key[push->key_size] = '\0';
    const struct redlock_target target = {.key = key, .key_size = (uint16_t)push->key_size, .announced = announced};
    redlock_owed_add(group, &(struct redlock_owed_release){.target = &target,
                                                           .token = push->token,
                                                           .token_size = push->token_size,
                                                           .nodes = REDLOCK_NODE(node),
                                                           .ttl_ms = GIVE_BACK_MS});
}

/* The grant of a node that may not vote does not count. It is not given back either: once the node
 * may vote again, a late release could delete a key that counts. */
static void count(struct redlock_lease *lease, unsigned node, uint32_t round) {
    struct redlock_event event = redlock_lease_event(lease, REDLOCK_EVENT_GRANT);
    event.nodes = REDLOCK_NODE(node);
    event.round = round;
    if (!(event.may_not_vote & event.nodes) && redlock_queue_may_grant(lease->core.queue, node, round)) {
        redlock_telemetry_voted(lease->group, node, REDLOCK_VOTE_GRANTED, NULL);
        redlock_journal_push(lease, node);
        redlock_lease_feed(lease, &event);
    }
}

/* A clock that jumped since we last read it may have ended the key of another holder there. Anybody
 * can say a push again with another time, so we ask for it. */
static void ask_time(struct redlock_lease *lease, unsigned node, uint32_t round) {
    struct redlock_message message = {.operation = REDLOCK_OP_TIME,
                                      .token = "",
                                      .now_ns = redlock_group_now_ns(lease->group),
                                      .round = REDLOCK_ROUND_PUSHED | round};
    if (!(lease->waiting->timing & REDLOCK_NODE(node)) && redlock_queue_may_grant(lease->core.queue, node, round)) {
        lease->waiting->timing |= redlock_group_send(lease->group, &lease->owner, REDLOCK_NODE(node), &message);
    }
}

static bool may_count(const struct redlock_lease *lease) {
    return may_hold(lease) && lease->core.operation != REDLOCK_OP_RELEASE;
}

void redlock_handover_timed(struct redlock_lease *lease, unsigned node, uint32_t round, bool known) {
    lease->waiting->timing &= ~REDLOCK_NODE(node);
    if (known && !lease->forgotten && may_count(lease)) {
        count(lease, node, round);
    }
}

static bool fits(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    const bool fits = redlock_seal_fits(group->line.secret, node, push, redlock_group_now_ns(group));
    if (!fits && group->statistics.pushes_refused++ == 0) {
        group->env.log(group->env.ctx, REDLOCK_LOG_DEBUG,
                       "node %s: a push that is not about a recent request of ours to this node is ignored, and so "
                       "are others: pushes_refused of the statistics counts them",
                       group->node_names[node]);
    }
    return fits;
}

void redlock_handover_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    if (!fits(group, node, push)) {
        return;
    }
    struct redlock_lease *lease = redlock_line_get(&group->line, push->id);
    const bool known = lease && is_about(lease, push);
    const bool stays = known && (lease->forgotten || (lease->core.plan.lock_delay_ms > 0 && !may_hold(lease)));
    if (stays) {
        return; /* a new owner may count this key, or it keeps the lock delay */
    }
    if (known) {
        lease->waiting->no_push_due |= REDLOCK_NODE(node);
    }
    const bool is_gone = known ? is_released(lease, node)
                               : redlock_line_is_overtaken(&group->line, node, push, redlock_group_now_ns(group));
    if (is_gone) {
        return;
    }
    if (!known || !may_count(lease)) {
        give_back(group, node, push, known && lease->target.announced);
    } else if (group->watching_clocks && !REDLOCK_PLANTED(QUEUE_PUSH_CLOCK) && !REDLOCK_PLANTED(QUEUE_LATE_BACKING)) {
        ask_time(lease, node, push->round);
    } else {
        count(lease, node, push->round);
    }
}
