/* The common kit for tests of redlock-chaos' own processes: nodes, a directory, child processes,
 * events. */
#ifndef TEST_CHAOS_CLIENT_KIT_H
#define TEST_CHAOS_CLIENT_KIT_H

#include "test.h"
#include <jansson.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "client/client.h"
#include "client/resource.h"
#include "servers.h"
#include "support.h"

enum { KIT_NODES = 5, KIT_RESOURCES = 3, KIT_TIMEOUT_MS = 60000 };

extern struct servers kit_servers; /* KIT_NODES servers, each with the auditor's user */
extern const char *const kit_resources[KIT_RESOURCES];
extern char kit_counters_path[96];

/* Set up the group, and each test: all nodes run and are empty, counters are 0, the directory is
 * empty, no child runs. */
int kit_start(void **state);
int kit_stop(void **state);
int kit_setup(void **state);
int kit_teardown(void **state);
#define KIT_TEST(function) TEST_WITH(function, kit_setup, kit_teardown)

/* DIRECTORY/name. Several paths stay valid at once. */
const char *kit_path(const char *name);

/* Settings with long timeouts: no healthy node is too slow for them. */
struct chaos_settings kit_settings(void);
struct chaos_client_options kit_client(size_t client, const struct chaos_settings *settings, const char *log_path);

/* Runs a function in a child. The end of the test kills the child if it still runs. */
pid_t kit_run_client(const struct chaos_client_options *options);
pid_t kit_run(int (*run)(const void *options), const void *options);
/* Waits for the child's end. Returns its status as waitpid() does. */
int kit_wait(pid_t pid);
/* Sends SIGTERM, then waits in the same way. */
int kit_end(pid_t pid);
/* What the last child used. */
extern struct rusage kit_usage;

/* The events in the order of the file. Fails unless every line is a complete object with a time and
 * a name. The caller frees them. */
json_t *kit_events(const char *path);
/* Counts the events with this name, and with this string at `member` unless that is NULL. Without a
 * file: 0. */
size_t kit_count(const char *path, const char *event, const char *member, const char *value);
/* Waits until there are `count` of them. */
void kit_await(const char *path, const char *event, const char *member, const char *value, size_t count);

int64_t kit_number(const json_t *event, const char *member);
const char *kit_string(const json_t *event, const char *member);
bool kit_is(const json_t *event, const char *name);

int64_t kit_counter(size_t resource);

/* Waits until the condition holds. Fails the test after KIT_TIMEOUT_MS. */
#define kit_until(condition)                                                                                           \
    do {                                                                                                               \
        int64_t kit_deadline_ms = support_now_ms() + KIT_TIMEOUT_MS;                                                   \
        while (!(condition)) {                                                                                         \
            assert_true(support_now_ms() < kit_deadline_ms);                                                           \
            support_pause_ms(5);                                                                                       \
        }                                                                                                              \
    } while (0)

#endif
