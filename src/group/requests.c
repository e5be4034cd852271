/* The public calls on locks: each checks its arguments and feeds an event to its lease. */
#include "group/requests.h"

#include <assert.h>
#include <string.h>

#include "base/holder.h"
#include "core/time.h"
#include "group/driver.h"
#include "group/guards.h"
#include "group/permits.h"
#include "group/sending.h"
#include "group/tell.h"
#include "group/waiting.h"

#define LEASES_MAX (1u << 20)

static const redlock_acquire_options defaults = {.size = sizeof defaults,
                                                 .ttl_ms = 10000,
                                                 .wait_timeout_ms = 0,
                                                 .retry_delay_min_ms = 50,
                                                 .retry_delay_max_ms = 200,
                                                 .heal = true};

void redlock_acquire_options_default(redlock_acquire_options *options) {
    *options = defaults;
}

static int check_times(struct redlock_error_text *failure, const redlock_acquire_options *options) {
    int code = redlock_check_range(failure, "ttl_ms", options->ttl_ms, 1, REDLOCK_TTL_MS_MAX, "");
    if (code == REDLOCK_OK && options->wait_timeout_ms != REDLOCK_WAIT_FOREVER) {
        code = redlock_check_range(failure, "wait_timeout_ms", options->wait_timeout_ms, 0, INT64_MAX,
                                   ", or REDLOCK_WAIT_FOREVER");
    }
    if (code == REDLOCK_OK) {
        code =
            redlock_check_range(failure, "retry_delay_min_ms", options->retry_delay_min_ms, 0, REDLOCK_TTL_MS_MAX, "");
    }
    if (code == REDLOCK_OK) {
        const bool from_min = options->retry_delay_min_ms > 1;
        code = redlock_check_range(failure, "retry_delay_max_ms", options->retry_delay_max_ms,
                                   from_min ? options->retry_delay_min_ms : 1, REDLOCK_TTL_MS_MAX,
                                   from_min ? " (no less than retry_delay_min_ms)" : "");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "auto_extend_max_ms", options->auto_extend_max_ms, 0, INT64_MAX,
                                   " (0: no cap)");
    }
    return code;
}

static int check_expiring(struct redlock_error_text *failure, const redlock_acquire_options *options) {
    const int code = redlock_check_range(failure, "expiring_ms", options->expiring_ms, 0, options->ttl_ms / 2,
                                         " (half of ttl_ms; 0: never)");
    if (code == REDLOCK_OK && options->expiring_ms == 1) {
        /* redlock_lease_validity_ms() is 0 then. */
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "expiring_ms is 1, when no whole millisecond is left to tell of; it must be 2 or more, or "
                            "0 (never)");
    }
    if (code == REDLOCK_OK && options->expiring_ms == 0 && options->on_expiring) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "on_expiring needs expiring_ms: how long before the deadline");
    }
    return code;
}

static int check_options(struct redlock_error_text *failure, const redlock_acquire_options *options) {
    int code = check_times(failure, options);
    if (code == REDLOCK_OK) {
        code = redlock_check_enum(failure, "order", (int)options->order, REDLOCK_ORDER_NONE, "redlock_order");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_enum(failure, "mode", (int)options->mode, REDLOCK_SHARED, "redlock_mode");
    }
    if (code == REDLOCK_OK && (options->permits | options->limit)) {
        code = redlock_permits_check(failure, options);
    }
    if (code == REDLOCK_OK && options->cancel) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "cancel is only for redlock_client_acquire() and redlock_client_with()");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "lock_delay_ms", options->lock_delay_ms, 0,
                                   REDLOCK_TTL_MS_MAX - options->ttl_ms, " with this ttl_ms");
    }
    return code == REDLOCK_OK ? check_expiring(failure, options) : code;
}

/* No lock may live longer than a quarantine: docs/protocols.md, "Restart guard". */
static int check_ttl_max(struct redlock_group *group, int64_t ttl_ms, int64_t lock_delay_ms) {
    return redlock_check_range(&group->failure, lock_delay_ms > 0 ? "ttl_ms + lock_delay_ms" : "ttl_ms",
                               ttl_ms + lock_delay_ms, 1, redlock_guards_ttl_max_ms(group),
                               " (ttl_max_ms of the guards)");
}

static struct redlock_plan plan_of(const struct redlock_group *group, const redlock_acquire_options *options) {
    return (struct redlock_plan){.ttl_ms = (int32_t)options->ttl_ms,
                                 .lock_delay_ms = (int32_t)options->lock_delay_ms,
                                 .heal = options->heal,
                                 .fencing = options->fencing,
                                 .slots = options->permits > 0,
                                 .wait_timeout_ms = options->wait_timeout_ms,
                                 .retry_delay_min_ms = (int32_t)options->retry_delay_min_ms,
                                 .retry_delay_max_ms = (int32_t)options->retry_delay_max_ms,
                                 .expiring_ms = (int32_t)options->expiring_ms,
                                 .node_timeout_ms = (uint16_t)(group->node_timeout_ns / REDLOCK_NS_PER_MS),
                                 .auto_extend_max_ms = options->auto_extend_max_ms,
                                 .auto_extend = options->auto_extend};
}

/* Those that count; in `room` if neither the caller nor we have them as a whole. */
static int read_options(struct redlock_error_text *failure, const redlock_acquire_options *given,
                        redlock_acquire_options *room, const redlock_acquire_options **options) {
    *options = given ? given : &defaults; /* the defaults need no check */
    if (given && given->size != sizeof *given) {
        *room = defaults;
        *options = room;
        const int code = redlock_check_options(failure, "redlock_acquire_options", room, sizeof *room, given);
        if (code != REDLOCK_OK) {
            return code;
        }
    }
    return given ? check_options(failure, *options) : REDLOCK_OK;
}

static int choose_options(struct redlock_group *group, const redlock_acquire_options *given,
                          redlock_acquire_options *room, const redlock_acquire_options **options) {
    const int code = read_options(&group->failure, given, room, options);
    return code == REDLOCK_OK ? check_ttl_max(group, (*options)->ttl_ms, (*options)->lock_delay_ms) : code;
}

int redlock_group_check_options(struct redlock_group *group, const redlock_acquire_options *given,
                                redlock_acquire_options *options) {
    const redlock_acquire_options *chosen;
    redlock_acquire_options room;
    const int code = choose_options(group, given, &room, &chosen);
    *options = *chosen;
    return code;
}

/* What acquire and adopt share: all checks, and the memory. A token_size of 0 is for an acquire. */
static int lease_create(struct redlock_group *group, const char *resource, size_t token_size,
                        const redlock_acquire_options *given, redlock_acquire_options *room,
                        const redlock_acquire_options **chosen, struct redlock_lease **lease) {
    size_t key_size;
    int code = redlock_group_check_resource(group, "resource", resource, &key_size);
    if (code == REDLOCK_OK) {
        code = choose_options(group, given, room, chosen);
    }
    if (code == REDLOCK_OK && ((*chosen)->slots || token_size != 0)) {
        code = redlock_permits_check_slots(&group->failure, *chosen, token_size != 0);
    }
    code = redlock_group_admit(group, code);
    if (code != REDLOCK_OK) {
        return code;
    }
    if (group->requesters[REDLOCK_REQUESTER_LEASE].count >= LEASES_MAX) {
        return REDLOCK_ERR_LIMIT;
    }
    const redlock_acquire_options *options = *chosen;
    if (options->permits > 0 && key_size > REDLOCK_RESOURCE_SIZE_MAX - 1 - REDLOCK_SLOT_DIGITS) {
        return redlock_group_refuse(group, redlock_fail(&group->failure, REDLOCK_ERR_INVALID,
                                                        "resource is too long beside the numbers of its slots"));
    }
    const bool queues = token_size == 0 && options->permits == 0 && options->wait_timeout_ms != 0 &&
                        options->order == REDLOCK_ORDER_FAIR;
    if (token_size == 0) {
        /* 1: `s` or `p` behind the digits. */
        token_size = REDLOCK_TOKEN_DIGITS + (queues ? REDLOCK_TICKET_DIGITS : 0u) + 1 + group->holder_size;
    }
    *lease = redlock_handle_new(group, resource, key_size, token_size, queues, options);
    if (!*lease) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    (*lease)->lost_cb = options->on_lost;
    (*lease)->lost_data = options->lost_data;
    uint32_t seed = 0; /* the delays only have to differ between clients */
    (void)group->env.random(group->env.ctx, &seed, sizeof seed);
    redlock_lease_init(&(*lease)->core, group->node_count, group->quorum, seed);
    (*lease)->core.fence.client = group->fence_client;
    if (options->mode == REDLOCK_SHARED) {
        (*lease)->core.shared = (*lease)->core.fence.reads = true;
    }
    return REDLOCK_OK;
}

/* An acquire of a lock. */
enum acquire_of { PLAIN, ELECTION, ITEM, GATE };

static int ask_gate(struct redlock_lease *lease, struct redlock_lease **gate);

/* `arrival_us`: when it came, of an item of a bundle or a gate; 0: now. */
static int acquire(struct redlock_group *group, const char *resource, const redlock_acquire_options *given,
                   redlock_request **request, redlock_callback cb, void *data, enum acquire_of what,
                   uint64_t arrival_us) {
    const redlock_acquire_options *options;
    redlock_acquire_options room;
    struct redlock_lease *lease;
    int code = redlock_check_given(&group->failure, "cb", cb != NULL);
    if (code != REDLOCK_OK) {
        return redlock_group_refuse(group, code);
    }
    code = lease_create(group, resource, 0, given, &room, &options, &lease);
    if (code != REDLOCK_OK) {
        return code;
    }
    /* R1: read the clock before the first byte is sent. */
    const int64_t now_ns = redlock_group_now_ns(group);
    if (lease->waiting && !redlock_waiting_prepare(lease, arrival_us, now_ns)) {
        redlock_driver_free(lease);
        return REDLOCK_ERR_NO_MEMORY;
    }
    if (lease->target->has_slots) {
        redlock_permits_begin(lease, redlock_permits_in_order(options), now_ns, ask_gate);
    } else if (what == GATE) {
        lease->waiting->is_gate = true;
    }
    code = redlock_sending_draw_token(lease, now_ns, false);
    if (code != REDLOCK_OK) {
        redlock_driver_free(lease);
        return code;
    }
    lease->cb = cb;
    lease->data = data;
    group->statistics.acquires++;
    group->statistics.requests_pending++;
    lease->target->announced = what == ELECTION;
    redlock_tell_started(lease, now_ns);
    struct redlock_plan plan = plan_of(group, options);
    plan.unsettled = what == ITEM;
    if (plan.slots) {
        plan.at_no_gate = redlock_permits_in_order(options);
    }
    if (group->guards && !redlock_group_all_first_tries_done(group)) {
        /* A guard lets no node vote before the node has said who it is. */
        const int64_t until_ns = redlock_guards_park_until_ns(group, plan.wait_timeout_ms, now_ns);
        redlock_driver_feed(
            lease,
            &(struct redlock_event){.type = REDLOCK_EVENT_PARK, .now_ns = now_ns, .until_ns = until_ns, .plan = &plan});
    } else {
        redlock_driver_begin(lease, &plan, now_ns);
    }
    if (request) {
        *request = (redlock_request *)lease;
    }
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

int redlock_group_acquire(struct redlock_group *group, const char *resource, const redlock_acquire_options *options,
                          redlock_request **request, redlock_callback cb, void *data) {
    return acquire(group, resource, options, request, cb, data, PLAIN, 0);
}

/* In line under the ticket of the lease. */
static int ask_gate(struct redlock_lease *lease, struct redlock_lease **gate) {
    redlock_request *request;
    const redlock_acquire_options options = redlock_permits_gate_options(lease);
    const int code = acquire(lease->group, redlock_handle_resource(lease), &options, &request, redlock_permits_at_gate,
                             lease, GATE, redlock_handle_permits(lease)->arrival_us);
    *gate = code == REDLOCK_OK ? (struct redlock_lease *)request : NULL;
    return code;
}

int redlock_group_campaign(struct redlock_group *group, const char *resource, const redlock_acquire_options *options,
                           redlock_request **request, redlock_callback cb, void *data) {
    return acquire(group, resource, options, request, cb, data, ELECTION, 0);
}

int redlock_group_acquire_item(struct redlock_group *group, const char *resource,
                               const redlock_acquire_options *options, uint64_t arrival_us, redlock_request **request,
                               redlock_callback cb, void *data) {
    return acquire(group, resource, options, request, cb, data, ITEM, arrival_us);
}

/* The attempt was won, but its caller does not want the lease any more or cannot have it. It ends
 * with `code` and is released. */
static void take_back(struct redlock_lease *lease, int code) {
    assert(code != REDLOCK_OK && lease->acquired_code == REDLOCK_OK);
    lease->acquired_code = (int8_t)code;
    redlock_handle_become(lease, REDLOCK_LIFE_OVER);
    redlock_driver_feed(
        lease, &(struct redlock_event){.type = REDLOCK_EVENT_RELEASE, .now_ns = redlock_group_now_ns(lease->group)});
}

static void give_up(struct redlock_lease *lease, int code) {
    assert(code == REDLOCK_ERR_CANCELLED || code == REDLOCK_ERR_CLOSED);
    if (lease->core.state < REDLOCK_LEASE_ADOPTED) {
        redlock_driver_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_CANCEL,
                                                           .now_ns = redlock_group_now_ns(lease->group),
                                                           .code = code});
    } else if ((lease->callbacks & REDLOCK_CALLBACK_ACQUIRED) && lease->acquired_code == REDLOCK_OK) {
        take_back(lease, code);
    }
}

void redlock_group_cancel(struct redlock_lease *lease) {
    if (redlock_group_check_open(lease->group) != REDLOCK_OK) {
        return; /* the close has cancelled it already */
    }
    give_up(lease, REDLOCK_ERR_CANCELLED);
    redlock_group_rearm(lease->group);
}

int redlock_group_adopt(struct redlock_group *group, const char *resource, const char *token,
                        const redlock_acquire_options *given, redlock_lease **adopted) {
    struct redlock_error_text *failure = &group->failure;
    const size_t token_size = token ? strlen(token) : 0;
    const redlock_acquire_options *options;
    redlock_acquire_options room;
    struct redlock_lease *lease;
    int code = redlock_check_given(failure, "lease", adopted != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_given(failure, "token", token != NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_size(failure, "token", token_size, 1, REDLOCK_TOKEN_SIZE_MAX, "");
    }
    if (code != REDLOCK_OK) {
        return redlock_group_refuse(group, code);
    }
    code = lease_create(group, resource, token_size, given, &room, &options, &lease);
    if (code != REDLOCK_OK) {
        return code;
    }
    char *own = memcpy(redlock_handle_own_token(lease), token, token_size + 1);
    lease->token_size = (uint8_t)token_size;
    lease->core.shared |= redlock_holder_reads(own, token_size);
    lease->by_try = !lease->core.shared && redlock_holder_is_try(own, token_size);
    if (lease->by_try) {
        own[0] |= REDLOCK_TRY_MARK; /* it may have been read from a node */
    }
    if (lease->target->has_slots) {
        redlock_permits_adopt(lease, options->slots);
    }
    lease->ttl_sent_max_ms = (int32_t)(options->ttl_ms + options->lock_delay_ms);
    const struct redlock_plan plan = plan_of(group, options);
    redlock_driver_feed(lease, &(struct redlock_event){
                                   .type = REDLOCK_EVENT_ADOPT, .now_ns = redlock_group_now_ns(group), .plan = &plan});
    redlock_handle_become(lease, REDLOCK_LIFE_OUT);
    redlock_tell_adopted(lease);
    *adopted = lease;
    return REDLOCK_OK;
}

/* The handle of a lease, which ends with the release. */
static int check_lease(const struct redlock_lease *lease) {
    struct redlock_group *group = lease->group;
    return lease->life != REDLOCK_LIFE_OUT
               ? redlock_group_refuse(group, redlock_fail(&group->failure, REDLOCK_ERR_INVALID,
                                                          "lease was released or forgotten before"))
               : REDLOCK_OK;
}

static int check_ttl(const struct redlock_lease *lease, int64_t ttl_ms) {
    struct redlock_group *group = lease->group;
    const int64_t lock_delay_ms = lease->core.plan.lock_delay_ms;
    const int64_t least_ms = 2 * (int64_t)lease->core.plan.expiring_ms;
    int code = redlock_check_range(&group->failure, "ttl_ms", ttl_ms, least_ms > 0 ? least_ms : 1,
                                   REDLOCK_TTL_MS_MAX - lock_delay_ms,
                                   least_ms > 0        ? " (no less than twice the lease's expiring_ms)"
                                   : lock_delay_ms > 0 ? " with this lock_delay_ms"
                                                       : "");
    if (code == REDLOCK_OK) {
        code = check_ttl_max(group, ttl_ms, lock_delay_ms);
    }
    return redlock_group_admit(group, code);
}

int redlock_group_check_extend(const struct redlock_lease *lease, int64_t ttl_ms, int64_t now_ns) {
    const int code = check_ttl(lease, ttl_ms);
    if (code != REDLOCK_OK) {
        return code;
    }
    return lease->extend_pending ? REDLOCK_ERR_BUSY : redlock_lease_extend_check(&lease->core, now_ns);
}

void redlock_group_begin_extend(struct redlock_lease *lease, enum redlock_event_type type, int64_t ttl_ms,
                                int64_t now_ns, redlock_callback cb, void *data) {
    assert(!lease->extend_pending);
    lease->extend_cb = cb;
    lease->extend_data = data;
    lease->extend_ttl_ms = (int32_t)ttl_ms;
    lease->extend_pending = true;
    if (type == REDLOCK_EVENT_DOWNGRADE) {
        lease->by_try = false;
    }
    lease->group->statistics.requests_pending++;
    redlock_driver_feed(lease, &(struct redlock_event){.type = type, .now_ns = now_ns, .ttl_ms = ttl_ms});
    redlock_group_rearm(lease->group);
}

static int extend(struct redlock_lease *lease, enum redlock_event_type type, int64_t ttl_ms, redlock_callback cb,
                  void *data) {
    const int64_t now_ns = redlock_group_now_ns(lease->group);
    const int code = redlock_group_check_extend(lease, ttl_ms, now_ns);
    if (code == REDLOCK_OK) {
        redlock_group_begin_extend(lease, type, ttl_ms, now_ns, cb, data);
    }
    return code;
}

int redlock_group_extend(struct redlock_lease *lease, int64_t ttl_ms, redlock_callback cb, void *data) {
    const int code = check_lease(lease);
    return code == REDLOCK_OK ? extend(lease, REDLOCK_EVENT_EXTEND, ttl_ms, cb, data) : code;
}

int redlock_group_downgrade(struct redlock_lease *lease, redlock_callback cb, void *data) {
    const int code = check_lease(lease);
    return code == REDLOCK_OK ? extend(lease, REDLOCK_EVENT_DOWNGRADE, lease->core.plan.ttl_ms, cb, data) : code;
}

int redlock_group_release(struct redlock_lease *lease, redlock_callback cb, void *data) {
    const int code = check_lease(lease);
    if (code != REDLOCK_OK) {
        return code;
    }
    struct redlock_group *group = lease->group;
    if (redlock_group_check_open(group) == REDLOCK_ERR_FORKED) {
        return REDLOCK_ERR_FORKED;
    }
    redlock_handle_become(lease, REDLOCK_LIFE_RELEASING);
    lease->cb = cb;
    lease->data = data;
    group->statistics.requests_pending++;
    /* Those who compete for an election wait in line: nobody else needs a chance. */
    redlock_driver_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_RELEASE,
                                                       .now_ns = redlock_group_now_ns(group),
                                                       .may_leave_free = !lease->target->announced && !group->closing});
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

void redlock_group_forget(struct redlock_lease *lease) {
    if (lease->life != REDLOCK_LIFE_OUT || redlock_group_check_open(lease->group) == REDLOCK_ERR_FORKED) {
        return;
    }
    struct redlock_group *group = lease->group;
    redlock_driver_retire(lease);
    redlock_group_rearm(group);
}

/* The group closes: a pending acquire gets CLOSED; a lease is released, and its handle ends. */
static void lease_close(struct redlock_group *group, struct redlock_requester *requester) {
    assert(group->closing);
    struct redlock_lease *lease = (struct redlock_lease *)requester;
    if (redlock_handle_is_forgotten(lease)) {
        return; /* until the end, its token must be known when a push comes */
    }
    give_up(lease, REDLOCK_ERR_CLOSED);
    if (lease->life != REDLOCK_LIFE_OUT) {
        return;
    }
    redlock_handle_become(lease, REDLOCK_LIFE_CLOSING);
    redlock_driver_feed(
        lease, &(struct redlock_event){.type = REDLOCK_EVENT_RELEASE, .now_ns = redlock_group_now_ns(lease->group)});
    if (lease->callbacks & REDLOCK_CALLBACK_EXTENDED) {
        lease->extended_code = REDLOCK_ERR_CLOSED;
    }
}

static void lease_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    (void)group;
    redlock_driver_due((struct redlock_lease *)requester, now_ns);
}

static void lease_free(struct redlock_group *group, struct redlock_requester *requester) {
    (void)group;
    redlock_driver_free((struct redlock_lease *)requester);
}

const struct redlock_requester_ops redlock_lease_ops = {.due = lease_due, .close = lease_close, .free = lease_free};
