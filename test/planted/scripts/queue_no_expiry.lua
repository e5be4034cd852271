-- WAIT without a ttl for the queue.
-- include parts/holder.lua
local time, queue = redis.call('TIME'), KEYS[2]
local granted = {1, false, 0, 0, time[1], time[2]}
if holder == ARGV[1] then
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
  return takes and serve()
end)
if takes and not (done and served) then
  redis.pcall('DEL', KEYS[1])
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
  return type(answer) == 'table' and answer or redis.error_reply(answer)
end
return answer
