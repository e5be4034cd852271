/* Acquires by intervals of time: how many came to what, and how long they took. */
#include <stdlib.h>
#include <string.h>

#include "report/report_parts.h"

struct sample {
    size_t bucket;
    int64_t us;
};

static int by_bucket_and_time(const void *a, const void *b) {
    const struct sample *x = a, *y = b;
    int buckets = (x->bucket > y->bucket) - (x->bucket < y->bucket);
    return buckets != 0 ? buckets : (x->us > y->us) - (x->us < y->us);
}

static int64_t nearest_rank(const struct sample *samples, size_t count, size_t percent) {
    size_t rank = (count * percent + 99) / 100;
    return samples[rank == 0 ? 0 : rank - 1].us;
}

static void put_percentiles(struct chaos_bucket *buckets, struct sample *samples, size_t count) {
    qsort(samples, count, sizeof *samples, by_bucket_and_time);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && samples[end].bucket == samples[i].bucket; end++) {
        }
        buckets[samples[i].bucket].p50_us = nearest_rank(samples + i, end - i, 50);
        buckets[samples[i].bucket].p99_us = nearest_rank(samples + i, end - i, 99);
    }
}

struct chaos_bucket *chaos_view_buckets(const struct chaos_view *view, size_t *count) {
    const struct chaos_history *history = view->history;
    int64_t width_us = chaos_view_bucket_us(view);
    *count = (size_t)(view->end_us / width_us) + 1;
    struct chaos_bucket *buckets = calloc(*count, sizeof *buckets);
    struct sample *samples = calloc(history->operation_count + 1, sizeof *samples);
    size_t sample_count = 0;
    if (buckets == NULL || samples == NULL) {
        free(buckets);
        free(samples);
        return NULL;
    }
    for (size_t i = 0; i < history->operation_count; i++) {
        const struct chaos_operation *operation = &history->operations[i];
        int64_t at_us = operation->completed_us - history->start_us;
        if (operation->what != CHAOS_ACQUIRE || operation->completed_us == CHAOS_NEVER_US || at_us < 0 ||
            at_us > view->end_us || chaos_view_given_up(operation)) {
            continue;
        }
        size_t index = (size_t)(at_us / width_us);
        if (!chaos_view_failed(operation)) {
            buckets[index].acquired++;
            samples[sample_count++] = (struct sample){index, operation->completed_us - operation->invoked_us};
        } else if (strcmp(operation->result, "CONTENDED") == 0) {
            buckets[index].contended++;
        } else {
            buckets[index].failed++;
        }
    }
    put_percentiles(buckets, samples, sample_count);
    free(samples);
    return buckets;
}

static int by_tick(const void *a, const void *b) {
    const struct chaos_step *x = a, *y = b;
    return (x->tick > y->tick) - (x->tick < y->tick);
}

/* Turns +1 and -1 into how many there are, one step a tick. */
static size_t add_up(struct chaos_step *steps, size_t count) {
    size_t kept = 0;
    int64_t clients = 0;
    qsort(steps, count, sizeof *steps, by_tick);
    for (size_t i = 0; i < count; i++) {
        clients += steps[i].clients;
        if (kept > 0 && steps[kept - 1].tick == steps[i].tick) {
            kept--;
        }
        steps[kept++] = (struct chaos_step){steps[i].tick, clients};
    }
    return kept;
}

struct chaos_step *chaos_view_unwell(const struct chaos_view *view, size_t *count) {
    size_t room = 64;
    struct chaos_step *steps = calloc(room, sizeof *steps);
    *count = 0;
    for (size_t client = 0; steps != NULL && client < view->history->client_count; client++) {
        size_t spans_count;
        struct chaos_span *spans = chaos_unhealthy_spans(view->history, (int)client, &spans_count);
        while (steps != NULL && spans_count != SIZE_MAX && *count + 2 * spans_count > room) {
            struct chaos_step *larger = realloc(steps, 2 * room * sizeof *steps);
            if (larger == NULL) {
                free(steps);
            }
            steps = larger;
            room *= 2;
        }
        if (spans_count == SIZE_MAX) {
            free(steps);
            steps = NULL;
        }
        for (size_t i = 0; steps != NULL && i < spans_count; i++) {
            steps[(*count)++] = (struct chaos_step){chaos_view_tick(view, spans[i].from_us), 1};
            steps[(*count)++] = (struct chaos_step){chaos_view_tick(view, spans[i].to_us), -1};
        }
        free(spans);
    }
    if (steps != NULL) {
        *count = add_up(steps, *count);
    }
    return steps;
}
