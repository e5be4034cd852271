/* Permits: the ballot of slots, where a take looks, and when an acquire stands at the gate. */
#include "core/permits.h"
#include "test.h"

#define NODES 5

struct world {
    uint16_t slots[NODES * 2];
    struct redlock_permits_core permits;
};

static struct redlock_permits_core *begin_with(struct world *world, unsigned limit, unsigned count, bool in_order) {
    redlock_permits_init(&world->permits, limit, count, 3, in_order, world->slots);
    return &world->permits;
}

static struct redlock_permits_core *begin(struct world *world) {
    return begin_with(world, 1000, 1, true);
}

static enum redlock_permits_action step(struct world *world, enum redlock_permits_event event) {
    return redlock_permits_step(&world->permits, event);
}

/* It stands at the gate, and its take is over. */
static struct redlock_permits_core *at_gate(struct world *world) {
    begin(world);
    redlock_permits_take(&world->permits, 31, 0);
    assert_int_equal(step(world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_ASK_GATE);
    assert_int_equal(step(world, REDLOCK_PERMITS_GATE_HELD), REDLOCK_PERMITS_ADMIT);
    redlock_permits_take(&world->permits, 31, 0);
    assert_int_equal(step(world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_NOTHING);
    return &world->permits;
}

static bool gives(struct world *world, unsigned node, uint16_t first, uint16_t second) {
    return redlock_ballot_note(&world->permits.ballot, node, (const uint16_t[2]){first, second});
}

static enum redlock_ballot_outcome outcome(const struct world *world, unsigned *node) {
    return redlock_ballot_outcome(&world->permits.ballot, node);
}

static void take_two(struct world *world, redlock_nodes asked) {
    begin_with(world, 10, 2, true);
    redlock_permits_take(&world->permits, asked, 4);
}

TEST(a_quorum_of_the_same_slots_wins) {
    struct world world;
    unsigned node = NODES;
    take_two(&world, 31);
    assert_true(gives(&world, 0, 4, 5));
    assert_true(gives(&world, 4, 4, 6));
    assert_true(gives(&world, 1, 4, 5));
    assert_int_equal(outcome(&world, &node), REDLOCK_BALLOT_OPEN);
    assert_true(gives(&world, 3, 4, 5));
    assert_int_equal(outcome(&world, &node), REDLOCK_BALLOT_WON);
    assert_int_equal(node, 0);
    assert_int_equal(redlock_ballot_alike(&world.permits.ballot, node), 11);
    assert_int_equal(redlock_ballot_alike(&world.permits.ballot, 4), 16);
}

TEST(it_is_lost_once_no_quorum_can_have_given_the_same) {
    struct world world;
    unsigned node = NODES;
    take_two(&world, 31);
    assert_true(redlock_ballot_note(&world.permits.ballot, 0, NULL));
    assert_true(gives(&world, 1, 4, 5));
    assert_true(gives(&world, 2, 5, 6));
    assert_int_equal(outcome(&world, &node), REDLOCK_BALLOT_OPEN);
    assert_true(gives(&world, 3, 7, 8));
    assert_int_equal(outcome(&world, &node), REDLOCK_BALLOT_LOST);
    take_two(&world, 3); /* too few were asked */
    assert_int_equal(outcome(&world, &node), REDLOCK_BALLOT_LOST);
}

TEST(only_the_first_answer_of_a_node_that_was_asked_counts) {
    struct world world;
    take_two(&world, 7);
    assert_true(gives(&world, 0, 4, 5));
    assert_false(gives(&world, 0, 6, 7));
    assert_false(gives(&world, 3, 4, 5));
    assert_true(redlock_ballot_note(&world.permits.ballot, 1, NULL));
    assert_false(gives(&world, 1, 4, 5));
    assert_int_equal(world.permits.ballot.gave, 1);
    assert_int_equal(world.permits.ballot.nothing, 2);
    assert_int_equal(redlock_ballot_slots(&world.permits.ballot, 0)[1], 5);
}

TEST(a_take_begins_anywhere_and_the_next_one_behind_it) {
    struct world world;
    const struct redlock_permits_core *permits = begin(&world);
    redlock_permits_take(&world.permits, 31, 4995);
    assert_int_equal(permits->first, 995);
    assert_int_equal(permits->window, 32);
    assert_int_equal(permits->ballot.asked, 31);
    redlock_permits_take(&world.permits, 31, 7);
    assert_int_equal(permits->first, 27);
}

TEST(it_looks_at_no_slot_twice) {
    struct world world;
    const struct redlock_permits_core *permits = begin_with(&world, 10, 1, true);
    redlock_permits_take(&world.permits, 31, 12);
    assert_int_equal(permits->first, 2);
    assert_int_equal(permits->window, 10);
    permits = begin_with(&world, 1000, 2, true);
    redlock_permits_take(&world.permits, 31, 12);
    assert_int_equal(permits->window, 64);
}

TEST(who_stands_at_the_gate_looks_at_more) {
    struct world world;
    const struct redlock_permits_core *permits = at_gate(&world);
    assert_int_equal(permits->first, 32);
    assert_int_equal(permits->window, 256);
    begin_with(&world, 1000, 2, true);
    (void)step(&world, REDLOCK_PERMITS_LOST);
    (void)step(&world, REDLOCK_PERMITS_GATE_HELD);
    redlock_permits_take(&world.permits, 31, 5);
    assert_int_equal(permits->window, 1000);
}

TEST(without_order_nobody_asks_for_the_gate) {
    struct world world;
    begin_with(&world, 10, 1, false);
    redlock_permits_take(&world.permits, 31, 0);
    assert_int_equal(step(&world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(world.permits.state, REDLOCK_PERMITS_TRYING);
    assert_int_equal(step(&world, REDLOCK_PERMITS_ENDED), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(world.permits.state, REDLOCK_PERMITS_OVER);
}

TEST(slots_that_a_quorum_told_of_are_taken_at_once) {
    struct world world;
    at_gate(&world);
    assert_int_equal(redlock_permits_tell(&world.permits, 1, 7), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(redlock_permits_tell(&world.permits, 1, 7), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(redlock_permits_tell(&world.permits, 2, 8), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(redlock_permits_tell(&world.permits, 4, 7), REDLOCK_PERMITS_ADMIT);
    redlock_permits_take(&world.permits, 31, 500);
    assert_int_equal(world.permits.first, 7);
    assert_int_equal(world.permits.told, 0);
}

TEST(a_slot_that_is_none_is_not_looked_at) {
    struct world world;
    at_gate(&world);
    const uint16_t next = world.permits.next;
    assert_int_equal(redlock_permits_tell(&world.permits, 1, 1000), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(world.permits.next, next);
}

/* Two nodes had it free when they were asked, and the third tells of it since. */
TEST(what_is_told_while_a_take_is_under_way_counts_when_it_is_lost) {
    struct world world;
    at_gate(&world);
    redlock_permits_take(&world.permits, 31, 0);
    assert_true(redlock_ballot_note(&world.permits.ballot, 0, (const uint16_t[1]){7}));
    assert_true(redlock_ballot_note(&world.permits.ballot, 1, (const uint16_t[1]){7}));
    assert_int_equal(redlock_permits_tell(&world.permits, 4, 7), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(step(&world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_ADMIT);
    redlock_permits_take(&world.permits, 31, 0);
    for (unsigned node = 0; node < 3; node++) { /* each another one: nothing new is known */
        assert_true(redlock_ballot_note(&world.permits.ballot, node, (const uint16_t[1]){(uint16_t)node}));
    }
    assert_int_equal(step(&world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_NOTHING);
}

TEST(all_told_while_a_take_is_under_way_is_one_more_take) {
    struct world world;
    at_gate(&world);
    redlock_permits_take(&world.permits, 31, 0);
    for (unsigned node = 0; node < 3; node++) {
        assert_int_equal(redlock_permits_tell(&world.permits, REDLOCK_NODE(node), 7), REDLOCK_PERMITS_NOTHING);
    }
    assert_int_equal(step(&world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_ADMIT);
}

TEST(a_gate_that_is_lost_is_asked_for_again) {
    struct world world;
    at_gate(&world);
    assert_int_equal(step(&world, REDLOCK_PERMITS_GATE_LOST), REDLOCK_PERMITS_EXCLUDE);
    assert_int_equal(redlock_permits_tell(&world.permits, 7, 7), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(step(&world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(step(&world, REDLOCK_PERMITS_GATE_HELD), REDLOCK_PERMITS_ADMIT);
}

TEST(without_a_gate_the_acquire_fails) {
    struct world world;
    begin(&world);
    assert_int_equal(step(&world, REDLOCK_PERMITS_LOST), REDLOCK_PERMITS_ASK_GATE);
    assert_int_equal(step(&world, REDLOCK_PERMITS_NO_GATE), REDLOCK_PERMITS_FAIL);
    assert_int_equal(step(&world, REDLOCK_PERMITS_ENDED), REDLOCK_PERMITS_LEAVE_GATE);
    assert_int_equal(step(&world, REDLOCK_PERMITS_GATE_HELD), REDLOCK_PERMITS_NOTHING);
    assert_int_equal(step(&world, REDLOCK_PERMITS_ENDED), REDLOCK_PERMITS_NOTHING);
}

TEST(who_has_slots_leaves_the_gate) {
    struct world world;
    at_gate(&world);
    assert_int_equal(step(&world, REDLOCK_PERMITS_ENDED), REDLOCK_PERMITS_LEAVE_GATE);
}
