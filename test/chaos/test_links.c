/* What a link does to bytes and ends: it passes, holds, delays and cuts them, in order and without
 * loss. */
#include "test.h"
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"

enum { NOTHING_MS = 60 };

#define HOLD_REQUESTS ((struct chaos_link_rule){.hold_requests = true})
#define HOLD_REPLIES  ((struct chaos_link_rule){.hold_replies = true})
#define HOLD_BOTH     ((struct chaos_link_rule){.hold_requests = true, .hold_replies = true})
#define DELAY(us)     ((struct chaos_link_rule){.delay_us = (us)})
#define CLEAR         ((struct chaos_link_rule){0})
#define MINUTE_US     INT64_C(60000000)

static int start(void **state) {
    struct ends *ends = calloc(1, sizeof *ends);
    assert_non_null(ends);
    ends_start(ends, 2, 2);
    *state = ends;
    return 0;
}

static int tear_down(void **state) {
    ends_stop(*state);
    free(*state);
    return 0;
}

#define FRESH_TEST(name) TEST_HAS(name, start, tear_down, NULL, (*state), UNUSED struct ends *ends)

FRESH_TEST(a_link_leads_from_its_client_to_its_node) {
    for (size_t c = 0; c < 2; c++) {
        for (size_t n = 0; n < 2; n++) {
            int near, far;
            ends_join(ends, c, n, &near, &far);
            ends_say(near, "request");
            ends_hear(far, "request");
            ends_say(far, "reply");
            ends_hear(near, "reply");
            ends_close(near);
            ends_hear_fin(far);
            ends_close(far);
        }
    }
}

static void fill(char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1103515245 + 12345;
        bytes[i] = (char)(seed >> 16);
    }
}

/* Sends at most `size` bytes, until the socket accepts no more. Returns how many. */
static size_t stuff(int fd, const char *bytes, size_t size) {
    size_t gone = 0;
    for (int idle = 0; idle < 20 && gone < size;) {
        ssize_t sent = send(fd, bytes + gone, size - gone, MSG_NOSIGNAL);
        gone += sent > 0 ? (size_t)sent : 0;
        idle = sent > 0 ? 0 : idle + 1;
        support_pause_ms(sent > 0 ? 0 : 5);
    }
    return gone;
}

/* `from` sends more than `to` reads, until it is blocked. Then everything arrives. */
static void check_much(int from, int to, unsigned seed) {
    enum { SIZE = 48 << 20 };
    char *sent = malloc(SIZE), *got = malloc(SIZE);
    assert_true(sent != NULL && got != NULL);
    fill(sent, SIZE, seed);
    size_t gone = stuff(from, sent, SIZE), came = 0;
    assert_true(gone > 1 << 20);
    assert_true(gone < SIZE);
    while (came < SIZE) {
        size_t part = SIZE - came < 1 << 16 ? SIZE - came : 1 << 16;
        size_t some = ends_take(to, got + came, came + part <= gone ? part : gone - came);
        assert_true(some > 0);
        came += some;
        if (gone < SIZE) {
            ssize_t more = send(from, sent + gone, SIZE - gone, MSG_NOSIGNAL);
            gone += more > 0 ? (size_t)more : 0;
        }
    }
    assert_int_equal(memcmp(sent, got, SIZE), 0);
    free(sent);
    free(got);
}

FRESH_TEST(a_reader_that_waits_stops_the_writer_and_loses_nothing) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    check_much(near, far, 1);
    check_much(far, near, 2);
    ends_close(far);
    ends_hear_fin(near);
    ends_close(near);
}

FRESH_TEST(held_bytes_are_bounded_and_complete) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, HOLD_BOTH);
    enum { SIZE = 32 << 20 };
    char *sent = malloc(SIZE), *got = malloc(SIZE);
    assert_true(sent != NULL && got != NULL);
    fill(sent, SIZE, 3);
    size_t gone = stuff(near, sent, SIZE);
    assert_true(gone > 1 << 20);
    assert_true(gone < SIZE);
    ends_hear_nothing(far, NOTHING_MS);
    ends_set(ends, 0, 0, CLEAR);
    assert_int_equal(ends_take(far, got, gone), gone);
    assert_int_equal(memcmp(sent, got, gone), 0);
    free(sent);
    free(got);
    ends_close(near);
    ends_hear_fin(far);
    ends_close(far);
}

FRESH_TEST(held_requests_wait_while_replies_pass) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, HOLD_REQUESTS);
    ends_say(near, "one ");
    ends_say(far, "reply");
    ends_hear(near, "reply");
    ends_say(near, "two");
    ends_hear_nothing(far, NOTHING_MS);
    ends_set(ends, 0, 0, CLEAR);
    ends_hear(far, "one two");
    ends_close_both(near, far);
}

FRESH_TEST(held_replies_wait_while_requests_pass) {
    int near, far;
    ends_set(ends, 1, 1, HOLD_REPLIES);
    /* The rule is for later connections too. Requests may open one. */
    ends_join(ends, 1, 1, &near, &far);
    ends_say(near, "request");
    ends_hear(far, "request");
    ends_say(far, "one ");
    ends_say(far, "two");
    ends_close(far);
    ends_hear_nothing(near, NOTHING_MS);
    ends_set(ends, 1, 1, CLEAR);
    ends_hear(near, "one two");
    ends_hear_fin(near);
    ends_close(near);
}

FRESH_TEST(a_hold_is_of_one_link_only) {
    ends_set(ends, 0, 0, HOLD_BOTH);
    for (size_t i = 1; i < 4; i++) {
        int near, far;
        ends_join(ends, i / 2, i % 2, &near, &far);
        ends_say(near, "request");
        ends_hear(far, "request");
        ends_close_both(near, far);
    }
}

FRESH_TEST(a_node_is_not_called_while_requests_are_held) {
    ends_set(ends, 0, 1, HOLD_BOTH);
    int near = ends_connect(ends->links.ports[0][1]);
    ends_say(near, "hello");
    assert_false(ends_is_called(ends->listeners[1], NOTHING_MS));
    ends_set(ends, 0, 1, CLEAR);
    int far = ends_accept(ends->listeners[1]);
    ends_hear(far, "hello");
    ends_close_both(near, far);
}

/* What a client sent before it died still arrives, followed by its end. */
static void check_dead_client(struct ends *ends, bool opened_before, bool reset) {
    int near, far = -1;
    if (opened_before) {
        ends_join(ends, 0, 0, &near, &far);
    }
    ends_set(ends, 0, 0, HOLD_BOTH);
    if (!opened_before) {
        near = ends_connect(ends->links.ports[0][0]);
    }
    ends_say(near, "SET a b");
    size_t files = ends_files(ends->links.proxy.pid);
    support_pause_ms(20); /* lets the proxy read it; unread bytes also stay safe in the kernel */
    if (reset) {
        ends_reset(near);
    } else {
        ends_close(near);
    }
    support_pause_ms(20);
    assert_true(ends_files(ends->links.proxy.pid) >= files - 1);
    ends_set(ends, 0, 0, CLEAR);
    if (!opened_before) {
        far = ends_accept(ends->listeners[0]);
    }
    ends_hear(far, "SET a b");
    if (reset) {
        ends_hear_reset(far);
    } else {
        ends_hear_fin(far);
    }
    ends_close(far);
}

FRESH_TEST(held_requests_of_a_dead_client_arrive) {
    check_dead_client(ends, true, false);
    check_dead_client(ends, true, true);
    check_dead_client(ends, false, false);
    check_dead_client(ends, false, true);
}

FRESH_TEST(a_client_that_said_nothing_leaves_nothing) {
    size_t files = ends_files(ends->links.proxy.pid);
    ends_set(ends, 0, 0, HOLD_BOTH);
    int near = ends_connect(ends->links.ports[0][0]);
    ends_wait_files(ends->links.proxy.pid, files + 1);
    ends_reset(near);
    ends_wait_files(ends->links.proxy.pid, files);
    ends_set(ends, 0, 0, CLEAR);
    assert_false(ends_is_called(ends->listeners[0], NOTHING_MS));
}

FRESH_TEST(a_delay_holds_for_each_way) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, DELAY(120000));
    int64_t from_ms = support_now_ms();
    ends_say(near, "request");
    ends_hear(far, "request");
    assert_true(support_now_ms() - from_ms >= 119);
    from_ms = support_now_ms();
    ends_say(far, "reply");
    ends_close(far);
    ends_hear(near, "reply");
    ends_hear_fin(near);
    assert_true(support_now_ms() - from_ms >= 119);
    ends_close(near);
}

FRESH_TEST(a_delay_that_ends_lets_go_what_waits_in_order) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, DELAY(60 * MINUTE_US));
    ends_say(near, "one ");
    ends_hear_nothing(far, NOTHING_MS);
    ends_say(near, "two ");
    ends_set(ends, 0, 0, CLEAR);
    ends_say(near, "three");
    ends_hear(far, "one two three");
    /* A waiting FIN. */
    ends_set(ends, 0, 0, DELAY(60 * MINUTE_US));
    ends_close(near);
    ends_hear_nothing(far, NOTHING_MS);
    ends_set(ends, 0, 0, DELAY(1000));
    ends_hear_fin(far);
    ends_close(far);
}

FRESH_TEST(jitter_never_changes_the_order) {
    enum { PIECES = 200 };
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, (struct chaos_link_rule){.delay_us = 20000, .jitter_us = 30000});
    int64_t from_ms = support_now_ms();
    unsigned char bytes[PIECES];
    for (int i = 0; i < PIECES; i++) {
        ends_send(near, &(unsigned char){(unsigned char)i}, 1);
        support_pause_ms(i % 16 == 0);
    }
    assert_int_equal(ends_take(far, (char *)bytes, PIECES), PIECES);
    assert_true(support_now_ms() - from_ms >= 19);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(bytes[i], i);
    }
    ends_close(near);
    ends_hear_fin(far);
    ends_close(far);
}

FRESH_TEST(a_bandwidth_is_shared_by_the_links_connections) {
    char bytes[6000];
    int near[2], far[2];
    ends_join(ends, 0, 0, &near[0], &far[0]);
    ends_join(ends, 0, 0, &near[1], &far[1]);
    ends_set(ends, 0, 0, (struct chaos_link_rule){.bytes_per_s = 20000});
    fill(bytes, sizeof bytes, 4);
    int64_t from_ms = support_now_ms();
    ends_send(near[0], bytes, sizeof bytes);
    ends_send(near[1], bytes, sizeof bytes);
    for (int i = 0; i < 2; i++) {
        char got[sizeof bytes];
        assert_int_equal(ends_take(far[i], got, sizeof got), sizeof got);
        assert_memory_equal(bytes, got, sizeof got);
    }
    assert_true(support_now_ms() - from_ms >= 599); /* 12,000 bytes at 20,000 a second */
    ends_set(ends, 0, 0, (struct chaos_link_rule){.bytes_per_s = 1});
    ends_say(near[0], "slow");
    ends_hear_nothing(far[0], NOTHING_MS);
    ends_set(ends, 0, 0, CLEAR);
    ends_hear(far[0], "slow");
    for (int i = 0; i < 2; i++) {
        ends_close_both(near[i], far[i]);
    }
}

FRESH_TEST(a_dead_node_refuses) {
    ends_close(ends->listeners[0]);
    int near = ends_connect(ends->links.ports[0][0]);
    ends_hear_reset(near);
    ends_close(near);
    /* A node's refusal counts as a reply, and the connect to it as a request. */
    ends_set(ends, 0, 0, HOLD_REPLIES);
    near = ends_connect(ends->links.ports[0][0]);
    ends_hear_nothing(near, NOTHING_MS);
    ends_set(ends, 0, 0, HOLD_REQUESTS);
    ends_hear_reset(near);
    ends_close(near);
    near = ends_connect(ends->links.ports[0][0]);
    ends_say(near, "request");
    ends_hear_nothing(near, NOTHING_MS);
    ends_set(ends, 0, 0, CLEAR);
    ends_hear_reset(near);
    ends_close(near);
    uint16_t port;
    ends->listeners[0] = ends_listen(&port); /* for the teardown */
}

FRESH_TEST(ends_follow_the_bytes) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, DELAY(60000));
    ends_say(far, "last words");
    ends_reset(far);
    ends_hear(near, "last words");
    ends_hear_reset(near);
    ends_close(near);
    ends_join(ends, 0, 0, &near, &far);
    ends_say(near, "last words");
    ends_reset(near);
    ends_hear(far, "last words");
    ends_hear_reset(far);
    ends_close(far);
}

/* The node reads slowly. The client's RST must not overtake bytes that the kernel has not sent
 * yet. */
FRESH_TEST(a_reset_throws_nothing_away) {
    enum { SIZE = 900000 };
    char *sent = malloc(SIZE), *got = malloc(SIZE);
    int near, far, small = 4096, waits = 1;
    assert_true(sent != NULL && got != NULL);
    fill(sent, SIZE, 5);
    assert_int_equal(setsockopt(ends->listeners[0], SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    ends_join(ends, 0, 0, &near, &far);
    ends_set(ends, 0, 0, HOLD_REQUESTS);
    ends_send(near, sent, SIZE);
    for (int i = 0; i < 4000 && waits > 0; i++) {
        assert_int_equal(ioctl(near, SIOCOUTQ, &waits), 0);
        support_pause_ms(5);
    }
    assert_int_equal(waits, 0);
    ends_reset(near);
    ends_set(ends, 0, 0, CLEAR);
    support_pause_ms(NOTHING_MS);
    assert_int_equal(ends_take(far, got, SIZE), SIZE);
    assert_int_equal(memcmp(sent, got, SIZE), 0);
    ends_hear_reset(far);
    ends_close(far);
    free(sent);
    free(got);
}

FRESH_TEST(one_way_may_end_before_the_other) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_say(near, "question");
    assert_int_equal(shutdown(near, SHUT_WR), 0);
    ends_hear(far, "question");
    ends_hear_fin(far);
    ends_say(far, "answer");
    ends_hear(near, "answer");
    ends_close(far);
    ends_hear_fin(near);
    ends_close(near);
}

FRESH_TEST(a_node_hears_that_its_client_is_gone) {
    int near, far;
    ends_join(ends, 0, 0, &near, &far);
    ends_close(near); /* a FIN: only a later write to this socket gets a RST */
    ends_hear_fin(far);
    for (int i = 0; i < 2000; i++) {
        if (send(far, "reply", 5, MSG_NOSIGNAL) < 0) {
            assert_true(errno == EPIPE || errno == ECONNRESET);
            ends_close(far);
            return;
        }
        support_pause_ms(2);
    }
    fail_msg("the node never heard of it");
}

/* New ones work, also while the old ones are silent. */
FRESH_TEST(silence_is_of_the_connections_that_stand) {
    int near, far, later_near, later_far;
    ends_join(ends, 0, 0, &near, &far);
    ends_silence(ends, 0, 0, true);
    ends_say(near, "request");
    ends_say(far, "reply");
    ends_join(ends, 0, 0, &later_near, &later_far);
    ends_say(later_near, "new");
    ends_hear(later_far, "new");
    ends_say(later_far, "answer");
    ends_hear(later_near, "answer");
    ends_hear_nothing(far, NOTHING_MS);
    ends_hear_nothing(near, NOTHING_MS);
    ends_silence(ends, 0, 0, false);
    ends_hear(far, "request");
    ends_hear(near, "reply");
    ends_close_both(near, far);
    ends_close_both(later_near, later_far);
}

FRESH_TEST(a_cut_resets_both_sides_and_forgets) {
    size_t files = ends_files(ends->links.proxy.pid);
    int near, far, other_near, other_far, late;
    ends_join(ends, 0, 0, &near, &far);
    ends_join(ends, 1, 0, &other_near, &other_far);
    ends_set(ends, 0, 0, HOLD_BOTH);
    late = ends_connect(ends->links.ports[0][0]);
    ends_say(late, "held");
    ends_say(near, "held");
    ends_say(far, "held");
    ends_cut(ends, 0, 0);
    ends_hear_reset(near);
    ends_hear_reset(far);
    ends_hear_reset(late);
    ends_set(ends, 0, 0, CLEAR);
    assert_false(ends_is_called(ends->listeners[0], NOTHING_MS));
    ends_say(other_near, "stands");
    ends_hear(other_far, "stands");
    ends_wait_files(ends->links.proxy.pid, files + 2);
    ends_close_both(near, far);
    ends_close(late);
    ends_join(ends, 0, 0, &near, &far);
    ends_say(near, "new");
    ends_hear(far, "new");
    ends_close_both(near, far);
    ends_close_both(other_near, other_far);
}
