/* Many clients compete for one resource: each acquires, holds and releases, once or again and
 * again. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "redlock_client.h"

#define RESOURCE "bench-contended"

struct fight;

struct client {
    struct fight *fight;
    unsigned index;
    size_t wait;              /* in the contest's array */
    redlock_request *request; /* while it waits */
};

struct fight {
    struct redlock_client *redlock;
    struct contender_contest *contest;
    struct client *clients;
    unsigned begun, outstanding;
    struct client *holder;
    redlock_lease *lease; /* the holder's */
    long long counter;    /* what the holder read */
    ev_timer next, end;
    /* libev's timers are exact to a millisecond, which would be too little for a hold. */
    int alarm;
    ev_io ring;
    bool ending;
    char *error;
};

static void begin(struct client *client);

/* The client wants the lock no more. */
static void leave(struct fight *fight) {
    if (--fight->outstanding == 0) {
        ev_break(fight->redlock->loop, EVBREAK_ONE);
    }
}

static void go_on(struct client *client) {
    if (client->fight->contest->again && !client->fight->ending) {
        begin(client);
    } else {
        leave(client->fight);
    }
}

static void fail(struct client *client, const redlock_result *result) {
    client->fight->contest->failed++;
    redlock_client_failed(result, client->fight->error);
}

static void on_released(const redlock_result *result, void *data) {
    struct client *client = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        fail(client, result);
    }
    go_on(client);
}

static void release(struct client *client, redlock_lease *lease) {
    if (redlock_release(lease, on_released, client) != REDLOCK_OK) {
        contender_fatal("redlock_release is refused");
    }
}

static void on_held(struct ev_loop *loop, ev_io *ring, int events) {
    struct fight *fight = ring->data;
    struct contender_contest *contest = fight->contest;
    struct client *client = fight->holder;
    uint64_t rings;
    (void)loop, (void)events;
    if (read(fight->alarm, &rings, sizeof rings) != sizeof rings || !client) {
        return;
    }
    if (contest->counter) {
        contender_counter_write(contest->counter, fight->counter + 1);
    }
    fight->holder = NULL;
    contest->waits[client->wait].released_us = contender_now_us();
    release(client, fight->lease);
}

static void hold_until(struct fight *fight, int64_t until_us) {
    const struct itimerspec when = {.it_value = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000}};
    if (timerfd_settime(fight->alarm, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        contender_fatal("timerfd_settime: %s", strerror(errno));
    }
}

static void on_acquired(const redlock_result *result, void *data) {
    struct client *client = data;
    struct fight *fight = client->fight;
    struct contender_contest *contest = fight->contest;
    const int64_t now_us = contender_now_us();
    client->request = NULL;
    if (redlock_result_code(result) != REDLOCK_OK) {
        if (redlock_result_code(result) != REDLOCK_ERR_CANCELLED) {
            fail(client, result);
        }
        go_on(client);
        return;
    }
    if (fight->ending) {
        release(client, redlock_result_lease(result));
        return;
    }
    contest->waits[client->wait].granted_us = now_us;
    if (fight->holder) {
        /* Two hold the lock, which the driver sees in their times. */
        contest->waits[client->wait].released_us = now_us;
        release(client, redlock_result_lease(result));
        return;
    }
    fight->holder = client;
    fight->lease = redlock_result_lease(result);
    if (contest->counter) {
        fight->counter = contender_counter_read(contest->counter);
    }
    const bool leads = client->index == contest->clients;
    hold_until(fight, leads ? contest->free_us : now_us + contest->hold_us);
}

static void begin(struct client *client) {
    struct fight *fight = client->fight;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.order = fight->redlock->order;
    client->wait = contender_wait_begin(fight->contest, client->index);
    if (redlock_acquire(fight->redlock->manager, RESOURCE, &options, &client->request, on_acquired, client) !=
        REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

/* Those whose time has come begin. */
static void on_next(struct ev_loop *loop, ev_timer *timer, int events) {
    struct fight *fight = timer->data;
    const struct contender_contest *contest = fight->contest;
    int64_t left_us = 0;
    (void)events;
    while (fight->begun < contest->clients && left_us <= 0) {
        left_us = contest->begin_us + fight->begun * contest->space_us - contender_now_us();
        if (left_us <= 0) {
            begin(&fight->clients[fight->begun++]);
        }
    }
    if (fight->begun < contest->clients) {
        ev_now_update(loop);
        ev_timer_set(timer, (double)left_us / 1e6, 0);
        ev_timer_start(loop, timer);
    }
}

static void on_end(struct ev_loop *loop, ev_timer *timer, int events) {
    struct fight *fight = timer->data;
    (void)events;
    fight->ending = true;
    ev_timer_stop(loop, &fight->next);
    for (; fight->begun < fight->contest->clients; fight->begun++) {
        leave(fight);
    }
    for (unsigned i = 0; i < fight->contest->clients; i++) {
        if (fight->clients[i].request) {
            redlock_request_cancel(fight->clients[i].request);
        }
    }
}

static void start_timer(struct fight *fight, ev_timer *timer, void (*cb)(struct ev_loop *, ev_timer *, int),
                        int64_t at_us) {
    const int64_t left_us = at_us - contender_now_us();
    ev_timer_init(timer, cb, left_us > 0 ? (double)left_us / 1e6 : 0, 0);
    timer->data = fight;
    ev_timer_start(fight->redlock->loop, timer);
}

static void run(struct fight *fight) {
    struct ev_loop *loop = fight->redlock->loop;
    struct contender_contest *contest = fight->contest;
    const bool leads = contest->free_us != 0;
    fight->outstanding = contest->clients + leads;
    ev_io_init(&fight->ring, on_held, fight->alarm, EV_READ);
    fight->ring.data = fight;
    ev_io_start(loop, &fight->ring);
    ev_now_update(loop);
    start_timer(fight, &fight->next, on_next, contest->begin_us);
    start_timer(fight, &fight->end, on_end, contest->end_us);
    for (unsigned i = 0; i <= contest->clients; i++) {
        fight->clients[i] = (struct client){.fight = fight, .index = i};
    }
    if (leads) {
        begin(&fight->clients[contest->clients]);
    }
    if (fight->outstanding > 0) {
        ev_run(loop, 0);
    }
    ev_timer_stop(loop, &fight->next);
    ev_timer_stop(loop, &fight->end);
    ev_io_stop(loop, &fight->ring);
}

void redlock_client_contend(void *data, struct contender_contest *contest, char error[CONTENDER_ERROR_SIZE]) {
    struct fight fight = {.redlock = data, .contest = contest, .error = error};
    if (!fight.redlock->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    fight.clients = calloc(contest->clients + 1, sizeof *fight.clients);
    fight.alarm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!fight.clients || fight.alarm < 0) {
        contender_fatal("no memory for the clients, or no timer");
    }
    run(&fight);
    (void)close(fight.alarm);
    free(fight.clients);
}

struct taking {
    struct ev_loop *loop;
    int64_t granted_us;
    char *error;
};

static void on_taken(const redlock_result *result, void *data) {
    struct taking *taking = data;
    taking->granted_us = contender_now_us();
    if (redlock_result_code(result) != REDLOCK_OK) {
        redlock_client_failed(result, taking->error);
    }
    ev_break(taking->loop, EVBREAK_ONE);
}

/* The lease lives on until its ttl, the next `connect`, or the end of the program. */
bool redlock_client_take(struct redlock_client *client, const char *command, const char *arguments, FILE *json,
                         char error[CONTENDER_ERROR_SIZE]) {
    struct taking taking = {.loop = client->loop, .error = error};
    redlock_acquire_options options;
    if (strcmp(command, "take") != 0) {
        return false;
    }
    redlock_acquire_options_default(&options);
    if (sscanf(arguments, "%" SCNd64, &options.ttl_ms) != 1 || !client->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "take needs TTL_MS, after connect");
        return true;
    }
    /* As those who wait, it is one that would hand over. */
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.order = client->order;
    const int64_t began_us = contender_now_us();
    if (redlock_acquire(client->manager, RESOURCE, &options, NULL, on_taken, &taking) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
    ev_run(client->loop, 0);
    (void)fprintf(json, "\"began_us\":%" PRId64 ",\"granted_us\":%" PRId64, began_us, taking.granted_us);
    return true;
}
