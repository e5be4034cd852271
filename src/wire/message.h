/* A request to some nodes, and what becomes of it at one node. */
#ifndef REDLOCK_WIRE_MESSAGE_H
#define REDLOCK_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "core/clock.h"
#include "core/operation.h"
#include "core/quorum.h"
#include "wire/target.h"

#define REDLOCK_FENCE_SUFFIX_SIZE_MAX 64

/* Room for any message in bytes: the longest script, token, key, and key of a counter. */
#define REDLOCK_WIRE_SIZE_MAX 4096

/* Where the counters of fencing tokens are, and for how long; the same for all messages. */
struct redlock_fence_keys {
    const char *suffix; /* behind the key */
    size_t suffix_size;
    int64_t expiry_ms; /* 0: never */
};

/* One request to some nodes. All of it is the sender's and need not outlive the call. */
struct redlock_message {
    enum redlock_operation operation;
    bool by_source;                      /* EVAL, after a node answered NOSCRIPT to EVALSHA (R11) */
    bool no_timeout;                     /* nobody waits: only a reply or the end of the connection answers it */
    const struct redlock_target *target; /* all but TIME */
    const char *token;                   /* all but INSPECT and TIME */
    size_t token_size;
    int64_t ttl_ms;                              /* ACQUIRE, EXTEND, HEAL */
    bool timed;                                  /* ACQUIRE, EXTEND: tell the node's TIME */
    uint64_t fence;                              /* FENCE: to write back; ACQUIRE: proposed, or 0 */
    const struct redlock_fence_keys *fence_keys; /* FENCE; ACQUIRE with a fence */
    int64_t now_ns;                              /* when it is sent; at or before now */
    void *owner;                                 /* handed back with each answer */
    uint32_t round;                              /* likewise */
};

/* What became of a message at one node: exactly one for each node that `send` accepted, unless the
 * env is closed. */
struct redlock_answer {
    redlock_vote_kind vote;    /* GRANTED, DENIED, FAILED or UNKNOWN */
    bool no_script;            /* FAILED, for the node does not know the script: send it by source */
    bool fenced;               /* ACQUIRE with a fence, FENCE: the node told of its counter */
    bool accepted;             /* of these: it raised its counter to the message's fence */
    uint64_t counter;          /* of these: its counter, where it did not; 0 for none */
    int64_t read_ns;           /* when it was read, or found to be missing: at or before now */
    struct redlock_text *text; /* what the node said or what went wrong; the receiver may keep it */
    /* timed, TIME: the node's clock; server_us 0: not told, and the times are unset */
    struct redlock_clock_sample clock;
    /* INSPECT, GRANTED: the value at the key, not terminated, valid during the call; else unset */
    const char *holder;
    size_t holder_size;
    int64_t holder_ttl_ms; /* PTTL */
};

#endif
