/* The loop driver of the tests. */
#include "drive.h"

#include <stdio.h>
#include <string.h>

#include "support.h"

static void on_tick(struct ev_loop *loop, ev_timer *tick, int events) {
    (void)loop, (void)tick, (void)events; /* it only makes ev_run() return */
}

bool drive_until(struct ev_loop *loop, bool (*done)(void *data), void *data, int timeout_ms) {
    int64_t deadline = support_now_ms() + timeout_ms;
    ev_timer tick;
    ev_timer_init(&tick, on_tick, 0.005, 0.005);
    ev_timer_start(loop, &tick);
    bool is_done;
    while (!(is_done = done(data)) && support_now_ms() < deadline) {
        ev_run(loop, EVRUN_ONCE);
    }
    ev_timer_stop(loop, &tick);
    return is_done;
}

static bool never(void *data) {
    (void)data;
    return false;
}

void drive_for(struct ev_loop *loop, int ms) {
    drive_until(loop, never, NULL, ms);
}

void outcome_collect(const redlock_result *result, void *data) {
    struct outcome *outcome = data;
    outcome->runs++;
    outcome->code = redlock_result_code(result);
    outcome->attempts = redlock_result_attempts(result);
    outcome->at_ms = support_now_ms();
    outcome->lease = redlock_result_lease(result);
    redlock_result_message(result, outcome->message, sizeof outcome->message);
    redlock_result_free(outcome->copy);
    outcome->copy = redlock_result_copy(result);
    if (!outcome->copy) {
        support_fatal("redlock_result_copy: out of memory");
    }
}

static bool has_run(void *data) {
    return ((struct outcome *)data)->runs > 0;
}

bool outcome_wait(struct ev_loop *loop, struct outcome *outcome) {
    return drive_until(loop, has_run, outcome, DRIVE_TIMEOUT_MS);
}

void outcome_clear(struct outcome *outcome) {
    redlock_result_free(outcome->copy);
    memset(outcome, 0, sizeof *outcome);
}

static redlock_vote vote_at(const struct outcome *outcome, size_t index) {
    redlock_vote vote = {.size = sizeof vote};
    if (!outcome->copy || redlock_result_vote(outcome->copy, index, &vote) != REDLOCK_OK) {
        support_fatal("no vote %zu in the result", index);
    }
    return vote;
}

size_t outcome_votes(const struct outcome *outcome, redlock_vote_kind kind) {
    size_t count = 0;
    for (size_t i = 0; outcome->copy && i < redlock_result_vote_count(outcome->copy); i++) {
        if (vote_at(outcome, i).kind == kind) {
            count++;
        }
    }
    return count;
}

redlock_vote_kind outcome_vote(const struct outcome *outcome, size_t index) {
    return vote_at(outcome, index).kind;
}

const char *outcome_vote_error(const struct outcome *outcome, size_t index) {
    return vote_at(outcome, index).error;
}

static int finish(struct ev_loop *loop, const char *what, int code, struct outcome *outcome) {
    if (code != REDLOCK_OK) {
        return code;
    }
    if (outcome->runs != 0) {
        support_fatal("%s: the callback ran inside the call", what);
    }
    if (!outcome_wait(loop, outcome)) {
        support_fatal("%s did not complete within %d ms", what, DRIVE_TIMEOUT_MS);
    }
    return outcome->code;
}

int drive_acquire(struct ev_loop *loop, redlock_manager *manager, const char *resource,
                  const redlock_acquire_options *options, struct outcome *outcome) {
    outcome_clear(outcome);
    int code = redlock_acquire(manager, resource, options, NULL, outcome_collect, outcome);
    return finish(loop, "redlock_acquire", code, outcome);
}

int drive_extend(struct ev_loop *loop, redlock_lease *lease, int64_t ttl_ms, struct outcome *outcome) {
    outcome_clear(outcome);
    return finish(loop, "redlock_extend", redlock_extend(lease, ttl_ms, outcome_collect, outcome), outcome);
}

int drive_release(struct ev_loop *loop, redlock_lease *lease, struct outcome *outcome) {
    outcome_clear(outcome);
    return finish(loop, "redlock_release", redlock_release(lease, outcome_collect, outcome), outcome);
}

int drive_inspect(struct ev_loop *loop, redlock_manager *manager, const char *resource, struct outcome *outcome) {
    outcome_clear(outcome);
    int code = redlock_inspect(manager, resource, outcome_collect, outcome);
    return finish(loop, "redlock_inspect", code, outcome);
}

int drive_connect(struct ev_loop *loop, redlock_manager *manager, struct outcome *outcome) {
    outcome_clear(outcome);
    int code = redlock_manager_connect(manager, 10000, outcome_collect, outcome);
    return finish(loop, "redlock_manager_connect", code, outcome);
}

static void on_closed(void *data) {
    ++*(int *)data;
}

static bool is_closed(void *data) {
    return *(int *)data > 0;
}

bool drive_close(struct ev_loop *loop, redlock_manager *manager) {
    int closed = 0;
    if (redlock_manager_close(manager, on_closed, &closed) != REDLOCK_OK) {
        return false;
    }
    return drive_until(loop, is_closed, &closed, DRIVE_TIMEOUT_MS) && closed == 1;
}

struct nodes_wanted {
    redlock_manager *manager;
    redlock_node_state state;
    size_t count;
};

static bool has_nodes(void *data) {
    const struct nodes_wanted *wanted = data;
    size_t count = 0;
    for (size_t i = 0; i < redlock_manager_node_count(wanted->manager); i++) {
        redlock_node_info info = {.size = sizeof info};
        if (redlock_manager_node(wanted->manager, i, &info) == REDLOCK_OK && info.state == wanted->state) {
            count++;
        }
    }
    return count >= wanted->count;
}

bool drive_nodes(struct ev_loop *loop, redlock_manager *manager, redlock_node_state state, size_t count) {
    struct nodes_wanted wanted = {manager, state, count};
    return drive_until(loop, has_nodes, &wanted, DRIVE_TIMEOUT_MS);
}

struct node_wanted {
    redlock_manager *manager;
    size_t index;
    uint64_t connects;
};

static bool has_connects(void *data) {
    const struct node_wanted *wanted = data;
    redlock_node_info info = {.size = sizeof info};
    return redlock_manager_node(wanted->manager, wanted->index, &info) == REDLOCK_OK &&
           info.state == REDLOCK_NODE_READY && info.connects >= wanted->connects;
}

bool drive_reconnected(struct ev_loop *loop, redlock_manager *manager, size_t index, uint64_t connects) {
    struct node_wanted wanted = {manager, index, connects};
    return drive_until(loop, has_connects, &wanted, DRIVE_TIMEOUT_MS);
}

void loss_collect(redlock_lease *lease, const char *reason, void *data) {
    struct loss *loss = data;
    loss->at_ns = support_now_ns();
    loss->runs++;
    loss->validity_ms = redlock_lease_validity_ms(lease);
    snprintf(loss->reason, sizeof loss->reason, "%s", reason);
}

bool loss_came(void *data) {
    return ((struct loss *)data)->runs > 0;
}

void log_collect(redlock_log_level level, const char *line, void *data) {
    struct log_lines *log = data;
    log->lines++;
    int n = snprintf(log->text + log->used, sizeof log->text - log->used, "%d %s\n", (int)level, line);
    if (n > 0 && log->used + (size_t)n < sizeof log->text) {
        log->used += (size_t)n;
    } else {
        log->text[log->used] = '\0';
    }
}
