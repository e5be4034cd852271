/* A process of a crowd: takes the lock as often as the test wants, and says what it sees. */
#include "crowd_member.h"

#include <unistd.h>

#include <ev.h>
#include <redlock/election.h>

struct self {
    struct member *member;
    struct ev_loop *loop;
    redlock_manager *manager;
    redlock_lease *lease; /* NULL: none */
    redlock_election *election;
    uint64_t term; /* of the election, while it leads; else 0 */
    int waiting;
    int64_t since_ms; /* it holds the lock, or rests */
    int64_t rest_ms;
    bool closing;
};

/* Without the exit handlers of the test. */
#define must(self, condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            give_up((self)->member, #condition);                                                                       \
        }                                                                                                              \
    } while (0)

static _Noreturn void give_up(struct member *member, const char *why) {
    (void)snprintf(member->failure, sizeof member->failure, "%s", why);
    _exit(1);
}

/* Whether somebody else believes to hold the lock. The caller must believe so before and after. */
static bool sees_another(const struct member *member) {
    for (size_t i = 0; i < CROWD_MAX; i++) {
        const struct member *other = &crowd->member[i];
        if (other != member && atomic_load(&other->valid_until_ns) > support_now_ns()) {
            return true;
        }
    }
    return false;
}

static int64_t validity_ms(const struct self *self) {
    return self->election ? redlock_election_validity_ms(self->election, self->term)
                          : redlock_lease_validity_ms(self->lease);
}

/* The clock is read before the validity: so nobody claims more than the lease says. */
static void claim(struct self *self) {
    const int64_t now_ns = support_now_ns();
    const int64_t left_ms = validity_ms(self);
    atomic_store(&self->member->valid_until_ns, left_ms > 0 ? now_ns + left_ms * 1000000 : 0);
    if (left_ms > 0 && sees_another(self->member) && validity_ms(self) > 0) {
        atomic_fetch_add(&crowd->overlaps, 1);
    }
}

static void note_turn(const struct member *member, const char *token) {
    const int turn = atomic_fetch_add(&crowd->turns, 1);
    if (turn < CROWD_TURNS) {
        crowd->turn[turn].member = (int)(member - crowd->member);
        memcpy(crowd->turn[turn].ticket, token, 16);
    }
}

static void rest(struct self *self) {
    self->since_ms = support_now_ms();
    self->rest_ms = self->member->options.rest_ms ? random() % (2 * self->member->options.rest_ms + 1) : 0;
}

static void let_go(struct self *self) {
    atomic_store(&self->member->valid_until_ns, 0);
    must(self, redlock_release(self->lease, NULL, NULL) == REDLOCK_OK);
    self->lease = NULL;
    rest(self);
}

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    struct self *self = data;
    (void)reason;
    must(self, lease == self->lease);
    must(self, redlock_lease_validity_ms(lease) == 0);
    atomic_store(&self->member->valid_until_ns, 0);
    atomic_fetch_add(&self->member->lost, 1);
}

static void on_turn(const redlock_result *result, void *data) {
    struct self *self = data;
    self->waiting--;
    if (self->closing) {
        return;
    }
    if (redlock_result_code(result) != REDLOCK_OK) {
        redlock_result_message(result, self->member->failure, sizeof self->member->failure);
        _exit(1);
    }
    must(self, !self->lease); /* two of this process would hold it */
    self->lease = redlock_result_lease(result);
    self->since_ms = support_now_ms();
    claim(self);
    note_turn(self->member, redlock_lease_token(self->lease));
    atomic_fetch_add(&self->member->served, 1);
    if (self->member->options.hold_ms == 0 && !atomic_load(&self->member->keeps)) {
        let_go(self);
    }
}

static void ask(struct self *self) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = self->member->options.ttl_ms;
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.retry_delay_min_ms = 5;
    options.retry_delay_max_ms = 50;
    options.auto_extend = self->member->options.auto_extend;
    options.order = self->member->options.kind == CROWD_POLLS ? REDLOCK_ORDER_NONE : REDLOCK_ORDER_FAIR;
    options.on_lost = on_lost;
    options.lost_data = self;
    must(self, redlock_acquire(self->manager, CROWD_RESOURCE, &options, NULL, on_turn, self) == REDLOCK_OK);
    self->waiting++;
    atomic_fetch_add(&self->member->asked, 1);
}

static void stop_leading(struct self *self) {
    self->term = 0;
    atomic_store(&self->member->valid_until_ns, 0);
}

static void lead(struct self *self, const redlock_election_event *event) {
    struct member *member = self->member;
    must(self, event->term > self->term && redlock_lease_token(event->lease)[0] != '\0');
    self->term = event->term;
    claim(self);
    (void)snprintf(member->token, sizeof member->token, "%s", redlock_lease_token(event->lease));
    note_turn(member, member->token);
    atomic_store(&member->led_at_ns, support_now_ns());
    atomic_fetch_add(&member->led, 1);
}

static void on_event(const redlock_election_event *event, void *data) {
    struct self *self = data;
    struct member *member = self->member;
    switch (event->kind) {
    case REDLOCK_ELECTION_LEADING:
        lead(self, event);
        break;
    case REDLOCK_ELECTION_LOST:
        must(self, event->term == self->term && validity_ms(self) == 0);
        stop_leading(self);
        atomic_fetch_add(&member->lost, 1);
        break;
    case REDLOCK_ELECTION_RESIGNED:
        atomic_fetch_add(&member->resigned, 1);
        break;
    case REDLOCK_ELECTION_LEADER:
        (void)snprintf(member->heard_token, sizeof member->heard_token, "%s", event->leader->token);
        member->heard_itself = event->leader->is_self;
        atomic_store(&member->heard_at_ns, support_now_ns());
        atomic_fetch_add(&member->heard, 1);
        break;
    case REDLOCK_ELECTION_TROUBLE:
        atomic_fetch_add(event->code ? &member->troubles : &member->calmed, 1);
        break;
    case REDLOCK_ELECTION_ENDED:
        must(self, self->closing && event->code == REDLOCK_ERR_CLOSED);
        break;
    case REDLOCK_ELECTION_EXPIRING:
    case REDLOCK_ELECTION_NOTHING:
        must(self, false);
    }
}

static void begin_election(struct self *self) {
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.ttl_ms = self->member->options.ttl_ms;
    options.campaign = self->member->options.kind == CROWD_ELECTS;
    must(self, redlock_elect(self->manager, CROWD_RESOURCE, &options, on_event, self, &self->election) == REDLOCK_OK);
}

static void do_what_is_asked(struct self *self) {
    if (self->term) {
        claim(self);
    }
    if (atomic_exchange(&self->member->resigns, false)) {
        stop_leading(self);
        must(self, redlock_election_resign(self->election) == REDLOCK_OK);
    }
    if (atomic_exchange(&self->member->campaigns, false)) {
        must(self, redlock_election_campaign(self->election) == REDLOCK_OK);
    }
}

static void on_closed(void *data) {
    (void)data;
    _exit(0);
}

static void publish_statistics(struct self *self) {
    redlock_statistics statistics = {.size = sizeof statistics};
    must(self, redlock_manager_statistics(self->manager, &statistics) == REDLOCK_OK);
    atomic_store(&self->member->polls, (long long)statistics.polls);
    atomic_store(&self->member->passed_over, (long long)statistics.passed_over);
    atomic_store(&self->member->queued, (long long)statistics.queued);
}

/* As a program does that has workers: the child does not call exec, and keeps its descriptors. */
static void fork_child(struct self *self) {
    const pid_t child = fork();
    must(self, child >= 0);
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    atomic_store(&self->member->child, child);
}

static void on_tick(struct ev_loop *loop, ev_timer *tick, int events) {
    struct self *self = tick->data;
    const struct member *member = self->member;
    const int at_once = member->options.at_once ? member->options.at_once : 1;
    (void)loop, (void)events;
    if (self->closing) {
        return;
    }
    publish_statistics(self);
    if (atomic_exchange(&self->member->forks, false)) {
        fork_child(self);
    }
    if (self->election) {
        do_what_is_asked(self);
    }
    if (self->lease) {
        claim(self);
    }
    if (self->lease && !atomic_load(&member->keeps) && support_now_ms() - self->since_ms >= member->options.hold_ms) {
        let_go(self);
    }
    if (atomic_load(&member->leaves)) {
        self->closing = true;
        atomic_store(&self->member->valid_until_ns, 0);
        must(self, redlock_manager_close(self->manager, on_closed, NULL) == REDLOCK_OK);
        return;
    }
    while (self->waiting + (self->lease != NULL) < at_once &&
           atomic_load(&member->asked) < atomic_load(&member->wanted) &&
           (self->waiting > 0 || support_now_ms() - self->since_ms >= self->rest_ms)) {
        ask(self);
    }
}

static void on_log(redlock_log_level level, const char *line, void *data) {
    struct member *member = data;
    if (level <= REDLOCK_LOG_WARNING && strstr(line, "queue")) {
        (void)snprintf(member->warning, sizeof member->warning, "%s", line);
        atomic_fetch_add(&member->warnings, 1);
    }
}

static void on_connected(const redlock_result *result, void *data) {
    struct self *self = data;
    must(self, redlock_result_code(result) == REDLOCK_OK);
    if (self->member->options.kind == CROWD_ELECTS || self->member->options.kind == CROWD_OBSERVES) {
        begin_election(self);
    }
    atomic_store(&self->member->ready, true);
}

static _Noreturn void run_with_manager(struct self *self, const struct servers *servers) {
    const struct crowd_options *chosen = &self->member->options;
    redlock_manager_options options;
    ev_timer tick;
    redlock_manager_options_default(&options);
    options.nodes = servers->uris;
    options.node_count = servers->count;
    options.node_timeout_ms = chosen->node_timeout_ms ? chosen->node_timeout_ms : 5000;
    options.connect_timeout_ms = options.node_timeout_ms;
    options.key_prefix = chosen->key_prefix;
    options.on_log = on_log;
    options.log_data = self->member;
    if (chosen->restart_guard) {
        options.restart_guard = REDLOCK_RESTART_GUARD_OBSERVED;
        options.ttl_max_ms = chosen->ttl_ms;
    }
    self->loop = ev_loop_new(EVFLAG_AUTO);
    must(self, self->loop != NULL);
    must(self, redlock_manager_create(self->loop, &options, &self->manager, self->member->failure,
                                      sizeof self->member->failure) == REDLOCK_OK);
    must(self, redlock_manager_connect(self->manager, 60000, on_connected, self) == REDLOCK_OK);
    ev_timer_init(&tick, on_tick, 0.002, 0.002);
    tick.data = self;
    ev_timer_start(self->loop, &tick);
    ev_run(self->loop, 0);
    give_up(self->member, "the loop has ended");
}

#define OLD_RELEASE "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0"

/* One attempt as an older version makes it, on one node after the other. */
static void try_as_old(struct self *self, struct raw *nodes, size_t count) {
    struct member *member = self->member;
    char token[64], ttl[24];
    size_t granted = 0;
    (void)snprintf(token, sizeof token, "%s%08lx%08lx%08lx%08lx",
                   member->options.kind == CROWD_STRANGER ? "other " : "", random(), random(), random(), random());
    (void)snprintf(ttl, sizeof ttl, "%lld", (long long)member->options.ttl_ms);
    const int64_t from_ns = support_now_ns();
    for (size_t i = 0; i < count; i++) {
        granted += strcmp(raw_ask(&nodes[i], "SET", CROWD_RESOURCE, token, "NX", "PX", ttl), "OK") == 0;
    }
    const int64_t until_ns = from_ns + (member->options.ttl_ms - member->options.ttl_ms / 100 - 2) * 1000000;
    if (granted > count / 2 && support_now_ns() < until_ns) {
        atomic_store(&member->valid_until_ns, until_ns);
        const bool meets_another = sees_another(member);
        support_pause_ms((int)member->options.hold_ms);
        if (meets_another && support_now_ns() < until_ns) {
            atomic_fetch_add(&crowd->overlaps, 1);
        }
        note_turn(member, "an older version");
        atomic_fetch_add(&member->served, 1);
        atomic_store(&member->valid_until_ns, 0);
    }
    for (size_t i = 0; i < count; i++) {
        (void)raw_ask(&nodes[i], "EVAL", OLD_RELEASE, "1", CROWD_RESOURCE, token);
    }
}

static _Noreturn void run_as_old(struct self *self, const struct servers *servers) {
    struct raw nodes[SERVERS_MAX];
    for (size_t i = 0; i < servers->count; i++) {
        must(self, raw_open_tcp(&nodes[i], "127.0.0.1", servers->at[i].port));
    }
    atomic_store(&self->member->ready, true);
    while (!atomic_load(&self->member->leaves)) {
        if (atomic_load(&self->member->served) < atomic_load(&self->member->wanted)) {
            try_as_old(self, nodes, servers->count);
        }
        support_pause_ms((int)(1 + random() % 20));
    }
    _exit(0);
}

void member_run(struct member *member, const struct servers *servers) {
    struct self self = {.member = member};
    srandom((unsigned)getpid());
    if (member->options.kind == CROWD_IS_OLD || member->options.kind == CROWD_STRANGER) {
        run_as_old(&self, servers);
    }
    run_with_manager(&self, servers);
}
