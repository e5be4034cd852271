/* Runs a loop until a condition holds, and collects what callbacks report. */
#ifndef TEST_SUPPORT_DRIVE_H
#define TEST_SUPPORT_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <redlock/redlock.h>

/* How long a test waits for an event that must come. Generous, for a loaded machine. */
#define DRIVE_TIMEOUT_MS 20000

/* Runs the loop until done(data) is true or the deadline. Returns the last value of done(). */
bool drive_until(struct ev_loop *loop, bool (*done)(void *data), void *data, int timeout_ms);

/* Runs the loop for a time. Only for showing that something does not happen. */
void drive_for(struct ev_loop *loop, int ms);

/* Collects the result of one callback: give outcome_collect and &outcome to the request. Start with
 * {0}. */
struct outcome {
    int runs; /* how often the callback ran */
    int code;
    uint64_t attempts;
    int64_t at_ms; /* when it ran */
    redlock_lease *lease;
    redlock_result *copy; /* of the last result; outcome_clear() frees it */
    char message[2048];
};

void outcome_collect(const redlock_result *result, void *data);
/* Runs the loop until the callback has run. Returns false at the deadline. */
bool outcome_wait(struct ev_loop *loop, struct outcome *outcome);
void outcome_clear(struct outcome *outcome);

/* From the copy: the number of votes of a kind, and one vote's kind and error. */
size_t outcome_votes(const struct outcome *outcome, redlock_vote_kind kind);
redlock_vote_kind outcome_vote(const struct outcome *outcome, size_t index);
const char *outcome_vote_error(const struct outcome *outcome, size_t index);

/* Each clears the outcome, sends a request, and waits for its end. Returns the result's code, or
 * the call's. */
int drive_acquire(struct ev_loop *loop, redlock_manager *manager, const char *resource,
                  const redlock_acquire_options *options, struct outcome *outcome);
int drive_extend(struct ev_loop *loop, redlock_lease *lease, int64_t ttl_ms, struct outcome *outcome);
int drive_release(struct ev_loop *loop, redlock_lease *lease, struct outcome *outcome);
int drive_inspect(struct ev_loop *loop, redlock_manager *manager, const char *resource, struct outcome *outcome);
/* Waits until every node is ready or has failed once. */
int drive_connect(struct ev_loop *loop, redlock_manager *manager, struct outcome *outcome);
/* Closes and waits. Returns false if the callback never came. */
bool drive_close(struct ev_loop *loop, redlock_manager *manager);

/* Waits until `count` nodes of the manager are in this state. */
bool drive_nodes(struct ev_loop *loop, redlock_manager *manager, redlock_node_state state, size_t count);

/* Waits until the node has completed `connects` handshakes and is ready. */
bool drive_reconnected(struct ev_loop *loop, redlock_manager *manager, size_t index, uint64_t connects);

/* Data for on_lost. Start with {0}. */
struct loss {
    int runs;
    int64_t at_ns;
    int64_t validity_ms; /* of the lease, as the callback sees it */
    char reason[512];
};

void loss_collect(redlock_lease *lease, const char *reason, void *data);
/* For drive_until(). */
bool loss_came(void *data);

/* Data for on_log. Start with {0}. Keeps as much as fits. */
struct log_lines {
    size_t used;
    size_t lines;
    char text[65536];
};

void log_collect(redlock_log_level level, const char *line, void *data);

#endif
