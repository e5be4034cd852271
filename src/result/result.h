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

/* One who reads, or who waits, by what all nodes say. */
struct redlock_result_name {
    const char *token;
    int64_t ms; /* for how long it still reads, or has waited */
    size_t nodes;
};

/* A node's vote. A lease keeps it in the same form, so a result takes a copy at once. */
struct redlock_result_vote {
    struct redlock_text *text; /* the error; NULL for none */
    int32_t latency_us;        /* -1 for none */
    uint8_t kind;              /* redlock_vote_kind */
    uint16_t logged;           /* of a lease: a hash of the vote that the log gave last; 0: none */
};

/* INSPECT: what a node has at the key. */
struct redlock_result_holder {
    const char *token; /* "" for none */
    int64_t ttl_ms;
    int64_t readers; /* 0: one has it alone */
};

/* INSPECT: who reads, and who waits. All other results would have to clear it. */
struct redlock_result_others {
    int64_t waiters, waited_ms, readers; /* -1: not known */
    struct redlock_result_name *named;   /* who reads, then who waits; or NULL */
    size_t named_readers, named_count;   /* how many read; and all */
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
    int64_t ttl_ms;     /* as requested */
    int64_t cap_ms;     /* auto_extend_max_ms */
    const char *reason; /* ERR_INVALID: which argument, and why; else NULL */
    unsigned count;
    uint64_t attempts;
    const char *const *nodes;                    /* `count` names, */
    struct redlock_result_vote *votes;           /* so many votes, */
    const struct redlock_result_holder *holders; /* and so many of these; NULL: none is known */
    const struct redlock_result_others *others;  /* INSPECT; NULL: nothing is known */
};

/* The result of a call that was refused before any node was asked: without votes. NULL if there is
 * no memory. Freed with redlock_result_free(). */
redlock_result *redlock_result_refused(enum redlock_result_of of, const char *resource, int code, const char *reason);

/* Who has the lock at this node, in the holder's own words; "" if it is not known. */
const char *redlock_result_holder_at(const struct redlock_result *result, size_t index);

/* Writes one sentence without a full stop: how the lease was lost. Otherwise like
 * redlock_result_message(). */
size_t redlock_message_loss(const struct redlock_result *result, char *buffer, size_t size);

/* The same: how many nodes granted it, and what the others said. */
size_t redlock_message_votes(const struct redlock_result *result, char *buffer, size_t size);

#endif
