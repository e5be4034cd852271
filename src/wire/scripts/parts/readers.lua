-- Where `holder` is no string, finds out whether others read the lock (`shared`), and until when we
-- do (`mine`). A set without an end is somebody else's.
if holder and holder.err and redis.call('PTTL', KEYS[1]) >= 0 then
  mine = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
  shared = type(mine) ~= 'table'
  mine = shared and tonumber(mine)
end
