/* The model of the fencing protocol. A message that is under way may run at any time or never; a
 * key may expire at any time; a client may stop or give up at any time. */
#include <string.h>

#include "fence_state.h"

enum goal { GOAL_FAST, GOAL_SLOW, GOAL_BEATEN, GOAL_ORDERED, GOAL_EXPIRED, GOAL_LATE_SET, GOAL_LATE_WRITE };

static const char *const goals[] = {
    [GOAL_FAST] = "fast path",
    [GOAL_SLOW] = "slow path",
    [GOAL_BEATEN] = "write-back beaten, then won",
    [GOAL_ORDERED] = "grant after a grant",
    [GOAL_EXPIRED] = "key expired before its attempt ended",
    [GOAL_LATE_SET] = "SET executed after its attempt ended",
    [GOAL_LATE_WRITE] = "write-back executed after its attempt ended",
    NULL,
};

static unsigned expected(const void *given) {
    const struct fence_config *config = given;
    const unsigned all = (1U << (GOAL_LATE_WRITE + 1)) - 1;
    return config->rounds > 1 ? all : all & ~(1U << GOAL_BEATEN);
}

static unsigned members(unsigned set) {
    unsigned count = 0;
    for (; set; set &= set - 1) {
        count++;
    }
    return count;
}

static unsigned client_of(const struct fence_config *config, unsigned number) {
    return (unsigned)(fence_client(config, number) - 'A');
}

static bool asks(const struct fence_config *config, unsigned number, unsigned node) {
    return setup_asks(&config->setups, client_of(config, number), node);
}

static unsigned quorum_of(const struct fence_config *config, unsigned number) {
    return setup_quorum(&config->setups, client_of(config, number), config->nodes);
}

static void initial(const void *config, void *state) {
    (void)config;
    memset(state, 0, sizeof(struct fence_state));
}

static void grant(const struct fence_config *config, struct fence_state *state, unsigned number, unsigned token,
                  struct search *search) {
    struct fence_try *try = &state->tries[number];
    for (unsigned i = 0; i < fence_tries(config); i++) {
        if (state->tries[i].phase == GRANTED && state->tries[i].target == token) {
            state->wrong = EQUAL_TOKENS;
        }
    }
    if (!state->wrong && token <= try->floor) {
        state->wrong = FALLING_TOKENS;
    }
    if (try->floor) {
        search_goal(search, GOAL_ORDERED);
    }
    try->phase = GRANTED;
    try->target = token;
}

static void begin(const struct fence_config *config, const struct fence_state *state, unsigned number,
                  unsigned proposal, struct search *search) {
    struct fence_state next = *state;
    struct fence_try *try = &next.tries[number];
    try->phase = ASKING;
    try->proposal = proposal;
    for (unsigned i = 0; i < fence_tries(config); i++) {
        if (state->tries[i].phase == GRANTED) {
            try->floor = larger(try->floor, state->tries[i].target);
        }
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        try->at[i].acquire = asks(config, number, i) ? ACQUIRE_SENT : ACQUIRE_OVER;
    }
    search_step(search, &next, "%c begins attempt %u and proposes %u", fence_client(config, number),
                fence_attempt(config, number), proposal);
}

/* Whether each earlier client has its tokens. */
static bool is_next(const struct fence_config *config, const struct fence_state *state, unsigned number) {
    for (unsigned i = 0; i < fence_tries(config); i++) {
        if (client_of(config, i) < client_of(config, number) && state->tries[i].phase != GRANTED) {
            return false;
        }
    }
    return true;
}

/* p = max(clock, highest seen + 1), where the clock may be anything. */
static void propose(const struct fence_config *config, const struct fence_state *state, unsigned number,
                    struct search *search) {
    unsigned highest = 0, everyone = 0;
    if (config->in_turn && !is_next(config, state, number)) {
        return;
    }
    for (unsigned i = 0; i < fence_tries(config); i++) {
        const unsigned used = larger(state->tries[i].proposal, state->tries[i].target);
        everyone = larger(everyone, used);
        if (i < number && fence_client(config, i) == fence_client(config, number)) {
            highest = larger(highest, used);
            if (state->tries[i].phase != GRANTED && state->tries[i].phase != OVER) {
                return; /* one after the other */
            }
        }
    }
    if (config->right_clocks) {
        begin(config, state, number, fence_next_number(config, number, everyone), search);
        return;
    }
    unsigned proposal = 0;
    bool any = false;
    for (unsigned i = 0; i < config->proposals; i++) {
        proposal = fence_next_number(config, number, proposal);
        if (proposal > highest) {
            begin(config, state, number, proposal, search);
            any = true;
        }
    }
    if (!any) {
        begin(config, state, number, fence_next_number(config, number, highest), search);
    }
}

/* The acquire script, one atomic step of a node: its answer, which carries the counter. */
static enum acquire acquire_script(const struct fence_config *config, struct fence_node *node, unsigned number,
                                   unsigned proposal) {
    if (node->lock != FREE) {
        return ACQUIRE_DENIED;
    }
    node->lock = number + 1;
    if (config->bug == FENCE_INCR) {
        node->counter++;
        return ACQUIRE_GRANTED;
    }
    if (proposal > node->counter || (config->bug == FENCE_ACCEPTS_EQUAL && proposal == node->counter)) {
        node->counter = proposal;
        return ACQUIRE_ACCEPTED;
    }
    return ACQUIRE_GRANTED;
}

static void execute_acquire(const struct fence_config *config, const struct fence_state *state, unsigned number,
                            unsigned at, struct search *search) {
    static const char *const says[] = {
        [ACQUIRE_DENIED] = "refuses", [ACQUIRE_GRANTED] = "grants", [ACQUIRE_ACCEPTED] = "grants and accepts"};
    struct fence_state next = *state;
    struct fence_try *try = &next.tries[number];
    const bool heard = try->phase == ASKING;
    const enum acquire answer = acquire_script(config, &next.nodes[at], number, try->proposal);
    const unsigned counter = next.nodes[at].counter;
    try->at[at].acquire = answer;
    if (heard) {
        try->at[at].counter = answer == ACQUIRE_ACCEPTED ? 0 : counter;
    } else if (answer != ACQUIRE_DENIED) {
        search_goal(search, GOAL_LATE_SET);
    }
    search_step(search, &next, "node %u reads the SET of %c's attempt %u and %s%s; its counter is %u", at + 1,
                fence_client(config, number), fence_attempt(config, number), says[answer],
                heard ? "" : ", too late to be heard", counter);
}

/* The write-back, one atomic step of a node. */
static void execute_write(const struct fence_config *config, const struct fence_state *state, unsigned number,
                          unsigned at, bool older, struct search *search) {
    struct fence_state next = *state;
    struct fence_try *try = &next.tries[number];
    struct fence_node *node = &next.nodes[at];
    struct fence_exchange *exchange = &try->at[at];
    const unsigned target = older ? try->older_target : try->target;
    const bool heard = !older && try->phase == WRITING;
    const bool unlocked = config->bug == FENCE_ACKS_UNLOCKED || config->bug == FENCE_ACKS_ANY;
    const bool equal = config->bug == FENCE_ACKS_EQUAL || config->bug == FENCE_ACKS_ANY;
    const bool raises =
        (node->lock == number + 1 || unlocked) && (node->counter < target || (equal && node->counter == target));
    if (raises) {
        node->counter = target;
    }
    if (older) {
        exchange->older = 0;
    } else {
        exchange->write = raises ? WRITE_ACKED : WRITE_REFUSED;
        exchange->counter = raises ? 0 : node->counter;
    }
    if (raises && try->phase != WRITING) {
        search_goal(search, GOAL_LATE_WRITE);
    }
    search_step(search, &next, "node %u reads %c's write-back of %u and %s%s; its counter is %u", at + 1,
                fence_client(config, number), target, raises ? "acknowledges" : "refuses",
                heard ? "" : " (too late to be heard)", node->counter);
}

/* What a client sends when a quorum has granted and not all accepted. It has heard the nodes in
 * `denied` refuse. */
static void write_back(const struct fence_config *config, struct fence_state *next, unsigned number, unsigned denied,
                       unsigned target) {
    struct fence_try *try = &next->tries[number];
    try->phase = WRITING;
    try->round = 1;
    try->target = target;
    for (unsigned i = 0; i < config->nodes; i++) {
        try->at[i].counter = 0;
        try->at[i].write = denied >> i & 1U || !asks(config, number, i) ? WRITE_NONE : WRITE_SENT;
    }
}

/* A number above the highest counter that it believes. It may take any counter that it heard for a
 * lie, and ignore it. */
static void begin_write(const struct fence_config *config, const struct fence_state *state, unsigned number,
                        unsigned granted, unsigned denied, struct search *search) {
    const struct fence_try *try = &state->tries[number];
    for (unsigned i = 0; i <= config->nodes; i++) {
        const bool heard = i < config->nodes && (granted | denied) >> i & 1U;
        const unsigned believed = heard ? try->at[i].counter : try->proposal;
        if (believed < try->proposal || (i < config->nodes && !heard)) {
            continue;
        }
        struct fence_state next = *state;
        write_back(config, &next, number, denied, fence_next_number(config, number, believed));
        search_step(search, &next, "%c heard a quorum grant, not all accept: it writes back %u",
                    fence_client(config, number), next.tries[number].target);
    }
}

/* The client has heard a quorum of GRANTED, and some refusals. */
static void conclude(const struct fence_config *config, const struct fence_state *state, unsigned number,
                     unsigned granted, unsigned denied, struct search *search) {
    struct fence_state next = *state;
    const struct fence_try *try = &state->tries[number];
    const char who = fence_client(config, number);
    bool accepted = true;
    unsigned highest = config->bug == FENCE_INCR ? 0 : try->proposal;
    for (unsigned i = 0; i < config->nodes; i++) {
        if (granted >> i & 1U) {
            accepted = accepted && try->at[i].acquire == ACQUIRE_ACCEPTED;
        }
        if ((granted | (config->bug == FENCE_INCR ? 0 : denied)) >> i & 1U) {
            highest = larger(highest, try->at[i].counter);
        }
    }
    if (config->bug == FENCE_INCR) {
        grant(config, &next, number, highest, search);
        search_step(search, &next, "%c heard a quorum grant: it HOLDS with fencing token %u, the highest", who,
                    highest);
    } else if (accepted) {
        search_goal(search, GOAL_FAST);
        grant(config, &next, number, try->proposal, search);
        search_step(search, &next, "%c heard a quorum accept: it HOLDS with fencing token %u", who, try->proposal);
    } else if (config->bug == FENCE_NO_WRITE_BACK) {
        grant(config, &next, number, fence_next_number(config, number, highest), search);
        search_step(search, &next, "%c heard a quorum grant: it HOLDS with fencing token %u, the highest + 1", who,
                    next.tries[number].target);
    } else {
        begin_write(config, state, number, granted, denied, search);
    }
}

static void hear_acquire(const struct fence_config *config, const struct fence_state *state, unsigned number,
                         struct search *search) {
    const struct fence_try *try = &state->tries[number];
    unsigned granted = 0, denied = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        granted |= (unsigned)(try->at[i].acquire >= ACQUIRE_GRANTED) << i;
        denied |= (unsigned)(try->at[i].acquire == ACQUIRE_DENIED) << i;
    }
    /* It decides at the quorum-th GRANTED (R5). It may or may not have heard the other answers by
     * then. */
    for (unsigned heard = granted; heard; heard = (heard - 1) & granted) {
        if (members(heard) != quorum_of(config, number)) {
            continue;
        }
        for (unsigned refused = denied;; refused = (refused - 1) & denied) {
            conclude(config, state, number, heard, refused, search);
            if (!refused) {
                break;
            }
        }
    }
}

/* The client has heard these refusals of its write-back, and writes a higher number. */
static void write_again(const struct fence_config *config, const struct fence_state *state, unsigned number,
                        unsigned refused, struct search *search) {
    struct fence_state next = *state;
    struct fence_try *try = &next.tries[number];
    unsigned highest = try->target;
    for (unsigned i = 0; i < config->nodes; i++) {
        if (refused >> i & 1U) {
            highest = larger(highest, try->at[i].counter);
        }
        try->at[i].counter = 0;
        try->at[i].older = try->at[i].write == WRITE_SENT;
        try->at[i].write = try->at[i].write == WRITE_NONE ? WRITE_NONE : WRITE_SENT;
    }
    try->older_target = try->target;
    try->target = fence_next_number(config, number, highest);
    try->round++;
    search_step(search, &next, "%c heard a refusal: it writes back %u", fence_client(config, number), try->target);
}

static void hear_write(const struct fence_config *config, const struct fence_state *state, unsigned number,
                       struct search *search) {
    const struct fence_try *try = &state->tries[number];
    unsigned acked = 0, refused = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        acked |= (unsigned)(try->at[i].write == WRITE_ACKED) << i;
        refused |= (unsigned)(try->at[i].write == WRITE_REFUSED) << i;
    }
    if (members(acked) >= quorum_of(config, number)) {
        struct fence_state next = *state;
        search_goal(search, try->round > 1 ? GOAL_BEATEN : GOAL_SLOW);
        grant(config, &next, number, try->target, search);
        search_step(search, &next, "%c heard a quorum acknowledge: it HOLDS with fencing token %u",
                    fence_client(config, number), try->target);
    }
    if (try->round < config->rounds) {
        for (unsigned heard = refused; heard; heard = (heard - 1) & refused) {
            write_again(config, state, number, heard, search);
        }
    }
}

static void step_client(const struct fence_config *config, const struct fence_state *state, unsigned number,
                        struct search *search) {
    const enum phase phase = state->tries[number].phase;
    if (phase == UNUSED) {
        propose(config, state, number, search);
    } else if (phase == ASKING) {
        hear_acquire(config, state, number, search);
    } else if (phase == WRITING) {
        hear_write(config, state, number, search);
    }
    if (phase == ASKING || phase == WRITING) {
        struct fence_state next = *state;
        next.tries[number].phase = OVER;
        search_step(search, &next, "%c gives attempt %u up", fence_client(config, number),
                    fence_attempt(config, number));
    }
}

static void expire(const struct fence_config *config, const struct fence_state *state, unsigned at,
                   struct search *search) {
    struct fence_state next = *state;
    const unsigned lock = state->nodes[at].lock;
    next.nodes[at].lock = FREE;
    if (lock == LEFT_BEHIND) {
        search_step(search, &next, "node %u: the key that was left behind expires", at + 1);
        return;
    }
    const enum phase phase = state->tries[lock - 1].phase;
    if (phase == ASKING || phase == WRITING) {
        search_goal(search, GOAL_EXPIRED);
    }
    search_step(search, &next, "node %u: the key of %c's attempt %u expires", at + 1, fence_client(config, lock - 1),
                fence_attempt(config, lock - 1));
}

static void step_node(const struct fence_config *config, const struct fence_state *state, unsigned at,
                      struct search *search) {
    for (unsigned i = 0; i < fence_tries(config); i++) {
        const struct fence_exchange *exchange = &state->tries[i].at[at];
        if (exchange->acquire == ACQUIRE_SENT) {
            execute_acquire(config, state, i, at, search);
        }
        if (exchange->write == WRITE_SENT) {
            execute_write(config, state, i, at, false, search);
        }
        if (exchange->older) {
            execute_write(config, state, i, at, true, search);
        }
    }
    if (state->nodes[at].lock != FREE) {
        expire(config, state, at, search);
    }
    if (state->losses < config->losses && state->nodes[at].counter) {
        struct fence_state next = *state;
        next.losses++;
        next.nodes[at] = (struct fence_node){0};
        search_step(search, &next, "node %u restarts and has forgotten its key and its counter", at + 1);
    }
}

static void steps(const void *given, const void *from, struct search *search) {
    const struct fence_config *config = given;
    const struct fence_state *state = from;
    for (unsigned i = 0; i < fence_tries(config); i++) {
        step_client(config, state, i, search);
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        step_node(config, state, i, search);
    }
}

static const char *violation(const void *config, const void *state) {
    (void)config;
    switch ((enum wrong)((const struct fence_state *)state)->wrong) {
    case NOTHING_WRONG:
        return NULL;
    case EQUAL_TOKENS:
        return "two grants have one fencing token";
    case FALLING_TOKENS:
        return "a grant that began after another had returned has a lower fencing token";
    }
    return NULL;
}

const struct model fence_model = {
    .state_bytes = sizeof(struct fence_state),
    .key_words = fence_key_words,
    .initial = initial,
    .pack = fence_pack,
    .unpack = fence_unpack,
    .steps = steps,
    .violation = violation,
    .goals = goals,
    .expected = expected,
};
