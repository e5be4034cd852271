/* FENCE, STALE: fencing tokens rise, and the resource takes no old one. */
#include <inttypes.h>
#include <stdlib.h>

#include "checks/check_parts.h"

/*
 * FENCE, of runs with fencing tokens: an acquire that was OK without a token (one that the end of
 * its client cut has none in any case); two of one resource with the same token; and one whose
 * token is not above that of another that had completed before it was invoked. STALE: the resource
 * has granted an access with a token below one that it had granted before. INCOMPLETE: an access
 * that it did not number, two with one number, or one that it refused though it had seen no higher
 * token.
 *
 * What is proven. All times are of one clock: an acquire whose completion was written down before
 * another's invocation had returned before the other began. So there is no false alarm, and every
 * pair of that kind is looked at, for its token is compared with the highest of all those before.
 * The resource numbers what it grants within its turn, so that the numbers are the order of the
 * accesses themselves, not of the lines about them. What is missed: an access of a process that was
 * killed before it could write its line; no later one can be older than that without being refused
 * or found here.
 */

struct granted {
    /* each by resource first */
    const struct chaos_operation **by_completion, **by_invocation, **by_token;
    size_t count;
};

static int compare_completed(const void *a, const void *b) {
    const struct chaos_operation *x = *(const struct chaos_operation *const *)a,
                                 *y = *(const struct chaos_operation *const *)b;
    return chaos_order_by(x->resource, y->resource, x->completed_us, y->completed_us);
}

static int compare_invoked(const void *a, const void *b) {
    const struct chaos_operation *x = *(const struct chaos_operation *const *)a,
                                 *y = *(const struct chaos_operation *const *)b;
    return chaos_order_by(x->resource, y->resource, x->invoked_us, y->invoked_us);
}

static int compare_tokens(const void *a, const void *b) {
    const struct chaos_operation *x = *(const struct chaos_operation *const *)a,
                                 *y = *(const struct chaos_operation *const *)b;
    int order = chaos_order_by(x->resource, y->resource, x->fence, y->fence);
    return order != 0 ? order : chaos_order(x->completed_us, y->completed_us);
}

static struct chaos_violation about(enum chaos_violation_kind kind, const struct chaos_operation *first,
                                    const struct chaos_operation *second) {
    return chaos_violation_of(kind, first->completed_us, second->completed_us, second->resource, first->client,
                              second->client);
}

static bool add_none(struct chaos_case *c, const struct chaos_operation *operation) {
    struct chaos_violation violation = about(CHAOS_VIOLATION_FENCE, operation, operation);
    violation.clients[1] = -1;
    return chaos_case_add(c, violation, "client %d acquired it at %.3f s and got no fencing token",
                          operation->client + 1, chaos_at(c, operation->completed_us));
}

static bool add_equal(struct chaos_case *c, const struct chaos_operation *a, const struct chaos_operation *b) {
    return chaos_case_add(c, about(CHAOS_VIOLATION_FENCE, a, b),
                          "client %d, which acquired it at %.3f s, and client %d, at %.3f s, both have the fencing "
                          "token %" PRId64,
                          a->client + 1, chaos_at(c, a->completed_us), b->client + 1, chaos_at(c, b->completed_us),
                          a->fence);
}

static bool add_lower(struct chaos_case *c, const struct chaos_operation *before, const struct chaos_operation *after) {
    return chaos_case_add(c, about(CHAOS_VIOLATION_FENCE, before, after),
                          "client %d, which asked for it at %.3f s and got it at %.3f s, has the fencing token %" PRId64
                          ", but client %d had got a higher one by %.3f s: %" PRId64,
                          after->client + 1, chaos_at(c, after->invoked_us), chaos_at(c, after->completed_us),
                          after->fence, before->client + 1, chaos_at(c, before->completed_us), before->fence);
}

static bool judge_order(struct chaos_case *c, const struct granted *granted) {
    const struct chaos_operation *highest = NULL;
    for (size_t i = 0, done = 0; i < granted->count; i++) {
        const struct chaos_operation *operation = granted->by_invocation[i];
        highest = highest != NULL && highest->resource == operation->resource ? highest : NULL;
        for (; done < granted->count; done++) {
            const struct chaos_operation *before = granted->by_completion[done];
            if (before->resource > operation->resource ||
                (before->resource == operation->resource && before->completed_us >= operation->invoked_us)) {
                break;
            }
            if (before->resource == operation->resource && (highest == NULL || before->fence > highest->fence)) {
                highest = before;
            }
        }
        /* Equal ones are told once, by those that have one token. */
        if (highest != NULL && operation->fence < highest->fence && !add_lower(c, highest, operation)) {
            return false;
        }
    }
    for (size_t i = 1; i < granted->count; i++) {
        const struct chaos_operation *a = granted->by_token[i - 1], *b = granted->by_token[i];
        if (a->resource == b->resource && a->fence == b->fence && !add_equal(c, a, b)) {
            return false;
        }
    }
    return true;
}

static bool judge_tokens(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    size_t room = history->operation_count + 1;
    const struct chaos_operation **lists = malloc(3 * room * sizeof *lists);
    struct granted granted = {lists, lists + room, lists + 2 * room, 0};
    bool worked = lists != NULL;
    for (size_t i = 0; worked && i < history->operation_count; i++) {
        const struct chaos_operation *operation = &history->operations[i];
        if (operation->token[0] == '\0' || operation->what != CHAOS_ACQUIRE) {
            continue;
        }
        if (operation->fence == 0) {
            worked = add_none(c, operation);
            continue;
        }
        granted.by_completion[granted.count] = granted.by_invocation[granted.count] = operation;
        granted.by_token[granted.count++] = operation;
    }
    if (worked && granted.count > 0) {
        qsort(granted.by_completion, granted.count, sizeof *lists, compare_completed);
        qsort(granted.by_invocation, granted.count, sizeof *lists, compare_invoked);
        qsort(granted.by_token, granted.count, sizeof *lists, compare_tokens);
        worked = judge_order(c, &granted);
    }
    free(lists);
    return worked;
}

/* What the resource granted. */
struct access {
    const struct chaos_increment *increment;
    int64_t number;
    bool write;
};

static int compare_accesses(const void *a, const void *b) {
    const struct access *x = a, *y = b;
    int order = chaos_order_by(x->increment->resource, y->increment->resource, x->number, y->number);
    return order != 0 ? order : chaos_order(x->increment->intent_us, y->increment->intent_us);
}

static int64_t time_of(const struct access *access) {
    return access->write ? access->increment->done_us : access->increment->intent_us;
}

static bool add_access(struct chaos_case *c, enum chaos_violation_kind kind, const struct access *before,
                       const struct access *access) {
    const struct chaos_increment *increment = access->increment;
    int64_t at_us = time_of(access);
    struct chaos_violation violation =
        chaos_violation_of(kind, at_us, at_us, increment->resource, increment->client, -1);
    const char *what = access->write ? "write" : "read";
    double at_s = chaos_at(c, at_us);
    if (before == NULL) {
        return chaos_case_add(c, violation, "a %s of client %d at %.3f s that the resource gave no number", what,
                              increment->client + 1, at_s);
    }
    violation.clients[1] = before->increment->client;
    if (kind == CHAOS_VIOLATION_INCOMPLETE) {
        return chaos_case_add(c, violation, "two accesses have the number %" PRId64 ", of clients %d and %d",
                              access->number, before->increment->client + 1, increment->client + 1);
    }
    return chaos_case_add(c, violation,
                          "the resource granted client %d (token %s) a %s at %.3f s with the fencing token %" PRId64
                          ", after it had granted client %d an access with %" PRId64,
                          increment->client + 1, increment->token, what, at_s, increment->fence,
                          before->increment->client + 1, before->increment->fence);
}

static bool judge_access(struct chaos_case *c, const struct access *all, size_t index, size_t *highest) {
    const struct access *access = &all[index];
    bool first = index == 0 || all[index - 1].increment->resource != access->increment->resource;
    if (access->number == 0) {
        *highest = first ? index : *highest;
        return add_access(c, CHAOS_VIOLATION_INCOMPLETE, NULL, access);
    }
    if (first || all[*highest].number == 0 || access->increment->fence >= all[*highest].increment->fence) {
        bool twice = !first && all[index - 1].number == access->number;
        *highest = index;
        return !twice || add_access(c, CHAOS_VIOLATION_INCOMPLETE, &all[index - 1], access);
    }
    return add_access(c, CHAOS_VIOLATION_STALE, &all[*highest], access);
}

static bool judge_accesses(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct access *all = malloc((2 * history->increment_count + 1) * sizeof *all);
    size_t count = 0, highest = 0;
    bool worked = all != NULL;
    for (size_t i = 0; worked && i < history->increment_count; i++) {
        const struct chaos_increment *increment = &history->increments[i];
        all[count++] = (struct access){increment, increment->read_number, false};
        if (increment->done_us != CHAOS_NEVER_US) {
            all[count++] = (struct access){increment, increment->write_number, true};
        }
    }
    if (worked && count > 0) {
        qsort(all, count, sizeof *all, compare_accesses);
    }
    for (size_t i = 0; worked && i < count; i++) {
        worked = judge_access(c, all, i, &highest);
    }
    free(all);
    return worked;
}

static bool judge_refusals(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    for (size_t i = 0; i < history->refusal_count; i++) {
        const struct chaos_refusal *refusal = &history->refusals[i];
        struct chaos_violation violation = chaos_violation_of(CHAOS_VIOLATION_INCOMPLETE, refusal->at_us,
                                                              refusal->at_us, refusal->resource, refusal->client, -1);
        if (refusal->fence >= refusal->highest &&
            !chaos_case_add(c, violation,
                            "client %d's %s at %.3f s was refused, though its fencing token %" PRId64
                            " is not below the highest that was seen, %" PRId64,
                            refusal->client + 1, refusal->write ? "write" : "read", chaos_at(c, refusal->at_us),
                            refusal->fence, refusal->highest)) {
            return false;
        }
    }
    return true;
}

bool chaos_check_fence(struct chaos_case *c) {
    return !c->history->protection.fencing || (judge_tokens(c) && judge_accesses(c) && judge_refusals(c));
}
