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
 * holding the lock at once. Two shared leases are never compared with each other. STALE: the
 * resource has granted an access with a token below one that it had granted before; of a shared
 * lease, below one of a lease that was not. INCOMPLETE: an access that it did not number, two with
 * one number, or one that it refused though it had seen no higher token. What is proven:
 * tools/chaos/README.md.
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
    const struct chaos_operation *highest[] = {NULL, NULL}; /* of those alone; of all */
    qsort(moments, count, sizeof *moments, compare_moments);
    for (size_t i = 0; i < count; i++) {
        const struct chaos_operation *operation = moments[i].operation, *before = highest[!operation->shared];
        bool lower = before != NULL && before->resource == operation->resource && operation->fence < before->fence;
        if (lower && (!moments[i].completed ||
                      (leases != NULL && was_later(operation, before, leases, c->history->lease_count)))) {
            add_lower(c, before, operation);
        }
        for (size_t of = operation->shared; of < 2 && moments[i].completed; of++) {
            bool same = highest[of] != NULL && highest[of]->resource == operation->resource;
            highest[of] = same && highest[of]->fence >= operation->fence ? highest[of] : operation;
        }
    }
    /* Equal ones are told once, by those that have one token. */
    qsort(moments, count, sizeof *moments, compare_tokens);
    for (size_t i = 1; i < count; i++) {
        const struct chaos_operation *a = moments[i - 1].operation, *b = moments[i].operation;
        bool together = a->shared && b->shared;
        if (a->resource == b->resource && a->fence == b->fence && moments[i - 1].completed && moments[i].completed &&
            !together) {
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
    int client, resource;
    const char *token;
    int64_t fence, number, at_us;
    bool write;
    bool shared; /* under such a lease */
};

CHAOS_ORDER(compare_accesses, access,
            chaos_order_then(chaos_order_by(x->resource, y->resource, x->number, y->number),
                             chaos_order(x->at_us, y->at_us)))

static void add_access(struct chaos_case *c, enum chaos_violation_kind kind, const struct access *before,
                       const struct access *access) {
    int64_t at_us = access->at_us;
    int other = before == NULL ? -1 : before->client;
    struct chaos_violation violation = {kind, at_us, at_us, access->resource, {access->client, other}, NULL};
    const char *what = access->write ? "write" : "read";
    if (before == NULL) {
        chaos_case_add(c, violation, "a %s of client %d at %.3f s that the resource gave no number", what,
                       access->client + 1, chaos_at(c, at_us));
    } else if (kind == CHAOS_VIOLATION_INCOMPLETE) {
        chaos_case_add(c, violation, "two accesses have the number %" PRId64 ", of clients %d and %d", access->number,
                       before->client + 1, access->client + 1);
    } else {
        chaos_case_add(c, violation,
                       "the resource granted client %d (token %s) a %s at %.3f s with the fencing token %" PRId64
                       ", after it had granted client %d an access with %" PRId64,
                       access->client + 1, access->token, what, chaos_at(c, at_us), access->fence, before->client + 1,
                       before->fence);
    }
}

/* The highest tokens so far of one resource, whose accesses come by their number: of leases that
 * were not shared, and of all. */
static void judge_access(struct chaos_case *c, const struct access *before, const struct access *access,
                         const struct access *highest[2]) {
    bool first = before == NULL || before->resource != access->resource;
    if (first) {
        highest[0] = highest[1] = NULL;
    }
    const struct access *higher = highest[!access->shared];
    if (access->number == 0) {
        add_access(c, CHAOS_VIOLATION_INCOMPLETE, NULL, access);
    } else if (higher != NULL && access->fence < higher->fence) {
        add_access(c, CHAOS_VIOLATION_STALE, higher, access);
    } else {
        for (size_t of = access->shared; of < 2; of++) {
            highest[of] = highest[of] != NULL && highest[of]->fence > access->fence ? highest[of] : access;
        }
        if (!first && before->number == access->number) {
            add_access(c, CHAOS_VIOLATION_INCOMPLETE, before, access);
        }
    }
}

static size_t collect_accesses(const struct chaos_history *history, struct access *all) {
    size_t count = 0;
    CHAOS_EACH(const struct chaos_increment, one, history->increments, history->increment_count) {
        struct access access = {.client = one->client,
                                .resource = one->resource,
                                .token = one->token,
                                .fence = one->fence,
                                .number = one->read_number,
                                .at_us = one->intent_us};
        all[count++] = access;
        if (one->done_us != CHAOS_NEVER_US) {
            access.number = one->write_number;
            access.at_us = one->done_us;
            access.write = true;
            all[count++] = access;
        }
    }
    CHAOS_EACH(const struct chaos_read, read, history->reads, history->read_count) {
        all[count++] = (struct access){.client = read->client,
                                       .resource = read->resource,
                                       .token = read->token,
                                       .fence = read->fence,
                                       .number = read->number,
                                       .at_us = read->at_us,
                                       .shared = true};
    }
    return count;
}

static void judge_accesses(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct access *all = chaos_allocate(2 * history->increment_count + history->read_count, sizeof *all);
    const struct access *highest[2] = {NULL, NULL};
    size_t count = collect_accesses(history, all);
    qsort(all, count, sizeof *all, compare_accesses);
    for (size_t i = 0; i < count; i++) {
        judge_access(c, i == 0 ? NULL : &all[i - 1], &all[i], highest);
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
