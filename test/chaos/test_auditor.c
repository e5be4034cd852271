/* The auditor process: what it sees of nodes that answer, hang, die, or send nonsense. */
#include "client_kit.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/auditor.h"

static uint16_t ports[KIT_NODES];
static struct chaos_auditor_options options;
static const char *path;

static int run(const void *given) {
    return chaos_auditor_run(given);
}

/* A long timeout, so that the auditor misses no answer on a loaded machine. */
static pid_t start(int64_t timeout_ms) {
    path = kit_path("auditor.jsonl");
    for (size_t n = 0; n < KIT_NODES; n++) {
        ports[n] = (uint16_t)kit_servers.at[n].port;
    }
    options = (struct chaos_auditor_options){.ports = ports,
                                             .node_count = KIT_NODES,
                                             .resources = kit_resources,
                                             .resource_count = KIT_RESOURCES,
                                             .interval_ms = 50,
                                             .timeout_ms = timeout_ms,
                                             .log_path = path};
    return kit_run(run, &options);
}

static void end(pid_t pid) {
    int status = kit_end(pid);
    assert_exited(status, 0);
}

/* A sight as text: "-" without an answer, "" without a key, otherwise the token. Sets pttl_ms. */
static const char *sight(const json_t *event, size_t node, int64_t *pttl_ms) {
    const json_t *one = json_array_get(json_object_get(event, "nodes"), node);
    assert_non_null(one);
    if (json_is_null(one)) {
        return "-";
    }
    assert_int_equal(json_array_size(one), 2);
    assert_true(json_is_string(json_array_get(one, 0)) && json_is_integer(json_array_get(one, 1)));
    *pttl_ms = json_integer_value(json_array_get(one, 1));
    const char *token = json_string_value(json_array_get(one, 0));
    assert_true(strlen(token) <= 16);
    assert_true(token[0] != '\0' || *pttl_ms == 0);
    return token;
}

/* Returns whether some sweep since then saw this on this node. */
static bool saw(int64_t since_us, size_t resource, size_t node, const char *what, int64_t *pttl_ms) {
    int64_t pttl = 0;
    char *text = support_read_file(path);
    bool found = false;
    for (char *line = text, *end; line != NULL && !found && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_t *event = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_non_null(event);
        assert_true(kit_is(event, "keys"));
        found = kit_number(event, "t") >= since_us && kit_number(event, "resource") == (int64_t)resource + 1 &&
                strcmp(sight(event, node, &pttl), what) == 0;
        json_decref(event);
    }
    free(text);
    if (pttl_ms != NULL) {
        *pttl_ms = pttl;
    }
    return found;
}

static int64_t now_us(void) {
    return support_now_ns() / 1000;
}

/* Checks the complete log: sweeps in order, one event a resource, no other resources. */
static size_t check_log(const char *const *prefixes) {
    json_t *events = kit_events(path), *event;
    size_t index;
    int64_t last_us = 0;
    json_array_foreach(events, index, event) {
        int64_t t_us = kit_number(event, "t"), pttl;
        assert_true(kit_is(event, "keys"));
        assert_int_equal(kit_number(event, "resource"), index % KIT_RESOURCES + 1);
        assert_true(index % KIT_RESOURCES == 0 ? t_us > last_us : t_us == last_us);
        assert_true(kit_number(event, "to") >= t_us);
        assert_int_equal(json_array_size(json_object_get(event, "nodes")), KIT_NODES);
        last_us = t_us;
        for (size_t n = 0; n < KIT_NODES && prefixes != NULL; n++) {
            const char *seen = sight(event, n, &pttl), *prefix = prefixes[index % KIT_RESOURCES];
            if (seen[0] != '\0' && seen[0] != '-' && strncmp(seen, prefix, strlen(prefix)) != 0) {
                fail_msg("%s was seen at %s's place", seen, kit_resources[index % KIT_RESOURCES]);
            }
        }
    }
    size_t sweeps = json_array_size(events) / KIT_RESOURCES;
    json_decref(events);
    return sweeps;
}

TESTS_WITH(kit_start, kit_stop);

/* The queue of resource 2 at node 1: the ends of the tokens, by ticket. */
KIT_TEST(it_sees_who_waits) {
    server_ask(&kit_servers.at[0], "ZADD", "r2:wait", "7", "00000000000000070123456789abcdef", "5", "short");
    pid_t pid = start(5000);
    kit_await(path, "keys", NULL, NULL, (size_t)KIT_RESOURCES * 3);
    end(pid);
    server_ask(&kit_servers.at[0], "DEL", "r2:wait");
    json_t *events = kit_events(path), *event;
    size_t index, seen = 0;
    json_array_foreach(events, index, event) {
        const json_t *lines = json_object_get(event, "lines"), *line = json_array_get(lines, 0);
        assert_int_equal(json_array_size(lines), KIT_NODES);
        assert_int_equal(json_array_size(json_array_get(lines, 1)), 0);
        if (kit_number(event, "resource") != 2) {
            assert_int_equal(json_array_size(line), 0);
        } else if (json_array_size(line) > 0) {
            seen++;
            assert_int_equal(json_array_size(line), 2);
            assert_string_equal(json_string_value(json_array_get(line, 0)), "short");
            assert_string_equal(json_string_value(json_array_get(line, 1)), "0123456789abcdef");
        }
    }
    json_decref(events);
    assert_true(seen > 0);
}

/* Those who read resource 2 at node 1. One has ended; a set without a ttl is no lock that is
 * read. */
KIT_TEST(it_sees_who_reads) {
    struct server *server = &kit_servers.at[0];
    server_ask(server, "EVAL",
               "local now = redis.call('TIME')\nnow = now[1] * 1000\n"
               "redis.call('ZADD', 'r2', now + 50000, '0123456789abcdefs', now + 90000, 'other', now - 9, 'over')\n"
               "return redis.call('PEXPIRE', 'r2', 90000)",
               "0");
    server_ask(server, "ZADD", "r3", "5", "x");
    pid_t pid = start(5000);
    kit_await(path, "keys", NULL, NULL, (size_t)KIT_RESOURCES * 3);
    end(pid);
    json_t *events = kit_events(path), *event;
    size_t index, seen = 0;
    json_array_foreach(events, index, event) {
        const json_t *sight = json_array_get(json_object_get(event, "nodes"), 0);
        if (kit_number(event, "resource") == 2 && !json_is_null(sight)) {
            seen++;
            assert_int_equal(json_array_size(sight), 2);
            for (size_t i = 0; i < 2; i++) {
                const json_t *reader = json_array_get(sight, i);
                assert_string_equal(json_string_value(json_array_get(reader, 0)),
                                    i == 0 ? "123456789abcdefs" : "other");
                assert_in_range(json_integer_value(json_array_get(reader, 1)), i == 0 ? 30000 : 70000,
                                i == 0 ? 50000 : 90000);
            }
        } else if (kit_number(event, "resource") == 3 && !json_is_null(sight)) {
            assert_string_equal(json_string_value(json_array_get(sight, 0)), "(not a string)");
        }
    }
    json_decref(events);
    assert_true(seen > 0);
}

KIT_TEST(it_sees_who_has_which_key) {
    pid_t pid = start(5000);
    int64_t pttl_ms;
    kit_until(saw(0, 2, 4, "", NULL));
    server_ask(&kit_servers.at[0], "SET", "r1", "ticket0123456789abcdef", "PX", "60000");
    server_ask(&kit_servers.at[1], "SET", "r2", "short");
    kit_until(saw(0, 0, 0, "0123456789abcdef", &pttl_ms));
    assert_in_range(pttl_ms, 1, 60000);
    kit_until(saw(0, 1, 1, "short", &pttl_ms));
    assert_int_equal(pttl_ms, -1);
    int64_t since_us = now_us();
    server_ask(&kit_servers.at[0], "DEL", "r1");
    kit_until(saw(since_us, 0, 0, "", NULL));
    end(pid);
    check_log(NULL);
    assert_false(saw(0, 0, 1, "0123456789abcdef", NULL));
    assert_false(saw(0, 2, 0, "short", NULL));
}

/* The late answer of a paused node does not count as an answer to a later sweep. */
KIT_TEST(a_node_that_hangs_is_not_seen) {
    static const char *const prefixes[] = {"one", "two", "three"};
    struct server *server = &kit_servers.at[2];
    pid_t pid = start(40);
    for (int round = 0; round < 5; round++) {
        char values[KIT_RESOURCES][32];
        for (size_t i = 0; i < KIT_RESOURCES; i++) {
            snprintf(values[i], sizeof values[i], "%s-%d", prefixes[i], round);
            assert_string_equal(server_ask(server, "SET", kit_resources[i], values[i]), "OK");
        }
        int64_t set_us = now_us();
        kit_until(saw(set_us, 2, 2, values[2], NULL));
        server_pause(server);
        int64_t paused_us = now_us();
        kit_until(saw(paused_us, 0, 2, "-", NULL));
        kit_until(saw(paused_us, 0, 3, "", NULL)); /* the others answer as before */
        support_pause_ms(100);
        server_resume(server);
        server_ask(server, "DEL", "r1", "r2", "r3");
        int64_t deleted_us = now_us();
        kit_until(saw(deleted_us, 0, 2, "", NULL));
        assert_false(saw(deleted_us, 0, 2, values[0], NULL));
    }
    end(pid);
    check_log(prefixes);
}

KIT_TEST(a_node_that_dies_is_not_seen_until_it_is_back) {
    struct server *server = &kit_servers.at[0];
    pid_t pid = start(5000);
    for (int round = 0; round < 3; round++) {
        int64_t since_us = now_us();
        server_ask(server, "SET", "r1", "before");
        kit_until(saw(since_us, 0, 0, "before", NULL));
        server_kill(server);
        since_us = now_us();
        kit_until(saw(since_us, 0, 0, "-", NULL));
        kit_until(saw(since_us, 0, 1, "", NULL));
        server_restart(server);
        since_us = now_us();
        kit_until(saw(since_us, 0, 0, "", NULL));
        assert_false(saw(since_us, 0, 0, "before", NULL));
    }
    end(pid);
    check_log(NULL);
}

KIT_TEST(strange_values_break_nothing) {
    struct server *server = &kit_servers.at[0];
    pid_t pid = start(5000);
    int64_t pttl_ms;
    server_ask(server, "EVAL", "return redis.call('SET', KEYS[1], 'a\\0\"\\\\\\n\\255\\128b')", "1", "r1");
    server_ask(server, "RPUSH", "r2", "x");
    server_ask(server, "SET", "r3", "");
    kit_until(saw(0, 0, 0, "a?\"\\???b", &pttl_ms));
    assert_int_equal(pttl_ms, -1);
    kit_until(saw(0, 1, 0, "(not a string)", NULL));
    kit_until(saw(0, 2, 0, "(empty)", NULL));
    server_ask(server, "EVAL", "return redis.call('SET', KEYS[1], string.rep('x', 3000000))", "1", "r1");
    kit_until(saw(0, 0, 0, "xxxxxxxxxxxxxxxx", NULL));
    end(pid);
    check_log(NULL);
}

/* A node that only answers with errors has not answered: here a script keeps it busy. */
KIT_TEST(a_busy_node_is_not_seen) {
    struct server *server = &kit_servers.at[3];
    server_ask(server, "CONFIG", "SET", "busy-reply-threshold", "10");
    server_ask(server, "SET", "r1", "mine");
    pid_t pid = start(5000);
    kit_until(saw(0, 0, 3, "mine", NULL));
    struct raw raw;
    assert_true(raw_open_tcp(&raw, "127.0.0.1", server->port));
    raw_send(&raw, "EVAL", "while true do end", "0");
    int64_t since_us = now_us() + 200000;
    kit_until(saw(since_us, 0, 3, "-", NULL));
    assert_false(saw(since_us, 0, 3, "", NULL));
    server_ask(server, "SCRIPT", "KILL");
    since_us = now_us();
    kit_until(saw(since_us, 0, 3, "mine", NULL));
    raw_close(&raw);
    server_ask(server, "CONFIG", "SET", "busy-reply-threshold", "5000");
    end(pid);
}

static size_t descriptors(pid_t pid) {
    char command[64], number[32] = "";
    snprintf(command, sizeof command, "ls /proc/%d/fd | wc -l", (int)pid);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    assert_non_null(fgets(number, sizeof number, in));
    pclose(in);
    return (size_t)strtoul(number, NULL, 10);
}

/* Accepts a waiting connection if there is one, sends nonsense, and sometimes closes it. */
static void be_foolish(int listener, int round) {
    static const char *const nonsense[] = LIST("HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n:5\r\n",
                                               "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "$-5\r\n", "*3\r\n$1\r\n", "+OK\r\n");
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    const char *words = nonsense[(size_t)round % (sizeof nonsense / sizeof *nonsense)];
    (void)!send(fd, words, strlen(words), MSG_NOSIGNAL);
    support_pause_ms(60);
    close(fd);
}

KIT_TEST(a_stranger_at_the_port_breaks_nothing) {
    int port;
    server_ask(&kit_servers.at[0], "SET", "r1", "mine");
    int listener = support_listen(&port);
    int real = kit_servers.at[1].port;
    kit_servers.at[1].port = port;
    pid_t pid = start(40);
    kit_servers.at[1].port = real;
    kit_until(saw(0, 0, 0, "mine", NULL));
    size_t before = descriptors(pid);
    for (int round = 0; round < 18; round++) {
        be_foolish(listener, round); /* the next connection comes within 100 ms */
    }
    int64_t since_us = now_us();
    kit_until(saw(since_us, 0, 0, "mine", NULL));
    assert_true(descriptors(pid) <= before + 1);
    close(listener);
    end(pid);
    check_log(NULL);
    assert_false(saw(0, 0, 1, "mine", NULL));
}

/* 20 sweeps a second of 5 nodes cost next to nothing. The limit allows for a slow, loaded
 * machine. */
KIT_TEST(it_costs_little) {
    pid_t pid = start(5000);
    kit_await(path, "keys", NULL, NULL, (size_t)KIT_RESOURCES * 40);
    end(pid);
    size_t sweeps = check_log(NULL);
    int64_t used_us = (int64_t)(kit_usage.ru_utime.tv_sec + kit_usage.ru_stime.tv_sec) * 1000000 +
                      kit_usage.ru_utime.tv_usec + kit_usage.ru_stime.tv_usec;
    print_message("%zu sweeps, %lld us of processor time each\n", sweeps, (long long)used_us / (long long)sweeps);
    assert_true(used_us / (int64_t)sweeps < 10000);
}

KIT_TEST(a_log_that_cannot_be_written_is_told) {
    start(40);
    options.log_path = kit_path("not-there/log");
    int status = kit_wait(kit_run(run, &options));
    assert_exited(status, 70);
}
