/* The result of a request, as the caller reads it. */
#ifndef REDLOCK_RESULT_RESULT_H
#define REDLOCK_RESULT_RESULT_H

#include <stdint.h>

#include "base/text.h"
#include "core/quorum.h"

enum redlock_result_of {
    REDLOCK_RESULT_ACQUIRE,
    REDLOCK_RESULT_EXTEND,
    REDLOCK_RESULT_RELEASE,
    REDLOCK_RESULT_INSPECT,
    REDLOCK_RESULT_CONNECT,
    REDLOCK_RESULT_LIST
};

/* How a lease was lost. */
enum redlock_loss {
    REDLOCK_LOSS_NONE,
    REDLOCK_LOSS_DEADLINE,
    REDLOCK_LOSS_CAP,
    REDLOCK_LOSS_VOTES,
    REDLOCK_LOSS_CLOCK
};

struct redlock_result_vote {
    const char *node;
    const struct redlock_text *text; /* the error; NULL for none */
    const char *holder;
    int64_t latency_us;
    int64_t holder_ttl_ms;
    redlock_vote_kind kind;
};

/* Built on the stack for a callback, with borrowed strings and texts. A copy owns its own. */
struct redlock_result {
    int code;
    enum redlock_result_of of;
    /* How the lease was lost before this request was decided; the votes are of its last round. */
    enum redlock_loss loss;
    unsigned quorum;
    redlock_lease *lease;
    const char *resource;
    uint64_t passed_over;
    int64_t waiters, waited_ms, readers; /* INSPECT; -1: not known */
    int64_t ttl_ms;                      /* as requested */
    int64_t cap_ms;                      /* auto_extend_max_ms */
    const char *reason;                  /* ERR_INVALID: which argument, and why; else NULL */
    unsigned count;
    uint64_t attempts;
    struct redlock_result_vote *votes; /* `count` votes */
};

/* The result of a call that was refused before any node was asked: without votes. NULL if there is
 * no memory. Freed with redlock_result_free(). */
redlock_result *redlock_result_refused(enum redlock_result_of of, const char *resource, int code, const char *reason);

/* Who has the lock at the vote's node, in the holder's own words; "" if it is not known. */
const char *redlock_holder_of_vote(const struct redlock_result_vote *vote);

/* Writes one sentence without a full stop: how the lease was lost. Otherwise like
 * redlock_result_message(). */
size_t redlock_message_loss(const struct redlock_result *result, char *buffer, size_t size);

/* The same: how many nodes granted it, and what the others said. */
size_t redlock_message_votes(const struct redlock_result *result, char *buffer, size_t size);

#endif
