/* The common ground of the integration tests. */
/* For the program a set of servers; for each test a loop, managers, and room for results that stays
 * valid if a test fails half-way. */
#ifndef TEST_INTEGRATION_WORLD_H
#define TEST_INTEGRATION_WORLD_H

#include "drive.h"
#include "fake_server.h"
#include "proxy.h"
#include "servers.h"
#include "support.h"
#include "test.h"

#define WORLD_MANAGERS 16
#define WORLD_OUTCOMES 512

/* For tests where the timeout does not matter: a healthy node never takes so long, however loaded
 * the machine. */
#define PATIENT_MS 20000
/* For tests where it does: long enough for a healthy node, short enough to wait for. */
#define BRISK_MS 1000

extern struct servers world_servers;
extern struct ev_loop *world_loop;
extern struct log_lines world_log;

/* Group setups and teardown: three or five plain servers. */
int world_three(void **state);
int world_five(void **state);
int world_none(void **state);
int world_end(void **state);

/* Setup and teardown of each test. The teardown closes the managers that are left, and fails if one
 * does not end. */
int world_setup(void **state);
int world_teardown(void **state);
#define WORLD_TEST(function)                                                                                           \
    TEST_HAS(function, world_setup, world_teardown, NULL, (world_outcome()), UNUSED struct outcome *outcome)
/* With a manager of all of world_servers, too. */
#define MANAGER_TEST(function)                                                                                         \
    TEST_HAS(function, world_setup, world_teardown, NULL, (world_manager_all(PATIENT_MS), world_outcome()),            \
             redlock_manager *manager, UNUSED struct outcome *outcome)

/* The default options with all of world_servers and patient timeouts. */
redlock_manager_options world_options(void);
/* A manager with these nodes, after the first try of each connection. */
redlock_manager *world_manager(const char *const *uris, size_t count, int64_t node_timeout_ms);
/* The same with these options. If on_log is NULL, it is set to world_log. */
redlock_manager *world_manager_with(redlock_manager_options *options);
/* The same, without waiting for connections. */
redlock_manager *world_manager_at_once(redlock_manager_options *options);
/* Whether all of world_servers can tell this manager of a grant: until they can, its places count
 * for nothing. For drive_until(). */
bool world_listens_everywhere(void *manager);
/* A manager with all of world_servers, which can tell it. */
redlock_manager *world_listening(void);
/* A manager with all of world_servers. */
redlock_manager *world_manager_all(int64_t node_timeout_ms);
/* The same, patient, that logs in with these credentials: "user:password@". */
redlock_manager *world_manager_as(const char *credentials);
/* Closes the manager and waits for its end. */
void world_close(redlock_manager *manager);
/* The test closes this manager itself. */
void world_disown(redlock_manager *manager);

struct outcome *world_outcome(void);
struct loss *world_loss(void);
/* The teardown stops it. */
struct proxy *world_proxy(int target_port);
struct fake_server *world_fake(const struct fake_script *script);
/* The URI redis://127.0.0.1:port of a port where nobody listens, and nobody can while the test
 * runs. */
const char *world_closed_uri(void);

/* The default options with this ttl and, unless 0, this time to wait. */
redlock_acquire_options world_acquire_options(int64_t ttl_ms, int64_t wait_timeout_ms);
/* A pointer to such options. */
#define TIMES(ttl_ms, wait_timeout_ms) ((redlock_acquire_options[]){world_acquire_options(ttl_ms, wait_timeout_ms)})
/* The same, and `loss` is told of the loss. */
redlock_acquire_options world_loss_options(int64_t ttl_ms, int64_t wait_timeout_ms, struct loss *loss);
/* Acquires with these options; with defaults except the ttl. Fails the test if that fails. */
redlock_lease *world_acquire_with(redlock_manager *manager, const char *resource,
                                  const redlock_acquire_options *options);
redlock_lease *world_acquire(redlock_manager *manager, const char *resource, int64_t ttl_ms);
/* And waits until all servers have the key. */
redlock_lease *world_acquire_all(redlock_manager *manager, const char *resource, int64_t ttl_ms);
/* Releases, and waits until no server has the key; NULL: until no server has any key. Fails the
 * test if that fails. */
void world_release_all(redlock_lease *lease, const char *key);

redlock_node_info world_node_info(redlock_manager *manager, size_t index);
redlock_statistics world_statistics(const redlock_manager *manager);
/* Runs the loop until no server has the key; NULL: until no server has any key. */
bool world_wait_without_key(const char *key, int timeout_ms);
/* Runs the loop until this many servers have the key. */
bool world_wait_with_key(const char *key, size_t count, int timeout_ms);
/* How often a server has run a command ("set", "evalsha"), by INFO commandstats. */
long long world_calls(struct server *server, const char *command);

#endif
