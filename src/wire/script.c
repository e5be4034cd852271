/* The Lua scripts. */
#include "wire/script.h"

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
    "local n=-1\n"
    "if v==ARGV[1] then\n"
    "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"
    "n=1\n"
    "elseif not v then n=0\n"
    "elseif type(v)=='table' and not string.find(v.err,'WRONGTYPE',1,true) then return v end\n"
    "if ARGV[3] then local t=redis.call('TIME') return {n,false,t[1],t[2]} end\n"
    "return n";

/* Whatever stands in for a counter must not be lost: the key of somebody else's lock, say. Nor could a token follow INT64_MAX. */
#define CHECK_COUNTER                                                                                                  \
    "c=redis.pcall('GET',KEYS[2])\n"                                                                                   \
    "if type(c)=='table' then return c end\n"                                                                          \
    "if c and (#c~=20 or string.find(c,'%D') or c>'09223372036854775807') then "                                       \
    "return redis.error_reply('ERR the key of the fencing counter holds something else') end\n"

/*
 * Refuses a number more than a day ahead of the node's clock, so that no lie and no client's clock
 * drives a counter to its end. A counter that is further ahead already may rise by a day. If the
 * counter may expire, the bound is an hour, and a missing counter counts as the node's time an hour
 * ago, so that what expired was lower (docs/protocols.md, "Fencing tokens"). Strings of fixed width,
 * because Lua's numbers lose digits.
 */
#define CHECK_CLOCK(number, expiry)                                                                                    \
    "local n=redis.call('TIME')\n"                                                                                     \
    "local function at(s) return string.format('0%010d%06d000',n[1]+s,n[2]) end\n"                                     \
    "local m,w=at(86400),'a day'\n"                                                                                    \
    "if " expiry "~='0' then m,w,c=at(3600),'an hour',c or at(-3600)\n"                                                \
    "elseif c and c>m then m=string.format('%011d',string.sub(c,1,11)+86400)..string.sub(c,12) end\n"                  \
    "if " number ">m then return redis.error_reply('ERR the fencing token is over '..w..' ahead of the clock of "      \
    "the node') end\n"

#define SET_COUNTER(number, expiry, call)                                                                              \
    "if " expiry "=='0' then r=redis." call "('SET',KEYS[2]," number ") "                                              \
    "else r=redis." call "('SET',KEYS[2]," number ",'PX'," expiry ") end\n"

/* All that can fail comes before the lock is set; if the counter cannot be, the lock is undone: an error is "not applied" (R4). */
#define ACQUIRE_SOURCE(at_least)                                                                                       \
    "local c,r,t=false,nil,{}\n"                                                                                       \
    "if ARGV[5]=='1' then t=redis.call('TIME') end\n"                                                                  \
    "if KEYS[2] then\n" CHECK_COUNTER CHECK_CLOCK(                                                                     \
        "ARGV[3]",                                                                                                     \
        "ARGV[4]") "end\n"                                                                                             \
                   "if not redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return {0,c,t[1],t[2]} end\n"      \
                   "if KEYS[2] then\n"                                                                                 \
                   "if c and c" at_least "ARGV[3] then return {2,c,t[1],t[2]} end\n" SET_COUNTER(                      \
                       "ARGV[3]", "ARGV[4]", "pcall") "if r.err then redis.call('DEL',KEYS[1]) return r end\n"         \
                                                      "end\n"                                                          \
                                                      "if t[1] then return {1,false,t[1],t[2]} end\n"                  \
                                                      "return 1"

static const char acquire_source[] = ACQUIRE_SOURCE(">=");

static const char fence_source[] =
    "local c,r\n"
    "local v=redis.pcall('GET',KEYS[1])\n"
    "if not v then return 0 end\n"
    "if type(v)=='table' and not string.find(v.err,'WRONGTYPE',1,true) then return v end\n"
    "if v~=ARGV[1] then return -1 end\n" CHECK_COUNTER CHECK_CLOCK(
        "ARGV[2]", "ARGV[3]") "if c and c>=ARGV[2] then return {2,c} end\n" SET_COUNTER("ARGV[2]", "ARGV[3]",
                                                                                        "call") "return 1";

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
static const char planted_incr_source[] =
    "local c=redis.call('GET',KEYS[2])\n"
    "local t={}\n"
    "if ARGV[5]=='1' then t=redis.call('TIME') end\n"
    "if not redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return {0,c,t[1],t[2]} end\n"
    "c=string.format('%020d',tonumber(c or 0)+1)\n"
    "redis.call('SET',KEYS[2],c)\n"
    "return {2,c,t[1],t[2]}";
static const char planted_equal_source[] = ACQUIRE_SOURCE(">");
static const char planted_fence_source[] = "local c,r\n" CHECK_COUNTER CHECK_CLOCK(
    "ARGV[2]", "ARGV[3]") "if c and c>ARGV[2] then return {2,c} end\n" SET_COUNTER("ARGV[2]", "ARGV[3]",
                                                                                   "call") "return 1";
static const char planted_heal_source[] =
    "local v=redis.call('GET',KEYS[1])\n"
    "local n=-1\n"
    "if not v then redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) n=1\n"
    "elseif v==ARGV[1] then\n"
    "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end\n"
    "n=1\n"
    "end\n"
    "if ARGV[3] then local t=redis.call('TIME') return {n,false,t[1],t[2]} end\n"
    "return n";
#endif

static const struct redlock_script scripts[] = {
    [REDLOCK_SCRIPT_RELEASE] = {release_source, sizeof release_source - 1, "9e4679119e4e7b1f5962e12a581a4a83afeb9bf0"},
    [REDLOCK_SCRIPT_EXTEND] = {extend_source, sizeof extend_source - 1, "be3ca4c132257a1280b1746f109b38f42017ea17"},
    [REDLOCK_SCRIPT_INSPECT] = {inspect_source, sizeof inspect_source - 1, "e58faa1922f82f457ac5bb5aada316de413c9023"},
    [REDLOCK_SCRIPT_ACQUIRE] = {acquire_source, sizeof acquire_source - 1, "b0eb3e69d5ae4adaae4a4d1ea35e585da30150d2"},
    [REDLOCK_SCRIPT_FENCE] = {fence_source, sizeof fence_source - 1, "199330afb8c54cfbeda1a28a9c464a7d116b55e8"},
#ifdef REDLOCK_PLANTED_BUGS
    [REDLOCK_SCRIPT_PLANTED_RELEASE] = {planted_release_source, sizeof planted_release_source - 1,
                                        "71923a30a2cad96b7271cad5b0fdb4d5a1dd868c"},
    [REDLOCK_SCRIPT_PLANTED_EXTEND] = {planted_extend_source, sizeof planted_extend_source - 1,
                                       "05e60458b010945aa9f6bdc0c2e1b5a8080629bc"},
    [REDLOCK_SCRIPT_PLANTED_INCR] = {planted_incr_source, sizeof planted_incr_source - 1,
                                     "cca582357fac697d5796b9dc8bbb7b48477cdb2a"},
    [REDLOCK_SCRIPT_PLANTED_EQUAL] = {planted_equal_source, sizeof planted_equal_source - 1,
                                      "1aa90d472040efd38db4f5cc600a4f5ea93174d4"},
    [REDLOCK_SCRIPT_PLANTED_FENCE] = {planted_fence_source, sizeof planted_fence_source - 1,
                                      "43c90a16794fc0b89d4dcb578520a54d89f593b9"},
    [REDLOCK_SCRIPT_PLANTED_HEAL] = {planted_heal_source, sizeof planted_heal_source - 1,
                                     "8840112d5ffb42e71b0669366b38cdec95cf2cf1"},
#endif
};

const struct redlock_script *redlock_script_get(enum redlock_script_id id) {
    assert((unsigned)id < sizeof scripts / sizeof *scripts);
    return &scripts[id];
}
