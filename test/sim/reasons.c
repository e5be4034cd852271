/* The checker of reasons: what an acquire says when it ends without the lock is true of the nodes
 * (R13; docs/algorithm.md). It counts what nodes did and what reached the client, not votes. */
#include "core/time.h"
#include "faults.h"
#include "parts.h"

static struct sim_ask *ask_of(struct sim_world *world, uint32_t number) {
    const bool kept = number != 0 && number <= world->ask_count && world->ask_count - number < SIM_ASKS_MAX;
    return kept ? &world->asks[number % SIM_ASKS_MAX] : NULL;
}

/* The last round of this acquire before `number`; 0: none. */
static uint32_t before(struct sim_world *world, const struct sim_call *call, uint32_t number) {
    for (uint32_t i = number - 1; ask_of(world, i) != NULL; i--) {
        const struct sim_ask *ask = ask_of(world, i);
        if (ask->owner == call->request && ask->client == call->client->index) {
            return ask->sent_ns >= call->asked_ns ? i : 0;
        }
    }
    return 0;
}

/* The same round again, by the source of its script: the node has told nothing yet. */
static bool repeats(struct sim_world *world, const struct redlock_message *message, redlock_nodes taken,
                    struct sim_bytes *bytes) {
    for (uint32_t i = world->ask_count; message->by_source && ask_of(world, i) != NULL; i--) {
        struct sim_ask *ask = ask_of(world, i);
        if (ask->owner == message->requester && ask->round == message->round) {
            ask->over &= ~taken;
            bytes->ask = i;
            return true;
        }
    }
    return false;
}

/* What comes later does not count: the token is released, or asked for anew. Returns when the first
 * request with it was sent, from which its ttl counts; now_ns if there was none. */
static int64_t give_up(struct sim_client *client, const char *token, int64_t now_ns) {
    struct sim_world *world = client->world;
    int64_t start_ns = now_ns;
    for (uint32_t i = world->ask_count; ask_of(world, i) != NULL; i--) {
        struct sim_ask *ask = ask_of(world, i);
        if (!sim_token_is(ask->token, token)) {
            continue;
        }
        start_ns = ask->start_ns < start_ns ? ask->start_ns : start_ns;
        if (!ask->given_up) {
            ask->given_up = true;
            ask->given_up_ns = sim_client_now(client);
        }
    }
    return start_ns;
}

void sim_reason_sent(struct sim_client *client, const struct redlock_message *message, redlock_nodes nodes,
                     redlock_nodes taken, struct sim_bytes *bytes) {
    struct sim_world *world = client->world;
    const uint8_t operation = bytes->operation;
    if (operation == REDLOCK_OP_RELEASE) {
        (void)give_up(client, bytes->token, message->now_ns);
    }
    const bool asks = operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_WAIT || operation == REDLOCK_OP_FENCE;
    if (!asks || repeats(world, message, taken, bytes)) {
        return;
    }
    const int64_t start_ns = give_up(client, bytes->token, message->now_ns);
    bytes->ask = ++world->ask_count;
    struct sim_ask *ask = &world->asks[bytes->ask % SIM_ASKS_MAX];
    *ask = (struct sim_ask){.owner = message->requester,
                            .client = (uint8_t)client->index,
                            .operation = operation,
                            .round = message->round,
                            .start_ns = start_ns,
                            .sent_ns = client->step_ns,
                            .asked = nodes,
                            .over = nodes & ~taken};
    memcpy(ask->token, bytes->token, sizeof ask->token);
}

/* The node has executed the request. */
void sim_reason_executed(struct sim_world *world, unsigned node, const struct sim_bytes *bytes,
                         struct sim_reply *reply) {
    if (bytes->ask == 0) {
        return;
    }
    const struct fake_reply *fake = &reply->fake;
    const bool tries = bytes->operation == REDLOCK_OP_ACQUIRE;
    /* To SET with GET, that says that others read the lock. */
    const bool read = tries && fake->type == REDLOCK_REPLY_ERROR && memcmp(fake->bytes, "WRONGTYPE", 9) == 0;
    const bool is_free = sim_key_at(world, node, bytes->resource, "") == NULL;
    if (!read && (fake->type == REDLOCK_REPLY_ERROR || fake->type == REDLOCK_REPLY_OTHER)) {
        reply->did = SIM_DID_NOTHING;
    } else if (is_free && !(tries && bytes->reads)) { /* a reader is denied, too */
        reply->did = SIM_DID_LEAVE_FREE;
    } else {
        reply->did = sim_node_has(world, node, bytes->resource, bytes->token) ? SIM_DID_GIVE : SIM_DID_DENY;
    }
}

void sim_reason_answered(struct sim_client *client, unsigned node, const struct sim_bytes *bytes,
                         const struct sim_reply *reply) {
    struct sim_ask *ask = ask_of(client->world, bytes->ask);
    if (ask == NULL || ask->given_up || ((ask->over | ask->answered) & REDLOCK_NODE(node)) != 0) {
        return;
    }
    ask->over |= reply->did == SIM_DID_NOTHING ? REDLOCK_NODE(node) : 0;
    ask->answered |= reply->did != SIM_DID_NOTHING ? REDLOCK_NODE(node) : 0;
    ask->given |= reply->did == SIM_DID_GIVE ? REDLOCK_NODE(node) : 0;
    ask->foreign |= reply->did == SIM_DID_DENY ? REDLOCK_NODE(node) : 0;
}

void sim_reason_over(struct sim_client *client, unsigned node, const struct sim_bytes *bytes) {
    struct sim_ask *ask = ask_of(client->world, bytes->ask);
    if (ask != NULL && !ask->given_up && (ask->answered & REDLOCK_NODE(node)) == 0) {
        ask->over |= REDLOCK_NODE(node);
    }
}

static unsigned pending(const struct sim_ask *ask) {
    return redlock_nodes_count(ask->asked & ~(ask->answered | ask->over));
}

/* Answers that came to what was asked then may not count where a guard is on: the run or the clock
 * of the node was new, or has changed since. */
static redlock_nodes doubtful(const struct sim_world *world, int64_t asked_ns) {
    redlock_nodes nodes = 0;
    const int64_t quarantine_ns = 3 * world->profile.guarded_ttl_max_ms * SIM_MS + 4000 * SIM_MS;
    for (unsigned i = 0; i < world->profile.nodes && sim_is_guarded(world); i++) {
        const struct sim_node *node = &world->nodes[i];
        const bool is_new = asked_ns - node->began_ns < quarantine_ns;
        const bool stepped = node->stepped.off_ns != 0 || asked_ns - node->stepped_ns < quarantine_ns;
        nodes |= is_new || stepped ? REDLOCK_NODE(i) : 0;
    }
    return nodes;
}

/* What a round shows: `sure` leaves out answers that may not have counted. */
struct view {
    unsigned quorum, answered, sure, given, pending;
};

static struct view view_of(const struct sim_world *world, const struct sim_ask *ask) {
    const redlock_nodes sure = ~doubtful(world, ask->sent_ns);
    return (struct view){.quorum = sim_quorum_of(world, ask->client),
                         .answered = redlock_nodes_count(ask->answered),
                         .sure = redlock_nodes_count(ask->answered & sure),
                         .given = redlock_nodes_count(ask->given & sure),
                         .pending = pending(ask)};
}

/* CONTENDED: enough nodes answered, and too few gave the lock. */
static bool is_true(const struct view *view, int code) {
    return code == REDLOCK_ERR_CONTENDED ? view->answered >= view->quorum && view->given < view->quorum
                                         : view->sure < view->quorum;
}

/* Pending nodes may still decide the round, or its reason (R5); of the answers, so many count. */
static bool is_open(const struct view *view, unsigned counted) {
    return view->given + view->pending >= view->quorum ||
           (counted < view->quorum && counted + view->pending >= view->quorum);
}

/* Whether the time of this round was over when it ended, by the clock of its client. A place in a
 * queue has no deadline. */
static bool is_over(const struct sim_call *call, const struct sim_ask *ask) {
    const int64_t now_ns = ask->given_up ? ask->given_up_ns : sim_client_now(call->client);
    const int64_t deadline_ns = ask->start_ns + (call->ttl_ms - redlock_drift_ms(call->ttl_ms)) * SIM_MS;
    return (now_ns >= deadline_ns && ask->operation != REDLOCK_OP_WAIT) ||
           (call->wait_ms > 0 && now_ns >= call->asked_local_ns + call->wait_ms * SIM_MS);
}

/* The last round that was decided, or ended with its time, says so. */
static bool is_reason(struct sim_world *world, const struct sim_call *call, int code) {
    uint32_t number = before(world, call, world->ask_count + 1);
    const redlock_nodes all = redlock_nodes_all(sim_nodes_of(world, call->client->index));
    /* Where a guard keeps too many nodes from voting, a round asks nobody. */
    if (code == REDLOCK_ERR_NO_QUORUM &&
        redlock_nodes_count(all & ~doubtful(world, call->asked_ns)) < sim_quorum_of(world, call->client->index)) {
        return true;
    }
    for (const struct sim_ask *ask; (ask = ask_of(world, number)) != NULL; number = before(world, call, number)) {
        const struct view view = view_of(world, ask);
        const bool contended = code == REDLOCK_ERR_CONTENDED, waits = ask->operation == REDLOCK_OP_WAIT;
        const bool over = is_over(call, ask);
        const bool may_refuse = world->profile.refusing != 0 || world->profile.unopened != 0 ||
                                (world->profile.faults & (1U << SIM_FAULT_ACL | 1U << SIM_FAULT_UNOPENED)) != 0;
        /* A WAIT may be asked again, or yield, or end because nodes cannot keep a queue. What came
         * before it stands. */
        const bool left = waits && ask->given_up && (!over || may_refuse);
        const bool open = is_open(&view, contended ? view.answered : view.sure);
        if (is_true(&view, code) && (!open || over || left || (contended && waits))) {
            return true;
        }
        if (!left && !is_open(&view, view.answered) && !is_open(&view, view.sure)) {
            return false;
        }
    }
    return false;
}

/* In some round of this acquire, a quorum answered, and others had the lock at so many of these
 * nodes that the rest was none. Between two holders, the last round may find it free. */
static bool was_held(struct sim_world *world, const struct sim_call *call) {
    const redlock_nodes sure = ~doubtful(world, call->asked_ns);
    uint32_t number = before(world, call, world->ask_count + 1);
    for (const struct sim_ask *ask; (ask = ask_of(world, number)) != NULL; number = before(world, call, number)) {
        const struct view view = view_of(world, ask);
        /* A node may keep a lock that is free from a waiter: left free, or held elsewhere. */
        const redlock_nodes kept = ask->operation == REDLOCK_OP_WAIT ? ask->answered & ~ask->given : ask->foreign;
        if (view.answered >= view.quorum && redlock_nodes_count(ask->answered & ~kept & sure) < view.quorum) {
            return true;
        }
    }
    return false;
}

/* A fencing token may have been refused: then counters matter, too, and which of them are lies. */
static bool was_fenced(struct sim_world *world, const struct sim_call *call) {
    const unsigned quorum = sim_quorum_of(world, call->client->index);
    const bool lies = (world->profile.faults >> SIM_FAULT_LIE & 1) != 0;
    uint32_t number = call->fencing ? before(world, call, world->ask_count + 1) : 0;
    for (const struct sim_ask *ask; (ask = ask_of(world, number)) != NULL; number = before(world, call, number)) {
        if (lies || ask->operation == REDLOCK_OP_FENCE || redlock_nodes_count(ask->given) >= quorum) {
            return true;
        }
    }
    return false;
}

static void trace(struct sim_world *world, const struct sim_call *call) {
    uint32_t number = before(world, call, world->ask_count + 1);
    for (; number != 0; number = before(world, call, number)) {
        const struct sim_ask *ask = ask_of(world, number);
        SIM_TRACE(world, "client %u: round %u, %.3f ms ago: asked %#x, answered %#x, gave %#x, others' %#x, over %#x%s",
                  call->client->index, ask->round, (double)(call->client->step_ns - ask->sent_ns) / 1e6, ask->asked,
                  ask->answered, ask->given, ask->foreign, ask->over, ask->given_up ? ", given up" : "");
    }
}

void sim_reason_check(const struct sim_call *call, int code) {
    struct sim_world *world = call->client->world;
    const struct sim_ask *last = ask_of(world, before(world, call, world->ask_count + 1));
    if ((code != REDLOCK_ERR_CONTENDED && code != REDLOCK_ERR_NO_QUORUM) || last == NULL || was_fenced(world, call)) {
        return;
    }
    const bool holds = is_reason(world, call, code);
    /* Reckless nodes drop locks. */
    const bool held = code != REDLOCK_ERR_CONTENDED || world->profile.trust == SIM_RECKLESS || was_held(world, call);
    if (holds && held) {
        return;
    }
    trace(world, call);
    sim_violation(world, "reason",
                  "client %u: an acquire of '%s' ends with %s, but %s; in its last round, nodes %#x answered, %#x gave "
                  "the lock, at %#x others had it, and %u may still answer",
                  call->client->index, sim_resource_name(call->resource), redlock_error_name(code),
                  holds ? "nobody had held the lock" : "no round says so", last->answered, last->given, last->foreign,
                  pending(last));
}
