-- Makes drop(), which takes the dead before the first of the living out of `queue`, so that this
-- one knows that it is the first. In a longer queue, it also takes those out that stand in a row
-- somewhere: nothing else bounds the memory of dead waiters behind a living one. It only tidies up,
-- so its errors are ignored.
local function drop()
  local function drop_from(rank)
    for _ = 1, 2000 do
      local token = redis.call('ZRANGE', queue, rank, rank)[1]
      if not token or token == ARGV[1] or living(token) then
        return
      end
      redis.call('ZREM', queue, token)
      redis.call('HDEL', waiters, token)
    end
  end
  pcall(function()
    drop_from(0)
    local count = redis.call('ZCARD', queue)
    if count > 8 then
      drop_from(time[2] % count)
    end
  end)
end
