/* The common ground of the integration tests. */
/*
 * What the integration tests share: a set of servers for the program, and for each test a loop, managers on it, and
 * places for results that outlive a test that fails half-way.
 */
#ifndef TEST_INTEGRATION_WORLD_H
#define TEST_INTEGRATION_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drive.h"
#include "fake_server.h"
#include "proxy.h"
#include "servers.h"
#include "support.h"

#define WORLD_MANAGERS 16
#define WORLD_OUTCOMES 256

/* Where the timeout is not the point: nothing healthy takes so long, however loaded the machine. */
#define PATIENT_MS 5000
/* Where it is: long enough for a healthy node, short enough to wait for. */
#define BRISK_MS 1000

extern struct servers world_servers;
extern struct ev_loop *world_loop;
extern struct log_lines world_log;

/* Group setups and teardown: three or five servers without anything special. */
int world_three(void **state);
int world_five(void **state);
int world_none(void **state);
int world_end(void **state);

/* Of each test. The teardown closes what managers are left, and fails where one does not end. */
int world_setup(void **state);
int world_teardown(void **state);
#define world_test(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

/* A manager over these nodes, whose first connections have been made or have failed. */
redlock_manager *world_manager(const char *const *uris, size_t count, int64_t node_timeout_ms);
/* The same with options of one's own (on_log is set to world_log where it is NULL). */
redlock_manager *world_manager_with(redlock_manager_options *options);
/* The same, without waiting for connections. */
redlock_manager *world_manager_at_once(redlock_manager_options *options);
/* One over all of world_servers. */
redlock_manager *world_manager_all(int64_t node_timeout_ms);
/* Closes it in a test and waits for it. */
void world_close(redlock_manager *manager);
/* The test closes it by itself. */
void world_disown(redlock_manager *manager);

struct outcome *world_outcome(void);
struct loss *world_loss(void);
/* Stopped by the teardown. */
struct proxy *world_proxy(int target_port);
struct fake_server *world_fake(const struct fake_script *script);
/* redis://127.0.0.1:port where nobody listens and, while the test runs, nobody else can. */
const char *world_closed_uri(void);

/* The default options with this ttl and, unless 0, this time to wait. */
redlock_acquire_options world_acquire_options(int64_t ttl_ms, int64_t wait_timeout_ms);
/* Acquires with defaults but the ttl and fails the test where that fails. */
redlock_lease *world_acquire(redlock_manager *manager, const char *resource, int64_t ttl_ms);

redlock_statistics world_statistics(const redlock_manager *manager);
/* Runs the loop until no server has the key, or with NULL any key. */
bool world_wait_without_key(const char *key, int timeout_ms);
/* Runs the loop until as many servers have it. */
bool world_wait_with_key(const char *key, size_t count, int timeout_ms);
/* What INFO commandstats counts of a command at a server ("set", "evalsha"). */
long long world_calls(struct server *server, const char *command);

#endif
