-- WAIT of a version from before shared locks.
local value = redis.pcall('GET', KEYS[1])
local holder = value
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end

if holder and holder ~= ARGV[1] and not holder.err and #((holder .. '@'):match('^[G-V]([0-9a-f]+)@') or '') == 31 then
  holder = holder:sub(1, 1):lower() .. holder:sub(2)
end


local time, queue = redis.call('TIME'), KEYS[2]
local granted = {1, false, 0, 0, time[1], time[2]}
if holder == ARGV[1] then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return granted
end
local takes, left = ARGV[9] == '1' and not holder
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

local function drop()
  local function drop_from(rank)
    for _ = 1, 2000 do
      local token = redis.call('ZRANGE', queue, rank, rank)[1]
      if not token or token == ARGV[1] or living(token) then
        return
      end
      redis.call('ZREM', queue, token)
      redis.call('HDEL', waiters, token)
    end
  end
  pcall(function()
    drop_from(0)
    local count = redis.call('ZCARD', queue)
    if count > 8 then
      drop_from(time[2] % count)
    end
  end)
end

local done, served = pcall(function()
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  local entry = {('%.0f'):format(now + ARGV[5]), ARGV[4], ARGV[3], ARGV[8], ARGV[7]}
  redis.call('ZADD', queue, ARGV[2], ARGV[1])
  redis.call('HSET', KEYS[3], ARGV[1], table.concat(entry, ' '))
  redis.call('PEXPIRE', queue, ARGV[6])
  redis.call('PEXPIRE', KEYS[3], ARGV[6])
  if takes then
    local ms = (redis.call('HGET', KEYS[3], 'left') or 0) - now
    left = ms > 0 and ms < 60000 and ms
    takes = not left
  end
  if takes then
    return serve()
  end
  if holder and not value.err then
if #((value .. '@'):match('^[g-v]([0-9a-f]+)@') or '') == 31 then
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then
    redis.call('SET', KEYS[1], value:sub(1, 1):upper() .. value:sub(2), 'PX', ttl)
  end
end

  end
  drop()
  return false
end)
if takes and not (done and served) then
  redis.pcall('DEL', KEYS[1])
elseif takes and ARGV[10] then
pcall(function()
  redis.call('PUBLISH', 'redlock:leader:' .. KEYS[1], served and redis.call('PTTL', KEYS[1]) .. ' ' .. served or '')
end)

end
if done and served == ARGV[1] then
  return granted
end
local answer = served
if done then
  done, answer = pcall(function()
    holder = holder or served
if type(holder) == 'table' then
  holder = '(a ' .. redis.call('TYPE', KEYS[1]).ok .. ')'
end

    return {0, holder, left or redis.call('PTTL', KEYS[1]), redis.call('ZRANK', queue, ARGV[1]), time[1], time[2]}
  end)
end
if not done then
  redis.pcall('ZREM', queue, ARGV[1])
  redis.pcall('HDEL', KEYS[3], ARGV[1])
  return type(answer) == 'table' and answer or redis.error_reply((answer:gsub('^@user_script: %d+: %-?', '')))
end
return answer
