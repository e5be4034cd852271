/* The kit of the TLS tests. */
#include "tls_kit.h"

#define FRONTS_MAX 32

static struct tls_front *fronts[FRONTS_MAX];
static size_t front_count;

int kit_start(void **state) {
    if (!pki_is_possible()) {
        print_message("skipped: openssl is not installed\n");
        exit(77);
    }
    return world_three(state);
}

int kit_teardown(void **state) {
    for (size_t i = 0; i < front_count; i++) {
        tls_front_stop(fronts[i]);
    }
    front_count = 0;
    return world_teardown(state);
}

redlock_tls_options kit_tls(void) {
    redlock_tls_options tls;
    redlock_tls_options_default(&tls);
    tls.ca_file = pki_file("ca.pem");
    return tls;
}

struct tls_front *kit_front_with(const struct tls_front_options *options) {
    assert_true(front_count < FRONTS_MAX);
    return fronts[front_count++] = tls_front_start(world_loop, options);
}

struct tls_front *kit_front(size_t server, const char *certificate) {
    const struct tls_front_options options = {.target_port = world_servers.at[server].port,
                                              .cert_file = pki_file(certificate),
                                              .key_file = pki_file("node.key")};
    return kit_front_with(&options);
}

redlock_manager_options kit_options(const char *const *uris, size_t count, const redlock_tls_options *tls) {
    redlock_manager_options options = world_options();
    options.nodes = uris;
    options.node_count = count;
    options.tls = tls;
    return options;
}

static redlock_manager *manager_of(const char *uri, const redlock_tls_options *tls, int64_t connect_timeout_ms) {
    const redlock_tls_options usual = kit_tls();
    redlock_manager_options options = kit_options(&uri, 1, tls ? tls : &usual);
    options.connect_timeout_ms = connect_timeout_ms;
    return world_manager_with(&options);
}

redlock_manager *kit_manager(const char *uri, const redlock_tls_options *tls) {
    return manager_of(uri, tls, PATIENT_MS);
}

redlock_manager *kit_brisk_manager(const char *uri, const redlock_tls_options *tls) {
    return manager_of(uri, tls, BRISK_MS);
}

void kit_expect(redlock_manager *manager, redlock_node_state state, const char *words) {
    const redlock_node_info info = world_node_info(manager, 0);
    if (info.state != state || (*words ? !strstr(info.error, words) : *info.error)) {
        fail_msg("the node is %s: %s; expected was %s: %s", redlock_node_state_name(info.state), info.error,
                 redlock_node_state_name(state), words);
    }
}

void kit_cycle(redlock_manager *manager, const char *resource) {
    struct outcome outcome = {0};
    int code = drive_acquire(world_loop, manager, resource, TIMES(60000, 0), &outcome);
    if (code == REDLOCK_OK) {
        code = drive_release(world_loop, outcome.lease, &outcome);
    }
    if (code != REDLOCK_OK) {
        fail_msg("%s: %s", resource, outcome.message);
    }
    outcome_clear(&outcome);
}

void kit_reconnected(redlock_manager *manager, uint64_t connects) {
    if (!drive_reconnected(world_loop, manager, 0, connects)) {
        fail_msg("no new connection: %s", world_node_info(manager, 0).error);
    }
}

size_t kit_logged(const char *words) {
    size_t count = 0;
    for (const char *at = world_log.text; (at = strstr(at, words)); at++) {
        count++;
    }
    return count;
}
