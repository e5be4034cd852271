/* A doubly linked list. Its entries are parts of what is listed, so nothing is allocated. */
#ifndef REDLOCK_BASE_LIST_H
#define REDLOCK_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* Embed it. All zero means "in no list"; outside, `previous` says nothing. */
struct redlock_list_entry {
    struct redlock_list_entry *previous, *next;
};

/* The list is a ring, and this is the entry between its last and its first. So a list must not be
 * moved, and it is empty only after redlock_list_init(). */
struct redlock_list {
    struct redlock_list_entry ends;
};

#define REDLOCK_LIST_EMPTY(list)                                                                                       \
    {                                                                                                                  \
        { &(list).ends, &(list).ends }                                                                                 \
    }

/* What a pointer to one of its members is a part of. */
#define REDLOCK_CONTAINER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Each entry, the first one first. The body does not take `at` out of the list. */
#define REDLOCK_LIST_EACH(at, list)                                                                                    \
    for (struct redlock_list_entry *at = (list)->ends.next; at != &(list)->ends; at = at->next)

static inline void redlock_list_init(struct redlock_list *list) {
    list->ends.previous = list->ends.next = &list->ends;
}

static inline bool redlock_list_is_empty(const struct redlock_list *list) {
    return list->ends.next == &list->ends;
}

static inline bool redlock_list_is_in(const struct redlock_list_entry *entry) {
    return entry->next != NULL;
}

/* The first entry; NULL for none. */
static inline struct redlock_list_entry *redlock_list_first(const struct redlock_list *list) {
    return redlock_list_is_empty(list) ? NULL : list->ends.next;
}

/* The entry behind this one; NULL for none. */
static inline struct redlock_list_entry *redlock_list_next(const struct redlock_list *list,
                                                           const struct redlock_list_entry *entry) {
    return entry->next == &list->ends ? NULL : entry->next;
}

static inline void redlock_list_put(struct redlock_list_entry *entry, struct redlock_list_entry *previous,
                                    struct redlock_list_entry *next) {
    assert(!redlock_list_is_in(entry));
    entry->previous = previous;
    entry->next = next;
    previous->next = next->previous = entry;
}

/* Puts it in front of the first. */
static inline void redlock_list_prepend(struct redlock_list *list, struct redlock_list_entry *entry) {
    redlock_list_put(entry, &list->ends, list->ends.next);
}

/* Puts it behind the last. */
static inline void redlock_list_append(struct redlock_list *list, struct redlock_list_entry *entry) {
    redlock_list_put(entry, list->ends.previous, &list->ends);
}

/* Takes it out of the list that it is in. */
static inline void redlock_list_remove(struct redlock_list_entry *entry) {
    assert(redlock_list_is_in(entry));
    entry->previous->next = entry->next;
    entry->next->previous = entry->previous;
    entry->next = NULL;
}

/* Takes the first one out and returns it; NULL for none. */
static inline struct redlock_list_entry *redlock_list_pop(struct redlock_list *list) {
    struct redlock_list_entry *first = list->ends.next;
    if (first == &list->ends) {
        return NULL;
    }
    list->ends.next = first->next;
    first->next->previous = &list->ends;
    first->next = NULL;
    return first;
}

#endif
