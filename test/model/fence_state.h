/* A state of the fencing protocol: nodes, attempts, and what is under way between them. */
#ifndef MODEL_FENCE_STATE_H
#define MODEL_FENCE_STATE_H

#include "fence.h"

enum { FREE = 0, LEFT_BEHIND = FENCE_ATTEMPTS_MAX + 1, NUMBER_BITS = 6, NUMBER_MAX = (1 << NUMBER_BITS) - 1 };

/*
 * A try is one attempt of a client: its own lock token, one proposal.
 *
 * UNUSED   begin                             → ASKING   a proposal to all nodes (acquire script)
 * ASKING   q heard GRANTED, all accepted     → GRANTED  fast: the proposal is the fencing token
 *          q heard GRANTED, not all accepted → WRITING  slow: higher than all heard, written back
 *                                                       where no DENIED was heard
 * WRITING  q heard that acknowledged         → GRANTED  what was written is the fencing token
 *          a refusal was heard, rounds left  → WRITING  once more, higher than that
 * ASKING, WRITING  given up                  → OVER
 */
enum phase { UNUSED, ASKING, WRITING, GRANTED, OVER };

/* The acquire script at one node. An answer that the client never hears in time counts as over. */
enum acquire { ACQUIRE_OVER, ACQUIRE_SENT, ACQUIRE_DENIED, ACQUIRE_GRANTED, ACQUIRE_ACCEPTED };

enum write { WRITE_NONE, WRITE_SENT, WRITE_ACKED, WRITE_REFUSED };

/* An answer waits here until its client looks, and a client looks only when what it has heard
 * decides. That step chooses which answers it has heard. Hearing them one by one would add states
 * but no behaviour. */
struct fence_exchange {
    unsigned acquire, write;
    unsigned counter; /* in the answer that waits */
    unsigned older;   /* the write-back of the round before is still under way */
};

struct fence_try {
    unsigned phase, round;
    unsigned proposal;
    unsigned target;       /* the number written back; once GRANTED, the fencing token */
    unsigned older_target; /* of the round before */
    unsigned floor;        /* the highest fencing token returned before this try began */
    struct fence_exchange at[FENCE_NODES_MAX];
};

struct fence_node {
    /* FREE, 1 + the number of the try whose token it is, or LEFT_BEHIND: nobody compares it. */
    unsigned lock;
    unsigned counter;
};

struct fence_state {
    struct fence_node nodes[FENCE_NODES_MAX];
    struct fence_try tries[FENCE_ATTEMPTS_MAX];
    unsigned losses;
    unsigned wrong; /* enum wrong */
};

enum wrong { NOTHING_WRONG, EQUAL_TOKENS, FALLING_TOKENS };

unsigned fence_tries(const struct fence_config *config);
/* Whose a try is, 'A' for the first client; and which attempt of that client, 1 for the first. */
char fence_client(const struct fence_config *config, unsigned number);
unsigned fence_attempt(const struct fence_config *config, unsigned number);
/* The lowest number above `highest` that the client of this try may use. */
unsigned fence_next_number(const struct fence_config *config, unsigned number, unsigned highest);

static inline unsigned larger(unsigned a, unsigned b) {
    return a > b ? a : b;
}

unsigned fence_key_words(const void *config);
void fence_pack(const void *config, const void *state, uint64_t *key);
void fence_unpack(const void *config, const uint64_t *key, void *state);

#endif
