/* A node's wall clock: the arithmetic of the page, a reader beside a writer, and the preloaded shim
 * in a program. */
#include "backends/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"
#define SECOND_NS INT64_C(1000000000)
#define SOME_NS   (INT64_C(1800000000) * SECOND_NS)

static int64_t now_ns(clockid_t id) {
    struct timespec now;
    assert_int_equal(clock_gettime(id, &now), 0);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static struct chaos_clock_setting *setting(struct chaos_clock *clock) {
    return &clock->settings[clock->sequence % 2];
}

static int make_file(void **state);
static int remove_file(void **state);
#define FRESH_TEST(name) TEST_HAS(name, make_file, remove_file, NULL, (*state), UNUSED struct file *file)

TEST(true_time_until_told) {
    struct chaos_clock clock = {0};
    assert_int_equal(chaos_clock_read_ns(&clock, SOME_NS), SOME_NS);
    assert_int_equal(chaos_clock_read_ns(&clock, 0), 0);
    assert_int_equal(chaos_clock_read_ns(&clock, INT64_MAX), INT64_MAX);
}

TEST(jumps_add_up) {
    struct chaos_clock clock = {0};
    chaos_clock_jump(&clock, 61000);
    assert_int_equal(chaos_clock_read_ns(&clock, SOME_NS), SOME_NS + 61 * SECOND_NS);
    chaos_clock_jump(&clock, -1);
    assert_int_equal(chaos_clock_read_ns(&clock, SOME_NS), SOME_NS + 61 * SECOND_NS - 1000000);
    chaos_clock_jump(&clock, -60999);
    assert_int_equal(chaos_clock_read_ns(&clock, SOME_NS), SOME_NS);
}

TEST(a_rate_runs_from_when_it_was_set) {
    struct chaos_clock clock = {0};
    int64_t before_ns = now_ns(CLOCK_REALTIME);
    chaos_clock_skew(&clock, 50000);
    int64_t after_ns = now_ns(CLOCK_REALTIME);
    assert_in_range(setting(&clock)->since_ns, before_ns, after_ns);
    int64_t since_ns = setting(&clock)->since_ns;
    assert_int_equal(chaos_clock_read_ns(&clock, since_ns), since_ns);
    assert_int_equal(chaos_clock_read_ns(&clock, since_ns + 100 * SECOND_NS), since_ns + 105 * SECOND_NS);
    assert_int_equal(chaos_clock_read_ns(&clock, since_ns + 20), since_ns + 21);
    chaos_clock_jump(&clock, 1000);
    assert_int_equal(chaos_clock_read_ns(&clock, since_ns + 100 * SECOND_NS), since_ns + 106 * SECOND_NS);
}

TEST(a_slow_one_falls_behind_and_a_stopped_one_stands) {
    struct chaos_clock clock = {0};
    chaos_clock_skew(&clock, -500000);
    int64_t since_ns = setting(&clock)->since_ns;
    assert_int_equal(chaos_clock_read_ns(&clock, since_ns + 10 * SECOND_NS), since_ns + 5 * SECOND_NS);
    chaos_clock_skew(&clock, -1000000);
    since_ns = setting(&clock)->since_ns;
    assert_int_equal(chaos_clock_read_ns(&clock, since_ns), chaos_clock_read_ns(&clock, since_ns + 77 * SECOND_NS));
}

/* A change of the rate makes no step: at that moment the old and the new page give the same
 * time. */
TEST(true_rate_keeps_the_error) {
    struct chaos_clock clock = {0};
    chaos_clock_jump(&clock, 5000);
    setting(&clock)->since_ns = now_ns(CLOCK_REALTIME) - 3600 * SECOND_NS;
    setting(&clock)->rate_ppm = 100000; /* for an hour: 6 minutes fast */
    struct chaos_clock old = clock;
    chaos_clock_skew(&clock, 0);
    assert_int_equal(setting(&clock)->rate_ppm, 0);
    assert_int_equal(chaos_clock_read_ns(&clock, setting(&clock)->since_ns),
                     chaos_clock_read_ns(&old, setting(&clock)->since_ns));
    assert_in_range(setting(&clock)->offset_ns, 365 * SECOND_NS, 395 * SECOND_NS);
    assert_int_equal(chaos_clock_read_ns(&clock, setting(&clock)->since_ns + 1000 * SECOND_NS),
                     setting(&clock)->since_ns + 1000 * SECOND_NS + setting(&clock)->offset_ns);
}

TEST(extremes_are_cut) {
    struct chaos_clock clock = {0};
    const int64_t years_ns = INT64_C(100) * 365 * 24 * 3600 * SECOND_NS;
    for (int i = 0; i < 3; i++) {
        chaos_clock_jump(&clock, INT64_MAX);
    }
    assert_int_equal(setting(&clock)->offset_ns, years_ns);
    for (int i = 0; i < 5; i++) {
        chaos_clock_jump(&clock, INT64_MIN);
    }
    assert_int_equal(setting(&clock)->offset_ns, -years_ns);
    chaos_clock_skew(&clock, INT64_MAX);
    assert_int_equal(setting(&clock)->rate_ppm, 1000000000);
    chaos_clock_skew(&clock, INT64_MIN);
    assert_int_equal(setting(&clock)->rate_ppm, -1000000000);
    /* A day at the largest rate does not overflow. */
    int64_t day_ns = 86400 * SECOND_NS;
    assert_int_equal(chaos_clock_drift_ns(day_ns, 1000000000), day_ns * 1000);
}

/* The writer was killed between its two steps, and left half a setting. */
TEST(a_dead_writer_changes_nothing) {
    struct chaos_clock clock = {0};
    chaos_clock_jump(&clock, 7000);
    clock.settings[(clock.sequence + 1) % 2].offset_ns = -12345;
    clock.settings[(clock.sequence + 1) % 2].rate_ppm = 67;
    assert_int_equal(chaos_clock_read_ns(&clock, SOME_NS), SOME_NS + 7 * SECOND_NS);
    chaos_clock_jump(&clock, 1000);
    assert_int_equal(chaos_clock_read_ns(&clock, SOME_NS), SOME_NS + 8 * SECOND_NS);
}

struct file {
    char path[64];
    struct chaos_clock *clock;
};

static int make_file(void **state) {
    struct file *file = calloc(1, sizeof *file);
    assert_non_null(file);
    strcpy(file->path, "/tmp/redlock-clock-XXXXXX");
    int fd = mkstemp(file->path);
    assert_true(fd >= 0);
    close(fd);
    file->clock = chaos_clock_open(file->path);
    assert_non_null(file->clock);
    *state = file;
    return 0;
}

static int remove_file(void **state) {
    struct file *file = *state;
    chaos_clock_close(file->clock);
    unlink(file->path);
    free(file);
    return 0;
}

FRESH_TEST(the_file_keeps_it) {
    chaos_clock_jump(file->clock, 3000);
    chaos_clock_close(file->clock);
    file->clock = chaos_clock_open(file->path);
    assert_non_null(file->clock);
    assert_int_equal(chaos_clock_read_ns(file->clock, SOME_NS), SOME_NS + 3 * SECOND_NS);
    errno = 0;
    assert_null(chaos_clock_open("/nonexistent/clock"));
    assert_int_equal(errno, ENOENT);
    chaos_clock_close(NULL);
}

/* Another process writes pages whose three parts belong together. A reader must never see parts of
 * two pages. */
FRESH_TEST(a_reader_never_sees_half) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            chaos_clock_jump(file->clock, 1000);
            chaos_clock_jump(file->clock, -1000);
            chaos_clock_skew(file->clock, 0);
        }
    }
    /* On a busy machine the writer may run late, and may be stopped with one error set for long. */
    const int64_t deadline_ns = now_ns(CLOCK_MONOTONIC) + 60 * SECOND_NS;
    int64_t seen[2] = {0, 0};
    bool late = false;
    for (int64_t i = 0; !late && (seen[0] < 1000 || seen[1] < 1000 || i < 200000); i++) {
        int64_t error_ns = chaos_clock_read_ns(file->clock, SOME_NS) - SOME_NS;
        if (error_ns != 0 && error_ns != SECOND_NS) {
            kill(child, SIGKILL);
            fail_msg("read %lld ns, which nobody wrote", (long long)error_ns);
        }
        seen[error_ns != 0]++;
        late = i % 1024 == 0 && now_ns(CLOCK_MONOTONIC) > deadline_ns;
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(late);
}

struct sight {
    char name[32];
    int64_t ns;
};

/* Runs the probe under the shim. */
static size_t probe(const char *page, struct sight *sights, size_t max) {
    char command[1024];
    snprintf(command, sizeof command, CHAOS_CLOCK_ENV "='%s' LD_PRELOAD='%s' '%s'", page, CLOCK_SHIM, CLOCK_PROBE);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    size_t count = 0;
    long long ns;
    while (count < max && fscanf(in, "%31s %lld", sights[count].name, &ns) == 2) {
        sights[count++].ns = ns;
    }
    assert_int_equal(pclose(in), 0);
    return count;
}

/* Each clock in each thread and process lies between two true readings plus the set error. */
static void check_probe(const char *page, int64_t error_ns) {
    struct sight sights[64];
    int64_t real_from = now_ns(CLOCK_REALTIME), boot_from = now_ns(CLOCK_BOOTTIME), mono_from = now_ns(CLOCK_MONOTONIC);
    size_t count = probe(page, sights, 64);
    int64_t real_to = now_ns(CLOCK_REALTIME), boot_to = now_ns(CLOCK_BOOTTIME), mono_to = now_ns(CLOCK_MONOTONIC);
    assert_int_equal(count, 3 * 8);
    for (size_t i = 0; i < count; i++) {
        const char *name = strchr(sights[i].name, '-') + 1;
        bool seconds = strcmp(name, "time") == 0 || strcmp(name, "stored") == 0;
        int64_t grain_ns = seconds ? SECOND_NS : 20000000; /* the coarse clock's, at 100 Hz */
        int64_t from = real_from + error_ns - grain_ns, to = real_to + error_ns;
        if (strcmp(name, "monotonic") == 0) {
            from = mono_from;
            to = mono_to;
        } else if (strcmp(name, "boottime") == 0) {
            from = boot_from;
            to = boot_to;
        }
        if (sights[i].ns < from || sights[i].ns > to) {
            fail_msg("%s reads %lld ns, which is not from %lld to %lld", sights[i].name, (long long)sights[i].ns,
                     (long long)from, (long long)to);
        }
    }
}

FRESH_TEST(the_shim_bends_wall_clocks_only) {
    check_probe(file->path, 0);
    chaos_clock_jump(file->clock, 1000000000);
    check_probe(file->path, 1000000 * SECOND_NS);
    chaos_clock_jump(file->clock, -3000000000LL);
    check_probe(file->path, -2000000 * SECOND_NS);
    /* Before 1970, with a fraction of a second: nanoseconds stay positive. */
    chaos_clock_jump(file->clock, -INT64_C(60) * 365 * 24 * 3600 * 1000 - 1);
    check_probe(file->path, -2000000 * SECOND_NS - (INT64_C(60) * 365 * 24 * 3600 * 1000 + 1) * 1000000);
}

FRESH_TEST(without_a_page_the_shim_tells_the_truth) {
    check_probe("/nonexistent/page", 0);
    assert_int_equal(truncate(file->path, 3), 0);
    check_probe(file->path, 0);
}
