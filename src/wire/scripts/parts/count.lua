-- Makes count(queue), which returns how many of the living wait, and the ticket of the first of
-- them; -1: that cannot be told. Of all queues together, it looks at 2000 entries: 3 ms of the
-- node's time. Those behind count as living, and all do where an ACL forbids to look.
local time, left = redis.pcall('TIME'), 2000
local now = not time.err and time[1] * 1000 + math.floor(time[2] / 1000)
local waiters
-- include parts/living.lua
local function count(queue)
  local number, ticket = redis.pcall('ZCARD', queue), false
  if type(number) == 'table' then
    return -1
  end
  if number > 0 and left > 0 and now then
    waiters = queue .. 'er'
    pcall(function()
      local entries = redis.call('ZRANGE', queue, 0, left - 1, 'WITHSCORES')
      left = left - #entries / 2
      for i = 1, #entries, 2 do
        if living(entries[i]) then
          ticket = ticket or entries[i + 1]
        else
          number = number - 1
        end
      end
    end)
  end
  return number, ticket
end
