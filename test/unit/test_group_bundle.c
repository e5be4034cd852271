/* Several resources in one lease through the public API over a fake env: what is sent and kept, and
 * what the owner is told. */
#include "base/holder.h"
#include "group/bundle.h"
#include "queue_kit.h"

#define ITEM(name)                                                                                                     \
    { .size = sizeof(redlock_item), .resource = (name) }
#define ITEMS(...) ((const redlock_item[]){__VA_ARGS__}), sizeof((redlock_item[]){__VA_ARGS__}) / sizeof(redlock_item)
#define ABC        ITEMS(ITEM("c"), ITEM("a"), ITEM("b"))

static redlock_acquire_options options;
static redlock_request *request;

static int open_bundle(void **state) {
    options = patient_options();
    return open_group(state);
}

#define BUNDLE_TEST(function) SEEN_TEST(function, open_bundle, three_nodes)

static struct fake_sent *waiting(unsigned node, enum redlock_operation operation, const char *key) {
    for (unsigned i = 0; i < fake.sent_count; i++) {
        struct fake_sent *sent = &fake.sent[i];
        if (!sent->answered && sent->node == node && sent->operation == operation && strcmp(sent->key, key) == 0) {
            return sent;
        }
    }
    return NULL;
}

static unsigned count_of(enum redlock_operation operation, const char *key) {
    unsigned count = 0;
    for (unsigned i = 0; i < fake.node_count; i++) {
        count += waiting(i, operation, key) != NULL;
    }
    return count;
}

/* All nodes vote like that on what waits for this key. To a WAIT, DENIED is "queued". */
static void votes(const char *key, enum redlock_operation operation, redlock_vote_kind vote) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        struct fake_sent *sent = waiting(i, operation, key);
        assert_non_null(sent);
        const struct redlock_answer answer = {.vote = vote,
                                              .read_ns = fake.now_ns,
                                              .holder = EARLIER,
                                              .holder_size = strlen(EARLIER),
                                              .holder_ttl_ms = 100000,
                                              .rank = 1};
        struct redlock_answer given = answer;
        sent->answered = true;
        if (vote == REDLOCK_VOTE_GRANTED && operation != REDLOCK_OP_WAIT) {
            redlock_group_granted(fake.group, sent->owner, sent->round, i, fake.now_ns);
        } else {
            redlock_group_answer(fake.group, sent->owner, sent->round, i, &given);
        }
    }
}

static void grants(const char *key, enum redlock_operation operation) {
    votes(key, operation, REDLOCK_VOTE_GRANTED);
}

static void denies(const char *key, enum redlock_operation operation) {
    votes(key, operation, REDLOCK_VOTE_DENIED);
}

static void ask_for(const redlock_item *items, size_t count, struct seen *seen) {
    *seen = (struct seen){0};
    assert_is(redlock_group_acquire_all(fake.group, items, count, &options, &request, see, seen), REDLOCK_OK);
    assert_int_equal(seen->count, 0);
}

/* Holds a, b and c. */
static redlock_lease *take_abc(struct seen *seen) {
    options.on_lost = see_lost;
    options.lost_data = seen;
    ask_for(ABC, seen);
    grants("c", REDLOCK_OP_ACQUIRE);
    grants("a", REDLOCK_OP_ACQUIRE);
    assert_int_equal(seen->count, 0);
    grants("b", REDLOCK_OP_ACQUIRE);
    assert_seen(*seen, 1, REDLOCK_OK);
    return seen->lease;
}

/* Holds a, and waits for b. */
static void wait_for_b(struct seen *seen) {
    ask_for(ABC, seen);
    grants("a", REDLOCK_OP_ACQUIRE);
    grants("c", REDLOCK_OP_ACQUIRE);
    denies("b", REDLOCK_OP_ACQUIRE);
    grants("c", REDLOCK_OP_RELEASE);
    denies("b", REDLOCK_OP_RELEASE); /* of the try */
    assert_int_equal(seen->count, 0);
    assert_int_equal(count_of(REDLOCK_OP_WAIT, "b"), 3);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
}

static uint64_t ticket_of(const char *key) {
    char digits[REDLOCK_TICKET_DIGITS + 1] = "";
    struct fake_sent *wait = waiting(0, REDLOCK_OP_WAIT, key);
    assert_non_null(wait);
    memcpy(digits, wait->token, REDLOCK_TICKET_DIGITS);
    return strtoull(digits, NULL, 16);
}

BUNDLE_TEST(all_are_asked_for_at_once_in_the_order_of_their_names) {
    static const char *const keys[] = {"a", "b", "c"};
    ask_for(ABC, &seen);
    assert_int_equal(fake.sent_count, 9);
    for (unsigned i = 0; i < 9; i++) {
        assert_is(fake.sent[i].operation, REDLOCK_OP_ACQUIRE);
        assert_string_equal(fake.sent[i].key, keys[i / 3]);
    }
    grants("b", REDLOCK_OP_ACQUIRE);
    grants("a", REDLOCK_OP_ACQUIRE);
    fake_env_pass_ms(&fake, 10);
    grants("c", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 10000 - 102 - 10);
    give_back(seen.lease);
}

BUNDLE_TEST(its_items_are_in_the_order_in_which_they_were_given) {
    options.fencing = true;
    ask_for(ABC, &seen);
    for (unsigned i = 0; i < 9; i++) {
        fake_env_answer_as(&fake, i % 3, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
    }
    assert_seen(seen, 1, REDLOCK_OK);
    const redlock_lease *lease = seen.lease;
    assert_int_equal(redlock_lease_item_count(lease), 3);
    assert_string_equal(redlock_lease_item_resource(lease, 0), "c");
    assert_string_equal(redlock_lease_item_resource(lease, 1), "a");
    assert_string_equal(redlock_lease_item_resource(lease, 2), "b");
    assert_string_equal(redlock_lease_item_token(lease, 0), fake.sent[6].token);
    assert_string_equal(redlock_lease_item_token(lease, 1), fake.sent[0].token);
    assert_int_equal(redlock_lease_item_fence(lease, 2), fake.sent[3].fence);
    assert_string_equal(redlock_lease_resource(lease), "c");
    assert_string_equal(redlock_lease_token(lease), redlock_lease_item_token(lease, 0));
    assert_int_equal(redlock_lease_fence(lease), redlock_lease_item_fence(lease, 0));
    assert_null(redlock_lease_item_resource(lease, 3));
    assert_null(redlock_lease_item_token(lease, 3));
    assert_int_equal(redlock_lease_item_fence(lease, 3), 0);
    give_back(seen.lease);
}

BUNDLE_TEST(a_lease_of_one_resource_has_one_item) {
    options = default_options();
    redlock_lease *lease = take(&options, &seen);
    assert_int_equal(redlock_lease_item_count(lease), 1);
    assert_string_equal(redlock_lease_item_resource(lease, 0), "r");
    assert_ptr_equal(redlock_lease_item_token(lease, 0), redlock_lease_token(lease));
    assert_null(redlock_lease_item_resource(lease, 1));
    assert_null(redlock_lease_item_token(lease, 1));
    assert_int_equal(redlock_lease_item_fence(lease, 1), 0);
    give_back(lease);
}

BUNDLE_TEST(without_a_wait_it_is_all_or_none) {
    options = default_options();
    ask_for(ABC, &seen);
    grants("a", REDLOCK_OP_ACQUIRE);
    denies("c", REDLOCK_OP_ACQUIRE);
    denies("b", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_null(seen.lease);
    assert_contains(seen.message, "'b'");
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().leases_held, 0);
}

/* The last answer is not that of the first that is missing. */
BUNDLE_TEST(the_result_is_that_of_the_first_that_is_missing) {
    options = default_options();
    ask_for(ABC, &seen);
    denies("b", REDLOCK_OP_ACQUIRE);
    votes("c", REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_FAILED);
    grants("a", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_contains(seen.message, "'b'");
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(it_keeps_the_prefix_and_waits_for_the_first_that_is_missing) {
    wait_for_b(&seen);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 0);
    denies("b", REDLOCK_OP_WAIT);
    fake_env_pass_ms(&fake, 100);
    push(0, 1);
    assert_int_equal(seen.count, 0);
    grants("c", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_int_equal(seen.attempts, 3);
    give_back(seen.lease);
}

BUNDLE_TEST(each_wait_has_the_ticket_of_the_call) {
    greet_all();
    const uint64_t called_us = (uint64_t)fake.now_ns / 1000;
    wait_for_b(&seen);
    const uint64_t ticket = ticket_of("b");
    denies("b", REDLOCK_OP_WAIT);
    fake_env_pass_ms(&fake, 500);
    push(0, 1);
    denies("c", REDLOCK_OP_ACQUIRE);
    denies("c", REDLOCK_OP_RELEASE);
    assert_int_equal(ticket_of("c"), ticket);
    assert_in_range(ticket, 1795167037000000 + called_us, 1795167037000000 + called_us + 1000);
    redlock_request_cancel(request);
    fake_env_turn(&fake);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(what_is_kept_is_renewed_until_the_bundle_is_held) {
    wait_for_b(&seen);
    denies("b", REDLOCK_OP_WAIT);
    while (!waiting(0, REDLOCK_OP_EXTEND, "a")) {
        fake_env_pass_ms(&fake, 10);
        if (waiting(0, REDLOCK_OP_WAIT, "b")) {
            denies("b", REDLOCK_OP_WAIT);
        }
    }
    grants("a", REDLOCK_OP_EXTEND);
    push(0, 1);
    grants("c", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_OK);
    fake_env_pass_ms(&fake, 5000);
    assert_int_equal(count_of(REDLOCK_OP_EXTEND, "a"), 0);
    give_back(seen.lease);
}

BUNDLE_TEST(one_that_is_short_is_renewed_once_more) {
    wait_for_b(&seen);
    denies("b", REDLOCK_OP_WAIT);
    fake_env_pass_ms(&fake, 2700);
    assert_int_equal(count_of(REDLOCK_OP_EXTEND, "a"), 0);
    push(0, 1);
    grants("c", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 10000 - 102 - 2700);
    fake_env_turn(&fake);
    assert_int_equal(count_of(REDLOCK_OP_EXTEND, "b"), 0);
    grants("a", REDLOCK_OP_EXTEND);
    assert_true(redlock_lease_validity_ms(seen.lease) > 10000 - 102 - 2700);
    fake_env_pass_ms(&fake, 5000);
    assert_int_equal(count_of(REDLOCK_OP_EXTEND, "a"), 0);
    give_back(seen.lease);
}

BUNDLE_TEST(with_auto_extend_each_item_goes_on_to_be_renewed) {
    options.auto_extend = true;
    redlock_lease *lease = take_abc(&seen);
    fake_env_pass_ms(&fake, 3400);
    grants("a", REDLOCK_OP_EXTEND);
    grants("b", REDLOCK_OP_EXTEND);
    grants("c", REDLOCK_OP_EXTEND);
    assert_in_range(redlock_lease_validity_ms(lease), 10000 - 102 - 401, 10000 - 102);
    give_back(lease);
}

BUNDLE_TEST(one_that_is_lost_during_the_wait_is_waited_for_instead) {
    wait_for_b(&seen);
    denies("b", REDLOCK_OP_WAIT);
    while (!waiting(0, REDLOCK_OP_EXTEND, "a")) {
        fake_env_pass_ms(&fake, 10);
        if (waiting(0, REDLOCK_OP_WAIT, "b")) {
            denies("b", REDLOCK_OP_WAIT);
        }
    }
    denies("a", REDLOCK_OP_EXTEND); /* the key is gone */
    fake_env_turn(&fake);
    assert_int_equal(count_of(REDLOCK_OP_WAIT, "a"), 3);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "b"), 3); /* its place is given up */
    assert_int_equal(seen.count + seen.lost, 0);
    grants("a", REDLOCK_OP_WAIT);
    grants("b", REDLOCK_OP_ACQUIRE);
    grants("c", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    give_back(seen.lease);
}

BUNDLE_TEST(the_wait_ends_for_all) {
    options.wait_timeout_ms = 1000;
    wait_for_b(&seen);
    denies("b", REDLOCK_OP_WAIT);
    fake_env_pass_ms(&fake, 999);
    assert_int_equal(seen.count, 0);
    fake_env_pass_ms(&fake, 2);
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_contains(seen.message, "'b'");
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().leases_held, 0);
}

/* The second wait has what is left of the time. */
BUNDLE_TEST(two_waits_share_the_time) {
    options.wait_timeout_ms = 1000;
    wait_for_b(&seen);
    denies("b", REDLOCK_OP_WAIT);
    fake_env_pass_ms(&fake, 600);
    push(0, 1);
    denies("c", REDLOCK_OP_ACQUIRE);
    denies("c", REDLOCK_OP_RELEASE);
    denies("c", REDLOCK_OP_WAIT);
    fake_env_pass_ms(&fake, 399);
    assert_int_equal(seen.count, 0);
    fake_env_pass_ms(&fake, 2);
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_contains(seen.message, "'c'");
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(a_cancel_while_it_waits) {
    wait_for_b(&seen);
    redlock_request_cancel(request);
    redlock_request_cancel(request);
    assert_int_equal(seen.count, 0);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 3);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "b"), 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(a_cancel_while_it_asks) {
    ask_for(ABC, &seen);
    grants("a", REDLOCK_OP_ACQUIRE);
    redlock_request_cancel(request);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().leases_held, 0);
}

BUNDLE_TEST(an_extension_is_of_all_items) {
    redlock_lease *lease = take_abc(&seen);
    struct seen extended = {0};
    fake_env_pass_ms(&fake, 1000);
    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_OK);
    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_ERR_BUSY);
    grants("a", REDLOCK_OP_EXTEND);
    grants("c", REDLOCK_OP_EXTEND);
    assert_int_equal(redlock_lease_validity_ms(lease), 9000 - 102);
    grants("b", REDLOCK_OP_EXTEND);
    assert_seen(extended, 1, REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(lease), 20000 - 202);
    assert_is(redlock_extend(lease, 0, see, &extended), REDLOCK_ERR_INVALID);
    give_back(lease);
}

BUNDLE_TEST(an_extension_that_fails_names_the_item) {
    redlock_lease *lease = take_abc(&seen);
    struct seen extended = {0};
    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_OK);
    votes("b", REDLOCK_OP_EXTEND, REDLOCK_VOTE_UNKNOWN);
    grants("a", REDLOCK_OP_EXTEND);
    grants("c", REDLOCK_OP_EXTEND);
    assert_seen(extended, 1, REDLOCK_ERR_NO_QUORUM);
    assert_contains(extended.message, "'b'");
    assert_int_equal(redlock_lease_validity_ms(lease), 10000 - 102);
    give_back(lease);
}

BUNDLE_TEST(a_downgrade_is_of_all_items) {
    redlock_lease *lease = take_abc(&seen);
    struct seen extended = {0};
    assert_is(redlock_downgrade(lease, see, &extended), REDLOCK_OK);
    assert_true(waiting(0, REDLOCK_OP_EXTEND, "a")->shared && waiting(0, REDLOCK_OP_EXTEND, "b")->shared);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(extended, 1, REDLOCK_OK);
    give_back(lease);
}

BUNDLE_TEST(the_first_deadline_is_that_of_all) {
    ask_for(ITEMS(ITEM("a"), ITEM("b")), &seen);
    grants("a", REDLOCK_OP_ACQUIRE);
    grants("b", REDLOCK_OP_ACQUIRE);
    struct seen extended = {0};
    fake_env_pass_ms(&fake, 5000);
    assert_is(redlock_extend(seen.lease, 10000, see, &extended), REDLOCK_OK);
    grants("a", REDLOCK_OP_EXTEND);
    votes("b", REDLOCK_OP_EXTEND, REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 5000 - 102);
    fake_env_pass_ms(&fake, 5000 - 102);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 0);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 3);
    assert_is(redlock_extend(seen.lease, 10000, see, &extended), REDLOCK_ERR_LOST);
    redlock_lease_forget(seen.lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(a_loss_is_told_once_and_names_the_item) {
    redlock_lease *lease = take_abc(&seen);
    struct seen extended = {0}, released = {0};
    assert_is(redlock_extend(lease, 10000, see, &extended), REDLOCK_OK);
    denies("b", REDLOCK_OP_EXTEND);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(strncmp(seen.reason, "'b': so many nodes", 18), 0);
    assert_seen(extended, 1, REDLOCK_ERR_LOST);
    assert_contains(extended.message, "'b'");
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 3);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "c"), 3);
    fake_env_turn(&fake);
    assert_string_equal(redlock_lease_item_resource(lease, 1), "a"); /* still a handle */
    assert_int_equal(strlen(redlock_lease_item_token(lease, 1)), 32);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    assert_int_equal(released.count, 0);
    fake_env_turn(&fake);
    assert_seen(released, 1, REDLOCK_ERR_LOST);
    assert_contains(released.message, "'b'");
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(seen.lost, 1);
}

BUNDLE_TEST(with_a_lock_delay_a_loss_releases_nothing) {
    options.lock_delay_ms = 5000;
    redlock_lease *lease = take_abc(&seen);
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    denies("b", REDLOCK_OP_EXTEND);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    redlock_lease_forget(lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(a_release_is_of_all_items) {
    redlock_lease *lease = take_abc(&seen);
    struct seen released = {0};
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    assert_is(redlock_release(lease, see, &released), REDLOCK_ERR_INVALID);
    grants("a", REDLOCK_OP_RELEASE);
    grants("b", REDLOCK_OP_RELEASE);
    assert_int_equal(released.count, 0);
    grants("c", REDLOCK_OP_RELEASE);
    assert_seen(released, 1, REDLOCK_OK);
}

BUNDLE_TEST(a_release_that_fails_names_the_item) {
    redlock_lease *lease = take_abc(&seen);
    struct seen released = {0};
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    denies("a", REDLOCK_OP_RELEASE);
    grants("b", REDLOCK_OP_RELEASE);
    votes("c", REDLOCK_OP_RELEASE, REDLOCK_VOTE_UNKNOWN);
    assert_seen(released, 1, REDLOCK_ERR_LOST);
    assert_contains(released.message, "'a'");
}

BUNDLE_TEST(to_forget_sends_nothing) {
    redlock_lease *lease = take_abc(&seen);
    struct seen extended = {0};
    assert_is(redlock_extend(lease, 10000, see, &extended), REDLOCK_OK);
    redlock_lease_forget(lease);
    assert_int_equal(extended.count, 0);
    fake_env_turn(&fake);
    assert_seen(extended, 1, REDLOCK_ERR_CANCELLED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(seen.lost, 0);
}

BUNDLE_TEST(it_is_adopted_as_a_whole) {
    redlock_item items[] = {ITEM("b"), ITEM("a")};
    redlock_lease *lease;
    struct seen extended = {0}, released = {0};
    items[0].token = "token of b";
    items[1].token = "token of a";
    options.on_lost = see_lost;
    options.lost_data = &seen;
    assert_is(redlock_group_adopt_all(fake.group, items, 2, &options, &lease), REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_string_equal(redlock_lease_item_token(lease, 0), "token of b");
    assert_is(redlock_extend(lease, 10000, see, &extended), REDLOCK_OK);
    assert_string_equal(waiting(0, REDLOCK_OP_EXTEND, "a")->token, "token of a");
    grants("a", REDLOCK_OP_EXTEND);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    grants("b", REDLOCK_OP_EXTEND);
    assert_seen(extended, 1, REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(lease), 10000 - 102);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    grants("a", REDLOCK_OP_RELEASE);
    grants("b", REDLOCK_OP_RELEASE);
    assert_seen(released, 1, REDLOCK_OK);
}

/* It was held by nobody here, so nothing is lost here. */
BUNDLE_TEST(an_adopted_one_that_is_gone_is_told_by_the_extension) {
    redlock_item items[] = {ITEM("b"), ITEM("a")};
    redlock_lease *lease;
    struct seen extended = {0}, released = {0};
    items[0].token = items[1].token = "token";
    options.on_lost = see_lost;
    options.lost_data = &seen;
    assert_is(redlock_group_adopt_all(fake.group, items, 2, &options, &lease), REDLOCK_OK);
    assert_is(redlock_extend(lease, 10000, see, &extended), REDLOCK_OK);
    denies("a", REDLOCK_OP_EXTEND);
    grants("b", REDLOCK_OP_EXTEND);
    assert_seen(extended, 1, REDLOCK_ERR_LOST);
    assert_int_equal(seen.lost, 0);
    assert_is(redlock_extend(lease, 10000, see, &extended), REDLOCK_ERR_LOST);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(released, 1, REDLOCK_ERR_LOST);
}

BUNDLE_TEST(an_adoption_that_is_refused_leaves_nothing) {
    redlock_item items[] = {ITEM("a"), ITEM("b")};
    redlock_lease *lease;
    items[0].token = "token";
    assert_is(redlock_group_adopt_all(fake.group, items, 2, &options, &lease), REDLOCK_ERR_INVALID);
    assert_string_equal(fake.group->invalid, "token is NULL");
    assert_int_equal(fake.group->requesters[REDLOCK_REQUESTER_BUNDLE].count, 0);
    assert_is(redlock_group_adopt_all(fake.group, items, 1, &options, NULL), REDLOCK_ERR_INVALID);
}

BUNDLE_TEST(modes_are_mixed) {
    redlock_item items[] = {ITEM("a"), ITEM("b")};
    items[1].mode = REDLOCK_SHARED;
    ask_for(items, 2, &seen);
    assert_false(waiting(0, REDLOCK_OP_ACQUIRE, "a")->shared);
    assert_true(waiting(0, REDLOCK_OP_ACQUIRE, "b")->shared);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(seen, 1, REDLOCK_OK);
    give_back(seen.lease);
}

static void count_expiring(redlock_lease *lease, int64_t remaining_ms, void *data) {
    assert_int_equal(redlock_lease_validity_ms(lease), remaining_ms);
    *(unsigned *)data += 1;
}

BUNDLE_TEST(that_the_deadline_is_near_is_told_once) {
    unsigned told = 0;
    options.expiring_ms = 2000;
    options.on_expiring = count_expiring;
    options.expiring_data = &told;
    redlock_lease *lease = take_abc(&seen);
    fake_env_pass_ms(&fake, 7897);
    assert_int_equal(told, 0);
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(told, 1);
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 7999);
    assert_int_equal(told, 2);
    give_back(lease);
}

/* One that is kept may be near its end when the last one comes. */
BUNDLE_TEST(one_that_begins_near_its_end_says_so_at_once) {
    unsigned told = 0;
    options.expiring_ms = 5000;
    options.on_expiring = count_expiring;
    options.expiring_data = &told;
    wait_for_b(&seen);
    denies("b", REDLOCK_OP_WAIT);
    while (fake.now_ns < (1000 + 5500) * REDLOCK_NS_PER_MS) {
        fake_env_pass_ms(&fake, 10);
        if (waiting(0, REDLOCK_OP_EXTEND, "a")) {
            votes("a", REDLOCK_OP_EXTEND, REDLOCK_VOTE_UNKNOWN);
        }
        if (waiting(0, REDLOCK_OP_WAIT, "b")) {
            denies("b", REDLOCK_OP_WAIT);
        }
    }
    assert_int_equal(told, 0);
    push(0, 1);
    grants("c", REDLOCK_OP_ACQUIRE);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_int_equal(told, 1);
    give_back(seen.lease);
}

BUNDLE_TEST(no_random_bytes_are_told_in_a_later_turn) {
    fake.random_code = REDLOCK_ERR_RANDOM;
    ask_for(ABC, &seen);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_RANDOM);
    assert_int_equal(fake.sent_count, 0);
}

BUNDLE_TEST(one_that_could_not_be_asked_for_may_be_cancelled) {
    fake.random_code = REDLOCK_ERR_RANDOM;
    ask_for(ABC, &seen);
    redlock_request_cancel(request);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
}

static void release_at_once(const redlock_result *result, void *data) {
    see(result, data);
    assert_is(redlock_release(redlock_result_lease(result), see, data), REDLOCK_OK);
}

static void forget_at_once(redlock_lease *lease, const char *reason, void *data) {
    see_lost(lease, reason, data);
    redlock_lease_forget(lease);
}

BUNDLE_TEST(a_callback_may_end_it) {
    assert_is(redlock_group_acquire_all(fake.group, ABC, &options, NULL, release_at_once, &seen), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(seen, 2, REDLOCK_OK);
    options.on_lost = forget_at_once;
    options.lost_data = &seen;
    ask_for(ABC, &seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(fake.group->requesters[REDLOCK_REQUESTER_BUNDLE].count, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(a_child_process_changes_nothing) {
    redlock_lease *lease = take_abc(&seen);
    const unsigned sent = fake.sent_count;
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_ERR_FORKED);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_ERR_FORKED);
    assert_is(redlock_group_acquire_all(fake.group, ABC, &options, NULL, see, &seen), REDLOCK_ERR_FORKED);
    redlock_lease_forget(lease);
    assert_int_equal(fake.sent_count, sent);
    fake.random_code = REDLOCK_OK;
    assert_int_equal(redlock_lease_validity_ms(lease), 10000 - 102);
    give_back(lease);
    wait_for_b(&seen);
    fake.random_code = REDLOCK_ERR_FORKED;
    redlock_request_cancel(request);
    fake_env_turn(&fake);
    assert_int_equal(seen.count, 0);
    fake.random_code = REDLOCK_OK;
    redlock_request_cancel(request);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

BUNDLE_TEST(nobody_is_no_lease) {
    redlock_request_cancel(NULL);
    redlock_lease_forget(NULL);
    assert_is(redlock_extend(NULL, 1000, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_downgrade(NULL, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_release(NULL, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(seen.count, 0);
}

BUNDLE_TEST(a_close_ends_the_wait) {
    unsigned drains = 0;
    wait_for_b(&seen);
    redlock_group_drain(fake.group, count_drained, &drains);
    redlock_request_cancel(request);
    assert_int_equal(seen.count, 0);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CLOSED);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(drains, 1);
}

BUNDLE_TEST(a_close_ends_what_is_held) {
    unsigned drains = 0;
    struct seen extended = {0};
    redlock_lease *lease = take_abc(&seen);
    assert_is(redlock_extend(lease, 10000, see, &extended), REDLOCK_OK);
    redlock_group_drain(fake.group, count_drained, &drains);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(count_of(REDLOCK_OP_RELEASE, "a"), 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(drains, 1);
    assert_seen(extended, 1, REDLOCK_ERR_CLOSED);
    assert_int_equal(seen.lost, 0);
}

BUNDLE_TEST(a_close_waits_for_a_release) {
    unsigned drains = 0;
    struct seen released = {0};
    redlock_lease *lease = take_abc(&seen);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    redlock_group_drain(fake.group, count_drained, &drains);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(drains, 1);
    assert_seen(released, 1, REDLOCK_ERR_CLOSED);
}

BUNDLE_TEST(a_close_right_after_the_release_of_a_lost_one) {
    unsigned drains = 0;
    struct seen released = {0};
    redlock_lease *lease = take_abc(&seen);
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(seen.lost, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    redlock_group_drain(fake.group, count_drained, &drains);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(drains, 1);
    assert_seen(released, 1, REDLOCK_ERR_LOST);
}

static void assert_refused(const redlock_item *items, size_t count, const char *why) {
    struct seen seen = {0};
    assert_is(redlock_group_acquire_all(fake.group, items, count, &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    assert_string_equal(fake.group->invalid, why);
    assert_int_equal(fake.sent_count, 0);
}

BUNDLE_TEST(what_is_refused_says_so) {
    redlock_item items[REDLOCK_ITEMS_MAX + 1];
    char names[REDLOCK_ITEMS_MAX + 1][8];
    for (unsigned i = 0; i <= REDLOCK_ITEMS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "%u", i);
        items[i] = (redlock_item)ITEM(names[i]);
    }
    assert_refused(NULL, 1, "items is NULL");
    assert_refused(items, 0, "count is 0; it must be 1 to 64");
    assert_refused(items, REDLOCK_ITEMS_MAX + 1, "count is 65; it must be 1 to 64");
    assert_refused(ITEMS(ITEM("b"), ITEM("a"), ITEM("b")),
                   "items[0] and items[2] are the same resource; it can stand in a bundle once");
    assert_refused(ITEMS(ITEM("a"), ITEM("")), "items[1].resource has 0 bytes; it must have 1 to 1024");
    assert_refused(ITEMS(ITEM("a"), ITEM(NULL)), "items[1].resource is NULL");
    items[1].mode = (redlock_mode)7;
    assert_refused(items, 2, "items[1].mode is 7; it must be a redlock_mode");
    items[1].mode = REDLOCK_SHARED;
    items[1].size = sizeof(redlock_item) - sizeof(void *);
    assert_refused(items, 2, "items[1].size is not that of items[0]");
    options.mode = REDLOCK_SHARED;
    assert_refused(items, 1, "mode is SHARED; each item has its own");
    options = default_options();
    options.permits = options.limit = 1;
    assert_refused(items, 1, "permits are of one resource: redlock_acquire()");
    options = default_options();
    options.ttl_ms = 0;
    assert_refused(items, 1, "ttl_ms is 0; it must be 1 to 2147483647");
    options = default_options();
    assert_is(redlock_group_acquire_all(fake.group, items, 1, &options, NULL, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_string_equal(fake.group->invalid, "cb is NULL");
}

BUNDLE_TEST(sixty_four_items) {
    redlock_item items[REDLOCK_ITEMS_MAX];
    char names[REDLOCK_ITEMS_MAX][8];
    for (unsigned i = 0; i < REDLOCK_ITEMS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "%u", i);
        items[i] = (redlock_item)ITEM(names[i]);
    }
    fake.group->log_level = REDLOCK_LOG_ERROR; /* there is no room for so many lines */
    ask_for(items, REDLOCK_ITEMS_MAX, &seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_string_equal(redlock_lease_item_resource(seen.lease, 63), "63");
    give_back(seen.lease);
}
