/* Many clients read a few resources, and some of them write. `readers CLIENTS READS RESOURCES
 * HOLD_US MS MODE`: each client acquires, holds and releases again and again; READS of a hundred
 * acquires only read. With the mode `shared` these share the lock, with `exclusive` none does. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "redlock_client.h"

#define NAME_SIZE 24

enum kind { READS, WRITES, KINDS };

struct crowd {
    struct redlock_client *redlock;
    unsigned clients, reads_percent, resources;
    int64_t hold_us, duration_ms;
    redlock_mode mode; /* of those who read */
    struct contender_samples waits[KINDS];
    int64_t longest_ns[KINDS];
    uint64_t grants[KINDS], failed;
    unsigned outstanding;
    bool ending;
    char *error;
};

struct client {
    struct crowd *crowd;
    enum kind kind;
    unsigned seed;
    int64_t began_ns;
    redlock_lease *lease;
    /* libev's timers are exact to a millisecond, which would be too little for a hold. */
    int alarm;
    ev_io ring;
};

static void begin(struct client *client);

static void go_on(struct client *client) {
    struct crowd *crowd = client->crowd;
    if (!crowd->ending) {
        begin(client);
    } else if (--crowd->outstanding == 0) {
        ev_break(crowd->redlock->loop, EVBREAK_ONE);
    }
}

static void fail(struct client *client, const redlock_result *result) {
    client->crowd->failed++;
    redlock_client_failed(result, client->crowd->error);
}

static void on_released(const redlock_result *result, void *data) {
    if (redlock_result_code(result) != REDLOCK_OK) {
        fail(data, result);
    }
    go_on(data);
}

static void on_held(struct ev_loop *loop, ev_io *ring, int events) {
    struct client *client = ring->data;
    uint64_t rings;
    (void)loop, (void)events;
    if (read(client->alarm, &rings, sizeof rings) != sizeof rings) {
        return;
    }
    if (redlock_release(client->lease, on_released, client) != REDLOCK_OK) {
        contender_fatal("redlock_release is refused");
    }
}

static void on_acquired(const redlock_result *result, void *data) {
    struct client *client = data;
    struct crowd *crowd = client->crowd;
    if (redlock_result_code(result) != REDLOCK_OK) {
        fail(client, result);
        go_on(client);
        return;
    }
    const int64_t waited_ns = contender_now_ns() - client->began_ns;
    const struct itimerspec hold = {
        .it_value = {.tv_sec = crowd->hold_us / 1000000, .tv_nsec = crowd->hold_us % 1000000 * 1000}};
    crowd->grants[client->kind]++;
    contender_sample(&crowd->waits[client->kind], waited_ns);
    if (waited_ns > crowd->longest_ns[client->kind]) {
        crowd->longest_ns[client->kind] = waited_ns;
    }
    client->lease = redlock_result_lease(result);
    if (timerfd_settime(client->alarm, 0, &hold, NULL) != 0) {
        contender_fatal("timerfd_settime: %s", strerror(errno));
    }
}

static void begin(struct client *client) {
    struct crowd *crowd = client->crowd;
    char name[NAME_SIZE];
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    client->kind = (unsigned)rand_r(&client->seed) % 100 < crowd->reads_percent ? READS : WRITES;
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.ttl_ms = CONTENDER_TTL_MS;
    options.mode = client->kind == READS ? crowd->mode : REDLOCK_EXCLUSIVE;
    (void)snprintf(name, sizeof name, "bench-read-%u", (unsigned)rand_r(&client->seed) % crowd->resources);
    client->began_ns = contender_now_ns();
    if (redlock_acquire(crowd->redlock->manager, name, &options, NULL, on_acquired, client) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    ((struct crowd *)timer->data)->ending = true;
}

static void run(struct crowd *crowd, struct client *clients) {
    struct ev_loop *loop = crowd->redlock->loop;
    ev_timer end;
    ev_timer_init(&end, on_time, (double)crowd->duration_ms / 1000.0, 0);
    end.data = crowd;
    ev_now_update(loop);
    ev_timer_start(loop, &end);
    crowd->outstanding = crowd->clients;
    for (unsigned i = 0; i < crowd->clients; i++) {
        struct client *client = &clients[i];
        *client = (struct client){
            .crowd = crowd, .seed = i + 1, .alarm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
        if (client->alarm < 0) {
            contender_fatal("timerfd_create: %s", strerror(errno));
        }
        ev_io_init(&client->ring, on_held, client->alarm, EV_READ);
        client->ring.data = client;
        ev_io_start(loop, &client->ring);
        begin(client);
    }
    ev_run(loop, 0);
    ev_timer_stop(loop, &end);
    for (unsigned i = 0; i < crowd->clients; i++) {
        ev_io_stop(loop, &clients[i].ring);
        (void)close(clients[i].alarm);
    }
}

static void measure(struct crowd *crowd, FILE *json) {
    struct client *clients = calloc(crowd->clients, sizeof *clients);
    if (!clients) {
        contender_fatal("no memory for the clients");
    }
    for (unsigned i = 0; i < KINDS; i++) {
        contender_samples_begin(&crowd->waits[i], CONTENDER_SAMPLES_MAX);
    }
    const int64_t began_ns = contender_now_ns();
    run(crowd, clients);
    (void)fprintf(json, "\"cycles\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"seconds\":%.6f",
                  crowd->grants[READS] + crowd->grants[WRITES], crowd->failed,
                  (double)(contender_now_ns() - began_ns) / 1e9);
    (void)fprintf(json, ",\"reads\":%" PRIu64 ",\"writes\":%" PRIu64 ",\"write_longest_us\":%.1f", crowd->grants[READS],
                  crowd->grants[WRITES], (double)crowd->longest_ns[WRITES] / 1e3);
    contender_write_samples(json, "read_us", &crowd->waits[READS]);
    contender_write_samples(json, "write_us", &crowd->waits[WRITES]);
    for (unsigned i = 0; i < KINDS; i++) {
        contender_samples_end(&crowd->waits[i]);
    }
    free(clients);
}

bool redlock_client_readers(struct redlock_client *client, const char *command, const char *arguments, FILE *json,
                            char error[CONTENDER_ERROR_SIZE]) {
    struct crowd crowd = {.redlock = client, .error = error};
    char mode[16] = "";
    if (strcmp(command, "readers") != 0) {
        return false;
    }
    if (sscanf(arguments, "%u %u %u %" SCNd64 " %" SCNd64 " %15s", &crowd.clients, &crowd.reads_percent,
               &crowd.resources, &crowd.hold_us, &crowd.duration_ms, mode) != 6 ||
        crowd.clients == 0 || crowd.clients > CONTENDER_CLIENTS_MAX || crowd.reads_percent > 100 ||
        crowd.resources == 0 || crowd.hold_us <= 0 || crowd.duration_ms <= 0 ||
        (strcmp(mode, "shared") != 0 && strcmp(mode, "exclusive") != 0) || !client->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE,
                       "readers needs CLIENTS READS RESOURCES HOLD_US MS shared|exclusive, after connect");
        return true;
    }
    crowd.mode = strcmp(mode, "shared") == 0 ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
    measure(&crowd, json);
    if (*error) {
        (void)fprintf(stderr, "readers: %s\n", error);
        *error = '\0';
    }
    return true;
}
