-- ACQUIRE where a counter that equals the proposal does not beat it.
local number, expiry = ARGV[3], ARGV[4]
local counter, time = false, {}
if ARGV[5] == '1' then
  time = redis.call('TIME')
end
if KEYS[2] then
  -- include parts/check_counter.lua
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {0, counter, time[1], time[2]}
end
if KEYS[2] then
  if counter and counter > number then
    return {2, counter, time[1], time[2]}
  end
  -- include parts/raise_counter.lua
  -- An error means "not applied" (R4): undo the lock.
  if raised.err then
    redis.call('DEL', KEYS[1])
    return raised
  end
end
if time[1] then
  return {1, false, time[1], time[2]}
end
return 1
