/* Prints what status found in the text format of Prometheus, version 0.0.4. */
#include <inttypes.h>
#include <string.h>

#include "nodes.h"
#include "status.h"
#include "text.h"

/* Makes a family begin: its help and its type. All are gauges. */
static void begin(FILE *out, const char *name, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* A label's value: a byte that cannot be shown is \xNN, and so is a backslash. So two names never
 * become one, which would make the whole page invalid. Backslashes and quotes need an escape. */
static void print_label(FILE *out, const char *name, const char *text) {
    fprintf(out, "%s=\"", name);
    while (*text != '\0') {
        uint32_t code;
        size_t length = tool_utf8_read(text, &code);
        const bool unsafe = length == 0 || tool_is_unsafe(code) || code == '\\';
        length = length == 0 ? 1 : length;
        for (size_t i = 0; i < length; i++) {
            if (unsafe) {
                fprintf(out, "\\\\x%02x", (unsigned char)text[i]);
            } else if (text[i] == '"') {
                fputs("\\\"", out);
            } else {
                fputc(text[i], out);
            }
        }
        text += length;
    }
    fputc('"', out);
}

static void print_seconds(FILE *out, int64_t count, int64_t per_second) {
    const int digits = per_second == 1000 ? 3 : 6;
    fprintf(out, "%" PRId64 ".%0*" PRId64 "\n", count / per_second, digits, count % per_second);
}

static void single(FILE *out, const char *name, const char *help, size_t value) {
    begin(out, name, help);
    fprintf(out, "%s %zu\n", name, value);
}

/* Each metric of a node, and how to read it: -1 says that it is not known. Then there is no sample:
 * a 0 would be a lie, and a NaN would spoil sums and hide from absent(). */
enum node_metric { UP, VOTING, QUEUES, WARNED, LISTED, ROUND_TRIP, UPTIME, QUARANTINE, NODE_METRICS };

static int64_t read_node(const struct tool_session *session, const struct tool_findings *findings, size_t index,
                         enum node_metric metric) {
    const redlock_node_info info = tool_status_node(session, index);
    const bool ready = info.state == REDLOCK_NODE_READY;
    switch (metric) {
    case UP:
        return ready;
    case VOTING:
        return tool_status_may_vote(session, findings, index);
    case QUEUES:
        return ready && !tool_status_is_undecided(&info) ? info.listens : -1;
    case WARNED:
        return info.connects == 0 && info.warning[0] == '\0' ? -1 : info.warning[0] != '\0';
    case LISTED:
        return findings->all ? tool_status_has_listed(findings, index) : -1;
    case ROUND_TRIP:
        return ready ? info.round_trip_us : -1;
    case UPTIME:
        return ready ? info.uptime_s : -1;
    case QUARANTINE:
        return tool_status_quarantine_ms(&info);
    case NODE_METRICS:
        break;
    }
    return -1;
}

/* A node that is named twice has one line: it is one server, and two lines would be invalid. */
static bool is_named_before(const struct tool_session *session, size_t index) {
    const redlock_node_info info = tool_status_node(session, index);
    for (size_t i = 0; i < index; i++) {
        const redlock_node_info other = tool_status_node(session, i);
        if (strcmp(info.name, other.name) == 0) {
            return true;
        }
    }
    return false;
}

static void print_nodes(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    static const struct {
        const char *name, *help;
        int64_t per_second; /* of a time; 0: a number */
    } families[] = {
        [UP] = {"redlock_node_up", "Whether the node is connected and answers.", 0},
        [VOTING] = {"redlock_node_voting", "Whether it is up, near enough, takes writes, and may vote.", 0},
        [QUEUES] = {"redlock_node_keeps_queues", "Whether it keeps queues of those who wait.", 0},
        [WARNED] = {"redlock_node_warning", "Whether its settings put locks at risk.", 0},
        [LISTED] = {"redlock_node_listed", "Whether it named all of its locks.", 0},
        [ROUND_TRIP] = {"redlock_node_round_trip_seconds", "Time of its last answer.", 1000000},
        [UPTIME] = {"redlock_node_uptime_seconds", "How long the server had run when we connected.", 0},
        [QUARANTINE] = {"redlock_node_quarantine_seconds", "How long a guard will keep it from voting.", 1000},
    };
    for (int metric = 0; metric < NODE_METRICS; metric++) {
        bool begun = false;
        for (size_t i = 0; i < findings->nodes; i++) {
            const int64_t value = read_node(session, findings, i, (enum node_metric)metric);
            if (value < 0 || is_named_before(session, i)) {
                continue;
            }
            if (!begun) {
                begin(out, families[metric].name, families[metric].help);
                begun = true;
            }
            fprintf(out, "%s{", families[metric].name);
            print_label(out, "node", tool_status_node(session, i).name);
            fputs("} ", out);
            if (families[metric].per_second != 0) {
                print_seconds(out, value, families[metric].per_second);
            } else {
                fprintf(out, "%" PRId64 "\n", value);
            }
        }
    }
}

enum lock_metric { HELD, HELD_NODES, FREE_NODES, UNKNOWN_NODES, TTL, WAITERS, FIRST_WAITER, HOLDER, LOCK_METRICS };

static int64_t read_lock(const struct tool_lock *lock, enum lock_metric metric) {
    const struct tool_holders *holders = &lock->holders;
    const bool held = holders->verdict == TOOL_HELD;
    const bool known = holders->verdict != TOOL_UNKNOWN;
    switch (metric) {
    case HELD:
        return known ? held : -1;
    case HELD_NODES:
        return known ? (int64_t)holders->held : -1;
    case FREE_NODES:
        return known ? (int64_t)holders->free : -1;
    case UNKNOWN_NODES:
        return (int64_t)(holders->nodes - holders->answered);
    case TTL:
        return held ? holders->remaining_ms : -1;
    case WAITERS:
        return lock->waiters;
    case FIRST_WAITER:
        return lock->waited_ms;
    case HOLDER:
        return held ? 1 : -1;
    case LOCK_METRICS:
        break;
    }
    return -1;
}

/* A resource that is given twice has one line. Those of --all differ. */
static bool is_given_before(const struct tool_findings *findings, size_t index) {
    for (size_t i = 0; !findings->all && i < index; i++) {
        if (strcmp(findings->locks[i].resource, findings->locks[index].resource) == 0) {
            return true;
        }
    }
    return false;
}

/* The token stays out: whoever has it can release the lock. */
static void print_lock(FILE *out, const char *name, const struct tool_lock *lock, enum lock_metric metric) {
    const int64_t value = read_lock(lock, metric);
    fprintf(out, "%s{", name);
    print_label(out, "resource", lock->resource);
    if (metric == HOLDER) {
        fputc(',', out);
        print_label(out, "holder", redlock_token_holder(lock->holders.token));
    }
    fputs("} ", out);
    if (metric == TTL || metric == FIRST_WAITER) {
        print_seconds(out, value, 1000);
    } else {
        fprintf(out, "%" PRId64 "\n", value);
    }
}

static void print_locks(FILE *out, const struct tool_findings *findings) {
    static const struct {
        const char *name, *help;
    } families[] = {
        [HELD] = {"redlock_lock_held", "Whether one token is on a quorum of nodes."},
        [HELD_NODES] = {"redlock_lock_nodes_held", "The nodes that have the token which most have."},
        [FREE_NODES] = {"redlock_lock_nodes_free", "The nodes on which it is free."},
        [UNKNOWN_NODES] = {"redlock_lock_nodes_unknown", "The nodes that could not tell."},
        [TTL] = {"redlock_lock_ttl_seconds", "Until its keys end on a quorum, unless it is renewed."},
        [WAITERS] = {"redlock_lock_waiters", "How many wait for it in queues."},
        [FIRST_WAITER] = {"redlock_lock_first_waiter_seconds", "How long the first of them has waited."},
        [HOLDER] = {"redlock_lock_holder_info", "Who holds it, in the holder's own words."},
    };
    for (int metric = 0; metric < LOCK_METRICS; metric++) {
        bool begun = false;
        for (size_t i = 0; i < findings->lock_count; i++) {
            if (read_lock(&findings->locks[i], (enum lock_metric)metric) < 0 || is_given_before(findings, i)) {
                continue;
            }
            if (!begun) {
                begin(out, families[metric].name, families[metric].help);
                begun = true;
            }
            print_lock(out, families[metric].name, &findings->locks[i], (enum lock_metric)metric);
        }
    }
}

/* Where too few nodes listed their locks, there may be others. */
static void print_counts(FILE *out, const struct tool_findings *findings) {
    size_t held = 0;
    size_t unknown = 0;
    for (size_t i = 0; i < findings->lock_count; i++) {
        held += findings->locks[i].holders.verdict == TOOL_HELD;
        unknown += findings->locks[i].holders.verdict == TOOL_UNKNOWN;
    }
    if (findings->unanswered) {
        return;
    }
    if (unknown == 0) {
        single(out, "redlock_locks_held", "The locks that are held.", held);
    }
    single(out, "redlock_locks_unknown", "The locks of which too few nodes could tell.", unknown);
}

void tool_status_print_metrics(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    single(out, "redlock_nodes", "The configured nodes.", findings->nodes);
    single(out, "redlock_nodes_ready", "The nodes that are up.", findings->ready);
    single(out, "redlock_nodes_voting", "The nodes that are up, near enough, take writes, and may vote.",
           findings->voters);
    single(out, "redlock_nodes_quorum", "How many must grant a lock.", findings->quorum);
    if (findings->all) {
        print_counts(out, findings);
    }
    print_nodes(out, session, findings);
    print_locks(out, findings);
}
