/* The keys of locks at all nodes, as redlock_list() names them. */
#ifndef TOOL_LOCKS_H
#define TOOL_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/list.h>

/* So many keys take some 200 MB. */
enum { TOOL_KEYS_MAX = 1000000 };

/* One lock at one node. */
struct tool_key {
    char *resource; /* terminated; then the token, terminated */
    const char *token;
    int64_t ttl_ms, waiters, readers;
    size_t node;
};

/* Begins as all zero. */
struct tool_keys {
    struct tool_key *keys;
    size_t count;
    bool no_memory; /* not all are here */
    bool too_many;
};

/* The callback of redlock_list(). data is the keys. */
bool tool_keys_take(const redlock_listed *lock, void *data);

/* Sorts them by resource and node, and removes those that a node named twice. */
void tool_keys_sort(struct tool_keys *keys);

/* How many keys from `first` on have its resource. */
size_t tool_keys_same(const struct tool_keys *keys, size_t first);

void tool_keys_free(struct tool_keys *keys);

#endif
