/* What the nodes say about a resource as a whole. */
#ifndef TOOL_HOLDERS_H
#define TOOL_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/redlock.h>

enum tool_verdict {
    TOOL_FREE = 0, /* it is free on a quorum of nodes: anybody can take it */
    TOOL_HELD,     /* one token is on a quorum of nodes, or several that read it together */
    TOOL_SPLIT,    /* neither; the nodes that did not answer cannot change that */
    TOOL_UNKNOWN   /* the nodes that did not answer would decide */
};

/* What one node says. */
struct tool_sight {
    bool answered;
    const char *token; /* NULL: it is free there */
    int64_t ttl_ms;    /* -1: no end */
    int64_t readers;   /* how many read it there, whose lowest token it is; 0: one has it alone */
};

struct tool_holders {
    enum tool_verdict verdict;
    size_t nodes;
    size_t quorum;
    size_t free;       /* nodes on which nobody holds it */
    size_t answered;   /* nodes that said whether they hold it */
    const char *token; /* that on the most nodes, of a sight or of a reader; NULL if none */
    size_t held;       /* nodes that have that token */
    /* Until fewer than a quorum hold that token, or that of any reader; below a quorum, until no
     * node does; -1: no end. */
    int64_t remaining_ms;
    /* If it is held: how many read it together; 0: one has it alone. A listing knows about how
     * many. */
    int64_t readers;
};

/* The vote of a node; a pending one if there is no result. */
redlock_vote tool_vote(const redlock_result *result, size_t node);

/* The one with this index who reads, or who waits; one without a token behind the last. */
redlock_lock_reader tool_reader(const redlock_result *result, size_t index);
redlock_lock_waiter tool_waiter(const redlock_result *result, size_t index);

/* sights: one for each node. */
struct tool_holders tool_holders_count(const struct tool_sight *sights, size_t nodes, size_t quorum);

/* The same for an inspection, which owns the token; NULL if nothing is known. */
struct tool_holders tool_holders_of(const redlock_result *result, size_t nodes, size_t quorum);

/* Whether who holds it stands at a gate: he waits for permits of that name. */
bool tool_holders_is_gate(const struct tool_holders *holders);

/* "exclusive", "shared". */
const char *tool_mode_name(bool shared);

/* "free", "held", "split", "unknown". */
const char *tool_verdict_name(enum tool_verdict verdict);

#endif
