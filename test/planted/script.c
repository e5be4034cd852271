/* The scripts, one of which the planted bug may replace. Linked in place of src/wire/script.c. */
#include "planted_scripts.h"

const struct redlock_script *redlock_script_get(enum redlock_script_id id) {
    static const enum redlock_script_id replaced[REDLOCK_BUG_COUNT] = {
        [REDLOCK_BUG_RELEASE_ANY_TOKEN] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_EXTEND_SHORTENS] = REDLOCK_SCRIPT_EXTEND,
        [REDLOCK_BUG_FENCE_INCR] = REDLOCK_SCRIPT_ACQUIRE,
        [REDLOCK_BUG_FENCE_ACCEPTS_EQUAL] = REDLOCK_SCRIPT_ACQUIRE,
        [REDLOCK_BUG_FENCE_ACKS_ANY] = REDLOCK_SCRIPT_FENCE,
        [REDLOCK_BUG_HEAL_COUNTS] = REDLOCK_SCRIPT_EXTEND,
        [REDLOCK_BUG_QUEUE_RELEASE_STAYS] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_QUEUE_SERVES_STALE] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_QUEUE_SERVES_FEW] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_QUEUE_COUNTS_PATTERNS] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_QUEUE_NO_EXPIRY] = REDLOCK_SCRIPT_WAIT,
        [REDLOCK_BUG_MARK_NEVER] = REDLOCK_SCRIPT_WAIT,
        [REDLOCK_BUG_MARK_ANY] = REDLOCK_SCRIPT_WAIT,
        [REDLOCK_BUG_MARK_ENDLESS] = REDLOCK_SCRIPT_WAIT,
        [REDLOCK_BUG_MARK_UNKNOWN] = REDLOCK_SCRIPT_EXTEND,
        [REDLOCK_BUG_MARK_DELETED] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_SHARED_WRITER_JOINS] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_SHARED_RELEASE_ALL] = REDLOCK_SCRIPT_RELEASE,
        [REDLOCK_BUG_SHARED_LEAVES_QUIETLY] = REDLOCK_SCRIPT_RELEASE,
    };
    const struct redlock_script *planted = &planted_scripts[redlock_planted_bug];
    return planted->source != NULL && replaced[redlock_planted_bug] == id ? planted : &redlock_scripts[id];
}
