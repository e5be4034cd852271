/* What the nodes have said to a waiter. */
#include "core/grants.h"

#include <assert.h>
#include <string.h>

#include "core/number.h"
#include "core/planted.h"
#include "core/time.h"

#define HAS(nodes, node) (((nodes)&REDLOCK_NODE(node)) != 0)

/* Takes the first node out of the set. */
static unsigned pop(redlock_nodes *nodes) {
    const unsigned node = redlock_nodes_first(*nodes);
    *nodes &= *nodes - 1;
    return node;
}

void redlock_grants_begin(struct redlock_grants *grants, unsigned node_count, uint32_t round) {
    assert(node_count >= 1 && node_count <= REDLOCK_NODES_MAX);
    memset(grants->nodes, 0, node_count * sizeof grants->nodes[0]);
    grants->granted = grants->fresh = 0;
    grants->looked = 0;
    grants->first_round = grants->round = round;
}

void redlock_grants_sent(struct redlock_grants *grants, uint32_t round, int64_t now_ns) {
    assert(round >= grants->first_round && round >= grants->round);
    grants->round = round;
    grants->fresh = 0;
    grants->sent_ns[round % REDLOCK_GRANTS_SENT_MAX] = now_ns;
}

static bool is_stale(const struct redlock_grants *grants, unsigned node, uint32_t round) {
    assert(grants->first_round <= grants->round);
    /* The send time of one as old as REDLOCK_GRANTS_SENT_MAX rounds is forgotten. */
    const bool unknown = round == 0 || round < grants->first_round || round > grants->round ||
                         grants->round - round >= REDLOCK_GRANTS_SENT_MAX;
    return unknown || round < grants->nodes[node].queued;
}

/* With the planted bug, it may be a grant of any WAIT. */
static uint32_t round_of(const struct redlock_grants *grants, uint32_t round) {
    return REDLOCK_PLANTED(QUEUE_NO_SERIALS) ? grants->round : round;
}

bool redlock_grants_may_grant(const struct redlock_grants *grants, unsigned node, uint32_t round) {
    assert(node < REDLOCK_NODES_MAX);
    round = round_of(grants, round);
    return !is_stale(grants, node, round) && !(HAS(grants->granted, node) && round <= grants->nodes[node].granted);
}

bool redlock_grants_grant(struct redlock_grants *grants, unsigned node, uint32_t round, int64_t now_ns) {
    struct redlock_grants_node *at = &grants->nodes[node];
    if (!redlock_grants_may_grant(grants, node, round)) {
        return false;
    }
    round = round_of(grants, round);
    at->granted = round;
    at->bound_ns = REDLOCK_PLANTED(QUEUE_BOUND_AT_PUSH) ? now_ns : grants->sent_ns[round % REDLOCK_GRANTS_SENT_MAX];
    grants->looked = HAS(grants->granted, node) ? grants->looked : 0;
    grants->granted |= REDLOCK_NODE(node);
    return true;
}

void redlock_grants_deny(struct redlock_grants *grants, unsigned node, const struct redlock_grants_view *view,
                         int64_t now_ns) {
    assert(node < REDLOCK_NODES_MAX && view);
    struct redlock_grants_node *at = &grants->nodes[node];
    at->queued = at->queued > grants->round ? at->queued : grants->round; /* a void stays */
    at->holder = (uint8_t)view->holder;
    at->holder_id = view->holder_id;
    at->rank = view->rank;
    at->expires_ns =
        view->pttl_ms == -1 ? REDLOCK_NEVER_NS : redlock_after_ms(now_ns, view->pttl_ms > 0 ? view->pttl_ms : 0);
    grants->fresh |= REDLOCK_NODE(node);
    if (at->granted < grants->round) {
        grants->granted &= ~REDLOCK_NODE(node);
    }
}

void redlock_grants_void(struct redlock_grants *grants, redlock_nodes nodes) {
    grants->fresh &= ~(grants->granted & nodes);
    grants->granted &= ~nodes;
    while (nodes != 0) {
        grants->nodes[pop(&nodes)].queued = grants->round + 1;
    }
}

int64_t redlock_grants_bound_ns(const struct redlock_grants *grants, unsigned quorum) {
    int64_t bounds[REDLOCK_NODES_MAX];
    unsigned count = 0;
    for (redlock_nodes left = grants->granted; left != 0;) {
        redlock_number_insert(bounds, count++, grants->nodes[pop(&left)].bound_ns);
    }
    assert(count >= quorum && quorum > 0);
    return bounds[count - quorum];
}

redlock_nodes redlock_grants_backing(const struct redlock_grants *grants, int64_t bound_ns) {
    assert(grants->granted != 0);
    redlock_nodes nodes = 0;
    for (redlock_nodes left = grants->granted; left != 0;) {
        const unsigned node = pop(&left);
        nodes |= grants->nodes[node].bound_ns >= bound_ns ? REDLOCK_NODE(node) : 0;
    }
    return nodes;
}

/* The nodes that answered the current WAIT, and not with a grant. */
static redlock_nodes viewed(const struct redlock_grants *grants) {
    return grants->fresh & ~grants->granted;
}

unsigned redlock_grants_count_like(const struct redlock_grants *grants, unsigned node) {
    assert(node < REDLOCK_NODES_MAX);
    unsigned count = 0;
    for (redlock_nodes left = viewed(grants); left != 0;) {
        const struct redlock_grants_node *at = &grants->nodes[pop(&left)];
        const bool has_it = at->holder != REDLOCK_HOLDER_NONE && at->holder != REDLOCK_HOLDER_AHEAD;
        count += has_it && at->holder_id == grants->nodes[node].holder_id;
    }
    return count;
}

redlock_nodes redlock_grants_held_by(const struct redlock_grants *grants, enum redlock_grants_holder holder) {
    assert(holder != REDLOCK_HOLDER_NONE);
    redlock_nodes held = 0;
    for (redlock_nodes left = viewed(grants); left != 0;) {
        const unsigned node = pop(&left);
        held |= grants->nodes[node].holder == holder ? REDLOCK_NODE(node) : 0;
    }
    return held;
}

redlock_nodes redlock_grants_before_us(const struct redlock_grants *grants) {
    const redlock_nodes ahead = redlock_grants_held_by(grants, REDLOCK_HOLDER_AHEAD);
    return redlock_grants_held_by(grants, REDLOCK_HOLDER_EARLIER) | (REDLOCK_PLANTED(SHARED_LINE_IGNORED) ? 0 : ahead);
}

redlock_nodes redlock_grants_first_at(const struct redlock_grants *grants) {
    redlock_nodes first = 0;
    for (redlock_nodes left = viewed(grants); left != 0;) {
        const unsigned node = pop(&left);
        first |= grants->nodes[node].rank == 0 ? REDLOCK_NODE(node) : 0;
    }
    return first;
}

uint32_t redlock_grants_rank(const struct redlock_grants *grants) {
    uint32_t rank = UINT32_MAX;
    for (redlock_nodes left = viewed(grants); left != 0;) {
        const uint32_t there = grants->nodes[pop(&left)].rank;
        rank = there < rank ? there : rank;
    }
    return rank;
}

int64_t redlock_grants_expiry_ns(const struct redlock_grants *grants, unsigned quorum) {
    assert(quorum > 0);
    int64_t ends[REDLOCK_NODES_MAX];
    unsigned count = 0;
    for (redlock_nodes left = viewed(grants); left != 0;) {
        redlock_number_insert(ends, count++, grants->nodes[pop(&left)].expires_ns);
    }
    return count >= quorum ? ends[quorum - 1] : REDLOCK_NEVER_NS;
}
