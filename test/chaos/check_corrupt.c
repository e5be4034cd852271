/* Ways to corrupt the history of a correct lock. The checker must find each. */
#include "check_corrupt.h"
#include "test.h"

#define BIT(kind) (1U << CHAOS_VIOLATION_##kind)

static const struct chaos_lease *next_lease(const struct chaos_history *history, size_t index) {
    for (size_t i = index + 1; i < history->lease_count; i++) {
        if (history->leases[i].resource == history->leases[index].resource) {
            return &history->leases[i];
        }
    }
    return NULL;
}

/* Starts a lease one µs before the previous one has ended. */
static unsigned begin_early(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    size_t index = pick(random, kit->history.lease_count);
    struct chaos_lease *lease = (struct chaos_lease *)next_lease(&kit->history, index);
    if (lease == NULL || c->relied_until_us[index] <= kit->history.leases[index].from_us) {
        return 0;
    }
    int64_t from_us = c->relied_until_us[index] - 1;
    if (chaos_case_life(c, lease->client, from_us) != chaos_case_life(c, lease->client, lease->from_us)) {
        return 0; /* its process did not run at that time */
    }
    lease->from_us = lease->claims[0].at_us = from_us;
    return BIT(OVERLAP);
}

/* Extends a promise one µs into the next lease. */
static unsigned promise_more(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    size_t index = pick(random, kit->history.lease_count);
    struct chaos_lease *lease = &kit->history.leases[index];
    const struct chaos_lease *next = next_lease(&kit->history, index);
    const struct chaos_life *life = chaos_case_life(c, lease->client, lease->from_us);
    if (next == NULL || life->ended_us <= next->from_us ||
        c->relied_until_us[next - kit->history.leases] <= next->from_us) {
        return 0;
    }
    lease->until_us = lease->claims[lease->claim_count - 1].until_us = next->from_us + 1;
    lease->ended_us = next->from_us + 1;
    return BIT(OVERLAP);
}

/* Finds a sweep within a lease. Returns false if there is none. */
static bool find_sweep(struct kit *kit, const struct chaos_case *c, uint64_t *random, size_t *lease,
                       struct chaos_sweep **sweep) {
    *lease = pick(random, kit->history.lease_count);
    for (size_t i = 0; i < kit->history.sweep_count; i++) {
        *sweep = &kit->history.sweeps[i];
        if ((*sweep)->resource == kit->history.leases[*lease].resource &&
            (*sweep)->from_us >= kit->history.leases[*lease].from_us && (*sweep)->to_us < c->relied_until_us[*lease]) {
            return true;
        }
    }
    return false;
}

/* Changes just enough nodes, chosen at random, so that no quorum supports the lease. */
static unsigned spoil(struct kit *kit, const struct chaos_case *c, uint64_t *random, const char *token) {
    struct chaos_sweep *sweep;
    size_t lease, nodes = kit->history.node_count, first = pick(random, nodes);
    if (!find_sweep(kit, c, random, &lease, &sweep)) {
        return 0;
    }
    size_t against = nodes - chaos_quorum(&kit->history) + 1;
    for (size_t i = 0; i < against; i++) {
        struct chaos_sight *sight = &sweep->nodes[(first + i) % nodes];
        *sight = (struct chaos_sight){.answered = true, .pttl_ms = token[0] == '\0' ? 0 : 200};
        snprintf(sight->token, sizeof sight->token, "%s", token);
    }
    return BIT(OUTLIVED);
}

static unsigned lose_keys(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    return spoil(kit, c, random, "");
}

static unsigned steal_keys(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    return spoil(kit, c, random, "a stranger's one");
}

/* Lets the keys of a sweep end before the lease's promise. */
static unsigned shorten_keys(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_sweep *sweep;
    size_t index, nodes = kit->history.node_count;
    if (!find_sweep(kit, c, random, &index, &sweep)) {
        return 0;
    }
    struct chaos_lease *lease = &kit->history.leases[index];
    int64_t until_us = 0;
    for (size_t i = 0; i < lease->claim_count && lease->claims[i].at_us <= sweep->from_us; i++) {
        until_us = lease->claims[i].until_us;
    }
    if (until_us < sweep->to_us + 1001) {
        return 0;
    }
    for (size_t n = 0; n < nodes; n++) {
        sweep->nodes[n] = (struct chaos_sight){.answered = true, .pttl_ms = (until_us - sweep->to_us - 1001) / 1000};
        memcpy(sweep->nodes[n].token, lease->token, sizeof lease->token);
    }
    return BIT(OUTLIVED);
}

static unsigned lose_early(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_lease *lease = &kit->history.leases[pick(random, kit->history.lease_count)];
    if (lease->released || lease->ended_us == CHAOS_NEVER_US) {
        return 0;
    }
    lease->ended_us = lease->until_us - 1001;
    return BIT(OUTLIVED);
}

static struct chaos_increment *find_done(struct kit *kit, uint64_t *random) {
    struct chaos_increment *increment = &kit->history.increments[pick(random, kit->history.increment_count)];
    return increment->done_us == CHAOS_NEVER_US ? NULL : increment;
}

static unsigned read_twice(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_increment *one = find_done(kit, random), *other = find_done(kit, random);
    if (one == NULL || other == NULL || one == other || one->resource != other->resource) {
        return 0;
    }
    one->read = other->read;
    return BIT(LOST_UPDATE);
}

static unsigned lower_counter(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    const struct chaos_increment *one = find_done(kit, random);
    if (one == NULL) {
        return 0;
    }
    kit->history.counters[one->resource] = world_random(random, one->read);
    return BIT(LOST_UPDATE);
}

static unsigned raise_counter(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    int64_t *counter = &kit->history.counters[pick(random, WORLD_RESOURCES)];
    *counter += 2 + world_random(random, 9); /* a killed process explains one write, not two */
    return BIT(LOST_UPDATE);
}

static struct chaos_operation *find_operation(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_operation *operation = &kit->history.operations[pick(random, kit->history.operation_count)];
    for (size_t i = 0; i < kit->history.band_count; i++) {
        if ((kit->history.bands[i].fault.clients >> operation->client & 1) != 0 &&
            kit->history.bands[i].fault.kind == CHAOS_FAULT_CLIENT_PAUSE) {
            return NULL;
        }
    }
    const struct chaos_life *life = chaos_case_life(c, operation->client, operation->invoked_us);
    return life->ended_us > operation->deadline_us + SLACK_US ? operation : NULL;
}

static unsigned complete_late(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_operation *operation = find_operation(kit, c, random);
    if (operation == NULL) {
        return 0;
    }
    operation->completed_us = operation->deadline_us + SLACK_US + 1;
    return BIT(LATE);
}

static unsigned never_complete(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_operation *operation = find_operation(kit, c, random);
    if (operation == NULL) {
        return 0;
    }
    operation->completed_us = CHAOS_NEVER_US;
    return BIT(LATE);
}

static unsigned crash(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    kit->history.lives[pick(random, kit->history.life_count)].expected = false;
    return BIT(CRASH);
}

static unsigned leave(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    (void)random;
    kit_leave(kit, "3 keys on node 2");
    return BIT(LEFT);
}

static unsigned cut_end(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    (void)random;
    kit->history.finish_us = CHAOS_NEVER_US;
    return BIT(INCOMPLETE);
}

static unsigned same_token(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_lease *one = &kit->history.leases[pick(random, kit->history.lease_count)];
    struct chaos_lease *other = &kit->history.leases[pick(random, kit->history.lease_count)];
    if (one->client == other->client) {
        return 0;
    }
    memcpy(one->token, other->token, sizeof one->token);
    return BIT(INCOMPLETE);
}

static unsigned forget_lease(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_history *history = &kit->history;
    size_t index = pick(random, history->lease_count);
    struct chaos_lease *lease = &history->leases[index];
    /* After a long hold, the lease may have ended before its client first looked. */
    if (!lease->released || lease->ended_us - lease->from_us > 250000) {
        return 0;
    }
    free(lease->claims);
    memmove(lease, lease + 1, (--history->lease_count - index) * sizeof *lease);
    return BIT(INCOMPLETE);
}

static unsigned forget_acquire(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_history *history = &kit->history;
    size_t index = pick(random, history->operation_count);
    struct chaos_operation *operation = &history->operations[index];
    bool led = false;
    for (size_t i = 0; i < history->lease_count; i++) {
        led |= history->leases[i].client == operation->client &&
               history->leases[i].from_us - operation->completed_us <= 300 &&
               history->leases[i].from_us >= operation->completed_us;
    }
    if (operation->what != CHAOS_ACQUIRE || !led) {
        return 0;
    }
    memmove(operation, operation + 1, (--history->operation_count - index) * sizeof *operation);
    return BIT(INCOMPLETE);
}

static unsigned claim_dead(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    const struct chaos_lease *lease = &kit->history.leases[pick(random, kit->history.lease_count)];
    struct chaos_life *life = (struct chaos_life *)chaos_case_life(c, lease->client, lease->from_us);
    life->ended_us = lease->from_us - 1;
    return BIT(INCOMPLETE);
}

/* The resource's next increment that is done, in the order of the resource's numbers. */
static struct chaos_increment *next_done(struct kit *kit, const struct chaos_increment *one) {
    struct chaos_increment *next = NULL;
    for (size_t i = 0; i < kit->history.increment_count; i++) {
        struct chaos_increment *other = &kit->history.increments[i];
        if (other->resource == one->resource && other->done_us != CHAOS_NEVER_US &&
            other->read_number > one->read_number && (next == NULL || other->read_number < next->read_number)) {
            next = other;
        }
    }
    return next;
}

/* One µs after the end of its claim. */
static unsigned work_on(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_increment *one = find_done(kit, random);
    if (one == NULL || chaos_case_with_pauses(c, one->client, one->intent_us, one->until_us) != one->until_us) {
        return 0;
    }
    one->done_us = one->until_us + 1;
    return BIT(PAST);
}

static unsigned write_stale(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_increment *one = find_done(kit, random);
    struct chaos_increment *next = one == NULL ? NULL : next_done(kit, one);
    if (next == NULL) {
        return 0;
    }
    one->write_number = next->read_number; /* swap the two accesses */
    next->read_number--;
    return BIT(STALE);
}

static unsigned access_twice(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_increment *one = find_done(kit, random);
    struct chaos_increment *next = one == NULL ? NULL : next_done(kit, one);
    if (next == NULL) {
        return 0;
    }
    next->read_number = one->write_number;
    return BIT(INCOMPLETE);
}

static struct chaos_operation *find_fenced(struct kit *kit, uint64_t *random) {
    struct chaos_operation *operation = &kit->history.operations[pick(random, kit->history.operation_count)];
    return operation->what == CHAOS_ACQUIRE && operation->token[0] != '\0' ? operation : NULL;
}

static unsigned token_twice(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_operation *one = find_fenced(kit, random), *other = find_fenced(kit, random);
    if (one == NULL || other == NULL || one == other || one->resource != other->resource) {
        return 0;
    }
    one->fence = other->fence;
    return BIT(FENCE);
}

/* In this world, acquires that got the same lock never overlap. */
static unsigned token_falls(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_operation *one = find_fenced(kit, random), *other = find_fenced(kit, random);
    if (one == NULL || other == NULL || one->resource != other->resource || one->fence >= other->fence) {
        return 0;
    }
    int64_t fence = one->fence;
    one->fence = other->fence;
    other->fence = fence;
    return BIT(FENCE);
}

static unsigned no_token(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_operation *one = find_fenced(kit, random);
    if (one == NULL) {
        return 0;
    }
    one->fence = 0;
    return BIT(FENCE);
}

const struct corruption corruptions[] = LIST(
    {"begin_early", begin_early}, {"promise_more", promise_more}, {"lose_keys", lose_keys}, {"steal_keys", steal_keys},
    {"shorten_keys", shorten_keys}, {"lose_early", lose_early}, {"work_on", work_on}, {"read_twice", read_twice},
    {"lower_counter", lower_counter}, {"raise_counter", raise_counter}, {"complete_late", complete_late},
    {"never_complete", never_complete}, {"crash", crash}, {"leave", leave}, {"cut_end", cut_end},
    {"same_token", same_token}, {"forget_lease", forget_lease}, {"forget_acquire", forget_acquire},
    {"claim_dead", claim_dead}, {"write_stale", write_stale}, {"access_twice", access_twice},
    {"token_twice", token_twice}, {"token_falls", token_falls}, {"no_token", no_token});
const size_t corruption_count = sizeof corruptions / sizeof corruptions[0];
