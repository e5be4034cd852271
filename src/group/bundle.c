/* Several resources in one lease: does what the states of core/bundle.h say, with leases of the
 * group. */
#include "group/bundle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/planted.h"
#include "core/time.h"
#include "group/bundle_state.h"
#include "group/driver.h"
#include "group/requests.h"

#define REASON_SIZE (4 * REDLOCK_RESOURCE_SIZE_MAX + 1200)

static redlock_lease *handle_of(struct redlock_bundle *bundle) {
    return (redlock_lease *)bundle;
}

static int64_t held_until_ns(const struct redlock_bundle *bundle) {
    int64_t until_ns = INT64_MAX;
    for (unsigned i = 0; i < (REDLOCK_PLANTED(BUNDLE_FIRST_DEADLINE) ? 1 : bundle->core.count); i++) {
        until_ns =
            redlock_min_ns(until_ns, atomic_load_explicit(&bundle->items[i].held_until_ns, memory_order_acquire));
    }
    return until_ns;
}

int64_t redlock_bundle_validity_ms(const struct redlock_bundle *bundle) {
    const int64_t until_ns = held_until_ns(bundle);
    return until_ns ? redlock_validity_ms(until_ns, redlock_group_now_ns(bundle->group)) : 0;
}

static void delete_bundle(struct redlock_group *group, struct redlock_requester *requester) {
    redlock_result_free(((struct redlock_bundle *)requester)->kept);
    redlock_requester_delist(group, requester);
    free(requester);
}

/* Leases that end with the group write to it until then. */
static void free_if_over(struct redlock_bundle *bundle) {
    if (bundle->busy == 0 && redlock_bundle_is_over(&bundle->core) && !bundle->group->closing) {
        delete_bundle(bundle->group, &bundle->requester);
    }
}

/* What its owner is told. */

static void tell(struct redlock_bundle *bundle, enum redlock_result_of of, int code, const redlock_result *from,
                 redlock_callback cb, void *data) {
    if (!cb) {
        return;
    }
    redlock_result told = {.resource = redlock_bundle_resource(bundle, 0)};
    told = from ? *from : told;
    told.of = of;
    told.code = code;
    told.lease = NULL;
    told.attempts = 1;
    if (of == REDLOCK_RESULT_ACQUIRE) {
        told.lease = code == REDLOCK_OK ? handle_of(bundle) : NULL;
        told.attempts = bundle->core.attempts;
        told.passed_over = bundle->passed_over;
    }
    cb(&told, data);
}

/* One of its deadlines is near. */
static void tell_expiring(struct redlock_bundle *bundle) {
    const redlock_acquire_options *options = &bundle->options;
    const int64_t until_ns = held_until_ns(bundle), remaining_ms = redlock_bundle_validity_ms(bundle);
    if (options->on_expiring && bundle->core.state == REDLOCK_BUNDLE_HELD && bundle->expiring_told_ns != until_ns &&
        remaining_ms > 0 && remaining_ms <= options->expiring_ms) {
        bundle->expiring_told_ns = until_ns;
        options->on_expiring(handle_of(bundle), remaining_ms, options->expiring_data);
    }
}

/* A callback may call anything: forget the lease, say. */
static void tell_all(struct redlock_bundle *bundle, const struct redlock_bundle_actions *actions,
                     const redlock_result *result, const char *reason) {
    const redlock_result *from = actions->tell_kept ? bundle->kept : result;
    if (actions->tell_acquired) {
        tell(bundle, REDLOCK_RESULT_ACQUIRE, actions->acquired_code, from, bundle->cb, bundle->data);
        tell_expiring(bundle);
    }
    if (actions->tell_extended) {
        tell(bundle, REDLOCK_RESULT_EXTEND, actions->extended_code, from, bundle->extend_cb, bundle->extend_data);
    }
    if (actions->tell_lost && bundle->core.state == REDLOCK_BUNDLE_LOST && bundle->options.on_lost) {
        bundle->options.on_lost(handle_of(bundle), reason, bundle->options.lost_data);
    }
    if (actions->tell_released) {
        tell(bundle, REDLOCK_RESULT_RELEASE, actions->released_code, from, bundle->cb, bundle->data);
    }
}

/* What is done with its items. */

static void on_acquired(const redlock_result *result, void *data);
static void on_lost(redlock_lease *lease, const char *reason, void *data);
static void on_expiring(redlock_lease *lease, int64_t remaining_ms, void *data);
static void on_extended(const redlock_result *result, void *data);
static void on_released(const redlock_result *result, void *data);

static void wake(struct redlock_bundle *bundle) {
    struct redlock_group *group = bundle->group;
    redlock_schedule_set(&group->schedule, &bundle->requester.due, redlock_group_now_ns(group));
}

static int64_t left_ms(const struct redlock_bundle *bundle) {
    const int64_t until_ns = bundle->core.wait_until_ns;
    return until_ns == REDLOCK_NEVER_NS ? REDLOCK_WAIT_FOREVER
                                        : 1 + redlock_validity_ms(until_ns, redlock_group_now_ns(bundle->group) + 1);
}

void redlock_bundle_listen(struct redlock_bundle_item *item, redlock_acquire_options *options) {
    options->on_lost = on_lost;
    options->on_expiring = options->expiring_ms > 0 ? on_expiring : NULL;
    options->lost_data = options->expiring_data = item;
}

/* We renew it while we wait for others. */
static void ask(struct redlock_bundle_item *item, bool in_line) {
    struct redlock_bundle *bundle = item->bundle;
    redlock_request *request;
    redlock_acquire_options options = bundle->options;
    assert(!item->lease && item->refused == REDLOCK_OK);
    options.mode = item->mode;
    options.wait_timeout_ms = in_line ? left_ms(bundle) : 0;
    options.auto_extend = true;
    options.auto_extend_max_ms = 0;
    redlock_bundle_listen(item, &options);
    const int code = redlock_group_acquire_item(bundle->group, item->resource, &options, bundle->arrival_us, &request,
                                                on_acquired, item);
    if (code == REDLOCK_OK) {
        redlock_bundle_watch(item, (struct redlock_lease *)request);
    } else { /* there is no request, so its answer comes in a later turn */
        item->refused = (int8_t)code;
        wake(bundle);
    }
}

void redlock_bundle_watch(struct redlock_bundle_item *item, struct redlock_lease *lease) {
    assert(!item->lease);
    item->lease = lease;
    lease->watch = &item->held_until_ns;
}

struct redlock_lease *redlock_bundle_let_go(struct redlock_bundle_item *item) {
    struct redlock_lease *lease = item->lease;
    item->lease = NULL;
    lease->watch = NULL;
    atomic_store_explicit(&item->held_until_ns, 0, memory_order_release);
    return lease;
}

static void settle(struct redlock_bundle *bundle) {
    const struct redlock_plan plan = {.auto_extend = bundle->options.auto_extend,
                                      .auto_extend_max_ms = bundle->options.auto_extend_max_ms};
    const int64_t now_ns = redlock_group_now_ns(bundle->group);
    for (unsigned i = 0; i < bundle->core.count; i++) {
        redlock_driver_feed(bundle->items[i].lease,
                            &(struct redlock_event){.type = REDLOCK_EVENT_SETTLE, .now_ns = now_ns, .plan = &plan});
    }
}

static void act_on(struct redlock_bundle_item *item, redlock_items bit, const struct redlock_bundle_actions *actions) {
    int code = REDLOCK_OK;
    if ((actions->cancel & bit) && item->lease) { /* else it was refused, which is told soon */
        redlock_group_cancel(item->lease);
    }
    if (actions->end & bit) {
        code = redlock_group_release(redlock_bundle_let_go(item), NULL, NULL);
    }
    if (actions->release & bit) {
        code = redlock_group_release(redlock_bundle_let_go(item), on_released, item);
    }
    assert(code == REDLOCK_OK); /* not in a child process: every caller has checked that */
    if (actions->forget & bit) {
        redlock_group_forget(redlock_bundle_let_go(item));
    }
    if (actions->extend & bit) {
        const struct redlock_bundle *bundle = item->bundle;
        redlock_group_begin_extend(item->lease, bundle->extension, bundle->extend_ttl_ms, bundle->extend_ns,
                                   on_extended, item);
    }
}

static void act(struct redlock_bundle *bundle, const struct redlock_bundle_actions *actions) {
    for (unsigned i = 0; i < bundle->core.count; i++) {
        act_on(&bundle->items[i], REDLOCK_ITEM(i), actions);
    }
    for (unsigned i = 0; i < bundle->core.count; i++) { /* releases go first */
        if ((actions->ask | actions->wait) & REDLOCK_ITEM(i)) {
            ask(&bundle->items[i], actions->wait != 0);
        }
    }
    if (actions->settle) {
        settle(bundle);
    }
    if (actions->later) {
        wake(bundle);
    }
}

static void feed(struct redlock_bundle *bundle, struct redlock_bundle_event event, const redlock_result *result,
                 const char *reason) {
    struct redlock_bundle_actions actions;
    event.now_ns = redlock_group_now_ns(bundle->group);
    redlock_bundle_step(&bundle->core, &event, &actions);
    bundle->busy++;
    if (actions.keep) {
        redlock_result_free(bundle->kept);
        bundle->kept = result ? redlock_result_copy(result) : NULL;
    }
    act(bundle, &actions);
    tell_all(bundle, &actions, result, reason);
    bundle->busy--;
    free_if_over(bundle);
}

void redlock_bundle_feed(struct redlock_bundle *bundle, enum redlock_bundle_event_type type, int code) {
    feed(bundle, (struct redlock_bundle_event){.type = type, .code = code}, NULL, NULL);
}

static void feed_item(struct redlock_bundle_item *item, enum redlock_bundle_event_type type, int code,
                      const redlock_result *result) {
    struct redlock_bundle *bundle = item->bundle;
    const unsigned at = (unsigned)(item - bundle->items);
    feed(bundle, (struct redlock_bundle_event){.type = type, .item = at, .code = code}, result, NULL);
}

/* What becomes of them. */

static void on_acquired(const redlock_result *result, void *data) {
    struct redlock_bundle_item *item = data;
    const int code = redlock_result_code(result);
    assert(item->lease);
    item->bundle->passed_over += redlock_result_passed_over(result);
    if (code == REDLOCK_OK) {
        memcpy(item->token, redlock_handle_own_token(item->lease), item->lease->token_size + 1u);
        item->fence = item->lease->core.fence.token;
        feed_item(item, REDLOCK_BUNDLE_WON, code, result);
    } else {
        (void)redlock_bundle_let_go(item);
        feed_item(item, REDLOCK_BUNDLE_FAILED, code, result);
    }
}

static void on_extended(const redlock_result *result, void *data) {
    feed_item(data, REDLOCK_BUNDLE_EXTENDED, redlock_result_code(result), result);
}

static void on_released(const redlock_result *result, void *data) {
    feed_item(data, REDLOCK_BUNDLE_RELEASED, redlock_result_code(result), result);
}

static void on_expiring(redlock_lease *lease, int64_t remaining_ms, void *data) {
    (void)lease, (void)remaining_ms;
    tell_expiring(((struct redlock_bundle_item *)data)->bundle);
}

struct loss {
    struct redlock_bundle_item *item;
    const char *reason;
};

static void on_described(const redlock_result *result, void *data) {
    const struct loss *loss = data;
    struct redlock_bundle *bundle = loss->item->bundle;
    const struct redlock_bundle_event event = {.type = REDLOCK_BUNDLE_ITEM_LOST,
                                               .item = (unsigned)(loss->item - bundle->items)};
    feed(bundle, event, result, loss->reason);
}

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    char name[4 * REDLOCK_RESOURCE_SIZE_MAX + 1], named[REASON_SIZE];
    struct loss loss = {.item = data, .reason = named};
    redlock_text_printable(loss.item->resource, name, sizeof name);
    (void)snprintf(named, sizeof named, "'%s': %s", name, reason);
    redlock_driver_describe(lease, REDLOCK_RESULT_RELEASE, REDLOCK_ERR_LOST, on_described, &loss);
}

/* What could not be asked for; or the answer to a release. */
static void bundle_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    (void)group, (void)now_ns;
    struct redlock_bundle *bundle = (struct redlock_bundle *)requester;
    bundle->busy++;
    for (unsigned i = 0; i < bundle->core.count; i++) {
        const int code = bundle->items[i].refused;
        bundle->items[i].refused = REDLOCK_OK;
        if (code != REDLOCK_OK) {
            feed_item(&bundle->items[i], REDLOCK_BUNDLE_FAILED, code, NULL);
        }
    }
    redlock_bundle_feed(bundle, REDLOCK_BUNDLE_TIMER, REDLOCK_OK);
    bundle->busy--;
    free_if_over(bundle);
}

static void bundle_close(struct redlock_group *group, struct redlock_requester *requester) {
    (void)group;
    redlock_bundle_feed((struct redlock_bundle *)requester, REDLOCK_BUNDLE_CLOSE, REDLOCK_ERR_CLOSED);
}

const struct redlock_requester_ops redlock_bundle_ops = {
    .due = bundle_due, .close = bundle_close, .free = delete_bundle};
