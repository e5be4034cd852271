/* Releases that the library owns (R8): sends them, and asks again until they are confirmed or the
 * key's ttl has ended the debt. */
#include "group/owed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/time.h"
#include "group/guards.h"

#define ASKED_A_TURN  1024 /* for a node that came back; other work of the loop needs its turn */
#define LOOKS_TO_DROP 16

/* The requester leaves its place in the list. */
static void pass_by(struct redlock_group *group, const struct redlock_requester *requester) {
    if (group->owed_next == requester) {
        group->owed_next = redlock_requester_next(group, requester);
    }
}

static void owed_free(struct redlock_group *group, struct redlock_requester *requester) {
    struct redlock_owed *owed = (struct redlock_owed *)requester;
    pass_by(group, requester);
    redlock_requester_delist(group, requester);
    free(owed);
}

/* A release that is being asked cannot be dropped. Moves it to the end, so that the next look does
 * not meet it again. There are never more of these than requests that the nodes take. */
static void drop_oldest(struct redlock_group *group) {
    for (unsigned looks = 0; looks < LOOKS_TO_DROP; looks++) {
        struct redlock_requester *requester = redlock_requester_first(group, REDLOCK_REQUESTER_OWED);
        assert(requester);
        if (!requester->in_flight) {
            group->statistics.releases_dropped++;
            owed_free(group, requester);
            return;
        }
        pass_by(group, requester);
        redlock_list_remove(&requester->entry);
        redlock_list_append(&group->requesters[REDLOCK_REQUESTER_OWED].list, &requester->entry);
    }
}

static void ask(struct redlock_group *group, struct redlock_owed *owed, redlock_nodes nodes, bool by_source,
                int64_t now_ns) {
    struct redlock_message message = {.operation = REDLOCK_OP_RELEASE,
                                      .by_source = by_source,
                                      .no_timeout = true,
                                      .slots = owed->target->has_slots,
                                      .target = owed->target,
                                      .token = redlock_target_end(owed->target),
                                      .token_size = owed->token_size,
                                      .wait_suffix = group->wait_suffix,
                                      .handing = (enum redlock_handing)owed->handing,
                                      .now_ns = now_ns};
    const redlock_nodes taken = redlock_guards_release(group, &owed->requester, nodes, &message);
    const redlock_nodes refused = nodes & ~taken;
    for (unsigned i = 0; refused && i < group->node_count; i++) {
        if (refused & REDLOCK_NODE(i)) {
            redlock_debt_vote(&owed->debt, i, REDLOCK_VOTE_FAILED, now_ns);
        }
    }
}

/* Frees it if it is paid or over; else schedules the next look. */
static void end_or_schedule(struct redlock_group *group, struct redlock_owed *owed, int64_t now_ns) {
    if (redlock_debt_over(&owed->debt, now_ns)) {
        if (owed->debt.owing) {
            group->statistics.releases_dropped++;
        }
        owed_free(group, &owed->requester);
        return;
    }
    redlock_schedule_set(&group->schedule, &owed->requester.due,
                         redlock_debt_next_ns(&owed->debt, group->ready, now_ns));
}

bool redlock_owed_add(struct redlock_group *group, const struct redlock_owed_release *release) {
    assert(release->nodes != 0 && release->token_size > 0 && release->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    const struct redlock_target *target = release->target;
    if (group->requesters[REDLOCK_REQUESTER_OWED].count >= REDLOCK_OWED_MAX) {
        drop_oldest(group);
    }
    struct redlock_owed *owed = redlock_requester_new(group, REDLOCK_REQUESTER_OWED,
                                                      sizeof *owed + target->size + release->token_size, sizeof *owed);
    if (!owed) {
        /* The keys live until their ttl: others wait longer, but no lock is unsafe. */
        group->statistics.releases_dropped++;
        return false;
    }
    owed->handing = (uint8_t)release->handing;
    owed->token_size = (uint8_t)release->token_size;
    owed->target = memcpy(owed->room, target, target->size);
    memcpy(redlock_target_end(owed->target), release->token, release->token_size);
    const int64_t now_ns = redlock_group_now_ns(group);
    redlock_debt_start(&owed->debt, release->nodes, release->uncertain, redlock_after_ms(now_ns, release->ttl_ms));
    ask(group, owed, redlock_debt_ask(&owed->debt, release->nodes, now_ns), false, now_ns);
    end_or_schedule(group, owed, now_ns);
    return true;
}

static void owed_answer(struct redlock_group *group, struct redlock_requester *requester, unsigned node,
                        const struct redlock_answer *answer) {
    struct redlock_owed *owed = (struct redlock_owed *)requester;
    if (answer->again && redlock_requester_may_ask_by_source(&owed->requester, node)) {
        ask(group, owed, REDLOCK_NODE(node), true, redlock_group_now_ns(group));
    } else {
        redlock_debt_vote(&owed->debt, node, answer->vote, answer->read_ns);
    }
    end_or_schedule(group, owed, answer->read_ns);
}

static void owed_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    struct redlock_owed *owed = (struct redlock_owed *)requester;
    if (!redlock_debt_over(&owed->debt, now_ns)) {
        ask(group, owed, redlock_debt_ask(&owed->debt, owed->debt.owing, now_ns), false, now_ns);
    }
    end_or_schedule(group, owed, now_ns);
}

void redlock_owed_node_ready(struct redlock_group *group, unsigned node) {
    assert(node < group->node_count);
    group->owed_back |= REDLOCK_NODE(node);
    group->owed_next = redlock_requester_first(group, REDLOCK_REQUESTER_OWED);
    redlock_owed_go_on(group);
}

void redlock_owed_go_on(struct redlock_group *group) {
    const int64_t now_ns = redlock_group_now_ns(group);
    for (unsigned left = ASKED_A_TURN; group->owed_next && left > 0; left--) {
        struct redlock_owed *owed = (struct redlock_owed *)group->owed_next;
        group->owed_next = redlock_requester_next(group, &owed->requester);
        const redlock_nodes back = owed->debt.owing & group->owed_back & group->ready;
        if (back) {
            ask(group, owed, redlock_debt_ask(&owed->debt, back, now_ns), false, now_ns);
            end_or_schedule(group, owed, now_ns);
        }
    }
    if (!group->owed_next) {
        group->owed_back = 0;
    }
}

const struct redlock_requester_ops redlock_owed_ops = {.answer = owed_answer, .due = owed_due, .free = owed_free};
