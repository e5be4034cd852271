/* What a state of the order model says, and its compact form. */
#include "queue_order_state.h"

#include <string.h>

#include "bits.h"

unsigned order_quorum(const struct order_config *config) {
    return (config->nodes + config->lost) / 2 + 1;
}

/* Whether a release of an earlier token is still under way to this node. */
bool order_releases(const struct order_link *link) {
    for (unsigned requests = link->requests; requests; requests >>= REQUEST_BITS) {
        if ((requests & REQUEST_MASK) == RELEASE || (requests & REQUEST_MASK) == KEEP) {
            return true;
        }
    }
    return false;
}

bool order_is_idle(const struct order_config *config, const struct order_client *client) {
    for (unsigned i = 0; i < config->nodes; i++) {
        if (client->links[i].requests) {
            return false;
        }
    }
    return true;
}

/* Nodes whose key has the present token of the client. */
unsigned order_owned_by(const struct order_config *config, const struct order_state *state, unsigned number) {
    unsigned count = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        const struct order_node *node = &state->nodes[i];
        count +=
            node->owner == FIRST_OWNER + number && !node->ghost && !order_releases(&state->clients[number].links[i]);
    }
    return count;
}

/* Nodes that have the client's present token in their queue. */
unsigned order_queued_by(const struct order_config *config, const struct order_client *client) {
    unsigned count = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        count += (client->links[i].entries & ENTRY) && !order_releases(&client->links[i]);
    }
    return count;
}

bool order_is_before(const struct order_state *state, unsigned a, unsigned b) {
    const unsigned slow_a = state->clients[a].slow, slow_b = state->clients[b].slow;
    return slow_a != slow_b ? slow_a > slow_b : a < b;
}

/* Whether the WAIT of a client that is queued would change anything now: a node is free, or has not
 * got this one. */
bool order_waits_again(const struct order_config *config, const struct order_state *state, unsigned number) {
    for (unsigned i = 0; i < config->nodes; i++) {
        const bool queued = state->clients[number].links[i].entries & ENTRY;
        const unsigned owner = state->nodes[i].owner;
        if (owner == FREE || (!queued && owner != FIRST_OWNER + number)) {
            return true;
        }
    }
    return false;
}

/* What a look finds: an earlier token has a node, or another token has a quorum. */
enum yields order_yields(const struct order_config *config, const struct order_state *state, unsigned number) {
    bool quorum = false;
    if (!order_owned_by(config, state, number) || config->bug == ORDER_NEVER_YIELDS) {
        return YIELDS_NOT;
    }
    for (unsigned i = 0; i < config->waiters; i++) {
        const unsigned others = i == number ? 0 : order_owned_by(config, state, i);
        if (others && order_is_before(state, i, number)) {
            return YIELDS_TO_EARLIER;
        }
        quorum = quorum || others >= order_quorum(config);
    }
    return quorum ? YIELDS_TO_QUORUM : YIELDS_NOT;
}

/* Clients wait, and nothing is under way that could change that. */
bool order_is_stuck(const struct order_config *config, const struct order_state *state) {
    bool waiting = false;
    for (unsigned i = 0; i < config->waiters; i++) {
        const struct order_client *client = &state->clients[i];
        if (client->phase == ENDED && order_is_idle(config, client)) {
            continue;
        }
        if (client->phase != QUEUED || !order_is_idle(config, client) || order_waits_again(config, state, i) ||
            order_yields(config, state, i) != YIELDS_NOT || order_owned_by(config, state, i) >= order_quorum(config)) {
            return false;
        }
        waiting = true;
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        for (unsigned j = 0; j < config->waiters; j++) {
            waiting = waiting && !state->clients[j].links[i].late;
        }
        const bool released = state->nodes[i].ghost && config->bug != ORDER_UNANSWERED;
        waiting = waiting && state->nodes[i].owner != FIRST_HOLDER && !released;
    }
    return waiting;
}

enum {
    NODE_BITS = 3 + 1,
    LINK_BITS = REQUESTS_MAX * REQUEST_BITS + 2 + 2,
    CLIENT_BITS = 3 + 1 + 2,
    WORLD_BITS = 2 + 2
};

static unsigned column_bits(const struct order_config *config) {
    return NODE_BITS + config->waiters * LINK_BITS;
}

unsigned order_key_words(const void *given) {
    const struct order_config *config = given;
    return (config->nodes * column_bits(config) + config->waiters * CLIENT_BITS + WORLD_BITS + 63) / 64;
}

void order_pack(const void *given, const void *from, uint64_t *key) {
    const struct order_config *config = given;
    const struct order_state *state = from;
    uint64_t columns[ORDER_NODES_MAX] = {0};
    for (unsigned i = 0; i < config->nodes; i++) {
        struct bits column = {.words = &columns[i]};
        bits_put(&column, state->nodes[i].owner, 3);
        bits_put(&column, state->nodes[i].ghost, 1);
        for (unsigned j = 0; j < config->waiters; j++) {
            const struct order_link *link = &state->clients[j].links[i];
            bits_put(&column, link->requests, REQUESTS_MAX * REQUEST_BITS);
            bits_put(&column, link->entries, 2);
            bits_put(&column, link->late, 2);
        }
    }
    bits_sort(columns, config->nodes);
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < config->nodes; i++) {
        bits_put(&bits, columns[i], column_bits(config));
    }
    for (unsigned j = 0; j < config->waiters; j++) {
        const struct order_client *client = &state->clients[j];
        bits_put(&bits, client->phase, 3);
        bits_put(&bits, client->slow, 1);
        bits_put(&bits, client->due, 2);
    }
    bits_put(&bits, state->breaks, 2);
    bits_put(&bits, state->wrong, 2);
}

void order_unpack(const void *given, const uint64_t *key, void *to) {
    const struct order_config *config = given;
    struct order_state *state = to;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, order_key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    for (unsigned i = 0; i < config->nodes; i++) {
        state->nodes[i].owner = (unsigned)bits_get(&bits, 3);
        state->nodes[i].ghost = (unsigned)bits_get(&bits, 1);
        for (unsigned j = 0; j < config->waiters; j++) {
            struct order_link *link = &state->clients[j].links[i];
            link->requests = (unsigned)bits_get(&bits, REQUESTS_MAX * REQUEST_BITS);
            link->entries = (unsigned)bits_get(&bits, 2);
            link->late = (unsigned)bits_get(&bits, 2);
        }
    }
    for (unsigned j = 0; j < config->waiters; j++) {
        struct order_client *client = &state->clients[j];
        client->phase = (unsigned)bits_get(&bits, 3);
        client->slow = (unsigned)bits_get(&bits, 1);
        client->due = (unsigned)bits_get(&bits, 2);
    }
    state->breaks = (unsigned)bits_get(&bits, 2);
    state->wrong = (unsigned)bits_get(&bits, 2);
}
