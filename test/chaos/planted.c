/* Chooses the planted bug by REDLOCK_PLANT. Linked with the library that has the planted bugs. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/planted.h"
#include "group/waiting.h"

enum redlock_planted_bug redlock_planted_bug = REDLOCK_BUG_NONE;
/* Of this program alone: the places in a queue are sorted from the last to the first. */
static bool last_comes_first;

struct redlock_place __real_redlock_waiting_place(const struct redlock_lease *lease);
struct redlock_place __wrap_redlock_waiting_place(const struct redlock_lease *lease);

struct redlock_place __wrap_redlock_waiting_place(const struct redlock_lease *lease) {
    struct redlock_place place = __real_redlock_waiting_place(lease);
    place.ticket = last_comes_first ? REDLOCK_TICKET_MAX - place.ticket : place.ticket;
    return place;
}

__attribute__((constructor)) static void plant(void) {
    static const struct {
        const char *name;
        enum redlock_planted_bug bug;
    } bugs[] = {
        {"release-any-token", REDLOCK_BUG_RELEASE_ANY_TOKEN},
        {"no-drift", REDLOCK_BUG_NO_DRIFT},
        {"quorum-half", REDLOCK_BUG_QUORUM_HALF},
        {"unknown-grants", REDLOCK_BUG_UNKNOWN_GRANTS},
        {"extend-after-end", REDLOCK_BUG_EXTEND_AFTER_END},
        {"heal-counts", REDLOCK_BUG_HEAL_COUNTS},
        {"quarantine-by-uptime", REDLOCK_BUG_QUARANTINE_BY_UPTIME},
        {"quarantine-short", REDLOCK_BUG_QUARANTINE_SHORT},
        {"jump-ignored", REDLOCK_BUG_JUMP_IGNORED},
        {"fence-incr", REDLOCK_BUG_FENCE_INCR},
        {"none", REDLOCK_BUG_NONE},
    };
    const char *wanted = getenv("REDLOCK_PLANT");
    last_comes_first = wanted != NULL && strcmp(wanted, "last-comes-first") == 0;
    wanted = last_comes_first ? "none" : wanted;
    for (size_t i = 0; wanted != NULL && i < sizeof bugs / sizeof bugs[0]; i++) {
        if (strcmp(wanted, bugs[i].name) == 0) {
            redlock_planted_bug = bugs[i].bug;
            return;
        }
    }
    fputs("planted: set REDLOCK_PLANT to the name of a bug, or to none\n", stderr);
    exit(3);
}
