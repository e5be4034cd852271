-- Marks the lock of a first try: its release looks into the queue then. The first digit of such a
-- token becomes a capital. The key keeps its time to live. No other value is ever marked.
if #((value .. '@'):match('^[g-v]([0-9a-f]+)@') or '') == 31 then
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then
    redis.call('SET', KEYS[1], value:sub(1, 1):upper() .. value:sub(2), 'PX', ttl)
  end
end
