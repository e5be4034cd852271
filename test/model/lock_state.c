/* The compact form of a state of the model of the lock. */
#include "lock_state.h"

#include <string.h>

enum { TICK_BITS = 3, LINK_BITS = 2 + 1 + TICK_BITS, NODE_BITS = 2 + TICK_BITS + 1, CLIENT_BITS = 2 + 3 * TICK_BITS };
enum { WORLD_BITS = 3 + 1 };

static unsigned column_bits(const struct lock_config *config) {
    return NODE_BITS + LOCK_CLIENTS * LINK_BITS + (lock_has_markers(config) ? TICK_BITS : 0);
}

unsigned lock_key_words(const void *given) {
    const struct lock_config *config = given;
    return (config->nodes * column_bits(config) + LOCK_CLIENTS * CLIENT_BITS + WORLD_BITS + 63) / 64;
}

/* The words of lock_unpack(), put together without a loop over bits: most of the time goes here. */
static uint64_t pack_link(const struct lock_link *link) {
    assert(link->vote < 4 && link->set < 2 && link->sees < 1U << TICK_BITS);
    return link->vote | link->set << 2 | link->sees << 3;
}

static uint64_t pack_client(const struct lock_client *client) {
    assert(client->phase < 4 && client->left < 1U << TICK_BITS && client->next_left < 1U << TICK_BITS);
    return client->phase | client->left << 2 | client->next_left << (2 + TICK_BITS) |
           client->heal_left << (2 + 2 * TICK_BITS);
}

static uint64_t pack_node(const struct lock_node *node) {
    assert(node->owner < 4 && node->left < 1U << TICK_BITS && node->stepped < 2 && node->marker < 1U << TICK_BITS);
    return node->owner | node->left << 2 | node->stepped << (2 + TICK_BITS) | node->marker << NODE_BITS;
}

/* Clients with the same nodes and quorum are interchangeable, too. The key is the lesser of both
 * orders: nodes first, then clients. */
void lock_pack(const void *given, const void *from, uint64_t *key) {
    static const unsigned exchanged[] = {FREE, FIRST_OWNER + 1, FIRST_OWNER, LEFT_BEHIND};
    const struct lock_config *config = given;
    const struct lock_state *state = from;
    const unsigned links_at = column_bits(config) - LOCK_CLIENTS * LINK_BITS, n = config->nodes;
    uint64_t columns[2][LOCK_NODES_MAX + LOCK_CLIENTS];
    for (unsigned i = 0; i < n; i++) {
        const uint64_t node = pack_node(&state->nodes[i]), owner = state->nodes[i].owner;
        const uint64_t a = pack_link(&state->clients[0].links[i]), b = pack_link(&state->clients[1].links[i]);
        columns[0][i] = node | (b << LINK_BITS | a) << links_at;
        columns[1][i] = (node ^ owner ^ exchanged[owner]) | (a << LINK_BITS | b) << links_at;
    }
    for (unsigned swap = 0; swap < 2; swap++) {
        setup_sort(&config->setups, columns[swap], n);
        columns[swap][n] = pack_client(&state->clients[swap]);
        columns[swap][n + 1] = pack_client(&state->clients[1 ^ swap]);
    }
    const bool may_swap = setup_is_one(&config->setups);
    const uint64_t *least = columns[may_swap && bits_are_less(columns[1], columns[0], n + LOCK_CLIENTS)];
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < n + LOCK_CLIENTS; i++) {
        bits_put(&bits, least[i], i < n ? column_bits(config) : CLIENT_BITS);
    }
    bits_put(&bits, state->restarts, 3);
    bits_put(&bits, state->steps, 1);
}

void lock_unpack(const void *given, const uint64_t *key, void *to) {
    const struct lock_config *config = given;
    struct lock_state *state = to;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, lock_key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    for (unsigned i = 0; i < config->nodes; i++) {
        struct lock_node *node = &state->nodes[i];
        node->owner = (unsigned)bits_get(&bits, 2);
        node->left = (unsigned)bits_get(&bits, TICK_BITS);
        node->stepped = (unsigned)bits_get(&bits, 1);
        node->marker = lock_has_markers(config) ? (unsigned)bits_get(&bits, TICK_BITS) : 0;
        for (unsigned j = 0; j < LOCK_CLIENTS; j++) {
            struct lock_link *link = &state->clients[j].links[i];
            link->vote = (unsigned)bits_get(&bits, 2);
            link->set = (unsigned)bits_get(&bits, 1);
            link->sees = (unsigned)bits_get(&bits, TICK_BITS);
        }
    }
    for (unsigned j = 0; j < LOCK_CLIENTS; j++) {
        struct lock_client *client = &state->clients[j];
        client->phase = (unsigned)bits_get(&bits, 2);
        client->left = (unsigned)bits_get(&bits, TICK_BITS);
        client->next_left = (unsigned)bits_get(&bits, TICK_BITS);
        client->heal_left = (unsigned)bits_get(&bits, TICK_BITS);
    }
    state->restarts = (unsigned)bits_get(&bits, 3);
    state->steps = (unsigned)bits_get(&bits, 1);
}
