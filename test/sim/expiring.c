/* The checker of warnings: an owner who asked for it is told that the deadline of its lease is
 * near, in time, once for each deadline, and never after the end. */
#include "parts.h"

/* Timers come up to 2 ms late here, and clocks differ in rate. */
#define SLACK_NS (5 * SIM_MS)

/* A hash of what was drawn, not one more draw: the other schedules stay as they are. */
int64_t sim_draw_expiring_ms(const struct sim_world *world, int64_t ttl_ms) {
    if (world->seed % 4 != 0) {
        return 0;
    }
    const uint64_t drawn = (uint64_t)ttl_ms * UINT64_C(0x9e3779b97f4a7c15) + world->seed;
    const int64_t expiring_ms = (int64_t)((drawn >> 32) % ((uint64_t)ttl_ms / 2 + 1));
    return expiring_ms == 1 ? 0 : expiring_ms; /* 1 is refused */
}

static int64_t deadline_of(const struct sim_lease *lease) {
    return atomic_load(&lease->handle->held_until_ns);
}

void sim_check_expiring_told(struct sim_lease *lease, int64_t remaining_ms) {
    struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    const char *name = sim_resource_name(lease->resource);
    const int64_t deadline_ns = deadline_of(lease), validity_ms = (deadline_ns - sim_client_now(client)) / SIM_MS;
    SIM_TRACE(world, "client %u: '%s' (%.8s) will end in %lld ms", client->index, name, sim_name(lease->token),
              (long long)remaining_ms);
    if (client->in_api) {
        sim_violation(world, "reentrant", "on_expiring ran inside a call");
    }
    if (remaining_ms < 1 || remaining_ms > lease->expiring_ms || validity_ms > remaining_ms) {
        sim_violation(world, "expiring",
                      "client %u is told that '%s' (%.8s) has %lld ms; it has %lld, and asked for %lld", client->index,
                      name, sim_name(lease->token), (long long)remaining_ms, (long long)validity_ms,
                      (long long)lease->expiring_ms);
    }
    if (lease->lost) {
        sim_violation(world, "expiring", "on_expiring ran after on_lost");
    }
    if (lease->told_deadline_ns == deadline_ns) {
        sim_violation(world, "expiring", "client %u is told twice of one deadline of '%s' (%.8s)", client->index, name,
                      sim_name(lease->token));
    }
    lease->told_deadline_ns = deadline_ns;
    world->totals.expiring++;
}

void sim_on_expiring(redlock_lease *handle, int64_t remaining_ms, void *data) {
    struct sim_client *client = data;
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        struct sim_lease *lease = client->slots[i].lease;
        if (lease == NULL || lease->handle != handle) {
            continue;
        }
        sim_check_expiring_told(lease, remaining_ms);
        if (remaining_ms % 2 != 0) {
            sim_user_extend(lease);
        } else if (remaining_ms % 6 == 0) {
            sim_user_release(lease);
        }
        return;
    }
    sim_violation(client->world, "expiring", "on_expiring ran for a lease that its owner had ended");
}

void sim_check_expiring(struct sim_lease *lease) {
    struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    const int64_t deadline_ns = deadline_of(lease), local_ns = sim_client_now(client);
    if (lease->expiring_ms == 0 || lease->told_deadline_ns == deadline_ns || local_ns >= deadline_ns ||
        local_ns < deadline_ns - lease->expiring_ms * SIM_MS) {
        return;
    }
    const int64_t paused_ns = sim_client_paused(client, world->now_ns);
    if (lease->due_deadline_ns != deadline_ns) {
        lease->due_deadline_ns = deadline_ns;
        lease->due_ns = world->now_ns;
        lease->due_paused_ns = paused_ns;
    }
    const int64_t running_ns = world->now_ns - lease->due_ns - (paused_ns - lease->due_paused_ns);
    if (client->busy_until_ns <= world->now_ns && running_ns > SLACK_NS) {
        sim_violation(world, "expiring", "client %u has not been told that '%s' (%.8s) will end in %.3f ms",
                      client->index, sim_resource_name(lease->resource), sim_name(lease->token),
                      (double)(deadline_ns - local_ns) / 1e6);
    }
}
