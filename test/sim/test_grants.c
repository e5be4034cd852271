/* The takeover checker alone: what it must report, and what a correct library may do. */
#include "parts.h"
#include "test.h"

static const char OLD[SIM_TOKEN_SIZE + 1] = "c0000001aaaaaaaaaaaaaaaaaaaaaaaa";
static const char NEW[SIM_TOKEN_SIZE + 1] = "00000000000000f1c1000001bbbbbbbbbbbbbbbbbbbbbbbb";

static struct sim_world *world;

void sim_violation(struct sim_world *at, const char *checker, const char *format, ...) {
    (void)format;
    at->checker = checker;
}

const char *sim_resource_name(unsigned resource) {
    return resource == 0 ? "r1" : "r2";
}

int64_t sim_client_now(const struct sim_client *client) {
    return client->step_ns;
}

uint64_t redlock_lease_item_fence(const redlock_lease *lease, size_t item) {
    (void)item;
    (void)lease;
    return 0;
}

/* Node 2 of three is in both quorums. The old lease is on nodes 1 and 2: asked for at 10 ms,
 * answered at 20 ms. */
static int begin(UNUSED void **state) {
    world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->profile.nodes = 3;
    world->profile.clients = 2;
    world->clients[0].world = world->clients[1].world = world;
    return 0;
}

static int end(UNUSED void **state) {
    free(world);
    return 0;
}

static void set_at(int64_t at_ms, unsigned node, const char *token) {
    world->now_ns = at_ms * SIM_MS;
    sim_grant_set(world, node, token);
}

static void answered(unsigned client, int64_t asked_ms, int64_t answered_ms, const char *token) {
    struct sim_client *owner = &world->clients[client];
    struct sim_lease lease = {.client = (uint8_t)client};
    struct sim_call call = {.client = owner, .asked_ns = asked_ms * SIM_MS};
    memcpy(lease.token, token, SIM_TOKEN_SIZE);
    owner->step_ns = answered_ms * SIM_MS;
    sim_grant_acquired(&call, &lease);
}

/* An extension of the old lease, asked for at this time, returns OK. Returns the checker that
 * complains. */
static const char *extended(int64_t asked_ms) {
    struct sim_lease lease = {.client = 0};
    struct sim_call call = {.client = &world->clients[0], .lease = &lease, .asked_ns = asked_ms * SIM_MS};
    memcpy(lease.token, OLD, SIM_TOKEN_SIZE);
    sim_grant_extended(&call, &lease);
    return world->checker;
}

static void acquire_both(void) {
    set_at(12, 1, OLD);
    set_at(13, 2, OLD);
    answered(0, 10, 20, OLD);
    set_at(32, 0, NEW);
    set_at(34, 2, NEW);
}

#define GRANTS_TEST(name) TEST_WITH(name, begin, end)

GRANTS_TEST(an_extension_after_another_was_granted_is_a_takeover) {
    acquire_both();
    answered(1, 30, 40, NEW);
    assert_string_equal(extended(50), "takeover");
}

GRANTS_TEST(another_acquired_later_is_no_takeover) {
    acquire_both();
    answered(1, 30, 60, NEW);
    assert_null(extended(50));
}

/* A SET of the old lease that was under way runs where the new lease's key was evicted, before the
 * new lease is granted or after. */
GRANTS_TEST(a_key_set_anew_after_the_other_was_lost_is_no_takeover) {
    acquire_both();
    set_at(36, 0, OLD);
    answered(1, 30, 40, NEW);
    assert_null(extended(50));
}

GRANTS_TEST(nor_is_a_key_healed_after_the_other_was_acquired) {
    acquire_both();
    answered(1, 30, 40, NEW);
    set_at(45, 2, OLD);
    assert_null(extended(50));
}

/* The third node granted nothing to the other lease, so a key set there explains nothing. */
GRANTS_TEST(a_key_set_where_the_other_never_was_excuses_nothing) {
    acquire_both();
    set_at(36, 1, OLD);
    answered(1, 30, 40, NEW);
    assert_string_equal(extended(50), "takeover");
}

GRANTS_TEST(nor_does_one_set_there_before_the_other) {
    set_at(31, 0, OLD);
    acquire_both();
    answered(1, 30, 40, NEW);
    assert_string_equal(extended(50), "takeover");
}

/* A later heal by the other lease does not change the time at which it was granted. */
GRANTS_TEST(it_counts_from_the_first_time_that_the_other_was_set) {
    acquire_both();
    answered(1, 30, 40, NEW);
    set_at(44, 2, OLD);
    set_at(46, 2, NEW);
    assert_null(extended(50));
}
