/* What one hung node of five costs: the median acquire latency with five healthy nodes, and with one stopped (R7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <redlock/redlock.h>

#include "drive.h"
#include "servers.h"
#include "support.h"

#define NODES         5
#define ROUNDS        20
#define ACQUIRES      250 /* in each round, of each kind */
#define SAMPLES       (ROUNDS * ACQUIRES)
#define WARM_ACQUIRES 500

struct sample {
    struct ev_loop *loop;
    int64_t start_ns, latency_ns;
    int code;
};

static void on_acquired(const redlock_result *result, void *data) {
    struct sample *sample = data;
    sample->latency_ns = support_now_ns() - sample->start_ns;
    sample->code = redlock_result_code(result);
    if (sample->code != REDLOCK_OK) {
        char message[1024];
        redlock_result_message(result, message, sizeof message);
        support_fatal("%s", message);
    }
    redlock_release(redlock_result_lease(result), NULL, NULL);
    ev_break(sample->loop, EVBREAK_ONE);
}

static int64_t acquire_ns(struct ev_loop *loop, redlock_manager *manager) {
    static unsigned long number;
    struct sample sample = {.loop = loop};
    char resource[32];
    snprintf(resource, sizeof resource, "bench-%lu", number++);
    sample.start_ns = support_now_ns();
    if (redlock_acquire(manager, resource, NULL, NULL, on_acquired, &sample) != REDLOCK_OK) {
        support_fatal("redlock_acquire is refused");
    }
    ev_run(loop, 0);
    return sample.latency_ns;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_us(int64_t *sorted, double part) {
    return (double)sorted[(size_t)(part * (SAMPLES - 1))] / 1000.0;
}

int main(void) {
    static struct servers servers;
    static int64_t healthy[SAMPLES], hung[SAMPLES];
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    redlock_manager_options options;
    redlock_manager *manager;
    char error[256];
    struct outcome connected = {0};

    servers_start(&servers, NODES, NULL);
    redlock_manager_options_default(&options);
    options.nodes = servers.uris;
    options.node_count = NODES;
    if (!loop || redlock_manager_create(loop, &options, &manager, error, sizeof error) != REDLOCK_OK) {
        support_fatal("redlock_manager_create: %s", loop ? error : "no loop");
    }
    if (drive_connect(loop, manager, &connected) != REDLOCK_OK) {
        support_fatal("%s", connected.message);
    }
    for (int i = 0; i < WARM_ACQUIRES; i++) {
        acquire_ns(loop, manager);
    }
    /* In turns, so that what else the machine does falls on both. */
    for (size_t round = 0; round < ROUNDS; round++) {
        struct server *victim = &servers.at[round % NODES];
        for (size_t i = 0; i < ACQUIRES; i++) {
            healthy[round * ACQUIRES + i] = acquire_ns(loop, manager);
        }
        server_pause(victim);
        for (size_t i = 0; i < ACQUIRES; i++) {
            hung[round * ACQUIRES + i] = acquire_ns(loop, manager);
        }
        server_resume(victim);
        if (!drive_nodes(loop, manager, REDLOCK_NODE_READY, NODES)) {
            support_fatal("the resumed node did not return");
        }
    }
    qsort(healthy, SAMPLES, sizeof *healthy, by_value);
    qsort(hung, SAMPLES, sizeof *hung, by_value);
    printf("acquire latency in us, %d redis-servers on loopback, %d samples each, node timeout %lld ms\n", NODES,
           SAMPLES, (long long)options.node_timeout_ms);
    printf("                 p50      p99      max\n");
    printf("five healthy %7.1f  %7.1f  %7.1f\n", percentile_us(healthy, 0.5), percentile_us(healthy, 0.99),
           percentile_us(healthy, 1.0));
    printf("one hung     %7.1f  %7.1f  %7.1f\n", percentile_us(hung, 0.5), percentile_us(hung, 0.99),
           percentile_us(hung, 1.0));
    printf("ratio of the medians %.3f (aim: at most 1.10)\n", percentile_us(hung, 0.5) / percentile_us(healthy, 0.5));
    outcome_clear(&connected);
    if (!drive_close(loop, manager)) {
        support_fatal("redlock_manager_close did not end");
    }
    ev_loop_destroy(loop);
    servers_stop(&servers);
    return 0;
}
