/* An election over a fake env: what it asks of the group, and what it tells. The observer is the
 * test itself. */
#include "election/election.h"
#include "group_kit.h"

/* The observer. */

static int observe_code;
static unsigned observers;
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

static void announce(const char *token, const char *holder) {
    leader_cb(&(redlock_leader){.size = sizeof(redlock_leader), .token = token, .holder = holder}, leader_data);
}

/* What was told. */

#define TOLD_MAX 64

static struct redlock_elections elections;
static redlock_election *election;
static unsigned told_count, read_count;
static struct told {
    redlock_election_event_kind kind;
    redlock_lease *lease;
    uint64_t term, fence;
    int code;
    char reason[256], message[512], token[REDLOCK_TOKEN_SIZE_MAX + 1], holder[64];
    bool is_self;
} told[TOLD_MAX];
/* Called when this is told. */
static redlock_election_event_kind call_at;
static int (*call)(redlock_election *election);

static void take_event(const redlock_election_event *event, void *data) {
    assert_ptr_equal(data, &elections);
    assert_int_equal(event->size, sizeof *event);
    assert_true(told_count < TOLD_MAX);
    struct told *now = &told[told_count++];
    *now = (struct told){
        .kind = event->kind, .lease = event->lease, .term = event->term, .fence = event->fence, .code = event->code};
    strncpy(now->reason, event->reason, sizeof now->reason - 1);
    redlock_result_message(event->result, now->message, sizeof now->message);
    if (event->leader) {
        strcpy(now->token, event->leader->token);
        strcpy(now->holder, event->leader->holder);
        now->is_self = event->leader->is_self;
    }
    if (event->kind == call_at) {
        call_at = REDLOCK_ELECTION_NOTHING;
        assert_int_equal(call(event->election), REDLOCK_OK);
    }
}

/* The next event. */
static const struct told *next(redlock_election_event_kind kind) {
    assert_true(read_count < told_count);
    assert_string_equal(redlock_election_event_name(told[read_count].kind), redlock_election_event_name(kind));
    return &told[read_count++];
}

static void assert_silent(void) {
    assert_int_equal(read_count, told_count);
}

/* Begins and ends of tests. */

static int open_elections(void **state) {
    open_group(state);
    elections = (struct redlock_elections){.group = fake.group};
    election = NULL;
    told_count = read_count = 0;
    observe_code = REDLOCK_OK;
    observers = 0;
    call_at = REDLOCK_ELECTION_NOTHING;
    return 0;
}

static int close_elections(void **state) {
    redlock_elections_free(&elections);
    return close_group(state);
}
static const struct group_setup three_named = {.node_count = 3, .config = {.holder = "me"}};
#define election_test(function)                                                                                        \
    cmocka_unit_test_prestate_setup_teardown(function, open_elections, close_elections,                                \
                                             (void *)(uintptr_t) & (three_named))

static int start_with(const redlock_election_options *options) {
    return redlock_elections_add(&elections, "r", options, take_event, &elections, &election);
}

static void start(bool campaigns) {
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.campaign = campaigns;
    assert_int_equal(start_with(&options), REDLOCK_OK);
}

/* All nodes answer what waits there, again and again. */
static void grant_all(void) {
    for (int i = 0; i < 4; i++) {
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        fake_env_turn(&fake);
    }
}

static const struct told *lead(void) {
    start(true);
    assert_silent();
    grant_all();
    return next(REDLOCK_ELECTION_LEADING);
}

/* The lease expires: nobody answers. */
static void expire(void) {
    fake_env_pass_ms(&fake, 11000);
}

static bool asks_for_the_lock(void) {
    return fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) + fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE) > 0;
}

/* The tests. */

static void it_leads_with_a_term_of_its_own(void **state) {
    (void)state;
    const struct told *event = lead();
    assert_silent();
    assert_int_equal(event->term, 1);
    assert_int_equal(event->fence, 0);
    assert_int_equal(redlock_lease_validity_ms(event->lease), 9898);
    assert_int_equal(redlock_election_validity_ms(election, 1), 9898);
    assert_int_equal(redlock_election_validity_ms(election, 0), 0);
    assert_int_equal(redlock_election_validity_ms(election, 2), 0);
    fake_env_pass_ms(&fake, 100);
    assert_int_equal(redlock_election_validity_ms(election, 1), 9798);
    for (int i = 0; i < 20; i++) { /* it is renewed */
        fake_env_pass_ms(&fake, 1000);
        grant_all();
    }
    assert_true(redlock_election_validity_ms(election, 1) > 6000);
    assert_silent();
}

static void after_a_loss_it_leads_in_another_term(void **state) {
    (void)state;
    lead();
    expire();
    const struct told *event = next(REDLOCK_ELECTION_LOST);
    assert_int_equal(event->term, 1);
    assert_true(strlen(event->reason) > 10);
    assert_null(event->lease);
    assert_int_equal(redlock_election_validity_ms(election, 1), 0);
    assert_true(asks_for_the_lock());
    grant_all();
    while (told[read_count].kind == REDLOCK_ELECTION_TROUBLE) {
        read_count++;
    }
    event = next(REDLOCK_ELECTION_LEADING);
    assert_int_equal(event->term, 2);
    assert_int_equal(redlock_election_validity_ms(election, 1), 0);
    assert_true(redlock_election_validity_ms(election, 2) > 0);
    assert_silent();
}

static void it_resigns_and_stays_out(void **state) {
    (void)state;
    lead();
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    assert_int_equal(redlock_election_validity_ms(election, 1), 0);
    assert_false(redlock_election_is_out(election));
    assert_silent();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    grant_all();
    assert_int_equal(next(REDLOCK_ELECTION_RESIGNED)->code, REDLOCK_OK);
    assert_true(redlock_election_is_out(election));
    fake_env_pass_ms(&fake, 60000);
    assert_false(asks_for_the_lock());
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    fake_env_pass_ms(&fake, 5000);
    assert_silent();
    assert_int_equal(redlock_election_campaign(election), REDLOCK_OK);
    grant_all();
    assert_int_equal(next(REDLOCK_ELECTION_LEADING)->term, 2);
}

static void a_release_that_fails_is_told(void **state) {
    (void)state;
    lead();
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    const struct told *event = next(REDLOCK_ELECTION_RESIGNED);
    assert_int_equal(event->code, REDLOCK_ERR_LOST);
    assert_true(strlen(event->message) > 10);
}

static void it_gives_up_a_campaign(void **state) {
    (void)state;
    start(true);
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    assert_silent();
    fake_env_turn(&fake);
    assert_int_equal(next(REDLOCK_ELECTION_RESIGNED)->code, REDLOCK_OK);
    grant_all();
    assert_silent();
}

/* The grants are in, but their callback has not run: then the lock goes back. */
static void it_gives_up_a_campaign_that_was_just_won(void **state) {
    (void)state;
    lead();
    expire();
    call_at = REDLOCK_ELECTION_LEADING;
    call = redlock_election_resign;
    read_count = told_count;
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
    next(REDLOCK_ELECTION_RESIGNED);
    assert_silent();
    assert_int_equal(statistics().leases_held, 0);
}

static void it_only_observes_until_it_is_told_to_campaign(void **state) {
    (void)state;
    start(false);
    assert_int_equal(observers, 1);
    assert_true(redlock_election_is_out(election));
    fake_env_pass_ms(&fake, 10000);
    assert_false(asks_for_the_lock());
    announce("aa", "db-1");
    const struct told *event = next(REDLOCK_ELECTION_LEADER);
    assert_string_equal(event->token, "aa");
    assert_string_equal(event->holder, "db-1");
    assert_false(event->is_self);
    announce("", "");
    event = next(REDLOCK_ELECTION_LEADER);
    assert_string_equal(event->token, "");
    assert_false(event->is_self);
    assert_int_equal(redlock_election_campaign(election), REDLOCK_OK);
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
}

/* The nodes may tell of our grants before their answers are counted. */
static void news_of_ourselves_comes_after_leading(void **state) {
    (void)state;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    start(true);
    const bool waits = fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) > 0;
    strcpy(token, fake_env_waiting(&fake, 0, waits ? REDLOCK_OP_WAIT : REDLOCK_OP_ACQUIRE)->token);
    announce(token, "me");
    assert_silent();
    grant_all();
    assert_string_equal(redlock_lease_token(next(REDLOCK_ELECTION_LEADING)->lease), token);
    const struct told *event = next(REDLOCK_ELECTION_LEADER);
    assert_string_equal(event->token, token);
    assert_string_equal(event->holder, "me");
    assert_true(event->is_self);
    announce("aa", "");
    assert_false(next(REDLOCK_ELECTION_LEADER)->is_self);
    announce(token, "me");
    assert_true(next(REDLOCK_ELECTION_LEADER)->is_self);
    assert_silent();
}

static void news_of_ourselves_is_dropped_if_leading_resigns(void **state) {
    (void)state;
    start(true);
    const bool waits = fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) > 0;
    announce(fake_env_waiting(&fake, 0, waits ? REDLOCK_OP_WAIT : REDLOCK_OP_ACQUIRE)->token, "me");
    call_at = REDLOCK_ELECTION_LEADING;
    call = redlock_election_resign;
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
    next(REDLOCK_ELECTION_RESIGNED);
    assert_silent();
}

static void calls_from_callbacks(void **state) {
    (void)state;
    lead();
    call_at = REDLOCK_ELECTION_LOST;
    call = redlock_election_resign;
    expire();
    next(REDLOCK_ELECTION_LOST);
    next(REDLOCK_ELECTION_RESIGNED);
    assert_true(redlock_election_is_out(election));
    assert_int_equal(redlock_election_campaign(election), REDLOCK_OK);
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    call_at = REDLOCK_ELECTION_RESIGNED;
    call = redlock_election_campaign;
    grant_all();
    next(REDLOCK_ELECTION_RESIGNED);
    next(REDLOCK_ELECTION_LEADING);
    call_at = REDLOCK_ELECTION_LEADER;
    call = redlock_election_end;
    announce("", "");
    next(REDLOCK_ELECTION_LEADER);
    grant_all();
    next(REDLOCK_ELECTION_ENDED);
    assert_silent();
}

static void assert_ends(int code) {
    assert_int_equal(redlock_election_end(election), REDLOCK_OK);
    assert_int_equal(observers, 0);
    assert_silent();
    assert_int_equal(redlock_election_end(election), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_election_resign(election), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_election_campaign(election), REDLOCK_ERR_INVALID);
    grant_all();
    assert_int_equal(next(REDLOCK_ELECTION_ENDED)->code, code);
    assert_silent();
    assert_null(elections.first);
}

static void it_ends(void **state) {
    (void)state;
    start(false);
    assert_ends(REDLOCK_OK);
    start(true);
    assert_ends(REDLOCK_OK);
    lead();
    assert_ends(REDLOCK_OK);
    lead();
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    assert_ends(REDLOCK_OK);
}

static void there_may_be_several(void **state) {
    (void)state;
    redlock_election *all[3];
    for (int i = 0; i < 3; i++) {
        start(false);
        all[i] = election;
    }
    for (int i = 0; i < 3; i++) { /* the middle, the first, the last */
        assert_int_equal(redlock_election_end(all[(i + 1) % 3]), REDLOCK_OK);
        fake_env_turn(&fake);
        next(REDLOCK_ELECTION_ENDED);
    }
    assert_null(elections.first);
}

/* What is wrong now, and that it is over. */
static void trouble_is_told_until_it_is_over(void **state) {
    (void)state;
    fake.refusing = 7;
    start(true);
    assert_silent();
    fake_env_pass_ms(&fake, 5000);
    const struct told *event = next(REDLOCK_ELECTION_TROUBLE);
    assert_int_equal(event->code, REDLOCK_ERR_NO_QUORUM);
    assert_non_null(strstr(event->message, "no quorum"));
    assert_silent();
    fake.refusing = 0;
    fake_env_pass_ms(&fake, 300); /* it asks again */
    for (unsigned i = 0; i < 3; i++) {
        while (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
            fake_env_queue(&fake, i, "somebody", 0);
        }
    }
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(next(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_OK);
    assert_silent();
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
}

static void a_ttl_that_leaves_no_validity_is_trouble(void **state) {
    (void)state;
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.ttl_ms = 2;
    assert_int_equal(start_with(&options), REDLOCK_OK);
    assert_silent();
    fake_env_pass_ms(&fake, 10000);
    const struct told *event = next(REDLOCK_ELECTION_TROUBLE);
    assert_int_equal(event->code, REDLOCK_ERR_TOO_SLOW);
    assert_true(strlen(event->message) > 10);
    assert_silent();
}

static void without_random_bytes_it_tries_again(void **state) {
    (void)state;
    fake.random_code = REDLOCK_ERR_RANDOM;
    start(true);
    assert_silent();
    fake_env_pass_ms(&fake, 3500);
    assert_int_equal(next(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_ERR_RANDOM);
    assert_silent();
    fake.random_code = REDLOCK_OK;
    fake_env_pass_ms(&fake, 1000);
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
}

static unsigned drains;

static void on_drained(void *ctx) {
    (void)ctx;
    drains++;
    redlock_elections_closed(&elections);
}

static void close_all(void) {
    drains = 0;
    redlock_elections_close(&elections);
    redlock_group_drain(fake.group, on_drained, NULL);
    assert_silent();
    assert_int_equal(observers, 0);
    assert_int_equal(redlock_election_resign(election), REDLOCK_ERR_CLOSED);
    grant_all();
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(drains, 1);
}

static void the_close_ends_a_leader(void **state) {
    (void)state;
    lead();
    const uint64_t term = told[0].term;
    drains = 0;
    redlock_elections_close(&elections);
    assert_int_equal(redlock_election_validity_ms(election, term), 0);
    redlock_group_drain(fake.group, on_drained, NULL);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    grant_all();
    assert_int_equal(next(REDLOCK_ELECTION_ENDED)->code, REDLOCK_ERR_CLOSED);
    assert_silent();
}

static void the_close_ends_whoever_waits_is_out_or_leaves(void **state) {
    (void)state;
    start(true);
    start(false);
    start(true);
    assert_int_equal(redlock_election_resign(election), REDLOCK_OK);
    start(true);
    assert_int_equal(redlock_election_end(election), REDLOCK_OK);
    start(false);
    close_all();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(next(REDLOCK_ELECTION_ENDED)->code, REDLOCK_ERR_CLOSED);
    }
    assert_silent();
    assert_null(elections.first);
}

static void a_child_process_may_only_abandon(void **state) {
    (void)state;
    lead();
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_int_equal(redlock_election_resign(election), REDLOCK_ERR_FORKED);
    assert_int_equal(redlock_election_campaign(election), REDLOCK_ERR_FORKED);
    assert_int_equal(redlock_election_end(election), REDLOCK_ERR_FORKED);
    assert_int_equal(start_with(NULL), REDLOCK_ERR_FORKED);
    redlock_elections_free(&elections);
    assert_silent();
    assert_null(elections.first);
}

static void bad_arguments_are_refused(void **state) {
    (void)state;
    redlock_election *none = NULL;
    redlock_election_options options;
    redlock_election_options_default(&options);
    assert_int_equal(redlock_elections_add(&elections, "r", NULL, NULL, NULL, &none), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_elections_add(&elections, "r", NULL, take_event, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_elections_add(&elections, "", NULL, take_event, NULL, &none), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_elections_add(&elections, NULL, NULL, take_event, NULL, &none), REDLOCK_ERR_INVALID);
    options.size++;
    assert_int_equal(start_with(&options), REDLOCK_ERR_INVALID);
    options.size = 0;
    assert_int_equal(start_with(&options), REDLOCK_ERR_INVALID);
    options.size = sizeof options;
    options.ttl_ms = 0;
    options.campaign = false;
    assert_int_equal(start_with(&options), REDLOCK_ERR_INVALID);
    assert_int_equal(fake.logged[REDLOCK_LOG_ERROR], 1);
    options.ttl_ms = 1000;
    observe_code = REDLOCK_ERR_LIMIT;
    assert_int_equal(start_with(&options), REDLOCK_ERR_LIMIT);
    assert_int_equal(redlock_election_resign(NULL), REDLOCK_ERR_INVALID);
    assert_null(none);
    assert_null(elections.first);
    assert_string_equal(redlock_election_event_name((redlock_election_event_kind)99), "?");
    assert_string_equal(redlock_election_event_name(REDLOCK_ELECTION_NOTHING), "NOTHING");
}

/* Each allocation of a start, and of a campaign after a loss, fails in turn. */
static unsigned allocations_left;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails(void) {
    return allocations_left > 0 && --allocations_left == 0;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return fails() ? NULL : __real_realloc(old, size);
}

static void it_survives_a_lack_of_memory(void **state) {
    (void)state;
    unsigned failed = 0;
    for (allocations_left = 1;; allocations_left = failed + 1) {
        const int code = start_with(NULL);
        const bool all_went_well = allocations_left > 0;
        allocations_left = 0;
        if (code != REDLOCK_OK) {
            assert_int_equal(code, REDLOCK_ERR_NO_MEMORY);
        } else if (!all_went_well) { /* only the campaign failed */
            fake_env_turn(&fake);
            assert_int_equal(next(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_ERR_NO_MEMORY);
            fake_env_pass_ms(&fake, 1500);
            grant_all();
            next(REDLOCK_ELECTION_LEADING);
            assert_ends(REDLOCK_OK);
        } else {
            break;
        }
        failed++;
    }
    assert_true(failed >= 3);
    assert_silent();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        election_test(it_leads_with_a_term_of_its_own),
        election_test(after_a_loss_it_leads_in_another_term),
        election_test(it_resigns_and_stays_out),
        election_test(a_release_that_fails_is_told),
        election_test(it_gives_up_a_campaign),
        election_test(it_gives_up_a_campaign_that_was_just_won),
        election_test(it_only_observes_until_it_is_told_to_campaign),
        election_test(news_of_ourselves_comes_after_leading),
        election_test(news_of_ourselves_is_dropped_if_leading_resigns),
        election_test(calls_from_callbacks),
        election_test(it_ends),
        election_test(there_may_be_several),
        election_test(trouble_is_told_until_it_is_over),
        election_test(a_ttl_that_leaves_no_validity_is_trouble),
        election_test(without_random_bytes_it_tries_again),
        election_test(the_close_ends_a_leader),
        election_test(the_close_ends_whoever_waits_is_out_or_leaves),
        election_test(a_child_process_may_only_abandon),
        election_test(bad_arguments_are_refused),
        election_test(it_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
