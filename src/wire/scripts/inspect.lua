-- Tells who holds the lock.
-- KEYS[1]: lock.
-- Returns {value or false, PTTL}.
-- include parts/holder.lua
if type(holder) == 'table' then
  holder = '(a ' .. redis.call('TYPE', KEYS[1]).ok .. ')'
end
return {holder, redis.call('PTTL', KEYS[1])}
