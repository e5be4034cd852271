/*
 * One resource goes from client to client, and their wall clocks differ. How often does its fencing
 * token take one round trip?
 *
 * handover PATTERN CLIENTS MS HOLD_US SKEW_US
 *
 * Each client is a thread with its own loop and manager. The first client's wall clock is SKEW_US
 * ahead of the last one's; the others lie between. PATTERN is one of:
 * wait  Each client acquires (it waits, and tries again every millisecond), holds, releases, and
 *       pauses for as long as it held.
 * next  Each client releases and wakes the next one, which has not tried before.
 * Clients learn from each other how far their clocks are ahead. So the first half of MS is not
 * counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "redlock_client.h"

#define CLIENTS_MAX     16
#define NODE_TIMEOUT_MS 250 /* as in redlock_async.c */
#define CONNECT_MS      10000
#define RETRY_MAX_MS    1
#define HANDOVERS       20000 /* samples */
#define RESOURCE        "bench-handover"

/* How far the wall clock of this thread's client is ahead. */
static _Thread_local int64_t skew_ns;

/* Replaces libc's function, also for the library. */
#pragma GCC visibility push(default)
int clock_gettime(clockid_t clock, struct timespec *now) {
    int64_t ns;
    if (syscall(SYS_clock_gettime, clock, now) != 0) {
        return -1;
    }
    if (clock == CLOCK_REALTIME && skew_ns != 0) {
        ns = now->tv_nsec + skew_ns;
        now->tv_sec += ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
    return 0;
}
#pragma GCC visibility pop

struct relay;

struct client {
    struct relay *relay;
    struct ev_loop *loop;
    redlock_manager *manager;
    redlock_request *request; /* while it waits */
    redlock_lease *lease;     /* while it holds */
    ev_timer pause;           /* while it holds, and after the release */
    ev_async wake;            /* its turn has come, or the run ends */
    pthread_t thread;
    unsigned index;
    int64_t skew_ns;
    bool holds, busy, stops, connected;
    uint64_t grants, failed; /* in the whole run */
    uint64_t fast, slow, handovers, handovers_slow, slow_before;
    char error[CONTENDER_ERROR_SIZE];
};

/* What the clients share. */
struct relay {
    const struct contender_nodes *nodes;
    unsigned count;
    int64_t hold_us, skew_us;
    bool in_turns;
    struct client clients[CLIENTS_MAX];
    pthread_barrier_t ready;
    _Atomic bool counting, ending;
    /* Written by the holder of the lock: */
    _Atomic unsigned last; /* the previous holder */
    _Atomic uint64_t fence, not_rising;
    _Atomic int64_t released_ns; /* 0 before the first release */
    struct contender_samples handover;
};

static void must(int failed, const char *what) {
    if (failed) {
        contender_fatal("%s: %s", what, strerror(failed));
    }
}

static uint64_t slow_tokens(const struct client *client) {
    redlock_statistics statistics = {.size = sizeof statistics};
    (void)redlock_manager_statistics(client->manager, &statistics);
    return statistics.fenced_slow;
}

static void begin(struct client *client);

static void on_closed(void *data) {
    ev_break(data, EVBREAK_ALL);
}

/* Closes the manager once the run has ended and no request is pending. */
static void close_if_idle(struct client *client) {
    if (client->stops && !client->busy) {
        ev_timer_stop(client->loop, &client->pause);
        redlock_manager_close(client->manager, on_closed, client->loop);
    }
}

static void on_released(const redlock_result *result, void *data) {
    struct client *client = data;
    struct relay *relay = client->relay;
    if (redlock_result_code(result) != REDLOCK_OK) {
        client->failed++;
        redlock_client_failed(result, client->error);
    }
    client->busy = false;
    if (client->stops) {
        close_if_idle(client);
    } else if (relay->in_turns) {
        struct client *next = &relay->clients[(client->index + 1) % relay->count];
        ev_async_send(next->loop, &next->wake);
    } else {
        ev_now_update(client->loop);
        ev_timer_set(&client->pause, (double)relay->hold_us / 1e6, 0);
        ev_timer_start(client->loop, &client->pause);
    }
}

static void release(struct client *client) {
    client->holds = false;
    atomic_store(&client->relay->released_ns, contender_now_ns());
    if (redlock_release(client->lease, on_released, client) != REDLOCK_OK) {
        contender_fatal("redlock_release is refused");
    }
}

/* A holder releases; a client that has released acquires again. */
static void on_pause(struct ev_loop *loop, ev_timer *timer, int events) {
    struct client *client = timer->data;
    (void)loop, (void)events;
    if (client->holds) {
        release(client);
    } else {
        begin(client);
    }
}

static void count_grant(struct client *client) {
    struct relay *relay = client->relay;
    uint64_t fence = redlock_lease_fence(client->lease);
    bool from_another = atomic_exchange(&relay->last, client->index) != client->index;
    int64_t released_ns = atomic_load(&relay->released_ns);
    client->grants++;
    if (atomic_exchange(&relay->fence, fence) >= fence) {
        atomic_fetch_add(&relay->not_rising, 1);
    }
    if (!atomic_load(&relay->counting)) {
        return;
    }
    const bool slow = slow_tokens(client) != client->slow_before;
    client->slow += slow;
    client->fast += !slow;
    if (from_another && released_ns != 0) {
        client->handovers++;
        client->handovers_slow += slow;
        contender_sample(&relay->handover, contender_now_ns() - released_ns);
    }
}

static void on_acquired(const redlock_result *result, void *data) {
    struct client *client = data;
    client->request = NULL;
    if (redlock_result_code(result) != REDLOCK_OK) {
        client->busy = false;
        if (!client->stops) {
            client->failed++;
            redlock_client_failed(result, client->error);
            begin(client);
        }
        close_if_idle(client);
        return;
    }
    client->lease = redlock_result_lease(result);
    client->holds = true;
    count_grant(client);
    if (client->relay->hold_us == 0) {
        release(client);
        return;
    }
    ev_now_update(client->loop);
    ev_timer_set(&client->pause, (double)client->relay->hold_us / 1e6, 0);
    ev_timer_start(client->loop, &client->pause);
}

static void begin(struct client *client) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.retry_delay_min_ms = 0;
    options.retry_delay_max_ms = RETRY_MAX_MS;
    client->busy = true;
    client->slow_before = slow_tokens(client);
    if (redlock_acquire(client->manager, RESOURCE, &options, &client->request, on_acquired, client) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

/* Its turn has come, or the run ends. */
static void on_wake(struct ev_loop *loop, ev_async *wake, int events) {
    struct client *client = wake->data;
    (void)loop, (void)events;
    if (!atomic_load(&client->relay->ending)) {
        begin(client);
        return;
    }
    client->stops = true;
    if (client->request) {
        redlock_request_cancel(client->request);
    }
    close_if_idle(client);
}

static void on_connected(const redlock_result *result, void *data) {
    struct client *client = data;
    client->connected = redlock_result_code(result) == REDLOCK_OK;
    if (!client->connected) {
        redlock_client_failed(result, client->error);
    }
    ev_break(client->loop, EVBREAK_ONE);
}

static void *live(void *data) {
    struct client *client = data;
    struct relay *relay = client->relay;
    redlock_manager_options options;
    char error[CONTENDER_ERROR_SIZE];
    skew_ns = client->skew_ns;
    redlock_manager_options_default(&options);
    options.nodes = relay->nodes->at;
    options.node_count = relay->nodes->count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    if (redlock_manager_create(client->loop, &options, &client->manager, error, sizeof error) != REDLOCK_OK) {
        contender_fatal("redlock_manager_create: %s", error);
    }
    redlock_manager_connect(client->manager, CONNECT_MS, on_connected, client);
    ev_run(client->loop, 0);
    (void)pthread_barrier_wait(&relay->ready);
    ev_run(client->loop, 0);
    return NULL;
}

static void start_client(struct relay *relay, unsigned index) {
    struct client *client = &relay->clients[index];
    client->relay = relay;
    client->index = index;
    client->skew_ns = relay->count > 1 ? relay->skew_us * 1000 * (relay->count - 1 - index) / (relay->count - 1) : 0;
    client->loop = ev_loop_new(EVFLAG_AUTO);
    if (!client->loop) {
        contender_fatal("no event loop");
    }
    ev_timer_init(&client->pause, on_pause, 0, 0);
    client->pause.data = client;
    ev_async_init(&client->wake, on_wake);
    client->wake.data = client;
    ev_async_start(client->loop, &client->wake);
    must(pthread_create(&client->thread, NULL, live, client), "pthread_create");
}

static void wake_clients(struct relay *relay, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        ev_async_send(relay->clients[i].loop, &relay->clients[i].wake);
    }
}

static void pass_ms(int64_t ms) {
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
        /* sleep for the rest */
    }
}

/* Returns when all clients have released. */
static void run(struct relay *relay, int64_t duration_ms) {
    atomic_store(&relay->last, relay->count);
    must(pthread_barrier_init(&relay->ready, NULL, relay->count + 1), "pthread_barrier_init");
    for (unsigned i = 0; i < relay->count; i++) {
        start_client(relay, i);
    }
    (void)pthread_barrier_wait(&relay->ready);
    if (duration_ms > 0) {
        wake_clients(relay, relay->in_turns ? 1 : relay->count);
        pass_ms(duration_ms / 2);
        atomic_store(&relay->counting, true);
        pass_ms(duration_ms - duration_ms / 2);
    }
    atomic_store(&relay->ending, true);
    wake_clients(relay, relay->count);
    for (unsigned i = 0; i < relay->count; i++) {
        must(pthread_join(relay->clients[i].thread, NULL), "pthread_join");
    }
    for (unsigned i = 0; i < relay->count; i++) {
        ev_loop_destroy(relay->clients[i].loop);
    }
    (void)pthread_barrier_destroy(&relay->ready);
}

/* A copy of the nodes from the last `connect`. */
struct nodes {
    struct contender_nodes list;
    char at[CONTENDER_NODES_MAX][64];
};

/* Checks that a client can connect, which needs a quorum of the nodes. */
static void command_connect(void *data, const struct contender_nodes *given, char error[CONTENDER_ERROR_SIZE]) {
    struct nodes *nodes = data;
    struct relay *relay = calloc(1, sizeof *relay);
    if (!relay) {
        contender_fatal("no memory for a client");
    }
    for (size_t i = 0; i < given->count; i++) {
        (void)snprintf(nodes->at[i], sizeof nodes->at[i], "%s", given->at[i]);
        nodes->list.at[i] = nodes->at[i];
    }
    nodes->list.count = given->count;
    relay->nodes = &nodes->list;
    relay->count = 1;
    run(relay, 0);
    if (!relay->clients[0].connected) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "%s", relay->clients[0].error);
    }
    free(relay);
}

static void write_figures(const struct relay *relay, int64_t duration_ms, FILE *json) {
    uint64_t failed = 0, handovers = 0, slow = 0, fenced_fast = 0, fenced_slow = 0;
    (void)fputs("\"grants\":[", json);
    for (unsigned i = 0; i < relay->count; i++) {
        const struct client *client = &relay->clients[i];
        (void)fprintf(json, "%s%" PRIu64, i ? "," : "", client->grants);
        failed += client->failed;
        handovers += client->handovers;
        slow += client->handovers_slow;
        fenced_fast += client->fast;
        fenced_slow += client->slow;
        if (*client->error) {
            (void)fprintf(stderr, "handover: %s\n", client->error);
        }
    }
    (void)fprintf(json,
                  "],\"seconds\":%.3f,\"failed\":%" PRIu64 ",\"handovers\":%" PRIu64 ",\"handovers_slow\":%" PRIu64
                  ",\"fenced_fast\":%" PRIu64 ",\"fenced_slow\":%" PRIu64 ",\"not_rising\":%" PRIu64,
                  (double)duration_ms / 1e3, failed, handovers, slow, fenced_fast, fenced_slow,
                  atomic_load(&relay->not_rising));
    contender_write_samples(json, "handover_us", &relay->handover);
}

static bool command_handover(void *data, const char *command, const char *arguments, FILE *json,
                             char error[CONTENDER_ERROR_SIZE]) {
    const struct nodes *nodes = data;
    struct relay *relay;
    char pattern[8];
    int64_t duration_ms;
    if (strcmp(command, "handover") != 0) {
        return false;
    }
    relay = calloc(1, sizeof *relay);
    if (!relay) {
        contender_fatal("no memory for the clients");
    }
    relay->nodes = &nodes->list;
    if (sscanf(arguments, "%7s %u %" SCNd64 " %" SCNd64 " %" SCNd64, pattern, &relay->count, &duration_ms,
               &relay->hold_us, &relay->skew_us) != 5 ||
        relay->count < 2 || relay->count > CLIENTS_MAX || duration_ms < 1 || relay->hold_us < 0 ||
        (strcmp(pattern, "wait") != 0 && strcmp(pattern, "next") != 0)) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "handover needs wait or next, CLIENTS (2 to %d) MS HOLD_US SKEW_US",
                       CLIENTS_MAX);
    } else if (nodes->list.count == 0) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
    } else {
        relay->in_turns = strcmp(pattern, "next") == 0;
        contender_samples_begin(&relay->handover, HANDOVERS);
        run(relay, duration_ms);
        write_figures(relay, duration_ms, json);
        contender_samples_end(&relay->handover);
    }
    free(relay);
    return true;
}

static void command_cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    (void)data, (void)cycles;
    (void)snprintf(error, CONTENDER_ERROR_SIZE, "unsupported");
}

int main(void) {
    static const struct contender contender = {.name = "redlock_handover",
                                               .version = "this tree",
                                               .notes = "libredlock from several threads whose wall clocks differ",
                                               .connect = command_connect,
                                               .cycles = command_cycles,
                                               .other = command_handover};
    static struct nodes nodes;
    return contender_run(&contender, &nodes);
}
