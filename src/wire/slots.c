/* Slots in requests and replies. */
#include "wire/slots.h"

#include <assert.h>
#include <string.h>

#include <redlock/redlock.h>

#include "base/holder.h"
#include "core/number.h"
#include "core/planted.h"
#include "wire/resp.h"

_Static_assert(REDLOCK_LIMIT_MAX <= 10000 && REDLOCK_SLOT_DIGITS == 4, "a slot's number has four digits at most");

void redlock_target_add_slots(struct redlock_target *target, unsigned permits, unsigned limit) {
    const size_t size = redlock_target_slots_size(permits);
    struct redlock_target_item *item = target->items;
    char *key = (char *)target + item->at;
    assert(target->count == 1 && permits > 0 && permits <= limit && limit <= REDLOCK_LIMIT_MAX);
    memmove(key + size, key, item->key_size + 1u);
    item->at = (uint16_t)(item->at + size);
    target->size = (uint16_t)(target->size + size);
    target->has_slots = true;
    *redlock_target_slots(target) = (struct redlock_slots){.permits = (uint16_t)permits, .limit = (uint16_t)limit};
}

/* Without leading zeros. */
static char *write_number(char *at, unsigned number) {
    char digits[REDLOCK_SLOT_DIGITS];
    size_t first = 0;
    (void)redlock_number_write(digits, number, sizeof digits);
    while (first < sizeof digits - 1 && digits[first] == '0') {
        first++;
    }
    memcpy(at, digits + first, sizeof digits - first);
    return at + (sizeof digits - first);
}

char *redlock_slots_format_key(char *at, const struct redlock_target *target, unsigned i) {
    const struct redlock_slots *slots = redlock_target_slots(target);
    char key[REDLOCK_RESOURCE_SIZE_MAX];
    const size_t size = redlock_target_key_size(target);
    assert(slots->taken && i < slots->permits && size + 1 + REDLOCK_SLOT_DIGITS <= sizeof key);
    memcpy(key, redlock_target_key(target), size);
    key[size] = REDLOCK_SLOT_MARK;
    return redlock_resp_bulk(at, key, (size_t)(write_number(key + size + 1, slots->numbers[i]) - key));
}

char *redlock_slots_format(char *at, const struct redlock_slots *slots) {
    char list[REDLOCK_PERMITS_MAX * (REDLOCK_SLOT_DIGITS + 1)], *end = list;
    assert(slots->permits <= REDLOCK_PERMITS_MAX);
    for (unsigned i = 0; slots->taken && i < (REDLOCK_PLANTED(PERMITS_ONE_SLOT) ? 1 : slots->permits); i++) {
        if (i > 0) {
            *end++ = ' ';
        }
        end = write_number(end, slots->numbers[i]);
    }
    return redlock_resp_bulk(at, list, (size_t)(end - list));
}

/* They are in the order in which the node looked, so none is there twice. */
bool redlock_slots_read(const struct redlock_slots *slots, const char *bytes, size_t size, uint16_t *numbers) {
    const char *at = bytes, *end = bytes + size;
    unsigned looked = 0;
    for (unsigned i = 0; i < slots->permits; i++) {
        const char *space = at < end ? memchr(at, ' ', (size_t)(end - at)) : NULL;
        const char *stop = space ? space : end;
        uint64_t number;
        if (at >= end || stop - at > REDLOCK_SLOT_DIGITS ||
            !redlock_number_read(at, (size_t)(stop - at), slots->limit - 1u, &number)) {
            return false;
        }
        const unsigned place = ((unsigned)number + slots->limit - slots->first) % slots->limit;
        if (place < looked || place >= slots->window) {
            return false;
        }
        looked = place + 1;
        numbers[i] = (uint16_t)number;
        at = space ? space + 1 : end + 1;
    }
    return at == end + 1;
}

struct redlock_text *redlock_slots_refused(bool taken, const char *holder, size_t size) {
    static const struct redlock_text few = {.string = "too few slots are free"};
    static const struct redlock_text queue = {.string = "others wait at the gate of the slots"};
    static const struct redlock_text gate = {.string = "somebody stands at the gate of the slots"};
    static const struct redlock_text locked = {.string = "its name is locked: that closes the gate of its slots"};
    static const struct redlock_text other = {.string = "its name is read, or no lock: it can have no slots"};
    if (taken) {
        return redlock_text_constant(&few);
    }
    if (!holder) {
        return redlock_text_constant(&queue);
    }
    if (redlock_holder_is_gate(holder, size)) {
        return redlock_text_constant(&gate);
    }
    return redlock_text_constant(holder[0] == '(' ? &other : &locked);
}
