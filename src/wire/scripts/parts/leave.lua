-- Hands the lock to nobody. If `left` is more than 1, leaves the lock free for so many ms: until
-- then no WAIT takes it. Tells the first in line of three processes, who ask when that time is
-- over: some may be dead by then. Looks at 2000 entries.
-- Where there is no lock to release, some place in line was given up while the lock is free.
-- Whoever had it may be the only one who knew. Looks at 64 entries: many may give up.
-- What is told is no grant: its serial is 0, and it lacks the seal, of which whoever hears it could
-- make one. No election leaves its lock free.
if left == 1 and holder then
  return
end
local asked, pushed = {}, 0
for _, token in ipairs(redis.call('ZRANGE', queue, 0, holder and 1999 or 63)) do
  if pushed == 3 then
    break
  end
  local ttl, _, id, channel = living(token)
  if ttl and not asked[channel] then
    asked[channel] = true
    id = id:sub(1, -21) .. ('0'):rep(20)
    local push = table.concat({id, 0, time[1], time[2], token, KEYS[1]}, ' ')
    pushed = pushed + math.min(1, redis.call('PUBLISH', channel, push))
  end
end
if not holder then
  return
end
if pushed > 0 then
  -- The hash has a ttl already.
  redis.call('HSET', waiters, 'left', ('%.0f'):format(now + left))
  return redis.call('DEL', KEYS[1])
end
