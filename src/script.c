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

static const char extend_source[] =
    "local v=redis.pcall('GET',KEYS[1])\n"
    "if v==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"
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
#endif

static const struct redlock_script scripts[] = {
    [REDLOCK_SCRIPT_RELEASE] = {release_source, sizeof release_source - 1, "9e4679119e4e7b1f5962e12a581a4a83afeb9bf0"},
    [REDLOCK_SCRIPT_EXTEND] = {extend_source, sizeof extend_source - 1, "d838982375d574d39b6f99561bf072eb6aac8813"},
    [REDLOCK_SCRIPT_INSPECT] = {inspect_source, sizeof inspect_source - 1, "e58faa1922f82f457ac5bb5aada316de413c9023"},
#ifdef REDLOCK_PLANTED_BUGS
    [REDLOCK_SCRIPT_PLANTED_RELEASE] = {planted_release_source, sizeof planted_release_source - 1,
                                        "71923a30a2cad96b7271cad5b0fdb4d5a1dd868c"},
#endif
};

const struct redlock_script *redlock_script_get(enum redlock_script_id id) {
    assert((unsigned)id < sizeof scripts / sizeof *scripts);
    return &scripts[id];
}
