/* The kit of the tests of elections. */
#include "election_kit.h"

/* The observer. */

int observe_code;
unsigned observers;
static redlock_leader_callback leader_cb;
static void *leader_data;

int __wrap_redlock_group_observe(struct redlock_group *group, const char *resource, redlock_leader_callback cb,
                                 void *data, redlock_observer **observer);
void __wrap_redlock_observer_end(redlock_observer *observer);

int __wrap_redlock_group_observe(struct redlock_group *group, const char *resource, redlock_leader_callback cb,
                                 void *data, redlock_observer **observer) {
    assert_ptr_equal(group, fake.group);
    assert_string_equal(resource, "r");
    if (observe_code == REDLOCK_OK) {
        observers++;
        leader_cb = cb;
        leader_data = data;
        *observer = (redlock_observer *)(void *)&observers;
    }
    return observe_code;
}

void __wrap_redlock_observer_end(redlock_observer *observer) {
    observers -= observer != NULL;
}

struct led led;

void __wrap_redlock_observer_lead(redlock_observer *observer, const char *token, bool leads_still);
void __wrap_redlock_observer_lead(redlock_observer *observer, const char *token, bool leads_still) {
    assert_non_null(observer);
    led.count++;
    led.leads_still = leads_still;
    strcpy(led.token, token);
}

void announce(const char *token, const char *holder) {
    leader_cb(&(redlock_leader){.size = sizeof(redlock_leader), .token = token, .holder = holder}, leader_data);
}

/* What was told. */

struct redlock_elections elections;
redlock_election *election;
unsigned told_count, read_count;
struct told told[TOLD_MAX];
redlock_election_event_kind call_at;
int (*call)(redlock_election *election);

void take_event(const redlock_election_event *event, void *data) {
    assert_ptr_equal(data, &elections);
    assert_int_equal(event->size, sizeof *event);
    assert_true(told_count < TOLD_MAX);
    struct told *now = &told[told_count++];
    *now = (struct told){.kind = event->kind,
                         .lease = event->lease,
                         .term = event->term,
                         .fence = event->fence,
                         .remaining_ms = event->remaining_ms,
                         .code = event->code};
    strncpy(now->reason, event->reason, sizeof now->reason - 1);
    redlock_result_message(event->result, now->message, sizeof now->message);
    if (event->leader) {
        strcpy(now->token, event->leader->token);
        strcpy(now->holder, event->leader->holder);
        now->is_self = event->leader->is_self;
    }
    if (event->kind == call_at) {
        call_at = REDLOCK_ELECTION_NOTHING;
        assert_is(call(event->election), REDLOCK_OK);
    }
}

const struct told *next(redlock_election_event_kind kind) {
    assert_true(read_count < told_count);
    assert_string_equal(redlock_election_event_name(told[read_count].kind), redlock_election_event_name(kind));
    return &told[read_count++];
}

void assert_silent(void) {
    assert_int_equal(read_count, told_count);
}

/* Begins and ends of tests. */

int open_elections(void **state) {
    open_group(state);
    redlock_elections_init(&elections, fake.group);
    election = NULL;
    told_count = read_count = 0;
    observe_code = REDLOCK_OK;
    observers = 0;
    led = (struct led){0};
    call_at = REDLOCK_ELECTION_NOTHING;
    return 0;
}

int close_elections(void **state) {
    redlock_elections_free(&elections);
    return close_group(state);
}

const struct group_setup three_named = {.node_count = 3, .config = {.holder = "me"}};
int start_with(const redlock_election_options *options) {
    return redlock_elections_add(&elections, "r", options, take_event, &elections, NULL, &election);
}

void start(bool campaigns) {
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.campaign = campaigns;
    assert_is(start_with(&options), REDLOCK_OK);
}

void grant_all(void) {
    for (int i = 0; i < 4; i++) {
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        fake_env_turn(&fake);
    }
}

const struct told *lead(void) {
    start(true);
    assert_silent();
    grant_all();
    return next(REDLOCK_ELECTION_LEADING);
}

void expire(void) {
    fake_env_pass_ms(&fake, 11000);
}

bool asks_for_the_lock(void) {
    return fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) + fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE) > 0;
}
