/* The options of TLS: what redlock_manager_create() refuses, and what a shorter struct means. */
#include "tls_kit.h"

static void create_fails(const redlock_tls_options *tls, const char *words) {
    const char *uri = "rediss://127.0.0.1:1";
    redlock_manager_options options = kit_options(&uri, 1, tls);
    redlock_manager *manager = NULL;
    char error[512] = "";
    assert_is(redlock_manager_create(world_loop, &options, &manager, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_null(manager);
    assert_contains(error, words);
    assert_is(redlock_manager_create(world_loop, &options, &manager, NULL, 0), REDLOCK_ERR_INVALID);
}

TESTS_WITH(kit_start, world_end);

/* What can be seen before any connection, with the path. An encrypted key is refused, too: OpenSSL
 * would ask for its passphrase, on the terminal. */
KIT_TEST(bad_files_are_refused) {
    const char *garbage = pki_own_file("garbage.pem");
    redlock_tls_options tls = kit_tls();
    support_write_file(garbage, "-----BEGIN CERTIFICATE-----\nthis is none\n-----END CERTIFICATE-----\n");
    tls.ca_file = "/nowhere/at/all.pem";
    create_fails(&tls, "/nowhere/at/all.pem' cannot be used: No such file or directory");
    tls.ca_file = pki_file("ca.key");
    create_fails(&tls, "/ca.key' cannot be used: no certificate or crl found");
    tls.ca_file = garbage;
    create_fails(&tls, "/garbage.pem' has no PEM of the right kind");
    tls = kit_tls();
    tls.ca_dir = "/nowhere/at/all";
    create_fails(&tls, "/nowhere/at/all' is not a directory");
    tls = kit_tls();
    tls.cert_file = pki_file("client.pem");
    tls.key_file = pki_file("client-locked.key");
    create_fails(&tls, "/client-locked.key' is encrypted");
    tls.key_file = pki_file("client-2.key");
    create_fails(&tls, "/client-2.key' cannot be used: key values mismatch");
    tls.key_file = pki_file("client.pem");
    create_fails(&tls, "/client.pem' has no PEM of the right kind");
    tls.cert_file = tls.key_file = pki_file("client.key");
    create_fails(&tls, "/client.key' has no PEM of the right kind");
    tls.cert_file = garbage;
    create_fails(&tls, "/garbage.pem' has no PEM of the right kind");
}

KIT_TEST(bad_options_are_refused) {
    redlock_tls_options tls = kit_tls();
    tls.size = 0;
    create_fails(&tls, "options.size is 0; it must be ");
    tls.size = sizeof tls + 1;
    create_fails(&tls, "older one");
    tls = kit_tls();
    tls.cert_file = pki_file("client.pem");
    create_fails(&tls, "tls.cert_file needs tls.key_file");
    tls = kit_tls();
    tls.key_file = pki_file("client.key");
    create_fails(&tls, "tls.key_file needs tls.cert_file");
    tls = kit_tls();
    tls.ca_file = "";
    create_fails(&tls, "tls.ca_file is empty");
    tls = kit_tls();
    tls.min_version = (redlock_tls_version)1;
    create_fails(&tls, "tls.min_version is 1");
    tls = kit_tls();
    tls.server_name = "";
    create_fails(&tls, "it must have 1 to 255");
    tls.server_name = "a b";
    create_fails(&tls, "position 2");
}

/* The struct of an older program ends earlier: the rest are the defaults. */
KIT_TEST(a_shorter_struct_is_read) {
    redlock_tls_options tls = kit_tls();
    tls.size = offsetof(redlock_tls_options, ca_dir);
    tls.ca_dir = tls.cert_file = tls.server_name = "";
    tls.verify = false;
    struct tls_front *front = kit_front(0, "node.pem");
    kit_cycle(kit_manager(tls_front_uri(front), &tls), "shorter");
    tls.ca_file = pki_file("stranger-ca.pem");
    kit_expect(kit_manager(tls_front_uri(front), &tls), REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
}

KIT_TEST(options_without_a_node_are_warned_of) {
    const char *plain = world_closed_uri();
    const redlock_tls_options tls = kit_tls();
    redlock_manager_options options = kit_options(&plain, 1, &tls);
    (void)world_manager_at_once(&options);
    assert_contains(world_log.text, "nothing is encrypted");
}

/* Nobody but a library with TLS can have passed these tests. */
KIT_TEST(the_library_is_named) {
    assert_non_null(redlock_tls_library());
    assert_contains(redlock_tls_library(), "SSL ");
}
