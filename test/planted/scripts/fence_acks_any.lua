-- FENCE with neither a look at the lock nor at an equal counter.
local number, expiry = ARGV[2], ARGV[3]
local counter
-- include parts/check_counter.lua
if counter and counter > number then
  return {2, counter}
end
-- include parts/raise_counter.lua
return raised.err and raised or 1
