/* ORDER: nobody in line is passed over. And how often somebody was, wrong or not. */
#include <stdlib.h>

#include "checks/check_parts.h"

/*
 * An acquire B that got the lock in a queue passed over another one, A, if A's ticket is lower, not
 * both of them read, and
 *   the auditor saw A in line at a quorum of nodes before B was invoked, under the token with which
 *   A got the lock;
 *   B got the lock before A, and before A's place can have become stale;
 *   A was invoked a settle time (a ttl, or as long as clients may take to connect again) after the
 *   last fault ended and after A's process began, and no fault began before B got the lock.
 * One violation a B. Who reads passes nobody at its first try, either, so a B that reads needs no
 * ticket.
 *
 * What is proven, and why: tools/chaos/README.md. order_judged says how many acquires had somebody
 * to pass over.
 */
struct waiter {
    const struct chaos_operation *acquire;
    int64_t in_line_us;  /* when it had been seen in line at a quorum of nodes; INT64_MAX: never */
    size_t sweep, nodes; /* of the last sweep that saw it: at how many nodes */
    size_t quorum;
};

CHAOS_ORDER(by_token, waiter, strcmp(x->acquire->token, y->acquire->token))
CHAOS_ORDER(by_begin, waiter,
            chaos_order_by(x->acquire->resource, y->acquire->resource, x->acquire->invoked_us, y->acquire->invoked_us))

/* Of the acquires by token, those that the sweep saw in line. */
static void look(const struct chaos_history *history, size_t index, struct waiter *waiters, size_t count) {
    const struct chaos_sweep *sweep = &history->sweeps[index];
    for (size_t n = 0; n < history->node_count; n++) {
        for (size_t i = 0; i < sweep->nodes[n].line_count; i++) {
            struct chaos_operation sought = {0};
            memcpy(sought.token, sweep->nodes[n].line[i], sizeof sought.token);
            struct waiter *waiter =
                bsearch(&(struct waiter){.acquire = &sought}, waiters, count, sizeof *waiters, by_token);
            if (waiter == NULL || waiter->acquire->resource != sweep->resource) {
                continue;
            }
            waiter->nodes = waiter->sweep == index ? waiter->nodes + 1 : 1;
            waiter->sweep = index;
            if (waiter->nodes == waiter->quorum) {
                waiter->in_line_us = chaos_least(waiter->in_line_us, sweep->to_us);
            }
        }
    }
}

static struct waiter *collect(const struct chaos_case *c, size_t *count) {
    const struct chaos_history *history = c->history;
    struct waiter *waiters = chaos_allocate(history->operation_count, sizeof *waiters);
    *count = 0;
    CHAOS_EACH(const struct chaos_operation, operation, history->operations, history->operation_count) {
        if (operation->what == CHAOS_ACQUIRE && operation->completed_us != CHAOS_NEVER_US &&
            chaos_ended(operation, "OK")) {
            size_t quorum = chaos_case_setup(c, operation->client, operation->invoked_us).quorum;
            waiters[(*count)++] = (struct waiter){operation, INT64_MAX, SIZE_MAX, 0, quorum};
        }
    }
    chaos_sort(waiters, *count, sizeof *waiters, by_token);
    for (size_t i = 0; i < history->sweep_count; i++) {
        look(history, i, waiters, *count);
    }
    chaos_sort(waiters, *count, sizeof *waiters, by_begin);
    return waiters;
}

/* Since when there was no fault up to at_us; INT64_MAX: there is one. */
static int64_t calm_since(const struct chaos_history *history, int64_t at_us) {
    int64_t since_us = INT64_MIN;
    for (size_t i = 0; i < history->band_count && history->bands[i].from_us <= at_us; i++) {
        since_us = chaos_most(since_us, chaos_over(history->bands[i].to_us, INT64_MAX));
    }
    return since_us;
}

struct rule {
    int64_t stale_us, settle_us, longest_us;
};

static bool is_before(const struct chaos_case *c, const struct rule *rule, const struct waiter *a,
                      const struct chaos_operation *b, int64_t calm_us) {
    const struct chaos_operation *first = a->acquire;
    const struct chaos_life *life = chaos_case_life(c, first->client, first->invoked_us);
    bool lower = first->ticket < b->ticket || (b->shared && b->ticket == 0);
    return first->ticket > 0 && lower && a->in_line_us <= b->invoked_us &&
           b->completed_us < chaos_plus(first->invoked_us, rule->stale_us) && life != NULL &&
           first->invoked_us >= chaos_plus(chaos_most(calm_us, life->spawned_us), rule->settle_us);
}

static void add(struct chaos_case *c, const struct waiter *a, const struct chaos_operation *b) {
    const struct chaos_operation *first = a->acquire;
    chaos_case_add(c, CHAOS_WRONG(ORDER, b->invoked_us, first->completed_us, b->resource, first->client, b->client),
                   "client %d was in line by %.3f s and got the lock at %.3f s; client %d began at %.3f s, and got it "
                   "at %.3f s, %s",
                   first->client + 1, chaos_at(c, a->in_line_us), chaos_at(c, first->completed_us), b->client + 1,
                   chaos_at(c, b->invoked_us), chaos_at(c, b->completed_us),
                   b->ticket == 0 ? "at its first try" : "with a higher ticket");
}

/* Whether it passed over any of those that began before it. */
static void judge(struct chaos_case *c, const struct rule *rule, const struct waiter *waiters, size_t index) {
    const struct chaos_operation *b = waiters[index].acquire;
    const struct waiter *passed = NULL;
    bool early = false, judged = false;
    int64_t calm_us = calm_since(c->history, b->completed_us);
    for (size_t i = index; i-- > 0;) {
        const struct chaos_operation *a = waiters[i].acquire;
        if (a->resource != b->resource || b->invoked_us - a->invoked_us > rule->longest_us) {
            break;
        }
        if (a->completed_us <= b->invoked_us || (a->shared && b->shared)) {
            continue;
        }
        early |=
            a->completed_us > b->completed_us && b->invoked_us - a->invoked_us > c->history->node_timeout_ms * 1000;
        if (is_before(c, rule, &waiters[i], b, calm_us)) {
            judged = true;
            passed = a->completed_us > b->completed_us ? &waiters[i] : passed;
        }
    }
    c->verdict->passed_over += early;
    c->verdict->order_judged += judged;
    if (passed != NULL) {
        add(c, passed, b);
    }
}

void chaos_check_order(struct chaos_case *c) {
    enum { REFRESH_MAX_MS = 2500, STALE_REFRESHES = 3 }; /* docs/waiting.md */
    const struct chaos_history *history = c->history;
    int64_t settle_ms = chaos_most(history->ttl_ms, 2 * history->node_timeout_ms + 2500);
    struct rule rule = {.stale_us = STALE_REFRESHES * chaos_least(history->ttl_ms / 4, REFRESH_MAX_MS) * 1000,
                        .settle_us = settle_ms * 1000};
    size_t count;
    struct waiter *waiters = collect(c, &count);
    for (size_t i = 0; i < count; i++) {
        rule.longest_us =
            chaos_most(rule.longest_us, waiters[i].acquire->completed_us - waiters[i].acquire->invoked_us);
    }
    for (size_t i = 0; i < count; i++) {
        judge(c, &rule, waiters, i);
    }
    free(waiters);
}
