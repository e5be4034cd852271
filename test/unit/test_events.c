/* Events that nobody has read yet: which are merged, and in which order they are read. */
#include "blocking/events.h"
#include "test.h"

/* Results, as far as events touches them. */
static int results;
static bool memory_fails;

redlock_result *redlock_result_copy(const redlock_result *result) {
    (void)result;
    if (memory_fails) {
        return NULL;
    }
    results++;
    return malloc(1);
}

void redlock_result_free(redlock_result *result) {
    results -= result != NULL;
    free(result);
}

static struct redlock_events events;

static int fresh(UNUSED void **state) {
    events = (struct redlock_events){0};
    memory_fails = false;
    return 0;
}

static int clear(UNUSED void **state) {
    redlock_events_clear(&events);
    assert_int_equal(results, 0);
    return 0;
}

static char some_result;

static void add(redlock_election_event_kind kind, uint64_t term, int code) {
    const redlock_leader leader = {.token = "aa", .holder = "db-1"};
    redlock_election_event event = {.kind = kind, .term = term, .code = code, .reason = "it expired"};
    event.leader = kind == REDLOCK_ELECTION_LEADER ? &leader : NULL;
    event.result = (redlock_result *)(void *)&some_result;
    event.election = (redlock_election *)(void *)&events;
    event.lease = (redlock_lease *)(void *)&events;
    redlock_events_add(&events, &event);
}

static void lead(uint64_t term) {
    add(REDLOCK_ELECTION_LEADING, term, REDLOCK_OK);
}

static void lose(uint64_t term) {
    add(REDLOCK_ELECTION_LOST, term, REDLOCK_OK);
}

static const redlock_election_event *take(redlock_election_event_kind kind) {
    const redlock_election_event *event = redlock_events_take(&events);
    assert_non_null(event);
    assert_int_equal(event->kind, kind);
    assert_null(event->election);
    assert_null(event->lease);
    return event;
}

static void assert_empty(void) {
    assert_null(redlock_events_take(&events));
}

#define NEWS_TEST(name) TEST_WITH(name, fresh, clear)

NEWS_TEST(each_kind_is_read_once) {
    assert_empty();
    lead(3);
    assert_int_equal(take(REDLOCK_ELECTION_LEADING)->term, 3);
    assert_empty();
    lose(3);
    const redlock_election_event *event = take(REDLOCK_ELECTION_LOST);
    assert_int_equal(event->term, 3);
    assert_string_equal(event->reason, "it expired");
    add(REDLOCK_ELECTION_LEADER, 0, 0);
    event = take(REDLOCK_ELECTION_LEADER);
    assert_string_equal(event->leader->token, "aa");
    assert_string_equal(event->leader->holder, "db-1");
    assert_string_equal(event->reason, "");
    add(REDLOCK_ELECTION_TROUBLE, 0, REDLOCK_ERR_NO_QUORUM);
    event = take(REDLOCK_ELECTION_TROUBLE);
    assert_is(event->code, REDLOCK_ERR_NO_QUORUM);
    assert_non_null(event->result);
    add(REDLOCK_ELECTION_RESIGNED, 0, REDLOCK_ERR_LOST);
    assert_is(take(REDLOCK_ELECTION_RESIGNED)->code, REDLOCK_ERR_LOST);
    add(REDLOCK_ELECTION_ENDED, 0, REDLOCK_ERR_CLOSED);
    event = take(REDLOCK_ELECTION_ENDED);
    assert_is(event->code, REDLOCK_ERR_CLOSED);
    assert_null(event->result);
    assert_empty();
}

NEWS_TEST(a_loss_comes_before_all_else) {
    lead(1);
    take(REDLOCK_ELECTION_LEADING);
    add(REDLOCK_ELECTION_LEADER, 0, 0);
    lose(1);
    add(REDLOCK_ELECTION_TROUBLE, 0, REDLOCK_ERR_NO_QUORUM);
    lead(2);
    assert_int_equal(take(REDLOCK_ELECTION_LOST)->term, 1);
    assert_int_equal(take(REDLOCK_ELECTION_LEADING)->term, 2);
    take(REDLOCK_ELECTION_LEADER); /* LEADING has ended the trouble */
    assert_empty();
}

NEWS_TEST(a_warning_belongs_to_its_term) {
    static const redlock_election_event_kind ends[] = {REDLOCK_ELECTION_LOST, REDLOCK_ELECTION_RESIGNED,
                                                       REDLOCK_ELECTION_ENDED};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        lead(1);
        add(REDLOCK_ELECTION_EXPIRING, 1, REDLOCK_OK);
        take(REDLOCK_ELECTION_LEADING);
        assert_int_equal(take(REDLOCK_ELECTION_EXPIRING)->term, 1);
        add(REDLOCK_ELECTION_EXPIRING, 1, REDLOCK_OK);
        add(ends[i], 1, REDLOCK_ERR_LOST);
        lead(2);
        take(ends[i] == REDLOCK_ELECTION_ENDED ? REDLOCK_ELECTION_LEADING : ends[i]);
        take(ends[i] == REDLOCK_ELECTION_ENDED ? ends[i] : REDLOCK_ELECTION_LEADING);
        assert_empty();
    }
    add(REDLOCK_ELECTION_EXPIRING, 2, REDLOCK_OK); /* nobody reads it */
}

/* A term that nobody has read of is not told; a loss that nobody has read of stays. */
NEWS_TEST(a_term_that_is_over_is_not_told) {
    lead(1);
    lose(1);
    assert_empty();
    lead(2);
    take(REDLOCK_ELECTION_LEADING);
    lose(2);
    lead(3);
    lose(3);
    assert_int_equal(take(REDLOCK_ELECTION_LOST)->term, 2);
    assert_empty();
    lead(4);
    add(REDLOCK_ELECTION_RESIGNED, 0, REDLOCK_OK);
    take(REDLOCK_ELECTION_RESIGNED);
    assert_empty();
    lead(5);
    add(REDLOCK_ELECTION_ENDED, 0, REDLOCK_OK);
    take(REDLOCK_ELECTION_ENDED);
    assert_empty();
}

NEWS_TEST(a_resignation_comes_before_the_next_term) {
    add(REDLOCK_ELECTION_RESIGNED, 0, REDLOCK_OK);
    lead(2);
    take(REDLOCK_ELECTION_RESIGNED);
    take(REDLOCK_ELECTION_LEADING);
    assert_empty();
}

NEWS_TEST(only_the_newest_trouble_and_leader_are_told) {
    add(REDLOCK_ELECTION_TROUBLE, 0, REDLOCK_ERR_NO_QUORUM);
    add(REDLOCK_ELECTION_TROUBLE, 0, REDLOCK_OK);
    assert_is(take(REDLOCK_ELECTION_TROUBLE)->code, REDLOCK_OK);
    add(REDLOCK_ELECTION_LEADER, 0, 0);
    redlock_leader nobody = {.token = "", .holder = ""};
    redlock_events_add(&events, &(redlock_election_event){.kind = REDLOCK_ELECTION_LEADER, .leader = &nobody});
    assert_string_equal(take(REDLOCK_ELECTION_LEADER)->leader->token, "");
    assert_empty();
}

NEWS_TEST(it_does_without_memory) {
    memory_fails = true;
    add(REDLOCK_ELECTION_RESIGNED, 0, REDLOCK_OK);
    assert_null(take(REDLOCK_ELECTION_RESIGNED)->result);
}

/* What was read stays until the next event is taken, whatever comes meanwhile. */
NEWS_TEST(what_was_read_stays) {
    lead(1);
    take(REDLOCK_ELECTION_LEADING);
    lose(1);
    const redlock_election_event *event = take(REDLOCK_ELECTION_LOST);
    redlock_events_add(&events, &(redlock_election_event){.kind = REDLOCK_ELECTION_LOST, .reason = "another"});
    assert_string_equal(event->reason, "it expired");
    char longer[3 * REDLOCK_EVENTS_TEXT_SIZE];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    redlock_events_add(&events, &(redlock_election_event){.kind = REDLOCK_ELECTION_LOST, .reason = longer});
    assert_int_equal(strlen(take(REDLOCK_ELECTION_LOST)->reason), REDLOCK_EVENTS_TEXT_SIZE - 1);
}
