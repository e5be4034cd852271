/* The named experiments: what each shows, its settings, and its schedule. Pure. */
#ifndef CHAOS_EXPERIMENTS_H
#define CHAOS_EXPERIMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/schedule.h"
#include "faults/setup.h"

/* What a run is made of: from the command line, else from the experiment, else the defaults. */
struct chaos_settings {
    int64_t nodes;
    int64_t clients;
    int64_t resources;
    int64_t seconds;
    int64_t ttl_ms;
    int64_t node_timeout_ms;
    int64_t wait_ms; /* of an acquire */
    /* a client holds from 0 up to so long; a tenth of them ten times as long, renewing */
    int64_t hold_ms;
    int64_t think_ms; /* between a release and the next acquire, from 0 up to so long */
    int64_t readers;  /* percent of the clients that read, each all the time; the others write */
    bool append_only; /* nodes keep their keys over a restart (appendfsync always) */
    bool polls;       /* clients do not queue for a lock (REDLOCK_ORDER_NONE) */
    bool tls;         /* between clients and nodes */
    struct chaos_protection protection;
};

/* Spread evenly, so that what hits some neighbours hits both kinds; the first one writes, unless
 * all read. */
static inline bool chaos_settings_reads(const struct chaos_settings *settings, size_t client) {
    int64_t before = (int64_t)client * settings->readers / 100;
    return ((int64_t)client + 1) * settings->readers / 100 > before;
}

/* Of a random schedule for such a run. */
static inline struct chaos_schedule_shape chaos_settings_shape(const struct chaos_settings *settings, uint32_t kinds) {
    return (struct chaos_schedule_shape){.nodes = (size_t)settings->nodes,
                                         .clients = (size_t)settings->clients,
                                         .duration_ms = settings->seconds * 1000,
                                         .kinds = kinds,
                                         .append_only = settings->append_only};
}

struct chaos_experiment {
    const char *name;
    const char *title;   /* "Two of five nodes down" */
    const char *purpose; /* one or two sentences: what happens, and what to see */
    bool breaks;         /* violations are expected: it breaks what Redlock assumes */
};

void chaos_settings_default(struct chaos_settings *settings);
/* NULL if there is none. */
const struct chaos_experiment *chaos_experiment_at(size_t index);
const struct chaos_experiment *chaos_experiment_find(const char *name);
/* Puts the experiment's own settings over these. */
void chaos_experiment_settings(const struct chaos_experiment *experiment, struct chaos_settings *settings);
/* The schedule, stretched to settings->seconds and to as many nodes and clients. False without
 * memory, or with a sentence where it needs more nodes. */
bool chaos_experiment_schedule(const struct chaos_experiment *experiment, const struct chaos_settings *settings,
                               uint64_t seed, struct chaos_schedule *schedule, struct chaos_error *error);

#endif
