/* The kit of the blocking client's tests. */
#include "blocking_kit.h"

#define CLIENTS_MAX 8

struct servers kit_servers;
static redlock_client *clients[CLIENTS_MAX];

int kit_start(UNUSED void **state) {
    servers_start(&kit_servers, 5, NULL);
    return 0;
}

int kit_stop(UNUSED void **state) {
    servers_stop(&kit_servers);
    return 0;
}

int kit_set_up(UNUSED void **state) {
    servers_reset(&kit_servers);
    return 0;
}

int kit_tear_down(UNUSED void **state) {
    int failed = 0;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (clients[i] && redlock_client_close(clients[i]) != REDLOCK_OK) {
            failed = -1;
        }
        clients[i] = NULL;
    }
    return failed;
}

redlock_client *kit_client(int64_t node_timeout_ms) {
    redlock_manager_options options;
    char error[256];
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = node_timeout_ms;
    options.connect_timeout_ms = 20000;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (clients[i]) {
            continue;
        }
        if (redlock_client_open(&options, &clients[i], error, sizeof error) != REDLOCK_OK) {
            support_fatal("no client: %s", error);
        }
        return clients[i];
    }
    support_fatal("too many clients");
}

void kit_close(redlock_client *client) {
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (clients[i] == client) {
            clients[i] = NULL;
        }
    }
    kit_must(redlock_client_close(client) == REDLOCK_OK);
}

redlock_client_acquire_options kit_options(int64_t ttl_ms, int64_t wait_timeout_ms) {
    redlock_client_acquire_options options;
    redlock_client_acquire_options_default(&options);
    options.lock.ttl_ms = ttl_ms;
    options.lock.wait_timeout_ms = wait_timeout_ms;
    options.lock.retry_delay_min_ms = 1;
    options.lock.retry_delay_max_ms = 10;
    return options;
}

redlock_lease *kit_acquire(redlock_client *client, const char *resource, int64_t wait_timeout_ms) {
    redlock_client_acquire_options options = kit_options(60000, wait_timeout_ms);
    redlock_lease *lease = NULL;
    redlock_result *result = NULL;
    int code = redlock_client_acquire(client, resource, &options, &lease, &result);
    if (code != REDLOCK_OK) {
        char message[1024] = "";
        if (result) {
            (void)redlock_result_message(result, message, sizeof message);
        }
        support_fatal("%s was not acquired: %s: %s", resource, redlock_error_name(code), message);
    }
    kit_must(lease && redlock_result_lease(result) == lease);
    redlock_result_free(result);
    return lease;
}

void kit_refused(redlock_client *client, const char *resource, int code) {
    redlock_client_acquire_options options = kit_options(60000, 0);
    redlock_lease *lease = NULL;
    int got = redlock_client_acquire(client, resource, &options, &lease, NULL);
    if (got != code || lease) {
        support_fatal("%s: %s instead of %s", resource, redlock_error_name(got), redlock_error_name(code));
    }
}

void kit_release(redlock_client *client, redlock_lease *lease) {
    int code = redlock_client_release(client, lease, NULL);
    if (code != REDLOCK_OK) {
        support_fatal("release: %s", redlock_error_name(code));
    }
}

static void *wait_for_it(void *data) {
    struct kit_waiter *waiter = data;
    waiter->code = redlock_client_acquire(waiter->client, waiter->resource, &waiter->options, &waiter->lease, NULL);
    atomic_store(&waiter->done, true);
    return NULL;
}

void kit_wait(struct kit_waiter *waiter, redlock_client *client, const char *resource, redlock_cancel *cancel) {
    *waiter = (struct kit_waiter){.client = client, .options = kit_options(60000, PATIENT_MS), .code = 1};
    waiter->options.lock.cancel = cancel;
    (void)snprintf(waiter->resource, sizeof waiter->resource, "%s", resource);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_it, waiter), 0);
}

void kit_expect_no_keys(void) {
    kit_must(servers_wait_without_key(&kit_servers, NULL, PATIENT_MS));
}
