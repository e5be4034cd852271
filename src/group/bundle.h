/* Several resources in one lease: does what the states of core/bundle.h say, with leases of the
 * group. */
#ifndef REDLOCK_GROUP_BUNDLE_H
#define REDLOCK_GROUP_BUNDLE_H

#include <redlock/redlock.h>

#include "group/group.h"

struct redlock_bundle;

/* A handle that the owner has is a lease or a bundle. NULL for a lease, and for NULL. */
static inline struct redlock_bundle *redlock_bundle_of(const void *handle) {
    const struct redlock_requester *requester = handle;
    return requester && requester->kind == REDLOCK_REQUESTER_BUNDLE ? (struct redlock_bundle *)(uintptr_t)handle : NULL;
}

/* See redlock_acquire_all() and redlock_adopt_all(). */
int redlock_group_acquire_all(struct redlock_group *group, const redlock_item *items, size_t count,
                              const redlock_acquire_options *options, redlock_request **request, redlock_callback cb,
                              void *data);
int redlock_group_adopt_all(struct redlock_group *group, const redlock_item *items, size_t count,
                            const redlock_acquire_options *options, redlock_lease **lease);

/* See the functions on a lease. */
void redlock_bundle_cancel(struct redlock_bundle *bundle);
int redlock_bundle_extend(struct redlock_bundle *bundle, int64_t ttl_ms, redlock_callback cb, void *data);
int redlock_bundle_downgrade(struct redlock_bundle *bundle, redlock_callback cb, void *data);
int redlock_bundle_release(struct redlock_bundle *bundle, redlock_callback cb, void *data);
void redlock_bundle_forget(struct redlock_bundle *bundle);

/* Its owner has the handle, and wants to be told of its end. */
bool redlock_bundle_tells_owner(const struct redlock_bundle *bundle);

/* For any thread. `item`: as the owner gave them. */
int64_t redlock_bundle_validity_ms(const struct redlock_bundle *bundle);
size_t redlock_bundle_count(const struct redlock_bundle *bundle);
const char *redlock_bundle_resource(const struct redlock_bundle *bundle, size_t item);
const char *redlock_bundle_token(const struct redlock_bundle *bundle, size_t item);
uint64_t redlock_bundle_fence(const struct redlock_bundle *bundle, size_t item);

#endif
