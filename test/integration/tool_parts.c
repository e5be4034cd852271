/* The parts of the tool that need no nodes: durations, text for terminals, JSON, URIs. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "locks.h"
#include "test.h"
#include "text.h"
#include "userinfo.h"
#include "values/values.h"
#include "words.h"

TEST(durations_are_read) {
    static const struct {
        const char *text;
        enum tool_duration_error error;
        int64_t ms;
    } cases[] = {
        {"500ms", TOOL_DURATION_OK, 500},
        {"10s", TOOL_DURATION_OK, 10000},
        {"2m", TOOL_DURATION_OK, 120000},
        {"1h", TOOL_DURATION_OK, 3600000},
        {"2d", TOOL_DURATION_OK, 172800000},
        {"0", TOOL_DURATION_OK, 0},
        {"0s", TOOL_DURATION_OK, 0},
        {"007s", TOOL_DURATION_OK, 7000},
        {"9223372036854775807ms", TOOL_DURATION_OK, INT64_MAX},
        {"9223372036854775s", TOOL_DURATION_OK, INT64_C(9223372036854775000)},
        {"10", TOOL_DURATION_NO_UNIT, 0},
        {"", TOOL_DURATION_MALFORMED, 0},
        {"s", TOOL_DURATION_MALFORMED, 0},
        {"-1s", TOOL_DURATION_MALFORMED, 0},
        {"+1s", TOOL_DURATION_MALFORMED, 0},
        {" 1s", TOOL_DURATION_MALFORMED, 0},
        {"1s ", TOOL_DURATION_MALFORMED, 0},
        {"1.5s", TOOL_DURATION_MALFORMED, 0},
        {"1S", TOOL_DURATION_MALFORMED, 0},
        {"1us", TOOL_DURATION_MALFORMED, 0},
        {"9223372036854775808ms", TOOL_DURATION_TOO_LONG, 0},
        {"9223372036854776s", TOOL_DURATION_TOO_LONG, 0},
        {"99999999999999999999999h", TOOL_DURATION_TOO_LONG, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = -7;
        enum tool_duration_error error = tool_duration_parse(cases[i].text, &ms);
        if (error != cases[i].error || (error == TOOL_DURATION_OK && ms != cases[i].ms)) {
            fail_msg("'%s' gave error %d and %lld ms", cases[i].text, (int)error, (long long)ms);
        }
    }
}

TEST(durations_are_written) {
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0ms"},          {999, "999ms"},      {1000, "1.0s"},        {8299, "8.2s"},
                 {59999, "59.9s"},    {60000, "1m 0s"},    {125000, "2m 5s"},     {3599999, "59m 59s"},
                 {11040000, "3h 4m"}, {86400000, "1d 0h"}, {1047600000, "12d 3h"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buffer[32];
        assert_string_equal(tool_duration_format(cases[i].ms, buffer, sizeof buffer), cases[i].text);
    }
}

TEST(durations_are_written_exactly) {
    static const int64_t times_ms[] = {0,     1,       999,     1000,     1001,      30000,    60000,
                                       90000, 3600000, 5400000, 86400000, 172800000, INT64_MAX};
    for (size_t i = 0; i < sizeof times_ms / sizeof *times_ms; i++) {
        char buffer[32];
        int64_t ms = -7;
        assert_int_equal(tool_duration_parse(tool_duration_exact(times_ms[i], buffer, sizeof buffer), &ms),
                         TOOL_DURATION_OK);
        assert_int_equal(ms, times_ms[i]);
    }
    char buffer[32];
    assert_string_equal(tool_duration_exact(90000, buffer, sizeof buffer), "90s");
    assert_string_equal(tool_duration_exact(120000, buffer, sizeof buffer), "2m");
    assert_string_equal(tool_duration_exact(1500, buffer, sizeof buffer), "1500ms");
    assert_string_equal(tool_duration_exact(172800000, buffer, sizeof buffer), "2d");
}

/* What a writer wrote; the caller frees it. */
static char *written(void (*write)(FILE *out, const char *text), const char *text) {
    char *buffer = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&buffer, &size);
    assert_non_null(out);
    write(out, text);
    assert_int_equal(fclose(out), 0);
    return buffer;
}

static void write_json(FILE *out, const char *text) {
    struct tool_json json = {.out = out};
    tool_json_string(&json, NULL, text);
}

static const struct {
    const char *text;
    const char *terminal;
    const char *json;
} texts[] = {
    {"plain", "plain", "\"plain\""},
    {"", "", "\"\""},
    {"a\"b\\c", "a\"b\\c", "\"a\\\"b\\\\c\""},
    {"\x1b[31m\n\t\x7f", "\\x1b[31m\\x0a\\x09\\x7f", "\"\\u001b[31m\\u000a\\u0009\\u007f\""},
    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
    {"\xe2\x82\xac \xf0\x9f\x94\x92", "\xe2\x82\xac \xf0\x9f\x94\x92", "\"\xe2\x82\xac \xf0\x9f\x94\x92\""},
    {"\xc2\x9b", "\\xc2\\x9b", "\"\\u009b\""}, /* a C1 control */
    /* Overrides the direction of the text. */
    {"a\xe2\x80\xae", "a\\xe2\\x80\\xae", "\"a\\u202e\""},
    {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81", "\"\\udb40\\udc41\""}, /* a tag */
    {"\xff", "\\xff", "\"\\ufffd\""},                                   /* never in UTF-8 */
    {"\xc3", "\\xc3", "\"\\ufffd\""},                                   /* cut off */
    {"\xe2\x82", "\\xe2\\x82", "\"\\ufffd\\ufffd\""},                   /* cut off */
    {"\xc0\x80", "\\xc0\\x80", "\"\\ufffd\\ufffd\""},                   /* overlong */
    {"\xe0\x80\x80", "\\xe0\\x80\\x80", "\"\\ufffd\\ufffd\\ufffd\""},   /* overlong */
    {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\""},   /* a surrogate */
    /* Past U+10FFFF. */
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
    {"\xf0\x9f\x94x", "\\xf0\\x9f\\x94x", "\"\\ufffd\\ufffd\\ufffdx\""},
};

TEST(text_is_safe_for_a_terminal) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *got = written(tool_print_safe, texts[i].text);
        assert_string_equal(got, texts[i].terminal);
        free(got);
    }
    assert_int_equal(tool_safe_width("gr\xc3\xbc\xc3\x9f"), 4);
    assert_int_equal(tool_safe_width("a\nb\xff"), 10);
    assert_int_equal(tool_safe_width("\xc2\x9b"), 8);
}

/* The first and last of each kind of invisible character, and their visible neighbours. */
TEST(invisible_characters_are_unsafe) {
    static const uint32_t unsafe[] = {0x00,   0x1F,   0x7F,   0x80,   0x9F,    0xAD,    0x61C,   0x200B,  0x200C,
                                      0x200D, 0x200E, 0x200F, 0x2028, 0x2029,  0x202A,  0x202E,  0x2060,  0x2066,
                                      0x2069, 0xFE0F, 0xFEFF, 0xFFF9, 0xFFFB,  0x034F,  0x115F,  0x180E,  0x3164,
                                      0xFFA0, 0x17B4, 0x206F, 0xFE00, 0x1BCA0, 0x1D173, 0xE0000, 0xE0001, 0xE007F};
    static const uint32_t safe[] = {0x20,   0x7E,   0xA0,   0xAC,   0xAE,   0x61B,  0x61D,   0x200A,
                                    0x2010, 0x2027, 0x202F, 0x2070, 0xFEFE, 0xFF00, 0xFFFC,  0xFFFD,
                                    0xDF,   0x20AC, 0x5D0,  0x627,  0x4E2D, 0xAC00, 0x1F512, 0xE1000};
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++) {
        if (!tool_is_unsafe(unsafe[i])) {
            fail_msg("U+%04X counts as safe", (unsigned)unsafe[i]);
        }
    }
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++) {
        if (tool_is_unsafe(safe[i])) {
            fail_msg("U+%04X counts as unsafe", (unsigned)safe[i]);
        }
    }
}

TEST(text_is_escaped_in_json) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *got = written(write_json, texts[i].text);
        assert_string_equal(got, texts[i].json);
        free(got);
    }
}

static void write_object(FILE *out, const char *text) {
    struct tool_json json = {.out = out};
    tool_json_open(&json, NULL, '{');
    tool_json_open(&json, "none", '[');
    tool_json_close(&json, ']');
    tool_json_open(&json, "some", '[');
    tool_json_open(&json, NULL, '{');
    tool_json_close(&json, '}');
    tool_json_number(&json, NULL, INT64_MIN);
    tool_json_null(&json, NULL);
    tool_json_close(&json, ']');
    tool_json_string(&json, text, text);
    tool_json_number(&json, "n", 7);
    tool_json_close(&json, '}');
}

TEST(json_has_its_commas) {
    char *got = written(write_object, "k\"");
    assert_string_equal(got, "{\"none\":[],\"some\":[{},-9223372036854775808,null],\"k\\\"\":\"k\\\"\",\"n\":7}");
    free(got);
}

/* Makes standard error a full pipe. Returns the end to read from, with the number of bytes in
 * *size. */
static int block_standard_error(size_t *size) {
    static const char zeros[4096];
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    for (*size = 0; write(ends[1], zeros, sizeof zeros) > 0; *size += sizeof zeros) {
    }
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

static void say(struct tool_words *words, enum tool_words_kind kind, const char *line, int number) {
    fprintf(tool_words_line(words), "%s %d\n", line, number);
    tool_words_send(words, kind);
}

enum { READ_MAX = 1 << 20 };

struct pipe_end {
    int fd;
    size_t size;
    char bytes[READ_MAX + 1];
};

static void *read_to_its_end(void *data) {
    struct pipe_end *end = data;
    ssize_t got;
    while ((got = read(end->fd, end->bytes + end->size, READ_MAX - end->size)) > 0) {
        end->size += (size_t)got;
    }
    return NULL;
}

/* Checks that the lines are those that were sent, in order. Returns how many came or were
 * counted. */
static int count_lines(const char *text, bool *reported) {
    static const char note[] =
        "{\"warning\":\"OUTPUT\",\"message\":\"nobody read standard error; lines left out here: ";
    int last = -1;
    int lines = 0;
    for (; *text != '\0'; text = strchr(text, '\n') + 1) {
        if (strncmp(text, "log ", 4) == 0) {
            assert_true(atoi(text + 4) > last);
            last = atoi(text + 4);
            lines++;
        } else if (strncmp(text, note, sizeof note - 1) == 0) {
            lines += atoi(text + sizeof note - 1);
        } else {
            assert_int_equal(strncmp(text, "report 1\n", 9), 0);
            *reported = true;
        }
    }
    return lines;
}

/* The log fills its part of the queue while nobody reads; the rest is counted. A report still has
 * room. */
TEST(words_wait_in_a_bounded_queue) {
    enum { LINES = 100000 };
    size_t filling;
    pthread_t thread;
    bool reported = false;
    int saved = dup(STDERR_FILENO);
    struct tool_words *words = tool_words_new();
    struct pipe_end *end = calloc(1, sizeof *end);
    assert_true(saved >= 0 && words != NULL && end != NULL);
    end->fd = block_standard_error(&filling);
    assert_int_equal(tool_words_start(words, true), 0);
    for (int i = 0; i < LINES; i++) {
        say(words, TOOL_WORDS_LOG, "log", i);
    }
    say(words, TOOL_WORDS_REPORT, "report", 1);
    assert_int_equal(pthread_create(&thread, NULL, read_to_its_end, end), 0);
    tool_words_end(words);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO); /* closes the pipe */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(end->size > filling && end->size < filling + 200000);
    assert_int_equal(count_lines(end->bytes + filling, &reported), LINES);
    assert_true(reported);
    close(saved);
    close(end->fd);
    free(end);
}

static void print_with_levels(void) {
    struct tool_words *words = tool_words_new();
    assert_non_null(words);
    say(words, TOOL_WORDS_REPORT, "an error", 1);
    tool_words_level(words, TOOL_WORDS_WARNING);
    say(words, TOOL_WORDS_REPORT, "two\n\nlines", 2);
    say(words, TOOL_WORDS_REPORT, "an error again", 3);
    tool_words_level(words, TOOL_WORDS_DEBUG);
    say(words, TOOL_WORDS_LOG, "details", 4);
    assert_int_equal(tool_words_start(words, false), 0);
    tool_words_level(words, TOOL_WORDS_INFO);
    say(words, TOOL_WORDS_LOG, "from the thread", 5);
    tool_words_end(words);
}

/* systemd names the stream of its journal. Where it is not ours any more, and anywhere else, marks
 * would be noise. */
TEST(lines_in_the_journal_have_their_level) {
    static const char marked[] = "<3>an error 1\n<4>two\n<4>\n<4>lines 2\n<3>an error again 3\n<7>details 4\n"
                                 "<6>from the thread 5\n",
                      plain[] = "an error 1\ntwo\n\nlines 2\nan error again 3\ndetails 4\nfrom the thread 5\n";
    const char *const wrong[] = {"", "1:1", "%ju", "%ju:", "%ju:%ju1", "%ju:%ju:", "x%ju:%ju"};
    int saved = dup(STDERR_FILENO);
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        char stream[64], got[256] = "";
        struct stat stat;
        FILE *file = tmpfile();
        assert_non_null(file);
        assert_int_equal(fstat(fileno(file), &stat), 0);
        const bool right = i == sizeof wrong / sizeof *wrong;
        snprintf(stream, sizeof stream, right ? "%ju:%ju" : wrong[i], (uintmax_t)stat.st_dev, (uintmax_t)stat.st_ino);
        assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
        assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
        print_with_levels();
        assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
        rewind(file);
        const size_t size = fread(got, 1, sizeof got - 1, file);
        assert_string_equal(got, right ? marked : plain);
        assert_int_equal(size, strlen(got));
        fclose(file);
    }
    close(saved);
    unsetenv("JOURNAL_STREAM");
}

static bool take(struct tool_keys *keys, size_t node, const char *resource, int64_t ttl_ms) {
    const redlock_listed lock = {
        .size = sizeof lock, .node = node, .resource = resource, .token = "t", .ttl_ms = ttl_ms, .waiters = -1};
    return tool_keys_take(&lock, keys);
}

/* SCAN may name a key twice. */
TEST(keys_are_sorted_and_named_once) {
    struct tool_keys keys = {0};
    for (int round = 0; round < 2; round++) {
        for (int i = 99; i >= 0; i--) {
            char name[16];
            snprintf(name, sizeof name, "r%02d", i);
            assert_true(take(&keys, 2, name, i));
            assert_true(take(&keys, 0, name, i));
        }
    }
    assert_int_equal(keys.count, 400);
    tool_keys_sort(&keys);
    assert_int_equal(keys.count, 200);
    for (size_t i = 0; i < keys.count; i += 2) {
        assert_int_equal(tool_keys_same(&keys, i), 2);
        assert_int_equal(keys.keys[i].node, 0);
        assert_int_equal(keys.keys[i + 1].node, 2);
        assert_int_equal(keys.keys[i].ttl_ms, i / 2);
        assert_string_equal(keys.keys[i].token, "t");
    }
    tool_keys_free(&keys);
    tool_keys_sort(&keys);
    assert_int_equal(keys.count, 0);
}

TEST(uris_are_split) {
    static const struct {
        const char *uri, *user, *password, *same; /* the same node, without user and password */
    } cases[] = {
        {"redis://u:p@a:1/2", "u", "p", "redis://a:1/2"},
        {"redis://:p@a", NULL, "p", "a"},
        {"redis://u%40x:p%3a%25@a", "u@x", "p:%", "a"},
        {"redis://u:p@q:r@a", "u", "p@q:r", "a"},
        {"redis://u@a", NULL, NULL, "redis://a"},
        {"redis://u:@a", NULL, NULL, "redis://a"},
        {"rediss://u:p@a", "u", "p", "rediss://a"},
        {"unix:///run/a@b:c", NULL, NULL, "unix:///run/a@b:c"},
        {"a:1", NULL, NULL, "redis://a:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tool_uri uri = tool_uri_split(cases[i].uri, "redis://");
        const struct tool_uri same = tool_uri_split(cases[i].same, "redis://");
        const struct tool_uri other = tool_uri_split("rediss://b", "redis://");
        struct tool_login login;
        assert_true(tool_uris_meet(&uri, &same));
        assert_false(tool_uris_meet(&uri, &other));
        assert_null(tool_login_read(&login, uri.user_info, uri.user_info_size));
        assert_int_equal(login.user != NULL, cases[i].user != NULL);
        assert_int_equal(login.password != NULL, cases[i].password != NULL);
        assert_true(login.user == NULL || strcmp(login.user, cases[i].user) == 0);
        assert_true(login.password == NULL || strcmp(login.password, cases[i].password) == 0);
        tool_login_clear(&login);
    }
    static const char *const wrong[] = {"u:%", "u:%4", "u:%zz", "u:a%00b", "%g1:p"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tool_login login;
        assert_non_null(tool_login_read(&login, wrong[i], strlen(wrong[i])));
        tool_login_clear(&login);
    }
}
