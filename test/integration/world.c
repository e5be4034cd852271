/* The servers, loops, managers and results of the integration tests. */
#include "world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORLD_SMALL 32

struct servers world_servers;
struct ev_loop *world_loop;
struct log_lines world_log;

static redlock_manager *managers[WORLD_MANAGERS];
static struct outcome outcomes[WORLD_OUTCOMES];
static struct loss losses[WORLD_SMALL];
static struct proxy *proxies[WORLD_SMALL];
static struct fake_server *fakes[WORLD_SMALL];
static int closed_fds[WORLD_SMALL];
static char closed_uris[WORLD_SMALL][48];
static size_t manager_count, outcome_count, loss_count, proxy_count, fake_count, closed_count;

static size_t next(size_t *count, size_t max, const char *what) {
    if (*count == max) {
        support_fatal("a test wants more than %zu %s", max, what);
    }
    return (*count)++;
}

int world_three(UNUSED void **state) {
    servers_start(&world_servers, 3, NULL);
    return 0;
}

int world_five(UNUSED void **state) {
    servers_start(&world_servers, 5, NULL);
    return 0;
}

int world_none(UNUSED void **state) {
    return 0;
}

int world_end(UNUSED void **state) {
    servers_stop(&world_servers);
    return 0;
}

int world_setup(UNUSED void **state) {
    servers_reset(&world_servers);
    world_loop = ev_loop_new(EVFLAG_AUTO);
    memset(&world_log, 0, sizeof world_log);
    return world_loop ? 0 : -1;
}

int world_teardown(UNUSED void **state) {
    int result = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        if (world_servers.at[i].paused) {
            server_resume(&world_servers.at[i]);
        }
    }
    for (size_t i = 0; i < manager_count; i++) {
        if (managers[i] && !drive_close(world_loop, managers[i])) {
            result = -1;
        }
    }
    for (size_t i = 0; i < proxy_count; i++) {
        proxy_stop(proxies[i]);
    }
    for (size_t i = 0; i < fake_count; i++) {
        fake_server_stop(fakes[i]);
    }
    for (size_t i = 0; i < closed_count; i++) {
        close(closed_fds[i]);
    }
    for (size_t i = 0; i < outcome_count; i++) {
        outcome_clear(&outcomes[i]);
    }
    memset(losses, 0, sizeof losses);
    manager_count = outcome_count = loss_count = proxy_count = fake_count = closed_count = 0;
    ev_loop_destroy(world_loop);
    world_loop = NULL;
    return result;
}

redlock_manager *world_manager_at_once(redlock_manager_options *options) {
    char error[256] = "";
    size_t index = 0;
    while (index < manager_count && managers[index]) {
        index++;
    }
    if (index == manager_count) {
        index = next(&manager_count, WORLD_MANAGERS, "managers");
    }
    if (!options->on_log) {
        options->on_log = log_collect;
        options->log_data = &world_log;
        options->log_level = REDLOCK_LOG_DEBUG;
    }
    if (redlock_manager_create(world_loop, options, &managers[index], error, sizeof error) != REDLOCK_OK) {
        fail_msg("redlock_manager_create: %s", error);
    }
    return managers[index];
}

redlock_manager *world_manager_with(redlock_manager_options *options) {
    redlock_manager *manager = world_manager_at_once(options);
    struct outcome connected = {0};
    drive_connect(world_loop, manager, &connected);
    outcome_clear(&connected);
    return manager;
}

redlock_manager_options world_options(void) {
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = world_servers.uris;
    options.node_count = world_servers.count;
    options.node_timeout_ms = options.connect_timeout_ms = PATIENT_MS;
    return options;
}

redlock_manager *world_manager(const char *const *uris, size_t count, int64_t node_timeout_ms) {
    redlock_manager_options options = world_options();
    options.nodes = uris;
    options.node_count = count;
    options.node_timeout_ms = node_timeout_ms;
    return world_manager_with(&options);
}

redlock_manager *world_manager_all(int64_t node_timeout_ms) {
    return world_manager(world_servers.uris, world_servers.count, node_timeout_ms);
}

bool world_listens_everywhere(void *manager) {
    for (size_t i = 0; i < world_servers.count; i++) {
        const redlock_node_info info = world_node_info(manager, i);
        if (info.queue_refused || !info.listens) {
            return false;
        }
    }
    return true;
}

redlock_manager *world_listening(void) {
    redlock_manager_options options = world_options();
    options.listen = true;
    redlock_manager *manager = world_manager_with(&options);
    assert_true(drive_until(world_loop, world_listens_everywhere, manager, DRIVE_TIMEOUT_MS));
    return manager;
}

redlock_manager *world_manager_as(const char *credentials) {
    char texts[SERVERS_MAX][128];
    const char *uris[SERVERS_MAX];
    for (size_t i = 0; i < world_servers.count; i++) {
        snprintf(texts[i], sizeof texts[i], "redis://%s127.0.0.1:%d", credentials, world_servers.at[i].port);
        uris[i] = texts[i];
    }
    return world_manager(uris, world_servers.count, PATIENT_MS);
}

void world_disown(redlock_manager *manager) {
    for (size_t i = 0; i < manager_count; i++) {
        if (managers[i] == manager) {
            managers[i] = NULL;
        }
    }
}

void world_close(redlock_manager *manager) {
    world_disown(manager);
    assert_true(drive_close(world_loop, manager));
}

struct outcome *world_outcome(void) {
    return &outcomes[next(&outcome_count, WORLD_OUTCOMES, "outcomes")];
}

struct loss *world_loss(void) {
    return &losses[next(&loss_count, WORLD_SMALL, "losses")];
}

struct proxy *world_proxy(int target_port) {
    size_t index = next(&proxy_count, WORLD_SMALL, "proxies");
    return proxies[index] = proxy_start(target_port);
}

struct fake_server *world_fake(const struct fake_script *script) {
    size_t index = next(&fake_count, WORLD_SMALL, "hostile nodes");
    return fakes[index] = fake_server_start(script);
}

const char *world_closed_uri(void) {
    size_t index = next(&closed_count, WORLD_SMALL, "closed ports");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    /* Bound but not listening: connections are refused, and no other program gets the port. */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        support_fatal("cannot bind on 127.0.0.1");
    }
    closed_fds[index] = fd;
    snprintf(closed_uris[index], sizeof closed_uris[index], "redis://127.0.0.1:%d", ntohs(address.sin_port));
    return closed_uris[index];
}

redlock_acquire_options world_acquire_options(int64_t ttl_ms, int64_t wait_timeout_ms) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = ttl_ms;
    options.wait_timeout_ms = wait_timeout_ms;
    return options;
}

redlock_acquire_options world_loss_options(int64_t ttl_ms, int64_t wait_timeout_ms, struct loss *loss) {
    redlock_acquire_options options = world_acquire_options(ttl_ms, wait_timeout_ms);
    options.on_lost = loss_collect;
    options.lost_data = loss;
    return options;
}

redlock_lease *world_acquire_with(redlock_manager *manager, const char *resource,
                                  const redlock_acquire_options *options) {
    struct outcome *outcome = world_outcome();
    if (drive_acquire(world_loop, manager, resource, options, outcome) != REDLOCK_OK) {
        fail_msg("acquiring %s: %s", resource, outcome->message);
    }
    return outcome->lease;
}

redlock_lease *world_acquire(redlock_manager *manager, const char *resource, int64_t ttl_ms) {
    return world_acquire_with(manager, resource, TIMES(ttl_ms, 0));
}

redlock_lease *world_acquire_all(redlock_manager *manager, const char *resource, int64_t ttl_ms) {
    redlock_lease *lease = world_acquire(manager, resource, ttl_ms);
    assert_true(world_wait_with_key(resource, world_servers.count, DRIVE_TIMEOUT_MS));
    return lease;
}

void world_release_all(redlock_lease *lease, const char *key) {
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
    assert_true(world_wait_without_key(key, DRIVE_TIMEOUT_MS));
}

redlock_node_info world_node_info(redlock_manager *manager, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    assert_is(redlock_manager_node(manager, index, &info), REDLOCK_OK);
    return info;
}

redlock_statistics world_statistics(const redlock_manager *manager) {
    redlock_statistics statistics = {.size = sizeof statistics};
    assert_is(redlock_manager_statistics(manager, &statistics), REDLOCK_OK);
    return statistics;
}

struct key_wanted {
    const char *key;
    size_t count;
};

static bool has_no_key(void *data) {
    const struct key_wanted *wanted = data;
    return wanted->key ? servers_with_key(&world_servers, wanted->key) == 0 : servers_key_count(&world_servers) == 0;
}

static bool has_key(void *data) {
    const struct key_wanted *wanted = data;
    return servers_with_key(&world_servers, wanted->key) == wanted->count;
}

bool world_wait_without_key(const char *key, int timeout_ms) {
    struct key_wanted wanted = {.key = key};
    return drive_until(world_loop, has_no_key, &wanted, timeout_ms);
}

bool world_wait_with_key(const char *key, size_t count, int timeout_ms) {
    struct key_wanted wanted = {.key = key, .count = count};
    return drive_until(world_loop, has_key, &wanted, timeout_ms);
}

long long world_calls(struct server *server, const char *command) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "cmdstat_%s:calls=", command);
    const char *found = strstr(server_ask(server, "INFO", "commandstats"), wanted);
    return found ? atoll(found + strlen(wanted)) : 0;
}
