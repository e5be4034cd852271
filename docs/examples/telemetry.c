/* Works under a lock, and writes what its client counted as Prometheus text, for the textfile
 * collector of node_exporter:
 *
 *     telemetry /var/lib/node_exporter/locks.prom 10 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc telemetry.c $(pkg-config --cflags --libs redlock) -o telemetry */
#define _POSIX_C_SOURCE 200809L /* nanosleep() */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <redlock/blocking.h>

#define EVERY 8 /* a series for each eighth bucket: see docs/telemetry.md, "The histograms" */

static void head(FILE *out, const char *name, const char *kind, const char *help) {
    fprintf(out, "# HELP redlock_client_%s %s\n# TYPE redlock_client_%s %s\n", name, help, name, kind);
}

static void number(FILE *out, const char *name, const char *kind, uint64_t value, const char *help) {
    head(out, name, kind, help);
    fprintf(out, "redlock_client_%s %" PRIu64 "\n", name, value);
}

static void histogram(FILE *out, const char *name, const redlock_histogram *values, const char *help) {
    uint64_t below = 0;
    head(out, name, "histogram", help);
    for (size_t bucket = 0; bucket + 1 < REDLOCK_HISTOGRAM_BUCKETS; bucket++) {
        below += values->buckets[bucket];
        if (bucket % EVERY == EVERY - 1) {
            fprintf(out, "redlock_client_%s_bucket{le=\"%.6f\"} %" PRIu64 "\n", name,
                    (double)redlock_histogram_bound_us(bucket) / 1e6, below);
        }
    }
    fprintf(out, "redlock_client_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, values->count);
    fprintf(out, "redlock_client_%s_sum %.6f\n", name, (double)values->sum_us / 1e6);
    fprintf(out, "redlock_client_%s_count %" PRIu64 "\n", name, values->count);
}

static void acquires(FILE *out, const redlock_statistics *counted) {
    const struct {
        const char *result;
        uint64_t count;
    } ends[] = {{"acquired", counted->acquired},
                {"contended", counted->contended},
                {"no_quorum", counted->no_quorum},
                {"too_slow", counted->too_slow},
                {"cancelled", counted->cancelled}};
    head(out, "acquires_total", "counter", "Acquires by how they ended.");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        fprintf(out, "redlock_client_acquires_total{result=\"%s\"} %" PRIu64 "\n", ends[i].result, ends[i].count);
    }
}

/* The label of a node: its name, which holds no password. */
static void label(FILE *out, redlock_client *client, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    fputs("node=\"", out);
    if (redlock_client_node(client, index, &info) == REDLOCK_OK) {
        for (const char *c = info.name; *c; c++) {
            fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
        }
        redlock_node_info_free(&info);
    }
    fputs("\"", out);
}

static void by_node(FILE *out, redlock_client *client, const char *name, const uint64_t *values, const char *help) {
    head(out, name, "counter", help);
    for (size_t node = 0; node < redlock_client_node_count(client); node++) {
        fprintf(out, "redlock_client_%s{", name);
        label(out, client, node);
        fprintf(out, "} %" PRIu64 "\n", values[node]);
    }
}

static void votes(FILE *out, redlock_client *client, const redlock_telemetry *told) {
    head(out, "votes_total", "counter", "Answers of each node, by what it said or why it said nothing.");
    for (int vote = 0; vote < REDLOCK_VOTED_MAX; vote++) {
        for (size_t node = 0; node < redlock_client_node_count(client); node++) {
            if (told->votes[vote][node] > 0) {
                fputs("redlock_client_votes_total{", out);
                label(out, client, node);
                fprintf(out, ",vote=\"%s\"} %" PRIu64 "\n", redlock_voted_name((redlock_voted)vote),
                        told->votes[vote][node]);
            }
        }
    }
}

static void metrics(FILE *out, redlock_client *client, const redlock_statistics *counted,
                    const redlock_telemetry *told) {
    acquires(out, counted);
    histogram(out, "acquire_seconds", &told->acquire, "From the call to the lock, of acquires that got it.");
    histogram(out, "wait_seconds", &told->wait, "From the call to its end, of acquires that had to wait.");
    histogram(out, "held_seconds", &told->held, "How long locks were held.");
    histogram(out, "renewal_late_seconds", &told->renewal_late, "How late automatic renewals began.");
    votes(out, client, told);
    by_node(out, client, "node_ups_total", told->node_ups, "Times that each node became ready.");
    by_node(out, client, "node_downs_total", told->node_downs, "Times that each node was ready no more.");
    number(out, "extends_total", "counter", counted->extends, "Rounds of extension.");
    number(out, "extends_failed_total", "counter", counted->extends_failed, "Rounds of extension without a quorum.");
    number(out, "expiring_total", "counter", counted->expiring, "Deadlines that owners were told are near.");
    number(out, "pushes_refused_total", "counter", counted->pushes_refused,
           "Pushes that were not about a recent request of ours, and were dropped.");
    number(out, "lost_total", "counter", counted->lost, "Leases that were lost.");
    number(out, "released_total", "counter", counted->released, "Releases in time.");
    number(out, "leases_held", "gauge", counted->leases_held, "Leases that are held now.");
    number(out, "requests_pending", "gauge", counted->requests_pending, "Requests that have not ended.");
    number(out, "releases_owed", "gauge", counted->releases_owed, "Releases that wait for a node to come back.");
}

/* The collector must never read half a file: write another one, and give it the name. */
static int write_file(redlock_client *client, const char *path) {
    redlock_statistics counted = {.size = sizeof counted};
    redlock_telemetry told = {.size = sizeof told};
    char other[1024];
    if (redlock_client_statistics(client, &counted) != REDLOCK_OK ||
        redlock_client_telemetry(client, &told) != REDLOCK_OK) {
        return -1;
    }
    const int size = snprintf(other, sizeof other, "%s.new", path);
    FILE *out = size > 0 && (size_t)size < sizeof other ? fopen(other, "w") : NULL;
    if (!out) {
        return -1;
    }
    metrics(out, client, &counted, &told);
    const int failed = ferror(out);
    return fclose(out) != 0 || failed ? -1 : rename(other, path);
}

static int work(redlock_lease *lease, void *data) {
    (void)data;
    (void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    return redlock_lease_validity_ms(lease) > 0 ? 0 : -1;
}

int main(int argc, char **argv) {
    redlock_manager_options options;
    redlock_client_acquire_options how;
    redlock_client *client;
    char error[256];
    if (argc < 4) {
        fprintf(stderr, "usage: telemetry FILE ROUNDS NODE…\n");
        return 64;
    }
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)(argv + 3);
    options.node_count = (size_t)argc - 3;
    if (redlock_client_open(&options, &client, error, sizeof error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    redlock_client_acquire_options_default(&how);
    how.lock.wait_timeout_ms = 5000;
    int status = 0;
    for (long round = atol(argv[2]); round > 0 && status == 0; round--) {
        int code = redlock_client_with(client, "telemetry-example", &how, work, NULL, NULL, NULL);
        if (code != REDLOCK_OK) {
            fprintf(stderr, "%s\n", redlock_strerror(code));
        }
        if (write_file(client, argv[1]) != 0) {
            perror(argv[1]);
            status = 1;
        }
    }
    redlock_client_close(client);
    return status;
}
