/* Releases that are the library's own duty (R8): sent at once, asked again until every node has confirmed or the ttl has ended the key. */
#include <stdlib.h>
#include <string.h>

#include "group/state.h"

#define ASKED_A_TURN  1024 /* of a node that came back: other work of the loop wants its turn */
#define LOOKS_TO_DROP 16

/* What is being asked cannot be dropped (of those there are no more than nodes take requests); it goes to the end, so that no
 * look meets it twice. */
static void drop_oldest(redlock_manager *manager) {
    for (unsigned looks = 0; looks < LOOKS_TO_DROP; looks++) {
        struct redlock_owner *owner = manager->owed.first;
        if (!owner->in_flight) {
            manager->statistics.releases_dropped++;
            redlock_owed_free(manager, (struct redlock_owed *)owner);
            return;
        }
        if (manager->owed_next == owner) {
            manager->owed_next = owner->next;
        }
        redlock_manager_unlink(&manager->owed, owner);
        redlock_manager_own(&manager->owed, owner, REDLOCK_OWNER_OWED);
    }
}

static void ask(redlock_manager *manager, struct redlock_owed *owed, redlock_nodes nodes, bool by_source,
                int64_t now_ns) {
    struct redlock_message message = {.operation = REDLOCK_OP_RELEASE,
                                      .by_source = by_source,
                                      .patient = true,
                                      .key = owed->key,
                                      .key_size = owed->key_size,
                                      .token = owed->token,
                                      .token_size = owed->token_size,
                                      .now_ns = now_ns};
    const redlock_nodes refused = nodes & ~redlock_manager_send(manager, &owed->owner, nodes, &message);
    for (unsigned i = 0; refused && i < manager->node_count; i++) {
        if (refused & REDLOCK_NODE(i)) {
            redlock_debt_vote(&owed->debt, i, REDLOCK_VOTE_FAILED, now_ns);
        }
    }
}

/* Paid, over, or to be looked at again. */
static void settle(redlock_manager *manager, struct redlock_owed *owed, int64_t now_ns) {
    if (redlock_debt_over(&owed->debt, now_ns)) {
        if (owed->debt.owing) {
            manager->statistics.releases_dropped++;
        }
        redlock_owed_free(manager, owed);
        return;
    }
    redlock_schedule_set(&manager->schedule, &owed->owner.due,
                         redlock_debt_next_ns(&owed->debt, manager->ready, now_ns));
}

void redlock_owed_add(redlock_manager *manager, const char *key, size_t key_size, const char *token, size_t token_size,
                      redlock_nodes nodes, redlock_nodes uncertain, int64_t ttl_ms) {
    if (manager->owed.count >= REDLOCK_OWED_MAX) {
        drop_oldest(manager);
    }
    struct redlock_owed *owed = NULL;
    if (redlock_schedule_reserve(&manager->schedule)) {
        owed = malloc(sizeof *owed + key_size + 1);
        if (!owed) {
            redlock_schedule_unreserve(&manager->schedule, &(struct redlock_due){0});
        }
    }
    if (!owed) {
        manager->statistics.releases_dropped++; /* the keys live until their ttl: liveness, not safety */
        return;
    }
    memset(owed, 0, sizeof *owed);
    owed->key_size = (uint16_t)key_size;
    owed->token_size = (uint8_t)token_size;
    memcpy(owed->token, token, token_size);
    memcpy(owed->key, key, key_size);
    owed->key[key_size] = '\0';
    redlock_manager_own(&manager->owed, &owed->owner, REDLOCK_OWNER_OWED);
    const int64_t now_ns = redlock_manager_now_ns(manager);
    redlock_debt_start(&owed->debt, nodes, uncertain, redlock_after_ms(now_ns, ttl_ms));
    ask(manager, owed, redlock_debt_ask(&owed->debt, nodes, now_ns), false, now_ns);
    settle(manager, owed, now_ns);
}

void redlock_owed_answer(redlock_manager *manager, struct redlock_owed *owed, unsigned node,
                         const struct redlock_answer *answer) {
    const int64_t now_ns = redlock_manager_now_ns(manager);
    if (answer->no_script && redlock_manager_may_ask_by_source(&owed->owner, node)) {
        ask(manager, owed, REDLOCK_NODE(node), true, now_ns);
    } else {
        redlock_debt_vote(&owed->debt, node, answer->vote, now_ns);
    }
    settle(manager, owed, now_ns);
}

void redlock_owed_due(redlock_manager *manager, struct redlock_owed *owed, int64_t now_ns) {
    if (!redlock_debt_over(&owed->debt, now_ns)) {
        ask(manager, owed, redlock_debt_ask(&owed->debt, owed->debt.owing, now_ns), false, now_ns);
    }
    settle(manager, owed, now_ns);
}

void redlock_owed_node_ready(redlock_manager *manager, unsigned node) {
    manager->owed_back |= REDLOCK_NODE(node);
    manager->owed_next = manager->owed.first;
    redlock_owed_go_on(manager);
}

void redlock_owed_go_on(redlock_manager *manager) {
    const int64_t now_ns = redlock_manager_now_ns(manager);
    for (unsigned left = ASKED_A_TURN; manager->owed_next && left > 0; left--) {
        struct redlock_owed *owed = (struct redlock_owed *)manager->owed_next;
        manager->owed_next = owed->owner.next;
        const redlock_nodes back = owed->debt.owing & manager->owed_back & manager->ready;
        if (back) {
            ask(manager, owed, redlock_debt_ask(&owed->debt, back, now_ns), false, now_ns);
            settle(manager, owed, now_ns);
        }
    }
    if (!manager->owed_next) {
        manager->owed_back = 0;
    }
}

void redlock_owed_free(redlock_manager *manager, struct redlock_owed *owed) {
    if (manager->owed_next == &owed->owner) {
        manager->owed_next = owed->owner.next;
    }
    redlock_manager_disown(manager, &manager->owed, &owed->owner);
    free(owed);
}
