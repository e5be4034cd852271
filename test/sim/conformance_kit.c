/* One command for the fake node and a real server, and their answers compared. */
#include "conformance_kit.h"

#include <time.h>

#include "command.h"
#include "wire/channel.h"
#include "wire/resp.h"
#include "wire/wire.h"

#define ANSWER_MAX CONFORMANCE_ANSWER_MAX
/* Both get a command at the same time, except for delays of this machine. */
#define TTL_LEEWAY_MS 30000
#define PUSHED_MAX    72

struct servers servers;
struct fake_node fake;
struct raw listener;
struct raw observer;
/* By the fake, by one command: all who read with the first come in, and the next is told. */
static char pushed[PUSHED_MAX][512];
static unsigned pushed_count;
static char announced[512]; /* "channel", a newline, and the payload */
unsigned pushes, announcements;

int64_t clock_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_ms(void) {
    return clock_us() / 1000;
}

static void write_elements(const struct redlock_reply *flat, char answer[ANSWER_MAX]) {
    size_t at = 0;
    for (size_t i = 0; i < flat->element_count; i++) {
        const struct redlock_reply_value *value = &flat->elements[i];
        int size = value->type == REDLOCK_REPLY_NIL ? snprintf(answer + at, ANSWER_MAX - at, "(nil)\n")
                   : value->type == REDLOCK_REPLY_INTEGER
                       ? snprintf(answer + at, ANSWER_MAX - at, "%lld\n", (long long)value->integer)
                       : snprintf(answer + at, ANSWER_MAX - at, "%.*s\n", (int)value->size, value->bytes);
        assert_true(size > 0 && (size_t)size < ANSWER_MAX - at);
        at += (size_t)size;
    }
}

/* A reply in the words of raw.h. */
static void write_answer(const struct fake_reply *reply, char answer[ANSWER_MAX]) {
    struct redlock_reply flat;
    fake_reply_flatten(reply, &flat);
    const struct redlock_reply_value *value = &flat.value;
    switch (value->type) {
    case REDLOCK_REPLY_STATUS:
    case REDLOCK_REPLY_STRING:
        snprintf(answer, ANSWER_MAX, "%.*s", (int)value->size, value->bytes);
        break;
    case REDLOCK_REPLY_ERROR:
        snprintf(answer, ANSWER_MAX, "-%.*s", (int)value->size, value->bytes);
        break;
    case REDLOCK_REPLY_INTEGER:
        snprintf(answer, ANSWER_MAX, "%lld", (long long)value->integer);
        break;
    case REDLOCK_REPLY_NIL:
        snprintf(answer, ANSWER_MAX, "(nil)");
        break;
    case REDLOCK_REPLY_ARRAY:
        write_elements(&flat, answer);
        break;
    default:
        snprintf(answer, ANSWER_MAX, "(none)");
    }
}

bool publish(void *ctx, const char *channel, size_t channel_size, const char *payload, size_t payload_size) {
    static const char leader[] = REDLOCK_LEADER_CHANNEL;
    (void)ctx;
    if (channel_size >= sizeof leader - 1 && memcmp(channel, leader, sizeof leader - 1) == 0) {
        assert_string_equal(announced, ""); /* no command announces twice */
        snprintf(announced, sizeof announced, "%.*s\n%.*s\n", (int)channel_size, channel, (int)payload_size, payload);
        return true;
    }
    if (channel_size != sizeof HEARD - 1 || memcmp(channel, HEARD, channel_size) != 0) {
        return false;
    }
    assert_true(pushed_count < PUSHED_MAX);
    snprintf(pushed[pushed_count++], sizeof pushed[0], "%.*s", (int)payload_size, payload);
    return true;
}

bool hears(void *ctx, const char *channel, size_t channel_size) {
    (void)ctx;
    return channel_size == sizeof HEARD - 1 && memcmp(channel, HEARD, channel_size) == 0;
}

/* The same but for the time, which is the third word and the fourth. */
static void assert_same_push(const char *real, const char *ours) {
    unsigned ids[2], serials[2];
    int rest[2] = {0, 0};
    assert_int_equal(sscanf(real, "%u %u %*d %*d %n", &ids[0], &serials[0], &rest[0]), 2);
    assert_int_equal(sscanf(ours, "%u %u %*d %*d %n", &ids[1], &serials[1], &rest[1]), 2);
    assert_int_equal(ids[0], ids[1]);
    assert_int_equal(serials[0], serials[1]);
    assert_true(rest[0] > 0 && rest[1] > 0);
    assert_string_equal(real + rest[0], ours + rest[1]);
}

/* What the fake pushed, the real server pushed. */
static void compare_pushes(void) {
    static const char head[] = "message\n" HEARD "\n";
    for (unsigned i = 0; i < pushed_count; i++) {
        const char *real = raw_read(&listener);
        assert_int_equal(strncmp(real, head, sizeof head - 1), 0);
        const size_t size = strcspn(real + sizeof head - 1, "\n");
        char payload[sizeof pushed[0]];
        snprintf(payload, sizeof payload, "%.*s", (int)size, real + sizeof head - 1);
        assert_same_push(payload, pushed[i]);
        pushes++;
    }
    pushed_count = 0;
}

/* The payload begins with a ttl. */
static void compare_announcements(void) {
    static const char head[] = "pmessage\n" REDLOCK_LEADER_CHANNEL "*\n";
    if (announced[0] == '\0') {
        return;
    }
    const char *real = raw_read(&observer), *ours = announced;
    assert_int_equal(strncmp(real, head, sizeof head - 1), 0);
    real += sizeof head - 1;
    const size_t channel_size = strcspn(ours, "\n") + 1;
    assert_memory_equal(real, ours, channel_size);
    real += channel_size;
    ours += channel_size;
    const size_t ttl_size = strspn(ours, "0123456789");
    if (ttl_size > 0) {
        assert_true(llabs(atoll(real) - atoll(ours)) < TTL_LEEWAY_MS);
        real += strspn(real, "0123456789");
        ours += ttl_size;
    }
    assert_string_equal(real, ours);
    announced[0] = '\0';
    announcements++;
}

void ask_fake(const char *bytes, size_t size, char answer[ANSWER_MAX]) {
    struct fake_reply reply;
    fake.now_us = clock_us();
    fake_node_command(&fake, bytes, size, &reply);
    write_answer(&reply, answer);
}

/* Numbers that depend on the time of the request may differ a little: ttls, seconds since 1970,
 * milliseconds since then (a ticket of 1 has waited for so long), counters of an hour ago. */
static bool close_numbers(const char *a, const char *b) {
    static const int64_t least[] = {TTL_LEAST_MS / 2, 1000000000, INT64_C(1000000000000), INT64_C(1000000000000000000)};
    static const int64_t leeway[] = {TTL_LEEWAY_MS, TTL_LEEWAY_MS / 1000, TTL_LEEWAY_MS,
                                     TTL_LEEWAY_MS / 1000 * INT64_C(1000000000)};
    char *end_a, *end_b;
    long long first = strtoll(a, &end_a, 10), second = strtoll(b, &end_b, 10);
    if (end_a == a || end_b == b || *end_a != *end_b || (*end_a != '\0' && *end_a != '\n' && *end_a != ' ')) {
        return false;
    }
    for (unsigned i = 4; i-- > 0;) {
        if (first >= least[i] && second >= least[i]) {
            return llabs(first - second) < leeway[i];
        }
    }
    return false;
}

static bool same_word(const char *a, const char *b) {
    const size_t size = strcspn(a, " \n");
    return (strcspn(b, " \n") == size && memcmp(a, b, size) == 0) || close_numbers(a, b);
}

/* The names of readers have numbers between them. */
static bool same_line(const char *a, const char *b) {
    while (same_word(a, b)) {
        a += strcspn(a, " \n");
        b += strcspn(b, " \n");
        if (*a != ' ' || *b != ' ') {
            return *a != ' ' && *b != ' ';
        }
        a++, b++;
    }
    return false;
}

static bool is_seconds(const char *line) {
    return strcspn(line, "\n") == 10 && strspn(line, "0123456789") == 10;
}

/* Errors are compared by their first word, because clients may rely only on that. */
static bool same(const char *real, const char *ours) {
    if (real[0] == '-' && ours[0] == '-') {
        return (strcspn(real, " ") == strcspn(ours, " ") && strncmp(real, ours, strcspn(real, " ")) == 0) ||
               same_line(real, ours);
    }
    bool micros = false; /* behind the seconds, anything goes */
    while (*real != '\0' && *ours != '\0') {
        bool fraction = micros && strspn(real, "0123456789") <= 6 && strspn(ours, "0123456789") <= 6;
        if (!fraction && !same_line(real, ours)) {
            return false;
        }
        micros = is_seconds(real);
        real += strcspn(real, "\n");
        ours += strcspn(ours, "\n");
        if (*real != *ours) {
            return false;
        }
        real += *real == '\n';
        ours += *ours == '\n';
    }
    return *real == *ours;
}

void ask_both_bytes(const char *bytes, size_t size) {
    struct sim_argument arguments[SIM_ARGUMENTS_MAX];
    char words[REDLOCK_WIRE_SIZE_MAX], *argv[SIM_ARGUMENTS_MAX + 1], ours[ANSWER_MAX], *at = words;
    size_t count = sim_command_parse(bytes, size, arguments);
    assert_int_not_equal(count, 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(arguments[i].size < sizeof words - (size_t)(at - words));
        argv[i] = at;
        memcpy(at, arguments[i].bytes, arguments[i].size);
        at += arguments[i].size;
        *at++ = '\0';
    }
    argv[count] = NULL;
    const char *real = server_ask_argv(&servers.at[0], (const char *const *)argv);
    ask_fake(bytes, size, ours);
    if (!same(real, ours)) {
        print_error("mode %d: the server: %s\n  the fake: %s\n", (int)fake.mode, real, ours);
        for (size_t i = 0; i < count; i++) {
            print_error("  %.60s\n", argv[i]); /* of a script, the beginning */
        }
        fail();
    }
    compare_pushes();
    compare_announcements();
}

size_t format_argv(char *bytes, const char *const *argv) {
    size_t count = 0;
    while (argv[count] != NULL) {
        count++;
    }
    char *at = redlock_resp_array(bytes, count);
    for (size_t i = 0; i < count; i++) {
        at = redlock_resp_bulk(at, argv[i], strlen(argv[i]));
    }
    return (size_t)(at - bytes);
}

void ask_both_argv(const char *const *argv) {
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    ask_both_bytes(bytes, format_argv(bytes, argv));
}
