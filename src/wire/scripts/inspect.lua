-- Tells who holds the lock, and how many wait for it.
-- KEYS[1]: lock. ARGV[1]: what follows the lock's key in the queue's.
-- Returns {value or false, PTTL, waiters, milliseconds since the first of them began to wait}; -1 for
-- what cannot be told: nobody waits, an ACL forbids it, or the queue's key holds something else.
-- include parts/holder.lua
-- include parts/name_type.lua
local waiters, waited = redis.pcall('ZCARD', KEYS[1] .. ARGV[1]), -1
if type(waiters) == 'table' then
  waiters = -1
elseif waiters > 0 then
  local first = redis.pcall('ZRANGE', KEYS[1] .. ARGV[1], 0, 0, 'WITHSCORES')
  local time = redis.pcall('TIME')
  if not first.err and not time.err then
    waited = math.max(0, math.floor((time[1] * 1000000 + time[2] - first[2]) / 1000))
  end
end
return {holder, redis.call('PTTL', KEYS[1]), waiters, waited}
