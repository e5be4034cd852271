/* The calls of the blocking client. Each makes one request to the manager on the loop thread. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "blocking/client.h"
#include "core/time.h"
#include "group/calls.h"
#include "group/requests.h"
#include "loop/loop.h"
#include "manager/manager_state.h"

void redlock_client_acquire_options_default(redlock_client_acquire_options *options) {
    *options = (redlock_client_acquire_options){.size = sizeof *options};
    redlock_acquire_options_default(&options->lock);
}

/* Ends the reading of the options of a call that somebody may cancel: `code` says whether they are
 * good so far. */
static int begin_cancellable(redlock_client *client, struct redlock_call *call, const redlock_cancel *cancel, int code,
                             struct redlock_error_text *failure) {
    if (code == REDLOCK_OK && cancel && cancel->client != client) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID, "cancel is of another client");
    }
    if (code == REDLOCK_OK) {
        call->cancellable = redlock_cancellable_of(cancel);
        code = redlock_cancellable_is_cancelled(&call->cancellable) ? REDLOCK_ERR_CANCELLED : REDLOCK_OK;
    }
    return code == REDLOCK_OK ? code : redlock_call_refuse(call, code, failure->text);
}

struct acquire_call {
    struct redlock_call call; /* first member */
    redlock_acquire_options lock;
    bool several;
    const redlock_item *items; /* of several */
    size_t count;
    redlock_request *request;
};

static int acquire_begins(struct redlock_call *call) {
    struct acquire_call *acquire = (struct acquire_call *)call;
    redlock_manager *manager = redlock_worker_manager(call->worker);
    assert(!acquire->request && !acquire->lock.cancel);
    return acquire->several ? redlock_acquire_all(manager, acquire->items, acquire->count, &acquire->lock,
                                                  &acquire->request, redlock_worker_answer, call)
                            : redlock_acquire(manager, call->resource, &acquire->lock, &acquire->request,
                                              redlock_worker_answer, call);
}

static void stop_acquire(struct redlock_call *call) {
    redlock_request *request = ((struct acquire_call *)call)->request;
    assert(request);
    redlock_request_cancel(request);
}

static int64_t deadline_after(int64_t now_ns, int64_t wait_ms) {
    return wait_ms == REDLOCK_WAIT_FOREVER ? REDLOCK_NEVER_NS : redlock_after_ms(now_ns, wait_ms);
}

/* Another thread of the same owner may be acquiring or releasing. We wait for it as long as this
 * call may wait, but at least as long as one try may take: its lock would be ours too. */
static int acquire_as_holder(redlock_client *client, struct acquire_call *acquire, uint64_t owner) {
    struct redlock_reentrant *table = &client->reentrant;
    struct redlock_call *call = &acquire->call;
    struct redlock_hold *hold;
    const int64_t begun_ns = redlock_loop_now_ns(NULL), wait_ms = acquire->lock.wait_timeout_ms;
    const int64_t try_ms = client->try_ms;
    const int64_t share_ms = wait_ms == REDLOCK_WAIT_FOREVER || wait_ms > try_ms ? wait_ms : try_ms;
    int code = redlock_reentrant_enter(table, call->resource, redlock_hold_owner_of(owner),
                                       acquire->lock.mode == REDLOCK_SHARED, deadline_after(begun_ns, share_ms),
                                       &call->cancellable, &hold, &call->acquired);
    if (code != REDLOCK_OK) {
        return redlock_call_refuse(call, code, "");
    }
    if (!hold) {
        assert(call->acquired); /* it shares the lease */
        return code;
    }
    if (wait_ms > 0) {
        const int64_t waited_ms = (redlock_loop_now_ns(NULL) - begun_ns) / REDLOCK_NS_PER_MS;
        acquire->lock.wait_timeout_ms = wait_ms > waited_ms ? wait_ms - waited_ms : 0;
    }
    code = redlock_worker_perform(redlock_client_worker(client, call->resource), call);
    redlock_reentrant_acquire_done(table, hold, call->acquired);
    return code;
}

/* Reads the options into the call. */
static int read_options(redlock_client *client, struct acquire_call *acquire,
                        const redlock_client_acquire_options *options, redlock_client_acquire_options *asked) {
    struct redlock_error_text failure = redlock_call_failure();
    redlock_client_acquire_options_default(asked);
    int code = redlock_check_options(&failure, "redlock_client_acquire_options", asked, sizeof *asked, options);
    if (code == REDLOCK_OK && asked->reentrant && asked->lock.permits > 0) {
        code = redlock_fail(&failure, REDLOCK_ERR_INVALID,
                            "permits are not for a reentrant lease: who asks again wants more");
    }
    acquire->lock = asked->lock;
    acquire->lock.cancel = NULL;
    acquire->call.tells = asked->lock.on_lost || asked->lock.on_expiring;
    return begin_cancellable(client, &acquire->call, asked->lock.cancel, code, &failure);
}

static int acquire(redlock_client *client, struct acquire_call *acquire, const char *resource,
                   const redlock_client_acquire_options *options, redlock_lease **lease) {
    redlock_client_acquire_options asked;
    int cancel_state;
    if (!lease) {
        return redlock_call_refuse(&acquire->call, REDLOCK_ERR_INVALID, "lease is NULL");
    }
    *lease = NULL;
    if (!acquire->several && !resource) {
        return redlock_call_refuse(&acquire->call, REDLOCK_ERR_INVALID, "resource is NULL");
    }
    acquire->call.stop = stop_acquire;
    int code = read_options(client, acquire, options, &asked);
    if (code == REDLOCK_OK && acquire->several && asked.reentrant) {
        code = redlock_call_refuse(&acquire->call, REDLOCK_ERR_INVALID, "a reentrant lease is of one resource");
    }
    if (code == REDLOCK_OK) {
        code = redlock_client_enter(client, &acquire->call, &cancel_state);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    code = asked.reentrant
               ? acquire_as_holder(client, acquire, asked.owner)
               : redlock_worker_perform(redlock_client_worker(client, acquire->call.resource), &acquire->call);
    redlock_client_exit(client, cancel_state);
    assert((code == REDLOCK_OK) == (acquire->call.acquired != NULL));
    *lease = acquire->call.acquired;
    return code;
}

int redlock_client_acquire(redlock_client *client, const char *resource, const redlock_client_acquire_options *options,
                           redlock_lease **lease, redlock_result **result) {
    struct acquire_call call = {.call = redlock_call_of(acquire_begins, REDLOCK_RESULT_ACQUIRE, resource, result)};
    return acquire(client, &call, resource, options, lease);
}

/* NULL if there is none: then the manager says what is wrong. */
static const char *first_resource(const redlock_item *items, size_t count) {
    return items && count > 0 && items->size >= offsetof(redlock_item, mode) ? items->resource : NULL;
}

int redlock_client_acquire_all(redlock_client *client, const redlock_item *items, size_t count,
                               const redlock_client_acquire_options *options, redlock_lease **lease,
                               redlock_result **result) {
    const char *resource = first_resource(items, count);
    struct acquire_call call = {.call = redlock_call_of(acquire_begins, REDLOCK_RESULT_ACQUIRE, resource, result),
                                .several = true,
                                .items = items,
                                .count = count};
    return acquire(client, &call, resource, options, lease);
}

static int refuse_null(struct redlock_call *call) {
    return redlock_call_refuse(call, REDLOCK_ERR_INVALID, "lease is NULL");
}

/* A call whose data is a lease. */
static struct redlock_call lease_call(int (*begin)(struct redlock_call *call), enum redlock_result_of of,
                                      redlock_lease *lease, redlock_result **result) {
    struct redlock_call call = redlock_call_of(begin, of, lease ? redlock_lease_resource(lease) : NULL, result);
    call.data = lease;
    return call;
}

struct extend_call {
    struct redlock_call call; /* first member */
    int64_t ttl_ms;
};

static int extend_begins(struct redlock_call *call) {
    assert(call->data);
    return redlock_extend(call->data, ((struct extend_call *)call)->ttl_ms, redlock_worker_answer, call);
}

int redlock_client_extend(redlock_client *client, redlock_lease *lease, int64_t ttl_ms, redlock_result **result) {
    struct extend_call extend = {.call = lease_call(extend_begins, REDLOCK_RESULT_EXTEND, lease, result),
                                 .ttl_ms = ttl_ms};
    return lease ? redlock_client_perform(client, redlock_lease_resource(lease), &extend.call)
                 : refuse_null(&extend.call);
}

static int downgrade_begins(struct redlock_call *call) {
    assert(call->data);
    return redlock_downgrade(call->data, redlock_worker_answer, call);
}

int redlock_client_downgrade(redlock_client *client, redlock_lease *lease, redlock_result **result) {
    struct redlock_call downgrade = lease_call(downgrade_begins, REDLOCK_RESULT_EXTEND, lease, result);
    int cancel_state;
    int code = lease ? redlock_client_enter(client, &downgrade, &cancel_state) : refuse_null(&downgrade);
    if (code != REDLOCK_OK) {
        return code;
    }
    struct redlock_hold *hold;
    code = redlock_reentrant_downgrade(&client->reentrant, lease, &hold);
    code = code == REDLOCK_OK
               ? redlock_worker_perform(redlock_client_worker(client, redlock_lease_resource(lease)), &downgrade)
               : redlock_call_refuse(&downgrade, code, "");
    if (hold && downgrade.refused) {
        redlock_reentrant_downgrade_refused(&client->reentrant, hold);
    }
    redlock_client_exit(client, cancel_state);
    return code;
}

static int release_begins(struct redlock_call *call) {
    assert(call->data);
    const bool tells = redlock_calls_tell_owner(call->data);
    const int code = redlock_release(call->data, redlock_worker_answer, call);
    call->tells = code == REDLOCK_OK && tells;
    return code;
}

static int forget_begins(struct redlock_call *call) {
    assert(call->data);
    call->tells = redlock_calls_tell_owner(call->data);
    redlock_lease_forget(call->data); /* does nothing with a lease that its owner has not */
    return REDLOCK_OK;
}

/* Ends a handle. The table does not know a lease that is not reentrant: its handle ends at once.
 * The handle of a reentrant lease ends with its last hold. */
static int end(redlock_client *client, struct redlock_call *call, uint64_t owner, bool forget) {
    struct redlock_hold *hold = NULL;
    switch (redlock_reentrant_exit(&client->reentrant, call->data, redlock_hold_owner_of(owner), forget, &hold)) {
    case REDLOCK_EXIT_REFUSED:
        return REDLOCK_ERR_NOT_OWNER;
    case REDLOCK_EXIT_RETAINED:
        return forget ? REDLOCK_ERR_BUSY : REDLOCK_OK;
    case REDLOCK_EXIT_STRANGE:
    case REDLOCK_EXIT_LAST:
        break;
    }
    const char *resource = redlock_lease_resource(call->data);
    const int code = redlock_worker_perform(redlock_client_worker(client, resource), call);
    assert(!call->refused || code != REDLOCK_OK);
    if (hold) {
        redlock_reentrant_release_done(&client->reentrant, hold, !call->refused);
    }
    return code;
}

static int enter_and_end(redlock_client *client, struct redlock_call *call, uint64_t owner, bool forget) {
    int cancel_state;
    int code = call->data ? redlock_client_enter(client, call, &cancel_state) : refuse_null(call);
    if (code == REDLOCK_OK) {
        code = end(client, call, owner, forget);
        redlock_client_exit(client, cancel_state);
    }
    return code;
}

int redlock_client_release_as(redlock_client *client, redlock_lease *lease, uint64_t owner, redlock_result **result) {
    struct redlock_call release = lease_call(release_begins, REDLOCK_RESULT_RELEASE, lease, result);
    return enter_and_end(client, &release, owner, false);
}

int redlock_client_release(redlock_client *client, redlock_lease *lease, redlock_result **result) {
    return redlock_client_release_as(client, lease, 0, result);
}

int redlock_client_forget(redlock_client *client, redlock_lease *lease) {
    struct redlock_call forget = {.begin = forget_begins, .data = lease};
    return enter_and_end(client, &forget, 0, true);
}

struct adopt_call {
    struct redlock_call call; /* first member */
    const char *resource, *token;
    const redlock_item *items; /* of several */
    size_t count;
    const redlock_acquire_options *options;
};

static int adopt_begins(struct redlock_call *call) {
    const struct adopt_call *adopt = (struct adopt_call *)call;
    return redlock_adopt(redlock_worker_manager(call->worker), adopt->resource, adopt->token, adopt->options,
                         &call->acquired);
}

static int adopt_all_begins(struct redlock_call *call) {
    const struct adopt_call *adopt = (struct adopt_call *)call;
    return redlock_adopt_all(redlock_worker_manager(call->worker), adopt->items, adopt->count, adopt->options,
                             &call->acquired);
}

static int adopt(redlock_client *client, struct adopt_call *adopt, redlock_lease **lease) {
    redlock_acquire_options known = {.size = sizeof known};
    struct redlock_error_text failure = redlock_call_failure();
    if (!lease) {
        return redlock_check_given(&failure, "lease", false);
    }
    *lease = NULL;
    if (redlock_check_options(&failure, "redlock_acquire_options", &known, sizeof known, adopt->options) ==
        REDLOCK_OK) {
        adopt->call.tells = known.on_lost || known.on_expiring;
    }
    const int code = redlock_client_perform(client, adopt->resource, &adopt->call);
    assert((code == REDLOCK_OK) == (adopt->call.acquired != NULL));
    *lease = adopt->call.acquired;
    return code;
}

int redlock_client_adopt(redlock_client *client, const char *resource, const char *token,
                         const redlock_acquire_options *options, redlock_lease **lease) {
    struct adopt_call call = {
        .call = {.begin = adopt_begins}, .resource = resource, .token = token, .options = options};
    return adopt(client, &call, lease);
}

int redlock_client_adopt_all(redlock_client *client, const redlock_item *items, size_t count,
                             const redlock_acquire_options *options, redlock_lease **lease) {
    struct adopt_call call = {.call = {.begin = adopt_all_begins},
                              .resource = first_resource(items, count),
                              .items = items,
                              .count = count,
                              .options = options};
    return adopt(client, &call, lease);
}

struct inspect_call {
    struct redlock_call call; /* first member */
    const char *resource;     /* NULL is refused with the result's sentence */
};

static int inspect_begins(struct redlock_call *call) {
    return redlock_inspect(redlock_worker_manager(call->worker), ((struct inspect_call *)call)->resource,
                           redlock_worker_answer, call);
}

int redlock_client_inspect(redlock_client *client, const char *resource, redlock_result **result) {
    struct inspect_call inspect = {.call = redlock_call_of(inspect_begins, REDLOCK_RESULT_INSPECT, resource, result),
                                   .resource = resource};
    return redlock_client_perform(client, resource, &inspect.call);
}

struct list_call {
    struct redlock_call call; /* first member: the data of tell_each() */
    redlock_list_options options;
    redlock_list_callback each; /* gets the call's data */
};

static bool tell_each(const redlock_listed *lock, void *data) {
    const struct list_call *list = data;
    assert(list->each && lock->resource);
    return list->each(lock, list->call.data);
}

static int list_begins(struct redlock_call *call) {
    const struct list_call *list = (struct list_call *)call;
    return redlock_list(redlock_worker_manager(call->worker), &list->options, list->each ? tell_each : NULL,
                        redlock_worker_answer, call);
}

static void stop_list(struct redlock_call *call) {
    redlock_group_list_cancel(redlock_worker_manager(call->worker)->fleet.group, call);
}

int redlock_client_list(redlock_client *client, const redlock_list_options *options, redlock_list_callback each,
                        void *data, redlock_result **result) {
    struct list_call list = {.call = redlock_call_of(list_begins, REDLOCK_RESULT_LIST, NULL, result), .each = each};
    struct redlock_error_text failure = redlock_call_failure();
    list.call.data = data;
    list.call.stop = stop_list;
    list.call.tells = true;
    redlock_list_options_default(&list.options);
    int code = redlock_check_options(&failure, "redlock_list_options", &list.options, sizeof list.options, options);
    list.options.size = sizeof list.options;
    code = begin_cancellable(client, &list.call, list.options.cancel, code, &failure);
    list.options.cancel = NULL;
    return code == REDLOCK_OK ? redlock_client_perform(client, NULL, &list.call) : code;
}

static int statistics_begins(struct redlock_call *call) {
    return redlock_manager_statistics(redlock_worker_manager(call->worker), call->data);
}

/* The sum over all loops, in a struct of numbers behind its size. The caller is inside. */
static int add_up(redlock_client *client, int (*begin)(struct redlock_call *call), void *sum, size_t first) {
    struct redlock_call call = {.begin = begin, .data = sum};
    int code = redlock_worker_perform(client->workers[0], &call);
    if (code != REDLOCK_OK || client->loops == 1) {
        return code;
    }
    const size_t size = *(const size_t *)sum;
    char *part = calloc(1, size);
    if (part == NULL) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    memcpy(part, &size, sizeof size);
    for (unsigned i = 1; code == REDLOCK_OK && i < client->loops; i++) {
        call = (struct redlock_call){.begin = begin, .data = part};
        code = redlock_worker_perform(client->workers[i], &call);
        for (size_t at = first; code == REDLOCK_OK && at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
            *(uint64_t *)(void *)((char *)sum + at) += *(const uint64_t *)(const void *)(part + at);
        }
    }
    free(part);
    return code;
}

static int enter_and_add_up(redlock_client *client, int (*begin)(struct redlock_call *call), void *sum, size_t first) {
    int cancel_state, code = redlock_client_enter(client, NULL, &cancel_state);
    if (code == REDLOCK_OK) {
        code = add_up(client, begin, sum, first);
        redlock_client_exit(client, cancel_state);
    }
    return code;
}

int redlock_client_statistics(redlock_client *client, redlock_statistics *statistics) {
    return enter_and_add_up(client, statistics_begins, statistics, offsetof(redlock_statistics, acquires));
}

static int telemetry_begins(struct redlock_call *call) {
    return redlock_manager_telemetry(redlock_worker_manager(call->worker), call->data);
}

int redlock_client_telemetry(redlock_client *client, redlock_telemetry *telemetry) {
    return enter_and_add_up(client, telemetry_begins, telemetry, offsetof(redlock_telemetry, acquire));
}
