/* Who may say anything on channels, and does: what he has heard. */
#ifndef SIM_FORGER_H
#define SIM_FORGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

#define SIM_HEARD_MAX 16

struct sim_world;
struct sim_node;
struct sim_event;

/* A message that a node published. */
struct sim_heard {
    const char *channel; /* terminated */
    const char *payload;
    size_t size;
    unsigned node;
    uint32_t steps; /* of the node's clock, by then */
};

/* It has a generator of its own: without it, a schedule is the same but for what it says. */
struct sim_forger {
    struct sim_random random;
    struct sim_heard heard[SIM_HEARD_MAX]; /* the newest; a ring */
    uint32_t heard_count, forged;
};

/* A quarter of the schedules have a forger. */
bool sim_has_forger(const struct sim_world *world);
/* The schedule begins. */
void sim_forger_begin(struct sim_world *world);
/* The node publishes this, whether anybody is subscribed or not. */
void sim_forger_hears(struct sim_node *node, const char *channel, size_t channel_size, const char *payload,
                      size_t size);
void sim_forge_event(struct sim_world *world, const struct sim_event *event);

#endif
