/* Fencing tokens: the proposed number, what the nodes' answers do to it, and that tokens rise in
 * any order of events. */
#include "core/fence.h"
#include "core/time.h"
#include "test.h"

#define WALL_US INT64_C(1795167037123456) /* November 2026 */

static uint64_t proposed(uint64_t seen, uint16_t client, int64_t wall_us) {
    struct redlock_fence fence = {.token = 1000, .seen = seen, .client = client, .accepted = seen >= 1000 ? 5 : 0};
    if (!redlock_fence_propose(&fence, wall_us)) {
        assert_int_equal(fence.token, 1000);
        assert_int_equal(fence.accepted, 5);
        return 0;
    }
    assert_int_equal(fence.accepted, 0);
    assert_int_equal(fence.seen, seen);
    assert_int_equal(fence.client, client);
    assert_int_equal(fence.token % REDLOCK_FENCE_CLIENTS, client);
    assert_true(fence.token > seen && fence.token <= REDLOCK_FENCE_MAX);
    return fence.token;
}

TEST(a_proposal_is_the_wall_clock_and_the_client) {
    assert_int_equal(proposed(0, 0, WALL_US), UINT64_C(1795167037123456000));
    assert_int_equal(proposed(0, 999, WALL_US), UINT64_C(1795167037123456999));
    assert_int_equal(proposed(UINT64_C(1795167037123456006), 7, WALL_US), UINT64_C(1795167037123456007));
}

TEST(or_the_next_above_what_was_seen) {
    assert_int_equal(proposed(UINT64_C(1795167037123456007), 7, WALL_US), UINT64_C(1795167037123457007));
    assert_int_equal(proposed(UINT64_C(1795167037123456008), 7, WALL_US), UINT64_C(1795167037123457007));
    assert_int_equal(proposed(UINT64_C(1795167037999999999), 0, WALL_US), UINT64_C(1795167038000000000));
    assert_int_equal(proposed(UINT64_C(1795167037999999000), 999, WALL_US), UINT64_C(1795167037999999999));
    assert_int_equal(proposed(12345, 999, 0), 12999);
    assert_int_equal(proposed(1, 0, 0), 1000);
}

TEST(clocks_without_a_time_use_up_no_numbers) {
    const int64_t last_us = INT64_C(7258118400000000);
    static const int64_t absurd[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        assert_int_equal(proposed(0, 5, absurd[i]), 5);
        assert_int_equal(proposed(0, 0, absurd[i]), 1000); /* 0 means none */
        assert_int_equal(proposed(UINT64_C(1795167037123456007), 7, absurd[i]), UINT64_C(1795167037123457007));
    }
    assert_int_equal(proposed(0, 5, last_us), (uint64_t)last_us * 1000 + 5);
    assert_int_equal(proposed(0, 5, last_us + 1), 5);
}

TEST(no_number_is_beyond_the_last) {
    assert_int_equal(REDLOCK_FENCE_MAX % REDLOCK_FENCE_CLIENTS, 807);
    const uint64_t last = REDLOCK_FENCE_MAX - 807;
    assert_int_equal(proposed(REDLOCK_FENCE_MAX, 0, WALL_US), 0);
    assert_int_equal(proposed(UINT64_MAX, 0, WALL_US), 0);
    assert_int_equal(proposed(REDLOCK_FENCE_MAX - 1, 807, WALL_US), REDLOCK_FENCE_MAX);
    assert_int_equal(proposed(REDLOCK_FENCE_MAX - 1, 806, WALL_US), 0);
    assert_int_equal(proposed(REDLOCK_FENCE_MAX - 1, 808, WALL_US), 0);
    assert_int_equal(proposed(last - 1, 0, WALL_US), last);
    assert_int_equal(proposed(last - 1, 999, WALL_US), 0);
    assert_int_equal(proposed(last - 2, 999, WALL_US), last - 1);
    assert_int_equal(proposed(last, 807, WALL_US), REDLOCK_FENCE_MAX);
    struct redlock_fence fence = {.token = REDLOCK_FENCE_MAX, .accepted = 1};
    assert_false(redlock_fence_raise(&fence, WALL_US, false));
    assert_int_equal(fence.token, REDLOCK_FENCE_MAX);
    assert_int_equal(fence.accepted, 1);
}

TEST(a_raise_is_above_token_seen_and_clock) {
    struct redlock_fence fence = {.client = 7};
    assert_true(redlock_fence_propose(&fence, 1000));
    assert_int_equal(fence.token, 1000007);
    redlock_fence_note(&fence, 2, true, 0, WALL_US);
    assert_true(redlock_fence_raise(&fence, 1000, false));
    assert_int_equal(fence.token, 1001007);
    assert_int_equal(fence.accepted, 0);
    redlock_fence_note(&fence, 1, false, 5000123, WALL_US);
    assert_true(redlock_fence_raise(&fence, 1000, false));
    assert_int_equal(fence.token, 5001007);
    assert_true(redlock_fence_raise(&fence, 9000, true));
    assert_int_equal(fence.token, 9000007);
    assert_true(redlock_fence_raise(&fence, -5, true));
    assert_int_equal(fence.token, 9001007);
}

/* The number that a client with this clock proposes. */
static uint64_t made_at(int64_t wall_us) {
    return (uint64_t)wall_us * REDLOCK_FENCE_CLIENTS + 7;
}

TEST(a_counter_that_the_clock_does_not_explain_is_far) {
    assert_false(redlock_fence_is_far(0, WALL_US));
    assert_false(redlock_fence_is_far(made_at(WALL_US), WALL_US));
    assert_false(redlock_fence_is_far(made_at(WALL_US + REDLOCK_FENCE_BELIEVED_US), WALL_US));
    assert_true(redlock_fence_is_far(made_at(WALL_US + REDLOCK_FENCE_BELIEVED_US + 1), WALL_US));
    assert_true(redlock_fence_is_far(REDLOCK_FENCE_MAX, WALL_US));
    assert_true(redlock_fence_is_far(UINT64_MAX, WALL_US));
    /* To a clock without a time, every number of other clients is too far ahead. */
    static const int64_t absurd[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        assert_false(redlock_fence_is_far(made_at(REDLOCK_FENCE_BELIEVED_US), absurd[i]));
        assert_true(redlock_fence_is_far(made_at(WALL_US), absurd[i]));
    }
}

TEST(a_far_counter_is_ignored_unless_it_must_be_followed) {
    struct redlock_fence fence = {.client = 7};
    assert_true(redlock_fence_propose(&fence, WALL_US));
    const uint64_t proposal = fence.token;
    redlock_fence_note(&fence, 0, false, REDLOCK_FENCE_MAX - 1, WALL_US);
    redlock_fence_note(&fence, 1, false, made_at(2 * WALL_US), WALL_US);
    redlock_fence_note(&fence, 2, false, made_at(3 * WALL_US), WALL_US);
    redlock_fence_note(&fence, 3, false, proposal + 50, WALL_US);
    /* It could have accepted, by its own counter. */
    redlock_fence_note(&fence, 4, false, 12, WALL_US);
    assert_int_equal(fence.far, 7);
    assert_int_equal(fence.not_below, 15);
    assert_int_equal(fence.seen, proposal + 50);
    struct redlock_fence followed = fence;
    assert_true(redlock_fence_raise(&fence, WALL_US, false));
    assert_int_equal(fence.token, proposal + 1000);
    assert_int_equal(fence.far, 0);
    assert_true(redlock_fence_raise(&followed, WALL_US, true)); /* the lowest of them */
    assert_int_equal(followed.token, made_at(2 * WALL_US) + 1000);
    assert_true(redlock_fence_raise(&followed, WALL_US, true)); /* from another round */
    assert_int_equal(followed.token, made_at(2 * WALL_US) + 2000);
    redlock_fence_note(&fence, 0, false, REDLOCK_FENCE_MAX, WALL_US);
    assert_true(redlock_fence_propose(&fence, WALL_US)); /* nor does it change the next attempt, */
    assert_int_equal(fence.token, proposal + 1000);
    redlock_fence_note(&followed, 0, true, 0, WALL_US);
    /* Even if the node accepts the number that followed. */
    assert_true(redlock_fence_propose(&followed, WALL_US));
    assert_int_equal(followed.token, proposal + 1000);
}

TEST(votes_are_noted_and_counted_among_those_that_granted) {
    struct redlock_fence fence = {.client = 1};
    assert_true(redlock_fence_propose(&fence, 1));
    assert_false(redlock_fence_is_won(&fence, 31, 1));
    redlock_fence_note(&fence, 0, true, REDLOCK_FENCE_MAX, WALL_US);
    assert_int_equal(fence.seen | fence.far | fence.not_below, 0); /* nobody is ahead of it */
    redlock_fence_note(&fence, 30, true, 0, WALL_US);
    redlock_fence_note(&fence, 4, false, 0, WALL_US);
    redlock_fence_note(&fence, 3, false, 5000, WALL_US);
    redlock_fence_note(&fence, 2, false, 4000, WALL_US);
    assert_int_equal(fence.accepted, REDLOCK_NODE(0) | REDLOCK_NODE(30));
    assert_int_equal(fence.seen, 5000);
    assert_true(redlock_fence_is_won(&fence, ~(redlock_nodes)0, 2));
    assert_false(redlock_fence_is_won(&fence, ~(redlock_nodes)0, 3));
    assert_false(redlock_fence_is_won(&fence, 31, 2));
    assert_true(redlock_fence_is_won(&fence, REDLOCK_NODE(30), 1));
    /* The next attempt begins above what this one raised and saw. */
    assert_true(redlock_fence_propose(&fence, 1));
    assert_int_equal(fence.token, 5001);
    assert_int_equal(fence.accepted, 0);
    assert_true(redlock_fence_propose(&fence, 1)); /* no node took it */
    assert_int_equal(fence.token, 5001);
    redlock_fence_note(&fence, 1, true, 0, WALL_US);
    assert_true(redlock_fence_propose(&fence, 1));
    assert_int_equal(fence.token, 6001);
}

TEST(no_client_has_the_digits_of_those_who_read) {
    for (unsigned drawn = 0; drawn <= UINT16_MAX; drawn++) {
        assert_in_range(redlock_fence_client((uint16_t)drawn), 0, REDLOCK_FENCE_READER - 1);
    }
}

/* What a reader does that has seen this counter. */
static uint64_t read_after(uint64_t seen, int64_t wall_us) {
    struct redlock_fence fence = {.seen = seen, .client = 7, .reads = true};
    if (!redlock_fence_propose(&fence, wall_us)) {
        return 0;
    }
    assert_int_equal(fence.token % REDLOCK_FENCE_CLIENTS, REDLOCK_FENCE_READER);
    assert_true(fence.token >= seen);
    return fence.token;
}

TEST(a_reader_takes_the_number_of_others_who_read_or_the_next_one) {
    /* All of the same hundredth of a second propose the same. */
    const int64_t begin_us = WALL_US - WALL_US % 10000;
    const uint64_t read = (uint64_t)(begin_us + 9999) * 1000 + 999;
    assert_int_equal(read_after(0, begin_us), read);
    assert_int_equal(read_after(0, begin_us + 9999), read);
    assert_int_equal(read_after(0, begin_us + 10000), read + 10000000);
    assert_int_equal(read_after(made_at(WALL_US), WALL_US), read);
    assert_int_equal(read_after(read, WALL_US), read);
    assert_int_equal(read_after(read, WALL_US - 10000), read);
    assert_int_equal(read_after(read + 1, WALL_US), read + 1000);
    /* Where counters were lost, the clock is above what was written. */
    assert_int_equal(read_after(read, WALL_US + 10000), read + 10000000);
    assert_int_equal(read_after(read, 0), read);
    assert_int_equal(read_after(0, 0), 999);
    assert_int_equal(read_after(REDLOCK_FENCE_MAX - 808, WALL_US), REDLOCK_FENCE_MAX - 808);
    assert_int_equal(read_after(REDLOCK_FENCE_MAX - 807, WALL_US), 0);
    assert_int_equal(read_after(REDLOCK_FENCE_MAX, WALL_US), 0);
}

TEST(a_readers_token_is_the_largest_that_nodes_told) {
    const uint64_t low = made_at(WALL_US - 5) - 7 + 999, high = made_at(WALL_US) - 7 + 999;
    struct redlock_fence fence = {.client = 7, .reads = true};
    assert_true(redlock_fence_propose(&fence, WALL_US + 9));
    redlock_fence_told(&fence, 4, 0, WALL_US);
    redlock_fence_told(&fence, 5, made_at(WALL_US - 9), WALL_US); /* did not raise it */
    redlock_fence_told(&fence, 6, REDLOCK_FENCE_MAX - 808, WALL_US);
    assert_false(redlock_fence_is_won(&fence, 127, 1));
    assert_int_equal(fence.far, REDLOCK_NODE(6));
    redlock_fence_told(&fence, 0, low, WALL_US);
    assert_int_equal(fence.token, low);
    redlock_fence_told(&fence, 1, high, WALL_US);
    redlock_fence_told(&fence, 2, low, WALL_US);
    assert_int_equal(fence.token, high);
    assert_false(redlock_fence_is_won(&fence, 127, 2));
    struct redlock_fence behind = fence;
    redlock_fence_told(&fence, 3, high, WALL_US);
    assert_true(redlock_fence_is_won(&fence, 127, 2));
    assert_false(redlock_fence_is_won(&fence, 7, 2));
    /* What it writes back is the same number, and what it goes on with is what it met. */
    assert_true(redlock_fence_raise(&behind, 0, false));
    assert_int_equal(behind.token, high);
    behind.not_below = 0; /* another round */
    redlock_fence_note(&behind, 2, true, 0, WALL_US);
    redlock_fence_note(&behind, 1, false, high + 2000, WALL_US);
    assert_int_equal(behind.not_below, REDLOCK_NODE(1));
    assert_true(redlock_fence_raise(&behind, 0, false));
    assert_int_equal(behind.token, high + 2000);
    assert_true(redlock_fence_raise(&behind, WALL_US + 20000, false)); /* after a wait */
    assert_true(behind.token > made_at(WALL_US + 20000));
}

static void format_and_parse(const char *digits, uint64_t number) {
    char text[REDLOCK_FENCE_DIGITS + 1] = {0};
    uint64_t parsed = 1;
    redlock_fence_format(number, text);
    assert_string_equal(text, digits);
    assert_true(redlock_fence_parse(text, REDLOCK_FENCE_DIGITS, &parsed));
    assert_int_equal(parsed, number);
}

TEST(on_the_wire_they_have_twenty_digits) {
    format_and_parse("00000000000000000000", 0);
    format_and_parse("00000000000000000001", 1);
    format_and_parse("01795167037123456789", UINT64_C(1795167037123456789));
    format_and_parse("09223372036854775807", REDLOCK_FENCE_MAX);
    uint32_t random = 1;
    for (int i = 0; i < 1000; i++) {
        char low[REDLOCK_FENCE_DIGITS];
        char high[REDLOCK_FENCE_DIGITS];
        const uint64_t a = (uint64_t)redlock_jitter_next(&random) << (redlock_jitter_next(&random) % 31);
        const uint64_t b = a + 1 + redlock_jitter_next(&random) % 1000;
        redlock_fence_format(a, low);
        redlock_fence_format(b, high);
        assert_true(memcmp(low, high, sizeof low) < 0); /* nodes compare them as strings */
    }
}

TEST(other_strings_are_not_numbers) {
    static const char *const wrong[] = {
        "",
        "0",
        "0179516703712345678",   /* 19 */
        "001795167037123456789", /* 21 */
        "09223372036854775808",  /* above the last */
        "10000000000000000000",
        "99999999999999999999",
        "0179516703712345678x",
        "0000000000000000000/",
        "0000000000000000000:",
        "-0000000000000000001",
        "+0000000000000000001",
        " 0000000000000000001",
        "0000000000000000001 ",
        "0x000000000000000001",
        "0000000000.000000001",
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t number = 42;
        assert_false(redlock_fence_parse(wrong[i], strlen(wrong[i]), &number));
        assert_int_equal(number, 42);
    }
}

/* The proof of docs/protocols.md, "Fencing tokens", with random events. Nodes accept only numbers
 * above their counter. Requests come in any order, and any client may give up at any moment. No
 * lock keeps a client out. Tokens never repeat, and a request that began after another client had
 * its token gets a larger token. */
#define CLIENTS 4
#define EVENTS  400
#define TOKENS  EVENTS

struct asker {
    struct redlock_fence fence;
    redlock_nodes asked, granted;
    uint64_t floor; /* the largest token when this attempt began */
    bool busy, writes_back;
    int64_t skew_us;
};

struct play {
    uint32_t random;
    unsigned nodes;
    uint64_t counters[REDLOCK_NODES_MAX];
    struct asker askers[CLIENTS];
    uint64_t tokens[TOKENS];
    unsigned count, fast;
    uint64_t largest;
    int64_t wall_us;
};

static uint32_t draw(struct play *play, uint32_t below) {
    return redlock_jitter_next(&play->random) % below;
}

static void begin(struct play *play, struct asker *asker) {
    asker->busy = true;
    asker->writes_back = false;
    asker->asked = asker->granted = 0;
    asker->floor = play->largest;
    if (draw(play, 3) == 0) {
        /* Another process with the same low digits. */
        asker->fence = (struct redlock_fence){.client = asker->fence.client};
    }
    assert_true(redlock_fence_propose(&asker->fence, play->wall_us + asker->skew_us));
}

static void win(struct play *play, struct asker *asker) {
    const uint64_t token = asker->fence.token;
    assert_true(token > asker->floor);
    for (unsigned i = 0; i < play->count; i++) {
        assert_true(play->tokens[i] != token);
    }
    play->tokens[play->count++] = token;
    play->fast += !asker->writes_back;
    play->largest = token > play->largest ? token : play->largest;
    asker->busy = false;
}

static void ask(struct play *play, struct asker *asker) {
    const unsigned node = draw(play, play->nodes);
    if ((asker->asked & REDLOCK_NODE(node)) != 0) {
        return;
    }
    asker->asked |= REDLOCK_NODE(node);
    const bool accepted = asker->fence.token > play->counters[node];
    const uint64_t counter = play->counters[node];
    if (accepted) {
        play->counters[node] = asker->fence.token;
    }
    if (draw(play, 10) == 0) {
        return; /* the answer is lost */
    }
    asker->granted |= REDLOCK_NODE(node);
    redlock_fence_note(&asker->fence, node, accepted, accepted ? 0 : counter, play->wall_us + asker->skew_us);
}

static void advance(struct play *play, struct asker *asker) {
    const unsigned quorum = redlock_quorum(play->nodes);
    if (!asker->busy) {
        begin(play, asker);
    } else if (redlock_fence_is_won(&asker->fence, asker->granted, quorum)) {
        win(play, asker);
    } else if (redlock_nodes_count(asker->granted) >= quorum && draw(play, 4) == 0) {
        assert_true(redlock_fence_raise(&asker->fence, play->wall_us + asker->skew_us, draw(play, 3) != 0));
        asker->writes_back = true;
        asker->asked = asker->granted = 0;
    } else if (draw(play, 40) == 0 || asker->asked == redlock_nodes_all(play->nodes)) {
        asker->busy = false; /* gives up or stops */
    } else {
        ask(play, asker);
    }
}

TEST(tokens_rise_in_any_order) {
    unsigned tokens = 0;
    unsigned fast = 0;
    for (uint32_t seed = 1; seed <= 20000; seed++) {
        struct play play = {.random = seed, .wall_us = seed % 7 == 0 ? 0 : WALL_US};
        play.nodes = 1 + draw(&play, seed % 10 == 0 ? REDLOCK_NODES_MAX : 6);
        const uint32_t skew_us = draw(&play, 2) == 0 ? 3 : 100000;
        for (unsigned i = 0; i < CLIENTS; i++) {
            /* Low digits may be equal by chance. */
            play.askers[i].fence.client = (uint16_t)(seed % 3 == 0 ? 0 : i);
            play.askers[i].skew_us = draw(&play, skew_us);
        }
        /* A clock was wrong once, or a node lies. */
        for (unsigned i = 0; seed % 5 == 0 && i < play.nodes; i++) {
            play.counters[i] = draw(&play, 2) == 0 ? made_at(WALL_US * (1 + draw(&play, 3))) : 0;
        }
        for (int event = 0; event < EVENTS; event++) {
            play.wall_us += draw(&play, 30) == 0 ? -(int64_t)draw(&play, 100) : (int64_t)draw(&play, 3);
            advance(&play, &play.askers[draw(&play, CLIENTS)]);
        }
        tokens += play.count;
        fast += play.fast;
    }
    assert_true(fast > 50000 && tokens - fast > 50000); /* both paths are taken */
}

TEST(a_clock_that_is_a_little_ahead_is_followed) {
    assert_int_equal(redlock_fence_ahead_us(0, made_at(WALL_US + 1000), WALL_US), 1000);
    /* Made a while ago. */
    assert_int_equal(redlock_fence_ahead_us(1000, made_at(WALL_US + 900), WALL_US), 1000);
    assert_int_equal(redlock_fence_ahead_us(1000, made_at(WALL_US + 1001), WALL_US), 1001);
    assert_int_equal(redlock_fence_ahead_us(5, made_at(WALL_US), WALL_US), 5);
    assert_int_equal(redlock_fence_ahead_us(5, made_at(WALL_US - 1000), WALL_US), 5);
    assert_int_equal(redlock_fence_ahead_us(0, made_at(WALL_US + REDLOCK_FENCE_AHEAD_MAX_US), WALL_US),
                     REDLOCK_FENCE_AHEAD_MAX_US);
    /* A counter that is further ahead is not a clock to follow, nor is any counter if our own clock
     * has no time. */
    assert_int_equal(redlock_fence_ahead_us(3, made_at(WALL_US + REDLOCK_FENCE_AHEAD_MAX_US + 1), WALL_US), 3);
    assert_int_equal(redlock_fence_ahead_us(3, REDLOCK_FENCE_MAX, WALL_US), 3);
    assert_int_equal(redlock_fence_ahead_us(3, REDLOCK_FENCE_MAX, 0), 3);
    assert_int_equal(redlock_fence_ahead_us(3, made_at(WALL_US), -1), 3);
    assert_int_equal(redlock_fence_ahead_us(3, made_at(WALL_US), INT64_MAX), 3);
}

/* Two clients whose clocks differ take turns and follow each other: both reach the clock that is
 * ahead, and do not pass it. */
TEST(clients_do_not_raise_each_others_numbers_for_ever) {
    enum { SKEW_US = 1000 };
    const int64_t skew_us[2] = {SKEW_US, 0};
    int64_t ahead_us[2] = {0, 0}, now_us = WALL_US;
    uint64_t counter = 0;
    unsigned slow = 0;
    for (unsigned turn = 0; turn < 10000; turn++) {
        const unsigned i = turn % 2;
        struct redlock_fence fence = {.client = (uint16_t)i};
        const int64_t wall_us = now_us + skew_us[i];
        assert_true(redlock_fence_propose(&fence, wall_us + ahead_us[i]));
        now_us += 30; /* there */
        if (fence.token <= counter) {
            slow++;
            redlock_fence_note(&fence, 0, false, counter, WALL_US);
            now_us += 30; /* and back */
            ahead_us[i] = redlock_fence_ahead_us(ahead_us[i], counter, now_us + skew_us[i]);
            assert_true(redlock_fence_raise(&fence, now_us + skew_us[i] + ahead_us[i], false));
        }
        counter = fence.token;
        now_us += 40 + turn % 7 * 20; /* until it is the turn of the other */
    }
    assert_int_equal(ahead_us[0], 0);
    assert_in_range(ahead_us[1], 1, SKEW_US);
    assert_true(slow < 5000); /* without, each of the second one's */
}
