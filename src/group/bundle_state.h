/* The memory of a bundle. */
#ifndef REDLOCK_GROUP_BUNDLE_STATE_H
#define REDLOCK_GROUP_BUNDLE_STATE_H

#include <stdatomic.h>

#include "core/bundle.h"
#include "core/lease_state.h"
#include "group/group.h"

struct redlock_bundle_item {
    struct redlock_bundle *bundle;
    struct redlock_lease *lease; /* that was asked for, or is held */
    const char *resource;
    _Atomic int64_t held_until_ns; /* of the lease */
    uint64_t fence;
    redlock_mode mode;
    int8_t refused; /* a request for it could not be made: the code */
    uint8_t given;  /* where it stands in the owner's list */
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
};

struct redlock_bundle {
    struct redlock_requester requester; /* first member */
    struct redlock_group *group;
    struct redlock_bundle_core core;
    redlock_acquire_options options;
    uint64_t arrival_us;
    uint64_t passed_over;
    unsigned busy; /* it is not freed yet: we are at work, or in a callback */
    redlock_callback cb, extend_cb;
    void *data, *extend_data;
    /* The last extension: EXTEND or DOWNGRADE, since when, and for how long. */
    enum redlock_event_type extension;
    int64_t extend_ns, extend_ttl_ms;
    redlock_result *kept;     /* of the item that decides; NULL: none, or no memory */
    int64_t expiring_told_ns; /* the deadline whose end was told */
    /* In the order of their resources, which stand behind them. */
    struct redlock_bundle_item items[];
};

/* Steps the core, and does what it says. The bundle may be freed then. */
void redlock_bundle_feed(struct redlock_bundle *bundle, enum redlock_bundle_event_type type, int code);
/* Its lease was asked for, or adopted. */
void redlock_bundle_watch(struct redlock_bundle_item *item, struct redlock_lease *lease);
/* From here on, its lease is on its own. */
struct redlock_lease *redlock_bundle_let_go(struct redlock_bundle_item *item);
/* What each of its leases tells the bundle. */
void redlock_bundle_listen(struct redlock_bundle_item *item, redlock_acquire_options *options);

#endif
