/* What answers to a lease's requests mean as votes. */
#include "group/votes.h"

#include "group/handover.h"
#include "group/journal.h"
#include "group/lease.h"
#include "group/quarantine.h"
#include "group/sending.h"
#include "group/telemetry.h"
#include "group/waiting.h"

static void follow_clock(struct redlock_group *group, const struct redlock_answer *answer) {
    if (answer->counter != 0) {
        group->fence_ahead_us =
            redlock_fence_ahead_us(group->fence_ahead_us, answer->counter, group->env.wall_us(group->env.ctx));
    }
}

static void note_vote(struct redlock_lease *lease, unsigned node, redlock_vote_kind vote, struct redlock_text *text,
                      const struct redlock_answer *answer) {
    struct redlock_detail *detail = &lease->details[node];
    redlock_text_drop(detail->text);
    detail->text = redlock_text_keep(text);
    detail->kind = (uint8_t)vote;
    const int64_t latency_us = (answer->read_ns - lease->core.start_ns) / 1000;
    detail->latency_us = latency_us < INT32_MAX ? (int32_t)latency_us : INT32_MAX;
    REDLOCK_PROBE(4, vote, lease, node, (int)vote, latency_us);
    redlock_journal_vote(lease, node, answer);
}

/* Whether a GRANTED of this node counts, by what the guards know now. */
static bool counts_under_guards(const struct redlock_lease *lease, unsigned node) {
    const struct redlock_group *group = lease->group;
    const int64_t now_ns = redlock_group_now_ns(group);
    return redlock_lease_counts_under_guards(&lease->core, node, redlock_quarantine_may_not_vote(group, now_ns),
                                             redlock_quarantine_may_not_vote_by_clock(group, now_ns));
}

/* The text for a vote. */
static struct redlock_text *text_of(const struct redlock_lease *lease, const struct redlock_answer *answer) {
    static const struct redlock_text far = {
        .string = "its fencing counter is over 30 minutes ahead of this client's clock: ignored "
                  "where other nodes make a quorum"};
    const bool about_lock = lease->core.operation == REDLOCK_OP_ACQUIRE && answer->vote == REDLOCK_VOTE_DENIED;
    return answer->counter != 0 && !about_lock && redlock_fence_is_far(answer->counter, redlock_lease_wall_us(lease))
               ? redlock_text_constant(&far)
               : answer->text;
}

static void take_wait_vote(struct redlock_lease *lease, unsigned node, redlock_vote_kind vote,
                           const struct redlock_answer *answer) {
    struct redlock_queue_view view;
    struct redlock_event event = redlock_lease_event(lease, REDLOCK_EVENT_VOTE);
    event.nodes = REDLOCK_NODE(node);
    event.vote = vote;
    event.round = lease->core.round;
    if (vote == REDLOCK_VOTE_GRANTED || vote == REDLOCK_VOTE_DENIED) {
        redlock_waiting_note_kept(lease, node);
    }
    if (vote == REDLOCK_VOTE_GRANTED) { /* by the answer, so nobody was before us */
        lease->waiting->no_push_due |= event.nodes;
        redlock_line_note_release(&lease->group->line, &lease->target, false);
    } else if (vote == REDLOCK_VOTE_DENIED) {
        view = redlock_waiting_view(lease, answer);
        event.view = &view;
    } else if (vote == REDLOCK_VOTE_FAILED && redlock_waiting_must_poll(lease, node, answer->text)) {
        event.type = REDLOCK_EVENT_POLL;
    }
    redlock_lease_feed(lease, &event);
}

/* For a vote that may make the lease take its place in the queues. */
static redlock_nodes may_not_vote(const struct redlock_lease *lease) {
    return lease->waiting ? redlock_quarantine_may_not_vote(lease->group, redlock_group_now_ns(lease->group)) : 0;
}

/* Takes a vote of the current round. */
static void take_vote(struct redlock_lease *lease, unsigned node, const struct redlock_answer *answer) {
    struct redlock_group *group = lease->group;
    redlock_vote_kind vote = answer->vote;
    struct redlock_text *text = answer->fenced ? text_of(lease, answer) : answer->text, *why = NULL;
    if (group->guards && vote == REDLOCK_VOTE_GRANTED && !counts_under_guards(lease, node)) {
        vote = REDLOCK_VOTE_UNKNOWN;
        text = why = redlock_quarantine_text(group, node);
    }
    group->statistics.votes_late += !redlock_lease_round_is_open(&lease->core);
    redlock_telemetry_voted(group, node, vote, text);
    note_vote(lease, node, vote, text, answer);
    redlock_text_drop(why);
    if (lease->core.operation == REDLOCK_OP_WAIT) {
        take_wait_vote(lease, node, vote, answer);
        return;
    }
    if (answer->handed_over) {
        redlock_line_note_release(&group->line, &lease->target, true);
    }
    if (answer->fenced) {
        follow_clock(group, answer);
    } else if (redlock_lease_count_only(&lease->core, node, vote)) {
        return;
    }
    /* R1, R3: read the clock again. A vote that makes a lease must be in time now, not only when it
     * was read. */
    redlock_lease_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_VOTE,
                                                      .now_ns = redlock_group_now_ns(group),
                                                      .wall_us = redlock_lease_wall_us(lease),
                                                      .may_not_vote = may_not_vote(lease),
                                                      .nodes = REDLOCK_NODE(node),
                                                      .vote = vote,
                                                      .accepted = answer->accepted,
                                                      .counter = answer->counter,
                                                      .round = lease->core.round});
}

/* The answer to a WAIT before the current one says "granted". It counts as a push does, if the
 * guards let the node vote. Otherwise a node that is always slower than our next WAIT would never
 * count. */
static void take_late_grant(struct redlock_lease *lease, uint32_t round, unsigned node) {
    struct redlock_event event = redlock_lease_event(lease, REDLOCK_EVENT_GRANT);
    event.nodes = REDLOCK_NODE(node);
    event.round = round;
    if ((event.may_not_vote & event.nodes) == 0) {
        redlock_lease_feed(lease, &event);
    }
}

/* Takes an answer that no round waits for. */
static void take_late(struct redlock_lease *lease, uint32_t round, unsigned node, const struct redlock_answer *answer) {
    if (round & REDLOCK_ROUND_PUSHED) {
        redlock_handover_timed(lease, node, round & ~REDLOCK_ROUND_PUSHED, answer->vote == REDLOCK_VOTE_GRANTED);
        return;
    }
    if (round != REDLOCK_ROUND_HEAL) {
        /* The round is over. The release that follows it on the connection removes what it set
         * (R9). */
        lease->group->statistics.votes_late++;
        redlock_telemetry_voted(lease->group, node, answer->vote, answer->text);
        if (lease->waiting && answer->vote == REDLOCK_VOTE_GRANTED && !lease->forgotten) {
            lease->waiting->no_push_due |= REDLOCK_NODE(node);
            take_late_grant(lease, round, node);
        }
        return;
    }
    lease->group->statistics.healed += answer->vote == REDLOCK_VOTE_GRANTED;
    redlock_keys_heal_answered(&lease->core.keys, node, answer->vote);
}

void redlock_lease_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer) {
    if (round != lease->core.round || lease->forgotten) {
        take_late(lease, round, node, answer);
    } else if (!answer->no_script || !redlock_lease_send_by_source(lease, node)) {
        take_vote(lease, node, answer);
    }
    redlock_lease_free_if_over(lease);
}
