/* What a take of slots asks for, and what becomes of the answers. */
#include "group/slots.h"

#include <assert.h>
#include <string.h>

#include "core/planted.h"
#include "core/waiter.h"
#include "group/owed.h"
#include "wire/slots.h"

void redlock_slots_begin(struct redlock_lease *lease, redlock_nodes asked) {
    struct redlock_group *group = lease->group;
    struct redlock_permits *permits = redlock_handle_permits(lease);
    struct redlock_slots *slots = redlock_target_slots(lease->target);
    uint32_t random = 0; /* it only has to differ between clients */
    (void)group->env.random(group->env.ctx, &random, sizeof random);
    redlock_permits_take(&permits->core, asked, random);
    permits->round = lease->core.round;
    permits->held = permits->refused = permits->unknown = 0;
    slots->taken = false;
    slots->first = permits->core.first;
    slots->window = permits->core.window;
}

const struct redlock_gate *redlock_slots_gate(const struct redlock_lease *lease, struct redlock_gate *room) {
    const struct redlock_permits *permits = redlock_handle_permits(lease);
    const struct redlock_lease *gate = permits->gate;
    if (permits->core.state != REDLOCK_PERMITS_CHOOSING) {
        return NULL;
    }
    assert(gate && gate->waiting);
    *room = (struct redlock_gate){.token = redlock_handle_own_token(gate),
                                  .token_size = gate->token_size,
                                  .channel = lease->group->line.channel,
                                  .id = gate->waiting->id,
                                  .queue_ttl_ms = REDLOCK_WAITER_QUEUE_TTL_MS};
    return room;
}

static void owe(const struct redlock_lease *lease, const struct redlock_target *target, redlock_nodes nodes,
                redlock_nodes uncertain) {
    (void)redlock_owed_add(lease->group, &(struct redlock_owed_release){.target = target,
                                                                        .token = redlock_handle_own_token(lease),
                                                                        .token_size = lease->token_size,
                                                                        .nodes = nodes,
                                                                        .uncertain = uncertain,
                                                                        .ttl_ms = lease->ttl_sent_max_ms});
}

void redlock_slots_owe(const struct redlock_lease *lease, redlock_nodes nodes, redlock_nodes uncertain) {
    const bool taken = redlock_target_slots(lease->target)->taken;
    const redlock_nodes left = taken ? nodes : nodes & ~redlock_handle_permits(lease)->refused;
    if (left) {
        owe(lease, lease->target, left, left & uncertain);
    }
}

/* These nodes gave, or may give, others than the lease has. */
static void give_others(const struct redlock_lease *lease, redlock_nodes nodes, redlock_nodes uncertain) {
    uint16_t room[(sizeof(struct redlock_target) + sizeof(struct redlock_target_item) + sizeof(struct redlock_slots) +
                   REDLOCK_RESOURCE_SIZE_MAX + 1) /
                      sizeof(uint16_t) +
                  1 + REDLOCK_PERMITS_MAX];
    assert(lease->target->size <= sizeof room);
    struct redlock_target *target = memcpy(room, lease->target, lease->target->size);
    redlock_target_slots(target)->others = true;
    owe(lease, target, nodes, uncertain);
}

/* The nodes that gave the lease's slots. */
static redlock_nodes that_fit(const struct redlock_lease *lease, redlock_nodes nodes) {
    const struct redlock_slots *slots = redlock_target_slots(lease->target);
    const struct redlock_ballot *ballot = &redlock_handle_permits(lease)->core.ballot;
    redlock_nodes fit = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        const unsigned node = redlock_nodes_first(nodes);
        if (memcmp(redlock_ballot_slots(ballot, node), slots->numbers, slots->permits * sizeof *slots->numbers) == 0 ||
            REDLOCK_PLANTED(PERMITS_ANY_SLOTS)) {
            fit |= REDLOCK_NODE(node);
        }
    }
    return fit;
}

/* The slots are those that a quorum gave. Returns whose votes count now. */
static redlock_nodes settle(struct redlock_lease *lease) {
    struct redlock_permits *permits = redlock_handle_permits(lease);
    struct redlock_slots *slots = redlock_target_slots(lease->target);
    const redlock_nodes held = permits->held;
    unsigned node = 0;
    if (!slots->taken) {
        switch (redlock_ballot_outcome(&permits->core.ballot, &node)) {
        case REDLOCK_BALLOT_OPEN:
            return 0;
        case REDLOCK_BALLOT_LOST:
            permits->held = 0;
            return held;
        case REDLOCK_BALLOT_WON:
            memcpy(slots->numbers, redlock_ballot_slots(&permits->core.ballot, node),
                   slots->permits * sizeof *slots->numbers);
            slots->taken = true;
        }
    }
    const redlock_nodes others = held & ~that_fit(lease, held), unknown = permits->unknown;
    permits->held = permits->unknown = 0;
    if ((others | unknown) && !REDLOCK_PLANTED(PERMITS_OTHERS_STAY)) {
        give_others(lease, others | unknown, unknown);
    }
    return held;
}

redlock_nodes redlock_slots_note(struct redlock_lease *lease, unsigned node, struct redlock_answer *answer) {
    static const struct redlock_text odd = {.string = "the node gave slots that were not asked for",
                                            .cause = REDLOCK_CAUSE_NOT_A_NODE};
    struct redlock_permits *permits = redlock_handle_permits(lease);
    const struct redlock_slots *slots = redlock_target_slots(lease->target);
    const redlock_nodes at = REDLOCK_NODE(node);
    uint16_t numbers[REDLOCK_PERMITS_MAX];
    if (answer->vote == REDLOCK_VOTE_GRANTED &&
        !redlock_slots_read(slots, answer->holder, answer->holder_size, numbers)) {
        answer->vote = REDLOCK_VOTE_UNKNOWN;
        answer->text = redlock_text_constant(&odd);
    }
    const bool gave = answer->vote == REDLOCK_VOTE_GRANTED;
    if (!redlock_ballot_note(&permits->core.ballot, node, gave ? numbers : NULL)) {
        return 0;
    }
    permits->held |= gave ? at : 0;
    permits->refused |= answer->vote == REDLOCK_VOTE_DENIED ? at : 0;
    permits->unknown |= answer->vote == REDLOCK_VOTE_UNKNOWN ? at : 0;
    const bool matters =
        slots->taken || (lease->core.state == REDLOCK_LEASE_ACQUIRING && lease->core.round == permits->round);
    return (matters ? settle(lease) : permits->held & at) | (gave ? 0 : at);
}

struct redlock_answer redlock_slots_vote(const struct redlock_lease *lease, unsigned node,
                                         const struct redlock_answer *answer, int64_t read_ns) {
    static const struct redlock_text others = {.string = "it gave other slots than a quorum of nodes"};
    struct redlock_answer vote = {
        .vote = REDLOCK_VOTE_DENIED, .read_ns = read_ns, .text = redlock_text_constant(&others)};
    const redlock_nodes at = REDLOCK_NODE(node);
    if (answer && answer->vote != REDLOCK_VOTE_GRANTED) {
        return *answer;
    }
    if (redlock_target_slots(lease->target)->taken && that_fit(lease, at)) {
        vote.vote = REDLOCK_VOTE_GRANTED;
        vote.text = NULL;
    }
    return vote;
}
