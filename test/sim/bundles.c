/* Users who want both resources at once: a bundle, with a sim_lease for each item. The checkers
 * look at each as at the lease of one resource. */
#include <stdio.h>

#include "group/bundle.h"
#include "parts.h"

/* The resource that was picked comes first, whichever it is: the library puts them in order. */
int sim_bundle_acquire(struct sim_call *call, const redlock_acquire_options *options) {
    struct sim_client *client = call->client;
    redlock_acquire_options of_all = *options;
    const redlock_item items[] = {{.size = sizeof(redlock_item),
                                   .resource = sim_resource_name(call->resource),
                                   .mode = call->reads ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE},
                                  {.size = sizeof(redlock_item),
                                   .resource = sim_resource_name(1u - call->resource),
                                   .mode = call->other_reads ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE}};
    of_all.mode = REDLOCK_EXCLUSIVE;
    return redlock_group_acquire_all(client->group, items, 2, &of_all, &call->request, sim_on_acquired, call);
}

void sim_bundle_acquired(const struct sim_call *call, struct sim_lease *lease) {
    struct sim_world *world = call->client->world;
    struct sim_call of_other = *call;
    struct sim_lease *other = sim_lease_new(call->client, 1u - call->resource, lease->handle, 1);
    if (other == NULL) {
        sim_violation(world, "budget", "a schedule needs more than %u leases", SIM_LEASES_MAX);
        return;
    }
    lease->other = other;
    other->held = true;
    other->ttl_ms = lease->ttl_ms;
    other->lock_delay_ms = lease->lock_delay_ms;
    other->has_on_lost = lease->has_on_lost;
    of_other.resource = other->resource;
    of_other.reads = other->reads;
    sim_grant_acquired(&of_other, other);
    sim_line_acquired(&of_other, other->token);
    SIM_TRACE(world, "client %u HOLDS '%s' (%.8s), too", call->client->index, sim_resource_name(other->resource),
              sim_name(other->token));
}

static redlock_item item_of(const struct sim_lease *lease, char token[SIM_TOKEN_SIZE + 2]) {
    (void)snprintf(token, SIM_TOKEN_SIZE + 2, "%s%s", lease->token, lease->says ? "s" : "");
    return (redlock_item){.size = sizeof(redlock_item),
                          .resource = sim_resource_name(lease->resource),
                          .mode = lease->reads ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE,
                          .token = token};
}

int sim_bundle_adopt(struct sim_client *client, const struct sim_lease *lease, const redlock_acquire_options *options,
                     redlock_lease **handle) {
    char tokens[2][SIM_TOKEN_SIZE + 2];
    redlock_acquire_options of_all = *options;
    const redlock_item items[] = {item_of(lease, tokens[0]), item_of(lease->other, tokens[1])};
    of_all.mode = REDLOCK_EXCLUSIVE;
    return redlock_group_adopt_all(client->group, items, 2, &of_all, handle);
}

void sim_bundle_adopted(struct sim_lease *lease, struct sim_lease *adopted) {
    struct sim_world *world = adopted->owner->world;
    struct sim_lease *other = sim_lease_new(adopted->owner, lease->other->resource, adopted->handle, 1);
    if (other == NULL) {
        sim_violation(world, "budget", "a schedule needs more than %u leases", SIM_LEASES_MAX);
        return;
    }
    adopted->other = other;
    other->has_on_lost = adopted->has_on_lost;
    other->lock_delay_ms = adopted->lock_delay_ms;
    other->ttl_ms = adopted->ttl_ms;
    other->adopted = true;
    other->reads = lease->other->reads;
    other->shared = lease->other->shared = adopted->shared;
}

void sim_bundle_lost(struct sim_lease *lease) {
    struct sim_world *world = lease->owner->world;
    struct sim_lease *other = lease->other;
    other->lost = true;
    /* One is lost. The other one is released, unless it keeps its delay, too. */
    if (lease->lock_delay_ms > 0) {
        sim_forget_token(world, lease->token);
        sim_forget_token(world, other->token);
    }
}
