-- Takes a place in the queue of the lock, or keeps it, and on request the lock if it is free.
-- KEYS[1]: lock, KEYS[2]: queue (sorted set: token, ticket), KEYS[3]: waiters (hash: token, what a
-- grant needs). ARGV[1]: token, ARGV[2]: ticket, ARGV[3]: serial, ARGV[4]: ttl, ARGV[5]: the place
-- is stale after, ARGV[6]: ttl of the queue, all in ms, ARGV[7]: channel, ARGV[8]: id, ARGV[9]: 1
-- to take, ARGV[10]: present to tell observers.
-- Returns {1, false, 0, 0, seconds, microseconds}: granted, {0, holder or false, PTTL, waiters
-- before us, seconds, microseconds}: queued.
-- On an error, we have neither the lock nor a place.
-- include parts/holder.lua
local time, queue = redis.call('TIME'), KEYS[2]
local granted = {1, false, 0, 0, time[1], time[2]}
if holder == ARGV[1] then
  -- The grant is that of this request, so the key lives for its whole ttl. It is never shortened.
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return granted
end
local takes = ARGV[9] == '1' and not holder
-- include parts/serve.lua
local done, served = pcall(function()
  local good_until = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5]
  local entry = {('%.0f'):format(good_until), ARGV[4], ARGV[3], ARGV[8], ARGV[7]}
  redis.call('ZADD', queue, ARGV[2], ARGV[1])
  redis.call('HSET', KEYS[3], ARGV[1], table.concat(entry, ' '))
  redis.call('PEXPIRE', queue, ARGV[6])
  redis.call('PEXPIRE', KEYS[3], ARGV[6])
  return takes and serve()
end)
if takes and not (done and served) then
  redis.pcall('DEL', KEYS[1])
elseif takes and ARGV[10] then
  -- include parts/announce.lua
end
if done and served == ARGV[1] then
  return granted
end
local answer = served
if done then
  done, answer = pcall(function()
    holder = holder or served
    -- include parts/name_type.lua
    return {0, holder, redis.call('PTTL', KEYS[1]), redis.call('ZRANK', queue, ARGV[1]), time[1], time[2]}
  end)
end
if not done then
  redis.pcall('ZREM', queue, ARGV[1])
  redis.pcall('HDEL', KEYS[3], ARGV[1])
  -- Redis before 7 throws a string, with the line before it.
  return type(answer) == 'table' and answer or redis.error_reply((answer:gsub('^@user_script: %d+: %-?', '')))
end
return answer
