/* What the tests of redlock-chaos' own processes share: nodes, a directory, child processes, and their events. */
#ifndef TEST_CHAOS_CLIENT_KIT_H
#define TEST_CHAOS_CLIENT_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "client/client.h"
#include "client/resource.h"
#include "servers.h"
#include "support.h"

enum { KIT_NODES = 5, KIT_RESOURCES = 3, KIT_TIMEOUT_MS = 60000 };

extern struct servers kit_servers; /* KIT_NODES of them, each with the user that the auditor is */
extern const char *const kit_resources[KIT_RESOURCES];
extern char kit_counters_path[96];

/* Of a group, and of each test: empty nodes that all run, counters of 0, an empty directory, no child. */
int kit_start(void **state);
int kit_stop(void **state);
int kit_setup(void **state);
int kit_teardown(void **state);
#define kit_test(function) cmocka_unit_test_setup_teardown(function, kit_setup, kit_teardown)

/* DIRECTORY/name; as many at once as a test needs. */
const char *kit_path(const char *name);

/* Patient settings: no healthy node is ever too slow for them. */
struct chaos_settings kit_settings(void);
struct chaos_client_options kit_client(size_t client, const struct chaos_settings *settings, const char *log_path);

/* Runs it in a child; killed at the end of the test if it is still there. */
pid_t kit_run_client(const struct chaos_client_options *options);
pid_t kit_run(int (*run)(const void *options), const void *options);
/* Waits for its end; the status as waitpid() has it. */
int kit_wait(pid_t pid);
/* The same, and asks it to end first. */
int kit_end(pid_t pid);
/* What the last that was waited for had used. */
extern struct rusage kit_usage;

/* The file's events, in the file's order: every line must be whole, an object, and have a time and a name. To be freed. */
json_t *kit_events(const char *path);
/* How many there are with this name, and, where member is not NULL, with this string there. No file: none. */
size_t kit_count(const char *path, const char *event, const char *member, const char *value);
/* Until there are so many. */
void kit_await(const char *path, const char *event, const char *member, const char *value, size_t count);

int64_t kit_number(const json_t *event, const char *member);
const char *kit_string(const json_t *event, const char *member);
bool kit_is(const json_t *event, const char *name);

int64_t kit_counter(size_t resource);

/* Waits until it is so; fails the test after KIT_TIMEOUT_MS. */
#define kit_until(condition)                                                                                           \
    do {                                                                                                               \
        int64_t kit_deadline_ms = support_now_ms() + KIT_TIMEOUT_MS;                                                   \
        while (!(condition)) {                                                                                         \
            assert_true(support_now_ms() < kit_deadline_ms);                                                           \
            support_pause_ms(5);                                                                                       \
        }                                                                                                              \
    } while (0)

#endif
