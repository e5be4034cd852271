/* How an election ends: by its owner, by a close, in a child process; and what is refused. */
#include "election_kit.h"
#include "scarce_memory.h"

static void assert_ends(int code) {
    assert_is(redlock_election_end(election), REDLOCK_OK);
    assert_int_equal(observers, 0);
    assert_silent();
    assert_is(redlock_election_end(election), REDLOCK_ERR_INVALID);
    assert_is(redlock_election_resign(election), REDLOCK_ERR_INVALID);
    assert_is(redlock_election_campaign(election), REDLOCK_ERR_INVALID);
    grant_all();
    assert_int_equal(next(REDLOCK_ELECTION_ENDED)->code, code);
    assert_silent();
    assert_true(redlock_list_is_empty(&elections.list));
}

ELECTION_TEST(it_ends) {
    start(false);
    assert_ends(REDLOCK_OK);
    start(true);
    assert_ends(REDLOCK_OK);
    lead();
    assert_ends(REDLOCK_OK);
    lead();
    assert_is(redlock_election_resign(election), REDLOCK_OK);
    assert_ends(REDLOCK_OK);
}

ELECTION_TEST(there_may_be_several) {
    redlock_election *all[3];
    for (int i = 0; i < 3; i++) {
        start(false);
        all[i] = election;
    }
    for (int i = 0; i < 3; i++) { /* the middle, the first, the last */
        assert_is(redlock_election_end(all[(i + 1) % 3]), REDLOCK_OK);
        fake_env_turn(&fake);
        next(REDLOCK_ELECTION_ENDED);
    }
    assert_true(redlock_list_is_empty(&elections.list));
}

ELECTION_TEST(what_ended_keeps_no_room) {
    const uint32_t reserved = fake.group->schedule.reserved;
    start(false);
    assert_int_equal(fake.group->schedule.reserved, reserved + 1);
    assert_ends(REDLOCK_OK);
    assert_int_equal(fake.group->schedule.reserved, reserved);
    observe_code = REDLOCK_ERR_LIMIT;
    assert_is(start_with(NULL), REDLOCK_ERR_LIMIT);
    assert_int_equal(fake.group->schedule.reserved, reserved);
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
    assert_is(redlock_election_resign(election), REDLOCK_ERR_CLOSED);
    grant_all();
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(drains, 1);
}

static int close_elections_then(redlock_election *ended) {
    (void)ended;
    redlock_elections_close(&elections);
    return REDLOCK_OK;
}

/* The election whose end is told is not among those that the close ends. */
ELECTION_TEST(the_callback_of_the_end_may_close) {
    start(false);
    start(false);
    call_at = REDLOCK_ELECTION_ENDED;
    call = close_elections_then;
    assert_is(redlock_election_end(election), REDLOCK_OK);
    grant_all();
    assert_is(next(REDLOCK_ELECTION_ENDED)->code, REDLOCK_OK);
    assert_silent();
    redlock_elections_closed(&elections);
    assert_is(next(REDLOCK_ELECTION_ENDED)->code, REDLOCK_ERR_CLOSED);
    assert_true(redlock_list_is_empty(&elections.list));
}

ELECTION_TEST(the_close_ends_a_leader) {
    lead();
    const uint64_t term = told[0].term;
    drains = 0;
    redlock_elections_close(&elections);
    assert_int_equal(redlock_election_validity_ms(election, term), 0);
    redlock_group_drain(fake.group, on_drained, NULL);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    grant_all();
    assert_is(next(REDLOCK_ELECTION_ENDED)->code, REDLOCK_ERR_CLOSED);
    assert_silent();
}

ELECTION_TEST(the_close_ends_whoever_waits_is_out_or_leaves) {
    start(true);
    start(false);
    start(true);
    assert_is(redlock_election_resign(election), REDLOCK_OK);
    start(true);
    assert_is(redlock_election_end(election), REDLOCK_OK);
    start(false);
    close_all();
    for (int i = 0; i < 5; i++) {
        assert_is(next(REDLOCK_ELECTION_ENDED)->code, REDLOCK_ERR_CLOSED);
    }
    assert_silent();
    assert_true(redlock_list_is_empty(&elections.list));
}

ELECTION_TEST(a_child_process_may_only_abandon) {
    lead();
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_is(redlock_election_resign(election), REDLOCK_ERR_FORKED);
    assert_is(redlock_election_campaign(election), REDLOCK_ERR_FORKED);
    assert_is(redlock_election_end(election), REDLOCK_ERR_FORKED);
    assert_is(start_with(NULL), REDLOCK_ERR_FORKED);
    redlock_elections_free(&elections);
    assert_silent();
    assert_true(redlock_list_is_empty(&elections.list));
}

ELECTION_TEST(bad_arguments_are_refused) {
    redlock_election *none = NULL;
    redlock_election_options options;
    redlock_election_options_default(&options);
    assert_is(redlock_elections_add(&elections, "r", NULL, NULL, NULL, NULL, &none), REDLOCK_ERR_INVALID);
    assert_is(redlock_elections_add(&elections, "r", NULL, take_event, NULL, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_elections_add(&elections, "", NULL, take_event, NULL, NULL, &none), REDLOCK_ERR_INVALID);
    assert_is(redlock_elections_add(&elections, NULL, NULL, take_event, NULL, NULL, &none), REDLOCK_ERR_INVALID);
    options.size++;
    assert_is(start_with(&options), REDLOCK_ERR_INVALID);
    options.size = 0;
    assert_is(start_with(&options), REDLOCK_ERR_INVALID);
    options.size = sizeof options;
    options.ttl_ms = 0;
    options.campaign = false;
    assert_is(start_with(&options), REDLOCK_ERR_INVALID);
    assert_int_equal(fake.logged[REDLOCK_LOG_ERROR], 7); /* each of them */
    options.ttl_ms = 1000;
    observe_code = REDLOCK_ERR_LIMIT;
    assert_is(start_with(&options), REDLOCK_ERR_LIMIT);
    assert_is(redlock_election_resign(NULL), REDLOCK_ERR_INVALID);
    assert_null(none);
    assert_true(redlock_list_is_empty(&elections.list));
    assert_string_equal(redlock_election_event_name((redlock_election_event_kind)99), "?");
    assert_string_equal(redlock_election_event_name(REDLOCK_ELECTION_NOTHING), "NOTHING");
}

/* Each allocation of a start, and of a campaign after a loss, fails in turn. */
ELECTION_TEST(it_survives_a_lack_of_memory) {
    long failed = 0;
    for (;;) {
        memory_fails_at(failed + 1);
        const int code = start_with(NULL);
        const bool all_went_well = memory.count < memory.fails;
        memory.armed = false;
        if (code != REDLOCK_OK) {
            assert_is(code, REDLOCK_ERR_NO_MEMORY);
        } else if (!all_went_well) { /* only the campaign failed */
            fake_env_turn(&fake);
            assert_is(next(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_ERR_NO_MEMORY);
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
