/* The keys of locks at all nodes, as redlock_list() names them. */
#include "locks.h"

#include <stdlib.h>
#include <string.h>

/* Full at each power of two. */
static bool make_room(struct tool_keys *keys) {
    if ((keys->count & (keys->count - 1)) != 0) {
        return true;
    }
    struct tool_key *moved = realloc(keys->keys, (keys->count == 0 ? 1 : 2 * keys->count) * sizeof *moved);
    keys->keys = moved != NULL ? moved : keys->keys;
    return moved != NULL;
}

bool tool_keys_take(const redlock_listed *lock, void *data) {
    struct tool_keys *keys = data;
    const size_t resource_size = strlen(lock->resource) + 1;
    const size_t token_size = strlen(lock->token) + 1;
    keys->too_many = keys->count == TOOL_KEYS_MAX;
    if (keys->too_many) {
        return false;
    }
    char *text = make_room(keys) ? malloc(resource_size + token_size) : NULL;
    keys->no_memory = text == NULL;
    if (text == NULL) {
        return false;
    }
    memcpy(text, lock->resource, resource_size);
    memcpy(text + resource_size, lock->token, token_size);
    keys->keys[keys->count++] = (struct tool_key){.resource = text,
                                                  .token = text + resource_size,
                                                  .ttl_ms = lock->ttl_ms,
                                                  .waiters = lock->waiters,
                                                  .readers = lock->readers,
                                                  .node = lock->node};
    return true;
}

static int compare(const void *left, const void *right) {
    const struct tool_key *a = left;
    const struct tool_key *b = right;
    const int order = strcmp(a->resource, b->resource);
    return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

void tool_keys_sort(struct tool_keys *keys) {
    size_t kept = 0;
    if (keys->count > 0) {
        qsort(keys->keys, keys->count, sizeof *keys->keys, compare);
    }
    for (size_t i = 0; i < keys->count; i++) {
        if (kept > 0 && compare(&keys->keys[kept - 1], &keys->keys[i]) == 0) {
            free(keys->keys[i].resource);
        } else {
            keys->keys[kept++] = keys->keys[i];
        }
    }
    keys->count = kept;
}

size_t tool_keys_same(const struct tool_keys *keys, size_t first) {
    size_t end = first + 1;
    while (end < keys->count && strcmp(keys->keys[end].resource, keys->keys[first].resource) == 0) {
        end++;
    }
    return end - first;
}

void tool_keys_free(struct tool_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->keys[i].resource);
    }
    free(keys->keys);
    *keys = (struct tool_keys){0};
}
