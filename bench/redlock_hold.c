/* The cost of many leases. `hold LEASES MS TTL_MS` holds and renews them for a time. `churn CYCLES
 * WORKERS` measures the heap. */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redlock_client.h"

#define OUTSTANDING 256  /* concurrent acquires */
#define SETTLE_S    2.0  /* several node timeouts */
#define LOOK_S      0.05 /* how often every lease's validity is read */

struct held {
    redlock_lease *lease;
    struct holding *holding;
    bool late;
};

struct holding {
    struct redlock_client *client;
    struct held *held;
    unsigned count, begun, ended, granted;
    int64_t ttl_ms, look_ns; /* processor time spent reading validities */
    uint64_t late, lost;
    char *error;
};

/* The bytes that malloc has handed out, as it reports itself. */
static int64_t heap_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}

static uint64_t extensions(struct redlock_client *client) {
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_manager_statistics(client->manager, &statistics);
    return statistics.extends;
}

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    struct held *held = data;
    (void)lease;
    held->holding->lost++;
    if (!*held->holding->error) {
        (void)snprintf(held->holding->error, CONTENDER_ERROR_SIZE, "a lease was lost: %s", reason);
    }
}

static void acquire_next(struct holding *holding);

static void on_acquired(const redlock_result *result, void *data) {
    struct held *held = data;
    struct holding *holding = held->holding;
    held->lease = redlock_result_lease(result);
    holding->granted += held->lease != NULL;
    if (!held->lease) {
        redlock_client_failed(result, holding->error);
    }
    if (++holding->ended == holding->count) {
        ev_break(holding->client->loop, EVBREAK_ONE);
    }
    acquire_next(holding);
}

static void acquire_next(struct holding *holding) {
    redlock_acquire_options options;
    char name[32];
    if (holding->begun == holding->count) {
        return;
    }
    struct held *held = &holding->held[holding->begun];
    held->holding = holding;
    redlock_acquire_options_default(&options);
    options.ttl_ms = holding->ttl_ms;
    options.auto_extend = true;
    options.on_lost = on_lost;
    options.lost_data = held;
    (void)snprintf(name, sizeof name, "bench-held-%u", holding->begun++);
    if (redlock_acquire(holding->client->manager, name, &options, NULL, on_acquired, held) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

/* Renewal is due at a third of the ttl, with two thirds left. With less than half left, the
 * extension is late. */
static void on_look(struct ev_loop *loop, ev_timer *timer, int events) {
    struct holding *holding = timer->data;
    int64_t began_ns = contender_cpu_ns();
    (void)loop, (void)events;
    for (unsigned i = 0; i < holding->count; i++) {
        struct held *held = &holding->held[i];
        if (!held->lease) {
            continue;
        }
        bool late = redlock_lease_validity_ms(held->lease) < holding->ttl_ms / 2;
        holding->late += late && !held->late;
        held->late = late;
    }
    holding->look_ns += contender_cpu_ns() - began_ns;
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)timer, (void)events;
    ev_break(loop, EVBREAK_ONE);
}

static void on_released(const redlock_result *result, void *data) {
    struct holding *holding = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        redlock_client_failed(result, holding->error);
    }
    if (--holding->ended == 0) {
        ev_break(holding->client->loop, EVBREAK_ONE);
    }
}

/* A few at a time, so that the nodes keep up. */
static void release_all(struct holding *holding) {
    for (unsigned i = 0; i < holding->count;) {
        holding->ended = 0;
        for (; i < holding->count && holding->ended < OUTSTANDING; i++) {
            if (holding->held[i].lease && redlock_release(holding->held[i].lease, on_released, holding) == REDLOCK_OK) {
                holding->ended++;
            }
        }
        if (holding->ended) {
            ev_run(holding->client->loop, 0);
        }
    }
}

static void run_for(struct holding *holding, int64_t duration_ms) {
    ev_timer look, end;
    ev_now_update(holding->client->loop);
    ev_timer_init(&look, on_look, LOOK_S, LOOK_S);
    ev_timer_init(&end, on_time, (double)duration_ms / 1000.0, 0);
    look.data = holding;
    ev_timer_start(holding->client->loop, &look);
    ev_timer_start(holding->client->loop, &end);
    ev_run(holding->client->loop, 0);
    ev_timer_stop(holding->client->loop, &look);
    ev_timer_stop(holding->client->loop, &end);
}

static void hold(struct redlock_client *client, unsigned count, int64_t duration_ms, int64_t ttl_ms, FILE *json,
                 char *error) {
    struct holding holding = {.client = client, .count = count, .ttl_ms = ttl_ms, .error = error};
    holding.held = calloc(count, sizeof *holding.held);
    if (!holding.held) {
        contender_fatal("no memory for %u leases", count);
    }
    int64_t heap_before = heap_bytes(), began_ns = contender_now_ns();
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        acquire_next(&holding);
    }
    ev_run(client->loop, 0);
    int64_t acquired_ns = contender_now_ns(), heap_held = heap_bytes(), cpu_ns = contender_cpu_ns();
    uint64_t extended = extensions(client);
    run_for(&holding, duration_ms);
    cpu_ns = contender_cpu_ns() - cpu_ns - holding.look_ns;
    extended = extensions(client) - extended;
    int64_t held_ns = contender_now_ns() - acquired_ns;
    (void)fprintf(json,
                  "\"held\":%u,\"bytes_per_lease\":%.1f,\"extensions\":%" PRIu64 ",\"late\":%" PRIu64
                  ",\"lost\":%" PRIu64
                  ",\"seconds\":%.3f,\"acquire_seconds\":%.3f,\"cpu_us_per_extension\":%.3f,\"cpu_share\":%.4f",
                  holding.granted, holding.granted ? (double)(heap_held - heap_before) / holding.granted : 0.0,
                  extended, holding.late, holding.lost, (double)held_ns / 1e9, (double)(acquired_ns - began_ns) / 1e9,
                  extended ? (double)cpu_ns / 1e3 / (double)extended : 0.0, (double)cpu_ns / (double)held_ns);
    release_all(&holding);
    if (*error) {
        (void)fprintf(json, ",\"complaints\":1");
        (void)fprintf(stderr, "hold: %s\n", error);
        *error = '\0';
    }
    free(holding.held);
}

/* A cycle ends at the quorum. The last votes of the slowest node must still come, or time out. */
static int64_t settled_heap_bytes(struct redlock_client *client) {
    ev_timer end;
    ev_now_update(client->loop);
    ev_timer_init(&end, on_time, SETTLE_S, 0);
    ev_timer_start(client->loop, &end);
    ev_run(client->loop, 0);
    return heap_bytes();
}

static void churn(struct redlock_client *client, uint64_t count, unsigned workers, FILE *json, char *error) {
    struct contender_cycles warm = {.workers = workers}, cycles = {.workers = workers};
    /* Warm up: buffers grow once, to what so many workers need. */
    redlock_client_cycles(client, &warm, count / 10, error);
    int64_t heap_before = settled_heap_bytes(client);
    redlock_client_cycles(client, &cycles, count, error);
    int64_t heap_after = settled_heap_bytes(client);
    (void)fprintf(json,
                  "\"cycles\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"seconds\":%.3f,\"heap_before\":%" PRId64
                  ",\"heap_after\":%" PRId64,
                  cycles.cycles, cycles.failed, (double)cycles.took_ns / 1e9, heap_before, heap_after);
}

bool redlock_client_hold(void *data, const char *command, const char *arguments, FILE *json,
                         char error[CONTENDER_ERROR_SIZE]) {
    struct redlock_client *client = data;
    unsigned count, workers;
    int64_t duration_ms, ttl_ms;
    uint64_t cycles;
    if (strcmp(command, "hold") != 0 && strcmp(command, "churn") != 0) {
        return false;
    }
    if (!client->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
    } else if (strcmp(command, "hold") == 0 &&
               sscanf(arguments, "%u %" SCNd64 " %" SCNd64, &count, &duration_ms, &ttl_ms) == 3 &&
               count >= OUTSTANDING) {
        hold(client, count, duration_ms, ttl_ms, json, error);
    } else if (strcmp(command, "churn") == 0 && sscanf(arguments, "%" SCNu64 " %u", &cycles, &workers) == 2 &&
               workers >= 1 && workers <= CONTENDER_WORKERS_MAX) {
        churn(client, cycles, workers, json, error);
    } else {
        (void)snprintf(error, CONTENDER_ERROR_SIZE,
                       "hold needs LEASES (256 or more) MS TTL_MS; churn needs CYCLES WORKERS");
    }
    return true;
}
