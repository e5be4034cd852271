/* The lines of those who wait, and what must hold for them. */
#ifndef SIM_LINES_H
#define SIM_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "token.h"

#define SIM_LINE_NODES 7
/* A client: of tokens that were drawn so much earlier nothing is known. */
#define SIM_LINES_MAX     128
#define SIM_PLACES_MAX    64
#define SIM_QUEUE_TTL_MAX 15000

struct sim_world;
struct sim_client;
struct sim_bytes;
struct sim_call;
struct sim_reply;

/* A token that waits, or waited. */
struct sim_line {
    char token[SIM_TOKEN_SIZE];
    uint32_t released; /* bit i: its release was sent to node i */
    /* On the node's clock; 0: the node executed no WAIT for it. */
    int64_t good_until_ms[SIM_LINE_NODES];
    int64_t taken_ns[SIM_LINE_NODES]; /* when the node gave it the lock first; 0: never */
};

/* An acquire that waits. It keeps its ticket, and has a new token after each yield. */
struct sim_place {
    uint8_t client, resource;
    bool reads;
    uint64_t ticket;
    int64_t asked_ns; /* true time of its first WAIT */
    /* In line at that node, or granted, without a break; 0: not. */
    int64_t since_ns[SIM_LINE_NODES];
};

/* The message goes to these nodes now. */
void sim_line_sent(struct sim_client *client, uint32_t nodes, const struct sim_bytes *bytes);
/* The node hands the lock to this token. */
void sim_line_served(struct sim_world *world, unsigned node, const char *token);
/* The node executed it. `had`: the key was there under its token before. */
void sim_line_executed(struct sim_world *world, unsigned node, const struct sim_bytes *bytes,
                       const struct sim_reply *reply, bool had);
/* The first token in line at the node; zero if nobody waits. */
void sim_line_first(struct sim_world *world, unsigned node, unsigned resource, char token[SIM_TOKEN_SIZE]);
/* In calm schedules: since when the place of this token is in line at the node; 0: it is not. */
int64_t sim_line_since(const struct sim_world *world, unsigned node, const char *token);
/* An acquire returned OK with this token. */
void sim_line_acquired(const struct sim_call *call, const char *token);
/* All users have finished: nobody may be in line. */
void sim_lines_left(struct sim_world *world, unsigned node);
/* The schedule ends: the keys of queues must end by themselves. */
void sim_lines_end(struct sim_world *world, unsigned node);

#endif
