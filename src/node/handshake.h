/* What comes before the first request: who we are, who the server is, whether it may vote (R9,
 * R18). */
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
    REDLOCK_HANDSHAKE_WAITING,  /* for the next reply; the outbox may have more bytes to write */
    REDLOCK_HANDSHAKE_DONE,     /* the node may vote */
    REDLOCK_HANDSHAKE_RETRY,    /* try again later: reason says why */
    REDLOCK_HANDSHAKE_UNUSABLE, /* the configuration must change: reason says why (R18) */
    REDLOCK_HANDSHAKE_NO_MEMORY
};

struct redlock_handshake {
    const struct redlock_address *address;
    const char *client_name;
    const char *old_run_id; /* of the lost connection; "" for none */
    int64_t old_client_id;  /* its id, to kill it on that same server; 0 for none */
    bool guarded;           /* warn if the server does not say its time */

    struct redlock_info info;
    int64_t client_id; /* 0 if the server did not say */
    int64_t server_us; /* from TIME; 0 if the server did not say */
    bool scripts_refused;
    char reason[REDLOCK_HANDSHAKE_TEXT_SIZE];
    enum redlock_cause cause;                  /* of `reason` */
    char warning[REDLOCK_HANDSHAKE_TEXT_SIZE]; /* "" for none */

    uint8_t steps[REDLOCK_HANDSHAKE_STEPS_MAX]; /* the replies to expect, in this order */
    uint8_t step, step_count;
};

/* Puts the first commands into the outbox. The caller has set the fields above the gap. */
enum redlock_handshake_state redlock_handshake_start(struct redlock_handshake *handshake,
                                                     struct redlock_outbox *outbox);

enum redlock_handshake_state redlock_handshake_reply(struct redlock_handshake *handshake,
                                                     const struct redlock_reply *reply, struct redlock_outbox *outbox);

/* The parts that a second connection of the node needs. */

/* Appends a command of up to four words; NULL ends them. Returns false without memory. */
bool redlock_handshake_say(struct redlock_outbox *outbox, const char *const words[4]);

/* Sets the words of AUTH. Returns false if there is no user and no password. */
bool redlock_handshake_auth(const struct redlock_credentials *credentials, const char *words[4]);

/* Returns whether the server does not let us use the command, or does not have it. */
bool redlock_handshake_refused(const struct redlock_reply *reply);

/*
 * The REDLOCK_SCRIPT_COUNT commands that load the scripts, also after a node forgot them (R11).
 * Writes command number `index` into buffer (REDLOCK_HANDSHAKE_LOAD_SIZE_MAX bytes). Returns its
 * size.
 */
#define REDLOCK_HANDSHAKE_LOAD_SIZE_MAX 3328
size_t redlock_handshake_load(unsigned index, char *buffer);

#endif
