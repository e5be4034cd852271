/* What the blocking client says of its nodes, of their locks, and of invalid arguments. */
#include "blocking_kit.h"

#include <pthread.h>

#define READERS 4

static redlock_node_info node_of(redlock_client *client, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    kit_must(redlock_client_node(client, index, &info) == REDLOCK_OK);
    return info;
}

static bool has_state(redlock_client *client, size_t index, redlock_node_state state) {
    redlock_node_info info = node_of(client, index);
    const bool is = info.state == state;
    redlock_node_info_free(&info);
    return is;
}

TESTS_WITH(kit_start, kit_stop);

CLIENT_TEST(each_node_tells_its_state) {
    assert_int_equal(redlock_client_node_count(client), 5);
    assert_int_equal(redlock_client_quorum(client), 3);
    for (size_t i = 0; i < 5; i++) {
        redlock_node_info info = node_of(client, i);
        assert_is(info.state, REDLOCK_NODE_READY);
        assert_string_equal(info.name, kit_servers.at[i].name);
        assert_string_equal(info.role, "master");
        assert_string_equal(info.error, "");
        assert_string_equal(info.quarantine, "");
        assert_string_equal(info.credentials_error, "");
        assert_false(info.credentials_pending);
        assert_true(strlen(info.version) > 0);
        assert_int_equal(info.connects, 1);
        redlock_node_info_free(&info);
        assert_null(info.name);
        assert_int_equal(info.size, sizeof info);
        redlock_node_info_free(&info); /* twice is harmless */
    }
    redlock_node_info_free(NULL);
    /* The copies outlive what they are copies of. */
    redlock_node_info before = node_of(client, 1);
    server_kill(&kit_servers.at[1]);
    kit_until(has_state(client, 1, REDLOCK_NODE_WAITING));
    redlock_node_info after = node_of(client, 1);
    kit_close(client);
    assert_is(before.state, REDLOCK_NODE_READY);
    assert_string_equal(before.error, "");
    assert_string_equal(before.name, after.name);
    assert_true(strlen(after.error) > 0);
    redlock_node_info_free(&before);
    redlock_node_info_free(&after);
}

/* A call of this thread has said what is wrong. */
static void refused(int code, const char *sentence) {
    char text[256];
    assert_is(code, REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_invalid(NULL, text, sizeof text), strlen(sentence));
    assert_string_equal(text, sentence);
}

CLIENT_TEST(a_wrong_index_or_size_is_refused) {
    char text[256];
    redlock_node_info info = {.size = sizeof info};
    assert_is(redlock_client_node(client, 5, &info), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_invalid(client, text, sizeof text), strlen("index is 5; it must be 0 to 4"));
    assert_string_equal(text, "index is 5; it must be 0 to 4");
    assert_is(redlock_client_node(client, SIZE_MAX, &info), REDLOCK_ERR_INVALID);
    refused(redlock_client_node(client, 0, NULL), "info is NULL");
    refused(redlock_client_node(NULL, 0, &info), "client is NULL");
    info.size = 0;
    refused(redlock_client_node(client, 0, &info), "info.size is 0; set it to the size of the struct before the call");
    /* A program that was built against an older header has a shorter struct. */
    memset(&info, 0xa5, sizeof info);
    info.size = offsetof(redlock_node_info, uptime_s);
    assert_is(redlock_client_node(client, 0, &info), REDLOCK_OK);
    assert_int_equal(info.size, offsetof(redlock_node_info, uptime_s));
    assert_string_equal(info.error, "");
    assert_int_equal(((unsigned char *)&info)[info.size], 0xa5);
    redlock_node_info_free(&info);
    assert_int_equal(((unsigned char *)&info)[info.size], 0xa5);
    info.size = sizeof info + 64; /* a newer one has a longer */
    assert_is(redlock_client_node(client, 0, &info), REDLOCK_OK);
    assert_int_equal(info.size, sizeof info);
    redlock_node_info_free(&info);
}

static void *read_nodes(void *data) {
    for (int i = 0; i < 500; i++) {
        redlock_node_info info = node_of(data, (size_t)i % redlock_client_node_count(data));
        kit_must(info.state == REDLOCK_NODE_READY && strncmp(info.name, "127.0.0.1:", 10) == 0);
        redlock_node_info_free(&info);
    }
    return NULL;
}

CLIENT_TEST(many_threads_may_ask) {
    pthread_t threads[READERS];
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_nodes, client), 0);
    }
    for (int i = 0; i < 100; i++) {
        kit_release(client, kit_acquire(client, "r", 0));
    }
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void says(redlock_result *result, const char *sentence) {
    char message[512];
    assert_non_null(result);
    assert_is(redlock_result_code(result), REDLOCK_ERR_INVALID);
    (void)redlock_result_message(result, message, sizeof message);
    assert_string_equal(message, sentence);
    redlock_result_free(result);
}

static void acquire_says(redlock_client *client, const char *resource, const redlock_client_acquire_options *options,
                         const char *sentence) {
    redlock_lease *lease = (redlock_lease *)&lease;
    redlock_result *result = NULL;
    assert_is(redlock_client_acquire(client, resource, options, &lease, &result), REDLOCK_ERR_INVALID);
    assert_null(lease);
    says(result, sentence);
    assert_is(redlock_client_acquire(client, resource, options, &lease, NULL), REDLOCK_ERR_INVALID);
}

static int never(redlock_lease *lease, void *data) {
    (void)lease;
    (void)data;
    support_fatal("work without a lock");
}

CLIENT_TEST(a_result_says_which_argument_is_invalid) {
    redlock_client_acquire_options options = kit_options(0, 0);
    redlock_lease *lease = kit_acquire(client, "held", 0), *adopted = NULL;
    redlock_result *result = NULL;
    acquire_says(client, "r", &options,
                 "cannot acquire 'r': invalid argument: ttl_ms is 0; it must be 1 to 2147483647.");
    options = kit_options(1000, -2);
    acquire_says(client, "r", &options,
                 "cannot acquire 'r': invalid argument: wait_timeout_ms is -2; it must be 0 or more, or "
                 "REDLOCK_WAIT_FOREVER.");
    options = kit_options(1000, 0);
    options.lock.retry_delay_min_ms = 300;
    acquire_says(client, "r", &options,
                 "cannot acquire 'r': invalid argument: retry_delay_max_ms is 10; it must be 300 to 2147483647 (no "
                 "less than retry_delay_min_ms).");
    options = kit_options(1000, 0);
    options.lock.lock_delay_ms = REDLOCK_TTL_MS_MAX;
    acquire_says(client, "r", &options,
                 "cannot acquire 'r': invalid argument: lock_delay_ms is 2147483647; it must be 0 to 2147482647 with "
                 "this ttl_ms.");
    options = kit_options(1000, 0);
    options.size = 0;
    assert_is(redlock_client_with(client, "r", &options, never, NULL, NULL, &result), REDLOCK_ERR_INVALID);
    redlock_result_free(result);
    acquire_says(client, "", NULL,
                 "cannot acquire '': invalid argument: resource has 0 bytes; it must have 1 to 1024.");
    acquire_says(client, NULL, NULL, "cannot acquire '': invalid argument: resource is NULL.");
    acquire_says(NULL, "r", NULL, "cannot acquire 'r': invalid argument: client is NULL.");
    assert_is(redlock_client_acquire(client, "r", NULL, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot acquire 'r': invalid argument: lease is NULL.");
    assert_is(redlock_client_with(client, "r", NULL, NULL, NULL, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot acquire 'r': invalid argument: work is NULL.");
    assert_is(redlock_client_extend(client, lease, 0, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot extend 'held': invalid argument: ttl_ms is 0; it must be 1 to 2147483647.");
    assert_is(redlock_client_extend(client, NULL, 1, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot extend '': invalid argument: lease is NULL.");
    assert_is(redlock_client_release(client, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot release '': invalid argument: lease is NULL.");
    assert_is(redlock_client_inspect(client, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot inspect '': invalid argument: resource is NULL.");
    assert_is(redlock_client_adopt(client, "r", "", NULL, &adopted), REDLOCK_ERR_INVALID);
    refused(REDLOCK_ERR_INVALID, "token has 0 bytes; it must have 1 to 128");
    /* A call that is not refused leaves the sentence. */
    kit_release(client, lease);
    refused(REDLOCK_ERR_INVALID, "token has 0 bytes; it must have 1 to 128");
    kit_expect_no_keys();
}

static bool on_lock(const redlock_listed *lock, void *data) {
    (void)lock, (void)data;
    return true;
}

/* Each call that can refuse an argument, without a result. */
CLIENT_TEST(a_call_without_a_result_says_which_argument_is_invalid) {
    redlock_lease *lease = kit_acquire(client, "held", 0), *none = NULL;
    redlock_cancel *cancel = NULL;
    redlock_client_acquire_options options = kit_options(0, 0);
    redlock_statistics statistics = {.size = 0};
    redlock_telemetry telemetry = {.size = 0};
    refused(redlock_client_close(NULL), "client is NULL");
    refused(redlock_client_acquire(client, "r", NULL, NULL, NULL), "lease is NULL");
    refused(redlock_client_acquire(client, NULL, NULL, &none, NULL), "resource is NULL");
    refused(redlock_client_acquire(NULL, "r", NULL, &none, NULL), "client is NULL");
    refused(redlock_client_acquire(client, "r", &options, &none, NULL), "ttl_ms is 0; it must be 1 to 2147483647");
    refused(redlock_client_with(client, "r", &options, never, NULL, NULL, NULL),
            "ttl_ms is 0; it must be 1 to 2147483647");
    refused(redlock_client_with(client, "r", NULL, NULL, NULL, NULL, NULL), "work is NULL");
    refused(redlock_client_extend(client, lease, 0, NULL), "ttl_ms is 0; it must be 1 to 2147483647");
    refused(redlock_client_extend(client, NULL, 1, NULL), "lease is NULL");
    refused(redlock_client_release(client, NULL, NULL), "lease is NULL");
    refused(redlock_client_release_as(client, NULL, 1, NULL), "lease is NULL");
    refused(redlock_client_release_as(NULL, lease, 1, NULL), "client is NULL");
    refused(redlock_client_forget(client, NULL), "lease is NULL");
    refused(redlock_client_forget(NULL, lease), "client is NULL");
    refused(redlock_client_adopt(client, "r", "t", NULL, NULL), "lease is NULL");
    refused(redlock_client_adopt(client, NULL, "t", NULL, &none), "resource is NULL");
    refused(redlock_client_adopt(client, "r", NULL, NULL, &none), "token is NULL");
    refused(redlock_client_adopt(NULL, "r", "t", NULL, &none), "client is NULL");
    refused(redlock_client_inspect(client, NULL, NULL), "resource is NULL");
    refused(redlock_client_inspect(client, "", NULL), "resource has 0 bytes; it must have 1 to 1024");
    refused(redlock_client_statistics(NULL, &statistics), "client is NULL");
    refused(redlock_client_list(client, NULL, NULL, NULL, NULL), "each is NULL");
    refused(redlock_client_list(NULL, NULL, on_lock, NULL, NULL), "client is NULL");
    refused(redlock_client_statistics(client, NULL), "statistics is NULL");
    refused(redlock_client_statistics(client, &statistics),
            "statistics.size is 0; set it to the size of the struct before the call");
    refused(redlock_client_telemetry(NULL, &telemetry), "client is NULL");
    refused(redlock_client_telemetry(client, NULL), "telemetry is NULL");
    refused(redlock_client_telemetry(client, &telemetry),
            "telemetry.size is 0; set it to the size of the struct before the call");
    refused(redlock_client_set_credentials(client, 5, NULL, "p"), "node is 5; it must be 0 to 4");
    refused(redlock_client_set_credentials(NULL, 0, NULL, "p"), "client is NULL");
    refused(redlock_cancel_new(NULL, &cancel), "client is NULL");
    refused(redlock_cancel_new(client, NULL), "cancel is NULL");
    options = kit_options(20000, -2);
    options.reentrant = true;
    refused(redlock_client_acquire(client, "r", &options, &none, NULL),
            "wait_timeout_ms is -2; it must be 0 or more, or REDLOCK_WAIT_FOREVER");
    assert_null(none);
    assert_null(cancel);
    kit_release(client, lease);
    kit_expect_no_keys();
}

static void *adopt_wrongly(void *data) {
    redlock_lease *lease = NULL;
    char text[256];
    kit_must(redlock_client_invalid(data, text, sizeof text) == 0); /* a new thread has none */
    for (int i = 0; i < 500; i++) {
        kit_must(redlock_client_adopt(data, "r", "", NULL, &lease) == REDLOCK_ERR_INVALID);
        (void)redlock_client_invalid(data, text, sizeof text);
        kit_must(strcmp(text, "token has 0 bytes; it must have 1 to 128") == 0);
    }
    return NULL;
}

static void *set_wrongly(void *data) {
    char text[256];
    for (int i = 0; i < 500; i++) {
        kit_must(redlock_client_set_credentials(data, 5, NULL, "p") == REDLOCK_ERR_INVALID);
        (void)redlock_client_invalid(data, text, sizeof text);
        kit_must(strncmp(text, "node is 5; ", 11) == 0);
    }
    return NULL;
}

CLIENT_TEST(each_thread_has_its_own_sentence) {
    pthread_t threads[READERS];
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? adopt_wrongly : set_wrongly, client), 0);
    }
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

CLIENT_TEST(an_election_says_which_argument_is_invalid) {
    redlock_client_election *election = NULL;
    redlock_election_options options;
    redlock_election_event event = {.size = 0};
    char text[256];
    redlock_election_options_default(&options);
    options.ttl_ms = 0;
    refused(redlock_client_elect(client, "e", &options, &election), "ttl_ms is 0; it must be 1 to 2147483647");
    refused(redlock_client_elect(client, "e", NULL, NULL), "election is NULL");
    refused(redlock_client_elect(NULL, "e", NULL, &election), "client is NULL");
    refused(redlock_client_election_next(NULL, 0, &event), "election is NULL");
    refused(redlock_client_election_resign(NULL, NULL), "election is NULL");
    refused(redlock_client_election_campaign(NULL), "election is NULL");
    refused(redlock_client_election_end(NULL, NULL), "election is NULL");
    assert_is(redlock_client_elect(client, "", NULL, &election), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_invalid(client, text, 5), strlen("name has 0 bytes; it must have 1 to 1024"));
    assert_string_equal(text, "name");
    assert_null(election);
    options.ttl_ms = 1000;
    options.campaign = false;
    assert_is(redlock_client_elect(client, "e", &options, &election), REDLOCK_OK);
    refused(redlock_client_election_next(election, 0, NULL), "event is NULL");
    refused(redlock_client_election_next(election, 0, &event),
            "event.size is 0; set it to the size of the struct before the call");
    refused(redlock_client_election_next(election, -2, &event),
            "timeout_ms is -2; it must be 0 or more, or REDLOCK_WAIT_FOREVER");
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
    refused(redlock_client_election_end(election, NULL), "the election has ended");
    /* Not the manager's sentence, which is older. */
    assert_is(redlock_client_adopt(client, "r", "", NULL, &(redlock_lease *){NULL}), REDLOCK_ERR_INVALID);
    refused(redlock_client_election_resign(election, NULL), "the election has ended");
    refused(redlock_client_election_campaign(election), "the election has ended");
}

static int open_says(redlock_manager_options *options, const char *sentence) {
    redlock_client *client = NULL;
    char error[256] = "";
    const int code = redlock_client_open(options, &client, error, sizeof error);
    if (strcmp(error, sentence) != 0) {
        fail_msg("\"%s\" is not \"%s\"", error, sentence);
    }
    return code;
}

KIT_TEST(the_open_says_which_argument_is_invalid) {
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    assert_is(open_says(&options, "node_count is 0; it must be 1 to 31"), REDLOCK_ERR_INVALID);
    options.node_count = 3;
    options.node_timeout_ms = 60001;
    assert_is(open_says(&options, "node_timeout_ms is 60001; it must be 1 to 60000"), REDLOCK_ERR_INVALID);
    options.node_timeout_ms = 50;
    options.ttl_max_ms = -1;
    assert_is(open_says(&options, "ttl_max_ms is -1; it must be 1 to 2147483647, or 0 for none"), REDLOCK_ERR_INVALID);
    options.ttl_max_ms = 0;
    options.restart_guard = (redlock_restart_guard)7;
    assert_is(open_says(&options, "restart_guard is 7; it must be a redlock_restart_guard"), REDLOCK_ERR_INVALID);
    assert_is(open_says(NULL, "options is NULL"), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_open(&options, NULL, NULL, 0), REDLOCK_ERR_INVALID);
}

struct listing {
    redlock_client *client;
    redlock_lease *lease;
    unsigned count;
    bool stops;
    bool nested_refused;
};

static bool see(const redlock_listed *lock, void *data) {
    struct listing *listing = data;
    kit_must(strcmp(lock->resource, "job:1") == 0 && lock->ttl_ms > 0 && lock->waiters == 0 && lock->node < 5);
    kit_must(strcmp(lock->token, redlock_lease_token(listing->lease)) == 0);
    /* Here nothing may block. */
    listing->nested_refused = redlock_client_inspect(listing->client, "r", NULL) == REDLOCK_ERR_INVALID;
    listing->count++;
    return !listing->stops;
}

CLIENT_TEST(all_locks_are_listed) {
    struct listing listing = {.client = client, .lease = kit_acquire(client, "job:1", 0)};
    redlock_lease *other = kit_acquire(client, "other", 0);
    redlock_list_options options;
    redlock_result *result = NULL;
    redlock_list_options_default(&options);
    options.match = "job:*";
    kit_until(servers_with_key(&kit_servers, "job:1") == 5);
    assert_is(redlock_client_list(client, &options, see, &listing, &result), REDLOCK_OK);
    assert_int_equal(listing.count, 5);
    assert_true(listing.nested_refused);
    assert_int_equal(redlock_result_vote_count(result), 5);
    redlock_result_free(result);
    listing = (struct listing){.client = client, .lease = listing.lease, .stops = true};
    assert_is(redlock_client_list(client, &options, see, &listing, NULL), REDLOCK_ERR_CANCELLED);
    assert_int_equal(listing.count, 1);
    kit_release(client, listing.lease);
    kit_release(client, other);
    listing.count = 0;
    kit_expect_no_keys();
    assert_is(redlock_client_list(client, NULL, see, &listing, NULL), REDLOCK_OK);
    assert_int_equal(listing.count, 0);
}

struct canceller {
    redlock_client *client;
    redlock_cancel *cancel;
};

/* When the listing waits for its nodes. */
static void *set_when_it_waits(void *data) {
    const struct canceller *canceller = data;
    redlock_statistics statistics = {.size = sizeof statistics};
    kit_until(redlock_client_statistics(canceller->client, &statistics) == REDLOCK_OK &&
              statistics.requests_pending == 1);
    redlock_cancel_set(canceller->cancel);
    return NULL;
}

KIT_TEST(another_thread_ends_a_listing) {
    struct canceller canceller = {.client = kit_client(PATIENT_MS)};
    redlock_client *client = canceller.client;
    struct listing listing = {.client = client, .lease = kit_acquire(client, "job:1", 0)};
    redlock_list_options options;
    redlock_result *result = NULL;
    char message[512];
    pthread_t thread;
    assert_is(redlock_cancel_new(client, &canceller.cancel), REDLOCK_OK);
    redlock_list_options_default(&options);
    options.cancel = canceller.cancel;
    kit_until(servers_with_key(&kit_servers, "job:1") == 5);
    assert_is(redlock_client_list(client, &options, see, &listing, NULL), REDLOCK_OK);
    assert_int_equal(listing.count, 5);
    for (size_t i = 0; i < 5; i++) {
        server_pause(&kit_servers.at[i]); /* without a cancel, the listing would take PATIENT_MS */
    }
    const int64_t begun_ms = support_now_ms();
    assert_int_equal(pthread_create(&thread, NULL, set_when_it_waits, &canceller), 0);
    assert_is(redlock_client_list(client, &options, see, &listing, &result), REDLOCK_ERR_CANCELLED);
    assert_true(support_now_ms() - begun_ms < PATIENT_MS);
    pthread_join(thread, NULL);
    assert_is(redlock_result_code(result), REDLOCK_ERR_CANCELLED);
    redlock_result_free(result);
    /* While it is set, the next one does not begin. */
    assert_is(redlock_client_list(client, &options, see, &listing, &result), REDLOCK_ERR_CANCELLED);
    (void)redlock_result_message(result, message, sizeof message);
    assert_contains(message, "cannot list the locks: cancelled");
    redlock_result_free(result);
    servers_each(&kit_servers, 0, 5, server_resume);
    redlock_cancel_clear(canceller.cancel);
    assert_is(redlock_client_list(client, &options, see, &listing, NULL), REDLOCK_OK);
    assert_int_equal(listing.count, 10);
    assert_is(redlock_client_list(kit_client(NODE_TIMEOUT_MS), &options, see, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot list the locks: invalid argument: cancel is of another client.");
    kit_release(client, listing.lease);
    redlock_cancel_free(canceller.cancel);
}

CLIENT_TEST(a_listing_says_what_is_wrong) {
    redlock_list_options options;
    redlock_result *result = NULL;
    struct listing listing = {.client = client};
    char message[2048], longest[REDLOCK_RESOURCE_SIZE_MAX + 2];
    redlock_list_options_default(&options);
    assert_is(redlock_client_list(client, NULL, NULL, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot list the locks: invalid argument: each is NULL.");
    assert_is(redlock_client_list(NULL, NULL, see, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot list the locks: invalid argument: client is NULL.");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    options.match = longest;
    assert_is(redlock_client_list(client, &options, see, NULL, &result), REDLOCK_ERR_INVALID);
    says(result, "cannot list the locks: invalid argument: match has 1025 bytes; it must have 0 to 1024.");
    servers_each(&kit_servers, 0, 3, server_kill);
    assert_is(redlock_client_list(client, NULL, see, &listing, &result), REDLOCK_ERR_NO_QUORUM);
    (void)redlock_result_message(result, message, sizeof message);
    for (size_t i = 0; i < 3; i++) {
        assert_contains(message, kit_servers.at[i].name);
    }
    redlock_result_free(result);
}
