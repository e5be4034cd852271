/* An election for threads that block: the loop thread runs it, and threads read what it tells. The
 * handle outlives the election: a thread that does not know of the end yet may still use it. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "blocking/client.h"
#include "blocking/events.h"
#include "blocking/monitor.h"
#include "core/time.h"
#include "loop/loop.h"
#include "manager/manager_state.h"

/* A smaller size was never set: what the caller's memory held would pass for an event. */
#define SIZE_MIN offsetof(redlock_election_event, election)

struct redlock_client_election {
    struct redlock_attached attached; /* first member */
    redlock_client *client;
    struct redlock_worker *worker;
    struct redlock_standing standing; /* for any thread */
    /* Only the loop thread uses these. */
    redlock_election *election;   /* NULL after ENDED */
    struct redlock_list stopping; /* calls that wait for RESIGNED or ENDED */
    /* The threads that read share these, under the monitor's mutex. */
    struct redlock_monitor monitor;
    struct redlock_events events;
    bool reading; /* a thread is in redlock_client_election_next() */
    bool read_all;
};

/* In the close of the client, and in a child process: there another thread of the parent may have
 * held the mutex, so it is not destroyed, and may have been changing the events. */
static void free_unused(struct redlock_attached *attached) {
    redlock_client_election *election = (redlock_client_election *)attached;
    if (pthread_mutex_trylock(&election->monitor.mutex) == 0) {
        redlock_events_clear(&election->events);
        redlock_monitor_unlock(&election->monitor);
    }
    free(election);
}

static redlock_client_election *create(redlock_client *client, int *code) {
    redlock_client_election *election = calloc(1, sizeof *election);
    *code = election ? redlock_monitor_init(&election->monitor) : REDLOCK_ERR_NO_MEMORY;
    if (*code != REDLOCK_OK) {
        free(election);
        return NULL;
    }
    election->client = client;
    redlock_list_init(&election->stopping);
    election->attached.free = free_unused;
    return election;
}

/* On the loop thread. */
static void on_event(const redlock_election_event *event, void *data) {
    redlock_client_election *election = data;
    const bool ended = event->kind == REDLOCK_ELECTION_ENDED;
    redlock_monitor_lock(&election->monitor);
    redlock_events_add(&election->events, event);
    redlock_monitor_notify(&election->monitor);
    redlock_monitor_unlock(&election->monitor);
    assert(!election->election || event->election == election->election);
    if (ended) {
        election->election = NULL;
    } else if (event->kind != REDLOCK_ELECTION_RESIGNED) {
        return;
    }
    struct redlock_list_entry *first;
    while ((first = redlock_list_pop(&election->stopping))) {
        redlock_worker_complete(REDLOCK_CONTAINER(first, struct redlock_call, entry), event->code, event->result);
    }
}

static int check_given(bool given) {
    struct redlock_error_text failure = redlock_call_failure();
    return redlock_check_given(&failure, "election", given);
}

struct elect_call {
    struct redlock_call call; /* first member; its data is the election */
    const char *name;
    const redlock_election_options *options;
};

static int elect_begins(struct redlock_call *call) {
    const struct elect_call *elect = (struct elect_call *)call;
    redlock_client_election *election = call->data;
    assert(!election->election);
    const int code =
        redlock_elections_add(&redlock_worker_manager(call->worker)->elections, elect->name, elect->options, on_event,
                              election, &election->standing, &election->election);
    if (code == REDLOCK_OK) {
        redlock_worker_attach(call->worker, &election->attached);
    }
    return code;
}

int redlock_client_elect(redlock_client *client, const char *name, const redlock_election_options *options,
                         redlock_client_election **election) {
    int code = check_given(election != NULL);
    if (code != REDLOCK_OK) {
        return code;
    }
    *election = NULL;
    int cancel_state;
    struct elect_call elect = {.call = {.begin = elect_begins}, .name = name, .options = options};
    code = redlock_client_enter(client, &elect.call, &cancel_state);
    if (code != REDLOCK_OK) {
        return code;
    }
    redlock_client_election *made = create(client, &code);
    if (made) {
        made->worker = redlock_client_worker(client, name);
        elect.call.data = made;
        code = redlock_worker_perform(made->worker, &elect.call);
    }
    if (made && code != REDLOCK_OK) {
        redlock_monitor_destroy(&made->monitor);
        free(made);
        made = NULL;
    }
    *election = made;
    redlock_client_exit(client, cancel_state);
    return code;
}

/* On the loop thread. After ENDED the manager cannot say why it refuses. */
static int ask(struct redlock_call *call, int (*request)(redlock_election *election)) {
    const redlock_client_election *election = call->data;
    call->reason = election->election ? NULL : "the election has ended";
    return request(election->election);
}

/* The call waits until the resignation or the end is decided. */
static int wait_for_end(struct redlock_call *call) {
    redlock_client_election *election = call->data;
    assert(election->election);
    call->answers = true;
    redlock_list_prepend(&election->stopping, &call->entry);
    return REDLOCK_OK;
}

static int resign_begins(struct redlock_call *call) {
    const int code = ask(call, redlock_election_resign);
    const redlock_client_election *election = call->data;
    return code == REDLOCK_OK && !redlock_election_is_out(election->election) ? wait_for_end(call) : code;
}

static int end_begins(struct redlock_call *call) {
    const int code = ask(call, redlock_election_end);
    return code == REDLOCK_OK ? wait_for_end(call) : code;
}

static int campaign_begins(struct redlock_call *call) {
    return ask(call, redlock_election_campaign);
}

static int perform(redlock_client_election *election, struct redlock_call *call) {
    call->data = election;
    return election ? redlock_client_perform_on(election->client, election->worker, call) : check_given(false);
}

static int stop(redlock_client_election *election, redlock_result **result, int (*begin)(struct redlock_call *call)) {
    struct redlock_call call = {.begin = begin, .result = result};
    if (result) {
        *result = NULL;
    }
    return perform(election, &call);
}

int redlock_client_election_resign(redlock_client_election *election, redlock_result **result) {
    return stop(election, result, resign_begins);
}

int redlock_client_election_end(redlock_client_election *election, redlock_result **result) {
    return stop(election, result, end_begins);
}

int redlock_client_election_campaign(redlock_client_election *election) {
    struct redlock_call campaign = {.begin = campaign_begins};
    return perform(election, &campaign);
}

/* Whether EXPIRING is out of date: the lease has been extended since, or is at its end. */
static bool is_old(const redlock_client_election *election, const redlock_election_event *event) {
    const int64_t now_ns = redlock_loop_now_ns(NULL);
    const int64_t remaining_ms = redlock_standing_validity_ms(&election->standing, event->term, now_ns);
    return remaining_ms == 0 || remaining_ms > event->remaining_ms;
}

/* Under the mutex. */
static const redlock_election_event *take(redlock_client_election *election) {
    const redlock_election_event *event = redlock_events_take(&election->events);
    while (event && event->kind == REDLOCK_ELECTION_EXPIRING && is_old(election, event)) {
        event = redlock_events_take(&election->events);
    }
    return event;
}

/* Under the mutex: the next event, or NULL when the time is over. */
static const redlock_election_event *wait_for_event(redlock_client_election *election, int64_t timeout_ms) {
    const int64_t now_ns = redlock_monitor_now_ns(CLOCK_MONOTONIC);
    const int64_t until_ns = timeout_ms == REDLOCK_WAIT_FOREVER ? INT64_MAX : redlock_after_ms(now_ns, timeout_ms);
    const redlock_election_event *event = take(election);
    assert(timeout_ms >= 0 || timeout_ms == REDLOCK_WAIT_FOREVER);
    while (!event && redlock_monitor_wait(&election->monitor, CLOCK_MONOTONIC, until_ns)) {
        event = take(election);
    }
    return event;
}

static int read_next(redlock_client_election *election, int64_t timeout_ms, redlock_election_event *event) {
    redlock_election_event next = {.kind = REDLOCK_ELECTION_NOTHING, .reason = ""};
    int code = REDLOCK_OK;
    redlock_monitor_lock(&election->monitor);
    if (election->reading) {
        code = REDLOCK_ERR_BUSY;
    } else if (election->read_all) {
        code = REDLOCK_ERR_CLOSED;
    } else {
        election->reading = true;
        const redlock_election_event *unread = wait_for_event(election, timeout_ms);
        assert(election->reading && !election->read_all);
        election->reading = false;
        next = unread ? *unread : next;
        election->read_all = next.kind == REDLOCK_ELECTION_ENDED;
    }
    redlock_monitor_unlock(&election->monitor);
    if (code == REDLOCK_OK) {
        redlock_fill_struct(event, &next, sizeof next);
    }
    return code;
}

static int check_next(const redlock_client_election *election, int64_t timeout_ms,
                      const redlock_election_event *event) {
    struct redlock_error_text failure = redlock_call_failure();
    int code = check_given(election != NULL);
    if (code == REDLOCK_OK && timeout_ms != REDLOCK_WAIT_FOREVER) {
        code = redlock_check_range(&failure, "timeout_ms", timeout_ms, 0, INT64_MAX, ", or REDLOCK_WAIT_FOREVER");
    }
    return code == REDLOCK_OK ? redlock_check_struct_of(&failure, "event", event, SIZE_MIN) : code;
}

int redlock_client_election_next(redlock_client_election *election, int64_t timeout_ms, redlock_election_event *event) {
    int cancel_state;
    int code = check_next(election, timeout_ms, event);
    if (code == REDLOCK_OK) {
        code = redlock_client_enter(election->client, NULL, &cancel_state);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    code = read_next(election, timeout_ms, event);
    redlock_client_exit(election->client, cancel_state);
    return code;
}

int64_t redlock_client_election_validity_ms(const redlock_client_election *election, uint64_t term) {
    redlock_rundown_enter(&election->client->rundown);
    const int64_t validity_ms = redlock_standing_validity_ms(&election->standing, term, redlock_loop_now_ns(NULL));
    redlock_rundown_exit(&election->client->rundown);
    return validity_ms;
}
