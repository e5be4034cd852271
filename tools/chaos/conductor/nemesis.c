/* Begins and ends faults, and writes them down. */
#include <signal.h>
#include <unistd.h>

#include "backends/admin.h"
#include "conductor/run_state.h"
#include "faults/lists.h"
#include "values/clock.h"

/*
 * A fault        begun → ACTIVE; over at once if it has no end or could not begin
 * ACTIVE         due → undone: over
 *                due, but one of its nodes is silenced, or did not obey → due a little later
 */

enum { END_TRIES = 20 };

#define RETRY_US INT64_C(500000)
#define AFTER_US INT64_C(100000) /* from a node's start or resumption to the first question */

struct outcome {
    size_t done;
    size_t failed;
    struct chaos_error error; /* of the first that failed */
};

void chaos_nemesis_close(struct chaos_run *run) {
    for (size_t n = 0; n < CHAOS_NODES_MAX; n++) {
        if (run->nemesis.held[n] > 0) {
            close(run->nemesis.held[n]);
        }
    }
}

/* What keeps a node from being asked for anything just now; NULL if nothing does. */
static const struct chaos_active *silencer(const struct chaos_run *run, uint32_t nodes) {
    CHAOS_EACH(const struct chaos_active, active, run->nemesis.active, CHAOS_ACTIVE_MAX) {
        bool silences =
            chaos_fault_about(active->fault.kind)->exclusive && !chaos_fault_is_of_clock(active->fault.kind);
        if (active->on && silences && (active->fault.nodes & nodes) != 0) {
            return active;
        }
    }
    return NULL;
}

static bool is_asked(enum chaos_fault_kind kind) {
    const struct chaos_fault_about *about = chaos_fault_about(kind);
    return about->target == CHAOS_TARGET_NODES && !about->exclusive && kind != CHAOS_FAULT_CLOCK_JUMP;
}

static void count(struct outcome *outcome, bool worked, const struct chaos_error *error) {
    if (worked) {
        outcome->done++;
    } else if (outcome->failed++ == 0) {
        outcome->error = *error;
    }
}

static bool hits_link(const struct chaos_fault *fault, size_t c, size_t n) {
    return chaos_hits_client(fault, c) && chaos_hits_node(fault, n);
}

/* What all faults that are on make of a link. */
static struct chaos_link_rule rule_of(const struct chaos_run *run, size_t c, size_t n) {
    struct chaos_link_rule rule = {0};
    for (size_t i = 0; i < CHAOS_ACTIVE_MAX; i++) {
        const struct chaos_fault *fault = &run->nemesis.active[i].fault;
        if (!run->nemesis.active[i].on || !hits_link(fault, c, n)) {
            continue;
        }
        rule.hold_requests |= fault->kind == CHAOS_FAULT_PARTITION || fault->kind == CHAOS_FAULT_LOSE_REQUESTS;
        rule.hold_replies |= fault->kind == CHAOS_FAULT_PARTITION || fault->kind == CHAOS_FAULT_LOSE_REPLIES;
        rule.silent |= fault->kind == CHAOS_FAULT_SILENT;
        rule.delay_us += fault->kind == CHAOS_FAULT_DELAY ? fault->amount * 1000 : 0;
        rule.jitter_us += fault->kind == CHAOS_FAULT_JITTER ? fault->amount * 1000 : 0;
        if (fault->kind == CHAOS_FAULT_BANDWIDTH && (rule.bytes_per_s == 0 || fault->amount < rule.bytes_per_s)) {
            rule.bytes_per_s = fault->amount;
        }
    }
    return rule;
}

/* False: the proxy is dead or hangs; no other link would hear of it either. */
static bool on_link(struct chaos_run *run, const struct chaos_fault *fault, size_t c, size_t n,
                    struct outcome *outcome) {
    struct chaos_error error;
    if (fault->kind == CHAOS_FAULT_CUT) {
        if (hits_link(fault, c, n)) {
            count(outcome, chaos_links_cut(&run->links, c, n, &error), &error);
        }
        return true;
    }
    struct chaos_link_rule rule = rule_of(run, c, n), *old = &run->nemesis.rules[c][n];
    bool same = rule.hold_requests == old->hold_requests && rule.hold_replies == old->hold_replies &&
                rule.delay_us == old->delay_us && rule.jitter_us == old->jitter_us &&
                rule.bytes_per_s == old->bytes_per_s;
    const bool silence = rule.silent != old->silent;
    if (same && !silence) {
        return true;
    }
    *old = rule;
    bool worked = same || chaos_links_set(&run->links, c, n, &rule, &error);
    worked = worked && (!silence || chaos_links_silence(&run->links, c, n, rule.silent, &error));
    count(outcome, worked, &error);
    return worked;
}

static bool on_node(struct chaos_run *run, const struct chaos_fault *fault, size_t n, bool begins,
                    struct chaos_error *error) {
    struct chaos_backend *backend = run->backend;
    const struct chaos_backend_ops *ops = backend->ops;
    bool empty = fault->kind == CHAOS_FAULT_RESTART_EMPTY || !backend->options.append_only;
    switch (fault->kind) {
    case CHAOS_FAULT_KILL:
    case CHAOS_FAULT_RESTART_EMPTY:
        return begins ? ops->kill(backend, n, error) : ops->restart(backend, n, empty, error);
    case CHAOS_FAULT_PAUSE:
        return (begins ? ops->pause : ops->resume)(backend, n, error);
    case CHAOS_FAULT_DROP:
        return ops->lose(backend, n, begins, error);
    case CHAOS_FAULT_CLOCK_JUMP:
        chaos_clock_jump(backend->clocks[n], begins ? fault->amount : 0);
        return true;
    case CHAOS_FAULT_CLOCK_SKEW:
        chaos_clock_skew(backend->clocks[n], begins ? fault->amount : 0);
        return true;
    default:
        return (begins ? chaos_admin_begin : chaos_admin_end)(backend->ports[n], fault, &run->nemesis.held[n], error);
    }
}

static bool on_client(struct chaos_run *run, enum chaos_fault_kind kind, size_t c, bool begins) {
    if (kind == CHAOS_FAULT_CLIENT_PAUSE) {
        return chaos_crew_signal(&run->crew, c, begins ? SIGSTOP : SIGCONT);
    }
    return begins ? chaos_crew_signal(&run->crew, c, SIGKILL) : chaos_crew_spawn(&run->crew, c);
}

static void configure(struct chaos_run *run, const struct chaos_fault *fault, struct outcome *outcome) {
    struct chaos_setup setup = chaos_setup_of(fault);
    struct chaos_error error = {""};
    for (size_t c = 0; c < run->links.clients; c++) {
        if (!chaos_hits_client(fault, c)) {
            continue;
        }
        for (size_t n = 0, at = 0; n < run->links.nodes; n++) {
            if (chaos_hits_node(fault, n)) {
                run->nodes[c][at++] = run->uris[c][n];
            }
        }
        bool worked = chaos_crew_configure(&run->crew, c, &setup);
        if (!worked) {
            chaos_fail(&error, "client %zu could not be asked to end", c + 1);
        }
        count(outcome, worked, &error);
    }
}

/* Link rules come from all faults that are on, so the caller sets or clears `on` first. */
static void act(struct chaos_run *run, const struct chaos_fault *fault, bool begins, struct outcome *outcome) {
    struct chaos_error error = {""};
    switch (chaos_fault_about(fault->kind)->target) {
    case CHAOS_TARGET_NODES:
        for (size_t n = 0; n < run->backend->options.nodes; n++) {
            if (chaos_hits_node(fault, n)) {
                count(outcome, on_node(run, fault, n, begins, &error), &error);
            }
        }
        return;
    case CHAOS_TARGET_CLIENTS:
        for (size_t c = 0; c < run->links.clients; c++) {
            if (chaos_hits_client(fault, c)) {
                chaos_fail(&error, "client %zu could not be %s", c + 1, begins ? "signalled" : "started or resumed");
                count(outcome, on_client(run, fault->kind, c, begins), &error);
            }
        }
        return;
    case CHAOS_TARGET_LINKS:
        if (fault->kind == CHAOS_FAULT_CONFIGURE) {
            configure(run, fault, outcome);
            return;
        }
        for (size_t i = 0, nodes = run->links.nodes; i < run->links.clients * nodes; i++) {
            if (!on_link(run, fault, i / nodes, i % nodes, outcome)) {
                return;
            }
        }
    }
}

static void log_heal(struct chaos_run *run, int64_t id, const char *error) {
    chaos_log_event(&run->log, tool_now_us(), "heal", "s:I,s:s", "id", (json_int_t)id, "error", error);
}

static void log_fault(struct chaos_run *run, int64_t t_us, int64_t id, const struct chaos_fault *fault,
                      const char *error) {
    char text[CHAOS_FAULT_LINE_MAX];
    chaos_fault_describe(fault, run->backend->options.nodes, run->links.clients, text, sizeof text);
    chaos_log_event(&run->log, t_us, "fault", "s:I,s:s,s:o,s:o,s:I,s:s,s:s", "id", (json_int_t)id, "kind",
                    chaos_fault_about(fault->kind)->name, "nodes", chaos_log_numbers(fault->nodes), "clients",
                    chaos_log_numbers(fault->clients), "amount", (json_int_t)fault->amount, "text", text, "error",
                    error);
}

/* Why it cannot be begun now, or NULL. */
static const char *objection(const struct chaos_run *run, const struct chaos_fault *fault,
                             struct chaos_active **place) {
    const struct chaos_fault_about *about = chaos_fault_about(fault->kind);
    *place = NULL;
    for (size_t i = CHAOS_ACTIVE_MAX; i-- > 0;) {
        const struct chaos_active *active = &run->nemesis.active[i];
        if (!active->on) {
            *place = (struct chaos_active *)&run->nemesis.active[i];
            continue;
        }
        const struct chaos_fault_about *other = chaos_fault_about(active->fault.kind);
        bool meets = about->target == other->target && about->target != CHAOS_TARGET_LINKS &&
                     ((active->fault.nodes & fault->nodes) != 0 || (active->fault.clients & fault->clients) != 0);
        if (about->exclusive && other->exclusive && meets) {
            return "another fault is on the same node or client, and these two cannot be combined; wait for its end";
        }
    }
    if (*place == NULL) {
        return "64 faults are on already; wait for the end of one";
    }
    if (chaos_fault_is_of_clock(fault->kind) && run->backend->clocks[0] == NULL) {
        return "the nodes run without the clock shim, so their clocks cannot be set; see REDLOCK_CHAOS_SHIM in "
               "redlock-chaos(1)";
    }
    if (is_asked(fault->kind) && silencer(run, fault->nodes) != NULL) {
        return "one of the nodes is dead, paused or without packets, and cannot be asked for it; wait for its end";
    }
    return NULL;
}

bool chaos_nemesis_begin(struct chaos_run *run, const struct chaos_fault *fault, struct chaos_error *error) {
    const struct chaos_fault_about *about = chaos_fault_about(fault->kind);
    struct chaos_active *active;
    const char *no = objection(run, fault, &active);
    int64_t now_us = tool_now_us();
    int64_t id = ++run->nemesis.last_id;
    if (no != NULL) {
        chaos_fail(error, "%s: %s", about->name, no);
        log_fault(run, now_us, id, fault, error->text);
        log_heal(run, id, "");
        return false;
    }
    int64_t lasts_ms = chaos_fault_length_ms(fault);
    struct outcome outcome = {0};
    *active = (struct chaos_active){.fault = *fault, .id = id, .on = true};
    act(run, fault, true, &outcome);
    bool none = outcome.failed > 0 && outcome.done == 0;
    log_fault(run, now_us, id, fault, outcome.error.text);
    active->end_us = now_us + lasts_ms * 1000;
    if (none || lasts_ms == 0) {
        active->on = false;
        log_heal(run, id, "");
    }
    if (outcome.failed > 0) {
        chaos_fail(error, "%s: %s", about->name, outcome.error.text);
    }
    return !none;
}

static void end(struct chaos_run *run, struct chaos_active *active, int64_t now_us) {
    const struct chaos_active *by = is_asked(active->fault.kind) ? silencer(run, active->fault.nodes) : NULL;
    if (by != NULL) {
        active->end_us = by->end_us + AFTER_US;
        return;
    }
    struct outcome outcome = {0};
    active->on = false;
    act(run, &active->fault, false, &outcome);
    if (outcome.failed > 0 && ++active->tries < END_TRIES) {
        active->on = true;
        active->end_us = now_us + RETRY_US;
        return;
    }
    log_heal(run, active->id, outcome.failed > 0 ? outcome.error.text : "");
}

void chaos_nemesis_turn(struct chaos_run *run, int64_t now_us) {
    for (size_t i = 0; i < CHAOS_ACTIVE_MAX; i++) {
        if (run->nemesis.active[i].on && run->nemesis.active[i].end_us <= now_us) {
            end(run, &run->nemesis.active[i], now_us);
        }
    }
}

int64_t chaos_nemesis_next_us(const struct chaos_run *run) {
    int64_t next_us = INT64_MAX;
    CHAOS_EACH(const struct chaos_active, active, run->nemesis.active, CHAOS_ACTIVE_MAX) {
        next_us = active->on ? chaos_least(next_us, active->end_us) : next_us;
    }
    return next_us;
}

bool chaos_nemesis_keeps_dead(const struct chaos_run *run, size_t client) {
    bool dead = false;
    CHAOS_EACH(const struct chaos_active, active, run->nemesis.active, CHAOS_ACTIVE_MAX) {
        dead |=
            active->on && active->fault.kind == CHAOS_FAULT_CLIENT_KILL && chaos_hits_client(&active->fault, client);
    }
    return dead;
}

void chaos_nemesis_heal(struct chaos_run *run) {
    int64_t now_us = tool_now_us();
    for (size_t i = 0; i < CHAOS_ACTIVE_MAX; i++) {
        run->nemesis.active[i].end_us = now_us;
    }
    chaos_nemesis_turn(run, now_us);
}
