/* What a user may run on a server, and what the server has. */
#include "wire/rights.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool has(const char *error, size_t size, const char *words) {
    return memmem(error, size, words, strlen(words)) != NULL;
}

enum redlock_right redlock_rights_of(const char *error, size_t size) {
    assert(error != NULL || size == 0);
    static const char *const denials[] = {"can't run this command", "no permissions to run",
                                          "o permission to execute this command"};
    static const char *const absences[] = {"unknown command",        "Unknown command",
                                           "nsupported command",     "Unknown Redis command",
                                           "Unknown Valkey command", "Invalid command passed to"};
    for (size_t i = 0; i < sizeof denials / sizeof *denials; i++) {
        if (has(error, size, denials[i])) {
            return REDLOCK_RIGHT_DENIED;
        }
    }
    for (size_t i = 0; i < sizeof absences / sizeof *absences; i++) {
        if (has(error, size, absences[i])) {
            return REDLOCK_RIGHT_ABSENT;
        }
    }
    /* The script's own word. */
    return size == 6 && memcmp(error, "NOPERM", 6) == 0 ? REDLOCK_RIGHT_DENIED : REDLOCK_RIGHT_OPEN;
}

static void append(char list[REDLOCK_RIGHTS_SIZE], const char *separator, const char *mark, const char *name,
                   bool capitals) {
    size_t used = strlen(list);
    assert(used < REDLOCK_RIGHTS_SIZE);
    int size = snprintf(list + used, REDLOCK_RIGHTS_SIZE - used, "%s%s%s", used == 0 ? "" : separator, mark, name);
    if (size < 0 || (size_t)size >= REDLOCK_RIGHTS_SIZE - used) {
        list[used] = '\0'; /* never half a name */
        return;
    }
    for (char *at = list + used; capitals && *at != '\0'; at++) {
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    }
}

/* What a command is needed for. */
enum use {
    USE_LOCKS = 1,  /* all leases */
    USE_QUEUES = 2, /* waiting in order */
    USE_SHARED = 4  /* reading with others */
};

static unsigned uses_of(const char *name) {
    static const struct {
        const char *name;
        unsigned uses;
    } known[] = {{"get", USE_LOCKS},
                 {"set", USE_LOCKS},
                 {"pttl", USE_LOCKS},
                 {"pexpire", USE_LOCKS},
                 {"del", USE_LOCKS},
                 {"exists", USE_QUEUES | USE_SHARED},
                 {"zadd", USE_QUEUES | USE_SHARED},
                 {"zrem", USE_QUEUES | USE_SHARED},
                 {"zscore", USE_SHARED},
                 {"zrange", USE_SHARED},
                 {"zremrangebyscore", USE_SHARED}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) == 0) {
            return known[i].uses;
        }
    }
    return USE_QUEUES;
}

static void want(char list[REDLOCK_RIGHTS_SIZE], const char *name, bool denied) {
    append(list, " ", denied ? "+" : "", name, !denied);
    if (denied && strcmp(name, "publish") == 0) { /* or the channel is */
        append(list, " ", "", "&redlock:*", false);
    }
}

static void take(struct redlock_rights *rights, const char *name, enum redlock_right right) {
    assert(right != REDLOCK_RIGHT_OPEN);
    const bool denied = right == REDLOCK_RIGHT_DENIED;
    const unsigned uses = uses_of(name);
    if (uses & USE_QUEUES) {
        want(rights->wanted, name, denied);
    }
    if (uses & USE_SHARED) {
        want(rights->shared, name, denied);
    }
    if ((uses & USE_LOCKS) && denied) {
        append(rights->denied, ", ", "", name, true);
        append(rights->rules, " ", "+", name, false);
    } else if (uses & USE_LOCKS) {
        append(rights->absent, ", ", "", name, true);
    }
}

void redlock_rights_read(struct redlock_rights *rights, const char *lines, size_t size) {
    assert(lines != NULL || size == 0);
    const char *const end = lines + size;
    *rights = (struct redlock_rights){.denied = ""};
    while (lines < end) {
        const char *stop = memchr(lines, '\n', (size_t)(end - lines));
        stop = stop == NULL ? end : stop;
        const char *space = memchr(lines, ' ', (size_t)(stop - lines));
        char name[24] = "";
        if (space != NULL && (size_t)(space - lines) < sizeof name) {
            memcpy(name, lines, (size_t)(space - lines));
            rights->read_only = rights->read_only ||
                                (strcmp(name, "set") == 0 && has(space + 1, (size_t)(stop - space - 1), "READONLY "));
            const enum redlock_right right = redlock_rights_of(space + 1, (size_t)(stop - space - 1));
            if (name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz") == strlen(name) &&
                right != REDLOCK_RIGHT_OPEN) {
                take(rights, name, right);
            }
        }
        lines = stop == end ? end : stop + 1;
    }
}
