/* What the votes of an inspection say about a resource as a whole. */
#ifndef TOOL_HOLDERS_H
#define TOOL_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

#include <redlock/redlock.h>

enum tool_verdict {
    TOOL_FREE = 0, /* a quorum of nodes is free: whoever asks can have it */
    TOOL_HELD,     /* one token is at a quorum of nodes */
    TOOL_SPLIT,    /* neither, and the nodes that did not answer cannot change that */
    TOOL_UNKNOWN   /* the nodes that did not answer would decide */
};

struct tool_holders {
    enum tool_verdict verdict;
    size_t nodes;
    size_t quorum;
    size_t free;       /* nodes where nobody holds it */
    size_t answered;   /* nodes that said whether they hold it */
    const char *token; /* the one on the most nodes; NULL if all that answered are free; belongs to the result */
    size_t held;       /* nodes where that token is */
    /* Until fewer than a quorum hold that token, or, below a quorum, until the last node drops it; -1: for ever. */
    int64_t remaining_ms;
};

/* result may be NULL: nothing is known. */
struct tool_holders tool_holders_count(const redlock_result *result, size_t nodes);

/* "free", "held", "split", "unknown". */
const char *tool_verdict_name(enum tool_verdict verdict);

#endif
