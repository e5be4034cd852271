/* This library's blocking API as a contender: every worker is a thread. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <redlock/blocking.h>

#include "contender.h"

#define CYCLES_THREADS_MAX 64 /* nobody runs thousands of threads for locks */
#define NAME_SIZE          24
#define CONNECT_MS         10000
#define NODE_TIMEOUT_MS    250 /* as in redlock_async.c */

struct team;

struct worker {
    struct team *team;
    pthread_t thread;
    uint64_t cycles, failed;
    unsigned index;
    int64_t began_ns, ended_ns;
    char names[CONTENDER_NAMES][NAME_SIZE];
    char error[CONTENDER_ERROR_SIZE];
};

/* The threads of one command, and what they share. */
struct team {
    redlock_client *client;
    unsigned count;
    int64_t duration_ns;
    pthread_barrier_t start;
    struct worker *workers;
    pthread_mutex_t mutex; /* guards the members below */
    struct contender_samples *acquire, *release;
    struct contender_contest *contest;
};

static void must(int failed, const char *what) {
    if (failed) {
        contender_fatal("%s: %s", what, strerror(failed));
    }
}

static void count_failure(struct worker *worker, int code, const redlock_result *result) {
    worker->failed++;
    if (*worker->error) {
        return;
    }
    if (result) {
        (void)redlock_result_message(result, worker->error, sizeof worker->error);
    } else {
        (void)snprintf(worker->error, sizeof worker->error, "%s", redlock_strerror(code));
    }
}

static void sample_cycle(struct team *team, int64_t acquire_ns, int64_t release_ns) {
    if (team->acquire->wanted == 0) {
        return;
    }
    must(pthread_mutex_lock(&team->mutex), "pthread_mutex_lock");
    contender_sample(team->acquire, acquire_ns);
    contender_sample(team->release, release_ns);
    must(pthread_mutex_unlock(&team->mutex), "pthread_mutex_unlock");
}

/* Runs one cycle. Returns the time when it ended. */
static int64_t run_cycle(struct worker *worker, const char *name, int64_t began_ns) {
    redlock_client *client = worker->team->client;
    redlock_result *result;
    redlock_lease *lease;
    int code = redlock_client_acquire(client, name, NULL, &lease, &result);
    int64_t acquired_ns = contender_now_ns(), ended_ns = acquired_ns;
    if (code == REDLOCK_OK) {
        redlock_result_free(result);
        result = NULL;
        code = redlock_client_release(client, lease, NULL);
        ended_ns = contender_now_ns();
        sample_cycle(worker->team, acquired_ns - began_ns, ended_ns - acquired_ns);
    }
    if (code == REDLOCK_OK) {
        worker->cycles++;
    } else {
        count_failure(worker, code, result);
    }
    redlock_result_free(result);
    return ended_ns;
}

static void *run_cycles(void *data) {
    struct worker *worker = data;
    (void)pthread_barrier_wait(&worker->team->start);
    int64_t now_ns = worker->began_ns = contender_now_ns();
    const int64_t end_ns = now_ns + worker->team->duration_ns;
    for (unsigned name = 0; now_ns < end_ns; name = (name + 1) % CONTENDER_NAMES) {
        now_ns = run_cycle(worker, worker->names[name], now_ns);
    }
    worker->ended_ns = now_ns;
    return NULL;
}

static void sleep_until(int64_t until_us) {
    const struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    must(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), "clock_nanosleep");
}

static size_t begin_wait(struct worker *worker) {
    struct team *team = worker->team;
    must(pthread_mutex_lock(&team->mutex), "pthread_mutex_lock");
    size_t wait = contender_wait_begin(team->contest, worker->index);
    must(pthread_mutex_unlock(&team->mutex), "pthread_mutex_unlock");
    return wait;
}

/* Holds the lock. A grant after the end is released at once and not counted. */
static void hold(struct worker *worker, size_t wait) {
    struct team *team = worker->team;
    const struct contender_contest *contest = team->contest;
    const bool leads = worker->index == contest->clients;
    const int64_t granted_us = contender_now_us();
    if (granted_us >= contest->end_us) {
        return;
    }
    long long counter = contest->counter ? contender_counter_read(contest->counter) : 0;
    sleep_until(leads ? contest->free_us : granted_us + contest->hold_us);
    if (contest->counter) {
        contender_counter_write(contest->counter, counter + 1);
    }
    must(pthread_mutex_lock(&team->mutex), "pthread_mutex_lock");
    contest->waits[wait].granted_us = granted_us;
    contest->waits[wait].released_us = contender_now_us();
    must(pthread_mutex_unlock(&team->mutex), "pthread_mutex_unlock");
}

/* A blocking acquire cannot be cancelled. So it waits at most for the time left, in ms, rounded
 * up. */
static void compete(struct worker *worker) {
    redlock_client *client = worker->team->client;
    const int64_t end_us = worker->team->contest->end_us;
    redlock_client_acquire_options options;
    redlock_result *result;
    redlock_lease *lease;
    const size_t wait = begin_wait(worker);
    const int64_t left_us = end_us - contender_now_us();
    redlock_client_acquire_options_default(&options);
    options.lock.wait_timeout_ms = left_us > 0 ? (left_us + 999) / 1000 : 0;
    int code = redlock_client_acquire(client, "bench-contended", &options, &lease, &result);
    if (code == REDLOCK_OK) {
        redlock_result_free(result);
        result = NULL;
        hold(worker, wait);
        code = redlock_client_release(client, lease, NULL);
    } else if ((code == REDLOCK_ERR_CONTENDED || code == REDLOCK_ERR_NO_QUORUM) && contender_now_us() >= end_us) {
        code = REDLOCK_OK; /* the time ended before this attempt had a quorum */
    }
    if (code != REDLOCK_OK) {
        count_failure(worker, code, result);
    }
    redlock_result_free(result);
}

static void *run_contention(void *data) {
    struct worker *worker = data;
    const struct contender_contest *contest = worker->team->contest;
    (void)pthread_barrier_wait(&worker->team->start);
    if (worker->index < contest->clients) {
        sleep_until(contest->begin_us + worker->index * contest->space_us);
    }
    do {
        compete(worker);
    } while (contest->again && contender_now_us() < contest->end_us);
    return NULL;
}

/* Runs a command: all threads start together, and end before this returns. */

static void run_team(struct team *team, void *(*body)(void *)) {
    must(pthread_mutex_init(&team->mutex, NULL), "pthread_mutex_init");
    must(pthread_barrier_init(&team->start, NULL, team->count), "pthread_barrier_init");
    team->workers = calloc(team->count, sizeof *team->workers);
    if (!team->workers) {
        contender_fatal("no memory for the workers");
    }
    for (unsigned w = 0; w < team->count; w++) {
        struct worker *worker = &team->workers[w];
        worker->team = team;
        worker->index = w;
        for (unsigned n = 0; n < CONTENDER_NAMES; n++) {
            (void)snprintf(worker->names[n], NAME_SIZE, "bench-%u-%u", w, n);
        }
    }
    for (unsigned w = 0; w < team->count; w++) {
        must(pthread_create(&team->workers[w].thread, NULL, body, &team->workers[w]), "pthread_create");
    }
    for (unsigned w = 0; w < team->count; w++) {
        must(pthread_join(team->workers[w].thread, NULL), "pthread_join");
    }
}

static int64_t end_team(struct team *team, uint64_t *failed, char error[CONTENDER_ERROR_SIZE]) {
    int64_t began_ns = INT64_MAX, ended_ns = 0;
    for (unsigned w = 0; w < team->count; w++) {
        const struct worker *worker = &team->workers[w];
        began_ns = worker->began_ns < began_ns ? worker->began_ns : began_ns;
        ended_ns = worker->ended_ns > ended_ns ? worker->ended_ns : ended_ns;
        *failed += worker->failed;
        if (!*error) {
            memcpy(error, worker->error, CONTENDER_ERROR_SIZE);
        }
    }
    free(team->workers);
    must(pthread_barrier_destroy(&team->start), "pthread_barrier_destroy");
    must(pthread_mutex_destroy(&team->mutex), "pthread_mutex_destroy");
    return ended_ns - began_ns;
}

static void command_cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    struct team team = {.client = *(redlock_client **)data,
                        .count = cycles->workers,
                        .duration_ns = cycles->duration_ms * 1000000,
                        .acquire = &cycles->acquire,
                        .release = &cycles->release};
    if (!team.client || team.count > CYCLES_THREADS_MAX) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "%s", team.client ? "unsupported" : "not connected");
        return;
    }
    run_team(&team, run_cycles);
    for (unsigned w = 0; w < team.count; w++) {
        cycles->cycles += team.workers[w].cycles;
    }
    cycles->took_ns = end_team(&team, &cycles->failed, error);
}

static void command_contend(void *data, struct contender_contest *contest, char error[CONTENDER_ERROR_SIZE]) {
    struct team team = {
        .client = *(redlock_client **)data, .count = contest->clients + (contest->free_us != 0), .contest = contest};
    if (!team.client) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
    } else if (team.count > 0) {
        run_team(&team, run_contention);
        (void)end_team(&team, &contest->failed, error);
    }
}

static void disconnect(redlock_client **client) {
    if (*client && redlock_client_close(*client) != REDLOCK_OK) {
        contender_fatal("redlock_client_close is refused");
    }
    *client = NULL;
}

static void command_connect(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]) {
    redlock_client **client = data;
    redlock_manager_options options;
    redlock_lease *lease;
    redlock_result *result;
    disconnect(client);
    redlock_manager_options_default(&options);
    options.nodes = nodes->at;
    options.node_count = nodes->count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = CONNECT_MS;
    if (redlock_client_open(&options, client, error, CONTENDER_ERROR_SIZE) != REDLOCK_OK) {
        *client = NULL;
        return;
    }
    int code = redlock_client_acquire(*client, "bench-connect", NULL, &lease, &result);
    if (code == REDLOCK_OK) {
        redlock_result_free(result);
        code = redlock_client_release(*client, lease, &result);
    }
    if (code != REDLOCK_OK) {
        (void)redlock_result_message(result, error, CONTENDER_ERROR_SIZE);
        disconnect(client);
    }
    redlock_result_free(result);
}

int main(void) {
    static const struct contender contender = {.name = "redlock_blocking",
                                               .version = "this tree",
                                               .notes = "libredlock for threads that block; node timeout 250 ms",
                                               .connect = command_connect,
                                               .cycles = command_cycles,
                                               .contend = command_contend};
    redlock_client *client = NULL;
    int status = contender_run(&contender, &client);
    disconnect(&client);
    return status;
}
