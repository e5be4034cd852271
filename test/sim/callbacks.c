/* The callbacks of the users: what they note, and what they do inside the callback. */
#include <assert.h>

#include "parts.h"

static void answered(struct sim_call *call, const redlock_result *result) {
    struct sim_world *world = call->client->world;
    static const char *const names[] = {"acquire", "extend", "release", "inspect", "connect"};
    SIM_TRACE(world, "client %u: %s of '%s' is %s", call->client->index, names[call->kind],
              sim_resource_name(call->resource), redlock_error_name(redlock_result_code(result)));
    sim_check_call_done(call, result);
    call->done = true;
}

/* The user comes back when the lease is about to end, or just has. */
static void come_back_late(struct sim_lease *lease, unsigned slot) {
    struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    int64_t left_ms = sim_lease_validity_ms(world, lease);
    int64_t at = sim_random_between(&world->random, left_ms - 3, left_ms + 6);
    if (at > 0) {
        sim_push(world, client->step_ns + at * SIM_MS,
                 (struct sim_event){.kind = SIM_USER, .client = lease->client, .entry = slot, .gen = 1});
    }
}

/* The user holds it for a short time only. */
static void come_back_soon(struct sim_lease *lease, unsigned slot) {
    struct sim_world *world = lease->owner->world;
    const int64_t most_ns = (world->profile.ttl_min_ms < 40 ? world->profile.ttl_min_ms : 40) * SIM_MS / 2;
    sim_push(world, lease->owner->step_ns + sim_random_between(&world->random, 0, most_ns),
             (struct sim_event){.kind = SIM_USER, .client = lease->client, .entry = slot, .gen = 1});
}

/* The first one holds it until all others wait. */
static void come_back_in_line(const struct sim_lease *lease, unsigned slot) {
    struct sim_world *world = lease->owner->world;
    const bool is_first = world->now_ns % (1000 * SIM_MS) < 25 * SIM_MS;
    const int64_t most_ns = world->profile.blocks ? 4000 * SIM_MS : 2 * SIM_MS;
    const int64_t for_ns = is_first ? sim_random_between(&world->random, 50, 200) * SIM_MS
                                    : sim_random_between(&world->random, 0, most_ns);
    sim_push(world, lease->owner->step_ns + for_ns,
             (struct sim_event){.kind = SIM_USER, .client = lease->client, .entry = slot, .gen = 1});
}

static void cancel_another(struct sim_client *client) {
    unsigned from = sim_random_below(&client->world->random, SIM_SLOTS_MAX);
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        struct sim_call *other = client->slots[(from + i) % SIM_SLOTS_MAX].acquiring;
        if (other != NULL) {
            sim_user_cancel(other);
            return;
        }
    }
}

/* A user may act at any point, also inside callbacks. */
static void react(struct sim_client *client, unsigned slot) {
    struct sim_world *world = client->world;
    struct sim_lease *lease = client->slots[slot].lease;
    unsigned dice = sim_random_below(&world->random, 100);
    if (world->phase != SIM_ACTIVE || client->closing || client->group == NULL) {
        if (lease != NULL && !client->closing) {
            sim_user_release(lease);
        }
    } else if (world->profile.late_max_ms > 0) {
        if (lease != NULL) {
            come_back_in_line(lease, slot);
        }
    } else if (world->profile.crowd && !world->profile.holds_long && lease != NULL && dice < 80) {
        come_back_soon(lease, slot);
    } else if (dice < 15) {
        sim_user_act(client, slot);
    } else if (dice < (lease == NULL ? 45u : 25u)) {
        cancel_another(client);
    } else if (dice < 50 && lease != NULL) {
        come_back_late(lease, slot);
    } else if (dice < 57 && lease != NULL && !world->profile.calm && !world->profile.prompt) {
        int64_t left_ms = sim_lease_validity_ms(world, lease);
        sim_client_pause(client, sim_random_between(&world->random, left_ms * 9 / 10, left_ms + 6) * SIM_MS);
        come_back_late(lease, slot);
    }
}

void sim_on_acquired(const redlock_result *result, void *data) {
    struct sim_call *call = data;
    struct sim_client *client = call->client;
    struct sim_world *world = client->world;
    int code = redlock_result_code(result);
    answered(call, result);
    if (client->slots[call->slot].acquiring == call) {
        client->slots[call->slot].acquiring = NULL;
    }
    if (code == REDLOCK_OK) {
        struct sim_lease *lease = sim_lease_new(client, call->resource, redlock_result_lease(result), 0);
        if (lease == NULL) {
            sim_violation(world, "budget", "a schedule needs more than %u leases", SIM_LEASES_MAX);
            return;
        }
        const char *name = sim_name(lease->token);
        /* As env_random() made it. That of a try begins with another letter. */
        assert(name[0] == (name == lease->token && lease->slots == 0 ? 's' : 'c') &&
               name[1] == (char)('0' + client->index));
        assert(lease->reads == call->reads);
        client->slots[call->slot].lease = lease;
        lease->held = true;
        lease->ttl_ms = call->ttl_ms;
        lease->has_on_lost = call->has_on_lost;
        lease->auto_extend = call->auto_extend;
        lease->capped = call->capped;
        lease->lock_delay_ms = call->lock_delay_ms;
        lease->expiring_ms = call->expiring_ms;
        sim_grant_acquired(call, lease);
        sim_line_acquired(call, lease->token);
        if (call->both) {
            sim_bundle_acquired(call, lease);
        }
        sim_spec_holds(client, sim_lease_validity_ms(world, lease));
        world->holds++;
        SIM_TRACE(world, "client %u HOLDS '%s' (%.8s) for %lld ms, fencing token %llu", client->index,
                  sim_resource_name(call->resource), sim_name(lease->token),
                  (long long)sim_lease_validity_ms(world, lease),
                  (unsigned long long)redlock_lease_fence(lease->handle));
    } else {
        sim_spec_gave_up(client);
    }
    if (code != REDLOCK_OK && call->probe) {
        sim_violation(world, world->profile.all_probe ? "served" : "progress",
                      "after all faults healed, client %u could not acquire '%s': %s", client->index,
                      sim_resource_name(call->resource), redlock_error_name(code));
    }
    react(client, call->slot);
}

void sim_on_extended(const redlock_result *result, void *data) {
    struct sim_call *call = data;
    struct sim_lease *lease = call->lease;
    answered(call, result);
    lease->extending = false;
    if (redlock_result_code(result) == REDLOCK_OK && lease->handle != NULL) {
        lease->held = true;
        sim_grant_extended(call, lease);
        if (lease->other != NULL) {
            lease->other->held = true;
            sim_grant_extended(call, lease->other);
            lease->other->ends_ns = lease->other->expired ? lease->other->ends_ns : 0;
        }
        if (!lease->expired) {
            lease->ends_ns = 0; /* the lease has a new deadline */
        }
        SIM_TRACE(call->client->world, "client %u HOLDS '%s' (%.8s) for %lld ms", call->client->index,
                  sim_resource_name(call->resource), sim_name(lease->token),
                  (long long)sim_lease_validity_ms(call->client->world, lease));
    }
    int slot = sim_slot_of(lease);
    if (slot >= 0) {
        react(call->client, (unsigned)slot);
    }
}

void sim_on_released(const redlock_result *result, void *data) {
    struct sim_call *call = data;
    struct sim_world *world = call->client->world;
    answered(call, result);
    if (!call->probe) {
        sim_load_released(call->client);
        return;
    }
    if (redlock_result_code(result) != REDLOCK_OK) {
        sim_violation(world, "progress", "after all faults healed '%s' could not be released: %s",
                      sim_resource_name(call->resource), redlock_error_name(redlock_result_code(result)));
    }
    if (--world->probes == 0) {
        world->probed++;
        sim_push(world, call->client->step_ns, (struct sim_event){.kind = SIM_PROBE});
    }
}

void sim_on_inspected(const redlock_result *result, void *data) {
    answered(data, result);
}

void sim_on_lost(redlock_lease *handle, const char *reason, void *data) {
    struct sim_client *client = data;
    struct sim_world *world = client->world;
    SIM_TRACE(world, "client %u: on_lost: a lease is LOST: %s", client->index, reason);
    if (client->in_api) {
        sim_violation(world, "reentrant", "on_lost ran inside a call");
    }
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        struct sim_lease *lease = client->slots[i].lease;
        if (lease == NULL || lease->handle != handle) {
            continue;
        }
        if (lease->lost) {
            sim_violation(world, "loss", "on_lost ran twice for one lease");
        }
        if (sim_lease_validity_ms(world, lease) != 0) {
            sim_violation(world, "loss", "on_lost ran while the lease was valid");
        }
        sim_check_lost(lease);
        lease->lost = true;
        if (lease->other != NULL) {
            sim_bundle_lost(lease);
        }
        if (world->phase != SIM_ACTIVE || sim_random_percent(&world->random, 40)) {
            sim_user_release(lease);
        }
        return;
    }
    sim_violation(world, "loss", "on_lost ran for a lease that its owner had ended");
}
