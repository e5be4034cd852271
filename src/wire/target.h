/* What is locked. */
#ifndef REDLOCK_WIRE_TARGET_H
#define REDLOCK_WIRE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One piece of memory without pointers: the items, then their keys. It stands in its owner's, so
 * that a lease is one allocation (570 bytes with five nodes and short names). Whoever must outlive
 * the owner copies it: there is nothing to count references for. */
struct redlock_target {
    uint16_t size; /* of all of it */
    uint8_t count; /* of items: 1, so far */
    /* WAIT, RELEASE: nodes tell observers who holds it now (docs/waiting.md) */
    bool announced : 1;
    bool has_slots : 1; /* behind the items: the key is that of their gate */
    struct redlock_target_item {
        uint16_t at, key_size; /* the key, terminated; from the beginning of the target */
    } items[];
};

/* Some of the slots of a name (docs/protocols.md, "Permits"). */
struct redlock_slots {
    uint16_t permits, limit; /* so many, of so many */
    uint16_t first, window;  /* of the last take: where it began, and how many it looked at */
    bool taken;              /* these: */
    bool others;             /* RELEASE: all that the take looked at, but not these */
    uint16_t numbers[];
};

/* The size of a target of one item. */
static inline size_t redlock_target_size(size_t key_size) {
    return sizeof(struct redlock_target) + sizeof(struct redlock_target_item) + key_size + 1;
}

/* Makes a target of one item in `room`, which is as large as that and aligned to 2. */
static inline struct redlock_target *redlock_target_make(void *room, const char *prefix, size_t prefix_size,
                                                         const char *name, size_t name_size) {
    struct redlock_target *target = room;
    const size_t key_size = prefix_size + name_size, size = redlock_target_size(key_size);
    char *key = (char *)room + size - key_size - 1;
    *target = (struct redlock_target){.size = (uint16_t)size, .count = 1};
    target->items[0] =
        (struct redlock_target_item){.at = (uint16_t)(size - key_size - 1), .key_size = (uint16_t)key_size};
    memcpy(key, prefix, prefix_size);
    memcpy(key + prefix_size, name, name_size);
    key[key_size] = '\0';
    return target;
}

/* With slots, whose keys end with a mark and this many digits at most. */
#define REDLOCK_SLOT_MARK   '#'
#define REDLOCK_SLOT_DIGITS 4

static inline size_t redlock_target_slots_size(unsigned permits) {
    return permits == 0 ? 0 : sizeof(struct redlock_slots) + permits * sizeof(uint16_t);
}

/* Moves the key of a target that was just made, and puts these slots before it. It has room for
 * redlock_target_slots_size() more. */
void redlock_target_add_slots(struct redlock_target *target, unsigned permits, unsigned limit);

static inline struct redlock_slots *redlock_target_slots(const struct redlock_target *target) {
    return (struct redlock_slots *)(uintptr_t)(target->items + 1);
}

/* The key of the first item; with the prefix. */
static inline const char *redlock_target_key(const struct redlock_target *target) {
    return (const char *)target + target->items[0].at;
}

static inline size_t redlock_target_key_size(const struct redlock_target *target) {
    return target->items[0].key_size;
}

/* What stands behind the target, as the token does. */
static inline char *redlock_target_end(struct redlock_target *target) {
    return (char *)target + target->size;
}

static inline bool redlock_target_is(const struct redlock_target *target, const char *key, size_t key_size) {
    return redlock_target_key_size(target) == key_size && memcmp(redlock_target_key(target), key, key_size) == 0;
}

#endif
