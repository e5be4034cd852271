/* A client process with fencing tokens and guards: what it sends to the resource, and what it
 * writes down. */
#include "client_reading.h"

#include <fcntl.h>
#include <unistd.h>

/* The resource numbers what it grants. So all receipts together have each number once, and tokens
 * rise with the numbers. */
static void check_receipts(const char *const paths[2]) {
    enum { NUMBERS = 4000 };
    static int64_t fences[NUMBERS];
    memset(fences, 0, sizeof fences);
    int64_t highest_number = 0, highest = 0;
    for (size_t c = 0; c < 2; c++) {
        json_t *events = kit_events(paths[c]), *event;
        int64_t fence = 0;
        size_t index;
        json_array_foreach(events, index, event) {
            bool intent = kit_is(event, "intent");
            fence = intent ? kit_number(event, "fence") : fence;
            int64_t number = intent || kit_is(event, "done") ? kit_number(event, "number") : 0;
            if (number >= NUMBERS || number == 0) {
                continue;
            }
            assert_true(number > 0 && fence > 0);
            assert_int_equal(fences[number], 0);
            fences[number] = fence;
            highest_number = number > highest_number ? number : highest_number;
        }
        json_decref(events);
    }
    assert_true(highest_number >= 40);
    for (int64_t number = 1; number <= highest_number; number++) {
        assert_true(fences[number] >= highest);
        highest = fences[number];
    }
}

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(fencing_tokens_go_with_each_access) {
    const char *paths[] = {kit_path("client-1.jsonl"), kit_path("client-2.jsonl")};
    struct chaos_settings settings = kit_settings();
    struct chaos_client_options options[2];
    pid_t pids[2];
    settings.protection.fencing = true;
    for (size_t c = 0; c < 2; c++) {
        options[c] = kit_client(c, &settings, paths[c]);
        options[c].resource_count = 1;
        pids[c] = kit_run_client(&options[c]);
    }
    for (size_t c = 0; c < 2; c++) {
        kit_await(paths[c], "done", NULL, NULL, 10);
    }
    size_t sum = 0;
    for (size_t c = 0; c < 2; c++) {
        expect_clean(kit_end(pids[c]));
        struct reading r = read_client(paths[c], (int64_t)c + 1, settings.ttl_ms, false);
        assert_int_equal(r.refused, 0);
        assert_true(r.fenced >= (int64_t)r.acquired - 1 && r.fenced > 0); /* the end may cut one */
        sum += r.dones[0];
    }
    assert_int_equal(kit_counter(0), sum);
    check_receipts(paths);
}

/* A resource that has seen a higher token than any future one. */
KIT_TEST(a_resource_refuses_old_tokens) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    struct chaos_client_options options = kit_client(0, &settings, path);
    settings.protection.fencing = true;
    options.resource_count = 1;
    int fd = open(kit_counters_path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    static const unsigned char most[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    assert_int_equal(pwrite(fd, most, sizeof most, (off_t)CHAOS_RESOURCES_MAX * 8), sizeof most);
    close(fd);
    pid_t pid = kit_run_client(&options);
    kit_await(path, "refused", "what", "read", 5);
    expect_clean(kit_end(pid));
    struct reading r = read_client(path, 1, settings.ttl_ms, false);
    assert_true(r.refused >= 5);
    assert_int_equal(r.dones[0], 0);
    assert_int_equal(kit_counter(0), 0);
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
