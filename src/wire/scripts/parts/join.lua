-- Makes join(), which lets `token` read until `ttl` ms after `now`. It shortens neither its life,
-- which ends at `mine` if we know it, nor that of the key, which ends with the last of those who read.
local function join(token, ttl, mine)
  local expiry = now + ttl
  if expiry > tonumber(mine or redis.call('ZSCORE', KEYS[1], token) or 0) then
    redis.call('ZADD', KEYS[1], expiry, token)
  end
  if redis.call('PTTL', KEYS[1]) < tonumber(ttl) then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
end
