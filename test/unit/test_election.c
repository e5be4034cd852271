/* An election over a fake env: what it asks of the group, and what it tells. */
#include "election_kit.h"

ELECTION_TEST(it_leads_with_a_term_of_its_own) {
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

ELECTION_TEST(after_a_loss_it_leads_in_another_term) {
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

static int span;
static unsigned traced[REDLOCK_TELEMETRY_EXPIRING + 1];

static void count_traced(const redlock_telemetry_event *event, void *data) {
    (void)data;
    assert_ptr_equal(event->trace, &span);
    traced[event->kind]++;
}

ELECTION_TEST(each_term_has_the_context_of_its_election) {
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.trace = &span;
    memset(traced, 0, sizeof traced);
    fake.group->on_event = count_traced;
    assert_is(start_with(&options), REDLOCK_OK);
    grant_all();
    assert_int_equal(traced[REDLOCK_TELEMETRY_STARTED], 1);
    assert_int_equal(traced[REDLOCK_TELEMETRY_ACQUIRED], 1);
    expire();
    assert_int_equal(traced[REDLOCK_TELEMETRY_LOST], 1);
    assert_int_equal(traced[REDLOCK_TELEMETRY_RELEASED], 1);
    assert_int_equal(traced[REDLOCK_TELEMETRY_STARTED], 2);
}

static const struct told *lead_warned(void) {
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.expiring_ms = 4000;
    assert_is(start_with(&options), REDLOCK_OK);
    grant_all();
    return next(REDLOCK_ELECTION_LEADING);
}

ELECTION_TEST(a_leader_that_nobody_answers_is_told_before_its_end) {
    (void)lead_warned();
    fake_env_pass_ms(&fake, 9898 - 4000);
    const struct told *event = next(REDLOCK_ELECTION_EXPIRING);
    assert_int_equal(event->term, 1);
    assert_int_equal(event->remaining_ms, 4000);
    assert_is(event->code, REDLOCK_OK);
    assert_string_equal(event->reason, "");
    assert_int_equal(redlock_election_validity_ms(election, 1), 4000);
    assert_silent();
    fake_env_pass_ms(&fake, 4000);
    next(REDLOCK_ELECTION_LOST);
}

ELECTION_TEST(a_leader_may_resign_when_it_is_told_so) {
    (void)lead_warned();
    call_at = REDLOCK_ELECTION_EXPIRING;
    call = redlock_election_resign;
    fake_env_pass_ms(&fake, 9898 - 4000);
    next(REDLOCK_ELECTION_EXPIRING);
    grant_all();
    next(REDLOCK_ELECTION_RESIGNED);
    fake_env_pass_ms(&fake, 20000);
    assert_silent();
}

ELECTION_TEST(a_leader_that_is_renewed_is_told_nothing) {
    (void)lead_warned();
    for (int i = 0; i < 20; i++) {
        fake_env_pass_ms(&fake, 1000);
        grant_all();
    }
    assert_silent();
}

ELECTION_TEST(it_resigns_and_stays_out) {
    lead();
    assert_is(redlock_election_resign(election), REDLOCK_OK);
    assert_int_equal(redlock_election_validity_ms(election, 1), 0);
    assert_false(redlock_election_is_out(election));
    assert_silent();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    grant_all();
    assert_is(next(REDLOCK_ELECTION_RESIGNED)->code, REDLOCK_OK);
    assert_true(redlock_election_is_out(election));
    fake_env_pass_ms(&fake, 60000);
    assert_false(asks_for_the_lock());
    assert_is(redlock_election_resign(election), REDLOCK_OK);
    fake_env_pass_ms(&fake, 5000);
    assert_silent();
    assert_is(redlock_election_campaign(election), REDLOCK_OK);
    grant_all();
    assert_int_equal(next(REDLOCK_ELECTION_LEADING)->term, 2);
}

ELECTION_TEST(a_release_that_fails_is_told) {
    lead();
    assert_is(redlock_election_resign(election), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    const struct told *event = next(REDLOCK_ELECTION_RESIGNED);
    assert_is(event->code, REDLOCK_ERR_LOST);
    assert_true(strlen(event->message) > 10);
}

ELECTION_TEST(it_gives_up_a_campaign) {
    start(true);
    assert_is(redlock_election_resign(election), REDLOCK_OK);
    assert_silent();
    fake_env_turn(&fake);
    const struct told *event = next(REDLOCK_ELECTION_RESIGNED);
    assert_is(event->code, REDLOCK_OK);
    assert_int_equal(event->term, 0);
    assert_string_equal(event->message, ""); /* not that of the acquire */
    grant_all();
    assert_silent();
}

/* The grants are in, but their callback has not run: then the lock goes back. */
ELECTION_TEST(it_gives_up_a_campaign_that_was_just_won) {
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

ELECTION_TEST(it_only_observes_until_it_is_told_to_campaign) {
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
    assert_is(redlock_election_campaign(election), REDLOCK_OK);
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
}

/* The nodes may tell of our grants before their answers are counted. */
ELECTION_TEST(news_of_ourselves_comes_after_leading) {
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

/* What was kept back is not told, so it is no change when the last leader is back. */
ELECTION_TEST(the_same_leader_is_told_once) {
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    start(true);
    strcpy(token, fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT)->token);
    announce("", "");
    assert_string_equal(next(REDLOCK_ELECTION_LEADER)->token, "");
    announce(token, "me");
    announce("", "");
    assert_silent();
    announce(token, "me");
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
    assert_string_equal(next(REDLOCK_ELECTION_LEADER)->token, token);
    announce(token, "me");
    assert_silent();
}

/* Leads; the callback of LEADING makes the call, which ends the term. */
static void leads_and(int (*ends)(redlock_election *), redlock_election_event_kind then) {
    call_at = REDLOCK_ELECTION_LEADING;
    call = ends;
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
    next(then);
}

ELECTION_TEST(news_of_ourselves_is_dropped_if_leading_resigns) {
    start(true);
    const bool waits = fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) > 0;
    announce(fake_env_waiting(&fake, 0, waits ? REDLOCK_OP_WAIT : REDLOCK_OP_ACQUIRE)->token, "me");
    leads_and(redlock_election_resign, REDLOCK_ELECTION_RESIGNED);
    assert_silent();
}

/* What nodes said before is old from then on, also if the term is over at once. */
ELECTION_TEST(the_observer_knows_that_we_lead) {
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    strcpy(token, redlock_lease_token(lead()->lease));
    for (unsigned i = 0; i < fake.node_count; i++) {
        redlock_group_listens(fake.group, i, REDLOCK_LISTENING, NULL);
    }
    assert_int_equal(led.count, 1);
    assert_true(led.leads_still);
    assert_string_equal(led.token, token);
    expire();
    next(REDLOCK_ELECTION_LOST);
    leads_and(redlock_election_resign, REDLOCK_ELECTION_RESIGNED);
    assert_int_equal(led.count, 2);
    assert_false(led.leads_still);
    assert_is(redlock_election_campaign(election), REDLOCK_OK);
    leads_and(redlock_election_end, REDLOCK_ELECTION_ENDED);
    assert_int_equal(led.count, 2);
}

ELECTION_TEST(calls_from_callbacks) {
    lead();
    call_at = REDLOCK_ELECTION_LOST;
    call = redlock_election_resign;
    expire();
    next(REDLOCK_ELECTION_LOST);
    next(REDLOCK_ELECTION_RESIGNED);
    assert_true(redlock_election_is_out(election));
    assert_is(redlock_election_campaign(election), REDLOCK_OK);
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
    assert_is(redlock_election_resign(election), REDLOCK_OK);
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

/* What is wrong now, and that it is over. */
ELECTION_TEST(trouble_is_told_until_it_is_over) {
    fake.refusing = 7;
    start(true);
    assert_silent();
    fake_env_pass_ms(&fake, 5000);
    const struct told *event = next(REDLOCK_ELECTION_TROUBLE);
    assert_is(event->code, REDLOCK_ERR_NO_QUORUM);
    assert_contains(event->message, "no quorum");
    assert_silent();
    fake.refusing = 0;
    fake_env_pass_ms(&fake, 300); /* it asks again */
    for (unsigned i = 0; i < 3; i++) {
        while (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
            fake_env_queue(&fake, i, "somebody", 0);
        }
    }
    fake_env_pass_ms(&fake, 1000);
    assert_is(next(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_OK);
    assert_silent();
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
}

ELECTION_TEST(a_ttl_that_leaves_no_validity_is_trouble) {
    redlock_election_options options;
    redlock_election_options_default(&options);
    options.ttl_ms = 2;
    assert_is(start_with(&options), REDLOCK_OK);
    assert_silent();
    fake_env_pass_ms(&fake, 10000);
    const struct told *event = next(REDLOCK_ELECTION_TROUBLE);
    assert_is(event->code, REDLOCK_ERR_TOO_SLOW);
    assert_true(strlen(event->message) > 10);
    assert_silent();
}

ELECTION_TEST(without_random_bytes_it_tries_again) {
    fake.random_code = REDLOCK_ERR_RANDOM;
    start(true);
    assert_silent();
    fake_env_pass_ms(&fake, 3500);
    assert_is(next(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_ERR_RANDOM);
    assert_silent();
    fake.random_code = REDLOCK_OK;
    fake_env_pass_ms(&fake, 1000);
    grant_all();
    next(REDLOCK_ELECTION_LEADING);
}
