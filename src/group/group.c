/* One manager: what it owns, what comes in from its env, what is due, and its end. */
#include "group/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Low digits that tell our fencing tokens from other clients'. */
static uint16_t draw_fence_client(const struct redlock_env *env) {
    uint16_t drawn = 0;
    (void)env->random(env->ctx, &drawn, sizeof drawn); /* without random bytes nothing can be acquired anyway */
    return drawn % REDLOCK_FENCE_CLIENTS;
}

static bool open_guards(redlock_manager *manager, const struct redlock_manager_config *config) {
    const struct redlock_guard_plan plan = {.restart = config->restart_guard,
                                            .clock = config->clock_guard,
                                            .first_boot = config->first_boot,
                                            .ttl_max_ms = config->ttl_max_ms,
                                            .node_count = config->node_count,
                                            .start_ns = redlock_manager_now_ns(manager)};
    return !redlock_guard_is_on(&plan) || redlock_guards_open(manager, &plan);
}

redlock_manager *redlock_manager_new(const struct redlock_env *env, const struct redlock_manager_config *config) {
    assert(config->node_count >= 1 && config->node_count <= REDLOCK_NODES_MAX);
    redlock_manager *manager = calloc(1, sizeof *manager);
    if (!manager) {
        return NULL;
    }
    const char *prefix = config->key_prefix ? config->key_prefix : "";
    manager->env = *env;
    manager->key_prefix = strdup(prefix);
    manager->fence_suffix = strdup(config->fence_suffix ? config->fence_suffix : REDLOCK_FENCE_SUFFIX);
    if (!manager->key_prefix || !manager->fence_suffix || !open_guards(manager, config)) {
        free(manager->key_prefix);
        free(manager->fence_suffix);
        free(manager);
        return NULL;
    }
    manager->key_prefix_size = strlen(prefix);
    manager->fence_keys = (struct redlock_fence_keys){.suffix = manager->fence_suffix,
                                                      .suffix_size = strlen(manager->fence_suffix),
                                                      .expiry_ms = config->fence_expiry_ms};
    manager->fence_client = draw_fence_client(env);
    manager->node_count = config->node_count;
    manager->node_names = config->node_names;
    manager->node_timeout_ns = config->node_timeout_ms * REDLOCK_NS_PER_MS;
    manager->log_level = config->log_level;
    manager->armed_ns = REDLOCK_NEVER_NS;
    return manager;
}

void redlock_manager_delete(redlock_manager *manager) {
    manager->deleting = true;
    while (manager->leases.first) {
        redlock_lease_free((struct redlock_lease *)manager->leases.first);
    }
    while (manager->owed.first) {
        redlock_owed_free(manager, (struct redlock_owed *)manager->owed.first);
    }
    while (manager->queries.first) {
        redlock_query_free(manager, (struct redlock_query *)manager->queries.first);
    }
    redlock_guards_free(manager);
    redlock_schedule_clear(&manager->schedule);
    free(manager->fence_suffix);
    free(manager->key_prefix);
    free(manager);
}

void *redlock_manager_root(const redlock_manager *manager) {
    return manager->root;
}

void redlock_manager_set_root(redlock_manager *manager, void *root) {
    manager->root = root;
}

int64_t redlock_manager_now_ns(const redlock_manager *manager) {
    return manager->env.now_ns(manager->env.ctx);
}

int redlock_manager_check_open(redlock_manager *manager) {
    if (manager->closing) {
        return REDLOCK_ERR_CLOSED;
    }
    /* Zero bytes ask only whether this is still the process that made the manager. */
    return manager->env.random(manager->env.ctx, NULL, 0) == REDLOCK_ERR_FORKED ? REDLOCK_ERR_FORKED : REDLOCK_OK;
}

int redlock_manager_check_resource(const redlock_manager *manager, const char *resource, size_t *key_size) {
    if (!resource) {
        return REDLOCK_ERR_INVALID;
    }
    const size_t size = strnlen(resource, REDLOCK_RESOURCE_SIZE_MAX + 1);
    if (size == 0 || size + manager->key_prefix_size > REDLOCK_RESOURCE_SIZE_MAX) {
        return REDLOCK_ERR_INVALID;
    }
    *key_size = size + manager->key_prefix_size;
    return REDLOCK_OK;
}

void redlock_manager_write_key(const redlock_manager *manager, const char *resource, size_t key_size, char *key) {
    memcpy(key, manager->key_prefix, manager->key_prefix_size);
    memcpy(key + manager->key_prefix_size, resource, key_size - manager->key_prefix_size);
    key[key_size] = '\0';
}

void redlock_manager_own(struct redlock_owner_list *list, struct redlock_owner *owner, enum redlock_owner_kind kind) {
    owner->kind = (uint8_t)kind;
    owner->previous = list->last;
    owner->next = NULL;
    if (list->last) {
        list->last->next = owner;
    } else {
        list->first = owner;
    }
    list->last = owner;
    list->count++;
}

void redlock_manager_unlink(struct redlock_owner_list *list, struct redlock_owner *owner) {
    *(owner->previous ? &owner->previous->next : &list->first) = owner->next;
    *(owner->next ? &owner->next->previous : &list->last) = owner->previous;
    list->count--;
}

void redlock_manager_disown(redlock_manager *manager, struct redlock_owner_list *list, struct redlock_owner *owner) {
    redlock_manager_unlink(list, owner);
    redlock_schedule_unreserve(&manager->schedule, &owner->due);
}

redlock_nodes redlock_manager_send(redlock_manager *manager, struct redlock_owner *owner, redlock_nodes nodes,
                                   struct redlock_message *message) {
    message->owner = owner;
    owner->by_source = message->by_source ? owner->by_source | nodes : owner->by_source & ~nodes;
    const redlock_nodes taken = nodes ? manager->env.send(manager->env.ctx, nodes, message) : 0;
    assert((taken & ~nodes) == 0);
    const unsigned count = redlock_nodes_count(taken);
    owner->in_flight += count;
    manager->in_flight += count;
    return taken;
}

bool redlock_manager_may_ask_by_source(const struct redlock_owner *owner, unsigned node) {
    return (owner->by_source & REDLOCK_NODE(node)) == 0;
}

/* Nothing is under way that a close should wait for: releases owed by nodes that are down are not. */
static bool drained(const redlock_manager *manager) {
    return !manager->leases.first && !manager->queries.first && manager->in_flight == 0;
}

static bool close_is_due(const redlock_manager *manager) {
    return manager->drained && (redlock_manager_now_ns(manager) >= manager->close_deadline_ns || drained(manager));
}

static bool is_anybody_to_tell(const redlock_manager *manager) {
    return (manager->told_first != NULL) | (manager->told_queries != NULL);
}

/* What does not wait for a time: callbacks, owed releases that are asked in slices, a close. */
static int64_t soonest_ns(const redlock_manager *manager, int64_t when_ns) {
    /* While callbacks run, whoever runs them looks again afterwards. */
    if (!manager->telling && (is_anybody_to_tell(manager) || manager->owed_next || close_is_due(manager))) {
        return 0;
    }
    return manager->drained && manager->close_deadline_ns < when_ns ? manager->close_deadline_ns : when_ns;
}

/* At the end of each vote: one branch where nothing but time is waited for. */
void redlock_manager_rearm(redlock_manager *manager) {
    int64_t when_ns = redlock_schedule_first_ns(&manager->schedule);
    if (is_anybody_to_tell(manager) | (manager->owed_next != NULL) | (manager->drained != NULL)) {
        when_ns = soonest_ns(manager, when_ns);
    }
    if (when_ns != manager->armed_ns) {
        manager->armed_ns = when_ns;
        manager->env.wake_at(manager->env.ctx, when_ns);
    }
}

void redlock_manager_settle(redlock_manager *manager) {
    if (manager->telling || !is_anybody_to_tell(manager)) {
        redlock_manager_rearm(manager);
        return; /* inside a callback: the settle that runs it goes on after it */
    }
    manager->telling = true;
    /* Only what waits now: a callback that asks again and fails at once must not keep the loop here for ever. */
    const struct redlock_lease *last = manager->told_last;
    while (manager->told_first) {
        struct redlock_lease *lease = manager->told_first;
        const bool was_last = lease == last;
        manager->told_first = lease->next_told;
        if (!manager->told_first) {
            manager->told_last = NULL;
        }
        lease->next_told = NULL;
        lease->queued_to_tell = false;
        redlock_lease_tell(lease);
        if (was_last) {
            break;
        }
    }
    redlock_query_tell(manager);
    manager->telling = false;
    redlock_manager_rearm(manager);
}

static void take_other_answer(redlock_manager *manager, struct redlock_owner *owner, uint32_t round, unsigned node,
                              const struct redlock_answer *answer) {
    switch ((enum redlock_owner_kind)owner->kind) {
    case REDLOCK_OWNER_OWED:
        redlock_owed_answer(manager, (struct redlock_owed *)owner, node, answer);
        break;
    case REDLOCK_OWNER_INSPECT:
        redlock_query_answer(manager, (struct redlock_query *)owner, round, node, answer);
        break;
    case REDLOCK_OWNER_GUARDS:
        redlock_guards_answer(manager, node, answer);
        break;
    case REDLOCK_OWNER_LEASE:
    case REDLOCK_OWNER_CONNECT:
        assert(false && "a lease's is taken elsewhere, connect sends nothing");
        break;
    }
}

void redlock_manager_answer(redlock_manager *manager, void *owner_pointer, uint32_t round, unsigned node,
                            const struct redlock_answer *answer) {
    struct redlock_owner *owner = owner_pointer;
    assert(owner->in_flight > 0 && node < manager->node_count);
    owner->in_flight--;
    manager->in_flight--;
    if (manager->guards) {
        redlock_guards_seen(manager, node, answer);
    }
    if (owner->kind == REDLOCK_OWNER_LEASE) {
        redlock_lease_answer((struct redlock_lease *)owner, round, node, answer);
    } else {
        take_other_answer(manager, owner, round, node, answer);
    }
    redlock_manager_settle(manager);
}

static void due(redlock_manager *manager, struct redlock_owner *owner, int64_t now_ns) {
    switch ((enum redlock_owner_kind)owner->kind) {
    case REDLOCK_OWNER_LEASE:
        redlock_lease_due((struct redlock_lease *)owner, now_ns);
        break;
    case REDLOCK_OWNER_OWED:
        redlock_owed_due(manager, (struct redlock_owed *)owner, now_ns);
        break;
    case REDLOCK_OWNER_GUARDS:
        redlock_guards_due(manager, now_ns);
        break;
    case REDLOCK_OWNER_INSPECT:
    case REDLOCK_OWNER_CONNECT:
        redlock_query_due(manager, (struct redlock_query *)owner);
        break;
    }
}

/* The time that a close waits for answers is over, or there is nothing to wait for. R14: nobody goes untold. */
static void end(redlock_manager *manager) {
    const redlock_manager_drained done = manager->drained;
    manager->drained = NULL;
    for (struct redlock_owner *owner = manager->leases.first; owner; owner = owner->next) {
        redlock_lease_abort((struct redlock_lease *)owner);
    }
    while (is_anybody_to_tell(manager)) {
        redlock_manager_settle(manager); /* ends: requests are refused by now, and every handle has ended */
    }
    done(manager, manager->drained_ctx); /* the manager is gone after this */
}

void redlock_manager_wake(redlock_manager *manager) {
    manager->armed_ns = REDLOCK_NEVER_NS;
    /* As many as there are now: what becomes due again at once waits for the next turn. */
    for (uint32_t left = manager->schedule.count; left > 0; left--) {
        const int64_t now_ns = redlock_manager_now_ns(manager);
        struct redlock_due *item = redlock_schedule_pop(&manager->schedule, now_ns);
        if (!item) {
            break;
        }
        due(manager, CONTAINER(item, struct redlock_owner, due), now_ns);
    }
    redlock_owed_go_on(manager);
    redlock_manager_settle(manager);
    if (!manager->telling && close_is_due(manager)) {
        end(manager);
    }
}

void redlock_manager_node_settled(redlock_manager *manager, unsigned node, bool ready) {
    assert(node < manager->node_count);
    manager->settled |= REDLOCK_NODE(node);
    if (ready) {
        manager->ready |= REDLOCK_NODE(node);
        redlock_owed_node_ready(manager, node);
    } else {
        manager->ready &= ~REDLOCK_NODE(node);
    }
    redlock_guards_settled(manager);
    redlock_query_node_settled(manager);
    redlock_manager_settle(manager);
}

void redlock_manager_drain(redlock_manager *manager, redlock_manager_drained done, void *ctx) {
    assert(!manager->closing);
    manager->closing = true;
    redlock_guards_close(manager);
    manager->drained = done;
    manager->drained_ctx = ctx;
    /* One node timeout for the releases that this sends, one for those that NOSCRIPT makes us send again. */
    manager->close_deadline_ns = redlock_manager_now_ns(manager) + 2 * manager->node_timeout_ns + REDLOCK_NS_PER_MS;
    for (struct redlock_owner *owner = manager->leases.first, *next; owner; owner = next) {
        next = owner->next;
        redlock_lease_close((struct redlock_lease *)owner);
    }
    for (struct redlock_owner *owner = manager->queries.first, *next; owner; owner = next) {
        next = owner->next;
        redlock_query_close(manager, (struct redlock_query *)owner);
    }
    redlock_manager_rearm(manager);
}

int redlock_manager_statistics(const redlock_manager *manager, redlock_statistics *statistics) {
    if (!manager || !statistics || statistics->size == 0) {
        return REDLOCK_ERR_INVALID;
    }
    redlock_statistics now = manager->statistics;
    now.size = statistics->size < sizeof now ? statistics->size : sizeof now;
    now.releases_owed = manager->owed.count;
    memcpy(statistics, &now, now.size);
    return REDLOCK_OK;
}
