-- Finds the `lowest` token of those who read now, and counts them. Looks at 1000 entries. No token
-- begins with a tilde.
local lowest, reading, entries = '~', 0, redis.call('ZRANGE', KEYS[1], 0, 999, 'WITHSCORES')
for i = 1, #entries, 2 do
  if tonumber(entries[i + 1]) >= now then
    reading = reading + 1
    if entries[i] < lowest then
      lowest = entries[i]
    end
  end
end
