/* What a lease means for those that come after it: fencing tokens rise, no older lease is extended,
 * a lock delay is kept. */
#include "parts.h"

struct sim_grant *sim_grant_of(struct sim_world *world, const char *token) {
    for (unsigned i = world->grant_count; i-- > 0;) {
        if (sim_token_is(world->grants[i].token, token)) {
            return &world->grants[i];
        }
    }
    return NULL;
}

/* Tokens are never equal but of those who read, and larger than each token that was returned before
 * the request for it. */
static void check_fences(struct sim_world *world, const struct sim_grant *a, const struct sim_grant *b) {
    if (!a->fenced || !b->fenced || a->resource != b->resource) {
        return;
    }
    bool wrong = (a->fence == b->fence && !(a->reads && b->reads)) ||
                 (a->answered_ns < b->asked_ns && a->fence > b->fence) ||
                 (b->answered_ns < a->asked_ns && b->fence > a->fence);
    if (wrong) {
        sim_violation(world, "fence", "'%s': client %u (%.8s) has the fencing token %llu, client %u (%.8s) later %llu",
                      sim_resource_name(a->resource), a->client, sim_name(a->token), (unsigned long long)a->fence,
                      b->client, sim_name(b->token), (unsigned long long)b->fence);
    }
}

static void check_delay(struct sim_world *world, const struct sim_grant *earlier, const struct sim_grant *grant) {
    if (earlier->ended || earlier->resource != grant->resource || !sim_collide(earlier->slots, grant->slots) ||
        earlier->promised_ns <= grant->answered_ns || (earlier->reads && grant->reads)) {
        return;
    }
    sim_violation(world, "delay", "client %u (%.8s) has '%s' %.3f ms before the lock delay of client %u (%.8s) is over",
                  grant->client, sim_name(grant->token), sim_resource_name(grant->resource),
                  (double)(earlier->promised_ns - grant->answered_ns) / 1e6, earlier->client, sim_name(earlier->token));
}

void sim_grant_acquired(struct sim_call *call, const struct sim_lease *lease) {
    struct sim_world *world = call->client->world;
    if (world->grant_count == SIM_LEASES_MAX) {
        return;
    }
    struct sim_grant *grant = &world->grants[world->grant_count];
    *grant = (struct sim_grant){.client = lease->client,
                                .resource = lease->resource,
                                .fenced = call->fencing,
                                .reads = lease->reads,
                                .slots = lease->slots,
                                .fence = redlock_lease_item_fence(lease->handle, lease->item),
                                .asked_ns = call->asked_ns,
                                .answered_ns = call->client->step_ns};
    memcpy(grant->token, lease->token, SIM_TOKEN_SIZE);
    if (grant->fenced != (grant->fence != 0)) {
        sim_violation(world, "fence", "client %u (%.8s) has the fencing token %llu", lease->client,
                      sim_name(lease->token), (unsigned long long)grant->fence);
    }
    for (unsigned i = 0; i < world->grant_count; i++) {
        check_fences(world, &world->grants[i], grant);
        if (world->profile.trust != SIM_RECKLESS) {
            check_delay(world, &world->grants[i], grant);
        }
    }
    world->grant_count++;
}

static struct sim_sets *sets_of(struct sim_world *world, const char *token) {
    for (unsigned i = world->set_count; i-- > 0;) {
        if (sim_token_is(world->sets[i].token, token)) {
            return &world->sets[i];
        }
    }
    return NULL;
}

/* A node granted the lock to the other lease, lost that key, and set this key again, by a late SET
 * or a heal. */
static bool was_set_after(struct sim_world *world, const struct sim_grant *grant, const struct sim_grant *other) {
    const struct sim_sets *ours = sets_of(world, grant->token), *theirs = sets_of(world, other->token);
    bool after = ours == NULL || theirs == NULL; /* the table is full */
    for (unsigned i = 0; i < world->profile.nodes && !after; i++) {
        after = theirs->first_ns[i] != 0 && ours->last_ns[i] > theirs->first_ns[i];
    }
    return after;
}

void sim_grant_extended(const struct sim_call *call, const struct sim_lease *lease) {
    struct sim_world *world = call->client->world;
    const struct sim_grant *grant = sim_grant_of(world, lease->token);
    for (unsigned i = 0; i < world->grant_count && grant != NULL; i++) {
        const struct sim_grant *other = &world->grants[i];
        /* A node in both quorums had the other key first, then this key. Extensions set no key. */
        if (other != grant && other->resource == grant->resource && sim_collide(other->slots, grant->slots) &&
            !(lease->reads && other->reads) && other->asked_ns > grant->answered_ns &&
            other->answered_ns < call->asked_ns && !was_set_after(world, grant, other)) {
            sim_violation(world, "takeover",
                          "client %u extended '%s' (%.8s), which client %u (%.8s) had been granted since",
                          call->client->index, sim_resource_name(grant->resource), sim_name(grant->token),
                          other->client, sim_name(other->token));
        }
    }
}

void sim_grant_promise(struct sim_world *world, const struct sim_lease *lease, int64_t validity_ms) {
    const struct sim_client *client = &world->clients[lease->client];
    struct sim_grant *grant = lease->lock_delay_ms > 0 ? sim_grant_of(world, lease->token) : NULL;
    if (grant == NULL) {
        return;
    }
    /* The keys live for ttl + delay on the clocks of nodes. The drift of the ttl covers all of that
     * but at most 1 %. */
    int64_t delay_ns = lease->lock_delay_ms * (SIM_MS - SIM_MS / 100) - 2 * SIM_MS;
    int64_t until_ns = sim_clock_true(&client->clock, sim_client_now(client) + validity_ms * SIM_MS + delay_ns);
    if (until_ns > grant->promised_ns) {
        grant->promised_ns = until_ns;
    }
}

void sim_grant_ended(struct sim_world *world, const char *token) {
    struct sim_grant *grant = sim_grant_of(world, token);
    if (grant != NULL) {
        grant->ended = true;
    }
}

void sim_grant_set(struct sim_world *world, unsigned node, const char *token) {
    struct sim_sets *sets = sets_of(world, token);
    if (sets == NULL && world->set_count < SIM_SETS_MAX) {
        sets = &world->sets[world->set_count++];
        *sets = (struct sim_sets){.first_ns = {0}};
        memcpy(sets->token, token, SIM_TOKEN_SIZE);
    }
    if (sets != NULL) {
        sets->last_ns[node] = world->now_ns;
        sets->first_ns[node] = sets->first_ns[node] == 0 ? world->now_ns : sets->first_ns[node];
    }
}
