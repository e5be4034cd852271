/* The parts of a server's INFO that matter to a lock (R18). Pure. */
#ifndef REDLOCK_WIRE_INFO_H
#define REDLOCK_WIRE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/message.h"

#define REDLOCK_INFO_WORD_SIZE 64

/* Strings are printable ASCII, "" if the server did not say. */
struct redlock_info {
    char run_id[REDLOCK_INFO_WORD_SIZE];
    char version[REDLOCK_INFO_WORD_SIZE]; /* with the kind of server: "redis 7.0.15" */
    char role[REDLOCK_INFO_WORD_SIZE];
    char mode[REDLOCK_INFO_WORD_SIZE];
    char primary[REDLOCK_INFO_WORD_SIZE * 2]; /* a replica's primary: host:port */
    char policy[REDLOCK_INFO_WORD_SIZE];
    int64_t uptime_s; /* -1 if the server did not say, or said an impossible number */
    uint64_t memory_max;
    bool loading;
};

void redlock_info_parse(struct redlock_info *info, const char *bytes, size_t size);

/* Returns whether the server may evict locks when its memory is full. */
bool redlock_info_evicts(const struct redlock_info *info);

/* Which command the server has for a RELEASE that only deletes, by its version. A server that told
 * no version has none. */
enum redlock_deleting redlock_info_deleting(const struct redlock_info *info);

/* Whether it has SET with both NX and GET, likewise. */
bool redlock_info_names(const struct redlock_info *info);

#endif
