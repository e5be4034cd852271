/* Nodes that answer what no Redis answers: no crash, no leak, no vote; the others decide (R20). */
#include <sys/resource.h>

#include "world.h"

#define HOSTILE_TIMEOUT_MS 250
/* The gigabyte bulk would show; ASan keeps 256 MiB of freed memory. */
#define MEMORY_GROWTH_KIB (512 * 1024)

struct hostile_case {
    const char *name;
    struct fake_script script;
};

/* clang-format off */
#define SAY(text) .bytes = (text), .size = sizeof(text) - 1
#define TAIL(text) .for_ever = true, .tail = (text), .tail_size = sizeof(text) - 1

/* None of these is a grant: neither +OK to a SET nor :1 to a script. */
static const struct hostile_case cases[] = {
    {"garbage", {SAY("?!garbage\r\n")}},
    {"a web server", {SAY("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), .end = FAKE_FIN}},
    {"zeros", {SAY("\0\0\0\0\0\0\0\0\r\n")}},
    {"half a status", {SAY("+O")}},
    {"half a status, then the end", {SAY("+O"), .end = FAKE_FIN}},
    {"half a status, then a reset", {SAY("+OK\r"), .end = FAKE_RST}},
    {"nothing", {.bytes = NULL}},
    {"the end at once", {.end = FAKE_FIN}},
    {"a reset at once", {.end = FAKE_RST}},
    {"half a bulk", {SAY("$100\r\nabc"), .end = FAKE_FIN}},
    {"a gigabyte bulk", {SAY("$1073741824\r\n"), .for_ever = true}},
    {"a bulk without end after a good size", {SAY("$536870912\r\n"), .for_ever = true}},
    {"a bulk of too large a size", {SAY("$99999999999999999999\r\nx\r\n")}},
    {"a bulk of a negative size", {SAY("$-7\r\n")}},
    {"a status without end", {SAY("+"), .for_ever = true}},
    {"an error without end", {SAY("-"), .for_ever = true}},
    {"an integer without end", {SAY(":1"), TAIL("0000000000000000")}},
    {"an integer too large", {SAY(":99999999999999999999999\r\n")}},
    {"an integer that is none", {SAY(":one\r\n")}},
    {"nested arrays without end", {SAY("*1\r\n"), TAIL("*1\r\n")}},
    {"deeply nested arrays", {SAY("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n")}},
    {"a grant in an array", {SAY("*1\r\n+OK\r\n")}},
    {"two grants in an array", {SAY("*2\r\n+OK\r\n:1\r\n")}},
    {"an endless array", {SAY("*2147483647\r\n"), TAIL(":1\r\n")}},
    {"an array too large", {SAY("*9999999999\r\n:1\r\n")}},
    {"an array of a negative size", {SAY("*-5\r\n")}},
    {"an empty array", {SAY("*0\r\n")}},
    {"no array", {SAY("*-1\r\n")}},
    {"an integer of another value", {SAY(":5\r\n")}},
    {"a grant as a bulk", {SAY("$2\r\nOK\r\n")}},
    {"a grant in lower case", {SAY("+ok\r\n")}},
    {"a longer grant", {SAY("+OKAY\r\n")}},
    {"QUEUED", {SAY("+QUEUED\r\n")}},
    {"an error", {SAY("-ERR no\r\n")}},
    {"an error without a text", {SAY("-\r\n")}},
    {"an error with control characters", {SAY("-ERR \x1b[31mred\x07\x01\xff\r\n")}},
    {"MOVED", {SAY("-MOVED 1234 127.0.0.1:1\r\n")}},
    {"NOSCRIPT for everything", {SAY("-NOSCRIPT No matching script.\r\n")}},
    {"a flood of integers", {SAY(":5\r\n"), TAIL(":5\r\n")}},
    {"a flood of errors", {SAY("-ERR no\r\n"), TAIL("-ERR no\r\n")}},
    {"RESP3: a map", {SAY("%1\r\n+OK\r\n:1\r\n")}},
    {"RESP3: a push", {SAY(">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n")}},
    {"RESP3: null, true, a double", {SAY("_\r\n#t\r\n,1\r\n")}},
    {"only line ends", {SAY("\r\n\r\n\r\n")}},
};
/* clang-format on */

/* Never a whole reply and never an error: only a timeout ends the wait for these. */
static bool is_silent(const struct hostile_case *hostile) {
    return !hostile->script.for_ever && hostile->script.end == FAKE_KEEP_OPEN &&
           (!hostile->script.bytes || strcmp(hostile->script.bytes, "+O") == 0);
}

static long peak_memory_kib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* `hostile` of five nodes are hostile. Does not wait for connections, because a silent handshake
 * takes its whole timeout. */
static redlock_manager *among(size_t hostile, const struct fake_script *script, struct fake_server **fakes,
                              int64_t timeout_ms) {
    const char *uris[5];
    for (size_t i = 0; i < 5; i++) {
        if (i < hostile) {
            fakes[i] = fake_server_start(script);
        }
        uris[i] = i < hostile ? fake_server_uri(fakes[i]) : world_servers.uris[i - hostile];
    }
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = uris;
    options.node_count = 5;
    options.node_timeout_ms = options.connect_timeout_ms = timeout_ms;
    return world_manager_at_once(&options);
}

static bool both_have_answered(void *data) {
    struct fake_server **fakes = data;
    return fake_server_hostile_answers(fakes[0]) > 0 && fake_server_hostile_answers(fakes[1]) > 0;
}

static void no_vote_of_a_hostile_node_counts(const struct outcome *outcome, size_t hostile, const char *name) {
    for (size_t i = 0; i < hostile; i++) {
        if (outcome_vote(outcome, i) == REDLOCK_VOTE_GRANTED) {
            fail_msg("%s: counted as GRANTED", name);
        }
    }
    for (const char *c = outcome->message; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            fail_msg("%s: a control character in the message: %s", name, outcome->message);
        }
    }
}

/* Two hostile nodes of five change nothing. */
static void try_two(const struct hostile_case *hostile, const struct fake_script *script) {
    struct fake_server *fakes[5];
    struct outcome outcome = {0};
    redlock_manager *manager = among(2, script, fakes, is_silent(hostile) ? 1000 : PATIENT_MS);
    for (int i = 0; i < 2; i++) {
        if (drive_acquire(world_loop, manager, "prey", NULL, &outcome) != REDLOCK_OK) {
            fail_msg("%s: acquire: %s", hostile->name, outcome.message);
        }
        redlock_lease *lease = outcome.lease;
        no_vote_of_a_hostile_node_counts(&outcome, 2, hostile->name);
        if (drive_extend(world_loop, lease, 20000, &outcome) != REDLOCK_OK) {
            fail_msg("%s: extend: %s", hostile->name, outcome.message);
        }
        no_vote_of_a_hostile_node_counts(&outcome, 2, hostile->name);
        if (drive_release(world_loop, lease, &outcome) != REDLOCK_OK) {
            fail_msg("%s: release: %s", hostile->name, outcome.message);
        }
        no_vote_of_a_hostile_node_counts(&outcome, 2, hostile->name);
    }
    assert_true(drive_until(world_loop, both_have_answered, fakes, DRIVE_TIMEOUT_MS));
    drive_for(world_loop, 5);
    if (!is_silent(hostile) && drive_inspect(world_loop, manager, "prey", &outcome) != REDLOCK_OK) {
        fail_msg("%s: inspect: %s", hostile->name, outcome.message);
    }
    if (!is_silent(hostile)) {
        no_vote_of_a_hostile_node_counts(&outcome, 2, hostile->name);
    }
    world_close(manager);
    outcome_clear(&outcome);
    for (size_t i = 0; i < 2; i++) {
        assert_true(fake_server_connections(fakes[i]) > 0);
        fake_server_stop(fakes[i]);
    }
}

/* Three of five make every attempt fail, and no key stays on the other two. */
static void try_three(const struct hostile_case *hostile, const struct fake_script *script) {
    struct fake_server *fakes[5];
    struct outcome outcome = {0};
    redlock_manager *manager = among(3, script, fakes, HOSTILE_TIMEOUT_MS);
    int code = drive_acquire(world_loop, manager, "prey", NULL, &outcome);
    if (code != REDLOCK_ERR_NO_QUORUM && code != REDLOCK_ERR_CONTENDED) {
        fail_msg("%s: acquire: %s", hostile->name, outcome.message);
    }
    no_vote_of_a_hostile_node_counts(&outcome, 3, hostile->name);
    assert_true(world_wait_without_key("prey", DRIVE_TIMEOUT_MS));
    world_close(manager);
    outcome_clear(&outcome);
    for (size_t i = 0; i < 3; i++) {
        fake_server_stop(fakes[i]);
    }
}

static void hostile_nodes(bool behave_in_handshake) {
    long before_kib = peak_memory_kib();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake_script script = cases[i].script;
        script.behave_in_handshake = behave_in_handshake;
        try_two(&cases[i], &script);
        try_three(&cases[i], &script);
    }
    assert_true(peak_memory_kib() - before_kib < MEMORY_GROWTH_KIB);
}

TESTS_WITH(world_five, world_end);

WORLD_TEST(hostile_from_the_first_byte) {
    hostile_nodes(false);
}

WORLD_TEST(hostile_after_a_good_handshake) {
    hostile_nodes(true);
}

/* Answers before any request, also some that look like grants of later requests. */
WORLD_TEST(answers_that_nobody_asked_for) {
    static const struct hostile_case greetings[] = {
        {"a greeting", {SAY("220 mail.example ESMTP\r\n")}},
        {"grants beforehand", {SAY("+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n")}},
        {"ones beforehand", {SAY(":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n")}},
        {"a flood beforehand", {SAY(""), TAIL("+OK\r\n")}},
    };
    for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
        struct fake_script script = greetings[i].script;
        script.greet = true;
        try_two(&greetings[i], &script);
        try_three(&greetings[i], &script);
    }
}

struct cut_walk {
    struct proxy *proxy;
    const char *uris[3];
    enum proxy_way way;
    long long handshake, whole; /* bytes in that direction */
};

static void begin_walk(struct cut_walk *walk, enum proxy_way way) {
    walk->way = way;
    walk->proxy = world_proxy(world_servers.at[0].port);
    walk->uris[0] = proxy_uri(walk->proxy);
    for (size_t i = 1; i < 3; i++) {
        walk->uris[i] = world_servers.uris[i];
    }
    redlock_manager *manager = world_manager(walk->uris, 3, PATIENT_MS);
    walk->handshake = proxy_bytes(walk->proxy, way);
    redlock_lease *lease = world_acquire(manager, "cut", 600000);
    assert_true(world_wait_with_key("cut", 3, DRIVE_TIMEOUT_MS));
    world_release_all(lease, "cut");
    world_close(manager);
    walk->whole = proxy_bytes(walk->proxy, way);
    assert_true(walk->handshake > 0 && walk->whole > walk->handshake);
}

/* The connection ends after `bytes`. The other two nodes decide, and when the network works again
 * no key is left. */
static void cut_at(struct cut_walk *walk, long long bytes) {
    struct outcome outcome = {0};
    proxy_cut_after(walk->proxy, walk->way, bytes, bytes % 2 ? PROXY_RST : PROXY_FIN);
    redlock_manager *manager = world_manager(walk->uris, 3, PATIENT_MS);
    if (drive_acquire(world_loop, manager, "cut", TIMES(600000, 0), &outcome) != REDLOCK_OK) {
        fail_msg("cut at byte %lld: acquire: %s", bytes, outcome.message);
    }
    if (drive_release(world_loop, outcome.lease, &outcome) != REDLOCK_OK) {
        fail_msg("cut at byte %lld: release: %s", bytes, outcome.message);
    }
    proxy_cut_after(walk->proxy, walk->way, -1, PROXY_FIN);
    if (!world_wait_without_key("cut", DRIVE_TIMEOUT_MS)) {
        fail_msg("cut at byte %lld: the key stays", bytes);
    }
    world_close(manager);
    outcome_clear(&outcome);
}

static void walk_cuts(enum proxy_way way) {
    struct cut_walk walk;
    begin_walk(&walk, way);
    /* Every byte of the requests of the lock, and a sample of the handshake, because INFO is
     * long. */
    long long step = walk.handshake / 60 + 1;
    for (long long bytes = 0; bytes < walk.handshake - 20; bytes += step) {
        cut_at(&walk, bytes);
    }
    for (long long bytes = walk.handshake - 20; bytes <= walk.whole + 20; bytes++) {
        cut_at(&walk, bytes);
    }
}

WORLD_TEST(the_connection_ends_at_any_byte_of_the_replies) {
    walk_cuts(PROXY_REPLIES);
}

WORLD_TEST(the_connection_ends_at_any_byte_of_the_requests) {
    walk_cuts(PROXY_REQUESTS);
}

/* A text of a node that contains the password of its URI is not shown, whether it comes with a vote
 * or in the handshake. */
WORLD_TEST(a_vote_that_quotes_the_password_is_not_shown) {
    static const struct fake_script quoting = {.behave_in_handshake = true, SAY("-ERR no geheim, no lock\r\n")};
    char uri[96];
    (void)snprintf(uri, sizeof uri, "redis://:%%67eheim@%s", fake_server_name(world_fake(&quoting)));
    redlock_manager *manager = world_manager((const char *[]){uri}, 1, PATIENT_MS);
    assert_is(drive_acquire(world_loop, manager, "door", TIMES(60000, 0), outcome), REDLOCK_ERR_NO_QUORUM);
    assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_FAILED);
    assert_string_equal(outcome_vote_error(outcome, 0), "an error that quotes the password");
    assert_lacks(outcome->message, "geheim");
    assert_lacks(world_log.text, "geheim");
}
