/* OVERLAP: no two leases of one resource are relied on at the same time. */
#include <stdlib.h>

#include "checks/check_parts.h"

/* Of the leases by their begin, each is compared with the earlier one that lasts longest: where any
 * earlier one lasts into it, that one does. What is proven: tools/chaos/README.md. */

CHAOS_ORDER_OF(compare_leases, chaos_lease, chaos_order_by(x->resource, y->resource, x->from_us, y->from_us))

static int64_t relied_until(const struct chaos_case *c, const struct chaos_lease *lease) {
    return c->relied_until_us[lease - c->history->leases];
}

static void add(struct chaos_case *c, const struct chaos_lease *a, const struct chaos_lease *b) {
    int64_t to_us = chaos_least(relied_until(c, a), relied_until(c, b));
    chaos_case_add(c, CHAOS_WRONG(OVERLAP, b->from_us, to_us, a->resource, a->client, b->client),
                   "client %d (token %s) relied on it from %.3f s to %.3f s, client %d (token %s) from %.3f s to %.3f "
                   "s: both for %.3f ms",
                   a->client + 1, a->token, chaos_at(c, a->from_us), chaos_at(c, relied_until(c, a)), b->client + 1,
                   b->token, chaos_at(c, b->from_us), chaos_at(c, relied_until(c, b)),
                   (double)(to_us - b->from_us) / 1e3);
}

void chaos_check_overlap(struct chaos_case *c) {
    const struct chaos_history *h = c->history;
    const struct chaos_lease **leases = chaos_sorted(h->leases, h->lease_count, sizeof *h->leases, compare_leases);
    const struct chaos_lease *longest = NULL;
    for (size_t i = 0; i < h->lease_count; i++) {
        const struct chaos_lease *lease = leases[i];
        if (relied_until(c, lease) <= lease->from_us) {
            continue;
        }
        bool same = longest != NULL && lease->resource == longest->resource;
        if (same && lease->from_us < relied_until(c, longest)) {
            add(c, longest, lease);
        }
        if (!same || relied_until(c, lease) > relied_until(c, longest)) {
            longest = lease;
        }
    }
    free(leases);
}
