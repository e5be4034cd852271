/* The steps of leases and nodes that spec/Trace.tla follows. */
#ifndef SIM_SPEC_H
#define SIM_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "token.h"

#define SIM_SPEC_NODES     5
#define SIM_SPEC_CLIENTS   4
#define SIM_SPEC_STEPS_MAX 16384

enum sim_spec_kind {
    SIM_SPEC_BEGIN,    /* a client sends SET */
    SIM_SPEC_SET,      /* a node sets the key */
    SIM_SPEC_EXTEND,   /* a client sends EXTEND */
    SIM_SPEC_EXTENDED, /* a node grants it */
    SIM_SPEC_HEAL,     /* a client sends a heal */
    SIM_SPEC_HOLDS,    /* a client has the lock, until then */
    SIM_SPEC_GIVE_UP,  /* a client gives its token up: no other token is named */
    SIM_SPEC_RESTART   /* a run of a node begins that has forgotten its keys */
};

struct sim_spec_step {
    int64_t at_ns, until_ns; /* true time */
    uint32_t order, nodes, round;
    uint8_t kind, client;
    bool heals;
    char token[SIM_TOKEN_SIZE];
};

struct sim_spec {
    bool is_on;
    unsigned count;
    int64_t last_ns[SIM_SPEC_CLIENTS]; /* each client's last step */
    struct sim_spec_step steps[SIM_SPEC_STEPS_MAX];
};

#endif
