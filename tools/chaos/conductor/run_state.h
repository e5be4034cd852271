/* What the conductor's parts share: the run, its states. */
#ifndef CHAOS_RUN_STATE_H
#define CHAOS_RUN_STATE_H

#include "backends/backend.h"
#include "client/crew.h"
#include "conductor/nemesis.h"
#include "conductor/options.h"
#include "conductor/place.h"

/*
 * state      what happens                                                         → state
 * RUNNING    faults begin and end; clients come and go; its time is over          → HEALING
 *            SIGINT, SIGTERM                                                      → HEALING
 *            a node, the proxy or the auditor ended by itself; too many crashes   → BROKEN
 * HEALING    all faults have ended                                                → ENDING
 * ENDING     the last client has ended                                            → DRAINING
 *            its time is over: the others get SIGKILL and are told as left behind  → DRAINING
 * DRAINING   no node has a key, or the longest ttl is over                        → DONE
 */
enum chaos_state { CHAOS_RUNNING, CHAOS_HEALING, CHAOS_ENDING, CHAOS_DRAINING, CHAOS_DONE, CHAOS_BROKEN };

struct chaos_run {
    const struct chaos_options *options;
    struct chaos_schedule schedule;
    size_t next; /* of the schedule */
    struct chaos_place place;
    struct chaos_log log;
    struct chaos_backend *backend;
    struct chaos_links links;
    bool links_started;
    struct chaos_crew crew;
    struct chaos_nemesis *nemesis;
    char uris[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX][32];
    const char *nodes[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX];
    int signals, control;
    enum chaos_state state;
    int64_t start_us, state_end_us, interrupted_us;
    json_t *left;
    struct chaos_error error;
};

/* Ends the run as one that could not be done. False. */
bool chaos_run_broke(struct chaos_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Signals, schedule, nodes, links, clients. False: chaos_run_broke() was called. */
bool chaos_run_start(struct chaos_run *run);

#endif
