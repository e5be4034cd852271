/* The fake node compared with a real redis-server: the same stream of commands must get the same
 * answers. */
#include "conformance_kit.h"
#include "core/fence.h"
#include "random.h"
#include "wire/channel.h"
#include "wire/script.h"
#include "wire/wire.h"

#define COMMANDS 7000
#define SEED     UINT64_C(20260)
#define WAIT_MS  20000

static struct sim_random rng;

static const char *const keys[] = {"r1", "r2", "a list", "r3"};
static const char *const counters[] = {"r1:fence", "r2:fence", "a list:fence", "r3:fence"};
static const char *const queues[] = {"r1:wait", "r2:wait", "a list:wait", "r3:wait"};
static const char *const waiters[] = {"r1:waiter", "r2:waiter", "a list:waiter", "r3:waiter"};
/* No more of them: in a line of nine, the time decides who is looked at. The last ones read. */
static const char *const tokens[] = {"0123456789abcdef0123456789abcdef",
                                     "t",
                                     "00000000000000aa0123456789abcdef0123456789abcdef",
                                     "g123456789abcdef0123456789abcdef",
                                     "v123456789abcdef0123456789abcdef",
                                     "00000000000000aa0123456789abcdef0123456789abcdecs",
                                     "00000000000000ab0123456789abcdef0123456789abcdefs",
                                     "g123456789abcdef0123456789abcdefs",
                                     "00000000000000ab0123456789abcdef0123456789abcdefp"};
#define READING 5
#define TOKENS  (sizeof tokens / sizeof *tokens)

static const char *pick(const char *const *words, unsigned count) {
    return words[sim_random_below(&rng, count)];
}

/* Of now, alike for a while; hours away, on either side of what a node stores; the least and the
 * most. */
static uint64_t pick_fence(void) {
    const uint64_t now = (uint64_t)(clock_us() / 10000000) * UINT64_C(10000000000);
    const uint64_t hour = UINT64_C(3600000000000);
    const uint64_t numbers[] = {now,
                                now + 1,
                                now + 2,
                                now + 2 * hour,
                                now - 2 * hour,
                                now + 22 * hour,
                                now + 26 * hour,
                                now + 62 * hour,
                                now + 66 * hour,
                                1,
                                REDLOCK_FENCE_MAX};
    return numbers[sim_random_below(&rng, sim_random_percent(&rng, 80) ? 5 : 11)];
}

/* Nobody leaves the lock of an election free. The longest counts as over: a shorter time would end
 * between the two answers. test_scripts_queue has those. */
static enum redlock_handing pick_handing(bool announced) {
    static const unsigned kinds[] = {REDLOCK_HAND_OVER, REDLOCK_HAND_OVER, REDLOCK_HAND_OVER, REDLOCK_HAND_NOBODY,
                                     TTL_LEAST_MS};
    return (enum redlock_handing)kinds[sim_random_below(&rng, announced ? 4 : 5)];
}

/* What the library itself sends. */
static void ask_as(enum redlock_operation operation, const char *key) {
    static const char suffix[] = ":fence";
    const struct redlock_fence_keys fences = {
        .suffix = suffix, .suffix_size = sizeof suffix - 1, .expiry_ms = sim_random_percent(&rng, 50) ? 0 : 10800000};
    const bool reads = sim_random_percent(&rng, 40);
    const char *token =
        reads ? pick(tokens + READING, TOKENS - READING) : pick(tokens, sim_random_percent(&rng, 85) ? 3 : READING);
    const bool stale = sim_random_percent(&rng, 20); /* at once */
    const struct redlock_place place = {.ticket = sim_random_below(&rng, 3),
                                        .stale_ms = stale ? -1000 : 2 * TTL_LEAST_MS,
                                        .queue_ttl_ms = 3 * TTL_LEAST_MS,
                                        .channel = sim_random_percent(&rng, 70) ? HEARD : "redlock:nobody",
                                        .id = (uint32_t)sim_random_below(&rng, 1000),
                                        .takes = !stale && sim_random_percent(&rng, 50)};
    uint16_t room[64];
    struct redlock_target *target = redlock_target_make(room, "", 0, key, strlen(key));
    target->announced = place.id % 2 == 1;
    struct redlock_message message = {.operation = operation,
                                      .timed = sim_random_percent(&rng, 50),
                                      .fence_keys = &fences,
                                      .by_source = sim_random_percent(&rng, 30),
                                      .target = target,
                                      .token = token,
                                      .token_size = strlen(token),
                                      .wait_suffix = REDLOCK_WAIT_SUFFIX,
                                      .place = &place,
                                      .round = (uint32_t)sim_random_below(&rng, 1000),
                                      .handing = pick_handing(target->announced),
                                      .ttl_ms = sim_random_between(&rng, TTL_LEAST_MS, 4 * TTL_LEAST_MS)};
    message.shared = reads || sim_random_percent(&rng, 5); /* who was downgraded has such a token */
    message.by_try = !message.shared && token[0] >= 'g' && !target->announced && message.handing == REDLOCK_HAND_OVER;
    if (message.operation == REDLOCK_OP_FENCE || sim_random_percent(&rng, 60)) {
        message.fence = pick_fence();
        message.fence += reads ? 999 - message.fence % 1000 : 0;
    }
    message.fence = message.fence > REDLOCK_FENCE_MAX ? REDLOCK_FENCE_MAX : message.fence;
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    ask_both_bytes(bytes, redlock_wire_format(&message, bytes, &(unsigned){0}));
}

/* Of four slots of the lock; at this gate, if not NULL. */
static void ask_slots_as(enum redlock_operation operation, const char *key, const char *at) {
    const struct redlock_gate gate = {.token = at,
                                      .token_size = at == NULL ? 0 : strlen(at),
                                      .channel = sim_random_percent(&rng, 70) ? HEARD : "redlock:nobody",
                                      .id = (uint32_t)sim_random_below(&rng, 1000),
                                      .queue_ttl_ms = 3 * TTL_LEAST_MS};
    const char *token = pick(tokens, 3);
    uint16_t room[64];
    struct redlock_target *target = redlock_target_make(room, "", 0, key, strlen(key));
    redlock_target_add_slots(target, 1 + (unsigned)sim_random_below(&rng, 2), 4);
    struct redlock_slots *slots = redlock_target_slots(target);
    slots->first = (uint16_t)sim_random_below(&rng, 4);
    slots->window = (uint16_t)(2 + sim_random_below(&rng, 3));
    slots->taken = operation == REDLOCK_OP_EXTEND || operation == REDLOCK_OP_HEAL || sim_random_percent(&rng, 50);
    slots->others = sim_random_percent(&rng, 30);
    slots->numbers[0] = (uint16_t)sim_random_below(&rng, 4);
    slots->numbers[slots->permits - 1] = (uint16_t)sim_random_below(&rng, 4);
    const struct redlock_message message = {.operation = operation,
                                            .slots = true,
                                            .by_source = sim_random_percent(&rng, 30),
                                            .timed = sim_random_percent(&rng, 50),
                                            .target = target,
                                            .token = token,
                                            .token_size = strlen(token),
                                            .wait_suffix = REDLOCK_WAIT_SUFFIX,
                                            .ttl_ms = sim_random_between(&rng, TTL_LEAST_MS, 4 * TTL_LEAST_MS),
                                            .gate = at == NULL ? NULL : &gate};
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    ask_both_bytes(bytes, redlock_wire_format(&message, bytes, &(unsigned){0}));
}

static void ask_slots(void) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_ACQUIRE, REDLOCK_OP_EXTEND,
                                                        REDLOCK_OP_HEAL, REDLOCK_OP_RELEASE};
    ask_slots_as(operations[sim_random_below(&rng, 5)], pick(keys, 4), NULL);
}

/* Somebody stands there, takes some, and is told what gets free. */
static void ask_gate(void) {
    const char *key = pick(keys, 4), *at = sim_random_percent(&rng, 80) ? tokens[TOKENS - 1] : pick(tokens, TOKENS);
    ask_both("SET", key, at, "PX", "400000");
    for (unsigned i = 0; i < 10; i++) {
        const bool takes = sim_random_percent(&rng, 40);
        ask_slots_as(takes ? REDLOCK_OP_ACQUIRE : REDLOCK_OP_RELEASE, key,
                     takes && sim_random_percent(&rng, 60) ? at : NULL);
    }
}

static void ask_operation(void) {
    const unsigned count = REDLOCK_OP_WAIT - REDLOCK_OP_ACQUIRE + 1;
    ask_as((enum redlock_operation)(REDLOCK_OP_ACQUIRE + sim_random_below(&rng, count)), pick(keys, 4));
}

/* A line of waiters for one lock, who get it one after the other. */
static void ask_line(void) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_WAIT, REDLOCK_OP_WAIT, REDLOCK_OP_RELEASE};
    const char *key = pick(keys, 4);
    for (unsigned i = 0; i < 20; i++) {
        ask_as(operations[sim_random_below(&rng, 3)], key);
    }
}

/* Both expire the key by its ttl, each by its own clock. */
static void let_expire(const char *key) {
    char bytes[256], ours[CONFORMANCE_ANSWER_MAX];
    ask_both("PEXPIRE", key, "1");
    size_t size = format_argv(bytes, (const char *const[]){"PTTL", key, NULL});
    int64_t deadline = clock_ms() + WAIT_MS;
    bool real_gone = false, fake_gone = false;
    do {
        real_gone = server_pttl_ms(&servers.at[0], key) == -2;
        ask_fake(bytes, size, ours);
        fake_gone = strcmp(ours, "-2") == 0;
    } while (!(real_gone && fake_gone) && clock_ms() < deadline);
    assert_true(real_gone && fake_gone);
}

/* In place of a counter there is nothing, or something else for a while. */
static void ask_counter(const char *counter) {
    char far[REDLOCK_FENCE_DIGITS + 1] = "";
    redlock_fence_format((uint64_t)(clock_us() / 10000000 + 40 * 360) * UINT64_C(10000000000), far);
    const char *const values[] = {
        "t", "0123456789012345678x", "99999999999999999999", "09223372036854775807", "09223285636854775807", far};
    if (sim_random_percent(&rng, 50)) {
        ask_both(sim_random_percent(&rng, 50) ? "DEL" : "GET", counter);
        return;
    }
    ask_both("DEL", counter);
    if (sim_random_percent(&rng, 30)) {
        ask_both("RPUSH", counter, "x");
    } else {
        ask_both("SET", counter, pick(values, 6));
    }
    for (unsigned i = sim_random_below(&rng, 20); i > 0; i--) {
        ask_operation();
    }
    ask_both("DEL", counter);
}

/* In place of a queue or its waiters there is something else for a while, or a look at it. */
static void ask_queue(const char *queue) {
    switch (sim_random_below(&rng, 4)) {
    case 0:
        ask_both("PTTL", queue);
        break;
    case 1:
        ask_both("DEL", queue);
        break;
    case 2:
        ask_both("GET", queue);
        ask_both("RPUSH", queue, "x");
        break;
    default:
        ask_both("DEL", queue);
        ask_both("RPUSH", queue, "x");
        for (unsigned i = sim_random_below(&rng, 20); i > 0; i--) {
            ask_operation();
        }
        ask_both("DEL", queue);
    }
}

/* Commands that the library does not send but others may, and invalid commands. */
static void ask_other(void) {
    const char *key = pick(keys, 4);
    const struct redlock_script *script =
        redlock_script_get((enum redlock_script_id)sim_random_below(&rng, REDLOCK_SCRIPT_COUNT));
    switch (sim_random_below(&rng, 20)) {
    case 0:
        ask_both("GET", key);
        break;
    case 1:
        ask_both("PTTL", key);
        break;
    case 2:
        if (fake.deletes) {
            ask_both("DELIFEQ", key, tokens[pushes % READING]); /* draws nothing */
        }
        ask_both("DEL", key);
        break;
    case 3:
        ask_both("PEXPIRE", key, "400000");
        break;
    case 4:
        ask_both("RPUSH", "a list", "x");
        if (fake.mode == FAKE_NORMAL) {
            ask_both("DEL", "a list");
        }
        ask_both("RPUSH", "a list", "x");
        break;
    case 5:
        ask_both("SCRIPT", "FLUSH");
        break;
    case 6:
        ask_both("SCRIPT", "LOAD", script->source);
        break;
    case 7:
        ask_both("PING");
        break;
    case 8:
        ask_both("SET", key, pick(tokens, 3)); /* without a ttl */
        break;
    case 9:
        ask_both("SET", key, "t", "NX", "PX", "0");
        break;
    case 10:
        ask_both("SET", key, "t", "PX", "-5");
        break;
    case 11:
        ask_both("SET", key, "t", "PX", "soon");
        break;
    case 12:
        ask_both("SET", key, "t", "EVER");
        if (fake.names) {
            ask_both("SET", key, pick(tokens, 3), "NX", "PX", "600000", "GET");
        }
        break;
    case 13:
        ask_both("EVALSHA", "0123456789012345678901234567890123456789", "1", key);
        break;
    case 14:
        ask_both("PEXPIRE", key, "0");
        break;
    case 15:
        ask_both("TIME");
        break;
    case 16:
        ask_queue(pick(queues, 4));
        break;
    case 17:
        ask_queue(pick(waiters, 4));
        break;
    case 18:
        ask_counter(pick(counters, 4));
        break;
    default:
        if (fake.mode == FAKE_NORMAL && sim_random_percent(&rng, 30)) {
            ask_both("FLUSHALL");
        } else if (fake.mode == FAKE_NORMAL && sim_random_percent(&rng, 30)) {
            let_expire(key);
        }
    }
}

static void ask_stream(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (sim_random_percent(&rng, 60)) {
            ask_operation();
        } else if (sim_random_percent(&rng, 12)) {
            ask_slots();
        } else if (sim_random_percent(&rng, 3)) {
            ask_gate();
        } else if (sim_random_percent(&rng, 8)) {
            ask_line();
        } else {
            ask_other();
        }
    }
}

static void expect(const char *answer, const char *wanted) {
    assert_string_equal(answer, wanted);
}

static int begin(void **state);
static int end(void **state);
static int quiet(void **state);
static int reset(void **state);
TESTS_WITH(begin, end);
#define FRESH_TEST(name) TEST_WITH(name, reset, quiet)

FRESH_TEST(test_commands) {
    ask_stream(COMMANDS);
    assert_in_range(pushes, 100, COMMANDS); /* they were compared */
    assert_in_range(announcements, 100, COMMANDS);
}

FRESH_TEST(test_out_of_memory) {
    ask_stream(50);
    expect(server_ask(&servers.at[0], "CONFIG", "SET", "maxmemory", "1"), "OK");
    fake.mode = FAKE_OOM;
    ask_stream(500);
    expect(server_ask(&servers.at[0], "CONFIG", "SET", "maxmemory", "0"), "OK");
    fake.mode = FAKE_NORMAL;
    ask_stream(50);
}

FRESH_TEST(test_replica) {
    ask_stream(50);
    /* A replica of a primary that is down keeps and serves its keys. */
    expect(server_ask(&servers.at[0], "REPLICAOF", "127.0.0.1", "1"), "OK");
    fake.mode = FAKE_READONLY;
    ask_stream(500);
    expect(server_ask(&servers.at[0], "REPLICAOF", "NO", "ONE"), "OK");
    fake.mode = FAKE_NORMAL;
    ask_stream(50);
}

static bool poll_info(const char *wanted) {
    int64_t deadline = clock_ms() + WAIT_MS;
    do {
        if (strstr(server_ask(&servers.at[0], "INFO", "persistence"), wanted) != NULL) {
            return true;
        }
    } while (clock_ms() < deadline);
    return false;
}

FRESH_TEST(test_cannot_persist) {
    char directory[256];
    const char *answer = server_ask(&servers.at[0], "CONFIG", "GET", "dir");
    const char *line = strchr(answer, '\n');
    assert_non_null(line);
    snprintf(directory, sizeof directory, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
    ask_stream(50);
    expect(server_ask(&servers.at[0], "CONFIG", "SET", "save", "3600 1"), "OK");
    expect(server_ask(&servers.at[0], "CONFIG", "SET", "dir", "/proc"), "OK");
    (void)server_ask(&servers.at[0], "BGSAVE");
    assert_true(poll_info("rdb_last_bgsave_status:err"));
    fake.mode = FAKE_MISCONF;
    ask_stream(500);
    expect(server_ask(&servers.at[0], "CONFIG", "SET", "save", ""), "OK");
    expect(server_ask(&servers.at[0], "CONFIG", "SET", "dir", directory), "OK");
    fake.mode = FAKE_NORMAL;
    ask_stream(50);
}

/* A reload that takes some seconds and serves other connections between keys. */
FRESH_TEST(test_loading) {
    struct server *server = &servers.at[0];
    struct raw reloading;
    char value[2048], name[16];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "fill%d", i);
        expect(server_ask(server, "SET", name, value), "OK");
    }
    expect(server_ask(server, "CONFIG", "SET", "rdbcompression", "no"), "OK");
    expect(server_ask(server, "CONFIG", "SET", "loading-process-events-interval-bytes", "1024"), "OK");
    expect(server_ask(server, "CONFIG", "SET", "key-load-delay", "100000"), "OK");
    assert_true(raw_open_tcp(&reloading, "127.0.0.1", server->port));
    assert_true(raw_send(&reloading, "DEBUG", "RELOAD"));
    int64_t deadline = clock_ms() + WAIT_MS;
    while (strncmp(server_ask(server, "PING"), "-LOADING", 8) != 0) {
        assert_true(clock_ms() < deadline);
    }
    fake.mode = FAKE_LOADING;
    const struct redlock_script *release = redlock_script_get(REDLOCK_SCRIPT_RELEASE);
    ask_both("SET", "r1", "t", "NX", "PX", "400000");
    ask_both("EVALSHA", release->sha1, "1", "r1", "t");
    ask_both("EVAL", release->source, "1", "r1", "t");
    ask_both("GET", "r1");
    ask_both("PING");
    reloading.timeout_ms = WAIT_MS;
    expect(raw_read(&reloading), "OK");
    raw_close(&reloading);
    fake.mode = FAKE_NORMAL;
    expect(server_ask(server, "CONFIG", "SET", "key-load-delay", "0"), "OK");
    ask_stream(20);
}

static int begin(UNUSED void **state) {
    static const struct server_options options = {.config = "enable-protected-configs yes\nenable-debug-command yes\n"};
    servers_start(&servers, 1, &options);
    return raw_open_tcp(&listener, "127.0.0.1", servers.at[0].port) &&
                   strcmp(raw_ask(&listener, "SUBSCRIBE", HEARD), "subscribe\n" HEARD "\n1\n") == 0 &&
                   raw_open_tcp(&observer, "127.0.0.1", servers.at[0].port) &&
                   strncmp(raw_ask(&observer, "PSUBSCRIBE", REDLOCK_LEADER_CHANNEL "*"), "psubscribe\n", 11) == 0
               ? 0
               : -1;
}

static int reset(UNUSED void **state) {
    servers_reset(&servers);
    (void)server_ask(&servers.at[0], "SCRIPT", "FLUSH");
    memset(&fake, 0, sizeof fake);
    fake.publish = publish;
    fake.hears = hears;
    fake.names = strstr(server_ask(&servers.at[0], "SET", "x", "x", "NX", "GET"), "ERR") == NULL;
    (void)server_ask(&servers.at[0], "DEL", "x");
    fake.deletes = strstr(server_ask(&servers.at[0], "DELIFEQ"), "wrong number of arguments") != NULL;
    rng.state = SEED;
    return 0;
}

/* The real server pushed and announced nothing more than the fake. */
static int quiet(UNUSED void **state) {
    return strcmp(raw_ask(&listener, "PING"), "pong\n\n") || strcmp(raw_ask(&observer, "PING"), "pong\n\n");
}

static int end(UNUSED void **state) {
    raw_close(&listener);
    raw_close(&observer);
    servers_stop(&servers);
    return 0;
}
