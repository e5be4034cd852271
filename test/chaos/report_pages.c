/* report_pages DIRECTORY: writes pages of runs that never were, for a browser and for people to look at. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report_runs.h"

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

static int write_page(const char *directory, const struct report_run *run) {
    char path[4096];
    struct kit kit;
    struct chaos_verdict verdict = {0};
    report_run_make(run, &kit);
    if (strcmp(run->name, "hostile") == 0) {
        report_run_poison(&kit);
    }
    snprintf(path, sizeof path, "%s/%s.html", directory, run->name);
    FILE *out = fopen(path, "we");
    bool named = strcmp(run->name, "everything") == 0;
    bool worked = out != NULL && chaos_check(&kit.history, 500000, &verdict) &&
                  chaos_report_write(out, &kit.history, &verdict, named ? &experiment : NULL);
    if (!worked) {
        perror(path);
    } else {
        printf("%s: %ld bytes, %zu leases, %zu faults, %zu violations\n", path, ftell(out), kit.history.lease_count,
               kit.history.band_count, verdict.violation_count);
    }
    if (out != NULL && fclose(out) != 0) {
        worked = false;
    }
    chaos_verdict_clear(&verdict);
    kit_clear(&kit);
    return worked ? 0 : 1;
}

int main(int argc, char **argv) {
    int status = argc == 2 ? 0 : 2;
    for (size_t i = 0; status == 0 && i < sizeof runs / sizeof *runs; i++) {
        status = write_page(argv[1], &runs[i]);
    }
    return status;
}
