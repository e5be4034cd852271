/* The model of the grants of a queue: who may hold the lock, and until when. A message that is
 * under way may run at any time, in any order, or never. Time is ticks that all clocks share.
 * Between two ticks anything may happen in any order. */
#include <assert.h>
#include <string.h>

#include "queue_state.h"

enum goal {
    GOAL_TAKEN,
    GOAL_HANDED,
    GOAL_LATE_SERVED,
    GOAL_HELD,
    GOAL_HELD_LATE,
    GOAL_MISSED,
    GOAL_DEADLINE,
    GOAL_RAISED,
    GOAL_BACKED,
    GOAL_DIED
};

static const char *const goals[] = {
    [GOAL_TAKEN] = "free lock granted in answer to WAIT",
    [GOAL_HANDED] = "lock handed over by RELEASE",
    [GOAL_LATE_SERVED] = "served for a WAIT of an earlier tick",
    [GOAL_HELD] = "quorum of grants counted",
    [GOAL_HELD_LATE] = "held for less than a ttl, because a bound was old",
    [GOAL_MISSED] = "key ended before its client counted a quorum",
    [GOAL_DEADLINE] = "lease over at its deadline",
    [GOAL_RAISED] = "WAIT raised the ttl of a key of its own",
    [GOAL_BACKED] = "grant added backing to a lease",
    [GOAL_DIED] = "queued client died",
    NULL,
};

static unsigned expected(const void *given) {
    const struct queue_config *config = given;
    const unsigned all = (1U << (GOAL_DIED + 1)) - 1;
    return config->stale ? all : all & ~(1U << GOAL_DIED);
}

static char name_of(unsigned client) {
    return (char)('A' + client);
}

static bool tracks_backing(const struct queue_config *config) {
    return config->bug == QUEUE_RIGHT || config->bug == QUEUE_LATE_BACKING;
}

/* A holder, whose key is on all nodes. */
static void initial(const void *given, void *to) {
    const struct queue_config *config = given;
    struct queue_state *state = to;
    memset(state, 0, sizeof(*state));
    state->clients[0].left = config->ttl;
    for (unsigned i = 0; i < config->nodes; i++) {
        state->nodes[i] = (struct queue_node){.owner = FIRST_OWNER, .left = config->ttl};
        state->clients[0].links[i].backs = tracks_backing(config);
    }
}

/* The client gives its token up. What is under way for it could only set a key that its RELEASE or
 * its ttl ends. Like any lost message, that only keeps others out, so the model leaves it out. */
static void end(struct queue_state *state, unsigned number) {
    struct queue_client *client = &state->clients[number];
    memset(client->links, 0, sizeof(client->links));
    client->left = client->waited = 0;
    for (unsigned i = 0; i < QUEUE_NODES_MAX; i++) {
        if (state->nodes[i].owner == FIRST_OWNER + number) {
            state->nodes[i].owner = LEFT_BEHIND;
        }
    }
}

static unsigned younger(unsigned a, unsigned b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The node grants the WAIT of this age (and one). */
static void grant(const struct queue_config *config, struct queue_state *state, unsigned number, unsigned at,
                  unsigned wait, struct search *search) {
    struct queue_client *client = &state->clients[number];
    struct queue_link *link = &client->links[at];
    state->nodes[at] = (struct queue_node){.owner = FIRST_OWNER + number, .left = config->ttl};
    link->entry = 0;
    if (wait > config->ttl) {
        return; /* its bound has passed */
    }
    if (client->left == 0) {
        link->grant = younger(link->grant, wait);
    } else if (tracks_backing(config)) {
        const bool counts = wait - 1 <= config->ttl - client->left || config->bug == QUEUE_LATE_BACKING;
        link->backs = link->backs || counts;
        search_goal(search, GOAL_BACKED);
    }
}

/* The node serves its queue, to others than `except`. It may skip any entry, because the waiter
 * does not listen. So it may grant any of them. */
static void serve(const struct queue_config *config, const struct queue_state *state, unsigned at, unsigned except,
                  const char *why, struct search *search) {
    for (unsigned i = 0; i < config->clients; i++) {
        const unsigned entry = state->clients[i].links[at].entry;
        const bool stale = config->stale && entry > config->stale && config->bug != QUEUE_STALE_SERVED;
        if (!entry || stale || i == except) {
            continue;
        }
        struct queue_state next = *state;
        search_goal(search, entry > 1 ? GOAL_LATE_SERVED : GOAL_HANDED);
        next.clients[i].links[at].push = 1;
        grant(config, &next, i, at, entry, search);
        search_step(search, &next, "node %u reads %s and pushes to %c: granted for its WAIT of %u%s ticks ago", at + 1,
                    why, name_of(i), entry - 1, config->stale && entry > config->stale ? " or more" : "");
    }
}

/* The WAIT script, one atomic step of a node. */
static void execute_wait(const struct queue_config *config, const struct queue_state *state, unsigned number,
                         unsigned at, unsigned age, struct search *search) {
    struct queue_state next = *state;
    struct queue_link *link = &next.clients[number].links[at];
    const unsigned owner = state->nodes[at].owner;
    link->sent &= config->in_order ? (1U << age) - 1 : ~(1U << age);
    if (owner == FREE || owner == FIRST_OWNER + number) {
        struct queue_state granted = next;
        search_goal(search, owner == FREE ? GOAL_TAKEN : GOAL_RAISED);
        grant(config, &granted, number, at, age + 1, search);
        search_step(search, &granted, "node %u reads %c's WAIT of %u ticks ago and grants it", at + 1, name_of(number),
                    age);
    }
    if (owner == FIRST_OWNER + number) {
        return;
    }
    link->entry = age + 1;
    link->answered = config->bug == QUEUE_NO_SERIALS ? younger(link->answered, age + 1) : 0;
    search_step(search, &next, "node %u reads %c's WAIT of %u ticks ago and answers: queued", at + 1, name_of(number),
                age);
    if (owner == FREE) {
        serve(config, &next, at, number, "this WAIT", search);
    }
}

/* The RELEASE script for the token that has the key. */
static void free_key(const struct queue_config *config, const struct queue_state *state, unsigned at, const char *why,
                     struct search *search) {
    struct queue_state next = *state;
    next.nodes[at] = (struct queue_node){.owner = FREE};
    search_step(search, &next, "node %u reads %s and deletes the key", at + 1, why);
    serve(config, &next, at, config->clients, why, search);
}

/* QUEUE_SAME_TOKEN: the token is also that of the next WAIT. */
static void execute_release(const struct queue_config *config, const struct queue_state *state, unsigned number,
                            unsigned at, struct search *search) {
    struct queue_state next = *state;
    next.clients[number].links[at].release = next.clients[number].links[at].entry = 0;
    if (state->nodes[at].owner == FIRST_OWNER + number) {
        free_key(config, &next, at, "the RELEASE of a yield", search);
    } else {
        search_step(search, &next, "node %u reads %c's RELEASE", at + 1, name_of(number));
    }
}

static void step_node(const struct queue_config *config, const struct queue_state *state, unsigned at,
                      struct search *search) {
    for (unsigned i = 0; i < config->clients; i++) {
        const struct queue_link *link = &state->clients[i].links[at];
        for (unsigned age = 0; age < config->ttl; age++) {
            if (link->sent >> age & 1U) {
                execute_wait(config, state, i, at, age, search);
            }
        }
        if (link->release) {
            execute_release(config, state, i, at, search);
        }
    }
    if (state->nodes[at].owner == LEFT_BEHIND) {
        free_key(config, state, at, "the RELEASE of the token that it has", search);
    }
}

/* The age of the bound of this node's grant as the client counts it, and one; 0: no grant. */
static unsigned bound_of(const struct queue_config *config, const struct queue_link *link) {
    if (link->push && config->bug == QUEUE_BOUND_ARRIVAL) {
        return 1;
    }
    if (link->push && config->bug == QUEUE_NO_SERIALS) {
        return younger(link->grant, link->answered);
    }
    return link->grant;
}

/* A client looks at the grants only when they make a quorum. "Queued" only takes grants away: what
 * a client does that has heard it, it may also do if that answer is lost. */
static void hold(const struct queue_config *config, const struct queue_state *state, unsigned number,
                 struct search *search) {
    struct queue_state next = *state;
    struct queue_client *client = &next.clients[number];
    const unsigned quorum = (config->nodes + config->lost) / 2 + 1;
    unsigned base = 0, counted = 0; /* the quorum-th youngest bound */
    for (unsigned age = 1; age <= config->ttl && counted < quorum; age++) {
        base = counted == 0 || config->bug != QUEUE_NEWEST_BOUND ? age : base;
        for (unsigned i = 0; i < config->nodes; i++) {
            counted += bound_of(config, &client->links[i]) == age;
        }
    }
    if (counted < quorum) {
        return;
    }
    client->left = config->ttl - (base - 1);
    for (unsigned i = 0; i < config->nodes; i++) {
        struct queue_link *link = &client->links[i];
        const bool late = config->bug == QUEUE_LATE_BACKING;
        link->backs = tracks_backing(config) && link->grant && (link->grant <= base || late);
        link->grant = link->answered = link->push = 0;
    }
    search_goal(search, base > 1 ? GOAL_HELD_LATE : GOAL_HELD);
    search_step(search, &next, "%c counts a quorum of grants: it HOLDS for %u more ticks", name_of(number),
                client->left);
}

static void give_up(const struct queue_config *config, const struct queue_state *state, unsigned number,
                    struct search *search) {
    struct queue_state next = *state;
    struct queue_client *client = &next.clients[number];
    const bool held = client->left > 0;
    if (held || config->bug != QUEUE_SAME_TOKEN) {
        end(&next, number);
    } else {
        client->waited = 0;
        for (unsigned i = 0; i < config->nodes; i++) {
            struct queue_link *link = &client->links[i];
            link->release = 1;
            link->grant = link->push ? link->grant : 0;
        }
    }
    search_step(search, &next, "%c %s: RELEASE to all nodes", name_of(number), held ? "ends its lease" : "yields");
}

static void step_client(const struct queue_config *config, const struct queue_state *state, unsigned number,
                        struct search *search) {
    const struct queue_client *client = &state->clients[number];
    if (client->dead) {
        return;
    }
    if (client->left == 0 && !client->waited) {
        struct queue_state next = *state;
        next.clients[number].waited = 1;
        for (unsigned i = 0; i < config->nodes; i++) {
            next.clients[number].links[i].sent |= 1;
        }
        search_step(search, &next, "%c sends WAIT to all nodes", name_of(number));
    }
    if (client->left == 0) {
        hold(config, state, number, search);
    }
    give_up(config, state, number, search);
    if (config->stale) {
        struct queue_state next = *state;
        next.clients[number].dead = 1;
        search_goal(search, GOAL_DIED);
        search_step(search, &next, "%c dies", name_of(number));
    }
}

/* A WAIT that is a tick older; 0 if it does not matter any more. */
static unsigned older(unsigned wait, unsigned most) {
    return wait && wait < most ? wait + 1 : 0;
}

static void age_link(const struct queue_config *config, struct queue_link *link) {
    const unsigned entry = older(link->entry, config->stale ? config->stale : config->ttl);
    const bool kept = link->entry && config->bug == QUEUE_STALE_SERVED;
    link->sent = config->stale ? 0 : link->sent << 1 & ((1U << config->ttl) - 1);
    link->entry = entry || !kept ? entry : config->stale + 1;
    link->grant = older(link->grant, config->ttl);
    link->answered = older(link->answered, config->ttl);
}

/* The lease is over. A client that is dead sends no RELEASE. */
static void lose(struct queue_state *state, unsigned number) {
    if (!state->clients[number].dead) {
        end(state, number);
    }
    for (unsigned i = 0; i < QUEUE_NODES_MAX; i++) {
        state->clients[number].links[i].backs = 0;
    }
}

static void tick(const struct queue_config *config, const struct queue_state *state, struct search *search) {
    struct queue_state next = *state;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct queue_node *node = &next.nodes[i];
        node->left -= node->left > 0;
        node->owner = node->left ? node->owner : FREE;
    }
    for (unsigned i = 0; i < config->clients; i++) {
        struct queue_client *client = &next.clients[i];
        client->waited = 0;
        for (unsigned j = 0; j < config->nodes; j++) {
            const bool granted = client->links[j].grant;
            age_link(config, &client->links[j]);
            if (granted && !client->links[j].grant) {
                search_goal(search, GOAL_MISSED);
            }
        }
        if (client->dead && client->dead < config->stale + config->ttl + 1) {
            client->dead++;
        }
        if (client->left && --client->left == 0) {
            search_goal(search, GOAL_DEADLINE);
            lose(&next, i);
        }
    }
    search_step(search, &next, "a tick passes");
}

static void steps(const void *given, const void *from, struct search *search) {
    const struct queue_config *config = given;
    const struct queue_state *state = from;
    tick(config, state, search);
    for (unsigned i = 0; i < config->clients; i++) {
        step_client(config, state, i, search);
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        step_node(config, state, i, search);
    }
}

static const char *violation(const void *given, const void *from) {
    const struct queue_config *config = given;
    const struct queue_state *state = from;
    unsigned holders = 0;
    bool backed = true, kept = false;
    for (unsigned i = 0; i < config->clients; i++) {
        const struct queue_client *client = &state->clients[i];
        holders += client->left > 0;
        for (unsigned j = 0; j < config->nodes; j++) {
            const bool owned = state->nodes[j].owner == FIRST_OWNER + i;
            backed = backed && (!client->links[j].backs || owned);
            kept = kept || (owned && client->dead > config->stale + config->ttl);
        }
    }
    if (holders > 1) {
        return "two clients hold the lock at the same time";
    }
    if (!backed) {
        return "a holder counts on a node that does not have its key";
    }
    return kept ? "a node is kept by a client that died stale + ttl ago" : NULL;
}

const struct model queue_model = {
    .state_bytes = sizeof(struct queue_state),
    .key_words = queue_key_words,
    .initial = initial,
    .pack = queue_pack,
    .unpack = queue_unpack,
    .steps = steps,
    .violation = violation,
    .goals = goals,
    .expected = expected,
};
