/* The states of a candidate: each row of the table in core/candidate.h, and that no other event
 * changes anything. */

#include "core/candidate.h"
#include "core/time.h"
#include "test.h"

#define MS      REDLOCK_NS_PER_MS
#define LOOK_NS (REDLOCK_CANDIDATE_LOOK_MS * MS)

static struct redlock_candidate candidate;
static struct redlock_candidate_actions actions;
static int64_t now_ns;

static int fresh(UNUSED void **state) {
    now_ns = 5000 * MS;
    redlock_candidate_init(&candidate);
    return 0;
}

static void feed(enum redlock_candidate_input input, int code) {
    redlock_candidate_step(&candidate, input, code, now_ns, &actions);
}

/* What is done is that, and nothing else. */
static void assert_done(enum redlock_candidate_state next, struct redlock_candidate_actions expected) {
    assert_int_equal(candidate.state, next);
    assert_int_equal(actions.cancel, expected.cancel);
    assert_int_equal(actions.release, expected.release);
    assert_int_equal(actions.report, expected.report);
    assert_int_equal(actions.acquire, expected.acquire);
    assert_int_equal(actions.tell, expected.tell);
    assert_int_equal(actions.code, expected.code);
}
#define assert_next(next, ...) assert_done(REDLOCK_CANDIDATE_##next, (struct redlock_candidate_actions){__VA_ARGS__})

static void assert_wakes_after(int64_t delay_ns) {
    assert_int_equal(candidate.wake_ns, now_ns + delay_ns);
}

static void assert_sleeps(void) {
    assert_int_equal(candidate.wake_ns, REDLOCK_NEVER_NS);
}

static void timer(int code) {
    now_ns = candidate.wake_ns;
    feed(REDLOCK_CANDIDATE_TIMER, code);
}

static void campaign(void) {
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = true);
    assert_wakes_after(LOOK_NS);
}

static void lead(void) {
    campaign();
    feed(REDLOCK_CANDIDATE_WON, REDLOCK_OK);
    assert_next(LEADING, .tell = REDLOCK_ELECTION_LEADING);
    assert_sleeps();
}

#define CANDIDATE_TEST(name) TEST_WITH(name, fresh, NULL)

CANDIDATE_TEST(it_campaigns_leads_and_resigns) {
    assert_sleeps();
    lead();
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    assert_next(LEADING, .acquire = false);
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    assert_next(LEAVING, .release = true, .report = true);
    assert_sleeps();
    feed(REDLOCK_CANDIDATE_RELEASED, REDLOCK_ERR_NO_QUORUM);
    assert_next(OUT, .tell = REDLOCK_ELECTION_RESIGNED, .code = REDLOCK_ERR_NO_QUORUM);
    assert_sleeps();
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    assert_next(OUT, .acquire = false);
    assert_sleeps();
    lead();
}

CANDIDATE_TEST(a_leader_is_told_that_its_end_is_near) {
    lead();
    feed(REDLOCK_CANDIDATE_EXPIRING, REDLOCK_OK);
    assert_next(LEADING, .tell = REDLOCK_ELECTION_EXPIRING);
    assert_sleeps();
}

CANDIDATE_TEST(after_a_loss_it_campaigns_before_it_tells) {
    lead();
    now_ns += 7 * MS;
    feed(REDLOCK_CANDIDATE_LOST, REDLOCK_ERR_LOST);
    assert_next(CAMPAIGNING, .release = true, .acquire = true, .tell = REDLOCK_ELECTION_LOST, .code = REDLOCK_ERR_LOST);
    assert_wakes_after(LOOK_NS);
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = false);
    feed(REDLOCK_CANDIDATE_WON, REDLOCK_OK);
    assert_next(LEADING, .tell = REDLOCK_ELECTION_LEADING);
}

CANDIDATE_TEST(a_campaign_is_cancelled) {
    campaign();
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    assert_next(LEAVING, .cancel = true);
    assert_sleeps();
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    assert_next(LEAVING, .cancel = false);
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_CANCELLED);
    assert_next(OUT, .tell = REDLOCK_ELECTION_RESIGNED);
}

CANDIDATE_TEST(a_call_while_it_leaves_campaigns_again) {
    lead();
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    assert_next(LEAVING, .acquire = false);
    feed(REDLOCK_CANDIDATE_RELEASED, REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = true, .tell = REDLOCK_ELECTION_RESIGNED);
    assert_wakes_after(LOOK_NS);
    /* Only once, and not if the last word was to resign. */
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_CANCELLED);
    assert_next(OUT, .tell = REDLOCK_ELECTION_RESIGNED);
}

CANDIDATE_TEST(trouble_is_told_once_until_it_is_over) {
    campaign();
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = false);
    timer(REDLOCK_ERR_NO_QUORUM);
    assert_next(CAMPAIGNING, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_ERR_NO_QUORUM);
    assert_wakes_after(LOOK_NS);
    timer(REDLOCK_ERR_NO_QUORUM);
    assert_next(CAMPAIGNING, .acquire = false);
    timer(REDLOCK_ERR_TOO_SLOW);
    assert_next(CAMPAIGNING, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_ERR_TOO_SLOW);
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_OK);
    timer(REDLOCK_ERR_NO_QUORUM);
    feed(REDLOCK_CANDIDATE_WON, REDLOCK_OK);
    feed(REDLOCK_CANDIDATE_LOST, REDLOCK_ERR_LOST);
    timer(REDLOCK_ERR_NO_QUORUM); /* LEADING has ended the trouble, so this is another one */
    assert_next(CAMPAIGNING, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_ERR_NO_QUORUM);
}

CANDIDATE_TEST(it_looks_only_when_it_is_time) {
    campaign();
    now_ns = candidate.wake_ns - 1;
    const int64_t wake_ns = candidate.wake_ns;
    feed(REDLOCK_CANDIDATE_TIMER, REDLOCK_ERR_NO_QUORUM);
    assert_next(CAMPAIGNING, .acquire = false);
    assert_int_equal(candidate.wake_ns, wake_ns);
}

CANDIDATE_TEST(a_campaign_that_failed_is_tried_again) {
    campaign();
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_RANDOM);
    assert_next(PAUSED, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_ERR_RANDOM);
    assert_wakes_after(LOOK_NS);
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    assert_next(PAUSED, .acquire = false);
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = true);
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_RANDOM);
    assert_next(PAUSED, .acquire = false);
    timer(REDLOCK_OK);
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_OK);
}

CANDIDATE_TEST(an_acquire_that_is_refused_is_told_later) {
    campaign();
    feed(REDLOCK_CANDIDATE_REFUSED, REDLOCK_ERR_NO_MEMORY);
    assert_next(PAUSED, .acquire = false);
    assert_wakes_after(0);
    timer(REDLOCK_OK);
    assert_next(PAUSED, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_ERR_NO_MEMORY);
    assert_wakes_after(LOOK_NS);
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = true);
    feed(REDLOCK_CANDIDATE_REFUSED, REDLOCK_ERR_NO_MEMORY); /* the same again */
    assert_next(PAUSED, .acquire = false);
    assert_wakes_after(LOOK_NS);
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = true);
}

CANDIDATE_TEST(trouble_that_was_not_told_is_forgotten_with_its_campaign) {
    campaign();
    feed(REDLOCK_CANDIDATE_REFUSED, REDLOCK_ERR_NO_MEMORY);
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    timer(REDLOCK_OK);
    assert_next(OUT, .tell = REDLOCK_ELECTION_RESIGNED);
    campaign();
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_RANDOM);
    assert_next(PAUSED, .tell = REDLOCK_ELECTION_TROUBLE, .code = REDLOCK_ERR_RANDOM);
    timer(REDLOCK_OK);
    assert_next(CAMPAIGNING, .acquire = true);
}

CANDIDATE_TEST(it_leaves_a_pause_at_once) {
    campaign();
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_RANDOM);
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    assert_next(LEAVING, .cancel = false);
    assert_wakes_after(0);
    timer(REDLOCK_OK);
    assert_next(OUT, .tell = REDLOCK_ELECTION_RESIGNED);
    assert_sleeps();
}

static void end(bool cancels, bool releases) {
    assert_false(redlock_candidate_is_ending(&candidate));
    feed(REDLOCK_CANDIDATE_DO_END, REDLOCK_OK);
    assert_next(ENDING, .cancel = cancels, .release = releases, .report = releases);
    assert_true(redlock_candidate_is_ending(&candidate));
}

CANDIDATE_TEST(it_ends_in_each_state) {
    end(false, false); /* OUT */
    assert_wakes_after(0);
    timer(REDLOCK_OK);
    assert_next(ENDED, .tell = REDLOCK_ELECTION_ENDED);
    assert_true(redlock_candidate_is_ending(&candidate));

    fresh(state);
    campaign();
    end(true, false);
    feed(REDLOCK_CANDIDATE_FAILED, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .tell = REDLOCK_ELECTION_ENDED);

    fresh(state);
    lead();
    end(false, true);
    feed(REDLOCK_CANDIDATE_RELEASED, REDLOCK_ERR_LOST);
    assert_next(ENDED, .tell = REDLOCK_ELECTION_ENDED, .code = REDLOCK_ERR_LOST);

    fresh(state);
    campaign();
    feed(REDLOCK_CANDIDATE_REFUSED, REDLOCK_ERR_NO_MEMORY);
    end(false, false); /* PAUSED */
    timer(REDLOCK_OK);
    assert_next(ENDED, .tell = REDLOCK_ELECTION_ENDED);

    fresh(state);
    lead();
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
    feed(REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK);
    end(false, false); /* LEAVING */
    feed(REDLOCK_CANDIDATE_RELEASED, REDLOCK_OK);
    assert_next(ENDED, .tell = REDLOCK_ELECTION_ENDED);
}

/* Whatever comes while it closes, only the end of the close is told. */
static void close_after(void (*begin)(void)) {
    static const enum redlock_candidate_input late[] = {REDLOCK_CANDIDATE_WON, REDLOCK_CANDIDATE_FAILED,
                                                        REDLOCK_CANDIDATE_LOST, REDLOCK_CANDIDATE_RELEASED,
                                                        REDLOCK_CANDIDATE_TIMER};
    void *state = NULL;
    fresh(&state);
    begin();
    feed(REDLOCK_CANDIDATE_DO_CLOSE, REDLOCK_OK);
    assert_next(CLOSING, .release = false);
    assert_sleeps();
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        feed(late[i], REDLOCK_ERR_CLOSED);
        assert_next(CLOSING, .release = false);
    }
    feed(REDLOCK_CANDIDATE_CLOSED, REDLOCK_OK);
    assert_next(ENDED, .tell = REDLOCK_ELECTION_ENDED, .code = REDLOCK_ERR_CLOSED);
}

static void stay_out(void) {
}

static void leave(void) {
    lead();
    feed(REDLOCK_CANDIDATE_DO_RESIGN, REDLOCK_OK);
}

static void end_it(void) {
    lead();
    feed(REDLOCK_CANDIDATE_DO_END, REDLOCK_OK);
}

CANDIDATE_TEST(it_closes_in_each_state) {
    close_after(stay_out);
    close_after(campaign);
    close_after(lead);
    close_after(leave);
    close_after(end_it);
}
