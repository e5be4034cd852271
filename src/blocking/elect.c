/* An election for threads that block: the loop thread runs it, and threads read what it tells. The
 * handle outlives the election: a thread that does not know of the end yet may still use it. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "blocking/client.h"
#include "blocking/events.h"
#include "core/time.h"
#include "election/campaign.h"
#include "loop/loop.h"

/* A smaller size was never set: what the caller's memory held would pass for an event. */
#define SIZE_MIN offsetof(redlock_election_event, election)

/* A call that waits for RESIGNED or ENDED. */
struct stop_call {
    struct redlock_call call;
    redlock_client_election *election;
    struct redlock_list_entry entry;
};

struct redlock_client_election {
    struct redlock_attached attached; /* first member */
    redlock_client *client;
    struct redlock_standing standing; /* for any thread */
    /* Only the loop thread uses these. */
    redlock_election *election;   /* NULL after ENDED */
    struct redlock_list stopping; /* calls */
    /* The threads that read share these, under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct redlock_events events;
    bool reading; /* a thread is in redlock_client_election_next() */
    bool read_all;
};

static void lock(redlock_client_election *election) {
    int failed = pthread_mutex_lock(&election->mutex);
    assert(failed == 0);
    (void)failed;
}

static void unlock(redlock_client_election *election) {
    int failed = pthread_mutex_unlock(&election->mutex);
    assert(failed == 0);
    (void)failed;
}

/* In the close of the client, and in a child process: there another thread of the parent may have
 * held the mutex, so it is not destroyed. */
static void free_unused(struct redlock_attached *attached) {
    redlock_client_election *election = (redlock_client_election *)attached;
    redlock_events_clear(&election->events);
    free(election);
}

static redlock_client_election *create(redlock_client *client, int *code) {
    pthread_condattr_t attributes;
    redlock_client_election *election = calloc(1, sizeof *election);
    *code = REDLOCK_ERR_NO_MEMORY;
    if (!election) {
        return NULL;
    }
    election->client = client;
    redlock_list_init(&election->stopping);
    election->attached.free = free_unused;
    *code = REDLOCK_ERR_SYSTEM;
    if (pthread_mutex_init(&election->mutex, NULL) != 0) {
        goto free_memory;
    }
    if (pthread_condattr_init(&attributes) != 0) {
        goto destroy_mutex;
    }
    if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
        pthread_cond_init(&election->changed, &attributes) == 0) {
        *code = REDLOCK_OK;
    }
    pthread_condattr_destroy(&attributes);
    if (*code == REDLOCK_OK) {
        return election;
    }
destroy_mutex:
    pthread_mutex_destroy(&election->mutex);
free_memory:
    free(election);
    return NULL;
}

/* On the loop thread. */
static void on_event(const redlock_election_event *event, void *data) {
    redlock_client_election *election = data;
    const bool ended = event->kind == REDLOCK_ELECTION_ENDED;
    lock(election);
    redlock_events_add(&election->events, event);
    pthread_cond_broadcast(&election->changed);
    unlock(election);
    if (ended) {
        election->election = NULL;
    } else if (event->kind != REDLOCK_ELECTION_RESIGNED) {
        return;
    }
    struct redlock_list_entry *first;
    while ((first = redlock_list_pop(&election->stopping))) {
        struct redlock_call *call = &REDLOCK_CONTAINER(first, struct stop_call, entry)->call;
        call->code = event->code;
        if (call->want_result && event->result) {
            call->result = redlock_result_copy(event->result);
        }
        redlock_call_complete(call);
    }
}

static int check_given(bool given) {
    struct redlock_error_text failure = redlock_client_failure();
    return redlock_check_given(&failure, "election", given);
}

struct elect_call {
    struct redlock_call call;
    redlock_client_election *election;
    const char *name;
    const redlock_election_options *options;
};

static bool elect_begins(redlock_manager *manager, struct redlock_call *call) {
    struct elect_call *elect = (struct elect_call *)call;
    redlock_client_election *election = elect->election;
    call->code = redlock_elect(manager, elect->name, elect->options, on_event, election, &election->election);
    if (call->code == REDLOCK_OK) {
        redlock_election_move_standing(election->election, &election->standing);
        redlock_worker_attach(call->worker, &election->attached);
    }
    return false;
}

int redlock_client_elect(redlock_client *client, const char *name, const redlock_election_options *options,
                         redlock_client_election **election) {
    int cancel_state;
    int code = check_given(election != NULL);
    if (code != REDLOCK_OK) {
        return code;
    }
    *election = NULL;
    code = redlock_client_enter(client, &cancel_state);
    if (code != REDLOCK_OK) {
        return code;
    }
    struct elect_call elect = {.call = {.begin = elect_begins}, .name = name, .options = options};
    elect.election = create(client, &code);
    if (elect.election) {
        code = redlock_worker_perform(client->worker, &elect.call);
        if (code == REDLOCK_OK) {
            *election = elect.election;
        } else {
            pthread_cond_destroy(&elect.election->changed);
            pthread_mutex_destroy(&elect.election->mutex);
            free(elect.election);
        }
    }
    redlock_client_exit(client, cancel_state);
    return code;
}

/* On the loop thread. After ENDED the manager cannot say why it refuses. */
static int ask(struct redlock_call *call, const redlock_client_election *election,
               int (*request)(redlock_election *election)) {
    call->reason = election->election ? NULL : "the election has ended";
    call->code = request(election->election);
    return call->code;
}

static void wait_for_end(struct stop_call *stop) {
    assert(stop->election->election);
    redlock_list_prepend(&stop->election->stopping, &stop->entry);
}

static bool resign_begins(redlock_manager *manager, struct redlock_call *call) {
    struct stop_call *stop = (struct stop_call *)call;
    (void)manager;
    if (ask(call, stop->election, redlock_election_resign) != REDLOCK_OK ||
        redlock_election_is_out(stop->election->election)) {
        return false;
    }
    wait_for_end(stop);
    return true;
}

static bool end_begins(redlock_manager *manager, struct redlock_call *call) {
    struct stop_call *stop = (struct stop_call *)call;
    (void)manager;
    if (ask(call, stop->election, redlock_election_end) != REDLOCK_OK) {
        return false;
    }
    wait_for_end(stop);
    return true;
}

/* A call that blocks until the resignation or the end is decided. */
static int stop_election(redlock_client_election *election, redlock_result **result,
                         bool (*begin)(redlock_manager *manager, struct redlock_call *call)) {
    struct stop_call stop = {.call = {.begin = begin, .want_result = result != NULL}, .election = election};
    if (election) {
        return redlock_call_perform(election->client, &stop.call, result);
    }
    if (result) {
        *result = NULL;
    }
    return check_given(false);
}

int redlock_client_election_resign(redlock_client_election *election, redlock_result **result) {
    return stop_election(election, result, resign_begins);
}

int redlock_client_election_end(redlock_client_election *election, redlock_result **result) {
    return stop_election(election, result, end_begins);
}

struct campaign_call {
    struct redlock_call call;
    redlock_client_election *election;
};

static bool campaign_begins(redlock_manager *manager, struct redlock_call *call) {
    (void)manager;
    (void)ask(call, ((struct campaign_call *)call)->election, redlock_election_campaign);
    return false;
}

int redlock_client_election_campaign(redlock_client_election *election) {
    struct campaign_call campaign = {.call = {.begin = campaign_begins}, .election = election};
    return election ? redlock_call_perform(election->client, &campaign.call, NULL) : check_given(false);
}

static struct timespec deadline_after(int64_t timeout_ms) {
    assert(timeout_ms > 0);
    struct timespec now;
    int failed = clock_gettime(CLOCK_MONOTONIC, &now);
    assert(failed == 0);
    (void)failed;
    const int64_t ms = now.tv_nsec / REDLOCK_NS_PER_MS + timeout_ms % 1000;
    now.tv_sec += (time_t)(timeout_ms / 1000 + ms / 1000);
    now.tv_nsec = (long)(ms % 1000 * REDLOCK_NS_PER_MS + now.tv_nsec % REDLOCK_NS_PER_MS);
    return now;
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
    const bool limited = timeout_ms > 0;
    const struct timespec deadline = limited ? deadline_after(timeout_ms) : (struct timespec){0};
    const redlock_election_event *event = take(election);
    bool time_left = timeout_ms != 0;
    while (!event && time_left) {
        if (limited) {
            int failed = pthread_cond_timedwait(&election->changed, &election->mutex, &deadline);
            assert(failed == 0 || failed == ETIMEDOUT);
            time_left = failed == 0;
        } else {
            pthread_cond_wait(&election->changed, &election->mutex);
        }
        event = take(election);
    }
    return event;
}

static int read_next(redlock_client_election *election, int64_t timeout_ms, redlock_election_event *event) {
    redlock_election_event next = {.kind = REDLOCK_ELECTION_NOTHING, .reason = ""};
    int code = REDLOCK_OK;
    lock(election);
    if (election->reading) {
        code = REDLOCK_ERR_BUSY;
    } else if (election->read_all) {
        code = REDLOCK_ERR_CLOSED;
    } else {
        election->reading = true;
        const redlock_election_event *unread = wait_for_event(election, timeout_ms);
        election->reading = false;
        next = unread ? *unread : next;
        election->read_all = next.kind == REDLOCK_ELECTION_ENDED;
    }
    unlock(election);
    if (code == REDLOCK_OK) {
        redlock_fill_struct(event, &next, sizeof next);
    }
    return code;
}

static int check_next(const redlock_client_election *election, int64_t timeout_ms,
                      const redlock_election_event *event) {
    struct redlock_error_text failure = redlock_client_failure();
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
        code = redlock_client_enter(election->client, &cancel_state);
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
