/* A client process with fencing tokens and guards: what it sends to the resource, and what it
 * writes down. */
#include "client_reading.h"

#include <fcntl.h>
#include <unistd.h>

TESTS_WITH(kit_start, kit_stop);

/* The first resource has seen a higher token than any future one. */
static void see_the_highest_token(void) {
    int fd = open(kit_counters_path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    static const unsigned char most[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    assert_int_equal(pwrite(fd, most, sizeof most, (off_t)CHAOS_RESOURCES_MAX * 8), sizeof most);
    close(fd);
}

KIT_TEST(a_resource_refuses_old_tokens) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    struct chaos_client_options options = kit_client(0, &settings, path);
    settings.protection.fencing = true;
    options.resource_count = 1;
    see_the_highest_token();
    pid_t pid = kit_run_client(&options);
    kit_await(path, "refused", "what", "read", 5);
    expect_clean(kit_end(pid));
    struct reading r = read_client(path, 1, settings.ttl_ms, false);
    assert_true(r.refused >= 5);
    assert_int_equal(r.dones[0], 0);
    assert_int_equal(kit_counter(0), 0);
}

/* The same resource, whose highest token is one that read: others who read are served. */
KIT_TEST(a_resource_serves_those_who_read) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    struct chaos_client_options options = kit_client(0, &settings, path);
    settings.protection.fencing = true;
    settings.readers = 100;
    options.resource_count = 1;
    see_the_highest_token();
    pid_t pid = kit_run_client(&options);
    kit_await(path, "read", NULL, NULL, 6);
    expect_clean(kit_end(pid));
    struct reading r = read_client(path, 1, settings.ttl_ms, false);
    assert_int_equal(r.refused, 0);
    assert_true(r.reads >= 6 && r.fenced > 0);
}

/* A guard for the start of a run: clients that start before any grant trust their nodes at once.
 * Later ones wait for ttl_max. */
KIT_TEST(the_first_trust_their_nodes) {
    const char *path = kit_path("client-1.jsonl"), *late = kit_path("client-2.jsonl");
    struct chaos_settings settings = kit_settings();
    settings.protection = chaos_protection_full();
    settings.protection.ttl_max_ms = settings.ttl_ms = 600000;
    struct chaos_client_options options = kit_client(0, &settings, path), second = kit_client(1, &settings, late);
    pid_t pid = kit_run_client(&options);
    kit_await(path, "done", NULL, NULL, 3);
    expect_clean(kit_end(pid));
    struct chaos_settings once = settings;
    once.wait_ms = 0;
    second.settings = &once;
    second.late = true;
    pid = kit_run_client(&second);
    kit_await(late, "complete", "result", "NO_QUORUM", 1);
    kit_await(late, "complete", "votes", "AAAAA", 1);
    expect_clean(kit_end(pid));
    assert_int_equal(kit_count(late, "claim", NULL, NULL), 0);
}
