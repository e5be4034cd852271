-- Tells who holds the lock.
-- KEYS[1]: lock.
-- Returns {value or false, PTTL}.
-- include parts/holder.lua
-- include parts/name_type.lua
return {holder, redis.call('PTTL', KEYS[1])}
