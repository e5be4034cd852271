/* LOST_UPDATE: every increment of a shared counter stands in the sum. */
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
 * What is proven. Let done(v) and open(v) be the numbers of done increments and of such open ones
 * that read v, and c the counter at the end, which began with 0. If no two holders were between
 * read and write at once, the writes were made one after the other, each read what the one before
 * wrote, and so:
 *   (1) done(v) <= 1 for every v: of two done increments of v, one has overwritten the other;
 *   (2) done(v) = 0 for every v >= c: the counter is past v once v + 1 has been written, and never
 *       comes back;
 *   (3) done(v) + open(v) >= 1 for every v from 0 to c - 1: somebody wrote v + 1.
 * And if all three hold, there is an order of the writes, by v, that explains the counter. The lost
 * updates are sum of (done(v) - 1 where that is positive) over v < c, and of done(v) over v >= c:
 * where nobody was killed, done increments - c. They are counted at the increments themselves: each
 * of (1) beyond the first is a violation; what else (2) says is one violation a resource, as is
 * (3).
 */

struct token_key {
    int client, resource;
    const char *token;
};

static int compare_keys(const struct token_key *x, const struct token_key *y) {
    if (x->client != y->client) {
        return x->client < y->client ? -1 : 1;
    }
    return x->resource != y->resource ? (x->resource < y->resource ? -1 : 1) : strcmp(x->token, y->token);
}

static struct token_key key_of(const struct chaos_lease *lease) {
    return (struct token_key){lease->client, lease->resource, lease->token};
}

static int compare_leases(const void *a, const void *b) {
    struct token_key x = key_of(*(const struct chaos_lease *const *)a),
                     y = key_of(*(const struct chaos_lease *const *)b);
    return compare_keys(&x, &y);
}

static int find_lease(const void *increment, const void *lease) {
    const struct chaos_increment *sought = increment;
    struct token_key x = {sought->client, sought->resource, sought->token};
    struct token_key y = key_of(*(const struct chaos_lease *const *)lease);
    return compare_keys(&x, &y);
}

/* By resource, then by what was read, then done before open, then by when. */
static int compare_increments(const void *a, const void *b) {
    const struct chaos_increment *x = *(const struct chaos_increment *const *)a,
                                 *y = *(const struct chaos_increment *const *)b;
    if (x->resource != y->resource) {
        return x->resource < y->resource ? -1 : 1;
    }
    if (x->read != y->read) {
        return x->read < y->read ? -1 : 1;
    }
    /* CHAOS_NEVER_US is the last */
    uint64_t x_done_us = (uint64_t)x->done_us, y_done_us = (uint64_t)y->done_us;
    if (x_done_us != y_done_us) {
        return x_done_us < y_done_us ? -1 : 1;
    }
    return (x->intent_us > y->intent_us) - (x->intent_us < y->intent_us);
}

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

static bool add_twice(struct chaos_case *c, const struct chaos_increment *first, const struct chaos_increment *again) {
    const struct chaos_history *history = c->history;
    char late[2][200];
    struct chaos_violation violation = {.kind = CHAOS_VIOLATION_LOST_UPDATE,
                                        .from_us =
                                            first->intent_us < again->intent_us ? first->intent_us : again->intent_us,
                                        .to_us = again->done_us,
                                        .resource = first->resource,
                                        .clients = {first->client, again->client}};
    c->verdict->lost_updates++;
    return chaos_case_add(
        c, violation,
        "%s: both wrote the successor of %" PRId64
        ": client %d (token %s) read it by %.3f s and wrote by %.3f s%s; client %d (token %s) read it "
        "by %.3f s and wrote by %.3f s%s",
        history->resources[first->resource], first->read, first->client + 1, first->token,
        chaos_seconds(history, first->intent_us), chaos_seconds(history, first->done_us),
        say_late(first, late[0], sizeof late[0]), again->client + 1, again->token,
        chaos_seconds(history, again->intent_us), chaos_seconds(history, again->done_us),
        say_late(again, late[1], sizeof late[1]));
}

static bool add_sum(struct chaos_case *c, int resource, int64_t beyond, int64_t missing) {
    const struct chaos_history *history = c->history;
    struct chaos_violation violation = {.kind = CHAOS_VIOLATION_LOST_UPDATE,
                                        .from_us = c->end_us,
                                        .to_us = c->end_us,
                                        .resource = resource,
                                        .clients = {-1, -1}};
    const char *name = history->resources[resource];
    int64_t counter = history->counters[resource];
    c->verdict->lost_updates += beyond;
    if (beyond > 0 && !chaos_case_add(c, violation,
                                      "%s: its counter is %" PRId64 " at the end, though %" PRId64
                                      " count%s beyond it had been written: an old one was written over what was there",
                                      name, counter, beyond, beyond == 1 ? "" : "s")) {
        return false;
    }
    return missing == 0 ||
           chaos_case_add(c, violation,
                          "%s: its counter is %" PRId64 " at the end, but of the counts up to there %" PRId64
                          " %s written by nobody that the history knows of",
                          name, counter, missing, missing == 1 ? "was" : "were");
}

/*
 * Whether an increment that is not done may have written all the same. Its process cannot have
 * released the lease after it: it releases what it has done, or has seen to be lost.
 */
static bool judge_open(struct chaos_case *c, const struct chaos_increment *increment,
                       const struct chaos_lease *const *leases, bool *open) {
    const struct chaos_lease *const *lease =
        bsearch(increment, leases, c->history->lease_count, sizeof *leases, find_lease);
    bool released = lease != NULL && (*lease)->released;
    if (increment->refused) {
        return true;
    }
    *open = lease == NULL || (*lease)->ended_us == CHAOS_NEVER_US || released;
    struct chaos_violation violation = {.kind = CHAOS_VIOLATION_INCOMPLETE,
                                        .from_us = increment->intent_us,
                                        .to_us = increment->intent_us,
                                        .resource = increment->resource,
                                        .clients = {increment->client, -1}};
    return !released ||
           chaos_case_add(c, violation,
                          "%s: client %d, at %.3f s: an increment that was never done, though its lease was "
                          "released",
                          c->history->resources[increment->resource], increment->client + 1,
                          chaos_seconds(c->history, increment->intent_us));
}

/* The increments of one resource, from begin to end, and its counter. */
static bool judge_resource(struct chaos_case *c, const struct chaos_increment *const *increments, size_t count,
                           int resource, const struct chaos_lease *const *leases) {
    const struct chaos_history *history = c->history;
    bool told = history->counters != NULL;
    int64_t counter = told ? history->counters[resource] : INT64_MAX;
    int64_t beyond = 0, written = 0;
    for (size_t i = 0, next; i < count; i = next) {
        const struct chaos_increment *first = increments[i];
        bool explained = false;
        for (next = i; next < count && increments[next]->read == first->read; next++) {
            bool done = increments[next]->done_us != CHAOS_NEVER_US, open = false;
            if (done ? next > i && !add_twice(c, first, increments[next])
                     : !judge_open(c, increments[next], leases, &open)) {
                return false;
            }
            explained = explained || done || open;
        }
        beyond += first->read >= counter && first->done_us != CHAOS_NEVER_US;
        written += first->read >= 0 && first->read < counter && explained;
    }
    int64_t missing = counter > written ? counter - written : 0;
    return !told || add_sum(c, resource, beyond, missing);
}

bool chaos_check_updates(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    const struct chaos_increment **increments = malloc((history->increment_count + 1) * sizeof *increments);
    const struct chaos_lease **leases = malloc((history->lease_count + 1) * sizeof *leases);
    bool worked = increments != NULL && leases != NULL;
    if (worked) {
        for (size_t i = 0; i < history->increment_count; i++) {
            increments[i] = &history->increments[i];
        }
        for (size_t i = 0; i < history->lease_count; i++) {
            leases[i] = &history->leases[i];
        }
        qsort(increments, history->increment_count, sizeof *increments, compare_increments);
        qsort(leases, history->lease_count, sizeof *leases, compare_leases);
        size_t begin = 0;
        for (int r = 0; worked && r < (int)history->resource_count; r++) {
            size_t end = begin;
            while (end < history->increment_count && increments[end]->resource == r) {
                end++;
            }
            worked = judge_resource(c, &increments[begin], end - begin, r, leases);
            begin = end;
        }
    }
    free(increments);
    free(leases);
    return worked;
}
