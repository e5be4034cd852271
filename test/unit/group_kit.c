/* What the tests of the group begin with. */
#include "group_kit.h"

struct fake_env fake;

const struct group_setup three_nodes = {.node_count = 3};
const struct group_setup five_nodes = {.node_count = 5, .config = {.key_prefix = "locks:"}};
#define OBSERVED                                                                                                       \
    { .restart_guard = REDLOCK_RESTART_GUARD_OBSERVED, .ttl_max_ms = 20000 }
#define CLOCKS                                                                                                         \
    { .clock_guard = true, .ttl_max_ms = 20000 }
const struct group_setup three_observed = {.node_count = 3, .config = OBSERVED};
const struct group_setup five_observed = {.node_count = 5, .config = OBSERVED};
const struct group_setup five_strict = {.node_count = 5,
                                        .config = {.restart_guard = REDLOCK_RESTART_GUARD_STRICT, .ttl_max_ms = 20000}};
const struct group_setup three_clocks = {.node_count = 3, .config = CLOCKS};
const struct group_setup five_clocks = {.node_count = 5, .config = CLOCKS};

int open_group(void **state) {
    const struct group_setup *setup = *state;
    fake_env_open(&fake, setup->node_count, setup->config);
    fake.refusing = setup->refusing;
    return 0;
}

int close_group(UNUSED void **state) {
    fake_env_close(&fake);
    return 0;
}

void see(const redlock_result *result, void *data) {
    struct seen *seen = data;
    seen->count++;
    seen->code = redlock_result_code(result);
    seen->lease = redlock_result_lease(result);
    seen->attempts = redlock_result_attempts(result);
    seen->passed_over = redlock_result_passed_over(result);
    redlock_result_message(result, seen->message, sizeof seen->message);
    for (size_t i = 0; i < redlock_result_vote_count(result); i++) {
        redlock_vote vote = {.size = sizeof vote};
        assert_is(redlock_result_vote(result, i, &vote), REDLOCK_OK);
        seen->votes[i] = vote.kind;
        seen->latency_us[i] = vote.latency_us;
        (void)snprintf(seen->errors[i], sizeof seen->errors[i], "%s", vote.error);
    }
}

void see_lost(redlock_lease *lease, const char *reason, void *data) {
    struct seen *seen = data;
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_true(strlen(reason) > 10 && strlen(reason) < sizeof seen->reason);
    strcpy(seen->reason, reason);
    seen->lost++;
}

void count_drained(void *count) {
    ++*(unsigned *)count;
}

redlock_statistics statistics(void) {
    redlock_statistics now = {.size = sizeof now};
    assert_is(redlock_group_statistics(fake.group, &now), REDLOCK_OK);
    return now;
}

void assert_owed(uint64_t owed, uint64_t dropped) {
    assert_int_equal(statistics().releases_owed, owed);
    assert_int_equal(statistics().releases_dropped, dropped);
}

redlock_acquire_options default_options(void) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    return options;
}

redlock_acquire_options watched_options(struct seen *seen) {
    redlock_acquire_options options = default_options();
    options.on_lost = see_lost;
    options.lost_data = seen;
    return options;
}

void acquire(const redlock_acquire_options *options, struct seen *seen) {
    *seen = (struct seen){0};
    assert_is(redlock_group_acquire(fake.group, "r", options, NULL, see, seen), REDLOCK_OK);
}

redlock_lease *take(const redlock_acquire_options *options, struct seen *seen) {
    acquire(options, seen);
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    }
    assert_int_equal(seen->count, 1);
    assert_is(seen->code, REDLOCK_OK);
    assert_non_null(seen->lease);
    return seen->lease;
}

void give_back(redlock_lease *lease) {
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

uint64_t acquire_fenced(struct seen *seen) {
    redlock_acquire_options options = default_options();
    options.fencing = true;
    acquire(&options, seen);
    return fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence;
}

void grant(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        grant_with_clock(i, REDLOCK_OP_ACQUIRE, reading(0));
    }
}

void grant_with_clock(unsigned node, enum redlock_operation operation, struct redlock_clock_sample clock) {
    fake_env_answer_as(&fake, node, operation, (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = clock});
}

void accept_fence(unsigned node, enum redlock_operation operation) {
    fake_env_answer_as(&fake, node, operation,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
}

struct redlock_clock_sample reading(int64_t ahead_ms) {
    return (struct redlock_clock_sample){.sent_ns = fake.now_ns - REDLOCK_NS_PER_MS,
                                         .read_ns = fake.now_ns,
                                         .server_us = 1795167037000000 + fake.now_ns / 1000 + ahead_ms * 1000};
}

void greet(unsigned node, const char *run_id, int64_t uptime_s, struct redlock_clock_sample clock) {
    const struct redlock_greeting greeting = {.run_id = run_id, .uptime_s = uptime_s, .clock = clock};
    redlock_group_node_greeted(fake.group, node, &greeting);
    redlock_group_ready_changed(fake.group, node, true);
}

void greet_all(void) {
    static const char *const run_ids[] = {"a", "b", "c", "d", "e"};
    for (unsigned i = 0; i < fake.node_count; i++) {
        greet(i, run_ids[i], 100000, reading(0));
    }
}
