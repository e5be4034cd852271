/* redlock_manager_invalid(): each call that refuses an argument names it there and in the log. */
#include <redlock/election.h>
#include <redlock/list.h>
#include <redlock/telemetry.h>

#include "world.h"

static redlock_manager *manager;
static struct outcome outcome;

static int set_up(void **state) {
    redlock_manager_options options;
    if (world_setup(state) != 0) {
        return -1;
    }
    const char *uris[3] = {world_closed_uri(), world_closed_uri(), world_closed_uri()};
    redlock_manager_options_default(&options);
    options.nodes = uris;
    options.node_count = 3;
    manager = world_manager_at_once(&options);
    return 0;
}

/* The call was refused, with this sentence, which the log got as its last line, an ERROR (0). */
#define says(sentence, call)                                                                                           \
    do {                                                                                                               \
        world_log.used = 0, world_log.text[0] = 0;                                                                     \
        assert_is(call, REDLOCK_ERR_INVALID);                                                                          \
        assert_string_equal(redlock_manager_invalid(manager), sentence);                                               \
        assert_int_equal(strncmp(world_log.text, "0 ", 2), 0);                                                         \
        assert_contains(world_log.text, sentence);                                                                     \
    } while (0)

static bool never(const redlock_listed *lock, void *data) {
    (void)lock;
    (void)data;
    support_fatal("a callback of a call that was refused");
}

static void never_led(const redlock_leader *leader, void *data) {
    (void)leader;
    (void)data;
    support_fatal("a callback of a call that was refused");
}

static void never_told(const redlock_election_event *event, void *data) {
    (void)event;
    (void)data;
    support_fatal("a callback of a call that was refused");
}

static int acquire(const redlock_acquire_options *options) {
    return redlock_acquire(manager, "r", options, NULL, outcome_collect, &outcome);
}

TESTS_WITH(world_none, world_end);
#define INVALID_TEST(name) TEST_WITH(name, set_up, world_teardown)

INVALID_TEST(it_is_of_the_last_call_that_was_refused) {
    assert_string_equal(redlock_manager_invalid(manager), "");
    says("resource is NULL", redlock_inspect(manager, NULL, outcome_collect, &outcome));
    /* A call that is accepted does not change it, nor does one without a manager or a lease. */
    outcome = (struct outcome){0};
    assert_is(redlock_inspect(manager, "r", outcome_collect, &outcome), REDLOCK_OK);
    assert_is(redlock_inspect(NULL, "", outcome_collect, &outcome), REDLOCK_ERR_INVALID);
    assert_is(redlock_acquire(NULL, "", NULL, NULL, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_extend(NULL, 0, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_release(NULL, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_election_end(NULL), REDLOCK_ERR_INVALID);
    assert_string_equal(redlock_manager_invalid(manager), "resource is NULL");
    says("cb is NULL", redlock_inspect(manager, "r", NULL, NULL));
    assert_true(outcome_wait(world_loop, &outcome));
    assert_is(outcome.code, REDLOCK_ERR_NO_QUORUM);
    assert_string_equal(redlock_manager_invalid(manager), "cb is NULL");
    outcome_clear(&outcome);
}

INVALID_TEST(a_name_is_refused) {
    char longest[REDLOCK_RESOURCE_SIZE_MAX + 2];
    redlock_observer *observer;
    redlock_election *election;
    redlock_lease *lease;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    says("resource has 0 bytes; it must have 1 to 1024",
         redlock_acquire(manager, "", NULL, NULL, outcome_collect, &outcome));
    says("resource has 1025 bytes; it must have 1 to 1024",
         redlock_acquire(manager, longest, NULL, NULL, outcome_collect, &outcome));
    says("resource is NULL", redlock_adopt(manager, NULL, "token", NULL, &lease));
    says("resource is NULL", redlock_observe(manager, NULL, never_led, NULL, &observer));
    says("name is NULL", redlock_elect(manager, NULL, NULL, never_told, NULL, &election));
}

INVALID_TEST(a_callback_or_a_place_for_the_handle_is_missing) {
    redlock_observer *observer;
    redlock_election *election;
    says("cb is NULL", redlock_acquire(manager, "r", NULL, NULL, NULL, NULL));
    says("cb is NULL", redlock_inspect(manager, "r", NULL, NULL));
    says("cb is NULL", redlock_manager_connect(manager, 1, NULL, NULL));
    says("each is NULL", redlock_list(manager, NULL, NULL, outcome_collect, &outcome));
    says("done is NULL", redlock_list(manager, NULL, never, NULL, &outcome));
    says("cb is NULL", redlock_observe(manager, "r", NULL, NULL, &observer));
    says("observer is NULL", redlock_observe(manager, "r", never_led, NULL, NULL));
    says("cb is NULL", redlock_elect(manager, "e", NULL, NULL, NULL, &election));
    says("election is NULL", redlock_elect(manager, "e", NULL, never_told, NULL, NULL));
    says("lease is NULL", redlock_adopt(manager, "r", "token", NULL, NULL));
}

INVALID_TEST(an_option_of_an_acquire_is_refused) {
    const redlock_acquire_options good = world_acquire_options(1000, 0);
    redlock_acquire_options options = good;
    options.ttl_ms = 0;
    says("ttl_ms is 0; it must be 1 to 2147483647", acquire(&options));
    options = good, options.wait_timeout_ms = -2;
    says("wait_timeout_ms is -2; it must be 0 or more, or REDLOCK_WAIT_FOREVER", acquire(&options));
    options = good, options.retry_delay_min_ms = -1;
    says("retry_delay_min_ms is -1; it must be 0 to 2147483647", acquire(&options));
    options = good, options.retry_delay_max_ms = 0, options.retry_delay_min_ms = 0;
    says("retry_delay_max_ms is 0; it must be 1 to 2147483647", acquire(&options));
    options = good, options.retry_delay_min_ms = 300;
    says("retry_delay_max_ms is 200; it must be 300 to 2147483647 (no less than retry_delay_min_ms)",
         acquire(&options));
    options = good, options.auto_extend_max_ms = -1;
    says("auto_extend_max_ms is -1; it must be 0 or more (0: no cap)", acquire(&options));
    options = good, options.order = (redlock_order)7;
    says("order is 7; it must be a redlock_order", acquire(&options));
    options = good, options.cancel = (struct redlock_cancel *)&options;
    says("cancel is only for redlock_client_acquire() and redlock_client_with()", acquire(&options));
    options = good, options.lock_delay_ms = REDLOCK_TTL_MS_MAX;
    says("lock_delay_ms is 2147483647; it must be 0 to 2147482647 with this ttl_ms", acquire(&options));
    options = good, options.size = sizeof options + 1;
    assert_is(acquire(&options), REDLOCK_ERR_INVALID);
    assert_contains(redlock_manager_invalid(manager), "call redlock_acquire_options_default() first");
}

INVALID_TEST(other_options_are_refused) {
    char longest[REDLOCK_RESOURCE_SIZE_MAX + 2];
    redlock_list_options which;
    redlock_election_options how;
    redlock_election *election;
    redlock_list_options_default(&which);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    which.match = longest;
    says("match has 1025 bytes; it must have 0 to 1024",
         redlock_list(manager, &which, never, outcome_collect, &outcome));
    which.match = NULL, which.cancel = (struct redlock_cancel *)&which;
    says("cancel is only for redlock_client_list()", redlock_list(manager, &which, never, outcome_collect, &outcome));
    says("timeout_ms is -1; it must be 0 to 60000", redlock_manager_connect(manager, -1, outcome_collect, &outcome));
    redlock_election_options_default(&how);
    how.ttl_ms = -5;
    says("ttl_ms is -5; it must be 1 to 2147483647", redlock_elect(manager, "e", &how, never_told, NULL, &election));
}

INVALID_TEST(a_lease_or_a_token_is_refused) {
    redlock_lease *lease = NULL;
    says("token is NULL", redlock_adopt(manager, "r", NULL, NULL, &lease));
    says("token has 0 bytes; it must have 1 to 128", redlock_adopt(manager, "r", "", NULL, &lease));
    assert_is(redlock_adopt(manager, "r", "token", NULL, &lease), REDLOCK_OK);
    says("ttl_ms is 0; it must be 1 to 2147483647", redlock_extend(lease, 0, NULL, NULL));
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    says("lease was released or forgotten before", redlock_release(lease, NULL, NULL));
    says("lease was released or forgotten before", redlock_extend(lease, 1000, NULL, NULL));
}

static void told(const redlock_election_event *event, void *data) {
    (void)event;
    (void)data;
}

INVALID_TEST(an_election_that_has_ended_is_refused) {
    redlock_election *election;
    assert_is(redlock_elect(manager, "e", NULL, told, NULL, &election), REDLOCK_OK);
    assert_is(redlock_election_end(election), REDLOCK_OK);
    says("election: redlock_election_end() was called before", redlock_election_end(election));
    says("election: redlock_election_end() was called before", redlock_election_campaign(election));
}

INVALID_TEST(a_struct_to_fill_in_is_refused) {
    redlock_statistics statistics = {0};
    redlock_telemetry telemetry = {0};
    redlock_node_info info = {0};
    says("statistics is NULL", redlock_manager_statistics(manager, NULL));
    says("statistics.size is 0; set it to the size of the struct before the call",
         redlock_manager_statistics(manager, &statistics));
    says("telemetry is NULL", redlock_manager_telemetry(manager, NULL));
    says("telemetry.size is 0; set it to the size of the struct before the call",
         redlock_manager_telemetry(manager, &telemetry));
    /* redlock_manager_node() tells no log: some loops end by its error. */
    world_log.used = 0, world_log.text[0] = '\0';
    assert_is(redlock_manager_node(manager, 0, NULL), REDLOCK_ERR_INVALID);
    assert_string_equal(redlock_manager_invalid(manager), "info is NULL");
    assert_is(redlock_manager_node(manager, 0, &info), REDLOCK_ERR_INVALID);
    assert_string_equal(redlock_manager_invalid(manager),
                        "info.size is 0; set it to the size of the struct before the call");
    info.size = sizeof info;
    assert_is(redlock_manager_node(manager, 3, &info), REDLOCK_ERR_INVALID);
    assert_string_equal(redlock_manager_invalid(manager), "index is 3; it must be 0 to 2");
    assert_string_equal(world_log.text, "");
}

INVALID_TEST(credentials_are_refused) {
    says("node is 3; it must be 0 to 2", redlock_manager_set_credentials(manager, 3, NULL, "secret"));
    says("user has 0 bytes; it must have 1 to 16384", redlock_manager_set_credentials(manager, 0, "", "secret"));
    says("password is NULL", redlock_manager_set_credentials(manager, REDLOCK_ALL_NODES, NULL, NULL));
    says("password has 0 bytes; it must have 1 to 16384", redlock_manager_set_credentials(manager, 0, "u", ""));
    assert_lacks(redlock_manager_invalid(manager), "secret");
}

INVALID_TEST(a_guard_without_its_longest_ttl_is_refused) {
    const char *uri = world_closed_uri();
    redlock_manager *refused;
    redlock_manager_options options;
    char error[256];
    redlock_manager_options_default(&options);
    options.nodes = &uri;
    options.node_count = 1;
    options.restart_guard = REDLOCK_RESTART_GUARD_STRICT;
    assert_is(redlock_manager_create(world_loop, &options, &refused, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_string_equal(error, "restart_guard needs ttl_max_ms: the longest ttl that any client of these nodes uses");
    options.restart_guard = REDLOCK_RESTART_GUARD_OFF;
    options.clock_guard = true;
    assert_is(redlock_manager_create(world_loop, &options, &refused, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_string_equal(error, "clock_guard needs ttl_max_ms: the longest ttl that any client of these nodes uses");
}
