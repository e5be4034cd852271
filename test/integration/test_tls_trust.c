/* Whom TLS trusts: certificates of nodes and of clients, names, addresses, versions; and what is
 * said where one side speaks TLS and the other does not. */
#include "tls_kit.h"

/* A manager of one node whose front has this certificate. */
static redlock_manager *meet(const char *certificate, const redlock_tls_options *tls) {
    return kit_manager(tls_front_uri(kit_front(0, certificate)), tls);
}

TESTS_WITH(kit_start, world_end);

KIT_TEST(a_good_certificate_is_accepted) {
    redlock_manager *manager = meet("node.pem", NULL);
    kit_expect(manager, REDLOCK_NODE_READY, "");
    kit_cycle(manager, "trusted");
}

/* Each certificate is refused for its own reason. The node never gets a request, and a vote says
 * why. */
KIT_TEST(a_bad_certificate_makes_a_node_unusable) {
    static const struct {
        const char *certificate, *words;
    } cases[] = {
        {"stranger.pem", "unable to get local issuer certificate"},
        {"expired.pem", "certificate has expired"},
        {"future.pem", "certificate is not yet valid"},
        {"elsewhere.pem", "(not for '127.0.0.1')"},
        {"named.pem", "(not for '127.0.0.1')"},
        {"client.pem", "its certificate is not accepted: "}, /* not for a server */
    };
    assert_string_equal(server_ask(&world_servers.at[0], "CONFIG", "RESETSTAT"), "OK");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool is_client = strcmp(cases[i].certificate, "client.pem") == 0;
        const struct tls_front_options options = {.target_port = world_servers.at[0].port,
                                                  .cert_file = pki_file(cases[i].certificate),
                                                  .key_file = pki_file(is_client ? "client.key" : "node.key")};
        redlock_manager *manager = kit_manager(tls_front_uri(kit_front_with(&options)), NULL);
        kit_expect(manager, REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
        kit_expect(manager, REDLOCK_NODE_UNUSABLE, cases[i].words);
        redlock_acquire_options acquire = world_acquire_options(60000, 0);
        assert_is(drive_acquire(world_loop, manager, "bad", &acquire, outcome), REDLOCK_ERR_NO_QUORUM);
        assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_FAILED);
        assert_contains(outcome_vote_error(outcome, 0), cases[i].words);
        assert_contains(world_log.text, cases[i].words);
        assert_int_equal(world_calls(&world_servers.at[0], "set"), 0);
        world_close(manager);
        outcome_clear(outcome);
    }
}

KIT_TEST(without_verification_all_are_accepted) {
    static const char *const certificates[] = {"stranger.pem", "expired.pem", "future.pem", "elsewhere.pem"};
    redlock_tls_options tls;
    redlock_tls_options_default(&tls);
    assert_true(tls.verify);
    tls.verify = false;
    for (size_t i = 0; i < sizeof certificates / sizeof *certificates; i++) {
        redlock_manager *manager = meet(certificates[i], &tls);
        kit_expect(manager, REDLOCK_NODE_READY, "");
        kit_cycle(manager, "anybody");
        world_close(manager);
    }
}

/* Without a CA it is the system's store that counts, which knows nothing of ours. */
KIT_TEST(the_system_trusts_no_authority_of_ours) {
    redlock_tls_options tls;
    redlock_tls_options_default(&tls);
    kit_expect(meet("node.pem", &tls), REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
}

KIT_TEST(a_folder_of_authorities_is_enough) {
    redlock_tls_options tls = kit_tls();
    tls.ca_file = NULL;
    tls.ca_dir = pki_file("ca-dir");
    redlock_manager *manager = meet("node.pem", &tls);
    kit_expect(manager, REDLOCK_NODE_READY, "");
    kit_cycle(manager, "folder");
    kit_expect(meet("stranger.pem", &tls), REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
}

/* node.redlock.test is nowhere in DNS: the certificate is checked against it, and the front is
 * asked for it. */
KIT_TEST(a_server_name_replaces_the_address) {
    redlock_tls_options tls = kit_tls();
    tls.server_name = "node.redlock.test";
    struct tls_front *front = kit_front(0, "named.pem");
    kit_expect(kit_manager(tls_front_uri(front), &tls), REDLOCK_NODE_READY, "");
    assert_string_equal(tls_front_seen(front)->asked_name, "node.redlock.test");
    kit_expect(meet("elsewhere.pem", &tls), REDLOCK_NODE_UNUSABLE, "(not for 'node.redlock.test')");
    kit_expect(meet("node.pem", &tls), REDLOCK_NODE_UNUSABLE, "(not for 'node.redlock.test')");
    tls.server_name = "127.0.0.9";
    front = kit_front(0, "elsewhere.pem");
    kit_expect(kit_manager(tls_front_uri(front), &tls), REDLOCK_NODE_READY, "");
    assert_string_equal(tls_front_seen(front)->asked_name, "");
}

/* The URI's host: its name is asked for (SNI) and checked, its address is only checked. */
KIT_TEST(the_host_is_checked_by_name_or_by_address) {
    char uri[64];
    struct tls_front *front = kit_front(0, "node.pem");
    (void)snprintf(uri, sizeof uri, "rediss://localhost%s", strchr(tls_front_name(front), ':'));
    redlock_manager *manager = kit_manager(uri, NULL);
    kit_expect(manager, REDLOCK_NODE_READY, "");
    kit_cycle(manager, "name");
    assert_string_equal(tls_front_seen(front)->asked_name, "localhost");
    manager = kit_manager(tls_front_uri(front), NULL);
    kit_expect(manager, REDLOCK_NODE_READY, "");
    assert_string_equal(tls_front_seen(front)->asked_name, "");
    front = kit_front(0, "named.pem");
    (void)snprintf(uri, sizeof uri, "rediss://localhost%s", strchr(tls_front_name(front), ':'));
    kit_expect(kit_manager(uri, NULL), REDLOCK_NODE_UNUSABLE, "(not for 'localhost')");
}

static struct server *add_server(struct servers *servers, const struct server_tls *tls) {
    const struct server_options options = {.tls = tls, .password = "geheim", .ipv6 = true};
    servers->count = 0;
    return servers_add(servers, &options);
}

/* A redis-server that wants a client's certificate; also with a password, and over IPv6. */
KIT_TEST(a_real_server_with_client_certificates) {
    static struct servers servers;
    const struct server_tls server_tls = {
        .cert_file = pki_file("node.pem"), .key_file = pki_file("node.key"), .client_ca_file = pki_file("ca.pem")};
    struct server *server = add_server(&servers, &server_tls);
    redlock_tls_options tls = kit_tls();
    kit_expect(kit_manager(server->uri, &tls), REDLOCK_NODE_UNUSABLE, "wants a client certificate");
    tls.cert_file = pki_file("client-stranger.pem");
    tls.key_file = pki_file("client.key");
    kit_expect(kit_manager(server->uri, &tls), REDLOCK_NODE_UNUSABLE, "refused our certificate");
    tls.cert_file = pki_file("client.pem");
    redlock_manager *manager = kit_manager(server->uri, &tls);
    kit_expect(manager, REDLOCK_NODE_READY, "");
    kit_cycle(manager, "mutual");
    char uri[64];
    (void)snprintf(uri, sizeof uri, "rediss://:geheim@[::1]:%d", server->port);
    manager = kit_manager(uri, &tls);
    kit_expect(manager, REDLOCK_NODE_READY, "");
    kit_cycle(manager, "v6");
    servers_stop(&servers);
}

/* TLS 1.2 tells of a missing certificate within the handshake, TLS 1.3 at the first read. */
KIT_TEST(a_missing_client_certificate_is_told_in_each_version) {
    for (int tls12 = 0; tls12 < 2; tls12++) {
        const struct tls_front_options options = {.target_port = world_servers.at[0].port,
                                                  .cert_file = pki_file("node.pem"),
                                                  .key_file = pki_file("node.key"),
                                                  .client_ca_file = pki_file("ca.pem"),
                                                  .tls12 = tls12};
        struct tls_front *front = kit_front_with(&options);
        redlock_manager *manager = kit_manager(tls_front_uri(front), NULL);
        kit_expect(manager, REDLOCK_NODE_UNUSABLE, "wants a client certificate");
        assert_int_equal(tls_front_seen(front)->handshakes, 0);
        redlock_tls_options tls = kit_tls();
        tls.cert_file = pki_file("client.pem");
        tls.key_file = pki_file("client.key");
        kit_cycle(kit_manager(tls_front_uri(front), &tls), "shown");
        assert_string_equal(tls_front_seen(front)->client_name, "client");
    }
}

KIT_TEST(the_lowest_version_is_kept) {
    static struct servers servers;
    const struct server_tls old = {
        .cert_file = pki_file("node.pem"), .key_file = pki_file("node.key"), .protocols = "TLSv1.2"};
    struct server *server = add_server(&servers, &old);
    redlock_tls_options tls = kit_tls();
    kit_cycle(kit_manager(server->uri, &tls), "old");
    tls.min_version = REDLOCK_TLS_1_3;
    kit_expect(kit_manager(server->uri, &tls), REDLOCK_NODE_UNUSABLE, "no TLS version in common");
    servers_stop(&servers);
    kit_cycle(meet("node.pem", &tls), "new");
}

KIT_TEST(tls_on_a_plain_port_asks_whether_it_is_one) {
    char uri[64];
    (void)snprintf(uri, sizeof uri, "rediss://%s", world_servers.at[0].name);
    kit_expect(kit_brisk_manager(uri, NULL), REDLOCK_NODE_WAITING, "is this a TLS port?");
    /* Who answers at once with what is no TLS. */
    static const char web[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const struct fake_script script = {.greet = true, .bytes = web, .size = sizeof web - 1, .end = FAKE_FIN};
    (void)snprintf(uri, sizeof uri, "rediss://%s", fake_server_name(world_fake(&script)));
    kit_expect(kit_manager(uri, NULL), REDLOCK_NODE_WAITING, "is this a TLS port?");
}

KIT_TEST(plain_on_a_tls_port_asks_whether_it_wants_tls) {
    static struct servers servers;
    const struct server_tls tls = {.cert_file = pki_file("node.pem"), .key_file = pki_file("node.key")};
    struct server *server = add_server(&servers, &tls);
    char uri[64];
    (void)snprintf(uri, sizeof uri, "redis://%s", server->name);
    kit_expect(kit_manager(uri, NULL), REDLOCK_NODE_WAITING, "does it want TLS (rediss://)?");
    (void)snprintf(uri, sizeof uri, "redis://%s", tls_front_name(kit_front(0, "node.pem")));
    kit_expect(kit_manager(uri, NULL), REDLOCK_NODE_WAITING, "does it want TLS (rediss://)?");
    servers_stop(&servers);
}
