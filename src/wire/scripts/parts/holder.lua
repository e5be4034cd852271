-- Reads `holder`, the value of the lock; false for none. A key of another type is held by somebody
-- else, not an error. Any other error of GET is returned: an ACL may forbid it.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not holder.err:find('WRONGTYPE', 1, true) then
  return holder
end
