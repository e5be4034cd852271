/* The calls of the blocking client. Each makes one request to the manager on the loop thread. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "blocking/client.h"
#include "core/time.h"
#include "group/requests.h"
#include "loop/loop.h"
#include "manager/manager_state.h"

void redlock_client_acquire_options_default(redlock_client_acquire_options *options) {
    *options = (redlock_client_acquire_options){.size = sizeof *options};
    redlock_acquire_options_default(&options->lock);
}

/* As redlock_client_enter(). A call that may not enter has a result that says why. */
static int enter(redlock_client *client, struct redlock_call *call, int *cancel_state) {
    const int code = redlock_client_enter(client, cancel_state);
    return code == REDLOCK_OK ? code : redlock_call_refuse(call, code, redlock_client_failure().text);
}

int redlock_call_perform(redlock_client *client, struct redlock_call *call, redlock_result **result) {
    int cancel_state;
    int code = enter(client, call, &cancel_state);
    if (code == REDLOCK_OK) {
        code = redlock_worker_perform(client->worker, call);
        redlock_client_exit(client, cancel_state);
    }
    if (result) {
        *result = call->result;
    }
    return code;
}

/* A call that has a result. */
static struct redlock_call call_of(bool (*begin)(redlock_manager *, struct redlock_call *), enum redlock_result_of of,
                                   const char *resource, redlock_result **result) {
    return (struct redlock_call){
        .begin = begin, .resource = resource ? resource : "", .of = of, .want_result = result != NULL};
}

/* A call that somebody may cancel. */
struct cancellable_call {
    struct redlock_call call; /* first member */
    struct redlock_cancellable cancellable;
    /* Makes the request, with cancellable_ends() and the call as its data. Returns its code. */
    int (*request)(redlock_manager *manager, struct cancellable_call *base);
};

/* Ends the reading of a call's options: `code` says whether they are good so far. */
static int begin_cancellable(redlock_client *client, struct cancellable_call *base, const redlock_cancel *cancel,
                             int code, struct redlock_error_text *failure) {
    if (code == REDLOCK_OK && cancel && cancel->client != client) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID, "cancel is of another client");
    }
    if (code != REDLOCK_OK) {
        return redlock_call_refuse(&base->call, code, failure->text);
    }
    redlock_cancellable_begin(&base->cancellable, cancel);
    return redlock_cancellable_is_cancelled(&base->cancellable)
               ? redlock_call_refuse(&base->call, REDLOCK_ERR_CANCELLED, NULL)
               : REDLOCK_OK;
}

static bool cancellable_begins(redlock_manager *manager, struct redlock_call *call) {
    struct cancellable_call *base = (struct cancellable_call *)call;
    const bool cancelled = redlock_cancellable_is_cancelled(&base->cancellable);
    call->code = cancelled ? REDLOCK_ERR_CANCELLED : base->request(manager, base);
    if (call->code == REDLOCK_OK) {
        redlock_cancellable_add(redlock_worker_cancellables(call->worker), &base->cancellable);
    }
    return call->code == REDLOCK_OK;
}

static void cancellable_ends(const redlock_result *result, void *data) {
    redlock_cancellable_remove(&((struct cancellable_call *)data)->cancellable);
    redlock_call_answer(result, data);
}

/* Returns the call, of which `cancellable` is a part. */
static void *base_of(struct redlock_cancellable *cancellable) {
    return (char *)cancellable - offsetof(struct cancellable_call, cancellable);
}

struct acquire_call {
    struct cancellable_call base; /* first member */
    redlock_acquire_options lock;
    redlock_request *request;
};

static int request_acquire(redlock_manager *manager, struct cancellable_call *base) {
    struct acquire_call *acquire = (struct acquire_call *)base;
    return redlock_acquire(manager, base->call.resource, &acquire->lock, &acquire->request, cancellable_ends, base);
}

static void stop_acquire(struct redlock_cancellable *cancellable) {
    redlock_request_cancel(((struct acquire_call *)base_of(cancellable))->request);
}

static int64_t deadline_after(int64_t now_ns, int64_t wait_ms) {
    return wait_ms == REDLOCK_WAIT_FOREVER ? REDLOCK_NEVER_NS : redlock_after_ms(now_ns, wait_ms);
}

/* Another thread of the same owner may be acquiring or releasing. We wait for it as long as this
 * call may wait, but at least as long as one try may take: its lock would be ours too. */
static int acquire_as_holder(redlock_client *client, struct acquire_call *acquire, uint64_t owner) {
    struct redlock_reentrant *table = &client->reentrant;
    struct redlock_hold *hold;
    int code = REDLOCK_OK;
    int64_t begun_ns = redlock_loop_now_ns(NULL);
    int64_t wait_ms = acquire->lock.wait_timeout_ms;
    int64_t try_ms = client->try_ms;
    int64_t share_ms = wait_ms == REDLOCK_WAIT_FOREVER || wait_ms > try_ms ? wait_ms : try_ms;
    switch (redlock_reentrant_enter(table, acquire->base.call.resource, redlock_hold_owner_of(owner),
                                    deadline_after(begun_ns, share_ms), &acquire->base.cancellable, &hold,
                                    &acquire->base.call.acquired, &code)) {
    case REDLOCK_ENTER_SHARED:
        return REDLOCK_OK;
    case REDLOCK_ENTER_ERROR:
        return redlock_call_refuse(&acquire->base.call, code, "");
    case REDLOCK_ENTER_TAKE:
        break;
    }
    if (wait_ms > 0) {
        int64_t waited_ms = (redlock_loop_now_ns(NULL) - begun_ns) / REDLOCK_NS_PER_MS;
        acquire->lock.wait_timeout_ms = wait_ms > waited_ms ? wait_ms - waited_ms : 0;
    }
    code = redlock_worker_perform(client->worker, &acquire->base.call);
    redlock_reentrant_acquire_done(table, hold, code == REDLOCK_OK ? acquire->base.call.acquired : NULL);
    return code;
}

/* Reads the options into the call. */
static int read_options(redlock_client *client, struct acquire_call *acquire,
                        const redlock_client_acquire_options *options, redlock_client_acquire_options *asked) {
    struct redlock_error_text failure = redlock_client_failure();
    redlock_client_acquire_options_default(asked);
    const int code = redlock_check_options(&failure, "redlock_client_acquire_options", asked, sizeof *asked, options);
    acquire->lock = asked->lock;
    acquire->lock.cancel = NULL;
    return begin_cancellable(client, &acquire->base, asked->lock.cancel, code, &failure);
}

static int acquire_lock(redlock_client *client, struct acquire_call *acquire,
                        const redlock_client_acquire_options *options) {
    redlock_client_acquire_options asked;
    int cancel_state;
    int code = read_options(client, acquire, options, &asked);
    if (code == REDLOCK_OK) {
        code = enter(client, &acquire->base.call, &cancel_state);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    code = asked.reentrant ? acquire_as_holder(client, acquire, asked.owner)
                           : redlock_worker_perform(client->worker, &acquire->base.call);
    redlock_client_exit(client, cancel_state);
    return code;
}

int redlock_client_acquire(redlock_client *client, const char *resource, const redlock_client_acquire_options *options,
                           redlock_lease **lease, redlock_result **result) {
    struct acquire_call acquire = {
        .base = {.call = call_of(cancellable_begins, REDLOCK_RESULT_ACQUIRE, resource, result),
                 .cancellable = {.stop = stop_acquire},
                 .request = request_acquire}};
    int code;
    if (!lease || !resource) {
        code =
            redlock_call_refuse(&acquire.base.call, REDLOCK_ERR_INVALID, lease ? "resource is NULL" : "lease is NULL");
    } else {
        code = acquire_lock(client, &acquire, options);
    }
    if (lease) {
        *lease = code == REDLOCK_OK ? acquire.base.call.acquired : NULL;
    }
    if (result) {
        *result = acquire.base.call.result;
    }
    return code;
}

struct lease_call {
    struct redlock_call call;
    redlock_lease *lease;
    int64_t ttl_ms;
    bool refused; /* the manager refused, so the handle still exists */
};

static const char *resource_of(const redlock_lease *lease) {
    return lease ? redlock_lease_resource(lease) : NULL;
}

static int refuse_null(struct redlock_call *call, redlock_result **result) {
    const int code = redlock_call_refuse(call, REDLOCK_ERR_INVALID, "lease is NULL");
    if (result) {
        *result = call->result;
    }
    return code;
}

static bool extend_begins(redlock_manager *manager, struct redlock_call *call) {
    struct lease_call *extend = (struct lease_call *)call;
    (void)manager;
    call->code = redlock_extend(extend->lease, extend->ttl_ms, redlock_call_answer, call);
    return call->code == REDLOCK_OK;
}

int redlock_client_extend(redlock_client *client, redlock_lease *lease, int64_t ttl_ms, redlock_result **result) {
    struct lease_call extend = {.call = call_of(extend_begins, REDLOCK_RESULT_EXTEND, resource_of(lease), result),
                                .lease = lease,
                                .ttl_ms = ttl_ms};
    return lease ? redlock_call_perform(client, &extend.call, result) : refuse_null(&extend.call, result);
}

static bool release_begins(redlock_manager *manager, struct redlock_call *call) {
    struct lease_call *release = (struct lease_call *)call;
    (void)manager;
    call->code = redlock_release(release->lease, redlock_call_answer, call);
    release->refused = call->code != REDLOCK_OK;
    return call->code == REDLOCK_OK;
}

static bool forget_begins(redlock_manager *manager, struct redlock_call *call) {
    struct lease_call *forget = (struct lease_call *)call;
    (void)manager;
    redlock_lease_forget(forget->lease);
    call->code = REDLOCK_OK;
    return false;
}

/* Ends a handle. The table does not know a lease that is not reentrant: its handle ends at once.
 * The handle of a reentrant lease ends with its last hold. */
static int end(redlock_client *client, struct lease_call *ending, enum redlock_exit exited, int retained_code,
               struct redlock_hold *hold) {
    int code = REDLOCK_OK;
    switch (exited) {
    case REDLOCK_EXIT_REFUSED:
        return REDLOCK_ERR_NOT_OWNER;
    case REDLOCK_EXIT_RETAINED:
        return retained_code;
    case REDLOCK_EXIT_STRANGE:
        return redlock_worker_perform(client->worker, &ending->call);
    case REDLOCK_EXIT_LAST:
        assert(hold);
        code = redlock_worker_perform(client->worker, &ending->call);
        redlock_reentrant_release_done(&client->reentrant, hold, !ending->refused);
        break;
    }
    return code;
}

/* redlock_reentrant_exit() for a release, or redlock_reentrant_forget(). */
typedef enum redlock_exit exit_function(struct redlock_reentrant *table, redlock_lease *lease,
                                        struct redlock_hold_owner owner, struct redlock_hold **hold);

static int exit_and_end(redlock_client *client, struct lease_call *ending, exit_function *exit_one, uint64_t owner,
                        int retained_code) {
    struct redlock_hold *hold = NULL;
    int cancel_state;
    int code = ending->lease ? enter(client, &ending->call, &cancel_state) : refuse_null(&ending->call, NULL);
    if (code != REDLOCK_OK) {
        return code;
    }
    enum redlock_exit exited = exit_one(&client->reentrant, ending->lease, redlock_hold_owner_of(owner), &hold);
    code = end(client, ending, exited, retained_code, hold);
    redlock_client_exit(client, cancel_state);
    return code;
}

int redlock_client_release_as(redlock_client *client, redlock_lease *lease, uint64_t owner, redlock_result **result) {
    struct lease_call release = {.call = call_of(release_begins, REDLOCK_RESULT_RELEASE, resource_of(lease), result),
                                 .lease = lease};
    int code = exit_and_end(client, &release, redlock_reentrant_exit, owner, REDLOCK_OK);
    if (result) {
        *result = release.call.result;
    }
    return code;
}

int redlock_client_release(redlock_client *client, redlock_lease *lease, redlock_result **result) {
    return redlock_client_release_as(client, lease, 0, result);
}

int redlock_client_forget(redlock_client *client, redlock_lease *lease) {
    struct lease_call forget = {.call = {.begin = forget_begins}, .lease = lease};
    return exit_and_end(client, &forget, redlock_reentrant_forget, 0, REDLOCK_ERR_BUSY);
}

struct adopt_call {
    struct redlock_call call;
    const char *resource, *token;
    const redlock_acquire_options *options;
};

static bool adopt_begins(redlock_manager *manager, struct redlock_call *call) {
    struct adopt_call *adopt = (struct adopt_call *)call;
    call->code = redlock_adopt(manager, adopt->resource, adopt->token, adopt->options, &call->acquired);
    return false;
}

int redlock_client_adopt(redlock_client *client, const char *resource, const char *token,
                         const redlock_acquire_options *options, redlock_lease **lease) {
    struct adopt_call adopt = {
        .call = {.begin = adopt_begins}, .resource = resource, .token = token, .options = options};
    struct redlock_error_text failure = redlock_client_failure();
    if (!lease) {
        return redlock_check_given(&failure, "lease", false);
    }
    *lease = NULL;
    int code = redlock_call_perform(client, &adopt.call, NULL);
    if (code == REDLOCK_OK) {
        *lease = adopt.call.acquired;
    }
    return code;
}

struct inspect_call {
    struct redlock_call call;
    const char *resource;
};

static bool inspect_begins(redlock_manager *manager, struct redlock_call *call) {
    struct inspect_call *inspect = (struct inspect_call *)call;
    call->code = redlock_inspect(manager, inspect->resource, redlock_call_answer, call);
    return call->code == REDLOCK_OK;
}

int redlock_client_inspect(redlock_client *client, const char *resource, redlock_result **result) {
    struct inspect_call inspect = {.call = call_of(inspect_begins, REDLOCK_RESULT_INSPECT, resource, result),
                                   .resource = resource};
    return redlock_call_perform(client, &inspect.call, result);
}

struct list_call {
    struct cancellable_call base; /* first member: the data of tell_each() */
    redlock_manager *manager;
    redlock_list_options options;
    redlock_list_callback each;
    void *data;
};

static bool tell_each(const redlock_listed *lock, void *data) {
    const struct list_call *list = data;
    return list->each(lock, list->data);
}

static int request_list(redlock_manager *manager, struct cancellable_call *base) {
    struct list_call *list = (struct list_call *)base;
    list->manager = manager;
    return redlock_list(manager, &list->options, list->each ? tell_each : NULL, cancellable_ends, list);
}

static void stop_list(struct redlock_cancellable *cancellable) {
    const struct list_call *list = base_of(cancellable);
    redlock_group_list_cancel(list->manager->fleet.group, list);
}

int redlock_client_list(redlock_client *client, const redlock_list_options *options, redlock_list_callback each,
                        void *data, redlock_result **result) {
    struct list_call list = {.base = {.call = call_of(cancellable_begins, REDLOCK_RESULT_LIST, NULL, result),
                                      .cancellable = {.stop = stop_list},
                                      .request = request_list},
                             .each = each,
                             .data = data};
    struct redlock_error_text failure = redlock_client_failure();
    redlock_list_options_default(&list.options);
    int code = redlock_check_options(&failure, "redlock_list_options", &list.options, sizeof list.options, options);
    list.options.size = sizeof list.options;
    code = begin_cancellable(client, &list.base, list.options.cancel, code, &failure);
    list.options.cancel = NULL;
    if (code == REDLOCK_OK) {
        return redlock_call_perform(client, &list.base.call, result);
    }
    if (result) {
        *result = list.base.call.result;
    }
    return code;
}

struct statistics_call {
    struct redlock_call call;
    redlock_statistics *statistics;
};

static bool statistics_begins(redlock_manager *manager, struct redlock_call *call) {
    call->code = redlock_manager_statistics(manager, ((struct statistics_call *)call)->statistics);
    return false;
}

int redlock_client_statistics(redlock_client *client, redlock_statistics *statistics) {
    struct statistics_call counted = {.call = {.begin = statistics_begins}, .statistics = statistics};
    return redlock_call_perform(client, &counted.call, NULL);
}

struct telemetry_call {
    struct redlock_call call;
    redlock_telemetry *telemetry;
};

static bool telemetry_begins(redlock_manager *manager, struct redlock_call *call) {
    call->code = redlock_manager_telemetry(manager, ((struct telemetry_call *)call)->telemetry);
    return false;
}

int redlock_client_telemetry(redlock_client *client, redlock_telemetry *telemetry) {
    struct telemetry_call asked = {.call = {.begin = telemetry_begins}, .telemetry = telemetry};
    return redlock_call_perform(client, &asked.call, NULL);
}
