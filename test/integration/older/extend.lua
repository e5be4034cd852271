-- EXTEND of a version from before shared locks.
local value = redis.pcall('GET', KEYS[1])
local holder = value
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end

if holder and holder ~= ARGV[1] and not holder.err and #((holder .. '@'):match('^[G-V]([0-9a-f]+)@') or '') == 31 then
  holder = holder:sub(1, 1):lower() .. holder:sub(2)
end


local result = holder and -1 or 0
if holder == ARGV[1] then
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
