/* Seals: which pushes a client believes. */
#include "core/time.h"
#include "group/line.h"
#include "test.h"

#define PERIOD_NS (REDLOCK_LINE_SEAL_PERIOD_MS * REDLOCK_NS_PER_MS)
#define TOKEN     "00000000000000000123456789abcdef0123456789abcdef"

static const uint64_t secret[2] = {UINT64_C(0x0123456789abcdef), 42};

/* What node 2 says after the WAIT that was sent then. */
static struct redlock_push sealed(int64_t now_ns) {
    uint64_t seals[REDLOCK_NODES_MAX] = {0};
    struct redlock_push push = {
        .id = 7, .round = 12, .token = TOKEN, .token_size = strlen(TOKEN), .key = "door", .key_size = 4};
    redlock_line_seal(secret, REDLOCK_NODE(2), &push, now_ns, seals);
    assert_true(seals[0] == 0 && seals[2] != 0 && seals[3] == 0);
    push.seal = seals[2];
    return push;
}

static bool fits(const struct redlock_push *push, int64_t now_ns) {
    return redlock_line_seal_fits(secret, 2, push, now_ns);
}

TEST(a_seal_fits_for_one_to_two_periods) {
    const struct {
        int64_t sent_ns, last_ns;
    } rows[] = LIST({0, 2 * PERIOD_NS - 1}, {PERIOD_NS - 1, 2 * PERIOD_NS - 1}, {PERIOD_NS, 3 * PERIOD_NS - 1},
                    {1000 * PERIOD_NS + 5, 1002 * PERIOD_NS - 1});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct redlock_push push = sealed(rows[i].sent_ns);
        assert_true(fits(&push, rows[i].sent_ns));
        assert_true(fits(&push, rows[i].last_ns));
        assert_false(fits(&push, rows[i].last_ns + 1));
        assert_false(fits(&push, rows[i].last_ns + 1000 * PERIOD_NS));
        assert_true(rows[i].last_ns - rows[i].sent_ns < REDLOCK_LINE_SEAL_MS_MAX * REDLOCK_NS_PER_MS);
    }
}

TEST(every_word_counts) {
    static const uint64_t other_secret[2] = {UINT64_C(0x0123456789abcdef), 43};
    const struct redlock_push push = sealed(5);
    struct redlock_push other = push;
    char token[sizeof TOKEN] = TOKEN;
    for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
        assert_int_equal(redlock_line_seal_fits(secret, i, &push, 5), i == 2);
    }
    assert_false(redlock_line_seal_fits(other_secret, 2, &push, 5));
    other.id++;
    assert_false(fits(&other, 5));
    other = push;
    other.round++;
    assert_false(fits(&other, 5));
    other = push;
    other.round--;
    assert_false(fits(&other, 5));
    other = push;
    other.seal ^= UINT64_C(1) << 63;
    assert_false(fits(&other, 5));
    other = push;
    other.key = "dooR";
    assert_false(fits(&other, 5));
    other.key = "doors";
    other.key_size = 5;
    assert_false(fits(&other, 5));
    other = push;
    other.token = token;
    assert_true(fits(&other, 5));
    token[47] = '0';
    assert_false(fits(&other, 5));
    other = push;
    other.token_size--; /* the rest is the key's */
    other.key = "fdoor";
    other.key_size = 5;
    assert_false(fits(&other, 5));
}

TEST(the_longest_words_fit) {
    char token[REDLOCK_TOKEN_SIZE_MAX], key[REDLOCK_RESOURCE_SIZE_MAX];
    uint64_t seals[REDLOCK_NODES_MAX];
    struct redlock_push push = {.id = UINT32_MAX,
                                .round = UINT32_MAX,
                                .token = token,
                                .token_size = sizeof token,
                                .key = key,
                                .key_size = sizeof key};
    memset(token, 't', sizeof token);
    memset(key, 'k', sizeof key);
    redlock_line_seal(secret, redlock_nodes_all(REDLOCK_NODES_MAX), &push, INT64_MAX, seals);
    push.seal = seals[30];
    assert_true(redlock_line_seal_fits(secret, 30, &push, INT64_MAX));
    key[sizeof key - 1]--;
    assert_false(redlock_line_seal_fits(secret, 30, &push, INT64_MAX));
}
