/* OVERLAP: no two leases of one resource are relied on at the same time. */
#include <stdlib.h>

#include "checks/check_parts.h"

/*
 * What is proven. A history in which two intervals of one resource share a time is always found: of
 * the leases by their beginning, each is compared with the earlier one that lasts longest, and
 * where any earlier one lasts into it, that one does. One violation a lease that began too early,
 * so three that share a time are two violations. The intervals themselves are what the clients
 * wrote down by the one clock of the machine: a claim is made after the library gave the lease, an
 * end before it is asked to release, so that an interval is never longer than what the client
 * relied on. It may be shorter by the time between a client's look at the clock and its line.
 */

struct held {
    const struct chaos_lease *lease;
    int64_t until_us;
};

static int compare(const void *a, const void *b) {
    const struct held *x = a, *y = b;
    int order = chaos_order_by(x->lease->resource, y->lease->resource, x->lease->from_us, y->lease->from_us);
    return order != 0 ? order : chaos_order(x->until_us, y->until_us);
}

static void add(struct chaos_case *c, const struct held *first, const struct held *second) {
    const struct chaos_lease *a = first->lease, *b = second->lease;
    int64_t to_us = chaos_least(first->until_us, second->until_us);
    struct chaos_violation violation =
        chaos_violation_of(CHAOS_VIOLATION_OVERLAP, b->from_us, to_us, a->resource, a->client, b->client);
    chaos_case_add(c, violation,
                   "client %d (token %s) relied on it from %.3f s to %.3f s, client %d (token %s) from %.3f s "
                   "to %.3f s: both for %.3f ms",
                   a->client + 1, a->token, chaos_at(c, a->from_us), chaos_at(c, first->until_us), b->client + 1,
                   b->token, chaos_at(c, b->from_us), chaos_at(c, second->until_us),
                   (double)(to_us - b->from_us) / 1e3);
}

void chaos_check_overlap(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct held *held = chaos_allocate(history->lease_count, sizeof *held);
    size_t count = 0, longest = 0;
    for (size_t i = 0; i < history->lease_count; i++) {
        if (c->relied_until_us[i] > history->leases[i].from_us) {
            held[count++] = (struct held){&history->leases[i], c->relied_until_us[i]};
        }
    }
    qsort(held, count, sizeof *held, compare);
    for (size_t i = 1; i < count; i++) {
        bool same = held[i].lease->resource == held[longest].lease->resource;
        if (same && held[i].lease->from_us < held[longest].until_us) {
            add(c, &held[longest], &held[i]);
        }
        if (!same || held[i].until_us > held[longest].until_us) {
            longest = i;
        }
    }
    free(held);
}
