/* Observers on real nodes: what they are told, and when. The leaders are scripts that the test runs
 * on each node. */
#include <redlock/election.h>

#include "wire/script.h"
#include "world.h"

#define ALICE "00000000000000aa0123456789abcdef0123456789abcdef"
#define BOB   "00000000000000bb0123456789abcdef0123456789abcdef@bob:4711"
#define CAROL "00000000000000cc0123456789abcdef0123456789abcdef"

#define LONG_MS  "600000"
#define SHORT_MS "700"
#define PASSWORD "geheim"

#define TOLD_MAX 64

struct told {
    int count;
    char tokens[TOLD_MAX][REDLOCK_TOKEN_SIZE_MAX + 1];
    redlock_observer *observer;
};

static struct told told, other;
static struct raw listeners[5]; /* whom the nodes hand the lock over to */

static void on_leader(const redlock_leader *leader, void *data) {
    struct told *who = data;
    assert_true(who->count < TOLD_MAX);
    assert_int_equal(leader->size, sizeof *leader);
    assert_string_equal(leader->holder, strcmp(leader->token, BOB) == 0 ? "bob:4711" : "");
    assert_false(leader->is_self);
    (void)snprintf(who->tokens[who->count++], sizeof *who->tokens, "%s", leader->token);
}

static void observe(redlock_manager *manager, const char *resource, struct told *who) {
    assert_is(redlock_observe(manager, resource, on_leader, who, &who->observer), REDLOCK_OK);
}

struct news {
    struct told *who;
    const char *token;
};

static bool is_told(void *data) {
    const struct news *news = data;
    return news->who->count > 0 && strcmp(news->who->tokens[news->who->count - 1], news->token) == 0;
}

static void until_told(struct told *who, const char *token) {
    struct news news = {who, token};
    if (!drive_until(world_loop, is_told, &news, DRIVE_TIMEOUT_MS)) {
        fail_msg("%d times told, the last was \"%s\", not \"%s\"", who->count,
                 who->count > 0 ? who->tokens[who->count - 1] : "-", token);
    }
}

/* All that was told, in this order. */
#define ASSERT_ALL_TOLD(who, ...) assert_all_told(who, (const char *const[]){__VA_ARGS__, NULL})
static void assert_all_told(const struct told *who, const char *const *tokens) {
    int count = 0;
    while (tokens[count] != NULL && count < who->count && strcmp(who->tokens[count], tokens[count]) == 0) {
        count++;
    }
    if (tokens[count] == NULL && count == who->count) {
        return;
    }
    for (int i = 0; i < who->count; i++) {
        print_error("told: \"%s\"\n", who->tokens[i]);
    }
    fail_msg("%d were told, of which %d were right", who->count, count);
}

/* WAIT and RELEASE of an election on one node, as the library sends them. */
static void take(size_t node, const char *token, const char *ttl_ms) {
    const char *source = redlock_script_get(REDLOCK_SCRIPT_WAIT)->source;
    (void)server_ask(&world_servers.at[node], "EVAL", source, "3", "door", "door:wait", "door:waiter", token, "1", "1",
                     ttl_ms, "600000", "900000", "redlock:candidates", "0", "1", "1");
}

static void resign(size_t node, const char *token) {
    const char *source = redlock_script_get(REDLOCK_SCRIPT_RELEASE)->source;
    (void)server_ask(&world_servers.at[node], "EVAL", source, "1", "door", token, ":wait", "0", "1");
}

static void take_all(const char *token, const char *ttl_ms) {
    for (size_t i = 0; i < world_servers.count; i++) {
        if (world_servers.at[i].pid != 0) {
            take(i, token, ttl_ms);
        }
    }
}

static void resign_all(const char *token) {
    for (size_t i = 0; i < world_servers.count; i++) {
        if (world_servers.at[i].pid != 0) {
            resign(i, token);
        }
    }
}

static long long numsub(size_t node, const char *channel) {
    long long count = -1;
    char name[64];
    assert_int_equal(
        sscanf(server_ask(&world_servers.at[node], "PUBSUB", "NUMSUB", channel), "%63s %lld", name, &count), 2);
    return count;
}

struct subscribers {
    const char *channel;
    long long count;
    size_t nodes;
};

static bool has_subscribers(void *data) {
    const struct subscribers *wanted = data;
    size_t like = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        like += world_servers.at[i].pid != 0 && numsub(i, wanted->channel) == wanted->count;
    }
    return like == wanted->nodes;
}

static void until_subscribed(const char *channel, long long count, size_t nodes) {
    struct subscribers wanted = {channel, count, nodes};
    assert_true(drive_until(world_loop, has_subscribers, &wanted, DRIVE_TIMEOUT_MS));
}

struct calls {
    long long last;
    int same; /* looks in a row */
};

/* The observer has asked all that it wants to know: no script by its SHA1 for some turns. */
static bool is_calm(void *data) {
    struct calls *calls = data;
    long long now = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        now += world_calls(&world_servers.at[i], "evalsha");
    }
    calls->same = now == calls->last ? calls->same + 1 : 0;
    calls->last = now;
    return calls->same >= 20;
}

static long long until_calm(void) {
    struct calls calls = {.last = -1};
    assert_true(drive_until(world_loop, is_calm, &calls, DRIVE_TIMEOUT_MS));
    return calls.last;
}

static int setup(void **state) {
    memset(&told, 0, sizeof told);
    memset(&other, 0, sizeof other);
    const int result = world_setup(state);
    for (size_t i = 0; i < world_servers.count; i++) {
        assert_true(raw_open_tcp(&listeners[i], "127.0.0.1", world_servers.at[i].port));
        (void)raw_ask(&listeners[i], "SUBSCRIBE", "redlock:candidates");
    }
    return result;
}

static int teardown(void **state) {
    for (size_t i = 0; i < 5; i++) {
        raw_close(&listeners[i]);
    }
    return world_teardown(state);
}

TESTS_WITH(world_five, world_end);
#define CANDIDATES_TEST(name) TEST_WITH(name, setup, teardown)

/* Each announcement makes one question, and nothing else does. Before the next change, all answers
 * have come: one that comes late may name the next leader before its announcement is heard. Then it
 * is asked for again, and once more for the announcement. */
CANDIDATES_TEST(a_grant_a_handover_and_a_release_are_told) {
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    int64_t free_since_ms = support_now_ms();
    observe(manager, "door", &told);
    until_told(&told, "");
    until_subscribed("redlock:leader:door", 1, 5);
    const long long calls = until_calm();
    take_all(ALICE, LONG_MS);
    until_told(&told, ALICE);
    (void)until_calm();
    bool in_time = support_now_ms() - free_since_ms < 2000;
    take_all(BOB, LONG_MS); /* is queued */
    resign_all(ALICE);
    until_told(&told, BOB);
    (void)until_calm();
    free_since_ms = support_now_ms();
    resign_all(BOB);
    until_told(&told, "");
    ASSERT_ALL_TOLD(&told, "", ALICE, BOB, "");
    const long long later = until_calm();
    in_time = in_time && support_now_ms() - free_since_ms < 2000;
    /* On a slow machine it may have asked: a free lock may be taken without a word. */
    if (in_time) {
        assert_int_equal(later - calls, 15);
    }
}

CANDIDATES_TEST(the_end_of_a_leader_that_died_is_told) {
    observe(world_manager_all(PATIENT_MS), "door", &told);
    until_told(&told, "");
    until_subscribed("redlock:leader:door", 1, 5);
    (void)until_calm();
    const int64_t start_ms = support_now_ms();
    take_all(ALICE, SHORT_MS);
    until_told(&told, ALICE);
    until_told(&told, "");
    assert_true(support_now_ms() - start_ms >= 700);
    ASSERT_ALL_TOLD(&told, "", ALICE, "");
    assert_true(support_now_ms() - start_ms < 9000); /* then it would have asked without a reason */
}

static bool was_pinged(UNUSED void *data) {
    return strstr(server_ask(&world_servers.at[0], "CLIENT", "LIST", "TYPE", "pubsub"), " cmd=ping ") != NULL;
}

/* The server's PONG has the form for subscribers, and the connection stays. */
CANDIDATES_TEST(its_ping_is_answered) {
    observe(world_manager_all(PATIENT_MS), "door", &told);
    until_subscribed("redlock:leader:door", 1, 5);
    assert_contains(server_ask(&world_servers.at[0], "CLIENT", "LIST", "TYPE", "pubsub"), "-sub ");
    assert_true(drive_until(world_loop, was_pinged, NULL, DRIVE_TIMEOUT_MS));
    take_all(ALICE, LONG_MS);
    until_told(&told, ALICE);
    assert_lacks(world_log.text, "subscription:"); /* none was lost */
}

CANDIDATES_TEST(what_was_missed_is_asked_for) {
    observe(world_manager_all(PATIENT_MS), "door", &told);
    take_all(ALICE, LONG_MS);
    until_told(&told, ALICE);
    until_subscribed("redlock:leader:door", 1, 5);
    (void)until_calm();
    servers_ask(&world_servers, 0, world_servers.count, "CLIENT", "KILL", "TYPE", "pubsub");
    resign_all(ALICE); /* nobody hears it */
    take_all(BOB, LONG_MS);
    resign_all(BOB);
    take_all(CAROL, LONG_MS);
    until_told(&told, CAROL);
    assert_string_equal(told.tokens[told.count - 2], ALICE);
    until_subscribed("redlock:leader:door", 1, 5);
    (void)until_calm();
    resign_all(CAROL);
    until_told(&told, "");
}

CANDIDATES_TEST(a_lock_that_nobody_announces_is_found) {
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    (void)snprintf(token, sizeof token, "%s", redlock_lease_token(lease));
    observe(manager, "door", &told);
    until_told(&told, token);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    until_told(&told, "");
    ASSERT_ALL_TOLD(&told, token, "");
}

CANDIDATES_TEST(observers_of_one_resource_share_a_channel) {
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    observe(manager, "door", &told);
    until_told(&told, "");
    until_subscribed("redlock:leader:door", 1, 5);
    observe(manager, "door", &other);
    until_told(&other, "");
    (void)until_calm();
    take_all(ALICE, LONG_MS);
    until_told(&told, ALICE);
    until_told(&other, ALICE);
    redlock_observer_end(told.observer);
    resign_all(ALICE);
    until_told(&other, "");
    ASSERT_ALL_TOLD(&told, "", ALICE);
    ASSERT_ALL_TOLD(&other, "", ALICE, "");
    until_subscribed("redlock:leader:door", 1, 5);
    redlock_observer_end(other.observer);
    until_subscribed("redlock:leader:door", 0, 5);
    /* And once more. */
    observe(manager, "door", &told);
    until_subscribed("redlock:leader:door", 1, 5);
    take_all(BOB, LONG_MS);
    until_told(&told, BOB);
}

CANDIDATES_TEST(many_are_observed_and_heard_again) {
    static struct told many[100];
    char name[32], channel[64];
    memset(many, 0, sizeof many);
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "door-%d", i);
        observe(manager, name, &many[i]);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            (void)snprintf(channel, sizeof channel, "redlock:leader:door-%d", i);
            until_subscribed(channel, 1, 5);
            until_told(&many[i], "");
        }
        servers_ask(&world_servers, 0, world_servers.count, "CLIENT", "KILL", "TYPE", "pubsub");
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(many[i].count, 1);
        redlock_observer_end(many[i].observer);
    }
}

/* Three servers, with the library as a user with these rights. */
static redlock_manager *manager_with_rights(const char *rights) {
    static char config[512];
    (void)snprintf(config, sizeof config, "user watcher on >" PASSWORD " ~* resetchannels %s\n", rights);
    servers_start(&world_servers, 3,
                  &(struct server_options){.password = "admin-" PASSWORD, .config = config, .no_default_user = true});
    memset(&told, 0, sizeof told);
    memset(&other, 0, sizeof other);
    memset(&world_log, 0, sizeof world_log);
    return world_manager_as("watcher:" PASSWORD "@");
}

TESTS_WITH(world_none, world_none);

/* The nodes let the library subscribe to its own channel and not to a leader's; or to none. */
WORLD_TEST(without_permission_it_asks) {
    static const char *const rights[] = {"&redlock:[0-9a-f]* +@all", "+@all"};
    for (size_t i = 0; i < 2; i++) {
        redlock_manager *manager = manager_with_rights(rights[i]);
        observe(manager, "door", &told);
        until_told(&told, "");
        take_all(ALICE, LONG_MS);
        until_told(&told, ALICE);
        resign_all(ALICE);
        until_told(&told, "");
        ASSERT_ALL_TOLD(&told, "", ALICE, "");
        assert_contains(world_log.text,
                        i == 0 ? "SUBSCRIBE to a leader's channel failed: NOPERM" : "SUBSCRIBE refused (NOPERM");
        world_close(manager);
        servers_stop(&world_servers);
    }
}

/* Those of docs/operations.md, where UNSUBSCRIBE is not. */
WORLD_TEST(the_rights_of_a_lock_are_enough) {
    redlock_manager *manager = manager_with_rights(
        "&redlock:* -@all +set +get +del +pexpire +pttl +type +eval +evalsha +script|load +ping +info +select +time "
        "+client|setname +client|id +client|kill +exists +zadd +zpopmin +zrem +zrank +zcard +zrange +zscore "
        "+zremrangebyscore +hset +hget +hdel +publish +subscribe +pubsub|numsub");
    observe(manager, "door", &told);
    observe(manager, "gate", &other);
    until_told(&told, "");
    until_told(&other, "");
    until_subscribed("redlock:leader:door", 1, 3);
    until_subscribed("redlock:leader:gate", 1, 3);
    redlock_observer_end(other.observer);
    (void)until_calm();
    take_all(ALICE, LONG_MS);
    until_told(&told, ALICE);
    resign_all(ALICE);
    until_told(&told, "");
    ASSERT_ALL_TOLD(&told, "", ALICE, "");
    assert_lacks(world_log.text, "subscription:"); /* none was lost */
    world_close(manager);
    servers_stop(&world_servers);
}
