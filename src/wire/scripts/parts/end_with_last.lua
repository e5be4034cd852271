-- The key ends with the last of those who still read, by a millisecond later: `now` is no earlier
-- than the time from which the server counts. It is gone at once where this has ended by now.
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if last then
  redis.call('PEXPIRE', KEYS[1], last - now + 1)
end
