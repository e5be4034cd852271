/* Invented runs as large as real ones, to look at their pages. */
#include "report_runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/schedule.h"

enum { WAIT_US = 2000000, TTL_US = 1000000, SWEEP_US = 200000 };

struct world {
    const struct report_run *run;
    struct kit *kit;
    uint64_t random;
    int64_t free_us[CHAOS_RESOURCES_MAX]; /* when the resource's last holder is done */
    int64_t count[CHAOS_RESOURCES_MAX];
    int64_t next_us[CHAOS_CLIENTS_MAX]; /* when the client continues */
    bool died[CHAOS_CLIENTS_MAX];
};

static int64_t up_to(struct world *world, int64_t most) {
    world->random = world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(world->random >> 33) % (most + 1);
}

/* Until when the client is paused or sees no quorum. Returns at_us itself if the client is well. */
static int64_t ill_until(const struct world *world, int client, int64_t at_us) {
    const struct chaos_history *history = &world->kit->history;
    uint32_t bad = 0;
    int64_t until_us = at_us;
    for (size_t i = 0; i < history->band_count; i++) {
        const struct chaos_band *band = &history->bands[i];
        bool on = band->from_us - KIT_START_US <= at_us && at_us < band->to_us - KIT_START_US;
        bool mine = band->fault.clients == 0 || (band->fault.clients >> client & 1);
        if (on && mine) {
            bad |= band->fault.nodes == 0 ? UINT32_MAX : band->fault.nodes;
            until_us = band->to_us - KIT_START_US > until_us ? band->to_us - KIT_START_US : until_us;
        }
    }
    size_t well = 0;
    for (size_t i = 0; i < history->node_count; i++) {
        well += (bad >> i & 1) == 0;
    }
    return well >= chaos_quorum(history) ? at_us : until_us;
}

static int64_t latency_us(struct world *world) {
    int64_t quick = 250 + up_to(world, 150) + up_to(world, 150) * up_to(world, 10) / 3;
    return up_to(world, 60) == 0 ? quick * (2 + up_to(world, 40)) : quick;
}

static void hold(struct world *world, int client, int resource, int64_t invoked_us, int64_t from_us, int64_t attempts) {
    struct kit *kit = world->kit;
    char token[CHAOS_TOKEN_SIZE];
    snprintf(token, sizeof token, "%08" PRIx64 "%08" PRIx64, world->random >> 32, (uint64_t)kit->last_op);
    int64_t length = up_to(world, world->run->hold_us) * (up_to(world, 10) == 0 ? 10 : 1), end_us = from_us + length;
    size_t index = kit_operation(kit, client, resource, CHAOS_ACQUIRE, invoked_us, from_us, "OK");
    kit->history.operations[index].attempts = attempts;
    size_t lease = kit_lease(kit, client, resource, token, from_us, from_us + TTL_US - 12000);
    for (int64_t at_us = from_us + TTL_US / 3; at_us < end_us; at_us += TTL_US / 3) {
        kit_claim(kit, lease, at_us, at_us + TTL_US - 12000);
    }
    kit_increment(kit, lease, world->count[resource], from_us + length / 4, from_us + length / 2);
    world->count[resource]++;
    kit_end(kit, lease, end_us, true);
    int64_t released_us = end_us + latency_us(world);
    kit_operation(kit, client, resource, CHAOS_RELEASE, end_us, released_us, "OK");
    world->free_us[resource] = end_us > world->free_us[resource] ? end_us : world->free_us[resource];
    world->next_us[client] = released_us + 500 + up_to(world, 20000);
}

static void turn(struct world *world, int client) {
    int64_t at_us = world->next_us[client], from_us = at_us + latency_us(world), attempts = 1;
    int resource = (int)up_to(world, (int64_t)world->run->resources - 1);
    int64_t well_us = ill_until(world, client, at_us);
    bool ill = well_us > at_us;
    if (ill) {
        from_us = well_us + 50000 + up_to(world, 200000);
        from_us = from_us < world->free_us[resource] ? world->free_us[resource] + latency_us(world) : from_us;
        attempts = 2 + (well_us - at_us) / 200000;
    } else if (from_us < world->free_us[resource] && up_to(world, 999) >= world->run->overlap) {
        from_us = world->free_us[resource] + latency_us(world) + up_to(world, 3000);
        attempts = 2;
    }
    if (from_us - at_us > WAIT_US) {
        size_t index = kit_operation(world->kit, client, resource, CHAOS_ACQUIRE, at_us, at_us + WAIT_US,
                                     ill ? "NO_QUORUM" : "CONTENDED");
        world->kit->history.operations[index].attempts = ill ? 11 : 4;
        world->next_us[client] = at_us + WAIT_US + up_to(world, 20000);
    } else {
        hold(world, client, resource, at_us, from_us, attempts);
    }
}

static void plan_faults(struct world *world) {
    const struct report_run *run = world->run;
    struct chaos_schedule_shape shape = {run->nodes, run->clients, run->seconds * 1000, run->kinds, true};
    struct chaos_schedule schedule = {0};
    chaos_schedule_random(7, &shape, &schedule);
    for (size_t i = 0; i < schedule.count; i++) {
        struct chaos_fault fault = schedule.faults[i];
        int64_t from_us = fault.at_ms * 1000;
        size_t index =
            kit_band(world->kit, fault.kind, fault.nodes, fault.clients, from_us, from_us + fault.for_ms * 1000);
        struct chaos_band *band = &world->kit->history.bands[index];
        char text[256];
        band->fault.amount = fault.amount;
        free(band->text);
        band->text = strdup(chaos_fault_describe(&fault, run->nodes, run->clients, text, sizeof text));
        if (band->text == NULL) {
            abort();
        }
    }
    chaos_schedule_clear(&schedule);
}

/* All nodes have the keys that they should. */
static void audit(struct kit *kit, int64_t end_us) {
    size_t resources = kit->history.resource_count, first = kit->history.sweep_count;
    int64_t sweeps = end_us / SWEEP_US;
    for (int64_t i = 0; i < sweeps * (int64_t)resources; i++) {
        int64_t at_us = i / (int64_t)resources * SWEEP_US;
        kit_sweep(kit, (int)(i % (int64_t)resources), at_us, at_us + 300);
    }
    for (size_t i = 0; i < kit->history.lease_count; i++) {
        const struct chaos_lease *lease = &kit->history.leases[i];
        int64_t from_us = lease->from_us - KIT_START_US;
        for (int64_t at = (from_us + SWEEP_US - 1) / SWEEP_US;
             at < sweeps && at * SWEEP_US < lease->ended_us - KIT_START_US; at++) {
            kit_see(kit, first + (size_t)at * resources + (size_t)lease->resource,
                    (uint32_t)((UINT64_C(1) << kit->history.node_count) - 1), lease->token,
                    (lease->until_us - KIT_START_US - at * SWEEP_US) / 1000 + 12);
        }
    }
}

void report_run_make(const struct report_run *run, struct kit *kit) {
    struct world world = {.run = run, .kit = kit, .random = 42};
    int64_t end_us = run->seconds * 1000000;
    kit_begin(kit, run->nodes, run->clients, run->resources);
    free(kit->history.experiment);
    kit->history.experiment = strdup(run->name);
    plan_faults(&world);
    for (size_t i = 0; i < kit->history.band_count; i++) {
        kit->history.breaks_assumptions |= chaos_fault_about(kit->history.bands[i].fault.kind)->breaks;
    }
    for (size_t i = 0; i < run->clients; i++) {
        world.next_us[i] = 20000 + up_to(&world, 60000);
    }
    for (bool any = run->hold_us > 0; any;) {
        size_t next = 0;
        for (size_t i = 1; i < run->clients; i++) {
            next = world.next_us[i] < world.next_us[next] ? i : next;
        }
        any = world.next_us[next] < end_us - WAIT_US - 12 * run->hold_us;
        if (any) {
            turn(&world, (int)next);
        }
    }
    audit(kit, end_us);
    kit_finish(kit, end_us);
}

const char report_poison[] =
    "</script></title></style>--><script>window.broken=1</script><img src=x onerror=\"window.broken=2\">"
    "\"'&amp;\\u003c\\ \xE2\x80\xA8\xE2\x80\xAE \xFF\xC3 \xED\xA0\x80 \x01\n]]><!--<script>";

static void replace(char **text) {
    free(*text);
    *text = strdup(report_poison);
    if (*text == NULL) {
        abort();
    }
}

void report_run_poison(struct kit *kit) {
    struct chaos_history *history = &kit->history;
    replace(&history->version);
    replace(&history->command);
    replace(&history->backend);
    replace(&history->experiment);
    for (size_t i = 0; i < history->resource_count; i++) {
        replace(&history->resources[i]);
    }
    for (size_t i = 0; i < history->band_count; i++) {
        replace(&history->bands[i].text);
        if (i % 2 == 0) {
            replace(&history->bands[i].error);
        }
    }
    for (size_t i = 0; i < history->operation_count; i++) {
        snprintf(history->operations[i].votes, sizeof history->operations[i].votes, "</script>\"'\xFF");
        if (strcmp(history->operations[i].result, "OK") != 0) {
            snprintf(history->operations[i].result, sizeof history->operations[i].result, "<b>\"'\xFF");
        }
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        snprintf(history->leases[i].token, sizeof history->leases[i].token, "</script>\"'\xFF%03zu", i % 1000);
    }
    kit_leave(kit, report_poison);
}
