/* What the tests of the blocking client share: five servers, clients, and checks that work in any
 * thread. */
#ifndef TEST_INTEGRATION_BLOCKING_KIT_H
#define TEST_INTEGRATION_BLOCKING_KIT_H

#include "test.h"
#include <redlock/blocking.h>

#include <pthread.h>
#include <stdatomic.h>

#include "servers.h"
#include "support.h"

/* For waits that must end, where the time does not matter. */
#define PATIENT_MS 60000
/* The node timeout where only the machine is slow. */
#define NODE_TIMEOUT_MS 5000

extern struct servers kit_servers;

/* Group: five servers. */
int kit_start(void **state);
int kit_stop(void **state);
/* Each test: empty servers; the teardown closes the clients that are still open. */
int kit_set_up(void **state);
int kit_tear_down(void **state);
#define KIT_TEST(function) TEST_WITH(function, kit_set_up, kit_tear_down)
#define CLIENT_TEST(function)                                                                                          \
    TEST_HAS(function, kit_set_up, kit_tear_down, NULL, (kit_client(NODE_TIMEOUT_MS)), redlock_client *client)

/* A client on all servers; closed by the teardown unless the test closes it with kit_close(). */
redlock_client *kit_client(int64_t node_timeout_ms);
void kit_close(redlock_client *client);

/* Options with this ttl and wait, and short retry delays. */
redlock_client_acquire_options kit_options(int64_t ttl_ms, int64_t wait_timeout_ms);
/* One attempt (or a wait) that must succeed, or must end with `code`. */
redlock_lease *kit_acquire(redlock_client *client, const char *resource, int64_t wait_timeout_ms);
void kit_refused(redlock_client *client, const char *resource, int code);
void kit_release(redlock_client *client, redlock_lease *lease);

/* A thread that waits for a resource. */
struct kit_waiter {
    pthread_t thread;
    redlock_client *client;
    char resource[16];
    redlock_client_acquire_options options;
    redlock_lease *lease;
    int code;
    atomic_bool done;
};
/* Starts it. `cancel` may be NULL. The test joins the thread. */
void kit_wait(struct kit_waiter *waiter, redlock_client *client, const char *resource, redlock_cancel *cancel);
/* Polls until no server has any key. */
void kit_expect_no_keys(void);

/* Like assert_true() for any thread: ends the program. */
#define kit_must(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            support_fatal("%s:%d: %s", __FILE__, __LINE__, #condition);                                                \
    } while (0)
/* Polls until `condition`, in any thread. */
#define kit_until(condition)                                                                                           \
    do {                                                                                                               \
        int64_t kit_until_ms = support_now_ms() + PATIENT_MS;                                                          \
        while (!(condition)) {                                                                                         \
            if (support_now_ms() > kit_until_ms)                                                                       \
                support_fatal("%s:%d: never so: %s", __FILE__, __LINE__, #condition);                                  \
            support_pause_ms(1);                                                                                       \
        }                                                                                                              \
    } while (0)

#endif
