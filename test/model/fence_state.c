/* The compact form of a state of the fencing protocol. */
#include "fence_state.h"

#include <string.h>

unsigned fence_tries(const struct fence_config *config) {
    return (unsigned)strlen(config->attempts);
}

char fence_client(const struct fence_config *config, unsigned number) {
    return config->attempts[number];
}

static unsigned clients_of(const struct fence_config *config) {
    char last = 'A';
    for (const char *client = config->attempts; *client; client++) {
        last = *client > last ? *client : last;
    }
    return (unsigned)(last - 'A') + 1;
}

unsigned fence_attempt(const struct fence_config *config, unsigned number) {
    unsigned attempt = 0;
    for (unsigned i = 0; i <= number; i++) {
        attempt += fence_client(config, i) == fence_client(config, number);
    }
    return attempt;
}

static bool is_last(const struct fence_config *config, unsigned number) {
    return strchr(config->attempts + number + 1, fence_client(config, number)) == NULL;
}

unsigned fence_next_number(const struct fence_config *config, unsigned number, unsigned highest) {
    unsigned next = highest + 1;
    if (!config->collide) {
        const unsigned clients = clients_of(config), digit = (unsigned)(fence_client(config, number) - 'A');
        next += (digit + clients - highest % clients) % clients;
    }
    assert(next <= NUMBER_MAX);
    return next;
}

/* Whether a write-back of this number, whose answer no client waits for, can still change this
 * node. */
static bool may_raise(const struct fence_config *config, const struct fence_node *node, unsigned target) {
    return config->losses > 0 || node->counter < target;
}

static void settle_exchange(const struct fence_config *config, const struct fence_try *try,
                            const struct fence_node *node, struct fence_exchange *at) {
    if (try->phase == GRANTED || try->phase == OVER) {
        at->write = at->write == WRITE_SENT && may_raise(config, node, try->target) ? WRITE_SENT : WRITE_NONE;
        at->counter = 0;
    }
    if (try->phase != ASKING) {
        at->acquire = at->acquire == ACQUIRE_SENT ? ACQUIRE_SENT : ACQUIRE_OVER;
    }
    at->older = at->older && may_raise(config, node, try->older_target);
}

static void settle_try(const struct fence_config *config, struct fence_state *state, unsigned number) {
    struct fence_try *try = &state->tries[number];
    bool sent = false, written = false, older = false;
    for (unsigned i = 0; i < config->nodes; i++) {
        settle_exchange(config, try, &state->nodes[i], &try->at[i]);
        sent = sent || try->at[i].acquire == ACQUIRE_SENT;
        written = written || try->at[i].write == WRITE_SENT;
        older = older || try->at[i].older;
    }
    if (try->phase == OVER && !written) {
        /* Only the next proposal of the client depends on this: it is higher than all numbers that
         * the client has used. */
        const bool last = is_last(config, number) && !config->right_clocks;
        try->target = last ? 0 : larger(try->target, try->proposal);
        try->proposal = sent ? try->proposal : 0;
    }
    if (try->phase != ASKING && !sent && try->proposal <= try->target) {
        try->proposal = 0;
    }
    if (!older) {
        try->older_target = 0;
    }
    if (try->phase != GRANTED && try->phase != OVER) {
        return;
    }
    try->floor = 0;
    try->round = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        if (state->nodes[i].lock == number + 1 && try->at[i].write != WRITE_SENT && !try->at[i].older) {
            state->nodes[i].lock = LEFT_BEHIND;
        }
    }
}

/* Leaves out everything that nothing reads any more, so that states with the same future are one
 * state. */
static void settle(const struct fence_config *config, struct fence_state *state) {
    for (unsigned i = 0; i < fence_tries(config); i++) {
        settle_try(config, state, i);
    }
}

enum {
    EXCHANGE_BITS = 3 + 2 + 1 + NUMBER_BITS,
    NODE_BITS = 3 + NUMBER_BITS,
    TRY_BITS = 3 + 2 + 4 * NUMBER_BITS,
    WORLD_BITS = 2 + 2
};

static unsigned column_bits(const struct fence_config *config) {
    return NODE_BITS + fence_tries(config) * EXCHANGE_BITS;
}

unsigned fence_key_words(const void *given) {
    const struct fence_config *config = given;
    return (config->nodes * column_bits(config) + fence_tries(config) * TRY_BITS + WORLD_BITS + 63) / 64;
}

void fence_pack(const void *given, const void *from, uint64_t *key) {
    const struct fence_config *config = given;
    const unsigned tries = fence_tries(config);
    struct fence_state settled = *(const struct fence_state *)from;
    const struct fence_state *state = &settled;
    settle(config, &settled);
    uint64_t columns[FENCE_NODES_MAX] = {0};
    for (unsigned i = 0; i < config->nodes; i++) {
        struct bits column = {.words = &columns[i]};
        bits_put(&column, state->nodes[i].lock, 3);
        bits_put(&column, state->nodes[i].counter, NUMBER_BITS);
        for (unsigned j = 0; j < tries; j++) {
            const struct fence_exchange *at = &state->tries[j].at[i];
            bits_put(&column, at->acquire, 3);
            bits_put(&column, at->write, 2);
            bits_put(&column, at->older, 1);
            bits_put(&column, at->counter, NUMBER_BITS);
        }
    }
    setup_sort(&config->setups, columns, config->nodes);
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < config->nodes; i++) {
        bits_put(&bits, columns[i], column_bits(config));
    }
    for (unsigned j = 0; j < tries; j++) {
        const struct fence_try *try = &state->tries[j];
        bits_put(&bits, try->phase, 3);
        bits_put(&bits, try->round, 2);
        bits_put(&bits, try->proposal, NUMBER_BITS);
        bits_put(&bits, try->target, NUMBER_BITS);
        bits_put(&bits, try->older_target, NUMBER_BITS);
        bits_put(&bits, try->floor, NUMBER_BITS);
    }
    bits_put(&bits, state->losses, 2);
    bits_put(&bits, state->wrong, 2);
}

void fence_unpack(const void *given, const uint64_t *key, void *to) {
    const struct fence_config *config = given;
    struct fence_state *state = to;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, fence_key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    const unsigned tries = fence_tries(config);
    for (unsigned i = 0; i < config->nodes; i++) {
        state->nodes[i].lock = (unsigned)bits_get(&bits, 3);
        state->nodes[i].counter = (unsigned)bits_get(&bits, NUMBER_BITS);
        for (unsigned j = 0; j < tries; j++) {
            struct fence_exchange *at = &state->tries[j].at[i];
            at->acquire = (unsigned)bits_get(&bits, 3);
            at->write = (unsigned)bits_get(&bits, 2);
            at->older = (unsigned)bits_get(&bits, 1);
            at->counter = (unsigned)bits_get(&bits, NUMBER_BITS);
        }
    }
    for (unsigned j = 0; j < tries; j++) {
        struct fence_try *try = &state->tries[j];
        try->phase = (unsigned)bits_get(&bits, 3);
        try->round = (unsigned)bits_get(&bits, 2);
        try->proposal = (unsigned)bits_get(&bits, NUMBER_BITS);
        try->target = (unsigned)bits_get(&bits, NUMBER_BITS);
        try->older_target = (unsigned)bits_get(&bits, NUMBER_BITS);
        try->floor = (unsigned)bits_get(&bits, NUMBER_BITS);
    }
    state->losses = (unsigned)bits_get(&bits, 2);
    state->wrong = (unsigned)bits_get(&bits, 2);
}
