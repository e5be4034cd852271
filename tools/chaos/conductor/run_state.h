/* What the conductor's parts share: the run and its states, its faults, its socket. */
#ifndef CHAOS_RUN_STATE_H
#define CHAOS_RUN_STATE_H

#include "backends/backend.h"
#include "client/crew.h"
#include "conductor/options.h"
#include "conductor/place.h"
#include "faults/schedule.h"
#include "history/log.h"
#include "links/links.h"

/*
 * state      what happens                                                         → state
 * RUNNING    faults begin and end; clients come and go; its time is over          → HEALING
 *            SIGINT, SIGTERM                                                      → HEALING
 *            a node, the proxy or the auditor ended by itself; too many crashes   → BROKEN
 * HEALING    all faults have ended                                                → ENDING
 * ENDING     the last client has ended                                            → DRAINING
 *            its time is over: the others get SIGKILL and are told as left behind  → DRAINING
 * DRAINING   no node has a key; or the longest ttl is over and a lock is left; or
 *            the time of a queue is over, too                                     → DONE
 */
enum chaos_state { CHAOS_RUNNING, CHAOS_HEALING, CHAOS_ENDING, CHAOS_DRAINING, CHAOS_DONE, CHAOS_BROKEN };

enum { CHAOS_ACTIVE_MAX = 64 };

struct chaos_active {
    struct chaos_fault fault;
    int64_t id;
    int64_t end_us;
    int tries;
    bool on;
};

/* Begins and ends faults, and writes them down. */
struct chaos_nemesis {
    int64_t last_id;
    int held[CHAOS_NODES_MAX]; /* for chaos_admin_begin() */
    struct chaos_active active[CHAOS_ACTIVE_MAX];
    struct chaos_link_rule rules[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX]; /* as the proxy has them */
};

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
    struct chaos_nemesis nemesis;
    char uris[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX][32];
    const char *nodes[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX];
    int signals, control;
    enum chaos_state state;
    int64_t start_us, state_end_us, queues_end_us, interrupted_us;
    json_t *left;
    struct chaos_error error;
};

/* Ends the run as one that could not be done, with a sentence. False. */
#define chaos_run_broke(run, ...) ((run)->state = CHAOS_BROKEN, chaos_fail(&(run)->error, __VA_ARGS__))

/* Signals, schedule, nodes, links, clients. False: chaos_run_broke() was called. */
bool chaos_run_start(struct chaos_run *run);

/*
 * Begins a fault now; where it lasts, it is ended by chaos_nemesis_turn() once fault->for_ms is
 * over. False with a sentence if nothing of it could be done: an exclusive fault is on the same
 * node, the backend cannot, the node does not answer. What could be done on some of its nodes
 * stands.
 */
bool chaos_nemesis_begin(struct chaos_run *run, const struct chaos_fault *fault, struct chaos_error *error);
/* Ends what is due. */
void chaos_nemesis_turn(struct chaos_run *run, int64_t now_us);
/* When the next fault is due to end; INT64_MAX for none. */
int64_t chaos_nemesis_next_us(const struct chaos_run *run);
/* Whether a client is dead on purpose. */
bool chaos_nemesis_keeps_dead(const struct chaos_run *run, size_t client);
/* All faults are due to end now; chaos_nemesis_next_us() says when they have. */
void chaos_nemesis_heal(struct chaos_run *run);
void chaos_nemesis_close(struct chaos_run *run);

/* Listens at DIRECTORY/control.sock, however long the directory's name is. The descriptor, or -1
 * with a sentence. */
int chaos_control_listen(const char *directory, struct chaos_error *error);
/* Removes the socket, too. */
void chaos_control_close(const char *directory, int listener);
/* Takes one connection that waits, reads its line, one message (200 ms at most), has the fault
 * begun, and answers. Nothing that a stranger sends does harm. */
void chaos_control_serve(struct chaos_run *run);
/* Begins a fault that was asked for by hand. False with a sentence. */
bool chaos_run_by_hand(struct chaos_run *run, const char *line, struct chaos_error *error);

#endif
