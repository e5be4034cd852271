/* Permits over a fake env: what a take asks for, which votes make a lease, what goes back, and how
 * an acquire comes to the gate and leaves it. */
#include "queue_kit.h"

static redlock_acquire_options permits_of(uint32_t permits, uint32_t limit) {
    redlock_acquire_options options = default_options();
    options.permits = permits;
    options.limit = limit;
    return options;
}

static redlock_acquire_options patient_permits_of(uint32_t permits, uint32_t limit) {
    redlock_acquire_options options = permits_of(permits, limit);
    options.wait_timeout_ms = 60000;
    return options;
}

/* The node says this to the oldest take. */
static void says(unsigned node, const char *slots) {
    fake_env_answer_as(
        &fake, node, REDLOCK_OP_ACQUIRE,
        (struct redlock_answer){
            .vote = REDLOCK_VOTE_GRANTED, .named = REDLOCK_NAMED_SLOTS, .holder = slots, .holder_size = strlen(slots)});
}

static const struct fake_sent *last_take(void) {
    for (unsigned i = fake.sent_count; i > 0; i--) {
        if (fake.sent[i - 1].operation == REDLOCK_OP_ACQUIRE) {
            return &fake.sent[i - 1];
        }
    }
    fail();
    return NULL;
}

/* The slot at this place, from the one on where the last take begins. */
static unsigned slot_at(unsigned place) {
    const struct fake_slots *slots = &last_take()->slots;
    return (slots->first + place) % slots->limit;
}

/* The node gives the slots at these places: "01". */
static void gives(unsigned node, const char *places) {
    char text[16];
    (void)snprintf(text, sizeof text, places[1] == '\0' ? "%u" : "%u %u", slot_at((unsigned)(places[0] - '0')),
                   slot_at((unsigned)(places[1] - '0')));
    says(node, text);
}

static void all_give(const char *places) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        gives(i, places);
    }
    fake_env_turn(&fake);
}

/* The last node answers after the end of the take, and is asked to give back what it may have. */
static void none_gives(void) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    if (fake_env_waiting(&fake, fake.node_count - 1, REDLOCK_OP_RELEASE)) {
        fake_env_answer(&fake, fake.node_count - 1, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    }
    fake_env_turn(&fake);
}

/* It has those at these places. */
static void assert_slots(const redlock_lease *lease, const char *places) {
    uint32_t slots[2] = {0};
    assert_int_equal(redlock_lease_slots(lease, slots, 2), strlen(places));
    for (unsigned i = 0; i < strlen(places); i++) {
        assert_int_equal(slots[i], slot_at((unsigned)(places[i] - '0')));
    }
}

static void release(redlock_lease *lease) {
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
}

GROUP_TEST(a_take_asks_for_some_of_so_many, three_nodes) {
    const redlock_acquire_options options = permits_of(2, 1000);
    acquire(&options, &seen);
    for (unsigned i = 0; i < 3; i++) {
        const struct fake_sent *take = fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE);
        assert_true(take->slots.permits == 2 && take->slots.limit == 1000 && take->slots.window == 64);
        assert_int_equal(take->slots.first, fake.sent[0].slots.first); /* once for all nodes */
        assert_string_equal(take->key, "r");
        assert_int_equal(strlen(take->token), 32);
        assert_true(take->token[0] < 'g'); /* who has a slot is not marked */
        assert_null(take->gate.channel);
        assert_false(take->slots.taken);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

GROUP_TEST(what_a_quorum_gave_is_the_lease, three_nodes) {
    const redlock_acquire_options options = permits_of(2, 4);
    acquire(&options, &seen);
    gives(0, "12");
    fake_env_turn(&fake);
    assert_int_equal(seen.count, 0);
    gives(1, "12");
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_slots(seen.lease, "12");
    assert_int_equal(redlock_lease_slots(seen.lease, NULL, 0), 2);
    assert_string_equal(redlock_lease_resource(seen.lease), "r");
    gives(2, "12");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_is(redlock_extend(seen.lease, 20000, NULL, NULL), REDLOCK_OK);
    const struct fake_sent *extend = fake_env_waiting(&fake, 2, REDLOCK_OP_EXTEND);
    assert_true(extend->slots.taken && extend->slots.numbers[1] == slot_at(2));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    const struct fake_sent *give = fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE);
    assert_true(give->slots.taken && !give->slots.others && !give->by_try);
    assert_true(give->slots.numbers[0] == slot_at(1) && give->slots.numbers[1] == slot_at(2));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* Its vote is DENIED, and what it gave goes back at once. */
GROUP_TEST(what_a_minority_gave_goes_back, five_nodes) {
    const redlock_acquire_options options = permits_of(2, 4);
    acquire(&options, &seen);
    gives(0, "12");
    gives(1, "23");
    gives(2, "12");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0); /* nobody knows yet */
    gives(3, "12");
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_is(seen.votes[0], REDLOCK_VOTE_GRANTED);
    assert_is(seen.votes[1], REDLOCK_VOTE_DENIED);
    assert_string_equal(seen.errors[1], "it gave other slots than a quorum of nodes");
    const struct fake_sent *give = fake_env_waiting(&fake, 1, REDLOCK_OP_RELEASE);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 1);
    assert_true(give->no_timeout && give->slots.others && give->slots.taken && give->slots.numbers[0] == slot_at(1));
    fake_env_answer(&fake, 1, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    gives(4, "13"); /* late */
    assert_true(fake_env_waiting(&fake, 4, REDLOCK_OP_RELEASE)->slots.others);
    fake_env_answer(&fake, 4, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
    release(seen.lease);
}

/* It may have given others: nobody knows. */
GROUP_TEST(a_node_that_does_not_say_what_it_gave_keeps_nothing_else, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    fake_env_answer(&fake, 0, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_UNKNOWN);
    gives(1, "1");
    gives(2, "1");
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_OK);
    const struct fake_sent *give = fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE);
    assert_true(give->slots.others && give->slots.numbers[0] == slot_at(1));
    fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    assert_owed(0, 0);
    release(seen.lease);
    acquire(&options, &seen);
    gives(1, "2");
    gives(2, "2");
    fake_env_turn(&fake);
    fake_env_answer(&fake, 0, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_UNKNOWN); /* the same, late */
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->slots.others);
    release(seen.lease);
}

/* The answer to a take comes when an extension is under way. */
GROUP_TEST(a_late_answer_gives_back_what_is_not_ours, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    gives(0, "1");
    gives(1, "1");
    fake_env_turn(&fake);
    assert_is(redlock_extend(seen.lease, 20000, NULL, NULL), REDLOCK_OK);
    gives(2, "3");
    assert_true(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE)->slots.others);
    fake_env_answer(&fake, 2, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_true(redlock_lease_validity_ms(seen.lease) > 0);
    release(seen.lease);
}

GROUP_TEST(slots_that_differ_make_no_lease_and_go_back, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    gives(0, "1");
    gives(1, "2");
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    for (unsigned i = 0; i < 2; i++) {
        const struct fake_sent *give = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_true(!give->slots.taken && give->slots.window == 4); /* whichever it was */
    }
    assert_null(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE)); /* it took nothing */
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}

GROUP_TEST(slots_that_were_not_asked_for_are_no_vote, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    says(0, "4");
    says(1, "1 2");
    says(2, "3");
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_NO_QUORUM);
    assert_is(seen.votes[0], REDLOCK_VOTE_UNKNOWN);
    assert_string_equal(seen.errors[1], "the node gave slots that were not asked for");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static const struct group_setup two_of_three = {.node_count = 3, .refusing = 4};

GROUP_TEST(a_node_that_cannot_be_asked_gives_nothing, two_of_three) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    gives(0, "1");
    gives(1, "2");
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

GROUP_TEST(a_take_is_asked_again_by_its_source, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    const struct fake_sent first = *fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_ACQUIRE);
    const struct fake_sent *again = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE);
    assert_true(again->by_source);
    assert_string_equal(again->token, first.token);
    assert_int_equal(again->slots.first, first.slots.first);
    all_give("1");
    assert_seen(seen, 1, REDLOCK_OK);
    release(seen.lease);
}

GROUP_TEST(a_heal_sets_the_slots, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    gives(0, "1");
    gives(1, "1");
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 1000);
    const struct fake_sent *heal = fake_env_waiting(&fake, 2, REDLOCK_OP_HEAL);
    assert_true(heal->by_source && heal->slots.taken && heal->slots.numbers[0] == slot_at(1));
    fake_env_answer(&fake, 2, REDLOCK_OP_HEAL, REDLOCK_VOTE_GRANTED);
    release(seen.lease);
}

GROUP_TEST(a_fencing_token_takes_one_round_more, three_nodes) {
    redlock_acquire_options options = permits_of(1, 4);
    options.fencing = true;
    acquire(&options, &seen);
    all_give("2");
    assert_int_equal(seen.count, 0);
    const struct fake_sent *fence = fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE);
    assert_true(fence->slots.taken && fence->slots.numbers[0] == slot_at(2));
    for (unsigned i = 0; i < 3; i++) {
        accept_fence(i, REDLOCK_OP_FENCE);
    }
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_true(redlock_lease_fence(seen.lease) > 0);
    release(seen.lease);
}

/* The gate. */

/* Its take was refused, and it waits at the gate. */
static redlock_request *come_to_the_gate(const redlock_acquire_options *options, struct seen *seen) {
    redlock_request *request;
    all_listen();
    *seen = (struct seen){0};
    assert_is(redlock_group_acquire(fake.group, "r", options, &request, see, seen), REDLOCK_OK);
    none_gives();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0); /* nothing was taken */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), fake.node_count);
    return request;
}

static void get_the_gate(void) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    fake_env_turn(&fake);
}

/* It stands there, and nothing is free. */
static redlock_request *stand_at_the_gate(const redlock_acquire_options *options, struct seen *seen) {
    redlock_request *request = come_to_the_gate(options, seen);
    get_the_gate();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), fake.node_count);
    none_gives();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    return request;
}

/* The node says that the slot is free, to whoever waited with this id. */
static void tell(unsigned node, uint64_t slot) {
    const struct fake_sent *wait = last_wait(node);
    const struct redlock_push push = {.id = wait->place.id,
                                      .seal = slot + 1,
                                      .token = wait->token,
                                      .token_size = strlen(wait->token),
                                      .key = wait->key,
                                      .key_size = strlen(wait->key)};
    redlock_group_pushed(fake.group, node, &push);
}

/* Each node is asked to hand the gate to the next. */
static void assert_leaves(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < fake.sent_count; i++) {
        const struct fake_sent *sent = &fake.sent[i];
        count += sent->operation == REDLOCK_OP_RELEASE && !sent->answered && sent->slots.permits == 0 &&
                 strcmp(sent->token, last_wait(0)->token) == 0;
    }
    assert_int_equal(count, fake.node_count);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
}

GROUP_TEST(who_finds_none_waits_at_the_gate_in_line, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 1000);
    come_to_the_gate(&options, &seen);
    const struct fake_sent *wait = fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT);
    assert_string_equal(wait->key, "r");
    assert_int_equal(strlen(wait->token), 49);
    assert_int_equal(wait->token[48], 'p');
    assert_int_equal(wait->ttl_ms, 10000);
    get_the_gate();
    const struct fake_sent *take = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE);
    assert_string_equal(take->gate_token, wait->token);
    assert_int_equal(take->gate.id, wait->place.id);
    assert_string_equal(take->gate.channel, fake.channel);
    assert_int_equal(take->slots.window, 256);
    assert_string_not_equal(take->token, fake.sent[0].token); /* R10 */
    all_give("0");
    assert_seen(seen, 1, REDLOCK_OK);
    assert_int_equal(seen.attempts, 2);
    assert_leaves();
    release(seen.lease);
    assert_int_equal(statistics().requests_pending, 0);
}

/* Its ticket is that of its beginning: others came while it tried. */
GROUP_TEST(who_tried_first_is_first_in_line, three_nodes) {
    struct seen other = {0};
    const redlock_acquire_options options = patient_permits_of(1, 4), lock = patient_options();
    greet_all();
    all_listen();
    acquire(&options, &seen);
    fake_env_pass_ms(&fake, 1);
    assert_is(redlock_group_acquire(fake.group, "other", &lock, NULL, see, &other), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD"); /* of the slots; they were asked for first */
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    uint64_t tickets[2] = {0, 0};
    for (unsigned i = 0; i < fake.sent_count; i++) {
        if (fake.sent[i].operation == REDLOCK_OP_WAIT) {
            tickets[strcmp(fake.sent[i].key, "r") == 0] = fake.sent[i].place.ticket;
        }
    }
    assert_true(tickets[1] > 0 && tickets[1] < tickets[0]);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

GROUP_TEST(it_takes_what_a_quorum_tells_of, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 1000);
    stand_at_the_gate(&options, &seen);
    tell(0, 700);
    tell(0, 700); /* a copy */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    tell(2, 700);
    assert_int_equal(last_take()->slots.first, 700);
    all_give("0");
    assert_seen(seen, 1, REDLOCK_OK);
    assert_slots(seen.lease, "0");
    tell(1, 700); /* too late: it has left */
    assert_leaves();
    tell(1, 700);
    release(seen.lease);
}

GROUP_TEST(it_looks_again_after_the_retry_delay, three_nodes) {
    redlock_acquire_options options = patient_permits_of(1, 1000);
    options.retry_delay_min_ms = options.retry_delay_max_ms = 80;
    stand_at_the_gate(&options, &seen);
    const unsigned first = last_take()->slots.first;
    tell(0, UINT64_MAX - 1); /* no slot */
    fake_env_pass_ms(&fake, 79);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 3);
    assert_int_equal(last_take()->slots.first, (first + 256) % 1000);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

GROUP_TEST(a_cancel_gives_up_the_place_at_the_gate, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 4);
    redlock_request *request = come_to_the_gate(&options, &seen);
    redlock_request_cancel(request);
    assert_leaves();
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    assert_int_equal(statistics().requests_pending, 0);
}

GROUP_TEST(a_cancel_leaves_the_gate, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 4);
    redlock_request *request = stand_at_the_gate(&options, &seen);
    redlock_request_cancel(request);
    assert_leaves();
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    tell(0, 1);
    tell(1, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
}

GROUP_TEST(a_cancel_gives_back_what_a_take_at_the_gate_may_get, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 4);
    redlock_request *request = come_to_the_gate(&options, &seen);
    get_the_gate();
    gives(0, "1");
    redlock_request_cancel(request);
    for (unsigned i = 0; i < 3; i++) {
        const struct fake_sent *give = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_true(give->slots.permits == 1 && !give->slots.taken);
        assert_string_equal(give->token, last_take()->token);
    }
    gives(1, "1"); /* late: it is released already */
    assert_leaves();
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    assert_int_equal(statistics().leases_held, 0);
}

GROUP_TEST(the_end_of_the_wait_leaves_the_gate, three_nodes) {
    redlock_acquire_options options = patient_permits_of(1, 4);
    options.wait_timeout_ms = 500;
    stand_at_the_gate(&options, &seen);
    for (unsigned i = 0; i < 100 && seen.count == 0; i++) {
        fake_env_pass_ms(&fake, 10);
        while (fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)) {
            none_gives();
        }
    }
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_leaves();
}

GROUP_TEST(the_end_of_the_group_leaves_the_gate, three_nodes) {
    struct seen other;
    unsigned drained = 0;
    const redlock_acquire_options options = patient_permits_of(1, 4);
    stand_at_the_gate(&options, &seen);
    come_to_the_gate(&options, &other);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 1000);
    assert_seen(seen, 1, REDLOCK_ERR_CLOSED);
    assert_seen(other, 1, REDLOCK_ERR_CLOSED);
    assert_int_equal(drained, 1);
}

/* Under the same ticket. */
GROUP_TEST(a_gate_that_is_lost_is_asked_for_again, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 4);
    greet_all();
    stand_at_the_gate(&options, &seen);
    const uint64_t ticket = last_wait(0)->place.ticket;
    while (fake_env_waiting_count(&fake, REDLOCK_OP_EXTEND) == 0) {
        fake_env_pass_ms(&fake, 10);
        while (fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)) {
            none_gives();
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_EXTEND, REDLOCK_VOTE_DENIED);
    }
    fake_env_turn(&fake);
    fake_env_turn(&fake);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 3);
    assert_true(last_wait(0)->place.ticket == ticket);
    fake_env_pass_ms(&fake, 10);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED); /* of a take that was under way, too */
    assert_int_equal(seen.count, 0);
}

GROUP_TEST(without_a_wait_nobody_goes_to_the_gate, three_nodes) {
    const redlock_acquire_options options = permits_of(1, 4);
    acquire(&options, &seen);
    none_gives();
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

GROUP_TEST(without_order_nobody_goes_to_the_gate, three_nodes) {
    redlock_acquire_options options = patient_permits_of(1, 4);
    options.order = REDLOCK_ORDER_NONE;
    acquire(&options, &seen);
    none_gives();
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 3);
    all_give("0");
    assert_seen(seen, 1, REDLOCK_OK);
    release(seen.lease);
}

GROUP_TEST(a_gate_that_cannot_be_asked_for_ends_the_acquire, three_nodes) {
    const redlock_acquire_options options = patient_permits_of(1, 4);
    all_listen();
    acquire(&options, &seen);
    fake.random_code = REDLOCK_ERR_RANDOM;
    none_gives();
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_RANDOM);
    fake.random_code = REDLOCK_OK;
    assert_int_equal(statistics().requests_pending, 0);
}

GROUP_TEST(permits_are_adopted_with_their_slots, three_nodes) {
    redlock_acquire_options options = permits_of(2, 4);
    redlock_lease *lease;
    options.slots = (const uint32_t[2]){3, 0};
    options.trace = &options;
    assert_is(redlock_group_adopt(fake.group, "r", "abc", &options, &lease), REDLOCK_OK);
    assert_int_equal(redlock_lease_slots(lease, NULL, 0), 2);
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    const struct fake_sent *extend = fake_env_waiting(&fake, 0, REDLOCK_OP_EXTEND);
    assert_true(extend->slots.taken && extend->slots.numbers[0] == 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 100);
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_EXTEND, "GGD");
    fake_env_pass_ms(&fake, 1500);
    fake_env_answer(&fake, 2, REDLOCK_OP_HEAL, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().healed, 1);
    release(lease);
}

static void assert_invalid(redlock_acquire_options options, const char *words) {
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, NULL), REDLOCK_ERR_INVALID);
    assert_non_null(strstr(fake.group->invalid, words));
}

GROUP_TEST(what_cannot_be_is_refused, three_nodes) {
    char long_name[REDLOCK_RESOURCE_SIZE_MAX + 1];
    redlock_acquire_options options = permits_of(1, 4);
    redlock_lease *lease;
    assert_invalid(permits_of(3, 2), "permits is 3, and limit is 2");
    assert_invalid(permits_of(0, 2), "limit is for permits");
    assert_invalid(permits_of(1, 0), "limit is 0; it must be 1 to 4096 with permits");
    assert_invalid(permits_of(1, 4097), "limit is 4097");
    assert_invalid(permits_of(65, 70), "permits is 65; it must be 1 to 64");
    options.mode = REDLOCK_SHARED;
    assert_invalid(options, "permits are not for SHARED");
    options = permits_of(1, 4);
    assert_is(redlock_group_adopt(fake.group, "r", "abc", &options, &lease), REDLOCK_ERR_INVALID);
    options.slots = (const uint32_t[1]){4};
    assert_invalid(options, "slots is only for redlock_adopt()");
    assert_is(redlock_group_adopt(fake.group, "r", "abc", &options, &lease), REDLOCK_ERR_INVALID);
    options = permits_of(2, 4);
    options.slots = (const uint32_t[2]){3, 3};
    assert_is(redlock_group_adopt(fake.group, "r", "abc", &options, &lease), REDLOCK_ERR_INVALID);
    options = permits_of(1, 4);
    memset(long_name, 'r', sizeof long_name - 1);
    long_name[REDLOCK_RESOURCE_SIZE_MAX - 4] = '\0';
    assert_is(redlock_group_acquire(fake.group, long_name, &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    assert_non_null(strstr(fake.group->invalid, "too long beside the numbers of its slots"));
}

/* A node in quarantine gives no slot. */
GROUP_TEST(a_guarded_node_gives_nothing, three_observed) {
    const redlock_acquire_options options = permits_of(1, 4);
    greet_all();
    greet(2, "another", 0, reading(0));
    acquire(&options, &seen);
    assert_null(fake_env_waiting(&fake, 2, REDLOCK_OP_ACQUIRE));
    gives(0, "1");
    gives(1, "1");
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_OK);
    release(seen.lease);
}
