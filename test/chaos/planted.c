/* Chooses the planted bug by REDLOCK_PLANT. Linked with the library that has the planted bugs. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/resource.h"
#include "core/planted.h"
#include "group/waiting.h"

enum redlock_planted_bug redlock_planted_bug = REDLOCK_BUG_NONE;
/* Of this program alone: the places in a queue are sorted from the last to the first. */
static bool last_comes_first;
/* Likewise: between their look at the lease and their write, clients work for longer than the ttl
 * of the experiment. */
static bool works_on;

struct redlock_place __real_redlock_waiting_place(const struct redlock_lease *lease, redlock_nodes nodes,
                                                  uint64_t *seals);
struct redlock_place __wrap_redlock_waiting_place(const struct redlock_lease *lease, redlock_nodes nodes,
                                                  uint64_t *seals);

struct redlock_place __wrap_redlock_waiting_place(const struct redlock_lease *lease, redlock_nodes nodes,
                                                  uint64_t *seals) {
    struct redlock_place place = __real_redlock_waiting_place(lease, nodes, seals);
    place.ticket = last_comes_first ? REDLOCK_TICKET_MAX - place.ticket : place.ticket;
    return place;
}

enum chaos_access __real_chaos_resource_write(const struct chaos_resource *resource, int64_t count,
                                              struct chaos_receipt *receipt);
enum chaos_access __wrap_chaos_resource_write(const struct chaos_resource *resource, int64_t count,
                                              struct chaos_receipt *receipt);

enum chaos_access __wrap_chaos_resource_write(const struct chaos_resource *resource, int64_t count,
                                              struct chaos_receipt *receipt) {
    struct timespec work = {.tv_sec = works_on ? 1 : 0, .tv_nsec = 100000000};
    while (works_on && nanosleep(&work, &work) != 0 && errno == EINTR) {
    }
    return __real_chaos_resource_write(resource, count, receipt);
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
        {"shared-writer-joins", REDLOCK_BUG_SHARED_WRITER_JOINS},
        {"none", REDLOCK_BUG_NONE},
    };
    const char *wanted = getenv("REDLOCK_PLANT");
    last_comes_first = wanted != NULL && strcmp(wanted, "last-comes-first") == 0;
    works_on = wanted != NULL && strcmp(wanted, "works-on") == 0;
    wanted = last_comes_first || works_on ? "none" : wanted;
    for (size_t i = 0; wanted != NULL && i < sizeof bugs / sizeof bugs[0]; i++) {
        if (strcmp(wanted, bugs[i].name) == 0) {
            redlock_planted_bug = bugs[i].bug;
            return;
        }
    }
    fputs("planted: set REDLOCK_PLANT to the name of a bug, or to none\n", stderr);
    exit(3);
}
