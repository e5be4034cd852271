/* What nodes tell of leases: answers to their requests are votes, and so are pushes. */
#include "group/votes.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/planted.h"
#include "group/driver.h"
#include "group/guards.h"
#include "group/owed.h"
#include "group/permits.h"
#include "group/sending.h"
#include "group/slots.h"
#include "group/tell.h"
#include "group/waiting.h"

#define GIVE_BACK_MS INT64_C(3600000) /* the ttl is not known; the release is asked for so long */

/* Feeds the event to every lease that is QUEUED. */
static void feed_all(struct redlock_group *group, enum redlock_event_type type, redlock_nodes nodes) {
    for (uint32_t i = 0; i < group->line.place_count; i++) {
        struct redlock_lease *lease = group->line.places[i];
        if (lease && lease->core.state == REDLOCK_LEASE_QUEUED && !redlock_handle_is_forgotten(lease)) {
            const struct redlock_event event = redlock_driver_event(lease, type, nodes);
            redlock_driver_feed(lease, &event);
        }
    }
}

void redlock_votes_moved(struct redlock_group *group, unsigned node) {
    feed_all(group, REDLOCK_EVENT_VOID, REDLOCK_NODE(node));
}

void redlock_votes_listens(struct redlock_group *group, unsigned node, enum redlock_listening listening,
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
        redlock_push_expect_none(&group->line.expected, node);
        if (redlock_waiting_note_deaf(group, node)) {
            feed_all(group, REDLOCK_EVENT_LISTEN, 0); /* to ask again soon, until it listens */
        }
        break;
    }
}

static bool is_about(const struct redlock_lease *lease, const struct redlock_push *push) {
    return lease->token_size == push->token_size &&
           memcmp(redlock_handle_own_token(lease), push->token, push->token_size) == 0 &&
           redlock_target_is(lease->target, push->key, push->key_size);
}

/* See core/push.h. */
static enum redlock_push_action step(struct redlock_lease *lease, unsigned node, enum redlock_push_event event) {
    assert(lease->core.grants && node < lease->core.node_count);
    return redlock_push_step(&lease->core.grants->nodes[node].push, event);
}

/* The node gave the lock to a token that nobody here waits with any more. It is ours: the seal says
 * so. A lease that was forgotten is known for as long as its seals fit. */
static void give_back(struct redlock_group *group, unsigned node, const struct redlock_push *push, bool announced) {
    uint16_t room[REDLOCK_RESOURCE_SIZE_MAX];
    assert(redlock_target_size(push->key_size) <= sizeof room);
    if (!redlock_line_give(&group->line, push)) {
        return; /* a copy */
    }
    struct redlock_target *target = redlock_target_make(room, "", 0, push->key, push->key_size);
    target->announced = announced;
    redlock_owed_add(group, &(struct redlock_owed_release){.target = target,
                                                           .token = push->token,
                                                           .token_size = push->token_size,
                                                           .nodes = REDLOCK_NODE(node),
                                                           .ttl_ms = GIVE_BACK_MS});
}

/* The grant of a node that may not vote does not count. It is not given back either: once the node
 * may vote again, a late release could delete a key that counts. No answer has told of a push. */
static void count(struct redlock_lease *lease, unsigned node, uint32_t round, bool by_push) {
    assert(lease->core.grants);
    struct redlock_event event = redlock_driver_event(lease, REDLOCK_EVENT_GRANT, REDLOCK_NODE(node));
    event.round = round;
    if ((event.may_not_vote & event.nodes) || !redlock_grants_may_grant(lease->core.grants, node, round)) {
        return;
    }
    if (by_push) {
        redlock_tell_voted(lease->group, node, REDLOCK_VOTE_GRANTED, NULL);
        redlock_tell_log_push(lease, node);
    }
    redlock_driver_feed(lease, &event);
}

/* A clock that jumped since we last read it may have ended the key of another holder there. Anybody
 * can say a push again with another time, so we ask for it. */
static void ask_time(struct redlock_lease *lease, unsigned node, uint32_t round) {
    assert(lease->group->watching_clocks);
    struct redlock_message message = {.operation = REDLOCK_OP_TIME,
                                      .token = "",
                                      .now_ns = redlock_group_now_ns(lease->group),
                                      .round = REDLOCK_ROUND_PUSHED | round};
    if (!redlock_grants_may_grant(lease->core.grants, node, round) ||
        !redlock_requester_send(lease->group, &lease->requester, REDLOCK_NODE(node), &message)) {
        (void)step(lease, node, REDLOCK_PUSH_NO_TIME);
    }
}

/* Under the clock guard: the node's clock was read after the push of this round, or not. */
static void take_time(struct redlock_lease *lease, unsigned node, uint32_t round, bool known) {
    if (step(lease, node, known ? REDLOCK_PUSH_TIME : REDLOCK_PUSH_NO_TIME) == REDLOCK_PUSH_COUNT) {
        count(lease, node, round, true);
    }
}

static bool fits(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    const bool fits = redlock_line_seal_fits(group->line.secret, node, push, redlock_group_now_ns(group));
    if (!fits && group->statistics.pushes_refused++ == 0) {
        group->env.log(group->env.ctx, REDLOCK_LOG_DEBUG,
                       "node %s: a push that is not about a recent request of ours to this node is ignored, and so "
                       "are others: pushes_refused of the statistics counts them",
                       group->node_names[node]);
    }
    return fits;
}

/* The lock is free, and the lease, if any, is among the first in line. Nothing proves that:
 * who knows the token can make the lease ask (docs/protocols.md, "What channels say"). */
static void take_left(struct redlock_lease *lease, unsigned node, const struct redlock_push *push) {
    if (lease && lease->core.state == REDLOCK_LEASE_QUEUED) {
        const struct redlock_event event = redlock_driver_event(lease, REDLOCK_EVENT_LEFT, 0);
        redlock_driver_feed(lease, &event);
    } else if (lease && lease->waiting->is_gate && push->seal != 0) {
        redlock_permits_told(lease, node, push->seal - 1);
    }
}

/* No lease has this token any more. */
static void take_unknown(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    const uint64_t token_id = redlock_hash(push->token, push->token_size);
    if (!redlock_push_is_expected(&group->line.expected, token_id, node, redlock_group_now_ns(group))) {
        give_back(group, node, push, false);
    }
}

void redlock_votes_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    struct redlock_lease *lease = redlock_line_get(&group->line, push->id);
    lease = lease && is_about(lease, push) ? lease : NULL;
    if (push->round == 0) {
        take_left(lease, node, push);
        return;
    }
    if (!fits(group, node, push)) {
        return;
    }
    if (!lease) {
        take_unknown(group, node, push);
        return;
    }
    const bool timed =
        group->watching_clocks && !REDLOCK_PLANTED(QUEUE_PUSH_CLOCK) && !REDLOCK_PLANTED(QUEUE_LATE_BACKING);
    switch (step(lease, node, timed ? REDLOCK_PUSH_CAME_TIMED : REDLOCK_PUSH_CAME)) {
    case REDLOCK_PUSH_NOTHING:
        break;
    case REDLOCK_PUSH_COUNT:
        count(lease, node, push->round, true);
        break;
    case REDLOCK_PUSH_ASK_TIME:
        ask_time(lease, node, push->round);
        break;
    case REDLOCK_PUSH_GIVE_BACK:
        give_back(group, node, push, lease->target->announced);
        break;
    }
}

static void follow_clock(struct redlock_group *group, const struct redlock_answer *answer) {
    group->fence_ahead_us =
        redlock_fence_ahead_us(group->fence_ahead_us, answer->counter, group->env.wall_us(group->env.ctx));
}

/* Counts the vote of a node that accepts our fencing token, and returns true; as
 * redlock_lease_count_only() does. */
__attribute__((always_inline)) static inline bool count_fenced_only(struct redlock_lease *lease, unsigned node,
                                                                    redlock_vote_kind vote,
                                                                    const struct redlock_answer *answer) {
    assert(answer->fenced);
    if (answer->counter != 0) {
        follow_clock(lease->group, answer);
        return false;
    }
    if (!redlock_lease_count_only(&lease->core, node, vote)) {
        return false;
    }
    lease->core.fence.accepted |= answer->accepted ? REDLOCK_NODE(node) : 0;
    return true;
}

__attribute__((always_inline)) static inline void note_latency(struct redlock_lease *lease, unsigned node,
                                                               redlock_vote_kind vote, int64_t read_ns) {
    struct redlock_result_vote *detail = &lease->details[node];
    const int64_t latency_us = (read_ns - lease->core.start_ns) / 1000;
    detail->kind = (uint8_t)vote;
    detail->latency_us = latency_us < INT32_MAX ? (int32_t)latency_us : INT32_MAX;
    REDLOCK_PROBE(4, vote, lease, node, (int)vote, latency_us);
}

bool redlock_votes_count(struct redlock_group *group, struct redlock_lease *lease, uint32_t round, unsigned node,
                         int64_t read_ns) {
    const bool is_late = round != lease->core.round;
    if (group->guards || lease->waiting || redlock_handle_is_forgotten(lease) || round == REDLOCK_ROUND_HEAL ||
        (!is_late && ((lease->texts & REDLOCK_NODE(node)) != 0 || !redlock_round_has_only_grants(&lease->core.votes) ||
                      !redlock_lease_count_only(&lease->core, node, REDLOCK_VOTE_GRANTED)))) {
        return false;
    }
    group->statistics.votes_late += is_late || !redlock_lease_round_is_open(&lease->core);
    redlock_tell_voted(group, node, REDLOCK_VOTE_GRANTED, NULL);
    if (!is_late) {
        note_latency(lease, node, REDLOCK_VOTE_GRANTED, read_ns);
    }
    return true;
}

/* Whether a GRANTED of this node counts, by what the guards know now. */
static bool counts_under_guards(const struct redlock_lease *lease, unsigned node) {
    const struct redlock_group *group = lease->group;
    const int64_t now_ns = redlock_group_now_ns(group);
    return redlock_lease_counts_under_guards(&lease->core, node, redlock_guards_may_not_vote(group, now_ns),
                                             redlock_guards_may_not_vote_by_clock(group, now_ns));
}

/* The text for a vote. */
__attribute__((always_inline)) static inline struct redlock_text *text_of(const struct redlock_lease *lease,
                                                                          const struct redlock_answer *answer) {
    static const struct redlock_text far = {
        .string = "its fencing counter is over 30 minutes ahead of this client's clock: ignored "
                  "where other nodes make a quorum"};
    const bool about_lock = lease->core.operation == REDLOCK_OP_ACQUIRE && answer->vote == REDLOCK_VOTE_DENIED;
    return answer->counter != 0 && !about_lock && redlock_fence_is_far(answer->counter, redlock_driver_wall_us(lease))
               ? redlock_text_constant(&far)
               : answer->text;
}

static void take_wait_vote(struct redlock_lease *lease, unsigned node, redlock_vote_kind vote,
                           const struct redlock_answer *answer) {
    struct redlock_grants_view view;
    assert(lease->waiting && lease->core.operation == REDLOCK_OP_WAIT);
    struct redlock_event event = redlock_driver_event(lease, REDLOCK_EVENT_VOTE, REDLOCK_NODE(node));
    event.vote = vote;
    event.round = lease->core.round;
    if (vote == REDLOCK_VOTE_GRANTED || vote == REDLOCK_VOTE_DENIED) {
        lease->waiting->refusing &= ~REDLOCK_NODE(node);
    }
    if (vote == REDLOCK_VOTE_GRANTED) { /* by the answer, so nobody was before us */
        (void)step(lease, node, REDLOCK_PUSH_TELL);
        redlock_line_note_release(&lease->group->line, lease->target, false);
    } else if (vote == REDLOCK_VOTE_DENIED) {
        view = redlock_handle_view(lease, answer);
        event.view = &view;
    } else if (vote == REDLOCK_VOTE_FAILED && redlock_waiting_must_poll(lease, node, answer->text)) {
        event.type = REDLOCK_EVENT_POLL;
    }
    redlock_driver_feed(lease, &event);
}

/* For a vote that may make the lease take its place in the queues. */
static redlock_nodes may_not_vote(const struct redlock_lease *lease) {
    return lease->waiting ? redlock_guards_may_not_vote(lease->group, redlock_group_now_ns(lease->group)) : 0;
}

/* Takes a vote of the current round. A plain lock pays for no call. */
__attribute__((always_inline)) static inline void take_vote(struct redlock_lease *lease, unsigned node,
                                                            const struct redlock_answer *answer) {
    struct redlock_group *group = lease->group;
    redlock_vote_kind vote = answer->vote;
    struct redlock_text *text = answer->fenced ? text_of(lease, answer) : answer->text, *why = NULL;
    if (group->guards && vote == REDLOCK_VOTE_GRANTED && !counts_under_guards(lease, node)) {
        vote = REDLOCK_VOTE_UNKNOWN;
        text = why = redlock_guards_text(group, node);
    }
    group->statistics.votes_late += !redlock_lease_round_is_open(&lease->core);
    redlock_tell_voted(group, node, vote, text);
    redlock_handle_put_text(lease, node, redlock_text_keep(text));
    note_latency(lease, node, vote, answer->read_ns);
    redlock_tell_log_vote(lease, node, answer);
    redlock_text_drop(why);
    if (lease->waiting) {
        if (lease->core.operation == REDLOCK_OP_WAIT) {
            take_wait_vote(lease, node, vote, answer);
            return;
        }
        if (lease->core.operation == REDLOCK_OP_RELEASE) {
            (void)step(lease, node, redlock_push_released(vote));
        }
    }
    if (answer->handed_over) {
        redlock_line_note_release(&group->line, lease->target, true);
    }
    if (answer->fenced ? count_fenced_only(lease, node, vote, answer)
                       : redlock_lease_count_only(&lease->core, node, vote)) {
        return;
    }
    /* R1, R3: read the clock again. A vote that makes a lease must be in time now, not only when it
     * was read. That of a release decides nothing by its time. */
    const bool releases = lease->core.operation == REDLOCK_OP_RELEASE;
    redlock_driver_feed(lease,
                        &(struct redlock_event){.type = REDLOCK_EVENT_VOTE,
                                                .now_ns = releases ? answer->read_ns : redlock_group_now_ns(group),
                                                .wall_us = redlock_driver_wall_us(lease),
                                                .may_not_vote = may_not_vote(lease),
                                                .nodes = REDLOCK_NODE(node),
                                                .vote = vote,
                                                .accepted = answer->accepted,
                                                .counter = answer->counter,
                                                .round = lease->core.round});
}

/* Takes an answer that no round waits for. */
static void take_late(struct redlock_lease *lease, uint32_t round, unsigned node, const struct redlock_answer *answer) {
    if (round & REDLOCK_ROUND_PUSHED) {
        take_time(lease, node, round & ~REDLOCK_ROUND_PUSHED, answer->vote == REDLOCK_VOTE_GRANTED);
        return;
    }
    if (round != REDLOCK_ROUND_HEAL) {
        /* The round is over. The release that follows it on the connection removes what it set
         * (R9). */
        lease->group->statistics.votes_late++;
        redlock_tell_voted(lease->group, node, answer->vote, answer->text);
        /* The answer to a WAIT before the current one says "granted". It counts as a push does.
         * Otherwise a node that is always slower than our next WAIT would never count. */
        if (lease->waiting && answer->vote == REDLOCK_VOTE_GRANTED && !redlock_handle_is_forgotten(lease)) {
            (void)step(lease, node, REDLOCK_PUSH_TELL);
            count(lease, node, round, false);
        }
        return;
    }
    lease->group->statistics.healed += answer->vote == REDLOCK_VOTE_GRANTED;
    redlock_keys_heal_answered(&lease->core.keys, node, answer->vote);
}

/* A node's answer to a take of slots. What it gave counts once it is known that a quorum gave the
 * same, or that no quorum did. */
__attribute__((noinline)) static void take_slots(struct redlock_lease *lease, uint32_t round, unsigned node,
                                                 struct redlock_answer answer) {
    const bool is_open = round == lease->core.round && !redlock_handle_is_forgotten(lease);
    if (is_open && answer.again && redlock_sending_again(lease, node, (enum redlock_again)answer.again)) {
        return;
    }
    redlock_nodes now = redlock_slots_note(lease, node, &answer);
    lease->group->statistics.votes_late += !is_open;
    for (; now != 0 && round == lease->core.round && !redlock_handle_is_forgotten(lease); now &= now - 1) {
        const unsigned at = redlock_nodes_first(now);
        const struct redlock_answer vote = redlock_slots_vote(lease, at, at == node ? &answer : NULL, answer.read_ns);
        take_vote(lease, at, &vote);
    }
}

void redlock_votes_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer) {
    if (lease->core.plan.slots && redlock_slots_is_take(lease, round)) {
        take_slots(lease, round, node, *answer);
    } else if (round != lease->core.round || redlock_handle_is_forgotten(lease)) {
        take_late(lease, round, node, answer);
    } else if (!answer->again || !redlock_sending_again(lease, node, (enum redlock_again)answer->again)) {
        take_vote(lease, node, answer);
    }
    redlock_driver_free_if_over(lease);
}
