-- Reads the lock, together with all others who do. A lock that is ours alone becomes one that is
-- read, and then who reads at the head of the queue comes in.
-- KEYS[1]: lock, KEYS[2]: counter or none. ARGV[1]: token, ARGV[2]: ttl in ms, ARGV[3]: 't' to try:
-- refused if somebody waits; 'h' to heal: not refused; 'k' to keep it only if we have it; 'c' the
-- same, and nobody comes in. ARGV[4]: what follows the lock's key in the queue's, ARGV[5]: 1 to ask
-- for the time; with a counter ARGV[6]: the least number that it shall have then, ARGV[7]: its
-- expiry in ms or 0. Returns 1: done, 0: missing, or somebody waits; -1: another token. With a
-- counter it is {that, counter or false}, with the time {that, counter or false, seconds,
-- microseconds}. It never shortens a life.
-- include parts/holder.lua
local time, queue, counter, shared, mine = redis.call('TIME'), KEYS[1] .. ARGV[4], false
-- include parts/readers.lua
-- include parts/serve.lua
-- include parts/drop.lua
local alone, result = holder == ARGV[1], 1
if not alone and not (mine and mine >= now) then
  if holder and not shared then
    result = -1
  elseif ARGV[3] == 'k' or ARGV[3] == 'c' then
    result = 0
  elseif ARGV[3] == 't' and redis.call('EXISTS', queue) == 1 then
    drop()
    result = 1 - redis.call('EXISTS', queue)
  end
end
if KEYS[2] then
  local number, expiry = ARGV[6], ARGV[7]
  -- include parts/check_counter.lua
  -- The numbers of those who read end with 999, those of others never do. So one who comes after
  -- somebody who wrote has a higher one, and those who read together have the same.
  local up = counter and counter:sub(1, 17) .. '999' or number
  number = up > number and up or number
  if result == 1 and number ~= counter and number <= '09223372036854775807' then
    -- include parts/raise_counter.lua
    if raised.err then
      return raised
    end
    counter = number
  end
end
if result == 1 then
  local ttl = ARGV[2]
  if alone then
    ttl = math.max(ttl, redis.call('PTTL', KEYS[1]))
    redis.call('DEL', KEYS[1])
  elseif mine then
    -- Those who have ended. Without memory, a first write must be one like this.
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
  end
  local reader, life = ARGV[1], ttl
  -- include parts/join.lua
  if shared and not mine then
    -- Nothing may fail any more.
    redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
  end
  if alone and ARGV[3] ~= 'c' and redis.pcall('EXISTS', queue) == 1 then
    pcall(serve, true)
  end
end
if ARGV[5] == '1' then
  return {result, counter, time[1], time[2]}
end
return KEYS[2] and {result, counter} or result
