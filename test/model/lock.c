/* The model of the lock on nodes that restart without memory. A message that is under way may run
 * at any time or never, but not on a later run of the node than the one that it was sent to,
 * because the connection ends with the run. Time is ticks that all clocks share. Between two ticks
 * anything may happen in any order. */
#include "lock.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "bits.h"

enum { CLIENTS = 2 };

/* The key of a node: none, the present token of client 0 or 1, or a token that its owner has given
 * up. */
enum { FREE, FIRST_OWNER, LEFT_BEHIND = FIRST_OWNER + CLIENTS };

/*
 * IDLE       begin                             → ACQUIRING  SET to the nodes that it may ask, under a fresh token
 * ACQUIRING  q heard GRANTED, deadline not yet → HELD
 *            deadline, given up                → IDLE
 * HELD       extend                            → EXTENDING  EXTEND to all nodes with which it is connected
 *            heal                              → HELD       SET to one node, before the deadline that
 *                                                           the last round had met
 * EXTENDING  q heard that matched              → HELD       the deadline anew, from this round's start
 *            given up                          → HELD       the old deadline stands
 * HELD, EXTENDING  deadline, release           → IDLE       its keys are left behind, until released or expired
 */
enum phase { IDLE, ACQUIRING, HELD, EXTENDING };

/* Of the present round. A client looks at the votes only when they decide, so it need not hear them
 * one by one. */
enum vote { VOTE_NONE, VOTE_ASKED, VOTE_GRANTED };

/* How a client stands with a node. `sees` is UNSEEN from a restart until it has connected to the
 * new run; then the ticks of quarantine that are left, by its own clock. */
struct link {
    unsigned vote; /* VOTE_ASKED: an EXTEND is under way; that of an acquire is the SET */
    unsigned set;  /* a SET is under way: of the acquire, or to heal */
    unsigned sees;
};

struct client {
    unsigned phase;
    unsigned left;      /* ticks to the deadline; while ACQUIRING, to what it would be */
    unsigned next_left; /* EXTENDING: to the deadline of the round under way */
    unsigned heal_left; /* ticks in which it may heal */
    struct link links[LOCK_NODES_MAX];
};

struct node {
    unsigned owner;
    unsigned left;    /* ticks that its key lives */
    unsigned stepped; /* its clock was stepped in this run */
    unsigned marker;  /* LOCK_MARKER: the ticks since the marker was set, and one; 0: there is none */
};

struct state {
    struct client clients[CLIENTS];
    struct node nodes[LOCK_NODES_MAX];
    unsigned restarts, steps;
};

enum goal { GOAL_WON, GOAL_EXTENDED, GOAL_HEALED, GOAL_LOST, GOAL_RESTART, GOAL_BARRED, GOAL_TRUSTED };

static const char *const goals[] = {
    [GOAL_WON] = "acquired",
    [GOAL_EXTENDED] = "extended",
    [GOAL_HEALED] = "key set after the acquire was decided",
    [GOAL_LOST] = "lost at the deadline",
    [GOAL_RESTART] = "restart that forgot the key of a lease",
    [GOAL_BARRED] = "attempt without a node in quarantine",
    [GOAL_TRUSTED] = "quarantine over",
    NULL,
};

static unsigned expected(const void *given) {
    const struct lock_config *config = given;
    const unsigned all = (1U << (GOAL_TRUSTED + 1)) - 1;
    return config->restarts ? all : all & ~(1U << GOAL_RESTART | 1U << GOAL_BARRED | 1U << GOAL_TRUSTED);
}

static char name_of(unsigned client) {
    return (char)('A' + client);
}

static bool holds(const struct client *client) {
    return client->phase == HELD || client->phase == EXTENDING;
}

static unsigned unseen(const struct lock_config *config) {
    return config->ttl_max + 1;
}

static bool has_markers(const struct lock_config *config) {
    return config->bug == LOCK_MARKER || config->bug == LOCK_MARKER_OLD_COPY;
}

static void initial(const void *given, void *to) {
    const struct lock_config *config = given;
    struct state *state = to;
    memset(state, 0, sizeof(*state)); /* all runs have been known for long */
    for (unsigned i = 0; i < config->nodes && has_markers(config); i++) {
        state->nodes[i].marker = unseen(config);
    }
}

/* The client gives its token up. Its messages that are under way could only set a key that nobody
 * extends. Like any lost message, that only keeps others out, so the model leaves it out. */
static void end(const struct lock_config *config, struct state *state, unsigned number) {
    struct client *client = &state->clients[number];
    client->phase = IDLE;
    client->left = client->next_left = client->heal_left = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        client->links[i].vote = VOTE_NONE;
        client->links[i].set = 0;
        if (state->nodes[i].owner == FIRST_OWNER + number) {
            state->nodes[i].owner = LEFT_BEHIND;
        }
    }
}

static void begin(const struct lock_config *config, const struct state *state, unsigned number, struct search *search) {
    struct state next = *state;
    struct client *client = &next.clients[number];
    unsigned asked = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct link *link = &client->links[i];
        link->set = link->sees == 0;
        asked += link->set;
        if (link->sees && link->sees != unseen(config)) {
            search_goal(search, GOAL_BARRED);
        }
    }
    if (asked < config->nodes / 2 + 1) {
        return;
    }
    client->phase = ACQUIRING;
    client->left = config->ttl;
    search_step(search, &next, "%c asks %u nodes for the lock", name_of(number), asked);
}

/* Whether a round whose lease would have `left` ticks to go began too long ago. */
static bool is_over(const struct lock_config *config, unsigned left) {
    return config->patience && config->ttl - left > config->patience;
}

static void extend(const struct lock_config *config, const struct state *state, unsigned number,
                   struct search *search) {
    struct state next = *state;
    struct client *client = &next.clients[number];
    client->phase = EXTENDING;
    client->next_left = config->ttl;
    client->heal_left = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct link *link = &client->links[i];
        link->vote = link->sees == unseen(config) ? VOTE_NONE : VOTE_ASKED;
        link->set = link->sees == unseen(config) ? 0 : link->set;
    }
    search_step(search, &next, "%c asks to extend", name_of(number));
}

/* A quorum of GRANTED: the lease ends a ttl after the start of the round (R1, R12). */
static void win(const struct lock_config *config, const struct state *state, unsigned number, struct search *search) {
    struct state next = *state;
    struct client *client = &next.clients[number];
    unsigned granted = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        granted += client->links[i].vote == VOTE_GRANTED;
        if (client->links[i].vote == VOTE_GRANTED) {
            client->links[i].vote = VOTE_NONE;
        }
    }
    const bool extended = client->phase == EXTENDING;
    if (granted < config->nodes / 2 + 1 || is_over(config, extended ? client->next_left : client->left)) {
        return;
    }
    search_goal(search, extended ? GOAL_EXTENDED : GOAL_WON);
    client->heal_left = client->left;
    if (extended) {
        client->left = client->next_left;
        client->next_left = 0;
    }
    if (config->bug == LOCK_HEAL_LATE) {
        client->heal_left = client->left;
    }
    client->phase = HELD;
    search_step(search, &next, "%c heard a quorum: it HOLDS for %u more ticks%s", name_of(number), client->left,
                extended ? " (extended)" : "");
}

static void heal(const struct lock_config *config, const struct state *state, unsigned number, struct search *search) {
    const struct client *client = &state->clients[number];
    if ((client->heal_left == 0 && config->bug != LOCK_HEAL_UNPROVEN) || is_over(config, client->left)) {
        return;
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        const struct link *link = &client->links[i];
        const bool may = config->bug == LOCK_HEAL_QUARANTINED ? link->sees != unseen(config) : link->sees == 0;
        if (may && !link->set && state->nodes[i].owner != FIRST_OWNER + number) {
            struct state next = *state;
            next.clients[number].links[i].set = 1;
            search_step(search, &next, "%c sends node %u a SET to heal it", name_of(number), i + 1);
        }
    }
}

static void give_up(const struct lock_config *config, const struct state *state, unsigned number,
                    struct search *search) {
    struct state next = *state;
    struct client *client = &next.clients[number];
    end(config, &next, number);
    search_step(search, &next, "%c %s", name_of(number),
                holds(&state->clients[number]) ? "ends its lease" : "gives its attempt up");
    if (state->clients[number].phase == EXTENDING) {
        next = *state;
        client->phase = HELD;
        client->next_left = 0;
        for (unsigned i = 0; i < config->nodes; i++) {
            client->links[i].vote = client->links[i].vote == VOTE_ASKED ? VOTE_ASKED : VOTE_NONE;
        }
        search_step(search, &next, "%c gives its extension up", name_of(number));
    }
}

/* The first sight of a new run (protocol: run_id is read on every new connection before its first
 * vote). */
static void connect(const struct lock_config *config, const struct state *state, unsigned number, unsigned at,
                    struct search *search) {
    struct state next = *state;
    unsigned quarantine = config->ttl_max;
    if (config->bug == LOCK_UNGUARDED || (config->bug == LOCK_UPTIME && state->nodes[at].stepped)) {
        quarantine = 0;
    } else if (config->bug == LOCK_SHORT) {
        quarantine--;
    } else if (has_markers(config)) {
        struct node *node = &next.nodes[at];
        quarantine = node->marker == unseen(config) ? 0 : quarantine;
        node->marker = node->marker ? node->marker : 1;
    }
    next.clients[number].links[at].sees = quarantine;
    if (is_over(config, state->clients[number].left)) {
        next.clients[number].links[at].set = 0; /* the SET that waited for the connection */
    }
    search_step(search, &next, "%c connects to the new run of node %u, which may vote in %u ticks", name_of(number),
                at + 1, quarantine);
}

static void step_client(const struct lock_config *config, const struct state *state, unsigned number,
                        struct search *search) {
    const enum phase phase = state->clients[number].phase;
    for (unsigned i = 0; i < config->nodes; i++) {
        if (state->clients[number].links[i].sees == unseen(config)) {
            connect(config, state, number, i, search);
        }
    }
    if (phase == IDLE) {
        begin(config, state, number, search);
        return;
    }
    if (phase == HELD) {
        extend(config, state, number, search);
        heal(config, state, number, search);
    } else {
        win(config, state, number, search);
    }
    give_up(config, state, number, search);
}

/* SET … NX PX ttl, one atomic step of a node. */
static void execute_set(const struct lock_config *config, const struct state *state, unsigned number, unsigned at,
                        struct search *search) {
    struct state next = *state;
    struct link *link = &next.clients[number].links[at];
    struct node *node = &next.nodes[at];
    const bool free = node->owner == FREE, asked = next.clients[number].phase == ACQUIRING;
    link->set = 0;
    if (free) {
        node->owner = FIRST_OWNER + number;
        node->left = config->ttl;
        if (asked) {
            link->vote = link->sees == 0 ? VOTE_GRANTED : VOTE_NONE;
        } else {
            search_goal(search, GOAL_HEALED);
        }
    }
    search_step(search, &next, "node %u reads %c's SET%s and %s", at + 1, name_of(number),
                asked && link->sees == 0 ? "" : ", which is not counted,", free ? "grants" : "refuses");
}

/* PEXPIRE if the token is ours, one atomic step of a node. */
static void execute_extend(const struct lock_config *config, const struct state *state, unsigned number, unsigned at,
                           struct search *search) {
    struct state next = *state;
    struct link *link = &next.clients[number].links[at];
    struct node *node = &next.nodes[at];
    const bool healed = node->owner == FREE && config->bug == LOCK_HEAL_COUNTS;
    if (healed) {
        node->owner = FIRST_OWNER + number;
    }
    const bool matches = node->owner == FIRST_OWNER + number, heard = next.clients[number].phase == EXTENDING;
    if (matches) {
        node->left = config->ttl;
    }
    link->vote = matches && heard ? VOTE_GRANTED : VOTE_NONE;
    search_step(search, &next, "node %u reads %c's EXTEND and %s%s", at + 1, name_of(number),
                healed    ? "sets the key again, which is counted"
                : matches ? "its token matches"
                          : "has no such token",
                heard ? "" : ", too late to be heard");
}

static void restart(const struct lock_config *config, const struct state *state, unsigned at, struct search *search) {
    struct state next = *state;
    const unsigned owner = state->nodes[at].owner;
    if (owner != FREE && owner != LEFT_BEHIND && holds(&state->clients[owner - FIRST_OWNER])) {
        search_goal(search, GOAL_RESTART);
    }
    next.restarts++;
    next.nodes[at] = (struct node){.marker = config->bug == LOCK_MARKER_OLD_COPY ? state->nodes[at].marker : 0};
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct link *link = &next.clients[i].links[at];
        link->sees = unseen(config);
        link->set = link->set && config->bug == LOCK_SET_QUEUED && next.clients[i].phase == ACQUIRING;
        link->vote = link->vote == VOTE_ASKED ? VOTE_NONE : link->vote;
    }
    search_step(search, &next, "node %u restarts and has forgotten its key", at + 1);
}

/* Its wall clock leaps by more than ttl_max, and so does the uptime that it says. */
static void step_clock(const struct lock_config *config, const struct state *state, unsigned at,
                       struct search *search) {
    struct state next = *state;
    next.steps++;
    next.nodes[at].stepped = 1;
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct link *link = &next.clients[i].links[at];
        link->sees = link->sees == unseen(config) ? link->sees : 0;
    }
    search_step(search, &next, "node %u: its clock is stepped forward, its uptime is above ttl_max", at + 1);
}

static void step_node(const struct lock_config *config, const struct state *state, unsigned at, struct search *search) {
    for (unsigned i = 0; i < CLIENTS; i++) {
        const struct link *link = &state->clients[i].links[at];
        if (link->set && link->sees != unseen(config)) {
            execute_set(config, state, i, at, search);
        }
        if (link->vote == VOTE_ASKED) {
            execute_extend(config, state, i, at, search);
        }
    }
    if (state->nodes[at].owner == LEFT_BEHIND) {
        struct state next = *state;
        next.nodes[at].owner = FREE;
        next.nodes[at].left = 0;
        search_step(search, &next, "node %u reads the release of the key that was left behind", at + 1);
    }
    if (state->restarts < config->restarts) {
        restart(config, state, at, search);
    }
    if (config->bug == LOCK_UPTIME && state->steps == 0) {
        step_clock(config, state, at, search);
    }
}

static unsigned less(unsigned ticks) {
    return ticks ? ticks - 1 : 0;
}

static void tick(const struct lock_config *config, const struct state *state, struct search *search) {
    struct state next = *state;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct node *node = &next.nodes[i];
        node->left = less(node->left);
        node->owner = node->left ? node->owner : FREE;
        node->marker += node->marker && node->marker < unseen(config);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *client = &next.clients[i];
        for (unsigned j = 0; j < config->nodes; j++) {
            struct link *link = &client->links[j];
            if (link->sees == 1) {
                search_goal(search, GOAL_TRUSTED);
            }
            link->sees = link->sees == unseen(config) ? link->sees : less(link->sees);
        }
        client->next_left = less(client->next_left);
        client->heal_left = less(client->heal_left);
        client->left = less(client->left);
        if (client->phase != IDLE && client->left == 0) {
            if (holds(client)) {
                search_goal(search, GOAL_LOST);
            }
            end(config, &next, i);
        }
    }
    search_step(search, &next, "a tick passes");
}

static void steps(const void *given, const void *from, struct search *search) {
    const struct lock_config *config = given;
    const struct state *state = from;
    tick(config, state, search);
    for (unsigned i = 0; i < CLIENTS; i++) {
        step_client(config, state, i, search);
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        step_node(config, state, i, search);
    }
}

static const char *violation(const void *config, const void *from) {
    (void)config;
    const struct state *state = from;
    return holds(&state->clients[0]) && holds(&state->clients[1]) ? "A and B hold the lock at the same time" : NULL;
}

enum { TICK_BITS = 3, LINK_BITS = 2 + 1 + TICK_BITS, NODE_BITS = 2 + TICK_BITS + 1, CLIENT_BITS = 2 + 3 * TICK_BITS };
enum { WORLD_BITS = 3 + 1 };

static unsigned column_bits(const struct lock_config *config) {
    return NODE_BITS + CLIENTS * LINK_BITS + (has_markers(config) ? TICK_BITS : 0);
}

static unsigned key_words(const void *given) {
    const struct lock_config *config = given;
    return (config->nodes * column_bits(config) + CLIENTS * CLIENT_BITS + WORLD_BITS + 63) / 64;
}

/* Clients are interchangeable, too: `swap` exchanges them. */
static void pack_as(const struct lock_config *config, const struct state *state, unsigned swap, uint64_t *key) {
    uint64_t columns[LOCK_NODES_MAX] = {0};
    for (unsigned i = 0; i < config->nodes; i++) {
        const struct node *node = &state->nodes[i];
        struct bits column = {.words = &columns[i]};
        const bool owned = node->owner != FREE && node->owner != LEFT_BEHIND;
        bits_put(&column, owned ? FIRST_OWNER + ((node->owner - FIRST_OWNER) ^ swap) : node->owner, 2);
        bits_put(&column, node->left, TICK_BITS);
        bits_put(&column, node->stepped, 1);
        if (has_markers(config)) {
            bits_put(&column, node->marker, TICK_BITS);
        }
        for (unsigned j = 0; j < CLIENTS; j++) {
            const struct link *link = &state->clients[j ^ swap].links[i];
            bits_put(&column, link->vote, 2);
            bits_put(&column, link->set, 1);
            bits_put(&column, link->sees, TICK_BITS);
        }
    }
    bits_sort(columns, config->nodes);
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < config->nodes; i++) {
        bits_put(&bits, columns[i], column_bits(config));
    }
    for (unsigned j = 0; j < CLIENTS; j++) {
        const struct client *client = &state->clients[j ^ swap];
        bits_put(&bits, client->phase, 2);
        bits_put(&bits, client->left, TICK_BITS);
        bits_put(&bits, client->next_left, TICK_BITS);
        bits_put(&bits, client->heal_left, TICK_BITS);
    }
    bits_put(&bits, state->restarts, 3);
    bits_put(&bits, state->steps, 1);
}

static void pack(const void *given, const void *from, uint64_t *key) {
    const struct lock_config *config = given;
    const size_t bytes = key_words(config) * sizeof(*key);
    uint64_t swapped[MODEL_KEY_WORDS_MAX] = {0};
    pack_as(config, from, 0, key);
    pack_as(config, from, 1, swapped);
    if (memcmp(swapped, key, bytes) < 0) {
        memcpy(key, swapped, bytes);
    }
}

static void unpack(const void *given, const uint64_t *key, void *to) {
    const struct lock_config *config = given;
    struct state *state = to;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    for (unsigned i = 0; i < config->nodes; i++) {
        struct node *node = &state->nodes[i];
        node->owner = (unsigned)bits_get(&bits, 2);
        node->left = (unsigned)bits_get(&bits, TICK_BITS);
        node->stepped = (unsigned)bits_get(&bits, 1);
        node->marker = has_markers(config) ? (unsigned)bits_get(&bits, TICK_BITS) : 0;
        for (unsigned j = 0; j < CLIENTS; j++) {
            struct link *link = &state->clients[j].links[i];
            link->vote = (unsigned)bits_get(&bits, 2);
            link->set = (unsigned)bits_get(&bits, 1);
            link->sees = (unsigned)bits_get(&bits, TICK_BITS);
        }
    }
    for (unsigned j = 0; j < CLIENTS; j++) {
        struct client *client = &state->clients[j];
        client->phase = (unsigned)bits_get(&bits, 2);
        client->left = (unsigned)bits_get(&bits, TICK_BITS);
        client->next_left = (unsigned)bits_get(&bits, TICK_BITS);
        client->heal_left = (unsigned)bits_get(&bits, TICK_BITS);
    }
    state->restarts = (unsigned)bits_get(&bits, 3);
    state->steps = (unsigned)bits_get(&bits, 1);
}

const struct model lock_model = {
    .state_bytes = sizeof(struct state),
    .key_words = key_words,
    .initial = initial,
    .pack = pack,
    .unpack = unpack,
    .steps = steps,
    .violation = violation,
    .goals = goals,
    .expected = expected,
};
