/* Letters from many threads to one reader, without a lock; says when the reader sleeps and must be woken. */
#ifndef REDLOCK_BLOCKING_MAILBOX_H
#define REDLOCK_BLOCKING_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

/* Embed it in what is sent; it belongs to the mailbox from put to take. */
struct redlock_letter {
    struct redlock_letter *next;
};

/*
 * The head is the letter put last, or says what the reader does:
 *
 * head     means                           put                  take      sleep    awake   close
 * NULL     empty, the reader will look     letter               –         &asleep  –       &closed
 * &asleep  empty, the reader must be woken letter, tell to wake NULL      –        NULL    &closed
 * letter   letters, the reader will look   letter on top        NULL      refused  –       &closed
 * &closed  nothing is taken any more       refused              –         –        –       –
 *
 * No mutex: a thread that is switched off in the middle of a put holds up nobody, and a child process after fork()
 * cannot inherit one that is locked for ever.
 */
struct redlock_mailbox {
    _Atomic(struct redlock_letter *) head;
    struct redlock_letter asleep, closed; /* only their addresses count */
};

enum redlock_mailbox_put {
    REDLOCK_MAILBOX_QUEUED,
    REDLOCK_MAILBOX_WAKE, /* queued, and the caller has to wake the reader */
    REDLOCK_MAILBOX_CLOSED
};

void redlock_mailbox_init(struct redlock_mailbox *mailbox);

/* Any thread. Everything written before a put is seen by whoever takes the letter. */
enum redlock_mailbox_put redlock_mailbox_put(struct redlock_mailbox *mailbox, struct redlock_letter *letter);

/* The reader's. All letters, the oldest first. */
struct redlock_letter *redlock_mailbox_take(struct redlock_mailbox *mailbox);
/* The reader's, before it sleeps: false if there are letters. */
bool redlock_mailbox_sleep(struct redlock_mailbox *mailbox);
/* The reader's, after it slept: nobody needs to wake it now. */
void redlock_mailbox_awake(struct redlock_mailbox *mailbox);
/* The reader's. What was still there, the oldest first; no letter is taken after this. */
struct redlock_letter *redlock_mailbox_close(struct redlock_mailbox *mailbox);

#endif
