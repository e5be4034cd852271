/* What a mishap does to the bytes of a connection. */
#include "mishap.h"

#include <stdint.h>
#include <string.h>

static size_t lose(struct mishap_marks *marks, char *bytes, size_t size) {
    const size_t lost = marks->swallow < size ? marks->swallow : size;
    marks->swallow -= marks->swallow == SIZE_MAX ? 0 : lost;
    memmove(bytes, bytes + lost, size - lost);
    return size - lost;
}

/* Works only if these bytes and the next one came in one piece. What a node says of itself mostly
 * does. */
static bool alter(const struct mishap *planned, char *bytes, size_t size) {
    char *found = memmem(bytes, size, planned->bytes, planned->size);
    if (!found || (size_t)(found - bytes) + planned->size == size) {
        return false;
    }
    found[planned->size] = (char)(found[planned->size] ^ planned->mask);
    return true;
}

size_t mishap_meet(struct mishap *planned, struct mishap_marks *marks, char *bytes, size_t size) {
    if (marks->cut) {
        return 0;
    }
    size = lose(marks, bytes, size);
    if (planned->kind == MISHAP_NONE || size <= planned->after) {
        planned->after -= planned->kind == MISHAP_NONE ? 0 : size;
        return size;
    }
    const size_t at = planned->after;
    const enum mishap_kind kind = planned->kind;
    planned->kind = MISHAP_NONE;
    switch (kind) {
    case MISHAP_NONE:
        return size;
    case MISHAP_INJECT:
        memmove(bytes + at + planned->size, bytes + at, size - at);
        memcpy(bytes + at, planned->bytes, planned->size);
        return size + planned->size;
    case MISHAP_SWALLOW:
    case MISHAP_MUTE:
        marks->swallow = kind == MISHAP_MUTE ? SIZE_MAX : planned->size;
        return at + lose(marks, bytes + at, size - at);
    case MISHAP_CORRUPT:
        bytes[at] = (char)(bytes[at] ^ planned->mask);
        return size;
    case MISHAP_CUT:
        marks->cut = true;
        marks->reset = planned->reset;
        return at;
    case MISHAP_ALTER:
        planned->kind = alter(planned, bytes, size) ? MISHAP_NONE : MISHAP_ALTER;
        planned->after = 0;
        return size;
    }
    return size;
}
