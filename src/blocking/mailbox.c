/* The mailbox: a stack of letters under one atomic pointer. The reader reverses it. */
#include "blocking/mailbox.h"

#include <stddef.h>

void redlock_mailbox_init(struct redlock_mailbox *mailbox) {
    atomic_init(&mailbox->head, NULL);
}

enum redlock_mailbox_put redlock_mailbox_put(struct redlock_mailbox *mailbox, struct redlock_letter *letter) {
    struct redlock_letter *head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    do {
        if (head == &mailbox->closed) {
            return REDLOCK_MAILBOX_CLOSED;
        }
        letter->next = head == &mailbox->asleep ? NULL : head;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->head, &head, letter, memory_order_release,
                                                    memory_order_relaxed));
    return head == &mailbox->asleep ? REDLOCK_MAILBOX_WAKE : REDLOCK_MAILBOX_QUEUED;
}

static struct redlock_letter *oldest_first(struct redlock_mailbox *mailbox, struct redlock_letter *head) {
    struct redlock_letter *first = NULL;
    if (head == &mailbox->asleep || head == &mailbox->closed) {
        return NULL;
    }
    while (head) {
        struct redlock_letter *next = head->next;
        head->next = first;
        first = head;
        head = next;
    }
    return first;
}

struct redlock_letter *redlock_mailbox_take(struct redlock_mailbox *mailbox) {
    struct redlock_letter *head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    if (!head || head == &mailbox->closed) {
        return NULL;
    }
    return oldest_first(mailbox, atomic_exchange_explicit(&mailbox->head, NULL, memory_order_acquire));
}

bool redlock_mailbox_sleep(struct redlock_mailbox *mailbox) {
    struct redlock_letter *head = NULL;
    return atomic_compare_exchange_strong(&mailbox->head, &head, &mailbox->asleep) || head == &mailbox->asleep ||
           head == &mailbox->closed;
}

void redlock_mailbox_awake(struct redlock_mailbox *mailbox) {
    struct redlock_letter *head = &mailbox->asleep;
    (void)atomic_compare_exchange_strong(&mailbox->head, &head, NULL);
}

struct redlock_letter *redlock_mailbox_close(struct redlock_mailbox *mailbox) {
    return oldest_first(mailbox, atomic_exchange_explicit(&mailbox->head, &mailbox->closed, memory_order_acq_rel));
}
