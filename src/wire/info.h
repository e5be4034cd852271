/* What a server's INFO says that matters to a lock (R18). Pure. */
#ifndef REDLOCK_WIRE_INFO_H
#define REDLOCK_WIRE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDLOCK_INFO_WORD_SIZE 64

/* Strings are printable ASCII, "" where the server did not say. */
struct redlock_info {
    char run_id[REDLOCK_INFO_WORD_SIZE];
    char version[REDLOCK_INFO_WORD_SIZE]; /* with the server's kind: "redis 7.0.15" */
    char role[REDLOCK_INFO_WORD_SIZE];
    char mode[REDLOCK_INFO_WORD_SIZE];
    char primary[REDLOCK_INFO_WORD_SIZE * 2]; /* of a replica: host:port */
    char policy[REDLOCK_INFO_WORD_SIZE];
    int64_t uptime_s; /* -1 where the server did not say, or said what cannot be */
    uint64_t memory_max;
    bool loading;
};

void redlock_info_parse(struct redlock_info *info, const char *bytes, size_t size);

/* May the server evict locks when its memory is full? */
bool redlock_info_evicts(const struct redlock_info *info);

#endif
