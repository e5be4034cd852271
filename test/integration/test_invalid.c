/* Arguments that are refused. redlock_manager_create() says which one; all other calls name it in
 * redlock_manager_invalid() and in the log, make no callback, and send nothing. */
#include <redlock/election.h>
#include <redlock/list.h>
#include <redlock/telemetry.h>

#include "world.h"

#define EXPIRY_MS_MIN INT64_C(10800000) /* of fencing counters */

static redlock_manager *manager;
static struct outcome outcome;
static const char *uris[3];

static int set_up(void **state) {
    redlock_manager_options options;
    if (world_setup(state) != 0) {
        return -1;
    }
    uris[0] = world_closed_uri(), uris[1] = world_closed_uri(), uris[2] = world_closed_uri();
    redlock_manager_options_default(&options);
    options.nodes = uris;
    options.node_count = 3;
    manager = world_manager_at_once(&options);
    return 0;
}

static int tear_down(void **state) {
    const int result = world_teardown(state);
    return outcome.runs == 0 ? result : -1; /* a callback of a call that was refused */
}

/* One byte too long. The text stays until the next call. */
static const char *longer_than(size_t size) {
    static char text[REDLOCK_RESOURCE_SIZE_MAX + 2];
    memset(text, 'x', size + 1);
    text[size + 1] = '\0';
    return text;
}

/* The call was refused, with this sentence, which the log got as its last line, an ERROR (0). */
#define says(sentence, call)                                                                                           \
    do {                                                                                                               \
        world_log.used = 0, world_log.text[0] = 0;                                                                     \
        assert_is(call, REDLOCK_ERR_INVALID);                                                                          \
        assert_string_equal(redlock_manager_invalid(manager), sentence);                                               \
        assert_int_equal(strncmp(world_log.text, "0 ", 2), 0);                                                         \
        assert_contains(world_log.text, "invalid argument: ");                                                         \
        assert_contains(world_log.text, sentence);                                                                     \
    } while (0)

/* A struct of another size than this library knows. */
#define wants(its_default, call)                                                                                       \
    do {                                                                                                               \
        assert_is(call, REDLOCK_ERR_INVALID);                                                                          \
        assert_contains(redlock_manager_invalid(manager), "call " #its_default "() first");                            \
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
#define INVALID_TEST(name) TEST_WITH(name, set_up, tear_down)

INVALID_TEST(it_is_of_the_last_call_that_was_refused) {
    assert_string_equal(redlock_manager_invalid(manager), "");
    says("resource is NULL", redlock_inspect(manager, NULL, outcome_collect, &outcome));
    /* A call that is accepted does not change it, nor does one without a manager or a lease. */
    outcome = (struct outcome){0};
    assert_is(redlock_inspect(manager, "r", outcome_collect, &outcome), REDLOCK_OK);
    assert_is(redlock_inspect(NULL, "r", outcome_collect, &outcome), REDLOCK_ERR_INVALID);
    assert_is(redlock_adopt(NULL, "r", "token", NULL, &(redlock_lease *){NULL}), REDLOCK_ERR_INVALID);
    assert_is(redlock_manager_connect(NULL, 1000, outcome_collect, &outcome), REDLOCK_ERR_INVALID);
    assert_is(redlock_manager_statistics(NULL, &(redlock_statistics){.size = sizeof(redlock_statistics)}),
              REDLOCK_ERR_INVALID);
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
    const struct {
        const char *name, *resource_says, *election_says;
    } bad[] = {{NULL, "resource is NULL", "name is NULL"},
               {"", "resource has 0 bytes; it must have 1 to 1024", "name has 0 bytes; it must have 1 to 1024"},
               {longer_than(REDLOCK_RESOURCE_SIZE_MAX), "resource has 1025 bytes; it must have 1 to 1024",
                "name has 1025 bytes; it must have 1 to 1024"}};
    redlock_observer *observer = NULL;
    redlock_election *election = NULL;
    redlock_lease *lease = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *name = bad[i].name;
        says(bad[i].resource_says, redlock_acquire(manager, name, NULL, NULL, outcome_collect, &outcome));
        says(bad[i].resource_says, redlock_inspect(manager, name, outcome_collect, &outcome));
        says(bad[i].resource_says, redlock_adopt(manager, name, "token", NULL, &lease));
        says(bad[i].resource_says, redlock_observe(manager, name, never_led, NULL, &observer));
        says(bad[i].election_says, redlock_elect(manager, name, NULL, never_told, NULL, &election));
    }
    assert_true(lease == NULL && observer == NULL && election == NULL);
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
    options.ttl_ms = -1;
    says("ttl_ms is -1; it must be 1 to 2147483647", acquire(&options));
    options.ttl_ms = REDLOCK_TTL_MS_MAX + INT64_C(1);
    says("ttl_ms is 2147483648; it must be 1 to 2147483647", acquire(&options));
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
    options = good, options.lock_delay_ms = -1;
    says("lock_delay_ms is -1; it must be 0 to 2147482647 with this ttl_ms", acquire(&options));
    options = good, options.size = sizeof options + 1;
    wants(redlock_acquire_options_default, acquire(&options));
    options.size = 0;
    wants(redlock_acquire_options_default, acquire(&options));
}

INVALID_TEST(other_options_are_refused) {
    redlock_list_options which;
    redlock_election_options how;
    redlock_election *election = NULL;
    redlock_list_options_default(&which);
    assert_int_equal(which.size, sizeof which);
    which.match = longer_than(REDLOCK_RESOURCE_SIZE_MAX);
    says("match has 1025 bytes; it must have 0 to 1024",
         redlock_list(manager, &which, never, outcome_collect, &outcome));
    which.match = NULL, which.cancel = (struct redlock_cancel *)&which;
    says("cancel is only for redlock_client_list()", redlock_list(manager, &which, never, outcome_collect, &outcome));
    which.cancel = NULL, which.size = 0;
    wants(redlock_list_options_default, redlock_list(manager, &which, never, outcome_collect, &outcome));
    which.size = sizeof which + 1;
    wants(redlock_list_options_default, redlock_list(manager, &which, never, outcome_collect, &outcome));
    says("timeout_ms is -1; it must be 0 to 60000", redlock_manager_connect(manager, -1, outcome_collect, &outcome));
    says("timeout_ms is 60001; it must be 0 to 60000",
         redlock_manager_connect(manager, 60001, outcome_collect, &outcome));
    redlock_election_options_default(&how);
    how.ttl_ms = -5;
    says("ttl_ms is -5; it must be 1 to 2147483647", redlock_elect(manager, "e", &how, never_told, NULL, &election));
    how.ttl_ms = 0, how.campaign = false;
    says("ttl_ms is 0; it must be 1 to 2147483647", redlock_elect(manager, "e", &how, never_told, NULL, &election));
    how.ttl_ms = 1000, how.size = 0;
    wants(redlock_election_options_default, redlock_elect(manager, "e", &how, never_told, NULL, &election));
    how.size = sizeof how + 1;
    wants(redlock_election_options_default, redlock_elect(manager, "e", &how, never_told, NULL, &election));
    assert_null(election);
}

INVALID_TEST(a_lease_or_a_token_is_refused) {
    redlock_lease *lease = NULL;
    says("token is NULL", redlock_adopt(manager, "r", NULL, NULL, &lease));
    says("token has 0 bytes; it must have 1 to 128", redlock_adopt(manager, "r", "", NULL, &lease));
    says("token has 129 bytes; it must have 1 to 128",
         redlock_adopt(manager, "r", longer_than(REDLOCK_TOKEN_SIZE_MAX), NULL, &lease));
    assert_null(lease);
    assert_is(redlock_adopt(manager, "r", "token", NULL, &lease), REDLOCK_OK);
    says("ttl_ms is 0; it must be 1 to 2147483647", redlock_extend(lease, 0, outcome_collect, &outcome));
    says("ttl_ms is 2147483648; it must be 1 to 2147483647",
         redlock_extend(lease, REDLOCK_TTL_MS_MAX + INT64_C(1), outcome_collect, &outcome));
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

/* A manager with good options but for one is refused with these words. */
#define refused(words, ...)                                                                                            \
    do {                                                                                                               \
        redlock_manager_options options = world_options();                                                             \
        options.nodes = uris, options.node_count = 3;                                                                  \
        __VA_ARGS__;                                                                                                   \
        assert_is(create(&options, words), REDLOCK_ERR_INVALID);                                                       \
    } while (0)

static int create(const redlock_manager_options *options, const char *words) {
    redlock_manager *none = NULL;
    char error[256] = "";
    const int code = redlock_manager_create(world_loop, options, &none, error, sizeof error);
    if (code == REDLOCK_OK) {
        redlock_manager_close(none, NULL, NULL);
        return code;
    }
    assert_contains(error, words);
    assert_lacks(error, "secret");
    return redlock_manager_create(world_loop, options, &none, NULL, 0);
}

INVALID_TEST(an_option_of_a_manager_is_refused) {
    static const char *const no_words[] = {" web", "web 3", "web\n", "web\t", "\x1b[31m", "\x7f", "w\xc3\xbc"};
    refused("nodes is NULL", options.nodes = NULL);
    refused("the port of node 'host' is not a number from 1 to 65535",
            options.nodes = (const char *[]){"redis://:secret@host:99999", "", ""});
    refused("node_count is 0; it must be 1 to 31", options.node_count = 0);
    refused("node_count is 32; it must be 1 to 31", options.node_count = REDLOCK_NODES_MAX + 1);
    refused("node_timeout_ms is 0; it must be 1 to 60000", options.node_timeout_ms = 0);
    refused("node_timeout_ms is 60001; it must be 1 to 60000", options.node_timeout_ms = 60001);
    refused("connect_timeout_ms is 0; it must be 1 to 60000", options.connect_timeout_ms = 0);
    refused("options.size is 0; it must be ", options.size = 0);
    for (size_t i = 0; i < sizeof no_words / sizeof *no_words; i++) {
        refused("holder has a space or a byte that is not printable ASCII at position ", options.holder = no_words[i]);
    }
    refused("holder has 65 bytes; it must have 0 to 64", options.holder = longer_than(REDLOCK_HOLDER_SIZE_MAX));
    refused("fence_suffix has 0 bytes; it must have 1 to 64", options.fence_suffix = "");
    refused("fence_suffix has 65 bytes; it must have 1 to 64", options.fence_suffix = longer_than(64));
    refused("fence_expiry_ms is 10799999; it must be ", options.fence_expiry_ms = EXPIRY_MS_MIN - 1);
    refused("fence_expiry_ms is -1; it must be ", options.fence_expiry_ms = -1);
}

INVALID_TEST(a_guard_without_its_longest_ttl_is_refused) {
    static const int64_t wrong_ms[] = {-1, REDLOCK_TTL_MS_MAX + INT64_C(1)};
    refused("restart_guard needs ttl_max_ms: the longest ttl that any client of these nodes uses",
            options.restart_guard = REDLOCK_RESTART_GUARD_STRICT);
    refused("clock_guard needs ttl_max_ms: the longest ttl that any client of these nodes uses",
            options.clock_guard = true);
    for (size_t i = 0; i < 2; i++) {
        refused("ttl_max_ms", options.restart_guard = REDLOCK_RESTART_GUARD_OBSERVED, options.ttl_max_ms = wrong_ms[i]);
        refused("ttl_max_ms", options.clock_guard = true, options.ttl_max_ms = wrong_ms[i]);
    }
    refused("restart_guard is 7; it must be a redlock_restart_guard", options.restart_guard = (redlock_restart_guard)7,
            options.ttl_max_ms = 60000);
}
