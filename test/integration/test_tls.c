/* TLS with real servers: locks, the queue, who is trusted, client certificates, files that
 * change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "certificates.h"
#include "world.h"

#define NODES 3

static char folder[] = "/tmp/redlock-test-tls-XXXXXX";
static char configs[NODES][1024];
static char uris[NODES][64];
static const char *uri_list[NODES];

/* A file of the folder. The next seven calls leave the text alone. */
static const char *path(const char *name) {
    static char paths[8][96];
    static unsigned next;
    char *text = paths[next++ % 8];
    (void)snprintf(text, sizeof *paths, "%s/%s", folder, name);
    return text;
}

/* Servers with this certificate and more lines of redis.conf. */
static void start_servers(const char *name, const char *config) {
    for (size_t i = 0; i < NODES; i++) {
        const int port = support_free_port();
        (void)snprintf(configs[i], sizeof *configs,
                       "tls-port %d\ntls-cert-file %s/%s.crt\ntls-key-file %s/%s.key\ntls-ca-cert-file %s/ca.crt\n%s",
                       port, folder, name, folder, name, folder, config);
        (void)snprintf(uris[i], sizeof *uris, "rediss://127.0.0.1:%d", port);
        uri_list[i] = uris[i];
        servers_add(&world_servers, &(struct server_options){.config = configs[i]});
    }
}

static int start(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) {
        support_fatal("mkdtemp failed");
    }
    support_remove_tree_at_death(folder);
    certificate_make(folder, "ca", NULL, &(struct certificate_options){.authority = true});
    certificate_make(folder, "other-ca", NULL, &(struct certificate_options){.authority = true});
    certificate_make(folder, "node", "ca", &(struct certificate_options){.alternatives = "IP:127.0.0.1"});
    certificate_make(folder, "named", "ca", &(struct certificate_options){.alternatives = "DNS:db.example"});
    certificate_make(folder, "client", "ca", NULL);
    certificate_make(folder, "stranger", "other-ca", NULL);
    certificate_make(folder, "locked", "ca", &(struct certificate_options){.passphrase = "geheim"});
    world_servers.count = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    support_remove_tree(folder);
    return 0;
}

static int teardown(void **state) {
    const int result = world_teardown(state);
    servers_stop(&world_servers);
    return result;
}

static redlock_tls_options trusting(const char *ca) {
    redlock_tls_options tls;
    redlock_tls_options_default(&tls);
    tls.ca_file = path(ca);
    return tls;
}

static redlock_manager *manager_with(const redlock_tls_options *tls) {
    redlock_manager_options options = world_options();
    options.nodes = uri_list;
    options.node_count = NODES;
    options.tls = tls;
    return world_manager_with(&options);
}

static void assert_says(const char *text, const char *words) {
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, words);
    }
}

/* All nodes are in this state and say these words, and so does an acquire that fails. */
static void assert_refused(redlock_manager *manager, redlock_node_state node_state, const char *words) {
    struct outcome *outcome = world_outcome();
    assert_true(drive_nodes(world_loop, manager, node_state, NODES));
    for (size_t i = 0; i < NODES; i++) {
        assert_says(world_node_info(manager, i).error, words);
    }
    assert_int_equal(drive_acquire(world_loop, manager, "door", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), NODES);
    assert_says(outcome->message, words);
}

static void assert_locks(redlock_manager *manager) {
    struct outcome *outcome = world_outcome();
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    assert_int_equal(drive_extend(world_loop, lease, 90000, outcome), REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(lease) > 60000);
    assert_int_equal(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(world_wait_without_key("door", DRIVE_TIMEOUT_MS));
}

static void a_lock_is_taken_extended_and_released(void **state) {
    (void)state;
    start_servers("node", "tls-auth-clients no\n");
    const redlock_tls_options tls = trusting("ca.crt");
    redlock_manager *manager = manager_with(&tls);
    assert_locks(manager);
    assert_says(world_log.text, ", TLSv1.3");
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(world_node_info(manager, i).connects, 1);
    }
}

static void a_waiter_is_handed_the_lock(void **state) {
    (void)state;
    start_servers("node", "tls-auth-clients no\ntls-protocols TLSv1.2\n");
    const redlock_tls_options tls = trusting("ca.crt");
    redlock_manager *holder = manager_with(&tls), *waiter = manager_with(&tls);
    redlock_lease *lease = world_acquire(holder, "door", 60000);
    struct outcome *waited = world_outcome();
    const redlock_acquire_options options = world_acquire_options(60000, 60000);
    assert_int_equal(redlock_acquire(waiter, "door", &options, NULL, outcome_collect, waited), REDLOCK_OK);
    while (world_statistics(waiter).queued == 0 || !world_node_info(waiter, 0).listens ||
           !world_node_info(waiter, 1).listens || !world_node_info(waiter, 2).listens) {
        ev_run(world_loop, EVRUN_ONCE);
    }
    assert_int_equal(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, waited));
    assert_int_equal(waited->code, REDLOCK_OK);
    assert_int_equal(world_statistics(waiter).handed_over, 1);
    assert_int_equal(drive_release(world_loop, waited->lease, world_outcome()), REDLOCK_OK);
    assert_says(world_log.text, ", TLSv1.2");
}

static void an_unknown_authority_is_refused(void **state) {
    (void)state;
    start_servers("node", "tls-auth-clients no\n");
    redlock_tls_options tls = trusting("other-ca.crt");
    redlock_manager *manager = manager_with(&tls);
    assert_refused(manager, REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
    assert_says(world_node_info(manager, 0).error, "(--cacert, --cacertdir)?");
    /* The system's store does not know it either. */
    assert_refused(manager_with(NULL), REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
    tls.verify = false;
    assert_locks(manager_with(&tls));
}

static void the_name_is_checked(void **state) {
    (void)state;
    start_servers("named", "tls-auth-clients no\n");
    redlock_tls_options tls = trusting("ca.crt");
    assert_refused(manager_with(&tls), REDLOCK_NODE_UNUSABLE, "IP address mismatch (not for '127.0.0.1')");
    tls.server_name = "other.example";
    assert_refused(manager_with(&tls), REDLOCK_NODE_UNUSABLE, "ostname mismatch (not for 'other.example')");
    tls.server_name = "db.example";
    assert_locks(manager_with(&tls));
}

static void check_client_certificates(const char *protocols) {
    char config[64];
    (void)snprintf(config, sizeof config, "tls-auth-clients yes\ntls-protocols %s\n", protocols);
    start_servers("node", config);
    redlock_tls_options tls = trusting("ca.crt");
    assert_refused(manager_with(&tls), REDLOCK_NODE_UNUSABLE, "wants a client certificate");
    tls.cert_file = path("stranger.crt"), tls.key_file = path("stranger.key");
    assert_refused(manager_with(&tls), REDLOCK_NODE_UNUSABLE, "refused our certificate");
    tls.cert_file = path("client.crt"), tls.key_file = path("client.key");
    assert_locks(manager_with(&tls));
}

static void a_client_certificate_is_wanted(void **state) {
    (void)state;
    check_client_certificates("TLSv1.3");
}

static void a_client_certificate_is_wanted_in_tls_1_2(void **state) {
    (void)state;
    check_client_certificates("TLSv1.2");
}

static void an_old_version_is_refused(void **state) {
    (void)state;
    start_servers("node", "tls-auth-clients no\ntls-protocols TLSv1.2\n");
    redlock_tls_options tls = trusting("ca.crt");
    tls.min_version = REDLOCK_TLS_1_3;
    assert_refused(manager_with(&tls), REDLOCK_NODE_UNUSABLE, "no TLS version in common");
}

static void copy_file(const char *from, const char *to) {
    char *text = support_read_file(path(from));
    assert_non_null(text);
    support_write_file(path(to), text);
    free(text);
}

static size_t count_words(const char *text, const char *words) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) {
        count++;
    }
    return count;
}

/* Ends the connections, so that new ones begin. */
static void reconnect(redlock_manager *manager, uint64_t connects) {
    for (size_t i = 0; i < NODES; i++) {
        (void)server_ask(&world_servers.at[i], "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    }
    for (size_t i = 0; i < NODES; i++) {
        assert_true(drive_reconnected(world_loop, manager, i, connects));
    }
}

static void changed_files_are_read_again(void **state) {
    (void)state;
    start_servers("node", "tls-auth-clients no\n");
    copy_file("ca.crt", "trusted.crt");
    const redlock_tls_options tls = trusting("trusted.crt");
    redlock_manager *manager = manager_with(&tls);
    reconnect(manager, 2);
    assert_null(strstr(world_log.text, "TLS files"));
    support_write_file(path("trusted.crt"), "half a certificate");
    reconnect(manager, 3);
    reconnect(manager, 4);
    assert_int_equal(count_words(world_log.text, "TLS files changed, but ca_file '"), 1);
    /* A new authority, for us and then for the nodes. */
    certificate_make(folder, "node", "other-ca", &(struct certificate_options){.alternatives = "IP:127.0.0.1"});
    copy_file("other-ca.crt", "trusted.crt");
    for (size_t i = 0; i < NODES; i++) {
        server_stop(&world_servers.at[i]);
        server_restart(&world_servers.at[i]);
    }
    for (size_t i = 0; i < NODES; i++) {
        assert_true(drive_reconnected(world_loop, manager, i, 5));
    }
    assert_int_equal(count_words(world_log.text, "TLS files were read again"), 1);
    assert_locks(manager);
    certificate_make(folder, "node", "ca", &(struct certificate_options){.alternatives = "IP:127.0.0.1"});
}

static void a_forked_child_says_nothing(void **state) {
    (void)state;
    int status;
    start_servers("node", "tls-auth-clients no\n");
    const redlock_tls_options tls = trusting("ca.crt");
    redlock_manager *manager = manager_with(&tls);
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        redlock_manager_abandon(manager);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(drive_extend(world_loop, lease, 60000, world_outcome()), REDLOCK_OK);
    assert_int_equal(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(world_node_info(manager, i).connects, 1);
    }
}

static void the_wrong_port_is_guessed(void **state) {
    (void)state;
    char text[NODES][64];
    start_servers("node", "tls-auth-clients no\n");
    redlock_manager_options options = world_options();
    options.nodes = uri_list;
    options.connect_timeout_ms = BRISK_MS;
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(text[i], sizeof *text, "%s", uris[i] + strlen("rediss://"));
        uri_list[i] = text[i];
    }
    assert_refused(world_manager_with(&options), REDLOCK_NODE_WAITING, "does it want TLS (rediss://)?");
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(text[i], sizeof *text, "rediss://127.0.0.1:%d", world_servers.at[i].port);
    }
    redlock_manager *manager = world_manager_with(&options);
    for (size_t i = 0; i < NODES; i++) {
        assert_says(world_node_info(manager, i).error, "is this a TLS port?");
    }
}

static void create_fails(const redlock_tls_options *tls, const char *words) {
    redlock_manager *manager = NULL;
    char error[512] = "";
    redlock_manager_options options = world_options();
    options.nodes = (const char *[]){"rediss://127.0.0.1:1"};
    options.node_count = 1;
    options.tls = tls;
    assert_int_equal(redlock_manager_create(world_loop, &options, &manager, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_null(manager);
    assert_says(error, words);
    assert_null(strstr(error, "geheim"));
    assert_int_equal(redlock_manager_create(world_loop, &options, &manager, NULL, 0), REDLOCK_ERR_INVALID);
}

static void bad_files_are_refused(void **state) {
    (void)state;
    redlock_tls_options tls = trusting("no.crt");
    create_fails(&tls, "/no.crt' cannot be used: No such file or directory");
    tls = trusting("ca.key");
    create_fails(&tls, "/ca.key' cannot be used: no certificate or crl found");
    tls = trusting("ca.crt");
    tls.ca_dir = path("no");
    create_fails(&tls, "/no' is not a folder");
    tls = trusting("ca.crt");
    tls.cert_file = path("locked.crt"), tls.key_file = path("locked.key");
    create_fails(&tls, "/locked.key' is encrypted");
    tls.key_file = path("client.key");
    create_fails(&tls, "/client.key' cannot be used: key values mismatch");
    tls.key_file = path("client.crt");
    create_fails(&tls, "/client.crt' has no PEM of the right kind");
    tls.cert_file = path("client.key"), tls.key_file = path("client.key");
    create_fails(&tls, "/client.key' has no PEM of the right kind");
}

static void bad_options_are_refused(void **state) {
    (void)state;
    redlock_tls_options tls = trusting("ca.crt");
    tls.size = 0;
    create_fails(&tls, "options.size is 0; it must be 1 to");
    tls.size = sizeof tls + 1;
    create_fails(&tls, "older one");
    tls = trusting("ca.crt");
    tls.cert_file = path("client.crt");
    create_fails(&tls, "tls.cert_file needs tls.key_file");
    tls = trusting("ca.crt");
    tls.key_file = path("client.key");
    create_fails(&tls, "tls.key_file needs tls.cert_file");
    tls = trusting("ca.crt");
    tls.ca_file = "";
    create_fails(&tls, "tls.ca_file is empty");
    tls = trusting("ca.crt");
    tls.min_version = (redlock_tls_version)1;
    create_fails(&tls, "tls.min_version is 1");
    tls = trusting("ca.crt");
    tls.server_name = "";
    create_fails(&tls, "tls.server_name has 0 bytes; it must have 1 to 255");
    tls.server_name = "a b";
    create_fails(&tls, "position 2");
}

/* The struct of an older program ends earlier: the rest are the defaults. */
static void a_shorter_struct_is_read(void **state) {
    (void)state;
    start_servers("node", "tls-auth-clients no\n");
    redlock_tls_options tls = trusting("ca.crt");
    tls.size = offsetof(redlock_tls_options, ca_dir);
    tls.ca_dir = tls.cert_file = tls.server_name = "";
    tls.verify = false;
    assert_locks(manager_with(&tls));
    tls.ca_file = path("other-ca.crt");
    assert_refused(manager_with(&tls), REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
}

static void options_without_a_node_are_warned_of(void **state) {
    (void)state;
    redlock_manager *manager;
    const char *plain = world_closed_uri();
    redlock_manager_options options = world_options();
    const redlock_tls_options tls = trusting("ca.crt");
    options.nodes = &plain, options.node_count = 1;
    options.on_log = log_collect, options.log_data = &world_log;
    options.tls = &tls;
    assert_int_equal(redlock_manager_create(world_loop, &options, &manager, NULL, 0), REDLOCK_OK);
    assert_says(world_log.text, "nothing is encrypted");
    assert_true(drive_close(world_loop, manager));
}

static void the_library_is_named(void **state) {
    (void)state;
    assert_non_null(redlock_tls_library());
    assert_says(redlock_tls_library(), "SSL ");
}

#define tls_test(function) cmocka_unit_test_setup_teardown(function, world_setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        tls_test(a_lock_is_taken_extended_and_released),
        tls_test(a_waiter_is_handed_the_lock),
        tls_test(an_unknown_authority_is_refused),
        tls_test(the_name_is_checked),
        tls_test(a_client_certificate_is_wanted),
        tls_test(a_client_certificate_is_wanted_in_tls_1_2),
        tls_test(an_old_version_is_refused),
        tls_test(changed_files_are_read_again),
        tls_test(a_forked_child_says_nothing),
        tls_test(the_wrong_port_is_guessed),
        tls_test(bad_files_are_refused),
        tls_test(bad_options_are_refused),
        tls_test(a_shorter_struct_is_read),
        tls_test(options_without_a_node_are_warned_of),
        cmocka_unit_test(the_library_is_named),
    };
    return cmocka_run_group_tests(tests, start, end);
}
