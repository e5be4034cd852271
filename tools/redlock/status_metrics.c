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

/* A time in seconds, if so many are a second; else a number. */
static void print_number(FILE *out, int64_t count, int64_t per_second) {
    if (per_second == 0) {
        fprintf(out, "%" PRId64 "\n", count);
    } else {
        fprintf(out, "%" PRId64 ".%0*" PRId64 "\n", count / per_second, per_second == 1000 ? 3 : 6, count % per_second);
    }
}

static void single(FILE *out, const char *name, const char *help, size_t value) {
    begin(out, name, help);
    fprintf(out, "%s %zu\n", name, value);
}

/* What is told of each node, or of each lock. */
struct family {
    const char *name, *help; /* NULL: none */
    int64_t per_second;      /* of a time; 0: a number */
    bool names_holder;
};

enum { METRICS = 9 };

/* A value of -1 is not known. Then there is no sample: a 0 would be a lie, and a NaN would spoil
 * sums and hide from absent(). */
struct told {
    const char *name;   /* NULL: it is told already, and two lines would be invalid */
    const char *holder; /* the token stays out: whoever has it can release the lock */
    int64_t values[METRICS];
};

/* Returns what is told of the one with this index. */
typedef struct told reader(const struct tool_findings *findings, size_t index);

static void print_families(FILE *out, const struct tool_findings *findings, const struct family families[METRICS],
                           const char *label, size_t count, reader *read) {
    for (const struct family *family = families; family < families + METRICS && family->name != NULL; family++) {
        bool begun = false;
        for (size_t i = 0; i < count; i++) {
            const struct told told = read(findings, i);
            const int64_t value = told.values[family - families];
            if (told.name == NULL || value < 0) {
                continue;
            }
            if (!begun) {
                begin(out, family->name, family->help);
            }
            begun = true;
            fprintf(out, "%s{", family->name);
            print_label(out, label, told.name);
            if (family->names_holder) {
                fputc(',', out);
                print_label(out, "holder", told.holder);
            }
            fputs("} ", out);
            print_number(out, value, family->per_second);
        }
    }
}

enum node_metric { UP, VOTING, QUEUES, WARNED, LISTED, ROUND_TRIP, UPTIME, QUARANTINE };

static const struct family node_families[METRICS] = {
    [UP] = {"redlock_node_up", .help = "Whether the node is connected and answers."},
    [VOTING] = {"redlock_node_voting", .help = "Whether it is up, near enough, takes writes, and may vote."},
    [QUEUES] = {"redlock_node_keeps_queues", .help = "Whether it keeps queues of those who wait."},
    [WARNED] = {"redlock_node_warning", .help = "Whether its settings put locks at risk."},
    [LISTED] = {"redlock_node_listed", .help = "Whether it named all of its locks."},
    [ROUND_TRIP] = {"redlock_node_round_trip_seconds", .help = "Time of its last answer.", .per_second = 1000000},
    [UPTIME] = {"redlock_node_uptime_seconds", .help = "How long the server had run when we connected."},
    [QUARANTINE] = {"redlock_node_quarantine_seconds", .help = "How long a guard will keep it from voting.",
                    .per_second = 1000},
};

/* A node that is named twice is one server. */
static struct told read_node(const struct tool_findings *findings, size_t index) {
    const struct tool_node *node = &findings->at[index];
    const redlock_node_info info = node->info;
    struct told told = {
        .name = info.name,
        .values = {[UP] = node->ready,
                   [VOTING] = node->may_vote,
                   [QUEUES] = node->ready && !node->undecided ? info.listens : -1,
                   [WARNED] = info.connects == 0 && info.warning[0] == '\0' ? -1 : info.warning[0] != '\0',
                   [LISTED] = findings->all ? node->listed : -1,
                   [ROUND_TRIP] = node->ready ? info.round_trip_us : -1,
                   [UPTIME] = node->ready ? info.uptime_s : -1,
                   [QUARANTINE] = node->quarantine_ms}};
    for (size_t i = 0; i < index && told.name != NULL; i++) {
        told.name = strcmp(info.name, findings->at[i].info.name) == 0 ? NULL : info.name;
    }
    return told;
}

enum lock_metric { HELD, HELD_NODES, FREE_NODES, UNKNOWN_NODES, TTL, WAITERS, FIRST_WAITER, READERS, HOLDER };

static const struct family lock_families[METRICS] = {
    [HELD] = {"redlock_lock_held", .help = "Whether a token is on a quorum of nodes."},
    [HELD_NODES] = {"redlock_lock_nodes_held", .help = "The nodes that have the token which most have."},
    [FREE_NODES] = {"redlock_lock_nodes_free", .help = "The nodes on which it is free."},
    [UNKNOWN_NODES] = {"redlock_lock_nodes_unknown", .help = "The nodes that could not tell."},
    [TTL] = {"redlock_lock_ttl_seconds", .help = "Until its keys end on a quorum, unless it is renewed.",
             .per_second = 1000},
    [WAITERS] = {"redlock_lock_waiters", .help = "How many wait for it in queues."},
    [FIRST_WAITER] = {"redlock_lock_first_waiter_seconds", .help = "How long the first of them has waited.",
                      .per_second = 1000},
    [READERS] = {"redlock_lock_readers", .help = "How many read it together; 0: one has it alone, or it is free."},
    [HOLDER] = {"redlock_lock_holder_info",
                .help = "Who holds it, in the holder's own words, or the first who reads it.", .names_holder = true},
};

/* A resource may be given twice. Those of --all differ. */
static struct told read_lock(const struct tool_findings *findings, size_t index) {
    const struct tool_lock *lock = &findings->locks[index];
    const struct tool_holders *holders = &lock->holders;
    const bool held = holders->verdict == TOOL_HELD;
    const bool known = holders->verdict != TOOL_UNKNOWN;
    struct told told = {.name = lock->resource,
                        .holder = redlock_token_holder(holders->token),
                        .values = {[HELD] = known ? held : -1,
                                   [HELD_NODES] = known ? (int64_t)holders->held : -1,
                                   [FREE_NODES] = known ? (int64_t)holders->free : -1,
                                   [UNKNOWN_NODES] = (int64_t)(holders->nodes - holders->answered),
                                   [TTL] = held ? holders->remaining_ms : -1,
                                   [WAITERS] = lock->waiters,
                                   [FIRST_WAITER] = lock->waited_ms,
                                   [READERS] = known ? holders->readers : -1,
                                   [HOLDER] = held ? 1 : -1}};
    for (size_t i = 0; i < index && !findings->all && told.name != NULL; i++) {
        told.name = strcmp(findings->locks[i].resource, lock->resource) == 0 ? NULL : lock->resource;
    }
    return told;
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

void tool_status_print_metrics(FILE *out, const struct tool_findings *findings) {
    single(out, "redlock_nodes", "The configured nodes.", findings->nodes);
    single(out, "redlock_nodes_ready", "The nodes that are up.", findings->ready);
    single(out, "redlock_nodes_voting", "The nodes that are up, near enough, take writes, and may vote.",
           findings->voters);
    single(out, "redlock_nodes_quorum", "How many must grant a lock.", findings->quorum);
    if (findings->all) {
        print_counts(out, findings);
    }
    print_families(out, findings, node_families, "node", findings->nodes, read_node);
    print_families(out, findings, lock_families, "resource", findings->lock_count, read_lock);
}
