/* Planted bugs of the core that stand at a call between its files: the linker's --wrap puts them
 * there. */
#include "core/bundle.h"
#include "core/candidate.h"
#include "core/debt.h"
#include "core/guard.h"
#include "core/held.h"
#include "core/planted.h"
#include "core/time.h"
#include "core/waiter.h"
#include "planted_word.h"

#define WRAPPED(type, name, ...)                                                                                       \
    type __real_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                                                   \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(unsigned, redlock_quorum, unsigned n) {
    return REDLOCK_PLANTED(QUORUM_HALF) ? (n + (n == 1)) / 2 : __real_redlock_quorum(n);
}

WRAPPED(int64_t, redlock_drift_ms, int64_t ttl_ms) {
    return REDLOCK_PLANTED(NO_DRIFT) ? 0 : __real_redlock_drift_ms(ttl_ms);
}

WRAPPED(int64_t, redlock_deadline_ns, int64_t start_ns, int64_t ttl_ms) {
    return REDLOCK_PLANTED(NO_DRIFT) ? start_ns + ttl_ms * REDLOCK_NS_PER_MS
                                     : __real_redlock_deadline_ns(start_ns, ttl_ms);
}

WRAPPED(redlock_nodes, redlock_round_vote, struct redlock_round *round, redlock_nodes nodes, redlock_vote_kind vote) {
    const bool grants = REDLOCK_PLANTED(UNKNOWN_GRANTS) && vote == REDLOCK_VOTE_UNKNOWN;
    return __real_redlock_round_vote(round, nodes, grants ? REDLOCK_VOTE_GRANTED : vote);
}

WRAPPED(bool, redlock_round_answered_by_now, const struct redlock_round *round) {
    return REDLOCK_PLANTED(REASON_SILENT)
               ? redlock_nodes_count(round->asked & ~(round->failed | round->unknown)) >= round->quorum
               : __real_redlock_round_answered_by_now(round);
}

WRAPPED(bool, redlock_round_answered, const struct redlock_round *round) {
    return REDLOCK_PLANTED(REASON_EARLY) ? __real_redlock_round_answered_by_now(round)
                                         : __real_redlock_round_answered(round);
}

WRAPPED(redlock_nodes, redlock_guard_may_not_vote, const struct redlock_guard *guard, int64_t now_ns) {
    const redlock_nodes nodes = __real_redlock_guard_may_not_vote(guard, now_ns);
    return REDLOCK_PLANTED(JUMP_VOTES) ? nodes & ~redlock_guard_may_not_vote_by_clock(guard, now_ns) : nodes;
}

/* A waiter asks nodes that may not vote, too. */
static struct redlock_event for_waiter(const struct redlock_event *event) {
    struct redlock_event changed = *event;
    if (REDLOCK_PLANTED(QUEUE_ANY_SERVER)) {
        changed.may_not_vote = 0;
    }
    return changed;
}

WRAPPED(void, redlock_waiter_enter, struct redlock_lease_core *lease, const struct redlock_event *event,
        struct redlock_actions *actions) {
    const struct redlock_event changed = for_waiter(event);
    __real_redlock_waiter_enter(lease, &changed, actions);
}

WRAPPED(void, redlock_waiter_go_on, struct redlock_lease_core *lease, const struct redlock_event *event,
        struct redlock_actions *actions) {
    const struct redlock_event changed = for_waiter(event);
    __real_redlock_waiter_go_on(lease, &changed, actions);
}

/* Whatever its nodes do from now on. */
WRAPPED(void, redlock_waiter_poll, struct redlock_lease_core *lease, int64_t now_ns) {
    __real_redlock_waiter_poll(lease, now_ns);
    lease->grants->polls_until_ns = REDLOCK_PLANTED(QUEUE_POLLS_ON) ? REDLOCK_NEVER_NS : lease->grants->polls_until_ns;
}

WRAPPED(void, redlock_held_void, struct redlock_lease_core *lease, redlock_nodes nodes, int64_t now_ns,
        struct redlock_actions *actions) {
    if (!REDLOCK_PLANTED(JUMP_IGNORED)) {
        __real_redlock_held_void(lease, nodes, now_ns, actions);
    }
}

WRAPPED(void, redlock_debt_start, struct redlock_debt *debt, redlock_nodes owing, redlock_nodes uncertain,
        int64_t expires_ns) {
    __real_redlock_debt_start(debt, owing, REDLOCK_PLANTED(DEBT_ENDS_BY_CLOCK) ? 0 : uncertain, expires_ns);
}

WRAPPED(void, redlock_candidate_step, struct redlock_candidate *candidate, enum redlock_candidate_input input, int code,
        int64_t now_ns, struct redlock_candidate_actions *actions) {
    const bool looks = input == REDLOCK_CANDIDATE_TIMER && candidate->state == REDLOCK_CANDIDATE_CAMPAIGNING;
    const bool is_due = now_ns >= candidate->wake_ns;
    __real_redlock_candidate_step(candidate, input, code, now_ns, actions);
    if (REDLOCK_PLANTED(ELECT_LOSS_LATE) && input == REDLOCK_CANDIDATE_LOST) {
        candidate->untold = true;
        actions->tell = REDLOCK_ELECTION_NOTHING;
    } else if (REDLOCK_PLANTED(ELECT_LOSS_LATE) && looks && is_due && candidate->untold) {
        candidate->untold = false;
        actions->tell = REDLOCK_ELECTION_LOST;
    } else if (REDLOCK_PLANTED(ELECT_LOSS_RESTS) && input == REDLOCK_CANDIDATE_LOST) {
        candidate->state = REDLOCK_CANDIDATE_PAUSED;
        candidate->wake_ns = REDLOCK_NEVER_NS;
        actions->acquire = false;
    }
}

WRAPPED(void, redlock_bundle_step, struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
        struct redlock_bundle_actions *actions) {
    if (REDLOCK_PLANTED(BUNDLE_LOSES_ONE) && event->type == REDLOCK_BUNDLE_ITEM_LOST &&
        bundle->state == REDLOCK_BUNDLE_HELD) {
        *actions = (struct redlock_bundle_actions){0};
        return;
    }
    __real_redlock_bundle_step(bundle, event, actions);
    if (REDLOCK_PLANTED(BUNDLE_KEEPS_ALL) && actions->wait != 0) {
        bundle->held |= actions->end;
        actions->end = 0;
    } else if (REDLOCK_PLANTED(BUNDLE_LEAVES_PREFIX) && bundle->state == REDLOCK_BUNDLE_ENDED) {
        actions->forget |= actions->end;
        actions->end = 0;
    }
}

WRAPPED(void, redlock_leadership_init, struct redlock_leadership *leadership, uint32_t seed, int64_t now_ns) {
    __real_redlock_leadership_init(leadership, seed, now_ns);
    leadership->quorum = REDLOCK_PLANTED(OBSERVER_ANY_NODE) ? 1 : leadership->quorum;
}

/* Forgets which words are older than the leader. */
static void renew_words(struct redlock_leadership *leadership) {
    for (unsigned i = 0; REDLOCK_PLANTED(OBSERVER_OLD_WORDS) && i < leadership->node_count; i++) {
        leadership->nodes[i].old = leadership->nodes[i].late = false;
    }
}

WRAPPED(void, redlock_leadership_answer, struct redlock_leadership *leadership, unsigned node,
        const struct redlock_leader_word *word, int64_t now_ns) {
    renew_words(leadership);
    leadership->checked = leadership->checked || REDLOCK_PLANTED(OBSERVER_UNCHECKED);
    __real_redlock_leadership_answer(leadership, node, word, now_ns);
}

struct redlock_leader_word redlock_planted_word;

/* As an answer to a question that was asked just now. */
static void believe(struct redlock_leadership *leadership, unsigned index) {
    struct redlock_leader_node *node = &leadership->nodes[index];
    const bool asked = node->asked;
    node->asked = true;
    node->outdated = node->late = false;
    __real_redlock_leadership_answer(leadership, index, &redlock_planted_word, node->ask_ns);
    node->asked = node->outdated = asked;
}

WRAPPED(void, redlock_leadership_hint, struct redlock_leadership *leadership, unsigned node) {
    if (REDLOCK_PLANTED(OBSERVER_BELIEVES)) {
        believe(leadership, node);
        return;
    }
    if (!REDLOCK_PLANTED(OBSERVER_DEAF) || !leadership->known || leadership->leader.size == 0) {
        __real_redlock_leadership_hint(leadership, node);
    }
}

WRAPPED(redlock_nodes, redlock_leadership_ask, struct redlock_leadership *leadership, int64_t now_ns) {
    return REDLOCK_PLANTED(OBSERVER_ASKS_ONCE) && leadership->known ? 0
                                                                    : __real_redlock_leadership_ask(leadership, now_ns);
}

WRAPPED(int64_t, redlock_leadership_next_ns, const struct redlock_leadership *leadership) {
    return REDLOCK_PLANTED(OBSERVER_ASKS_ONCE) && leadership->known ? REDLOCK_NEVER_NS
                                                                    : __real_redlock_leadership_next_ns(leadership);
}
