/* What came of a request, as the caller reads it. */
#ifndef REDLOCK_RESULT_H
#define REDLOCK_RESULT_H

#include <stdint.h>

#include "core/lease.h"

enum redlock_result_of {
    REDLOCK_RESULT_ACQUIRE,
    REDLOCK_RESULT_EXTEND,
    REDLOCK_RESULT_RELEASE,
    REDLOCK_RESULT_INSPECT,
    REDLOCK_RESULT_CONNECT
};

struct redlock_result_vote {
    const char *node;
    const char *error;
    const char *holder;
    int64_t latency_us;
    int64_t holder_ttl_ms;
    redlock_vote_kind kind;
};

/* Built on the stack for a callback; its strings belong to others. A copy owns them. */
struct redlock_result {
    int code;
    enum redlock_result_of of;
    redlock_lease *lease;
    const char *resource;
    uint64_t attempts;
    int64_t ttl_ms; /* that was asked for */
    unsigned count;
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
};

#endif
