/* The entries of a LIST's reply: locks on one node, as scripts/list.lua writes them. Who reads a
 * lock, and who waits for it, as scripts/inspect.lua names them. */
#ifndef REDLOCK_WIRE_PAGE_H
#define REDLOCK_WIRE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points into the page; not terminated. */
struct redlock_page_entry {
    const char *key; /* 1 to REDLOCK_RESOURCE_SIZE_MAX bytes */
    size_t key_size;
    const char *token; /* 1 to REDLOCK_TOKEN_SIZE_MAX bytes */
    size_t token_size;
    int64_t ttl_ms;  /* -1: none */
    int64_t waiters; /* -1: not known */
    int64_t readers; /* 0: one has it alone */
};

/* Points into the names; not terminated. */
struct redlock_page_name {
    const char *token; /* 1 to REDLOCK_TOKEN_SIZE_MAX bytes */
    size_t token_size;
    bool waits; /* or it reads */
    int64_t ms; /* for how long it still reads, or has waited */
};

/* Reads the entry at *at and moves on behind it. False if there is none, or no well-formed one. */
bool redlock_page_next(const char **at, const char *end, struct redlock_page_entry *entry);

/* Whether the page is entries and nothing else. */
bool redlock_page_is_whole(const char *page, size_t size);

/* The same for those who are named. */
bool redlock_page_next_name(const char **at, const char *end, struct redlock_page_name *name);
bool redlock_page_is_names(const char *names, size_t size);

#endif
