/* Parses a server's INFO. */
#include "wire/info.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"

#define NUMBER_MAX   UINT64_C(1000000000000000000)
#define UPTIME_S_MAX UINT64_C(9000000000) /* 285 years */

struct line {
    const char *name, *value;
    size_t name_size, value_size;
};

/* Splits off "name:value\r\n". Returns the rest. */
static const char *next_line(const char *at, const char *end, struct line *line) {
    assert(at < end);
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    const char *rest = stop == NULL ? end : stop + 1;
    stop = stop == NULL ? end : stop;
    if (stop > at && stop[-1] == '\r') {
        stop--;
    }
    const char *colon = memchr(at, ':', (size_t)(stop - at));
    line->name = at;
    line->name_size = colon == NULL ? 0 : (size_t)(colon - at);
    line->value = colon == NULL ? stop : colon + 1;
    line->value_size = (size_t)(stop - line->value);
    return rest;
}

static bool named(const struct line *line, const char *name) {
    return line->name_size == strlen(name) && memcmp(line->name, name, line->name_size) == 0;
}

static void take_word(const struct line *line, const char *name, char word[REDLOCK_INFO_WORD_SIZE]) {
    if (!named(line, name)) {
        return;
    }
    size_t size = line->value_size < REDLOCK_INFO_WORD_SIZE ? line->value_size : REDLOCK_INFO_WORD_SIZE - 1;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)line->value[i];
        word[i] = byte < 0x20 || byte >= 0x7f ? '?' : (char)byte;
    }
    word[size] = '\0';
}

/* A larger number counts as NUMBER_MAX. Text that is not a number changes nothing. */
static void take_number(const struct line *line, const char *name, uint64_t *number) {
    if (named(line, name)) {
        (void)redlock_number_read(line->value, line->value_size, NUMBER_MAX, number);
    }
}

void redlock_info_parse(struct redlock_info *info, const char *bytes, size_t size) {
    assert(bytes != NULL || size == 0);
    char redis[REDLOCK_INFO_WORD_SIZE] = "", valkey[REDLOCK_INFO_WORD_SIZE] = "", kind[REDLOCK_INFO_WORD_SIZE] = "";
    char host[REDLOCK_INFO_WORD_SIZE] = "", port[REDLOCK_INFO_WORD_SIZE] = "";
    uint64_t uptime = UINT64_MAX, loading = 0;
    *info = (struct redlock_info){.uptime_s = -1};
    for (const char *at = bytes, *end = bytes + size; at < end;) {
        struct line line;
        at = next_line(at, end, &line);
        take_word(&line, "run_id", info->run_id);
        take_word(&line, "redis_version", redis);
        take_word(&line, "valkey_version", valkey);
        take_word(&line, "server_name", kind);
        take_word(&line, "role", info->role);
        take_word(&line, "redis_mode", info->mode);
        take_word(&line, "server_mode", info->mode);
        take_word(&line, "master_host", host);
        take_word(&line, "master_port", port);
        take_word(&line, "maxmemory_policy", info->policy);
        take_number(&line, "uptime_in_seconds", &uptime);
        take_number(&line, "maxmemory", &info->memory_max);
        take_number(&line, "loading", &loading);
    }
    info->loading = loading != 0;
    /* No server is up for longer. Such an answer is no proof for a guard. */
    if (uptime <= UPTIME_S_MAX) {
        info->uptime_s = (int64_t)uptime;
    }
    if (valkey[0] != '\0') {
        (void)snprintf(info->version, sizeof info->version, "valkey %.50s", valkey);
    } else if (redis[0] != '\0') {
        (void)snprintf(info->version, sizeof info->version, "%.20s %.40s", kind[0] == '\0' ? "redis" : kind, redis);
    }
    if (host[0] != '\0') {
        (void)snprintf(info->primary, sizeof info->primary, "%s:%s", host, port);
    }
}

bool redlock_info_evicts(const struct redlock_info *info) {
    return info->memory_max > 0 && info->policy[0] != '\0' && strcmp(info->policy, "noeviction") != 0;
}

/* Returns whether it is this kind of server, of this version or a newer one. */
static bool is_from(const struct redlock_info *info, const char *kind, unsigned major, unsigned minor) {
    unsigned is_major, is_minor;
    const size_t size = strlen(kind);
    return strncmp(info->version, kind, size) == 0 &&
           sscanf(info->version + size, " %3u.%3u", &is_major, &is_minor) == 2 &&
           (is_major > major || (is_major == major && is_minor >= minor));
}

enum redlock_deleting redlock_info_deleting(const struct redlock_info *info) {
    return is_from(info, "valkey", 9, 0)  ? REDLOCK_DELETING_DELIFEQ
           : is_from(info, "redis", 8, 4) ? REDLOCK_DELETING_DELEX
                                          : REDLOCK_DELETING_SCRIPT;
}

bool redlock_info_names(const struct redlock_info *info) {
    return is_from(info, "redis", 7, 0) || is_from(info, "valkey", 7, 2);
}
