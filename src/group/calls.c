/* The public calls on a request or a lease, which is of one resource or of several. */
#include "group/calls.h"

#include "group/bundle.h"
#include "group/handle.h"
#include "group/requests.h"

void redlock_request_cancel(redlock_request *request) {
    struct redlock_bundle *bundle = redlock_bundle_of(request);
    if (bundle) {
        redlock_bundle_cancel(bundle);
    } else if (request) {
        redlock_group_cancel((struct redlock_lease *)request);
    }
}

int redlock_extend(redlock_lease *lease, int64_t ttl_ms, redlock_callback cb, void *data) {
    struct redlock_bundle *bundle = redlock_bundle_of(lease);
    if (bundle) {
        return redlock_bundle_extend(bundle, ttl_ms, cb, data);
    }
    return lease ? redlock_group_extend(lease, ttl_ms, cb, data) : REDLOCK_ERR_INVALID;
}

int redlock_downgrade(redlock_lease *lease, redlock_callback cb, void *data) {
    struct redlock_bundle *bundle = redlock_bundle_of(lease);
    if (bundle) {
        return redlock_bundle_downgrade(bundle, cb, data);
    }
    return lease ? redlock_group_downgrade(lease, cb, data) : REDLOCK_ERR_INVALID;
}

int redlock_release(redlock_lease *lease, redlock_callback cb, void *data) {
    struct redlock_bundle *bundle = redlock_bundle_of(lease);
    if (bundle) {
        return redlock_bundle_release(bundle, cb, data);
    }
    return lease ? redlock_group_release(lease, cb, data) : REDLOCK_ERR_INVALID;
}

void redlock_lease_forget(redlock_lease *lease) {
    struct redlock_bundle *bundle = redlock_bundle_of(lease);
    if (bundle) {
        redlock_bundle_forget(bundle);
    } else if (lease) {
        redlock_group_forget(lease);
    }
}

int64_t redlock_lease_validity_ms(const redlock_lease *lease) {
    const struct redlock_bundle *bundle = redlock_bundle_of(lease);
    return bundle ? redlock_bundle_validity_ms(bundle) : redlock_handle_validity_ms(lease);
}

size_t redlock_lease_item_count(const redlock_lease *lease) {
    const struct redlock_bundle *bundle = redlock_bundle_of(lease);
    return bundle ? redlock_bundle_count(bundle) : 1;
}

const char *redlock_lease_item_resource(const redlock_lease *lease, size_t item) {
    const struct redlock_bundle *bundle = redlock_bundle_of(lease);
    return bundle ? redlock_bundle_resource(bundle, item) : item == 0 ? redlock_handle_resource(lease) : NULL;
}

const char *redlock_lease_item_token(const redlock_lease *lease, size_t item) {
    const struct redlock_bundle *bundle = redlock_bundle_of(lease);
    return bundle ? redlock_bundle_token(bundle, item) : item == 0 ? redlock_handle_own_token(lease) : NULL;
}

uint64_t redlock_lease_item_fence(const redlock_lease *lease, size_t item) {
    const struct redlock_bundle *bundle = redlock_bundle_of(lease);
    return bundle ? redlock_bundle_fence(bundle, item) : item == 0 ? lease->core.fence.token : 0;
}

size_t redlock_lease_slots(const redlock_lease *lease, uint32_t *slots, size_t room) {
    return redlock_bundle_of(lease) ? 0 : redlock_handle_slots(lease, slots, room);
}

const char *redlock_lease_resource(const redlock_lease *lease) {
    return redlock_lease_item_resource(lease, 0);
}

const char *redlock_lease_token(const redlock_lease *lease) {
    return redlock_lease_item_token(lease, 0);
}

uint64_t redlock_lease_fence(const redlock_lease *lease) {
    return redlock_lease_item_fence(lease, 0);
}

bool redlock_calls_tell_owner(const redlock_lease *lease) {
    const struct redlock_bundle *bundle = redlock_bundle_of(lease);
    if (bundle) {
        return redlock_bundle_tells_owner(bundle);
    }
    return lease->life == REDLOCK_LIFE_OUT && (lease->lost_cb || lease->has_expiring);
}
