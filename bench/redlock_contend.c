/* Many clients compete for one resource. Each acquires with the default delays, holds, releases,
 * and starts again. */
#include <stdlib.h>
#include <string.h>

#include "redlock_client.h"

struct fight;

struct client {
    struct fight *fight;
    unsigned index;
    redlock_request *request; /* while it waits */
    redlock_lease *lease;     /* while it holds */
    ev_timer hold;
};

struct fight {
    struct redlock_client *redlock;
    struct contender_contention *contention;
    struct client clients[CONTENDER_CLIENTS_MAX];
    unsigned outstanding, holders;
    int64_t released_ns; /* 0 before the first release */
    bool ending;
    char *error;
};

static void begin(struct client *client);

static void end(struct client *client) {
    struct fight *fight = client->fight;
    if (!fight->ending) {
        begin(client);
    } else if (--fight->outstanding == 0) {
        ev_break(fight->redlock->loop, EVBREAK_ONE);
    }
}

static void on_released(const redlock_result *result, void *data) {
    struct client *client = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        client->fight->contention->failed++;
        redlock_client_failed(result, client->fight->error);
    }
    end(client);
}

static void release(struct client *client) {
    struct fight *fight = client->fight;
    fight->holders--;
    fight->released_ns = contender_now_ns();
    if (redlock_release(client->lease, on_released, client) != REDLOCK_OK) {
        contender_fatal("redlock_release is refused");
    }
    client->lease = NULL;
}

static void on_held(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    release(timer->data);
}

static void on_acquired(const redlock_result *result, void *data) {
    struct client *client = data;
    struct fight *fight = client->fight;
    client->request = NULL;
    if (redlock_result_code(result) != REDLOCK_OK) {
        if (redlock_result_code(result) != REDLOCK_ERR_CANCELLED) {
            fight->contention->failed++;
            redlock_client_failed(result, fight->error);
        }
        end(client);
        return;
    }
    client->lease = redlock_result_lease(result);
    fight->contention->overlaps += fight->holders++ > 0;
    if (fight->ending) {
        release(client);
        return;
    }
    fight->contention->grants[client->index]++;
    if (fight->released_ns) {
        contender_sample(&fight->contention->handover, contender_now_ns() - fight->released_ns);
    }
    ev_now_update(fight->redlock->loop);
    ev_timer_set(&client->hold, (double)fight->contention->hold_us / 1e6, 0);
    ev_timer_start(fight->redlock->loop, &client->hold);
}

static void begin(struct client *client) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    if (redlock_acquire(client->fight->redlock->manager, "bench-contended", &options, &client->request, on_acquired,
                        client) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events) {
    struct fight *fight = timer->data;
    (void)loop, (void)events;
    fight->ending = true;
    for (unsigned i = 0; i < fight->contention->clients; i++) {
        if (fight->clients[i].request) {
            redlock_request_cancel(fight->clients[i].request);
        }
    }
}

void redlock_client_contend(void *data, struct contender_contention *contention, char error[CONTENDER_ERROR_SIZE]) {
    struct redlock_client *redlock = data;
    struct fight *fight;
    ev_timer timer;
    if (!redlock->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    fight = calloc(1, sizeof *fight);
    if (!fight) {
        contender_fatal("no memory for the clients");
    }
    fight->redlock = redlock;
    fight->contention = contention;
    fight->error = error;
    fight->outstanding = contention->clients;
    ev_now_update(redlock->loop);
    ev_timer_init(&timer, on_time, (double)contention->duration_ms / 1000.0, 0);
    timer.data = fight;
    ev_timer_start(redlock->loop, &timer);
    int64_t began_ns = contender_now_ns();
    for (unsigned i = 0; i < contention->clients; i++) {
        struct client *client = &fight->clients[i];
        client->fight = fight;
        client->index = i;
        ev_timer_init(&client->hold, on_held, 0, 0);
        client->hold.data = client;
        begin(client);
    }
    ev_run(redlock->loop, 0);
    contention->took_ns = contender_now_ns() - began_ns;
    /* Grants count until the time is over. After that, clients only release. */
    if (contention->took_ns > contention->duration_ms * 1000000) {
        contention->took_ns = contention->duration_ms * 1000000;
    }
    free(fight);
}
