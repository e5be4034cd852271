/* LOST_UPDATE: every increment of a shared counter stands in the sum. CHANGED: a counter stays the
 * same while somebody reads it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"

/*
 * A holder reads the count v, writes down that it will write v + 1 (intent), looks whether its
 * lease is still valid, writes, and writes down that it has (done). An intent without a done wrote
 * nothing if its lease was seen to be lost, or if the resource refused the write; it may have
 * written or not where its process was killed in between.
 *
 * By v, let done(v) and open(v) be the numbers of done and of such open increments that read v, and
 * c the counter at the end, which began with 0. tools/chaos/README.md proves that
 *   (1) done(v) <= 1 for every v;
 *   (2) done(v) = 0 for every v >= c;
 *   (3) done(v) + open(v) >= 1 for every v from 0 to c - 1.
 * Each of (1) beyond the first is a violation; what else (2) says is one violation a resource, as
 * is (3).
 */

CHAOS_ORDER_OF(compare_leases, chaos_lease,
               chaos_order_then(chaos_order_by(x->client, y->client, x->resource, y->resource),
                                strcmp(x->token, y->token)))

static bool is_open(const struct chaos_increment *increment) {
    return increment->done_us == CHAOS_NEVER_US;
}

/* By resource, then by what was read, then done before open, then by when. */
CHAOS_ORDER_OF(compare_increments, chaos_increment,
               chaos_order_then(chaos_order_by(x->resource, y->resource, x->read, y->read),
                                chaos_order_then(chaos_order_by(is_open(x), is_open(y), x->done_us, y->done_us),
                                                 chaos_order(x->intent_us, y->intent_us))))

/* " (0.200 s after its own deadline: …)" or "". */
static const char *say_late(const struct chaos_increment *increment, char *text, size_t size) {
    text[0] = '\0';
    if (increment->done_us > increment->until_us) {
        snprintf(text, size,
                 ", written %.3f s after its own deadline (it was stopped between its look at the lease and its "
                 "write: only a fencing token helps)",
                 (double)(increment->done_us - increment->until_us) / 1e6);
    }
    return text;
}

static void add_twice(struct chaos_case *c, const struct chaos_increment *first, const struct chaos_increment *again) {
    char late[2][200];
    c->verdict->lost_updates++;
    chaos_case_add(c,
                   CHAOS_WRONG(LOST_UPDATE, chaos_least(first->intent_us, again->intent_us), again->done_us,
                               first->resource, first->client, again->client),
                   "both wrote the successor of %" PRId64
                   ": client %d (token %s) read it by %.3f s and wrote by %.3f s%s; client %d (token %s) read it "
                   "by %.3f s and wrote by %.3f s%s",
                   first->read, first->client + 1, first->token, chaos_at(c, first->intent_us),
                   chaos_at(c, first->done_us), say_late(first, late[0], sizeof late[0]), again->client + 1,
                   again->token, chaos_at(c, again->intent_us), chaos_at(c, again->done_us),
                   say_late(again, late[1], sizeof late[1]));
}

static void add_sum(struct chaos_case *c, int resource, int64_t beyond, int64_t missing) {
    struct chaos_violation violation = CHAOS_WRONG(LOST_UPDATE, c->end_us, c->end_us, resource, -1, -1);
    int64_t counter = c->history->counters[resource];
    c->verdict->lost_updates += beyond;
    if (beyond > 0) {
        chaos_case_add(c, violation,
                       "its counter is %" PRId64 " at the end, though %" PRId64
                       " count%s beyond it had been written: an old one was written over what was there",
                       counter, beyond, beyond == 1 ? "" : "s");
    }
    if (missing > 0) {
        chaos_case_add(c, violation,
                       "its counter is %" PRId64 " at the end, but of the counts up to there %" PRId64
                       " %s written by nobody that the history knows of",
                       counter, missing, missing == 1 ? "was" : "were");
    }
}

/*
 * Whether an increment that is not done may have written all the same. Its process cannot have
 * released the lease after it: it releases what it has done, or has seen to be lost.
 */
static bool judge_open(struct chaos_case *c, const struct chaos_increment *increment,
                       const struct chaos_lease *const *leases) {
    struct chaos_lease sought = {.client = increment->client, .resource = increment->resource};
    const struct chaos_lease *key = &sought, *const * lease;
    memcpy(sought.token, increment->token, sizeof sought.token);
    lease = bsearch(&key, leases, c->history->lease_count, sizeof *leases, compare_leases);
    bool released = lease != NULL && (*lease)->released;
    if (released && !increment->refused) {
        chaos_case_add(c,
                       CHAOS_WRONG(INCOMPLETE, increment->intent_us, increment->intent_us, increment->resource,
                                   increment->client, -1),
                       "client %d, at %.3f s: an increment that was never done, though its lease was released",
                       increment->client + 1, chaos_at(c, increment->intent_us));
    }
    return !increment->refused && (lease == NULL || (*lease)->ended_us == CHAOS_NEVER_US || released);
}

/* The increments of one resource, from begin to end, and its counter. */
static void judge_resource(struct chaos_case *c, const struct chaos_increment *const *increments, size_t count,
                           int resource, const struct chaos_lease *const *leases) {
    const struct chaos_history *history = c->history;
    int64_t counter = history->counters != NULL ? history->counters[resource] : INT64_MAX;
    int64_t beyond = 0, written = 0;
    for (size_t i = 0, next; i < count; i = next) {
        const struct chaos_increment *first = increments[i];
        bool explained = false;
        for (next = i; next < count && increments[next]->read == first->read; next++) {
            bool done = increments[next]->done_us != CHAOS_NEVER_US;
            if (done && next > i) {
                add_twice(c, first, increments[next]);
            }
            explained |= done || judge_open(c, increments[next], leases);
        }
        beyond += first->read >= counter && first->done_us != CHAOS_NEVER_US;
        written += first->read >= 0 && first->read < counter && explained;
    }
    if (history->counters != NULL) {
        add_sum(c, resource, beyond, chaos_most(counter - written, 0));
    }
}

/*
 * A reader reads the count when it has its lease, and once more before the release. Nobody may
 * write in between. A read that had ended before the end of what was claimed was made under the
 * lease; others do not count.
 */
CHAOS_ORDER_OF(compare_reads, chaos_read,
               chaos_order_then(chaos_order_by(x->client, y->client, x->resource, y->resource),
                                chaos_order_then(strcmp(x->token, y->token), chaos_order(x->at_us, y->at_us))))

static void judge_reads(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    const struct chaos_read **reads =
        chaos_sorted(history->reads, history->read_count, sizeof *history->reads, compare_reads);
    for (size_t i = 1; i < history->read_count; i++) {
        const struct chaos_read *first = reads[i - 1], *again = reads[i];
        bool same = first->client == again->client && first->resource == again->resource &&
                    strcmp(first->token, again->token) == 0;
        bool in_time = first->at_us <= first->until_us && again->at_us <= again->until_us;
        if (same && in_time && first->count != again->count) {
            chaos_case_add(c, CHAOS_WRONG(CHANGED, first->at_us, again->at_us, again->resource, again->client, -1),
                           "client %d (token %s) read %" PRId64 " by %.3f s and %" PRId64
                           " by %.3f s, though it had it until %.3f s to read",
                           again->client + 1, again->token, first->count, chaos_at(c, first->at_us), again->count,
                           chaos_at(c, again->at_us), chaos_at(c, again->until_us));
        }
    }
    free(reads);
}

void chaos_check_updates(struct chaos_case *c) {
    const struct chaos_history *h = c->history;
    const struct chaos_increment **increments =
        chaos_sorted(h->increments, h->increment_count, sizeof *h->increments, compare_increments);
    const struct chaos_lease **leases = chaos_sorted(h->leases, h->lease_count, sizeof *h->leases, compare_leases);
    size_t begin = 0, end = 0;
    for (int r = 0; r < (int)h->resource_count; r++) {
        while (end < h->increment_count && increments[end]->resource == r) {
            end++;
        }
        judge_resource(c, &increments[begin], end - begin, r, leases);
        begin = end;
    }
    free(increments);
    free(leases);
    judge_reads(c);
}
