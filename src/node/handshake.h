/* What comes before the first request: who we are, who the server is, whether it may vote (R9,
 * R18). */
#ifndef REDLOCK_NODE_HANDSHAKE_H
#define REDLOCK_NODE_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "node/address.h"
#include "node/listener.h"
#include "node/outbox.h"
#include "wire/info.h"
#include "wire/reply.h"

#define REDLOCK_HANDSHAKE_STEPS_MAX 16
#define REDLOCK_HANDSHAKE_TEXT_SIZE 640
#define REDLOCK_HANDSHAKE_MARKS_MAX REDLOCK_NODE_OTHERS_MAX
#define REDLOCK_MARK_SIZE           REDLOCK_NODE_MARK_SIZE

/* Those of wire/error.h and wire/rights.h. */
#define REDLOCK_HANDSHAKE_ERROR_SIZE  200
#define REDLOCK_HANDSHAKE_WANTED_SIZE 128

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
    const char *probed;     /* the key for the probe */
    /* A server without a run_id is known by a key of the manager, which holds the mark of the first
     * node that came to it. NULL: the manager has one node. */
    const char *marker;
    const char *mark;                               /* of this try */
    const char *marks[REDLOCK_HANDSHAKE_MARKS_MAX]; /* of the manager's other nodes */
    size_t mark_count;

    struct redlock_info info;
    int64_t client_id; /* 0 if the server did not say */
    int64_t server_us; /* from TIME; 0 if the server did not say */
    bool scripts_refused;
    bool probe_again;                              /* by source */
    bool answered;                                 /* a command was not refused */
    bool marked;                                   /* the marker has told which node of the manager came first */
    char twin[REDLOCK_MARK_SIZE];                  /* that node, if it is another; else "" */
    char info_error[REDLOCK_HANDSHAKE_ERROR_SIZE]; /* INFO's; "" for none */
    enum redlock_cause info_cause;
    char wanted[REDLOCK_HANDSHAKE_WANTED_SIZE]; /* what is missing to wait in order; "" for nothing */
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

/* Returns whether the node has answered, but not INFO. */
bool redlock_handshake_awaits_info(const struct redlock_handshake *handshake);

/* For the parts of the handshake: adds to `warning`; sets `reason` and `cause`, and returns
 * `state`. */
void redlock_handshake_warn(struct redlock_handshake *handshake, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum redlock_handshake_state redlock_handshake_refuse(struct redlock_handshake *handshake,
                                                      enum redlock_handshake_state state, enum redlock_cause cause,
                                                      const char *format, ...) __attribute__((format(printf, 4, 5)));
enum redlock_handshake_state redlock_handshake_no_lua(struct redlock_handshake *handshake,
                                                      const struct redlock_reply *reply);

/* The parts that a second connection of the node needs. */

/* Appends a command. Returns false without memory. */
bool redlock_handshake_say_words(struct redlock_outbox *outbox, const char *const *words, size_t count);

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
#define REDLOCK_HANDSHAKE_LOAD_SIZE_MAX 2560
size_t redlock_handshake_load(unsigned index, char *buffer);

#endif
