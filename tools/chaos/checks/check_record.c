/* CRASH, LEFT, INCOMPLETE: what the record says of itself. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"

/*
 * CRASH and LEFT are what the conductor wrote down. INCOMPLETE is where the other checks would look
 * at a history with holes, and find nothing:
 *   no `finish`, no `left`, no operation at all, or leases but no sweep of the auditor;
 *   a token that two clients had, or one client for two resources;
 *   a claim or a completion by a process that had ended by then, or had not begun;
 *   a lease whose first claim does not follow an acquire of that resource, by the same process,
 *   that was OK, and of the same mode;
 *   an acquire that was OK, after which the client went on without a claim, though the lease was
 *   valid when it looked;
 *   an operation that never completed, though the process ended in order, or that completed when
 *     its process had begun the next;
 *   an increment or a read outside of its lease, or under one of the other mode;
 *   a lease without an end, though its process went on; an increment that was never done, though
 *   its lease was released (check_updates.c).
 *
 * Why each of these is wrong: tools/chaos/README.md.
 */

struct order {
    const struct chaos_operation **operations; /* by client, then invoked_us */
    const struct chaos_lease **leases;         /* by client, then from_us; then by token */
};

static void add(struct chaos_case *c, int64_t at_us, int client, int resource, const char *text) {
    chaos_case_add(c, CHAOS_WRONG(INCOMPLETE, at_us, at_us, resource, client, -1), "client %d, at %.3f s: %s",
                   client + 1, chaos_at(c, at_us), text);
}

/* Whether it is wrong about the history as a whole. */
static void check_whole(struct chaos_case *c, bool wrong, const char *text) {
    if (wrong) {
        chaos_case_add(c, CHAOS_WRONG(INCOMPLETE, c->end_us, c->end_us, -1, -1, -1), "%s", text);
    }
}

static void check_ends(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    CHAOS_EACH(const struct chaos_life, life, history->lives, history->life_count) {
        bool by_signal = life->status == -1;
        if (!life->expected && life->ended_us != CHAOS_NEVER_US) {
            chaos_case_add(c, CHAOS_WRONG(CRASH, life->ended_us, life->ended_us, -1, life->client, -1),
                           "client %d (pid %" PRId64 ") ended by itself at %.3f s with %s %" PRId64, life->client + 1,
                           life->pid, chaos_at(c, life->ended_us), by_signal ? "signal" : "status",
                           by_signal ? life->signal : life->status);
        }
    }
    for (size_t i = 0; i < history->left_count; i++) {
        chaos_case_add(c, CHAOS_WRONG(LEFT, c->end_us, c->end_us, -1, -1, -1), "%s", history->left[i]);
    }
}

CHAOS_ORDER_OF(compare_operations, chaos_operation, chaos_order_by(x->client, y->client, x->invoked_us, y->invoked_us))
CHAOS_ORDER_OF(compare_leases, chaos_lease, chaos_order_by(x->client, y->client, x->from_us, y->from_us))

CHAOS_ORDER_OF(compare_tokens, chaos_lease,
               chaos_order_then(strcmp(x->token, y->token), chaos_order(x->from_us, y->from_us)))

/* Whether the process that lived at from_us also lived at to_us; an end that is not known is
 * none. */
static bool lived(const struct chaos_case *c, int client, int64_t from_us, int64_t to_us) {
    const struct chaos_life *life = chaos_case_life(c, client, from_us);
    return life != NULL && chaos_over(life->ended_us, INT64_MAX) >= to_us;
}

static bool follows_acquire(const struct chaos_case *c, const struct chaos_lease *lease,
                            const struct chaos_operation *before) {
    return before->client == lease->client && lived(c, lease->client, before->invoked_us, lease->from_us) &&
           before->what == CHAOS_ACQUIRE && chaos_ended(before, "OK") && before->resource == lease->resource &&
           before->shared == lease->shared && before->completed_us <= lease->from_us;
}

static void check_lease(struct chaos_case *c, const struct order *order, const struct chaos_lease *lease) {
    int64_t last_us = lease->claim_count > 0 ? lease->claims[lease->claim_count - 1].at_us : lease->from_us;
    const struct chaos_operation *begin =
        &(struct chaos_operation){.client = lease->client, .invoked_us = lease->from_us};
    size_t count = c->history->operation_count;
    size_t place = chaos_count_before(order->operations, count, sizeof begin, &begin, compare_operations);
    const struct chaos_operation *next = place < count ? order->operations[place] : NULL;
    bool goes_on =
        next != NULL && next->client == lease->client && lived(c, lease->client, lease->from_us, next->invoked_us);
    if (!lived(c, lease->client, lease->from_us, last_us)) {
        add(c, last_us, lease->client, lease->resource, "a claim by a process that did not run");
    } else if (place == 0 || !follows_acquire(c, lease, order->operations[place - 1])) {
        add(c, lease->from_us, lease->client, lease->resource, "a claim without an acquire that was OK before it");
    } else if (lease->ended_us == CHAOS_NEVER_US && goes_on) {
        add(c, next->invoked_us, lease->client, lease->resource, "a lease without an end, though its process went on");
    }
}

/* Whether the client claimed the resource of its acquire after it, and by then. */
static bool claimed(const struct chaos_case *c, const struct order *order, const struct chaos_operation *acquire,
                    int64_t by_us) {
    const struct chaos_lease *done = &(struct chaos_lease){.client = acquire->client, .from_us = acquire->completed_us};
    size_t count = c->history->lease_count;
    size_t place = chaos_count_before(order->leases, count, sizeof done, &done, compare_leases);
    const struct chaos_lease *lease = place < count ? order->leases[place] : NULL;
    return lease != NULL && lease->client == acquire->client && lease->resource == acquire->resource &&
           lease->from_us <= by_us;
}

static void check_operation(struct chaos_case *c, const struct order *order, size_t index) {
    const struct chaos_history *history = c->history;
    const struct chaos_operation *operation = order->operations[index];
    const struct chaos_operation *next = index + 1 < history->operation_count ? order->operations[index + 1] : NULL;
    const struct chaos_life *life = chaos_case_life(c, operation->client, operation->invoked_us);
    bool goes_on =
        next != NULL && next->client == operation->client && life == chaos_case_life(c, next->client, next->invoked_us);
    bool in_order = goes_on || (life != NULL && life->ended_us != CHAOS_NEVER_US && life->status == 0);
    /* ttl - drift, less 2 ms: the validity is rounded down, and so may be the claim's. */
    int64_t over_us = (history->ttl_ms - (history->ttl_ms + 99) / 100 - 4) * 1000;
    int64_t completed_us = operation->completed_us;
    if (completed_us == CHAOS_NEVER_US && in_order) {
        add(c, operation->invoked_us, operation->client, operation->resource,
            "an operation that never completed, though its process went on, or ended in order");
    } else if (completed_us != CHAOS_NEVER_US && !lived(c, operation->client, operation->invoked_us, completed_us)) {
        add(c, completed_us, operation->client, operation->resource,
            "an operation was completed by a process that did not run");
    } else if (goes_on && completed_us > next->invoked_us) {
        add(c, completed_us, operation->client, operation->resource,
            "an operation was completed when its process had begun the next");
    } else if (operation->what == CHAOS_ACQUIRE && chaos_ended(operation, "OK") && goes_on &&
               next->invoked_us - operation->invoked_us < over_us && !claimed(c, order, operation, next->invoked_us)) {
        add(c, completed_us, operation->client, operation->resource, "an acquire that was OK, but no claim");
    }
}

/* Whether there was such a lease between the two times. leases: by token, then from_us. */
static bool had_lease(const struct chaos_case *c, const struct chaos_lease *const *leases, const char *token,
                      bool shared, int64_t from_us, int64_t to_us) {
    struct chaos_lease later = {.from_us = chaos_plus(from_us, 1)};
    const struct chaos_lease *key = &later;
    memcpy(later.token, token, sizeof later.token);
    size_t count = chaos_count_before(leases, c->history->lease_count, sizeof key, &key, compare_tokens);
    const struct chaos_lease *lease = count > 0 ? leases[count - 1] : NULL;
    return lease != NULL && strcmp(lease->token, token) == 0 && lease->shared == shared &&
           to_us <= chaos_over(lease->ended_us, INT64_MAX);
}

static void check_accesses(struct chaos_case *c, const struct chaos_lease *const *leases) {
    const struct chaos_history *h = c->history;
    CHAOS_EACH(const struct chaos_increment, one, h->increments, h->increment_count) {
        if (!had_lease(c, leases, one->token, false, one->intent_us, chaos_most(one->intent_us, one->done_us))) {
            add(c, one->intent_us, one->client, one->resource, "an increment outside of its lease");
        }
    }
    CHAOS_EACH(const struct chaos_read, read, h->reads, h->read_count) {
        if (!had_lease(c, leases, read->token, true, read->at_us, read->at_us)) {
            add(c, read->at_us, read->client, read->resource, "a read outside of its lease");
        }
    }
}

void chaos_check_record(struct chaos_case *c) {
    const struct chaos_history *h = c->history;
    struct order order = {chaos_sorted(h->operations, h->operation_count, sizeof *h->operations, compare_operations),
                          chaos_sorted(h->leases, h->lease_count, sizeof *h->leases, compare_leases)};
    check_whole(c, h->finish_us == CHAOS_NEVER_US,
                "the history has no end: the experiment was ended before it had finished");
    check_whole(c, !h->left_told, "nobody looked for what was left behind");
    check_whole(c, h->operation_count == 0, "no client did anything");
    check_whole(c, h->lease_count > 0 && h->sweep_count == 0,
                "the auditor saw nothing: whether the nodes had the keys is not known");
    check_ends(c);
    for (size_t i = 0; i < h->operation_count; i++) {
        check_operation(c, &order, i);
    }
    for (size_t i = 0; i < h->lease_count; i++) {
        check_lease(c, &order, &h->leases[i]);
    }
    qsort(order.leases, h->lease_count, sizeof *order.leases, compare_tokens);
    for (size_t i = 1; i < h->lease_count; i++) {
        const struct chaos_lease *a = order.leases[i - 1], *b = order.leases[i];
        if (strcmp(a->token, b->token) == 0 && (a->client != b->client || a->resource != b->resource)) {
            add(c, b->from_us, b->client, b->resource, "a token that had been another lease's before");
        }
    }
    check_accesses(c, order.leases);
    free(order.operations);
    free(order.leases);
}
