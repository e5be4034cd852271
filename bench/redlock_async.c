/* This library's async API as a contender. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock_client.h"

/* With thousands of locks outstanding, or links of 50 ms, answers take longer than the default of
 * 50 ms. */
#define NODE_TIMEOUT_MS 250
#define NAME_SIZE       24
#define URI_SIZE        64

struct worker {
    struct run *run;
    uint64_t cycles;
    int64_t began_ns;
    ev_timer rest;
    char names[CONTENDER_NAMES][NAME_SIZE];
};

struct run {
    struct redlock_client *client;
    struct contender_cycles *cycles;
    struct worker *workers;
    uint64_t begun, count_max;
    unsigned outstanding;
    bool ending;
    char *error;
};

static void begin_cycle(struct worker *worker);

static void end_cycle(struct worker *worker) {
    struct run *run = worker->run;
    if (run->ending || (run->count_max && run->begun >= run->count_max)) {
        if (--run->outstanding == 0) {
            ev_break(run->client->loop, EVBREAK_ONE);
        }
    } else if (run->cycles->rest_us > 0) {
        ev_now_update(run->client->loop);
        ev_timer_set(&worker->rest, run->cycles->rest_us / 1e6, 0.);
        ev_timer_start(run->client->loop, &worker->rest);
    } else {
        begin_cycle(worker);
    }
}

static void on_rested(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    begin_cycle(timer->data);
}

static void on_released(const redlock_result *result, void *data) {
    struct worker *worker = data;
    struct contender_cycles *cycles = worker->run->cycles;
    if (redlock_result_code(result) == REDLOCK_OK) {
        if (contender_sampling(&cycles->release)) {
            contender_sample(&cycles->release, contender_now_ns() - worker->began_ns);
        }
        cycles->cycles++;
    } else {
        cycles->failed++;
        redlock_client_failed(result, worker->run->error);
    }
    end_cycle(worker);
}

static void on_acquired(const redlock_result *result, void *data) {
    struct worker *worker = data;
    struct contender_cycles *cycles = worker->run->cycles;
    if (redlock_result_code(result) != REDLOCK_OK) {
        cycles->failed++;
        redlock_client_failed(result, worker->run->error);
        end_cycle(worker);
        return;
    }
    if (contender_sampling(&cycles->release)) {
        int64_t now_ns = contender_now_ns();
        contender_sample(&cycles->acquire, now_ns - worker->began_ns);
        worker->began_ns = now_ns;
    }
    if (redlock_release(redlock_result_lease(result), on_released, worker) != REDLOCK_OK) {
        contender_fatal("redlock_release is refused");
    }
}

static void begin_cycle(struct worker *worker) {
    struct run *run = worker->run;
    const char *name = worker->names[worker->cycles++ % CONTENDER_NAMES];
    run->begun++;
    if (contender_sampling(&run->cycles->release)) {
        worker->began_ns = contender_now_ns();
    }
    if (redlock_acquire(run->client->manager, name, run->client->acquire, NULL, on_acquired, worker) != REDLOCK_OK) {
        contender_fatal("redlock_acquire is refused");
    }
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    ((struct run *)timer->data)->ending = true;
}

static void make_workers(struct run *run) {
    run->workers = calloc(run->cycles->workers, sizeof *run->workers);
    if (!run->workers) {
        contender_fatal("no memory for the workers");
    }
    for (unsigned w = 0; w < run->cycles->workers; w++) {
        run->workers[w].run = run;
        ev_init(&run->workers[w].rest, on_rested);
        run->workers[w].rest.data = &run->workers[w];
        for (unsigned n = 0; n < CONTENDER_NAMES; n++) {
            (void)snprintf(run->workers[w].names[n], NAME_SIZE, "bench-%u-%u", w, n);
        }
    }
}

void redlock_client_cycles(struct redlock_client *client, struct contender_cycles *cycles, uint64_t count,
                           char error[CONTENDER_ERROR_SIZE]) {
    struct run run = {
        .client = client, .cycles = cycles, .count_max = count, .outstanding = cycles->workers, .error = error};
    ev_timer end;
    if (!client->manager) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    make_workers(&run);
    ev_timer_init(&end, on_time, (double)cycles->duration_ms / 1000.0, 0);
    end.data = &run;
    /* libev's time is still that of the last command. */
    ev_now_update(client->loop);
    if (cycles->duration_ms > 0) {
        ev_timer_start(client->loop, &end);
    }
    int64_t began_ns = contender_now_ns();
    for (unsigned w = 0; w < cycles->workers; w++) {
        begin_cycle(&run.workers[w]);
    }
    ev_run(client->loop, 0);
    cycles->took_ns = contender_now_ns() - began_ns;
    ev_timer_stop(client->loop, &end);
    free(run.workers);
}

static void command_cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    redlock_client_cycles(data, cycles, 0, error);
}

struct outcome {
    struct ev_loop *loop;
    int code;
    redlock_lease *lease;
    char *error;
};

static void on_outcome(const redlock_result *result, void *data) {
    struct outcome *outcome = data;
    outcome->code = redlock_result_code(result);
    outcome->lease = redlock_result_lease(result);
    if (outcome->code != REDLOCK_OK) {
        redlock_client_failed(result, outcome->error);
    }
    ev_break(outcome->loop, EVBREAK_ONE);
}

static void on_closed(void *data) {
    ev_break(data, EVBREAK_ONE);
}

static void disconnect(struct redlock_client *client) {
    if (client->manager) {
        redlock_manager_close(client->manager, on_closed, client->loop);
        client->manager = NULL;
        ev_run(client->loop, 0);
    }
}

static void create_manager(struct redlock_client *client, const struct contender_nodes *nodes, char *error) {
    char secured[REDLOCK_NODES_MAX][URI_SIZE];
    const char *uris[REDLOCK_NODES_MAX];
    redlock_manager_options options;
    redlock_tls_options tls;
    redlock_manager_options_default(&options);
    redlock_tls_options_default(&tls);
    for (size_t i = 0; i < nodes->count && i < REDLOCK_NODES_MAX; i++) {
        (void)snprintf(secured[i], URI_SIZE, "rediss://%s", nodes->at[i]);
        uris[i] = client->ca_file ? secured[i] : nodes->at[i];
    }
    tls.ca_file = client->ca_file;
    options.tls = client->ca_file ? &tls : NULL;
    options.nodes = uris;
    options.node_count = nodes->count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    if (redlock_manager_create(client->loop, &options, &client->manager, error, CONTENDER_ERROR_SIZE) != REDLOCK_OK) {
        client->manager = NULL;
    }
}

static void command_connect(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]) {
    struct redlock_client *client = data;
    struct outcome outcome = {.loop = client->loop, .error = error};
    disconnect(client);
    create_manager(client, nodes, error);
    if (!client->manager) {
        return;
    }
    redlock_manager_connect(client->manager, 10000, on_outcome, &outcome);
    ev_run(client->loop, 0);
    if (outcome.code == REDLOCK_OK) {
        redlock_acquire(client->manager, "bench-connect", NULL, NULL, on_outcome, &outcome);
        ev_run(client->loop, 0);
    }
    if (outcome.code == REDLOCK_OK) {
        redlock_release(outcome.lease, on_outcome, &outcome);
        ev_run(client->loop, 0);
    }
}

static bool command_other(void *data, const char *command, const char *arguments, FILE *json,
                          char error[CONTENDER_ERROR_SIZE]) {
    return redlock_client_take(data, command, arguments, json, error) ||
           redlock_client_readers(data, command, arguments, json, error) ||
           redlock_client_fence(data, command, arguments, json, error) ||
           redlock_client_hold(data, command, arguments, json, error);
}

/* With the argument `polling`, its clients wait as those of REDLOCK_ORDER_NONE. With `tls CA_FILE`,
 * it speaks TLS. */
int main(int count, char **arguments) {
    const bool polls = count == 2 && strcmp(arguments[1], "polling") == 0;
    const bool secured = count == 3 && strcmp(arguments[1], "tls") == 0;
    if (secured && !redlock_tls_library()) {
        contender_fatal("the library was built without TLS");
    }
    const struct contender contender = {.name = polls     ? "redlock_polling"
                                                : secured ? "redlock_tls"
                                                          : "redlock_async",
                                        .version = "this tree",
                                        .notes = polls     ? "redlock_async with REDLOCK_ORDER_NONE"
                                                 : secured ? "redlock_async over TLS, with certificates checked"
                                                           : "libredlock on the caller's loop; node timeout 250 ms",
                                        .connect = command_connect,
                                        .cycles = command_cycles,
                                        .contend = redlock_client_contend,
                                        .other = command_other};
    struct redlock_client client = {.loop = ev_loop_new(EVFLAG_AUTO),
                                    .order = polls ? REDLOCK_ORDER_NONE : REDLOCK_ORDER_FAIR,
                                    .ca_file = secured ? arguments[2] : NULL};
    if (!client.loop) {
        contender_fatal("no event loop");
    }
    int status = contender_run(&contender, &client);
    disconnect(&client);
    ev_loop_destroy(client.loop);
    return status;
}
