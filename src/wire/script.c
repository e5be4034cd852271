/* Which script a request uses. Builds with planted bugs link another version (test/planted). */
#include "wire/script.h"

#include <assert.h>

const struct redlock_script *redlock_script_get(enum redlock_script_id id) {
    assert((unsigned)id < REDLOCK_SCRIPT_COUNT);
    return &redlock_scripts[id];
}
