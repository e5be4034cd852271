-- RELEASE of a version from before shared locks.
local value = redis.pcall('GET', KEYS[1])
if value == ARGV[1] and not ARGV[3] then
  return redis.call('DEL', KEYS[1])
end
local holder, queue = value, KEYS[1] .. (ARGV[2] or ':wait')
if holder and holder ~= ARGV[1] and not holder.err and #((holder .. '@'):match('^[G-V]([0-9a-f]+)@') or '') == 31 then
  holder = holder:sub(1, 1):lower() .. holder:sub(2)
end

if holder ~= ARGV[1] then
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end

  local was_queued = redis.pcall('ZREM', queue, ARGV[1]) == 1
  if was_queued then
    redis.pcall('HDEL', queue .. 'er', ARGV[1])
  end
  if holder or not was_queued or redis.pcall('EXISTS', queue) ~= 1 then
    return holder and -1 or 0
  end
end
if redis.pcall('EXISTS', queue) == 1 then
  local time, left = redis.pcall('TIME'), tonumber(ARGV[3] or 0)
local waiters, now = queue .. 'er'
local heard = {}
local function living(token)
  local entry = redis.call('HGET', waiters, token) or ''
  local good_until, ttl, serial, id, channel = entry:match('^(%d+) (%d+) (%d+) (%d+) (redlock:%w+)$')
  if not good_until or now > tonumber(good_until) then
    return nil
  end
  if heard[channel] == nil then
    local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
    heard[channel] = count.err and true or count[2] > 0
  end
  return (heard[channel] or token == ARGV[1]) and ttl, serial, id, channel
end

local function serve()
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  for _ = 1, 2000 do
    local first = redis.call('ZPOPMIN', queue)[1]
    if not first then
      return false
    end
    local ttl, serial, id, channel = living(first)
    redis.call('HDEL', waiters, first)
    if ttl then
      redis.call('SET', KEYS[1], first, 'PX', ttl)
      local push = table.concat({id, serial, time[1], time[2], first, KEYS[1]}, ' ')
      if first == ARGV[1] or redis.call('PUBLISH', channel, push) > 0 then
        return first
      end
      heard[channel] = false
    end
  end
  return false
end

  local done, served = pcall(function()
    if redis.call('ZREM', queue, ARGV[1]) == 1 then
      redis.call('HDEL', queue .. 'er', ARGV[1])
    end
    if left > 0 or not holder then
if left == 1 and holder then
  return
end
local told, count = {}, 0
now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, token in ipairs(redis.call('ZRANGE', queue, 0, holder and 1999 or 63)) do
  if count == 3 then
    break
  end
  local ttl, _, id, channel = living(token)
  if ttl and not told[channel] then
    told[channel] = true
    id = id:sub(1, -21) .. ('0'):rep(20)
    local push = table.concat({id, 0, time[1], time[2], token, KEYS[1]}, ' ')
    count = count + math.min(1, redis.call('PUBLISH', channel, push))
  end
end
if not holder then
  return
end
if count > 0 then
  redis.call('HSET', waiters, 'left', ('%.0f'):format(now + left))
  return redis.call('DEL', KEYS[1])
end

    end
    return serve()
  end)
  if done and served then
    if ARGV[4] then
pcall(function()
  redis.call('PUBLISH', 'redlock:leader:' .. KEYS[1], served and redis.call('PTTL', KEYS[1]) .. ' ' .. served or '')
end)

    end
    return 2
  end
  if not holder then
    return 0
  end
end
if ARGV[4] then
  local served
  redis.call('DEL', KEYS[1])
pcall(function()
  redis.call('PUBLISH', 'redlock:leader:' .. KEYS[1], served and redis.call('PTTL', KEYS[1]) .. ' ' .. served or '')
end)

  return 1
end
return redis.call('DEL', KEYS[1])
