-- Permits: some of the slots of a name, each of which is a lock, under one token.
-- KEYS[1]: the gate, a lock with a queue; a slot's key follows with '#' and its number. ARGV[1]:
-- token, ARGV[2]: what to do; slots are numbers with spaces between them.
-- 't' takes so many as it finds free, or none. ARGV[3]: ttl in ms, ARGV[4]: how many slots there
-- are, ARGV[5]: where to begin, ARGV[6]: how many to look at, ARGV[7]: how many to take, ARGV[8]:
-- what follows the gate's key in the queue's, ARGV[9]: our token at the gate; '' if we do not stand
-- there: then it leaves as many free as whoever stands there wants, and one for each who waits
-- behind; of those that it looks at, their share. ARGV[10]: id and channel, to tell who stands at
-- the gate that a slot is free; ARGV[11]: for how many ms. Returns {1, slots, seconds,
-- microseconds}; {0, false, and so on}: too few are free; {-1, token or false, and so on}: too few
-- beside those of others; or the gate is none, but a lock.
-- 'k' keeps: each lives for at least the ttl from now, if all are ours. 'h' heals: sets those that
-- are missing. ARGV[3]: ttl in ms, ARGV[4]: slots, ARGV[5]: present to ask for the time. Returns 1:
-- done, 0: missing, -1: another token; with the time {that, false, seconds, microseconds}.
-- 'g' gives back. ARGV[3]: slots, ARGV[4]: as ARGV[8] above; ARGV[5], ARGV[6] and ARGV[7]: present
-- to give back all others that are ours instead: as ARGV[4], ARGV[5] and ARGV[6] above. Returns as
-- 'k'.
local result, waiters = 1, KEYS[1] .. (ARGV[2] == 't' and ARGV[8] or ARGV[4]) .. 'er'
local function key(slot)
  return KEYS[1] .. '#' .. slot
end
-- Id, channel and token of who stands at the gate, how many slots he wants, and under which token.
local function whom()
  local said = redis.pcall('HGET', waiters, 'slot')
  return (type(said) == 'string' and said or ''):match('^(%d+) (redlock:%w+) (%S+) (%d+) (%S+)$')
end
local function with_time(more)
  local time = redis.call('TIME')
  return {result, more or false, time[1], time[2]}
end
-- Leaves so many others free.
local function take(others)
  local taken = {}
  for i = ARGV[5], ARGV[5] + ARGV[6] - 1 do
    local slot, enough = i % ARGV[4], #taken == tonumber(ARGV[7])
    local answer = enough and redis.pcall('EXISTS', key(slot))
      or not enough and redis.pcall('SET', key(slot), ARGV[1], 'NX', 'PX', ARGV[3])
    if type(answer) == 'table' and answer.err then
      result = answer
      break
    elseif answer == 0 then
      others = others - 1
    elseif answer and not enough then
      taken[#taken + 1] = slot
    end
    if #taken == tonumber(ARGV[7]) and others < 1 then
      return with_time(table.concat(taken, ' '))
    end
  end
  for _, slot in ipairs(taken) do
    redis.call('DEL', key(slot))
  end
  if result ~= 1 then
    return result
  end
  result = others > 0 and -1 or 0
  return with_time()
end
if ARGV[2] == 't' then
  -- include parts/holder.lua
  -- A minority of nodes may not have the token of the gate.
  if ARGV[9] ~= '' and (not holder or holder == ARGV[9]) then
    redis.pcall('HSET', waiters, 'slot', table.concat({ARGV[10], ARGV[9], ARGV[7], ARGV[1]}, ' '))
    redis.pcall('PEXPIRE', waiters, ARGV[11])
    return take(0)
  end
  local queue, others = KEYS[1] .. ARGV[8]
  if holder then
    -- include parts/name_type.lua
    if ARGV[9] ~= '' or not holder:find('^%x+p') then
      result = -1
      return with_time(holder)
    end
    local _, _, token, count = whom()
    others = token == holder and tonumber(count) or 1
  elseif redis.call('EXISTS', queue) == 1 then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    -- include parts/living.lua
    pcall(function()
      for _, token in ipairs(redis.call('ZRANGE', queue, 0, 63)) do
        if living(token) then
          others = 0
          break
        end
      end
    end)
  end
  if others then
    local waiting = redis.pcall('ZCARD', queue)
    others = math.ceil((others + (tonumber(waiting) or 0)) * ARGV[6] / ARGV[4])
  end
  return take(others or 0)
end
local function is_ours(slot)
  local value = redis.pcall('GET', key(slot))
  if type(value) == 'table' and not value.err:find('WRONGTYPE', 1, true) then
    redis.call('GET', key(slot))
  end
  return value == ARGV[1], value and -1 or 0
end
if ARGV[2] == 'g' then
  local freed, listed = false, {}
  local function give(slot)
    local ours, why = is_ours(slot)
    if ours then
      redis.call('DEL', key(slot))
      freed = slot
    end
    return ours and 1 or why
  end
  for slot in ARGV[3]:gmatch('%d+') do
    listed[slot] = true
    if not ARGV[5] then
      result = math.min(result, give(slot))
    end
  end
  if ARGV[5] then
    for i = ARGV[6], ARGV[6] + ARGV[7] - 1 do
      local slot = ('%d'):format(i % ARGV[5])
      if not listed[slot] then
        give(slot)
      end
    end
    result = freed and 1 or 0
  end
  local gate = freed and redis.pcall('GET', KEYS[1])
  if type(gate) == 'string' then
    local id, channel, token, _, of_take = whom()
    -- The first digit may be marked. Who gives back what his take got knows of it: told of that, he
    -- would take again at once, for ever.
    if token and token:sub(2) == gate:sub(2) and of_take ~= ARGV[1] then
      redis.pcall('PUBLISH', channel, id .. ('%020d'):format(freed + 1) .. ' 0 0 0 ' .. token .. ' ' .. KEYS[1])
    end
  end
  return result
end
for slot in ARGV[4]:gmatch('%d+') do
  if ARGV[2] == 'k' or not redis.call('SET', key(slot), ARGV[1], 'NX', 'PX', ARGV[3]) then
    local ours, why = is_ours(slot)
    result = math.min(result, ours and 1 or why)
  end
end
if ARGV[2] == 'k' and result == 1 then
  for slot in ARGV[4]:gmatch('%d+') do
    if redis.call('PTTL', key(slot)) < tonumber(ARGV[3]) then
      redis.call('PEXPIRE', key(slot), ARGV[3])
    end
  end
end
return ARGV[5] and with_time() or result
