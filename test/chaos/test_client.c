/* A client process: what it writes down while nodes pause, and however it ends. */
#include "client_reading.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(a_client_alone) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    struct chaos_client_options options = kit_client(0, &settings, path);
    pid_t pid = kit_run_client(&options);
    support_pause_ms(2000);
    kit_await(path, "done", NULL, NULL, 30);
    expect_clean(kit_end(pid));
    struct reading r = read_client(path, 1, settings.ttl_ms, false);
    size_t sum = 0;
    for (size_t i = 0; i < KIT_RESOURCES; i++) {
        assert_int_equal(kit_counter(i), r.dones[i]);
        assert_true(r.dones[i] > 0);
        sum += r.dones[i];
    }
    /* Nothing disturbs it, so it increments whenever it acquires. */
    assert_int_equal(sum, r.acquired);
    assert_int_equal(r.lost, 0);
    assert_true(servers_wait_without_key(&kit_servers, NULL, KIT_TIMEOUT_MS));
}

/* The same seed makes the same choices: the same resources in order. */
KIT_TEST(a_seed_repeats_its_choices) {
    const char *paths[] = {kit_path("one.jsonl"), kit_path("two.jsonl"), kit_path("other.jsonl")};
    struct chaos_settings settings = kit_settings();
    int64_t chosen[3][20];
    for (size_t run = 0; run < 3; run++) {
        struct chaos_client_options options = kit_client(0, &settings, paths[run]);
        options.seed += run / 2;
        pid_t pid = kit_run_client(&options);
        kit_await(paths[run], "invoke", "what", "acquire", 20);
        expect_clean(kit_end(pid));
        json_t *events = kit_events(paths[run]), *event;
        size_t index, count = 0;
        json_array_foreach(events, index, event) {
            if (count < 20 && kit_is(event, "invoke") && strcmp(kit_string(event, "what"), "acquire") == 0) {
                chosen[run][count++] = kit_number(event, "resource");
            }
        }
        json_decref(events);
    }
    assert_memory_equal(chosen[0], chosen[1], sizeof chosen[0]);
    assert_memory_not_equal(chosen[0], chosen[2], sizeof chosen[0]);
}

/* Whether a lease of one file has a time in common with a lease of the other. */
static bool held_together(const char *one, const char *other) {
    json_t *both[2] = {kit_events(one), kit_events(other)}, *event;
    int64_t from_us[2] = {0, 0}, to_us[2] = {0, 0};
    size_t next[2] = {0, 0};
    bool together = false;
    while (!together && next[0] < json_array_size(both[0]) && next[1] < json_array_size(both[1])) {
        /* The next lease of that file whose lease ends first. */
        size_t f = to_us[0] <= to_us[1] ? 0 : 1;
        for (bool ended = false; !ended && (event = json_array_get(both[f], next[f])) != NULL; next[f]++) {
            ended = kit_is(event, "end");
            from_us[f] = kit_is(event, "complete") ? kit_number(event, "t") : from_us[f];
            to_us[f] = ended ? kit_number(event, "t") : to_us[f];
        }
        together = from_us[0] < to_us[1] && from_us[1] < to_us[0];
    }
    json_decref(both[0]);
    json_decref(both[1]);
    return together;
}

/* Two who read have the lock together, and the third one writes. */
KIT_TEST(clients_that_read) {
    const char *const paths[] = {kit_path("client-1.jsonl"), kit_path("client-2.jsonl"), kit_path("client-3.jsonl")};
    struct chaos_settings settings = kit_settings();
    struct chaos_client_options options[3];
    pid_t pids[3];
    settings.readers = 67;
    settings.hold_ms = 60;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chaos_settings_reads(&settings, i), i != 0);
        options[i] = kit_client(i, &settings, paths[i]);
        options[i].resource_count = 1;
        pids[i] = kit_run_client(&options[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        kit_await(paths[i], "end", NULL, NULL, 20);
    }
    for (size_t i = 0; i < 3; i++) {
        expect_clean(kit_end(pids[i]));
        struct reading r = read_client(paths[i], (int64_t)i + 1, settings.ttl_ms, false);
        assert_int_equal(r.dones[0], i == 0 ? r.acquired : 0);
        assert_int_equal(r.reads, i == 0 ? 0 : 2 * r.acquired);
    }
    assert_true(held_together(paths[1], paths[2]));
    assert_false(held_together(paths[0], paths[1]) || held_together(paths[0], paths[2]));
    assert_true(servers_wait_without_key(&kit_servers, NULL, KIT_TIMEOUT_MS));
}

/* Long holds that renew. The client claims a renewal when it comes, not when the old claim ends. */
KIT_TEST(renewals_are_claimed) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    settings.hold_ms = 60000;
    settings.ttl_ms = 3000;
    struct chaos_client_options options = kit_client(0, &settings, path);
    pid_t pid = kit_run_client(&options);
    /* Half of the leases renew. The others are lost after one ttl, unless this machine hangs for as
     * long. */
    kit_await(path, "claim", NULL, NULL, 6);
    expect_clean(kit_end(pid));
    struct reading r = read_client(path, 1, settings.ttl_ms, false);
    assert_true(r.most_claims >= 2);
    json_t *events = kit_events(path), *event;
    size_t index;
    int64_t last_us = 0, until_us = 0;
    size_t early = 0;
    char token[64] = "";
    json_array_foreach(events, index, event) {
        if (kit_is(event, "claim")) {
            /* Renewals are a third of the ttl apart, less a tenth of that at most. */
            int64_t now_us = kit_number(event, "t");
            bool again = strcmp(token, kit_string(event, "token")) == 0;
            assert_true(!again || now_us - last_us >= 800000);
            early += again && until_us - now_us >= 100000;
            snprintf(token, sizeof token, "%s", kit_string(event, "token"));
            last_us = now_us;
            until_us = kit_number(event, "until");
        }
    }
    json_decref(events);
    assert_true(early > 0);
}

KIT_TEST(an_end_cuts_a_long_wait) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    settings.wait_ms = 10 * KIT_TIMEOUT_MS;
    struct chaos_client_options options = kit_client(0, &settings, path);
    for (size_t n = 0; n < KIT_NODES; n++) {
        for (size_t i = 0; i < KIT_RESOURCES; i++) {
            assert_string_equal(server_ask(&kit_servers.at[n], "SET", kit_resources[i], "another's"), "OK");
        }
    }
    pid_t pid = kit_run_client(&options);
    kit_await(path, "invoke", NULL, NULL, 1);
    expect_clean(kit_end(pid));
    struct reading r = read_client(path, 1, settings.ttl_ms, false);
    assert_int_equal(r.acquired, 0);
    assert_int_equal(kit_count(path, "invoke", NULL, NULL), 1);
    assert_int_equal(kit_count(path, "complete", "result", "CANCELLED"), 1);
    for (size_t n = 0; n < KIT_NODES; n++) {
        assert_int_equal(server_key_count(&kit_servers.at[n]), KIT_RESOURCES);
    }
}

/* The end may come between two operations, during one, and during the start. */
KIT_TEST(an_end_is_clean_at_any_moment) {
    struct chaos_settings settings = kit_settings();
    settings.hold_ms = 2;
    size_t dones[KIT_RESOURCES] = {0};
    for (int round = 0; round < 60; round++) {
        char name[32];
        snprintf(name, sizeof name, "round-%d.jsonl", round);
        const char *path = kit_path(name);
        struct chaos_client_options options = kit_client(0, &settings, path);
        options.seed = (uint64_t)round;
        pid_t pid = kit_run_client(&options);
        kit_await(path, "invoke", NULL, NULL, (size_t)(1 + round % 5));
        expect_clean(kit_end(pid));
        struct reading r = read_client(path, 1, settings.ttl_ms, false);
        for (size_t i = 0; i < KIT_RESOURCES; i++) {
            dones[i] += r.dones[i];
            assert_int_equal(kit_counter(i), dones[i]);
        }
    }
    assert_true(servers_wait_without_key(&kit_servers, NULL, KIT_TIMEOUT_MS));
}

KIT_TEST(a_client_that_is_killed_leaves_whole_lines) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    settings.hold_ms = 1;
    settings.think_ms = 2;
    struct chaos_client_options options = kit_client(0, &settings, path);
    for (int round = 0; round < 20; round++) {
        options.seed = (uint64_t)round;
        servers_reset(&kit_servers); /* removes the locks of the killed client */
        size_t before = kit_count(path, "invoke", NULL, NULL);
        pid_t pid = kit_run_client(&options);
        kit_await(path, "invoke", NULL, NULL, before + 1 + (size_t)round);
        assert_int_equal(kill(pid, SIGKILL), 0);
        int status = kit_wait(pid);
        assert_true(WIFSIGNALED(status));
        json_decref(kit_events(path)); /* fails on half a line */
    }
    /* Each `done` is one written count. For an `intent` without `done`, the client was killed
     * between, so the count may be written. */
    size_t dones = kit_count(path, "done", NULL, NULL), intents = kit_count(path, "intent", NULL, NULL);
    int64_t sum = kit_counter(0) + kit_counter(1) + kit_counter(2);
    assert_in_range(sum, dones, intents);
}

static int run_without_words(const void *options) {
    (void)!freopen(kit_path("stderr"), "w", stderr);
    return chaos_client_run(options);
}

static void expect_broken(const struct chaos_client_options *options, const char *sentence) {
    pid_t pid = kit_run(run_without_words, options);
    int status = kit_wait(pid);
    char *words = support_read_file(kit_path("stderr"));
    assert_non_null(words);
    assert_contains(words, sentence);
    assert_contains(words, "redlock-chaos: client 1: ");
    free(words);
    assert_exited(status, 70);
}

KIT_TEST(what_breaks_is_told) {
    const char *path = kit_path("client-1.jsonl");
    struct chaos_settings settings = kit_settings();
    static const char *const bad[] = {"http://nowhere"};
    struct chaos_client_options options = kit_client(0, &settings, path);
    options.counters_path = kit_path("not-there");
    expect_broken(&options, "not-there: No such file");
    options.counters_path = kit_path("short");
    support_write_file(options.counters_path, "1234");
    expect_broken(&options, "short: No data");
    options = kit_client(0, &settings, kit_path("not-there/log"));
    expect_broken(&options, "not-there/log: No such file");
    options = kit_client(0, &settings, path);
    options.nodes = bad;
    options.node_count = 1;
    expect_broken(&options, "scheme of a node URI");
    /* The library refuses these settings, so the client cannot have them. */
    settings.ttl_ms = 0;
    options = kit_client(0, &settings, path);
    expect_broken(&options, "INVALID");
}
