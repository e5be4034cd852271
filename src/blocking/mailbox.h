/* An MPSC queue: items from many threads to one reader, without a mutex. Knows when the reader
 * sleeps. */
#ifndef REDLOCK_BLOCKING_MAILBOX_H
#define REDLOCK_BLOCKING_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

/* Embed it in what you send. The mailbox owns it from put to take. */
struct redlock_mailbox_item {
    struct redlock_mailbox_item *next;
};

/*
 * The head is the newest item, or the state of the reader:
 *
 * head     means                           put                  take      sleep    awake   close
 * NULL     empty, the reader is awake      item                 –         &asleep  –       &closed
 * &asleep  empty, the reader sleeps        item, says WAKE      NULL      –        NULL    &closed
 * item     items, the reader is awake      item on top          NULL      refused  –       &closed
 * &closed  takes no items any more         refused              –         –        –       –
 *
 * Why no mutex: a thread that stops in the middle of a put delays nobody, and a child process
 * cannot inherit a locked mutex.
 */
struct redlock_mailbox {
    _Atomic(struct redlock_mailbox_item *) head;
    struct redlock_mailbox_item asleep, closed; /* only their addresses matter */
};

enum redlock_mailbox_put {
    REDLOCK_MAILBOX_QUEUED,
    REDLOCK_MAILBOX_WAKE, /* queued; the caller must wake the reader */
    REDLOCK_MAILBOX_CLOSED
};

void redlock_mailbox_init(struct redlock_mailbox *mailbox);

/* Any thread. Who takes the item sees everything written before the put. */
enum redlock_mailbox_put redlock_mailbox_put(struct redlock_mailbox *mailbox, struct redlock_mailbox_item *item);

/* The reader takes all items, the oldest first. */
struct redlock_mailbox_item *redlock_mailbox_take(struct redlock_mailbox *mailbox);
/* Whether no item waits. Of a put and a look, in two threads that each do something else before or
 * after, at least one sees the other. */
bool redlock_mailbox_is_empty(const struct redlock_mailbox *mailbox);
/* The reader calls this before it sleeps. False if there are items. */
bool redlock_mailbox_sleep(struct redlock_mailbox *mailbox);
/* The reader calls this after it slept: nobody needs to wake it now. */
void redlock_mailbox_awake(struct redlock_mailbox *mailbox);
/* The reader takes the last items, the oldest first. Every put after this is refused. */
struct redlock_mailbox_item *redlock_mailbox_close(struct redlock_mailbox *mailbox);

#endif
