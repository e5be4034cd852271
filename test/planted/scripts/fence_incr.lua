-- ACQUIRE where each node counts by itself, whatever was proposed.
local time = {}
if ARGV[5] == '1' then
  time = redis.call('TIME')
end
local counter = KEYS[2] ~= nil and redis.call('GET', KEYS[2])
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {0, counter, time[1], time[2]}
end
if not KEYS[2] then
  return {1, false, time[1], time[2]}
end
counter = ('%020d'):format(tonumber(counter or 0) + 1)
redis.call('SET', KEYS[2], counter)
return {2, counter, time[1], time[2]}
