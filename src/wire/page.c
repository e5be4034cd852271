/* The entries of a LIST's reply: locks on one node, as scripts/list.lua writes them. Who reads a
 * lock, and who waits for it, as scripts/inspect.lua names them. */
#include "wire/page.h"

#include <assert.h>
#include <string.h>

#include <redlock/redlock.h>

#include "core/number.h"

/* A time to live, or a count. JSON readers keep it exact (2^53 - 1). */
#define NUMBER_MAX INT64_C(9007199254740991)

/* Reads a number from `least` to `most`, and the space behind it. */
static bool take_number(const char **at, const char *end, int64_t least, int64_t most, int64_t *number) {
    uint64_t read;
    const bool minus = *at < end && **at == '-';
    const char *digits = *at + minus, *space = memchr(digits, ' ', (size_t)(end - digits));
    if (space == NULL || !redlock_number_read(digits, (size_t)(space - digits), NUMBER_MAX, &read)) {
        return false;
    }
    *at = space + 1;
    *number = minus ? -(int64_t)read : (int64_t)read;
    return *number >= least && *number <= most;
}

bool redlock_page_next(const char **at, const char *end, struct redlock_page_entry *entry) {
    assert(*at <= end);
    int64_t key_size, token_size;
    if (!take_number(at, end, 1, REDLOCK_RESOURCE_SIZE_MAX, &key_size) ||
        !take_number(at, end, 1, REDLOCK_TOKEN_SIZE_MAX, &token_size) ||
        !take_number(at, end, -2, NUMBER_MAX, &entry->ttl_ms) ||
        !take_number(at, end, -1, NUMBER_MAX, &entry->waiters) ||
        !take_number(at, end, 0, NUMBER_MAX, &entry->readers) || end - *at < key_size + token_size) {
        return false;
    }
    entry->key = *at;
    entry->key_size = (size_t)key_size;
    entry->token = *at + key_size;
    entry->token_size = (size_t)token_size;
    *at += key_size + token_size;
    return true;
}

bool redlock_page_is_whole(const char *page, size_t size) {
    assert(page != NULL || size == 0);
    const char *at = page, *end = page + size;
    struct redlock_page_entry entry;
    while (at < end) {
        if (!redlock_page_next(&at, end, &entry)) {
            return false;
        }
    }
    return true;
}

bool redlock_page_next_name(const char **at, const char *end, struct redlock_page_name *name) {
    assert(*at <= end);
    int64_t size;
    if (end - *at < 2 || ((*at)[0] != 'r' && (*at)[0] != 'w') || (*at)[1] != ' ') {
        return false;
    }
    name->waits = (*at)[0] == 'w';
    *at += 2;
    if (!take_number(at, end, 1, REDLOCK_TOKEN_SIZE_MAX, &size) || !take_number(at, end, 0, NUMBER_MAX, &name->ms) ||
        end - *at < size) {
        return false;
    }
    name->token = *at;
    name->token_size = (size_t)size;
    *at += size;
    return true;
}

bool redlock_page_is_names(const char *names, size_t size) {
    assert(names != NULL || size == 0);
    const char *at = names, *end = names + size;
    struct redlock_page_name name;
    while (at < end) {
        if (!redlock_page_next_name(&at, end, &name)) {
            return false;
        }
    }
    return true;
}
