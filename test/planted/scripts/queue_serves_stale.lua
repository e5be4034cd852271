-- RELEASE that also serves who has not asked for long.
local holder, queue = redis.pcall('GET', KEYS[1]), KEYS[1] .. ARGV[2]
if holder ~= ARGV[1] then
  -- include parts/check_holder.lua
  if redis.pcall('ZREM', queue, ARGV[1]) == 1 then
    redis.pcall('HDEL', queue .. 'er', ARGV[1])
  end
  return holder and -1 or 0
end
if not ARGV[3] and redis.pcall('EXISTS', queue) == 1 then
  local time = redis.pcall('TIME')
  local function serve()
    local waiters = queue .. 'er'
    for _ = 1, 64 do
      local first = redis.call('ZPOPMIN', queue)[1]
      if not first then
        return false
      end
      local entry = redis.call('HGET', waiters, first) or ''
      redis.call('HDEL', waiters, first)
      local good_until, ttl, serial, id, channel = entry:match('^(%d+) (%d+) (%d+) (%d+) (.+)$')
      if good_until then
        redis.call('SET', KEYS[1], first, 'PX', ttl)
        local push = table.concat({id, serial, time[1], time[2], first, KEYS[1]}, ' ')
        if first == ARGV[1] or redis.call('PUBLISH', channel, push) > 0 then
          return first
        end
      end
    end
    return false
  end
  local done, served = pcall(function()
    redis.call('ZREM', queue, ARGV[1])
    return serve()
  end)
  if done and served then
    return 2
  end
end
return redis.call('DEL', KEYS[1])
