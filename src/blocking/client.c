/* The blocking client's loop thread: its start, its turns, its end, and how calls reach it and
 * return. */
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/random.h"
#include "blocking/client.h"
#include "blocking/rundown.h"

struct redlock_client {
    struct redlock_mailbox mailbox;
    struct redlock_eventcount eventcount; /* wakes the callers of completed calls */
    struct redlock_reentrant reentrant;
    struct redlock_rundown rundown; /* all calls that use this memory are inside */
    struct redlock_random *fork_mark;
    pthread_t thread;
    int64_t try_ms;
    size_t node_count, quorum;
    struct ev_loop *loop;
    ev_async wake;
    ev_prepare drain;
    atomic_bool cancelled; /* on_wake() must look for calls that are cancelled */
    atomic_bool in_turn;   /* during a turn, a fork would copy half-changed data */
    /* Only the loop thread uses these: */
    redlock_manager *manager; /* NULL after the close */
    struct start *start;      /* until the client is open */
    bool closing;
    struct redlock_call *close_call;
    struct redlock_list cancellables, attached;
    struct redlock_list completed; /* their callers are woken before the loop polls */
};

/* Shared by redlock_client_open(), on whose stack it is, and the loop thread. */
struct start {
    const redlock_manager_options *options;
    char *error;
    size_t error_size;
    int code;
    sem_t done;
};

static void complete(redlock_client *client, struct redlock_call *call) {
    redlock_list_append(&client->completed, &call->completed);
}

/* Wakes the callers of completed calls and returns their number. A finished call belongs to its
 * caller again, whose stack may be gone. */
static unsigned wake_callers(redlock_client *client) {
    struct redlock_list_entry *first;
    unsigned woken = 0;
    for (; (first = redlock_list_pop(&client->completed)); woken++) {
        struct redlock_call *call = REDLOCK_CONTAINER(first, struct redlock_call, completed);
        redlock_eventcount_finish(&client->eventcount, &call->sleeper);
    }
    redlock_eventcount_notify(&client->eventcount);
    return woken;
}

void redlock_call_complete(struct redlock_call *call) {
    complete(call->client, call);
}

void redlock_client_attach(redlock_client *client, struct redlock_attached *attached) {
    assert(attached->free);
    redlock_list_prepend(&client->attached, &attached->entry);
}

static void free_attached(redlock_client *client) {
    struct redlock_list_entry *first;
    while ((first = redlock_list_pop(&client->attached))) {
        struct redlock_attached *attached = REDLOCK_CONTAINER(first, struct redlock_attached, entry);
        attached->free(attached);
    }
}

void redlock_call_answer(const redlock_result *result, void *data) {
    struct redlock_call *call = data;
    call->code = redlock_result_code(result);
    call->acquired = redlock_result_lease(result);
    if (call->want_result) {
        call->result = redlock_result_copy(result);
    }
    complete(call->client, call);
}

static void perform(redlock_client *client, struct redlock_mailbox_item *item) {
    while (item) {
        struct redlock_mailbox_item *next = item->next;
        struct redlock_call *call = (struct redlock_call *)item;
        if (client->closing) {
            call->code = REDLOCK_ERR_CLOSED;
            complete(client, call);
        } else if (!redlock_call_begin(call, client->manager)) {
            complete(client, call);
        }
        item = next;
    }
}

/* It ends the poll: on_prepare() empties the mailbox before the next one. Only cancellations are
 * taken here. */
static void on_wake(struct ev_loop *loop, ev_async *wake, int events) {
    redlock_client *client = wake->data;
    (void)loop, (void)events;
    if (atomic_exchange(&client->cancelled, false)) {
        redlock_cancellables_check(&client->cancellables);
        redlock_reentrant_wake(&client->reentrant);
    }
}

/*
 * Calls that came during this turn are queued with the other requests of the turn: one write for
 * each node (R6). If several callers were just woken, they get the processor for a moment, so that
 * the same writes carry their next calls too.
 */
static void on_prepare(struct ev_loop *loop, ev_prepare *drain, int events) {
    redlock_client *client = drain->data;
    (void)loop, (void)events;
    if (wake_callers(client) > 1) {
        (void)sched_yield();
    }
    perform(client, redlock_mailbox_take(&client->mailbox));
}

/* Runs last before the poll: wakes the callers of calls that on_prepare() and the flush
 * completed. */
static void before_poll(struct ev_loop *loop) {
    redlock_client *client = ev_userdata(loop);
    (void)wake_callers(client);
    if (!redlock_mailbox_sleep(&client->mailbox)) {
        ev_async_send(loop, &client->wake);
    }
    atomic_store(&client->in_turn, false);
}

static void after_poll(struct ev_loop *loop) {
    redlock_client *client = ev_userdata(loop);
    atomic_store(&client->in_turn, true);
    redlock_mailbox_awake(&client->mailbox);
}

static void on_closed(void *data) {
    redlock_client *client = data;
    client->manager = NULL;
    ev_break(client->loop, EVBREAK_ALL);
}

static void begin_close(redlock_client *client) {
    assert(client->manager && !client->closing);
    client->closing = true;
    int failed = redlock_manager_close(client->manager, on_closed, client);
    assert(failed == 0);
    (void)failed;
}

static void report_start(redlock_client *client, int code) {
    struct start *start = client->start;
    assert(start);
    client->start = NULL;
    start->code = code;
    redlock_rundown_sem_post(&start->done);
}

/* A node that is down is no error here. The votes on each lock show it. */
static void on_connected(const redlock_result *result, void *data) {
    (void)result;
    report_start(data, REDLOCK_OK);
}

/* False if the client could not start. */
static bool start(redlock_client *client) {
    struct start *how = client->start;
    int code = redlock_manager_create(client->loop, how->options, &client->manager, how->error, how->error_size);
    if (code == REDLOCK_OK) {
        const int64_t node_ms = how->options->node_timeout_ms, connect_ms = how->options->connect_timeout_ms;
        client->try_ms = node_ms > connect_ms ? node_ms : connect_ms;
        client->node_count = redlock_manager_node_count(client->manager);
        client->quorum = redlock_manager_quorum(client->manager);
        code = redlock_manager_connect(client->manager, how->options->connect_timeout_ms, on_connected, client);
        if (code == REDLOCK_OK) {
            return true;
        }
        if (how->error) {
            (void)snprintf(how->error, how->error_size, "cannot wait for the nodes: %s", redlock_strerror(code));
        }
        begin_close(client);
        ev_run(client->loop, 0);
    }
    report_start(client, code);
    return false;
}

static void *run(void *data) {
    redlock_client *client = data;
    if (start(client)) {
        ev_run(client->loop, 0);
    }
    perform(client, redlock_mailbox_close(&client->mailbox));
    (void)wake_callers(client);
    return NULL;
}

int redlock_client_enter(redlock_client *client, int *cancel_state) {
    struct redlock_failure failure = redlock_client_failure();
    if (!client) {
        return redlock_check_given(&failure, "client", false);
    }
    if (redlock_random_forked(client->fork_mark)) {
        return REDLOCK_ERR_FORKED;
    }
    if (pthread_equal(pthread_self(), client->thread)) {
        return redlock_fail(&failure, REDLOCK_ERR_INVALID, "a callback on the client's loop thread may not block");
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
    redlock_client_hold(client);
    return REDLOCK_OK;
}

void redlock_client_exit(redlock_client *client, int cancel_state) {
    redlock_client_let_go(client);
    pthread_setcancelstate(cancel_state, NULL);
}

void redlock_client_hold(redlock_client *client) {
    redlock_rundown_enter(&client->rundown);
}

void redlock_client_let_go(redlock_client *client) {
    redlock_rundown_exit(&client->rundown);
}

int redlock_client_perform(redlock_client *client, struct redlock_call *call) {
    call->client = client;
    call->sentence = redlock_client_failure().text;
    redlock_eventcount_add(&client->eventcount, &call->sleeper);
    switch (redlock_mailbox_put(&client->mailbox, &call->item)) {
    case REDLOCK_MAILBOX_WAKE:
        ev_async_send(client->loop, &client->wake);
        redlock_eventcount_sleep(&client->eventcount, &call->sleeper);
        break;
    case REDLOCK_MAILBOX_QUEUED:
        redlock_eventcount_sleep(&client->eventcount, &call->sleeper);
        break;
    case REDLOCK_MAILBOX_CLOSED:
        call->code = REDLOCK_ERR_CLOSED;
        break;
    }
    redlock_eventcount_remove(&client->eventcount, &call->sleeper);
    return call->code;
}

struct redlock_list *redlock_client_cancellables(redlock_client *client) {
    return &client->cancellables;
}

void redlock_client_wake_cancelled(redlock_client *client) {
    /* In a child process there is no loop thread, and the wake-up would reach the parent's. */
    if (!redlock_random_forked(client->fork_mark)) {
        atomic_store(&client->cancelled, true);
        ev_async_send(client->loop, &client->wake);
    }
}

size_t redlock_client_node_count(const redlock_client *client) {
    return client->node_count;
}

size_t redlock_client_quorum(const redlock_client *client) {
    return client->quorum;
}

struct redlock_reentrant *redlock_client_reentrant(redlock_client *client) {
    return &client->reentrant;
}

int64_t redlock_client_try_ms(const redlock_client *client) {
    return client->try_ms;
}

static void describe(char *error, size_t error_size, const char *what, int number) {
    if (error) {
        (void)snprintf(error, error_size, "%s: %s", what, strerror(number));
    }
}

/* This thread blocks the application's signals, but not those that its own faults raise. */
static int create_thread(redlock_client *client) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(&blocked, faults[i]);
    }
    int failed = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (failed) {
        return failed;
    }
    failed = pthread_create(&client->thread, NULL, run, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* Starts the thread and waits for the result of its start. */
static int start_thread(redlock_client *client, const redlock_manager_options *options, char *error,
                        size_t error_size) {
    struct start how = {.options = options, .error = error, .error_size = error_size};
    if (sem_init(&how.done, 0, 0) != 0) {
        describe(error, error_size, "cannot create a semaphore", errno);
        return REDLOCK_ERR_SYSTEM;
    }
    client->start = &how;
    int failed = create_thread(client);
    if (failed) {
        describe(error, error_size, "cannot start the client's loop thread", failed);
        how.code = REDLOCK_ERR_SYSTEM;
    } else {
        redlock_rundown_sem_wait(&how.done);
        if (how.code != REDLOCK_OK) {
            pthread_join(client->thread, NULL);
        }
    }
    sem_destroy(&how.done);
    return how.code;
}

/* The manager and the thread must be gone, or not exist yet. */
static void destroy_loop(redlock_client *client) {
    ev_prepare_stop(client->loop, &client->drain);
    ev_async_stop(client->loop, &client->wake);
    ev_loop_destroy(client->loop);
}

static int create_loop(redlock_client *client, char *error, size_t error_size) {
    errno = 0;
    /* ev_async_start() ends the program if there is no descriptor for it, so keep one. */
    const int reserve = eventfd(0, EFD_CLOEXEC);
    client->loop = reserve < 0 ? NULL : ev_loop_new(EVFLAG_AUTO);
    if (!client->loop) {
        describe(error, error_size, "cannot create an event loop", errno);
        (void)close(reserve);
        return REDLOCK_ERR_SYSTEM;
    }
    ev_async_init(&client->wake, on_wake);
    client->wake.data = client;
    ev_prepare_init(&client->drain, on_prepare);
    client->drain.data = client;
    ev_set_userdata(client->loop, client);
    ev_set_loop_release_cb(client->loop, before_poll, after_poll);
    (void)close(reserve);
    ev_async_start(client->loop, &client->wake);
    ev_prepare_start(client->loop, &client->drain);
    return REDLOCK_OK;
}

static int open_client(redlock_client *client, const redlock_manager_options *options, char *error, size_t error_size) {
    client->fork_mark = redlock_random_new();
    if (!client->fork_mark) {
        describe(error, error_size, "cannot open a client", ENOMEM);
        return REDLOCK_ERR_NO_MEMORY;
    }
    const int failed = redlock_rundown_init(&client->rundown);
    if (failed) {
        describe(error, error_size, "cannot create a semaphore", failed);
        redlock_random_delete(client->fork_mark);
        return REDLOCK_ERR_SYSTEM;
    }
    int code = redlock_reentrant_init(&client->reentrant, UINT32_MAX);
    if (code == REDLOCK_OK) {
        code = create_loop(client, error, error_size);
        if (code == REDLOCK_OK) {
            code = start_thread(client, options, error, error_size);
            if (code == REDLOCK_OK) {
                return code;
            }
            destroy_loop(client);
        }
        redlock_reentrant_destroy(&client->reentrant);
    } else if (error) {
        (void)snprintf(error, error_size, "cannot open a client: %s", redlock_strerror(code));
    }
    redlock_rundown_destroy(&client->rundown);
    redlock_random_delete(client->fork_mark);
    return code;
}

int redlock_client_open(const redlock_manager_options *options, redlock_client **client, char *error,
                        size_t error_size) {
    int cancel_state;
    if (error && error_size > 0) {
        error[0] = '\0';
    }
    if (!client) {
        if (error) {
            (void)snprintf(error, error_size, "client is NULL");
        }
        return REDLOCK_ERR_INVALID;
    }
    *client = NULL;
    redlock_client *opened = calloc(1, sizeof *opened);
    if (!opened) {
        describe(error, error_size, "cannot open a client", ENOMEM);
        return REDLOCK_ERR_NO_MEMORY;
    }
    redlock_mailbox_init(&opened->mailbox);
    redlock_eventcount_init(&opened->eventcount);
    atomic_init(&opened->in_turn, true);
    atomic_init(&opened->cancelled, false);
    redlock_list_init(&opened->cancellables);
    redlock_list_init(&opened->attached);
    redlock_list_init(&opened->completed);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int code = open_client(opened, options, error, error_size);
    pthread_setcancelstate(cancel_state, NULL);
    if (code == REDLOCK_OK) {
        *client = opened;
    } else {
        free(opened);
    }
    return code;
}

/*
 * For a child process, which has no loop thread and must not wait for a lock. If the fork came in
 * the middle of a turn, the lists of the manager and of libev may be half-changed: they stay as
 * they are.
 */
static void abandon(redlock_client *client) {
    if (!atomic_load(&client->in_turn)) {
        redlock_manager_abandon(client->manager);
        ev_loop_destroy(client->loop);
        free_attached(client);
    }
    redlock_reentrant_abandon(&client->reentrant);
    redlock_random_delete(client->fork_mark);
    free(client);
}

static bool close_begins(redlock_manager *manager, struct redlock_call *call) {
    (void)manager;
    begin_close(call->client);
    call->code = REDLOCK_OK;
    return false;
}

int redlock_client_close(redlock_client *client) {
    int cancel_state;
    struct redlock_call call = {.begin = close_begins};
    int code = redlock_client_enter(client, &cancel_state);
    if (code == REDLOCK_ERR_FORKED) {
        abandon(client);
        return REDLOCK_OK;
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    code = redlock_client_perform(client, &call);
    assert(code == REDLOCK_OK);
    int failed = pthread_join(client->thread, NULL);
    assert(failed == 0);
    (void)failed;
    redlock_rundown_close(&client->rundown);
    free_attached(client);
    destroy_loop(client);
    redlock_reentrant_destroy(&client->reentrant);
    redlock_random_delete(client->fork_mark);
    redlock_rundown_destroy(&client->rundown);
    free(client);
    pthread_setcancelstate(cancel_state, NULL);
    return REDLOCK_OK;
}
