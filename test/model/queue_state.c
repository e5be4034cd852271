/* The compact form of a state of the model of the grants. */
#include "queue_state.h"

#include <string.h>

#include "bits.h"

enum { TICK_BITS = 2, DEAD_BITS = 3, NODE_BITS = 3 + TICK_BITS, LINK_BITS = QUEUE_TICKS_MAX + 2 * TICK_BITS + 1 };

static bool has_pushes(const struct queue_config *config) {
    return config->bug == QUEUE_SAME_TOKEN || config->bug == QUEUE_BOUND_ARRIVAL || config->bug == QUEUE_NO_SERIALS;
}

static unsigned column_bits(const struct queue_config *config) {
    const unsigned link = LINK_BITS + (has_pushes(config) ? TICK_BITS + 2 : 0);
    return NODE_BITS + config->clients * link;
}

static unsigned client_bits(const struct queue_config *config) {
    return TICK_BITS + 1 + (config->stale ? DEAD_BITS : 0);
}

unsigned queue_key_words(const void *given) {
    const struct queue_config *config = given;
    return (config->nodes * column_bits(config) + config->clients * client_bits(config) + 63) / 64;
}

static void pack_node(const struct queue_config *config, const struct queue_state *state, unsigned at,
                      const unsigned *order, uint64_t *columns) {
    struct bits column = {.words = &columns[at]};
    unsigned owner = state->nodes[at].owner;
    for (unsigned j = 0; j < config->clients; j++) {
        if (state->nodes[at].owner == FIRST_OWNER + order[j]) {
            owner = FIRST_OWNER + j;
        }
    }
    bits_put(&column, owner, 3);
    bits_put(&column, state->nodes[at].left, TICK_BITS);
    for (unsigned j = 0; j < config->clients; j++) {
        const struct queue_link *link = &state->clients[order[j]].links[at];
        bits_put(&column, link->sent, QUEUE_TICKS_MAX);
        bits_put(&column, link->entry, TICK_BITS);
        bits_put(&column, link->grant, TICK_BITS);
        bits_put(&column, link->backs, 1);
        if (has_pushes(config)) {
            bits_put(&column, link->answered, TICK_BITS);
            bits_put(&column, link->push, 1);
            bits_put(&column, link->release, 1);
        }
    }
}

/* Packs client order[j] as client j. */
static void pack_as(const struct queue_config *config, const struct queue_state *state, const unsigned *order,
                    uint64_t *key) {
    uint64_t columns[QUEUE_NODES_MAX] = {0};
    for (unsigned i = 0; i < config->nodes; i++) {
        pack_node(config, state, i, order, columns);
    }
    bits_sort(columns, config->nodes);
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < config->nodes; i++) {
        bits_put(&bits, columns[i], column_bits(config));
    }
    for (unsigned j = 0; j < config->clients; j++) {
        const struct queue_client *client = &state->clients[order[j]];
        bits_put(&bits, client->left, TICK_BITS);
        bits_put(&bits, client->waited, 1);
        if (config->stale) {
            bits_put(&bits, client->dead, DEAD_BITS);
        }
    }
}

/* Clients are alike, too: the key is the least of all their orders. */
void queue_pack(const void *given, const void *from, uint64_t *key) {
    static const unsigned orders[][QUEUE_CLIENTS_MAX] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                                         {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    const struct queue_config *config = given;
    const size_t bytes = queue_key_words(config) * sizeof(*key);
    const unsigned count = config->clients == 3 ? 6 : config->clients;
    pack_as(config, from, orders[0], key);
    for (unsigned i = 1; i < count; i++) {
        uint64_t other[MODEL_KEY_WORDS_MAX] = {0};
        pack_as(config, from, orders[i], other);
        if (memcmp(other, key, bytes) < 0) {
            memcpy(key, other, bytes);
        }
    }
}

void queue_unpack(const void *given, const uint64_t *key, void *to) {
    const struct queue_config *config = given;
    struct queue_state *state = to;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, queue_key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    for (unsigned i = 0; i < config->nodes; i++) {
        state->nodes[i].owner = (unsigned)bits_get(&bits, 3);
        state->nodes[i].left = (unsigned)bits_get(&bits, TICK_BITS);
        for (unsigned j = 0; j < config->clients; j++) {
            struct queue_link *link = &state->clients[j].links[i];
            link->sent = (unsigned)bits_get(&bits, QUEUE_TICKS_MAX);
            link->entry = (unsigned)bits_get(&bits, TICK_BITS);
            link->grant = (unsigned)bits_get(&bits, TICK_BITS);
            link->backs = (unsigned)bits_get(&bits, 1);
            if (has_pushes(config)) {
                link->answered = (unsigned)bits_get(&bits, TICK_BITS);
                link->push = (unsigned)bits_get(&bits, 1);
                link->release = (unsigned)bits_get(&bits, 1);
            }
        }
    }
    for (unsigned j = 0; j < config->clients; j++) {
        struct queue_client *client = &state->clients[j];
        client->left = (unsigned)bits_get(&bits, TICK_BITS);
        client->waited = (unsigned)bits_get(&bits, 1);
        client->dead = config->stale ? (unsigned)bits_get(&bits, DEAD_BITS) : 0;
    }
}
