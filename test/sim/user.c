/* What users do: one slot is one thread of a program, which acquires, works, extends, releases, or
 * changes its mind. */
#include <stdio.h>

#include "parts.h"

const char *sim_resource_name(unsigned resource) {
    static const char *const names[SIM_RESOURCES_MAX] = {"r1", "r2"};
    return names[resource];
}

int sim_slot_of(const struct sim_lease *lease) {
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        if (lease->owner->slots[i].lease == lease) {
            return (int)i;
        }
    }
    return -1;
}

struct sim_call *sim_call_new(struct sim_client *client, enum sim_call_kind kind) {
    struct sim_world *world = client->world;
    if (world->call_count == SIM_CALLS_MAX) {
        return NULL;
    }
    struct sim_call *call = &world->calls[world->call_count++];
    *call = (struct sim_call){.client = client,
                              .kind = kind,
                              .since_ns = client->step_ns,
                              .asked_ns = client->step_ns,
                              .asked_local_ns = sim_clock_local(&client->clock, client->step_ns),
                              .since_paused_ns = sim_client_paused(client, client->step_ns),
                              .within_ns = 2 * world->profile.node_timeout_ms * SIM_MS};
    return call;
}

struct sim_lease *sim_lease_new(struct sim_client *client, unsigned resource, redlock_lease *handle, unsigned item) {
    struct sim_world *world = client->world;
    if (world->lease_count == SIM_LEASES_MAX) {
        return NULL;
    }
    struct sim_lease *lease = &world->leases[world->lease_count++];
    *lease = (struct sim_lease){
        .handle = handle, .owner = client, .client = (uint8_t)client->index, .resource = (uint8_t)resource};
    lease->item = (uint8_t)item;
    const char *token = redlock_lease_item_token(handle, item);
    sim_token_set(lease->token, token, strlen(token));
    lease->reads = lease->says = sim_token_reads(token, strlen(token));
    uint32_t slots[SIM_LIMIT_MAX];
    const size_t count = redlock_lease_slots(handle, slots, SIM_LIMIT_MAX);
    for (size_t i = 0; i < count; i++) {
        lease->slots |= 1U << slots[i];
    }
    return lease;
}

static void draw_options(struct sim_client *client, struct sim_call *call, bool probe,
                         redlock_acquire_options *options) {
    struct sim_world *world = client->world;
    struct sim_random *random = &world->random;
    redlock_acquire_options_default(options);
    options->ttl_ms = sim_random_between(random, world->profile.ttl_min_ms, world->profile.ttl_max_ms);
    /* Some tens of attempts in a schedule, whatever its scale. */
    int64_t delay_ms = world->profile.active_ns / SIM_MS / 20;
    options->retry_delay_min_ms = sim_random_between(random, 0, 5 + delay_ms);
    options->retry_delay_max_ms = options->retry_delay_min_ms + sim_random_between(random, 1, 10 + delay_ms);
    if (sim_random_percent(random, 90)) {
        options->on_lost = sim_on_lost;
    }
    options->lost_data = client;
    if (probe) {
        options->ttl_ms = 2000 + 4 * world->profile.node_timeout_ms;
        options->wait_timeout_ms = 10000;
        if (sim_is_guarded(world)) {
            options->ttl_ms = world->profile.guarded_ttl_max_ms;
            /* A step may be seen only now. */
            options->wait_timeout_ms += 3 * world->profile.guarded_ttl_max_ms;
        }
        options->retry_delay_min_ms = 5;
        options->retry_delay_max_ms = 50;
    } else if (sim_random_percent(random, world->profile.crowd ? 85 : 50)) {
        options->wait_timeout_ms = sim_random_between(random, 1, 2 + world->profile.active_ns / 2 / SIM_MS);
    } else if (sim_random_percent(random, 15)) {
        options->wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    }
    options->order = client->is_old || sim_random_percent(random, 15) ? REDLOCK_ORDER_NONE : REDLOCK_ORDER_FAIR;
    if (world->profile.late_max_ms > 0 && !probe) {
        options->order = REDLOCK_ORDER_FAIR;
        options->wait_timeout_ms = REDLOCK_WAIT_FOREVER;
        options->retry_delay_min_ms = 50;
        options->retry_delay_max_ms = 200;
    }
    options->auto_extend = !probe && world->profile.auto_extend && sim_random_percent(random, 60);
    if (options->auto_extend && sim_random_percent(random, 20) && world->control != SIM_CONTROL_SPEC) {
        options->auto_extend_max_ms = sim_random_between(random, 1, 3 * options->ttl_ms);
    }
    options->fencing = world->profile.fencing && sim_random_percent(random, 85);
    options->heal = world->profile.heal;
    if (world->profile.lock_delay_max_ms > 0 && !probe) {
        options->lock_delay_ms = sim_random_between(random, 0, world->profile.lock_delay_max_ms);
    }
    if (world->profile.readers > 0 && sim_random_percent(random, world->profile.readers)) {
        options->mode = REDLOCK_SHARED;
    }
    if (world->profile.limit > 0) {
        options->limit = world->profile.limit;
        options->permits = probe                            ? options->limit
                           : sim_random_percent(random, 70) ? 1
                                                            : 1 + sim_random_below(random, options->limit);
    }
    options->expiring_ms = probe || call->both ? 0 : sim_draw_expiring_ms(world, options->ttl_ms);
    options->on_expiring = options->expiring_ms > 0 ? sim_on_expiring : NULL;
    options->expiring_data = client;
    call->expiring_ms = options->expiring_ms;
    call->fencing = options->fencing;
    call->reads = options->mode == REDLOCK_SHARED;
    call->other_reads = call->both && world->profile.readers > sim_random_below(random, 100);
    call->permits = (uint8_t)options->permits;
    call->fair = options->order == REDLOCK_ORDER_FAIR && options->wait_timeout_ms != 0;
    call->lock_delay_ms = options->lock_delay_ms;
    call->ttl_ms = options->ttl_ms;
    call->has_on_lost = options->on_lost != NULL;
    call->auto_extend = options->auto_extend;
    call->capped = options->auto_extend_max_ms > 0;
    /* A fencing token may have to be written back; each script may be sent again by source, and a
     * SET without GET; and guards wait for the first connections. */
    int64_t trips = 1 +
                    (call->permits                      ? 8
                     : call->reads || call->other_reads ? 4
                                                        : 2) *
                        options->fencing +
                    (options->fencing || call->reads || call->other_reads || call->permits ||
                     world->profile.clock_guard || sim_names(world)) +
                    sim_is_guarded(world);
    call->wait_ms = options->wait_timeout_ms;
    call->within_ns = options->wait_timeout_ms < 0
                          ? SIM_NEVER
                          : (options->wait_timeout_ms + trips * world->profile.node_timeout_ms) * SIM_MS;
}

bool sim_user_acquire(struct sim_client *client, unsigned slot, unsigned resource, bool probe) {
    struct sim_world *world = client->world;
    struct sim_call *call = sim_call_new(client, SIM_CALL_ACQUIRE);
    redlock_acquire_options options;
    if (call == NULL) {
        return false;
    }
    call->both = !probe && world->profile.bundles > 0 && sim_random_percent(&world->random, world->profile.bundles);
    draw_options(client, call, probe, &options);
    call->slot = (uint8_t)slot;
    call->resource = (uint8_t)resource;
    call->probe = probe;
    SIM_TRACE(world, "client %u/%u acquires '%s'%s for %lld ms, waits %lld ms%s%s", client->index, slot,
              sim_resource_name(resource), call->both ? " and the other one" : "", (long long)options.ttl_ms,
              (long long)options.wait_timeout_ms, options.auto_extend ? ", renews" : "", call->reads ? ", reads" : "");
    sim_api_enter(client);
    int code = call->both ? sim_bundle_acquire(call, &options)
                          : redlock_group_acquire(client->group, sim_resource_name(resource), &options, &call->request,
                                                  sim_on_acquired, call);
    sim_api_leave(client);
    if (code != REDLOCK_OK) {
        world->call_count--;
        if (code != REDLOCK_ERR_RANDOM || world->profile.no_random_permille == 0) {
            sim_violation(world, "refused", "redlock_group_acquire() returned %s", redlock_error_name(code));
        }
        return false;
    }
    client->slots[slot].acquiring = call;
    return true;
}

static int64_t draw_ttl_to_extend(const struct sim_lease *lease) {
    struct sim_world *world = lease->owner->world;
    int64_t ttl_ms = sim_random_percent(&world->random, 50)
                         ? lease->ttl_ms
                         : sim_random_between(&world->random, world->profile.ttl_min_ms, world->profile.ttl_max_ms);
    return ttl_ms > 2 * lease->expiring_ms ? ttl_ms : 2 * lease->expiring_ms;
}

void sim_user_extend(struct sim_lease *lease) {
    struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    struct sim_call *call = sim_call_new(client, SIM_CALL_EXTEND);
    if (call == NULL) {
        return;
    }
    int64_t ttl_ms = draw_ttl_to_extend(lease);
    const bool downgrades = world->profile.readers > 0 && sim_random_percent(&world->random, 40);
    call->lease = lease;
    call->resource = lease->resource;
    call->ttl_ms = ttl_ms;
    sim_api_enter(client);
    int code = downgrades ? redlock_downgrade(lease->handle, sim_on_extended, call)
                          : redlock_extend(lease->handle, ttl_ms, sim_on_extended, call);
    sim_api_leave(client);
    SIM_TRACE(world, "client %u %s '%s' (%.8s) to %lld ms: %s", client->index, downgrades ? "downgrades" : "extends",
              sim_resource_name(lease->resource), sim_name(lease->token), (long long)ttl_ms, redlock_error_name(code));
    if (code == REDLOCK_OK) {
        lease->extending = true;
        if (downgrades) {
            sim_lease_reads(lease);
            if (lease->other != NULL) {
                sim_lease_reads(lease->other);
            }
        }
        call->within_ns *= lease->reads || lease->slots ? 2 : 1; /* by the source of its script */
        lease->ttl_ms = ttl_ms < lease->ttl_ms ? ttl_ms : lease->ttl_ms;
        return;
    }
    world->call_count--;
    bool busy = code == REDLOCK_ERR_BUSY && lease->extending;
    if (!busy && code != REDLOCK_ERR_LOST && !client->closing) {
        sim_violation(world, "refused", "redlock_extend() returned %s", redlock_error_name(code));
    }
}

void sim_lease_end(struct sim_lease *lease) {
    int slot = sim_slot_of(lease);
    if (slot >= 0) {
        lease->owner->slots[slot].lease = NULL;
    }
    lease->handle = NULL;
    if (lease->other != NULL) {
        lease->other->handle = NULL;
    }
}

int64_t sim_lease_give_up(struct sim_lease *lease) {
    const int64_t left_ms = sim_lease_validity_ms(lease->owner->world, lease);
    if (!lease->lost) {
        sim_grant_ended(lease->owner->world, lease->token);
        if (lease->other != NULL) {
            sim_grant_ended(lease->owner->world, lease->other->token);
        }
    }
    sim_lease_end(lease);
    return left_ms;
}

void sim_lease_given_up(struct sim_lease *lease, int64_t left_ms) {
    const struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    /* The lock delay of an ended lease is kept, whatever happens to the handle; and a call may come
     * late. */
    if (lease->lock_delay_ms > 0 && (client->step_ns - world->now_ns) / SIM_MS >= left_ms - left_ms / 50 - 1) {
        sim_forget_token(world, lease->token);
        if (lease->other != NULL) {
            sim_forget_token(world, lease->other->token);
        }
    }
}

void sim_user_release(struct sim_lease *lease) {
    struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    bool probe = world->phase == SIM_PROBING;
    /* Some users do not want the result. */
    struct sim_call *call = NULL;
    if (probe || sim_random_percent(&world->random, 85)) {
        call = sim_call_new(client, SIM_CALL_RELEASE);
    }
    if (call != NULL) {
        call->lease = lease;
        call->resource = lease->resource;
        call->probe = probe;
    }
    SIM_TRACE(world, "client %u releases '%s' (%.8s)", client->index, sim_resource_name(lease->resource),
              sim_name(lease->token));
    redlock_lease *handle = lease->handle;
    const int64_t left_ms = sim_lease_give_up(lease);
    sim_api_enter(client);
    int code = redlock_release(handle, call != NULL ? sim_on_released : NULL, call);
    sim_api_leave(client);
    sim_lease_given_up(lease, left_ms);
    if (code != REDLOCK_OK) {
        sim_violation(world, "refused", "redlock_release() returned %s", redlock_error_name(code));
    }
}

void sim_user_forget(struct sim_lease *lease) {
    struct sim_client *client = lease->owner;
    struct sim_world *world = client->world;
    SIM_TRACE(world, "client %u forgets '%s' (%.8s)", client->index, sim_resource_name(lease->resource),
              sim_name(lease->token));
    sim_forget_token(world, lease->token);
    if (lease->other != NULL) {
        sim_forget_token(world, lease->other->token);
    }
    sim_spec_gave_up(client);
    redlock_lease *handle = lease->handle;
    sim_lease_end(lease);
    sim_api_enter(client);
    redlock_lease_forget(handle);
    sim_api_leave(client);
}

/* Another client makes a handle for the same token, beside its first owner, or in its place if the
 * owner forgets it now. */
void sim_user_adopt(struct sim_lease *lease, struct sim_client *client, unsigned slot) {
    struct sim_world *world = client->world;
    struct sim_client *first = lease->owner;
    bool instead = sim_random_percent(&world->random, 60) && !lease->shared && first->busy_until_ns <= world->now_ns;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = lease->ttl_ms;
    options.on_lost = sim_on_lost;
    options.lost_data = client;
    options.auto_extend = world->profile.auto_extend && sim_random_percent(&world->random, 50);
    options.heal = world->profile.heal;
    options.lock_delay_ms = lease->lock_delay_ms;
    options.expiring_ms = lease->other != NULL ? 0 : sim_draw_expiring_ms(world, options.ttl_ms);
    options.on_expiring = options.expiring_ms > 0 ? sim_on_expiring : NULL;
    options.expiring_data = client;
    options.mode = lease->reads ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
    uint32_t slots[SIM_LIMIT_MAX];
    options.permits = (uint32_t)redlock_lease_slots(lease->handle, slots, SIM_LIMIT_MAX);
    options.limit = options.permits > 0 ? world->profile.limit : 0;
    options.slots = options.permits > 0 ? slots : NULL;
    char token[sizeof lease->token + 1];
    (void)snprintf(token, sizeof token, "%s%s", lease->token, lease->says ? "s" : "");
    redlock_lease *handle = NULL;
    sim_api_enter(client);
    int code = lease->other != NULL
                   ? sim_bundle_adopt(client, lease, &options, &handle)
                   : redlock_group_adopt(client->group, sim_resource_name(lease->resource), token, &options, &handle);
    sim_api_leave(client);
    if (code != REDLOCK_OK) {
        return;
    }
    struct sim_lease *adopted = sim_lease_new(client, lease->resource, handle, 0);
    if (adopted == NULL) {
        redlock_lease_forget(handle);
        return;
    }
    SIM_TRACE(world, "client %u/%u adopts '%s' (%.8s) %s client %u", client->index, slot,
              sim_resource_name(lease->resource), sim_name(lease->token), instead ? "instead of" : "beside",
              lease->client);
    adopted->has_on_lost = true;
    adopted->lock_delay_ms = options.lock_delay_ms;
    adopted->ttl_ms = options.ttl_ms;
    adopted->expiring_ms = options.expiring_ms;
    adopted->adopted = true;
    adopted->reads = lease->reads;
    client->slots[slot].lease = adopted;
    adopted->shared = lease->shared = !instead;
    if (lease->other != NULL) {
        sim_bundle_adopted(lease, adopted);
    }
    if (!instead) {
        return;
    }
    if (first != client) {
        sim_client_enter(first);
    }
    sim_user_forget(lease);
    if (first != client) {
        sim_client_leave(first);
    }
}

void sim_user_cancel(struct sim_call *call) {
    struct sim_client *client = call->client;
    if (!call->cancelled) {
        call->cancelled = true;
        call->since_ns = client->step_ns;
        call->since_paused_ns = sim_client_paused(client, client->step_ns);
        call->within_ns = 0;
    }
    SIM_TRACE(client->world, "client %u/%u cancels", client->index, call->slot);
    sim_api_enter(client);
    redlock_request_cancel(call->request);
    sim_api_leave(client);
}

void sim_user_inspect(struct sim_client *client, unsigned resource) {
    struct sim_call *call = sim_call_new(client, SIM_CALL_INSPECT);
    if (call == NULL) {
        return;
    }
    sim_api_enter(client);
    int code = redlock_group_inspect(client->group, sim_resource_name(resource), sim_on_inspected, call);
    sim_api_leave(client);
    if (code != REDLOCK_OK) {
        client->world->call_count--;
    }
}

void sim_user_connect(struct sim_client *client) {
    struct sim_world *world = client->world;
    struct sim_call *call = sim_call_new(client, SIM_CALL_CONNECT);
    if (call == NULL) {
        return;
    }
    int64_t timeout_ms = sim_random_between(&world->random, 0, 4 * world->profile.node_timeout_ms);
    call->within_ns = timeout_ms * SIM_MS;
    sim_api_enter(client);
    int code = redlock_group_connect(client->group, timeout_ms, sim_on_inspected, call);
    sim_api_leave(client);
    if (code != REDLOCK_OK) {
        sim_violation(world, "refused", "redlock_group_connect() returned %s", redlock_error_name(code));
    }
}

static void drained(void *ctx) {
    struct sim_client *client = ctx;
    SIM_TRACE(client->world, "client %u is closed", client->index);
    redlock_elections_closed(&client->elections);
    sim_candidates_gone(client);
    if (client->in_api) {
        sim_violation(client->world, "reentrant", "a close ended inside a call");
    }
    sim_check_closed(client);
    sim_check_spans(client);
    sim_client_count(client);
    struct redlock_group *group = client->group;
    client->group = NULL;
    redlock_group_delete(group);
    sim_subscriptions_leave(client);
}

void sim_user_close(struct sim_client *client) {
    struct sim_world *world = client->world;
    SIM_TRACE(world, "client %u closes", client->index);
    client->closing = true;
    client->closed_ns = client->step_ns;
    client->closed_paused_ns = sim_client_paused(client, client->step_ns);
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        struct sim_slot *slot = &client->slots[i];
        if (slot->lease != NULL) {
            sim_grant_ended(world, slot->lease->token);
            if (slot->lease->other != NULL) {
                sim_grant_ended(world, slot->lease->other->token);
            }
            sim_lease_end(slot->lease);
        }
    }
    for (unsigned i = 0; i < world->call_count; i++) {
        struct sim_call *call = &world->calls[i];
        if (call->client == client && !call->done && call->within_ns == SIM_NEVER) {
            call->since_ns = client->step_ns;
            call->since_paused_ns = sim_client_paused(client, client->step_ns);
            call->within_ns = 0;
        }
    }
    sim_candidates_close(client);
    sim_api_enter(client);
    redlock_elections_close(&client->elections);
    redlock_group_drain(client->group, drained, client);
    sim_api_leave(client);
}
