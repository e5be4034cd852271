/* Fencing tokens when a node has, or reports, a counter that no client made: that node loses its
 * vote, and the counter does not spread. */
#include <inttypes.h>
#include <time.h>

#include "world.h"

#define TTL_MS  60000
#define DIGITS  20
#define ROUNDS  20
#define HOUR_NS UINT64_C(3600000000000)
#define SAYS    "its fencing counter is over 30 minutes ahead of this client's clock"

static uint64_t wall_number(void) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* 0 for none. */
static uint64_t counter_at(size_t node, const char *key) {
    return strtoull(server_ask(&world_servers.at[node], "GET", key), NULL, 10);
}

static void set_counter(size_t node, const char *key, uint64_t number) {
    char text[DIGITS + 1];
    snprintf(text, sizeof text, "%0*" PRIu64, DIGITS, number);
    assert_string_equal(server_ask(&world_servers.at[node], "SET", key, text), "OK");
}

static int acquire(redlock_manager *manager, const char *resource, int64_t wait_ms, struct outcome *outcome) {
    redlock_acquire_options options = world_acquire_options(TTL_MS, wait_ms);
    options.fencing = true;
    return drive_acquire(world_loop, manager, resource, &options, outcome);
}

static uint64_t next_token(redlock_manager *manager, const char *resource) {
    struct outcome *outcome = world_outcome();
    if (acquire(manager, resource, PATIENT_MS, outcome) != REDLOCK_OK) {
        fail_msg("acquiring %s: %s", resource, outcome->message);
    }
    const uint64_t token = redlock_lease_fence(outcome->lease);
    assert_is(drive_release(world_loop, outcome->lease, outcome), REDLOCK_OK);
    return token;
}

/* Tokens rise, and stay near the clocks. */
static void assert_tokens_rise(redlock_manager *manager, const char *resource) {
    uint64_t last = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t token = next_token(manager, resource);
        assert_true(token > last);
        last = token;
    }
    assert_true(last > wall_number() - HOUR_NS && last < wall_number() + HOUR_NS);
}

static uint64_t lie_number(size_t i) {
    const uint64_t lies[] = {INT64_MAX, INT64_MAX - 1, UINT64_C(7258118400000000999), UINT64_C(7226582400000000000),
                             wall_number() + 48 * HOUR_NS};
    return i < sizeof lies / sizeof *lies ? lies[i] : 0;
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(an_absurd_counter_of_a_node_does_not_spread) {
    redlock_manager *managers[2] = {world_manager_all(PATIENT_MS), world_manager_all(PATIENT_MS)};
    uint64_t lie;
    for (size_t i = 0; (lie = lie_number(i)) != 0; i++) {
        char resource[32], key[40];
        snprintf(resource, sizeof resource, "lie-%zu", i);
        snprintf(key, sizeof key, "%s:fence", resource);
        set_counter(i % 3, key, lie);
        assert_tokens_rise(managers[0], resource);
        assert_tokens_rise(managers[1], resource);
        for (size_t node = 0; node < 3; node++) {
            const uint64_t counter = counter_at(node, key);
            assert_true(node == i % 3 ? counter >= lie : counter < wall_number() + HOUR_NS);
        }
    }
}

/* With a lie and a node that is down, too few are left. When the node is back there are enough,
 * because the third node has not taken the lie over. */
WORLD_TEST(with_a_node_away_there_is_no_quorum_and_no_harm) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    uint64_t lie;
    for (size_t i = 0; (lie = lie_number(i)) != 0; i++) {
        char resource[32], key[40];
        snprintf(resource, sizeof resource, "away-%zu", i);
        snprintf(key, sizeof key, "%s:fence", resource);
        set_counter(1, key, lie);
        server_pause(&world_servers.at[2]);
        assert_is(acquire(manager, resource, 0, outcome), REDLOCK_ERR_NO_QUORUM);
        if (strstr(outcome->message, SAYS) == NULL && strstr(outcome->message, "over a day ahead") == NULL) {
            fail_msg("\"%s\" does not say why", outcome->message);
        }
        assert_true(counter_at(0, key) < wall_number() + HOUR_NS);
        server_resume(&world_servers.at[2]);
        assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
        /* The attempt leaves no key. */
        assert_true(world_wait_without_key(resource, DRIVE_TIMEOUT_MS));
        assert_tokens_rise(manager, resource);
    }
}

/* An older client had a clock in the year 2150. The counters that it left on most or all nodes do
 * not keep others out. */
MANAGER_TEST(counters_of_a_wrong_clock_are_continued) {
    const uint64_t far = UINT64_C(5680281600000000123);
    for (size_t nodes = 2; nodes <= 3; nodes++) {
        char resource[32], key[40];
        snprintf(resource, sizeof resource, "wrong-%zu", nodes);
        snprintf(key, sizeof key, "%s:fence", resource);
        for (size_t i = 0; i < nodes; i++) {
            set_counter(i, key, far + i * 1000000);
        }
        uint64_t last = far;
        for (int i = 0; i < ROUNDS; i++) {
            const uint64_t token = next_token(manager, resource);
            assert_true(token > last);
            last = token;
        }
        assert_true(last < far + UINT64_C(1000000000));
    }
}

static bool has_answered(void *data) {
    struct fake_server *fake = data;
    return fake_server_hostile_answers(fake) > 0;
}

/* Its answers are well-formed, and each is above the proposal. The others can be a quorum before it
 * is ready, and before its first answer. */
WORLD_TEST(a_node_with_absurd_counters_loses_its_vote) {
    static const char *const answers[] = {
        "*2\r\n:2\r\n$20\r\n09223372036854775807\r\n", "*2\r\n:2\r\n$20\r\n09223372036854775806\r\n",
        "*2\r\n:2\r\n$20\r\n07226582400000000000\r\n", "*2\r\n:0\r\n$20\r\n09223372036854775806\r\n"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct fake_server *fake = world_fake(
            &(struct fake_script){.behave_in_handshake = true, .bytes = answers[i], .size = strlen(answers[i])});
        const char *uris[3] = {world_servers.uris[0], fake_server_uri(fake), world_servers.uris[1]};
        redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
        char resource[32];
        snprintf(resource, sizeof resource, "told-%zu", i);
        assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
        assert_tokens_rise(manager, resource);
        assert_true(drive_until(world_loop, has_answered, fake, DRIVE_TIMEOUT_MS));
        world_close(manager);
    }
}
