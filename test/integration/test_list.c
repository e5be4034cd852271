/* redlock_list() on real servers: which locks it names of which node, and what it says of a node
 * that cannot name its own. */
#include <redlock/list.h>

#include "world.h"

#define NAMES_MAX 16

/* What the callbacks of one listing saw. */
struct seen {
    struct outcome *outcome;
    int count;
    struct {
        size_t node;
        char resource[64], token[REDLOCK_TOKEN_SIZE_MAX + 1];
        int64_t ttl_ms;
    } locks[NAMES_MAX];
};

static bool see(const redlock_listed *lock, void *data) {
    struct seen *seen = data;
    assert_int_equal(lock->size, sizeof *lock);
    assert_int_equal(seen->outcome->runs, 0); /* the result comes last */
    assert_true(seen->count < NAMES_MAX && strlen(lock->resource) < sizeof seen->locks[0].resource);
    seen->locks[seen->count].node = lock->node;
    seen->locks[seen->count].ttl_ms = lock->ttl_ms;
    strcpy(seen->locks[seen->count].resource, lock->resource);
    strcpy(seen->locks[seen->count].token, lock->token);
    seen->count++;
    return true;
}

static void collect(const redlock_result *result, void *data) {
    outcome_collect(result, ((struct seen *)data)->outcome);
}

/* Begins to list the locks whose names match; NULL: all. */
static void begin_list(redlock_manager *manager, const char *match, struct seen *seen) {
    redlock_list_options options;
    redlock_list_options_default(&options);
    options.match = match;
    *seen = (struct seen){.outcome = world_outcome()};
    assert_is(redlock_list(manager, &options, see, collect, seen), REDLOCK_OK);
    assert_int_equal(seen->count, 0); /* no callback inside the call */
}

/* Lists the locks whose names match; NULL: all. */
static struct seen list(redlock_manager *manager, const char *match) {
    struct seen seen;
    begin_list(manager, match, &seen);
    assert_true(outcome_wait(world_loop, seen.outcome));
    assert_int_equal(seen.outcome->runs, 1);
    return seen;
}

/* How often the node named the lock of this resource under this token. */
static int named(const struct seen *seen, size_t node, const char *resource, const char *token) {
    int count = 0;
    for (int i = 0; i < seen->count; i++) {
        count += seen->locks[i].node == node && strcmp(seen->locks[i].resource, resource) == 0 &&
                 strcmp(seen->locks[i].token, token) == 0 && seen->locks[i].ttl_ms > 0;
    }
    return count;
}

TESTS_WITH(world_three, world_end);

MANAGER_TEST(each_lock_is_named_by_each_node_that_has_it) {
    redlock_lease *first = world_acquire(manager, "job:1", 60000), *second = world_acquire(manager, "job:2", 60000),
                  *other = world_acquire(manager, "other", 60000);
    assert_true(world_wait_with_key("job:1", 3, DRIVE_TIMEOUT_MS) &&
                world_wait_with_key("job:2", 3, DRIVE_TIMEOUT_MS) && world_wait_with_key("other", 3, DRIVE_TIMEOUT_MS));
    server_ask(&world_servers.at[1], "DEL", "job:2");
    server_ask(&world_servers.at[2], "SET", "data", "no lock");
    struct seen seen = list(manager, NULL);
    assert_is(seen.outcome->code, REDLOCK_OK);
    assert_int_equal(outcome_votes(seen.outcome, REDLOCK_VOTE_GRANTED), 3);
    assert_int_equal(seen.count, 8);
    for (size_t node = 0; node < 3; node++) {
        assert_int_equal(named(&seen, node, "job:1", redlock_lease_token(first)), 1);
        assert_int_equal(named(&seen, node, "job:2", redlock_lease_token(second)), node != 1);
        assert_int_equal(named(&seen, node, "other", redlock_lease_token(other)), 1);
    }
    seen = list(manager, "job:*");
    assert_int_equal(seen.count, 5);
    seen = list(manager, "none");
    assert_is(seen.outcome->code, REDLOCK_OK);
    assert_int_equal(seen.count, 0);
}

MANAGER_TEST(a_node_that_is_down_names_nothing) {
    redlock_lease *lease = world_acquire(manager, "r", 60000);
    assert_true(world_wait_with_key("r", 3, DRIVE_TIMEOUT_MS));
    server_kill(&world_servers.at[0]);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_WAITING, 1));
    struct seen seen = list(manager, NULL);
    assert_is(seen.outcome->code, REDLOCK_OK); /* a quorum named theirs */
    assert_is(outcome_vote(seen.outcome, 0), REDLOCK_VOTE_FAILED);
    assert_true(strlen(outcome_vote_error(seen.outcome, 0)) > 0);
    assert_int_equal(seen.count, 2);
    assert_int_equal(named(&seen, 1, "r", redlock_lease_token(lease)), 1);
    assert_int_equal(named(&seen, 2, "r", redlock_lease_token(lease)), 1);
    server_kill(&world_servers.at[1]);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_WAITING, 2));
    seen = list(manager, NULL);
    assert_is(seen.outcome->code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(seen.count, 1);
    assert_contains(seen.outcome->message, "cannot list");
    for (size_t i = 0; i < 2; i++) {
        assert_contains(seen.outcome->message, world_servers.at[i].name);
    }
}

WORLD_TEST(a_node_that_hangs_for_a_while_names_its_locks) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    redlock_lease *lease = world_acquire(manager, "r", 60000);
    assert_true(world_wait_with_key("r", 3, DRIVE_TIMEOUT_MS));
    server_pause(&world_servers.at[0]);
    struct seen seen;
    begin_list(manager, NULL, &seen);
    /* It asks after the listing, and ends at the timeout: so the listing's page is late by then. */
    struct outcome *inspected = world_outcome();
    assert_is(drive_inspect(world_loop, manager, "r", inspected), REDLOCK_OK);
    assert_is(outcome_vote(inspected, 0), REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(seen.outcome->runs, 0);
    server_resume(&world_servers.at[0]);
    assert_true(outcome_wait(world_loop, seen.outcome));
    assert_int_equal(outcome_votes(seen.outcome, REDLOCK_VOTE_GRANTED), 3);
    assert_int_equal(seen.count, 3); /* the late reply counts for nothing */
    assert_int_equal(named(&seen, 0, "r", redlock_lease_token(lease)), 1);
}

WORLD_TEST(a_node_that_hangs_for_long_is_given_up) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    (void)world_acquire(manager, "r", 60000);
    assert_true(world_wait_with_key("r", 3, DRIVE_TIMEOUT_MS));
    server_pause(&world_servers.at[2]);
    struct seen seen = list(manager, NULL);
    assert_is(seen.outcome->code, REDLOCK_OK);
    /* What it is asked again waits behind what it owes, and is withdrawn. */
    assert_is(outcome_vote(seen.outcome, 2), REDLOCK_VOTE_FAILED);
    assert_contains(outcome_vote_error(seen.outcome, 2), "the node owes older answers");
    assert_int_equal(seen.count, 2);
    server_resume(&world_servers.at[2]);
}

MANAGER_TEST(a_user_who_may_not_scan_is_told) {
    redlock_lease *lease = world_acquire(manager, "r", 60000);
    assert_true(world_wait_with_key("r", 3, DRIVE_TIMEOUT_MS));
    server_ask(&world_servers.at[1], "ACL", "SETUSER", "default", "-scan");
    struct seen seen = list(manager, NULL);
    assert_is(seen.outcome->code, REDLOCK_OK);
    assert_is(outcome_vote(seen.outcome, 1), REDLOCK_VOTE_FAILED);
    assert_contains(outcome_vote_error(seen.outcome, 1), "NOPERM this user may not SCAN");
    assert_int_equal(named(&seen, 0, "r", redlock_lease_token(lease)), 1);
    assert_int_equal(named(&seen, 1, "r", redlock_lease_token(lease)), 0);
    server_ask(&world_servers.at[2], "ACL", "SETUSER", "default", "-scan");
    seen = list(manager, NULL);
    assert_is(seen.outcome->code, REDLOCK_ERR_NO_QUORUM);
    assert_contains(seen.outcome->message, "NOPERM this user may not SCAN");
    server_ask(&world_servers.at[1], "ACL", "SETUSER", "default", "+scan");
    server_ask(&world_servers.at[2], "ACL", "SETUSER", "default", "+scan");
    seen = list(manager, NULL);
    assert_int_equal(seen.count, 3);
    assert_int_equal(outcome_votes(seen.outcome, REDLOCK_VOTE_GRANTED), 3);
}
