-- Gives up the lock and our place in its queue. If the lock is held under our token, hands it to
-- the next in the queue, or deletes it.
-- KEYS[1]: lock. ARGV[1]: token, ARGV[2]: what follows the lock's key in the queue's, ARGV[3]: 1 to
-- hand the lock to nobody, 2 to hand over also a lock that is free, more to leave it free for so
-- many ms if somebody waits, ARGV[4]: present to tell observers.
-- Returns 2: handed over or left free, 1: deleted, 0: missing, -1: another token.
-- The queue's keys are not declared, and its errors are ignored: no fault there, and no ACL, may
-- keep us from deleting the lock.
-- Where nobody waits, each word here counts.
local holder, queue = redis.pcall('GET', KEYS[1]), KEYS[1] .. ARGV[2]
if holder ~= ARGV[1] then
  -- include parts/check_holder.lua
  if redis.pcall('ZREM', queue, ARGV[1]) == 1 then
    redis.pcall('HDEL', queue .. 'er', ARGV[1])
  end
  if ARGV[3] == '2' then
    redis.pcall('HDEL', queue .. 'er', 'left')
  end
  if holder or ARGV[3] ~= '2' then
    return holder and -1 or 0
  end
end
if ARGV[3] ~= '1' and redis.pcall('EXISTS', queue) == 1 then
  local time, left = redis.pcall('TIME'), tonumber(ARGV[3] or 0)
  -- include parts/serve.lua
  local done, served = pcall(function()
    -- Our own entry, too: the key may have been healed here while we were in line. This is the
    -- first write, which is allowed without memory; then all are.
    if redis.call('ZREM', queue, ARGV[1]) == 1 then
      redis.call('HDEL', queue .. 'er', ARGV[1])
    end
    -- WAIT takes nothing until then. The hash has a ttl already. No election leaves its lock free.
    if left > 2 and redis.call('EXISTS', queue .. 'er') == 1 then
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      redis.call('HSET', queue .. 'er', 'left', ('%.0f'):format(now + left))
      return redis.call('DEL', KEYS[1])
    end
    return serve()
  end)
  if done and served then
    if ARGV[4] then
      -- include parts/announce.lua
    end
    return 2
  end
end
if ARGV[4] then
  local served
  redis.call('DEL', KEYS[1])
  -- include parts/announce.lua
  return 1
end
return redis.call('DEL', KEYS[1])
