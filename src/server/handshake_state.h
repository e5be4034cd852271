/* What the handshake knows, and how its parts speak. */
#ifndef REDLOCK_SERVER_HANDSHAKE_STATE_H
#define REDLOCK_SERVER_HANDSHAKE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "server/address.h"
#include "server/callbacks.h"
#include "server/outbox.h"
#include "wire/error.h"
#include "wire/info.h"
#include "wire/reply.h"
#include "wire/rights.h"

#define REDLOCK_HANDSHAKE_STEPS_MAX 16
#define REDLOCK_HANDSHAKE_TEXT_SIZE 640

enum redlock_handshake_state {
    REDLOCK_HANDSHAKE_WAITING,  /* for the next reply; the outbox may have more bytes to write */
    REDLOCK_HANDSHAKE_DONE,     /* the node may vote */
    REDLOCK_HANDSHAKE_RETRY,    /* try again later: reason says why */
    REDLOCK_HANDSHAKE_UNUSABLE, /* the configuration must change: reason says why (R18) */
    REDLOCK_HANDSHAKE_NO_MEMORY
};

/* What it is told at its beginning. */
struct redlock_handshake_told {
    const struct redlock_server_options *options; /* guarded: warn if it does not say its time */
    const struct redlock_address *address;
    const struct redlock_credentials *credentials; /* to say: those of the address, or newer ones */
    const char *old_run_id;                        /* of the lost connection; "" for none */
    int64_t old_client_id;                         /* its id, to kill it there; 0 for none */
    /* A server without a run_id is known by a key of the manager, options->marker, which holds the
     * mark of the first node that came to it. */
    const char *mark;                             /* of this try */
    const char *marks[REDLOCK_SERVER_OTHERS_MAX]; /* of the manager's other nodes */
    size_t mark_count;
};

struct redlock_handshake {
    struct redlock_handshake_told told;
    struct redlock_info info;
    int64_t client_id; /* 0 if the server did not say */
    int64_t server_us; /* from TIME; 0 if the server did not say */
    bool scripts_refused;
    bool probe_again;                         /* by source */
    bool probe_renewal;                       /* by a renewal itself */
    bool answered;                            /* a command was not refused */
    bool marked;                              /* the marker has told who came first */
    char twin[REDLOCK_SERVER_MARK_SIZE];      /* that node, if it is another; else "" */
    char info_error[REDLOCK_WIRE_ERROR_SIZE]; /* INFO's; "" for none */
    enum redlock_cause info_cause;
    /* What waiting in order lacks, and what reading with others does; "" for nothing. No warnings:
     * who never does either does not need it. */
    char no_queue[REDLOCK_RIGHTS_SIZE + 32], no_shared[REDLOCK_RIGHTS_SIZE + 32];
    char reason[REDLOCK_HANDSHAKE_TEXT_SIZE];
    enum redlock_cause cause;                  /* of `reason` */
    char warning[REDLOCK_HANDSHAKE_TEXT_SIZE]; /* "" for none */

    uint8_t steps[REDLOCK_HANDSHAKE_STEPS_MAX]; /* the replies to expect, in this order */
    uint8_t step, step_count;
};

/* Adds to `warning`. */
void redlock_handshake_warn(struct redlock_handshake *handshake, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets `reason` and `cause`, and returns `state`. */
enum redlock_handshake_state redlock_handshake_refuse(struct redlock_handshake *handshake,
                                                      enum redlock_handshake_state state, enum redlock_cause cause,
                                                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The server runs no scripts. */
enum redlock_handshake_state redlock_handshake_no_lua(struct redlock_handshake *handshake,
                                                      const struct redlock_reply *reply);

/* The text of an error; "" for another reply. It never quotes the password. */
void redlock_handshake_error(const struct redlock_handshake *handshake, const struct redlock_reply *reply,
                             char text[REDLOCK_WIRE_ERROR_SIZE]);

/* Appends a command. Returns false without memory. */
bool redlock_handshake_say_words(struct redlock_outbox *outbox, const char *const *words, size_t count);

/* Appends a command of up to four words; NULL ends them. Returns false without memory. */
bool redlock_handshake_say(struct redlock_outbox *outbox, const char *const words[4]);

#endif
