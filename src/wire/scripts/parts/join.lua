-- Lets `reader` read until `life` ms after `now`. It shortens neither its life nor that of the key,
-- which ends with the last of those who read.
if now + life > tonumber(redis.call('ZSCORE', KEYS[1], reader) or 0) then
  redis.call('ZADD', KEYS[1], now + life, reader)
end
if redis.call('PTTL', KEYS[1]) < tonumber(life) then
  redis.call('PEXPIRE', KEYS[1], life)
end
