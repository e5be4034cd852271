/* The eventcount: each thread that is finished wakes, and no other returns, however many sleep and
 * share a bit. */
#include "test.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "blocking/eventcount.h"
#include "blocking/mailbox.h"

#define PLACES     (REDLOCK_EVENTCOUNT_ROWS * 32)
#define PATIENCE_S 100

/* A lost wake-up hangs this program. A deadline reports that before CTest's timeout does. */
static void on_alarm(int number) {
    (void)number;
    static const char text[] = "a sleeper was not woken\n";
    (void)!fwrite(text, 1, sizeof text - 1, stderr);
    abort();
}

static int before(UNUSED void **state) {
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(PATIENCE_S);
    return 0;
}

TESTS_WITH(before, NULL);

TEST(places_differ_until_they_run_out) {
    static struct redlock_sleeper sleepers[PLACES + 1];
    uint32_t taken[REDLOCK_EVENTCOUNT_ROWS] = {0};
    struct redlock_eventcount eventcount;
    redlock_eventcount_init(&eventcount);
    for (unsigned i = 0; i < PLACES; i++) {
        redlock_eventcount_add(&eventcount, &sleepers[i]);
        assert_true(sleepers[i].alone);
        assert_int_equal(sleepers[i].row, i / 32); /* few sleepers are woken by one call */
        assert_int_equal(taken[sleepers[i].row] & sleepers[i].bit, 0);
        taken[sleepers[i].row] |= sleepers[i].bit;
    }
    redlock_eventcount_add(&eventcount, &sleepers[PLACES]);
    assert_false(sleepers[PLACES].alone);
    assert_in_range(sleepers[PLACES].row, 0, REDLOCK_EVENTCOUNT_ROWS - 1);
    assert_true(sleepers[PLACES].bit != 0 && (sleepers[PLACES].bit & (sleepers[PLACES].bit - 1)) == 0);
    redlock_eventcount_remove(&eventcount, &sleepers[PLACES]);
    redlock_eventcount_remove(&eventcount, &sleepers[77]);
    struct redlock_sleeper again;
    redlock_eventcount_add(&eventcount, &again);
    assert_true(again.alone);
    assert_int_equal(again.row, 2);
    assert_int_equal(again.bit, UINT32_C(1) << 13);
}

TEST(a_finished_thread_does_not_sleep) {
    struct redlock_eventcount eventcount;
    struct redlock_sleeper sleeper;
    redlock_eventcount_init(&eventcount);
    redlock_eventcount_add(&eventcount, &sleeper);
    redlock_eventcount_finish(&eventcount, &sleeper);
    redlock_eventcount_sleep(&eventcount, &sleeper); /* would never return, since nobody notifies */
    redlock_eventcount_remove(&eventcount, &sleeper);
    redlock_eventcount_notify(&eventcount); /* nobody slept: nothing to do */
    assert_int_equal(atomic_load(&eventcount.rows[0].epoch), 0);
}

/* --- Threads that make one request after another to a finisher, like callers to the loop thread
 * --- */

struct question {
    struct redlock_mailbox_item item;
    struct redlock_sleeper sleeper;
    uint64_t asked, answer; /* not atomic: the eventcount says when to read them */
};

struct hall {
    struct redlock_eventcount eventcount;
    struct redlock_mailbox mailbox;
    unsigned threads, rounds;
    atomic_uint left; /* threads that still make requests */
};

static uint64_t answer_to(uint64_t asked) {
    return asked * 3 + 1;
}

static void *ask(void *data) {
    struct hall *hall = data;
    for (unsigned i = 0; i < hall->rounds; i++) {
        struct question question = {.asked = ((uintptr_t)&question >> 12) + i};
        redlock_eventcount_add(&hall->eventcount, &question.sleeper);
        (void)redlock_mailbox_put(&hall->mailbox, &question.item);
        redlock_eventcount_sleep(&hall->eventcount, &question.sleeper);
        redlock_eventcount_remove(&hall->eventcount, &question.sleeper);
        if (question.answer != answer_to(question.asked)) {
            (void)fputs("woken without an answer\n", stderr);
            abort();
        }
    }
    atomic_fetch_sub(&hall->left, 1);
    return NULL;
}

/* Every other request waits for one more turn, so its thread must sleep through a notify for
 * others. */
static void finish_all(struct hall *hall) {
    struct redlock_mailbox_item *held = NULL;
    uint64_t count = 0, vain = 0;
    while (atomic_load(&hall->left) > 0) {
        struct redlock_mailbox_item *item = redlock_mailbox_take(&hall->mailbox), *back = NULL;
        if (!item && !held) {
            /* Mostly quick, to finish threads that are just about to sleep. */
            if (++vain % 256 == 0) {
                (void)sched_yield();
            }
            continue;
        }
        for (int turn = 0; turn < 2; turn++) {
            struct redlock_mailbox_item *next;
            for (struct redlock_mailbox_item *at = turn ? item : held; at; at = next) {
                struct question *question = (struct question *)at;
                next = at->next;
                if (turn && count++ % 2) {
                    at->next = back;
                    back = at;
                } else {
                    question->answer = answer_to(question->asked);
                    redlock_eventcount_finish(&hall->eventcount, &question->sleeper);
                }
            }
        }
        held = back;
        redlock_eventcount_notify(&hall->eventcount);
    }
}

static void everyone_gets_an_answer(unsigned threads, unsigned rounds) {
    struct hall hall = {.threads = threads, .rounds = rounds};
    pthread_t *asking = calloc(threads, sizeof *asking);
    assert_non_null(asking);
    redlock_eventcount_init(&hall.eventcount);
    redlock_mailbox_init(&hall.mailbox);
    atomic_init(&hall.left, threads);
    for (unsigned i = 0; i < threads; i++) {
        assert_int_equal(pthread_create(&asking[i], NULL, ask, &hall), 0);
    }
    finish_all(&hall);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(asking[i], NULL);
    }
    for (unsigned i = 0; i < REDLOCK_EVENTCOUNT_ROWS; i++) {
        assert_int_equal(atomic_load(&hall.eventcount.rows[i].taken), 0);
    }
    free(asking);
}

TEST(one_thread_is_never_left_asleep) {
    everyone_gets_an_answer(1, 100000);
}

TEST(sixteen_threads_are_never_left_asleep) {
    everyone_gets_an_answer(16, 20000);
}

TEST(more_threads_than_bits_are_never_left_asleep) {
    everyone_gets_an_answer(PLACES + 64, 200);
}
