/* What a history adds up to: operations by result, and percentiles of their latency. */
#include <stdlib.h>

#include "checks/check_parts.h"
#include "values/values.h"

/* The nearest rank: the smallest that at least percent of all are not above. */
static int64_t rank(const int64_t *sorted, size_t count, size_t percent) {
    return sorted[(count * percent + 99) / 100 - 1];
}

static struct chaos_percentiles percentiles(int64_t *times_us, size_t count) {
    struct chaos_percentiles result = {.count = count};
    if (count > 0) {
        qsort(times_us, count, sizeof *times_us, tool_number_order);
        result.p50_us = rank(times_us, count, 50);
        result.p90_us = rank(times_us, count, 90);
        result.p99_us = rank(times_us, count, 99);
        result.max_us = times_us[count - 1];
    }
    return result;
}

static void count_operation(struct chaos_verdict *verdict, const struct chaos_operation *operation) {
    verdict->operations++;
    if (operation->what == CHAOS_RELEASE) {
        verdict->releases++;
        verdict->released += chaos_ended(operation, "OK");
        verdict->release_lost += chaos_ended(operation, "LOST");
        verdict->release_no_quorum += chaos_ended(operation, "NO_QUORUM");
        return;
    }
    verdict->acquires++;
    verdict->acquired += chaos_ended(operation, "OK");
    verdict->contended += chaos_ended(operation, "CONTENDED");
    verdict->no_quorum += chaos_ended(operation, "NO_QUORUM");
    verdict->too_slow += chaos_ended(operation, "TOO_SLOW");
}

static void count_protection(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct chaos_verdict *verdict = c->verdict;
    for (size_t i = 0; i < history->refusal_count; i++) {
        verdict->writes_refused += history->refusals[i].write;
        verdict->reads_refused += !history->refusals[i].write;
    }
    for (size_t i = 0; i < history->tally_count; i++) {
        const struct chaos_tally *tally = &history->tallies[i];
        bool last = i + 1 == history->tally_count || tally[1].client != tally->client || tally[1].pid != tally->pid;
        if (last) {
            verdict->fenced_fast = chaos_plus(verdict->fenced_fast, tally->fenced_fast);
            verdict->fenced_slow = chaos_plus(verdict->fenced_slow, tally->fenced_slow);
            verdict->healed = chaos_plus(verdict->healed, tally->healed);
            verdict->quarantines = chaos_plus(verdict->quarantines, tally->quarantines);
            verdict->clock_jumps = chaos_plus(verdict->clock_jumps, tally->clock_jumps);
        }
    }
}

enum modes { ALONE = 1, SHARED = 2, ALL = ALONE | SHARED };

/* Of operations that were OK, of these modes, with so many attempts at most, and this ticket or a
 * higher one. */
static struct chaos_percentiles latency(const struct chaos_history *history, enum chaos_what what, unsigned modes,
                                        int64_t attempts_max, int64_t ticket_min) {
    int64_t *times_us = chaos_allocate(history->operation_count, sizeof *times_us);
    size_t count = 0;
    CHAOS_EACH(const struct chaos_operation, operation, history->operations, history->operation_count) {
        if (operation->what == what && chaos_ended(operation, "OK") && operation->completed_us != CHAOS_NEVER_US &&
            (modes & (operation->shared ? SHARED : ALONE)) != 0 && operation->attempts <= attempts_max &&
            operation->ticket >= ticket_min) {
            times_us[count++] = operation->completed_us - operation->invoked_us;
        }
    }
    struct chaos_percentiles result = percentiles(times_us, count);
    free(times_us);
    return result;
}

void chaos_figures(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct chaos_verdict *verdict = c->verdict;
    for (size_t i = 0; i < history->operation_count; i++) {
        if (history->operations[i].completed_us != CHAOS_NEVER_US) {
            count_operation(verdict, &history->operations[i]);
        }
    }
    verdict->other =
        verdict->acquires - verdict->acquired - verdict->contended - verdict->no_quorum - verdict->too_slow;
    for (size_t i = 0; i < history->lease_count; i++) {
        verdict->leases_lost += history->leases[i].ended_us != CHAOS_NEVER_US && !history->leases[i].released;
    }
    for (size_t i = 0; i < history->increment_count; i++) {
        verdict->increments += history->increments[i].done_us != CHAOS_NEVER_US;
    }
    count_protection(c);
    verdict->reads = (int64_t)history->read_count;
    verdict->acquire = latency(history, CHAOS_ACQUIRE, ALL, INT64_MAX, 0);
    verdict->acquire_first_try = latency(history, CHAOS_ACQUIRE, ALL, 1, 0);
    verdict->acquire_in_line = latency(history, CHAOS_ACQUIRE, ALL, INT64_MAX, 1);
    verdict->acquire_to_read = latency(history, CHAOS_ACQUIRE, SHARED, INT64_MAX, 0);
    verdict->acquire_to_write = latency(history, CHAOS_ACQUIRE, ALONE, INT64_MAX, 0);
    verdict->release = latency(history, CHAOS_RELEASE, ALL, INT64_MAX, 0);
}
