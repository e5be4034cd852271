/* Addresses without a lookup, a lookup on a thread, and a lookup that is given up. */
#include "test.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/resolve.h"

static struct redlock_address address_of(char *host, uint16_t port) {
    return (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP, .host = host, .port = port};
}

TEST(literals_and_paths_need_no_lookup) {
    char v4[] = "127.0.0.1", v6[] = "::1", name[] = "localhost", path[] = "/run/x.sock";
    struct redlock_endpoints endpoints;
    struct redlock_address address = address_of(v4, 7000);
    assert_true(redlock_resolve_literal(&address, &endpoints));
    const struct sockaddr_in *in = (const struct sockaddr_in *)&endpoints.list[0].address;
    assert_int_equal(endpoints.count, 1);
    assert_int_equal(in->sin_family, AF_INET);
    assert_int_equal(ntohs(in->sin_port), 7000);
    assert_int_equal(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
    address = address_of(v6, 7001);
    assert_true(redlock_resolve_literal(&address, &endpoints));
    assert_int_equal(endpoints.list[0].address.ss_family, AF_INET6);
    address = address_of(name, 7001);
    assert_false(redlock_resolve_literal(&address, &endpoints));
    address = (struct redlock_address){.kind = REDLOCK_ADDRESS_UNIX, .host = path};
    assert_true(redlock_resolve_literal(&address, &endpoints));
    const struct sockaddr_un *un = (const struct sockaddr_un *)&endpoints.list[0].address;
    assert_int_equal(un->sun_family, AF_UNIX);
    assert_string_equal(un->sun_path, path);
}

static const char *look_up(const char *name, struct redlock_endpoints *endpoints) {
    int error = 0;
    struct redlock_lookup *lookup = redlock_lookup_start(name, 7000, &error);
    assert_non_null(lookup);
    struct pollfd done = {.fd = redlock_lookup_fd(lookup), .events = POLLIN};
    assert_int_equal(poll(&done, 1, 30000), 1);
    const char *result;
    assert_true(redlock_lookup_done(lookup, endpoints, &result));
    redlock_lookup_drop(lookup, false);
    return result;
}

TEST(a_thread_finds_localhost_and_no_nonsense) {
    struct redlock_endpoints endpoints = {.count = 0};
    assert_null(look_up("localhost", &endpoints));
    assert_true(endpoints.count >= 1);
    /* A label of more than 63 bytes is not a name, so no server is asked. */
    assert_non_null(
        look_up("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", &endpoints));
}

static size_t thread_count(void) {
    size_t count = 0;
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(threads);
    return count;
}

TEST(a_lookup_can_be_given_up) {
    for (int i = 0; i < 50; i++) {
        int error = 0;
        struct redlock_lookup *lookup = redlock_lookup_start("localhost", 7000, &error);
        assert_non_null(lookup);
        redlock_lookup_drop(lookup, false);
    }
    redlock_lookup_drop(NULL, false);
    for (int i = 0; i < 20000 && thread_count() > 1; i++) {
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(thread_count(), 1);
}
