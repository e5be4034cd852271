/* report_pages DIRECTORY: writes pages of invented runs, to look at in a browser. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report_runs.h"
#include "trio.h"

enum {
    KEEPS = ~(1 << CHAOS_FAULT_RESTART_EMPTY | 1 << CHAOS_FAULT_FLUSHALL | 1 << CHAOS_FAULT_CLOCK_JUMP |
              1 << CHAOS_FAULT_CLOCK_SKEW)
};

static const struct report_run runs[] = {
    {"everything", 5, 20, 3, 60, 25000, (uint32_t)KEEPS, 0},
    {"small", 5, 3, 1, 10, 40000, UINT32_MAX, 0},
    {"calm", 5, 20, 8, 60, 30000, 0, 0},
    {"broken", 5, 20, 3, 60, 25000, UINT32_MAX, 60},
    {"nothing", 5, 20, 3, 60, 0, UINT32_MAX, 0},
    {"large", 31, 64, 12, 60, 60000, (uint32_t)KEEPS, 0},
    {"hostile", 5, 3, 2, 10, 40000, UINT32_MAX, 300},
    {"busy", 5, 20, 32, 60, 4000, UINT32_MAX, 0},
};

static const struct chaos_experiment experiment = {
    "everything", "Everything at once",
    "Nodes are killed, paused, cut off and slowed down, clients too, in no order; no fault breaks what Redlock "
    "assumes. Nobody may ever hold what another one holds.",
    false};

/* Faults that overlap. */
static void make_lanes(struct kit *kit) {
    kit_begin(kit, 3, 2, 1);
    kit_band(kit, CHAOS_FAULT_OOM, 1, 0, 1000000, 3000000);
    kit_band(kit, CHAOS_FAULT_PARTITION, 3, 3, 2000000, 5000000);
    kit_band(kit, CHAOS_FAULT_PASSWORD, 1, 0, 2500000, 2600000);
    kit_band(kit, CHAOS_FAULT_PAUSE, 1, 0, 3000000, 6000000);
    kit_band(kit, CHAOS_FAULT_FLUSHALL, 1, 0, 5000000, 5000000);
    kit_finish(kit, 10000000);
}

static void acquire(struct kit *kit, int64_t completed_us, int64_t took_us, const char *result) {
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, completed_us - took_us, completed_us, result);
}

/* Acquires around the bounds of an interval, and clients that lose their quorum. */
static void make_intervals(struct kit *kit) {
    kit_begin(kit, 3, 2, 1);
    kit_band(kit, CHAOS_FAULT_PARTITION, 3, 1, 1000000, 2000000);
    kit_band(kit, CHAOS_FAULT_PAUSE, 3, 0, 1500000, 3000000);
    for (int i = 1; i <= 100; i++) {
        acquire(kit, 1000000 + i * 4000, i * 100, "OK");
    }
    acquire(kit, 1499999, 1000000, "CONTENDED");
    acquire(kit, 1200000, 1000000, "NO_QUORUM");
    acquire(kit, 1200000, 1000000, "TOO_SLOW");
    acquire(kit, 1300000, 1000000, "CLOSED");
    acquire(kit, 1500000, 7000, "OK");
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 1600000, CHAOS_NEVER_US, "");
    kit_operation(kit, 0, 0, CHAOS_RELEASE, 1600000, 1700000, "OK");
    kit_finish(kit, 10000000);
}

/* Two read, the third one waits to write, and one of the two waits to read again. */
static void make_readers(struct kit *kit) {
    kit_begin(kit, 3, 3, 1);
    kit_release(kit, kit_acquire_shared(kit, 1, 0, "a", 1001000, 2100000), 2000000);
    kit_release(kit, kit_acquire_shared(kit, 2, 0, "b", 1200000, 2100000), 1800000);
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 1500000, 2000000, "OK");
    kit_release(kit, kit_lease(kit, 0, 0, "w", 2000000, 2900000), 2500000);
    size_t again = kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 2100000, 2500000, "OK");
    kit->history.operations[again].shared = true;
    size_t lease = kit_lease(kit, 1, 0, "c", 2500000, 3400000);
    kit->history.leases[lease].shared = true;
    kit_release(kit, lease, 3000000);
    kit_sweep(kit, 0, 5000000, 5000300);
    kit_finish(kit, 10000000);
}

/* Writes the page NAME of a history and prints what it has to say. Clears the kit. */
static bool write_page(const char *directory, const char *name, struct kit *kit) {
    char path[4096];
    struct chaos_verdict verdict;
    snprintf(path, sizeof path, "%s/%s.html", directory, name);
    FILE *out = fopen(path, "we");
    bool named = strcmp(name, "everything") == 0;
    chaos_check(&kit->history, 500000, &verdict);
    bool worked = out != NULL && chaos_report_write(out, &kit->history, &verdict, named ? &experiment : NULL);
    if (!worked) {
        perror(path);
    } else {
        printf("%s: %ld bytes, %zu leases, %zu faults, %zu violations\n", path, ftell(out), kit->history.lease_count,
               kit->history.band_count, verdict.violation_count);
    }
    if (out != NULL && fclose(out) != 0) {
        worked = false;
    }
    chaos_verdict_clear(&verdict);
    kit_clear(kit);
    return worked;
}

static bool write_comparison(const char *directory) {
    char path[4096];
    struct trio *trio = trio_make();
    snprintf(path, sizeof path, "%s/comparison.html", directory);
    FILE *out = fopen(path, "we");
    if (trio == NULL || out == NULL) {
        perror(path);
        return false;
    }
    free(trio->kits[0].history.resources[0]);
    trio->kits[0].history.resources[0] = strdup("<r&1>");
    trio_judge(trio);
    bool worked = chaos_report_compare(out, &trio->comparison, NULL);
    trio_free(trio);
    return fclose(out) == 0 && worked;
}

int main(int argc, char **argv) {
    struct kit kit;
    if (argc != 2) {
        return 2;
    }
    bool worked = write_comparison(argv[1]);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        report_run_make(&runs[i], &kit);
        if (strcmp(runs[i].name, "hostile") == 0) {
            report_run_poison(&kit);
        }
        worked &= write_page(argv[1], runs[i].name, &kit);
    }
    make_lanes(&kit);
    worked &= write_page(argv[1], "lanes", &kit);
    make_readers(&kit);
    worked &= write_page(argv[1], "readers", &kit);
    make_intervals(&kit);
    worked &= write_page(argv[1], "intervals", &kit);
    return worked ? 0 : 1;
}
