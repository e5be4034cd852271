/* What the TLS tests share: certificates, nodes behind TLS, managers that verify them. */
#ifndef TEST_INTEGRATION_TLS_KIT_H
#define TEST_INTEGRATION_TLS_KIT_H

#include "pki.h"
#include "tls_front.h"
#include "world.h"

/* Group setup: three servers without TLS, for fronts. Where there is no openssl command, the
 * program says so and ends as skipped. */
int kit_start(void **state);

/* The setup and teardown of WORLD_TEST(); the teardown stops the fronts, too. */
int kit_teardown(void **state);
#define KIT_TEST(function)                                                                                             \
    TEST_HAS(function, world_setup, kit_teardown, NULL, (world_outcome()), UNUSED struct outcome *outcome)

/* The defaults, and the authority of the PKI. */
redlock_tls_options kit_tls(void);

/* A front of world_servers.at[server] with this certificate ("node.pem"). The teardown stops it. */
struct tls_front *kit_front(size_t server, const char *certificate);
struct tls_front *kit_front_with(const struct tls_front_options *options);

/* The options of a manager of these nodes. */
redlock_manager_options kit_options(const char *const *uris, size_t count, const redlock_tls_options *tls);
/* A manager of one node, after the first try of its connection. NULL: kit_tls(). The second one
 * gives up a connection after BRISK_MS. */
redlock_manager *kit_manager(const char *uri, const redlock_tls_options *tls);
redlock_manager *kit_brisk_manager(const char *uri, const redlock_tls_options *tls);

/* Fails the test unless the manager's only node is in this state, for a reason that has these
 * words; "" for no reason. */
void kit_expect(redlock_manager *manager, redlock_node_state state, const char *words);
/* Acquires and releases; fails the test if that fails. */
void kit_cycle(redlock_manager *manager, const char *resource);
/* Runs the loop until the manager's only node has completed one more handshake. */
void kit_reconnected(redlock_manager *manager, uint64_t connects);
/* How often the log has these words. */
size_t kit_logged(const char *words);

#endif
