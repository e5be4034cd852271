/* The mailbox: order, the wake-up that is never missed, and its end. */
#include <stdlib.h>

#include "test.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "blocking/mailbox.h"

struct note {
    struct redlock_letter letter;
    unsigned writer, number;
};

TEST(letters_come_out_oldest_first) {
    struct redlock_mailbox mailbox;
    struct note notes[5] = {0};
    redlock_mailbox_init(&mailbox);
    assert_null(redlock_mailbox_take(&mailbox));
    for (int i = 0; i < 5; i++) {
        assert_is(redlock_mailbox_put(&mailbox, &notes[i].letter), REDLOCK_MAILBOX_QUEUED);
    }
    struct redlock_letter *letter = redlock_mailbox_take(&mailbox);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(letter, &notes[i].letter);
        letter = letter->next;
    }
    assert_null(letter);
    assert_null(redlock_mailbox_take(&mailbox));
}

TEST(only_the_first_letter_to_a_sleeper_wakes) {
    struct redlock_mailbox mailbox;
    struct note notes[4] = {0};
    redlock_mailbox_init(&mailbox);
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_is(redlock_mailbox_put(&mailbox, &notes[0].letter), REDLOCK_MAILBOX_WAKE);
    assert_is(redlock_mailbox_put(&mailbox, &notes[1].letter), REDLOCK_MAILBOX_QUEUED);
    assert_false(redlock_mailbox_sleep(&mailbox));
    redlock_mailbox_awake(&mailbox);
    struct redlock_letter *letter = redlock_mailbox_take(&mailbox);
    assert_ptr_equal(letter, &notes[0].letter);
    assert_ptr_equal(letter->next, &notes[1].letter);
    assert_null(letter->next->next);
    assert_true(redlock_mailbox_sleep(&mailbox));
    redlock_mailbox_awake(&mailbox);
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].letter), REDLOCK_MAILBOX_QUEUED);
    assert_ptr_equal(redlock_mailbox_take(&mailbox), &notes[2].letter);
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_null(redlock_mailbox_take(&mailbox));
    assert_is(redlock_mailbox_put(&mailbox, &notes[3].letter), REDLOCK_MAILBOX_QUEUED);
}

TEST(a_closed_mailbox_gives_back_and_refuses) {
    struct redlock_mailbox mailbox;
    struct note notes[3] = {0};
    redlock_mailbox_init(&mailbox);
    (void)redlock_mailbox_put(&mailbox, &notes[0].letter);
    (void)redlock_mailbox_put(&mailbox, &notes[1].letter);
    struct redlock_letter *letter = redlock_mailbox_close(&mailbox);
    assert_ptr_equal(letter, &notes[0].letter);
    assert_ptr_equal(letter->next, &notes[1].letter);
    assert_null(letter->next->next);
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].letter), REDLOCK_MAILBOX_CLOSED);
    assert_null(redlock_mailbox_take(&mailbox));
    assert_null(redlock_mailbox_close(&mailbox));
    assert_true(redlock_mailbox_sleep(&mailbox));
    redlock_mailbox_awake(&mailbox);
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].letter), REDLOCK_MAILBOX_CLOSED);

    redlock_mailbox_init(&mailbox);
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_null(redlock_mailbox_close(&mailbox));
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].letter), REDLOCK_MAILBOX_CLOSED);
}

#define WRITERS 8
#define NOTES   20000

struct office {
    struct redlock_mailbox mailbox;
    sem_t bell;
    atomic_uint rung;
};

struct writer {
    struct office *office;
    struct note *notes;
    unsigned index;
};

static void *write_notes(void *data) {
    struct writer *writer = data;
    for (unsigned i = 0; i < NOTES; i++) {
        writer->notes[i] = (struct note){.writer = writer->index, .number = i};
        if (redlock_mailbox_put(&writer->office->mailbox, &writer->notes[i].letter) == REDLOCK_MAILBOX_WAKE) {
            atomic_fetch_add(&writer->office->rung, 1);
            sem_post(&writer->office->bell);
        }
    }
    return NULL;
}

/* A reader that sleeps whenever the mailbox is empty would sleep for ever after one missed
 * wake-up. */
TEST(many_writers_lose_nothing_and_keep_their_order) {
    struct office office;
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    unsigned next[WRITERS] = {0}, slept = 0;
    redlock_mailbox_init(&office.mailbox);
    atomic_init(&office.rung, 0);
    assert_int_equal(sem_init(&office.bell, 0, 0), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.office = &office, .index = i, .notes = calloc(NOTES, sizeof(struct note))};
        assert_non_null(writers[i].notes);
        assert_int_equal(pthread_create(&threads[i], NULL, write_notes, &writers[i]), 0);
    }
    for (unsigned read = 0; read < WRITERS * NOTES;) {
        struct redlock_letter *letter = redlock_mailbox_take(&office.mailbox);
        for (; letter; letter = letter->next, read++) {
            struct note *note = (struct note *)letter;
            assert_int_equal(note->number, next[note->writer]);
            next[note->writer]++;
        }
        if (read < WRITERS * NOTES && redlock_mailbox_sleep(&office.mailbox)) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 60;
            slept++;
            assert_int_equal(sem_timedwait(&office.bell, &until), 0);
            redlock_mailbox_awake(&office.mailbox);
        }
    }
    assert_null(redlock_mailbox_close(&office.mailbox));
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(next[i], NOTES);
        free(writers[i].notes);
    }
    /* At most one wake-up for each sleep. */
    assert_int_equal(atomic_load(&office.rung), slept);
    sem_destroy(&office.bell);
}
