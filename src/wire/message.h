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

#define REDLOCK_FENCE_SUFFIX_SIZE_MAX 64

/* Where the counters of fencing tokens are, and for how long; the same for all of a manager's messages. */
struct redlock_fence_keys {
    const char *suffix; /* behind the key */
    size_t suffix_size;
    int64_t expiry_ms; /* 0: never */
};

/* One request to some nodes. All of it is the sender's and need not outlive the call. */
struct redlock_message {
    enum redlock_operation operation;
    bool by_source;  /* EVAL with the script's source, after a node answered NOSCRIPT to its SHA (R11) */
    bool patient;    /* nobody waits: no timeout answers it, only the node's reply or the end of the connection */
    const char *key; /* prefix included */
    size_t key_size;
    const char *token; /* all but INSPECT and TIME */
    size_t token_size;
    int64_t ttl_ms;                              /* ACQUIRE, EXTEND, HEAL */
    bool timed;                                  /* ACQUIRE, EXTEND: the answer tells the node's TIME */
    uint64_t fence;                              /* FENCE: to be written back; ACQUIRE: proposed, 0 for none */
    const struct redlock_fence_keys *fence_keys; /* FENCE; ACQUIRE with a fence */
    int64_t now_ns;                              /* when it is sent; at or before now */
    void *owner;                                 /* handed back with each answer */
    uint32_t round;                              /* likewise */
};

/* What became of a message at one node: exactly one for each node that `send` accepted, unless the env is closed. */
struct redlock_answer {
    redlock_vote_kind vote;    /* GRANTED, DENIED, FAILED or UNKNOWN */
    bool no_script;            /* FAILED only because the node does not know the script: send it again by source */
    bool fenced;               /* ACQUIRE with a fence, FENCE: the node told of its counter */
    bool accepted;             /* of these: it raised its counter to the message's fence */
    uint64_t counter;          /* of these: its counter, where it did not; 0 for none */
    int64_t read_ns;           /* when it was read, or found to be missing: at or before now */
    struct redlock_text *text; /* what the node said or what went wrong; the receiver keeps it if it wants it */
    struct redlock_clock_sample
        clock; /* timed, TIME: the node's clock; server_us 0: not told, and the times are unset */
    const char
        *holder; /* INSPECT, GRANTED: the value at the key, not terminated; valid during the call; elsewhere unset */
    size_t holder_size;    /* likewise */
    int64_t holder_ttl_ms; /* PTTL, likewise */
};

#endif
