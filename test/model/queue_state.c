/* The compact form of a state of the model of the grants. */
#include "queue_state.h"

#include <string.h>

#include "bits.h"

enum { TICK_BITS = 2, DEAD_BITS = 3, OWNER_BITS = 3 };
enum { NODE_BITS = OWNER_BITS + TICK_BITS, LINK_BITS = QUEUE_TICKS_MAX + 2 * TICK_BITS + 1 };

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

static uint64_t pack_link(const struct queue_config *config, const struct queue_link *link) {
    uint64_t word = 0;
    struct bits bits = {.words = &word};
    bits_put(&bits, link->sent, QUEUE_TICKS_MAX);
    bits_put(&bits, link->entry, TICK_BITS);
    bits_put(&bits, link->grant, TICK_BITS);
    bits_put(&bits, link->backs, 1);
    if (has_pushes(config)) {
        bits_put(&bits, link->answered, TICK_BITS);
        bits_put(&bits, link->push, 1);
        bits_put(&bits, link->release, 1);
    }
    return word;
}

static uint64_t pack_client(const struct queue_config *config, const struct queue_client *client) {
    uint64_t word = 0;
    struct bits bits = {.words = &word};
    bits_put(&bits, client->left, TICK_BITS);
    bits_put(&bits, client->waited, 1);
    if (config->stale) {
        bits_put(&bits, client->dead, DEAD_BITS);
    }
    return word;
}

/* A state in words: of each node its key and what is under way between it and each client, and of
 * each client. */
struct parts {
    unsigned owners[QUEUE_NODES_MAX];
    uint64_t nodes[QUEUE_NODES_MAX], links[QUEUE_CLIENTS_MAX][QUEUE_NODES_MAX], clients[QUEUE_CLIENTS_MAX];
};

static void part(const struct queue_config *config, const struct queue_state *state, struct parts *parts) {
    for (unsigned i = 0; i < config->nodes; i++) {
        assert(state->nodes[i].owner <= LEFT_BEHIND && state->nodes[i].left < 1U << TICK_BITS);
        parts->owners[i] = state->nodes[i].owner;
        parts->nodes[i] = (uint64_t)state->nodes[i].left << OWNER_BITS;
    }
    for (unsigned j = 0; j < config->clients; j++) {
        parts->clients[j] = pack_client(config, &state->clients[j]);
        for (unsigned i = 0; i < config->nodes; i++) {
            parts->links[j][i] = pack_link(config, &state->clients[j].links[i]);
        }
    }
}

/* A column for each node, and one for each client, with client order[j] as client j. */
static void put_in_order(const struct queue_config *config, const struct parts *parts, const unsigned *order,
                         uint64_t *columns) {
    const unsigned link_bits = (column_bits(config) - NODE_BITS) / config->clients;
    unsigned owners[LEFT_BEHIND + 1] = {[FREE] = FREE, [LEFT_BEHIND] = LEFT_BEHIND};
    for (unsigned j = 0; j < config->clients; j++) {
        owners[FIRST_OWNER + order[j]] = FIRST_OWNER + j;
        columns[config->nodes + j] = parts->clients[order[j]];
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        columns[i] = parts->nodes[i] | owners[parts->owners[i]];
        for (unsigned j = 0, at = NODE_BITS; j < config->clients; j++, at += link_bits) {
            columns[i] |= parts->links[order[j]][i] << at;
        }
    }
    bits_sort(columns, config->nodes);
}

/* Clients are alike, too: the key is the least of all their orders, nodes first. */
void queue_pack(const void *given, const void *from, uint64_t *key) {
    static const unsigned orders[][QUEUE_CLIENTS_MAX] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                                         {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    const struct queue_config *config = given;
    const unsigned count = config->clients == 3 ? 6 : config->clients, all = config->nodes + config->clients;
    uint64_t columns[2][QUEUE_NODES_MAX + QUEUE_CLIENTS_MAX] = {{0}};
    struct parts parts = {.clients = {0}};
    unsigned least = 0;
    part(config, from, &parts);
    put_in_order(config, &parts, orders[0], columns[least]);
    for (unsigned i = 1; i < count; i++) {
        put_in_order(config, &parts, orders[i], columns[!least]);
        least ^= bits_are_less(columns[!least], columns[least], all);
    }
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < all; i++) {
        bits_put(&bits, columns[least][i], i < config->nodes ? column_bits(config) : client_bits(config));
    }
}

void queue_unpack(const void *given, const uint64_t *key, void *to) {
    const struct queue_config *config = given;
    struct queue_state *state = to;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, queue_key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    for (unsigned i = 0; i < config->nodes; i++) {
        state->nodes[i].owner = (unsigned)bits_get(&bits, OWNER_BITS);
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
