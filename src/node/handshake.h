/* What comes before the first request: who we are, who the server is, may it vote (R9, R18). */
#ifndef REDLOCK_NODE_HANDSHAKE_H
#define REDLOCK_NODE_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "node/address.h"
#include "node/outbox.h"
#include "wire/info.h"
#include "wire/reply.h"

#define REDLOCK_HANDSHAKE_STEPS_MAX 8
#define REDLOCK_HANDSHAKE_TEXT_SIZE 400

enum redlock_handshake_state {
    REDLOCK_HANDSHAKE_WAITING,  /* for the next reply; more bytes may be in the outbox */
    REDLOCK_HANDSHAKE_DONE,     /* the node may vote */
    REDLOCK_HANDSHAKE_RETRY,    /* not now: reason says why */
    REDLOCK_HANDSHAKE_UNUSABLE, /* not as it is configured: reason says why (R18) */
    REDLOCK_HANDSHAKE_NO_MEMORY
};

struct redlock_handshake {
    const struct redlock_address *address;
    const char *client_name;
    const char *old_run_id; /* of the connection that was lost; "" for none */
    int64_t old_client_id;  /* its id, to be killed on that same server; 0 for none */
    bool guarded;           /* asks for the clock */

    struct redlock_info info;
    int64_t client_id; /* 0 where the server did not say */
    int64_t server_us; /* TIME; 0 where the server did not say */
    bool scripts_refused;
    char reason[REDLOCK_HANDSHAKE_TEXT_SIZE];
    enum redlock_cause cause;                  /* of the reason */
    char warning[REDLOCK_HANDSHAKE_TEXT_SIZE]; /* "" for none */

    uint8_t steps[REDLOCK_HANDSHAKE_STEPS_MAX]; /* whose replies are expected, in this order */
    uint8_t step, step_count;
};

/* The fields above the gap are set by the caller. Puts the first commands into the outbox. */
enum redlock_handshake_state redlock_handshake_start(struct redlock_handshake *handshake,
                                                     struct redlock_outbox *outbox);

enum redlock_handshake_state redlock_handshake_reply(struct redlock_handshake *handshake,
                                                     const struct redlock_reply *reply, struct redlock_outbox *outbox);

/* The commands that load the scripts, also for a node that has forgotten them (R11); their number
 * is REDLOCK_SCRIPT_COUNT. Returns the size of command number `index` in buffer
 * (REDLOCK_HANDSHAKE_LOAD_SIZE_MAX bytes). */
#define REDLOCK_HANDSHAKE_LOAD_SIZE_MAX 2048
size_t redlock_handshake_load(unsigned index, char *buffer);

#endif
