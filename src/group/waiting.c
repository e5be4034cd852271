/* What a lease that waits in queues asks for, and what came of it. */
#include "group/waiting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/holder.h"
#include "core/planted.h"
#include "core/waiter.h"
#include "group/handle.h"
#include "group/line.h"
#include "group/tell.h"

/* Nodes skip us as long as they cannot tell us. */
static bool is_unheard(const struct redlock_group *group) {
    return redlock_nodes_count(group->line.listening) < group->quorum;
}

bool redlock_waiting_prepare(struct redlock_lease *lease, uint64_t arrival_us, int64_t now_ns) {
    struct redlock_waiting *waiting = lease->waiting;
    assert(waiting && lease->core.state == REDLOCK_LEASE_IDLE);
    if (!redlock_line_add(&lease->group->line, lease, &waiting->id)) {
        return false;
    }
    waiting->in_line = arrival_us != 0;
    waiting->arrival_us = arrival_us != 0 ? arrival_us : redlock_line_arrive(&lease->group->line, now_ns);
    if (REDLOCK_PLANTED(QUEUE_EARLY_TICKET)) {
        waiting->arrival_us = redlock_line_ticket(&lease->group->line, &lease->group->env, waiting->arrival_us);
    }
    redlock_lease_may_queue(&lease->core, (struct redlock_grants *)(waiting + 1));
    lease->core.grants->barred = lease->group->line.polls;
    lease->core.grants->unheard = is_unheard(lease->group);
    return true;
}

/* The ticket of its token, which begins with it. That of a first try is 0. */
static uint64_t own_ticket(const struct redlock_lease *lease) {
    char digits[REDLOCK_TICKET_DIGITS + 1];
    assert(lease->waiting && lease->token_size > REDLOCK_TICKET_DIGITS);
    memcpy(digits, redlock_handle_own_token(lease), REDLOCK_TICKET_DIGITS);
    digits[REDLOCK_TICKET_DIGITS] = '\0';
    return strtoull(digits, NULL, 16);
}

static uint64_t right_ticket(const struct redlock_lease *lease) {
    return REDLOCK_PLANTED(QUEUE_EARLY_TICKET)
               ? lease->waiting->arrival_us
               : redlock_line_ticket(&lease->group->line, &lease->group->env, lease->waiting->arrival_us);
}

bool redlock_waiting_is_misplaced(const struct redlock_lease *lease) {
    const struct redlock_waiting *waiting = lease->waiting;
    if (lease->core.state != REDLOCK_LEASE_QUEUED || REDLOCK_PLANTED(QUEUE_EARLY_TICKET)) {
        return false;
    }
    return waiting->guessed ? redlock_line_knows_time(&lease->group->line, lease->group->quorum)
                            : redlock_line_is_wrong(own_ticket(lease), right_ticket(lease));
}

uint64_t redlock_waiting_ticket(struct redlock_lease *lease) {
    const uint64_t own = own_ticket(lease);
    const bool stays = own != 0 && !redlock_waiting_is_misplaced(lease);
    const uint64_t ticket = stays ? own : right_ticket(lease);
    lease->waiting->guessed = !redlock_line_knows_time(&lease->group->line, lease->group->quorum);
    return ticket;
}

/* Whoever is QUEUED is in line. */
static void move_in_line(const struct redlock_lease *lease, enum redlock_lease_state before,
                         enum redlock_lease_state after) {
    const bool was = before == REDLOCK_LEASE_QUEUED, is = after == REDLOCK_LEASE_QUEUED;
    if (is != was) {
        redlock_line_note_queued(&lease->group->line, lease->target, is);
    }
}

void redlock_waiting_sent(struct redlock_lease *lease, const struct redlock_actions *actions, redlock_nodes taken) {
    struct redlock_grants *grants = lease->core.grants;
    if (actions->send == REDLOCK_OP_WAIT) {
        redlock_push_step_all(grants, taken, REDLOCK_PUSH_ASK);
    } else if (actions->send == REDLOCK_OP_RELEASE) {
        redlock_push_step_all(grants, actions->send_nodes, REDLOCK_PUSH_RELEASE);
        redlock_push_step_all(grants, actions->send_nodes & ~taken, REDLOCK_PUSH_UNCONFIRMED);
        redlock_push_step_all(grants, redlock_nodes_all(lease->core.node_count), REDLOCK_PUSH_GIVE_UP);
    }
}

redlock_nodes redlock_waiting_nodes_in(const struct redlock_lease *lease, enum redlock_push_state state) {
    const struct redlock_grants *grants = lease->core.grants;
    return grants ? redlock_push_nodes_in(grants, redlock_nodes_all(lease->core.node_count), state) : 0;
}

/* The releases that were confirmed before the push of their grant came. It may still come until the
 * node timeout. */
static void expect_pushes(const struct redlock_lease *lease) {
    struct redlock_group *group = lease->group;
    const redlock_nodes nodes = redlock_waiting_nodes_in(lease, REDLOCK_PUSH_EXPECTED);
    if (nodes) {
        redlock_push_expect(&group->line.expected, redlock_hash(redlock_handle_own_token(lease), lease->token_size),
                            nodes, redlock_group_now_ns(group) + group->node_timeout_ns);
    }
}

void redlock_waiting_end(struct redlock_lease *lease) {
    expect_pushes(lease);
    move_in_line(lease, lease->core.state, REDLOCK_LEASE_ENDED);
    if (redlock_line_get(&lease->group->line, lease->waiting->id) == lease) {
        redlock_line_remove(&lease->group->line, lease->waiting->id);
    }
}

void redlock_waiting_keep(struct redlock_lease *lease) {
    assert(redlock_handle_is_forgotten(lease));
    redlock_push_step_all(lease->core.grants, redlock_nodes_all(lease->core.node_count), REDLOCK_PUSH_KEEP);
}

/* Whoever has neither a place nor the lock wants no push. */
static void give_token_up(struct redlock_lease *lease, const struct redlock_actions *actions) {
    const bool stays = actions->lost && redlock_lease_delays(&lease->core);
    switch (lease->core.state) {
    case REDLOCK_LEASE_RETRYING:
    case REDLOCK_LEASE_LOST:
    case REDLOCK_LEASE_ENDED:
        redlock_push_step_all(lease->core.grants, redlock_nodes_all(lease->core.node_count),
                              stays ? REDLOCK_PUSH_KEEP : REDLOCK_PUSH_GIVE_UP);
        break;
    default:
        break;
    }
}

/* A grant by push, or in answer to an earlier WAIT, is a vote, too. */
static void note_grants(struct redlock_lease *lease) {
    const int64_t latency_us = (redlock_group_now_ns(lease->group) - lease->core.start_ns) / 1000;
    for (unsigned i = 0; i < lease->group->node_count; i++) {
        struct redlock_result_vote *detail = &lease->details[i];
        if ((lease->core.grants->granted & REDLOCK_NODE(i)) && detail->kind != REDLOCK_VOTE_GRANTED) {
            redlock_handle_put_text(lease, i, NULL);
            *detail = (struct redlock_result_vote){
                .latency_us = latency_us < INT32_MAX ? (int32_t)latency_us : INT32_MAX, .kind = REDLOCK_VOTE_GRANTED};
        }
    }
}

void redlock_waiting_stepped(struct redlock_lease *lease, enum redlock_lease_state before,
                             const struct redlock_actions *actions) {
    redlock_statistics *statistics = &lease->group->statistics;
    const bool queued = lease->core.state == REDLOCK_LEASE_QUEUED;
    assert(lease->waiting && lease->core.grants);
    if (queued && before != REDLOCK_LEASE_QUEUED && !lease->waiting->counted) {
        lease->waiting->counted = true;
        statistics->queued++;
        redlock_tell_queued(lease);
    }
    statistics->splits += actions->did == REDLOCK_GRANTS_LOOKED;
    statistics->yields += actions->did == REDLOCK_GRANTS_YIELDED;
    statistics->polls += actions->did == REDLOCK_GRANTS_POLLED;
    if (actions->acquired && actions->acquired_code == REDLOCK_OK && lease->core.operation == REDLOCK_OP_WAIT) {
        note_grants(lease);
    }
    if (actions->acquired) {
        statistics->passed_over += lease->core.grants->passed_over;
        statistics->handed_over += actions->acquired_code == REDLOCK_OK && own_ticket(lease) != 0;
    }
    move_in_line(lease, before, lease->core.state);
    give_token_up(lease, actions);
}

bool redlock_waiting_may_ask(const struct redlock_group *group) {
    return redlock_nodes_count(group->line.met) >= group->quorum || REDLOCK_PLANTED(QUEUE_EARLY_TICKET) ||
           REDLOCK_PLANTED(WAIT_UNGREETED);
}

struct redlock_place redlock_waiting_place(const struct redlock_lease *lease, redlock_nodes nodes, uint64_t *seals) {
    const struct redlock_group *group = lease->group;
    const struct redlock_push push = {.id = lease->waiting->id,
                                      .round = lease->core.round,
                                      .token = redlock_handle_own_token(lease),
                                      .token_size = lease->token_size,
                                      .key = redlock_target_key(lease->target),
                                      .key_size = redlock_target_key_size(lease->target)};
    redlock_line_seal(group->line.secret, nodes, &push, redlock_group_now_ns(group), seals);
    return (struct redlock_place){.ticket = own_ticket(lease),
                                  .stale_ms = redlock_waiter_stale_ms(lease->core.grants),
                                  .queue_ttl_ms = REDLOCK_WAITER_QUEUE_TTL_MS,
                                  .channel = group->line.channel,
                                  .id = lease->waiting->id,
                                  .seals = seals,
                                  .takes = lease->core.grants->takes};
}

static bool too_few(const struct redlock_group *group, redlock_nodes refusing) {
    return redlock_nodes_count(refusing) + group->quorum > group->node_count;
}

static void set_polls(struct redlock_group *group, bool polls) {
    struct redlock_line *line = &group->line;
    const bool unheard = is_unheard(group);
    line->polls = polls;
    for (uint32_t i = 0; i < line->place_count; i++) {
        if (line->places[i]) {
            line->places[i]->core.grants->barred = polls;
            line->places[i]->core.grants->unheard = unheard;
        }
    }
}

bool redlock_waiting_note_deaf(struct redlock_group *group, unsigned node) {
    const bool was = is_unheard(group);
    group->line.listening &= ~REDLOCK_NODE(node);
    set_polls(group, group->line.polls);
    return is_unheard(group) && !was;
}

bool redlock_waiting_note_refusing(struct redlock_group *group, unsigned node, const struct redlock_text *why) {
    assert(node < group->node_count);
    struct redlock_line *line = &group->line;
    line->refusing |= REDLOCK_NODE(node);
    (void)redlock_waiting_note_deaf(group, node);
    if (line->polls || !too_few(group, line->refusing)) {
        return false;
    }
    set_polls(group, true);
    const char *reason = redlock_text_string(why);
    const redlock_log_level level = redlock_line_warns(line, reason) ? REDLOCK_LOG_WARNING : REDLOCK_LOG_DEBUG;
    group->env.log(group->env.ctx, level,
                   "too few nodes can keep a queue, so waiting tries again after random delays; node %s: %s",
                   group->node_names[node], reason);
    return true;
}

void redlock_waiting_note_listening(struct redlock_group *group, unsigned node) {
    assert(node < group->node_count);
    struct redlock_line *line = &group->line;
    line->refusing &= ~REDLOCK_NODE(node);
    line->listening |= REDLOCK_NODE(node);
    set_polls(group, line->polls && too_few(group, line->refusing));
}

static void warn_of_resource(const struct redlock_lease *lease, unsigned node, const struct redlock_text *why) {
    struct redlock_group *group = lease->group;
    char name[4 * REDLOCK_RESOURCE_SIZE_MAX + 1];
    if (!redlock_line_warns(&group->line, redlock_text_string(why))) {
        return;
    }
    redlock_text_printable(redlock_handle_resource(lease), name, sizeof name);
    group->env.log(group->env.ctx, REDLOCK_LOG_WARNING,
                   "too few nodes can keep a queue of '%s', so waiting for it tries again after random delays; "
                   "node %s: %s",
                   name, group->node_names[node], redlock_text_string(why));
}

bool redlock_waiting_must_poll(struct redlock_lease *lease, unsigned node, const struct redlock_text *text) {
    assert(lease->waiting && node < lease->group->node_count);
    switch (redlock_text_cause(text)) {
    case REDLOCK_CAUSE_NOPERM: /* of this resource, perhaps; and an ACL may change */
    case REDLOCK_CAUSE_CLUSTER:
    case REDLOCK_CAUSE_NO_LUA:
    case REDLOCK_CAUSE_SERVER: /* no such command, or a key of the queue holds something else */
        break;
    default:
        return false;
    }
    lease->waiting->refusing |= REDLOCK_NODE(node);
    const redlock_nodes refusing = lease->waiting->refusing | lease->group->line.refusing;
    if (!too_few(lease->group, refusing) || lease->core.state != REDLOCK_LEASE_QUEUED) {
        return false;
    }
    warn_of_resource(lease, node, text);
    lease->waiting->refusing = 0; /* for its next place */
    return true;
}
