/* One lease's memory. */
#ifndef REDLOCK_GROUP_LEASE_MEMORY_H
#define REDLOCK_GROUP_LEASE_MEMORY_H

#include <stdatomic.h>

#include "core/lease.h"
#include "group/owner.h"
#include "result/result.h"

#define REDLOCK_TOKEN_DIGITS 32 /* of our own tokens: 128 random bits in hexadecimal (R10) */

/* One node's vote in the current round, as the result will tell it. */
struct redlock_detail {
    struct redlock_text *text;
    int32_t latency_us;
    uint8_t kind;
};

enum redlock_callback_kind {
    REDLOCK_CALLBACK_ACQUIRED = 1,
    REDLOCK_CALLBACK_EXTENDED = 2,
    REDLOCK_CALLBACK_LOST = 4,
    REDLOCK_CALLBACK_RELEASED = 8
};

/* Owner and core come first: a vote touches little else. */
struct redlock_lease {
    struct redlock_owner owner;
    struct redlock_lease_core core;
    struct redlock_group *group;
    uint16_t key_size;
    uint8_t token_size;
    uint8_t callbacks; /* enum redlock_callback_kind: callbacks still to run */
    int8_t acquired_code, extended_code, released_code;
    bool in_callback_queue : 1;
    bool in_callback : 1;
    bool token_drawn : 1;  /* for the attempt that comes */
    bool handle_ended : 1; /* the caller may not use the lease any more */
    bool forgotten : 1;    /* answers and time change nothing any more */
    uint8_t loss : 3;      /* enum redlock_loss */
    bool counted_held : 1;
    bool extend_pending : 1;       /* a caller's extend has not been told */
    bool release_pending : 1;      /* a caller's release has not been told */
    _Atomic int64_t held_until_ns; /* the core's deadline, for any thread */
    struct redlock_lease *next_callback;
    redlock_callback cb; /* of the acquire, later of the release */
    void *data;
    redlock_callback extend_cb;
    void *extend_data;
    int64_t extend_ttl_ms; /* that the caller asked for */
    redlock_lost_callback lost_cb;
    void *lost_data;
    uint64_t fence;          /* for any thread, from the acquire's callback on */
    int64_t ttl_sent_max_ms; /* a key of this lease lives at most so long after its release was asked */
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    struct redlock_detail details[]; /* node_count of them, then the key, terminated */
};

/* Terminated; the resource is its end, behind the key prefix. */
const char *redlock_lease_key(const struct redlock_lease *lease);

/* The votes of the last round. */
void redlock_lease_fill_result(const struct redlock_lease *lease, struct redlock_result *result);
/* How it was lost: one sentence for the owner and the log. */
void redlock_lease_loss_text(const struct redlock_lease *lease, char *buffer, size_t size);

#endif
