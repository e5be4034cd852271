/* The mailbox: order, the wake-up that is never missed, and its end. */
#include "test.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "blocking/mailbox.h"

struct note {
    struct redlock_mailbox_item item;
    unsigned writer, number;
};

TEST(items_come_out_oldest_first) {
    struct redlock_mailbox mailbox;
    struct note notes[5] = {0};
    redlock_mailbox_init(&mailbox);
    assert_null(redlock_mailbox_take(&mailbox));
    for (int i = 0; i < 5; i++) {
        assert_is(redlock_mailbox_put(&mailbox, &notes[i].item), REDLOCK_MAILBOX_QUEUED);
    }
    struct redlock_mailbox_item *item = redlock_mailbox_take(&mailbox);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(item, &notes[i].item);
        item = item->next;
    }
    assert_null(item);
    assert_null(redlock_mailbox_take(&mailbox));
}

TEST(only_the_first_item_to_a_sleeper_wakes) {
    struct redlock_mailbox mailbox;
    struct note notes[4] = {0};
    redlock_mailbox_init(&mailbox);
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_is(redlock_mailbox_put(&mailbox, &notes[0].item), REDLOCK_MAILBOX_WAKE);
    assert_is(redlock_mailbox_put(&mailbox, &notes[1].item), REDLOCK_MAILBOX_QUEUED);
    assert_false(redlock_mailbox_sleep(&mailbox));
    redlock_mailbox_awake(&mailbox);
    struct redlock_mailbox_item *item = redlock_mailbox_take(&mailbox);
    assert_ptr_equal(item, &notes[0].item);
    assert_ptr_equal(item->next, &notes[1].item);
    assert_null(item->next->next);
    assert_true(redlock_mailbox_sleep(&mailbox));
    redlock_mailbox_awake(&mailbox);
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].item), REDLOCK_MAILBOX_QUEUED);
    assert_ptr_equal(redlock_mailbox_take(&mailbox), &notes[2].item);
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_null(redlock_mailbox_take(&mailbox));
    assert_is(redlock_mailbox_put(&mailbox, &notes[3].item), REDLOCK_MAILBOX_QUEUED);
}

TEST(a_closed_mailbox_gives_back_and_refuses) {
    struct redlock_mailbox mailbox;
    struct note notes[3] = {0};
    redlock_mailbox_init(&mailbox);
    (void)redlock_mailbox_put(&mailbox, &notes[0].item);
    (void)redlock_mailbox_put(&mailbox, &notes[1].item);
    struct redlock_mailbox_item *item = redlock_mailbox_close(&mailbox);
    assert_ptr_equal(item, &notes[0].item);
    assert_ptr_equal(item->next, &notes[1].item);
    assert_null(item->next->next);
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].item), REDLOCK_MAILBOX_CLOSED);
    assert_null(redlock_mailbox_take(&mailbox));
    assert_null(redlock_mailbox_close(&mailbox));
    assert_true(redlock_mailbox_sleep(&mailbox));
    redlock_mailbox_awake(&mailbox);
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].item), REDLOCK_MAILBOX_CLOSED);

    redlock_mailbox_init(&mailbox);
    assert_true(redlock_mailbox_sleep(&mailbox));
    assert_null(redlock_mailbox_close(&mailbox));
    assert_is(redlock_mailbox_put(&mailbox, &notes[2].item), REDLOCK_MAILBOX_CLOSED);
}

#define WRITERS 8
#define NOTES   20000

struct office {
    struct redlock_mailbox mailbox;
    sem_t eventcount;
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
        if (redlock_mailbox_put(&writer->office->mailbox, &writer->notes[i].item) == REDLOCK_MAILBOX_WAKE) {
            atomic_fetch_add(&writer->office->rung, 1);
            sem_post(&writer->office->eventcount);
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
    assert_int_equal(sem_init(&office.eventcount, 0, 0), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.office = &office, .index = i, .notes = calloc(NOTES, sizeof(struct note))};
        assert_non_null(writers[i].notes);
        assert_int_equal(pthread_create(&threads[i], NULL, write_notes, &writers[i]), 0);
    }
    for (unsigned read = 0; read < WRITERS * NOTES;) {
        struct redlock_mailbox_item *item = redlock_mailbox_take(&office.mailbox);
        for (; item; item = item->next, read++) {
            struct note *note = (struct note *)item;
            assert_int_equal(note->number, next[note->writer]);
            next[note->writer]++;
        }
        if (read < WRITERS * NOTES && redlock_mailbox_sleep(&office.mailbox)) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 60;
            slept++;
            assert_int_equal(sem_timedwait(&office.eventcount, &until), 0);
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
    sem_destroy(&office.eventcount);
}
