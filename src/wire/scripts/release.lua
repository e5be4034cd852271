-- Deletes the lock if it is held under our token.
-- KEYS[1]: lock. ARGV[1]: token.
-- Returns 1: deleted, 0: missing, -1: another token.
-- include parts/holder.lua
if holder == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return holder and -1 or 0
