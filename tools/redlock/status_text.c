/* Prints what status found, for people. */
#include "status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nodes.h"
#include "text.h"
#include "values/values.h"

enum { COLUMNS = 7, NAMES_SHOWN = 50 };

/* Of a table: each column is as wide as its widest cell. */
struct row {
    const char *cells[COLUMNS];
};

static const char *shown(const struct row *row, size_t column, size_t columns) {
    const char *cell = row->cells[column];
    return *cell == '\0' && column + 1 < columns ? "-" : cell;
}

/* The first row is the heading. "" appears as "-", except in the last column, which is not
 * padded. */
static void print_table(FILE *out, const struct row *rows, size_t count, size_t columns) {
    size_t widths[COLUMNS] = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t column = 0; column < columns; column++) {
            size_t width = tool_safe_width(shown(&rows[i], column, columns));
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t owed = 0; /* spaces to print before the next cell, so that no line ends in spaces */
        for (size_t column = 0; column < columns; column++) {
            const char *cell = shown(&rows[i], column, columns);
            if (*cell != '\0') {
                fprintf(out, "%*s", (int)owed, "");
                tool_print_safe(out, cell);
                owed = 0;
            }
            owed += widths[column] - tool_safe_width(cell) + 2;
        }
        fputc('\n', out);
    }
}

/* Each remark follows "; ". */
static void remark(const struct tool_session *session, const struct tool_node *node, bool all, char *buffer,
                   size_t size) {
    const redlock_node_info *info = &node->info;
    buffer[0] = '\0';
    if (info->quarantine_ms > 0) {
        tool_append(buffer, size, "; no vote for %s: %s", TOOL_DURATION(info->quarantine_ms), info->quarantine);
    }
    if (node->far) {
        tool_append(buffer, size, "; %s", TOOL_NODES_FAR(session, info));
    }
    if (node->write_error[0] != '\0') {
        tool_append(buffer, size, "; takes no locks: %s (%s)", node->write_error,
                    tool_status_write_advice(node->write_error));
    }
    if (info->error[0] != '\0') {
        tool_append(buffer, size, "; %s", info->error);
    }
    if (info->warning[0] != '\0') {
        tool_append(buffer, size, "; %s", info->warning);
    }
    if (node->queueless || node->undecided) {
        tool_append(buffer, size, "; %s%s%s", node->queueless ? "no queue" : "not subscribed yet",
                    info->queue_error[0] != '\0' ? ": " : "", info->queue_error);
    }
    if (info->shared_error[0] != '\0') {
        tool_append(buffer, size, "; no shared locks: %s", info->shared_error);
    }
    if (all && node->ready && node->list_error[0] != '\0') {
        tool_append(buffer, size, "; %s: %s", node->listed ? "locks may be missing" : "cannot list its locks",
                    node->list_error);
    }
}

struct node_cells {
    char uptime[32];
    char round_trip[32];
    char remark[1024];
};

static void print_summary(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    fprintf(out, "%zu of %zu nodes ready", findings->ready, findings->nodes);
    if (findings->voters < findings->ready) {
        fprintf(out, ", %zu of them without a vote", findings->ready - findings->voters);
    }
    const bool slow = tool_status_is_slow(findings);
    fprintf(out, "; a quorum is %zu: locks can%s be taken", findings->quorum,
            findings->voters >= findings->quorum && !slow ? "" : "not");
    const int64_t needed_ms = tool_nodes_timeout_needed_ms(session);
    if (needed_ms != 0 && findings->voters < findings->quorum) {
        fprintf(out, ": give --node-timeout %" PRId64, needed_ms);
    } else if (slow) {
        fprintf(out, ": too few nodes answered within %" PRId64 " ms (--node-timeout)",
                session->options->manager.node_timeout_ms);
    }
    /* The end of a quarantine does not make a node take writes. */
    int64_t ms = findings->refusing > 0 ? 0 : tool_nodes_quorum_in_ms(session);
    if (ms > 0) {
        fprintf(out, " for %s", TOOL_DURATION(ms));
    }
    if (findings->voters == findings->quorum && !slow && findings->quorum < findings->nodes) {
        fputs(", until one more node fails", out);
    }
    if (findings->queueless + findings->quorum > findings->nodes) {
        fputs("; too few nodes keep queues: who waits tries again after random delays", out);
    }
    fputc('\n', out);
}

static void print_nodes(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    struct row rows[REDLOCK_NODES_MAX + 1] = {{{"NODE", "STATE", "VERSION", "ROLE", "UPTIME", "ROUND TRIP", "REMARK"}}};
    struct node_cells cells[REDLOCK_NODES_MAX] = {0};
    for (size_t i = 0; i < findings->nodes; i++) {
        const redlock_node_info info = findings->at[i].info;
        if (info.uptime_s >= 0 && info.uptime_s < 60) {
            snprintf(cells[i].uptime, sizeof cells[i].uptime, "%" PRId64 "s", info.uptime_s);
        } else if (info.uptime_s >= 0) {
            tool_duration_format(info.uptime_s * 1000, cells[i].uptime, sizeof cells[i].uptime);
        }
        if (info.round_trip_us >= 0) {
            snprintf(cells[i].round_trip, sizeof cells[i].round_trip, "%" PRId64 ".%03" PRId64 "ms",
                     info.round_trip_us / 1000, info.round_trip_us % 1000);
        }
        remark(session, &findings->at[i], findings->all, cells[i].remark, sizeof cells[i].remark);
        rows[i + 1] =
            (struct row){{info.name, redlock_node_state_name(info.state), info.version, info.role, cells[i].uptime,
                          cells[i].round_trip, cells[i].remark + (cells[i].remark[0] != '\0' ? 2 : 0)}};
    }
    print_table(out, rows, findings->nodes + 1, COLUMNS);
    print_summary(out, session, findings);
}

static void print_remaining(FILE *out, int64_t ms) {
    if (ms < 0) {
        fputs("for ever (no ttl)", out);
    } else {
        fprintf(out, "for %s more", TOOL_DURATION(ms));
    }
}

/* The lines of the nodes show the whole token. */
static void print_verdict(FILE *out, const struct tool_holders *holders) {
    const char *holder = redlock_token_holder(holders->token);
    switch (holders->verdict) {
    case TOOL_HELD:
        fputs(holders->readers > 0 ? "read by " : "held by ", out);
        if (holders->readers > 1) {
            fprintf(out, "%" PRId64, holders->readers);
        } else {
            tool_print_safe(out, holder[0] != '\0' ? holder : holders->token);
        }
        fprintf(out, " on %zu of %zu nodes, ", holders->held, holders->nodes);
        print_remaining(out, holders->remaining_ms);
        break;
    case TOOL_FREE:
        fprintf(out, "free on %zu of %zu nodes", holders->free, holders->nodes);
        break;
    case TOOL_SPLIT:
        fprintf(out, "split: no token is on a quorum (%zu), and only %zu of %zu nodes are free; ", holders->quorum,
                holders->free, holders->nodes);
        fputs("this ends when a ttl ends or its owner tries again", out);
        break;
    case TOOL_UNKNOWN:
        if (holders->answered < holders->quorum) {
            fprintf(out, "unknown: %zu of %zu nodes could tell", holders->answered, holders->nodes);
        } else {
            fprintf(out, "unknown: held on %zu, free on %zu; %zu of %zu nodes could not tell",
                    holders->answered - holders->free, holders->free, holders->nodes - holders->answered,
                    holders->nodes);
        }
        break;
    }
}

static void print_waiters(FILE *out, const struct tool_lock *lock) {
    const struct tool_holders *holders = &lock->holders;
    const int64_t waiters = lock->waiters;
    const int64_t waited_ms = lock->waited_ms;
    if (waiters > 0) {
        fprintf(out, "; %" PRId64 " %s", waiters, waiters == 1 ? "waits" : "wait");
        if (waited_ms >= 0) {
            fprintf(out, ", %s %s", waiters == 1 ? "for" : "the first for", TOOL_DURATION(waited_ms));
        }
    } else if (waiters < 0 && holders->answered >= holders->quorum) {
        fputs("; the nodes cannot tell who waits", out);
    }
    fputc('\n', out);
}

/* An error reply of Redis begins with a word in capitals: "NOPERM this user has no …". */
static bool is_error_reply(const char *error) {
    size_t capitals = strspn(error, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return capitals > 1 && error[capitals] == ' ';
}

static void print_vote(FILE *out, const redlock_vote *vote) {
    fputs("  ", out);
    tool_print_safe(out, vote->node);
    fputs(": ", out);
    switch (vote->kind) {
    case REDLOCK_VOTE_GRANTED:
        fputs(vote->readers > 0 ? "read by " : "held by ", out);
        if (vote->readers > 0) {
            fprintf(out, "%" PRId64, vote->readers);
        } else {
            tool_print_safe(out, vote->holder);
        }
        fputs(", ", out);
        print_remaining(out, vote->holder_ttl_ms);
        break;
    case REDLOCK_VOTE_DENIED:
        fputs("free", out);
        break;
    default:
        fputs(is_error_reply(vote->error) ? "cannot tell: " : "no answer: ", out);
        tool_print_safe(out, vote->error[0] != '\0' ? vote->error : redlock_vote_name(vote->kind));
        break;
    }
    fputc('\n', out);
}

/* Behind the last name that is shown, of `count` in all. */
static void print_others(FILE *out, const char *whom, size_t count) {
    if (count > NAMES_SHOWN) {
        fprintf(out, "  and %zu more %ss; --json names them\n", count - NAMES_SHOWN, whom);
    }
}

/* "  reader TOKEN: on 3 of 3 nodes, "; false if enough are shown. */
static bool print_name(FILE *out, const char *whom, const char *token, size_t nodes, size_t all, size_t index) {
    if (index < NAMES_SHOWN) {
        fprintf(out, "  %s ", whom);
        tool_print_safe(out, token);
        fprintf(out, ": on %zu of %zu nodes, ", nodes, all);
    }
    return index < NAMES_SHOWN;
}

static void print_names(FILE *out, const struct tool_lock *lock) {
    redlock_lock_reader reader;
    redlock_lock_waiter waiter;
    size_t readers = 0, waiters = 0;
    for (; (reader = tool_reader(lock->result, readers)).token != NULL; readers++) {
        if (print_name(out, "reader", reader.token, reader.nodes, lock->holders.nodes, readers)) {
            print_remaining(out, reader.ttl_ms);
            fputc('\n', out);
        }
    }
    print_others(out, "reader", readers);
    for (; (waiter = tool_waiter(lock->result, waiters)).token != NULL; waiters++) {
        if (print_name(out, "waiter", waiter.token, waiter.nodes, lock->holders.nodes, waiters)) {
            fprintf(out, "%sfor %s\n", waiter.reads ? "to read, " : "", TOOL_DURATION(waiter.waited_ms));
        }
    }
    print_others(out, "waiter", waiters);
}

/* Who stands at the gate waits, too. */
static void print_gate(FILE *out, const struct tool_lock *lock) {
    const struct tool_holders *gate = &lock->holders;
    if (gate->verdict != TOOL_HELD) {
        return;
    }
    const char *holder = redlock_token_holder(gate->token);
    fputs(tool_holders_is_gate(gate) ? "; the next is " : "; its name is locked, so nobody gets one: held by ", out);
    tool_print_safe(out, holder[0] != '\0' ? holder : gate->token);
}

static void print_slots(FILE *out, const struct tool_lock *lock) {
    fprintf(out, "%zu of %zu permits are taken", lock->taken, lock->limit);
    print_gate(out, lock);
    print_waiters(out, lock);
    for (size_t i = 0; i < lock->limit; i++) {
        const struct tool_holders *holders = &lock->slots[i].holders;
        if (holders->verdict != TOOL_FREE) {
            fprintf(out, "  slot %zu: ", i);
            print_verdict(out, holders);
            fputc('\n', out);
        }
    }
}

static void print_lock(FILE *out, const struct tool_lock *lock) {
    fputc('\n', out);
    tool_print_safe(out, lock->resource);
    fputs(": ", out);
    if (lock->slots != NULL) {
        print_slots(out, lock);
        print_names(out, lock);
        return;
    }
    print_verdict(out, &lock->holders);
    print_waiters(out, lock);
    for (size_t i = 0; lock->result != NULL && i < lock->holders.nodes; i++) {
        const redlock_vote vote = tool_vote(lock->result, i);
        print_vote(out, &vote);
    }
    print_names(out, lock);
}

struct lock_cells {
    char state[64];
    char nodes[16];
    char ttl[32];
    char waiters[24];
};

/* One line for each lock. */
static void fill_lock(const struct tool_lock *lock, struct lock_cells *cells, struct row *row) {
    const struct tool_holders *holders = &lock->holders;
    const char *text = redlock_token_holder(holders->token);
    const char *holder = text[0] != '\0' || holders->token == NULL ? text : holders->token;
    snprintf(cells->state, sizeof cells->state, "%s", tool_verdict_name(holders->verdict));
    if (holders->readers > 0) {
        snprintf(cells->state, sizeof cells->state, "read by %" PRId64, holders->readers);
    }
    snprintf(cells->nodes, sizeof cells->nodes, "%zu/%zu", holders->held, holders->nodes);
    if (holders->remaining_ms < 0) {
        snprintf(cells->ttl, sizeof cells->ttl, "no ttl");
    } else {
        tool_duration_format(holders->remaining_ms, cells->ttl, sizeof cells->ttl);
    }
    if (lock->waiters >= 0) {
        snprintf(cells->waiters, sizeof cells->waiters, "%" PRId64, lock->waiters);
    }
    *row = (struct row){{lock->resource, cells->state, cells->nodes, cells->ttl, cells->waiters, holder}};
}

/* Whoever reads "no locks" must know who has said so. */
static void print_none(FILE *out, const struct tool_findings *findings) {
    size_t listed = 0;
    for (size_t i = 0; i < findings->nodes; i++) {
        listed += findings->at[i].listed;
    }
    if (listed == 0) {
        fputs("the locks are not known: no node could list them\n", out);
    } else if (listed < findings->nodes) {
        fprintf(out, "no locks at %zu of %zu nodes; the others could not list theirs\n", listed, findings->nodes);
    } else {
        fputs("no locks\n", out);
    }
}

static void print_all(FILE *out, const struct tool_findings *findings) {
    const size_t count = findings->lock_count;
    struct row *rows = calloc(count + 1, sizeof *rows);
    struct lock_cells *cells = calloc(count + 1, sizeof *cells);
    fputc('\n', out);
    if (rows == NULL || cells == NULL) {
        fprintf(out, "%zu locks; no memory is left to print them\n", count);
    } else if (count == 0) {
        print_none(out, findings);
    } else {
        rows[0] = (struct row){{"RESOURCE", "STATE", "NODES", "TTL LEFT", "WAITERS", "HOLDER"}};
        for (size_t i = 0; i < count; i++) {
            fill_lock(&findings->locks[i], &cells[i], &rows[i + 1]);
        }
        print_table(out, rows, count + 1, 6);
    }
    free(rows);
    free(cells);
}

void tool_status_print(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    print_nodes(out, session, findings);
    if (findings->all) {
        print_all(out, findings);
        return;
    }
    for (size_t i = 0; i < findings->lock_count; i++) {
        print_lock(out, &findings->locks[i]);
    }
}
