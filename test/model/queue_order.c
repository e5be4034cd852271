/* The model of the order in a queue: who comes after whom, without faults. There is no time. A node
 * executes what a client sends in the order in which it was sent, however late. A key that is free
 * was released. */
#include <assert.h>
#include <string.h>

#include "queue_order_state.h"

enum goal {
    GOAL_HANDED,
    GOAL_TAKEN,
    GOAL_DUE,
    GOAL_WON_QUEUED,
    GOAL_SPLIT,
    GOAL_YIELDED,
    GOAL_WON_TRY,
    GOAL_LOST_TRY,
    GOAL_GHOST,
    GOAL_GHOST_SERVED,
    GOAL_GHOST_TOOK
};

static const char *const goals[] = {
    [GOAL_HANDED] = "lock handed over",
    [GOAL_TAKEN] = "free lock taken by a WAIT",
    [GOAL_DUE] = "began when an earlier one was queued on a quorum",
    [GOAL_WON_QUEUED] = "held by a queued client",
    [GOAL_SPLIT] = "yield that gives a lock to a third one",
    [GOAL_YIELDED] = "yield",
    [GOAL_WON_TRY] = "held by a try",
    [GOAL_LOST_TRY] = "lost try that had a node",
    [GOAL_GHOST] = "WAIT executed after its RELEASE: queued",
    [GOAL_GHOST_SERVED] = "the same, served: its push is answered by RELEASE",
    [GOAL_GHOST_TOOK] = "WAIT executed after its RELEASE: took a free lock, no push",
    NULL,
};

static unsigned expected(const void *given) {
    const struct order_config *config = given;
    unsigned all = (1U << (GOAL_GHOST_TOOK + 1)) - 1;
    if (!config->tries) {
        all &= ~(1U << GOAL_WON_TRY | 1U << GOAL_LOST_TRY);
    }
    if (!config->breaks) {
        all &= ~(1U << GOAL_GHOST | 1U << GOAL_GHOST_SERVED | 1U << GOAL_GHOST_TOOK);
    }
    return all;
}

static char name_of(unsigned client) {
    return (char)('A' + client);
}

static void initial(const void *given, void *to) {
    const struct order_config *config = given;
    struct order_state *state = to;
    memset(state, 0, sizeof(*state));
    for (unsigned i = 0; i < config->nodes; i++) {
        state->nodes[i].owner = FIRST_HOLDER;
    }
}

static void send(struct order_link *link, enum request request) {
    unsigned shift = 0;
    while (link->requests >> shift) {
        shift += REQUEST_BITS;
    }
    assert(shift < REQUESTS_MAX * REQUEST_BITS);
    link->requests |= (unsigned)request << shift;
}

static void send_all(const struct order_config *config, struct order_client *client, enum request request) {
    for (unsigned i = 0; i < config->nodes; i++) {
        send(&client->links[i], request);
    }
}

/* The client gives its token up. */
static void give_up(const struct order_config *config, struct order_client *client, enum request release) {
    send_all(config, client, release);
    for (unsigned i = 0; i < config->nodes; i++) {
        client->links[i].late = client->links[i].late ? LATE_GHOST : LATE_NONE;
    }
}

/* The node gives its key to the first in its queue, or deletes it. Returns whom it serves, or
 * `waiters`. */
static unsigned serve(const struct order_config *config, struct order_state *state, unsigned at,
                      struct search *search) {
    struct order_node *node = &state->nodes[at];
    unsigned first = config->waiters;
    for (unsigned i = 0; i < config->waiters; i++) {
        if (state->clients[i].links[at].entries && (first == config->waiters || order_is_before(state, i, first))) {
            first = i;
        }
    }
    *node = (struct order_node){.owner = FREE};
    if (first < config->waiters) {
        struct order_link *link = &state->clients[first].links[at];
        node->owner = FIRST_OWNER + first;
        node->ghost = (link->entries & GHOST) != 0;
        link->entries &= node->ghost ? ENTRY : 0;
        if (node->ghost) {
            search_goal(search, GOAL_GHOST_SERVED);
        }
    }
    return first;
}

static const char *whom(const struct order_config *config, unsigned number) {
    static const char *const names[] = {"A", "B", "C"};
    return number < config->waiters ? names[number] : "nobody";
}

static void begin(const struct order_config *config, const struct order_state *state, unsigned number, bool tries,
                  bool slow, struct search *search) {
    struct order_state next = *state;
    struct order_client *client = &next.clients[number];
    client->phase = tries ? TRYING : QUEUED;
    client->slow = slow;
    for (unsigned i = 0; i < number; i++) {
        const unsigned places = order_queued_by(config, &state->clients[i]) + order_owned_by(config, state, i);
        if (state->clients[i].phase == QUEUED && places >= order_quorum(config)) {
            client->due |= 1U << i;
            search_goal(search, GOAL_DUE);
        }
    }
    send_all(config, client, tries ? SET : TAKE);
    search_step(search, &next, "%c begins%s and sends %s to all nodes", name_of(number),
                slow ? ", by a slow clock," : "", tries ? "SET" : "WAIT");
}

static void hold(const struct order_config *config, const struct order_state *state, unsigned number,
                 struct search *search) {
    struct order_state next = *state;
    if (order_owned_by(config, state, number) < order_quorum(config)) {
        return;
    }
    search_goal(search, state->clients[number].phase == TRYING ? GOAL_WON_TRY : GOAL_WON_QUEUED);
    next.clients[number].phase = HELD;
    next.wrong = state->clients[number].due ? PASSED_OVER : state->wrong;
    for (unsigned i = 0; i < config->waiters; i++) {
        next.clients[i].due &= ~(1U << number);
    }
    search_step(search, &next, "%c counts a quorum: it HOLDS", name_of(number));
}

/* So many nodes refused that the others are no quorum. */
static void lose_try(const struct order_config *config, const struct order_state *state, unsigned number,
                     struct search *search) {
    unsigned open = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        open += state->nodes[i].owner == FIRST_OWNER + number || state->clients[number].links[i].requests;
    }
    if (open >= order_quorum(config)) {
        return;
    }
    if (order_owned_by(config, state, number)) {
        search_goal(search, GOAL_LOST_TRY);
    }
    struct order_state next = *state;
    struct order_client *client = &next.clients[number];
    client->phase = QUEUED;
    give_up(config, client, config->bug == ORDER_TRY_KEEPS ? KEEP : RELEASE);
    send_all(config, client, config->bug == ORDER_ENTERS ? ENTER : TAKE);
    search_step(search, &next, "%c loses its try and sends RELEASE and WAIT to all nodes", name_of(number));
}

/* A yield leaves the place in all queues until its WAIT is executed. If another token has a quorum,
 * the yield hands over to nobody. */
static void yield(const struct order_config *config, const struct order_state *state, unsigned number, bool keeps,
                  struct search *search) {
    struct order_state next = *state;
    give_up(config, &next.clients[number], keeps ? KEEP : RELEASE);
    send_all(config, &next.clients[number], keeps && config->bug == ORDER_ENTERS ? ENTER : TAKE);
    for (unsigned i = 0; i < config->waiters && config->bug != ORDER_OVER_YIELDS; i++) {
        next.clients[i].due &= ~(1U << number);
    }
    search_goal(search, GOAL_YIELDED);
    search_step(search, &next, "%c yields: RELEASE%s and WAIT under a fresh token to all nodes", name_of(number),
                keeps ? ", to nobody," : "");
}

static void step_queued(const struct order_config *config, const struct order_state *state, unsigned number,
                        struct search *search) {
    hold(config, state, number, search);
    if (order_owned_by(config, state, number) >= order_quorum(config) ||
        !order_is_idle(config, &state->clients[number])) {
        return;
    }
    if (order_waits_again(config, state, number)) {
        struct order_state next = *state;
        send_all(config, &next.clients[number], TAKE);
        search_step(search, &next, "%c sends WAIT again to all nodes", name_of(number));
    }
    const enum yields why = order_yields(config, state, number);
    if (why != YIELDS_NOT) {
        yield(config, state, number, why == YIELDS_TO_QUORUM, search);
    }
}

static void step_client(const struct order_config *config, const struct order_state *state, unsigned number,
                        struct search *search) {
    const struct order_client *client = &state->clients[number];
    struct order_state next = *state;
    switch ((enum phase)client->phase) {
    case OUT:
        for (unsigned slow = 0; slow < (config->bug == ORDER_OWN_CLOCK ? 2 : 1); slow++) {
            begin(config, state, number, number + config->tries >= config->waiters, slow, search);
        }
        return;
    case TRYING:
        hold(config, state, number, search);
        lose_try(config, state, number, search);
        return;
    case QUEUED:
        step_queued(config, state, number, search);
        return;
    case HELD:
        next.clients[number].phase = ENDED;
        give_up(config, &next.clients[number], RELEASE);
        search_step(search, &next, "%c sends RELEASE to all nodes", name_of(number));
        return;
    case ENDED:
        return;
    }
}

static void execute_wait(const struct order_config *config, struct order_state *next, unsigned number, unsigned at,
                         bool takes, const char *what, struct search *search) {
    struct order_node *node = &next->nodes[at];
    if (node->owner != FIRST_OWNER + number || node->ghost) {
        next->clients[number].links[at].entries |= ENTRY;
    }
    const bool free = node->owner == FREE && takes;
    const unsigned served = free ? serve(config, next, at, search) : config->waiters;
    if (free) {
        search_goal(search, GOAL_TAKEN);
    }
    search_step(search, next, "node %u reads %c's %s%s%s", at + 1, name_of(number), what,
                free ? " and grants the lock to " : "", free ? whom(config, served) : "");
}

static void execute_release(const struct order_config *config, struct order_state *next, unsigned number, unsigned at,
                            bool keeps, struct search *search) {
    struct order_link *link = &next->clients[number].links[at];
    const struct order_node *node = &next->nodes[at];
    const bool ours = node->owner == FIRST_OWNER + number && !node->ghost;
    if (config->bug == ORDER_STAYS_QUEUED && link->entries & ENTRY) {
        next->wrong = STILL_QUEUED;
    } else {
        link->entries &= ~(unsigned)ENTRY;
    }
    unsigned served = config->waiters;
    if (ours && keeps) {
        next->nodes[at] = (struct order_node){.owner = FREE};
    } else if (ours) {
        served = serve(config, next, at, search);
        search_goal(search, served < config->waiters ? GOAL_HANDED : GOAL_TAKEN);
        if (served < config->waiters && next->clients[number].phase == QUEUED) {
            search_goal(search, GOAL_SPLIT);
        }
    }
    search_step(search, next, "node %u reads %c's RELEASE%s%s", at + 1, name_of(number),
                ours ? " and gives the lock to " : "", ours ? whom(config, served) : "");
}

static void execute(const struct order_config *config, const struct order_state *state, unsigned number, unsigned at,
                    struct search *search) {
    struct order_state next = *state;
    struct order_link *link = &next.clients[number].links[at];
    const enum request request = (enum request)(link->requests & REQUEST_MASK);
    link->requests >>= REQUEST_BITS;
    const bool free = next.nodes[at].owner == FREE;
    switch (request) {
    case SET:
        if (free) {
            next.nodes[at].owner = FIRST_OWNER + number;
        }
        search_step(search, &next, "node %u reads %c's SET and %s", at + 1, name_of(number),
                    free ? "grants" : "refuses");
        return;
    case ENTER:
        execute_wait(config, &next, number, at, false, "WAIT, which takes no free lock", search);
        return;
    case TAKE:
        execute_wait(config, &next, number, at, true, "WAIT", search);
        return;
    case RELEASE:
    case KEEP:
        execute_release(config, &next, number, at, request == KEEP, search);
        return;
    case NONE:
        return;
    }
}

/* A connection breaks when a WAIT is next on it: the node may execute that WAIT at any later time.
 * The client sends what comes after it on a new connection. */
static void leave_behind(const struct order_config *config, const struct order_state *state, unsigned number,
                         unsigned at, struct search *search) {
    struct order_state next = *state;
    struct order_link *link = &next.clients[number].links[at];
    if (state->breaks == config->breaks || link->late || (link->requests & REQUEST_MASK) != TAKE) {
        return;
    }
    link->requests >>= REQUEST_BITS;
    link->late = order_releases(link) ? LATE_GHOST : LATE_PRESENT;
    next.breaks++;
    search_step(search, &next, "%c's connection to node %u breaks, with its WAIT on the way", name_of(number), at + 1);
}

static void execute_late(const struct order_config *config, const struct order_state *state, unsigned number,
                         unsigned at, struct search *search) {
    struct order_state next = *state;
    struct order_link *link = &next.clients[number].links[at];
    const bool released = link->late == LATE_GHOST && !order_releases(link);
    link->late = LATE_NONE;
    if (!released) {
        execute_wait(config, &next, number, at, true, "WAIT on an old connection", search);
        return;
    }
    link->entries |= GHOST;
    search_goal(search, GOAL_GHOST);
    if (next.nodes[at].owner == FREE) {
        const unsigned served = serve(config, &next, at, search);
        search_goal(search, served == number && next.nodes[at].ghost ? GOAL_GHOST_TOOK : GOAL_TAKEN);
    }
    search_step(search, &next, "node %u reads %c's WAIT on an old connection, after its RELEASE", at + 1,
                name_of(number));
}

/* The RELEASE that answers a push for a token that its client has given up, or that the client
 * still owes the node. */
static void release_ghost(const struct order_config *config, const struct order_state *state, unsigned at,
                          struct search *search) {
    struct order_state next = *state;
    const unsigned served = serve(config, &next, at, search);
    search_step(search, &next, "node %u reads the RELEASE that answers its push to %c, and gives the lock to %s",
                at + 1, name_of(state->nodes[at].owner - FIRST_OWNER), whom(config, served));
}

static void step_node(const struct order_config *config, const struct order_state *state, unsigned at,
                      struct search *search) {
    for (unsigned i = 0; i < config->waiters; i++) {
        const struct order_link *link = &state->clients[i].links[at];
        if (link->requests) {
            execute(config, state, i, at, search);
            leave_behind(config, state, i, at, search);
        }
        if (link->late) {
            execute_late(config, state, i, at, search);
        }
    }
    if (state->nodes[at].owner == FIRST_HOLDER) {
        struct order_state next = *state;
        const unsigned served = serve(config, &next, at, search);
        search_goal(search, GOAL_HANDED);
        search_step(search, &next, "node %u reads the RELEASE of the first holder and gives the lock to %s", at + 1,
                    whom(config, served));
    } else if (state->nodes[at].ghost && config->bug != ORDER_UNANSWERED) {
        release_ghost(config, state, at, search);
    }
}

/* Clients are named in the order in which they begin. */
static void steps(const void *given, const void *from, struct search *search) {
    const struct order_config *config = given;
    const struct order_state *state = from;
    for (unsigned i = 0; i < config->waiters; i++) {
        if (i == 0 || state->clients[i - 1].phase != OUT) {
            step_client(config, state, i, search);
        }
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        step_node(config, state, i, search);
    }
}

static const char *violation(const void *given, const void *from) {
    const struct order_config *config = given;
    const struct order_state *state = from;
    unsigned holders = 0;
    for (unsigned i = 0; i < config->waiters; i++) {
        holders += state->clients[i].phase == HELD;
    }
    if (holders > 1) {
        return "two clients hold the lock at the same time";
    }
    switch ((enum wrong)state->wrong) {
    case NOTHING_WRONG:
        break;
    case STILL_QUEUED:
        return "a token is queued at a node that has executed its RELEASE";
    case PASSED_OVER:
        return "a client holds the lock that began when an earlier one was queued on a quorum";
    }
    return order_is_stuck(config, state) ? "clients wait, and nothing will end that" : NULL;
}

const struct model order_model = {
    .state_bytes = sizeof(struct order_state),
    .key_words = order_key_words,
    .initial = initial,
    .pack = order_pack,
    .unpack = order_unpack,
    .steps = steps,
    .violation = violation,
    .goals = goals,
    .expected = expected,
};
