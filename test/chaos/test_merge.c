/* Writes and joins events: lines of several processes, half lines of killed ones, unreadable
 * ones. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history/history.h"
#include "history/lines.h"
#include "history/log.h"
#include "short_memory.h"
#include "test.h"
#include "values/clock.h"

static char directory[64];
static char paths[4][96];

static int set_up(UNUSED void **state) {
    snprintf(directory, sizeof directory, "/tmp/chaos-merge-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d.jsonl", directory, i);
    }
    return 0;
}

static int tear_down(UNUSED void **state) {
    for (int i = 0; i < 4; i++) {
        unlink(paths[i]);
    }
    return rmdir(directory);
}

static void write_bytes(const char *path, const char *bytes, size_t length) {
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
}

static void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

static char *read_text(const char *path) {
    static char text[1 << 20];
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    size_t length = fread(text, 1, sizeof text - 1, in);
    text[length] = '\0';
    fclose(in);
    return text;
}

static void merge_ok(size_t count) {
    struct chaos_error error = {""};
    const char *in[] = {paths[0], paths[1], paths[2]};
    if (!chaos_merge(in, count, paths[3], &error)) {
        fail_msg("%s", error.text);
    }
}

static void merge_fails(size_t count, const char *out, const char *sentence) {
    struct chaos_error error = {""};
    const char *in[] = {paths[0], paths[1], paths[2]};
    assert_false(chaos_merge(in, count, out, &error));
    assert_contains(error.text, sentence);
}

TESTS_WITH(set_up, tear_down);

TEST(by_time_and_in_order) {
    write_text(paths[0], "{\"t\":5,\"a\":1}\n{\"t\":5,\"a\":2}\n{\"t\": 90,\"a\":3}\n");
    write_text(paths[1], "{\"t\":7,\"b\":1}\n{\"t\":5,\"b\":2}\n{\"t\":-3,\"b\":3}\n{\"t\":100,\"half");
    write_text(paths[2], "");
    write_text(paths[3], "what was there before, and is longer than what comes now, by far: it goes, all of it. And "
                         "more of it, and more.\n");
    merge_ok(3);
    assert_string_equal(read_text(paths[3]),
                        "{\"t\":-3,\"b\":3}\n{\"t\":5,\"a\":1}\n{\"t\":5,\"a\":2}\n{\"t\":5,\"b\":2}\n{\"t\":7,"
                        "\"b\":1}\n{\"t\": 90,\"a\":3}\n");
    merge_ok(0);
    assert_string_equal(read_text(paths[3]), "");
}

TEST(bytes_are_kept) {
    static const char bytes[] = "{\"t\":2,\"x\":\"\0\"}\n{\"t\":1}\n";
    write_bytes(paths[0], bytes, sizeof bytes - 1);
    merge_ok(1);
    FILE *in = fopen(paths[3], "re");
    char joined[64];
    assert_non_null(in);
    assert_int_equal(fread(joined, 1, sizeof joined, in), sizeof bytes - 1);
    fclose(in);
    assert_memory_equal(joined, "{\"t\":1}\n{\"t\":2,\"x\":\"\0\"}\n", sizeof bytes - 1);
}

TEST(what_cannot_be_joined) {
    char missing[128];
    write_text(paths[0], "{\"t\":1}\n{\"u\":1}\n");
    merge_fails(1, paths[3], "0.jsonl:2: no event: its line does not begin with its time");
    write_text(paths[0], "{\"t\":1}\n\n{\"t\":1}\n");
    merge_fails(1, paths[3], "0.jsonl:2: no event");
    write_text(paths[0], "{\"t\":1}\n");
    unlink(paths[1]);
    merge_fails(2, paths[3], "1.jsonl: No such file");
    snprintf(missing, sizeof missing, "%s/none/history.jsonl", directory);
    merge_fails(1, missing, "none/history.jsonl: No such file");
    assert_int_equal(mkdir(paths[1], 0700), 0);
    merge_fails(2, paths[3], "1.jsonl: Is a directory");
    assert_int_equal(rmdir(paths[1]), 0);
    write_text(paths[1], "");
    if (access("/dev/full", W_OK) == 0) {
        merge_fails(1, "/dev/full", "cannot write /dev/full: No space left");
    }
}

static enum short_end merge_one(void *what) {
    struct chaos_error error = {""};
    const char *in[] = {paths[0]};
    (void)what;
    return chaos_merge(in, 1, paths[3], &error) ? SHORT_ENOUGH : SHORT_WRONG;
}

TEST(memory_runs_out) {
    FILE *out = fopen(paths[0], "we");
    assert_non_null(out);
    for (int i = 0; i < 5000; i++) {
        fprintf(out, "{\"t\":%d}\n", 5000 - i);
    }
    assert_int_equal(fclose(out), 0);
    for (long at = 1; at <= 14; at++) { /* 1, 2, 4, …, 8192 */
        assert_int_equal(short_run(at, merge_one, NULL), SHORT_ENDED);
    }
    assert_int_equal(short_run(15, merge_one, NULL), SHORT_ENOUGH);
}

TEST(events_are_lines) {
    struct chaos_log log;
    unlink(paths[0]);
    assert_true(chaos_log_open(&log, paths[0]));
    chaos_log_event(&log, 123, "spawn", "s:i,s:I", "client", 3, "pid", (json_int_t)4711);
    chaos_log_event(&log, 124, "left", "s:[s,s]", "what", "a \"key\"", "a\nb");
    chaos_log_event(&log, 125, "nothing", "");
    chaos_log_event(&log, 126, "exit", "s:b,s:o,s:n", "expected", 1, "list", json_array(), "none");
    chaos_log_close(&log);
    assert_int_equal(log.fd, -1);
    chaos_log_close(&log);
    assert_string_equal(read_text(paths[0]),
                        "{\"t\":123,\"event\":\"spawn\",\"client\":3,\"pid\":4711}\n"
                        "{\"t\":124,\"event\":\"left\",\"what\":[\"a \\\"key\\\"\",\"a\\nb\"]}\n"
                        "{\"t\":125,\"event\":\"nothing\"}\n"
                        "{\"t\":126,\"event\":\"exit\",\"expected\":true,\"list\":[],\"none\":null}\n");
    merge_ok(1);
    assert_int_equal(strlen(read_text(paths[3])), strlen(read_text(paths[0])));
}

/* A process that starts again after a kill does not append to the half line of its predecessor. */
TEST(half_lines_are_cut_off) {
    static const char whole[] = "{\"t\":1,\"event\":\"x\"}\n";
    for (size_t length = 0; length < 3; length++) {
        char *text = malloc(20000);
        assert_non_null(text);
        /* No half line, one in the last block, one over several blocks. */
        size_t half = length * 5000;
        memcpy(text, whole, sizeof whole - 1);
        memset(text + sizeof whole - 1, 'x', half);
        write_bytes(paths[0], text, sizeof whole - 1 + half);
        struct chaos_log log;
        assert_true(chaos_log_open(&log, paths[0]));
        chaos_log_event(&log, 2, "y", "");
        chaos_log_close(&log);
        assert_string_equal(read_text(paths[0]), "{\"t\":1,\"event\":\"x\"}\n{\"t\":2,\"event\":\"y\"}\n");
        write_bytes(paths[0], text + sizeof whole - 1, half);
        assert_true(chaos_log_open(&log, paths[0]));
        chaos_log_close(&log);
        assert_string_equal(read_text(paths[0]), "");
        free(text);
    }
}

TEST(no_log) {
    char missing[128];
    struct chaos_log log;
    snprintf(missing, sizeof missing, "%s/none/log", directory);
    assert_false(chaos_log_open(&log, missing));
    assert_int_equal(log.fd, -1);
    assert_false(chaos_log_open(&log, directory));
    assert_int_equal(log.fd, -1);
}

/* A process that cannot write an event ends with status 70. */
static void dies_of(void (*act)(struct chaos_log *log)) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDERR_FILENO);
        struct chaos_log log = {.fd = -1};
        act(&log);
        _exit(0);
    }
    assert_exits(pid, 70);
}

static void closed_log(struct chaos_log *log) {
    chaos_log_event(log, 1, "x", "");
}

static void full_disk(struct chaos_log *log) {
    log->fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    chaos_log_event(log, 1, "x", "");
}

static void broken_text(struct chaos_log *log) {
    log->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    chaos_log_event(log, 1, "x", "s:s", "bytes", "\xff\xfe");
}

TEST(no_holes) {
    dies_of(closed_log);
    dies_of(full_disk);
    dies_of(broken_text);
}

/* A log that must not end the process reports the first error, and writes nothing after it. */
TEST(goes_on) {
    struct chaos_log log = {.fd = open("/dev/full", O_WRONLY | O_CLOEXEC), .goes_on = true};
    chaos_log_event(&log, 1, "first", "s:o", "list", json_array());
    assert_string_equal(log.error, "cannot write down the event 'first': No space left on device; a history with holes "
                                   "proves nothing");
    chaos_log_close(&log);
    log.fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(log.fd >= 0);
    chaos_log_event(&log, 2, "second", "s:o", "list", json_array());
    assert_int_equal(lseek(log.fd, 0, SEEK_END), 0);
    assert_contains(log.error, "'first'");
    chaos_log_close(&log);
}

/* Several processes at a time, each killed while it writes. What they leave can be joined and
 * read. */
TEST(killed_writers) {
    for (int round = 0; round < 10; round++) {
        write_text(
            paths[2],
            "{\"t\":0,\"event\":\"start\",\"version\":\"v\",\"command\":\"c\",\"backend\":\"b\",\"experiment\":\"\","
            "\"seed\":1,\"nodes\":1,\"clients\":2,\"resources\":[\"r\"],\"ttl_ms\":1,\"node_timeout_ms\":1,"
            "\"wait_ms\":1,\"breaks_assumptions\":false}\n");
        pid_t pids[2];
        for (int i = 0; i < 2; i++) {
            pid_t parent = getpid();
            fflush(NULL);
            pids[i] = fork();
            if (pids[i] == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                struct chaos_log log;
                char text[5000];
                memset(text, 'x', sizeof text - 1);
                text[sizeof text - 1] = '\0';
                if (getppid() != parent || !chaos_log_open(&log, paths[i])) {
                    _exit(1);
                }
                for (int n = 0; n < 10000; n++) {
                    chaos_log_event(&log, tool_now_us(), "whatever", "s:s", "text", text);
                }
                pause();
            }
            assert_true(pids[i] > 0);
        }
        for (int i = 0; i < 2; i++) {
            struct stat status = {0};
            for (int tries = 0;
                 tries < 20000 && (stat(paths[i], &status) != 0 || status.st_size < 100000 * (round + 1)); tries++) {
                usleep(1000);
            }
            assert_true(status.st_size >= 100000 * (round + 1));
            assert_int_equal(kill(pids[i], SIGKILL), 0);
            assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        }
        merge_ok(3);
        struct chaos_history history;
        struct chaos_error error = {""};
        FILE *in = fopen(paths[3], "re");
        assert_non_null(in);
        if (!chaos_history_read(in, "history.jsonl", &history, &error)) {
            fail_msg("%s", error.text);
        }
        chaos_history_clear(&history);
        fclose(in);
    }
}

TEST(it_is_quick) {
    struct chaos_log log;
    unlink(paths[0]);
    assert_true(chaos_log_open(&log, paths[0]));
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 20000; i++) {
        chaos_log_event(&log, tool_now_us(), "complete", "s:i,s:I,s:s,s:i,s:s,s:s,s:s", "client", 1, "op",
                        (json_int_t)i, "result", "OK", "attempts", 1, "token", "0123456789abcdef", "votes", "GGGPP",
                        "message", "");
    }
    getrusage(RUSAGE_SELF, &after);
    chaos_log_close(&log);
    /* 2000 events a second must be cheap: ten seconds of them in less than two seconds of processor
     * time, even with sanitizers. */
    int64_t used_us =
        (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
            INT64_C(1000000) +
        after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    print_message("%" PRId64 " ns an event\n", used_us / 20);
    assert_true(used_us < 2000000);
}
