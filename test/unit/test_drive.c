/* Who drives: the states of the table, the thread's naps, and that no wake-up is lost. */
#include "test.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "blocking/drive.h"

static const struct timespec long_ms = {.tv_nsec = 20000000};

/* The loop's descriptor is the reading end of a pipe. */
struct loop {
    struct redlock_drive drive;
    int ends[2];
};

static void begin(struct loop *loop) {
    assert_int_equal(redlock_drive_init(&loop->drive), 0);
    assert_int_equal(pipe(loop->ends), 0);
}

static void end(struct loop *loop) {
    redlock_drive_destroy(&loop->drive);
    (void)close(loop->ends[0]);
    (void)close(loop->ends[1]);
}

TEST(one_drives_at_a_time) {
    struct loop loop;
    begin(&loop);
    assert_false(redlock_drive_claim(&loop.drive));
    redlock_drive_rest(&loop.drive, false);
    assert_true(redlock_drive_claim(&loop.drive));
    assert_false(redlock_drive_claim(&loop.drive));
    assert_false(redlock_drive_resume(&loop.drive));
    redlock_drive_exit(&loop.drive, true);
    assert_true(redlock_drive_resume(&loop.drive));
    assert_false(redlock_drive_claim(&loop.drive));
    end(&loop);
}

TEST(the_thread_looks_when_a_nap_is_over) {
    struct loop loop;
    begin(&loop);
    redlock_drive_rest(&loop.drive, false);
    assert_true(redlock_drive_sleep(&loop.drive, loop.ends[0]));
    assert_false(redlock_drive_claim(&loop.drive));
    end(&loop);
}

TEST(the_thread_watches_the_loop) {
    struct loop loop;
    begin(&loop);
    redlock_drive_rest(&loop.drive, true);
    assert_int_equal(write(loop.ends[1], "x", 1), 1);
    assert_true(redlock_drive_sleep(&loop.drive, loop.ends[0]));
    assert_false(redlock_drive_claim(&loop.drive));
    end(&loop);
}

TEST(who_passes_the_drive_wakes_the_thread) {
    struct loop loop;
    begin(&loop);
    for (int watches = 0; watches < 2; watches++) {
        redlock_drive_rest(&loop.drive, watches);
        assert_true(redlock_drive_claim(&loop.drive));
        redlock_drive_pass(&loop.drive);
        assert_true(redlock_drive_sleep(&loop.drive, loop.ends[0]));
        assert_false(redlock_drive_claim(&loop.drive));
    }
    end(&loop);
}

struct sleeper {
    struct loop loop;
    pthread_t thread;
    atomic_uint wants;
};

static void *sleep_once(void *data) {
    struct sleeper *sleeper = data;
    while (!redlock_drive_sleep(&sleeper->loop.drive, sleeper->loop.ends[0])) {
        atomic_fetch_add(&sleeper->wants, 1);
    }
    return NULL;
}

/* A caller drives, the thread sleeps: it watches the loop, or naps. */
static void begin_sleep(struct sleeper *sleeper, bool watches) {
    begin(&sleeper->loop);
    atomic_init(&sleeper->wants, 0);
    redlock_drive_rest(&sleeper->loop.drive, watches);
    if (watches) {
        assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_once, sleeper), 0);
        nanosleep(&long_ms, NULL);
    }
    assert_true(redlock_drive_claim(&sleeper->loop.drive));
    if (!watches) {
        assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_once, sleeper), 0);
    }
}

static void end_sleep(struct sleeper *sleeper) {
    pthread_join(sleeper->thread, NULL);
    assert_false(redlock_drive_claim(&sleeper->loop.drive));
    end(&sleeper->loop);
}

TEST(the_thread_wants_to_drive_where_a_caller_drives_for_long) {
    for (int blind = 0; blind < 2; blind++) {
        for (int passes = 0; passes < 2; passes++) {
            struct sleeper sleeper;
            begin_sleep(&sleeper, blind);
            redlock_drive_end_blind(&sleeper.loop.drive);
            while (!redlock_drive_is_wanted(&sleeper.loop.drive)) {
                (void)sched_yield();
            }
            nanosleep(&long_ms, NULL);
            assert_int_equal(atomic_load(&sleeper.wants), 1);
            assert_false(redlock_drive_claim(&sleeper.loop.drive));
            assert_false(redlock_drive_resume(&sleeper.loop.drive));
            if (passes) {
                redlock_drive_pass(&sleeper.loop.drive);
            } else {
                redlock_drive_exit(&sleeper.loop.drive, true);
            }
            end_sleep(&sleeper);
        }
    }
}

/* An event of the loop comes while a caller drives: the thread naps, and looks later. */
TEST(a_caller_that_drives_is_left_alone) {
    struct sleeper sleeper;
    begin_sleep(&sleeper, true);
    assert_int_equal(write(sleeper.loop.ends[1], "x", 1), 1);
    assert_false(redlock_drive_resume(&sleeper.loop.drive));
    redlock_drive_exit(&sleeper.loop.drive, true);
    end_sleep(&sleeper);
}

struct hammer {
    struct redlock_drive *drive;
    atomic_bool over;
};

static void *claim_and_exit(void *data) {
    struct hammer *hammer = data;
    while (!atomic_load(&hammer->over)) {
        if (redlock_drive_claim(hammer->drive)) {
            redlock_drive_exit(hammer->drive, false);
        }
    }
    return NULL;
}

TEST(callers_that_never_look_do_not_keep_the_thread_from_it) {
    struct loop loop;
    pthread_t thread;
    begin(&loop);
    struct hammer hammer = {.drive = &loop.drive};
    assert_int_equal(pthread_create(&thread, NULL, claim_and_exit, &hammer), 0);
    for (int i = 0; i < 100; i++) {
        redlock_drive_rest(&loop.drive, i % 2 == 0);
        assert_true(i % 2 != 0 || write(loop.ends[1], "x", 1) == 1);
        for (int wants = 0; !redlock_drive_sleep(&loop.drive, loop.ends[0]); wants++) {
            assert_int_equal(wants, 0);
        }
        assert_false(redlock_drive_claim(&loop.drive));
    }
    atomic_store(&hammer.over, true);
    pthread_join(thread, NULL);
    end(&loop);
}

#define CALLERS 3
#define CALLS   20000

struct road {
    struct loop loop;
    unsigned long turns, claims; /* only who drives changes these */
    atomic_bool over;
};

static void *call(void *data) {
    struct road *road = data;
    for (unsigned i = 0; i < CALLS; i++) {
        if (redlock_drive_claim(&road->loop.drive)) {
            road->claims++;
            if (++road->turns % 3 != 0) {
                redlock_drive_exit(&road->loop.drive, road->turns % 2);
            } else {
                redlock_drive_pass(&road->loop.drive);
            }
        }
    }
    return NULL;
}

static void *drive(void *data) {
    struct road *road = data;
    while (!atomic_load(&road->over)) {
        road->turns++;
        redlock_drive_rest(&road->loop.drive, false);
        while (!redlock_drive_sleep(&road->loop.drive, road->loop.ends[0])) {
        }
    }
    return NULL;
}

/* ThreadSanitizer sees whether two drive at once. */
TEST(what_belongs_to_the_loop_passes_from_one_to_the_next) {
    struct road road = {.turns = 0};
    pthread_t callers[CALLERS], thread;
    begin(&road.loop);
    assert_int_equal(pthread_create(&thread, NULL, drive, &road), 0);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&callers[i], NULL, call, &road), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i], NULL);
    }
    atomic_store(&road.over, true);
    pthread_join(thread, NULL);
    assert_true(road.claims <= road.turns);
    end(&road.loop);
}
