/* The cost of a fencing token, and of a shared lock. `fenced WORKERS MS SAMPLES` is `cycles` with
 * tokens. `alternate KIND MS SAMPLES` takes turns: one plain lock, one of the kind `fenced` or
 * `shared`. */
#include <inttypes.h>
#include <string.h>

#include "redlock_client.h"

#define NAMES     512
#define NAME_SIZE 24

struct alternation {
    struct redlock_client *client;
    struct contender_samples acquire[2]; /* plain, of the kind */
    redlock_acquire_options options[2];
    uint64_t cycles, failed, begun;
    int64_t began_ns;
    bool ending;
    char *error;
};

static redlock_statistics statistics_of(const struct redlock_client *client) {
    redlock_statistics statistics = {.size = sizeof statistics};
    (void)redlock_manager_statistics(client->manager, &statistics);
    return statistics;
}

/* Writes how many tokens since `before` took one round trip, and how many needed a second one. */
static void write_tokens(const struct redlock_client *client, const redlock_statistics *before, FILE *json) {
    redlock_statistics after = statistics_of(client);
    (void)fprintf(json, ",\"fenced_fast\":%" PRIu64 ",\"fenced_slow\":%" PRIu64,
                  after.fenced_fast - before->fenced_fast, after.fenced_slow - before->fenced_slow);
}

/* A failure does not discard the figures. Failures are counted, and the first message goes to
 * standard error. */
static void complain(const char *command, char *error) {
    if (*error) {
        (void)fprintf(stderr, "%s: %s\n", command, error);
        *error = '\0';
    }
}

static void fenced(struct redlock_client *client, struct contender_cycles *cycles, FILE *json, char *error) {
    redlock_acquire_options options;
    redlock_statistics before = statistics_of(client);
    redlock_acquire_options_default(&options);
    options.fencing = true;
    client->acquire = &options;
    redlock_client_cycles(client, cycles, 0, error);
    client->acquire = NULL;
    contender_write_cycles(json, cycles);
    write_tokens(client, &before, json);
    complain("fenced", error);
}

static void begin_cycle(struct alternation *run);

static void end_cycle(struct alternation *run) {
    if (run->ending) {
        ev_break(run->client->loop, EVBREAK_ONE);
    } else {
        begin_cycle(run);
    }
}

static void fail(struct alternation *run, const redlock_result *result) {
    run->failed++;
    redlock_client_failed(result, run->error);
    end_cycle(run);
}

static void on_released(const redlock_result *result, void *data) {
    struct alternation *run = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        fail(run, result);
        return;
    }
    run->cycles++;
    end_cycle(run);
}

static void on_acquired(const redlock_result *result, void *data) {
    struct alternation *run = data;
    int64_t took_ns = contender_now_ns() - run->began_ns;
    const unsigned kind = run->begun % 2 == 0; /* begin_cycle() has already counted this cycle */
    const bool with = run->options[kind].fencing;
    if (redlock_result_code(result) != REDLOCK_OK) {
        fail(run, result);
        return;
    }
    if ((redlock_lease_fence(redlock_result_lease(result)) != 0) != with) {
        contender_fatal("a lease %s a fencing token", with ? "lacks" : "has");
    }
    contender_sample(&run->acquire[kind], took_ns);
    if (redlock_release(redlock_result_lease(result), on_released, run) != REDLOCK_OK) {
        contender_fatal("redlock_release is refused");
    }
}

/* Both kinds use different names, equal in number and length. So each finds only what it left
 * itself. */
static void begin_cycle(struct alternation *run) {
    char name[NAME_SIZE];
    unsigned kind = run->begun % 2;
    (void)snprintf(name, sizeof name, "bench-fence-%u-%03u", kind, (unsigned)(run->begun / 2 % NAMES));
    run->begun++;
    run->began_ns = contender_now_ns();
    if (redlock_acquire(run->client->manager, name, &run->options[kind], NULL, on_acquired, run) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    ((struct alternation *)timer->data)->ending = true;
}

static void alternate(struct redlock_client *client, bool shared, int64_t duration_ms, size_t samples, FILE *json,
                      char *error) {
    struct alternation run = {.client = client, .error = error};
    redlock_statistics before = statistics_of(client);
    ev_timer end;
    for (unsigned i = 0; i < 2; i++) {
        contender_samples_begin(&run.acquire[i], samples);
        redlock_acquire_options_default(&run.options[i]);
    }
    if (shared) {
        run.options[1].mode = REDLOCK_SHARED;
    } else {
        run.options[1].fencing = true;
    }
    ev_timer_init(&end, on_time, (double)duration_ms / 1000.0, 0);
    end.data = &run;
    ev_now_update(client->loop);
    ev_timer_start(client->loop, &end);
    int64_t began_ns = contender_now_ns();
    begin_cycle(&run);
    ev_run(client->loop, 0);
    (void)fprintf(json, "\"cycles\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"seconds\":%.6f", run.cycles, run.failed,
                  (double)(contender_now_ns() - began_ns) / 1e9);
    ev_timer_stop(client->loop, &end);
    contender_write_samples(json, "acquire_us", &run.acquire[0]);
    contender_write_samples(json, shared ? "shared_us" : "fenced_us", &run.acquire[1]);
    write_tokens(client, &before, json);
    complain("alternate", error);
    for (unsigned i = 0; i < 2; i++) {
        contender_samples_end(&run.acquire[i]);
    }
}

bool redlock_client_fence(struct redlock_client *client, const char *command, const char *arguments, FILE *json,
                          char error[CONTENDER_ERROR_SIZE]) {
    struct contender_cycles cycles = {0};
    char kind[8] = "";
    int64_t duration_ms;
    size_t samples;
    bool is_fenced = strcmp(command, "fenced") == 0;
    if (!is_fenced && strcmp(command, "alternate") != 0) {
        return false;
    }
    if (!client->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
    } else if (is_fenced && contender_read_cycles(arguments, &cycles)) {
        fenced(client, &cycles, json, error);
    } else if (!is_fenced && sscanf(arguments, "%7s %" SCNd64 " %zu", kind, &duration_ms, &samples) == 3 &&
               (strcmp(kind, "fenced") == 0 || strcmp(kind, "shared") == 0) && duration_ms > 0 &&
               samples <= CONTENDER_SAMPLES_MAX) {
        alternate(client, strcmp(kind, "shared") == 0, duration_ms, samples, json, error);
    } else {
        (void)snprintf(error, CONTENDER_ERROR_SIZE,
                       "fenced needs WORKERS MS SAMPLES; alternate needs fenced|shared MS SAMPLES");
    }
    contender_samples_end(&cycles.acquire);
    contender_samples_end(&cycles.release);
    return true;
}
