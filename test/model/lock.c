/* The model of the lock on nodes that restart without memory. A message that is under way may run
 * at any time or never, but not on a later run of the node than the one that it was sent to,
 * because the connection ends with the run. Time is ticks that all clocks share. Between two ticks
 * anything may happen in any order. */
#include "lock_state.h"

#include <string.h>

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
    const unsigned guarded = 1U << GOAL_BARRED | 1U << GOAL_TRUSTED;
    return !config->restarts ? all & ~(1U << GOAL_RESTART | guarded)
                             : all & ~(config->bug == LOCK_UNGUARDED ? guarded : 0);
}

static char name_of(unsigned client) {
    return (char)('A' + client);
}

static bool asks(const struct lock_config *config, unsigned client, unsigned node) {
    return setup_asks(&config->setups, client, node);
}

static unsigned quorum_of(const struct lock_config *config, unsigned client) {
    return setup_quorum(&config->setups, client, config->nodes);
}

static bool holds(const struct lock_client *client) {
    return client->phase == HELD || client->phase == EXTENDING;
}

static void initial(const void *given, void *to) {
    const struct lock_config *config = given;
    struct lock_state *state = to;
    memset(state, 0, sizeof(*state)); /* all runs have been known for long */
    for (unsigned i = 0; i < config->nodes && lock_has_markers(config); i++) {
        state->nodes[i].marker = lock_unseen(config);
    }
}

/* The client gives its token up. Its messages that are under way could only set a key that nobody
 * extends. Like any lost message, that only keeps others out, so the model leaves it out. */
static void end(const struct lock_config *config, struct lock_state *state, unsigned number) {
    struct lock_client *client = &state->clients[number];
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

static void begin(const struct lock_config *config, const struct lock_state *state, unsigned number,
                  struct search *search) {
    struct lock_state next = *state;
    struct lock_client *client = &next.clients[number];
    unsigned asked = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct lock_link *link = &client->links[i];
        link->set = link->sees == 0 && asks(config, number, i);
        asked += link->set;
        if (link->sees && link->sees != lock_unseen(config)) {
            search_goal(search, GOAL_BARRED);
        }
    }
    if (asked < quorum_of(config, number)) {
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

static void extend(const struct lock_config *config, const struct lock_state *state, unsigned number,
                   struct search *search) {
    struct lock_state next = *state;
    struct lock_client *client = &next.clients[number];
    client->phase = EXTENDING;
    client->next_left = config->ttl;
    client->heal_left = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct lock_link *link = &client->links[i];
        link->vote = link->sees == lock_unseen(config) || !asks(config, number, i) ? VOTE_NONE : VOTE_ASKED;
        link->set = link->sees == lock_unseen(config) ? 0 : link->set;
    }
    search_step(search, &next, "%c asks to extend", name_of(number));
}

/* A quorum of GRANTED: the lease ends a ttl after the start of the round (R1, R12). */
static void win(const struct lock_config *config, const struct lock_state *state, unsigned number,
                struct search *search) {
    struct lock_state next = *state;
    struct lock_client *client = &next.clients[number];
    unsigned granted = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        granted += client->links[i].vote == VOTE_GRANTED;
        if (client->links[i].vote == VOTE_GRANTED) {
            client->links[i].vote = VOTE_NONE;
        }
    }
    const bool extended = client->phase == EXTENDING;
    if (granted < quorum_of(config, number) || is_over(config, extended ? client->next_left : client->left)) {
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

static void heal(const struct lock_config *config, const struct lock_state *state, unsigned number,
                 struct search *search) {
    const struct lock_client *client = &state->clients[number];
    if ((client->heal_left == 0 && config->bug != LOCK_HEAL_UNPROVEN) || is_over(config, client->left)) {
        return;
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        const struct lock_link *link = &client->links[i];
        const bool may = config->bug == LOCK_HEAL_QUARANTINED ? link->sees != lock_unseen(config) : link->sees == 0;
        if (may && asks(config, number, i) && !link->set && state->nodes[i].owner != FIRST_OWNER + number) {
            struct lock_state next = *state;
            next.clients[number].links[i].set = 1;
            search_step(search, &next, "%c sends node %u a SET to heal it", name_of(number), i + 1);
        }
    }
}

static void give_up(const struct lock_config *config, const struct lock_state *state, unsigned number,
                    struct search *search) {
    struct lock_state next = *state;
    struct lock_client *client = &next.clients[number];
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
static void connect(const struct lock_config *config, const struct lock_state *state, unsigned number, unsigned at,
                    struct search *search) {
    struct lock_state next = *state;
    unsigned quarantine = config->ttl_max;
    if (config->bug == LOCK_UNGUARDED || (config->bug == LOCK_UPTIME && state->nodes[at].stepped)) {
        quarantine = 0;
    } else if (config->bug == LOCK_SHORT) {
        quarantine--;
    } else if (lock_has_markers(config)) {
        struct lock_node *node = &next.nodes[at];
        quarantine = node->marker == lock_unseen(config) ? 0 : quarantine;
        node->marker = node->marker ? node->marker : 1;
    }
    next.clients[number].links[at].sees = quarantine;
    if (is_over(config, state->clients[number].left)) {
        next.clients[number].links[at].set = 0; /* the SET that waited for the connection */
    }
    search_step(search, &next, "%c connects to the new run of node %u, which may vote in %u ticks", name_of(number),
                at + 1, quarantine);
}

static void step_client(const struct lock_config *config, const struct lock_state *state, unsigned number,
                        struct search *search) {
    const enum phase phase = state->clients[number].phase;
    for (unsigned i = 0; i < config->nodes; i++) {
        if (state->clients[number].links[i].sees == lock_unseen(config)) {
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
static void execute_set(const struct lock_config *config, const struct lock_state *state, unsigned number, unsigned at,
                        struct search *search) {
    struct lock_state next = *state;
    struct lock_link *link = &next.clients[number].links[at];
    struct lock_node *node = &next.nodes[at];
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
static void execute_extend(const struct lock_config *config, const struct lock_state *state, unsigned number,
                           unsigned at, struct search *search) {
    struct lock_state next = *state;
    struct lock_link *link = &next.clients[number].links[at];
    struct lock_node *node = &next.nodes[at];
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

static void restart(const struct lock_config *config, const struct lock_state *state, unsigned at,
                    struct search *search) {
    struct lock_state next = *state;
    const unsigned owner = state->nodes[at].owner;
    if (owner != FREE && owner != LEFT_BEHIND && holds(&state->clients[owner - FIRST_OWNER])) {
        search_goal(search, GOAL_RESTART);
    }
    next.restarts++;
    next.nodes[at] = (struct lock_node){.marker = config->bug == LOCK_MARKER_OLD_COPY ? state->nodes[at].marker : 0};
    for (unsigned i = 0; i < LOCK_CLIENTS; i++) {
        struct lock_link *link = &next.clients[i].links[at];
        link->sees = asks(config, i, at) ? lock_unseen(config) : 0;
        link->set = link->set && config->bug == LOCK_SET_QUEUED && next.clients[i].phase == ACQUIRING;
        link->vote = link->vote == VOTE_ASKED ? VOTE_NONE : link->vote;
    }
    search_step(search, &next, "node %u restarts and has forgotten its key", at + 1);
}

/* Its wall clock leaps by more than ttl_max, and so does the uptime that it says. */
static void step_clock(const struct lock_config *config, const struct lock_state *state, unsigned at,
                       struct search *search) {
    struct lock_state next = *state;
    next.steps++;
    next.nodes[at].stepped = 1;
    for (unsigned i = 0; i < LOCK_CLIENTS; i++) {
        struct lock_link *link = &next.clients[i].links[at];
        link->sees = link->sees == lock_unseen(config) ? link->sees : 0;
    }
    search_step(search, &next, "node %u: its clock is stepped forward, its uptime is above ttl_max", at + 1);
}

static void step_node(const struct lock_config *config, const struct lock_state *state, unsigned at,
                      struct search *search) {
    for (unsigned i = 0; i < LOCK_CLIENTS; i++) {
        const struct lock_link *link = &state->clients[i].links[at];
        if (link->set && link->sees != lock_unseen(config)) {
            execute_set(config, state, i, at, search);
        }
        if (link->vote == VOTE_ASKED) {
            execute_extend(config, state, i, at, search);
        }
    }
    if (state->nodes[at].owner == LEFT_BEHIND) {
        struct lock_state next = *state;
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

static void tick(const struct lock_config *config, const struct lock_state *state, struct search *search) {
    struct lock_state next = *state;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct lock_node *node = &next.nodes[i];
        node->left = less(node->left);
        node->owner = node->left ? node->owner : FREE;
        node->marker += node->marker && node->marker < lock_unseen(config);
    }
    for (unsigned i = 0; i < LOCK_CLIENTS; i++) {
        struct lock_client *client = &next.clients[i];
        for (unsigned j = 0; j < config->nodes; j++) {
            struct lock_link *link = &client->links[j];
            if (link->sees == 1) {
                search_goal(search, GOAL_TRUSTED);
            }
            link->sees = link->sees == lock_unseen(config) ? link->sees : less(link->sees);
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
    const struct lock_state *state = from;
    tick(config, state, search);
    for (unsigned i = 0; i < LOCK_CLIENTS; i++) {
        step_client(config, state, i, search);
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        step_node(config, state, i, search);
    }
}

static const char *violation(const void *config, const void *from) {
    (void)config;
    const struct lock_state *state = from;
    return holds(&state->clients[0]) && holds(&state->clients[1]) ? "A and B hold the lock at the same time" : NULL;
}

const struct model lock_model = {
    .state_bytes = sizeof(struct lock_state),
    .key_words = lock_key_words,
    .initial = initial,
    .pack = lock_pack,
    .unpack = lock_unpack,
    .steps = steps,
    .violation = violation,
    .goals = goals,
    .expected = expected,
};
