/* Push against release: each row of the table in core/push.h, whole lives of a node, and the pushes
 * that are expected after the lease. */
#include <string.h>

#include "core/push.h"
#include "test.h"

#define STATES (REDLOCK_PUSH_KEPT + 1)
#define EVENTS (REDLOCK_PUSH_KEEP + 1)

#define UNASKED        REDLOCK_PUSH_UNASKED
#define ASKED          REDLOCK_PUSH_ASKED
#define TIMING         REDLOCK_PUSH_TIMING
#define TOLD           REDLOCK_PUSH_TOLD
#define RELEASING      REDLOCK_PUSH_RELEASING
#define RELEASING_TOLD REDLOCK_PUSH_RELEASING_TOLD
#define CROSSED        REDLOCK_PUSH_CROSSED
#define EXPECTED       REDLOCK_PUSH_EXPECTED
#define DONE           REDLOCK_PUSH_DONE
#define GIVEN_UP       REDLOCK_PUSH_GIVEN_UP
#define OWING          REDLOCK_PUSH_OWING
#define KEPT           REDLOCK_PUSH_KEPT

#define ASK         REDLOCK_PUSH_ASK
#define TELL        REDLOCK_PUSH_TELL
#define CAME        REDLOCK_PUSH_CAME
#define CAME_TIMED  REDLOCK_PUSH_CAME_TIMED
#define TIME        REDLOCK_PUSH_TIME
#define NO_TIME     REDLOCK_PUSH_NO_TIME
#define RELEASE     REDLOCK_PUSH_RELEASE
#define TAKEN       REDLOCK_PUSH_TAKEN
#define MISSING     REDLOCK_PUSH_MISSING
#define UNCONFIRMED REDLOCK_PUSH_UNCONFIRMED
#define GIVE_UP     REDLOCK_PUSH_GIVE_UP
#define KEEP        REDLOCK_PUSH_KEEP

#define NOTHING   REDLOCK_PUSH_NOTHING
#define COUNT     REDLOCK_PUSH_COUNT
#define ASK_TIME  REDLOCK_PUSH_ASK_TIME
#define GIVE_BACK REDLOCK_PUSH_GIVE_BACK

/* All that changes a state or asks for something. */
static const struct row {
    enum redlock_push_state state;
    enum redlock_push_event event;
    enum redlock_push_state next;
    enum redlock_push_action action;
} rows[] = {
    {UNASKED, ASK, ASKED, NOTHING},
    {UNASKED, CAME, UNASKED, GIVE_BACK},
    {UNASKED, CAME_TIMED, UNASKED, GIVE_BACK},
    {ASKED, CAME, TOLD, COUNT},
    {ASKED, CAME_TIMED, TIMING, ASK_TIME},
    {ASKED, TELL, TOLD, NOTHING},
    {ASKED, RELEASE, RELEASING, NOTHING},
    {ASKED, GIVE_UP, GIVEN_UP, NOTHING},
    {ASKED, KEEP, KEPT, NOTHING},
    {TIMING, CAME, TOLD, COUNT},
    {TIMING, TIME, TOLD, COUNT},
    {TIMING, NO_TIME, TOLD, NOTHING},
    {TIMING, RELEASE, RELEASING_TOLD, NOTHING},
    {TIMING, GIVE_UP, GIVEN_UP, NOTHING},
    {TIMING, KEEP, KEPT, NOTHING},
    {TOLD, CAME, TOLD, COUNT},
    {TOLD, CAME_TIMED, TIMING, ASK_TIME},
    {TOLD, TIME, TOLD, COUNT},
    {TOLD, RELEASE, RELEASING_TOLD, NOTHING},
    {TOLD, GIVE_UP, GIVEN_UP, NOTHING},
    {TOLD, KEEP, KEPT, NOTHING},
    {RELEASING, CAME, CROSSED, NOTHING},
    {RELEASING, CAME_TIMED, CROSSED, NOTHING},
    {RELEASING, TELL, RELEASING_TOLD, NOTHING},
    {RELEASING, TAKEN, EXPECTED, NOTHING},
    {RELEASING, MISSING, GIVEN_UP, NOTHING},
    {RELEASING, UNCONFIRMED, DONE, NOTHING},
    {RELEASING, KEEP, KEPT, NOTHING},
    {RELEASING_TOLD, CAME, CROSSED, NOTHING},
    {RELEASING_TOLD, CAME_TIMED, CROSSED, NOTHING},
    {RELEASING_TOLD, TAKEN, DONE, NOTHING},
    {RELEASING_TOLD, MISSING, GIVEN_UP, NOTHING},
    {RELEASING_TOLD, UNCONFIRMED, DONE, NOTHING},
    {RELEASING_TOLD, KEEP, KEPT, NOTHING},
    {CROSSED, TAKEN, DONE, NOTHING},
    {CROSSED, MISSING, OWING, NOTHING},
    {CROSSED, UNCONFIRMED, DONE, NOTHING},
    {CROSSED, KEEP, KEPT, NOTHING},
    {EXPECTED, CAME, DONE, NOTHING},
    {EXPECTED, CAME_TIMED, DONE, NOTHING},
    {EXPECTED, TELL, DONE, NOTHING},
    {EXPECTED, KEEP, KEPT, NOTHING},
    {DONE, KEEP, KEPT, NOTHING},
    {GIVEN_UP, CAME, GIVEN_UP, GIVE_BACK},
    {GIVEN_UP, CAME_TIMED, GIVEN_UP, GIVE_BACK},
    {GIVEN_UP, KEEP, KEPT, NOTHING},
    {OWING, CAME, OWING, GIVE_BACK},
    {OWING, CAME_TIMED, OWING, GIVE_BACK},
    {OWING, KEEP, KEPT, NOTHING},
};

TEST(every_event_in_every_state_does_what_the_table_says) {
    for (unsigned from = 0; from < STATES; from++) {
        for (unsigned event = 0; event < EVENTS; event++) {
            struct row row = {.next = (enum redlock_push_state)from, .action = NOTHING};
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                row = rows[i].state == from && rows[i].event == event ? rows[i] : row;
            }
            uint8_t at = (uint8_t)from;
            const enum redlock_push_action action = redlock_push_step(&at, (enum redlock_push_event)event);
            if (at != row.next || action != row.action) {
                fail_msg("state %u, event %u: state %u, action %d, and not state %d, action %d", from, event, at,
                         (int)action, (int)row.next, (int)row.action);
            }
        }
    }
}

/* Some events of one node from the beginning on, and its state after them. */
static void lives(enum redlock_push_state last, unsigned count, const enum redlock_push_event *events) {
    uint8_t at = UNASKED;
    for (unsigned i = 0; i < count; i++) {
        (void)redlock_push_step(&at, events[i]);
    }
    assert_is(at, last);
}

#define LIVES(last, ...)                                                                                               \
    lives(last, sizeof((enum redlock_push_event[]){__VA_ARGS__}) / sizeof(enum redlock_push_event),                    \
          (enum redlock_push_event[]){__VA_ARGS__})

TEST(a_release_that_was_first_expects_the_push_once) {
    LIVES(EXPECTED, ASK, RELEASE, TAKEN);
    LIVES(DONE, ASK, RELEASE, TAKEN, CAME);
    LIVES(DONE, ASK, RELEASE, CAME, TAKEN);
    LIVES(DONE, ASK, CAME, RELEASE, TAKEN);
    LIVES(DONE, ASK, TELL, RELEASE, TAKEN);
    LIVES(DONE, ASK, RELEASE, TELL, TAKEN);
    LIVES(UNASKED, TELL, RELEASE, TAKEN); /* healed, but no place */
}

/* A WAIT came after the release, on an old connection. */
TEST(a_node_that_had_no_key_and_pushed_meanwhile_owes_a_release) {
    LIVES(OWING, ASK, RELEASE, CAME, MISSING);
    LIVES(OWING, ASK, TELL, RELEASE, CAME, MISSING);
    LIVES(GIVEN_UP, ASK, CAME, RELEASE, MISSING);
    LIVES(DONE, ASK, RELEASE, CAME, UNCONFIRMED); /* the library owes that one anyway */
}

TEST(what_is_kept_is_kept_for_ever) {
    LIVES(KEPT, ASK, CAME, KEEP, CAME, TELL, GIVE_UP, RELEASE, MISSING);
}

static struct {
    _Alignas(struct redlock_grants) unsigned char memory[sizeof(struct redlock_grants) +
                                                         REDLOCK_NODES_MAX * sizeof(struct redlock_grants_node)];
} record;

TEST(nodes_step_alone_and_a_fresh_token_begins_anew) {
    memset(&record, 0, sizeof record);
    struct redlock_grants *queue = (struct redlock_grants *)(void *)record.memory;
    const redlock_nodes all = redlock_nodes_all(REDLOCK_NODES_MAX), some = REDLOCK_NODE(0) | REDLOCK_NODE(30);
    redlock_push_step_all(queue, some, ASK);
    redlock_push_step_all(queue, 0, RELEASE);
    assert_int_equal(redlock_push_nodes_in(queue, all, ASKED), some);
    assert_int_equal(redlock_push_nodes_in(queue, REDLOCK_NODE(30), ASKED), REDLOCK_NODE(30));
    assert_int_equal(redlock_push_nodes_in(queue, all, UNASKED), all & ~some);
    redlock_push_step_all(queue, all, GIVE_UP);
    assert_int_equal(redlock_push_nodes_in(queue, all, GIVEN_UP), some);
    redlock_grants_begin(queue, REDLOCK_NODES_MAX, 1);
    assert_int_equal(redlock_push_nodes_in(queue, all, UNASKED), all);
}

TEST(answers_to_a_release_are_events) {
    assert_is(redlock_push_released(REDLOCK_VOTE_GRANTED), TAKEN);
    assert_is(redlock_push_released(REDLOCK_VOTE_DENIED), MISSING);
    assert_is(redlock_push_released(REDLOCK_VOTE_FAILED), UNCONFIRMED);
    assert_is(redlock_push_released(REDLOCK_VOTE_UNKNOWN), UNCONFIRMED);
}

TEST(only_the_newest_tokens_are_expected) {
    static struct redlock_push_expected expected;
    assert_false(redlock_push_is_expected(&expected, 0, 0, 0));
    for (unsigned token = 0; token <= REDLOCK_PUSH_EXPECTED_MAX; token++) {
        redlock_push_expect(&expected, token, REDLOCK_NODE(0) | REDLOCK_NODE(30), 100);
    }
    assert_false(redlock_push_is_expected(&expected, 0, 0, 0));
    assert_false(redlock_push_is_expected(&expected, 1, 1, 0));
    assert_false(redlock_push_is_expected(&expected, 1, 0, 100));
    assert_true(redlock_push_is_expected(&expected, 1, 0, 99));
    assert_false(redlock_push_is_expected(&expected, 1, 0, 99));
    redlock_push_expect_none(&expected, 29);
    assert_true(redlock_push_is_expected(&expected, 1, 30, 99));
    redlock_push_expect_none(&expected, 30);
    assert_false(redlock_push_is_expected(&expected, REDLOCK_PUSH_EXPECTED_MAX, 30, 0));
    assert_true(redlock_push_is_expected(&expected, REDLOCK_PUSH_EXPECTED_MAX, 0, 0));
}
