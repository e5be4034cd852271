/* The Lua scripts. */
#include "script.h"

#include <assert.h>

/*
 * A key of another type than a string is held by somebody else, not an error: hence pcall. Any other error of GET (an
 * ACL that forbids it, say) is handed on as it is.
 */
static const char release_source[] =
    "local v=redis.pcall('GET',KEYS[1])\n"
    "if v==ARGV[1] then return redis.call('DEL',KEYS[1]) end\n"
    "if not v then return 0 end\n"
    "if type(v)=='table' and not string.find(v.err,'WRONGTYPE',1,true) then return v end\n"
    "return -1";

/*
 * It never shortens: an extension that a node applies late, after a longer one that came on a newer connection, would
 * else cut a lease that we hold (R12).
 */
static const char extend_source[] =
    "local v=redis.pcall('GET',KEYS[1])\n"
    "if v==ARGV[1] then\n"
    "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"
    "return 1\n"
    "end\n"
    "if not v then return 0 end\n"
    "if type(v)=='table' and not string.find(v.err,'WRONGTYPE',1,true) then return v end\n"
    "return -1";

static const char inspect_source[] = "local v=redis.pcall('GET',KEYS[1])\n"
                                     "if type(v)=='table' then\n"
                                     "if not string.find(v.err,'WRONGTYPE',1,true) then return v end\n"
                                     "v='(a '..redis.call('TYPE',KEYS[1]).ok..')'\n"
                                     "end\n"
                                     "return {v,redis.call('PTTL',KEYS[1])}";

#ifdef REDLOCK_PLANTED_BUGS
static const char planted_release_source[] = "return redis.call('DEL',KEYS[1])";
static const char planted_extend_source[] =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"
    "return 0";
#endif

static const struct redlock_script scripts[] = {
    [REDLOCK_SCRIPT_RELEASE] = {release_source, sizeof release_source - 1, "9e4679119e4e7b1f5962e12a581a4a83afeb9bf0"},
    [REDLOCK_SCRIPT_EXTEND] = {extend_source, sizeof extend_source - 1, "6cfe51d09422b7db4eec527a555bcd08c4ccb65b"},
    [REDLOCK_SCRIPT_INSPECT] = {inspect_source, sizeof inspect_source - 1, "e58faa1922f82f457ac5bb5aada316de413c9023"},
#ifdef REDLOCK_PLANTED_BUGS
    [REDLOCK_SCRIPT_PLANTED_RELEASE] = {planted_release_source, sizeof planted_release_source - 1,
                                        "71923a30a2cad96b7271cad5b0fdb4d5a1dd868c"},
    [REDLOCK_SCRIPT_PLANTED_EXTEND] = {planted_extend_source, sizeof planted_extend_source - 1,
                                       "05e60458b010945aa9f6bdc0c2e1b5a8080629bc"},
#endif
};

const struct redlock_script *redlock_script_get(enum redlock_script_id id) {
    assert((unsigned)id < sizeof scripts / sizeof *scripts);
    return &scripts[id];
}
