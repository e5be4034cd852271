-- EXTEND that sets a missing key again and counts it.
local holder = redis.call('GET', KEYS[1])
local result = -1
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  result = 1
elseif holder == ARGV[1] then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  result = 1
end
if ARGV[3] then
  local time = redis.call('TIME')
  return {result, false, time[1], time[2]}
end
return result
