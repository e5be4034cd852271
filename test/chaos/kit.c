/* Histories made by hand, for the tests of their readers. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory) {
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static char *copy(const char *text) {
    return must(strdup(text));
}

static void *room(void *list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) {
        return list;
    }
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    return must(realloc(list, *capacity * size));
}

/* Makes room for one more and returns its index. */
#define APPEND(kit, list, what)                                                                                        \
    ((kit)->history.list =                                                                                             \
         room((kit)->history.list, (kit)->history.what##_count, &(kit)->what##_capacity, sizeof *(kit)->history.list), \
     (kit)->history.what##_count++)

static int64_t absolute(int64_t us) {
    return us == CHAOS_NEVER_US ? CHAOS_NEVER_US : KIT_START_US + us;
}

void kit_begin(struct kit *kit, size_t nodes, size_t clients, size_t resources) {
    memset(kit, 0, sizeof *kit);
    struct chaos_history *history = &kit->history;
    history->version = copy("redis 7.0.15");
    history->command = copy("redlock-chaos run --seed 7");
    history->backend = copy("process");
    history->experiment = copy("");
    history->seed = 7;
    history->start_us = KIT_START_US;
    history->finish_us = CHAOS_NEVER_US;
    history->node_count = nodes;
    history->client_count = clients;
    history->resource_count = resources;
    history->resources = must(calloc(resources, sizeof *history->resources));
    for (size_t r = 0; r < resources; r++) {
        char name[32];
        snprintf(name, sizeof name, "r%zu", r + 1);
        history->resources[r] = copy(name);
    }
    history->ttl_ms = 1000;
    history->node_timeout_ms = 50;
    history->wait_ms = 2000;
    for (size_t c = 0; c < clients; c++) {
        kit_spawn(kit, (int)c, 0);
    }
}

void kit_clear(struct kit *kit) {
    chaos_history_clear(&kit->history);
    memset(kit, 0, sizeof *kit);
}

size_t kit_operation(struct kit *kit, int client, int resource, enum chaos_what what, int64_t invoked_us,
                     int64_t completed_us, const char *result) {
    size_t index = APPEND(kit, operations, operation);
    struct chaos_operation *operation = &kit->history.operations[index];
    *operation = (struct chaos_operation){.client = client,
                                          .resource = resource,
                                          .what = what,
                                          .op = ++kit->last_op,
                                          .invoked_us = absolute(invoked_us),
                                          .deadline_us = absolute(invoked_us + 2000000),
                                          .completed_us = absolute(completed_us),
                                          .attempts = completed_us == CHAOS_NEVER_US ? 0 : 1};
    if (completed_us != CHAOS_NEVER_US) {
        snprintf(operation->result, sizeof operation->result, "%s", result);
        memset(operation->votes, strcmp(result, "OK") == 0 ? 'G' : 'D', kit->history.node_count);
    }
    return index;
}

size_t kit_lease(struct kit *kit, int client, int resource, const char *token, int64_t from_us, int64_t until_us) {
    size_t index = APPEND(kit, leases, lease);
    struct chaos_lease *lease = &kit->history.leases[index];
    *lease = (struct chaos_lease){
        .client = client, .resource = resource, .from_us = absolute(from_us), .ended_us = CHAOS_NEVER_US};
    snprintf(lease->token, sizeof lease->token, "%s", token);
    kit_claim(kit, index, from_us, until_us);
    return index;
}

size_t kit_acquire(struct kit *kit, int client, int resource, const char *token, int64_t from_us, int64_t until_us) {
    kit_operation(kit, client, resource, CHAOS_ACQUIRE, from_us - 1000, from_us, "OK");
    return kit_lease(kit, client, resource, token, from_us, until_us);
}

void kit_claim(struct kit *kit, size_t index, int64_t at_us, int64_t until_us) {
    struct chaos_lease *lease = &kit->history.leases[index];
    lease->claims = must(realloc(lease->claims, (lease->claim_count + 1) * sizeof *lease->claims));
    lease->claims[lease->claim_count++] = (struct chaos_claim){absolute(at_us), absolute(until_us)};
    lease->until_us = absolute(until_us);
}

void kit_end(struct kit *kit, size_t index, int64_t ended_us, bool released) {
    kit->history.leases[index].ended_us = absolute(ended_us);
    kit->history.leases[index].released = released;
}

void kit_release(struct kit *kit, size_t index, int64_t ended_us) {
    const struct chaos_lease *lease = &kit->history.leases[index];
    kit_end(kit, index, ended_us, true);
    kit_operation(kit, lease->client, lease->resource, CHAOS_RELEASE, ended_us, ended_us + 1000, "OK");
}

size_t kit_acquire_shared(struct kit *kit, int client, int resource, const char *token, int64_t from_us,
                          int64_t until_us) {
    size_t lease = kit_acquire(kit, client, resource, token, from_us, until_us);
    kit->history.operations[kit->history.operation_count - 1].shared = true;
    kit->history.leases[lease].shared = true;
    return lease;
}

size_t kit_read(struct kit *kit, size_t lease_index, int64_t count, int64_t at_us, int64_t fence, int64_t number) {
    size_t index = APPEND(kit, reads, read);
    const struct chaos_lease *lease = &kit->history.leases[lease_index];
    kit->history.reads[index] = (struct chaos_read){.client = lease->client,
                                                    .resource = lease->resource,
                                                    .count = count,
                                                    .at_us = absolute(at_us),
                                                    .until_us = lease->until_us,
                                                    .fence = fence,
                                                    .number = number};
    memcpy(kit->history.reads[index].token, lease->token, CHAOS_TOKEN_SIZE);
    return index;
}

size_t kit_increment(struct kit *kit, size_t lease_index, int64_t read, int64_t intent_us, int64_t done_us) {
    size_t index = APPEND(kit, increments, increment);
    const struct chaos_lease *lease = &kit->history.leases[lease_index];
    struct chaos_increment *increment = &kit->history.increments[index];
    *increment = (struct chaos_increment){.client = lease->client,
                                          .resource = lease->resource,
                                          .read = read,
                                          .intent_us = absolute(intent_us),
                                          .done_us = absolute(done_us),
                                          .until_us = done_us == CHAOS_NEVER_US ? CHAOS_NEVER_US : lease->until_us};
    memcpy(increment->token, lease->token, sizeof increment->token);
    return index;
}

void kit_fence(struct kit *kit, const char *token, int64_t fence) {
    struct chaos_operation *operation = &kit->history.operations[kit->history.operation_count - 1];
    snprintf(operation->token, sizeof operation->token, "%s", token);
    operation->fence = fence;
}

void kit_ticket(struct kit *kit, const char *token, int64_t ticket) {
    kit_fence(kit, token, 0);
    kit->history.operations[kit->history.operation_count - 1].ticket = ticket;
}

void kit_receipts(struct kit *kit, size_t index, int64_t fence, int64_t read_number, int64_t write_number) {
    struct chaos_increment *increment = &kit->history.increments[index];
    increment->fence = fence;
    increment->read_number = read_number;
    increment->write_number = write_number;
}

void kit_refuse(struct kit *kit, size_t increment, int client, int resource, int64_t at_us, int64_t fence,
                int64_t highest) {
    size_t index = APPEND(kit, refusals, refusal);
    kit->history.refusals[index] = (struct chaos_refusal){.client = client,
                                                          .resource = resource,
                                                          .at_us = absolute(at_us),
                                                          .fence = fence,
                                                          .highest = highest,
                                                          .write = increment != SIZE_MAX};
    if (increment != SIZE_MAX) {
        kit->history.increments[increment].refused = true;
    }
}

void kit_tally(struct kit *kit, int client, int64_t at_us, int64_t fenced_fast, int64_t quarantines) {
    size_t index = APPEND(kit, tallies, tally);
    int64_t pid = 0;
    for (size_t i = 0; i < kit->history.life_count; i++) {
        pid = kit->history.lives[i].client == client ? kit->history.lives[i].pid : pid;
    }
    kit->history.tallies[index] = (struct chaos_tally){
        .client = client, .pid = pid, .at_us = absolute(at_us), .fenced_fast = fenced_fast, .quarantines = quarantines};
}

size_t kit_sweep(struct kit *kit, int resource, int64_t from_us, int64_t to_us) {
    size_t index = APPEND(kit, sweeps, sweep);
    struct chaos_sight *nodes = must(calloc(kit->history.node_count, sizeof *nodes));
    for (size_t n = 0; n < kit->history.node_count; n++) {
        nodes[n].answered = true;
    }
    kit->history.sweeps[index] = (struct chaos_sweep){absolute(from_us), absolute(to_us), resource, nodes};
    return index;
}

void kit_see(struct kit *kit, size_t sweep, uint32_t nodes, const char *token, int64_t pttl_ms) {
    for (size_t n = 0; n < kit->history.node_count; n++) {
        struct chaos_sight *sight = &kit->history.sweeps[sweep].nodes[n];
        if ((nodes >> n & 1) != 0) {
            *sight = (struct chaos_sight){.answered = true, .pttl_ms = pttl_ms};
            snprintf(sight->token, sizeof sight->token, "%s", token);
        }
    }
}

void kit_see_reader(struct kit *kit, size_t sweep, uint32_t nodes, const char *token, int64_t left_ms) {
    for (size_t n = 0; n < kit->history.node_count; n++) {
        struct chaos_sight *sight = &kit->history.sweeps[sweep].nodes[n];
        if ((nodes >> n & 1) != 0) {
            sight->readers = must(realloc(sight->readers, (sight->reader_count + 1) * sizeof *sight->readers));
            sight->readers[sight->reader_count] = (struct chaos_reader){.left_ms = left_ms};
            snprintf(sight->readers[sight->reader_count++].token, CHAOS_TOKEN_SIZE, "%s", token);
        }
    }
}

void kit_queue(struct kit *kit, size_t sweep, uint32_t nodes, const char *token) {
    for (size_t n = 0; n < kit->history.node_count; n++) {
        struct chaos_sight *sight = &kit->history.sweeps[sweep].nodes[n];
        if ((nodes >> n & 1) != 0) {
            sight->line = must(realloc(sight->line, (sight->line_count + 1) * sizeof *sight->line));
            snprintf(sight->line[sight->line_count++], sizeof *sight->line, "%s", token);
        }
    }
}

void kit_silent(struct kit *kit, size_t sweep, uint32_t nodes) {
    for (size_t n = 0; n < kit->history.node_count; n++) {
        if ((nodes >> n & 1) != 0) {
            kit->history.sweeps[sweep].nodes[n] = (struct chaos_sight){0};
        }
    }
}

size_t kit_band(struct kit *kit, enum chaos_fault_kind kind, uint32_t nodes, uint64_t clients, int64_t from_us,
                int64_t to_us) {
    size_t index = APPEND(kit, bands, band);
    kit->history.bands[index] = (struct chaos_band){.id = ++kit->last_id,
                                                    .fault = {.kind = kind, .nodes = nodes, .clients = clients},
                                                    .from_us = absolute(from_us),
                                                    .to_us = absolute(to_us),
                                                    .text = copy("a fault")};
    return index;
}

void kit_kill(struct kit *kit, int client, int64_t ended_us) {
    for (size_t i = kit->history.life_count; i-- > 0;) {
        struct chaos_life *life = &kit->history.lives[i];
        if (life->client == client && life->ended_us == CHAOS_NEVER_US) {
            life->ended_us = absolute(ended_us);
            life->status = -1;
            life->signal = 9;
            life->expected = true;
            return;
        }
    }
    abort();
}

size_t kit_spawn(struct kit *kit, int client, int64_t spawned_us) {
    size_t index = APPEND(kit, lives, life);
    kit->history.lives[index] = (struct chaos_life){
        .client = client, .pid = 1001 + (int64_t)index, .spawned_us = absolute(spawned_us), .ended_us = CHAOS_NEVER_US};
    return index;
}

void kit_leave(struct kit *kit, const char *text) {
    size_t index = APPEND(kit, left, left);
    kit->history.left[index] = copy(text);
}

#define SORTED_BY(what, member)                                                                                        \
    static int compare_##what(const void *a, const void *b) {                                                          \
        int64_t x = ((const struct chaos_##what *)a)->member, y = ((const struct chaos_##what *)b)->member;            \
        return (x > y) - (x < y);                                                                                      \
    }
SORTED_BY(operation, invoked_us)
SORTED_BY(lease, from_us)
SORTED_BY(increment, intent_us)
SORTED_BY(read, at_us)
SORTED_BY(sweep, from_us)
SORTED_BY(band, from_us)
SORTED_BY(life, spawned_us)

#define SORT(history, list, what)                                                                                      \
    do {                                                                                                               \
        if ((history)->what##_count > 0) {                                                                             \
            qsort((history)->list, (history)->what##_count, sizeof *(history)->list, compare_##what);                  \
        }                                                                                                              \
    } while (0)

void kit_sort(struct kit *kit) {
    struct chaos_history *history = &kit->history;
    SORT(history, operations, operation);
    SORT(history, leases, lease);
    SORT(history, increments, increment);
    SORT(history, reads, read);
    SORT(history, sweeps, sweep);
    SORT(history, bands, band);
    SORT(history, lives, life);
}

struct chaos_history *kit_finish(struct kit *kit, int64_t finish_us) {
    struct chaos_history *history = &kit->history;
    history->finish_us = absolute(finish_us);
    history->left_told = true;
    history->counters = must(calloc(history->resource_count, sizeof *history->counters));
    for (size_t i = 0; i < history->increment_count; i++) {
        const struct chaos_increment *increment = &history->increments[i];
        int64_t *counter = &history->counters[increment->resource];
        if (increment->done_us != CHAOS_NEVER_US && increment->read + 1 > *counter) {
            *counter = increment->read + 1;
        }
    }
    for (size_t i = 0; i < history->life_count; i++) {
        struct chaos_life *life = &history->lives[i];
        if (life->ended_us == CHAOS_NEVER_US) {
            life->ended_us = history->finish_us;
            life->expected = true;
        }
    }
    kit_sort(kit);
    return history;
}
