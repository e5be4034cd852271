/* The public calls on a bundle: each checks its arguments and feeds an event to the bundle. */
#include "group/bundle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/planted.h"
#include "core/time.h"
#include "group/bundle_state.h"
#include "group/handle.h"
#include "group/requests.h"

_Static_assert(REDLOCK_ITEMS_MAX == REDLOCK_BUNDLE_MAX, "a set of items has a bit for each");

/* What its owner gives. */
struct wish {
    redlock_item items[REDLOCK_BUNDLE_MAX]; /* as given */
    uint8_t order[REDLOCK_BUNDLE_MAX];      /* of their resources */
    redlock_acquire_options options;
    size_t count, room; /* of them; for their resources */
};

static int read_item(struct redlock_group *group, struct wish *wish, const redlock_item *given, size_t stride,
                     size_t i) {
    redlock_item *item = &wish->items[i];
    const char *at = (const char *)given + i * stride;
    char name[sizeof "items[18446744073709551615].resource"];
    size_t key_size = 0;
    *item = (redlock_item){.size = sizeof *item};
    (void)snprintf(name, sizeof name, "items[%zu]", i);
    int code = redlock_check_options(&group->failure, name, item, sizeof *item, at);
    if (code == REDLOCK_OK && ((const redlock_item *)(const void *)at)->size != stride) {
        code = redlock_fail(&group->failure, REDLOCK_ERR_INVALID, "%s.size is not that of items[0]", name);
    }
    if (code == REDLOCK_OK) {
        (void)snprintf(name, sizeof name, "items[%zu].resource", i);
        code = redlock_group_check_resource(group, name, item->resource, &key_size);
    }
    if (code == REDLOCK_OK) {
        (void)snprintf(name, sizeof name, "items[%zu].mode", i);
        code = redlock_check_enum(&group->failure, name, (int)item->mode, REDLOCK_SHARED, "redlock_mode");
    }
    wish->room += code == REDLOCK_OK ? strlen(item->resource) + 1 : 0;
    return code;
}

/* Puts it in its place among the earlier ones. The same resource twice would wait for itself. */
static int place_item(struct redlock_group *group, struct wish *wish, size_t i) {
    size_t at = i;
    int compared = -1;
    while (at > 0 && !REDLOCK_PLANTED(BUNDLE_UNSORTED) &&
           (compared = strcmp(wish->items[i].resource, wish->items[wish->order[at - 1]].resource)) < 0) {
        wish->order[at] = wish->order[at - 1];
        at--;
    }
    wish->order[at] = (uint8_t)i;
    return at == 0 || compared != 0
               ? REDLOCK_OK
               : redlock_fail(&group->failure, REDLOCK_ERR_INVALID,
                              "items[%u] and items[%zu] are the same resource; it can stand in a bundle once",
                              wish->order[at - 1], i);
}

static int read_wish(struct redlock_group *group, const redlock_item *given, size_t count,
                     const redlock_acquire_options *options, struct wish *wish) {
    struct redlock_error_text *failure = &group->failure;
    int code = redlock_check_given(failure, "items", given != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "count", redlock_check_count(count), 1, REDLOCK_ITEMS_MAX, "");
    }
    wish->count = count;
    wish->room = 0;
    for (size_t i = 0; code == REDLOCK_OK && i < count; i++) {
        code = read_item(group, wish, given, given->size, i);
        code = code == REDLOCK_OK ? place_item(group, wish, i) : code;
    }
    if (code == REDLOCK_OK) {
        code = redlock_group_check_options(group, options, &wish->options);
    }
    if (code == REDLOCK_OK && wish->options.mode != REDLOCK_EXCLUSIVE) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID, "mode is SHARED; each item has its own");
    }
    if (code == REDLOCK_OK && wish->options.permits > 0) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID, "permits are of one resource: redlock_acquire()");
    }
    return redlock_group_admit(group, code);
}

static struct redlock_bundle *bundle_new(struct redlock_group *group, const struct wish *wish, int64_t wait_until_ns) {
    const size_t size = sizeof(struct redlock_bundle) + wish->count * sizeof(struct redlock_bundle_item);
    struct redlock_bundle *bundle =
        redlock_requester_new(group, REDLOCK_REQUESTER_BUNDLE, size + wish->room, size + wish->room);
    if (!bundle) {
        return NULL;
    }
    bundle->group = group;
    bundle->options = wish->options;
    redlock_bundle_init(&bundle->core, (unsigned)wish->count, wait_until_ns, wish->options.lock_delay_ms > 0);
    char *room = (char *)(bundle->items + wish->count);
    for (size_t i = 0; i < wish->count; i++) {
        const redlock_item *given = &wish->items[wish->order[i]];
        const size_t resource_size = strlen(given->resource) + 1;
        bundle->items[i].bundle = bundle;
        bundle->items[i].resource = memcpy(room, given->resource, resource_size);
        bundle->items[i].mode = given->mode;
        bundle->items[i].given = wish->order[i];
        room += resource_size;
    }
    return bundle;
}

int redlock_group_acquire_all(struct redlock_group *group, const redlock_item *items, size_t count,
                              const redlock_acquire_options *options, redlock_request **request, redlock_callback cb,
                              void *data) {
    struct wish wish;
    int code = redlock_group_refuse(group, redlock_check_given(&group->failure, "cb", cb != NULL));
    if (code == REDLOCK_OK) {
        code = read_wish(group, items, count, options, &wish);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    const int64_t now_ns = redlock_group_now_ns(group), wait_ms = wish.options.wait_timeout_ms;
    const int64_t until_ns = wait_ms == 0                      ? 0
                             : wait_ms == REDLOCK_WAIT_FOREVER ? REDLOCK_NEVER_NS
                                                               : redlock_after_ms(now_ns, wait_ms);
    struct redlock_bundle *bundle = bundle_new(group, &wish, until_ns);
    if (!bundle) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    bundle->cb = cb;
    bundle->data = data;
    bundle->arrival_us = redlock_line_arrive(&group->line, now_ns);
    redlock_bundle_feed(bundle, REDLOCK_BUNDLE_BEGIN, REDLOCK_OK);
    if (request) {
        *request = (redlock_request *)bundle;
    }
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

/* No lease of it is known to anybody. */
static int give_back(struct redlock_bundle *bundle, int code) {
    for (unsigned i = 0; i < bundle->core.count; i++) {
        if (bundle->items[i].lease) {
            redlock_group_forget(redlock_bundle_let_go(&bundle->items[i]));
        }
    }
    redlock_bundle_ops.free(bundle->group, &bundle->requester);
    return code;
}

int redlock_group_adopt_all(struct redlock_group *group, const redlock_item *items, size_t count,
                            const redlock_acquire_options *options, redlock_lease **adopted) {
    struct wish wish;
    int code = redlock_group_refuse(group, redlock_check_given(&group->failure, "lease", adopted != NULL));
    if (code == REDLOCK_OK) {
        code = read_wish(group, items, count, options, &wish);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    struct redlock_bundle *bundle = bundle_new(group, &wish, 0);
    if (!bundle) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    for (unsigned i = 0; i < bundle->core.count; i++) {
        struct redlock_bundle_item *item = &bundle->items[i];
        redlock_acquire_options of_item = bundle->options;
        redlock_lease *lease;
        of_item.mode = item->mode;
        redlock_bundle_listen(item, &of_item);
        code = redlock_group_adopt(group, item->resource, wish.items[item->given].token, &of_item, &lease);
        if (code != REDLOCK_OK) {
            return give_back(bundle, code);
        }
        redlock_bundle_watch(item, lease);
        strcpy(item->token, redlock_handle_own_token(lease));
    }
    redlock_bundle_feed(bundle, REDLOCK_BUNDLE_ADOPT, REDLOCK_OK);
    *adopted = (redlock_lease *)bundle;
    return REDLOCK_OK;
}

void redlock_bundle_cancel(struct redlock_bundle *bundle) {
    struct redlock_group *group = bundle->group;
    if (redlock_group_check_open(group) == REDLOCK_OK) {
        redlock_bundle_feed(bundle, REDLOCK_BUNDLE_CANCEL, REDLOCK_ERR_CANCELLED);
        redlock_group_rearm(group);
    }
}

/* The handle of a bundle, which ends with the release. */
static int check_handle(const struct redlock_bundle *bundle) {
    struct redlock_group *group = bundle->group;
    return redlock_bundle_is_out(&bundle->core)
               ? REDLOCK_OK
               : redlock_group_refuse(group, redlock_fail(&group->failure, REDLOCK_ERR_INVALID,
                                                          "lease was released or forgotten before"));
}

static int extend(struct redlock_bundle *bundle, enum redlock_event_type extension, int64_t ttl_ms, redlock_callback cb,
                  void *data) {
    const int64_t now_ns = redlock_group_now_ns(bundle->group);
    int code = check_handle(bundle);
    if (code == REDLOCK_OK && bundle->core.state == REDLOCK_BUNDLE_LOST) {
        code = redlock_group_check_open(bundle->group);
        code = code == REDLOCK_OK ? REDLOCK_ERR_LOST : code;
    }
    for (unsigned i = 0; code == REDLOCK_OK && i < bundle->core.count; i++) {
        code = redlock_group_check_extend(bundle->items[i].lease, ttl_ms, now_ns);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    if (bundle->core.extended != 0) {
        return REDLOCK_ERR_BUSY;
    }
    bundle->extend_cb = cb;
    bundle->extend_data = data;
    bundle->extension = extension;
    bundle->extend_ttl_ms = ttl_ms;
    bundle->extend_ns = now_ns;
    redlock_bundle_feed(bundle, REDLOCK_BUNDLE_EXTEND, REDLOCK_OK);
    redlock_group_rearm(bundle->group);
    return REDLOCK_OK;
}

int redlock_bundle_extend(struct redlock_bundle *bundle, int64_t ttl_ms, redlock_callback cb, void *data) {
    return extend(bundle, REDLOCK_EVENT_EXTEND, ttl_ms, cb, data);
}

int redlock_bundle_downgrade(struct redlock_bundle *bundle, redlock_callback cb, void *data) {
    /* All have the same. */
    const struct redlock_lease *lease = bundle->items[0].lease;
    const int64_t ttl_ms = lease ? lease->core.plan.ttl_ms : bundle->options.ttl_ms;
    return extend(bundle, REDLOCK_EVENT_DOWNGRADE, ttl_ms, cb, data);
}

int redlock_bundle_release(struct redlock_bundle *bundle, redlock_callback cb, void *data) {
    struct redlock_group *group = bundle->group;
    int code = check_handle(bundle);
    if (code == REDLOCK_OK && redlock_group_check_open(group) == REDLOCK_ERR_FORKED) {
        code = REDLOCK_ERR_FORKED;
    }
    if (code == REDLOCK_OK) {
        bundle->cb = cb;
        bundle->data = data;
        redlock_bundle_feed(bundle, REDLOCK_BUNDLE_RELEASE, REDLOCK_OK);
        redlock_group_rearm(group);
    }
    return code;
}

void redlock_bundle_forget(struct redlock_bundle *bundle) {
    struct redlock_group *group = bundle->group;
    if (redlock_bundle_is_out(&bundle->core) && redlock_group_check_open(group) != REDLOCK_ERR_FORKED) {
        redlock_bundle_feed(bundle, REDLOCK_BUNDLE_FORGET, REDLOCK_OK);
        redlock_group_rearm(group);
    }
}

bool redlock_bundle_tells_owner(const struct redlock_bundle *bundle) {
    return redlock_bundle_is_out(&bundle->core) && (bundle->options.on_lost || bundle->options.on_expiring);
}

static const struct redlock_bundle_item *find(const struct redlock_bundle *bundle, size_t given) {
    for (unsigned i = 0; i < bundle->core.count; i++) {
        if (bundle->items[i].given == given) {
            return &bundle->items[i];
        }
    }
    return NULL;
}

size_t redlock_bundle_count(const struct redlock_bundle *bundle) {
    return bundle->core.count;
}

const char *redlock_bundle_resource(const struct redlock_bundle *bundle, size_t item) {
    const struct redlock_bundle_item *found = find(bundle, item);
    return found ? found->resource : NULL;
}

const char *redlock_bundle_token(const struct redlock_bundle *bundle, size_t item) {
    const struct redlock_bundle_item *found = find(bundle, item);
    return found ? found->token : NULL;
}

uint64_t redlock_bundle_fence(const struct redlock_bundle *bundle, size_t item) {
    const struct redlock_bundle_item *found = find(bundle, item);
    return found ? found->fence : 0;
}
