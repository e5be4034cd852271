/* The state QUEUED, and what grants do that come later. */
#include "core/waiter.h"

#include <assert.h>

#include "core/planted.h"
#include "core/time.h"

#define REFRESH_MAX_MS 2500
#define STALE_AFTER    3 /* refreshes */
#define LOOK_MIN_MS    2
/* After so many yields in a row the earlier waiter seems not to hear that node, and the others only
 * hand the lock to each other. So the next yields hand it to nobody. */
#define YIELDS_HANDED 2
/* After so many looks in a row that changed nothing, the next ones come less and less often: some
 * nodes have a holder that needs no more of them (docs/operations.md, "Changing the nodes"), or one
 * that is dead. */
#define LOOKS_QUICK 4
#define LISTEN_MS   2 /* the other nodes confirm, too */
/* All that are before us may be dead with the holder. The first ones look one after the other. The
 * others, who may be many, look at random times, so that nodes are not asked by all at once. */
#define LOOKERS_MAX      8
#define NEXT_LOOKER_MS   10
#define LOOKERS_LEAST_MS 20
#define LOOKERS_MOST_MS  80
/* Behind a holder that will not hand over: polls after a sixteenth to a quarter of the time for
 * which we have seen it hold the lock. The delay does not grow with the number of polls. If it did,
 * others who poll would always be quicker. */
#define POLL_MIN_MS 10
#define POLL_MAX_MS 40
/* A lock that goes from waiter to waiter is left free once in so much time. A handover takes time,
 * too: without it, locks that are held for microseconds would never be left. */
#define LEAVE_EVERY_MS 10000
#define HANDOVER_NS    500000
/* How long a lease takes no place where nodes cannot keep its queue. By then they may be well. */
#define POLLS_MIN_MS 500
#define POLLS_MAX_MS 10000

_Static_assert(REDLOCK_WAITER_QUEUE_TTL_MS > STALE_AFTER * REFRESH_MAX_MS, "no place outlives its queue");

/* By the ttl that the WAITs asked for: a later extension may shorten that of the lease. */
static int64_t refresh_ms(const struct redlock_grants *grants) {
    const int64_t quarter_ms = grants->ttl_ms / 4;
    return quarter_ms > REFRESH_MAX_MS ? REFRESH_MAX_MS : quarter_ms < 1 ? 1 : quarter_ms;
}

int64_t redlock_waiter_stale_ms(const struct redlock_grants *grants) {
    return STALE_AFTER * refresh_ms(grants);
}

static unsigned answered(const struct redlock_lease_core *lease) {
    return redlock_nodes_count(lease->grants->fresh);
}

/* Sends no other WAIT until a quorum has answered the current one. It would make the answers that
 * are under way late. Where a round trip is longer than our delays, no answer would ever be in
 * time. */
static int64_t open_until_ns(const struct redlock_lease_core *lease) {
    const bool open = redlock_round_pending(&lease->votes) != 0 && answered(lease) < lease->votes.quorum;
    return open ? redlock_after_ms(lease->start_ns, lease->plan.node_timeout_ms) : lease->start_ns;
}

static void schedule(struct redlock_lease_core *lease) {
    const struct redlock_grants *grants = lease->grants;
    const int64_t due_ns = redlock_min_ns(grants->refresh_ns, redlock_min_ns(grants->look_ns, grants->ask_ns));
    lease->next_try_ns = redlock_max_ns(due_ns, open_until_ns(lease));
}

void redlock_waiter_poll(struct redlock_lease_core *lease, int64_t now_ns) {
    assert(lease->grants);
    struct redlock_grants *grants = lease->grants;
    if (grants->barred) {
        return; /* until enough nodes listen, and no longer */
    }
    grants->polled = (uint8_t)(grants->polled < UINT8_MAX ? grants->polled + 1 : UINT8_MAX);
    grants->polls_until_ns =
        redlock_after_ns(now_ns, redlock_backoff_ns(&lease->jitter, grants->polled, POLLS_MIN_MS, POLLS_MAX_MS));
}

/* Sends a WAIT. Too few nodes for a quorum are not asked at all. */
static void ask(struct redlock_lease_core *lease, const struct redlock_event *event, bool takes,
                enum redlock_grants_did did, struct redlock_actions *actions) {
    assert(lease->grants && lease->grants->ttl_ms > 0);
    struct redlock_grants *grants = lease->grants;
    const int64_t refresh_ns = refresh_ms(grants) * REDLOCK_NS_PER_MS;
    redlock_nodes nodes = redlock_nodes_all(lease->node_count) & ~event->may_not_vote;
    if (redlock_nodes_count(nodes) < lease->votes.quorum) {
        nodes = 0;
    }
    redlock_lease_start_round(lease, REDLOCK_OP_WAIT, nodes, event->now_ns, actions);
    if (actions->fresh_token) {
        redlock_grants_begin(grants, lease->node_count, lease->round);
    } else {
        redlock_keys_wait(&lease->keys, nodes);
    }
    redlock_grants_sent(grants, lease->round, event->now_ns);
    grants->takes = takes;
    grants->looks = grants->granted != 0;
    grants->refresh_ns =
        event->now_ns + redlock_between_ns(&lease->jitter, refresh_ns - refresh_ns / 10, refresh_ns + refresh_ns / 10);
    if (grants->unheard && !REDLOCK_PLANTED(QUEUE_UNHEARD_RESTS)) {
        grants->refresh_ns = redlock_min_ns(grants->refresh_ns, redlock_lease_retry_ns(lease, event->now_ns));
    }
    grants->look_ns = grants->ask_ns = REDLOCK_NEVER_NS;
    actions->did = did;
    lease->state = REDLOCK_LEASE_QUEUED;
    if (nodes == 0) { /* no vote will come */
        lease->last_code = REDLOCK_ERR_NO_QUORUM;
        grants->granted = 0;
        grants->ask_ns = redlock_lease_retry_ns(lease, event->now_ns);
    }
    schedule(lease);
}

/* The first WAIT takes a lock that is free, even if the waiter is behind. Otherwise a client that
 * comes later could get a lock that was just released, with its first try. */
void redlock_waiter_enter(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions) {
    assert(lease->grants);
    lease->attempts++;
    lease->heal_ns = REDLOCK_NEVER_NS; /* of a first try */
    lease->round_ttl_ms = lease->grants->ttl_ms = lease->plan.ttl_ms;
    lease->grants->yields = 0;
    actions->fresh_token = true;
    lease->grants->behind = false;
    ask(lease, event, true, REDLOCK_GRANTS_ENTERED, actions);
}

/* The most nodes that have the lock under one other token, by their answers to the current WAIT. */
static unsigned most_alike(const struct redlock_lease_core *lease) {
    const struct redlock_grants *grants = lease->grants;
    unsigned most = 0;
    for (unsigned i = 0; i < lease->node_count; i++) {
        if (grants->fresh & ~grants->granted & REDLOCK_NODE(i)) {
            const unsigned alike = redlock_grants_count_like(grants, i);
            most = alike > most ? alike : most;
        }
    }
    return most;
}

static void note_view(struct redlock_lease_core *lease, unsigned node, const struct redlock_event *event) {
    assert(node < lease->node_count);
    struct redlock_grants *grants = lease->grants;
    redlock_grants_deny(grants, node, event->view, event->now_ns);
    if (redlock_grants_count_like(grants, node) < lease->votes.quorum) {
        return;
    }
    grants->behind = true;
    if (grants->holder_id != event->view->holder_id) {
        grants->holder_id = event->view->holder_id;
        grants->holder_since_ns = event->now_ns;
        grants->passed_over += event->view->holder == REDLOCK_HOLDER_LATER;
    }
}

static bool note_grant(struct redlock_lease_core *lease, const struct redlock_event *event) {
    if (!redlock_grants_grant(lease->grants, redlock_event_node(event), event->round, event->now_ns)) {
        return false;
    }
    redlock_keys_granted(&lease->keys, event->nodes);
    return true;
}

static void note_vote(struct redlock_lease_core *lease, const struct redlock_event *event) {
    assert(lease->operation == REDLOCK_OP_WAIT && event->round == lease->round);
    struct redlock_grants *grants = lease->grants;
    const int64_t took_ns = event->now_ns - lease->start_ns;
    switch (event->vote) {
    case REDLOCK_VOTE_GRANTED:
        (void)note_grant(lease, event);
        grants->fresh |= event->nodes & grants->granted;
        break;
    case REDLOCK_VOTE_DENIED:
        note_view(lease, redlock_event_node(event), event);
        break;
    default:
        return;
    }
    grants->slowest_ns = answered(lease) == 1 ? took_ns : redlock_max_ns(took_ns, grants->slowest_ns);
}

void redlock_waiter_note(struct redlock_lease_core *lease, const struct redlock_event *event) {
    assert(lease->state == REDLOCK_LEASE_QUEUED);
    switch (event->type) {
    case REDLOCK_EVENT_VOTE:
        note_vote(lease, event);
        break;
    case REDLOCK_EVENT_GRANT:
        (void)note_grant(lease, event);
        break;
    case REDLOCK_EVENT_READY:
        if (event->nodes & (lease->grants->fresh | redlock_round_pending(&lease->votes))) {
            break; /* it has a place there, or will have one */
        }
        /* fall through */
    case REDLOCK_EVENT_LISTEN:
        lease->grants->refresh_ns =
            redlock_min_ns(lease->grants->refresh_ns, redlock_after_ms(event->now_ns, LISTEN_MS));
        break;
    case REDLOCK_EVENT_LEFT: /* no answer that is under way tells of it, so none may put this off */
        lease->grants->refresh_ns =
            redlock_min_ns(lease->grants->refresh_ns, redlock_after_ms(event->now_ns, REDLOCK_HAND_LATER + LISTEN_MS));
        break;
    default:
        break;
    }
}

bool redlock_waiter_has_quorum(const struct redlock_lease_core *lease) {
    return redlock_nodes_count(lease->grants->granted) >= lease->votes.quorum;
}

void redlock_waiter_stand_on_grants(struct redlock_lease_core *lease) {
    assert(redlock_waiter_has_quorum(lease));
    const int64_t bound_ns = redlock_grants_bound_ns(lease->grants, lease->votes.quorum);
    lease->deadline_ns = redlock_deadline_ns(bound_ns, lease->round_ttl_ms);
    lease->keys.backing = redlock_grants_backing(lease->grants, bound_ns);
}

bool redlock_waiter_leaves_free(struct redlock_lease_core *lease, int64_t now_ns) {
    assert(lease->state == REDLOCK_LEASE_RELEASING);
    const int64_t held_ns = now_ns - lease->begun_ns + HANDOVER_NS;
    return lease->grants && lease->grants->granted != 0 &&
           redlock_between_ns(&lease->jitter, 0, LEAVE_EVERY_MS * REDLOCK_NS_PER_MS - 1) < held_ns;
}

int redlock_waiter_reason(const struct redlock_lease_core *lease) {
    assert(lease->grants);
    const unsigned by_now = answered(lease), pending = redlock_nodes_count(redlock_round_pending(&lease->votes));
    if (by_now >= lease->votes.quorum) {
        return REDLOCK_ERR_CONTENDED;
    }
    /* The last WAIT may have been sent just now, or to nobody. */
    const bool stands = lease->votes.asked == 0 || by_now + pending >= lease->votes.quorum;
    return stands && lease->last_code != REDLOCK_OK ? lease->last_code : REDLOCK_ERR_NO_QUORUM;
}

/* Gives the grants back. With `keeps`, nobody gets them: the next in line could not reach a quorum
 * with them either, and the holder may heal its key where it is free. */
static void yield(struct redlock_lease_core *lease, const struct redlock_event *event, bool keeps, bool takes,
                  struct redlock_actions *actions) {
    assert(lease->grants->granted != 0 && !redlock_waiter_has_quorum(lease));
    if (REDLOCK_PLANTED(QUEUE_YIELD_KEEPS)) {
        const redlock_nodes to_release = lease->keys.to_release;
        redlock_lease_clean_up(lease, actions);
        lease->keys.to_release = to_release;
        lease->grants->granted = 0;
    } else {
        redlock_lease_clean_up(lease, actions);
        actions->fresh_token = true;
        lease->attempts++;
    }
    actions->handing = keeps ? REDLOCK_HAND_NOBODY : REDLOCK_HAND_OVER;
    if (lease->grants->yields < YIELDS_HANDED) {
        lease->grants->yields++;
    }
    ask(lease, event, takes, REDLOCK_GRANTS_YIELDED, actions);
}

/* How long the answers of a handover may take to come in. */
static int64_t look_delay_ns(const struct redlock_lease_core *lease) {
    const int64_t delay_ns = 2 * lease->grants->slowest_ns, max_ns = lease->plan.node_timeout_ms * REDLOCK_NS_PER_MS;
    return delay_ns > max_ns ? max_ns : redlock_max_ns(delay_ns, LOOK_MIN_MS * REDLOCK_NS_PER_MS);
}

/* Looks soon when as many keys of others have ended as we lack grants. */
static int64_t next_look_ns(struct redlock_lease_core *lease, int64_t now_ns) {
    assert(!redlock_waiter_has_quorum(lease));
    struct redlock_grants *grants = lease->grants;
    const int64_t soon_ns = 2 * look_delay_ns(lease), most_ns = refresh_ms(grants) * REDLOCK_NS_PER_MS;
    if (grants->looked < LOOKS_QUICK) {
        grants->looked++;
        return now_ns + soon_ns;
    }
    int64_t delay_ns = soon_ns;
    for (unsigned i = LOOKS_QUICK; i <= grants->looked && delay_ns < most_ns; i++) {
        delay_ns *= 2;
    }
    grants->looked = (uint8_t)(grants->looked < UINT8_MAX ? grants->looked + 1 : UINT8_MAX);
    const unsigned lacks = lease->votes.quorum - redlock_nodes_count(grants->granted);
    const int64_t ended_ns = redlock_after_ms(redlock_grants_expiry_ns(grants, lacks), LOOK_MIN_MS);
    return redlock_max_ns(redlock_min_ns(now_ns + redlock_min_ns(delay_ns, most_ns), ended_ns), now_ns + soon_ns);
}

/* Some nodes granted, but no quorum, and the others have answered since. */
static void judge_split(struct redlock_lease_core *lease, const struct redlock_event *event,
                        struct redlock_actions *actions) {
    assert(lease->grants->granted != 0 && lease->grants->looks);
    struct redlock_grants *grants = lease->grants;
    if (grants->behind) {
        yield(lease, event, true, false, actions);
    } else if (redlock_grants_before_us(grants) != 0) {
        /* Does not take: if the earlier waiter is dead, the nodes would only be split again. */
        yield(lease, event, grants->yields >= YIELDS_HANDED, false, actions);
    } else if (answered(lease) < lease->votes.quorum) {
        /* Asks no node for a while. Otherwise two such waiters would hand the lock to each other
         * all the time. */
        struct redlock_event away = *event;
        const int8_t code = lease->last_code; /* slow nodes may still be there */
        away.may_not_vote = redlock_nodes_all(lease->node_count);
        yield(lease, &away, false, true, actions);
        lease->last_code = code;
    } else {
        grants->looks = false;
        grants->look_ns = next_look_ns(lease, event->now_ns);
    }
}

static int64_t poll_delay_ns(struct redlock_lease_core *lease, int64_t now_ns) {
    const struct redlock_plan *plan = &lease->plan;
    const int64_t seen_ms = lease->grants->behind ? (now_ns - lease->grants->holder_since_ns) / REDLOCK_NS_PER_MS : 0;
    int64_t least_ms = seen_ms / 16 > POLL_MIN_MS ? seen_ms / 16 : POLL_MIN_MS;
    int64_t most_ms = seen_ms / 4 > POLL_MAX_MS ? seen_ms / 4 : POLL_MAX_MS;
    least_ms = least_ms < plan->retry_delay_min_ms ? least_ms : plan->retry_delay_min_ms;
    most_ms = most_ms < plan->retry_delay_max_ms ? most_ms : plan->retry_delay_max_ms;
    return redlock_delay_between_ns(&lease->jitter, least_ms, most_ms);
}

/* How much later than the first in line this one looks. Where the lock is split, an earlier waiter
 * may be about to get the other nodes. */
static int64_t looks_after_ns(struct redlock_lease_core *lease, uint32_t rank) {
    assert(rank > 0);
    return rank < LOOKERS_MAX && lease->grants->behind
               ? rank * NEXT_LOOKER_MS * REDLOCK_NS_PER_MS
               : redlock_delay_between_ns(&lease->jitter, LOOKERS_LEAST_MS, LOOKERS_MOST_MS);
}

/* The first in line asks when the holder's keys have ended at a quorum: the holder may be dead. The
 * others ask a little later: the first may have died with it. Keys that are not there have ended:
 * the lock is left free, the dead before us were too many for one request, or one of them has the
 * other nodes. Behind a holder that will not hand over, the first asks again and again. */
static void plan_first(struct redlock_lease_core *lease, const struct redlock_event *event) {
    assert(lease->grants->granted == 0 && answered(lease) >= lease->votes.quorum);
    struct redlock_grants *grants = lease->grants;
    const uint32_t rank = redlock_grants_rank(grants);
    const int64_t dead_ns = redlock_after_ns(redlock_grants_expiry_ns(grants, lease->votes.quorum),
                                             redlock_delay_between_ns(&lease->jitter, 1, 2));
    if (rank == 0) {
        grants->ask_ns = dead_ns;
    } else if (rank < LOOKERS_MAX || !REDLOCK_PLANTED(QUEUE_FEW_LOOK)) {
        grants->refresh_ns = redlock_min_ns(grants->refresh_ns, redlock_after_ns(dead_ns, looks_after_ns(lease, rank)));
    }
    if (redlock_grants_held_by(grants, REDLOCK_HOLDER_STRANGER) & redlock_grants_first_at(grants)) {
        grants->ask_ns = redlock_min_ns(grants->ask_ns, event->now_ns + poll_delay_ns(lease, event->now_ns));
    }
}

/* All nodes that will answer have answered, and none has granted. */
static void judge_wait(struct redlock_lease_core *lease, const struct redlock_event *event,
                       struct redlock_actions *actions) {
    assert(lease->grants->granted == 0);
    struct redlock_grants *grants = lease->grants;
    if (answered(lease) < lease->votes.quorum) {
        grants->ask_ns = redlock_lease_retry_ns(lease, event->now_ns);
    } else if (!grants->behind && !grants->takes && redlock_grants_before_us(grants) == 0) {
        ask(lease, event, true, REDLOCK_GRANTS_REFRESHED, actions);
    } else {
        plan_first(lease, event);
        /* One may have given us the lock; or we gave ours to nobody, and only we know. */
        const bool gave_back = !grants->takes && grants->yields >= YIELDS_HANDED;
        if (!grants->behind && (lease->votes.unknown != 0 || gave_back)) {
            grants->refresh_ns = redlock_min_ns(grants->refresh_ns, redlock_lease_retry_ns(lease, event->now_ns));
        }
    }
}

/* Takes stock: the nodes that will answer the current WAIT have answered. */
static void judge(struct redlock_lease_core *lease, const struct redlock_event *event,
                  struct redlock_actions *actions) {
    struct redlock_grants *grants = lease->grants;
    grants->behind = most_alike(lease) >= lease->votes.quorum;
    grants->yields = grants->behind ? 0 : grants->yields;
    grants->polled = answered(lease) >= lease->votes.quorum ? 0 : grants->polled;
    lease->last_code = (int8_t)redlock_waiter_reason(lease);
    if (grants->granted == 0) {
        judge_wait(lease, event, actions);
    } else if (grants->looks) {
        judge_split(lease, event, actions);
    }
}

static void on_due(struct redlock_lease_core *lease, const struct redlock_event *event,
                   struct redlock_actions *actions) {
    struct redlock_grants *grants = lease->grants;
    lease->last_code = (int8_t)redlock_waiter_reason(lease);
    if (grants->granted != 0 && grants->looks) {
        judge(lease, event, actions); /* without the nodes that are slower than all others were */
        return;
    }
    if (grants->granted != 0) {
        ask(lease, event, true, REDLOCK_GRANTS_LOOKED, actions);
        return;
    }
    if (event->misplaced) { /* the token carries the ticket */
        redlock_lease_clean_up(lease, actions);
        actions->fresh_token = true;
        lease->attempts++;
    }
    if (event->now_ns >= grants->ask_ns) {
        ask(lease, event, true, REDLOCK_GRANTS_POLLED, actions);
    } else {
        ask(lease, event, !grants->behind, REDLOCK_GRANTS_REFRESHED, actions);
    }
}

/* Whether the votes that are pending could still change what judge() finds. */
static bool is_known(const struct redlock_lease_core *lease) {
    const unsigned pending = redlock_nodes_count(redlock_round_pending(&lease->votes)), alike = most_alike(lease);
    const unsigned quorum = lease->votes.quorum;
    return pending == 0 ||
           (lease->grants->granted == 0 && answered(lease) >= quorum && (alike >= quorum || alike + pending < quorum));
}

void redlock_waiter_go_on(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions) {
    assert(lease->state == REDLOCK_LEASE_QUEUED && !redlock_waiter_has_quorum(lease));
    struct redlock_grants *grants = lease->grants;
    switch (event->type) {
    case REDLOCK_EVENT_TIMER:
        if (event->now_ns < lease->next_try_ns) {
            return;
        }
        on_due(lease, event, actions);
        break;
    case REDLOCK_EVENT_VOTE:
    case REDLOCK_EVENT_REFUSED:
        if (is_known(lease)) {
            judge(lease, event, actions);
        }
        break;
    default:
        break;
    }
    if (grants->granted != 0 && grants->look_ns == REDLOCK_NEVER_NS && event->now_ns >= open_until_ns(lease)) {
        grants->look_ns = event->now_ns + look_delay_ns(lease);
    }
    schedule(lease);
}

void redlock_waiter_note_late(struct redlock_lease_core *lease, const struct redlock_event *event) {
    assert(lease->state == REDLOCK_LEASE_FENCING || redlock_lease_is_held(lease));
    struct redlock_grants *grants = lease->grants;
    if (event->type == REDLOCK_EVENT_VOTE && event->vote == REDLOCK_VOTE_DENIED) {
        const redlock_nodes granted = grants->granted;
        redlock_grants_deny(grants, redlock_event_node(event), event->view, event->now_ns);
        redlock_keys_lost(&lease->keys, granted & ~grants->granted);
        return;
    }
    const bool is_grant = event->type == REDLOCK_EVENT_GRANT ||
                          (event->type == REDLOCK_EVENT_VOTE && event->vote == REDLOCK_VOTE_GRANTED);
    if (!is_grant || !note_grant(lease, event)) {
        return;
    }
    /* Whatever the node said of the key before, it is out of date. */
    redlock_keys_set_outside(&lease->keys, event->nodes);
    if (redlock_deadline_ns(grants->nodes[redlock_event_node(event)].bound_ns, grants->ttl_ms) >= lease->deadline_ns ||
        REDLOCK_PLANTED(QUEUE_LATE_BACKING)) {
        lease->keys.backing |= event->nodes;
    }
}
