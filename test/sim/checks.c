/* The checkers: what must hold after every step, at every answer, and at the end. */
#include <stdarg.h>
#include <stdio.h>

#include "parts.h"

/* Timers come up to 2 ms late here, validity is rounded to 1 ms, and clocks differ in rate. */
#define SLACK_NS (5 * SIM_MS)
/* Where connections go silent, a lease of so many node timeouts is kept. */
#define KEPT_FROM_TIMEOUTS 8

void sim_violation(struct sim_world *world, const char *checker, const char *format, ...) {
    if (world->checker != NULL) {
        return; /* the first one counts */
    }
    if (world->only_checker != NULL && strcmp(world->only_checker, checker) != 0) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->violation, sizeof world->violation, format, arguments);
    va_end(arguments);
    world->checker = checker;
    SIM_TRACE(world, "VIOLATION (%s): %s", checker, world->violation);
}

/* Whether the key is that of this slot. */
static bool is_slot(const struct fake_key *key, unsigned slot) {
    return key->name_size >= 2 && key->name[key->name_size - 2] == '#' &&
           key->name[key->name_size - 1] == (char)('0' + slot);
}

/* Until when the node will have the token, at the slot that ends first; 0: it has not. */
static int64_t has_until(const struct sim_node *node, const char *token, uint32_t slots) {
    int64_t least_ns = SIM_NEVER;
    unsigned slot = 0;
    do {
        int64_t until_ns = 0;
        for (unsigned k = 0; k < node->fake.key_count; k++) {
            const struct fake_key *key = &node->fake.keys[k];
            const bool counts = slots == 0 || is_slot(key, slot);
            until_ns =
                counts && key->used && key->gone_ns > until_ns && sim_key_has(key, token) ? key->gone_ns : until_ns;
        }
        least_ns = (slots == 0 || (slots >> slot & 1) != 0) && until_ns < least_ns ? until_ns : least_ns;
    } while (slots >> ++slot != 0);
    return least_ns;
}

static int64_t backs_until(const struct sim_node *node, const char *token, uint32_t slots) {
    int64_t until_ns = has_until(node, token, slots);
    until_ns = sim_reads_until(node, token, until_ns);
    /* The node lost the key, but until then guards keep it from voting for anybody else. */
    for (unsigned k = 0; k < node->ghost_count; k++) {
        const struct sim_ghost *ghost = &node->ghosts[k];
        until_ns = ghost->gone_ns > until_ns && sim_token_is(ghost->token, token) ? ghost->gone_ns : until_ns;
    }
    return until_ns;
}

/* Until when a quorum of nodes backs the lease, by its client's clock, or for an hour. */
static int64_t backed_until(struct sim_world *world, const struct sim_lease *lease) {
    const unsigned quorum = sim_quorum_of(world, lease->client), asked = sim_nodes_of(world, lease->client);
    const redlock_nodes nodes = world->profile.clock_guard ? sim_backing_nodes(world, lease) : redlock_nodes_all(asked);
    int64_t latest_ns[SIM_NODES_MAX + 1] = {0}; /* the longest first */
    for (unsigned i = 0; i < asked; i++) {
        const int64_t until_ns =
            (nodes & REDLOCK_NODE(i)) != 0 ? backs_until(&world->nodes[i], lease->token, lease->slots) : 0;
        unsigned k = i;
        for (; k > 0 && latest_ns[k - 1] < until_ns; k--) {
            latest_ns[k] = latest_ns[k - 1];
        }
        latest_ns[k] = until_ns;
    }
    const int64_t hour_ns = world->now_ns + 3600 * 1000 * SIM_MS, until_ns = latest_ns[quorum - 1];
    return sim_clock_local(&world->clients[lease->client].clock, until_ns < hour_ns ? until_ns : hour_ns);
}

/* Whether check_backing() can find nothing. Most steps change nothing at the nodes. */
static bool is_backed(struct sim_world *world, struct sim_lease *lease, int64_t local_ns) {
    if (lease->backed_changes != world->changes) {
        lease->backed_until_ns = backed_until(world, lease);
        lease->backed_changes = world->changes;
    }
    return local_ns <= lease->backed_until_ns;
}

/* If the library says "valid for v ms more", a quorum of nodes must have the key for so long. A
 * client with the clock guard knows which votes are void, and does not count them. */
static void check_backing(struct sim_world *world, const struct sim_lease *lease, int64_t validity_ms) {
    const struct sim_client *client = &world->clients[lease->client];
    const unsigned quorum = sim_quorum_of(world, lease->client), asked = sim_nodes_of(world, lease->client);
    const int64_t until = sim_clock_true(&client->clock, sim_client_now(client) + validity_ms * SIM_MS);
    redlock_nodes nodes = 0;
    for (unsigned i = 0; i < asked; i++) {
        nodes |= backs_until(&world->nodes[i], lease->token, lease->slots) >= until ? REDLOCK_NODE(i) : 0;
    }
    if (redlock_nodes_count(nodes) < quorum) {
        sim_violation(world, "backing",
                      "client %u holds '%s' (%.8s) for %lld ms more, but only %u of %u nodes will have its key so long",
                      lease->client, sim_resource_name(lease->resource), sim_name(lease->token), (long long)validity_ms,
                      redlock_nodes_count(nodes), asked);
    } else if (world->profile.clock_guard && redlock_nodes_count(nodes & sim_backing_nodes(world, lease)) < quorum) {
        sim_violation(world, "void",
                      "client %u holds '%s' (%.8s) for %lld ms more, but it knows of steps: only nodes %#x of those "
                      "that will have its key so long back it",
                      lease->client, sim_resource_name(lease->resource), sim_name(lease->token), (long long)validity_ms,
                      nodes & sim_backing_nodes(world, lease));
    }
}

static void check_on_lost(struct sim_world *world, struct sim_lease *lease) {
    const struct sim_client *client = &world->clients[lease->client];
    /* Validity is rounded down. 0 may mean that less than 1 ms is left, so that an extend may still
     * come in time, and may also leave less than 1 ms. */
    int64_t local_ns = sim_client_now(client);
    if (lease->ends_ns == 0 || lease->ends_ns > local_ns + 2 * SIM_MS) {
        lease->ends_ns = local_ns + 2 * SIM_MS;
    }
    if (local_ns < lease->ends_ns) {
        return;
    }
    if (!lease->expired) {
        lease->expired = true;
        lease->expired_ns = world->now_ns;
        lease->expired_paused_ns = sim_client_paused(client, world->now_ns);
        return;
    }
    int64_t running =
        world->now_ns - lease->expired_ns - (sim_client_paused(client, world->now_ns) - lease->expired_paused_ns);
    if (lease->has_on_lost && !lease->lost && client->busy_until_ns <= world->now_ns && running > SLACK_NS) {
        sim_violation(world, "loss", "client %u: on_lost has not run for '%s' (%.8s), lost since %.3f ms",
                      lease->client, sim_resource_name(lease->resource), sim_name(lease->token), (double)running / 1e6);
    }
}

/* Of those who read, one stands for all. */
static void check_exclusion(struct sim_world *world, const struct sim_lease *lease, const struct sim_lease **holder) {
    if (*holder != NULL && (*holder)->reads != lease->reads) {
        sim_violation(world, "readers", "client %u (%.8s) reads '%s', which client %u (%.8s) has alone",
                      lease->reads ? lease->client : (*holder)->client,
                      sim_name(lease->reads ? lease->token : (*holder)->token), sim_resource_name(lease->resource),
                      lease->reads ? (*holder)->client : lease->client,
                      sim_name(lease->reads ? (*holder)->token : lease->token));
    } else if (*holder != NULL && !lease->reads) {
        sim_violation(world, "exclusion", "clients %u (%.8s) and %u (%.8s) both hold '%s'", (*holder)->client,
                      sim_name((*holder)->token), lease->client, sim_name(lease->token),
                      sim_resource_name(lease->resource));
    }
    *holder = lease;
}

/* No slot is that of two, so there are never more than the limit. */
static void check_permits(struct sim_world *world, const struct sim_lease *lease,
                          const struct sim_lease *holders[SIM_LIMIT_MAX]) {
    for (unsigned slot = 0; slot < SIM_LIMIT_MAX; slot++) {
        if ((lease->slots >> slot & 1) == 0) {
            continue;
        }
        if (holders[slot] != NULL || slot >= world->profile.limit) {
            const struct sim_lease *other = holders[slot] != NULL ? holders[slot] : lease;
            sim_violation(world, "permits", "clients %u (%.8s) and %u (%.8s) both hold slot %u of '%s', of %u",
                          other->client, sim_name(other->token), lease->client, sim_name(lease->token), slot,
                          sim_resource_name(lease->resource), world->profile.limit);
        }
        holders[slot] = lease;
    }
}

/* A lease that its callback has reported. */
static void check_held(struct sim_world *world, const struct sim_client *client, struct sim_lease *lease,
                       const struct sim_lease **holders, const struct sim_lease *slots[][SIM_LIMIT_MAX]) {
    if (client->ahead_until_ns > world->now_ns) {
        lease->ends_ns = 0; /* it may be extended in that future moment */
        return;
    }
    int64_t validity_ms = sim_lease_validity_ms(world, lease);
    if (validity_ms == 0) {
        check_on_lost(world, lease);
        return;
    }
    if (lease->lost || lease->expired) {
        sim_violation(world, "resurrection", "client %u: '%s' (%.8s) is valid again after its end", lease->client,
                      sim_resource_name(lease->resource), sim_name(lease->token));
    }
    lease->ends_ns = sim_client_now(client) + (validity_ms + 1) * SIM_MS;
    const bool is_alone = !lease->shared && world->profile.trust != SIM_RECKLESS;
    const bool is_sure = is_alone && is_backed(world, lease, lease->ends_ns - SIM_MS);
    if (world->profile.clock_guard && !is_sure &&
        redlock_nodes_count(sim_backing_nodes(world, lease)) < sim_quorum_of(world, lease->client)) {
        sim_violation(world, "void", "client %u holds '%s' (%.8s), but it knows of steps that leave too few votes",
                      lease->client, sim_resource_name(lease->resource), sim_name(lease->token));
    }
    sim_check_expiring(lease);
    sim_grant_promise(world, lease, validity_ms);
    if (is_alone) {
        if (!is_sure) {
            check_backing(world, lease, validity_ms);
        }
        if (lease->slots != 0) {
            check_permits(world, lease, slots[lease->resource]);
        } else {
            check_exclusion(world, lease, &holders[lease->resource]);
        }
    }
}

void sim_check(struct sim_world *world) {
    const struct sim_lease *holders[SIM_RESOURCES_MAX] = {NULL};
    const struct sim_lease *of_slots[SIM_RESOURCES_MAX][SIM_LIMIT_MAX] = {{NULL}};
    const unsigned clients = world->profile.clients, slots = world->profile.slots;
    for (unsigned i = 0; i < clients; i++) {
        const struct sim_client *client = &world->clients[i];
        for (unsigned slot = 0; slot < slots && client->group != NULL; slot++) {
            struct sim_lease *lease = client->slots[slot].lease;
            if (lease != NULL && lease->held) {
                check_held(world, client, lease, holders, of_slots);
                if (lease->other != NULL) {
                    check_held(world, client, lease->other, holders, of_slots);
                }
            }
        }
    }
    if (world->has_elections) {
        sim_check_elections(world);
    }
    if (world->control == SIM_CONTROL_DEAD) {
        sim_check_free(world);
    } else if (sim_is_loaded(world->control)) {
        sim_check_hiccup(world);
    }
}

static void check_votes(struct sim_call *call, const redlock_result *result) {
    struct sim_world *world = call->client->world;
    const unsigned nodes = sim_nodes_of(world, call->client->index);
    size_t count = redlock_result_vote_count(result);
    unsigned granted = 0, answered = 0;
    if (call->both && redlock_result_code(result) != REDLOCK_OK && count == 0 &&
        world->profile.no_random_permille > 0) {
        return; /* an item was not asked for */
    }
    if (count != nodes) {
        sim_violation(world, "result", "%zu votes of %u nodes", count, nodes);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        redlock_vote vote = {.size = sizeof vote};
        redlock_result_vote(result, i, &vote);
        granted += vote.kind == REDLOCK_VOTE_GRANTED;
        answered += vote.kind == REDLOCK_VOTE_GRANTED || vote.kind == REDLOCK_VOTE_DENIED;
    }
    unsigned quorum = sim_quorum_of(world, call->client->index);
    int code = redlock_result_code(result);
    bool needs_quorum = code == REDLOCK_OK && (call->kind != SIM_CALL_CONNECT || world->profile.calm);
    if (needs_quorum && (call->kind == SIM_CALL_INSPECT ? answered : granted) < quorum) {
        sim_violation(world, "result", "OK with %u of %u votes", granted, nodes);
    }
    /* R15: too few votes to know. A release is LOST if so many nodes denied that we cannot have had
     * a quorum. */
    bool known = call->kind == SIM_CALL_RELEASE ? answered - granted > nodes - quorum
                                                : call->kind == SIM_CALL_INSPECT && answered >= quorum;
    if (code == REDLOCK_ERR_NO_QUORUM && known) {
        sim_violation(world, "result", "NO_QUORUM, but %u of %u nodes answered, %u granted", answered, nodes, granted);
    }
}

static bool expected(const struct sim_call *call, int code) {
    switch (code) {
    case REDLOCK_OK:
    case REDLOCK_ERR_NO_QUORUM:
        return true;
    case REDLOCK_ERR_CONTENDED:
        return call->kind == SIM_CALL_ACQUIRE;
    case REDLOCK_ERR_TOO_SLOW:
        return call->kind == SIM_CALL_ACQUIRE || call->kind == SIM_CALL_EXTEND;
    case REDLOCK_ERR_LOST:
        return call->kind == SIM_CALL_EXTEND || call->kind == SIM_CALL_RELEASE;
    case REDLOCK_ERR_CANCELLED:
        return call->cancelled || call->kind == SIM_CALL_EXTEND;
    case REDLOCK_ERR_RANDOM:
        return call->kind == SIM_CALL_ACQUIRE && call->client->world->profile.no_random_permille > 0;
    case REDLOCK_ERR_CLOSED:
        return call->client->closing;
    default:
        return false;
    }
}

/* The message fits, is terminated, and its length is returned. */
static void check_message(struct sim_world *world, const redlock_result *result) {
    char message[1024];
    size_t size = 1 + sim_random_below(&world->random, sizeof message);
    if (!sim_random_percent(&world->random, 3)) {
        return;
    }
    memset(message, 'x', sizeof message);
    size_t length = redlock_result_message(result, message, size);
    if (strnlen(message, size) != (length < size ? length : size - 1)) {
        sim_violation(world, "result", "a message of %zu bytes in %zu: '%.*s'", length, size, (int)size, message);
    }
    redlock_result *copy = redlock_result_copy(result);
    if (copy == NULL || redlock_result_code(copy) != redlock_result_code(result)) {
        sim_violation(world, "result", "a copy differs");
    }
    redlock_result_free(copy);
}

void sim_check_call_done(struct sim_call *call, const redlock_result *result) {
    struct sim_client *client = call->client;
    struct sim_world *world = client->world;
    int code = redlock_result_code(result);
    if (call->done) {
        sim_violation(world, "once", "a request of client %u completed twice", client->index);
    }
    if (client->in_api) {
        sim_violation(world, "reentrant", "a callback ran inside a call");
    }
    if (!expected(call, code)) {
        sim_violation(world, "result", "a request of client %u ended with %s", client->index, redlock_error_name(code));
    }
    if (call->cancelled && code == REDLOCK_OK) {
        sim_violation(world, "result", "a cancelled acquire of client %u ended with OK", client->index);
    }
    check_votes(call, result);
    /* Nodes give slots, or none; and several are no single acquire. */
    if (call->kind == SIM_CALL_ACQUIRE && !call->both && !call->permits) {
        sim_reason_check(call, code);
    }
    check_message(world, result);
    int64_t took =
        client->step_ns - call->since_ns - (sim_client_paused(client, client->step_ns) - call->since_paused_ns);
    /* One node that hangs changes neither the result nor the latency, if the others can decide
     * (R7). */
    redlock_vote first = {.size = sizeof first};
    redlock_result_vote(result, 0, &first);
    bool needed = world->profile.one_hung && first.kind == REDLOCK_VOTE_GRANTED;
    bool in_line = call->kind == SIM_CALL_ACQUIRE && code == REDLOCK_OK &&
                   sim_ticket(redlock_lease_token(redlock_result_lease(result))) != 0;
    /* The numbers of others with permits rise meanwhile, again and again. */
    const bool races = world->profile.limit > 0 && call->fencing;
    bool quick =
        !needed && !in_line && !races && redlock_result_attempts(result) == 1 && call->kind <= SIM_CALL_RELEASE;
    /* A token may have to be written back. A command that finds a mark leaves the lock to the
     * script. */
    int64_t trips = call->fencing || (call->kind == SIM_CALL_RELEASE && sim_deletes(world)) ? 2 : 1;
    /* SHARE may be asked again by its source; and the numbers of others who read may be higher. */
    const struct sim_lease *lease = call->lease;
    const bool other_reads = lease != NULL ? lease->other != NULL && lease->other->reads : call->other_reads;
    const bool reads = (lease != NULL ? lease->reads : call->reads) || other_reads;
    trips += reads ? 1 + 2 * call->fencing : 0;
    trips += world->profile.limit > 0; /* SLOTS, too */
    if (world->profile.calm && !world->profile.waking && quick && code == REDLOCK_OK &&
        took > 2 * trips * world->profile.delay_max_ns + SIM_MS) {
        sim_violation(world, "latency", "a request of client %u took %.3f ms, though no node in its quorum was slow",
                      client->index, (double)took / 1e6);
    }
    if (call->within_ns != SIM_NEVER && took > call->within_ns + call->within_ns / 50 + SLACK_NS) {
        sim_violation(world, "deadline", "a request of client %u took %.3f ms, pauses aside; %.3f were allowed",
                      client->index, (double)took / 1e6, (double)call->within_ns / 1e6);
    }
}

/* If nothing fails, a lease that renews itself is not lost. */
void sim_check_lost(const struct sim_lease *lease) {
    struct sim_world *world = lease->owner->world;
    bool patient = lease->ttl_ms * SIM_MS > 40 * world->profile.delay_max_ns + 40 * SIM_MS;
    if (sim_is_calm(world) && lease->auto_extend && !lease->capped && !lease->shared && patient) {
        sim_violation(world, "calm", "client %u lost '%s' (%.8s), though nothing failed", lease->client,
                      sim_resource_name(lease->resource), sim_name(lease->token));
    }
    if (world->control == SIM_CONTROL_SILENT && lease->auto_extend && !lease->capped && !lease->shared &&
        lease->ttl_ms >= KEPT_FROM_TIMEOUTS * world->profile.node_timeout_ms) {
        sim_violation(world, "kept", "client %u lost '%s' (%.8s), though new connections worked", lease->client,
                      sim_resource_name(lease->resource), sim_name(lease->token));
    }
}

/* If its holder dies, a lock is free after the longest ttl that anybody asks for, and its delay. */
void sim_check_life(struct sim_world *world, unsigned node, unsigned resource) {
    const struct sim_profile *profile = &world->profile;
    const struct fake_key *lock = sim_key_at(world, node, resource, "");
    const int64_t of_probe_ms = 2000 + 4 * profile->node_timeout_ms;
    const int64_t ttl_ms = profile->ttl_max_ms > of_probe_ms ? profile->ttl_max_ms : of_probe_ms;
    const int64_t most_ms = sim_is_guarded(world) ? profile->guarded_ttl_max_ms : ttl_ms + profile->lock_delay_max_ms;
    if (lock == NULL || world->nodes[node].stepped_back) {
        return;
    }
    const int64_t left_ms = lock->expires_ms - world->nodes[node].fake.now_ms;
    /* A set ends a moment after the last who reads. */
    if (lock->expires_ms == FAKE_NO_TTL || left_ms > most_ms + (lock->type == FAKE_ZSET)) {
        sim_violation(world, "life", "node %u has '%s' (%.8s) for %lld ms more; nobody asks for more than %lld", node,
                      sim_resource_name(resource), sim_key_name(lock), (long long)left_ms, (long long)most_ms);
    }
}

/* No request is pending, no lease is held, every release is paid: the gauges must say so. */
void sim_check_idle(struct sim_client *client) {
    struct sim_world *world = client->world;
    redlock_statistics now = {.size = sizeof now};
    redlock_group_statistics(client->group, &now);
    if (now.requests_pending != 0 || now.leases_held != 0 || now.releases_owed != 0) {
        sim_violation(world, "gauges", "idle client %u has %llu requests, %llu leases, %llu owed releases",
                      client->index, (unsigned long long)now.requests_pending, (unsigned long long)now.leases_held,
                      (unsigned long long)now.releases_owed);
    }
    if (now.acquires != now.acquired + now.contended + now.no_quorum + now.too_slow + now.cancelled) {
        sim_violation(world, "gauges", "the ends of client %u's acquires do not add up", client->index);
    }
}

/* close() waits for its releases for a bounded time, and by then every request has completed. */
void sim_check_closed(const struct sim_client *client) {
    struct sim_world *world = client->world;
    for (unsigned i = 0; i < world->call_count; i++) {
        if (world->calls[i].client == client && !world->calls[i].done) {
            sim_violation(world, "once", "client %u was closed before a request of it completed", client->index);
        }
    }
    int64_t took =
        client->step_ns - client->closed_ns - (sim_client_paused(client, client->step_ns) - client->closed_paused_ns);
    int64_t allowed = 2 * world->profile.node_timeout_ms * SIM_MS;
    if (took > allowed + allowed / 50 + SLACK_NS) {
        sim_violation(world, "deadline", "close of client %u took %.3f ms", client->index, (double)took / 1e6);
    }
}

void sim_check_end(struct sim_world *world) {
    for (unsigned i = 0; i < world->call_count; i++) {
        const struct sim_call *call = &world->calls[i];
        if (!call->done) {
            sim_violation(world, "once", "a request of client %u never completed", call->client->index);
        }
    }
    for (unsigned i = 0; i < world->profile.clients; i++) {
        if (world->clients[i].group != NULL) {
            sim_violation(world, "close", "client %u never came to its end", i);
        }
    }
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        sim_node_clock(world, &world->nodes[i]);
        sim_lines_end(world, i);
    }
    if (world->probed < world->profile.resources) {
        sim_violation(world, "progress", "only %u of %u resources could be acquired after all faults healed",
                      world->probed, world->profile.resources);
    }
}
