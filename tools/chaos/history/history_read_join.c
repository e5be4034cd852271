/* Halves of a history put together: invoke and complete, claims and end, intent and done, fault and
 * heal, spawn and exit. */
#include <stdlib.h>
#include <string.h>

#include "history/history_read.h"

static int compare(int64_t a, int64_t b) {
    return a < b ? -1 : a > b;
}

/* Halves that belong together lie together then, by time. At equal times the second half comes
 * last. */
static int by_time(const struct chaos_half *a, const struct chaos_half *b) {
    int order = compare(a->t_us, b->t_us);
    order = order != 0 ? order : compare(a->second, b->second);
    return order != 0 ? order : compare((int64_t)a->line, (int64_t)b->line);
}

static int order_operations(const void *left, const void *right) {
    const struct chaos_half *a = left, *b = right;
    int order = compare(a->operation.client, b->operation.client);
    order = order != 0 ? order : compare(a->operation.op, b->operation.op);
    order = order != 0 ? order : compare(a->second, b->second);
    return order != 0 ? order : by_time(a, b);
}

static int order_increments(const void *left, const void *right) {
    const struct chaos_half *a = left, *b = right;
    int order = compare(a->increment.client, b->increment.client);
    order = order != 0 ? order : strcmp(a->increment.token, b->increment.token);
    return order != 0 ? order : by_time(a, b);
}

static int order_leases(const void *left, const void *right) {
    const struct chaos_half *a = left, *b = right;
    int order = strcmp(a->lease.token, b->lease.token);
    return order != 0 ? order : by_time(a, b);
}

static int order_bands(const void *left, const void *right) {
    const struct chaos_half *a = left, *b = right;
    int order = compare(a->band.id, b->band.id);
    order = order != 0 ? order : compare(a->second, b->second);
    return order != 0 ? order : by_time(a, b);
}

static int order_lives(const void *left, const void *right) {
    const struct chaos_half *a = left, *b = right;
    int order = compare(a->life.client, b->life.client);
    order = order != 0 ? order : compare(a->life.pid, b->life.pid);
    return order != 0 ? order : by_time(a, b);
}

/* Sorts the halves, and makes room for as many whole ones, zeroed; NULL without memory, which is
 * said. */
static void *prepare(struct chaos_reading *reading, struct chaos_list *halves, int (*order)(const void *, const void *),
                     size_t size) {
    if (halves->count > 0) {
        qsort(halves->at, halves->count, sizeof(struct chaos_half), order);
    }
    void *whole = calloc(halves->count + 1, size);
    if (whole == NULL) {
        chaos_reading_wrong(reading, 0, "out of memory");
    }
    return whole;
}

static int by_invoked(const void *left, const void *right) {
    const struct chaos_operation *a = left, *b = right;
    int order = compare(a->invoked_us, b->invoked_us);
    order = order != 0 ? order : compare(a->client, b->client);
    return order != 0 ? order : compare(a->op, b->op);
}

static bool join_operations(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    history->operations = prepare(reading, &reading->operations, order_operations, sizeof *history->operations);
    if (history->operations == NULL) {
        return false;
    }
    struct chaos_half *halves = reading->operations.at;
    for (size_t i = 0; i < reading->operations.count; i++) {
        struct chaos_half *half = &halves[i];
        size_t count = history->operation_count;
        struct chaos_operation *last = count > 0 ? &history->operations[count - 1] : NULL;
        bool same = last != NULL && last->client == half->operation.client && last->op == half->operation.op;
        if (!half->second && same) {
            return chaos_reading_wrong(reading, half->line, "invoke: client %d has an operation %lld already",
                                       last->client + 1, (long long)last->op);
        }
        if (!half->second) {
            history->operations[history->operation_count++] = half->operation;
            history->operations[count].completed_us = CHAOS_NEVER_US;
            continue;
        }
        if (!same || last->completed_us != CHAOS_NEVER_US) {
            return chaos_reading_wrong(reading, half->line, "complete: client %d's operation %lld %s",
                                       half->operation.client + 1, (long long)half->operation.op,
                                       same ? "is complete already" : "was never invoked: there is no `invoke` of it");
        }
        if (half->t_us < last->invoked_us) {
            return chaos_reading_wrong(reading, half->line, "complete: client %d's operation %lld was invoked later",
                                       last->client + 1, (long long)last->op);
        }
        last->completed_us = half->t_us;
        last->attempts = half->operation.attempts;
        last->fence = half->operation.fence;
        last->message = half->operation.message;
        half->operation.message = NULL; /* the history owns it now */
        memcpy(last->result, half->operation.result, sizeof last->result);
        memcpy(last->votes, half->operation.votes, sizeof last->votes);
        memcpy(last->token, half->operation.token, sizeof last->token);
    }
    qsort(history->operations, history->operation_count, sizeof *history->operations, by_invoked);
    return true;
}

/* Adds a claim. One that reaches no further than the last says nothing new. */
static bool add_claim(struct chaos_reading *reading, struct chaos_lease *lease, const struct chaos_half *half) {
    if (lease->claim_count > 0 && half->lease.until_us <= lease->until_us) {
        return true;
    }
    /* Full at each power of two. */
    if ((lease->claim_count & (lease->claim_count - 1)) == 0) {
        size_t room = lease->claim_count == 0 ? 1 : lease->claim_count * 2;
        struct chaos_claim *grown = realloc(lease->claims, room * sizeof *grown);
        if (grown == NULL) {
            return chaos_reading_wrong(reading, half->line, "out of memory");
        }
        lease->claims = grown;
    }
    lease->claims[lease->claim_count++] = (struct chaos_claim){.at_us = half->t_us, .until_us = half->lease.until_us};
    lease->until_us = half->lease.until_us;
    return true;
}

static int by_from(const void *left, const void *right) {
    const struct chaos_lease *a = left, *b = right;
    int order = compare(a->from_us, b->from_us);
    return order != 0 ? order : strcmp(a->token, b->token);
}

static bool join_leases(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    history->leases = prepare(reading, &reading->leases, order_leases, sizeof *history->leases);
    if (history->leases == NULL) {
        return false;
    }
    struct chaos_half *halves = reading->leases.at;
    for (size_t i = 0; i < reading->leases.count; i++) {
        struct chaos_half *half = &halves[i];
        size_t count = history->lease_count;
        struct chaos_lease *lease = count > 0 ? &history->leases[count - 1] : NULL;
        const char *event = half->second ? "end" : "claim";
        bool same = lease != NULL && strcmp(lease->token, half->lease.token) == 0;
        if (!same && half->second) {
            return chaos_reading_wrong(reading, half->line, "end: there is no `claim` of token %s before it",
                                       half->lease.token);
        }
        if (!same) {
            lease = &history->leases[history->lease_count++];
            *lease = half->lease;
            lease->from_us = half->t_us;
            lease->ended_us = CHAOS_NEVER_US;
        }
        if (lease->client != half->lease.client || lease->resource != half->lease.resource) {
            return chaos_reading_wrong(reading, half->line, "%s: token %s is of client %d and resource %d", event,
                                       lease->token, lease->client + 1, lease->resource + 1);
        }
        if (lease->ended_us != CHAOS_NEVER_US) {
            return chaos_reading_wrong(reading, half->line, "%s: token %s has an `end` before it", event, lease->token);
        }
        if (half->second) {
            lease->ended_us = half->t_us;
            lease->released = half->lease.released;
        } else if (!add_claim(reading, lease, half)) {
            return false;
        }
    }
    qsort(history->leases, history->lease_count, sizeof *history->leases, by_from);
    return true;
}

static int by_intent(const void *left, const void *right) {
    const struct chaos_increment *a = left, *b = right;
    int order = compare(a->intent_us, b->intent_us);
    order = order != 0 ? order : compare(a->client, b->client);
    return order != 0 ? order : strcmp(a->token, b->token);
}

static bool join_increments(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    history->increments = prepare(reading, &reading->increments, order_increments, sizeof *history->increments);
    if (history->increments == NULL) {
        return false;
    }
    struct chaos_half *halves = reading->increments.at;
    for (size_t i = 0; i < reading->increments.count; i++) {
        const struct chaos_increment *half = &halves[i].increment;
        if (!halves[i].second) {
            struct chaos_increment *increment = &history->increments[history->increment_count++];
            *increment = *half;
            increment->intent_us = halves[i].t_us;
            increment->done_us = CHAOS_NEVER_US;
            continue;
        }
        /* A client does one thing at a time: it can only be the last. */
        struct chaos_increment *last =
            history->increment_count > 0 ? &history->increments[history->increment_count - 1] : NULL;
        if (last == NULL || last->client != half->client || strcmp(last->token, half->token) != 0 ||
            last->resource != half->resource || last->read != half->read || last->done_us != CHAOS_NEVER_US ||
            last->refused) {
            return chaos_reading_wrong(
                reading, halves[i].line,
                "%s: there is no `intent` of client %d, token %s, to write the successor of %lld "
                "right before it",
                half->refused ? "refused" : "done", half->client + 1, half->token, (long long)half->read);
        }
        last->refused = half->refused;
        if (!half->refused) {
            last->done_us = halves[i].t_us;
            last->until_us = half->until_us;
            last->write_number = half->write_number;
        }
    }
    qsort(history->increments, history->increment_count, sizeof *history->increments, by_intent);
    return true;
}

static int by_begin(const void *left, const void *right) {
    const struct chaos_band *a = left, *b = right;
    int order = compare(a->from_us, b->from_us);
    return order != 0 ? order : compare(a->id, b->id);
}

static bool join_bands(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    history->bands = prepare(reading, &reading->bands, order_bands, sizeof *history->bands);
    if (history->bands == NULL) {
        return false;
    }
    struct chaos_half *halves = reading->bands.at;
    for (size_t i = 0; i < reading->bands.count; i++) {
        struct chaos_half *half = &halves[i];
        size_t count = history->band_count;
        struct chaos_band *band =
            count > 0 && history->bands[count - 1].id == half->band.id ? &history->bands[count - 1] : NULL;
        long long id = (long long)half->band.id;
        if (!half->second && band != NULL) {
            return chaos_reading_wrong(reading, half->line, "fault: there is a fault %lld already", id);
        }
        if (!half->second) {
            band = &history->bands[history->band_count++];
            *band = half->band;
            half->band.text = half->band.error = NULL; /* the history owns them now */
            band->from_us = half->t_us;
            band->to_us = CHAOS_NEVER_US;
            continue;
        }
        if (band == NULL || half->t_us < band->from_us || (i > 0 && halves[i - 1].second)) {
            return chaos_reading_wrong(reading, half->line, "heal: fault %lld %s", id,
                                       band == NULL                 ? "never began: there is no `fault` of it"
                                       : half->t_us < band->from_us ? "began later"
                                                                    : "has ended already");
        }
        /* With an error it was given up, not undone. */
        band->to_us = half->band.error == NULL ? half->t_us : CHAOS_NEVER_US;
        if (band->error == NULL) {
            band->error = half->band.error;
            half->band.error = NULL;
        }
    }
    qsort(history->bands, history->band_count, sizeof *history->bands, by_begin);
    return true;
}

static int by_spawned(const void *left, const void *right) {
    const struct chaos_life *a = left, *b = right;
    int order = compare(a->spawned_us, b->spawned_us);
    return order != 0 ? order : compare(a->client, b->client);
}

static bool join_lives(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    history->lives = prepare(reading, &reading->lives, order_lives, sizeof *history->lives);
    if (history->lives == NULL) {
        return false;
    }
    struct chaos_half *halves = reading->lives.at;
    for (size_t i = 0; i < reading->lives.count; i++) {
        const struct chaos_life *half = &halves[i].life;
        struct chaos_life *last = history->life_count > 0 ? &history->lives[history->life_count - 1] : NULL;
        bool runs =
            last != NULL && last->client == half->client && last->pid == half->pid && last->ended_us == CHAOS_NEVER_US;
        if (runs != halves[i].second) {
            return chaos_reading_wrong(reading, halves[i].line, "%s: client %d's process %lld %s before it",
                                       runs ? "spawn" : "exit", half->client + 1, (long long)half->pid,
                                       runs ? "was begun and did not end" : "was not begun");
        }
        if (runs) {
            last->ended_us = halves[i].t_us;
            last->status = half->status;
            last->signal = half->signal;
            last->expected = half->expected;
        } else {
            history->lives[history->life_count++] = *half;
            history->lives[history->life_count - 1].spawned_us = halves[i].t_us;
            history->lives[history->life_count - 1].ended_us = CHAOS_NEVER_US;
        }
    }
    qsort(history->lives, history->life_count, sizeof *history->lives, by_spawned);
    return true;
}

static int by_refused(const void *left, const void *right) {
    const struct chaos_refusal *a = left, *b = right;
    int order = compare(a->at_us, b->at_us);
    return order != 0 ? order : compare(a->client, b->client);
}

static int by_process(const void *left, const void *right) {
    const struct chaos_tally *a = left, *b = right;
    int order = compare(a->client, b->client);
    order = order != 0 ? order : compare(a->pid, b->pid);
    return order != 0 ? order : compare(a->at_us, b->at_us);
}

/* What is whole already: the history takes it over, in order. */
static void *take_over(struct chaos_list *list, size_t size, int (*order)(const void *, const void *), size_t *count) {
    void *whole = list->at;
    *count = list->count;
    *list = (struct chaos_list){0};
    if (*count > 0) {
        qsort(whole, *count, size, order);
    }
    return whole;
}

static int by_sweep(const void *left, const void *right) {
    const struct chaos_sweep *a = left, *b = right;
    int order = compare(a->from_us, b->from_us);
    return order != 0 ? order : compare(a->resource, b->resource);
}

bool chaos_reading_join(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    if (!join_operations(reading) || !join_leases(reading) || !join_increments(reading) || !join_bands(reading) ||
        !join_lives(reading)) {
        return false;
    }
    history->sweeps = take_over(&reading->sweeps, sizeof *history->sweeps, by_sweep, &history->sweep_count);
    history->refusals = take_over(&reading->refusals, sizeof *history->refusals, by_refused, &history->refusal_count);
    history->tallies = take_over(&reading->tallies, sizeof *history->tallies, by_process, &history->tally_count);
    return true;
}
