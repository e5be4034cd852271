/* An env for the unit tests of the group: the test sets the clock and answers for the nodes. */
#ifndef REDLOCK_TEST_FAKE_ENV_H
#define REDLOCK_TEST_FAKE_ENV_H

#include "group/entry.h"
#include "group/observer.h"
#include "group/requests.h"

#define FAKE_SENT_MAX 4096

#define FAKE_SLOTS_MAX 4

/* As in struct redlock_slots; `permits` is 0 without. */
struct fake_slots {
    uint16_t permits, limit, first, window;
    bool taken, others;
    uint16_t numbers[FAKE_SLOTS_MAX];
};

/* One message at one node, waiting for the test's answer. */
struct fake_sent {
    unsigned node;
    enum redlock_operation operation;
    bool by_source;
    bool no_timeout;
    bool answered;
    void *owner;
    uint32_t round;
    int64_t ttl_ms;
    uint64_t fence;
    bool timed;
    enum redlock_handing handing;
    bool by_try;
    bool shared;
    bool announced;
    struct redlock_place place; /* of a WAIT */
    uint64_t seal;              /* likewise */
    uint64_t cursor;            /* of a LIST */
    uint32_t keys;              /* likewise */
    char pattern[64];           /* likewise */
    bool others;                /* likewise */
    struct fake_slots slots;    /* of a message about some */
    struct redlock_gate gate;   /* of a take; its channel is NULL if it stands at none */
    char gate_token[REDLOCK_TOKEN_SIZE_MAX + 1];
    char key[64];
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
};

struct fake_env {
    struct redlock_group *group;
    unsigned node_count;
    int64_t now_ns;
    int64_t wall_us;
    int64_t wake_ns;
    redlock_nodes refusing;
    redlock_nodes far;    /* their answers come too late */
    redlock_nodes proven; /* to name holders as we understand it */
    int random_code;
    uint64_t random_state;
    const char *channel;                     /* subscribed to; NULL: not yet */
    const struct redlock_channels *channels; /* heard; NULL: not yet */
    unsigned left;                           /* channels left */
    unsigned logged[REDLOCK_LOG_DEBUG + 1];  /* lines, by level */
    char log[16384];                         /* all of them */
    unsigned sent_count;
    struct fake_sent sent[FAKE_SENT_MAX];
};

/*
 * A group of n nodes on a fresh env, whose clock begins at 1 s. The env fills in the node_count,
 * node_timeout_ms and log_level of the config.
 */
void fake_env_open(struct fake_env *fake, unsigned node_count, redlock_manager_options config);
void fake_env_close(struct fake_env *fake);

/* Answers the oldest message that waits at the node. The test fails if there is none. */
void fake_env_answer(struct fake_env *fake, unsigned node, enum redlock_operation operation, redlock_vote_kind vote);
/* The same of nodes 0, 1, 2, …: "GGD.U", where '.' is none. */
void fake_env_votes(struct fake_env *fake, enum redlock_operation operation, const char *votes);
void fake_env_answer_no_script(struct fake_env *fake, unsigned node, enum redlock_operation operation);
/* A command that deletes did not find the token as it is. */
void fake_env_answer_no_plain_token(struct fake_env *fake, unsigned node);
/* Likewise, with an answer that the test fills in. */
void fake_env_answer_as(struct fake_env *fake, unsigned node, enum redlock_operation operation,
                        struct redlock_answer given);
/* The node says "queued" to the oldest WAIT: this token has the lock for 1 s more, and so many wait
 * before us. */
void fake_env_queue(struct fake_env *fake, unsigned node, const char *holder, uint32_t rank);
/* The node hands the lock over in answer to this WAIT. */
void fake_env_push(struct fake_env *fake, const struct fake_sent *wait);
/* Answers all messages that wait, releases included. */
void fake_env_answer_all(struct fake_env *fake, redlock_vote_kind vote);
/* The oldest message that waits at the node, or NULL. */
struct fake_sent *fake_env_waiting(struct fake_env *fake, unsigned node, enum redlock_operation operation);
unsigned fake_env_waiting_count(const struct fake_env *fake, enum redlock_operation operation);

/* Moves the clock, and wakes the group at each time that it asked for. */
void fake_env_pass_ms(struct fake_env *fake, int64_t ms);
/* One turn of the loop without time passing. */
void fake_env_turn(struct fake_env *fake);

#endif
