/* FENCE, STALE: fencing tokens rise, and the resource takes no old one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"

/*
 * FENCE, of runs with fencing tokens: an acquire that was OK without a token (one that the end of
 * its client cut has none in any case); two of one resource with the same token; and one whose
 * token is not above that of another that had completed before it was invoked. So is one that was
 * invoked before, completed later and was relied on, unless the run breaks what keeps two from
 * holding the lock at once. STALE: the resource has granted an access with a token below one that
 * it had granted before. INCOMPLETE: an access that it did not number, two with one number, or one
 * that it refused though it had seen no higher token. What is proven: tools/chaos/README.md.
 */

/* An acquire that got a fencing token began, or had completed. */
struct moment {
    const struct chaos_operation *operation;
    int64_t at_us;
    bool completed;
};

/* By resource and time; at one time what begins comes first, for nothing had returned before it. */
CHAOS_ORDER(compare_moments, moment,
            chaos_order_then(chaos_order_by(x->operation->resource, y->operation->resource, x->at_us, y->at_us),
                             chaos_order(x->completed, y->completed)))

CHAOS_ORDER(compare_tokens, moment,
            chaos_order_then(chaos_order_by(x->operation->resource, y->operation->resource, x->operation->fence,
                                            y->operation->fence),
                             chaos_order_by(x->completed, y->completed, x->at_us, y->at_us)))

static struct chaos_violation about(const struct chaos_operation *first, const struct chaos_operation *second) {
    return CHAOS_WRONG(FENCE, first->completed_us, second->completed_us, second->resource, first->client,
                       second->client);
}

static void add_none(struct chaos_case *c, const struct chaos_operation *operation) {
    int64_t at_us = operation->completed_us;
    chaos_case_add(c, CHAOS_WRONG(FENCE, at_us, at_us, operation->resource, operation->client, -1),
                   "client %d acquired it at %.3f s and got no fencing token", operation->client + 1,
                   chaos_at(c, at_us));
}

static void add_equal(struct chaos_case *c, const struct chaos_operation *a, const struct chaos_operation *b) {
    chaos_case_add(c, about(a, b),
                   "client %d, which acquired it at %.3f s, and client %d, at %.3f s, both have the fencing token "
                   "%" PRId64,
                   a->client + 1, chaos_at(c, a->completed_us), b->client + 1, chaos_at(c, b->completed_us), a->fence);
}

static void add_lower(struct chaos_case *c, const struct chaos_operation *before, const struct chaos_operation *after) {
    chaos_case_add(c, about(before, after),
                   "client %d, which asked for it at %.3f s and got it at %.3f s, has the fencing token %" PRId64
                   ", but client %d had got a higher one by %.3f s: %" PRId64,
                   after->client + 1, chaos_at(c, after->invoked_us), chaos_at(c, after->completed_us), after->fence,
                   before->client + 1, chaos_at(c, before->completed_us), before->fence);
}

CHAOS_ORDER_OF(compare_leases, chaos_lease, strcmp(x->token, y->token))

/* Whether one that did not begin after another had completed must have been later all the same. */
static bool was_later(const struct chaos_operation *operation, const struct chaos_operation *before,
                      const struct chaos_lease *const *leases, size_t lease_count) {
    struct chaos_lease sought = {0};
    const struct chaos_lease *key = &sought;
    memcpy(sought.token, operation->token, sizeof sought.token);
    return before->completed_us >= operation->invoked_us && before->completed_us < operation->completed_us &&
           bsearch(&key, leases, lease_count, sizeof *leases, compare_leases) != NULL;
}

/* leases: NULL where more than one may hold the lock. */
static void judge_order(struct chaos_case *c, struct moment *moments, size_t count,
                        const struct chaos_lease *const *leases) {
    const struct chaos_operation *highest = NULL;
    qsort(moments, count, sizeof *moments, compare_moments);
    for (size_t i = 0; i < count; i++) {
        const struct chaos_operation *operation = moments[i].operation;
        bool first = highest == NULL || highest->resource != operation->resource;
        if (moments[i].completed) {
            if (leases != NULL && !first && operation->fence < highest->fence &&
                was_later(operation, highest, leases, c->history->lease_count)) {
                add_lower(c, highest, operation);
            }
            highest = first || operation->fence > highest->fence ? operation : highest;
        } else if (!first && operation->fence < highest->fence) {
            add_lower(c, highest, operation);
        }
    }
    /* Equal ones are told once, by those that have one token. */
    qsort(moments, count, sizeof *moments, compare_tokens);
    for (size_t i = 1; i < count; i++) {
        const struct chaos_operation *a = moments[i - 1].operation, *b = moments[i].operation;
        if (a->resource == b->resource && a->fence == b->fence && moments[i - 1].completed && moments[i].completed) {
            add_equal(c, a, b);
        }
    }
}

static void judge_tokens(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct moment *moments = chaos_allocate(2 * history->operation_count, sizeof *moments);
    size_t count = 0;
    CHAOS_EACH(const struct chaos_operation, operation, history->operations, history->operation_count) {
        if (operation->token[0] == '\0' || operation->what != CHAOS_ACQUIRE) {
            continue;
        }
        if (operation->fence == 0) {
            add_none(c, operation);
            continue;
        }
        moments[count++] = (struct moment){operation, operation->invoked_us, false};
        moments[count++] = (struct moment){operation, operation->completed_us, true};
    }
    bool excludes = !chaos_breaks_assumptions(history) || chaos_all_guarded(history);
    const struct chaos_lease **leases =
        excludes ? chaos_sorted(history->leases, history->lease_count, sizeof *history->leases, compare_leases) : NULL;
    judge_order(c, moments, count, leases);
    free(leases);
    free(moments);
}

/* What the resource granted. */
struct access {
    const struct chaos_increment *increment;
    int64_t number;
    bool write;
};

CHAOS_ORDER(compare_accesses, access,
            chaos_order_then(chaos_order_by(x->increment->resource, y->increment->resource, x->number, y->number),
                             chaos_order(x->increment->intent_us, y->increment->intent_us)))

static int64_t time_of(const struct access *access) {
    return access->write ? access->increment->done_us : access->increment->intent_us;
}

static void add_access(struct chaos_case *c, enum chaos_violation_kind kind, const struct access *before,
                       const struct access *access) {
    const struct chaos_increment *increment = access->increment;
    int64_t at_us = time_of(access);
    int other = before == NULL ? -1 : before->increment->client;
    struct chaos_violation violation = {kind, at_us, at_us, increment->resource, {increment->client, other}, NULL};
    const char *what = access->write ? "write" : "read";
    if (before == NULL) {
        chaos_case_add(c, violation, "a %s of client %d at %.3f s that the resource gave no number", what,
                       increment->client + 1, chaos_at(c, at_us));
    } else if (kind == CHAOS_VIOLATION_INCOMPLETE) {
        chaos_case_add(c, violation, "two accesses have the number %" PRId64 ", of clients %d and %d", access->number,
                       before->increment->client + 1, increment->client + 1);
    } else {
        chaos_case_add(c, violation,
                       "the resource granted client %d (token %s) a %s at %.3f s with the fencing token %" PRId64
                       ", after it had granted client %d an access with %" PRId64,
                       increment->client + 1, increment->token, what, chaos_at(c, at_us), increment->fence,
                       before->increment->client + 1, before->increment->fence);
    }
}

/* The highest token so far of one resource, whose accesses come by their number. */
static void judge_access(struct chaos_case *c, const struct access *before, const struct access *access,
                         const struct access **highest) {
    bool first = before == NULL || before->increment->resource != access->increment->resource;
    *highest = first ? NULL : *highest;
    if (access->number == 0) {
        add_access(c, CHAOS_VIOLATION_INCOMPLETE, NULL, access);
    } else if (*highest != NULL && access->increment->fence < (*highest)->increment->fence) {
        add_access(c, CHAOS_VIOLATION_STALE, *highest, access);
    } else {
        *highest = access;
        if (!first && before->number == access->number) {
            add_access(c, CHAOS_VIOLATION_INCOMPLETE, before, access);
        }
    }
}

static void judge_accesses(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct access *all = chaos_allocate(2 * history->increment_count, sizeof *all);
    const struct access *highest = NULL;
    size_t count = 0;
    CHAOS_EACH(const struct chaos_increment, increment, history->increments, history->increment_count) {
        all[count++] = (struct access){increment, increment->read_number, false};
        if (increment->done_us != CHAOS_NEVER_US) {
            all[count++] = (struct access){increment, increment->write_number, true};
        }
    }
    qsort(all, count, sizeof *all, compare_accesses);
    for (size_t i = 0; i < count; i++) {
        judge_access(c, i == 0 ? NULL : &all[i - 1], &all[i], &highest);
    }
    free(all);
}

static void judge_refusals(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    CHAOS_EACH(const struct chaos_refusal, refusal, history->refusals, history->refusal_count) {
        if (refusal->fence >= refusal->highest) {
            int64_t at_us = refusal->at_us;
            chaos_case_add(c, CHAOS_WRONG(INCOMPLETE, at_us, at_us, refusal->resource, refusal->client, -1),
                           "client %d's %s at %.3f s was refused, though its fencing token %" PRId64
                           " is not below the highest that was seen, %" PRId64,
                           refusal->client + 1, refusal->write ? "write" : "read", chaos_at(c, at_us), refusal->fence,
                           refusal->highest);
        }
    }
}

void chaos_check_fence(struct chaos_case *c) {
    if (c->history->protection.fencing) {
        judge_tokens(c);
        judge_accesses(c);
        judge_refusals(c);
    }
}
