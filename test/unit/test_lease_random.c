/* Random lives of a lease, at random times: what must hold after every step, whatever comes (the
 * first seed in SEED). */
#include "life.h"

#define NODES_MAX        7
#define LIVES            30000
#define WAITS_REMEMBERED 512

/* What an observer knows who sees only events and actions. It shares only the bound of the drift
 * with the core. */
struct onlooker {
    struct life life;
    uint32_t random;
    unsigned n;
    int64_t sent_ms, sent_ttl_ms; /* of the current round */
    /* The earliest time at which the key of a node that granted can go. */
    int64_t expiry_ms[NODES_MAX];
    redlock_nodes voted, may_hold; /* this round; keys and places of the current token */
    /* A place in queues: */
    bool queues;
    redlock_nodes asked, before;       /* this round; may_hold before it */
    uint32_t first_round;              /* of the token */
    uint32_t granted_round[NODES_MAX]; /* the last WAIT that the node granted */
    /* The last WAIT that it answered "queued", or that a void reaches. */
    uint32_t queued_round[NODES_MAX];
    int64_t wait_sent_ms[WAITS_REMEMBERED]; /* by round */
    redlock_nodes granted;                  /* this round */
    int64_t begun_ms, held_from_ms;         /* the first event; the first HELD */
    unsigned acquired, released, lost, extends_asked, extends_told;
    enum redlock_operation operation;
    bool wants_end, ever_released;
};

static uint32_t draw(struct onlooker *o, uint32_t below) {
    return redlock_jitter_next(&o->random) % below;
}

/* A quorum of keys lives longer than the validity of the lease, by at least the 2 ms of drift (R1,
 * R12). */
static void check_promise(const struct onlooker *o) {
    const int64_t until_ms = life_held_until_ms(&o->life);
    if (until_ms < o->life.at_ms) {
        return;
    }
    unsigned sure = 0;
    for (unsigned i = 0; i < o->n; i++) {
        sure += o->expiry_ms[i] >= until_ms + 2;
    }
    assert_true(2 * sure > o->n);
}

static void check_send(struct onlooker *o, uint32_t round_before) {
    const struct redlock_actions *did = &o->life.did;
    const struct redlock_plan *plan = &o->life.plan;
    if (did->send == REDLOCK_OP_NONE) {
        return;
    }
    const int64_t at_ms = o->life.at_ms;
    const redlock_nodes all = (1u << o->n) - 1;
    assert_int_equal(did->round, round_before + 1);
    o->operation = did->send;
    o->voted = o->granted = 0;
    o->asked = did->send_nodes;
    o->before = o->may_hold;
    o->sent_ms = at_ms;
    o->sent_ttl_ms = o->life.core.round_ttl_ms;
    switch (did->send) {
    case REDLOCK_OP_ACQUIRE:
        assert_int_equal(did->send_nodes, all);
        assert_int_equal(o->may_hold, 0); /* the last attempt was cleaned up */
        assert_true(plan->wait_timeout_ms <= 0 || at_ms < o->begun_ms + plan->wait_timeout_ms);
        o->may_hold = all;
        memset(o->expiry_ms, 0, sizeof o->expiry_ms);
        break;
    case REDLOCK_OP_WAIT:
        assert_true(did->send_nodes == all || did->send_nodes == 0);
        assert_true(at_ms < o->begun_ms + plan->wait_timeout_ms || plan->wait_timeout_ms < 0);
        assert_is(o->life.core.state, REDLOCK_LEASE_QUEUED);
        o->wait_sent_ms[did->round % WAITS_REMEMBERED] = at_ms;
        if (did->fresh_token) {
            assert_int_equal(o->may_hold, 0);
            o->first_round = did->round;
            memset(o->expiry_ms, 0, sizeof o->expiry_ms);
            memset(o->granted_round, 0, sizeof o->granted_round);
            memset(o->queued_round, 0, sizeof o->queued_round);
        }
        o->may_hold |= did->send_nodes;
        break;
    case REDLOCK_OP_EXTEND:
        assert_int_equal(did->send_nodes, all);
        assert_false(o->ever_released);
        break; /* a node never shortens the ttl of a key */
    case REDLOCK_OP_RELEASE:
        assert_int_equal(did->send_nodes, o->may_hold);
        o->may_hold = 0;
        o->ever_released = true;
        break;
    default:
        fail();
    }
}

/* What one step may do, for any event. */
static void check_step(struct onlooker *o, const struct redlock_lease_core *before) {
    const struct redlock_lease_core *after = &o->life.core;
    const struct redlock_actions *did = &o->life.did;
    if (did->cleanup != 0) {
        assert_int_equal(did->cleanup, o->may_hold);
        o->may_hold = 0;
    }
    check_send(o, before->round);
    if (before->state != after->state &&
        (after->state == REDLOCK_LEASE_LOST || after->state == REDLOCK_LEASE_RETRYING ||
         after->state == REDLOCK_LEASE_ENDED)) {
        assert_int_equal(o->may_hold, 0);
    }
    o->acquired += did->acquired;
    o->released += did->released;
    o->lost += did->lost;
    o->extends_told += did->extended;
    assert_true(o->acquired <= 1 && o->released <= 1 && o->lost <= 1);
    assert_in_range(o->extends_asked - o->extends_told, 0, 1);
    assert_true(!did->lost || !o->ever_released);
    if (after->was_held && !before->was_held) {
        o->held_from_ms = o->life.at_ms;
    }
    const bool wins =
        (did->acquired && did->acquired_code == REDLOCK_OK) || (did->extended && did->extended_code == REDLOCK_OK);
    assert_true(after->state != REDLOCK_LEASE_QUEUED || redlock_lease_next_ns(after) != REDLOCK_NEVER_NS);
    if (wins) {
        assert_true(o->operation == REDLOCK_OP_WAIT || 2 * redlock_nodes_count(o->granted) > o->n);
        assert_true(life_held_until_ms(&o->life) > o->life.at_ms);
    }
    check_promise(o);
}

/* A vote that needs no step is one that a VOTE event would only have counted, if the clock changes
 * nothing by itself. */
static void check_counted(const struct onlooker *o, const struct redlock_lease_core *before, unsigned node, int kind) {
    struct redlock_lease_core counted = *before, timed = *before;
    struct redlock_actions by_clock;
    redlock_lease_step(&timed, &(struct redlock_event){.type = REDLOCK_EVENT_TIMER, .now_ns = T0 + o->life.at_ms * MS},
                       &by_clock);
    if (timed.state != before->state || !redlock_lease_count_only(&counted, node, (redlock_vote_kind)kind)) {
        return;
    }
    const struct redlock_lease_core *after = &o->life.core;
    const struct redlock_actions *did = &o->life.did;
    assert_int_equal(after->state, before->state);
    assert_int_equal(after->keys.to_release, counted.keys.to_release);
    assert_memory_equal(&after->votes, &counted.votes, offsetof(struct redlock_round, quorum));
    assert_int_equal(redlock_lease_next_ns(after), redlock_lease_next_ns(&counted));
    assert_true(did->cleanup == 0 && did->send == REDLOCK_OP_NONE && !did->lost && !did->acquired && !did->extended &&
                !did->released);
}

static void vote(struct onlooker *o, unsigned node, int kind) {
    const struct redlock_lease_core before = o->life.core;
    if ((o->voted & REDLOCK_NODE(node)) == 0 && o->operation != REDLOCK_OP_NONE) {
        o->voted |= REDLOCK_NODE(node);
        if (kind == G) {
            o->granted |= REDLOCK_NODE(node);
            /* Another lease of the token may have set the key. */
            o->may_hold |= o->operation == REDLOCK_OP_EXTEND && o->may_hold != 0 ? REDLOCK_NODE(node) : 0;
            if (o->expiry_ms[node] < o->sent_ms + o->sent_ttl_ms) {
                o->expiry_ms[node] = o->sent_ms + o->sent_ttl_ms;
            }
        }
        if (kind == F && o->operation == REDLOCK_OP_ACQUIRE) {
            o->may_hold &= ~REDLOCK_NODE(node);
        }
    }
    life_vote(&o->life, node, kind);
    if (!o->queues) { /* of a copy, both would share the queue */
        check_counted(o, &before, node, kind);
    }
    check_step(o, &before);
}

/* A TIMER before its time changes nothing; at its time it changes something. */
static void timer(struct onlooker *o, unsigned depth) {
    const struct redlock_lease_core before = o->life.core;
    const int64_t next_ns = redlock_lease_next_ns(&before), now_ns = T0 + o->life.at_ms * MS;
    static const struct redlock_actions nothing = {NOTHING};
    unsigned char queue[sizeof o->life.queue];
    memcpy(queue, o->life.queue, sizeof queue);
    life_timer(&o->life);
    if (o->life.did.send == REDLOCK_OP_EXTEND) {
        const struct redlock_plan *plan = &o->life.plan;
        assert_true(now_ns < redlock_lease_held_until_ns(&before)); /* R12 */
        /* Old grants are extended once. */
        assert_true(plan->auto_extend || o->queues);
        assert_true(plan->auto_extend_max_ms == 0 || o->life.at_ms < o->held_from_ms + plan->auto_extend_max_ms);
    }
    const bool changed = memcmp(&before, &o->life.core, sizeof before) != 0 ||
                         memcmp(queue, o->life.queue, sizeof queue) != 0 ||
                         memcmp(&nothing, &o->life.did, sizeof nothing) != 0;
    assert_int_equal(changed, now_ns >= next_ns);
    check_step(o, &before);
    /* A waiter is not woken for ever at one moment. */
    if (o->life.core.state == REDLOCK_LEASE_QUEUED && redlock_lease_next_ns(&o->life.core) <= now_ns) {
        assert_true(depth < 3);
        timer(o, depth + 1);
    }
}

static void extend(struct onlooker *o) {
    const struct redlock_lease_core before = o->life.core;
    const int code = redlock_lease_extend_check(&before, T0 + o->life.at_ms * MS);
    const int64_t until_ms = life_held_until_ms(&o->life);
    if (until_ms >= 0 && o->life.at_ms >= until_ms && !before.extend_by_caller) {
        assert_is(code, REDLOCK_ERR_LOST);
    }
    if (code != REDLOCK_OK) {
        return;
    }
    o->extends_asked++;
    life_extend(&o->life, 1 + draw(o, 400));
    check_step(o, &before);
}

/* Like the group: nodes that take no requests now are refused in the same turn. */
static void refuse(struct onlooker *o) {
    if (o->queues && o->operation == REDLOCK_OP_RELEASE) {
        return; /* else the play to the end would not be over */
    }
    if (o->life.did.send == REDLOCK_OP_NONE || draw(o, 4) != 0) {
        return;
    }
    const redlock_nodes nodes = o->life.did.send_nodes & draw(o, 128);
    const struct redlock_lease_core before = o->life.core;
    o->voted |= nodes;
    if (o->operation == REDLOCK_OP_ACQUIRE || o->operation == REDLOCK_OP_WAIT) {
        o->may_hold &= ~nodes | (o->operation == REDLOCK_OP_WAIT ? o->before : 0);
    }
    life_refuse(&o->life, nodes);
    check_step(o, &before);
}

static void one_event(struct onlooker *o) {
    const struct redlock_lease_core before = o->life.core;
    const uint32_t what = draw(o, 100);
    /* A node that has our key never denies an extend or a release, except in a test: here it does
     * not. */
    static const int kinds[] = {G, G, G, G, F, U};
    if (what < 60) {
        const unsigned node = draw(o, o->n);
        const bool may_deny = o->operation == REDLOCK_OP_ACQUIRE || o->expiry_ms[node] <= o->life.at_ms;
        vote(o, node, may_deny && draw(o, 3) == 0 ? D : kinds[draw(o, 6)]);
    } else if (what < 65 && before.round > 1) {
        life_stale(&o->life, draw(o, o->n), G, 1 + draw(o, before.round - 1));
        assert_memory_equal(&before, &o->life.core, sizeof before);
    } else if (what < 80) {
        timer(o, 0);
    } else if (what < 90) {
        extend(o);
    } else if (what < 91) {
        life_cancel(&o->life, REDLOCK_ERR_CANCELLED);
        check_step(o, &before);
    } else if (what < 93 && !o->ever_released && before.state >= REDLOCK_LEASE_ADOPTED) {
        life_release(&o->life);
        check_step(o, &before);
    }
}

static bool has_key(const struct onlooker *o, unsigned node) {
    return o->granted_round[node] != 0 && o->expiry_ms[node] > o->life.at_ms;
}

/* The node gave the lock to this token after it had executed the WAIT of this round. */
static void note_grant(struct onlooker *o, unsigned node, uint32_t round) {
    const int64_t end_ms = o->wait_sent_ms[round % WAITS_REMEMBERED] + o->sent_ttl_ms;
    o->may_hold |= REDLOCK_NODE(node);
    o->granted_round[node] = round > o->granted_round[node] ? round : o->granted_round[node];
    o->expiry_ms[node] = end_ms > o->expiry_ms[node] ? end_ms : o->expiry_ms[node];
}

static void answer_wait(struct onlooker *o, unsigned node) {
    const struct redlock_lease_core before = o->life.core;
    const uint32_t round = before.round;
    /* What an answer shows once the token is given up, the release that follows it takes back. */
    const bool open = before.state == REDLOCK_LEASE_QUEUED || before.state == REDLOCK_LEASE_HELD;
    if (!open || (o->asked & ~o->voted & REDLOCK_NODE(node)) == 0) {
        return;
    }
    o->voted |= REDLOCK_NODE(node);
    static const int kinds[] = {G, D, D, D, F, U};
    int kind = kinds[draw(o, 6)];
    /* "Queued" may come after a push of the same WAIT, but not while the node has an older key. */
    if (kind == D && o->granted_round[node] < round && has_key(o, node)) {
        kind = G;
    }
    if (kind == G && round >= o->queued_round[node]) {
        note_grant(o, node, round);
    } else if (kind == D) {
        o->queued_round[node] = round > o->queued_round[node] ? round : o->queued_round[node];
        o->expiry_ms[node] = o->granted_round[node] < round ? 0 : o->expiry_ms[node];
    } else if (kind == F) {
        o->may_hold &= ~REDLOCK_NODE(node) | o->before | (o->granted_round[node] != 0 ? REDLOCK_NODE(node) : 0);
    }
    static const int64_t pttls_ms[] = {-2, -1, 0, 1, 50, 400};
    const enum redlock_grants_holder holder = (enum redlock_grants_holder)draw(o, REDLOCK_HOLDER_STRANGER + 1);
    o->life.view = (struct redlock_grants_view){
        .holder = holder, .holder_id = holder + 5 * draw(o, 2), .pttl_ms = pttls_ms[draw(o, 6)], .rank = draw(o, 3)};
    life_vote(&o->life, node, kind);
    check_step(o, &before);
}

/* Some are stale, of an older token, or so old that they are forgotten. */
static void push(struct onlooker *o, unsigned node) {
    const struct redlock_lease_core before = o->life.core;
    const uint32_t last = life_queue(&o->life)->round, back = draw(o, draw(o, 2) ? 3 : 12);
    const uint32_t round = last > back ? last - back : 0;
    if (o->first_round == 0 || o->ever_released) {
        return;
    }
    if (before.state == REDLOCK_LEASE_QUEUED && round >= o->first_round && round >= o->queued_round[node] &&
        back < REDLOCK_GRANTS_SENT_MAX) {
        note_grant(o, node, round);
    } else if (before.state != REDLOCK_LEASE_QUEUED && round > o->granted_round[node]) {
        return; /* who is held or extended already has told all that is true */
    }
    life_push(&o->life, node, round);
    check_step(o, &before);
}

/* Nothing is known of the keys that the node gave before. */
static void jump(struct onlooker *o, unsigned node) {
    const struct redlock_lease_core before = o->life.core;
    if (before.state != REDLOCK_LEASE_QUEUED) {
        return;
    }
    o->queued_round[node] = before.round + 1;
    o->expiry_ms[node] = 0;
    life_void(&o->life, REDLOCK_NODE(node));
    check_step(o, &before);
}

static void one_queue_event(struct onlooker *o) {
    const struct redlock_lease_core before = o->life.core;
    const uint32_t what = draw(o, 100), node = draw(o, o->n);
    if (o->operation != REDLOCK_OP_WAIT) {
        if (what < 10) {
            push(o, node);
        } else {
            one_event(o);
        }
    } else if (what < 55) {
        answer_wait(o, node);
    } else if (what < 70) {
        push(o, node);
    } else if (what < 90) {
        timer(o, 0);
    } else if (what < 92) {
        jump(o, node);
    } else if (what < 94) {
        life_listen(&o->life);
        check_step(o, &before);
    } else if (what < 95) {
        life_poll(&o->life);
        check_step(o, &before);
    } else if (what < 98) {
        extend(o);
    } else if (what < 99 && before.state >= REDLOCK_LEASE_ADOPTED && !o->ever_released) {
        life_release(&o->life);
        check_step(o, &before);
    }
}

/* Mostly a few ms, often exactly to the next timer, sometimes far past it. */
static void pass_time(struct onlooker *o) {
    const int64_t next_ms = life_next_ms(&o->life);
    const uint32_t what = draw(o, 20);
    if (what < 10) {
        o->life.at_ms += draw(o, 5);
    } else if (what < 13 && next_ms > o->life.at_ms) {
        o->life.at_ms = next_ms + draw(o, 2);
    } else if (what == 13) {
        o->life.at_ms += draw(o, 400);
    }
}

static unsigned held_from_queues;

static void begin_queue(struct onlooker *o) {
    const struct redlock_plan plan = o->life.plan;
    life_may_queue(&o->life);
    o->life.plan.wait_timeout_ms = plan.wait_timeout_ms != 0 ? plan.wait_timeout_ms : 100;
    o->life.plan.node_timeout_ms = (uint16_t)draw(o, 50);
    o->life.in_line = draw(o, 2) != 0;
    o->queues = true;
}

static void live(uint32_t seed, bool queues) {
    struct onlooker o;
    memset(&o, 0, sizeof o);
    o.random = seed;
    o.n = 1 + draw(&o, NODES_MAX);
    life_init(&o.life, o.n);
    struct redlock_plan *plan = &o.life.plan;
    plan->ttl_ms = 1 + (int32_t)draw(&o, 400);
    static const int64_t waits_ms[] = {0, REDLOCK_WAIT_FOREVER, 300, 1000};
    plan->wait_timeout_ms = waits_ms[draw(&o, 4)];
    plan->retry_delay_min_ms = (int32_t)draw(&o, 20);
    plan->retry_delay_max_ms = plan->retry_delay_min_ms + (int32_t)draw(&o, 50);
    plan->auto_extend = draw(&o, 2) != 0;
    plan->auto_extend_max_ms = draw(&o, 2) != 0 ? draw(&o, 600) : 0;
    const struct redlock_lease_core before = o.life.core;
    const bool adopts = !queues && draw(&o, 4) == 0;
    if (queues) {
        begin_queue(&o);
    }
    if (adopts) {
        life_adopt(&o.life);
        o.may_hold = (1u << o.n) - 1;
    } else {
        life_begin(&o.life);
    }
    check_step(&o, &before);
    for (int i = 0; i < 200 && o.life.core.state != REDLOCK_LEASE_ENDED; i++) {
        refuse(&o);
        pass_time(&o);
        (queues ? one_queue_event : one_event)(&o);
    }
    /* Plays to the end: cancels the acquire, releases the lease, lets all nodes answer. Every
     * request has completed. */
    struct redlock_lease_core last = o.life.core;
    life_cancel(&o.life, REDLOCK_ERR_CLOSED);
    check_step(&o, &last);
    last = o.life.core;
    life_release(&o.life);
    check_step(&o, &last);
    for (unsigned i = 0; i < o.n; i++) {
        vote(&o, i, G);
    }
    held_from_queues += queues && o.life.core.was_held;
    assert_is(o.life.core.state, REDLOCK_LEASE_ENDED);
    assert_int_equal(o.acquired, !adopts);
    assert_int_equal(o.released, o.life.core.was_held || adopts);
    assert_int_equal(o.extends_told, o.extends_asked);
    assert_int_equal(redlock_lease_next_ns(&o.life.core), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_lease_held_until_ns(&o.life.core), 0);
}

static uint32_t first_seed;
static uint32_t seed_now;

static int read_seed(UNUSED void **state) {
    const char *seed = getenv("SEED");
    first_seed = seed == NULL ? 1 : (uint32_t)strtoul(seed, NULL, 10);
    return 0;
}

static int say_seed(UNUSED void **state) {
    if (seed_now < first_seed + LIVES) {
        fprintf(stderr, "seed %u; replay with SEED=%u in the environment\n", (unsigned)seed_now, (unsigned)seed_now);
    }
    return 0;
}

TEST_WITH(random_lives, read_seed, say_seed) {
    for (seed_now = first_seed; seed_now < first_seed + LIVES; seed_now++) {
        live(seed_now, false);
    }
}

TEST_WITH(random_lives_in_queues, read_seed, say_seed) {
    for (seed_now = first_seed; seed_now < first_seed + LIVES; seed_now++) {
        live(seed_now, true);
    }
    assert_true(held_from_queues > LIVES / 10);
}
