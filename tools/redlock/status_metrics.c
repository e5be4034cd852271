/* Prints what status found in the text format of Prometheus, version 0.0.4. */
#include <inttypes.h>
#include <string.h>

#include "nodes.h"
#include "status.h"
#include "text.h"
#include "values/values.h"

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

/* What is told of each node, or of each lock. */
struct family {
    const char *name, *help;
    int64_t per_second; /* of a time; 0: a number */
};

/* One sample of a family, which begins with its first. Ends the labels. */
static void print_value(FILE *out, const struct family *family, int64_t value) {
    fputs("} ", out);
    if (family->per_second != 0) {
        print_seconds(out, value, family->per_second);
    } else {
        fprintf(out, "%" PRId64 "\n", value);
    }
}

static void begin_sample(FILE *out, const struct family *family, bool *begun) {
    if (!*begun) {
        begin(out, family->name, family->help);
    }
    *begun = true;
    fprintf(out, "%s{", family->name);
}

enum node_metric { UP, VOTING, QUEUES, WARNED, LISTED, ROUND_TRIP, UPTIME, QUARANTINE, NODE_METRICS };

/* -1 says that it is not known. Then there is no sample: a 0 would be a lie, and a NaN would spoil
 * sums and hide from absent(). */
static void read_node(const struct tool_session *session, const struct tool_findings *findings, size_t index,
                      int64_t values[NODE_METRICS]) {
    const redlock_node_info info = tool_session_node(session, index);
    const bool ready = info.state == REDLOCK_NODE_READY;
    values[UP] = ready;
    values[VOTING] = tool_status_may_vote(session, findings, index);
    values[QUEUES] = ready && !tool_status_is_undecided(&info) ? info.listens : -1;
    values[WARNED] = info.connects == 0 && info.warning[0] == '\0' ? -1 : info.warning[0] != '\0';
    values[LISTED] = findings->all ? tool_status_has_listed(findings, index) : -1;
    values[ROUND_TRIP] = ready ? info.round_trip_us : -1;
    values[UPTIME] = ready ? info.uptime_s : -1;
    values[QUARANTINE] = tool_status_quarantine_ms(&info);
}

/* A node that is named twice has one line: it is one server, and two lines would be invalid. */
static bool is_named_before(const struct tool_session *session, size_t index) {
    const redlock_node_info info = tool_session_node(session, index);
    for (size_t i = 0; i < index; i++) {
        const redlock_node_info other = tool_session_node(session, i);
        if (strcmp(info.name, other.name) == 0) {
            return true;
        }
    }
    return false;
}

static void print_nodes(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    static const struct family families[] = {
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
            int64_t values[NODE_METRICS];
            read_node(session, findings, i, values);
            if (values[metric] >= 0 && !is_named_before(session, i)) {
                begin_sample(out, &families[metric], &begun);
                print_label(out, "node", tool_session_node(session, i).name);
                print_value(out, &families[metric], values[metric]);
            }
        }
    }
}

enum lock_metric { HELD, HELD_NODES, FREE_NODES, UNKNOWN_NODES, TTL, WAITERS, FIRST_WAITER, HOLDER, LOCK_METRICS };

static void read_lock(const struct tool_lock *lock, int64_t values[LOCK_METRICS]) {
    const struct tool_holders *holders = &lock->holders;
    const bool held = holders->verdict == TOOL_HELD;
    const bool known = holders->verdict != TOOL_UNKNOWN;
    values[HELD] = known ? held : -1;
    values[HELD_NODES] = known ? (int64_t)holders->held : -1;
    values[FREE_NODES] = known ? (int64_t)holders->free : -1;
    values[UNKNOWN_NODES] = (int64_t)(holders->nodes - holders->answered);
    values[TTL] = held ? holders->remaining_ms : -1;
    values[WAITERS] = lock->waiters;
    values[FIRST_WAITER] = lock->waited_ms;
    values[HOLDER] = held ? 1 : -1;
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
static void print_locks(FILE *out, const struct tool_findings *findings) {
    static const struct family families[] = {
        [HELD] = {"redlock_lock_held", "Whether one token is on a quorum of nodes.", 0},
        [HELD_NODES] = {"redlock_lock_nodes_held", "The nodes that have the token which most have.", 0},
        [FREE_NODES] = {"redlock_lock_nodes_free", "The nodes on which it is free.", 0},
        [UNKNOWN_NODES] = {"redlock_lock_nodes_unknown", "The nodes that could not tell.", 0},
        [TTL] = {"redlock_lock_ttl_seconds", "Until its keys end on a quorum, unless it is renewed.", 1000},
        [WAITERS] = {"redlock_lock_waiters", "How many wait for it in queues.", 0},
        [FIRST_WAITER] = {"redlock_lock_first_waiter_seconds", "How long the first of them has waited.", 1000},
        [HOLDER] = {"redlock_lock_holder_info", "Who holds it, in the holder's own words.", 0},
    };
    for (int metric = 0; metric < LOCK_METRICS; metric++) {
        bool begun = false;
        for (size_t i = 0; i < findings->lock_count; i++) {
            const struct tool_lock *lock = &findings->locks[i];
            int64_t values[LOCK_METRICS];
            read_lock(lock, values);
            if (values[metric] < 0 || is_given_before(findings, i)) {
                continue;
            }
            begin_sample(out, &families[metric], &begun);
            print_label(out, "resource", lock->resource);
            if (metric == HOLDER) {
                fputc(',', out);
                print_label(out, "holder", redlock_token_holder(lock->holders.token));
            }
            print_value(out, &families[metric], values[metric]);
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
