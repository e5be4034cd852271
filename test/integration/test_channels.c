/* What somebody can do who may only subscribe and publish on redlock:*, with an ACL user of real
 * servers: he hears each push, and says anything to anybody. And what is heard of another
 * database. */
#include <redlock/election.h>

#include "wire/script.h"
#include "world.h"

#define NODES    3
#define LONG_MS  60000
#define PASSWORD "geheim"
#define ALICE    "00000000000000aa0123456789abcdef0123456789abcdef"
#define BOB      "00000000000000bb0123456789abcdef0123456789abcdef"

/* On each node, as eve: one hears, the other publishes. */
static struct raw ears[NODES], mouths[NODES];
static struct raw admins[NODES]; /* in database 1 */

static struct told {
    int count;
    char tokens[16][REDLOCK_TOKEN_SIZE_MAX + 1];
} told;

/* A push, as eve hears it. */
struct heard {
    char channel[80], id[48], seconds[24], microseconds[24], token[160];
    unsigned long serial;
};

static void log_in(struct raw *raw, size_t node) {
    assert_true(raw_open_tcp(raw, "127.0.0.1", world_servers.at[node].port));
    assert_string_equal(raw_ask(raw, "AUTH", "eve", PASSWORD), "OK");
}

static int setup(void **state) {
    memset(&told, 0, sizeof told);
    const int result = world_setup(state);
    for (size_t i = 0; i < NODES; i++) {
        assert_string_equal(server_ask(&world_servers.at[i], "ACL", "SETUSER", "eve", "reset", "on", ">" PASSWORD,
                                       "resetchannels", "&redlock:*", "+psubscribe", "+publish"),
                            "OK");
        log_in(&ears[i], i);
        log_in(&mouths[i], i);
        assert_string_equal(raw_ask(&mouths[i], "DEL", "door"),
                            "-NOPERM this user has no permissions to run the 'del' command");
        (void)raw_ask(&ears[i], "PSUBSCRIBE", "redlock:*");
        assert_true(raw_open_tcp(&admins[i], "127.0.0.1", world_servers.at[i].port));
        assert_string_equal(raw_ask(&admins[i], "SELECT", "1"), "OK");
    }
    return result;
}

static int teardown(void **state) {
    for (size_t i = 0; i < NODES; i++) {
        raw_close(&ears[i]);
        raw_close(&mouths[i]);
        raw_close(&admins[i]);
    }
    return world_teardown(state);
}

/* The next push that a node publishes. */
static struct heard hear(size_t node) {
    struct heard heard;
    assert_int_equal(sscanf(raw_read(&ears[node]), "pmessage redlock:* %79s %47s %lu %23s %23s %159s door",
                            heard.channel, heard.id, &heard.serial, heard.seconds, heard.microseconds, heard.token),
                     6);
    return heard;
}

static void say(size_t node, const char *channel, const char *message) {
    assert_true(raw_ask(&mouths[node], "PUBLISH", channel, message)[0] != '-');
}

static void say_push(size_t node, const char *channel, const struct heard *heard, unsigned more) {
    char message[400];
    (void)snprintf(message, sizeof message, "%s %lu %s %s %s door", heard->id, heard->serial + more, heard->seconds,
                   heard->microseconds, heard->token);
    say(node, channel, message);
}

struct marks {
    const char *channel;
    size_t count;
};

static bool are_read(void *data) {
    const struct marks *marks = data;
    size_t count = 0;
    char line[160];
    (void)snprintf(line, sizeof line, "a message on the channel %s is not ours", marks->channel);
    for (const char *at = world_log.text; (at = strstr(at, line)) != NULL; at++) {
        count++;
    }
    return count >= marks->count;
}

/* The manager of this channel has read all that was said on it. Once in a test. */
static void until_read(const char *channel) {
    struct marks marks = {channel, NODES};
    for (size_t i = 0; i < NODES; i++) {
        say(i, channel, "that is all");
    }
    assert_true(drive_until(world_loop, are_read, &marks, DRIVE_TIMEOUT_MS));
}

struct lines {
    const char *key;
    long long length;
};

static bool are_queued(void *data) {
    const struct lines *lines = data;
    size_t like = 0;
    for (size_t i = 0; i < NODES; i++) {
        struct server *server = &world_servers.at[i];
        const char *channels = strstr(server_ask(server, "INFO", "stats"), "pubsub_channels:");
        const bool listens = atoll(channels + strlen("pubsub_channels:")) >= lines->length;
        like += listens && atoll(server_ask(server, "ZCARD", lines->key)) == 1;
    }
    return like == NODES;
}

/* Waits for this lock, in the queue of every node; `managers` listen by then. */
static struct outcome *wait_for(redlock_manager *manager, const char *resource, long long managers) {
    struct outcome *outcome = world_outcome();
    char key[32];
    (void)snprintf(key, sizeof key, "%s:wait", resource);
    struct lines lines = {key, managers};
    assert_is(redlock_acquire(manager, resource, TIMES(LONG_MS, REDLOCK_WAIT_FOREVER), NULL, outcome_collect, outcome),
              REDLOCK_OK);
    assert_true(drive_until(world_loop, are_queued, &lines, DRIVE_TIMEOUT_MS));
    return outcome;
}

/* The channels of all managers but this one. */
static void other_channel(const char *own, char *channel, size_t size) {
    char list[400];
    (void)snprintf(list, sizeof list, "%s", server_ask(&world_servers.at[0], "PUBSUB", "CHANNELS", "redlock:*"));
    for (char *name = strtok(list, "\n"); name != NULL; name = strtok(NULL, "\n")) {
        if (strcmp(name, own) != 0) {
            (void)snprintf(channel, size, "%s", name);
        }
    }
    assert_string_not_equal(channel, own);
}

TESTS_WITH(world_three, world_end);
#define CHANNEL_TEST(name) TEST_WITH(name, setup, teardown)

/* A push of a lock is said to another manager, which does not know its token. */
CHANNEL_TEST(a_push_that_is_copied_ends_no_lease) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *next = world_manager_all(PATIENT_MS),
                    *bystander = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(holder, "door", LONG_MS);
    (void)world_acquire(holder, "gate", LONG_MS);
    struct outcome *served = wait_for(next, "door", 1);
    (void)wait_for(bystander, "gate", 2);
    struct outcome *released = world_outcome();
    assert_is(drive_release(world_loop, lease, released), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, served));
    assert_is(served->code, REDLOCK_OK);
    char channel[80] = "";
    for (size_t i = 0; i < NODES; i++) {
        const struct heard heard = hear(i);
        assert_string_equal(heard.token, redlock_lease_token(served->lease));
        other_channel(heard.channel, channel, sizeof channel);
        for (size_t node = 0; node < NODES; node++) {
            say_push(node, channel, &heard, 0);
            say_push(node, heard.channel, &heard, 0);
            say_push(node, heard.channel, &heard, 1);
        }
    }
    until_read(channel);
    /* Behind any release of theirs. */
    redlock_manager *const all[] = {bystander, next, holder};
    for (size_t i = 0; i < 3; i++) {
        struct outcome *inspected = world_outcome();
        assert_is(drive_inspect(world_loop, all[i], "door", inspected), REDLOCK_OK);
        assert_true(outcome_votes(inspected, REDLOCK_VOTE_GRANTED) >= 2);
    }
    for (size_t i = 0; i < NODES; i++) {
        assert_string_equal(server_ask(&world_servers.at[i], "GET", "door"), redlock_lease_token(served->lease));
    }
    struct outcome *extended = world_outcome();
    assert_is(drive_extend(world_loop, served->lease, LONG_MS, extended), REDLOCK_OK);
}

/* One node of three gives the lock to a waiter, and is said to be all. */
CHANNEL_TEST(a_push_that_is_copied_is_no_other_nodes_grant) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *rival = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(holder, "door", LONG_MS);
    struct outcome *waits = wait_for(rival, "door", 1);
    (void)server_ask(&world_servers.at[0], "EVAL", redlock_script_get(REDLOCK_SCRIPT_RELEASE)->source, "1", "door",
                     redlock_lease_token(lease), ":wait");
    const struct heard heard = hear(0);
    for (size_t node = 1; node < NODES; node++) {
        for (unsigned more = 0; more < 9; more++) {
            say_push(node, heard.channel, &heard, more);
        }
    }
    until_read(heard.channel);
    assert_int_equal(waits->runs, 0);
    assert_true(redlock_lease_validity_ms(lease) > LONG_MS / 2);
    for (size_t node = 1; node < NODES; node++) {
        /* Still ours, marked or not. */
        assert_string_equal(server_ask(&world_servers.at[node], "GET", "door") + 1, redlock_lease_token(lease) + 1);
    }
}

static void on_leader(const redlock_leader *leader, void *data) {
    (void)data;
    assert_true(told.count < 16);
    (void)snprintf(told.tokens[told.count++], sizeof *told.tokens, "%s", leader->token);
}

static bool is_told(void *data) {
    return told.count > 0 && strcmp(told.tokens[told.count - 1], data) == 0;
}

static void until_told(const char *token) {
    char wanted[REDLOCK_TOKEN_SIZE_MAX + 1];
    (void)snprintf(wanted, sizeof wanted, "%s", token);
    assert_true(drive_until(world_loop, is_told, wanted, DRIVE_TIMEOUT_MS));
}

static bool are_heard(void *data) {
    size_t like = 0;
    for (size_t i = 0; i < NODES; i++) {
        like += strstr(server_ask(&world_servers.at[i], "PUBSUB", "CHANNELS", "redlock:leader:*"), data) != NULL;
    }
    return like == NODES;
}

/* Bob is said to lead, by eve, and by the nodes in database 1. */
CHANNEL_TEST(only_the_own_database_says_who_leads) {
    redlock_observer *observer;
    char channel[] = "redlock:leader:door";
    servers_ask(&world_servers, 0, NODES, "SET", "door", ALICE, "PX", "600000");
    assert_is(redlock_observe(world_manager_all(PATIENT_MS), "door", on_leader, NULL, &observer), REDLOCK_OK);
    until_told(ALICE);
    assert_true(drive_until(world_loop, are_heard, channel, DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < NODES; i++) {
        say(i, channel, "600000 " BOB);
        assert_string_not_equal(raw_ask(&admins[i], "EVAL", redlock_script_get(REDLOCK_SCRIPT_WAIT)->source, "3",
                                        "door", "door:wait", "door:waiter", BOB, "1", "1", "600000", "600000", "900000",
                                        "redlock:none", "0", "1", "1"),
                                "-");
        assert_string_equal(raw_ask(&admins[i], "GET", "door"), BOB);
        say(i, channel, "");
    }
    /* That is true, and told: so all before has been read. */
    for (size_t i = 0; i < NODES; i++) {
        (void)server_ask(&world_servers.at[i], "DEL", "door");
        say(i, channel, "600000 " BOB);
    }
    until_told("");
    assert_int_equal(told.count, 2);
    assert_string_equal(told.tokens[0], ALICE);
}
