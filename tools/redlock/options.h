/* The command line, parsed and checked. */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <redlock/redlock.h>

#include "words.h"

/* The tool's exit statuses; 64 to 75 are those of sysexits.h. */
enum tool_exit {
    TOOL_EXIT_OK = 0,
    TOOL_EXIT_USAGE = 64,
    TOOL_EXIT_NODE_AWAY = 68,   /* status --all-ready: a quorum is there, but not every node */
    TOOL_EXIT_NO_QUORUM = 69,   /* also TOO_SLOW: too few nodes answered in time */
    TOOL_EXIT_UNCONFIRMED = 70, /* run, elect: too few nodes confirmed the release */
    TOOL_EXIT_SYSTEM = 71,      /* memory, random bytes, a system call */
    TOOL_EXIT_OUTPUT = 74,      /* standard output cannot be written */
    TOOL_EXIT_CONTENDED = 75,
    TOOL_EXIT_LOST = 76,
    TOOL_EXIT_CANNOT_EXECUTE = 126,
    TOOL_EXIT_NOT_FOUND = 127,
    TOOL_EXIT_SIGNAL_BASE = 128 /* plus the signal's number */
};

enum tool_command {
    TOOL_NO_COMMAND = 0,
    TOOL_RUN,
    TOOL_ELECT,
    TOOL_ACQUIRE,
    TOOL_EXTEND,
    TOOL_DOWNGRADE,
    TOOL_RELEASE,
    TOOL_CLEAR,
    TOOL_STATUS
};

#define TOOL_NOT_GIVEN INT64_C(-2)
/* The longest node and connect timeout that redlock.h allows. */
#define TOOL_TIMEOUT_MS_MAX INT64_C(60000)

/* When it differs, the file has changed. */
struct tool_stamp {
    int error; /* of stat(); then the rest is 0 */
    bool is_regular;
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

/* Which warnings are not printed. Errors always are. */
enum tool_no_warn {
    TOOL_NO_WARN_NONE,
    TOOL_NO_WARN_SETTINGS, /* of nodes that can be used: what people know already */
    TOOL_NO_WARN_ALL
};

struct tool_options {
    struct tool_words *words; /* where messages go */
    uint64_t given;           /* a bit for each row of the table that the command line has */
    const char *late[64];     /* its names and files, by row: read after all words; else NULL */
    /* Without nodes, TLS and callbacks. The ttl of a lock is never TOOL_NOT_GIVEN after parsing, if
     * the command has one. */
    redlock_manager_options manager;
    redlock_acquire_options lock;
    enum tool_command command;
    bool help;
    bool version;
    bool json;
    bool quiet;
    enum tool_no_warn no_warn;
    bool verbose;
    const char *node_list;              /* as given; never printed, because it may hold passwords */
    char *node_copy;                    /* node_list, split at its commas; or the file */
    char *node_uris[REDLOCK_NODES_MAX]; /* those that got their scheme here; else NULL */
    const char *nodes[REDLOCK_NODES_MAX];
    size_t node_count;
    const char *nodes_file;                 /* NULL: from the environment, else none */
    unsigned node_lines[REDLOCK_NODES_MAX]; /* where each node stands in that file */
    struct tool_stamp nodes_stamp;          /* of that file when it was read */
    int64_t grace_ms;                       /* TOOL_NOT_GIVEN: the default */
    bool observe;                           /* elect: only print who leads */
    bool shared;                            /* run, acquire, extend: read it together with others */
    int64_t at_least_ms;                    /* run: 0: let go after a success */
    bool yes;                               /* clear: do not ask */
    bool all;                               /* status: all locks */
    const char *match;                      /* their names; NULL: our own locks of any name */
    bool all_ready;
    bool metrics;
    const char *output; /* the file for the metrics; NULL: standard output */
    int64_t watch_ms;   /* 0: once */
    bool tls;           /* nodes without a scheme: rediss:// */
    bool insecure;      /* do not check who the nodes are */
    redlock_tls_options tls_options;
    bool tls_given; /* one of these is given */
    char holder_room[REDLOCK_HOLDER_SIZE_MAX + 1];
    size_t contended_status; /* if -E gave it, print nothing about this failure */
    const char *last_taker;  /* the last option behind the command that took a word; NULL: none */
    const char *resource;    /* the first */
    const char *token;       /* its own; NULL: none is given */
    /* All of them, each once. Those behind --shared are read. */
    redlock_item items[REDLOCK_ITEMS_MAX];
    size_t item_count;
    uint32_t slots[REDLOCK_PERMITS_MAX];      /* extend, release: of permits */
    size_t slot_count;                        /* 0: it is a lock */
    size_t limit;                             /* status: how many permits each has; 0: a lock */
    size_t shared_from;                       /* where --shared stood: behind so many operands */
    char name[REDLOCK_RESOURCE_SIZE_MAX + 1]; /* for sentences, in quotes: those that fit */
    /* Status: resources; run, elect: the command and its arguments, terminated by NULL. */
    char **operands;
    size_t operand_count;
    int dashes; /* how many operands stood before '--'; -1: it was not there */
};

/* Returns 0, or TOOL_EXIT_USAGE after printing what is wrong. Rearranges argv, which must outlive
 * options. */
int tool_options_parse(int argc, char **argv, struct tool_words *words, struct tool_options *options);

void tool_options_free(struct tool_options *options);

/* Takes what the command line does not have from the environment. Returns as above. */
int tool_options_complete(struct tool_options *options);

/* Whether the command line has this member of the options. */
bool tool_options_has(const struct tool_options *options, const void *member);

/* Whether a contended lock is no failure to tell of. */
static inline bool tool_options_expect_contended(const struct tool_options *options) {
    return tool_options_has(options, &options->contended_status);
}

/* Prints the library's sentence about a bad value, with the option that it is about. Returns
 * TOOL_EXIT_USAGE, or 0 if it is about none. */
int tool_options_refused(const struct tool_options *options, const char *sentence);

/* The text that --help prints, on standard output; TOOL_NO_COMMAND stands for the tool as a
 * whole. */
void tool_help_print(enum tool_command command);

#endif
