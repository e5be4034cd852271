/* The core of one lease, driven by hand. */
#include "life.h"

void life_init(struct life *life, unsigned n) {
    memset(life, 0, sizeof *life);
    life->plan = (struct redlock_plan){.ttl_ms = TTL_MS, .retry_delay_min_ms = 50, .retry_delay_max_ms = 200};
    redlock_lease_init(&life->core, n, redlock_quorum(n), 12345);
}

struct redlock_grants *life_queue(struct life *life) {
    return (struct redlock_grants *)(void *)life->queue;
}

void life_may_queue(struct life *life) {
    life->plan.wait_timeout_ms = 60000;
    life->plan.node_timeout_ms = 50;
    redlock_lease_may_queue(&life->core, life_queue(life));
}

static struct life *step(struct life *life, struct redlock_event event) {
    if (life->core.grants) { /* this life may be a copy */
        redlock_lease_may_queue(&life->core, life_queue(life));
    }
    event.now_ns = T0 + life->at_ms * MS;
    event.in_line = life->in_line;
    event.misplaced = life->misplaced;
    event.may_leave_free = life->may_leave_free;
    event.view = &life->view;
    event.wall_us = life->wall_us;
    event.may_not_vote = life->may_not_vote;
    memset(&life->did, 0xAA, sizeof life->did); /* each step must fill in everything */
    redlock_lease_step(&life->core, &event, &life->did);
    const char *broken = redlock_lease_check(&life->core, false);
    if (broken) {
        fail_msg("after this step, not true: %s", broken);
    }
    if (life->did.send == REDLOCK_OP_WAIT && life->did.did != REDLOCK_GRANTS_YIELDED) {
        const bool moves = life->misplaced && life->did.did != REDLOCK_GRANTS_LOOKED;
        assert_int_equal(life->did.fresh_token, moves || life->did.did == REDLOCK_GRANTS_ENTERED);
    }
    return life;
}

struct life *life_at(struct life *life, int64_t at_ms) {
    life->at_ms = at_ms;
    return life;
}

struct life *life_park(struct life *life, int64_t until_ms) {
    return step(
        life, (struct redlock_event){.type = REDLOCK_EVENT_PARK, .until_ns = T0 + until_ms * MS, .plan = &life->plan});
}

struct life *life_begin(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_BEGIN, .plan = &life->plan});
}

struct life *life_start(struct life *life, unsigned n) {
    life_init(life, n);
    life_begin(life);
    return life;
}

struct life *life_adopt(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_ADOPT, .plan = &life->plan});
}

struct life *life_stale(struct life *life, unsigned node, int vote, uint32_t round) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_VOTE,
                                             .nodes = REDLOCK_NODE(node),
                                             .vote = (redlock_vote_kind)vote,
                                             .round = round});
}

struct life *life_vote(struct life *life, unsigned node, int vote) {
    return life_stale(life, node, vote, life->core.round);
}

struct life *life_refuse(struct life *life, redlock_nodes nodes) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_REFUSED, .nodes = nodes, .round = life->core.round});
}

struct life *life_fenced(struct life *life, unsigned node, int vote, uint64_t counter) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_VOTE,
                                             .nodes = REDLOCK_NODE(node),
                                             .vote = (redlock_vote_kind)vote,
                                             .accepted = vote == G && counter == 0,
                                             .counter = counter,
                                             .round = life->core.round});
}

struct life *life_queued(struct life *life, unsigned node, struct redlock_grants_view view) {
    life->view = view;
    life_vote(life, node, D);
    return life;
}

struct life *life_push(struct life *life, unsigned node, uint32_t round) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_GRANT, .nodes = REDLOCK_NODE(node), .round = round});
}

struct life *life_listen(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_LISTEN});
}

struct life *life_left(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_LEFT});
}

struct life *life_ready(struct life *life, unsigned node) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_READY, .nodes = REDLOCK_NODE(node)});
}

struct life *life_admit(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_ADMIT});
}

struct life *life_exclude(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_EXCLUDE});
}

struct life *life_poll(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_POLL});
}

struct life *life_void(struct life *life, redlock_nodes nodes) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_VOID, .nodes = nodes});
}

struct life *life_timer(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_TIMER});
}

struct life *life_cancel(struct life *life, int code) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_CANCEL, .code = code});
}

struct life *life_extend(struct life *life, int64_t ttl_ms) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_EXTEND, .ttl_ms = ttl_ms});
}

struct life *life_downgrade(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_DOWNGRADE, .ttl_ms = life->core.plan.ttl_ms});
}

struct life *life_settle(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_SETTLE, .plan = &life->plan});
}

struct life *life_release(struct life *life) {
    return step(life, (struct redlock_event){.type = REDLOCK_EVENT_RELEASE});
}

struct life *life_votes(struct life *life, const char *votes) {
    static const char kinds[] = {[G] = 'G', [D] = 'D', [F] = 'F', [U] = 'U'};
    const size_t n = strlen(votes);
    bool before = false;
    for (size_t i = 0; i < n; i++) {
        if (votes[i] == '.') {
            continue;
        }
        if (before) {
            life_check(life, life->core.state, (struct redlock_actions){NOTHING}, __FILE__, __LINE__);
        }
        const char *kind = memchr(kinds, votes[i], sizeof kinds);
        assert_non_null(kind);
        life_vote(life, (unsigned)i, (int)(kind - kinds));
        before = true;
    }
    return life;
}

struct life *life_begin_in_line(struct life *life, unsigned n) {
    life_init(life, n);
    life_may_queue(life);
    life->in_line = true;
    life_begin(life);
    life_expect(life, QUEUED, WAITS(redlock_nodes_all(n), 1, ENTERED));
    return life;
}

struct life *life_answer_queued(struct life *life, redlock_nodes nodes, struct redlock_grants_view view) {
    life->view = view;
    for (unsigned i = 0; nodes >> i != 0; i++) {
        if (nodes & REDLOCK_NODE(i)) {
            life_vote(life, i, D);
            if (nodes >> i != 1) {
                life_expect(life, QUEUED, NOTHING);
            }
        }
    }
    return life;
}

int64_t life_next_ms(const struct life *life) {
    const int64_t next_ns = redlock_lease_next_ns(&life->core);
    return next_ns == REDLOCK_NEVER_NS ? -1 : (next_ns - T0) / MS;
}

int64_t life_held_until_ms(const struct life *life) {
    const int64_t until_ns = redlock_lease_held_until_ns(&life->core);
    return until_ns == 0 ? -1 : (until_ns - T0) / MS;
}

void life_expect_next(struct life *life, int64_t least_ms, int64_t most_ms) {
    const int64_t next_ms = life_next_ms(life);
    assert_in_range(next_ms - life->at_ms, least_ms, most_ms);
    const bool is_whole = redlock_lease_next_ns(&life->core) == T0 + next_ms * MS;
    life->at_ms = is_whole ? next_ms : next_ms + 1;
}

static const char *describe(const struct redlock_actions *actions, char *text, size_t size) {
    snprintf(text, size,
             "cleanup %x handing %d step %d send %d to %x as round %u heal %x lost %d by votes %d by clock %d expiring "
             "%d acquired "
             "%d (%d) extended "
             "%d (%d) "
             "released %d (%d)",
             (unsigned)actions->cleanup, (int)actions->handing, (int)actions->did, (int)actions->send,
             (unsigned)actions->send_nodes, (unsigned)actions->round, (unsigned)actions->heal, actions->lost,
             actions->lost_by_votes, actions->lost_by_clock, actions->expiring, actions->acquired,
             actions->acquired_code, actions->extended, actions->extended_code, actions->released,
             actions->released_code);
    return text;
}

void life_check(const struct life *life, enum redlock_lease_state state, struct redlock_actions expected,
                const char *file, int line) {
    char wanted[300], got[300];
    if (life->core.state == state &&
        strcmp(describe(&expected, wanted, sizeof wanted), describe(&life->did, got, sizeof got)) == 0) {
        return;
    }
    describe(&expected, wanted, sizeof wanted);
    describe(&life->did, got, sizeof got);
    print_error("wanted state %d: %s\n   got state %d: %s\n", (int)state, wanted, (int)life->core.state, got);
    _fail(file, line);
}

void life_held(struct life *life, bool auto_extend) {
    life_init(life, 5);
    life->plan.auto_extend = auto_extend;
    life_begin(life);
    life_expect(life, ACQUIRING, SENDS(ACQUIRE, 31, 1));
    life->at_ms = 1;
    life_votes(life, "GGG");
    life_expect(life, HELD, ACQUIRED(OK));
    life_vote(life, 3, G);
    life_vote(life, 4, G);
    life_expect(life, HELD, NOTHING);
}
