/* The library over TLS on real servers: locks, queues, restarts, threads and forks; and files that
 * change while it runs. */
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <redlock/blocking.h>

#include "base/sanitize.h"
#include "tls_kit.h"

static struct server_tls node_tls;
static struct servers secured; /* three that speak TLS alone, and want a client's certificate */

static int start(void **state) {
    const int result = kit_start(state);
    node_tls = (struct server_tls){
        .cert_file = pki_file("node.pem"), .key_file = pki_file("node.key"), .client_ca_file = pki_file("ca.pem")};
    servers_start(&secured, 3, &(struct server_options){.tls = &node_tls, .append_only = true});
    return result;
}

static int tear_down(void **state) {
    servers_stop(&secured);
    return world_end(state);
}

static redlock_tls_options as_client(void) {
    redlock_tls_options tls = kit_tls();
    tls.cert_file = pki_file("client.pem");
    tls.key_file = pki_file("client.key");
    return tls;
}

static redlock_manager *secured_manager(void) {
    const redlock_tls_options tls = as_client();
    redlock_manager_options options = kit_options(secured.uris, secured.count, &tls);
    options.listen = true;
    return world_manager_with(&options);
}

static void use_tls_at_exit(void);

static int start_before_exit(void **state) {
    return atexit(use_tls_at_exit) != 0 ? -1 : start(state);
}

TESTS_WITH(start_before_exit, tear_down);

KIT_TEST(a_lock_over_tls) {
    redlock_manager *manager = secured_manager();
    redlock_acquire_options options = world_acquire_options(60000, 0);
    options.fencing = true;
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    assert_is(drive_acquire(world_loop, manager, "lock", &options, outcome), REDLOCK_OK);
    redlock_lease *lease = outcome->lease;
    assert_true(redlock_lease_fence(lease) > 0);
    assert_is(drive_extend(world_loop, lease, 90000, outcome), REDLOCK_OK);
    assert_is(drive_inspect(world_loop, manager, "lock", outcome), REDLOCK_OK);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(servers_wait_without_key(&secured, "lock", DRIVE_TIMEOUT_MS));
}

static bool all_listen(void *data) {
    for (size_t i = 0; i < 3; i++) {
        if (!world_node_info(data, i).listens) {
            return false;
        }
    }
    return true;
}

static bool waits(void *data) {
    return world_statistics(data).queued == 1;
}

/* The second connection of a node speaks TLS, too: on it the waiter is told. */
KIT_TEST(a_lock_is_handed_over) {
    redlock_manager *holder = secured_manager(), *waiter = secured_manager();
    struct outcome *waited = world_outcome();
    assert_true(drive_until(world_loop, all_listen, waiter, DRIVE_TIMEOUT_MS));
    redlock_lease *lease = world_acquire(holder, "line", 60000);
    assert_is(redlock_acquire(waiter, "line", TIMES(60000, REDLOCK_WAIT_FOREVER), NULL, outcome_collect, waited),
              REDLOCK_OK);
    assert_true(drive_until(world_loop, waits, waiter, DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, waited));
    assert_is(waited->code, REDLOCK_OK);
    assert_int_equal(world_statistics(waiter).handed_over, 1);
    assert_is(drive_release(world_loop, waited->lease, outcome), REDLOCK_OK);
}

KIT_TEST(nodes_restart_and_hang) {
    redlock_manager *manager = secured_manager();
    server_pause(&secured.at[0]);
    redlock_lease *lease = world_acquire(manager, "restart", 60000);
    server_resume(&secured.at[0]);
    server_kill(&secured.at[1]);
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    server_restart(&secured.at[1]);
    assert_true(drive_reconnected(world_loop, manager, 1, 2));
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(servers_wait_without_key(&secured, "restart", DRIVE_TIMEOUT_MS));
}

/* The new connection has TLS of its own, and is one with its server before the old one goes. */
KIT_TEST(a_silent_connection_is_replaced) {
    enum { NODES = 3 };
    const redlock_tls_options tls = as_client();
    char room[NODES][64];
    const char *uris[NODES];
    struct proxy *proxies[NODES];
    for (size_t i = 0; i < NODES; i++) {
        proxies[i] = world_proxy(secured.at[i].port);
        (void)snprintf(room[i], sizeof room[i], "rediss://%s", proxy_name(proxies[i]));
        uris[i] = room[i];
    }
    redlock_manager_options options = kit_options(uris, NODES, &tls);
    options.node_timeout_ms = BRISK_MS;
    redlock_manager *manager = world_manager_with(&options);
    redlock_lease *lease = world_acquire(manager, "silent", 60000);
    for (size_t i = 0; i < NODES; i++) {
        proxy_freeze_now(proxies[i]);
    }
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_ERR_NO_QUORUM);
    for (size_t i = 0; i < NODES; i++) {
        assert_true(drive_reconnected(world_loop, manager, i, 2));
    }
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(servers_wait_without_key(&secured, "silent", DRIVE_TIMEOUT_MS));
}

static redlock_client *open_client(void) {
    const redlock_tls_options tls = as_client();
    redlock_manager_options options = kit_options(secured.uris, secured.count, &tls);
    redlock_client *client = NULL;
    char error[256];
    if (redlock_client_open(&options, &client, error, sizeof error) != REDLOCK_OK) {
        support_fatal("redlock_client_open: %s", error);
    }
    return client;
}

static int take_and_release(redlock_client *client, const char *resource) {
    redlock_lease *lease = NULL;
    const int code = redlock_client_acquire(client, resource, NULL, &lease, NULL);
    return code == REDLOCK_OK ? redlock_client_release(client, lease, NULL) : code;
}

/* TSan does not support threads in a child of a process with threads. ASan of gcc 12 copies the
 * locks of its allocator, with which such a child may wait for ever. */
#define CHILD_MAY_HAVE_A_CLIENT (!REDLOCK_UNDER_ASAN && !REDLOCK_UNDER_TSAN)

KIT_TEST(a_forked_child_opens_its_own_client) {
    redlock_client *client = open_client();
    redlock_lease *lease = NULL;
    assert_is(redlock_client_acquire(client, "fork", NULL, &lease, NULL), REDLOCK_OK);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        bool good = take_and_release(client, "child") == REDLOCK_ERR_FORKED;
        good = good && redlock_client_close(client) == REDLOCK_OK;
        if (CHILD_MAY_HAVE_A_CLIENT) {
            client = open_client();
            good = good && take_and_release(client, "fork") == REDLOCK_ERR_CONTENDED;
            good = good && take_and_release(client, "child") == REDLOCK_OK;
            good = good && redlock_client_close(client) == REDLOCK_OK;
        }
        _exit(!good);
    }
    assert_exits(child, 0);
    assert_is(redlock_client_extend(client, lease, 30000, NULL), REDLOCK_OK);
    assert_is(redlock_client_release(client, lease, NULL), REDLOCK_OK);
    assert_is(redlock_client_close(client), REDLOCK_OK);
    assert_true(servers_wait_without_key(&secured, "fork", DRIVE_TIMEOUT_MS));
    assert_true(servers_wait_without_key(&secured, "child", DRIVE_TIMEOUT_MS));
}

static redlock_client *left_open; /* in a child that exits */

/* The first handler of exit() runs last: after OpenSSL's, if it has one. */
static void use_tls_at_exit(void) {
    if (left_open == NULL) {
        return;
    }
    redlock_client *client = open_client();
    if (take_and_release(left_open, "exit") != REDLOCK_OK || take_and_release(client, "exit") != REDLOCK_OK) {
        _exit(1);
    }
}

/* Whoever releases a lock there needs TLS, and the threads of clients go on meanwhile. The first
 * test: no context has been made yet, so the child is the first to use OpenSSL. */
KIT_TEST(tls_works_while_the_process_exits) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        left_open = open_client();
        exit(0);
    }
    assert_exits(child, 0);
}

/* The child frees its copy and says nothing on the parent's connection: no farewell, no record. */
KIT_TEST(a_child_that_abandons_its_manager_is_silent) {
    struct tls_front *front = kit_front(0, "node.pem");
    redlock_manager *manager = kit_manager(tls_front_uri(front), NULL);
    redlock_lease *lease = world_acquire(manager, "abandoned", 60000);
    const long long bytes = tls_front_seen(front)->bytes[TLS_FRONT_REQUESTS];
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        redlock_manager_abandon(manager);
        _exit(0);
    }
    assert_exits(child, 0);
    drive_for(world_loop, 20);
    assert_int_equal(tls_front_seen(front)->bytes[TLS_FRONT_REQUESTS], bytes);
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
    assert_int_equal(world_node_info(manager, 0).connects, 1);
}

/* What the front saw in the certificate of the next connection. */
static const char *next_client(struct tls_front *front, redlock_manager *manager) {
    const uint64_t connects = world_node_info(manager, 0).connects;
    tls_front_cut_now(front, TLS_FRONT_RST);
    kit_reconnected(manager, connects + 1);
    kit_cycle(manager, "renewed");
    return tls_front_seen(front)->client_name;
}

KIT_TEST(changed_files_are_read_before_the_next_connection) {
    const char *cert = pki_own_file("changing.pem"), *key = pki_own_file("changing.key");
    const struct tls_front_options options = {.target_port = world_servers.at[0].port,
                                              .cert_file = pki_file("node.pem"),
                                              .key_file = pki_file("node.key"),
                                              .client_ca_file = pki_file("ca.pem")};
    static const char again[] = "TLS files were read again", kept[] = "the old ones stay in use";
    struct tls_front *front = kit_front_with(&options);
    pki_copy("client.pem", cert);
    pki_copy("client.key", key);
    redlock_tls_options tls = kit_tls();
    tls.cert_file = cert;
    tls.key_file = key;
    redlock_manager *manager = kit_manager(tls_front_uri(front), &tls);
    assert_string_equal(tls_front_seen(front)->client_name, "client");
    assert_string_equal(next_client(front, manager), "client");
    assert_int_equal(kit_logged(again), 0);
    pki_copy("client-2.pem", cert);
    pki_copy("client-2.key", key);
    assert_string_equal(next_client(front, manager), "client-2");
    assert_int_equal(kit_logged(again), 1);
    /* A new file that cannot be used is told once, and the old one goes on. */
    support_write_file(cert, "this is no certificate\n");
    assert_string_equal(next_client(front, manager), "client-2");
    assert_string_equal(next_client(front, manager), "client-2");
    assert_int_equal(kit_logged(kept), 1);
    /* The new certificate before its key: they do not match yet. */
    pki_copy("client-3.pem", cert);
    assert_string_equal(next_client(front, manager), "client-2");
    assert_int_equal(kit_logged(kept), 2);
    pki_copy("client-locked.key", key);
    assert_string_equal(next_client(front, manager), "client-2");
    assert_int_equal(kit_logged(kept), 3);
    assert_int_equal(unlink(key), 0);
    assert_string_equal(next_client(front, manager), "client-2");
    assert_int_equal(kit_logged(kept), 4);
    pki_copy("client-3.key", key);
    assert_string_equal(next_client(front, manager), "client-3");
    assert_int_equal(kit_logged(again), 2);
    assert_int_equal(kit_logged(kept), 4);
}

KIT_TEST(a_program_may_change_its_folder) {
    char folder[PATH_MAX], begun[PATH_MAX];
    assert_non_null(getcwd(begun, sizeof begun));
    (void)snprintf(folder, sizeof folder, "%s", pki_file("ca.pem"));
    *strrchr(folder, '/') = '\0';
    assert_int_equal(chdir(folder), 0);
    struct tls_front *front = kit_front(0, "node.pem");
    redlock_tls_options tls = kit_tls();
    tls.ca_file = "ca.pem";
    redlock_manager *manager = kit_manager(tls_front_uri(front), &tls);
    assert_int_equal(chdir("/"), 0);
    (void)next_client(front, manager);
    assert_int_equal(kit_logged("TLS files"), 0);
    assert_int_equal(chdir(begun), 0);
}

/* A node that is unusable for its certificate looks again by itself. If the authority's file is
 * broken, the old one stays in use. */
KIT_TEST(a_changed_authority_mends_an_unusable_node) {
    const char *ca = pki_own_file("changing-ca.pem");
    pki_copy("ca.pem", ca);
    redlock_tls_options tls = kit_tls();
    tls.ca_file = ca;
    struct tls_front *front = kit_front(0, "stranger.pem");
    redlock_manager *manager = kit_manager(tls_front_uri(front), &tls);
    kit_expect(manager, REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
    pki_copy("stranger-ca.pem", ca);
    kit_reconnected(manager, 1);
    kit_cycle(manager, "mended");
    support_write_file(ca, "half a certificate");
    for (uint64_t connects = 2; connects <= 3; connects++) {
        tls_front_cut_now(front, TLS_FRONT_RST);
        kit_reconnected(manager, connects);
    }
    assert_int_equal(kit_logged("TLS files changed, but ca_file '"), 1);
}

static bool is_unusable(void *data) {
    return world_node_info(data, 0).state == REDLOCK_NODE_UNUSABLE;
}

/* OpenSSL keeps what it has read of a directory: without a new reading it would trust for ever. */
KIT_TEST(an_authority_that_left_its_directory_is_trusted_no_more) {
    const char *changing = pki_own_file("changing-dir");
    char from[NAME_MAX + 8] = "", to[PATH_MAX];
    DIR *folder = opendir(pki_file("ca-dir"));
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(from, sizeof from, "ca-dir/%s", entry->d_name);
        }
    }
    assert_int_equal(closedir(folder), 0);
    assert_int_equal(mkdir(changing, 0700), 0);
    (void)snprintf(to, sizeof to, "%s%s", changing, strchr(from, '/'));
    pki_copy(from, to);
    redlock_tls_options tls = kit_tls();
    tls.ca_file = NULL;
    tls.ca_dir = changing;
    struct tls_front *front = kit_front(0, "node.pem");
    redlock_manager *manager = kit_manager(tls_front_uri(front), &tls);
    (void)next_client(front, manager);
    assert_int_equal(unlink(to), 0);
    tls_front_cut_now(front, TLS_FRONT_RST);
    assert_true(drive_until(world_loop, is_unusable, manager, DRIVE_TIMEOUT_MS));
    kit_expect(manager, REDLOCK_NODE_UNUSABLE, "its certificate is not accepted: ");
    pki_copy(from, to);
    kit_reconnected(manager, 3);
    kit_cycle(manager, "returned");
}
