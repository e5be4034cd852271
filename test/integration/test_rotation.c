/* New credentials while locks are held: a password is added, rolled out and removed on real
 * servers. */
#include "blocking_kit.h"

#include <pthread.h>
#include <stdatomic.h>

#define OLD "old-horse-battery"
#define NEW "new-staple-guess"

static char uris[SERVERS_MAX][128];
static const char *nodes[SERVERS_MAX];
/* What two clients have logged; the loop thread's, until the client is closed. */
static struct kept {
    char text[1 << 20];
    size_t used;
} logs[2];
static atomic_int lost;

static void keep_line(redlock_log_level level, const char *line, void *data) {
    struct kept *kept = data;
    const size_t room = sizeof kept->text - kept->used;
    const int length = snprintf(kept->text + kept->used, room, "%s\n", line);
    (void)level;
    kept->used += (size_t)length < room ? (size_t)length : 0;
}

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    (void)lease;
    (void)data;
    fprintf(stderr, "lost: %s\n", reason);
    atomic_fetch_add(&lost, 1);
}

/* On the nodes from `first` to before `end`. */
static void rule(size_t first, size_t end, const char *user, const char *word) {
    servers_say(&kit_servers, first, end, "OK", "ACL", "SETUSER", user, word);
}

static void make_user(const char *user, const char *password) {
    static const char *const words[] = {"reset", "on", "~*", "&*", "+@all"};
    char word[64];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rule(0, kit_servers.count, user, words[i]);
    }
    (void)snprintf(word, sizeof word, ">%s", password);
    rule(0, kit_servers.count, user, word);
}

static int set_up(void **state) {
    kit_set_up(state);
    make_user("locker", OLD);
    for (size_t i = 0; i < kit_servers.count; i++) {
        (void)snprintf(uris[i], sizeof uris[i], "redis://locker:" OLD "@%s", kit_servers.at[i].name);
        nodes[i] = uris[i];
    }
    atomic_store(&lost, 0);
    memset(logs, 0, sizeof logs);
    return 0;
}

static redlock_client *open_client(struct kept *kept) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    redlock_manager_options_default(&options);
    options.nodes = nodes;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = 20000;
    options.listen = true;
    options.on_log = keep_line;
    options.log_data = kept;
    options.log_level = REDLOCK_LOG_DEBUG;
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_OK);
    return client;
}

static void close_client(redlock_client *client, const struct kept *kept) {
    assert_is(redlock_client_close(client), REDLOCK_OK);
    assert_true(kept->used > 0);
    assert_lacks(kept->text, OLD);
    assert_lacks(kept->text, NEW);
}

/* What a node says of its credentials. */
static bool is(redlock_client *client, size_t index, redlock_node_state state, bool pending, const char *error) {
    redlock_node_info info = {.size = sizeof info};
    kit_must(redlock_client_node(client, index, &info) == REDLOCK_OK);
    kit_must(!strstr(info.warning, NEW) && !strstr(info.error, NEW) && !strstr(info.credentials_error, NEW));
    const bool so = info.state == state && info.credentials_pending == pending &&
                    strstr(info.credentials_error, error) && (info.credentials_error[0] == '\0') == (error[0] == '\0');
    redlock_node_info_free(&info);
    return so;
}

static uint64_t connects_of(redlock_client *client, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    kit_must(redlock_client_node(client, index, &info) == REDLOCK_OK);
    const uint64_t connects = info.state == REDLOCK_NODE_READY ? info.connects : 0;
    redlock_node_info_free(&info);
    return connects;
}

static bool listens(redlock_client *client, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    kit_must(redlock_client_node(client, index, &info) == REDLOCK_OK);
    const bool so = info.listens;
    redlock_node_info_free(&info);
    return so;
}

static void roll(redlock_client *client, const char *user, const char *password) {
    assert_is(redlock_client_set_credentials(client, REDLOCK_ALL_NODES, user, password), REDLOCK_OK);
    for (size_t i = 0; i < kit_servers.count; i++) {
        kit_until(is(client, i, REDLOCK_NODE_READY, false, ""));
    }
}

static redlock_lease *hold(redlock_client *client, const char *resource) {
    redlock_client_acquire_options options = kit_options(3000, 0);
    redlock_lease *lease = NULL;
    options.lock.auto_extend = true;
    options.lock.on_lost = on_lost;
    assert_is(redlock_client_acquire(client, resource, &options, &lease, NULL), REDLOCK_OK);
    return lease;
}

struct busy {
    pthread_t thread;
    redlock_client *client;
    atomic_bool over;
    atomic_int done;
};

/* Locks go on without a failure. */
static void *lock_again_and_again(void *data) {
    struct busy *busy = data;
    redlock_client_acquire_options options = kit_options(60000, 0);
    while (!atomic_load(&busy->over)) {
        redlock_lease *lease = NULL;
        redlock_result *result = NULL;
        char message[1024] = "";
        int code = redlock_client_acquire(busy->client, "busy", &options, &lease, &result);
        if (code == REDLOCK_OK) {
            redlock_result_free(result);
            code = redlock_client_release(busy->client, lease, &result);
        }
        (void)redlock_result_message(result, message, sizeof message);
        redlock_result_free(result);
        if (code != REDLOCK_OK) {
            support_fatal("%s", message);
        }
        atomic_fetch_add(&busy->done, 1);
    }
    return NULL;
}

static void start_busy(struct busy *busy, redlock_client *client) {
    busy->client = client;
    assert_int_equal(pthread_create(&busy->thread, NULL, lock_again_and_again, busy), 0);
    kit_until(atomic_load(&busy->done) > 10);
}

static void stop_busy(struct busy *busy) {
    const int done = atomic_load(&busy->done);
    kit_until(atomic_load(&busy->done) > done + 10); /* to the end */
    atomic_store(&busy->over, true);
    pthread_join(busy->thread, NULL);
}

static void *wait_for_held(void *data) {
    redlock_lease *lease = kit_acquire(data, "held", REDLOCK_WAIT_FOREVER);
    kit_release(data, lease);
    return NULL;
}

static int tear_down(void **state);
TESTS_WITH(kit_start, kit_stop);
#define ROTATION_TEST(name) TEST_WITH(name, set_up, tear_down)

/* Add, roll, remove: docs/operations.md. */
ROTATION_TEST(a_password_is_changed_under_load) {
    redlock_client *client = open_client(&logs[0]);
    struct busy busy = {.done = 0};
    pthread_t waiter;
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_lease *lease = hold(client, "held");
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_held, client), 0);
    start_busy(&busy, client);
    rule(0, 5, "locker", ">" NEW);
    roll(client, "locker", NEW);
    rule(0, 5, "locker", "<" OLD);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(connects_of(client, i), 1); /* all of that on the same connections */
        assert_true(listens(client, i));
    }
    /* The next connections use the new one. */
    for (size_t i = 0; i < 5; i++) {
        (void)server_ask(&kit_servers.at[i], "CLIENT", "KILL", "USER", "locker");
        kit_until(connects_of(client, i) == 2 && listens(client, i));
        /* One lock and its release bear the loss of one connection, not of three. */
        const int done = atomic_load(&busy.done);
        kit_until(atomic_load(&busy.done) > done + 1);
    }
    redlock_client *late = open_client(&logs[1]); /* with the old one */
    for (size_t i = 0; i < 5; i++) {
        kit_until(is(late, i, REDLOCK_NODE_UNUSABLE, false, ""));
    }
    close_client(late, &logs[1]);
    stop_busy(&busy);
    assert_int_equal(atomic_load(&lost), 0);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    assert_is(redlock_client_release(client, lease, NULL), REDLOCK_OK);
    pthread_join(waiter, NULL);
    assert_is(redlock_client_statistics(client, &statistics), REDLOCK_OK);
    assert_int_equal(statistics.lost, 0);
    close_client(client, &logs[0]);
    kit_expect_no_keys();
}

/* The old user may be deleted at once: no connection is its own any more. */
ROTATION_TEST(a_user_is_changed_under_load) {
    redlock_client *client = open_client(&logs[0]);
    struct busy busy = {.done = 0};
    redlock_lease *lease = hold(client, "held");
    make_user("successor", NEW);
    start_busy(&busy, client);
    roll(client, "successor", NEW);
    for (size_t i = 0; i < 5; i++) {
        kit_until(listens(client, i));
        assert_lacks(server_ask(&kit_servers.at[i], "CLIENT", "LIST"), "user=locker");
        assert_string_equal(server_ask(&kit_servers.at[i], "ACL", "DELUSER", "locker"), "1");
    }
    stop_busy(&busy);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(connects_of(client, i), 1);
    }
    assert_int_equal(atomic_load(&lost), 0);
    assert_is(redlock_client_release(client, lease, NULL), REDLOCK_OK);
    close_client(client, &logs[0]);
    kit_expect_no_keys();
}

/* Somebody forgot a node. It goes on with the old password, also after a reconnect, until it has
 * the new one. */
ROTATION_TEST(a_node_without_the_new_password_keeps_the_old_one) {
    redlock_client *client = open_client(&logs[0]);
    struct busy busy = {.done = 0};
    start_busy(&busy, client);
    rule(0, 4, "locker", ">" NEW);
    assert_is(redlock_client_set_credentials(client, REDLOCK_ALL_NODES, "locker", NEW), REDLOCK_OK);
    for (size_t i = 0; i < 4; i++) {
        kit_until(is(client, i, REDLOCK_NODE_READY, false, ""));
    }
    kit_until(is(client, 4, REDLOCK_NODE_READY, true, "WRONGPASS"));
    (void)server_ask(&kit_servers.at[4], "CLIENT", "KILL", "USER", "locker");
    kit_until(connects_of(client, 4) == 2 && is(client, 4, REDLOCK_NODE_READY, true, "WRONGPASS"));
    rule(4, 5, "locker", ">" NEW);
    assert_is(redlock_client_set_credentials(client, 4, "locker", NEW), REDLOCK_OK);
    kit_until(is(client, 4, REDLOCK_NODE_READY, false, ""));
    assert_int_equal(connects_of(client, 4), 2);
    stop_busy(&busy);
    close_client(client, &logs[0]);
    assert_contains(logs[0].text, "refuses the new credentials (AUTH failed: WRONGPASS");
    kit_expect_no_keys();
}

ROTATION_TEST(a_node_that_is_away_gets_them_when_it_returns) {
    redlock_client *client = open_client(&logs[0]);
    server_kill(&kit_servers.at[2]);
    kit_until(is(client, 2, REDLOCK_NODE_WAITING, false, ""));
    rule(0, 2, "locker", ">" NEW);
    rule(3, 5, "locker", ">" NEW);
    assert_is(redlock_client_set_credentials(client, REDLOCK_ALL_NODES, "locker", NEW), REDLOCK_OK);
    kit_until(is(client, 3, REDLOCK_NODE_READY, false, ""));
    /* Now and then it is in the middle of a try instead. */
    kit_until(is(client, 2, REDLOCK_NODE_WAITING, true, ""));
    server_restart(&kit_servers.at[2]); /* it has forgotten its users, so it refuses both */
    kit_until(is(client, 2, REDLOCK_NODE_UNUSABLE, true, ""));
    make_user("locker", NEW);
    kit_until(is(client, 2, REDLOCK_NODE_READY, false, ""));
    kit_release(client, kit_acquire(client, "r", 0));
    close_client(client, &logs[0]);
}

ROTATION_TEST(credentials_may_be_so_long) {
    redlock_client *client = open_client(&logs[0]);
    static char longest[REDLOCK_CREDENTIAL_SIZE_MAX + 2];
    char text[256];
    memset(longest, 'x', sizeof longest - 1);
    assert_is(redlock_client_set_credentials(client, 0, NULL, longest), REDLOCK_ERR_INVALID);
    (void)redlock_client_invalid(client, text, sizeof text);
    assert_string_equal(text, "password has 16385 bytes; it must have 1 to 16384");
    assert_is(redlock_manager_set_credentials(NULL, 0, NULL, "p"), REDLOCK_ERR_INVALID);
    longest[REDLOCK_CREDENTIAL_SIZE_MAX] = '\0';
    assert_is(redlock_client_set_credentials(client, 0, longest, longest), REDLOCK_OK);
    kit_until(is(client, 0, REDLOCK_NODE_READY, true, "WRONGPASS"));
    close_client(client, &logs[0]);
}

static int tear_down(void **state) {
    servers_ask(&kit_servers, 0, kit_servers.count, "ACL", "DELUSER", "locker", "successor");
    return kit_tear_down(state);
}
