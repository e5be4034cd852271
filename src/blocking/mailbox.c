/* The mailbox: a stack of items under one atomic pointer. The reader reverses it. */
#include "blocking/mailbox.h"

#include <assert.h>
#include <stddef.h>

void redlock_mailbox_init(struct redlock_mailbox *mailbox) {
    atomic_init(&mailbox->head, NULL);
}

enum redlock_mailbox_put redlock_mailbox_put(struct redlock_mailbox *mailbox, struct redlock_mailbox_item *item) {
    struct redlock_mailbox_item *head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    assert(item && item != head);
    do {
        if (head == &mailbox->closed) {
            return REDLOCK_MAILBOX_CLOSED;
        }
        item->next = head == &mailbox->asleep ? NULL : head;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->head, &head, item, memory_order_seq_cst,
                                                    memory_order_relaxed));
    return head == &mailbox->asleep ? REDLOCK_MAILBOX_WAKE : REDLOCK_MAILBOX_QUEUED;
}

static struct redlock_mailbox_item *oldest_first(struct redlock_mailbox *mailbox, struct redlock_mailbox_item *head) {
    struct redlock_mailbox_item *first = NULL;
    if (head == &mailbox->asleep || head == &mailbox->closed) {
        return NULL;
    }
    while (head) {
        struct redlock_mailbox_item *next = head->next;
        assert(next != &mailbox->asleep && next != &mailbox->closed);
        head->next = first;
        first = head;
        head = next;
    }
    return first;
}

struct redlock_mailbox_item *redlock_mailbox_take(struct redlock_mailbox *mailbox) {
    struct redlock_mailbox_item *head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    if (!head || head == &mailbox->closed) {
        return NULL;
    }
    return oldest_first(mailbox, atomic_exchange_explicit(&mailbox->head, NULL, memory_order_acquire));
}

bool redlock_mailbox_is_empty(const struct redlock_mailbox *mailbox) {
    const struct redlock_mailbox_item *head = atomic_load(&mailbox->head);
    return head == NULL || head == &mailbox->asleep || head == &mailbox->closed;
}

bool redlock_mailbox_sleep(struct redlock_mailbox *mailbox) {
    struct redlock_mailbox_item *head = NULL;
    return atomic_compare_exchange_strong(&mailbox->head, &head, &mailbox->asleep) || head == &mailbox->asleep ||
           head == &mailbox->closed;
}

void redlock_mailbox_awake(struct redlock_mailbox *mailbox) {
    struct redlock_mailbox_item *head = &mailbox->asleep;
    (void)atomic_compare_exchange_strong(&mailbox->head, &head, NULL);
}

struct redlock_mailbox_item *redlock_mailbox_close(struct redlock_mailbox *mailbox) {
    return oldest_first(mailbox, atomic_exchange_explicit(&mailbox->head, &mailbox->closed, memory_order_acq_rel));
}
